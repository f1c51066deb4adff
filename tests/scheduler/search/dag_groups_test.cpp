#include "scheduler/search/dag_groups.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "nets/random_network.h"
#include "nets/zoo.h"
#include "scheduler/models/two_level/two_level.h"
#include "tests/scheduler/chain.h"

namespace laminate {
namespace {

std::vector<LayerId> schedulable_layers(const Network& network) {
    std::vector<LayerId> layers;
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) {
        if (is_schedulable(network, id)) layers.push_back(id);
    }
    return layers;
}

/// By definition: one sink, every other layer's readers are inside, and its tensor is no network output.
bool is_group(const Network& network, const std::set<LayerId>& layers, LayerId sink) {
    for (const LayerId id : layers) {
        if (id == sink) continue;
        const TensorId out = network.layer(id).output;
        if (network.is_output(out)) return false;
        const std::vector<LayerId> readers = network.consumers(out);
        if (readers.empty()) return false;
        for (const LayerId reader : readers) {
            if (layers.count(reader) == 0) return false;
        }
    }
    return true;
}

TEST(GroupsEndingAt, AreAllSetsThatTheDefinitionAllows) {
    int forks = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        const Network network = random_network(seed);
        const std::vector<LayerId> layers = schedulable_layers(network);
        if (layers.size() > 9) continue;
        for (const LayerId sink : layers) {
            std::set<std::vector<LayerId>> expected;
            for (size_t subset = 0; subset < (size_t{1} << layers.size()); ++subset) {
                std::set<LayerId> members;
                for (size_t n = 0; n < layers.size(); ++n) {
                    if ((subset >> n & 1) != 0) members.insert(layers[n]);
                }
                if (members.count(sink) == 0 || *members.rbegin() != sink || members.size() > 4) continue;
                if (is_group(network, members, sink)) expected.insert({members.begin(), members.end()});
            }
            const std::vector<std::vector<LayerId>> found = groups_ending_at(network, sink, 4);
            EXPECT_EQ(std::set<std::vector<LayerId>>(found.begin(), found.end()), expected) << seed;
            for (const std::vector<LayerId>& group : found) {
                std::map<TensorId, int> readers;
                for (const LayerId id : group) {
                    for (const TensorId t : network.layer(id).inputs) forks += ++readers[t] == 2 ? 1 : 0;
                }
            }
        }
    }
    EXPECT_GT(forks, 10);  // the sample holds groups with shared tensors
}

using Traffic = std::pair<int64_t, int64_t>;   ///< accesses, MACs: in lexicographic order
using Front2 = std::map<int64_t, Traffic>;  ///< by memory

void offer(Front2& front, int64_t memory, Traffic traffic) {
    for (const auto& [m, t] : front) {
        if (m <= memory && t <= traffic) return;
    }
    std::erase_if(front, [&](const auto& p) { return p.first >= memory && p.second >= traffic; });
    front[memory] = traffic;
}

/// All exact covers, one by one, without remembering anything.
Front2 brute_force(const Network& network, const ExploreOptions& options) {
    const std::vector<LayerId> layers = schedulable_layers(network);
    std::map<std::vector<LayerId>, std::vector<GroupPoint>> fronts;
    Front2 result;
    const std::function<void(std::set<LayerId>, const Front2&)> cover = [&](const std::set<LayerId>& open, const Front2& so_far) {
        if (open.empty()) {
            for (const auto& [m, t] : so_far) offer(result, m, t);
            return;
        }
        for (const std::vector<LayerId>& group : groups_ending_at(network, *open.rbegin(), *options.max_depth)) {
            std::set<LayerId> rest = open;
            for (const LayerId id : group) rest.erase(id);
            if (rest.size() + group.size() != open.size()) continue;
            auto known = fronts.find(group);
            if (known == fronts.end()) known = fronts.emplace(group, dag_group_front(network, group, options)).first;
            Front2 next;
            for (const auto& [m, t] : so_far) {
                for (const GroupPoint& p : known->second)
                    offer(next, std::max(m, p.live_total.value()), {t.first + p.accesses.value(), t.second + p.macs.value()});
            }
            cover(rest, next);
        }
    };
    cover({layers.begin(), layers.end()}, {{0, {0, 0}}});
    return result;
}

TEST(ExploreDag, FrontIsThatOfAllExactCovers) {
    ExploreOptions options;
    options.max_depth = 4;
    options.space = Space::dag;
    int tested = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
        const Network network = random_network(seed);
        const size_t count = schedulable_layers(network).size();
        if (count == 0 || count > 8) continue;
        ++tested;
        options.tiles = seed % 2 == 0 ? TileSizes::divisors : TileSizes::all;
        Front2 found;
        for (const FrontPoint& point : explore_dag(network, options).points) {
            found[point.counts.live_total.value()] = {point.counts.accesses.value(), point.counts.macs.value()};
        }
        EXPECT_EQ(found, brute_force(network, options)) << seed;
    }
    EXPECT_GT(tested, 20);
}

/// Forks and joins too; line buffers in strips are among them.
TEST(FamilyFront, IsLegalAndCountedAsTheModelDoes) {
    ExploreOptions options;
    options.tiles = TileSizes::powers_of_two;
    int64_t in_strips = 0;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        const Network network = random_network(seed);
        for (const LayerId sink : schedulable_layers(network)) {
            const std::vector<LayerId> layers = groups_ending_at(network, sink, 5).back();
            if (layers.size() == 1) continue;
            const std::vector<LayerProblem> problems = layer_problems(network, layers);
            for (const GroupPoint& point : family_front(problems, options, TileSizes::all)) {
                check_group(network, point.group);
                const GroupCounts counts = two_level_counts(problems, point.group);
                EXPECT_EQ(counts.accesses(), point.accesses) << to_text(point.group);
                EXPECT_EQ(counts.live_total, point.live_total) << to_text(point.group);
                EXPECT_EQ(counts.macs(), point.macs) << to_text(point.group);
                const Level store = point.group.nests.front().y.store;
                in_strips += point.group.nests.back().strip[1] > 0 && !store.is_root() ? 1 : 0;
            }
        }
    }
    EXPECT_GT(in_strips, 0);
}

TEST(ExploreDag, EveryLayerIsCountedAndThreadsDoNotMatter) {
    ExploreOptions options;
    options.max_depth = 3;
    const Network network = zoo_network("resnet18");
    const Front one = explore_dag(network, options);
    options.threads = 2;
    const Front two = explore_dag(network, options);
    ASSERT_EQ(one.points.size(), two.points.size());
    for (size_t n = 0; n < one.points.size(); ++n) EXPECT_EQ(one.points[n].schedule, two.points[n].schedule);
    size_t layers = 0;
    bool fuses_an_add = false;
    for (const GroupSchedule& group : one.points.front().schedule.groups()) {
        layers += group.nests.size();
        const LayerId sink = network.find_layer(group.nests.back().layer);
        fuses_an_add = fuses_an_add || (group.nests.size() > 1 && network.layer(sink).kind == LayerKind::add);
    }
    EXPECT_EQ(layers, schedulable_layers(network).size());
    EXPECT_TRUE(fuses_an_add);
}

}  // namespace
}  // namespace laminate
