// What the artifact of DeFiNES says about single layers beyond their shape. CMake puts
// published_layers.json into the program.
#pragma once

#include <string>
#include <string_view>

#include "papers/depth_first/single_layer.h"
#include "papers/depth_first/workload.h"

namespace laminate::depth_first {

/// The text of published_layers.json.
[[nodiscard]] std::string_view published_layers_text();

/// Applies what the artifact's files say about this layer: lanes of some axes, and how it indexes
/// its input. Does nothing for a layer that they do not mention.
void apply_published_layer(const Machine& machine, const std::string& network, WorkloadLayer& layer,
                           Unrolling& lanes);

}  // namespace laminate::depth_first
