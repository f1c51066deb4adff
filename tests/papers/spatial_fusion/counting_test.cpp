// Stacks planned by papers/spatial_fusion, as ordinary schedules that generated code counts.
#include <gtest/gtest.h>

#include "instrumentation/measure.h"
#include "papers/spatial_fusion/fusion_schedule.h"
#include "scheduler/counts/two_level/two_level.h"
#include "tests/papers/spatial_fusion/published_networks.h"

namespace laminate::spatial_fusion {
namespace {

/// Counts of the generated code for the stack that is planned within `capacity` elements.
void expect_counted(const Network& network, const PlannedStack& stack) {
    const GroupSchedule group = fusion_group(network, stack);
    const GroupCounts counts = two_level_counts(network, group);
    EXPECT_EQ(difference(counts, "closed form", measure(network, group), "generated code"), "")
        << to_text(group);
    EXPECT_EQ(counts.accesses(), Elements(stack.volume)) << to_text(group);
}

TEST(SpatialFusionSchedule, PublishedPairsMoveTheirExactVolumes) {
    const Network network = resnet18_trunk();
    for (const PublishedPair& pair : resnet_pairs) {
        const auto stack = best_stack(network, ids(network, pair.layers), {.capacity = 512 * 1024});
        ASSERT_TRUE(stack);
        expect_counted(network, *stack);
    }
}

TEST(SpatialFusionSchedule, TilesOfAWholeStackKeepTheirHalosInRowsAndColumns) {
    // POOL1 + four convolutions of 64 maps at 56 x 56 in tiles of 9 x 13, which divide nothing.
    const Network network = resnet18_trunk();
    PlannedStack stack;
    stack.layers = ids(network, {"POOL1", "CONV2_1_1", "CONV2_1_2", "CONV2_2_1", "CONV2_2_2"});
    stack.keeps_halos = true;
    stack.tile = {13, 9, 64, 64};
    // POOL1's input once, of 112 x 112 pixels; weights of four layers once; the output once.
    stack.volume = 64 * 112 * 112 + 4 * 9 * 64 * 64 + 64 * 56 * 56;
    expect_counted(network, stack);
    const GroupCounts counts = two_level_counts(network, fusion_group(network, stack));
    EXPECT_EQ(counts.macs(), Macs(4LL * 9 * 64 * 64 * 56 * 56));  // as many as layer by layer
}

TEST(SpatialFusionSchedule, ComputesWhatTheReferenceComputes) {
    const Network network = named_chain(
        2, 18, {{"a", conv3(4)}, {"b", pool(2, 0)}, {"c", conv3(3)}, {"d", {5, square_window(1)}}});
    PlannedStack stack;
    stack.layers = ids(network, {"a", "b", "c", "d"});
    stack.keeps_halos = true;
    for (const Tile& tile :
         {Tile{1, 1, 5, 2}, Tile{2, 4, 1, 2}, Tile{9, 1, 5, 2}, Tile{5, 3, 2, 2}}) {
        stack.tile = tile;
        const CheckedMeasurement measured =
            measure_and_check(network, fusion_group(network, stack), 3);
        EXPECT_EQ(measured.wrong_result, "");
        EXPECT_EQ(
            measured.counts.accesses(),
            Elements(stack_volume(layer_problems(network, stack.layers), tile, Reading::exact)));
        EXPECT_EQ(measured.counts.macs(),
                  Macs(18 * 18 * 4 * 2 * 9 + 9 * 9 * 3 * 4 * 9 + 9 * 9 * 5 * 3));
    }
}

}  // namespace
}  // namespace laminate::spatial_fusion
