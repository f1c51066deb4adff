// Runs generated code in poisoned memory with guards around it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/aligned.h"
#include "generators/compile/executable.h"
#include "generators/group_code.h"

namespace laminate {

inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr size_t guard = 64;

struct Outcome {
    std::vector<float> output;
    bool guards_intact = true;
};

/// Runs in NaN memory; when `strip_by_strip`, each strip in its own call, which finds nothing in
/// the scratch block that another call has left.
inline Outcome run_poisoned(const GroupCode& code, size_t outputs,
                            const std::vector<std::vector<float>>& inputs, bool strip_by_strip) {
    const JitGroup jit(code.body, false);
    const AlignedFloats constants(code.constants);
    const size_t scratch_elements = static_cast<size_t>(code.scratch_bytes) / sizeof(float);
    AlignedFloats scratch(scratch_elements + guard, nan);
    std::vector<float> memory(outputs + 2 * guard, nan);
    std::vector<const float*> in;
    for (const std::vector<float>& input : inputs) in.push_back(input.data());
    float* out = memory.data() + guard;
    const auto strips = static_cast<int32_t>(code.strips);
    for (int32_t s = 0; s < strips; s += strip_by_strip ? 1 : strips) {
        std::fill_n(scratch.data(), scratch_elements, nan);
        EXPECT_EQ(jit.function()(in.data(), &out, constants.data(), scratch.data(), s,
                                 strip_by_strip ? s + 1 : strips),
                  0);
    }
    Outcome result;
    for (size_t g = 0; g < guard; ++g) {
        if (!std::isnan(memory[g]) || !std::isnan(memory[outputs + guard + g]) ||
            !std::isnan(scratch.data()[scratch_elements + g])) {
            result.guards_intact = false;
        }
    }
    result.output.assign(out, out + outputs);
    return result;
}

}  // namespace laminate
