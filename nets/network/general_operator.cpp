#include "nets/network/general_operator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "nets/network/network.h"
#include "nets/network/taps.h"

namespace laminate {

namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t largest_parameter = (int64_t{1} << 31) - 1;
constexpr size_t most_dimensions = 8;

[[noreturn]] void fail(const std::string& message) { throw InputError(message); }

void expect_inputs(const std::vector<Dims>& in, size_t count) {
    if (in.size() != count)
        fail("has " + std::to_string(in.size()) + " inputs, expected " + std::to_string(count));
}

void check_values(const ConstantPtr& constant, const char* what) {
    if (constant == nullptr) fail(std::string("has no ") + what);
    if (element_count(constant->dims) != std::ssize(constant->values)) {
        fail(std::string(what) + " of shape " + dims_text(constant->dims) + " hold " +
             std::to_string(constant->values.size()) + " values");
    }
}

enum class FunctionFamily { none, unary, binary, reduce, normalise, order, sample };

FunctionFamily family_of(GeneralFunction function) {
    if (function == GeneralFunction::none) return FunctionFamily::none;
    if (function < GeneralFunction::add) return FunctionFamily::unary;
    if (function < GeneralFunction::sum) return FunctionFamily::binary;
    if (function < GeneralFunction::softmax) return FunctionFamily::reduce;
    // New functions stand at the end of the list, since hashes hold the numbers of the others.
    if (function < GeneralFunction::remainder) return FunctionFamily::normalise;
    if (function == GeneralFunction::remainder) return FunctionFamily::binary;
    if (function == GeneralFunction::variance) return FunctionFamily::reduce;
    return function < GeneralFunction::nearest ? FunctionFamily::order : FunctionFamily::sample;
}

FunctionFamily family_of(GeneralKind kind) {
    switch (kind) {
        case GeneralKind::unary:
            return FunctionFamily::unary;
        case GeneralKind::binary:
            return FunctionFamily::binary;
        case GeneralKind::reduce:
            return FunctionFamily::reduce;
        case GeneralKind::normalise:
            return FunctionFamily::normalise;
        case GeneralKind::order:
            return FunctionFamily::order;
        case GeneralKind::sample:
            return FunctionFamily::sample;
        default:
            return FunctionFamily::none;
    }
}

/// The operands of a binary operator or a matrix product, a constant one among them.
std::array<Dims, 2> operand_dims(const Layer& layer, const std::vector<Dims>& in) {
    if (layer.weights == nullptr) {
        expect_inputs(in, 2);
        return {in[0], in[1]};
    }
    expect_inputs(in, 1);
    check_values(layer.weights, "constant operand");
    if (layer.general.constant_first) return {layer.weights->dims, in[0]};
    return {in[0], layer.weights->dims};
}

Dims view_dims(const GeneralOperator& op, const Dims& in) {
    (void)element_count(op.dims);
    if (op.dims.empty() || op.dims.size() > most_dimensions)
        fail("makes " + std::to_string(op.dims.size()) + " dimensions");
    if (op.steps.size() != op.dims.size())
        fail("has " + std::to_string(op.steps.size()) + " steps for " + dims_text(op.dims));
    int64_t low = op.first, high = op.first;
    for (size_t d = 0; d < op.dims.size(); ++d) {
        const int64_t reach = checked_multiply(op.steps[d], op.dims[d] - 1);
        low = checked_add(low, std::min<int64_t>(reach, 0));
        high = checked_add(high, std::max<int64_t>(reach, 0));
    }
    if (low < 0 || high >= element_count(in)) {
        fail("views elements " + std::to_string(low) + " to " + std::to_string(high) +
             " of an input of " + dims_text(in));
    }
    return op.dims;
}

Dims resample_dims(const GeneralOperator& op, const Dims& in) {
    (void)element_count(op.dims);
    if (op.dims.size() != in.size() || op.tap_counts.size() != in.size()) {
        fail("resamples " + dims_text(in) + " to " + dims_text(op.dims) + " with " +
             std::to_string(op.tap_counts.size()) + " tap counts");
    }
    size_t begin = 0;
    for (size_t d = 0; d < in.size(); ++d) {
        const int64_t taps = op.tap_counts[d];
        if (taps < 1 || taps > largest_parameter)
            fail("axis " + std::to_string(d) + " has " + std::to_string(taps) + " taps");
        const auto count = static_cast<size_t>(checked_multiply(taps, op.dims[d]));
        if (count > op.sources.size() - begin)
            fail("sources end before axis " + std::to_string(d) + " does");
        for (size_t k = begin; k < begin + count; ++k) {
            if (op.sources[k] < -1 || op.sources[k] >= in[d]) {
                fail("axis " + std::to_string(d) + " reads coordinate " +
                     std::to_string(op.sources[k]) + " of " + std::to_string(in[d]));
            }
        }
        begin += count;
    }
    if (begin != op.sources.size() || (!op.factors.empty() && op.factors.size() != begin)) {
        fail("has " + std::to_string(op.sources.size()) + " sources and " +
             std::to_string(op.factors.size()) + " factors, expected " + std::to_string(begin));
    }
    return op.dims;
}

void check_axes(const GeneralOperator& op, const Dims& in) {
    for (size_t k = 0; k < op.axes.size(); ++k) {
        if (op.axes[k] < 0 || op.axes[k] >= std::ssize(in) ||
            (k > 0 && op.axes[k] <= op.axes[k - 1])) {
            fail("axis " + std::to_string(op.axes[k]) + " of an input of " + dims_text(in));
        }
    }
}

Dims ordered_dims(const GeneralOperator& op, const Dims& in) {
    check_axes(op, in);
    Dims out = in;
    if (op.axes.size() == 1 && op.dims.size() == in.size()) {
        const auto axis = static_cast<size_t>(op.axes[0]);
        out[axis] = op.dims[axis];
        if (out == op.dims && out[axis] >= 1 && out[axis] <= in[axis]) return out;
    }
    fail("orders " + dims_text(in) + " into " + dims_text(op.dims));
}

Dims sampled_dims(const GeneralOperator& op, const Dims& in, const Dims& grid) {
    if (in.size() < 3 || in.size() > 5 || grid.size() != in.size() || grid[0] != in[0] ||
        grid.back() != std::ssize(in) - 2) {
        fail(
            "samples " + dims_text(in) + " at a grid of " + dims_text(grid) +
            ", expected N, C and one to three axes, and a grid of N, the extents of the output and "
            "one coordinate for each axis");
    }
    const bool has_padding = op.alpha == 0 || op.alpha == 1 || op.alpha == 2;
    if (!has_padding || (op.beta != 0 && op.beta != 1))
        fail("has padding " + std::to_string(op.alpha) + " and alignment " +
             std::to_string(op.beta));
    Dims out{in[0], in[1]};
    out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
    return out;
}

Dims matmul_dims(const Dims& a, const Dims& b) {
    const Dims left = a.size() == 1 ? Dims{1, a[0]} : a;
    const Dims right = b.size() == 1 ? Dims{b[0], 1} : b;
    if (left.back() != right[right.size() - 2])
        fail("multiplies matrices of " + dims_text(a) + " and " + dims_text(b));
    Dims out = broadcast_dims({left.begin(), left.end() - 2}, {right.begin(), right.end() - 2});
    if (a.size() > 1) out.push_back(left[left.size() - 2]);
    if (b.size() > 1) out.push_back(right.back());
    if (out.empty()) out.push_back(1);
    return out;
}

/// The shape of a matrix product, whose bias, if it has one, changes nothing.
Dims product_dims(const Layer& layer, const std::vector<Dims>& in) {
    const auto [a, b] = operand_dims(layer, in);
    if (a.empty() || b.empty()) fail("multiplies by a scalar");
    const Dims out = matmul_dims(a, b);
    if (layer.bias == nullptr) return out;
    check_values(layer.bias, "bias");
    if (b.size() < 2 || layer.bias->dims != Dims{b.back()})
        fail("bias is " + dims_text(layer.bias->dims) + ", expected one value per column of " +
             dims_text(b));
    return out;
}

/// Parameters of the window, one per spatial axis, in bounds that keep what follows within 64 bits.
void check_window(const GeneralOperator& op, const Dims& in) {
    if (in.size() < 3)
        fail("input is " + dims_text(in) + ", expected N, C and at least one spatial axis");
    const auto check = [&](const Dims& values, int64_t low, const char* what) {
        if (values.size() != in.size() - 2) {
            fail(std::string(what) + " has " + std::to_string(values.size()) +
                 " values, expected " + std::to_string(in.size() - 2));
        }
        for (const int64_t value : values) {
            if (value < low || value > largest_parameter)
                fail(std::string(what) + " is " + std::to_string(value));
        }
    };
    check(op.kernel, 1, "kernel size");
    check(op.stride, 1, "stride");
    check(op.dilation, 1, "dilation");
    check(op.pad_begin, 0, "leading padding");
    check(op.pad_end, 0, "trailing padding");
}

int64_t sliding_extent(const GeneralOperator& op, size_t axis, int64_t in) {
    const int64_t span = (op.kernel[axis] - 1) * op.dilation[axis] + 1;
    const int64_t padded = in + op.pad_begin[axis] + op.pad_end[axis];
    // With ceil_mode, a window counts that misses less than a stride of the padded input.
    if (span - padded >= (op.ceil_mode ? op.stride[axis] : 1)) {
        fail("window spans " + std::to_string(span) + " along spatial axis " +
             std::to_string(axis) + ", the padded input only " + std::to_string(padded));
    }
    if (!op.ceil_mode) return (padded - span) / op.stride[axis] + 1;
    const int64_t out = ceil_div(std::max<int64_t>(0, padded - span), op.stride[axis]) + 1;
    return (out - 1) * op.stride[axis] >= in + op.pad_begin[axis] ? out - 1 : out;
}

Dims pooled_dims(const GeneralOperator& op, const Dims& in) {
    check_window(op, in);
    if (op.kind == GeneralKind::power_pool && !(op.alpha > 0))
        fail("exponent is " + std::to_string(op.alpha) + ", expected above 0");
    Dims out{in[0], in[1]};
    for (size_t axis = 0; axis + 2 < in.size(); ++axis) {
        out.push_back(sliding_extent(op, axis, in[axis + 2]));
        if (!every_window_reads(
                {op.kernel[axis], op.stride[axis], op.dilation[axis], op.pad_begin[axis]},
                in[axis + 2], out.back()))
            fail("a window along spatial axis " + std::to_string(axis) +
                 " lies wholly in the padding");
    }
    return out;
}

Dims convolved_dims(const Layer& layer, const Dims& in) {
    const GeneralOperator& op = layer.general;
    check_window(op, in);
    check_values(layer.weights, "weights");
    const Dims& w = layer.weights->dims;
    if (w.size() != in.size() || !std::equal(op.kernel.begin(), op.kernel.end(), w.begin() + 2)) {
        fail("weights are " + dims_text(w) + " for an input of " + dims_text(in));
    }
    const bool transposed = op.kind == GeneralKind::transposed_convolution;
    if (layer.groups < 1 || in[1] % layer.groups != 0 || w[0] % layer.groups != 0 ||
        (transposed ? w[0] : checked_multiply(w[1], layer.groups)) != in[1]) {
        fail("weights are " + dims_text(w) + " in " + std::to_string(layer.groups) +
             " groups for an input of " + dims_text(in));
    }
    Dims out{in[0], transposed ? checked_multiply(w[1], layer.groups) : w[0]};
    if (layer.bias != nullptr) {
        check_values(layer.bias, "bias");
        if (std::ssize(layer.bias->values) != out[1]) {
            fail("bias has " + std::to_string(layer.bias->values.size()) + " values, expected " +
                 std::to_string(out[1]));
        }
    }
    if (transposed) {
        if (op.dims.size() + 2 != in.size())
            fail("output is " + dims_text(op.dims) + " for an input of " + dims_text(in));
        out.insert(out.end(), op.dims.begin(), op.dims.end());
        return out;
    }
    for (size_t axis = 0; axis + 2 < in.size(); ++axis)
        out.push_back(sliding_extent(op, axis, in[axis + 2]));
    return out;
}

}  // namespace

const char* to_string(GeneralKind kind) {
    static constexpr std::array<const char*, general_kind_count> names{
        "constant",  "reshape",      "view",        "resample",
        "unary",     "binary",       "select",      "reduce",
        "normalise", "matmul",       "convolution", "transposed_convolution",
        "max_pool",  "average_pool", "power_pool",  "local_response",
        "running_sum", "order",      "sample",      "blocks"};
    return names.at(static_cast<size_t>(kind));
}

const char* to_string(GeneralFunction function) {
    static constexpr std::array<const char*, general_function_count> names{"none",
                                                                           "absolute",
                                                                           "negative",
                                                                           "exponential",
                                                                           "logarithm",
                                                                           "square_root",
                                                                           "reciprocal",
                                                                           "floor",
                                                                           "ceil",
                                                                           "round_to_even",
                                                                           "sign",
                                                                           "error_function",
                                                                           "sine",
                                                                           "cosine",
                                                                           "tangent",
                                                                           "elu",
                                                                           "selu",
                                                                           "celu",
                                                                           "softplus",
                                                                           "softsign",
                                                                           "hard_sigmoid",
                                                                           "hard_swish",
                                                                           "mish",
                                                                           "swish",
                                                                           "thresholded_relu",
                                                                           "shrink",
                                                                           "gelu",
                                                                           "gelu_tanh",
                                                                           "is_zero",
                                                                           "add",
                                                                           "subtract",
                                                                           "multiply",
                                                                           "divide",
                                                                           "power",
                                                                           "minimum",
                                                                           "maximum",
                                                                           "prelu",
                                                                           "equal",
                                                                           "less",
                                                                           "less_or_equal",
                                                                           "greater",
                                                                           "greater_or_equal",
                                                                           "sum",
                                                                           "mean",
                                                                           "product",
                                                                           "largest",
                                                                           "smallest",
                                                                           "norm_1",
                                                                           "norm_2",
                                                                           "log_sum",
                                                                           "log_sum_exp",
                                                                           "sum_of_squares",
                                                                           "softmax",
                                                                           "log_softmax",
                                                                           "hardmax",
                                                                           "standardise",
                                                                           "root_mean_square",
                                                                           "remainder",
                                                                           "largest_values",
                                                                           "largest_places",
                                                                           "smallest_values",
                                                                           "smallest_places",
                                                                           "nearest",
                                                                           "linear",
                                                                           "cubic",
                                                                           "variance"};
    return names.at(static_cast<size_t>(function));
}

bool is_activation(GeneralFunction function, float alpha, float beta) {
    if (!std::isfinite(alpha) || !std::isfinite(beta)) return false;
    switch (function) {
        case GeneralFunction::celu:
            return alpha > 0;  // else it grows like e^-x or divides by 0
        case GeneralFunction::power:
            return std::abs(alpha) <= 16 && alpha != 0 && alpha != 1;
        case GeneralFunction::absolute:
        case GeneralFunction::negative:
        case GeneralFunction::exponential:
        case GeneralFunction::logarithm:
        case GeneralFunction::square_root:
        case GeneralFunction::reciprocal:
        case GeneralFunction::floor:
        case GeneralFunction::ceil:
        case GeneralFunction::round_to_even:
        case GeneralFunction::sign:
        case GeneralFunction::error_function:
        case GeneralFunction::sine:
        case GeneralFunction::cosine:
        case GeneralFunction::tangent:
        case GeneralFunction::thresholded_relu:
        case GeneralFunction::shrink:
        case GeneralFunction::elu:
        case GeneralFunction::selu:
        case GeneralFunction::softplus:
        case GeneralFunction::softsign:
        case GeneralFunction::hard_sigmoid:
        case GeneralFunction::hard_swish:
        case GeneralFunction::mish:
        case GeneralFunction::swish:
        case GeneralFunction::gelu:
        case GeneralFunction::gelu_tanh:
            return true;
        default:
            return false;
    }
}

bool is_steep(GeneralFunction function) {
    switch (function) {
        case GeneralFunction::exponential:
        case GeneralFunction::logarithm:
        case GeneralFunction::square_root:
        case GeneralFunction::reciprocal:
        case GeneralFunction::tangent:
        case GeneralFunction::floor:
        case GeneralFunction::ceil:
        case GeneralFunction::round_to_even:
        case GeneralFunction::sign:
        case GeneralFunction::thresholded_relu:
        case GeneralFunction::shrink:
        case GeneralFunction::power:
            return true;
        default:
            return false;
    }
}

std::vector<int64_t> broadcast_dims(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    const size_t rank = std::max(a.size(), b.size());
    Dims out(rank, 1);
    for (size_t d = 0; d < rank; ++d) {  // from the last axis on
        const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1;
        const int64_t y = d < b.size() ? b[b.size() - 1 - d] : 1;
        if (x != y && x != 1 && y != 1)
            fail("operands are " + dims_text(a) + " and " + dims_text(b) +
                 ", expected shapes that broadcast");
        out[rank - 1 - d] = x == 1 ? y : x;
    }
    return out;
}

std::vector<int64_t> row_major_steps(const std::vector<int64_t>& dims) {
    Dims steps(dims.size(), 1);
    for (size_t d = dims.size(); d-- > 1;) steps[d - 1] = steps[d] * dims[d];
    return steps;
}

namespace {

Dims dims_of_blocks(const GeneralOperator& op, const Dims& in) {
    if (in.size() != 4) fail("input is " + dims_text(in) + ", expected N, C, H and W");
    if (op.kernel.size() != 1 || op.kernel[0] < 1 || in[2] % op.kernel[0] != 0 ||
        in[3] % op.kernel[0] != 0)
        fail("input is " + dims_text(in) + ", which its blocks do not divide");
    const int64_t b = op.kernel[0];
    const int64_t channels = checked_multiply(in[1], checked_multiply(b, b));
    if (op.first < 1 || channels % op.first != 0)
        fail("shuffles " + std::to_string(channels) + " channels by " + std::to_string(op.first));
    return {in[0], channels, in[2] / b, in[3] / b};
}

Dims dims_of_running_sum(const GeneralOperator& op, const Dims& in) {
    if (op.axes.size() != 1 || op.axes[0] < 0 || op.axes[0] >= std::ssize(in))
        fail("sums along " + dims_text(op.axes) + ", expected one axis of " + dims_text(in));
    return in;
}

}  // namespace

std::vector<int64_t> general_output_dims(const Layer& layer,
                                         const std::vector<std::vector<int64_t>>& in) {
    const GeneralOperator& op = layer.general;
    if (family_of(op.function) != family_of(op.kind))
        fail(std::string(to_string(op.kind)) + " cannot be of function " + to_string(op.function));
    const bool is_convolution =
        op.kind == GeneralKind::convolution || op.kind == GeneralKind::transposed_convolution;
    const bool takes_constant = is_convolution || op.kind == GeneralKind::constant ||
                                op.kind == GeneralKind::binary || op.kind == GeneralKind::matmul;
    if (layer.weights != nullptr && !takes_constant) fail("has weights, expected none");
    if (layer.bias != nullptr && !is_convolution && op.kind != GeneralKind::matmul)
        fail("has a bias, expected none");
    for (const Dims& dims : in) {
        if (dims.empty() || dims.size() > most_dimensions)
            fail("input is " + dims_text(dims) + ", expected 1 to 8 dimensions");
    }
    const bool takes_several = op.kind == GeneralKind::constant || op.kind == GeneralKind::binary ||
                               op.kind == GeneralKind::select || op.kind == GeneralKind::matmul ||
                               op.kind == GeneralKind::sample;
    if (!takes_several) expect_inputs(in, 1);
    switch (op.kind) {
        case GeneralKind::constant:
            expect_inputs(in, 0);
            check_values(layer.weights, "value");
            return layer.weights->dims;
        case GeneralKind::reshape:
            if (op.dims.empty() || op.dims.size() > most_dimensions ||
                element_count(op.dims) != element_count(in[0]))
                fail("changes " + dims_text(in[0]) + " to " + dims_text(op.dims));
            return op.dims;
        case GeneralKind::view:
            return view_dims(op, in[0]);
        case GeneralKind::resample:
            return resample_dims(op, in[0]);
        case GeneralKind::unary:
            return in[0];
        case GeneralKind::binary: {
            const auto [a, b] = operand_dims(layer, in);
            return broadcast_dims(a, b);
        }
        case GeneralKind::select:
            expect_inputs(in, 3);
            return broadcast_dims(in[0], broadcast_dims(in[1], in[2]));
        case GeneralKind::reduce: {
            check_axes(op, in[0]);
            Dims out = in[0];
            for (const int64_t axis : op.axes) out[static_cast<size_t>(axis)] = 1;
            return out;
        }
        case GeneralKind::normalise:
            check_axes(op, in[0]);
            return in[0];
        case GeneralKind::matmul:
            return product_dims(layer, in);
        case GeneralKind::convolution:
        case GeneralKind::transposed_convolution:
            return convolved_dims(layer, in[0]);
        case GeneralKind::max_pool:
        case GeneralKind::average_pool:
        case GeneralKind::power_pool:
            return pooled_dims(op, in[0]);
        case GeneralKind::running_sum:
            return dims_of_running_sum(op, in[0]);
        case GeneralKind::order:
            return ordered_dims(op, in[0]);
        case GeneralKind::sample:
            expect_inputs(in, 2);
            return sampled_dims(op, in[0], in[1]);
        case GeneralKind::blocks:
            return dims_of_blocks(op, in[0]);
        case GeneralKind::local_response:
            if (in[0].size() < 2)
                fail("input is " + dims_text(in[0]) + ", expected N, C and what follows");
            if (op.kernel.size() != 1 || op.kernel[0] < 1 || op.kernel[0] > largest_parameter)
                fail("has no number of neighbour channels");
            return in[0];
    }
    fail("kind out of range");
}

int64_t general_macs(const Layer& layer, const std::vector<std::vector<int64_t>>& in,
                     const std::vector<int64_t>& out) {
    const GeneralOperator& op = layer.general;
    if (op.kind == GeneralKind::matmul)
        return checked_multiply(element_count(out), operand_dims(layer, in)[0].back());
    if (op.kind != GeneralKind::convolution && op.kind != GeneralKind::transposed_convolution)
        return 0;
    const Dims& w = layer.weights->dims;
    if (op.kind == GeneralKind::convolution)
        return checked_multiply(element_count(out), element_count({w.begin() + 1, w.end()}));
    int64_t macs = checked_multiply(checked_multiply(out[0], out[1]), w[0] / layer.groups);
    for (size_t axis = 0; axis < op.kernel.size(); ++axis) {
        macs = checked_multiply(macs,
                                transposed_taps(op.kernel[axis], op.stride[axis], op.dilation[axis],
                                                op.pad_begin[axis], out[axis + 2]));
    }
    return macs;
}

}  // namespace laminate
