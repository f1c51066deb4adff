#include "scheduler/schedule/kernels/line_plan.h"

#include <algorithm>

#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/layer_forms.h"

namespace laminate {

namespace {

bool is_winograd(const Kernel& kernel) {
    return kernel.kind == KernelKind::winograd_rows || kernel.kind == KernelKind::winograd_channels;
}

/// How far a kernel's last vectors of a row run over its end: reading past what is needed, writing
/// past what is new.
int64_t overrun(const Kernel& kernel) {
    const bool has_tile = kernel.kind == KernelKind::rows || kernel.kind == KernelKind::phases;
    return (has_tile ? kernel[KernelSize::columns] : 1) * kernel[KernelSize::lanes];
}

RingLayout ring_of(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                   const GroupTensor& tensor, const BufferShape& shape, int64_t lanes) {
    const auto kernel = [&](int k) { return group.nests[static_cast<size_t>(k)].kernel; };
    const auto problem = [&](int k) -> const LayerProblem& {
        return problems[static_cast<size_t>(k)];
    };
    int64_t behind = tensor.is_external() ? 0 : overrun(kernel(tensor.producer));
    for (const TensorReader& reader : tensor.readers) {
        const AxisWindow& w = problem(reader.nest).x();
        behind = std::max(behind, overrun(kernel(reader.nest)) * (w.transposed ? 1 : w.stride));
    }
    RingLayout ring;
    ring.rows = std::max<int64_t>(1, shape.extent[1]);
    ring.channels = std::max<int64_t>(1, shape.slide[0] ? shape.slide[0]->room : shape.extent[0]);
    ring.coordinates = problem(tensor.readers.front().nest).y().in;
    ring.channel_slide = shape.slide[0];
    ring.column_slide = shape.slide[2];
    const int64_t columns = ring.column_slide ? ring.column_slide->room : shape.unclipped_columns;
    ring.columns = shape.extent[2];
    ring.padding = columns - ring.columns;
    ring.pitch = round_up(std::max<int64_t>(1, columns) + behind + lanes, lanes);
    // What rounding adds makes slides rarer.
    if (ring.column_slide) ring.column_slide->room = ring.pitch - behind - lanes;
    // Rows a multiple of 4 KiB apart fall into the same cache set.
    constexpr int64_t cache_set_elements = 1024;
    if (ring.pitch % cache_set_elements < lanes) ring.pitch += lanes;
    return ring;
}

/// The tile of a nest's kernel, with the kinds of steps that its rows come in.
std::vector<std::optional<WinogradTile>> winograd_tiles(const GroupSchedule& group,
                                                        const std::vector<LayerProblem>& problems) {
    std::vector<std::optional<WinogradTile>> tiles(problems.size());
    if (std::none_of(group.nests.begin(), group.nests.end(),
                     [](const Nest& nest) { return is_winograd(nest.kernel); }))
        return tiles;
    const auto steps = row_steps(group, problems);
    for (size_t k = 0; k < problems.size(); ++k) {
        if (is_winograd(group.nests[k].kernel))
            tiles[k] = winograd_tile_of(problems[k], group.nests[k].kernel, steps[k]);
    }
    return tiles;
}

}  // namespace

LinePlan line_plan(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    constexpr int64_t boundary = 16;  // elements
    LinePlan plan;
    plan.lanes = group.nests.front().kernel[KernelSize::lanes];
    plan.winograd = winograd_tiles(group, problems);
    const std::vector<BufferShape> shapes = buffer_shapes(group, problems, StripRange::any).tensors;
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (size_t t = 0; t < tensors.size(); ++t) {
        RingLayout ring = ring_of(group, problems, tensors[t], shapes[t], plan.lanes);
        ring.offset = plan.scratch_elements;
        plan.scratch_elements += round_up(ring.elements(), boundary);
        plan.rings.push_back(ring);
    }
    // Last: patches behind the end of a row may be read beyond it.
    plan.transforms_offset = plan.scratch_elements;
    int64_t transforms = 0;
    for (size_t k = 0; k < problems.size(); ++k) {
        if (plan.winograd[k])
            transforms =
                std::max(transforms, winograd_scratch_elements(problems[k], *plan.winograd[k],
                                                               unit_of(group.nests[k].kernel)));
    }
    plan.scratch_elements += transforms;
    return plan;
}

}  // namespace laminate
