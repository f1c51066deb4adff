// Runs count-only code (count_pass.h) without compiling it, in time that grows with the number of
// different loop bodies instead of the number of iterations.
//
// The lowered statement is executed node by node, with every value an affine function of the loop
// variables around it. Every decision (a branch, the side that a min or a max takes, a quotient,
// the trips of a loop, an increment) adds the linear condition under which it stays the same. After
// one body of a loop, the conditions say for how many further iterations every step is the same. If
// the body also left the control data in memory unchanged, these iterations are not run; the counts
// of the body are multiplied. The remaining conditions belong to the loop around. Nothing is
// extrapolated: the result equals that of stepping through every iteration, which
// LoopSteps::every_iteration does.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "instrumentation/affine.h"

namespace laminate {

enum class LoopSteps {
    different_bodies,  ///< counts iterations that do the same together
    every_iteration,   ///< plain execution, to check the other mode
};

struct SummedCounters {
    std::vector<int64_t> counters;
    int64_t bodies = 0;  ///< loop bodies that were run
};

/// The values that running `with_counters(code, CountMode::count_only)` on strips [0, strips)
/// leaves in as many zeroed counters. Throws std::logic_error for statements that the counting pass
/// does not make.
[[nodiscard]] SummedCounters summed_counters(const Halide::Internal::Stmt& statement,
                                             size_t counters, int64_t strips,
                                             LoopSteps steps = LoopSteps::different_bodies);

/// Runs every iteration of a statement of scalar integers, and hands over the arguments of each
/// counting::call_function (count_program.h) that it comes to.
void step_through(const Halide::Internal::Stmt& statement, int64_t strips,
                  const std::function<void(const std::vector<int64_t>& arguments)>& tell);

/// Is told the calls of a statement in order. Those between a begin and its end happen as many times
/// as the end says, while the variable in their arguments counts the rounds from 0.
class RoundsListener {
public:
    virtual ~RoundsListener() = default;
    virtual void begin_rounds(int32_t variable) = 0;
    virtual void end_rounds(int64_t rounds) = 0;
    virtual void tell(const std::vector<counting::Affine>& arguments) = 0;
};
/// The calls of step_through(), in time that grows with the number of different loop bodies.
void step_in_rounds(const Halide::Internal::Stmt& statement, int64_t strips,
                    RoundsListener& listener);

}  // namespace laminate
