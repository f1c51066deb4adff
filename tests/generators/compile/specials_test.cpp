// NaN, infinities and values near overflow in compiled groups (issue 26, 2): definition sums keep
// them where the reference operators have them, minimal filtering does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "generators/compile/check_group.h"
#include "generators/compile/compile.h"
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "nets/network/picture_views.h"
#include "nets/operators/reference_operators.h"
#include "nets/random/random_network.h"
#include "runtime/session.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Convolutions with seeded weights between -1 and 1, and an activation behind each but the last.
Network activated_chain(std::vector<LayerSpec> specs, const Activation& activation,
                        int64_t channels, int64_t rows, int64_t columns) {
    Network network = chain(channels, rows, columns, specs);
    Rng rng(3);
    for (Layer& layer : network.layers) {
        std::vector<float> weights(layer.weights->values.size());
        for (float& w : weights) w = static_cast<float>(rng.between(-1000, 1000)) / 1000.0F;
        layer.weights = std::make_shared<const Constant>(Constant{layer.weights->dims, weights});
        if (&layer != &network.layers.back()) layer.activation = activation;
    }
    return network;
}

/// Judged by the check of compiled groups.
std::string wrong_with_specials(const Network& network, const GroupSchedule& group,
                                uint64_t seed = 1) {
    const GroupCode code = group_code(network, group);
    const JitGroup jit(code.body, false);
    return wrong_result(network, group, code, jit.function(), {.seed = seed, .specials = true});
}

bool filters(const GroupSchedule& group) {
    return std::any_of(group.nests.begin(), group.nests.end(),
                       [](const Nest& nest) { return kernel_row(nest.kernel.kind).filters; });
}

void expect_specials_kept(uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; ++seed) {
        const Network network = seed % 2 == 0 ? random_chain(seed) : random_network(seed);
        const Schedule schedule = random_schedule(network, seed);
        Rng rng(seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const GroupSchedule chosen = random_kernels(group_problems(network, group), group, rng);
            if (filters(chosen)) continue;
            EXPECT_EQ(wrong_with_specials(network, chosen, seed), "")
                << "seed " << seed << ": " << to_text(chosen);
        }
        if (::testing::Test::HasFailure()) return;
    }
}

TEST(Specials, AreKeptByRandomKernels) { expect_specials_kept(1, test::samples<uint64_t>(16)); }
TEST(SpecialsLong, AreKeptByRandomKernels) { expect_specials_kept(1000, 400); }

/// The sigmoid of -infinity is 0, not 1; its neighbours do not notice. In ordinary code.
TEST(Specials, AnInfinityThroughConvSigmoidConv) {
    const Network network =
        activated_chain({{8, square_window(3, 1, 1)}, {4, square_window(3, 1, 1)}},
                        {.kind = ActivationKind::sigmoid}, 3, 20, 24);
    std::vector<float> input(3 * 20 * 24, 1.0F);
    input[24 * 4 + 3] = infinity;
    input[24 * 29 + 23] = -infinity;
    const std::vector<float> expected = run_reference_network(network, {input})[0];
    for (const bool layer_by_layer : {false, true}) {
        const Schedule schedule =
            layer_by_layer ? layer_by_layer_schedule(network)
                           : Schedule(network, {line_buffer_group(network, {0, 1}, {4, 0, 0})});
        const JitNetwork compiled(network, schedule);
        Session session = Session::open(&compiled.descriptor(), {1});
        std::vector<float> found(expected.size());
        session.run({input.data()}, {found.data()});
        for (size_t n = 0; n < expected.size(); ++n)
            ASSERT_NEAR(found[n], expected[n], 1e-4F) << "element " << n;
    }
}

/// Over channels that vectors of all pixels go through: NaN where the reference has it, the largest
/// exponent without overflow, and results as close as the sums' terms allow.
TEST(Specials, NormalisationsAndReductionsOfChannelsKeepThem) {
    const auto normalised = [](int64_t channels, const Layer& layer) {
        // 71 columns: whole blocks of vectors of 4, 8 and 16 elements, single ones and a part.
        Network network = activated_chain({{channels, square_window(3, 1, 1)}}, {}, 3, 5, 71);
        Layer next = layer;
        next.inputs = {network.layers.back().output};
        append(network, "norm2", next);
        const int64_t left = extreme_of_channels(layer) ? 1 : channels;
        append(network, "conv3", network.layers.back().output, {2, square_window(1)});
        // Equal weights would make nothing but zeros: standardised channels sum to zero.
        std::vector<float> weights(static_cast<size_t>(2 * left));
        for (size_t n = 0; n < weights.size(); ++n) weights[n] = static_cast<float>(n % 3) - 0.5F;
        network.layers.back().weights = std::make_shared<const Constant>(
            Constant{{2, left, 1, 1}, std::move(weights)});
        return network;
    };
    const auto general = [](GeneralFunction function) {
        return Layer{.kind = LayerKind::general,
                     .general = {.kind = GeneralKind::normalise,
                                 .function = function,
                                 .axes = {1},
                                 .alpha = 1e-6F}};
    };
    const auto extreme = [](GeneralFunction function) {
        return Layer{
            .kind = LayerKind::general,
            .general = {.kind = GeneralKind::reduce, .function = function, .axes = {1}}};
    };
    for (const Layer& layer :
         {Layer{.kind = LayerKind::softmax}, general(GeneralFunction::log_softmax),
          general(GeneralFunction::standardise), general(GeneralFunction::root_mean_square),
          extreme(GeneralFunction::largest), extreme(GeneralFunction::smallest)}) {
        for (const int64_t channels : {1, 40}) {
            const Network network = normalised(channels, layer);
            for (const std::vector<LayerId>& chain :
                 std::vector<std::vector<LayerId>>{{0, 1}, {0, 1, 2}}) {
                const GroupSchedule group = with_default_kernels(
                    layer_problems(network, chain), line_buffer_group(network, chain, {2, 3, 0}),
                    vector_unit(Halide::get_host_target()), {.strict = true});
                EXPECT_EQ(wrong_with_specials(network, group), "")
                    << operation_text(layer) << ", " << to_text(group);
            }
        }
    }
}

/// Kernels of whole maps and of line buffers, which would filter if they might.
TEST(Specials, AreSpreadByMinimalFilteringAndKeptByStrictCode) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    for (const int64_t columns : {24, 100}) {
        const Network network =
            activated_chain({{32, square_window(3, 1, 1)}}, {}, 32, 12, columns);
        const GroupSchedule group = line_buffer_group(network, {0}, {4, 0, 0});
        const std::vector<LayerProblem> problems = group_problems(network, group);
        const GroupSchedule filtered = with_default_kernels(problems, group, unit);
        ASSERT_TRUE(filters(filtered)) << columns;
        const std::string wrong = wrong_with_specials(network, filtered);
        EXPECT_NE(wrong.find(", with large values in the input"), std::string::npos) << wrong;
        const GroupSchedule strict = with_default_kernels(problems, group, unit, {.strict = true});
        EXPECT_EQ(wrong_with_specials(network, strict), "");
    }
}

int writes_ones(const float* const*, float* const* outputs, const float*, void*, int32_t, int32_t) {
    std::fill_n(outputs[0], 64, 1.0F);
    return 0;
}

/// Clip to [1, 1] makes 1 of all but NaN: code that drops NaN is named.
TEST(Specials, CodeThatDropsThemIsNamed) {
    Network network = empty_network(1, 8, 8);
    append(network, "relu1",
           {.kind = LayerKind::activation,
            .inputs = {0},
            .activation = {.kind = ActivationKind::clip, .low = 1, .high = 1}});
    check(network);
    const GroupSchedule group = line_buffer_group(network, {0});
    const GroupCode code = default_code(network, group, vector_unit(Halide::get_host_target()));
    EXPECT_EQ(wrong_result(network, group, code, writes_ones), "");
    EXPECT_NE(wrong_result(network, group, code, writes_ones, {.specials = true})
                  .find(" is 1.000000, expected nan, with NaN and infinities in the input"),
              std::string::npos);
}

}  // namespace
}  // namespace laminate
