// The rings of a group over line buffers have the size of the model's buffers, plus padding and room
// for vectors.
#include "scheduler/schedule/kernels/line_plan.h"

#include <gtest/gtest.h>

#include "nets/random/random_network.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"

namespace laminate {
namespace {

struct Seen {
    int64_t rings = 0;
    int64_t slide_along_columns = 0;
    int64_t slide_along_channels = 0;
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
        const int64_t held = ring.elements() - ring.overhead();
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
    EXPECT_EQ(plan.transforms_offset, scratch);
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

}  // namespace
}  // namespace laminate
