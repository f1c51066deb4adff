#include "nets/onnx/window.h"

#include <algorithm>

namespace laminate::onnx {

namespace {

void check_parameter(const Node& node, const char* name, int64_t value, int64_t low) {
    if (value < low || value > largest_parameter) {
        node.fail(std::string(name) + " contains " + std::to_string(value) + ", expected " +
                  std::to_string(low) + " to " + std::to_string(largest_parameter));
    }
}

}  // namespace

bool SpatialWindow::is_padded() const {
    const auto any = [](const Dims& pads) {
        return std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
    };
    return any(pad_begin) || any(pad_end);
}

bool SpatialWindow::fits_picture() const {
    constexpr int64_t most = 1 << 15;
    for (size_t axis = 0; axis < kernel.size(); ++axis) {
        if (std::max({span(axis), stride[axis], pad_begin[axis], pad_end[axis]}) > most)
            return false;
    }
    return kernel.size() <= 2;
}

Dims spatial_dims(const Node& node, const Dims& dims) {
    if (dims.size() < 3)
        node.fail("input is " + dims_text(dims) +
                  ", expected N, C and at least one spatial dimension");
    return {dims.begin() + 2, dims.end()};
}

std::optional<Dims> spatial_parameter(Node& node, const char* name, size_t axes, int64_t low) {
    auto values = node.integers(name);
    if (!values) return std::nullopt;
    if (values->size() != axes) {
        node.fail(std::string(name) + " has " + std::to_string(values->size()) +
                  " values, expected " + std::to_string(axes) + " (spatial dimensions)");
    }
    for (const int64_t v : *values) check_parameter(node, name, v, low);
    return values;
}

SpatialWindow read_window(Node& node, const Dims& extents,
                          const std::optional<Dims>& weights_kernel) {
    const size_t axes = extents.size();
    SpatialWindow window;
    const auto kernel = spatial_parameter(node, "kernel_shape", axes, 1);
    if (!kernel && !weights_kernel) node.fail("has no kernel_shape");
    if (kernel && weights_kernel && *kernel != *weights_kernel) {
        node.fail("kernel_shape is " + dims_text(*kernel) + ", the weights have " +
                  dims_text(*weights_kernel));
    }
    window.kernel = kernel ? *kernel : *weights_kernel;
    for (const int64_t k : window.kernel) check_parameter(node, "kernel_shape", k, 1);
    window.stride = spatial_parameter(node, "strides", axes, 1).value_or(Dims(axes, 1));
    window.dilation = spatial_parameter(node, "dilations", axes, 1).value_or(Dims(axes, 1));
    window.pad_begin = window.pad_end = Dims(axes, 0);
    const auto pads = node.integers("pads");
    window.auto_pad = node.text("auto_pad", "NOTSET");
    if (window.auto_pad != "NOTSET" && window.auto_pad != "VALID" &&
        window.auto_pad != "SAME_UPPER" && window.auto_pad != "SAME_LOWER")
        node.fail("auto_pad is " + in_quotes(window.auto_pad));
    if (pads) {
        if (pads->size() != 2 * axes)
            node.fail("pads has " + std::to_string(pads->size()) + " values, expected " +
                      std::to_string(2 * axes));
        for (const int64_t p : *pads) check_parameter(node, "pads", p, 0);
        if (window.auto_pad == "NOTSET") {
            const auto middle = pads->begin() + static_cast<std::ptrdiff_t>(axes);
            window.pad_begin.assign(pads->begin(), middle);
            window.pad_end.assign(middle, pads->end());
        }
    }
    return window;
}

void pad_same(SpatialWindow& window, const Dims& extents) {
    for (size_t axis = 0; axis < extents.size(); ++axis) {
        const int64_t out = (extents[axis] - 1) / window.stride[axis] + 1;
        const int64_t total = std::max<int64_t>(
            0, (out - 1) * window.stride[axis] + window.span(axis) - extents[axis]);
        window.pad_begin[axis] = window.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
        window.pad_end[axis] = total - window.pad_begin[axis];
    }
}

Window picture_window(const SpatialWindow& from) {
    Window window;
    const size_t first = 2 - from.kernel.size();
    for (size_t k = 0; k < from.kernel.size(); ++k) {
        window.kernel[first + k] = from.kernel[k];
        window.stride[first + k] = from.stride[k];
        window.dilation[first + k] = from.dilation[k];
        window.pad_begin[first + k] = from.pad_begin[k];
        window.pad_end[first + k] = from.pad_end[k];
    }
    return window;
}

void set_window(GeneralOperator& op, const SpatialWindow& window) {
    op.kernel = window.kernel;
    op.stride = window.stride;
    op.dilation = window.dilation;
    op.pad_begin = window.pad_begin;
    op.pad_end = window.pad_end;
}

}  // namespace laminate::onnx
