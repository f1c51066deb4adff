#include "papers/depth_first/schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"

namespace laminate::depth_first {
namespace {

/// One multiplier, one memory that holds everything, and the outside. Every word is an element.
Machine two_levels() {
    Machine machine = open_machine("meta_proto_df");
    const Memory outside = machine.memories.back();
    Memory inside = outside;
    inside.name = "inside";
    inside.read.word_pj = inside.write.word_pj = 1;
    inside.capacity_bits = int64_t{1} << 50;
    machine.memories = {inside, outside};
    for (Memory& memory : machine.memories) {
        memory.read.word_bits = memory.read.smallest_access_bits = memory.write.word_bits =
            memory.write.smallest_access_bits = 8;
    }
    machine.memories.back().read.word_pj = machine.memories.back().write.word_pj = 100;
    machine.bits.input = machine.bits.weight = machine.bits.output = machine.bits.partial_sum = 8;
    for (ArrayAxis& axis : machine.axes) axis.lanes = 1;
    return machine;
}

void expect_equal_counts(const Network& network, const Strategy& strategy) {
    const DepthFirst model(two_levels(), network, {});
    const auto stacks = model.stacks(strategy.stacks);
    std::vector<ScheduledStack> scheduled;
    for (const std::vector<size_t>& layers : stacks) scheduled.push_back({layers, strategy});
    const Schedule schedule = schedule_of(network, model.workload(), scheduled);
    SCOPED_TRACE(network.name + " " + to_text(schedule));
    const DepthFirstCost cost = model.cost(strategy);
    double inputs = 0, weights = 0, written = 0, macs = 0;
    for (const GroupSchedule& group : schedule.groups()) {
        const GroupCounts counts = two_level_counts(network, group);
        inputs += static_cast<double>(counts.input_reads().value());
        weights += static_cast<double>(counts.weight_reads().value());
        written += static_cast<double>(counts.output_writes.value());
        macs += static_cast<double>(counts.macs().value());
        EXPECT_EQ(counts.output_reads.value(), 0);
    }
    const auto of = [&](Role role) { return cost.words[1][operand_of(role)]; };
    // The weights of phases without outputs in the first tile are copied besides.
    EXPECT_EQ(cost.copy_words[1].reads() + of(Role::weight).reads(), inputs + weights);
    if (std::ranges::none_of(model.workload().layers, &WorkloadLayer::transposed)) {
        EXPECT_EQ(cost.copy_words[1].reads(), inputs);
    }
    EXPECT_EQ(cost.copy_words[1].writes(), 0);
    EXPECT_EQ(of(Role::input).reads(), 0);
    EXPECT_EQ(of(Role::output).reads(), 0);
    double costed = 0;
    for (const LayerTileCost& detail : cost.details) {
        if (detail.shape.type == LayerType::convolution ||
            detail.shape.type == LayerType::depthwise)
            costed += static_cast<double>(detail.times * detail.shape.macs());
    }
    EXPECT_EQ(of(Role::output).writes(), written);
    EXPECT_EQ(costed, macs);
}

constexpr std::array all_overlaps{Overlap::recompute, Overlap::h_cached, Overlap::fully_cached,
                                  Overlap::v_cached};

/// For chains of any stride, dilation and padding and for tiles of any size, the accesses and MACs
/// of the depth-first model on two levels equal those of the two-level model for its schedule.
void expect_equal_counts_of_random_chains(uint64_t first, uint64_t count) {
    size_t compared = 0;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const Network network = random_chain(seed);
        Workload workload;
        try {
            workload = workload_of(network, false);
        } catch (const InputError&) {
            continue;  // strided and dilated along one axis
        }
        if (workload.layers.size() != network.layers.size() + 1)
            continue;  // a layer only selects, and the model leaves it out
        Rng rng(seed);
        const Sizes& sizes = workload.layers.back().shape.sizes;
        for (const Overlap overlap : all_overlaps) {
            const TileSize tile{1 + rng.below(sizes[Dim::ox]), 1 + rng.below(sizes[Dim::oy])};
            expect_equal_counts(network,
                                {.tile = tile,
                                 .overlap = overlap,
                                 .stacks = rng.below(4) == 0 ? Stacks::single_layer : Stacks::all});
            ++compared;
        }
        // Each map has an overlap of its own. Some stacks go row by row, others column by column.
        for (const Overlap along : {Overlap::h_cached, Overlap::v_cached}) {
            const std::array choices{Overlap::recompute, along, Overlap::fully_cached};
            Strategy strategy{
                .tile = {1 + rng.below(sizes[Dim::ox]), 1 + rng.below(sizes[Dim::oy])},
                .overlap = along,
                .stacks = Stacks::all};
            for (const WorkloadLayer& map : workload.layers)
                strategy.of_maps[map.name] =
                    choices[static_cast<size_t>(rng.below(std::ssize(choices)))];
            expect_equal_counts(network, strategy);
            ++compared;
        }
        if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(compared, count);
}

TEST(DepthFirstSchedules, CountsEqualTheTwoLevelModel) {
    expect_equal_counts_of_random_chains(1, 60);
}

TEST(DepthFirstSchedulesLong, CountsEqualTheTwoLevelModel) {
    expect_equal_counts_of_random_chains(1000, 2000);
}

TEST(DepthFirstSchedules, SaysWhatIsKeptByStoreLevels) {
    const Network network = zoo_network("l2net");
    const Workload workload = workload_of(network, false);
    const auto text = [&](Overlap overlap) {
        return to_text(
            schedule_of(network, workload,
                        {{.layers = {1, 2}, .strategy = {.tile = {8, 4}, .overlap = overlap}}}));
    };
    // Tiles keep nothing, the columns of a row of tiles, everything, the rows of a column of tiles.
    EXPECT_NE(text(Overlap::recompute).find("Y conv2.xo/conv2.xo & conv2: yo xo"),
              std::string::npos)
        << text(Overlap::recompute);
    EXPECT_NE(text(Overlap::h_cached).find("Y conv2.yo/conv2.xo & conv2: yo xo"), std::string::npos)
        << text(Overlap::h_cached);
    EXPECT_NE(text(Overlap::fully_cached).find("Y root/conv2.xo & conv2: yo xo"), std::string::npos)
        << text(Overlap::fully_cached);
    EXPECT_NE(text(Overlap::v_cached).find("Y conv2.xo/conv2.yo & conv2: xo yo"), std::string::npos)
        << text(Overlap::v_cached);
    EXPECT_NE(text(Overlap::recompute).find("y4 x8"), std::string::npos)
        << text(Overlap::recompute);
}

}  // namespace
}  // namespace laminate::depth_first
