#include "scheduler/models/depth_first/single_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace laminate::depth_first {
namespace {

TEST(LoopOrders, VisitsEachOrderOnceBeginningWithTheNonIncreasing) {
    // Three distinct loops, one twice: 4! / 2 = 12 orders.
    LoopOrders orders({{Dim::c, 2}, {Dim::ox, 3}, {Dim::c, 2}, {Dim::k, 5}});
    EXPECT_EQ(to_text(orders.current()), "OX3 K5 C2 C2");
    std::set<std::string> seen;
    do {
        EXPECT_TRUE(seen.insert(to_text(orders.current())).second) << to_text(orders.current());
    } while (orders.next());
    EXPECT_EQ(seen.size(), 12u);
}

TEST(LoopOrders, OfOneAndOfNoLoop) {
    LoopOrders one({{Dim::c, 2}});
    EXPECT_FALSE(one.next());
    LoopOrders none({});
    EXPECT_TRUE(none.current().empty());
    EXPECT_FALSE(none.next());
}

LayerShape convolution(int64_t k, int64_t c, int64_t ox, int64_t oy, int64_t kernel) {
    LayerShape shape;
    shape.sizes[Dim::k] = k;
    shape.sizes[Dim::c] = c;
    shape.sizes[Dim::ox] = ox;
    shape.sizes[Dim::oy] = oy;
    shape.sizes[Dim::fx] = kernel;
    shape.sizes[Dim::fy] = kernel;
    return shape;
}

TEST(LimitedFactors, MergesTheTwoSmallestOfTheDimensionWithMost) {
    const Machine machine = open_machine("meta_proto_df");
    // 64 / 32 = 2 of K, 64 / 2 = 2^5 of C, 16 / 4 = 2^2 of OX and OY, 3, 3: 12 factors.
    const LayerShape shape = convolution(64, 64, 16, 16, 3);
    const MappedLayer layer(machine, shape, default_unrolling(machine, shape), {4, 4, 3});
    EXPECT_EQ(limited_factors(layer, 0).size(), 12u);
    const auto text = [&](size_t limit) {
        LoopOrder loops = limited_factors(layer, limit);
        std::ranges::sort(loops, {}, [](const Loop& loop) { return std::pair(loop.dim, loop.size); });
        return to_text(loops);
    };
    // C: 2 2 2 2 2 -> 2 2 2 4 -> 2 4 4 -> 4 8; then OY, before OX on equality.
    EXPECT_EQ(text(9), "C4 C8 FX3 FY3 K2 OX2 OX2 OY2 OY2");
    EXPECT_EQ(text(8), "C32 FX3 FY3 K2 OX2 OX2 OY2 OY2");
    EXPECT_EQ(text(7), "C32 FX3 FY3 K2 OX2 OX2 OY4");
}

TEST(MappedLayer, CountsWordsOfAPointwiseLayerByHand) {
    // 2 -> 32 channels on 4 x 4: the array does it in one step; what remains is one transfer of everything.
    const Machine machine = open_machine("meta_proto_df");
    const LayerShape shape = convolution(32, 2, 4, 4, 1);
    const MappedLayer layer(machine, shape, default_unrolling(machine, shape), {2, 2, 1});
    const auto mapping = best_limited_mapping(layer, 0);
    ASSERT_TRUE(mapping.has_value());
    EXPECT_TRUE(mapping->order.empty());
    const LayerCost& cost = mapping->cost;
    EXPECT_DOUBLE_EQ(cost.mac_pj, 0.04 * 32 * 2 * 16);
    // Outputs: 512 registers get a sum each and give it on, 512 * 8 bits = 8 words of 512 in the buffer.
    EXPECT_EQ(cost.words[0][0].write_from_lower, 512 * 0.5 * 2);  // 16-bit registers are written whole
    EXPECT_EQ(cost.words[0][0].read_to_lower, 0);
    EXPECT_EQ(cost.words[0][1].write_from_lower, 8);
    // Weights: 64 registers of 8 bits from one word of the buffer. Inputs: 32 bytes = 4 of 8 smallest accesses.
    EXPECT_EQ(cost.words[1][0].write_from_higher, 64);
    EXPECT_EQ(cost.words[1][1].read_to_lower, 1);
    EXPECT_EQ(cost.words[2][0].read_to_lower, 0.5);
    EXPECT_EQ(cost.latency.temporal_cycles, 1);
}

TEST(MappedLayer, AnOrderThatDoesNotFitIsRefused) {
    const Machine machine = open_machine("meta_proto_df");
    // 64 * 100 * 100 bytes of input do not fit the local buffer of 64 KB.
    const LayerShape shape = convolution(32, 64, 100, 100, 1);
    const MappedLayer layer(machine, shape, default_unrolling(machine, shape), {2, 4, 1});
    EXPECT_FALSE(best_limited_mapping(layer, 4).has_value());
}

}  // namespace
}  // namespace laminate::depth_first
