// What the models of the papers share: the axes of a map, the arithmetic of windows along one
// axis, and which layers no model counts. A model's own header is a view of this.
//
// The loops of a layer, in each paper's letters; a model names those that it has:
//
//                   batch  group  output   input    output  output  kernel  kernel
//                                 channel  channel  column  row     column  row
//   CNNFlow         f             k        c        x       y       m       n
//   DeFiNES                G      K        C        OX      OY      FX      FY
//   HW-Flow-Fusion                of       if       ox      oy      kx      ky
//   counting.md                   z        i        x       y       m       n
//
// Optimus and msf-CNN have no loops, only maps and the windows between them.
#pragma once

#include <cstdint>

#include "base/indexed.h"
#include "nets/network/network.h"
#include "papers/window_steps.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

enum class MapAxis { x = 0, y = 1 };  ///< columns, rows
/// One value per axis, columns first.
template <class T>
using PerAxis = PerEnum<T, MapAxis, 2>;
inline constexpr PerAxis<MapAxis> map_axes{MapAxis::x, MapAxis::y};
[[nodiscard]] constexpr MapAxis other(MapAxis axis) {
    return axis == MapAxis::x ? MapAxis::y : MapAxis::x;
}

[[nodiscard]] constexpr WindowSteps steps_of(const AxisWindow& window) {
    return {window.stride, window.dilation};
}
/// Input coordinates from the first to the last that `outputs` neighbours read, padding included.
/// Not for transposed windows.
[[nodiscard]] constexpr int64_t input_span(const AxisWindow& window, int64_t outputs) {
    return steps_of(window).span(outputs, window.kernel);
}

/// Activations, softmax, flatten and additions of constants: their output takes the place of their
/// input, element for element, so the models leave them out and their readers read that input.
[[nodiscard]] bool is_in_place(const Layer& layer);

}  // namespace laminate
