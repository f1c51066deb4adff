#include "scheduler/schedule/tensor_sizes.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/sampled_window.h"

namespace laminate {

namespace {

constexpr size_t batch = 0, channels = 1, rows = 2, columns = 3, map_rank = 4;

[[noreturn]] void refuse(const Network& network, const std::string& why) {
    throw InputError(network.name + ": cannot be of any size: " + why);
}

std::string text_of(const std::vector<SizeFormula>& dims) {
    std::string text;
    for (const SizeFormula& dim : dims) text += (text.empty() ? "" : " x ") + to_text(dim);
    return text;
}

std::vector<int64_t> dims_at(const std::vector<SizeFormula>& dims, const SizeValues& size) {
    std::vector<int64_t> values;
    for (const SizeFormula& dim : dims) values.push_back(dim.at(size));
    return values;
}

/// Rows or columns of what a window makes of as many.
SizeFormula windows_of(const Layer& layer, size_t axis, const SizeFormula& in) {
    const Window& w = layer.window;
    const int64_t span = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
    const int64_t padding = w.pad_begin[axis] + w.pad_end[axis];
    if (layer.kind == LayerKind::conv_transpose)
        return (in - 1) * w.stride[axis] + (span + w.output_padding[axis] - padding);
    return (in + (padding - span)) / w.stride[axis] + 1;
}

SizeFormula product(const std::vector<SizeFormula>& dims, size_t begin, size_t end) {
    SizeFormula all = 1;
    for (size_t n = begin; n < end; ++n) all = all * dims[n];
    return all;
}

/// The layer with the attributes that it has where its first input is `other` instead of `input`.
Layer layer_at(Layer layer, const std::vector<int64_t>& input, const std::vector<int64_t>& other) {
    if (layer.kind == LayerKind::general && layer.inputs.size() == 1)
        layer.general = of_another_size(layer.general, input, other);
    return layer;
}

/// Sizes beyond a reference at which formulas are held beside the layers' own rules: of every
/// remainder of the usual strides.
constexpr std::array<std::array<int64_t, 3>, 8> steps_beyond{
    {{0, 0, 0}, {1, 1, 2}, {2, 2, 1}, {0, 3, 7}, {1, 5, 4}, {0, 7, 5}, {3, 10, 19}, {0, 64, 33}}};

}  // namespace

TensorSizes::TensorSizes(const Network& network)
    : network_(network), dims_(network.tensors.size()) {
    find_reference();
    for (const Layer& layer : network.layers) {
        dims_[layer.output] = output_of(layer);
        check_layer(layer);
    }
    // The last size that is impossible lies just below the least.
    constexpr int64_t most_tried = 128;
    least_ = reference_;
    const auto lower = [&](int64_t SizeValues::* of) {
        while (least_.*of > 1) {
            SizeValues size = least_;
            size.*of = least_.*of > most_tried ? most_tried : least_.*of - 1;
            if (!is_possible(size)) break;
            least_ = size;
        }
    };
    least_.images = 1;
    lower(&SizeValues::rows);
    lower(&SizeValues::columns);
}

void TensorSizes::find_reference() {
    bool found = false;
    for (const TensorId id : network_.inputs) {
        const Tensor& input = network_.tensor(id);
        const std::vector<int64_t>& dims = input.dims;
        if (dims.size() != map_rank) {
            for (const int64_t dim : dims) dims_[id].emplace_back(dim);
            continue;
        }
        const SizeValues size{.images = dims[batch], .rows = dims[rows], .columns = dims[columns]};
        if (found && size != reference_) {
            refuse(network_, "input " + tensor_text(input) +
                                 " has another size than the first; expected one size of all");
        }
        reference_ = size;
        found = true;
        dims_[id] = {SizeVariable::images, dims[channels], SizeVariable::rows,
                     SizeVariable::columns};
    }
    if (!found) refuse(network_, "it has no input of images x channels x rows x columns");
}

std::vector<SizeFormula> TensorSizes::output_of(const Layer& layer) const {
    const std::vector<SizeFormula> no_input;
    const std::vector<SizeFormula>& in =
        layer.inputs.empty() ? no_input : dims_[layer.inputs.front()];
    const std::vector<int64_t>& known = network_.tensor(layer.output).dims;
    const bool is_map = in.size() == map_rank && known.size() == map_rank;
    std::vector<SizeFormula> out = in;
    switch (layer.kind) {
        case LayerKind::conv:
        case LayerKind::conv_transpose:
        case LayerKind::max_pool:
        case LayerKind::average_pool:
            if (is_map)
                return {in[batch], known[channels], windows_of(layer, 0, in[rows]),
                        windows_of(layer, 1, in[columns])};
            break;
        case LayerKind::global_average_pool:
            if (is_map) return {in[batch], known[channels], 1, 1};
            break;
        case LayerKind::depth_to_space:
            if (is_map)
                return {in[batch], known[channels], in[rows] * layer.block,
                        in[columns] * layer.block};
            break;
        case LayerKind::concat: {
            const auto axis = static_cast<size_t>(
                layer.axis < 0 ? layer.axis + std::ssize(known) : layer.axis);
            for (size_t n = 1; n < layer.inputs.size(); ++n)
                out[axis] = out[axis] + dims_[layer.inputs[n]][axis];
            return out;
        }
        case LayerKind::flatten: {
            const auto axis = static_cast<size_t>(
                layer.axis < 0 ? layer.axis + std::ssize(in) : layer.axis);
            return {product(in, 0, axis), product(in, axis, in.size())};
        }
        case LayerKind::gemm:
            return {in[batch], known.at(1)};
        case LayerKind::add:
        case LayerKind::softmax:
        case LayerKind::activation:
            return out;
        case LayerKind::general:
            if (!is_map) break;
            if (const auto axes =
                    open_axes(layer.general, network_.tensor(layer.inputs.front()).dims)) {
                const auto made = [&](size_t d) {
                    const OpenAxis& axis = (*axes)[d - rows];
                    return in[d] * axis.times / axis.per + axis.more;
                };
                return {in[batch], known[channels], made(rows), made(columns)};
            }
            break;
    }
    // Any other operator: elementwise, or of shapes that do not depend on the size.
    for (const TensorId input : layer.inputs) {
        if (known == network_.tensor(input).dims) return dims_[input];
    }
    return {known.begin(), known.end()};
}

void TensorSizes::check_layer(const Layer& layer) const {
    const std::string where = "layer " + layer.name + " (" + operation_text(layer) + "): ";
    for (const auto& [images, more_rows, more_columns] : steps_beyond) {
        const SizeValues size{.images = reference_.images + images,
                              .rows = reference_.rows + more_rows,
                              .columns = reference_.columns + more_columns};
        std::vector<std::vector<int64_t>> inputs;
        for (const TensorId id : layer.inputs) inputs.push_back(dims_at(dims_[id], size));
        const std::vector<SizeFormula>& out = dims_[layer.output];
        std::vector<int64_t> expected;
        try {
            expected = infer_output_dims(
                layer.inputs.empty()
                    ? layer
                    : layer_at(layer, network_.tensor(layer.inputs.front()).dims, inputs.front()),
                inputs);
        } catch (const InputError& error) {
            refuse(network_, where + "not of inputs of " + dims_text(inputs.front()) + ": " +
                                 error.what());
        }
        if (expected != dims_at(out, size)) {
            refuse(network_, where + "its shape is not " + text_of(out) + " of every size: " +
                                 dims_text(expected) + " of inputs of " +
                                 dims_text(inputs.front()));
        }
    }
}

bool TensorSizes::is_possible(const SizeValues& size) const {
    try {
        const Network network = network_at(size);
        for (const Layer& layer : network.layers) {
            std::vector<std::vector<int64_t>> inputs;
            for (const TensorId id : layer.inputs) inputs.push_back(network.tensor(id).dims);
            if (infer_output_dims(layer, inputs) != network.tensor(layer.output).dims) return false;
        }
        for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
            if (!is_schedulable(network_, id)) continue;
            if (!is_schedulable(network, id) ||
                !same_samplings(layer_problem(network_, id), layer_problem(network, id)))
                return false;
        }
    } catch (const InputError&) {
        return false;
    }
    return true;
}

SizeFormula TensorSizes::extent(TensorId tensor, Dim d) const {
    const std::vector<SizeFormula>& dims = dims_[tensor];
    if (dims.size() != map_rank) return 1;
    return dims[d == Dim::y ? rows : columns];
}

Network TensorSizes::network_at(const SizeValues& size) const {
    Network network = network_;
    for (TensorId id = 0; id < std::ssize(network.tensors); ++id) {
        Tensor& tensor = network.tensors[static_cast<size_t>(id)];
        tensor.dims = dims_at(dims_[id], size);
        for (const int64_t dim : tensor.dims) {
            if (dim < 1)
                throw InputError("tensor " + tensor.name + " would be " + dims_text(tensor.dims));
        }
    }
    for (Layer& layer : network.layers) {
        if (!layer.inputs.empty())
            layer = layer_at(layer, network_.tensor(layer.inputs.front()).dims,
                             network.tensor(layer.inputs.front()).dims);
    }
    return network;
}

void require_same_layers(const Network& network, const Network& other) {
    const auto same_window = [](const Window& a, const Window& b) {
        return a.kernel == b.kernel && a.stride == b.stride && a.dilation == b.dilation &&
               a.pad_begin == b.pad_begin && a.pad_end == b.pad_end &&
               a.output_padding == b.output_padding;
    };
    for (size_t n = 0; n < std::max(network.layers.size(), other.layers.size()); ++n) {
        if (n >= network.layers.size() || n >= other.layers.size())
            refuse(network, "it has " + std::to_string(network.layers.size()) + " layers or " +
                                std::to_string(other.layers.size()) + ", by the size");
        const Layer &a = network.layers[n], &b = other.layers[n];
        const std::string where = "layer " + a.name + " (" + operation_text(a) + "): ";
        if (a.kind != b.kind || a.name != b.name || a.inputs != b.inputs || a.output != b.output)
            refuse(network, where + "is a " + operation_text(b) + " at another size");
        if (!same_window(a.window, b.window))
            refuse(network, where + "its padding or window depends on the size (SAME, ceil_mode)");
        if (a.axis != b.axis || a.block != b.block || a.groups != b.groups ||
            a.count_include_pad != b.count_include_pad)
            refuse(network, where + "its attributes depend on the size");
        if (a.kind == LayerKind::general && !a.inputs.empty()) {
            const auto& input = network.tensor(a.inputs.front()).dims;
            const auto& other_input = other.tensor(b.inputs.front()).dims;
            if (layer_at(a, input, other_input).general !=
                layer_at(b, other_input, other_input).general)
                refuse(network, where + "its attributes depend on the size");
        }
    }
}

}  // namespace laminate
