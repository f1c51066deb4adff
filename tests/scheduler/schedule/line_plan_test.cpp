// The rings of a group over line buffers have the size of the model's buffers, plus padding and room
// for vectors.
#include "scheduler/schedule/kernels/line_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "nets/random/random_network.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

struct Seen {
    int64_t rings = 0;
    int64_t slide_along_columns = 0;
    int64_t slide_along_channels = 0;
    int64_t parted = 0;
};

/// Columns outside of a tensor that its readers' windows cover, on both sides together.
int64_t most_padding(const GroupTensor& tensor, const std::vector<LayerProblem>& problems) {
    int64_t before = 0, behind = 0;
    for (const TensorReader& reader : tensor.readers) {
        const AxisWindow& w = problems[static_cast<size_t>(reader.nest)].x();
        if (w.transposed) {
            before = std::max(before, -floor_div(w.pad_begin - w.span() + w.stride, w.stride));
            behind = std::max(behind, (w.out - 1 + w.pad_begin) / w.stride + 1 - w.in);
        } else {
            before = std::max(before, w.pad_begin);
            behind = std::max(behind, (w.out - 1) * w.stride - w.pad_begin + w.span() - w.in);
        }
    }
    return before + behind;
}

/// How far vectors of the kernels that write or read a tensor run over the end of a row.
int64_t most_overrun(const GroupTensor& tensor, const GroupSchedule& group,
                     const std::vector<LayerProblem>& problems) {
    const auto overrun = [&](int k) {
        const Kernel& kernel = group.nest(k).kernel;
        const bool has_tile = kernel.kind == KernelKind::rows || kernel.kind == KernelKind::phases;
        return kernel[KernelSize::lanes] * (has_tile ? kernel[KernelSize::columns] : 1);
    };
    int64_t most = tensor.is_external() ? 0 : overrun(tensor.producer);
    for (const TensorReader& reader : tensor.readers) {
        const AxisWindow& w = problems[static_cast<size_t>(reader.nest)].x();
        most = std::max(most, overrun(reader.nest) * (w.transposed ? 1 : w.stride));
    }
    return most;
}

void expect_buffers(const Network& network, const GroupSchedule& group, const std::string& what,
                    Seen& seen) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const LinePlan plan = line_plan(group, problems);
    const GroupCounts counts = two_level_counts(network, group);
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    // A thread that begins with a later strip may have to bring more in at once.
    const bool may_be_larger = group.nests.back().loops.front().band == Band::strip;
    int64_t scratch = 0;
    for (size_t t = 0; t < tensors.size(); ++t) {
        const GroupTensor& tensor = tensors[t];
        const RingLayout& ring = plan.rings[t];
        const int64_t buffer =
            (tensor.is_external() ? counts.inputs.at(t).buffer
                                  : counts.layers[static_cast<size_t>(tensor.producer)].output_buffer)
                .value();
        const std::string where = what + ", " + tensor.name + ": " + to_text(group);
        const int64_t held = ring.rows * ring.row_elements() - ring.overhead();
        if (ring.parts) {
            ++seen.parted;
            EXPECT_LT(ring.parts->kept, ring.rows) << where;
            const auto most = std::ranges::max_element(ring.parts->blocks, {}, &RingParts::Block::rows);
            EXPECT_GE(ring.parts->kept + most->rows, ring.rows) << where;
            for (const RingParts::Block& block : ring.parts->blocks) {
                EXPECT_GE(block.offset, plan.blocks_offset) << where;
                EXPECT_LE(block.in_ring, std::min(block.rows, ring.parts->kept)) << where;
                EXPECT_LE(block.offset + (block.rows - block.in_ring) * ring.row_elements(),
                          plan.weights_offset)
                    << where;
            }
        }
        if (may_be_larger) {
            EXPECT_GE(held, buffer) << where;
        } else {
            EXPECT_EQ(held, buffer) << where;
        }
        EXPECT_GE(ring.padding, 0) << where;
        EXPECT_LE(ring.padding, most_padding(tensor, problems)) << where;
        // Whole vectors, one more for those that begin unaligned, one for another cache set.
        const int64_t overrun = most_overrun(tensor, group, problems);
        EXPECT_LE(ring.pitch - ring.columns - ring.padding, overrun + 3 * plan.lanes) << where;
        EXPECT_GE(ring.pitch - ring.columns - ring.padding, overrun + plan.lanes) << where;
        EXPECT_EQ(ring.offset, scratch) << where;
        scratch += round_up(ring.elements(), 16);
        ++seen.rings;
        seen.slide_along_columns += ring.column_slide ? 1 : 0;
        seen.slide_along_channels += ring.channel_slide ? 1 : 0;
    }
    EXPECT_EQ(plan.blocks_offset, scratch);
    EXPECT_GE(plan.transforms_offset, plan.weights_offset);
    EXPECT_GE(plan.weights_offset, plan.blocks_offset);
}

template <class MakeNetwork>
void expect_buffers_at_random(const MakeNetwork& make, uint64_t seeds, Seen& seen) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const Network network = make(seed);
        const Schedule schedule = random_schedule(network, 5 * seed + 2);
        Rng rng(seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const GroupSchedule drawn =
                random_kernels(group_problems(network, group), group, rng);
            if (kernel_row(drawn.nests.front().kernel.kind).scope == KernelScope::nest)
                expect_buffers(network, drawn, "seed " + std::to_string(seed), seen);
        }
        if (testing::Test::HasFailure()) return;
    }
}

TEST(LinePlan, RingsHoldTheBuffersOfTheModel) {
    Seen seen;
    expect_buffers_at_random(random_chain, 1500, seen);
    expect_buffers_at_random(random_network, 1000, seen);
    EXPECT_GT(seen.rings, 3000);
    EXPECT_GT(seen.slide_along_columns, 300);
    EXPECT_GT(seen.slide_along_channels, 50);
}

/// Ten layers in steps of four rows, as a schedule goes by lines: {rows of the ring, or with parts those
/// that stay}, and what comes in.
TEST(LinePlan, LongChainsKeepTwoRowsFromStepToStep) {
    const Network network =
        chain(4, 40, 64, std::vector<LayerSpec>(10, {4, square_window(3, 1, 1)}));
    GroupSchedule group = line_buffer_group(network, schedulable_chains(network).front(), {4, 0, 0});
    for (Nest& nest : group.nests) {
        nest.tile[Dim::y] = 4;
        nest.kernel = {KernelKind::rows, {}};
        for (const KernelSize size : {KernelSize::channels, KernelSize::rows, KernelSize::columns})
            nest.kernel.size[size] = 1;
        nest.kernel.size[KernelSize::lanes] = 16;
    }
    Seen seen;
    expect_buffers(network, group, "ten layers", seen);
    EXPECT_EQ(seen.parted, 9);
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const LinePlan plan = line_plan(group, problems);
    const int64_t row = plan.rings[1].row_elements();
    for (size_t t = 1; t < plan.rings.size(); ++t) {
        const RingLayout& ring = plan.rings[t];
        EXPECT_EQ(ring.rows, 6);
        EXPECT_EQ(ring.parts->kept, 2);
        ASSERT_EQ(ring.row_elements(), row);
        // The first tile of a reader needs five rows, for which a producer goes by a tile and a row;
        // what comes in for that row is one row of each tensor before.
        // When these five come in, the ring holds nothing.
        std::map<int64_t, int64_t> in_ring;  // by rows
        for (const RingParts::Block& block : ring.parts->blocks) in_ring[block.rows] = block.in_ring;
        ASSERT_TRUE(in_ring.contains(5) && in_ring.contains(4)) << t;
        EXPECT_EQ(in_ring[5], 2) << t;
        EXPECT_EQ(in_ring[4], 0) << t;
    }
    // Two blocks of four rows; three rows of five leave room for the single rows of another tensor.
    EXPECT_EQ(plan.weights_offset - plan.blocks_offset, (4 + 4) * row);
    // Every fourth row begins a step, and each of its readers' tiles needs two rows of the step before.
    const RowTraffic traffic = row_traffic(group, problems);
    EXPECT_FALSE(traffic.kept[0].has_value());
    for (const auto& [rows, others] : traffic.beside) {
        for (const IncomingRows& other : others) EXPECT_TRUE(traffic.beside.at(other).contains(rows));
    }
}

TEST(LinePlan, RingsThatBranchesReadStayWhole) {
    Network network = chain(4, 40, 64, std::vector<LayerSpec>(8, {4, square_window(3, 1, 1)}));
    append(network, "add9", {.kind = LayerKind::add, .inputs = {network.layers[0].output,
                                                               network.layers.back().output}});
    std::vector<LayerId> all(network.layers.size());
    std::iota(all.begin(), all.end(), LayerId{0});
    const GroupSchedule group = line_buffer_group(network, all, {4, 0, 0});
    const RowTraffic traffic = row_traffic(group, group_problems(network, group));
    // The input, and what conv1 and the Add read.
    EXPECT_FALSE(traffic.kept[0].has_value());
    EXPECT_FALSE(traffic.kept[1].has_value());
    EXPECT_TRUE(traffic.kept[2].has_value());
}

}  // namespace
}  // namespace laminate
