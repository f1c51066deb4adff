#include "papers/dag_groups/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "base/error.h"
#include "nets/zoo/zoo.h"
#include "papers/dag_groups/bound_by_parts.h"
#include "tests/papers/dag_groups/random_graph.h"

namespace laminate::dag_groups {
namespace {

const GroupMachine& base() {
    static const GroupMachine machine = group_machine(open_machine("optimus_base"));
    return machine;
}

Grouping grouping(const OperatorGraph& graph, Reading reading, bool online = false) {
    return best_grouping(graph, base(), {.reading = reading, .online = online});
}

/// Percent of the traffic of every operator alone that grouping saves, to one digit.
double saving(const OperatorGraph& graph, Reading reading) {
    const auto alone =
        static_cast<double>(single_operators(graph, base(), {.reading = reading}).value().entries);
    return std::round(1000 * (1 - static_cast<double>(grouping(graph, reading).entries) / alone)) /
           10;
}

bool quotient_is_acyclic(const OperatorGraph& graph, const std::vector<int>& group_of, int groups) {
    std::vector<std::set<int>> needs(static_cast<size_t>(groups));
    for (int op = 0; op < graph.size(); ++op) {
        for (const OperatorInput& input : graph.operators[static_cast<size_t>(op)].inputs) {
            if (input.map >= graph.size()) continue;
            const int from = group_of[static_cast<size_t>(input.map)];
            const int to = group_of[static_cast<size_t>(op)];
            if (from != to) needs[static_cast<size_t>(to)].insert(from);
        }
    }
    std::vector<bool> done(static_cast<size_t>(groups), false);
    for (int round = 0; round < groups; ++round) {
        for (size_t g = 0; g < needs.size(); ++g)
            done[g] = done[g] || std::all_of(needs[g].begin(), needs[g].end(),
                                             [&](int n) { return done[static_cast<size_t>(n)]; });
    }
    return std::all_of(done.begin(), done.end(), [](bool d) { return d; });
}

/// The least cost over all set partitions whose quotient has no cycle, costed one by one.
int64_t brute_force(const OperatorGraph& graph, const GroupMachine& machine,
                    const GroupingOptions& options,
                    const std::function<bool(const std::vector<int>&)>& is_allowed) {
    GroupEvaluator evaluator(
        graph, machine, rules_of(options.reading, machine, options.images, options.buffer_entries));
    std::vector<int64_t> cost(size_t{1} << graph.size(),
                              -1);  // by set; -1 not known, INT64_MAX refused
    const auto cost_of = [&](uint32_t set) {
        int64_t& known = cost[set];
        if (known < 0) {
            std::vector<int> group;
            for (int op = 0; op < graph.size(); ++op) {
                if ((set >> op & 1) != 0) group.push_back(op);
            }
            const auto found = is_allowed(group) ? evaluator.cost(group) : std::nullopt;
            known = found ? found->entries() : INT64_MAX;
        }
        return known;
    };
    int64_t best = INT64_MAX;
    std::vector<int> group_of(static_cast<size_t>(graph.size()), 0);
    std::vector<uint32_t> sets;
    const std::function<void(int)> place = [&](int op) {
        if (op == graph.size()) {
            int64_t sum = 0;
            for (const uint32_t set : sets) {
                if (cost_of(set) == INT64_MAX) return;
                sum += cost_of(set);
            }
            if (sum < best && quotient_is_acyclic(graph, group_of, static_cast<int>(sets.size())))
                best = sum;
            return;
        }
        for (size_t g = 0; g <= sets.size(); ++g) {
            if (g == sets.size()) sets.push_back(0);
            const bool is_new = sets[g] == 0;
            sets[g] |= 1u << op;
            group_of[static_cast<size_t>(op)] = static_cast<int>(g);
            place(op + 1);
            sets[g] &= ~(1u << op);
            if (is_new) {
                sets.pop_back();
                break;
            }
        }
    };
    place(0);
    return best;
}

GroupMachine small_machine() {
    GroupMachine machine;
    machine.lanes_width = 2;
    machine.lanes_channels = 4;
    return machine;
}

bool any_group(const std::vector<int>& /*group*/) { return true; }

void expect_equal_to_brute_force(uint64_t first, uint64_t last, int size,
                                 const GroupingOptions& base_options,
                                 const std::function<std::function<bool(const std::vector<int>&)>(
                                     const OperatorGraph&, const GroupingOptions&)>& allowed) {
    int answers = 0;
    int grouped = 0;
    for (uint64_t seed = first; seed <= last; ++seed) {
        const OperatorGraph graph =
            random_graph(seed, size > 0 ? size : 2 + static_cast<int>(seed % 7));
        for (const Reading reading : {Reading::literal, Reading::refined, Reading::batch_as_tile}) {
            GroupingOptions options = base_options;
            options.reading = reading;
            options.buffer_entries = 3000 + static_cast<int64_t>(seed * 997 % 12000);
            const int64_t best =
                brute_force(graph, small_machine(), options, allowed(graph, options));
            if (best == INT64_MAX) {
                EXPECT_THROW((void)best_grouping(graph, small_machine(), options), InputError);
                continue;
            }
            const Grouping found = best_grouping(graph, small_machine(), options);
            EXPECT_EQ(found.entries, best)
                << "seed " << seed << ", reading " << static_cast<int>(reading);
            EXPECT_TRUE(found.is_exact);
            ++answers;
            grouped += static_cast<int>(found.groups.size()) < graph.size() ? 1 : 0;
        }
    }
    // Neither everything alone nor nothing fits.
    EXPECT_GT(answers, static_cast<int>(last - first));
    EXPECT_GT(grouped, answers / 3);
}

TEST(Grouping, EqualsBruteForceOverAllAcyclicPartitions) {
    expect_equal_to_brute_force(
        1, 300, 0, {}, [](const OperatorGraph&, const GroupingOptions&) { return any_group; });
}

/// Every DAG of `size` operators whose numbers follow its edges, each with sizes of its own.
/// Returns how many had an answer.
int expect_equal_to_brute_force_on_every_dag(int size) {
    int answers = 0;
    const int edges = size * (size - 1) / 2;
    for (uint64_t dag = 0; dag < uint64_t{1} << edges; ++dag) {
        const OperatorGraph graph = random_graph(dag, size, [&](int from, int to) {
            return (dag >> (to * (to - 1) / 2 + from) & 1) != 0;
        });
        const GroupingOptions options{
            .reading = static_cast<Reading>(dag % 3),
            .buffer_entries = 2000 + static_cast<int64_t>(dag * 997 % 9000)};
        const int64_t best = brute_force(graph, small_machine(), options, any_group);
        if (best == INT64_MAX) continue;
        EXPECT_EQ(best_grouping(graph, small_machine(), options).entries, best)
            << "DAG " << dag << " of " << size;
        ++answers;
    }
    return answers;
}

TEST(Grouping, EqualsBruteForceOnEveryDagOfFiveOperators) {
    for (int size = 1; size <= 4; ++size) expect_equal_to_brute_force_on_every_dag(size);
    EXPECT_GT(expect_equal_to_brute_force_on_every_dag(5), 512);
}

/// In a group other maps stream than alone, so that what is too large alone may fit there.
TEST(Grouping, OperatorsTooLargeAloneMayFitInGroups) {
    int found = 0;
    for (uint64_t dag = 0; dag < uint64_t{1} << 15 && found < 3; ++dag) {
        const OperatorGraph graph = random_graph(
            dag, 6, [&](int from, int to) { return (dag >> (to * (to - 1) / 2 + from) & 1) != 0; });
        const GroupingOptions options{
            .reading = static_cast<Reading>(dag % 3),
            .buffer_entries = 2000 + static_cast<int64_t>(dag * 997 % 9000)};
        GroupEvaluator evaluator(
            graph, small_machine(),
            rules_of(options.reading, small_machine(), options.images, options.buffer_entries));
        bool all_fit = true;
        for (int op = 0; op < graph.size(); ++op)
            all_fit = all_fit && evaluator.cost(std::vector<int>{op});
        if (all_fit) continue;
        const int64_t best = brute_force(graph, small_machine(), options, any_group);
        if (best == INT64_MAX) continue;
        EXPECT_EQ(best_grouping(graph, small_machine(), options).entries, best) << "DAG " << dag;
        EXPECT_FALSE(single_operators(graph, small_machine(), options)) << "DAG " << dag;
        ++found;
    }
    EXPECT_GT(found, 0);
}

TEST(Grouping, LeastBufferIsTheSmallestWithAGrouping) {
    int smaller_than_alone = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        const OperatorGraph graph = random_graph(seed, 2 + static_cast<int>(seed % 5));
        for (const Reading reading : {Reading::literal, Reading::refined, Reading::batch_as_tile}) {
            GroupingOptions options{.reading = reading};
            const int64_t least = least_buffer_entries(graph, small_machine(), options);
            for (const bool is_enough : {true, false}) {
                options.buffer_entries = is_enough ? least : least - 1;
                const int64_t best = brute_force(graph, small_machine(), options, any_group);
                EXPECT_EQ(best != INT64_MAX, is_enough) << "seed " << seed;
                if (!is_enough)
                    EXPECT_THROW((void)best_grouping(graph, small_machine(), options), NoGrouping)
                        << "seed " << seed;
                else if (!single_operators(graph, small_machine(), options))
                    ++smaller_than_alone;
            }
        }
    }
    EXPECT_GT(smaller_than_alone, 0);
}

TEST(GroupingLong, EqualsBruteForceOnEveryDagOfSixOperators) {
    EXPECT_GT(expect_equal_to_brute_force_on_every_dag(6), 16384);
}

TEST(Grouping, BoundOfPartsIsBelowTheLeast) {
    int bound_above_compulsory = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const OperatorGraph graph = random_graph(seed, 4 + static_cast<int>(seed % 9));
        for (const Reading reading : {Reading::literal, Reading::refined, Reading::batch_as_tile}) {
            const GroupingOptions options{
                .reading = reading,
                .buffer_entries = 6000 + static_cast<int64_t>(seed * 997 % 12000)};
            const GroupRules rules =
                rules_of(reading, small_machine(), options.images, options.buffer_entries);
            int64_t least = 0;
            try {
                least = best_grouping(graph, small_machine(), options).entries;
            } catch (const InputError&) {
                continue;  // an operator does not fit
            }
            int64_t before = 0;
            for (const int longest : {1, 3, 20}) {
                const int64_t bound =
                    bound_by_parts(graph, small_machine(), rules, {.longest = longest});
                EXPECT_LE(bound, least) << "seed " << seed << ", parts of " << longest;
                EXPECT_GE(bound, before) << "seed " << seed;
                if (before > 0 && bound > before) ++bound_above_compulsory;
                before = bound;
            }
        }
    }
    EXPECT_GT(bound_above_compulsory, 100);
}

TEST(GroupingLong, EqualsBruteForceOnTenOperators) {
    expect_equal_to_brute_force(
        1000, 1200, 10, {}, [](const OperatorGraph&, const GroupingOptions&) { return any_group; });
}

TEST(Grouping, OneSinkEqualsBruteForceOverSuchGroups) {
    expect_equal_to_brute_force(
        1, 100, 0, {.one_sink = true}, [](const OperatorGraph& graph, const GroupingOptions&) {
            return [&graph](const std::vector<int>& group) {
                int sinks = 0;
                for (const int op : group) {
                    const Map& map = graph.maps[static_cast<size_t>(op)];
                    const auto inside =
                        std::count_if(map.readers.begin(), map.readers.end(), [&](int r) {
                            return std::find(group.begin(), group.end(), r) != group.end();
                        });
                    const bool leaves = map.is_output || map.readers.empty() ||
                                        inside < static_cast<int64_t>(map.readers.size());
                    if (leaves && inside > 0) return false;
                    sinks += leaves ? 1 : 0;
                }
                return sinks == 1;
            };
        });
}

TEST(Grouping, OnlineRulesEqualBruteForceUnderThem) {
    expect_equal_to_brute_force(
        1, 100, 0, {.online = true},
        [](const OperatorGraph& graph, const GroupingOptions& options) {
            const std::vector<int64_t> table = quarter_tile_table(graph, small_machine(), options);
            const auto longest =
                static_cast<size_t>(std::count_if(table.begin(), table.end(), [&](int64_t entries) {
                    return entries <= options.buffer_entries;
                }));
            return [&graph, longest](const std::vector<int>& group) {
                if (group.size() > std::max<size_t>(1, longest)) return false;
                const auto has = [&](int op) {
                    return std::find(group.begin(), group.end(), op) != group.end();
                };
                for (const int op : group) {
                    const Map& map = graph.maps[static_cast<size_t>(op)];
                    const auto inside = std::count_if(map.readers.begin(), map.readers.end(), has);
                    if (inside > 0 && inside < static_cast<int64_t>(map.readers.size()))
                        return false;
                    bool has_company = inside > 0 || group.size() == 1;
                    for (const OperatorInput& input :
                         graph.operators[static_cast<size_t>(op)].inputs) {
                        const std::vector<int>& readers =
                            graph.maps[static_cast<size_t>(input.map)].readers;
                        has_company = has_company || has(input.map) ||
                                      std::count_if(readers.begin(), readers.end(), has) > 1;
                    }
                    if (!has_company) return false;
                }
                return true;
            };
        });
}

TEST(Grouping, ConvexGroupsThatNeedEachOtherAreNoGrouping) {
    // a -> c, a -> d, b -> c, b -> d: {a, d} and {b, c} are convex, yet each needs the other
    // (docs/optimus.md). Big maps between, so that these two groups would be worth it; all four
    // together do not fit.
    OperatorGraph graph;
    const Reach one{1, 1, 1};
    const PerAxis<Reach> both{one, one};
    graph.operators = {{"a", {0}, {{4, both, true}}, 10},
                       {"b", {1}, {{4, both, true}}, 10},
                       {"c", {2}, {{0, both, true}, {1, both, true}}, 10},
                       {"d", {3}, {{0, both, true}, {1, both, true}}, 10}};
    graph.maps = {{8, 8, 8, {2, 3}, false},
                  {8, 8, 8, {2, 3}, false},
                  {1, 8, 8, {}, true},
                  {1, 8, 8, {}, true},
                  {1, 8, 8, {0, 1}, false}};
    const Grouping found =
        best_grouping(graph, small_machine(), {.reading = Reading::refined, .buffer_entries = 200});
    std::vector<int> group_of(4);
    for (size_t g = 0; g < found.groups.size(); ++g) {
        for (const int op : found.groups[g].operators)
            group_of[static_cast<size_t>(op)] = static_cast<int>(g);
    }
    EXPECT_TRUE(quotient_is_acyclic(graph, group_of, static_cast<int>(found.groups.size())));
    EXPECT_FALSE(quotient_is_acyclic(graph, {0, 1, 1, 0}, 2));
}

// Numbers of groups and percent saved: docs/optimus.md, whose table was measured with another code
// of the same model.
TEST(Grouping, Vgg16UnderEveryReading) {
    const OperatorGraph graph = operator_graph(zoo_network("vgg16"));
    EXPECT_EQ(grouping(graph, Reading::literal).groups.size(), 12u);  // paper: 8
    EXPECT_EQ(grouping(graph, Reading::refined).groups.size(), 10u);
    const Grouping q = grouping(graph, Reading::batch_as_tile);
    EXPECT_EQ(q.groups.size(), 10u);
    EXPECT_EQ(q.ideals, 19);
    EXPECT_EQ(saving(graph, Reading::literal),
              33.8);  // paper: 27.4 to 52.5 on three accelerators, each against its own baseline
    EXPECT_EQ(saving(graph, Reading::refined), 40.2);
    EXPECT_EQ(saving(graph, Reading::batch_as_tile), 26.9);
}

TEST(Grouping, SqueezeNetUnderEveryReading) {
    const OperatorGraph graph = operator_graph(zoo_network("squeezenet"));
    EXPECT_EQ(grouping(graph, Reading::literal).groups.size(), 10u);
    EXPECT_EQ(grouping(graph, Reading::refined).groups.size(), 9u);
    const Grouping q = grouping(graph, Reading::batch_as_tile);
    EXPECT_EQ(q.groups.size(), 8u);  // paper: 8
    EXPECT_EQ(q.ideals, 47);
    EXPECT_EQ(saving(graph, Reading::literal), 81.7);  // paper: 84.3 to 87.6
    EXPECT_EQ(saving(graph, Reading::refined), 83.0);
    EXPECT_EQ(saving(graph, Reading::batch_as_tile), 87.9);
    const OperatorGraph other = operator_graph(zoo_network("squeezenet-1.1"));
    EXPECT_EQ(grouping(other, Reading::literal).groups.size(), 10u);
    EXPECT_EQ(grouping(other, Reading::refined).groups.size(), 9u);
    EXPECT_EQ(grouping(other, Reading::batch_as_tile).groups.size(), 8u);
}

TEST(Grouping, ResNet50UnderEveryReading) {
    const Network network = zoo_network("resnet50");
    const OperatorGraph apart = operator_graph(network);
    EXPECT_EQ(grouping(apart, Reading::literal).groups.size(), 35u);
    EXPECT_EQ(grouping(apart, Reading::refined).groups.size(), 31u);  // paper: 31
    const Grouping q = grouping(apart, Reading::batch_as_tile);
    EXPECT_EQ(q.groups.size(), 36u);
    EXPECT_EQ(q.ideals, 85);
    EXPECT_EQ(saving(apart, Reading::literal), 35.3);  // paper: 33.8 to 35.1
    const OperatorGraph merged = operator_graph(network, {.adds = true});
    EXPECT_EQ(grouping(merged, Reading::literal).groups.size(), 37u);
    EXPECT_EQ(grouping(merged, Reading::refined).groups.size(), 31u);
    EXPECT_EQ(grouping(merged, Reading::batch_as_tile).groups.size(), 31u);
    EXPECT_EQ(saving(merged, Reading::batch_as_tile), 28.8);
    EXPECT_EQ(saving(operator_graph(zoo_network("resnet50-keras")), Reading::batch_as_tile), 36.9);
}

TEST(Grouping, ResNet152UnderEveryReading) {
    const Network network = zoo_network("resnet152");
    const OperatorGraph apart = operator_graph(network);
    EXPECT_EQ(grouping(apart, Reading::literal).groups.size(), 103u);
    EXPECT_EQ(grouping(apart, Reading::refined).groups.size(), 99u);  // paper: 99
    const Grouping q = grouping(apart, Reading::batch_as_tile);
    EXPECT_EQ(q.groups.size(), 104u);
    EXPECT_EQ(q.ideals, 221);
    EXPECT_EQ(saving(apart, Reading::literal), 23.4);  // paper: 23.8 to 25.3
    const OperatorGraph merged = operator_graph(network, {.adds = true});
    EXPECT_EQ(grouping(merged, Reading::literal).groups.size(), 135u);
    EXPECT_EQ(grouping(merged, Reading::refined).groups.size(), 99u);
    EXPECT_EQ(grouping(merged, Reading::batch_as_tile).groups.size(), 99u);
    EXPECT_EQ(saving(merged, Reading::batch_as_tile), 16.4);
}

TEST(Grouping, GoogLeNetUnderEveryReading) {
    const OperatorGraph graph = operator_graph(zoo_network("googlenet"));
    EXPECT_EQ(grouping(graph, Reading::literal).groups.size(), 18u);  // paper: 21
    EXPECT_EQ(grouping(graph, Reading::refined).groups.size(), 18u);
    const Grouping q = grouping(graph, Reading::batch_as_tile);
    EXPECT_EQ(q.groups.size(), 26u);
    EXPECT_EQ(q.ideals, 334);
    EXPECT_EQ(saving(graph, Reading::literal), 53.5);  // paper: 47.3 to 49.6
    EXPECT_EQ(saving(graph, Reading::refined), 55.0);
    EXPECT_EQ(saving(graph, Reading::batch_as_tile), 52.5);
}

TEST(Grouping, ResNet1202IsCutExactly) {
    const OperatorGraph graph = operator_graph(zoo_network("resnet1202"), {.adds = true});
    const Grouping q = grouping(graph, Reading::batch_as_tile);
    EXPECT_TRUE(q.is_exact);
    EXPECT_EQ(q.groups.size(), 124u);
    EXPECT_LT(q.groups_costed, 200);  // 400 blocks, three families
}

TEST(Grouping, OnlineLimitIsThatOfTheTable) {
    // optimus-model section 6: 2304, 8832, 21760, 43200, 79360, 229120 entries. The first: pool5,
    // 512 x 2 x 2 of its output and 16 x 4 x 4 of a streaming input.
    const OperatorGraph graph = operator_graph(zoo_network("vgg16"));
    const GroupingOptions options{.online = true};
    EXPECT_EQ(quarter_tile_table(graph, base(), options),
              (std::vector<int64_t>{2304, 8832, 21760, 43200, 79360, 229120}));
    const Grouping found = best_grouping(graph, base(), options);
    EXPECT_EQ(found.size_limit, 5);  // 18 + 17 + 16 + 15 + 14 = 80 intervals, as in Table 5
    EXPECT_EQ(found.entries, grouping(graph, Reading::batch_as_tile).entries);  // nothing lost
    // Compared with 65536 entries the limit is 4.
    EXPECT_EQ(grouping(graph, Reading::refined, true).size_limit, 4);
}

TEST(Grouping, OnlineIsNeverBetter) {
    for (const char* name : {"squeezenet", "googlenet", "resnet50"}) {
        const OperatorGraph graph = operator_graph(zoo_network(name));
        const int64_t best = grouping(graph, Reading::batch_as_tile).entries;
        const int64_t online = grouping(graph, Reading::batch_as_tile, true).entries;
        EXPECT_GE(online, best) << name;
        EXPECT_LE(static_cast<double>(online), 1.06 * static_cast<double>(best)) << name;
    }
}

TEST(Grouping, WhatIsTooWideIsCutAlongOneOrderAndBounded) {
    const OperatorGraph graph = operator_graph(zoo_network("googlenet"));
    const Grouping found = best_grouping(graph, base(), {.most_ideals = 100});
    EXPECT_FALSE(found.is_exact);
    const int64_t best = grouping(graph, Reading::batch_as_tile).entries;
    EXPECT_GE(found.entries, best);
    EXPECT_LE(found.lower_bound_entries, best);
    EXPECT_GT(found.lower_bound_entries, 0);
    size_t operators = 0;
    for (const Group& group : found.groups) operators += group.operators.size();
    EXPECT_EQ(operators, 72u);
}

TEST(Grouping, TooSmallABufferIsRefusedByName) {
    const OperatorGraph graph = operator_graph(zoo_network("squeezenet"));
    try {
        (void)best_grouping(graph, base(), {.buffer_entries = 100});
        FAIL();
    } catch (const InputError& error) {
        EXPECT_NE(
            std::string(error.what())
                .find("operator conv1: its least tile does not fit in a buffer of 100 entries"),
            std::string::npos)
            << error.what();
    }
}

}  // namespace
}  // namespace laminate::dag_groups
