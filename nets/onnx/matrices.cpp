// Gemm and MatMul. A constant matrix on the right makes a gemm layer; anything else is a general
// product.
#include "nets/onnx/importer.h"

namespace laminate::onnx {

namespace {

/// alpha * b as [out][in].
ConstantPtr matrix(Importer& importer, const ConstantPtr& b, bool transposed, float alpha) {
    if (transposed && alpha == 1.0f) return b;
    importer.charge(b->values.size());
    const auto rows = static_cast<size_t>(b->dims[0]);
    const auto columns = static_cast<size_t>(b->dims[1]);
    std::vector<float> result(b->values.size());
    for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < columns; ++c) {
            result[transposed ? r * columns + c : c * rows + r] =
                alpha * b->values[r * columns + c];
        }
    }
    return std::make_shared<const Constant>(
        Constant{transposed ? b->dims : Dims{b->dims[1], b->dims[0]}, std::move(result)});
}

/// beta * c as one value per output feature, or nullopt if c has another shape.
std::optional<ConstantPtr> bias_of(const ConstantPtr& c, int64_t features, float beta) {
    const auto count = std::ssize(c->values);
    if (count != 1 && (count != features || c->dims.back() != features)) return std::nullopt;
    std::vector<float> bias(static_cast<size_t>(features));
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = beta * c->values[count == 1 ? 0 : i];
    return std::make_shared<const Constant>(Constant{{features}, std::move(bias)});
}

TensorId scaled(Importer& importer, const Node& node, TensorId x, float factor) {
    if (factor == 1.0f) return x;
    const auto constant = std::make_shared<const Constant>(Constant{{}, {factor}});
    return importer.add_general(
        node, {.kind = GeneralKind::binary, .function = GeneralFunction::multiply},
        {x, importer.constant_tensor(node, constant)});
}

void gemm(Importer& importer, Node& node) {
    node.expect_inputs(2, 3);
    const float alpha = node.real("alpha", 1.0f), beta = node.real("beta", 1.0f);
    const bool transposed_a = node.integer("transA", 0) != 0,
               transposed_b = node.integer("transB", 0) != 0;
    node.ignore("broadcast");  // before opset 7, C was broadcast only if this was set
    TensorId a = importer.tensor(node, 0), b = importer.tensor(node, 1);
    for (const TensorId x : {a, b}) {
        if (importer.dims(x).size() != 2)
            node.fail("input is " + dims_text(importer.dims(x)) + ", expected a matrix");
    }
    if (transposed_a) a = importer.transposed(node, a, {1, 0});
    const ConstantPtr weights = importer.known(b);
    const ConstantPtr c = node.has_input(2) ? importer.known(importer.tensor(node, 2)) : nullptr;
    if (weights && !importer.known(a)) {
        Layer layer{.kind = LayerKind::gemm,
                    .inputs = {a},
                    .weights = matrix(importer, weights, transposed_b, alpha)};
        const auto bias = c ? bias_of(c, layer.weights->dims[0], beta) : std::nullopt;
        if (!node.has_input(2) || bias) {
            layer.bias = bias.value_or(nullptr);
            return importer.append(node, std::move(layer));
        }
    }
    if (transposed_b) b = importer.transposed(node, b, {1, 0});
    if (!node.has_input(2) && alpha == 1.0f)
        return importer.append(node, {.kind = GeneralKind::matmul}, {a, b});
    TensorId product = importer.add_general(node, {.kind = GeneralKind::matmul}, {a, b});
    if (!node.has_input(2)) {
        const auto factor = std::make_shared<const Constant>(Constant{{}, {alpha}});
        return importer.append(node,
                               {.kind = GeneralKind::binary, .function = GeneralFunction::multiply},
                               {product, importer.constant_tensor(node, factor)});
    }
    product = scaled(importer, node, product, alpha);
    const TensorId summand = scaled(importer, node, importer.tensor(node, 2), beta);
    if (broadcast_dims(importer.dims(product), importer.dims(summand)) != importer.dims(product)) {
        node.fail("C is " + dims_text(importer.dims(summand)) + ", expected to broadcast to " +
                  dims_text(importer.dims(product)));
    }
    importer.append(node, {.kind = GeneralKind::binary, .function = GeneralFunction::add},
                    {product, summand});
}

void mat_mul(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    const TensorId a = importer.tensor(node, 0), b = importer.tensor(node, 1);
    const ConstantPtr weights = importer.known(b);
    if (weights && weights->dims.size() == 2 && !importer.known(a) && importer.dims(a).size() == 2)
        return importer.append(node, {.kind = LayerKind::gemm,
                                      .inputs = {a},
                                      .weights = matrix(importer, weights, false, 1.0f)});
    if (importer.file_dims(a).empty() || importer.file_dims(b).empty())
        node.fail("multiplies by a scalar");
    const TensorId product = importer.add_general(node, {.kind = GeneralKind::matmul}, {a, b});
    if (importer.dims(a).size() == 1 && importer.dims(b).size() == 1) importer.mark_scalar(product);
    importer.define_like(node, product, product);
}

}  // namespace

void add_matrix_products(Handlers& handlers) {
    handlers["Gemm"] = gemm;
    handlers["MatMul"] = mat_mul;
}

}  // namespace laminate::onnx
