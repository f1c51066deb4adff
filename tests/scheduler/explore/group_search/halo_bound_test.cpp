#include "scheduler/explore/group_search/halo_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/dag/dag_groups.h"
#include "tests/scheduler/explore/space_of_a_chain.h"
#include "tests/support/chain.h"

namespace laminate::search {
namespace {

constexpr int64_t channels = 4;
constexpr int64_t rows = 240;
constexpr int64_t columns = 300;

/// Layers of 3x3, 4 -> 4 channels.
std::vector<LayerProblem> equal_layers(size_t layers) {
    const std::vector<LayerSpec> specs(layers, {channels, square_window(3, 1, 1)});
    const Network network = chain(channels, rows, columns, specs);
    return layer_problems(network, all_layers(network));
}

/// The bound of calls of all channels.
HaloBound::Staircase bound_of(const std::vector<LayerProblem>& problems, uint32_t free = 0,
                              double per_piece = 0, double per_tile = 0, double per_call = 0) {
    const auto tables = std::make_shared<HaloTables>(problems);
    return HaloBound(tables, problems, 0, free).all({channels, per_piece, per_tile, per_call});
}

/// Outer loops come before these.
int position_of(Dim dim, const ChainSchedule::Layer& layer) {
    return static_cast<int>(std::ranges::find(layer.order, dim) - layer.order.begin());
}

/// Whether each call of the layer before the last one makes one channel of several.
bool reads_one_by_one(const ChainSchedule& schedule) {
    const ChainSchedule::Layer& sink = schedule.layers.back();
    return sink.tile[Dim::i] > 1 && position_of(Dim::i, sink) < sink.compute;
}

std::vector<double> steps_of(const HaloBound::Staircase& bound) {
    std::vector<double> steps;
    for (size_t n = 0; n < bound.size(); ++n) steps.push_back(bound.step(n));
    return steps;
}

/// What the tile and line-buffer family, whose calls make all channels, reaches: the memory of the
/// input, of the intermediate tensors and of an element of the output, and the elements of the
/// input that are read.
struct Reached {
    double memory = 0;
    double input = 0;
};
std::vector<Reached> family(const std::vector<LayerProblem>& problems) {
    ExploreOptions options;
    options.tiles = TileSizes::powers_of_two;
    std::vector<Reached> reached;
    for (const GroupPoint& point : family_front(problems, options, TileSizes::all)) {
        if (point.group.nests.front().x.front().placement.store.is_root())
            continue;  // ConvFusion's spaces do not keep the input longer than A_1
        if (point.group.nests.back().tile[Dim::i] < channels) continue;
        const GroupCounts counts = two_level_counts(problems, point.group);
        Reached r;
        r.input = static_cast<double>(counts.input_reads().value());
        r.memory = static_cast<double>(counts.input_buffers().value()) + 1;
        for (size_t k = 0; k + 1 < problems.size(); ++k)
            r.memory += static_cast<double>(counts.layers[k].output_buffer.value());
        reached.push_back(r);
    }
    return reached;
}

/// Lines of w columns through n layers hold 3 (w + 2 j) elements of each channel of the j-th tensor
/// from the end, the input being the n-th, and bring (w + 2 n) / w of the input. No kind of
/// schedule does with much less.
TEST(HaloBound, IsBelowLineBuffersButNotFar) {
    for (const size_t layers : {2U, 4U, 8U}) {
        const auto problems = equal_layers(layers);
        const HaloBound::Staircase bound = bound_of(problems);
        const std::vector<Reached> all = family(problems);
        ASSERT_GT(all.size(), 5U);
        double farthest = 1;
        for (const Reached& reached : all) {
            const double least = bound.input(reached.memory);
            EXPECT_LE(least, reached.input) << layers << " layers, memory " << reached.memory;
            farthest = std::max(farthest,
                                reached.input / std::max<double>(least, channels * rows * columns));
        }
        EXPECT_LT(farthest, 3) << layers << " layers";
    }
}

/// A line of one column: 3 (1 + 2 j) elements of each channel of the j-th tensor from the end, the
/// input being the eighth.
TEST(HaloBound, LittleMemoryBringsTheInputAgain) {
    const auto problems = equal_layers(8);
    const HaloBound::Staircase bound = bound_of(problems);
    double line = 0;
    for (int j = 1; j <= 8; ++j) line += channels * 3 * (1 + 2 * j);
    EXPECT_GT(bound.input(line), 5.0 * channels * rows * columns);
    EXPECT_LE(bound.input(line), 17.0 * channels * rows * columns);  // one column needs 17
    EXPECT_GT(bound.input(line / 4), bound.input(line));
    EXPECT_EQ(bound.input(1), INFINITY);
    EXPECT_LE(bound.input(1e9), 1.0 * channels * rows * columns);
}

/// Sides of pieces are integers, so memory just short of a line of two columns is a line of one.
TEST(HaloBound, MemoryForPartOfAColumnIsForNone) {
    const Network network =
        chain(channels, rows, columns,
              {{channels, square_window(1)}, {channels, square_window(3, 1, 1)}});
    const auto problems = layer_problems(network, all_layers(network));
    const HaloBound::Staircase bound = bound_of(problems);
    // One column needs 3 (1 + 2) elements of a channel, two need 3 (2 + 2). X comes for each call.
    const double one = channels * 3 * 3;
    const double two = channels * 3 * 4;
    EXPECT_EQ(bound.input(two - 1), bound.input(one));
    EXPECT_LT(bound.input(two), bound.input(two - 1));
    // 238 x 298 coordinates meet no border; a column brings 1 + 2 columns, and a row 1 + 2 / 298.
    EXPECT_NEAR(bound.input(one), channels * (238 + 2) * 298.0 * 3, channels * 240.0 * 3 * 10);

    // They are 240 lines of one row, two at the border among them, or more pieces. Each but the
    // first brings 100 elements besides.
    const HaloBound::Staircase with_pieces = bound_of(problems, 0, 100);
    EXPECT_NEAR(with_pieces.input(one) - bound.input(one), 100 * (240 - 1), 1e-3);
    EXPECT_EQ(with_pieces.input(1e9), bound.input(1e9));

    // What comes with tiles costs nothing where coordinates come one by one, because tiles may be
    // of any size then. Lines of two rows are 120 tiles.
    const HaloBound::Staircase with_tiles = bound_of(problems, 0, 0, 100);
    EXPECT_EQ(with_tiles.input(one), bound.input(one));
    EXPECT_NEAR(with_tiles.input(two) - bound.input(two), 100 * (120 - 1), 1e-3);
    const HaloBound::Staircase with_large_tiles = bound_of(problems, 0, 0, 1e9);
    EXPECT_NEAR(with_large_tiles.input(two), bound.input(one), 1e-3);
}

/// Calls of lines are short: of the layer before the last, there is one for each coordinate of 238
/// x 298 along a line, or its buffer holds the whole line.
TEST(HaloBound, LinesHaveManyCallsOrLargeBuffers) {
    const Network network =
        chain(channels, rows, columns,
              {{channels, square_window(1)}, {channels, square_window(3, 1, 1)}});
    const auto problems = layer_problems(network, all_layers(network));
    const HaloBound::Staircase bound = bound_of(problems);
    const double each = 1000;
    const HaloBound::Staircase with_calls = bound_of(problems, 0, 0, 0, each);
    // With a buffer of two rows, 149 lines have 238 calls each, or pieces of 2 x 2 have one; the
    // bound is for pieces of up to 2 x 4.
    const double two = channels * 3 * 4;
    EXPECT_GT(with_calls.input(two), bound.input(two) + each * (119 * 149 / 2.0 - 1));
    // A line of 298 columns is one call.
    const double line = channels * 3.0 * 300;
    EXPECT_LE(with_calls.input(line), bound.input(two) + each * 238);
    EXPECT_EQ(with_calls.input(1e9), bound.input(1e9));
}

/// Chains that begin alike share what is found for their first layers, whoever comes first.
TEST(HaloBound, SharedTablesChangeNothing) {
    const auto problems = equal_layers(5);
    const auto tables = std::make_shared<HaloTables>(problems);
    for (const size_t layers : {4U, 5U, 3U}) {
        const std::vector<LayerProblem> first(
            problems.begin(), problems.begin() + static_cast<std::ptrdiff_t>(layers));
        for (const uint32_t free : {0U, 2U, 4U}) {
            const auto own = std::make_shared<HaloTables>(problems);
            const HaloBound shared(tables, first, 0, free);
            const HaloBound alone(own, first, 0, free);
            EXPECT_EQ(steps_of(shared.all({channels})), steps_of(alone.all({channels})))
                << layers << ", " << free;
        }
    }
}

TEST(HaloBound, GridsLookUpWhatTheyHold) {
    const Grid grid(1000, 1.1);
    for (double value = 0.5; value < 2000; value *= 1.003) {
        const size_t up = grid.up(value);
        EXPECT_TRUE(grid[up] >= value || up + 1 == grid.size()) << value;
        EXPECT_TRUE(up == 0 || grid[up - 1] < value) << value;
        const size_t down = grid.down(value);
        EXPECT_TRUE(grid[down] <= value || down == 0) << value;
        EXPECT_TRUE(down + 1 == grid.size() || grid[down + 1] > value) << value;
    }
    EXPECT_EQ(grid.up(INFINITY), grid.size() - 1);
}

/// A free buffer leaves its memory to the others.
TEST(HaloBound, FreeBuffersTakeNoMemory) {
    const auto problems = equal_layers(4);
    const HaloBound::Staircase all = bound_of(problems);
    const HaloBound::Staircase two = bound_of(problems, 1U << 1U);
    for (double memory = 20; memory < 2000; memory *= 1.3)
        EXPECT_LE(two.input(memory), all.input(memory)) << memory;
    // Lines of one column: 3 (1 + 2 j) elements of each channel of the j-th tensor from the end.
    EXPECT_GT(all.input(channels * 3 * (3 + 5)), two.input(channels * 3 * (3 + 5)));
}

/// A line of one column reads 33 times the input of 16 layers. What has a little less memory cuts
/// its calls again. Calls of lines have one row, so pieces of them read the rows around it again
/// and again, and a large area of a call has a buffer of that area.
TEST(HaloBound, CallsOfLinesHaveOneRow) {
    const auto problems = equal_layers(16);
    const HaloBound::Staircase bound = bound_of(problems);
    double line = 0;
    for (int j = 1; j <= 16; ++j) line += channels * 3 * (1 + 2 * j);
    EXPECT_GT(bound.input(line * 0.9), 25.0 * channels * rows * columns);
    EXPECT_LE(bound.input(line), 33.0 * channels * rows * columns);
}

/// Lines of two columns through 16 layers, with an element of the output, read (2 + 32) / 2 times
/// the input, less what lies beyond the borders. Without the room for one column of these, what is
/// cut again reads more: calls are rows of a line, and pieces of rows are no squares of the same
/// area.
TEST(HaloBound, PiecesOfCallsAreNoSquares) {
    const auto problems = equal_layers(16);
    const HaloBound::Staircase bound = bound_of(problems);
    double lines = 1;
    for (int j = 1; j <= 16; ++j) lines += channels * 3 * (2 + 2 * j);
    EXPECT_GT(bound.input(lines), 16.0 * channels * rows * columns);
    EXPECT_LE(bound.input(lines), 17.0 * channels * rows * columns);
    EXPECT_GT(bound.input(lines - 1), 20.0 * channels * rows * columns);
}

/// Lines of eight columns through four layers read (8 + 8) / 8 times the input. If calls of layer 2
/// make one channel, A_2 may hold one channel instead of four, but then lines have a cut: pieces of
/// short calls have halos on all sides.
TEST(HaloBound, CallsOfOneChannelCutLines) {
    const auto problems = equal_layers(4);
    const auto tables = std::make_shared<HaloTables>(problems);
    const HaloBound wide(tables, problems);
    const HaloBound narrow(tables, problems, 1U << 2U);
    double of_all = 1;  // an element of the output
    double of_one = 1;
    for (int j = 1; j <= 4; ++j) {
        of_all += channels * 3 * (8 + 2 * j);
        of_one += (j == 2 ? 1.0 : static_cast<double>(channels)) * 3 * (8 + 2 * j);
    }
    const double input = channels * rows * columns;
    EXPECT_LE(wide.all({channels}).input(of_all), 2 * input);
    EXPECT_GT(narrow.all({channels}).input(of_one), 3.5 * input);
    EXPECT_LE(narrow.all({channels}).input(1e9), input);
}

/// Two layers of 3x3 with one channel at a time of A_1, in memory for lines of eight columns, which
/// read (8 + 4) / 8 of the input. But then Y's buffer has the sums of a piece, or A_1 has all
/// channels and X comes with each call of layer 1.
TEST(HaloBound, SumsOfPiecesOrCutsOfTheLastCalls) {
    const auto problems = equal_layers(2);
    const HaloBound bound(std::make_shared<HaloTables>(problems), problems);
    const double input = channels * rows * columns;
    const double line = 3 * (8 + 2) + channels * 3 * (8 + 4) + 1;
    EXPECT_LE(bound.all({}).input(line), 1.52 * input);
    // Of these 175 elements, a line of s columns leaves 121 - 15 s for the sums of s x l pixels, if
    // one channel has some: 4 x 15 are best and read 8 / 4 * 19 / 15 of the input. A piece of 8 x 8
    // in one call, with 10 x 10 elements of A_1, reads (12 / 8)^2 of it; the bound is for pieces of
    // up to 8 x 16.
    const double of_one = bound.all({.channels = channels, .sums = 1}).input(line);
    EXPECT_GT(of_one, 12 / 8.0 * (20 / 16.0) * input);
    EXPECT_LE(of_one, 12 / 8.0 * (12 / 8.0) * input);
    // If four channels have sums, pieces are smaller.
    EXPECT_GT(bound.all({.channels = channels, .sums = 4}).input(line), 1.1 * of_one);
    EXPECT_LE(bound.all({.channels = channels, .sums = 4}).input(1e9), input);
}

/// Walks through schedules of two layers whose last layer reads channels of A_1 one by one, towards
/// little input in little memory.
void expect_below_calls_of_one_channel(uint64_t first, uint64_t last, int64_t steps) {
    int64_t schedules = 0;
    for (uint64_t seed = first; seed <= last; ++seed) {
        Rng rng(seed);
        std::vector<LayerSpec> specs;
        for (int k = 0; k < 2; ++k) {
            const int64_t kernel = rng.chance(1, 4) ? 1 : 3;
            specs.push_back({rng.between(2, 5), square_window(kernel, 1, kernel / 2)});
        }
        const Network network =
            chain(rng.between(1, 2), rng.between(14, 30), rng.between(14, 30), specs);
        const auto problems = layer_problems(network, all_layers(network));
        const HaloBound bound(std::make_shared<HaloTables>(problems), problems);
        const SpaceOfAChain space(problems);
        TwoLevelCache cache;
        ChainSchedule at;
        double ratio = INFINITY;
        for (int64_t n = 0; n < steps; ++n) {
            const bool starts = n % 1000 == 0;
            ChainSchedule next = at;
            if (starts) {
                do next = space.draw(rng);
                while (!space.group(next) || !reads_one_by_one(next));
                ratio = INFINITY;
            } else {
                for (int64_t changes = rng.between(1, 3); changes > 0; --changes)
                    space.change(next, rng);
            }
            const auto group = space.group(next);
            if (!group || !reads_one_by_one(next)) continue;
            ++schedules;
            const GroupCounts counts = two_level_counts(problems, *group, &cache);
            const ChainSchedule::Layer& sink = next.layers.back();
            const bool is_z_outside = position_of(Dim::z, sink) < sink.store;
            const int64_t outputs = problems[1][Dim::z];
            const int64_t again = problems[1][Dim::i] *
                                  (is_z_outside ? outputs : ceil_div(outputs, sink.tile[Dim::z]));
            const double memory =
                static_cast<double>((counts.input_buffers() + counts.layers[0].output_buffer +
                                     counts.layers[1].output_buffer)
                                        .value());
            const double least =
                bound
                    .all({.channels = static_cast<double>(sink.tile[Dim::i]),
                          .sums = is_z_outside ? 1.0 : static_cast<double>(sink.tile[Dim::z])})
                    .input(memory);
            const double own =
                static_cast<double>(counts.input_reads().value()) / static_cast<double>(again);
            ASSERT_GE(own, std::floor(least))
                << "seed " << seed << ", memory " << memory << ": " << to_text(*group);
            const double next_ratio = own / least;
            if (next_ratio <= ratio) {
                at = next;
                ratio = next_ratio;
            }
        }
    }
    EXPECT_GT(schedules, static_cast<int64_t>(last - first + 1) * steps / 20);
}

TEST(HaloBound, IsBelowWalksThroughCallsOfOneChannel) {
    expect_below_calls_of_one_channel(1, 12, 4'000);
}

TEST(HaloBoundLong, IsBelowWalksThroughCallsOfOneChannel) {
    expect_below_calls_of_one_channel(100, 400, 20'000);
}

TEST(HaloBound, OneLayerOrGapsHaveNone) {
    const Network network = chain(2, 40, 40, {{2, square_window(3)}, {2, square_window(1, 2)}});
    EXPECT_EQ(bound_of(layer_problems(network, all_layers(network))).input(1), 0);
    const auto one = equal_layers(1);
    const auto tables = std::make_shared<HaloTables>(one);
    EXPECT_EQ(HaloBound(tables, one).all({}).input(1), 0);
}

}  // namespace
}  // namespace laminate::search
