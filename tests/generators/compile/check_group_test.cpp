// The check that every compiled group passes: it must accept right code and name what is wrong with
// wrong code.
#include "generators/compile/check_group.h"

#include <gtest/gtest.h>

#include <limits>

#include "generators/compile/error_bounds.h"
#include "generators/compile/executable.h"
#include "generators/compile/group_reference.h"
#include "generators/kernels/group_kernels.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

/// L3Net as one fused group, and its code.
class CheckGroup : public ::testing::Test {
protected:
    CheckGroup()
        : network_(zoo_network("l3net")),
          group_(line_buffer_group(network_, schedulable_chains(network_).front(), {4, 8, 0})),
          code_(default_code(network_, group_, vector_unit(Halide::get_host_target()))) {}

    Network network_;
    GroupSchedule group_;
    GroupCode code_;
};

TEST_F(CheckGroup, RightCodePasses) {
    const JitGroup jit(code_.body, false);
    EXPECT_EQ(wrong_result(network_, group_, code_, jit.function()), "");
}

TEST_F(CheckGroup, BandsOfRowsAloneFindAWeightThatIsOff) {
    const JitGroup jit(code_.body, false);
    CheckOptions bands;
    bands.reference_macs = Macs(1);  // one row at the top, in the middle and at the bottom
    EXPECT_EQ(wrong_result(network_, group_, code_, jit.function(), bands), "");
    GroupCode off = code_;
    off.constants[0] += 0.01F;
    EXPECT_NE(wrong_result(network_, group_, off, jit.function(), bands)
                  .find("channel 0, row 0, column 0 is "),
              std::string::npos)
        << wrong_result(network_, group_, off, jit.function(), bands);
}

// Impostors with the interface of generated code. L3Net's output is 16 channels or fewer of a small
// map; they only touch its first elements.
int writes_nothing(const float* const*, float* const*, const float*, void*, int32_t, int32_t) {
    return 0;
}
int writes_before_the_output(const float* const*, float* const* outputs, const float*, void*,
                             int32_t, int32_t) {
    outputs[0][-1] = 1;
    return 0;
}
int writes_before_the_scratch(const float* const*, float* const*, const float*, void* scratch,
                              int32_t, int32_t) {
    static_cast<float*>(scratch)[-1] = 1;
    return 0;
}
int fails(const float* const*, float* const*, const float*, void*, int32_t, int32_t) { return 7; }

TEST_F(CheckGroup, ImpostorsAreNamed) {
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_nothing),
              "channel 0, row 0, column 0 was not written, or is not finite");
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_before_the_output),
              "the code wrote outside its output");
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_before_the_scratch),
              "the code wrote outside its scratch memory");
    EXPECT_EQ(wrong_result(network_, group_, code_, fails), "the code returned 7");
}

/// A function of x and conv(x), of 4 channels on 6 x 9 as a group.
class CheckOfTwo : public ::testing::Test {
protected:
    CheckOfTwo(GeneralFunction function, float scale) {
        network_ = empty_network(4, 6, 9);
        const TensorId second = append(network_, "conv1", 0, {4, square_window(3, 1, 1)});
        std::vector<float> weights;
        for (int n = 0; n < 4 * 4 * 9; ++n)
            weights.push_back(scale * (static_cast<float>(n * 7 % 11 - 5) / 4 + 0.1F));
        network_.layers[0].weights =
            std::make_shared<const Constant>(Constant{{4, 4, 3, 3}, std::move(weights)});
        append(network_, "both2",
               {.kind = LayerKind::general,
                .inputs = {0, second},
                .general = {.kind = GeneralKind::binary, .function = function}});
        group_ = line_buffer_group(network_, {0, 1});
        code_ = default_code(network_, group_, vector_unit(Halide::get_host_target()));
    }

    void expect_right_code_passes() const {
        const JitGroup jit(code_.body, false);
        CheckOptions options;
        options.specials = true;
        for (options.seed = 1; options.seed <= 5; ++options.seed)
            EXPECT_EQ(wrong_result(network_, group_, code_, jit.function(), options), "");
    }
    void expect_seen(float factor_of_weights) const {
        const JitGroup jit(code_.body, false);
        GroupCode off = code_;
        for (float& value : off.constants) value *= factor_of_weights;
        EXPECT_NE(wrong_result(network_, group_, off, jit.function()).find(", expected "),
                  std::string::npos);
    }

    Network network_;
    GroupSchedule group_;
    GroupCode code_;
};

/// The divisors are sums that may come near 0.
class CheckQuotient : public CheckOfTwo {
protected:
    CheckQuotient() : CheckOfTwo(GeneralFunction::divide, 1) {}
};
/// The exponents are small, so that most powers are neither 0 nor infinite.
class CheckPower : public CheckOfTwo {
protected:
    CheckPower() : CheckOfTwo(GeneralFunction::power, 1.0F / 64) {}
};
class CheckSlopes : public CheckOfTwo {
protected:
    CheckSlopes() : CheckOfTwo(GeneralFunction::prelu, 1) {}
};

TEST_F(CheckQuotient, RightCodePasses) { expect_right_code_passes(); }
TEST_F(CheckPower, RightCodePasses) { expect_right_code_passes(); }
TEST_F(CheckSlopes, RightCodePasses) { expect_right_code_passes(); }
TEST_F(CheckPower, AnExponentThatIsOffIsSeen) { expect_seen(1.01F); }
TEST_F(CheckSlopes, ASlopeThatIsOffIsSeen) { expect_seen(1.001F); }

/// A weight of the divisor that is off by a thousandth shows, for most divisors are not near 0.
TEST_F(CheckQuotient, AWrongDigitOfTheDivisorIsSeen) { expect_seen(1.001F); }

/// Two convolutions read 2 x 4 x 9 x 9 quotients for each element. By values of both signs one of them
/// nearly always has a divisor near 0, so that wrong weights of the last convolution went unseen.
TEST_F(CheckQuotient, WrongWeightsBehindItAreSeen) {
    const auto weights_of = [](float scale) {
        std::vector<float> weights;
        for (int n = 0; n < 4 * 4 * 9; ++n) weights.push_back(scale * static_cast<float>(n * 5 % 13 - 4));
        return std::make_shared<const Constant>(Constant{{4, 4, 3, 3}, std::move(weights)});
    };
    TensorId last = network_.layers.back().output;
    for (const char* name : {"conv3", "conv4"}) {
        last = append(network_, name, last, {4, square_window(3, 1, 1)});
        network_.layers.back().weights = weights_of(1);
    }
    const GroupSchedule group = line_buffer_group(network_, {0, 1, 2, 3});
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    const GroupCode code = default_code(network_, group, unit);
    EXPECT_EQ(wrong_result(network_, group, code, JitGroup(code.body, false).function()), "");
    network_.layers.back().weights = weights_of(1.01F);
    const GroupCode off = default_code(network_, group, unit);
    network_.layers.back().weights = weights_of(1);
    const std::string wrong =
        wrong_result(network_, group, off, JitGroup(off.body, false).function());
    EXPECT_NE(wrong.find(", expected "), std::string::npos) << wrong;

    const std::vector<LayerProblem> problems = group_problems(network_, group);
    const auto judged_of = [&](const std::vector<std::vector<float>>& inputs) {
        return bounded_rows(network_, problems, inputs, 0, 6, Sums::in_any_kernel).judged();
    };
    EXPECT_LT(judged_of(random_group_inputs(network_, problems, 1)), 4 * 6 * 9 / 2);
    EXPECT_GT(judged_of(judged_inputs(network_, problems, 1)), 4 * 6 * 9 * 9 / 10);
}

TEST_F(CheckQuotient, WhatIsNotWrittenIsSeen) {
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_nothing),
              "channel 0, row 0, column 0 was not written, or is not finite");
}

/// Of two maps that are read as they are, no more than two units in the last place are allowed for
/// each of some twenty operations; where the divisor is 0, anything.
TEST(ErrorBounds, OfQuotients) {
    Network network = empty_network(1, 1, 4);
    network.tensors.push_back({"y", {1, 1, 1, 4}});
    network.inputs.push_back(1);
    append(network, "quotient1",
                 {.kind = LayerKind::general,
                  .inputs = {0, 1},
                  .general = {.kind = GeneralKind::binary,
                              .function = GeneralFunction::divide}});
    const BoundedRows rows =
        bounded_rows(network, layer_problems(network, {0}), {{6, 1, 5, 7}, {3, 1e-3F, 0, -7}}, 0, 1,
                     Sums::by_definition);
    EXPECT_EQ(rows.expected[0], 2);
    EXPECT_TRUE(rows.holds(2, 0));
    EXPECT_TRUE(rows.holds(2.000001F, 0));
    EXPECT_FALSE(rows.holds(2.0001F, 0));
    EXPECT_FALSE(rows.holds(1001, 1));
    EXPECT_TRUE(rows.holds(1000.001F, 1));
    EXPECT_TRUE(rows.holds(-1, 2));
    EXPECT_FALSE(rows.holds(1, 3));
}

/// The sum 1 - 1 of a convolution may be as far from 0 as its rounding, so a quotient by it may be
/// anything; that by 1 + 1 may not.
TEST(ErrorBounds, OfDivisorsThatCancel) {
    Network network = empty_network(2, 1, 2);
    const TensorId sums = append(network, "conv1", 0, {1, square_window(1, 1, 0)});
    network.layers[0].weights =
        std::make_shared<const Constant>(Constant{{1, 2, 1, 1}, {1, 1}});
    network.tensors.push_back({"x", {1, 1, 1, 2}});
    const auto x = static_cast<TensorId>(network.tensors.size() - 1);
    network.inputs.push_back(x);
    append(network, "quotient2",
                 {.kind = LayerKind::general,
                  .inputs = {x, sums},
                  .general = {.kind = GeneralKind::binary,
                              .function = GeneralFunction::divide}});
    // External inputs in the order in which the layers read them: channels of conv1, then x.
    const BoundedRows rows =
        bounded_rows(network, layer_problems(network, {0, 1}), {{1, 1, -1, 1}, {8, 8}}, 0, 1,
                     Sums::by_definition);
    EXPECT_TRUE(rows.holds(123, 0));
    EXPECT_EQ(rows.expected[1], 4);
    EXPECT_TRUE(rows.holds(4, 1));
    EXPECT_FALSE(rows.holds(4.001F, 1));
}

/// The exponent is the sum of 1 and -1 and may be near 0, or of 1 and 1. 1e-8^0 is 1, and so it is
/// if the exponent is off by a few units in the last place; nothing is known of a base that may be
/// 0 or less.
TEST(ErrorBounds, OfPowersAreOfTheCornersBesideTheOperands) {
    Network network = empty_network(2, 1, 4);
    const TensorId sums = append(network, "conv1", 0, {1, square_window(1, 1, 0)});
    network.layers[0].weights = std::make_shared<const Constant>(Constant{{1, 2, 1, 1}, {1, 1}});
    network.tensors.push_back({"x", {1, 1, 1, 4}});
    const auto x = static_cast<TensorId>(network.tensors.size() - 1);
    network.inputs.push_back(x);
    append(network, "power2",
           {.kind = LayerKind::general,
            .inputs = {x, sums},
            .general = {.kind = GeneralKind::binary, .function = GeneralFunction::power}});
    const BoundedRows rows =
        bounded_rows(network, layer_problems(network, {0, 1}),
                     {{1, 1, 1, 1, -1, 1, 1, 99}, {1e-8F, 3, -3, 10}}, 0, 1, Sums::by_definition);
    EXPECT_EQ(rows.expected[0], 1);
    EXPECT_TRUE(rows.holds(1.00001F, 0));
    EXPECT_FALSE(rows.holds(1.001F, 0));
    EXPECT_EQ(rows.expected[1], 9);
    EXPECT_TRUE(rows.holds(9.00001F, 1));
    EXPECT_FALSE(rows.holds(9.001F, 1));
    EXPECT_EQ(rows.allowed[2], std::numeric_limits<float>::infinity());
    EXPECT_EQ(rows.allowed[3], std::numeric_limits<float>::infinity()) << "10^100 overflows";
}

/// The sum of two channels, to which the convolution applies a function.
BoundedRows rows_of_function(GeneralFunction function, float alpha, const std::vector<float>& channels) {
    const auto columns = std::ssize(channels) / 2;
    Network network = empty_network(2, 1, columns);
    append(network, "conv1", 0, {1, square_window(1, 1, 0)});
    network.layers[0].weights =
        std::make_shared<const Constant>(Constant{{1, 2, 1, 1}, {1, 1}});
    network.layers[0].activation = {
        .kind = ActivationKind::unary, .function = function, .alpha = alpha};
    return bounded_rows(network, layer_problems(network, {0}), {channels}, 0, 1,
                        Sums::by_definition);
}

/// Sums of 4, of 1 - 1, and of -4: the second may be any number near 0, of both signs.
TEST(ErrorBounds, OfSteepFunctionsAreOfTheValuesBesideTheArgument) {
    const std::vector<float> channels{1, 1, -1, 3, -1, -3};
    const BoundedRows inverse = rows_of_function(GeneralFunction::reciprocal, 0, channels);
    EXPECT_TRUE(inverse.holds(0.2500001F, 0));
    EXPECT_FALSE(inverse.holds(0.25001F, 0));
    EXPECT_TRUE(inverse.holds(1e7F, 1));
    EXPECT_TRUE(inverse.holds(-1e7F, 1));
    EXPECT_FALSE(inverse.holds(-0.25001F, 2));
    const BoundedRows root = rows_of_function(GeneralFunction::square_root, 0, channels);
    EXPECT_FALSE(root.holds(2.0001F, 0));
    EXPECT_TRUE(root.holds(1e-4F, 1));
    EXPECT_FALSE(root.holds(2, 2)) << "the root of -4 is NaN";
    EXPECT_TRUE(root.holds(std::numeric_limits<float>::quiet_NaN(), 2));
    const BoundedRows power = rows_of_function(GeneralFunction::power, -2, channels);
    EXPECT_TRUE(power.holds(0.06250001F, 0));
    EXPECT_FALSE(power.holds(0.06251F, 0));
    EXPECT_EQ(power.allowed[1], std::numeric_limits<float>::infinity());
}

/// Sums of 1, of pi / 2 in 32 bits, on whichever side of the pole, and of 4: tan 1 is 1.5574077.
TEST(ErrorBounds, OfATangentAreUnknownBesideItsPoles) {
    const BoundedRows tangent = rows_of_function(GeneralFunction::tangent, 0,
                                                 {0.5F, 1, 3, 0.5F, 0.57079633F, 1});
    EXPECT_TRUE(tangent.holds(1.557408F, 0));
    EXPECT_FALSE(tangent.holds(1.5575F, 0));
    EXPECT_EQ(tangent.allowed[1], std::numeric_limits<float>::infinity());
    EXPECT_FALSE(tangent.holds(1.1579F, 2)) << "tan 4 is 1.1578213";
}

TEST(ErrorBounds, OfJumpsAreOneStepWhereTheyMayLieBetween) {
    const std::vector<float> channels{1.5F, 1.25F, -1, 1.5F, 1, -3};
    const BoundedRows floor = rows_of_function(GeneralFunction::floor, 0, channels);
    EXPECT_EQ(floor.expected, (std::vector<float>{3, 2, -4}));
    EXPECT_TRUE(floor.holds(2, 0)) << "3 is the end of a step";
    EXPECT_FALSE(floor.holds(1, 0));
    EXPECT_FALSE(floor.holds(1, 1));
    EXPECT_TRUE(floor.holds(-5, 2));
    const BoundedRows sign = rows_of_function(GeneralFunction::sign, 0, {1, 1, -1, 1});
    EXPECT_TRUE(sign.holds(-1, 0));
    EXPECT_FALSE(sign.holds(-1, 1));
}

}  // namespace
}  // namespace laminate
