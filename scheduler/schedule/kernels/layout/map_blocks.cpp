#include "scheduler/schedule/kernels/layout/map_blocks.h"

#include "base/units.h"

namespace laminate {

int64_t MapBlocksLayout::map_offset() const {
    constexpr int64_t line = 16;
    return round_up(pointwise.scratch_elements(), line);
}

MapBlocksLayout map_blocks_layout(const LayerProblem& pointwise, const VectorUnit& unit,
                                  const LayerProblem& depthwise,
                                  const VectorUnit& depthwise_unit) {
    MapBlocksLayout at{map_channels_layout(pointwise, unit),
                       map_depthwise_layout(depthwise, depthwise_unit)};
    at.pointwise.chunks = 1;
    return at;
}

}  // namespace laminate
