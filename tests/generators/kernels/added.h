// Layers that add while they store, against the same layer and its Add one after the other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "generators/compile/group_reference.h"
#include "generators/ir/layer_output.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "tests/generators/kernels/last_elements.h"
#include "tests/generators/kernels/poisoned_run.h"
#include "tests/support/chain.h"

namespace laminate {

/// `network`, whose one layer is its output, and an Add of that output and of another input of the
/// same shape; `own`: which operand the layer's output is.
inline Network with_add(Network network, size_t own, const Activation& activation) {
    const TensorId before = network.layers.back().output;
    const auto other = static_cast<TensorId>(network.tensors.size());
    network.tensors.push_back({"other", network.tensor(before).dims});
    network.inputs.push_back(other);
    std::vector<TensorId> operands{other, before};
    if (own == 0) std::swap(operands[0], operands[1]);
    append(network, "add", {.kind = LayerKind::add, .inputs = operands, .activation = activation});
    check(network);
    return network;
}

using MakeCode = std::function<std::optional<GroupCode>(const Network&, const GroupSchedule&)>;

/// `alone`: one layer without an activation. The group of the layer and its Add gives, whole and
/// strip by strip, the bits that the layer's own code and an addition give, and reads nothing
/// behind either input.
inline void expect_added(const Network& alone, const MakeCode& make, const std::string& what) {
    const std::optional<GroupCode> layer = make(alone, line_buffer_group(alone, {0}));
    ASSERT_TRUE(layer) << what;
    for (const size_t own : {size_t{0}, size_t{1}}) {
        const Network network = with_add(alone, own, {.kind = ActivationKind::relu});
        const GroupSchedule group = line_buffer_group(network, {0, 1});
        check_group(network, group);
        const std::optional<GroupCode> code = make(network, group);
        ASSERT_TRUE(code) << what;
        ASSERT_EQ(code->inputs, (std::vector<std::string>{network.tensor(0).name, "other"}));
        const std::vector<std::vector<float>> inputs =
            random_group_inputs(network, group_problems(network, group), 5);
        std::vector<float> expected =
            run_poisoned(*layer, inputs[1].size(), {inputs[0]}, false).output;
        for (size_t e = 0; e < expected.size(); ++e)
            expected[e] = std::max(expected[e] + inputs[1][e], 0.0F);
        for (const bool strip_by_strip : {false, true}) {
            const Outcome got = run_poisoned(*code, expected.size(), inputs, strip_by_strip);
            EXPECT_TRUE(got.guards_intact) << what;
            EXPECT_EQ(got.output, expected) << what;
        }
        const LastElements first(inputs[0]), second(inputs[1]);
        const AlignedFloats constants(code->constants);
        AlignedFloats scratch(static_cast<size_t>(code->scratch_bytes) / sizeof(float));
        std::vector<float> output(expected.size());
        const float* in[] = {first.data(), second.data()};
        float* out = output.data();
        EXPECT_EQ(JitGroup(code->body, false)
                      .function()(in, &out, constants.data(), scratch.data(), 0,
                                  static_cast<int32_t>(code->strips)),
                  0);
        EXPECT_EQ(output, expected) << what;
    }
}

/// With activations of both layers' own, against the reference operators.
inline void expect_added_near(const Network& alone, const Activation& activation,
                              const MakeCode& make, const std::string& what) {
    const Network network = with_add(alone, 1, activation);
    const GroupSchedule group = line_buffer_group(network, {0, 1});
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 5);
    const std::vector<float> expected = reference_output(network, problems, inputs);
    const std::optional<GroupCode> code = make(network, group);
    ASSERT_TRUE(code) << what;
    const Outcome got = run_poisoned(*code, expected.size(), inputs, true);
    float range = 0;
    for (const float v : expected) range = std::max(range, std::abs(v));
    for (size_t e = 0; e < expected.size(); ++e)
        ASSERT_NEAR(got.output[e], expected[e], 1e-5F * range) << what << ", element " << e;
}

}  // namespace laminate
