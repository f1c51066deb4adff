#include "scheduler/counts/memory_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "nets/random/random_network.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

MemoryTimeline timeline_of(const Network& network, const GroupSchedule& group,
                           int64_t max_steps = 400) {
    return memory_timeline(group_problems(network, group), group, two_level_counts(network, group),
                           max_steps);
}

/// Phase by phase.
std::vector<int> steps_of(const MemoryTimeline& timeline) {
    std::vector<int> steps;
    for (const MemoryRun& run : timeline.runs)
        steps.insert(steps.end(), static_cast<size_t>(run.times), run.phase);
    return steps;
}

/// The timeline body by body: the sink's outermost `depth` loops trip by trip, one trip of all
/// others. Stops beyond `most` steps.
class PlainUnfolding {
public:
    PlainUnfolding(const GroupSchedule& group, const PerDim<int64_t>& extent, int depth,
                   size_t most)
        : group_(group), depth_(depth), most_(most) {
        body(group.sink(), -1, extent);
    }
    std::vector<int> steps;

private:
    void body(int nest, int loop, PerDim<int64_t> extent) {
        if (steps.size() > most_) return;
        for (int k = 0; k < group_.sink(); ++k) {
            const Level at = group_.nest(k).y.compute;
            const bool is_here =
                nest == group_.sink() && loop < 0 ? at.is_root() : at == Level{nest, loop};
            if (is_here) body(k, -1, extent);
        }
        const Nest& own = group_.nest(nest);
        if (loop + 1 == static_cast<int>(own.loops.size())) return steps.push_back(nest);
        const Loop next = own.loops[static_cast<size_t>(loop) + 1];
        const Dim d = next.dim;
        if (nest != group_.sink() || loop + 1 >= depth_) return body(nest, loop + 1, extent);
        const int64_t step = next.band == Band::inner   ? 1
                             : next.band == Band::outer ? own.tile[d]
                                                        : own.strip[static_cast<size_t>(d) - 1];
        for (int64_t left = extent[d]; left > 0 && steps.size() <= most_; left -= step) {
            extent[d] = std::min(step, left);
            body(nest, loop + 1, extent);
        }
    }

    const GroupSchedule& group_;
    int depth_;
    size_t most_;
};

// l2net: conv1 makes rows for conv2's strips of 4 of 16 rows; 6 of its rows are kept, of which 2
// stay.
constexpr const char* fused_rows =
    "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.yo/conv2.yo; W root/root; "
    "Y root/conv2.yo & "
    "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y yo/yo}";

TEST(MemoryTimeline, AlternatesBetweenProducerAndConsumer) {
    const Network network = l2net();
    const MemoryTimeline timeline = timeline_of(network, parse_group(network, fused_rows), 10);
    ASSERT_EQ(timeline.phases.size(), 2u);
    // In both phases: W1 4 * 3 * 9 = 108, W2 4 * 4 * 9 = 144 and A 4 * 6 * 18 = 432 for the whole
    // group, X of conv1's six rows 3 * 8 * 20 = 480 and Y 4 * 4 * 16 = 256 for a strip: 1420.
    const std::vector<LiveBuffer> buffers{{"W conv1", Elements(108)},
                                          {"A conv1", Elements(432)},
                                          {"W conv2", Elements(144)},
                                          {"X input", Elements(480)},
                                          {"Y conv2", Elements(256)}};
    EXPECT_EQ(timeline.phases[0].buffers, buffers);
    EXPECT_EQ(timeline.phases[1].buffers, buffers);
    EXPECT_EQ(timeline.phases[0].live, Elements(1420));
    EXPECT_EQ(timeline.phases[0].macs, Macs(34992));
    EXPECT_EQ(timeline.phases[1].macs, Macs(36864));
    // Four strips of rows, conv1 before conv2 in each. One more loop (xo, one trip) costs nothing,
    // io neither; zi would make 4 * 4 of conv2's steps.
    EXPECT_EQ(steps_of(timeline), (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1}));
    EXPECT_EQ(timeline.unfolded_loops, 4);
}

TEST(MemoryTimeline, WhatLivesInsideANestIsGoneOutsideIt) {
    const Network network = l2net();
    const MemoryTimeline timeline = timeline_of(
        network,
        parse_group(network,
                    "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X zo/zo; W zo/zo; "
                    "Y root/root & "
                    "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y16 x16 i4; W zo/zo; Y zo/zo}"));
    // conv1: its output 4 * 18 * 18 = 1296, X 3 * 20 * 20 = 1200, W 108. conv2: the same 1296, W
    // 144, Y 4 * 16 * 16 = 1024.
    EXPECT_EQ(timeline.phases[0].live, Elements(1296 + 1200 + 108));
    EXPECT_EQ(timeline.phases[1].live, Elements(1296 + 144 + 1024));
}

TEST(MemoryTimeline, RaggedTripsAreTheRealOnes) {
    const Network network = chain(1, 8, 9, {{2, square_window(3)}});  // output 2 x 6 x 7
    const GroupSchedule group = parse_group(network,
                                            "{conv1: yo zo xo io | yi zi xi ii n m; tile z2 y4 x7 "
                                            "i1; X root/root; W root/root; Y root/root}");
    // Rows in tiles of 4 and 2, each with its zo, xo, io, one yi per row, two zi: 4 * 2 + 2 * 2 =
    // 12 steps, not 2 * 4 * 2.
    const MemoryTimeline timeline = timeline_of(network, group, 16);
    EXPECT_EQ(timeline.runs, (std::vector<MemoryRun>{{0, 12}}));
    EXPECT_EQ(timeline.unfolded_loops, 6);
}

TEST(MemoryTimeline, AtLeastOneStepPerNest) {
    const Network network = l2net();
    EXPECT_EQ(steps_of(timeline_of(network, parse_group(network, fused_rows), 0)),
              (std::vector<int>{0, 1}));
}

TEST(MemoryTimeline, ItsLargestIsLiveTotal) {
    int fused = 0;
    int forked = 0;
    int shortened = 0;
    for (uint64_t seed = 0; seed < 1500; ++seed) {
        const Network network =
            seed % 2 == 0 ? random_chain(seed % 100) : random_network(seed % 100);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const GroupCounts counts = two_level_counts(network, group);
            const MemoryTimeline timeline =
                memory_timeline(group_problems(network, group), group, counts, 60);
            Elements largest;
            Macs macs;
            for (const MemoryPhase& phase : timeline.phases) {
                largest = std::max(largest, phase.live);
                macs += phase.macs;
                Elements sum;
                for (const LiveBuffer& buffer : phase.buffers) sum += buffer.elements;
                EXPECT_EQ(sum, phase.live);
            }
            ASSERT_EQ(largest, counts.live_total) << to_text(group);
            ASSERT_EQ(macs, counts.macs()) << to_text(group);
            const std::vector<int> steps = steps_of(timeline);
            const std::set<int> seen(steps.begin(), steps.end());
            EXPECT_EQ(seen.size(), group.nests.size()) << to_text(group);
            EXPECT_EQ(steps.back(), group.sink());
            const auto extent = group_problems(network, group).back().extent;
            const auto unfolded = static_cast<int>(timeline.unfolded_loops);
            constexpr size_t most = 60;
            EXPECT_EQ(steps, PlainUnfolding(group, extent, unfolded, most).steps) << to_text(group);
            const bool is_all = unfolded == static_cast<int>(group.nests.back().loops.size());
            EXPECT_TRUE(is_all ||
                        PlainUnfolding(group, extent, unfolded + 1, most).steps.size() > most)
                << to_text(group);
            shortened += is_all ? 0 : 1;
            fused += group.nests.size() > 1 ? 1 : 0;
            for (const GroupTensor& tensor : group_tensors(group_problems(network, group)))
                forked += tensor.is_shared() ? 1 : 0;
        }
    }
    EXPECT_GT(fused, 300);
    EXPECT_GT(forked, 30);
    EXPECT_GT(shortened, 300);
}

}  // namespace
}  // namespace laminate
