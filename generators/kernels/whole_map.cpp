#include "generators/kernels/whole_map.h"

#include <utility>

#include "generators/ir/layer_output.h"
#include "generators/kernels/map_addition.h"
#include "generators/kernels/map_channels.h"
#include "generators/kernels/map_depthwise.h"
#include "generators/kernels/map_panels.h"
#include "generators/kernels/map_pixels.h"
#include "generators/kernels/map_pooling.h"
#include "generators/kernels/map_windows.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

namespace {

GroupCode code_of_map(LayerOutput output, const VectorUnit& unit,
                      const std::optional<Bytes>& scratch) {
    const LayerProblem& p = output.problem();
    if (p.operation == Operation::add) {
        const bool has_slopes = output.layer().activation.kind == ActivationKind::prelu;
        const MapAdditionLayout at = map_addition_layout(p, unit, has_slopes);
        return map_addition_code(std::move(output), at);
    }
    if (!p.has_weights()) {
        const MapPoolingLayout at = map_pooling_layout(p, unit);
        return map_pooling_code(std::move(output), at);
    }
    if (p.groups > 1) {
        const MapDepthwiseLayout at = map_depthwise_layout(p, unit);
        return map_depthwise_code(std::move(output), at);
    }
    if (is_pointwise(p)) {
        if (prefers_map_channels(p, unit)) {
            const MapChannelsLayout at = map_channels_layout(p, unit);
            return map_channels_code(std::move(output), at);
        }
        const MapPixelsLayout at = map_pixels_layout(p, unit, scratch);
        return map_pixels_code(std::move(output), at);
    }
    if (reads_few(p)) {
        const MapPanelsLayout at = map_panels_layout(p, unit);
        return map_panels_code(std::move(output), at);
    }
    const MapWindowsLayout at = map_windows_layout(p, unit);
    return map_windows_code(std::move(output), at);
}

}  // namespace

bool suits_whole_pooling(const LayerProblem& p) {
    // Rows are written out vector by vector, and windows tap by tap.
    constexpr int64_t fewest_columns = 4, most_columns = 256, most_taps = 25, most_stride = 4;
    return (p.operation == Operation::max_pool || p.operation == Operation::average_pool) &&
           p[Dim::x] >= fewest_columns && p[Dim::x] <= most_columns &&
           p.x().kernel * p.y().kernel <= most_taps && p.x().stride <= most_stride;
}

std::optional<GroupCode> whole_map_code(const Network& network, const GroupSchedule& group,
                                        const VectorUnit& unit, const KernelOptions& kernels) {
    std::optional<LayerOutput> output = LayerOutput::of(network, group);
    if (!output) return std::nullopt;
    const LayerProblem& p = output->problem();
    if (p.operation != Operation::add && !suits_whole_map(p) && !suits_whole_pooling(p))
        return std::nullopt;
    GroupCode code = code_of_map(*std::move(output), unit, kernels.scratch);
    if (kernels.scratch && code.scratch_bytes > kernels.scratch->value()) return std::nullopt;
    return code;
}

}  // namespace laminate
