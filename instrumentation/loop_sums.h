// Runs the count-only kind of generated code (count_pass.h) without compiling it, in time that
// grows with the number of different loop bodies instead of iterations.
//
// The lowered statement is executed node by node, with every value known as an affine function of
// the loop variables around it. Whatever decides the way of the execution (a branch, the side that
// a min or a max takes, a quotient, the trips of a loop, an increment) adds the linear condition
// under which it stays as it is. Having run one body of a loop, the conditions say for how many
// further iterations every step of it is the same; if it also left the control data in memory as it
// found them, these iterations are not run: what it counted is multiplied. The conditions that
// remain are those of the loop around. Nothing is extrapolated or assumed: the result is that of
// stepping through every iteration, which `LoopSteps::every_iteration` does.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <vector>

namespace laminate {

enum class LoopSteps {
    different_bodies,  ///< iterations that do the same are counted together
    every_iteration,   ///< plain execution, to check the other with
};

struct SummedCounters {
    std::vector<int64_t> counters;
    int64_t bodies = 0;  ///< loop bodies that were run
};

/// `counters` zeroed counters, brought to what running `with_counters(code, CountMode::count_only)`
/// on strips [0, strips) leaves in them. Throws std::logic_error for statements that the counting
/// pass does not make.
[[nodiscard]] SummedCounters summed_counters(const Halide::Internal::Stmt& statement,
                                             size_t counters, int64_t strips,
                                             LoopSteps steps = LoopSteps::different_bodies);

}  // namespace laminate
