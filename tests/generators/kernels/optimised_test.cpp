// The optimised kind against the reference operators: random chains under random legal schedules
// (ragged tiles, every level), in poisoned memory with guards around it.
#include "generators/kernels/group_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "generators/compile/group_reference.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/generators/kernels/poisoned_run.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

void expect_right(const Network& network, const GroupSchedule& group, const VectorUnit& unit,
                  uint64_t seed) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, seed);
    const std::vector<float> expected = reference_output(network, problems, inputs);
    const GroupCode code = default_code(network, group, unit);
    const Outcome got = run_poisoned(code, expected.size(), inputs, false);
    EXPECT_TRUE(got.guards_intact)
        << "seed " << seed << " wrote outside its memory: " << to_text(group);
    double range = 1;
    for (const float v : expected) range = std::max(range, std::fabs(static_cast<double>(v)));
    for (size_t e = 0; e < expected.size(); ++e) {
        // Sigmoid and tanh are approximated; everything else is exact.
        ASSERT_NEAR(got.output[e], expected[e], 1e-5 * range)
            << "element " << e << ", seed " << seed << ": " << to_text(group);
    }
    const Outcome strips = run_poisoned(code, expected.size(), inputs, true);
    EXPECT_EQ(got.output, strips.output)
        << "strips leave a seam, seed " << seed << ": " << to_text(group);
}

/// -2 .. 2 in turn: sums stay exact.
std::vector<float> small_integers(const Constant& constant) {
    std::vector<float> values(constant.values.size());
    for (size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n * 7 % 5) - 2.0F;
    return values;
}

TEST(Kernels, RandomOnesUnderRandomSchedules) {
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(40); ++seed) {
        const Network network = random_chain(seed);
        const Schedule schedule = random_schedule(network, seed);
        Rng rng(seed);
        for (const GroupSchedule& group : schedule.groups()) {
            expect_right(network, random_kernels(group_problems(network, group), group, rng), {},
                         seed);
        }
        if (HasFailure()) return;
    }
}

TEST(Optimised, RandomChainsUnderRandomSchedules) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(60); ++seed) {
        const Network network = random_chain(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups())
            expect_right(network, group, unit, seed);
        if (HasFailure()) return;
    }
}

TEST(Optimised, ShorterVectorsGiveTheSameResults) {
    for (uint64_t seed = 101; seed < 101 + test::samples<uint64_t>(15); ++seed) {
        const Network network = random_chain(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups())
            expect_right(network, group, VectorUnit{8, 12}, seed);
        if (HasFailure()) return;
    }
}

/// Every unary activation in turn, in all the places where a layer finishes its sums.
TEST(Optimised, UnaryActivationsUnderRandomSchedules) {
    using enum GeneralFunction;
    const std::vector<Activation> activations{
        {.kind = ActivationKind::unary, .function = hard_swish},
        {.kind = ActivationKind::unary, .function = elu, .alpha = 1},
        {.kind = ActivationKind::unary, .function = selu, .alpha = 1.6732632f, .beta = 1.050701f},
        {.kind = ActivationKind::unary, .function = softplus},
        {.kind = ActivationKind::unary, .function = mish},
        {.kind = ActivationKind::unary, .function = hard_sigmoid, .alpha = 0.2f, .beta = 0.5f},
        {.kind = ActivationKind::unary, .function = swish, .alpha = 1},
        {.kind = ActivationKind::unary, .function = gelu},
        {.kind = ActivationKind::unary, .function = gelu_tanh},
        {.kind = ActivationKind::unary, .function = celu, .alpha = 0.5f},
        {.kind = ActivationKind::unary, .function = softsign},
        {.kind = ActivationKind::tanh}};
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    for (uint64_t seed = 201; seed < 201 + 2 * activations.size(); ++seed) {
        Network network = random_chain(seed);
        for (Layer& layer : network.layers)
            if (layer.activation.kind != ActivationKind::none)
                layer.activation = activations[seed % activations.size()];
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups())
            expect_right(network, group, unit, seed);
        if (HasFailure()) return;
    }
}

/// Rows whose last vector is half full (56 = 3.5 x 16, 23 < 24), by strips of rows and in one, and
/// where column strips cut them.
TEST(Optimised, HalfAVectorAtTheEndOfARow) {
    const VectorUnit unit{16, 24};
    for (const int64_t columns : {56, 23}) {
        const Network network = chain(
            3, 40, columns,
            {{7, square_window(3, 1, 1)}, {7, square_window(3, 1, 1), 7}, {9, square_window(1)}});
        for (const LineBufferSizes& sizes :
             {LineBufferSizes{4, 0, 0}, LineBufferSizes{3, 10, 0}, LineBufferSizes{2, 16, 24}}) {
            Network seeded = network;
            for (Layer& layer : seeded.layers)
                layer.weights = std::make_shared<const Constant>(
                    Constant{layer.weights->dims, small_integers(*layer.weights)});
            expect_right(seeded, line_buffer_group(seeded, {0, 1, 2}, sizes), unit, 1);
        }
    }
}

/// The deployed family on the example's shape, at sizes that no tile divides.
TEST(Optimised, MoreElementsThanItsIndicesCountAreRefused) {
    const VectorUnit unit{8, 12};
    const auto code_of = [&](int64_t rows) {
        const Network network = chain(1, rows, 1 << 16,
                                      {{.channels = 2, .window = square_window(1)},
                                       {.channels = 1, .window = square_window(1)}});
        return default_code(network, line_buffer_group(network, {0, 1}), unit).strips;
    };
    // What is between the layers is kept in lines and may be larger.
    EXPECT_GE(code_of((1 << 15) - 1), 1);
    try {
        (void)code_of(1 << 15);
        FAIL() << "expected InfeasibleError";
    } catch (const InfeasibleError& error) {
        EXPECT_NE(
            std::string(error.what()).find(": 2147483648 elements, expected at most 2147483647"),
            std::string::npos)
            << error.what();
    }
}

TEST(Optimised, LineBuffersOfFsrcnnAreSeamFree) {
    ZooOptions options;
    options.height = 23;
    options.width = 37;
    const Network network = zoo_network("fsrcnn-x2", options);
    const std::vector<LayerId> chain = schedulable_chains(network).front();
    ASSERT_EQ(chain.size(), 8U);
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    const std::vector<LayerProblem> problems =
        group_problems(network, line_buffer_group(network, chain));
    const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 5);
    const std::vector<float> expected = reference_output(network, problems, inputs);
    std::vector<float> whole;
    for (const LineBufferSizes& sizes : {LineBufferSizes{2, 0, 0}, LineBufferSizes{4, 10, 0},
                                         LineBufferSizes{3, 7, 0}, LineBufferSizes{2, 16, 33}}) {
        const GroupCode code =
            default_code(network, line_buffer_group(network, chain, sizes), unit);
        const Outcome got = run_poisoned(code, expected.size(), inputs, true);
        EXPECT_TRUE(got.guards_intact);
        double worst = 0;
        double range = 0;
        for (size_t e = 0; e < expected.size(); ++e) {
            worst = std::max(worst, std::fabs(static_cast<double>(got.output[e]) - expected[e]));
            range = std::max(range, std::fabs(static_cast<double>(expected[e])));
        }
        EXPECT_LE(worst, 1e-5 * range);
        // However the picture is cut, every pixel is the same bit for bit.
        if (whole.empty()) whole = got.output;
        EXPECT_EQ(whole, got.output);
    }
}

}  // namespace
}  // namespace laminate
