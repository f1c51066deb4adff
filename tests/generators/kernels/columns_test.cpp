// Filtering by tiles of columns against the reference operators, and against itself however strips
// cut the picture.
#include "tests/generators/kernels/code_by_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "generators/compile/group_reference.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/kernels/layout/columns.h"
#include "tests/generators/kernels/poisoned_run.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

constexpr double allowed = 4e-6;  ///< of the largest output

struct Link {
    int64_t channels;
    Window window;
    bool transposed = false;
};

/// A chain with seeded weights, biases and PRelu.
Network seeded(int64_t rows, int64_t columns, int64_t inputs, const std::vector<Link>& links) {
    std::mt19937 random(7);
    const auto values = [&](const std::vector<int64_t>& dims) {
        std::vector<float> all(static_cast<size_t>(element_count(dims)));
        for (float& v : all) v = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
        return std::make_shared<const Constant>(Constant{dims, all});
    };
    Network network = empty_network(inputs, rows, columns);
    TensorId last = 0;
    for (const Link& link : links) {
        last = append(network, "conv" + std::to_string(network.layers.size()), last,
                      {.channels = link.channels,
                       .window = link.window,
                       .kind = link.transposed ? LayerKind::conv_transpose : LayerKind::conv});
        Layer& layer = network.layers.back();
        layer.weights = values(layer.weights->dims);
        layer.bias = values({link.channels});
        layer.activation = {.kind = ActivationKind::prelu, .slope = values({link.channels})};
    }
    check(network);
    return network;
}

/// The largest difference, relative to the largest expected value.
double error_of(const std::vector<float>& got, const std::vector<float>& expected) {
    double range = 0, worst = 0;
    for (size_t e = 0; e < expected.size(); ++e) {
        range = std::max(range, std::fabs(static_cast<double>(expected[e])));
        const double difference = std::fabs(static_cast<double>(got[e]) - expected[e]);
        worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
    }
    return worst / range;
}

/// Expects right results, the same bits for every way to cut the picture.
void expect_right(const Network& network, const std::vector<LineBufferSizes>& cuts,
                  const VectorUnit& unit) {
    const std::vector<LayerId> chain = schedulable_chains(network).front();
    ASSERT_EQ(chain.size(), network.layers.size());
    const std::vector<LayerProblem> problems = layer_problems(network, chain);
    ASSERT_TRUE(column_chain_pays(problems));
    const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 3);
    const std::vector<float> expected = reference_output(network, problems, inputs);
    std::vector<float> first;
    for (const LineBufferSizes& sizes : cuts) {
        const GroupSchedule group = line_buffer_group(network, chain, sizes);
        const std::optional<GroupCode> code = column_code(network, group, unit);
        ASSERT_TRUE(code) << to_text(group);
        // Strips, where there are any, in a call each.
        const Outcome got = run_poisoned(*code, expected.size(), inputs, true);
        EXPECT_TRUE(got.guards_intact) << to_text(group);
        EXPECT_LE(error_of(got.output, expected), allowed) << to_text(group);
        if (first.empty()) first = got.output;
        EXPECT_EQ(got.output, first) << "a seam: " << to_text(group);
    }
}

Window same(int64_t kernel) { return square_window(kernel, 1, kernel / 2); }

constexpr VectorUnit wide{16, 24};

void expect_kernel(int64_t channels, const Window& window) {
    const Network network = seeded(13, 81, 9, {{channels, window}});
    if (!column_chain_pays(layer_problems(network, schedulable_chains(network).front())))
        return;  // weights too few to pay for transforms
    expect_right(network, {{2, 0, 0}, {3, 5, 33}}, wide);
}

TEST(ColumnTiles, KernelsGatheredAndScattered) {
    expect_kernel(7, same(3));
    expect_kernel(1, square_window(9));
}

TEST(ColumnTilesLong, EveryKernelSize) {
    for (int64_t kernel = 2; kernel <= 13; ++kernel) {
        for (const int64_t channels : {1, 3, 13}) {
            for (const Window& window : {same(kernel), square_window(kernel)})
                expect_kernel(channels, window);
        }
    }
}

const std::vector<LineBufferSizes> cuts{{4, 0, 0}, {3, 8, 33}};

TEST(ColumnTiles, ChainsHaveNoSeams) {
    expect_right(
        seeded(
            13, 131, 1,
            {{11, same(5)}, {5, same(1)}, {5, same(3)}, {6, same(3)}, {9, same(1)}, {1, same(9)}}),
        cuts, wide);
}

TEST(ColumnTiles, ShorterVectors) {
    expect_right(seeded(12, 90, 3, {{8, same(3)}, {6, square_window(3)}, {7, same(1)}}),
                 {{2, 6, 33}}, VectorUnit{8, 12});
    expect_right(seeded(12, 90, 3, {{8, same(3)}, {6, square_window(3)}, {7, same(1)}}),
                 {{2, 6, 33}}, VectorUnit{4, 24});
}

TEST(ColumnTiles, RegisterTilesForTheRowsVectorsGiveTheSameBits) {
    // Rows of five vectors go three and then one by one, strips of two vectors otherwise.
    constexpr VectorUnit narrow{8, 12};
    expect_right(seeded(12, 131, 1, {{12, same(5)}, {12, same(3)}, {1, same(9)}}), cuts, narrow);
    expect_right(
        seeded(11, 131, 1, {{9, same(5)}, {13, same(3)}, {1, square_window(9, 2, 4), true}}), cuts,
        narrow);
}

void expect_transposed(int64_t kernel, int64_t pad) {
    const Network network =
        seeded(11, 70, 1,
               {{9, same(5)},
                {14, same(3)},
                {kernel % 2 == 0 ? 3 : 1, square_window(kernel, 2, pad), true}});
    ASSERT_TRUE(column_chain_pays(layer_problems(network, schedulable_chains(network).front())));
    expect_right(network, {{4, 0, 0}, {3, 10, 37}}, wide);
}

TEST(ColumnTiles, TransposedConvolutions) { expect_transposed(9, 4); }

TEST(ColumnTilesLong, EveryTransposedKernelSize) {
    for (int64_t kernel = 4; kernel <= 13; ++kernel) {
        for (const int64_t pad : {int64_t{0}, (kernel - 1) / 2, kernel - 2})
            expect_transposed(kernel, pad);
    }
}

TEST(ColumnTiles, WholePicturesBeforeTheLastLayer) {
    // Lines computed for the whole strip at once, as another schedule may have it.
    const Network network = seeded(9, 72, 9, {{8, same(3)}, {1, same(5)}});
    const GroupSchedule group = parse_group(
        network,
        "{conv0: zo yo xo io | zi yi xi ii n m; tile z8 y2 x72 i9; X root/yo; W root/root; Y "
        "root/root & "
        "conv1: zo yo xo io | zi yi xi ii n m; tile z1 y3 x72 i8; W root/root; Y xi/xi}");
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 3);
    const std::vector<float> expected = reference_output(network, problems, inputs);
    const std::optional<GroupCode> code = column_code(network, group, VectorUnit{16, 24});
    ASSERT_TRUE(code);
    const Outcome got = run_poisoned(*code, expected.size(), inputs, false);
    EXPECT_LE(error_of(got.output, expected), allowed);
}

TEST(ColumnTiles, TakeAboutTheMemoryThatThePlannerCountsWith) {
    const Network fsrcnn = seeded(20, 960, 1,
                                  {{56, same(5)},
                                   {12, same(1)},
                                   {12, same(3)},
                                   {12, same(3)},
                                   {56, same(1)},
                                   {1, square_window(9, 2, 4), true}});
    const Network gathered = seeded(20, 1920, 3, {{8, same(3)}, {16, same(5)}, {8, same(3)}});
    for (const Network& network : {fsrcnn, gathered}) {
        const std::vector<LayerId> layers = schedulable_chains(network).front();
        const std::vector<LayerProblem> problems = layer_problems(network, layers);
        for (const int64_t columns : {480, 960, 1920}) {
            const GroupSchedule group = line_buffer_group(network, layers, {4, 0, columns});
            std::vector<int64_t> rows;
            for (const Nest& nest : group.nests) rows.push_back(nest[Dim::y]);
            const auto counted =
                static_cast<double>(column_tiles_memory(problems, rows, columns).value());
            for (const VectorUnit& unit : {wide, VectorUnit{8, 12}}) {
                const std::optional<GroupCode> code = column_code(network, group, unit);
                ASSERT_TRUE(code);
                EXPECT_NEAR(static_cast<double>(code->scratch_bytes) / counted, 1.0, 0.25)
                    << columns << " columns, " << unit.lanes << " lanes";
            }
        }
    }
}

/// Two vectors of eight that begin a line of the caches otherwise touch two of them.
TEST(ColumnTiles, ArraysAndTheirChannelsBeginAtLinesOfTheCaches) {
    constexpr int64_t line_of_caches = 16;
    const Network network =
        seeded(20, 960, 1, {{12, same(5)}, {9, same(1)}, {10, same(3)}, {1, same(9)}});
    const std::vector<LayerId> layers = schedulable_chains(network).front();
    const std::vector<LayerProblem> problems = layer_problems(network, layers);
    for (const VectorUnit& unit : {VectorUnit{4, 12}, VectorUnit{8, 12}, wide}) {
        const int64_t line = std::max(line_of_caches, unit.lanes);
        for (const int64_t columns : {0, 480, 132}) {
            const ColumnsLayout at = columns_layout(problems, {5, 1, 3, 4}, columns, unit);
            for (const int64_t begin : {at.row_offset, at.products_offset, at.sums_offset})
                EXPECT_EQ(begin % line, 0) << columns << " columns, " << unit.lanes << " lanes";
            for (size_t t = 0; t < at.lines.size(); ++t) {
                EXPECT_EQ(at.lines[t].offset % line, 0) << t;
                EXPECT_EQ(at.row_pitch[t] % line, 0) << t;
                if (at.lines[t].form == LineForm::scattered) continue;
                EXPECT_EQ(at.lines[t].pitch % (2 * line), line) << t;
                EXPECT_GE(at.lines[t].pitch, at.most_tiles[t + 1] + unit.lanes) << t;
            }
        }
    }
}

/// Three vectors of four channels save loads over two of four, but touch half a line more.
TEST(ColumnTiles, VectorsOfABlockFillLinesOfTheCaches) {
    const Network network = seeded(20, 960, 12, {{56, same(1)}, {1, same(9)}});
    const std::vector<LayerProblem> problems =
        layer_problems(network, schedulable_chains(network).front());
    const auto vectors = [&](int64_t columns, const VectorUnit& unit) {
        return columns_layout(problems, {4, 4}, columns, unit).blocks.front().vectors;
    };
    EXPECT_EQ(vectors(480, {8, 12}), 2);
    EXPECT_EQ(vectors(960, {16, 12}), 3) << "a vector is a line";
}

TEST(ColumnTiles, SuitsOnlyWhatGains) {
    const auto suits = [](const Network& network) {
        return column_chain_pays(layer_problems(network, schedulable_chains(network).front()));
    };
    EXPECT_TRUE(suits(seeded(20, 64, 12, {{12, same(3)}})));
    EXPECT_FALSE(suits(seeded(20, 63, 12, {{12, same(3)}}))) << "too narrow";
    EXPECT_FALSE(suits(seeded(20, 64, 12, {{12, same(1)}}))) << "nothing to filter";
    EXPECT_FALSE(suits(seeded(20, 64, 64, {{64, same(3)}}))) << "Winograd's filtering is better";
    EXPECT_FALSE(suits(seeded(20, 128, 12, {{12, square_window(3, 2, 1)}}))) << "strided";
}

}  // namespace
}  // namespace laminate
