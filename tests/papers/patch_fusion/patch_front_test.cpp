#include "papers/patch_fusion/patch_front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/rng.h"
#include "base/units.h"
#include "nets/zoo/builder.h"
#include "nets/zoo/zoo.h"
#include "tests/papers/patch_fusion/schedule_walk.h"

namespace laminate::patch_fusion {
namespace {

/// Two to `most` layers: convolutions, depthwise ones, pools, and additions of maps of one size.
Network random_patch_network(uint64_t seed, int most) {
    Rng rng(seed);
    zoo::Builder b("random" + std::to_string(seed), {});
    std::vector<TensorId> made{b.input(rng.between(1, 3), rng.between(5, 9), rng.between(5, 9))};
    const int64_t layers = rng.between(2, most);
    for (int64_t n = 0; n < layers; ++n) {
        const std::string name = "layer" + std::to_string(n);
        const TensorId x = made.back();
        std::vector<TensorId> same;
        for (const TensorId other : made)
            if (other != x && b.dims(other) == b.dims(x)) same.push_back(other);
        const int64_t least = std::min(b.dims(x)[2], b.dims(x)[3]);
        const int64_t kernel = std::min<int64_t>(rng.between(1, 3), least);
        const int64_t stride = std::min(rng.between(1, 4) == 1 ? int64_t{2} : 1, kernel);
        const int64_t channels = b.dims(x)[1];
        if (!same.empty() && rng.between(1, 2) == 1) {
            made.push_back(b.add(name, x, same.front()));
        } else if (n + 1 == layers && least > 1 && rng.between(1, 3) == 1) {
            made.push_back(b.simple(LayerKind::global_average_pool, name, x));
        } else if (rng.between(1, 5) == 1 && least > 2) {
            made.push_back(b.max_pool(name, x, kernel, stride));
        } else {
            const bool is_depthwise = rng.between(1, 3) == 1;
            made.push_back(b.conv(name, x,
                                  {.out = is_depthwise ? channels : rng.between(1, 4),
                                   .kernel = kernel,
                                   .stride = stride,
                                   .pad = kernel / 2,
                                   .groups = is_depthwise ? channels : 1}));
        }
    }
    return b.finish(made.back());
}

std::vector<int64_t> rows_of_even_strips(int64_t height) {
    std::vector<int64_t> rows;
    for (int64_t r = 1; r <= height; ++r)
        if (r == 1 || ceil_div(height, r) < ceil_div(height, r - 1)) rows.push_back(r);
    return rows;
}

/// Calls `visit` with every block from layer `first` on, and the layer after it.
void every_block(const PatchGraph& graph, int first,
                 const std::function<void(const PatchBlock&, int next)>& visit) {
    const std::function<void(PatchBlock, int, int64_t, int64_t)> extend =
        [&](const PatchBlock& block, int next, int64_t rings, int64_t windows) {
            for (int last = next; last < graph.size(); ++last) {
                if (!is_segment(graph, next, last)) continue;
                if (!block.segments.empty() && graph.map(next - 1).last_reader() > last) continue;
                const auto columns = segment_columns(graph, next, last);
                for (const int64_t rows : rows_of_even_strips(strip_extent(graph, last))) {
                    const Segment segment{next, last, rows};
                    const SegmentCost cost = segment_cost(graph, segment, columns);
                    PatchBlock longer = block;
                    const int64_t ring =
                        block.segments.empty()
                            ? 0
                            : ring_bytes(graph, block.segments.back(), cost);
                    longer.segments.push_back(segment);
                    longer.macs += cost.macs;
                    const int64_t most = std::max(windows, cost.window_bytes);
                    longer.bytes = whole_bytes(graph, first, last) + rings + ring + most;
                    visit(longer, last + 1);
                    if (last + 1 < graph.size() && can_be_ring(graph, first, last))
                        extend(longer, last + 1, rings + ring, most);
                }
            }
        };
    extend({}, first, 0, 0);
}

using Costs = std::vector<std::pair<int64_t, int64_t>>;  ///< bytes, MACs

Costs best_of(Costs costs) {
    std::sort(costs.begin(), costs.end());
    Costs best;
    for (const auto& cost : costs)
        if (best.empty() || cost.second < best.back().second) best.push_back(cost);
    return best;
}

/// Every schedule of the layers from `first` on; whole fronts of the rest stand for all of them.
Costs every_schedule(const PatchGraph& graph, int first) {
    if (first == graph.size()) return {{0, 0}};
    std::vector<Costs> rest(static_cast<size_t>(graph.size()) + 1);
    Costs all;
    every_block(graph, first, [&](const PatchBlock& block, int next) {
        Costs& after = rest[static_cast<size_t>(next)];
        if (after.empty()) after = every_schedule(graph, next);
        for (const auto& [bytes, macs] : after)
            all.emplace_back(std::max(bytes, block.bytes), macs + block.macs);
    });
    return best_of(std::move(all));
}

void expect_the_front_of_every_schedule(uint64_t seed, int layers) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PatchGraph graph = patch_graph(random_patch_network(seed, layers));
    Costs found;
    for (const PatchPoint& point : patch_front(graph).points) {
        found.emplace_back(point.bytes, point.macs);
        int64_t bytes = 0;
        int64_t macs = 0;
        for (const PatchBlock& block : point.blocks) {
            bytes = std::max(bytes, block.bytes);
            macs += block.macs;
        }
        EXPECT_EQ(found.back(), std::make_pair(bytes, macs));
    }
    EXPECT_EQ(found, every_schedule(graph, 0));
}

TEST(PatchFront, EqualsEverySchedule) {
    for (uint64_t seed = 1; seed <= 60; ++seed) expect_the_front_of_every_schedule(seed, 4);
}

TEST(PatchFrontLong, EqualsEverySchedule) {
    for (uint64_t seed = 1001; seed <= 3000; ++seed) expect_the_front_of_every_schedule(seed, 7);
}

TEST(PatchFront, BlocksHoldAndComputeWhatAWalkDoes) {
    int64_t blocks = 0;
    int64_t equal = 0;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        const PatchGraph graph = patch_graph(random_patch_network(seed, 4));
        for (int first = 0; first < graph.size(); ++first) {
            every_block(graph, first, [&](const PatchBlock& block, int) {
                const Walked walked = walk(graph, block);
                ASSERT_EQ(block.macs, walked.macs) << "seed " << seed << ", layer " << first;
                // Of a map with several readers the model counts a column that the walk has freed
                // already, where the readers could take turns.
                ASSERT_LE(walked.bytes, block.bytes) << "seed " << seed << ", layer " << first;
                ++blocks;
                equal += walked.bytes == block.bytes ? 1 : 0;
            });
        }
    }
    EXPECT_GT(blocks, 10'000);
    EXPECT_GT(equal, blocks * 9 / 10);
}

TEST(PatchFront, TwoConvolutionsByHand) {
    // 3x3 convolutions without padding, 8 x 8 to 6 x 6 to 4 x 4, of 1, 2 and 1 maps.
    zoo::Builder b("two", {});
    const TensorId inner = b.conv("conv1", b.input(1, 8, 8), {.out = 2});
    const PatchGraph graph = patch_graph(b.finish(b.conv("conv2", inner, {.out = 1})));
    // One row at a time: of the inner map 3 rows, in windows of 3 columns, of 2 bytes.
    const SegmentCost cost = segment_cost(graph, {0, 1, 1}, segment_columns(graph, 0, 1));
    EXPECT_EQ(cost.window_bytes, 3 * 3 * 2);
    // Each of the 4 strips computes 3 rows of 6 columns again.
    EXPECT_EQ(cost.macs, 4 * 3 * 6 * 2 * 9 + 4 * 4 * 2 * 9);
    const PatchFront front = patch_front(graph);
    ASSERT_EQ(front.points.size(), 3u);
    EXPECT_EQ(front.points[0].bytes, 18);
    // Two rows at a time read 4 of the inner map.
    EXPECT_EQ(front.points[1].bytes, 4 * 3 * 2);
    EXPECT_EQ(front.points[1].macs, 2 * 4 * 6 * 2 * 9 + 4 * 4 * 2 * 9);
    // All rows of the inner map in three columns hold as much as three rows in a ring of all
    // columns: 36 bytes, and nothing is computed twice.
    EXPECT_EQ(front.points[2].bytes, 3 * 6 * 2);
    EXPECT_EQ(front.points[2].macs, graph.macs());
}

struct PublishedPoint {
    int64_t bytes;
    double overhead;
};

/// msf-CNN's points (public artifact, result.json of each network: "Fusion Network Memory Usage",
/// "Overhead Factor"), and the MACs that they are relative to, without head.
void expect_at_or_below(const char* network, int64_t macs, int64_t head_macs,
                        const std::vector<PublishedPoint>& published) {
    const PatchGraph graph = patch_graph(zoo_network(network));
    EXPECT_EQ(graph.macs(), macs + head_macs) << network;
    const PatchFront front = patch_front(graph);
    for (const PublishedPoint& point : published) {
        EXPECT_TRUE(std::any_of(front.points.begin(), front.points.end(),
                                [&](const PatchPoint& ours) {
                                    const double more = static_cast<double>(ours.macs - head_macs);
                                    return ours.bytes <= point.bytes &&
                                           more <= point.overhead * static_cast<double>(macs);
                                }))
            << network << ": " << point.bytes << " bytes at " << point.overhead;
    }
}

TEST(PatchFront, IsAtOrBelowEveryPublishedPoint) {
    expect_at_or_below("mobilenetv2-w0.35", 18'909'490, 448 * 1000,
                       {{7'887, 1.68},
                        {15'340, 1.38},
                        {25'674, 1.25},
                        {67'905, 1.10},
                        {83'065, 1.02},
                        {181'440, 1.00}});
    expect_at_or_below("mcunet-5fps-vww", 11'578'496, 160 * 2,
                       {{12'000, 1.96},
                        {17'760, 1.30},
                        {26'128, 1.11},
                        {38'576, 1.02},
                        {89'600, 1.00}});
    expect_at_or_below("mcunet-320kb", 81'625'520, 160 * 1000,
                       {{42'643, 2.70},
                        {62'880, 2.02},
                        {94'184, 1.45},
                        {156'672, 1.37},
                        {247'808, 1.00}});
}

}  // namespace
}  // namespace laminate::patch_fusion
