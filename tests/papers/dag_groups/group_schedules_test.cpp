#include "papers/dag_groups/group_schedules.h"

#include <gtest/gtest.h>

#include <numeric>

#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/dag/dag_groups.h"

namespace laminate::dag_groups {
namespace {

const GroupMachine& base() {
    static const GroupMachine machine = group_machine(open_machine("optimus_base"));
    return machine;
}

TEST(GroupSchedules, OurCostsGiveTheBestCoverOfTheDagSpace) {
    // The same groups with the same schedules, once by ideals and once by the covers of `--space
    // dag`, from the end.
    const Network network = zoo_network("resnet18", {.height = 64, .width = 64});
    const OperatorGraph graph = operator_graph(network);
    for (const int64_t memory : {12000, 40000}) {
        ScheduledGroups schedules(network, graph, Elements(memory), TileSizes::divisors);
        GroupingOptions options{.images = 1, .buffer_entries = memory, .one_sink = true};
        options.other = [&](const std::vector<int>& operators) {
            return schedules.entries(operators, 1);
        };
        options.only_other = true;
        options.other_operators = 4;
        const Grouping found = best_grouping(graph, base(), options);
        ExploreOptions explore;
        explore.space = Space::dag;
        explore.max_depth = 4;
        explore.memory = Elements(memory);
        const Front front = explore_dag(network, explore);
        ASSERT_FALSE(front.points.empty());
        EXPECT_EQ(found.entries, front.points.front().counts.accesses.value()) << memory;
        const NetworkSchedule made = network_schedule(network, graph, found.groups, schedules);
        EXPECT_EQ(made.split, 0);
        const NetworkCounts counts = two_level_counts(network, made.schedule);
        EXPECT_EQ(counts.accesses.value(), found.entries);
        EXPECT_LE(counts.live_total.value(), memory);
    }
}

TEST(GroupSchedules, EitherCostIsNeverWorseThanThePapers) {
    for (const char* name : {"resnet18", "squeezenet-1.1"}) {
        const Network network = zoo_network(name, {.height = 64, .width = 64});
        const OperatorGraph graph = operator_graph(network);
        for (const int64_t images : {1, 4}) {
            GroupingOptions options{.images = images, .buffer_entries = 20000};
            const int64_t paper = best_grouping(graph, base(), options).entries;
            ScheduledGroups schedules(network, graph, Elements(20000));
            options.other = [&](const std::vector<int>& operators) {
                return schedules.entries(operators, images);
            };
            options.other_operators = 4;
            const Grouping either = best_grouping(graph, base(), options);
            EXPECT_LE(either.entries, paper) << name;
            int64_t sum = 0;
            for (const Group& group : either.groups) sum += group.entries;
            EXPECT_EQ(sum, either.entries);
        }
    }
}

TEST(GroupSchedules, WhatLargerGroupsCouldGiveIsBounded) {
    const Network network = zoo_network("squeezenet-1.1", {.height = 48, .width = 48});
    const OperatorGraph graph = operator_graph(network);
    ScheduledGroups schedules(network, graph, Elements(16000), TileSizes::powers_of_two);
    GroupingOptions options{.images = 1, .buffer_entries = 16000, .one_sink = true};
    options.other = [&](const std::vector<int>& operators) {
        return schedules.entries(operators, 1);
    };
    options.other_least = [&](const std::vector<int>& operators) {
        return schedules.least_entries(operators, 1);
    };
    options.only_other = true;
    std::vector<Grouping> found;
    for (const size_t most : {size_t{1}, size_t{2}, size_t{4}}) {
        options.other_operators = most;
        found.push_back(best_grouping(graph, base(), options));
        EXPECT_TRUE(found.back().is_complete);
    }
    // Larger groups help; the bound allowed for that, and it rises with the size that is searched.
    EXPECT_LT(found[2].entries, found[0].entries);
    EXPECT_LT(found[0].lower_bound_entries, found[2].entries);
    EXPECT_FALSE(found[0].is_exact);
    for (size_t n = 1; n < found.size(); ++n) {
        EXPECT_LE(found[n].entries, found[n - 1].entries);
        EXPECT_GE(found[n].lower_bound_entries, found[n - 1].lower_bound_entries);
        EXPECT_LE(found[n].lower_bound_entries, found[n].entries);
    }
    // The whole network in one group moves no less than that.
    std::vector<int> all(static_cast<size_t>(graph.size()));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_LE(found.back().lower_bound_entries,
              schedules.least_entries(all, 1).value_or(found.back().entries));
}

TEST(GroupSchedules, OfAGroupingOfOneSink) {
    const Network network = zoo_network("googlenet", {.height = 32, .width = 32});
    const OperatorGraph graph = operator_graph(network);
    const Grouping found =
        best_grouping(graph, base(), {.buffer_entries = 20000, .one_sink = true});
    ScheduledGroups schedules(network, graph, Elements(20000));
    const NetworkSchedule made = network_schedule(network, graph, found.groups, schedules);
    // Every layer but the softmax and the flatten is in a group: 72 operators, and the pools of 9
    // modules beside their 1x1 convolutions.
    size_t nests = 0;
    for (const GroupSchedule& group : made.schedule.groups()) nests += group.nests.size();
    EXPECT_EQ(nests, 72u + 9u);
    EXPECT_EQ(made.schedule, parse_schedule(network, to_text(made.schedule)));
}

}  // namespace
}  // namespace laminate::dag_groups
