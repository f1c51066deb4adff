// Conv, ConvTranspose, BatchNormalization. With one spatial axis they work on a picture of one row;
// with three they become general layers.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "nets/onnx/importer.h"
#include "nets/onnx/window.h"

namespace laminate::onnx {

namespace {

ConstantPtr convolution_weights(Importer& importer, const Node& node, size_t rank) {
    const auto weights = importer.constant(node, 1);
    if (weights->dims.size() != rank) {
        node.fail("weights are " + dims_text(weights->dims) + " (" +
                  std::to_string(static_cast<int64_t>(weights->dims.size()) - 2) +
                  " spatial dimensions) for an input of " +
                  std::to_string(static_cast<int64_t>(rank) - 2));
    }
    return weights;
}

ConstantPtr bias_of(Importer& importer, const Node& node) {
    return node.has_input(2) ? importer.constant(node, 2) : nullptr;
}

/// Reshapes weights for a line into weights for a picture of one row.
ConstantPtr lifted_weights(Importer& importer, const ConstantPtr& weights) {
    if (weights->dims.size() != 3) return weights;
    importer.charge(weights->values.size());
    return std::make_shared<const Constant>(
        Constant{{weights->dims[0], weights->dims[1], 1, weights->dims[2]}, weights->values});
}

/// A picture layer of kind `kind` if the window fits one, a general layer otherwise.
Layer windowed_layer(Importer& importer, Node& node, TensorId x, const ConstantPtr& weights,
                     const SpatialWindow& window, LayerKind kind, GeneralOperator general) {
    Layer layer{.groups = node.integer("group", 1)};
    layer.bias = bias_of(importer, node);
    if (window.fits_picture()) {
        layer.kind = kind;
        layer.inputs = {importer.picture(node, x)};
        layer.weights = lifted_weights(importer, weights);
        layer.window = picture_window(window);
    } else {
        layer.kind = LayerKind::general;
        layer.inputs = {x};
        layer.weights = weights;
        layer.general = std::move(general);
        set_window(layer.general, window);
    }
    return layer;
}

/// What Conv and ConvTranspose read alike.
struct ConvolutionOperands {
    TensorId x;
    Dims extents;
    ConstantPtr weights;
    SpatialWindow window;

    ConvolutionOperands(Importer& importer, Node& node)
        : x(importer.tensor(node, 0)),
          extents(spatial_dims(node, importer.dims(x))),
          weights(convolution_weights(importer, node, importer.dims(x).size())),
          window(read_window(node, extents, Dims(weights->dims.begin() + 2, weights->dims.end()))) {
        node.expect_inputs(2, 3);
    }
};

void conv(Importer& importer, Node& node) {
    auto [x, extents, weights, window] = ConvolutionOperands(importer, node);
    if (window.auto_pad.starts_with("SAME")) pad_same(window, extents);
    importer.append_like(node, x,
                         windowed_layer(importer, node, x, weights, window, LayerKind::conv,
                                        {.kind = GeneralKind::convolution}));
}

void conv_transpose(Importer& importer, Node& node) {
    auto [x, extents, weights, window] = ConvolutionOperands(importer, node);
    Dims output_padding = spatial_parameter(node, "output_padding", extents.size(), 0)
                              .value_or(Dims(extents.size(), 0));
    auto wanted = node.integers("output_shape");
    if (wanted && wanted->size() == extents.size() + 2)
        wanted->erase(wanted->begin(), wanted->begin() + 2);  // some exporters name N and C too
    if (wanted && wanted->size() != extents.size())
        node.fail("output_shape has " + std::to_string(wanted->size()) + " values, expected " +
                  std::to_string(extents.size()));
    Dims out;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
        int64_t full =
            (extents[axis] - 1) * window.stride[axis] + output_padding[axis] + window.span(axis);
        if (wanted || window.auto_pad.starts_with("SAME")) {
            // The padding follows from the output extent. ConvTranspose puts the odd element at the
            // end except for SAME_UPPER (ONNX, ConvTranspose). SAME never extends the output beyond
            // what the windows reach, as in onnx's shape inference and onnxruntime.
            const int64_t target =
                wanted ? (*wanted)[axis] : std::min(full, extents[axis] * window.stride[axis]);
            const int64_t extra = std::max<int64_t>(0, target - full),
                          total = std::max<int64_t>(0, full - target);
            // Outputs beyond what the windows reach act like output_padding and share its limit.
            if (target < 1 || output_padding[axis] + extra >=
                                  std::max({window.stride[axis], window.dilation[axis],
                                            int64_t{1} + output_padding[axis]})) {
                node.fail("output of " + std::to_string(target) + " is larger than an input of " +
                          std::to_string(extents[axis]) + " gives without padding, or empty");
            }
            output_padding[axis] += extra;
            window.pad_begin[axis] =
                window.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
            window.pad_end[axis] = total - window.pad_begin[axis];
            full += extra;
        }
        out.push_back(full - window.pad_begin[axis] - window.pad_end[axis]);
    }
    Layer layer = windowed_layer(importer, node, x, weights, window, LayerKind::conv_transpose,
                                 {.kind = GeneralKind::transposed_convolution, .dims = out});
    if (layer.kind == LayerKind::conv_transpose) {
        layer.window.output_padding[1] = output_padding.back();
        if (extents.size() == 2) layer.window.output_padding[0] = output_padding[0];
    }
    importer.append_like(node, x, std::move(layer));
}

void batch_normalization(Importer& importer, Node& node) {
    node.expect_inputs(5, 5);
    const TensorId x = importer.tensor(node, 0);
    const double epsilon = node.real("epsilon", 1e-5f);
    node.ignore("momentum");
    node.ignore("consumed_inputs");
    const bool was_told_to_test = importer.opset() >= 7 || node.integer("is_test", 0) != 0;
    if (node.integer("training_mode", 0) != 0 || node.integer("spatial", 1) != 1 ||
        !was_told_to_test)
        node.fail("training mode or spatial = 0 is not supported");
    const Dims& extents = importer.dims(x);
    if (extents.size() < 2)
        node.fail("input is " + dims_text(extents) + ", expected at least 2 dimensions");
    const auto channels = static_cast<size_t>(extents[1]);
    std::array<ConstantPtr, 4> statistics;  // scale, shift, mean, variance
    for (size_t i = 0; i < 4; ++i) {
        statistics[i] = importer.constant(node, static_cast<int>(i) + 1);
        if (statistics[i]->values.size() != channels) {
            node.fail("input " + in_quotes(node.input(static_cast<int>(i) + 1)) + " has " +
                      std::to_string(statistics[i]->values.size()) + " values for " +
                      std::to_string(channels) + " channels");
        }
    }
    std::vector<float> scale(channels), shift(channels);
    for (size_t c = 0; c < channels; ++c) {
        const double factor =
            statistics[0]->values[c] / std::sqrt(statistics[3]->values[c] + epsilon);
        if (!std::isfinite(factor))
            node.fail("variance of channel " + std::to_string(c) + " is " +
                      std::to_string(statistics[3]->values[c]));
        scale[c] = static_cast<float>(factor);
        shift[c] = static_cast<float>(statistics[1]->values[c] - statistics[2]->values[c] * factor);
    }
    importer.append_affine(
        node, x, std::make_shared<const Constant>(Constant{{extents[1]}, std::move(scale)}),
        std::make_shared<const Constant>(Constant{{extents[1]}, std::move(shift)}));
}

}  // namespace

void add_convolutions(Handlers& handlers) {
    handlers["Conv"] = conv;
    handlers["ConvTranspose"] = conv_transpose;
    handlers["BatchNormalization"] = batch_normalization;
}

}  // namespace laminate::onnx
