// Gemm, MatMul, Einsum and CumSum. A constant matrix on the right makes a gemm layer; anything else
// is a general product.
#include <algorithm>

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

// ---- Einsum

/// A tensor and a letter for each of its axes.
struct Lettered {
    TensorId id;
    std::string letters;
};

/// Permutes the axes to the order of `letters`.
Lettered in_order(Importer& importer, const Node& node, const Lettered& x,
                  const std::string& letters) {
    if (letters.empty()) return x;  // a scalar is held as one element
    Dims perm;
    for (const char letter : letters) perm.push_back(static_cast<int64_t>(x.letters.find(letter)));
    return {importer.transposed(node, x.id, perm), letters};
}

/// Sums over the axes whose letters are in none of `kept`.
Lettered summed(Importer& importer, const Node& node, const Lettered& x, const std::string& kept) {
    Dims axes, target;
    std::string letters;
    for (size_t k = 0; k < x.letters.size(); ++k) {
        if (kept.find(x.letters[k]) == std::string::npos) {
            axes.push_back(static_cast<int64_t>(k));
        } else {
            letters += x.letters[k];
            target.push_back(importer.dims(x.id)[k]);
        }
    }
    if (axes.empty()) return x;
    const TensorId sum = importer.add_general(
        node, {.kind = GeneralKind::reduce, .function = GeneralFunction::sum, .axes = axes},
        {x.id});
    return {importer.reshaped(node, sum, target.empty() ? Dims{1} : target), letters};
}

/// Letters of x that are (or are not) in y.
std::string letters_in(const std::string& x, const std::string& y, bool wanted) {
    std::string letters;
    for (const char letter : x) {
        if ((y.find(letter) != std::string::npos) == wanted) letters += letter;
    }
    return letters;
}

int64_t extent_of(const Importer& importer, const Lettered& x, const std::string& letters) {
    int64_t extent = 1;
    for (const char letter : letters) extent *= importer.dims(x.id)[x.letters.find(letter)];
    return extent;
}

/// The contraction of two tensors as one matrix product: letters of both operands and the result
/// are the batch, letters of both that the result lacks are summed over.
Lettered contracted(Importer& importer, const Node& node, const Lettered& a, const Lettered& b,
                    const std::string& result) {
    const std::string both = letters_in(a.letters, b.letters, true);
    const std::string batch = letters_in(both, result, true),
                      inner = letters_in(both, result, false),
                      rows = letters_in(a.letters, b.letters, false),
                      columns = letters_in(b.letters, a.letters, false);
    const Lettered left = in_order(importer, node, a, batch + rows + inner),
                   right = in_order(importer, node, b, batch + inner + columns);
    const int64_t depth = extent_of(importer, left, inner);
    const TensorId x = importer.reshaped(
        node, left.id, {extent_of(importer, left, batch), extent_of(importer, left, rows), depth});
    const TensorId y = importer.reshaped(
        node, right.id,
        {extent_of(importer, right, batch), depth, extent_of(importer, right, columns)});
    const TensorId product = importer.add_general(node, {.kind = GeneralKind::matmul}, {x, y});
    Dims target;
    for (const char letter : batch + rows)
        target.push_back(importer.dims(left.id)[left.letters.find(letter)]);
    for (const char letter : columns)
        target.push_back(importer.dims(right.id)[right.letters.find(letter)]);
    return {importer.reshaped(node, product, target.empty() ? Dims{1} : target),
            batch + rows + columns};
}

/// The letters of an operand's axes. "..." becomes digits, aligned at the end: 0 for the last axis
/// that it stands for.
std::string axis_letters(const Node& node, const std::string& given, std::string term,
                         size_t rank) {
    const size_t dots = term.find("...");
    if (dots != std::string::npos) term.erase(dots, 3);
    for (const char letter : term) {
        const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
        if (!is_letter || std::count(term.begin(), term.end(), letter) != 1)
            node.fail("equation is " + given + ", expected different letters for the axes");
    }
    if (dots == std::string::npos) return term;
    std::string digits;
    for (size_t axis = term.size(); axis < rank; ++axis)
        digits.insert(digits.begin(), static_cast<char>('0' + digits.size()));
    return term.insert(dots, digits);
}

/// The letters of the result. Without "->" they are the axes of "...", then the letters that occur
/// once, in alphabetical order.
std::string result_letters(const Node& node, const std::string& given, const std::string& equation,
                           const std::string& all) {
    std::string dotted, result;
    for (char digit = '0'; all.find(digit) != std::string::npos; ++digit)
        dotted.insert(dotted.begin(), digit);
    const size_t arrow = equation.find("->");
    if (arrow == std::string::npos) {
        for (const char letter : all) {
            const bool is_digit = dotted.find(letter) != std::string::npos;
            if (!is_digit && std::count(all.begin(), all.end(), letter) == 1) result += letter;
        }
        std::sort(result.begin(), result.end());
        return dotted + result;
    }
    result = equation.substr(arrow + 2);
    for (const char letter : result) {
        if (letter != '.' &&
            (all.find(letter) == std::string::npos || dotted.find(letter) != std::string::npos ||
             std::count(result.begin(), result.end(), letter) != 1))
            node.fail("equation is " + given + ", whose result has a letter of no operand");
    }
    if (const size_t dots = result.find("..."); dots != std::string::npos)
        result.replace(dots, 3, dotted);
    if (result.find('.') != std::string::npos) node.fail("equation is " + given);
    return result;
}

/// The operand without those axes of extent 1 that are longer in another operand: they broadcast.
Lettered without_broadcast(Importer& importer, const Node& node, const std::string& given,
                           const Lettered& x, const std::vector<Lettered>& operands) {
    std::string letters;
    Dims extents;
    for (const char letter : x.letters) {
        const int64_t extent = extent_of(importer, x, {letter});
        int64_t longest = extent;
        for (const Lettered& other : operands) {
            if (other.letters.find(letter) != std::string::npos)
                longest = std::max(longest, extent_of(importer, other, {letter}));
        }
        if (extent != longest && extent != 1)
            node.fail("equation is " + given + ", where " + std::string(1, letter) +
                      " has two extents");
        if (extent != longest) continue;
        letters += letter;
        extents.push_back(extent);
    }
    if (letters == x.letters) return x;
    return {importer.reshaped(node, x.id, extents.empty() ? Dims{1} : extents), letters};
}

/// "bij,bjk->bik": operands whose own letters differ, multiplied from left to right.
void einsum(Importer& importer, Node& node) {
    node.expect_inputs(1, 8);
    std::string equation = node.text("equation", "");
    const std::string given = in_quotes(equation);
    std::erase(equation, ' ');
    std::string terms = equation.substr(0, equation.find("->")), all;
    std::vector<Lettered> operands;
    for (int i = 0; i < node.inputs(); ++i) {
        const size_t comma = terms.find(',');
        const TensorId id = importer.tensor(node, i);
        const Dims& dims = importer.file_dims(id);
        operands.push_back({id, axis_letters(node, given, terms.substr(0, comma), dims.size())});
        terms = comma == std::string::npos ? "" : terms.substr(comma + 1);
        if (operands.back().letters.size() != dims.size())
            node.fail("equation is " + given + " for an input of " + dims_text(dims));
        all += operands.back().letters;
    }
    if (!terms.empty()) node.fail("equation is " + given);
    const std::string result = result_letters(node, given, equation, all);
    for (Lettered& operand : operands)
        operand = without_broadcast(importer, node, given, operand, operands);
    // Letters that the result and the operands from `next` on have.
    const auto kept = [&](size_t next) {
        std::string letters = result;
        for (size_t k = next; k < operands.size(); ++k) letters += operands[k].letters;
        return letters;
    };
    Lettered whole = summed(importer, node, operands[0], kept(1));
    for (size_t k = 1; k < operands.size(); ++k) {
        const Lettered other = summed(importer, node, operands[k], kept(k + 1) + whole.letters);
        whole = contracted(importer, node, whole, other, kept(k + 1));
    }
    if (result.empty()) {
        importer.mark_scalar(whole.id);
    } else {
        whole = in_order(importer, node, whole, result);
    }
    importer.define_like(node, whole.id, whole.id);
}

// ---- CumSum

void cum_sum(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    const bool of_integers = importer.is_integer(node, 0);
    const TensorId x = importer.number_tensor(node, 0);
    const Dims given = importer.integers(node, 1).values;
    if (given.size() != 1) node.fail("axis is " + dims_text(given) + ", expected one value");
    GeneralOperator op{.kind = GeneralKind::running_sum};
    op.axes = {Importer::checked_axis(node, given[0], importer.dims(x).size(), "axis")};
    op.alpha = node.integer("reverse", 0) != 0 ? 1 : 0;
    op.beta = node.integer("exclusive", 0) != 0 ? 1 : 0;
    const TensorId sums = importer.add_general(node, std::move(op), {x});
    if (of_integers) return importer.define_integers(node, sums);
    importer.define_like(node, sums, sums);
}

}  // namespace

void add_matrix_products(Handlers& handlers) {
    handlers["Gemm"] = gemm;
    handlers["MatMul"] = mat_mul;
    handlers["Einsum"] = einsum;
    handlers["CumSum"] = cum_sum;
}

}  // namespace laminate::onnx
