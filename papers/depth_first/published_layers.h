// What the artifact of DeFiNES says of single layers beyond their shape (published_layers.json, put
// into the program by CMake).
#pragma once

#include <string>
#include <string_view>

#include "papers/depth_first/single_layer.h"
#include "papers/depth_first/workload.h"

namespace laminate::depth_first {

/// published_layers.json
[[nodiscard]] std::string_view published_layers_text();

/// Replaces the lanes of the axes that the artifact sets for this layer, and how its input is
/// indexed; changes nothing of any other.
void apply_published_layer(const Machine& machine, const std::string& network, WorkloadLayer& layer,
                           Unrolling& lanes);

}  // namespace laminate::depth_first
