// What a group computes, and what must cross between its code and memory at least. With its time they say how
// near it comes to the peak and to the bandwidth of a machine.
#pragma once

#include <string>

#include "base/units.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// The figures of a group count all images of the batch.
struct GroupFigures {
    Macs macs;             ///< of the layers, by their definition
    Macs multiplications;  ///< that kernels execute: of empty lanes too, by minimal filtering fewer
    Bytes bytes;           ///< of external tensors and weights, each once
    std::string kernels;   ///< of the nests: "map_pixels a12 v8, map_sum"
};

/// Counts them in closed form. Every nest of the group has a kernel.
[[nodiscard]] GroupFigures group_figures(const Network& network, const GroupSchedule& group);

}  // namespace laminate
