#include "scheduler/counts/two_level/axis_sweep.h"

#include <gtest/gtest.h>

namespace laminate::two_level {
namespace {

AxisWindow window(int64_t kernel, int64_t stride, int64_t in) {
    AxisWindow w;
    w.kernel = kernel;
    w.stride = stride;
    w.in = in;
    w.out = (in - kernel) / stride + 1;
    return w;
}

AxisArray tensor(int64_t producer, int64_t reader, AxisPlacement placement) {
    return {false, producer, {{reader}}, 0, placement};
}
AxisArray weights(int64_t nest, AxisPlacement placement) {
    return {true, -1, {{nest}}, 0, placement};
}

/// Rows of one layer: D = 7 in tiles of 3, kernel 3, stride 1, input 9; X and W at the given
/// levels.
AxisProblem rows_of_one(AxisPlacement x, AxisPlacement w) {
    AxisProblem problem;
    AxisNest nest;
    nest.role = Role::spatial;
    nest.steps = {3, 1};
    nest.extent = 7;
    nest.window = window(3, 1, 9);
    problem.nests = {nest};
    problem.arrays = {tensor(-1, 0, x), weights(0, w)};
    return problem;
}

TEST(Axis, EachTileBringsItsWindow) {
    const AxisCounts counts = axis_counts(rows_of_one({{0, 1}, {0, 1}}, {{0, 0}, {0, 0}}));
    EXPECT_EQ(counts.buffers[0].brought, (3 + 2) + (3 + 2) + (1 + 2));  // the last tile has one row
    EXPECT_EQ(counts.buffers[1].brought, 1);  // weights do not depend on rows, so they come once
    EXPECT_EQ(counts.sink_taps, 7 * 3);
}

TEST(Axis, RowsKeptFromTheRootComeOnceAndThreeAreHeld) {
    const AxisCounts counts = axis_counts(rows_of_one({{0, 0}, {0, 2}}, {{0, 1}, {0, 1}}));
    EXPECT_EQ(counts.buffers[0].brought, 9);
    EXPECT_EQ(counts.buffers[1].brought, 3);  // once per tile
    ASSERT_EQ(counts.buffers[0].lifetimes.size(), 1u);
    const AxisLifetime& life = counts.buffers[0].lifetimes[0];
    ASSERT_EQ(life.size(), 3u);  // root, tile, row
    EXPECT_EQ(life[0].held, 9);
    EXPECT_EQ(life[1].held, 5);
    EXPECT_EQ(life[2].held, 3);
    EXPECT_TRUE(life[2].overlaps);
}

TEST(Axis, ALastTileOfOneRowIsALifetimeOfAnotherKind) {
    // Tiles of 3, 3 and 1 rows: in the last one the row loop has a single trip and nothing
    // overlaps.
    const AxisCounts counts = axis_counts(rows_of_one({{0, 1}, {0, 2}}, {{0, 0}, {0, 0}}));
    EXPECT_EQ(counts.buffers[0].brought, 5 + 5 + 3);
    EXPECT_EQ(counts.buffers[0].lifetimes.size(), 2u);
}

/// Two layers, rows; kernel 3 each, input 11, intermediate 9, output 7 rows in tiles of 2. The
/// intermediate is computed at the sink's tile and stored at `store`; X lives in the producer's
/// call.
AxisProblem rows_of_two(AxisLevel store) {
    AxisProblem problem = rows_of_one({{1, 1}, {1, 1}}, {{1, 0}, {1, 0}});
    AxisNest producer = problem.nests[0];
    producer.steps = {9, 1};
    producer.extent = 9;
    producer.window = window(3, 1, 11);
    problem.nests[0].steps = {2, 1};
    problem.nests.insert(problem.nests.begin(), producer);
    problem.arrays = {tensor(-1, 0, {{0, 0}, {0, 0}}), tensor(0, 1, {store, {1, 1}}),
                      weights(0, {{1, 0}, {1, 0}}), weights(1, {{1, 0}, {1, 0}})};
    return problem;
}

TEST(Axis, RecomputedHaloCallsForWholeWindows) {
    const AxisCounts counts = axis_counts(rows_of_two({1, 1}));
    EXPECT_EQ(counts.buffers[1].brought, 4 + 4 + 4 + 3);  // tiles of 2, 2, 2, 1 rows
    EXPECT_EQ(counts.buffers[1].taps, 3 * (4 + 4 + 4 + 3));
    EXPECT_EQ(counts.buffers[0].brought, 6 + 6 + 6 + 5);  // two more rows per call
}

TEST(Axis, KeptHaloCallsForNewRowsOnly) {
    const AxisCounts counts = axis_counts(rows_of_two({1, 0}));
    EXPECT_EQ(counts.buffers[1].brought, 4 + 2 + 2 + 1);
    EXPECT_EQ(counts.buffers[0].brought, 6 + 4 + 4 + 3);
}

AxisNest row_by_row(AxisWindow w) {
    AxisNest nest;
    nest.role = Role::spatial;
    nest.steps = {1, 1};
    nest.extent = w.out;
    nest.window = w;
    return nest;
}

/// Two layers, rows: a kernel of 3 with padding, then a transposed one of 4 with stride 2. What is
/// between is computed for each of the sink's rows and stored there, and so is X, which layer 1 reads
/// in its own loop: a call lies between X's levels.
AxisProblem rows_of_an_upsampling(int64_t rows) {
    AxisProblem problem;
    problem.nests = {row_by_row({false, 3, 1, 1, 1, rows, rows, {}}),
                     row_by_row({true, 4, 2, 1, 1, rows, 2 * rows, {}})};
    problem.nests[0].steps = {rows, 1};
    problem.nests[1].steps = {2 * rows, 1};
    problem.arrays = {tensor(-1, 0, {{1, 2}, {0, 2}}), tensor(0, 1, {{1, 2}, {1, 2}}),
                      weights(0, {{1, 0}, {1, 0}}), weights(1, {{1, 0}, {1, 0}})};
    return problem;
}

TEST(Axis, MoreRowsThanCanBeRunAreRepeated) {
    // Every row reads two of the rows between, and four of X. At each border, two rows of the sink
    // read a row less of X, and one reads two less, and a row less between.
    for (const int64_t rows : {int64_t{10}, int64_t{1'000'000'000'000}}) {
        const AxisCounts counts = axis_counts(rows_of_an_upsampling(rows));
        EXPECT_EQ(counts.buffers[1].brought, 2 * (2 * rows) - 2) << rows;
        EXPECT_EQ(counts.buffers[0].brought, 4 * (2 * rows) - 2 * (2 + 1 + 1)) << rows;
        EXPECT_EQ(counts.buffers[2].brought, 1) << rows;
    }
}

TEST(Axis, AHullOverReadersHasNoGaps) {
    // 13 rows summed from two branches of 16: every fourth row repeated four times and ahead by
    // three (row y of the sum reads row 4 * ceil(y / 4)), every second row repeated (2 * floor(y /
    // 2)). Row 1 of the sum jumps to row 4, row 2 reads row 2.
    const auto down = [](int64_t stride) {
        return AxisWindow{false, 1, stride, 1, 0, 16, 16 / stride, {}};
    };
    const auto up = [](int64_t stride, int64_t pad) {
        return AxisWindow{true, stride, stride, 1, pad, 16 / stride, 13, {}};
    };
    AxisProblem problem;
    problem.nests = {row_by_row(down(4)), row_by_row(down(2)), row_by_row(up(4, 3)),
                     row_by_row(up(2, 0)), row_by_row({false, 1, 1, 1, 0, 13, 13, {}})};
    const AxisPlacement each_row{{4, 0}, {4, 1}};
    problem.arrays = {AxisArray{false, -1, {{0}, {1}}, 0, each_row}, tensor(0, 2, each_row),
                      tensor(1, 3, each_row), tensor(2, 4, each_row), tensor(3, 4, each_row)};
    const AxisCounts counts = axis_counts(problem);
    EXPECT_EQ(counts.buffers[0].brought,
              1 + 4 + 4 + 4);  // for rows 0, 1, 5, 9 of the sum: up to rows 0, 4, 8, 12
    EXPECT_EQ(counts.buffers[1].brought, 4);
    EXPECT_EQ(counts.buffers[2].brought, 7);
    // If only one of the branches read it, the gaps would be left out.
    problem.arrays[0].readers = {{0}};
    EXPECT_EQ(axis_counts(problem).buffers[0].brought, 4);
}

/// n layers of kernel 3 that are all recomputed for every row of their consumer: one row of the
/// sink makes 3^(n-1) calls to the first.
AxisProblem recomputing(int64_t layers) {
    AxisProblem problem;
    for (int64_t k = 0; k < layers; ++k) {
        AxisNest nest;
        nest.role = Role::spatial;
        nest.steps = {1, 1};
        const int64_t in = 40 + 2 * (layers - k);
        nest.extent = in - 2;
        nest.window = window(3, 1, in);
        problem.nests.push_back(nest);
        problem.arrays.push_back(tensor(k - 1, k, {{k, 1}, {k, 1}}));
    }
    return problem;
}

TEST(Axis, RepeatedCallsAreRememberedNotRepeated) {
    // 40 rows of the sink, each asks its producer for 3 rows, each of those for 3 more ...
    const AxisCounts counts = axis_counts(recomputing(24));
    int64_t rows = 40;
    for (int64_t k = 23; k > 0; --k) {
        rows *= 3;
        EXPECT_EQ(counts.buffers[static_cast<size_t>(k)].brought, rows) << "layer " << k;
    }
}

TEST(Axis, CountsBeyond64BitsThrow) {
    EXPECT_THROW((void)axis_counts(recomputing(45)), std::overflow_error);
}

}  // namespace
}  // namespace laminate::two_level
