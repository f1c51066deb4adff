#include "scheduler/schedule/kernels/kernel_layouts.h"

#include <stdexcept>

#include "scheduler/schedule/buffer_shapes.h"

namespace laminate {

namespace {

/// `make` of the layout of a map kernel.
template <class Make>
int64_t of_map_layout(const LayerProblem& p, const Kernel& kernel, const Make& make) {
    const VectorUnit unit = unit_of(kernel);
    switch (kernel.kind) {
        case KernelKind::map_pixels:
            return make(map_pixels_layout(p, kernel));
        case KernelKind::map_channels:
            return make(map_channels_layout(p, unit));
        case KernelKind::map_windows:
            return make(map_windows_layout(p, unit));
        case KernelKind::map_panels:
            return make(map_panels_layout(p, unit));
        case KernelKind::map_depthwise:
            return make(map_depthwise_layout(p, unit));
        case KernelKind::map_pooling:
            return make(map_pooling_layout(p, unit));
        case KernelKind::winograd_map:
            return make(winograd_map_layout(p, unit));
        case KernelKind::map_addition:
            return make(map_addition_layout(p, unit, false));
        default:
            break;
    }
    throw std::logic_error("not a map kernel");
}

}  // namespace

MapPixelsLayout map_pixels_layout(const LayerProblem& problem, const Kernel& kernel) {
    MapPixelsLayout at = map_pixels_layout(problem, unit_of(kernel), std::nullopt);
    // Parts are fewer where each fills panels, so the layout is made for one of the two.
    return kernel[KernelSize::panel] == (at.has_panel ? 1 : 0)
               ? at
               : map_pixels_layout(problem, unit_of(kernel), Bytes(0));
}

ColumnsLayout columns_layout(const GroupSchedule& group,
                             const std::vector<LayerProblem>& problems) {
    std::vector<int64_t> kept_rows;
    for (const BufferShape& shape : buffer_shapes(group, problems, StripRange::any).tensors)
        kept_rows.push_back(shape.extent[1]);
    return columns_layout(problems, kept_rows, group.nests.back().strip[1],
                          unit_of(group.nests.front().kernel));
}

int64_t map_scratch_elements(const LayerProblem& problem, const Kernel& kernel) {
    return of_map_layout(problem, kernel, [](const auto& at) { return at.scratch_elements(); });
}

int64_t map_channels_together(const LayerProblem& problem, const Kernel& kernel) {
    return of_map_layout(problem, kernel, [](const auto& at) -> int64_t {
        if constexpr (requires { at.block(); }) {
            return at.block();
        } else if constexpr (requires { at.block; }) {
            return at.block;
        } else {
            return 1;
        }
    });
}

int64_t map_stored_elements(const LayerProblem& problem, const Kernel& kernel) {
    return kernel.kind == KernelKind::map_depthwise
               ? map_depthwise_layout(problem, unit_of(kernel)).stored_elements()
               : problem.output_elements().value();
}

int64_t map_multiplications(const LayerProblem& problem, const Kernel& kernel) {
    return of_map_layout(problem, kernel, [](const auto& at) { return at.multiplications(); });
}

}  // namespace laminate
