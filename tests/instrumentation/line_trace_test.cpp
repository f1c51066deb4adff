// The lines that deployed code brings into a last-level cache follow the external accesses that the
// model counts.
#include "instrumentation/line_trace.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/aligned.h"
#include "generators/kernels/group_kernels.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

/// The lines of all groups of a schedule in turn, tensors and constants in arrays of their own, one
/// scratch area.
LineTrace traced(const Network& network, const Schedule& schedule, int64_t& scratch_bytes) {
    std::vector<GroupCode> codes;
    scratch_bytes = 0;
    for (const GroupSchedule& group : schedule.groups()) {
        codes.push_back(default_code(network, group, {16, 24}));
        scratch_bytes = std::max(scratch_bytes, codes.back().scratch_bytes);
    }
    std::vector<std::unique_ptr<AlignedFloats>> tensors;
    for (const Tensor& tensor : network.tensors)
        tensors.push_back(
            std::make_unique<AlignedFloats>(static_cast<size_t>(element_count(tensor.dims)), 0.0F));
    AlignedFloats scratch(static_cast<size_t>(scratch_bytes / bytes_per_element), 0.0F);
    std::vector<std::unique_ptr<AlignedFloats>> constants;
    for (const GroupCode& code : codes)
        constants.push_back(std::make_unique<AlignedFloats>(code.constants));
    LineTrace trace;
    for (size_t g = 0; g < codes.size(); ++g) {
        const GroupSchedule& group = schedule.groups()[g];
        const TensorId from =
            network.layer(network.find_layer(group.nests.front().layer)).inputs.front();
        const TensorId to = network.layer(network.find_layer(group.nests.back().layer)).output;
        trace.run(codes[g], {tensors[static_cast<size_t>(from)]->data()},
                  tensors[static_cast<size_t>(to)]->data(), constants[g]->data(), scratch.data());
    }
    return trace;
}

TEST(LineTrace, MissesOfFusedAndLayerByLayerCodeFollowThePredictedAccesses) {
    // Three 3x3 layers 8 -> 8 on 96 rows of 96: a tensor is 8 * 96 * 96 * 4 = 294,912 bytes, more
    // than the cache of 192 KiB.
    const LayerSpec layer{8, square_window(3, 1, 1)};
    const Network network = chain(8, 96, 96, {layer, layer, layer});
    constexpr int64_t cache_bytes = 192 * 1024;
    constexpr int64_t line_elements = cache_line_bytes / bytes_per_element;
    const Schedule fused(network, {line_buffer_group(network, {0, 1, 2})});
    const Schedule apart = layer_by_layer_schedule(network);
    int64_t fused_scratch = 0, apart_scratch = 0;
    const LineTrace fused_trace = traced(network, fused, fused_scratch);
    const LineTrace apart_trace = traced(network, apart, apart_scratch);
    ASSERT_LT(fused_scratch, cache_bytes);

    // X and Y once, weights 3 * 8 * 8 * 9. Unfused, both intermediate tensors are written and read
    // too.
    const int64_t tensor = 8 * 96 * 96, weights = 3 * 8 * 8 * 9;
    EXPECT_EQ(two_level_counts(network, fused).accesses, Elements(2 * tensor + weights));
    EXPECT_EQ(two_level_counts(network, apart).accesses, Elements(6 * tensor + weights));

    // In addition, scratch and constants come in once, and a few lines at the borders of arrays.
    const auto expect_follows = [&](const LineTrace& trace, const Schedule& schedule,
                                    int64_t scratch_bytes) {
        const int64_t predicted =
            two_level_counts(network, schedule).accesses.value() / line_elements;
        const int64_t misses = trace.misses(cache_bytes);
        EXPECT_GE(misses, predicted);
        EXPECT_LE(misses, predicted + scratch_bytes / cache_line_bytes + predicted / 50)
            << predicted << " lines predicted, " << scratch_bytes << " bytes of scratch";
    };
    expect_follows(fused_trace, fused, fused_scratch);
    expect_follows(apart_trace, apart, apart_scratch);
    // A cache with room for everything brings in every line once.
    EXPECT_EQ(apart_trace.misses(int64_t{1} << 30), apart_trace.distinct());
    EXPECT_LT(apart_trace.distinct() * line_elements, 5 * tensor);
}

}  // namespace
}  // namespace laminate
