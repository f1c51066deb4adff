// What a generator makes of a group: a statement in Halide IR plus what is needed to run and to
// count it.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/size_formula.h"
#include "generators/ir/packing.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// What an array name in generated code stands for.
enum class ArrayRole {
    external_input,    ///< X in external memory
    external_weights,  ///< W of a layer in external memory
    external_output,   ///< Y in external memory
    input_buffer,      ///< X's internal buffer
    weights_buffer,    ///< W's internal buffer
    output_buffer,     ///< buffer of a layer's output: an intermediate tensor, or Y of the sink;
                       ///< multiply-accumulates end here
    sums,              ///< sums of a layer in registers, in code that runs
};

struct CodeArray {
    std::string name;
    ArrayRole role = ArrayRole::external_input;
    /// Index of the layer in the group; external_input, input_buffer: of the external input in the
    /// order of group_tensors().
    int index = 0;
};

struct GroupCode {
    Halide::Internal::Stmt body;  ///< over the arguments of laminate_group_function
                                  ///< (generators/lowering/group_lowering.h)
    std::vector<CodeArray> arrays;
    std::vector<std::string> inputs;  ///< tensor names of the external inputs
    std::vector<float> constants;     ///< this group's block of constants
    std::vector<Packing> packings;    ///< what they were made by; none of instrumented code
    int64_t scratch_bytes = 0;
    int64_t strips = 1;
    /// Neighbouring strips that compute something in common, which one call for all of them computes
    /// once. They divide the strips.
    int64_t strips_together = 1;
    /// Of code of any size, which has strips as the caller says; scratch_bytes and strips are those
    /// of the network's own size.
    std::optional<SizeFormula> open_scratch_bytes;
    SizeValues size{};  ///< of code of any size: its own, which it must be told
};

}  // namespace laminate
