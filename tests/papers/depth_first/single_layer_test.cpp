#include "papers/depth_first/single_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "papers/depth_first/hierarchy_walk.h"
#include "papers/depth_first/limited_orders.h"

namespace laminate::depth_first {
namespace {

TEST(LoopOrders, VisitsEachOrderOnceBeginningWithTheNonIncreasing) {
    // Three distinct loops, one of them twice, have 4! / 2 = 12 orders.
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
        std::ranges::sort(loops, {},
                          [](const Loop& loop) { return std::pair(loop.dim, loop.size); });
        return to_text(loops);
    };
    // C: 2 2 2 2 2 -> 2 2 2 4 -> 2 4 4 -> 4 8; then OY, which wins ties with OX.
    EXPECT_EQ(text(9), "C4 C8 FX3 FY3 K2 OX2 OX2 OY2 OY2");
    EXPECT_EQ(text(8), "C32 FX3 FY3 K2 OX2 OX2 OY2 OY2");
    EXPECT_EQ(text(7), "C32 FX3 FY3 K2 OX2 OX2 OY4");
}

TEST(MappedLayer, CountsWordsOfAPointwiseLayerByHand) {
    // The array does 2 -> 32 channels on 4 x 4 in one step, so everything is transferred once.
    const Machine machine = open_machine("meta_proto_df");
    const LayerShape shape = convolution(32, 2, 4, 4, 1);
    const MappedLayer layer(machine, shape, default_unrolling(machine, shape), {2, 2, 1});
    const auto mapping = best_limited_mapping(layer, 0);
    ASSERT_TRUE(mapping.has_value());
    EXPECT_TRUE(mapping->order.empty());
    const LayerCost& cost = mapping->cost;
    EXPECT_DOUBLE_EQ(cost.mac_pj, 0.04 * 32 * 2 * 16);
    // Outputs: 512 registers get a sum each and pass it on; 512 * 8 bits are 8 words of 512 in the
    // buffer.
    EXPECT_EQ(cost.words[0][0].write_from_lower,
              512 * 0.5 * 2);  // 16-bit registers are written whole
    EXPECT_EQ(cost.words[0][0].read_to_lower, 0);
    EXPECT_EQ(cost.words[0][1].write_from_lower, 8);
    // Weights: one word of the buffer fills 64 registers of 8 bits. Inputs: 32 bytes are 4 of the 8
    // smallest accesses of a word.
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

/// Four levels for weights and inputs, three for outputs; one lane; a word is an element.
Machine walked_machine() {
    Machine machine = open_machine("tesla_npu_df");
    for (ArrayAxis& axis : machine.axes) axis.lanes = 1;
    for (Memory& memory : machine.memories) {
        for (WordAccess* access : {&memory.read, &memory.write})
            access->word_bits = access->smallest_access_bits = 8;
    }
    machine.bits.input = machine.bits.weight = machine.bits.output = machine.bits.partial_sum = 8;
    return machine;
}

size_t random_place(Rng& rng, size_t size) {
    return static_cast<size_t>(rng.below(static_cast<int64_t>(size)));
}

/// Sizes of 1 to 4; rows may be strided and columns dilated.
LayerShape random_layer(Rng& rng) {
    const std::array types{LayerType::convolution, LayerType::depthwise, LayerType::addition};
    const auto size = [&] { return 1 + rng.below(4); };
    LayerShape layer;
    layer.type = types[random_place(rng, types.size())];
    (layer.type == LayerType::convolution ? layer.sizes[Dim::k] : layer.sizes[Dim::g]) = size();
    if (layer.type == LayerType::convolution) layer.sizes[Dim::c] = size();
    layer.sizes[Dim::ox] = size();
    layer.sizes[Dim::oy] = size();
    if (layer.type == LayerType::addition) return layer;
    layer.sizes[Dim::fx] = size();
    layer.sizes[Dim::fy] = size();
    layer.stride.y = 1 + rng.below(3);
    layer.dilation.x = 1 + rng.below(3);
    return layer;
}

Allocation random_allocation(Rng& rng, const MappedLayer& layer, size_t loops) {
    Allocation allocation(layer.role_count());
    for (size_t r = 0; r < layer.role_count(); ++r) {
        for (size_t level = 0; level + 1 < layer.hierarchy(r).size(); ++level)
            allocation[r].push_back(random_place(rng, loops + 1));
        std::ranges::sort(allocation[r]);
        allocation[r].push_back(loops);
    }
    return allocation;
}

/// The words on both sides of the boundary below a level are the elements that the walk saw.
void expect_words(const MappedLayer& layer, const LayerCost& cost, size_t r, size_t level,
                  const HierarchyWalk::Boundary& seen) {
    SCOPED_TRACE(std::string(to_string(layer.role(r))) + " " + std::to_string(level));
    const WordCounts& upper = cost.words[r][level];
    const auto elements = static_cast<double>(seen.elements);
    if (layer.role(r) == Role::output) {
        // Partial sums come back whenever they are taken up again, the first time included.
        const double back = seen.comes_back ? elements : 0;
        EXPECT_EQ(upper.write_from_lower, elements);
        EXPECT_EQ(upper.read_to_lower, back);
        if (level == 0) return;
        EXPECT_EQ(cost.words[r][level - 1].read_to_higher, elements);
        EXPECT_EQ(cost.words[r][level - 1].write_from_higher, back);
    } else {
        EXPECT_EQ(upper.read_to_lower, elements);
        if (level == 0) return;
        EXPECT_EQ(cost.words[r][level - 1].write_from_higher, elements);
    }
}

TEST(MappedLayer, WordsOfEveryLevelAreThoseOfTheWalk) {
    const Machine machine = walked_machine();
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        Rng rng(seed);
        const LayerShape layer = random_layer(rng);
        std::vector<size_t> tops;
        for (const Role role : roles(layer.type))
            tops.push_back(machine.hierarchy(operand_of(role)).size());
        const MappedLayer mapped(machine, layer, default_unrolling(machine, layer), tops);
        LoopOrder order = limited_factors(mapped, 0);
        for (size_t n = order.size(); n > 1; --n)
            std::swap(order[n - 1], order[random_place(rng, n)]);
        const Allocation allocation = random_allocation(rng, mapped, order.size());
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_text(order));
        const LayerCost cost = mapped.cost(order, allocation);
        const HierarchyWalk walk(layer, order);
        for (size_t r = 0; r < mapped.role_count(); ++r) {
            for (size_t level = 0; level < tops[r]; ++level) {
                const auto below =
                    level == 0 ? std::nullopt : std::optional(allocation[r][level - 1]);
                expect_words(mapped, cost, r, level, walk.boundary(mapped.role(r), below));
            }
        }
        if (::testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace laminate::depth_first
