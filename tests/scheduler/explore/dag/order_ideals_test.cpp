#include "scheduler/explore/dag/order_ideals.h"

#include <gtest/gtest.h>

#include "tests/papers/dag_groups/random_graph.h"

namespace laminate::search {
namespace {

TEST(OrderIdeals, OfAChainAreItsBeginnings) {
    const auto ideals = OrderIdeals::of({{}, {0}, {1}}, 100);
    ASSERT_TRUE(ideals);
    ASSERT_EQ(ideals->size(), 4);
    for (int n = 1; n < 4; ++n) {
        ASSERT_EQ(ideals->steps(n).size(), 1u);
        EXPECT_EQ(ideals->steps(n)[0].vertex, n - 1);
        EXPECT_EQ(ideals->steps(n)[0].ideal, n - 1);
    }
}

TEST(OrderIdeals, OfUnrelatedVerticesAreAllSets) {
    const auto ideals = OrderIdeals::of({{}, {}, {}, {}}, 100);
    ASSERT_TRUE(ideals);
    EXPECT_EQ(ideals->size(), 16);
    EXPECT_EQ(ideals->steps(15).size(), 4u);
    EXPECT_FALSE(OrderIdeals::of({{}, {}, {}, {}}, 15));  // one more than the limit
}

TEST(OrderIdeals, FarApartIsRefused) {
    std::vector<std::vector<int>> needs(130);
    for (int v = 1; v < 129; ++v) needs[static_cast<size_t>(v)] = {v - 1};
    EXPECT_FALSE(OrderIdeals::of(needs, 1000));  // vertex 129 needs nothing, nor does vertex 0
    needs[129] = {128};
    EXPECT_EQ(OrderIdeals::of(needs, 1000)->size(), 131);
}

TEST(ConvexSets, OfAChainAreIntervals) {
    EXPECT_EQ(convex_set_count({{}, {0}, {1}, {2}}), 4 * 5 / 2);
    std::vector<std::vector<int>> chain(1000);
    for (int v = 1; v < 1000; ++v) chain[static_cast<size_t>(v)] = {v - 1};
    EXPECT_EQ(convex_set_count(chain), 1000 * 1001 / 2);
}

/// Counts the sets of vertices that no path leaves and enters again, from all pairs of reachable
/// vertices.
std::pair<int64_t, int64_t> convex_sets_and_ideals(const std::vector<std::vector<int>>& needs) {
    const size_t size = needs.size();
    std::vector<uint32_t> below(size);
    for (size_t v = 0; v < size; ++v) {
        for (const int b : needs[v]) below[v] |= below[static_cast<size_t>(b)] | 1u << b;
    }
    int64_t convex = 0;
    int64_t ideals = 0;
    for (uint32_t set = 0; set < 1u << size; ++set) {
        bool is_convex = set != 0;
        bool is_ideal = true;
        for (size_t v = 0; v < size; ++v) {
            const bool is_in = (set >> v & 1) != 0;
            if (is_in && (below[v] & ~set) != 0) is_ideal = false;
            if (is_in || (below[v] & set) == 0) continue;
            for (size_t w = v + 1; w < size; ++w)
                is_convex = is_convex && ((set >> w & 1) == 0 || (below[w] >> v & 1) == 0);
        }
        convex += is_convex ? 1 : 0;
        ideals += is_ideal ? 1 : 0;
    }
    return {convex, ideals};
}

TEST(OrderIdeals, OfRandomGraphsAreAsManyAsAmongAllSets) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        const dag_groups::OperatorGraph graph =
            dag_groups::random_graph(seed, 1 + static_cast<int>(seed % 10));
        std::vector<std::vector<int>> needs;
        for (const dag_groups::Operator& op : graph.operators) {
            needs.emplace_back();
            for (const dag_groups::OperatorInput& input : op.inputs) {
                if (input.map < graph.size()) needs.back().push_back(input.map);
            }
        }
        const auto [convex, ideals] = convex_sets_and_ideals(needs);
        EXPECT_EQ(convex_set_count(needs), convex) << seed;
        EXPECT_EQ(OrderIdeals::of(needs, 2000)->size(), ideals) << seed;
    }
}

}  // namespace
}  // namespace laminate::search
