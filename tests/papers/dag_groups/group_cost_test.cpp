#include "papers/dag_groups/group_cost.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "nets/zoo/zoo.h"
#include "papers/dag_groups/grouping.h"
#include "tests/papers/dag_groups/random_graph.h"

namespace laminate::dag_groups {
namespace {

/// Two 3x3 convolutions, 3 -> 8 -> 4 channels on 16 x 16.
OperatorGraph two_convolutions() {
    OperatorGraph graph;
    const Reach three{3, 1, 1};
    graph.operators = {{"conv1", {0}, {{2, {three, three}, true}}, 3 * 8 * 9},
                       {"conv2", {1}, {{0, {three, three}, true}}, 8 * 4 * 9}};
    graph.maps = {{8, 16, 16, {1}, false}, {4, 16, 16, {}, true}, {3, 16, 16, {0}, false}};
    return graph;
}

GroupMachine lanes(int64_t width, int64_t channels) {
    GroupMachine machine;
    machine.buffer_bytes = 0;
    machine.lanes_width = width;
    machine.lanes_channels = channels;
    return machine;
}

TEST(GroupCost, BaseMachineOfThePaper) {
    const GroupMachine machine = group_machine(open_machine("optimus_base"));
    EXPECT_EQ(machine.buffer_bytes, 128 * 1024);
    EXPECT_EQ(machine.entry_bytes, 2);
    EXPECT_EQ(machine.lanes_width, 16);
    EXPECT_EQ(machine.lanes_channels, 16);
    EXPECT_EQ(machine.lanes_height, 1);
    EXPECT_EQ(rules_of(Reading::literal, machine, 4).buffer_entries, 65536);
    EXPECT_EQ(rules_of(Reading::batch_as_tile, machine, 4).buffer_entries, 131072);
    const GroupMachine other = group_machine(open_machine("shidiannao"));
    EXPECT_EQ(other.buffer_bytes, 2 * 64 * 1024);  // inputs and outputs
    EXPECT_EQ(other.weight_buffer_bytes, 128 * 1024);
    Machine narrow = open_machine("optimus_base");
    narrow.bits.weight = 8;
    EXPECT_THROW((void)group_machine(narrow), InputError);
}

TEST(GroupCost, LiteralTileByHand) {
    const OperatorGraph graph = two_convolutions();
    const GroupMachine machine = lanes(4, 2);
    // Streams at a 1x1 tile: conv2 4 channels, conv1 8 x 3 x 3, input 3 x 5 x 5. conv1 streaming
    // saves (8 - 2) * 9 = 54; its neighbours (4 - 2) * 1 + (3 - 2) * 25 = 27. Full width,
    // unclipped: t_h rows take 4 t_h * 16 + 2 (t_h + 2) * 18 + 3 (t_h + 4) * 20 = 160 t_h + 312.
    GroupRules rules = rules_of(Reading::literal, machine, 4, 160 * 4 + 312);
    const std::vector<int> both{0, 1};
    GroupEvaluator evaluator(graph, machine, rules);
    const auto cost = evaluator.cost(both);
    ASSERT_TRUE(cost);
    EXPECT_EQ(cost->tile_height, 4);
    EXPECT_EQ(cost->buffer_entries, 160 * 4 + 312);
    EXPECT_EQ(cost->passes, 4);
    EXPECT_EQ(cost->entries(),
              4 * (3 + 4) * 256 +
                  4 * (216 + 288));  // maps of four images, weights four times for all of them
    std::map<int, bool> streams;
    for (const auto& stream : evaluator.streams()) streams[stream.map] = stream.streams;
    EXPECT_EQ(streams, (std::map<int, bool>{{0, true}, {1, false}, {2, false}}));
    // One entry less, one row less: tiles of 3 rows, 6 of them.
    rules.buffer_entries -= 1;
    const auto smaller = GroupEvaluator(graph, machine, rules).cost(both);
    EXPECT_EQ(smaller->tile_height, 3);
    EXPECT_EQ(smaller->passes, 6);
    rules.buffer_entries = 160 + 311;
    EXPECT_FALSE(GroupEvaluator(graph, machine, rules).cost(both));
}

TEST(GroupCost, WeightsThatFitStay) {
    const OperatorGraph graph = two_convolutions();
    const GroupMachine machine = lanes(4, 2);
    // The least tile, one row of 4: 4 * 4 + 2 * 3 * 6 + 3 * 5 * 8 = 172 entries, with the weights
    // 172 + 504.
    const std::vector<int> both{0, 1};
    const auto stays =
        GroupEvaluator(graph, machine, rules_of(Reading::refined, machine, 4, 172 + 504))
            .cost(both);
    EXPECT_EQ(stays->passes, 1);
    EXPECT_EQ(stays->buffer_entries, 172);
    const auto refilled =
        GroupEvaluator(graph, machine, rules_of(Reading::refined, machine, 4, 172 + 503))
            .cost(both);
    EXPECT_GT(refilled->passes, 1);
}

TEST(GroupCost, ImagesShareTheBufferOrTheWeightsPassAgain) {
    const OperatorGraph graph = two_convolutions();
    const GroupMachine machine = lanes(4, 2);
    // The whole image: 4 * 256 + 2 * 256 + 3 * 256 = 2304 entries, clipped at the borders.
    const std::vector<int> both{0, 1};
    GroupRules rules = rules_of(Reading::batch_as_tile, machine, 4, 2 * 2304);
    rules.weights_may_stay = false;
    const auto two = GroupEvaluator(graph, machine, rules).cost(both);
    EXPECT_EQ(two->passes, 2);
    EXPECT_EQ(two->tile_images, 2);
    EXPECT_EQ(two->buffer_entries, 2 * 2304);
    rules.buffer_entries = 4 * 2304;
    EXPECT_EQ(GroupEvaluator(graph, machine, rules).cost(both)->passes, 1);
}

/// The largest saving over all sets of maps, by trying them all.
int64_t best_saving(const std::vector<std::pair<int, int>>& edges,
                    const std::vector<int64_t>& saving) {
    int64_t best = 0;
    for (uint32_t set = 0; set < 1u << saving.size(); ++set) {
        bool is_allowed = true;
        for (const auto& [a, b] : edges)
            is_allowed = is_allowed && ((set >> a & 1) == 0 || (set >> b & 1) == 0);
        int64_t sum = 0;
        for (size_t n = 0; n < saving.size(); ++n) sum += (set >> n & 1) != 0 ? saving[n] : 0;
        if (is_allowed) best = std::max(best, sum);
    }
    return best;
}

TEST(GroupCost, ExactStreamsSaveMost) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const OperatorGraph graph = random_graph(seed, 9);
        const GroupMachine machine = lanes(1, 4);
        // Every set of neighbouring operators that a walk finds; extents at a 1x1 tile again, by
        // recursion.
        std::vector<int> group;
        for (int op = 0; op < 9; ++op) {
            if ((seed >> (op % 7) & 1) == 0) group.push_back(op);
        }
        if (group.empty()) continue;
        GroupRules rules = rules_of(Reading::refined, machine, 1, int64_t{1} << 40);
        GroupEvaluator evaluator(graph, machine, rules);
        ASSERT_TRUE(evaluator.cost(group));
        std::map<int, PerAxis<int64_t>> extent;
        std::vector<std::pair<int, int>> edges;
        const auto has = [&](int op) {
            return std::find(group.begin(), group.end(), op) != group.end();
        };
        for (int map = 9; map >= 0; --map) {  // 9 is the network's input, read by any
            const Map& m = graph.maps[static_cast<size_t>(map)];
            bool is_read = false;
            PerAxis<int64_t> needed{0, 0};
            if (map == 9) continue;
            for (const int reader : m.readers) {
                if (!has(reader)) continue;
                is_read = true;
                edges.emplace_back(map, reader);
                for (const OperatorInput& input :
                     graph.operators[static_cast<size_t>(reader)].inputs) {
                    if (input.map != map) continue;
                    for (const MapAxis axis : map_axes)
                        needed[axis] =
                            std::max(needed[axis],
                                     std::min(m.size()[axis],
                                              input.reach[axis].inputs(extent.at(reader)[axis])));
                }
            }
            if (is_read)
                extent[map] = needed;
            else if (has(map))
                extent[map] = {1, 1};
        }
        {
            PerAxis<int64_t> needed{0, 0};
            const Map& m = graph.maps[9];
            for (const int reader : m.readers) {
                if (!has(reader)) continue;
                edges.emplace_back(9, reader);
                for (const MapAxis axis : map_axes) {
                    const Operator& o = graph.operators[static_cast<size_t>(reader)];
                    needed[axis] =
                        std::max(needed[axis],
                                 std::min(m.size()[axis],
                                          o.inputs[0].reach[axis].inputs(extent.at(reader)[axis])));
                }
            }
            if (needed[MapAxis::y] > 0) extent[9] = needed;
        }
        std::vector<int64_t> saving(10, 0);
        for (const auto& [map, e] : extent) {
            const int64_t channels = graph.maps[static_cast<size_t>(map)].channels;
            saving[static_cast<size_t>(map)] =
                (channels - std::min<int64_t>(4, channels)) * e[MapAxis::y] * e[MapAxis::x];
        }
        int64_t found = 0;
        std::map<int, bool> streams;
        for (const auto& stream : evaluator.streams()) {
            streams[stream.map] = stream.streams;
            found += stream.streams ? saving[static_cast<size_t>(stream.map)] : 0;
        }
        for (const auto& [a, b] : edges) EXPECT_FALSE(streams[a] && streams[b]) << seed;
        EXPECT_EQ(found, best_saving(edges, saving)) << seed;
    }
}

TEST(GroupCost, LargerTilesThatFitNeverMeanMorePasses) {
    // The passes found are the fewest of all tiles: rows, columns, images.
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        const OperatorGraph graph = random_graph(seed, 3);
        GroupMachine machine = lanes(2, 4);
        GroupRules rules =
            rules_of(Reading::batch_as_tile, machine, 3, 1500 + 100 * static_cast<int64_t>(seed));
        rules.weights_may_stay = false;
        GroupEvaluator evaluator(graph, machine, rules);
        const std::vector<int> one{2};
        const auto cost = evaluator.cost(one);
        if (!cost || cost->weight_entries == 0) continue;
        std::map<int, bool> streams;
        for (const auto& stream : evaluator.streams()) streams[stream.map] = stream.streams;
        const Map& out = graph.maps[2];
        int64_t best = INT64_MAX;
        for (int64_t h = 1; h <= out.height; ++h) {
            for (int64_t w = std::min<int64_t>(2, out.width); w <= out.width; ++w) {
                for (int64_t images = 1; images <= 3; ++images) {
                    const auto held = [&](int map) {
                        const int64_t channels = graph.maps[static_cast<size_t>(map)].channels;
                        return streams.at(map) ? std::min<int64_t>(4, channels) : channels;
                    };
                    int64_t entries = held(2) * h * w;
                    for (const OperatorInput& input : graph.operators[2].inputs) {
                        const Map& m = graph.maps[static_cast<size_t>(input.map)];
                        entries += held(input.map) *
                                   std::min(m.height, input.reach[MapAxis::y].inputs(h)) *
                                   std::min(m.width, input.reach[MapAxis::x].inputs(w));
                    }
                    if (entries * images > rules.buffer_entries) continue;
                    best = std::min(best, ((out.height + h - 1) / h) * ((out.width + w - 1) / w) *
                                              ((3 + images - 1) / images));
                }
            }
        }
        EXPECT_EQ(cost->passes, best) << seed;
    }
}

}  // namespace
}  // namespace laminate::dag_groups
