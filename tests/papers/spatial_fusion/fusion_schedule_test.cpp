#include "papers/spatial_fusion/fusion_schedule.h"

#include <gtest/gtest.h>

#include "instrumentation/walker.h"
#include "nets/random/random_network.h"
#include "scheduler/counts/two_level/two_level.h"
#include "tests/papers/spatial_fusion/pixel_walker.h"

namespace laminate::spatial_fusion {
namespace {

TEST(FusionSchedule, TheWalkOfTheTileClassesAsText) {
    const Network network =
        chain(1, 12, 12, {{2, square_window(3, 1, 1)}, {2, square_window(3, 1, 1)}});
    PlannedStack stack;
    stack.layers = {0, 1};
    stack.keeps_halos = true;
    stack.tile = {4, 3, 2, 1};
    const GroupSchedule group = fusion_group(network, stack);
    EXPECT_EQ(to_text(group),
              "{conv1: yo xo zo io | zi yi xi ii n m; tile z2 y12 x12 i1; X root/conv2.xo; W "
              "root/root; Y root/conv2.xo & "
              "conv2: yo xo zo io | zi yi xi ii n m; tile z2 y3 x4 i2; W root/root; Y zo/zo}");
    const GroupCounts counts = two_level_counts(network, group);
    // Every pixel once: 12 x 12 inputs, 9 x 2 + 9 x 4 weights, 12 x 12 x 2 outputs; each
    // intermediate computed once.
    EXPECT_EQ(counts.accesses(), Elements(144 + 18 + 36 + 288));
    EXPECT_EQ(counts.macs(), Macs(144 * 2 * 9 + 144 * 2 * 2 * 9));
    EXPECT_EQ(difference(counts, "model", walk(network, group), "walker"), "");
}

/// The closed form and the walker count the plan's volumes and operations.
void expect_plan_is_counted(const Network& network, const FusionOptions& options, int n) {
    const auto found = plan_fusion(network, options);
    const auto* plan = std::get_if<FusionPlan>(&found);
    if (plan == nullptr) return;
    const Schedule schedule = fusion_schedule(network, *plan);
    ASSERT_EQ(schedule.groups().size(), plan->stacks.size());
    for (size_t g = 0; g < plan->stacks.size(); ++g) {
        const PlannedStack& stack = plan->stacks[g];
        const GroupCounts counts = two_level_counts(network, schedule.groups()[g]);
        EXPECT_EQ(counts.accesses(), Elements(stack.volume))
            << n << ": " << to_text(schedule.groups()[g]);
        int64_t pool_operations = 0;  // counted as no MACs there
        Macs macs;
        for (const LayerCounts& layer : counts.layers) macs += layer.macs;
        for (const LayerId id : stack.layers)
            if (!layer_problem(network, id).has_weights()) pool_operations = stack.operations;
        if (pool_operations == 0) {
            EXPECT_EQ(macs, Macs(stack.operations)) << n << ": " << to_text(schedule.groups()[g]);
        }
        EXPECT_EQ(difference(counts, "model", walk(network, schedule.groups()[g]), "walker"), "")
            << n;
    }
}

TEST(FusionSchedule, VolumesOfRandomStacksAreCounted) {
    Rng rng(21);
    for (int n = 0; n < 150; ++n) {
        const Network network = tiny_chain(static_cast<uint64_t>(n) + 100, 4);
        expect_plan_is_counted(
            network, {.capacity = rng.between(12, 300), .full_rows = rng.chance(1, 4)}, n);
    }
}

TEST(FusionSchedule, AnyTileOfAStackIsCounted) {
    Rng rng(22);
    for (int n = 0; n < 150; ++n) {
        const Network network = tiny_chain(static_cast<uint64_t>(n) + 500, 4);
        PlannedStack planned;
        planned.layers = all_layers(network);
        planned.keeps_halos = true;
        const Stack stack = layer_problems(network, planned.layers);
        planned.tile = {rng.between(1, stack.back()[Dim::x]), rng.between(1, stack.back()[Dim::y]),
                        rng.between(1, stack.back()[Dim::z]),
                        stack.front().inputs.front().channels};
        const GroupCounts counts = two_level_counts(network, fusion_group(network, planned));
        EXPECT_EQ(counts.accesses(), Elements(stack_volume(stack, planned.tile, Reading::exact)))
            << n;
        EXPECT_EQ(counts.macs(), Macs(stack_operations(stack, planned.tile))) << n;
    }
}

TEST(FusionSchedule, NetworksWithForksAndJoinsAreCounted) {
    Rng rng(23);
    int networks = 0;
    for (uint64_t seed = 1; networks < 60 && seed < 400; ++seed) {
        const Network network = random_network(seed);
        const bool known = std::ranges::none_of(network.layers, [](const Layer& layer) {
            return layer.kind == LayerKind::conv_transpose;
        });
        if (!known) continue;
        ++networks;
        expect_plan_is_counted(network, {.capacity = rng.between(30, 2000)},
                               static_cast<int>(seed));
    }
    EXPECT_EQ(networks, 60);
}

}  // namespace
}  // namespace laminate::spatial_fusion
