#include "generators/kernels/group_kernels.h"

#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "generators/ir/layer_output.h"
#include "generators/kernels/columns.h"
#include "generators/kernels/line_buffers.h"
#include "generators/kernels/map_elementwise.h"
#include "generators/kernels/map_bands.h"
#include "generators/kernels/map_blocks.h"
#include "generators/kernels/map_channels.h"
#include "generators/kernels/map_depthwise.h"
#include "generators/kernels/map_events.h"
#include "generators/kernels/map_panels.h"
#include "generators/kernels/map_phases.h"
#include "generators/kernels/map_pixels.h"
#include "generators/kernels/map_pooling.h"
#include "generators/kernels/map_windows.h"
#include "generators/kernels/winograd_map.h"
#include "scheduler/schedule/kernel_legality.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/open_group.h"

namespace laminate {

namespace {

GroupCode map_code(LayerOutput output, const Kernel& kernel) {
    const LayerProblem p = output.problem();
    const VectorUnit unit = unit_of(kernel);
    switch (kernel.kind) {
        case KernelKind::map_pixels:
            return map_pixels_code(std::move(output), map_pixels_layout(p, kernel));
        case KernelKind::map_channels:
            return map_channels_code(std::move(output), map_channels_layout(p, unit));
        case KernelKind::map_windows:
            return map_windows_code(std::move(output), map_windows_layout(p, unit));
        case KernelKind::map_panels:
            return map_panels_code(std::move(output), map_panels_layout(p, unit));
        case KernelKind::map_phases:
            return map_phases_code(std::move(output), map_phases_layout(p, unit));
        case KernelKind::map_depthwise:
            return map_depthwise_code(std::move(output), map_depthwise_layout(p, unit));
        case KernelKind::map_pooling:
            return map_pooling_code(std::move(output), map_pooling_layout(p, unit));
        case KernelKind::winograd_map:
            return winograd_map_code(std::move(output), winograd_map_layout(p, kernel));
        case KernelKind::map_elementwise: {
            const MapElementwiseLayout at = map_elementwise_layout(p, unit, output.has_slopes());
            return map_elementwise_code(std::move(output), at);
        }
        default:
            break;
    }
    throw std::logic_error("not a map kernel");
}

GroupCode map_code(const Network& network, const GroupSchedule& group) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    if (is_depthwise_pair(problems)) {
        return map_bands_code(LayerOutput::of(network, group, 0, 1),
                              LayerOutput::of(network, group, 1, problems.size()),
                              map_bands_layout(group, problems));
    }
    if (is_pointwise_pair(problems)) {
        return map_blocks_code(LayerOutput::of(network, group, 0, 1),
                               LayerOutput::of(network, group, 1, 2),
                               map_blocks_layout(group, problems));
    }
    return map_code(LayerOutput::of(network, group), group.nests.front().kernel);
}

/// Code counts the elements of an image's tensors, and of scratch, in 32 bits.
void require_addressable(const std::string& what, int64_t elements) {
    if (elements <= std::numeric_limits<int32_t>::max()) return;
    throw InfeasibleError(what + ": " + std::to_string(elements) +
                          " elements, expected at most 2147483647 (fewer layers by themselves, or "
                          "the picture in windows: run --stream)");
}

void require_addressable(const Network& network, const GroupSchedule& group) {
    const auto check = [&](TensorId id) {
        const Tensor& tensor = network.tensor(id);
        require_addressable("tensor " + tensor.name, element_count(tensor.dims) / tensor.dims[0]);
    };
    for (const GroupTensor& tensor : group_tensors(group_problems(network, group))) {
        if (tensor.is_external()) check(tensor.tensor);
    }
    check(network.layer(network.find_layer(group.nests.back().layer)).output);
}

GroupCode code_of_kernels(const Network& network, const GroupSchedule& group, Events events) {
    const Kernel& kernel = group.nests.front().kernel;
    switch (kernel_row(kernel.kind).scope) {
        case KernelScope::map:
            return with_map_events(map_code(network, group), network, group, events);
        case KernelScope::chain:
            return columns_code(network, group, events);
        case KernelScope::nest:
            break;
        case KernelScope::sum:
            throw std::logic_error("a group that begins with map_sum");
    }
    return line_buffer_code(network, group, events);
}

}  // namespace

GroupCode group_code(const Network& network, const GroupSchedule& group, Events events) {
    require_addressable(network, group);
    GroupCode code = code_of_kernels(network, group, events);
    require_addressable("scratch of the group of " + group.nests.back().layer,
                        code.scratch_bytes / bytes_per_element);
    if (events == Events::none) return code;
    for (int k = 0; k <= group.sink(); ++k) {
        code.arrays.push_back({group.nest(k).layer + ".W", ArrayRole::external_weights, k});
        code.arrays.push_back({group.nest(k).layer + ".computed", ArrayRole::output_buffer, k});
    }
    return code;
}

GroupCode open_group_code(const Network& network, const GroupSchedule& group,
                          const TensorSizes& sizes) {
    require_any_size(group, group_problems(network, group), sizes);
    return kernel_row(group.nests.front().kernel.kind).scope == KernelScope::chain
               ? columns_code(network, group, Events::none, &sizes)
               : line_buffer_code(network, group, Events::none, &sizes);
}

GroupCode code_at(const GroupCode& code, const GroupSchedule& group,
                  const std::vector<LayerProblem>& problems, const SizeValues& size) {
    GroupCode at = code;
    at.size = size;
    at.scratch_bytes = code.open_scratch_bytes->at(size);
    const Nest& sink = group.nests.back();
    const Loop first = sink.loops.front();
    at.strips = first.band == Band::strip ? ceil_div(problems.back()[first.dim], sink.step(first)) : 1;
    return at;
}

GroupCode default_code(const Network& network, const GroupSchedule& group, const VectorUnit& unit,
                       const KernelOptions& options) {
    return group_code(network,
                      with_default_kernels(group_problems(network, group), group, unit, options));
}

VectorUnit vector_unit(const Halide::Target& target) {
    const auto lanes = static_cast<int64_t>(target.natural_vector_size<float>());
    // 32 registers with AVX-512 and NEON, 16 otherwise; a quarter stays free for loaded values.
    const bool many = lanes >= 16 || target.arch == Halide::Target::ARM;
    using Target = Halide::Target;
    const bool zen = target.has_feature(Target::AVX512_Zen4) || target.has_feature(Target::AVX512_Zen5);
    return {.lanes = lanes,
            .accumulators = many ? 24 : 12,
            .has_halves = lanes >= 16 && zen && !target.has_feature(Target::AVX512_Zen5),
            .adds_in_multipliers = lanes >= 16 && !zen};
}

}  // namespace laminate
