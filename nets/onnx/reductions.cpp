// Reductions over axes, softmax and its relatives, and normalisations by the statistics of the
// data.
#include <algorithm>
#include <limits>
#include <numeric>

#include "nets/onnx/importer.h"

namespace laminate::onnx {

namespace {

using Function = GeneralFunction;

Dims axes_from(int64_t first, size_t rank) {
    Dims axes(rank - static_cast<size_t>(first));
    std::iota(axes.begin(), axes.end(), first);
    return axes;
}

TensorId one_value(Importer& importer, const Node& node, float value) {
    return importer.constant_tensor(node, std::make_shared<const Constant>(Constant{{}, {value}}));
}

TensorId binary(Importer& importer, const Node& node, Function function, TensorId a, TensorId b) {
    return importer.add_general(node, {.kind = GeneralKind::binary, .function = function}, {a, b});
}

// ---- reductions

/// The sum, product, maximum or minimum of a list of integers, as exporters compute shapes.
void reduce_integers(Importer& importer, Node& node, Function function) {
    const IntegerConstant data = importer.integers(node, 0);
    const bool keep = node.integer("keepdims", 1) != 0;
    const auto axes = importer.integers_of(node, "axes", 1).value_or(Dims{});
    const std::map<Function, Function> steps{{Function::sum, Function::add},
                                             {Function::product, Function::multiply},
                                             {Function::largest, Function::maximum},
                                             {Function::smallest, Function::minimum}};
    if (data.dims.size() > 1 || axes.size() > 1 || !steps.contains(function))
        node.fail("of integers is supported for sum, product, maximum and minimum of a list only");
    if (data.values.empty()) node.fail("reduces an empty list");
    IntegerConstant result{{}, {data.values[0]}};
    for (size_t k = 1; k < data.values.size(); ++k)
        result = combined(node, steps.at(function), result, {{}, {data.values[k]}});
    importer.define(node,
                    IntegerConstant{keep ? Dims(data.dims.size(), 1) : Dims{}, result.values});
}

template <Function function>
void reduce(Importer& importer, Node& node) {
    node.expect_inputs(1, 2);
    if (importer.is_integer(node, 0)) return reduce_integers(importer, node, function);
    const TensorId x = importer.tensor(node, 0);
    const Dims from = importer.dims(x);
    const bool keep = node.integer("keepdims", 1) != 0;
    const bool none_means_none = node.integer("noop_with_empty_axes", 0) != 0;
    Dims axes = importer.integers_of(node, "axes", 1).value_or(Dims{});
    if (axes.empty() && none_means_none && function == Function::sum)
        return importer.alias(node, x);
    for (int64_t& axis : axes) axis = Importer::checked_axis(node, axis, from.size(), "axis");
    std::sort(axes.begin(), axes.end());
    if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
        node.fail("names an axis twice");
    if (axes.empty() && !none_means_none) axes = axes_from(0, from.size());
    // Some exporters write global average pooling as ReduceMean.
    const bool is_pooling = function == Function::mean && from.size() == 4 && axes == Dims{2, 3};
    Layer layer{.kind = is_pooling ? LayerKind::global_average_pool : LayerKind::general,
                .inputs = {x}};
    if (!is_pooling)
        layer.general = {.kind = GeneralKind::reduce, .function = function, .axes = axes};
    if (keep || axes.empty()) return importer.append(node, std::move(layer));
    const TensorId pooled = importer.add_layer(node, std::move(layer));
    if (is_pooling)
        return importer.append(node, Layer{.kind = LayerKind::flatten, .inputs = {pooled}});
    Dims target;
    for (size_t d = 0; d < from.size(); ++d) {
        if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d)))
            target.push_back(from[d]);
    }
    const bool is_scalar = target.empty();
    const TensorId result = importer.reshaped(node, pooled, is_scalar ? Dims{1} : target);
    if (is_scalar) importer.mark_scalar(result);
    importer.define_like(node, result, result);
}

// ---- order

/// Where the largest or smallest value along an axis stands; a NaN is both, as in NumPy and
/// PyTorch.
template <Function function>
void place_of_extreme(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    Dims target = importer.dims(x);
    const int64_t axis =
        Importer::checked_axis(node, node.integer("axis", 0), target.size(), "axis");
    target[static_cast<size_t>(axis)] = 1;
    TensorId result =
        importer.add_general(node,
                             {.kind = GeneralKind::order,
                              .function = function,
                              .dims = target,
                              .axes = {axis},
                              .constant_first = node.integer("select_last_index", 0) != 0,
                              .alpha = 1},
                             {x});
    if (node.integer("keepdims", 1) == 0) {
        target.erase(target.begin() + axis);
        result = importer.reshaped(node, result, target.empty() ? Dims{1} : target);
        if (target.empty()) importer.mark_scalar(result);
    }
    importer.define_integers(node, result);
}

void top_k(Importer& importer, Node& node) {
    const TensorId x = importer.tensor(node, 0);
    Dims target = importer.dims(x);
    const int64_t axis =
        Importer::checked_axis(node, node.integer("axis", -1), target.size(), "axis");
    int64_t count = node.integer("k", 0);  // an input since opset 10
    if (node.has_input(1)) {
        const Dims given = importer.integers(node, 1).values;
        if (given.size() != 1) node.fail("K is " + dims_text(given) + ", expected one value");
        count = given[0];
    }
    const bool from_largest = node.integer("largest", 1) != 0;
    node.ignore("sorted");  // unsorted results may have any order
    target[static_cast<size_t>(axis)] = count;
    GeneralOperator op{.kind = GeneralKind::order, .dims = target, .axes = {axis}};
    if (node.has_output(1)) {
        op.function = from_largest ? Function::largest_places : Function::smallest_places;
        importer.define_integers(node, importer.add_general(node, op, {x}), 1);
    }
    op.function = from_largest ? Function::largest_values : Function::smallest_values;
    importer.append(node, op, {x});
}

// ---- softmax

void softmax(Importer& importer, Node& node, Function function) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    const Dims extents = importer.dims(x);
    int64_t axis = Importer::checked_axis(
        node, node.integer("axis", importer.opset() < 13 ? 1 : -1), extents.size(), "axis");
    Dims axes{axis};
    if (importer.opset() < 13) {
        // Before opset 13, Softmax normalised over all dimensions from the axis on. Dimensions of
        // extent 1 do not matter.
        axes = axes_from(axis, extents.size());
        std::erase_if(axes, [&](int64_t d) { return extents[static_cast<size_t>(d)] == 1; });
        if (axes.empty()) axes = {axis};
    }
    if (axes.size() == 1 && function == Function::softmax)
        return importer.append(node,
                               Layer{.kind = LayerKind::softmax, .inputs = {x}, .axis = axes[0]});
    importer.append(node, {.kind = GeneralKind::normalise, .function = function, .axes = axes},
                    {x});
}

// ---- normalisations

void local_response(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    GeneralOperator op{.kind = GeneralKind::local_response};
    op.kernel = {node.integer("size", 0)};
    op.alpha = node.real("alpha", 0.0001f);
    op.beta = node.real("beta", 0.75f);
    op.gamma = node.real("bias", 1.0f);
    importer.append(node, std::move(op), {importer.tensor(node, 0)});
}

/// Values per channel as a shape that broadcasts to `rank` dimensions.
TensorId per_channel(Importer& importer, const Node& node, int i, size_t rank) {
    const TensorId values = importer.tensor(node, i);
    if (importer.dims(values).size() != 1)
        node.fail("input " + in_quotes(node.input(i)) + " is " + dims_text(importer.dims(values)) +
                  ", expected one dimension");
    Dims target(rank > 1 ? rank - 1 : 1, 1);
    target[0] = importer.dims(values)[0];
    return importer.reshaped(node, values, target);
}

/// y = scale * x + shift as the node's result. Where both are known and have a value per channel, it
/// folds into other layers.
void scale_and_shift(Importer& importer, Node& node, TensorId x, TensorId scale,
                     std::optional<TensorId> shift) {
    const Dims extents = importer.dims(x);
    const auto check = [&](TensorId y) {
        if (importer.dims(y) != extents)
            node.fail("scale or shift do not broadcast to " + dims_text(extents));
    };
    const auto is_neutral = [&](TensorId id, float value) {
        return importer.known(id) && broadcast_dims(extents, importer.dims(id)) == extents &&
               all_are(*importer.known(id), value);
    };
    const bool scales = !is_neutral(scale, 1), shifts = shift && !is_neutral(*shift, 0);
    if (!scales && !shifts) return importer.define_like(node, x, x);
    Dims channels(extents.size() - 1, 1);
    if (!channels.empty()) channels[0] = extents[1];
    const auto is_per_channel = [&](TensorId id) {
        return !channels.empty() && importer.known(id) && importer.dims(id) == channels;
    };
    if (is_per_channel(scale) && (!shift || is_per_channel(*shift))) {
        const Dims one{channels[0]};
        const auto values_of = [&](TensorId id) {
            return std::make_shared<const Constant>(Constant{one, importer.known(id)->values});
        };
        const std::vector<float> zeros(static_cast<size_t>(one[0]), 0.0F);
        return importer.append_affine(
            node, x, values_of(scale),
            shift ? values_of(*shift) : std::make_shared<const Constant>(Constant{one, zeros}));
    }
    TensorId y = scales ? binary(importer, node, Function::multiply, x, scale) : x;
    check(y);
    if (shifts) y = binary(importer, node, Function::add, y, *shift);
    check(y);
    importer.define_like(node, y, y);
}

void instance_normalization(Importer& importer, Node& node) {
    node.expect_inputs(3, 3);
    node.ignore("consumed_inputs");
    const TensorId x = importer.tensor(node, 0);
    const size_t rank = importer.dims(x).size();
    if (rank < 3)
        node.fail("input is " + dims_text(importer.dims(x)) +
                  ", expected N, C and at least one spatial dimension");
    const GeneralOperator op{.kind = GeneralKind::normalise,
                             .function = Function::standardise,
                             .axes = axes_from(2, rank),
                             .alpha = node.real("epsilon", 1e-5f)};
    const TensorId y = importer.add_general(node, op, {x});
    scale_and_shift(importer, node, y, per_channel(importer, node, 1, rank),
                    per_channel(importer, node, 2, rank));
}

void layer_normalization(Importer& importer, Node& node) {
    node.expect_inputs(2, 3);
    node.ignore("stash_type");
    const TensorId x = importer.tensor(node, 0);
    const size_t rank = importer.dims(x).size();
    const Dims axes =
        axes_from(Importer::checked_axis(node, node.integer("axis", -1), rank, "axis"), rank);
    const float epsilon = node.real("epsilon", 1e-5f);
    const TensorId y = importer.add_general(node,
                                            {.kind = GeneralKind::normalise,
                                             .function = Function::standardise,
                                             .axes = axes,
                                             .alpha = epsilon},
                                            {x});
    if (node.has_output(1) || node.has_output(2)) {
        const GeneralOperator average{
            .kind = GeneralKind::reduce, .function = Function::mean, .axes = axes};
        const TensorId mean = importer.add_general(node, average, {x});
        const TensorId distance = binary(importer, node, Function::subtract, x, mean);
        const TensorId variance = importer.add_general(
            node, average, {binary(importer, node, Function::multiply, distance, distance)});
        const TensorId deviation = importer.add_general(
            node, {.kind = GeneralKind::unary, .function = Function::square_root},
            {binary(importer, node, Function::add, variance, one_value(importer, node, epsilon))});
        if (node.has_output(1)) importer.define(node, mean, 1);
        if (node.has_output(2)) {
            importer.define(
                node,
                importer.add_general(node,
                                     {.kind = GeneralKind::unary, .function = Function::reciprocal},
                                     {deviation}),
                2);
        }
    }
    scale_and_shift(importer, node, y, importer.tensor(node, 1),
                    node.has_input(2) ? std::optional(importer.tensor(node, 2)) : std::nullopt);
}

void rms_normalization(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    node.ignore("stash_type");
    const TensorId x = importer.tensor(node, 0);
    const size_t rank = importer.dims(x).size();
    const Dims axes =
        axes_from(Importer::checked_axis(node, node.integer("axis", -1), rank, "axis"), rank);
    const GeneralOperator op{.kind = GeneralKind::normalise,
                             .function = Function::root_mean_square,
                             .axes = axes,
                             .alpha = node.real("epsilon", 1e-5f)};
    scale_and_shift(importer, node, importer.add_general(node, op, {x}), importer.tensor(node, 1),
                    std::nullopt);
}

void group_normalization(Importer& importer, Node& node) {
    node.expect_inputs(3, 3);
    node.ignore("stash_type");
    const TensorId x = importer.tensor(node, 0);
    const Dims extents = importer.dims(x);
    const int64_t groups = node.integer("num_groups", 0);
    if (extents.size() < 2 || groups < 1 || extents[1] % groups != 0)
        node.fail(std::to_string(groups) + " groups of the channels of " + dims_text(extents));
    const Dims split{extents[0], groups, element_count(extents) / extents[0] / groups};
    const GeneralOperator op{.kind = GeneralKind::normalise,
                             .function = Function::standardise,
                             .axes = {2},
                             .alpha = node.real("epsilon", 1e-5f)};
    const TensorId y = importer.add_general(node, op, {importer.reshaped(node, x, split)});
    // Scale and shift are one per group before opset 21, one per channel from then on.
    if (importer.opset() < 21) {
        const TensorId scaled =
            binary(importer, node, Function::multiply, y, per_channel(importer, node, 1, 3));
        const TensorId shifted =
            binary(importer, node, Function::add, scaled, per_channel(importer, node, 2, 3));
        const TensorId whole = importer.reshaped(node, shifted, extents);
        return importer.define_like(node, whole, whole);
    }
    scale_and_shift(importer, node, importer.reshaped(node, y, extents),
                    per_channel(importer, node, 1, extents.size()),
                    per_channel(importer, node, 2, extents.size()));
}

void mean_variance_normalization(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    Dims axes = node.integers("axes").value_or(Dims{0, 2, 3});
    for (int64_t& axis : axes)
        axis = Importer::checked_axis(node, axis, importer.dims(x).size(), "axis");
    std::sort(axes.begin(), axes.end());
    // ONNX adds 1e-9 to the standard deviation. Adding its square to the variance avoids division
    // by zero as well.
    importer.append(node,
                    {.kind = GeneralKind::normalise,
                     .function = Function::standardise,
                     .axes = axes,
                     .alpha = 1e-18f},
                    {x});
}

/// x over its norm along an axis, 0 where the norm is 0: no norm counts as less than the least
/// normal number.
void lp_normalization(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    const int64_t axis =
        Importer::checked_axis(node, node.integer("axis", -1), importer.dims(x).size(), "axis");
    const int64_t p = node.integer("p", 2);
    if (p != 1 && p != 2) node.fail("p is " + std::to_string(p) + ", expected 1 or 2");
    const TensorId norm =
        importer.add_general(node,
                             {.kind = GeneralKind::reduce,
                              .function = p == 1 ? Function::norm_1 : Function::norm_2,
                              .axes = {axis}},
                             {x});
    const TensorId divisor =
        importer.add_layer(node, {.kind = LayerKind::activation,
                                  .inputs = {norm},
                                  .activation = {.kind = ActivationKind::clip,
                                                 .low = std::numeric_limits<float>::min(),
                                                 .high = std::numeric_limits<float>::infinity()}});
    importer.append(node, {.kind = GeneralKind::binary, .function = Function::divide},
                    {x, divisor});
}

}  // namespace

void add_reductions(Handlers& handlers) {
    handlers["ArgMax"] = place_of_extreme<Function::largest_places>;
    handlers["ArgMin"] = place_of_extreme<Function::smallest_places>;
    handlers["TopK"] = top_k;
    handlers["ReduceMean"] = reduce<Function::mean>;
    handlers["ReduceSum"] = reduce<Function::sum>;
    handlers["ReduceProd"] = reduce<Function::product>;
    handlers["ReduceMax"] = reduce<Function::largest>;
    handlers["ReduceMin"] = reduce<Function::smallest>;
    handlers["ReduceL1"] = reduce<Function::norm_1>;
    handlers["ReduceL2"] = reduce<Function::norm_2>;
    handlers["ReduceLogSum"] = reduce<Function::log_sum>;
    handlers["ReduceLogSumExp"] = reduce<Function::log_sum_exp>;
    handlers["ReduceSumSquare"] = reduce<Function::sum_of_squares>;
    handlers["Softmax"] = [](Importer& i, Node& n) { softmax(i, n, Function::softmax); };
    handlers["LogSoftmax"] = [](Importer& i, Node& n) { softmax(i, n, Function::log_softmax); };
    handlers["Hardmax"] = [](Importer& i, Node& n) { softmax(i, n, Function::hardmax); };
    handlers["LRN"] = local_response;
    handlers["InstanceNormalization"] = instance_normalization;
    handlers["LayerNormalization"] = layer_normalization;
    handlers["RMSNormalization"] = rms_normalization;
    handlers["GroupNormalization"] = group_normalization;
    handlers["LpNormalization"] = lp_normalization;
    handlers["MeanVarianceNormalization"] = mean_variance_normalization;
}

}  // namespace laminate::onnx
