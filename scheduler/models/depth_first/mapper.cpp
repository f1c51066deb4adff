#include "scheduler/models/depth_first/mapper.h"

namespace laminate::depth_first {

std::optional<LayerMapping> best_mapping(const MappedLayer& layer) { return best_limited_mapping(layer, 0); }

}  // namespace laminate::depth_first
