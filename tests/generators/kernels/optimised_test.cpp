// The optimised kind against the reference operators: random chains under random legal schedules
// (ragged tiles, every level), in poisoned memory with guards around it.
#include "generators/kernels/group_kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "base/error.h"
#include "generators/compile/error_bounds.h"
#include "generators/compile/group_reference.h"
#include "generators/kernels/nest_code.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"
#include "scheduler/schedule/kernels/line_plan.h"
#include "tests/generators/kernels/poisoned_run.h"
#include "tests/support/chain.h"
#include "tests/support/large_windows.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

void expect_right(const Network& network, const GroupSchedule& group, const VectorUnit& unit,
                  uint64_t seed) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = judged_inputs(network, problems, seed);
    const BoundedRows rows = judged_rows(network, problems, inputs, 0, problems.back()[Dim::y]);
    const std::vector<float>& expected = rows.expected;
    const GroupCode code = default_code(network, group, unit);
    const Outcome got = run_poisoned(code, expected.size(), inputs, false);
    EXPECT_TRUE(got.guards_intact)
        << "seed " << seed << " wrote outside its memory: " << to_text(group);
    double range = 1;
    for (const float v : expected) range = std::max(range, std::fabs(static_cast<double>(v)));
    for (size_t e = 0; e < expected.size(); ++e) {
        const std::string what =
            "element " + std::to_string(e) + ", seed " + std::to_string(seed) + ": " + to_text(group);
        if (is_steep(network, problems)) {
            ASSERT_TRUE(rows.holds(got.output[e], e))
                << got.output[e] << ", expected " << expected[e] << ": " << what;
        } else {  // some functions are approximated; everything else is exact
            ASSERT_NEAR(got.output[e], expected[e], 1e-5 * range) << what;
        }
    }
    const Outcome strips = run_poisoned(code, expected.size(), inputs, true);
    const auto bits = [](const Outcome& outcome) { return std::as_bytes(std::span(outcome.output)); };
    EXPECT_TRUE(std::ranges::equal(bits(got), bits(strips)))
        << "strips leave a seam, seed " << seed << ": " << to_text(group);
}

template <class MakeNetwork>
void expect_right_at_random(const MakeNetwork& make, uint64_t first, uint64_t seeds) {
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
        const Network network = make(seed);
        const Schedule schedule = random_schedule(network, seed);
        Rng rng(seed);
        for (const GroupSchedule& group : schedule.groups()) {
            expect_right(network, random_kernels(group_problems(network, group), group, rng), {},
                         seed);
        }
        if (testing::Test::HasFailure()) return;
    }
}

TEST(Kernels, RandomOnesUnderRandomSchedules) {
    expect_right_at_random(random_chain, 1, test::samples<uint64_t>(40));
}

TEST(Kernels, RandomOnesOfGraphs) {
    expect_right_at_random(random_network, 1, test::samples<uint64_t>(10));
    expect_right_at_random(random_picture_network, 1, test::samples<uint64_t>(20));
}

/// One part of ten, so that several run at once.
class KernelsLong : public testing::TestWithParam<uint64_t> {};

TEST_P(KernelsLong, RandomOnesUnderRandomSchedules) {
    expect_right_at_random(random_chain, 1000 + 150 * GetParam(), test::samples<uint64_t>(150));
    expect_right_at_random(random_network, 1000 + 50 * GetParam(), test::samples<uint64_t>(50));
    expect_right_at_random(random_picture_network, 1000 + 50 * GetParam(),
                           test::samples<uint64_t>(50));
}

INSTANTIATE_TEST_SUITE_P(Parts, KernelsLong, testing::Range<uint64_t>(0, 10));

/// Weights -2 .. 2 in turn: sums stay exact.
Network with_weights(Network network) {
    for (Layer& layer : network.layers) {
        if (layer.weights == nullptr) continue;
        std::vector<float> values(layer.weights->values.size());
        for (size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n * 7 % 5) - 2.0F;
        layer.weights = std::make_shared<const Constant>(
            Constant{layer.weights->dims, std::move(values)});
    }
    return network;
}

TEST(Kernels, OfWindowsWithManyTaps) {
    for (const Network& layer : layers_of_large_windows()) {
        const Network network = with_weights(layer);
        for (uint64_t seed = 1; seed <= test::samples<uint64_t>(2); ++seed) {
            Rng rng(seed);
            const Schedule schedule = random_schedule(network, seed);
            const GroupSchedule& group = schedule.groups().front();
            expect_right(network, random_kernels(group_problems(network, group), group, rng), {}, seed);
        }
        for (const int threads : {1, 3})
            expect_right(network, layer_by_layer_schedule(network, threads).groups().front(), {8, 12}, 1);
        if (HasFailure()) return;
    }
}

/// A pool of more rows than the stack keeps the starts of.
TEST(Kernels, PoolRowsThatAreTooManyForTheStack) {
    for (const LayerKind kind : {LayerKind::max_pool, LayerKind::average_pool}) {
        for (const int64_t columns : {1, 2}) {
            Network network = empty_network(2, 6000, 9);
            append(network, "pool",
                   {.kind = kind, .inputs = {0}, .window = window_of({5000, columns}, {500, 1})});
            expect_right(network, line_buffer_group(network, {0}), {8, 12}, 1);
        }
    }
}

/// Products that the text of code has, however often loops repeat them.
class WrittenProducts : private Halide::Internal::IRVisitor {
public:
    [[nodiscard]] static int64_t of(const GroupCode& code) {
        WrittenProducts counter;
        code.body.accept(&counter);
        return counter.products_;
    }

private:
    using Halide::Internal::IRVisitor::visit;
    void visit(const Halide::Internal::Mul* op) override {
        if (op->type.is_float()) ++products_;
        IRVisitor::visit(op);
    }
    int64_t products_ = 0;
};

/// LLVM takes minutes over code with all products of 63 x 63 taps. Whole tiles of rows, single rows and rows
/// at the ends of windows have products of their own.
TEST(Kernels, CodeOfLargeWindowsIsShort) {
    std::vector<Network> networks = layers_of_large_windows();
    networks.push_back(chain(1, 128, 128, {{1, square_window(63, 1, 31)}}));
    networks.push_back(chain(1, 128, 128, {{8, square_window(64)}}));
    networks.push_back(chain(1, 1, 16000, {{514, window_of({1, 512}, {1, 128})}}));
    for (const Network& network : networks) {
        const GroupSchedule group = layer_by_layer_schedule(network).groups().front();
        EXPECT_LT(WrittenProducts::of(default_code(network, group, {8, 12})),
                  3 * most_products_in_sequence)
            << to_text(group);
    }
}

/// Windows of more than 25 elements are pooled by columns first: with padding, by vectors together and one
/// by one, into whole rows and strips of columns.
TEST(Kernels, PoolColumnsOfLargeWindowsFirst) {
    struct Pool {
        int64_t rows, columns;
        Window window;
    };
    for (const Pool& pool :
         {Pool{20, 90, square_window(13, 1, 6)}, Pool{40, 150, square_window(8, 3, 2)},
          Pool{64, 260, window_of({32, 60}, {32, 60})}, Pool{30, 33, window_of({9, 7}, {2, 1}, {4, 3})},
          Pool{30, 80, window_of({5, 6}, {1, 2}, {2, 3}, {2, 3})}, Pool{9, 40, window_of({9, 40})}}) {
        for (const LayerKind kind : {LayerKind::max_pool, LayerKind::average_pool}) {
            for (const bool counts_padding : {false, true}) {
                if (counts_padding && kind == LayerKind::max_pool) continue;
                Network network = empty_network(3, pool.rows, pool.columns);
                append(network, "pool", {.kind = kind,
                                         .inputs = {0},
                                         .window = pool.window,
                                         .count_include_pad = counts_padding});
                for (const LineBufferSizes& sizes :
                     {LineBufferSizes{4, 0, 0}, LineBufferSizes{1, 3, 0}, LineBufferSizes{2, 0, 16}})
                    expect_right(network, line_buffer_group(network, {0}, sizes), {8, 12}, 1);
            }
        }
        if (HasFailure()) return;
    }
}

/// The rows, channels and columns of a ring's buffer, and whether it slides along channels or
/// columns.
using Ring = std::array<int64_t, 5>;

void expect_rings(const Network& network, const std::string& text,
                  const std::vector<Ring>& expected) {
    const Network weighted = with_weights(network);
    const GroupSchedule group = parse_group(weighted, text);
    std::vector<Ring> rings;
    for (const RingLayout& ring : line_plan(group, group_problems(weighted, group)).rings) {
        rings.push_back({ring.rows, ring.channels, ring.columns, ring.channel_slide ? 1 : 0,
                         ring.column_slide ? 1 : 0});
    }
    EXPECT_EQ(rings, expected) << text;
    expect_right(weighted, group, {}, 1);
}

/// Two 3x3 layers with padding, 5 -> 6 -> 4 channels on 11 x 50; tiles of 4 x 12 of the second one.
Network two_layers() {
    return chain(5, 11, 50, {{6, square_window(3, 1, 1)}, {4, square_window(3, 1, 1)}});
}
std::string two_layers_text(const std::string& order, const std::string& x,
                            const std::string& output) {
    return "{conv1: zo yo xo io | zi yi xi ii n m; tile z6 y11 x50 i5; X " + x +
           "; W root/root; Y " + output + "; kernel rows z3 y2 x1 v8 & conv2: " + order +
           " | zi yi xi ii n m; tile z4 y4 x12 i6; W root/root; Y root/root; "
           "kernel rows z2 y2 x2 v8}";
}

TEST(Rings, OfTilesWithoutRetention) {
    // (4 - 1) + 3 = 6 rows of 12 + 2 columns, and 8 rows of 16.
    expect_rings(two_layers(), two_layers_text("yo xo zo io", "conv2.xo/conv2.xo", "conv2.xo/conv2.xo"),
                 {{8, 5, 16, 0, 0}, {6, 6, 14, 0, 0}});
}

TEST(Rings, OfTilesThatKeepColumns) {
    // A trip of xo holds the columns that it needs. The first one of conv1 begins at the edge:
    // [0, 13), the next one brings [13, 25) in and needs X from column 12 on: 14 columns.
    expect_rings(two_layers(), two_layers_text("yo xo zo io", "conv2.yo/conv2.xo", "conv2.yo/conv2.xo"),
                 {{8, 5, 14, 0, 1}, {6, 6, 14, 0, 1}});
    // By columns first: all rows are kept, of a tile's columns.
    expect_rings(two_layers(), two_layers_text("xo yo zo io", "root/conv2.yo", "root/conv2.yo"),
                 {{11, 5, 14, 0, 1}, {11, 6, 14, 0, 1}});
}

TEST(Rings, OfTilesThatKeepRowsAndColumns) {
    expect_rings(two_layers(), two_layers_text("yo xo zo io", "root/conv2.xo", "root/conv2.xo"),
                 {{6, 5, 50, 0, 0}, {6, 6, 50, 0, 0}});
    // The second one alone: X is brought in again for what each tile has conv1 compute, 4 rows of 12
    // columns, and what one window reaches beyond.
    expect_rings(two_layers(), two_layers_text("yo xo zo io", "conv2.xo/conv2.xo", "root/conv2.xo"),
                 {{6, 5, 14, 0, 0}, {6, 6, 50, 0, 0}});
}

/// 3x3 with padding, 4 -> 6 channels, then a filter for each channel.
Network dense_then_depthwise() {
    return chain(4, 9, 20, {{6, square_window(3, 1, 1)}, {6, square_window(3, 1, 1), 6}});
}

TEST(Rings, OfTilesOfChannels) {
    const auto text = [](const std::string& output) {
        return "{conv1: zo yo xo io | zi yi xi ii n m; tile z6 y9 x20 i4; X root/root; W root/root; "
               "Y " + output + "; kernel rows z2 y1 x1 v8 & conv2: zo yo xo io | zi yi xi ii n m; "
               "tile z4 y3 x20 i1; W root/root; Y root/root; kernel rows z1 y1 x2 v8}";
    };
    // Four channels, then two, in a lifetime of their own.
    expect_rings(dense_then_depthwise(), text("conv2.zo/conv2.yo"),
                 {{9, 4, 20, 0, 0}, {5, 4, 20, 0, 0}});
    // The same in one lifetime: channels fold.
    expect_rings(dense_then_depthwise(), text("root/conv2.yo"),
                 {{9, 4, 20, 0, 0}, {5, 4, 20, 1, 0}});
}

TEST(Rings, OfChannelsThatTilesShare) {
    // Output channels 0 to 2 read the input channels of both groups, channel 3 those of the second.
    const Network network = chain(6, 7, 9, {{4, square_window(3, 1, 1), 2}});
    expect_rings(network,
                 "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y7 x9 i3; X root/zo; W root/root; "
                 "Y root/root; kernel rows z1 y1 x1 v4}",
                 {{7, 3, 9, 1, 0}});
}

TEST(Rings, OfInputChannelsOneByOne) {
    expect_rings(chain(6, 7, 9, {{4, square_window(3, 1, 1)}}),
                 "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y7 x9 i2; X root/io; W root/root; "
                 "Y root/root; kernel rows z4 y1 x1 v4}",
                 {{7, 2, 9, 1, 0}});
}

TEST(Rings, OfBranches) {
    // A block of a residual network: X is read by conv1 and by the Add, kept along columns.
    Network network = empty_network(3, 8, 40);
    const TensorId conv1 = append(network, "conv1", 0, {3, square_window(3, 1, 1)});
    append(network, "add2", {.kind = LayerKind::add, .inputs = {conv1, 0}});
    expect_rings(network,
                 "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y8 x40 i3; X add2.yo/add2.xo; "
                 "W root/root; Y add2.yo/add2.xo; kernel rows z3 y1 x1 v8 & add2: yo xo zo io | "
                 "zi yi xi ii n m; tile z3 y3 x10 i1; Y root/root; kernel vectors v8}",
                 {{5, 3, 12, 0, 1}, {3, 3, 10, 0, 1}});
}

TEST(Rings, OfSinglePixels) {
    expect_rings(two_layers(),
                 "{conv1: zo yo xo io | yi xi zi ii n m; tile z6 y11 x50 i5; X conv1.yi/conv1.xi; "
                 "W root/root; Y conv2.yi/conv2.xi; kernel rows z3 y2 x1 v8 & conv2: yo xo zo io | "
                 "yi xi zi ii n m; tile z4 y4 x12 i6; W root/root; Y root/root; "
                 "kernel rows z2 y2 x2 v8}",
                 {{3, 5, 3, 0, 1}, {3, 6, 3, 0, 1}});
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
            const Network seeded = with_weights(network);
            expect_right(seeded, line_buffer_group(seeded, {0, 1, 2}, sizes), unit, 1);
        }
    }
}

/// Weights of 270 KiB. With few rows for each box the input stays near, and every block of channels
/// takes all of them; with more, every row takes all blocks. The order changes no bit.
TEST(Optimised, TransposedLayersOfManyWeightsInEitherOrder) {
    Network network = empty_network(150, 20, 44);
    (void)append(network, "deconv", 0,
                 {.channels = 115, .window = square_window(2, 2), .kind = LayerKind::conv_transpose});
    const Network seeded = with_weights(network);
    const std::vector<LayerProblem> problems = layer_problems(seeded, {0});
    const std::vector<std::vector<float>> inputs = random_group_inputs(seeded, problems, 1);
    const std::vector<float> expected = reference_output(seeded, problems, inputs);
    std::vector<float> first;
    for (const int64_t rows : {4, 40}) {
        const GroupSchedule group = line_buffer_group(seeded, {0}, {rows, 0, 0});
        expect_right(seeded, group, VectorUnit{8, 12}, 1);
        const Outcome got = run_poisoned(default_code(seeded, group, VectorUnit{8, 12}),
                                         expected.size(), inputs, false);
        if (first.empty()) first = got.output;
        EXPECT_EQ(got.output, first) << rows << " rows";
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
