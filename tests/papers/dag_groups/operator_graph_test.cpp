#include "papers/dag_groups/operator_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "nets/zoo/zoo.h"
#include "papers/dag_groups/grouping.h"
#include "scheduler/explore/dag/order_ideals.h"

namespace laminate::dag_groups {
namespace {

int find(const OperatorGraph& graph, const std::string& name) {
    for (int op = 0; op < graph.size(); ++op) {
        if (graph.operators[static_cast<size_t>(op)].name == name) return op;
    }
    return -1;
}

TEST(OperatorGraph, ReachOfAWindow) {
    EXPECT_EQ((Reach{3, 1, 1}.inputs(4)), 6);  // 4 + 3 - 1
    EXPECT_EQ((Reach{3, 2, 1}.inputs(4)), 9);  // 4 * 2 + 3 - 2
    EXPECT_EQ((Reach{9, 1, 2}.inputs(4)),
              6);  // outputs 1 .. 4 of a transposed 9x9 of stride 2: ((4 - 1) + 8) / 2 + 1
    EXPECT_EQ((Reach{2, 1, 2}.inputs(2)), 2);  // depth to space: two rows may come from two
}

TEST(OperatorGraph, Vgg16WithoutItsFullyConnectedLayers) {
    const Network network = zoo_network("vgg16");
    const OperatorGraph graph = operator_graph(network);
    EXPECT_EQ(graph.size(), 13 + 5);
    EXPECT_EQ(graph.left_out.size(), 4u);  // fc6, fc7, fc8 and the softmax
    EXPECT_TRUE(graph.maps[static_cast<size_t>(find(graph, "pool5"))].is_output);
    EXPECT_EQ(convex_groups(graph), 171);  // Table 5; 18 * 19 / 2
}

TEST(OperatorGraph, SqueezeNetHasTheGroupsOfThePaper) {
    const OperatorGraph graph = operator_graph(zoo_network("squeezenet"));
    EXPECT_EQ(graph.size(), 38);            // Table 5
    EXPECT_EQ(convex_groups(graph), 1057);  // Table 5
}

TEST(OperatorGraph, ResNetsHaveTheGroupsOfThePaper) {
    const Network network = zoo_network("resnet50");
    const OperatorGraph graph = operator_graph(network);
    EXPECT_EQ(graph.size(), 2 + 48 + 4 + 16 + 2);
    EXPECT_EQ(convex_groups(graph), 3510);  // Table 5
    // An Add in the last convolution of its branch: 16 operators fewer.
    const OperatorGraph merged = operator_graph(network, {.adds = true});
    EXPECT_EQ(merged.size(), 2 + 48 + 4 + 2);
    EXPECT_EQ(convex_groups(merged), 2048);
    const Operator& add = merged.operators[static_cast<size_t>(find(merged, "layer1_1_add"))];
    EXPECT_EQ(add.layers.size(), 2u);
    EXPECT_EQ(add.weights, 64 * 256);
    ASSERT_EQ(add.inputs.size(), 2u);
    // Batch norm and activations are merged already; the softmax and the flatten belong to what
    // they follow.
    EXPECT_EQ(graph.operators.back().layers.size(), 2u);
    EXPECT_EQ(convex_groups(operator_graph(zoo_network("resnet152"))), 24250);  // Table 5
}

TEST(OperatorGraph, GoogLeNetMergesPoolsInto1x1) {
    const Network network = zoo_network("googlenet");
    const OperatorGraph graph = operator_graph(network);
    EXPECT_EQ(graph.size(), 72);  // Table 5
    // Table 5: 50436. The difference, 72, are 8 sets in each of 9 modules (docs/optimus.md).
    EXPECT_EQ(convex_groups(graph), 50508);
    const Operator& pool =
        graph.operators[static_cast<size_t>(find(graph, "inception3a_pool_1x1"))];
    ASSERT_EQ(pool.inputs.size(), 1u);
    EXPECT_EQ(pool.inputs[0].reach[MapAxis::y], (Reach{3, 1, 1}));
    EXPECT_EQ(pool.layers.size(), 2u);
    EXPECT_EQ(operator_graph(network, {.pools = false}).size(), 72 + 9);
}

/// Calls `see` with every convex group, once: with the smallest ideal that ends with it.
void for_each_convex_group(const OperatorGraph& graph,
                           const std::function<void(const std::set<int>&)>& see) {
    std::vector<std::vector<int>> needs;
    for (const Operator& op : graph.operators) {
        needs.emplace_back();
        for (const OperatorInput& input : op.inputs) {
            if (input.map < graph.size()) needs.back().push_back(input.map);
        }
    }
    const auto ideals = search::OrderIdeals::of(needs, 10000);
    ASSERT_TRUE(ideals);
    std::vector<int> seen(static_cast<size_t>(ideals->size()), 0);
    std::set<int> group;
    for (int target = 1; target < ideals->size(); ++target) {
        const std::function<void(int)> grow = [&](int rest) {
            for (const auto& step : ideals->steps(rest)) {
                if (seen[static_cast<size_t>(step.ideal)] == target) continue;
                seen[static_cast<size_t>(step.ideal)] = target;
                group.insert(step.vertex);
                const auto& ends = ideals->steps(target);
                if (std::all_of(ends.begin(), ends.end(),
                                [&](const auto& end) { return group.count(end.vertex) > 0; }))
                    see(group);
                grow(step.ideal);
                group.erase(step.vertex);
            }
        };
        grow(target);
    }
}

TEST(OperatorGraph, TheGroupsThatThePaperDoesNotCountInGoogLeNet) {
    const OperatorGraph graph = operator_graph(zoo_network("googlenet"));
    int64_t all = 0;
    int64_t crossed = 0;  // the head of one branch of two operators without its tail, and the tail
                          // of the other without its head
    for_each_convex_group(graph, [&](const std::set<int>& group) {
        ++all;
        for (const char* module : {"3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"}) {
            const auto has = [&](const char* part) {
                return group.count(find(graph, std::string("inception") + module + part)) > 0;
            };
            const bool head3 = has("_3x3_reduce"), tail3 = has("_3x3"), head5 = has("_5x5_reduce"),
                       tail5 = has("_5x5");
            if (head3 != tail3 && head5 != tail5 && head3 != head5) ++crossed;
        }
    });
    EXPECT_EQ(all, 50508);
    EXPECT_EQ(crossed, 9 * 8);
    EXPECT_EQ(all - crossed, 50436);  // Table 5
}

TEST(OperatorGraph, OnlineGroupsOfVgg16AreIntervalsOfFive) {
    int64_t small = 0;
    for_each_convex_group(operator_graph(zoo_network("vgg16")),
                          [&](const std::set<int>& group) { small += group.size() <= 5 ? 1 : 0; });
    EXPECT_EQ(small, 18 + 17 + 16 + 15 + 14);  // Table 5: 80
}

TEST(OperatorGraph, ReadersAndDirectInputs) {
    const OperatorGraph graph = operator_graph(zoo_network("resnet18"));
    const auto pool = static_cast<size_t>(find(graph, "pool1"));
    EXPECT_EQ(graph.maps[pool].readers,
              (std::vector<int>{find(graph, "layer1_0_conv1"), find(graph, "layer1_0_add")}));
    EXPECT_TRUE(
        graph.operators[static_cast<size_t>(find(graph, "layer1_0_add"))].inputs[0].is_direct);
    EXPECT_FALSE(graph.operators[static_cast<size_t>(find(graph, "fc"))]
                     .inputs[0]
                     .is_direct);  // a flatten in between
    EXPECT_EQ(graph.maps.size(), graph.operators.size() + 1);
    EXPECT_EQ(graph.maps.back().channels, 3);
}

TEST(OperatorGraph, NasNetHasTenReadersOfACell) {
    const OperatorGraph graph = operator_graph(zoo_network("nasnet-a"));
    // 12 normal cells of 28 and two 1x1 convolutions, 4 reductions of 29 and two (the first: one);
    // stem, pooling, classes: docs/optimus.md.
    EXPECT_EQ(graph.size(), 12 * (28 + 2) + 4 * (29 + 2) - 1 + 3);
}

}  // namespace
}  // namespace laminate::dag_groups
