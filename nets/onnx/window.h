// Private to nets: the window attributes that convolutions and pooling share, for any number of
// spatial axes.
#pragma once

#include <optional>
#include <string>

#include "nets/onnx/importer.h"

namespace laminate::onnx {

/// One value per spatial axis.
struct SpatialWindow {
    Dims kernel, stride, dilation, pad_begin, pad_end;
    std::string auto_pad;  ///< NOTSET, VALID, SAME_UPPER, SAME_LOWER

    /// Input elements that one window spans, (kernel - 1) * dilation + 1.
    [[nodiscard]] int64_t span(size_t axis) const {
        return (kernel[axis] - 1) * dilation[axis] + 1;
    }
    [[nodiscard]] bool is_padded() const;
    /// Whether a picture layer may have the window: one or two axes, and a size that leaves
    /// schedules and generated code no loops over 2^30 elements of padding, dilation or stride.
    /// General layers clip larger windows to the map.
    [[nodiscard]] bool fits_picture() const;
};

/// Dims after N and C. Refuses tensors without spatial dimensions.
[[nodiscard]] Dims spatial_dims(const Node& node, const Dims& dims);

/// An attribute with one value per spatial axis, each at least `low`.
[[nodiscard]] std::optional<Dims> spatial_parameter(Node& node, const char* name, size_t axes,
                                                    int64_t low);

/// Reads kernel, strides, dilations and explicit pads. `weights_kernel` is the kernel of a
/// convolution's weights.
[[nodiscard]] SpatialWindow read_window(Node& node, const Dims& extents,
                                        const std::optional<Dims>& weights_kernel);

/// Padding that makes the output ceil(input / stride); the odd element goes to the end for
/// SAME_UPPER.
void pad_same(SpatialWindow& window, const Dims& extents);

/// The window of a picture layer; a line is a picture of one row.
[[nodiscard]] Window picture_window(const SpatialWindow& window);
void set_window(GeneralOperator& op, const SpatialWindow& window);

}  // namespace laminate::onnx
