// Element-wise operators: activations, arithmetic with broadcasting, comparisons, Where, Cast. On
// integers they compute shapes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "nets/onnx/importer.h"

namespace laminate::onnx {

namespace {

using Function = GeneralFunction;

// ---- one operand

void activation(Importer& importer, Node& node, Activation activation) {
    node.ignore("consumed_inputs");
    const TensorId x = importer.tensor(node, 0);
    importer.append_like(node, x,
                         {.kind = LayerKind::activation,
                          .inputs = {importer.picture_if_lifted(x)},
                          .activation = std::move(activation)});
}

void unary(Importer& importer, Node& node, Function function, float alpha = 0, float beta = 0) {
    node.expect_inputs(1, 1);
    if (is_activation(function, alpha, beta)) {
        return activation(
            importer, node,
            {.kind = ActivationKind::unary, .function = function, .alpha = alpha, .beta = beta});
    }
    importer.append(
        node, {.kind = GeneralKind::unary, .function = function, .alpha = alpha, .beta = beta},
        {importer.tensor(node, 0)});
}

template <Function function>
void plain(Importer& importer, Node& node) {
    node.ignore("consumed_inputs");
    if (function == Function::negative && importer.is_integer(node, 0)) {
        IntegerConstant result = importer.integers(node, 0);
        for (int64_t& v : result.values) {
            if (__builtin_sub_overflow(int64_t{0}, v, &v)) node.fail("overflows 64 bits");
        }
        return importer.define(node, result);
    }
    unary(importer, node, function);
}

/// Clip with computed bounds: min(upper, max(x, lower)), as ONNX defines it.
void clip_by_tensors(Importer& importer, Node& node) {
    TensorId x = importer.tensor(node, 0);
    const std::array<Function, 3> bound{Function::none, Function::maximum, Function::minimum};
    for (const int i : {1, 2}) {
        if (!node.has_input(i)) continue;
        const TensorId limit = importer.tensor(node, i);
        if (element_count(importer.dims(limit)) != 1 || importer.file_dims(limit).size() > 1)
            node.fail("input " + in_quotes(node.input(i)) + " is " +
                      dims_text(importer.dims(limit)) + ", expected one value");
        const GeneralOperator op{.kind = GeneralKind::binary,
                                 .function = bound[static_cast<size_t>(i)]};
        if (i == 2 || !node.has_input(2)) return importer.append(node, op, {x, limit});
        x = importer.add_general(node, op, {x, limit});
    }
}

void clip(Importer& importer, Node& node) {
    constexpr float lowest = std::numeric_limits<float>::lowest();
    constexpr float highest = std::numeric_limits<float>::max();
    Activation a{.kind = ActivationKind::clip};
    if (importer.opset() < 11) {
        a.low = node.real("min", lowest);
        a.high = node.real("max", highest);
    } else {
        node.expect_inputs(1, 3);
        const auto is_live = [&](int i) {
            return node.has_input(i) && std::holds_alternative<TensorId>(importer.value(node, i));
        };
        if (is_live(1) || is_live(2)) return clip_by_tensors(importer, node);
        a.low = importer.scalar(node, 1, lowest);
        a.high = importer.scalar(node, 2, highest);
    }
    a.low = std::min(a.low, a.high);  // ONNX: if the bounds cross, the result is `max`
    // Without an upper bound it clips infinity to the largest float, which Relu does not.
    if (a.low == 0 && a.high > highest) a = {.kind = ActivationKind::relu};
    activation(importer, node, std::move(a));
}

void identity(Importer& importer, Node& node) {
    const Value value = importer.value(node, 0);
    if (std::holds_alternative<TensorId>(value))
        return importer.alias(node, std::get<TensorId>(value));
    importer.define(node, value);
}

void dropout(Importer& importer, Node& node) {
    node.ignore("ratio");
    node.ignore("seed");
    node.ignore("is_test");
    if (node.has_input(2)) {
        const auto training = importer.integers(node, 2).values;
        const bool drops =
            training.size() != 1 || (training[0] != 0 && importer.scalar(node, 1, 0.5f) != 0);
        if (drops) node.fail("training mode is not supported");
    }
    importer.alias(node, importer.tensor(node, 0));
}

/// Cast to UINT8 truncates fractions. ONNX leaves values outside 0 to 255 undefined; here they
/// saturate.
void to_bytes(Importer& importer, Node& node) {
    const TensorId clipped = importer.add_layer(
        node, {.kind = LayerKind::activation,
               .inputs = {importer.tensor(node, 0)},
               .activation = {.kind = ActivationKind::clip, .low = 0, .high = 255}});
    importer.append(node, {.kind = GeneralKind::unary, .function = Function::floor}, {clipped});
    importer.set_type(node.file().output(0), ElementType::uint8);
}

void cast_to(Importer& importer, Node& node, int64_t to) {
    node.ignore("saturate");
    node.ignore("round_mode");
    using Type = proto::TensorProto;
    const Value value = importer.value(node, 0);
    if (const auto* list = std::get_if<IntegerConstant>(&value)) {
        if (is_real(to)) return importer.define(node, importer.number_tensor(node, 0));
        IntegerConstant result = *list;
        if (to == Type::BOOL) {
            for (int64_t& v : result.values) v = v != 0 ? 1 : 0;
        } else if (to != Type::INT64 && to != Type::INT32) {
            node.fail("of a list of integers is supported to INT64, INT32, BOOL and FLOAT only");
        }
        return importer.define(node, result);
    }
    if (importer.is_live_integer(node.input(0)) &&
        (is_real(to) || to == Type::INT64 || to == Type::INT32)) {
        if (!is_real(to)) importer.mark_live_integer(node.file().output(0));
        return identity(importer, node);
    }
    const auto* small = std::get_if<SmallIntegers>(&value);
    const ElementType from = importer.type(node.input(0));
    if (from != ElementType::float32 &&
        to == (from == ElementType::uint8 ? Type::UINT8 : Type::INT8)) {
        importer.set_type(node.file().output(0), from);
        return identity(importer, node);
    }
    if (to == Type::UINT8 && from == ElementType::float32 &&
        std::holds_alternative<TensorId>(value))
        return to_bytes(importer, node);
    if (is_real(to))
        return small != nullptr ? importer.define(node, small->values) : identity(importer, node);
    if (to == Type::BOOL && small == nullptr) {  // a computed truth value is 1 or 0
        const TensorId zero =
            importer.add_general(node, {.kind = GeneralKind::unary, .function = Function::is_zero},
                                 {importer.tensor(node, 0)});
        return importer.append(node, {.kind = GeneralKind::unary, .function = Function::is_zero},
                               {zero});
    }
    const auto* constant = small != nullptr ? &small->values : std::get_if<ConstantPtr>(&value);
    if (constant == nullptr || (to != Type::INT64 && to != Type::INT32 && to != Type::BOOL)) {
        node.fail(
            "is supported only where it changes nothing, and of constants to INT64, INT32, BOOL "
            "and FLOAT");
    }
    IntegerConstant result{(*constant)->dims, {}};
    for (const float v : (*constant)->values) {
        if (!(std::abs(v) < 9e18f)) node.fail("makes an integer of " + std::to_string(v));
        result.values.push_back(to == Type::BOOL ? v != 0 : static_cast<int64_t>(v));
    }
    importer.define(node, result);
}

/// Weights stored as integers: (x - zero point) * scale, with one scale, or one per coordinate
/// along an axis.
void dequantize_linear(Importer& importer, Node& node) {
    node.expect_inputs(2, 3);
    using Type = proto::TensorProto;
    if (node.integer("block_size", 0) != 0) node.fail("block_size is supported only as 0");
    if (const int64_t type = node.integer("output_dtype", Type::UNDEFINED);
        type != Type::UNDEFINED && !is_real(type))
        node.fail("output_dtype is " + std::to_string(type) + ", expected FLOAT");
    const auto stored = [&](int i) -> ConstantPtr {
        const Value value = importer.value(node, i);
        if (const auto* small = std::get_if<SmallIntegers>(&value)) return small->values;
        if (!std::holds_alternative<IntegerConstant>(value)) {
            node.fail("input " + in_quotes(node.input(i)) +
                      " is computed when the network runs, expected constant integers: everything "
                      "is computed in FLOAT");
        }
        return importer.known(importer.number_tensor(node, i));
    };
    const ConstantPtr x = stored(0), scale = importer.constant(node, 1),
                      zero = node.has_input(2) ? stored(2) : nullptr;
    const auto rank = x->dims.size();
    const int64_t axis = node.integer("axis", 1);
    size_t after = x->values.size(),
           places = 1;  // values that share a scale and lie together; scales
    if (scale->values.size() != 1) {
        const auto along = static_cast<size_t>(Importer::checked_axis(node, axis, rank, "axis"));
        places = static_cast<size_t>(x->dims[along]);
        after = 1;
        for (size_t d = along + 1; d < rank; ++d) after *= static_cast<size_t>(x->dims[d]);
    }
    if (scale->values.size() != places || (zero && zero->values.size() != places)) {
        node.fail("has " + std::to_string(scale->values.size()) + " scales and " +
                  std::to_string(zero ? zero->values.size() : 0) + " zero points, expected " +
                  std::to_string(places));
    }
    importer.charge(x->values.size());
    std::vector<float> values(x->values.size());
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t place = i / after % places;
        values[i] = (x->values[i] - (zero ? zero->values[place] : 0.0f)) * scale->values[place];
    }
    importer.define(node, std::make_shared<const Constant>(Constant{x->dims, std::move(values)}));
}

void cast_like(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    using Type = proto::TensorProto;
    if (std::holds_alternative<SmallIntegers>(importer.value(node, 1)))
        node.fail(
            "input " + in_quotes(node.input(1)) +
            " has constant integers of 8 or 16 bits, expected FLOAT, or integers of 32 or 64 bits");
    const ElementType like = importer.type(node.input(1));
    cast_to(importer, node,
            importer.is_integer(node, 1) ? Type::INT64
            : like == ElementType::uint8 ? Type::UINT8
            : like == ElementType::int8  ? Type::INT8
                                         : Type::FLOAT);
}

// ---- two operands

/// The constant in the form that an add layer takes for an operand of shape `dims`: one value
/// ({1}), one per channel ({C}) or whole (dims without N); nullopt if it broadcasts otherwise.
/// Shapes are aligned at their ends, as ONNX broadcasts.
std::optional<ConstantPtr> per_channel_or_whole(const ConstantPtr& constant, const Dims& dims) {
    if (constant->dims.size() > dims.size()) return std::nullopt;
    Dims aligned(dims.size() - constant->dims.size(), 1);
    aligned.insert(aligned.end(), constant->dims.begin(), constant->dims.end());
    const auto reshaped = [&](Dims to) {
        return std::make_shared<const Constant>(Constant{std::move(to), constant->values});
    };
    if (constant->values.size() == 1) return reshaped({1});
    if (aligned[0] != 1) return std::nullopt;
    Dims channels(dims.size(), 1);
    if (dims.size() > 1) channels[1] = dims[1];
    if (aligned == channels) return reshaped({dims[1]});
    if (std::equal(aligned.begin() + 1, aligned.end(), dims.begin() + 1))
        return reshaped({dims.begin() + 1, dims.end()});
    return std::nullopt;
}

/// Before opset 7, the axes of the second operand were aligned with those of the first from `axis`
/// on.
TensorId aligned_operand(Importer& importer, Node& node, TensorId a, TensorId b) {
    if (importer.opset() >= 7) return b;
    node.ignore("consumed_inputs");
    const bool broadcasts = node.integer("broadcast", 0) != 0;
    const int64_t axis = node.integer("axis", -1);
    const auto rank = std::ssize(importer.dims(a));
    const auto own = std::ssize(importer.file_dims(b));
    if (!broadcasts || axis < 0 || own == 0) return b;
    if (axis + own > rank)
        node.fail("axis " + std::to_string(axis) + " and " + std::to_string(own) +
                  " dimensions do not fit " + std::to_string(rank));
    Dims target = importer.dims(b);
    target.insert(target.end(), static_cast<size_t>(rank - axis - own), 1);
    return importer.reshaped(node, b, target);
}

/// Imports y = x + c, x - c, x * c or x / c. A constant of one value or one per channel folds; sums
/// also take a whole constant.
void with_constant(Importer& importer, Node& node, Function function, TensorId x,
                   const ConstantPtr& c) {
    const Dims& extents = importer.dims(x);
    const bool is_sum = function == Function::add || function == Function::subtract;
    std::vector<float> operand = c->values;
    if (function == Function::subtract) {
        for (float& v : operand) v = -v;
    } else if (function == Function::divide) {
        for (float& v : operand) v = 1.0f / v;
    }
    const auto all_finite =
        std::all_of(operand.begin(), operand.end(), [](float v) { return std::isfinite(v); });
    const auto spread = per_channel_or_whole(
        std::make_shared<const Constant>(Constant{c->dims, std::move(operand)}), extents);
    const bool keeps_shape = broadcast_dims(extents, c->dims) == extents;
    const bool per_channel =
        spread && (*spread)->dims.size() == 1 &&
        ((*spread)->values.size() == 1 || (extents.size() > 1 && (*spread)->dims[0] == extents[1]));
    if (spread && is_sum && keeps_shape) {
        importer.charge((*spread)->values.size());
        const TensorId picture = per_channel ? importer.picture_if_lifted(x) : x;
        return importer.append_like(
            node, x, {.kind = LayerKind::add, .inputs = {picture}, .weights = *spread});
    }
    if (per_channel && !is_sum && keeps_shape && all_finite && extents.size() > 1) {
        const auto channels = static_cast<size_t>(extents[1]);
        std::vector<float> scale = (*spread)->values;
        scale.resize(channels, scale.front());
        return importer.append_affine(
            node, x, std::make_shared<const Constant>(Constant{{extents[1]}, std::move(scale)}),
            std::make_shared<const Constant>(
                Constant{{extents[1]}, std::vector<float>(channels, 0.0f)}));
    }
    importer.append(node, {.kind = GeneralKind::binary, .function = function},
                    {x, importer.constant_tensor(node, c)});
}

/// An operand beside integers that are computed when the network runs: floats hold it exactly.
TensorId live_operand(Importer& importer, const Node& node, int i) {
    constexpr int64_t most = int64_t{1} << 24;
    if (importer.is_integer(node, i)) {
        for (const int64_t value : importer.integers(node, i).values) {
            if (value < -most || value > most)
                node.fail("input " + in_quotes(node.input(i)) + " has " + std::to_string(value) +
                          ", expected integers of up to 2^24 beside those that are computed");
        }
    }
    return importer.number_tensor(node, i);
}

void binary(Importer& importer, Node& node, Function function) {
    node.expect_inputs(2, 2);
    if (importer.is_integer(node, 0) && importer.is_integer(node, 1))
        return importer.define(
            node, combined(node, function, importer.integers(node, 0), importer.integers(node, 1)));
    const auto operand = [&](int i) {
        return importer.is_live_integer(node.input(1 - i)) ? live_operand(importer, node, i)
               : function == Function::power && i == 1     ? importer.number_tensor(node, i)
                                                           : importer.tensor(node, i);
    };
    const TensorId a = operand(0), b = aligned_operand(importer, node, a, operand(1));
    const ConstantPtr left = importer.known(a), right = importer.known(b);
    const bool is_sum = function == Function::add || function == Function::subtract;
    const bool is_product = function == Function::multiply || function == Function::divide;
    if ((is_sum || is_product) && right && !left)
        return with_constant(importer, node, function, a, right);
    const bool commutes = function == Function::add || function == Function::multiply;
    if (function == Function::subtract && left && !right) {  // c - x = -1 x + c
        const auto shift = per_channel_or_whole(left, importer.dims(b));
        const Dims& extents = importer.dims(b);
        if (shift && extents.size() == 4 && broadcast_dims(extents, left->dims) == extents &&
            ((*shift)->values.size() == 1 || (*shift)->dims == Dims{extents[1]})) {
            const auto channels = static_cast<size_t>(extents[1]);
            std::vector<float> values = (*shift)->values;
            values.resize(channels, values.front());
            return importer.append_affine(
                node, b,
                std::make_shared<const Constant>(
                    Constant{{extents[1]}, std::vector<float>(channels, -1.0f)}),
                std::make_shared<const Constant>(Constant{{extents[1]}, std::move(values)}));
        }
    }
    if (commutes && left && !right) return with_constant(importer, node, function, b, left);
    if (function == Function::add && !left && importer.dims(a) == importer.dims(b)) {
        const TensorId x = importer.picture_if_lifted(a), y = importer.picture_if_lifted(b);
        const bool are_pictures = x != a && y != b;
        return importer.append_like(
            node, a,
            {.kind = LayerKind::add, .inputs = {are_pictures ? x : a, are_pictures ? y : b}});
    }
    importer.append(node, {.kind = GeneralKind::binary, .function = function}, {a, b});
}

template <Function function>
void two(Importer& importer, Node& node) {
    binary(importer, node, function);
}

/// What a maximum or minimum with one known value clips to; nullopt for others.
std::optional<Activation> clip_of(const Importer& importer, Function function, TensorId x,
                                  TensorId bound) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const ConstantPtr value = importer.known(bound);
    if (importer.known(x) || !value || value->values.size() != 1 ||
        importer.dims(bound).size() > importer.dims(x).size() || std::isnan(value->values[0]) ||
        (function != Function::maximum && function != Function::minimum))
        return {};
    const float at = value->values[0];
    if (function == Function::maximum && at == 0) return Activation{.kind = ActivationKind::relu};
    return function == Function::maximum
               ? Activation{.kind = ActivationKind::clip, .low = at, .high = infinity}
               : Activation{.kind = ActivationKind::clip, .low = -infinity, .high = at};
}

/// Sum, Max, Min and Mean of any number of operands.
void several(Importer& importer, Node& node, Function function, bool is_mean) {
    node.ignore("consumed_inputs");
    node.expect_inputs(1, std::numeric_limits<int>::max());
    if (importer.is_integer(node, 0)) {
        IntegerConstant result = importer.integers(node, 0);
        for (int i = 1; i < node.inputs(); ++i)
            result = combined(node, function, result, importer.integers(node, i));
        return importer.define(node, result);
    }
    if (node.inputs() == 2 && function == Function::add && !is_mean)
        return binary(importer, node, function);
    if (node.inputs() == 1) return importer.alias(node, importer.tensor(node, 0));
    for (const int bound : {0, 1}) {
        if (node.inputs() != 2) break;
        const TensorId x = importer.tensor(node, 1 - bound);
        const auto clips = clip_of(importer, function, x, importer.tensor(node, bound));
        if (!clips) continue;
        return importer.append_like(node, x,
                                    {.kind = LayerKind::activation,
                                     .inputs = {importer.picture_if_lifted(x)},
                                     .activation = *clips});
    }
    TensorId total = importer.tensor(node, 0);
    for (int i = 1; i < node.inputs(); ++i) {
        const GeneralOperator op{.kind = GeneralKind::binary, .function = function};
        const TensorId next = importer.tensor(node, i);
        if (i + 1 == node.inputs() && !is_mean) return importer.append(node, op, {total, next});
        total = importer.add_general(node, op, {total, next});
    }
    with_constant(
        importer, node, Function::divide, total,
        std::make_shared<const Constant>(Constant{{}, {static_cast<float>(node.inputs())}}));
}

void prelu(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    const TensorId x = importer.tensor(node, 0), slope = importer.tensor(node, 1);
    const Dims extents = importer.dims(x);
    const ConstantPtr constant = importer.known(slope);
    // Before opset 7 the slopes are always one per channel.
    const bool per_channel = constant && importer.opset() < 7 && extents.size() > 1 &&
                             importer.file_dims(slope) == Dims{extents[1]};
    const auto spread = per_channel ? std::optional(constant)
                        : constant  ? per_channel_or_whole(constant, extents)
                                    : std::nullopt;
    const auto count = spread ? (*spread)->values.size() : 0;
    if (!spread || (count != 1 && (extents.size() < 2 || (*spread)->dims != Dims{extents[1]}))) {
        if (broadcast_dims(extents, importer.dims(slope)) != extents) {
            node.fail(
                "slopes are " + dims_text(importer.dims(slope)) + " for an input of " +
                dims_text(extents) +
                ", expected one value, one per channel (Cx1x1), or a shape that broadcasts to it");
        }
        return importer.append(node, {.kind = GeneralKind::binary, .function = Function::prelu},
                               {x, slope});
    }
    activation(importer, node, {.kind = ActivationKind::prelu, .slope = *spread});
}

/// Truth values are 1 and 0.
void logical(Importer& importer, Node& node, Function function) {
    node.expect_inputs(2, 2);
    if (importer.is_integer(node, 0) && importer.is_integer(node, 1))
        return importer.define(
            node, combined(node, function, importer.integers(node, 0), importer.integers(node, 1)));
    importer.append(node, {.kind = GeneralKind::binary, .function = function},
                    {importer.number_tensor(node, 0), importer.number_tensor(node, 1)});
}

void logical_not(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    if (importer.is_integer(node, 0))
        return importer.define(
            node, combined(node, Function::equal, importer.integers(node, 0), {{}, {0}}));
    unary(importer, node, Function::is_zero);
}

void where(Importer& importer, Node& node) {
    node.expect_inputs(3, 3);
    const bool of_integers = importer.is_integer(node, 1) && importer.is_integer(node, 2);
    if (of_integers && importer.is_integer(node, 0))
        return importer.define(node,
                               chosen(node, importer.integers(node, 0), importer.integers(node, 1),
                                      importer.integers(node, 2)));
    const bool is_live_integer =
        importer.is_live_integer(node.input(1)) || importer.is_live_integer(node.input(2));
    const auto choice = [&](int i) {
        return of_integers || is_live_integer ? live_operand(importer, node, i)
                                              : importer.tensor(node, i);
    };
    const TensorId result =
        importer.add_general(node, {.kind = GeneralKind::select},
                             {importer.number_tensor(node, 0), choice(1), choice(2)});
    if (of_integers) return importer.define_integers(node, result);
    importer.define_like(node, result, result);
}

/// Of integers the result has the sign of the divisor, or of the dividend with fmod = 1 (ONNX).
void mod(Importer& importer, Node& node) {
    const bool has_sign_of_dividend = node.integer("fmod", 0) != 0;
    if (importer.is_integer(node, 0) && importer.is_integer(node, 1) && !has_sign_of_dividend) {
        const IntegerConstant divisor = importer.integers(node, 1);
        const IntegerConstant rest =
            combined(node, Function::remainder, importer.integers(node, 0), divisor);
        const IntegerConstant shifted = combined(node, Function::add, rest, divisor);
        return importer.define(node, combined(node, Function::remainder, shifted, divisor));
    }
    if (!has_sign_of_dividend && !importer.is_integer(node, 0))
        node.fail("of FLOAT has fmod 0, expected 1");
    binary(importer, node, Function::remainder);
}

void add_activations(Handlers& handlers) {
    handlers["Relu"] = [](Importer& i, Node& n) {
        activation(i, n, {.kind = ActivationKind::relu});
    };
    handlers["Sigmoid"] = [](Importer& i, Node& n) {
        activation(i, n, {.kind = ActivationKind::sigmoid});
    };
    handlers["Tanh"] = [](Importer& i, Node& n) {
        activation(i, n, {.kind = ActivationKind::tanh});
    };
    handlers["LeakyRelu"] = [](Importer& i, Node& n) {
        activation(i, n, {.kind = ActivationKind::leaky_relu, .alpha = n.real("alpha", 0.01f)});
    };
    handlers["PRelu"] = prelu;
    handlers["Clip"] = clip;
}

void add_functions(Handlers& handlers) {
    handlers["Abs"] = plain<Function::absolute>;
    handlers["Neg"] = plain<Function::negative>;
    handlers["Exp"] = plain<Function::exponential>;
    handlers["Log"] = plain<Function::logarithm>;
    handlers["Sqrt"] = plain<Function::square_root>;
    handlers["Reciprocal"] = plain<Function::reciprocal>;
    handlers["Floor"] = plain<Function::floor>;
    handlers["Ceil"] = plain<Function::ceil>;
    handlers["Round"] = plain<Function::round_to_even>;
    handlers["Sign"] = plain<Function::sign>;
    handlers["Erf"] = plain<Function::error_function>;
    handlers["Sin"] = plain<Function::sine>;
    handlers["Cos"] = plain<Function::cosine>;
    handlers["Tan"] = plain<Function::tangent>;
    handlers["Softplus"] = plain<Function::softplus>;
    handlers["Softsign"] = plain<Function::softsign>;
    handlers["HardSwish"] = plain<Function::hard_swish>;
    handlers["Mish"] = plain<Function::mish>;
}

void add_functions_with_parameters(Handlers& handlers) {
    handlers["Elu"] = [](Importer& i, Node& n) {
        unary(i, n, Function::elu, n.real("alpha", 1.0f));
    };
    handlers["Celu"] = [](Importer& i, Node& n) {
        unary(i, n, Function::celu, n.real("alpha", 1.0f));
    };
    handlers["Selu"] = [](Importer& i, Node& n) {
        // ONNX's defaults since opset 6.
        const float alpha = n.real("alpha", 1.67326319217681884765625f);
        unary(i, n, Function::selu, alpha, n.real("gamma", 1.05070102214813232421875f));
    };
    handlers["HardSigmoid"] = [](Importer& i, Node& n) {
        const float alpha = n.real("alpha", 0.2f);
        unary(i, n, Function::hard_sigmoid, alpha, n.real("beta", 0.5f));
    };
    handlers["ThresholdedRelu"] = [](Importer& i, Node& n) {
        unary(i, n, Function::thresholded_relu, n.real("alpha", 1.0f));
    };
    handlers["Shrink"] = [](Importer& i, Node& n) {
        const float lambda = n.real("lambd", 0.5f);
        unary(i, n, Function::shrink, lambda, n.real("bias", 0.0f));
    };
    handlers["Swish"] = [](Importer& i, Node& n) {
        unary(i, n, Function::swish, n.real("alpha", 1.0f));
    };
    handlers["Gelu"] = [](Importer& i, Node& n) {
        const std::string kind = n.text("approximate", "none");
        if (kind != "none" && kind != "tanh")
            n.fail("approximate is " + in_quotes(kind) + ", expected none or tanh");
        unary(i, n, kind == "tanh" ? Function::gelu_tanh : Function::gelu);
    };
}

void add_arithmetic(Handlers& handlers) {
    handlers["Add"] = two<Function::add>;
    handlers["Sub"] = two<Function::subtract>;
    handlers["Mul"] = two<Function::multiply>;
    handlers["Div"] = two<Function::divide>;
    handlers["Pow"] = two<Function::power>;
    handlers["Mod"] = mod;
    handlers["Sum"] = [](Importer& i, Node& n) { several(i, n, Function::add, false); };
    handlers["Mean"] = [](Importer& i, Node& n) { several(i, n, Function::add, true); };
    handlers["Max"] = [](Importer& i, Node& n) { several(i, n, Function::maximum, false); };
    handlers["Min"] = [](Importer& i, Node& n) { several(i, n, Function::minimum, false); };
}

void add_logic(Handlers& handlers) {
    handlers["Equal"] = [](Importer& i, Node& n) { logical(i, n, Function::equal); };
    handlers["Less"] = [](Importer& i, Node& n) { logical(i, n, Function::less); };
    handlers["LessOrEqual"] = [](Importer& i, Node& n) { logical(i, n, Function::less_or_equal); };
    handlers["Greater"] = [](Importer& i, Node& n) { logical(i, n, Function::greater); };
    handlers["GreaterOrEqual"] = [](Importer& i, Node& n) {
        logical(i, n, Function::greater_or_equal);
    };
    handlers["And"] = [](Importer& i, Node& n) { logical(i, n, Function::minimum); };
    handlers["Or"] = [](Importer& i, Node& n) { logical(i, n, Function::maximum); };
    handlers["Not"] = logical_not;
    handlers["Where"] = where;
}

}  // namespace

void add_elementwise(Handlers& handlers) {
    add_activations(handlers);
    add_functions(handlers);
    add_functions_with_parameters(handlers);
    add_arithmetic(handlers);
    add_logic(handlers);
    handlers["Identity"] = identity;
    handlers["Dropout"] = dropout;
    handlers["Cast"] = [](Importer& i, Node& n) { cast_to(i, n, n.integer("to", 0)); };
    handlers["CastLike"] = cast_like;
    handlers["DequantizeLinear"] = dequantize_linear;
}

}  // namespace laminate::onnx
