// Operators that move elements or change shapes, and operators that compute shapes, which are
// evaluated here.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/error.h"
#include "nets/onnx/importer.h"

namespace laminate::onnx {

namespace {

/// Values that ConstantOfShape may make (1 GiB). Without a limit, a small file could ask for any
/// number.
constexpr int64_t most_filled_values = int64_t{1} << 28;

int64_t product(const Dims& extents) {
    return std::find(extents.begin(), extents.end(), 0) != extents.end() ? 0
                                                                         : element_count(extents);
}

// ---- the same elements in another shape

/// Gives a tensor another shape. Uses a flatten layer where it fits, because older schedules know
/// no other reshape.
void reshape_tensor(Importer& importer, Node& node, TensorId x, const Dims& target) {
    const Dims from = importer.dims(x);
    const bool is_scalar = target.empty();
    const Dims to = is_scalar ? Dims{1} : target;
    if (to == from && is_scalar == importer.file_dims(x).empty()) return importer.alias(node, x);
    if (to.size() == 2 && !importer.known(x)) {
        // Try axis 1 first: if several axes fit because of extents of 1, it is the usual one.
        Dims axes{1};
        for (size_t axis = 0; axis <= from.size(); ++axis)
            axes.push_back(static_cast<int64_t>(axis));
        for (const int64_t axis : axes) {
            if (axis > std::ssize(from)) continue;
            if (element_count({from.begin(), from.begin() + axis}) != to[0] ||
                element_count({from.begin() + axis, from.end()}) != to[1])
                continue;
            return importer.append(node,
                                   Layer{.kind = LayerKind::flatten, .inputs = {x}, .axis = axis});
        }
    }
    const TensorId result =
        importer.add_general(node, {.kind = GeneralKind::reshape, .dims = to}, {x});
    if (is_scalar) importer.mark_scalar(result);
    importer.define_like(node, result, result);
}

/// Gives a tensor or a constant the shape `target`, which must have as many elements.
void reshape_value(Importer& importer, Node& node, const Value& value, const Dims& target) {
    if (target.size() > most_dimensions)
        node.fail("makes " + std::to_string(target.size()) + " dimensions");
    if (const auto* id = std::get_if<TensorId>(&value))
        return reshape_tensor(importer, node, *id, target);
    const auto& constant = std::get<ConstantPtr>(value);
    importer.charge(constant->values.size());
    importer.define(node, std::make_shared<const Constant>(Constant{target, constant->values}));
}

void reshape(Importer& importer, Node& node) {
    node.expect_inputs(1, 2);
    const Value value = importer.value(node, 0);
    const Dims from = importer.file_dims(value);
    auto target = importer.integers_of(node, "shape", 1);
    if (!target) node.fail("has no shape");
    const bool zero_is_zero = node.integer("allowzero", 0) != 0;
    if (target->size() > most_dimensions)
        node.fail("makes " + std::to_string(target->size()) + " dimensions");
    const std::string given = dims_text(*target);
    std::optional<size_t> open;
    int64_t known = 1;
    for (size_t i = 0; i < target->size(); ++i) {
        int64_t& extent = (*target)[i];
        if (extent == 0 && !zero_is_zero) extent = i < from.size() ? from[i] : 0;
        if (extent == -1 && !open) {
            open = i;
            continue;
        }
        if (extent < 1 || extent > product(from) / known)
            node.fail("shape " + given + " does not fit " + dims_text(from));
        known *= extent;
    }
    if (open) {
        if (product(from) % known != 0)
            node.fail("shape " + given + " does not fit " + dims_text(from));
        (*target)[*open] = product(from) / known;
    } else if (known != product(from)) {
        node.fail("shape " + given + " does not fit " + dims_text(from));
    }
    reshape_value(importer, node, value, *target);
}

void flatten(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    const auto rank = std::ssize(importer.file_dims(x));
    int64_t axis = node.integer("axis", 1);
    if (axis < -rank || axis > rank)
        node.fail("axis " + std::to_string(axis) + " of a tensor with " + std::to_string(rank) +
                  " dimensions");
    if (axis < 0) axis += rank;
    if (rank == 2 && axis == 1) return importer.alias(node, x);
    importer.append(node, Layer{.kind = LayerKind::flatten, .inputs = {x}, .axis = axis});
}

void squeeze(Importer& importer, Node& node) {
    node.expect_inputs(1, 2);
    const Value value = importer.value(node, 0);
    const Dims from = importer.file_dims(value);
    std::set<int64_t> axes;
    if (const auto given = importer.integers_of(node, "axes", 1)) {
        for (const int64_t axis : *given)
            axes.insert(Importer::checked_axis(node, axis, from.size(), "axis"));
    } else {
        for (size_t i = 0; i < from.size(); ++i) {
            if (from[i] == 1) axes.insert(static_cast<int64_t>(i));
        }
    }
    Dims target;
    for (size_t i = 0; i < from.size(); ++i) {
        if (!axes.contains(static_cast<int64_t>(i))) {
            target.push_back(from[i]);
        } else if (from[i] != 1) {
            node.fail("axis " + std::to_string(i) + " of " + dims_text(from) + " is not 1");
        }
    }
    reshape_value(importer, node, value, target);
}

void unsqueeze(Importer& importer, Node& node) {
    node.expect_inputs(1, 2);
    const Value value = importer.value(node, 0);
    Dims target = importer.file_dims(value);
    auto axes = importer.integers_of(node, "axes", 1);
    if (!axes) node.fail("has no axes");
    const size_t rank = target.size() + axes->size();
    if (rank > most_dimensions) node.fail("makes " + std::to_string(rank) + " dimensions");
    for (int64_t& axis : *axes) axis = Importer::checked_axis(node, axis, rank, "axis");
    std::sort(axes->begin(), axes->end());
    if (std::adjacent_find(axes->begin(), axes->end()) != axes->end())
        node.fail("names an axis twice");
    for (const int64_t axis : *axes) target.insert(target.begin() + axis, 1);
    reshape_value(importer, node, value, target);
}

// ---- views

void transpose(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    const size_t rank = importer.dims(x).size();
    Dims perm(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
    perm = node.integers("perm").value_or(perm);
    Dims sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    for (size_t d = 0; d < rank; ++d) {
        if (sorted.size() != rank || sorted[d] != static_cast<int64_t>(d))
            node.fail("perm " + dims_text(perm) + " is no order of " + std::to_string(rank) +
                      " axes");
    }
    const TensorId result = importer.transposed(node, x, perm);
    if (result == x) return importer.alias(node, x);
    importer.define_like(node, result, result);
}

/// One axis of a slice: `count` elements from `start` on, `step` apart.
struct Piece {
    int64_t start = 0, step = 1, count = 0;
};

Piece piece_of(const Node& node, int64_t start, int64_t end, int64_t step, int64_t extent) {
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
        node.fail("has step " + std::to_string(step));
    const auto from_end = [&](int64_t at) {
        return at < 0 ? std::max(at, -extent - 1) + extent : at;
    };
    Piece piece{.step = step};
    if (step > 0) {
        piece.start = std::clamp<int64_t>(from_end(start), 0, extent);
        const int64_t stop = std::clamp<int64_t>(from_end(end), 0, extent);
        piece.count = stop > piece.start ? (stop - piece.start - 1) / step + 1 : 0;
    } else {
        piece.start = std::clamp<int64_t>(from_end(start), -1, extent - 1);
        const int64_t stop = std::clamp<int64_t>(from_end(end), -1, extent - 1);
        piece.count = piece.start > stop ? (piece.start - stop - 1) / -step + 1 : 0;
    }
    return piece;
}

void slice(Importer& importer, Node& node) {
    node.expect_inputs(1, 5);
    const Value data = importer.value(node, 0);
    const Dims from = importer.file_dims(data);
    const auto starts = importer.integers_of(node, "starts", 1),
               ends = importer.integers_of(node, "ends", 2);
    if (!starts || !ends) node.fail("has no starts or no ends");
    Dims axes(starts->size());
    std::iota(axes.begin(), axes.end(), 0);
    axes = importer.integers_of(node, "axes", 3).value_or(axes);
    const Dims steps =
        node.has_input(4) ? importer.integers(node, 4).values : Dims(starts->size(), 1);
    if (ends->size() != starts->size() || axes.size() != starts->size() ||
        steps.size() != starts->size())
        node.fail("has " + std::to_string(starts->size()) + " starts, " +
                  std::to_string(ends->size()) + " ends, " + std::to_string(axes.size()) +
                  " axes and " + std::to_string(steps.size()) + " steps");
    std::vector<Piece> pieces;
    for (const int64_t extent : from) pieces.push_back({0, 1, extent});
    for (size_t k = 0; k < axes.size(); ++k) {
        const auto axis =
            static_cast<size_t>(Importer::checked_axis(node, axes[k], from.size(), "axis"));
        pieces[axis] = piece_of(node, (*starts)[k], (*ends)[k], steps[k], from[axis]);
    }
    const auto is_empty = [](const Piece& piece) { return piece.count == 0; };
    if (!std::holds_alternative<TensorId>(data) &&
        std::any_of(pieces.begin(), pieces.end(), is_empty)) {
        Dims extents;
        for (const Piece& piece : pieces) extents.push_back(piece.count);
        return importer.define(node, std::make_shared<const Constant>(
                                         Constant{std::move(extents), std::vector<float>{}}));
    }
    const TensorId x = importer.tensor(node, 0);
    GeneralOperator view{.kind = GeneralKind::view};
    const Dims own = row_major_steps(from);
    for (size_t d = 0; d < from.size(); ++d) {
        if (pieces[d].count == 0)
            node.fail("leaves nothing of axis " + std::to_string(d) + " of " + dims_text(from));
        view.dims.push_back(pieces[d].count);
        view.first += pieces[d].start * own[d];
        // No element takes a step beyond the axis, so the step can be clamped.
        view.steps.push_back(pieces[d].count > 1 ? pieces[d].step * own[d] : 0);
    }
    if (view.dims == from && view.first == 0) return importer.alias(node, x);
    importer.append(node, std::move(view), {x});
}

void split(Importer& importer, Node& node) {
    node.expect_inputs(1, 2);
    const TensorId x = importer.tensor(node, 0);
    const Dims from = importer.dims(x);
    const auto axis = static_cast<size_t>(
        Importer::checked_axis(node, node.integer("axis", 0), from.size(), "axis"));
    const int pieces = node.file().output_size();
    auto sizes = importer.integers_of(node, "split", 1);
    const int64_t wanted = node.integer("num_outputs", pieces);
    if (!sizes) {
        if (wanted != pieces)
            node.fail("num_outputs is " + std::to_string(wanted) + ", the node has " +
                      std::to_string(pieces));
        const int64_t each = (from[axis] + pieces - 1) / pieces;  // the last one may be smaller
        sizes = Dims(static_cast<size_t>(pieces), each);
        sizes->back() = from[axis] - each * (pieces - 1);
    }
    int64_t sum = 0;
    for (const int64_t size : *sizes) {
        if (size < 1 || size > from[axis])
            node.fail("makes a piece of " + std::to_string(size) + " of " +
                      std::to_string(from[axis]));
        sum += size;
    }
    if (std::ssize(*sizes) != pieces || sum != from[axis]) {
        node.fail("split " + dims_text(*sizes) + " into " + std::to_string(pieces) +
                  " does not fit axis " + std::to_string(axis) + " of " + dims_text(from));
    }
    if (pieces == 1) return importer.alias(node, x);
    int64_t begin = 0;
    for (int k = 0; k < pieces; ++k) {
        GeneralOperator view{
            .kind = GeneralKind::view, .dims = from, .steps = row_major_steps(from)};
        view.dims[axis] = (*sizes)[static_cast<size_t>(k)];
        view.first = begin * view.steps[axis];
        begin += view.dims[axis];
        if (node.has_output(k))
            importer.define(node, importer.add_general(node, std::move(view), {x}), k);
    }
}

void expand(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    const Dims wanted = importer.integers(node, 1).values;
    for (const int64_t extent : wanted) {
        if (extent < 1) node.fail("shape " + dims_text(wanted) + " has an extent below 1");
    }
    const TensorId x = importer.tensor(node, 0);
    const Dims from = importer.dims(x);
    GeneralOperator view{.kind = GeneralKind::view, .dims = broadcast_dims(from, wanted)};
    if (view.dims == from) return importer.alias(node, x);
    view.steps = Dims(view.dims.size(), 0);
    const Dims own = row_major_steps(from);
    for (size_t d = 0; d < from.size(); ++d) {
        if (from[d] > 1) view.steps[view.steps.size() - from.size() + d] = own[d];
    }
    importer.append(node, std::move(view), {x});
}

/// [N][C][H/b][b][W/b][b] in the order N, b (row), b (column), C, H/b, W/b.
void space_to_depth(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    const Dims from = importer.dims(x);
    const int64_t block = node.integer("blocksize", 0);
    const std::string mode = node.text("mode", "DCR");
    if (mode != "DCR" && mode != "CRD")
        node.fail("mode is " + in_quotes(mode) + ", expected DCR or CRD");
    if (from.size() != 4 || block < 1 || block > largest_parameter || from[2] % block != 0 ||
        from[3] % block != 0)
        node.fail("blocks of " + std::to_string(block) + " do not fit " + dims_text(from));
    const Dims own = row_major_steps(from);
    const int64_t rows = from[2] / block, columns = from[3] / block;
    GeneralOperator view{.kind = GeneralKind::view};
    if (mode == "DCR") {
        view.dims = {from[0], block, block, from[1], rows, columns};
        view.steps = {own[0], own[2], own[3], own[1], own[2] * block, own[3] * block};
    } else {
        view.dims = {from[0], from[1], block, block, rows, columns};
        view.steps = {own[0], own[1], own[2], own[3], own[2] * block, own[3] * block};
    }
    const TensorId result =
        importer.reshaped(node, importer.add_general(node, std::move(view), {x}),
                          {from[0], from[1] * block * block, rows, columns});
    importer.define_like(node, result, result);
}

void depth_to_space(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    Layer layer{.kind = LayerKind::depth_to_space, .inputs = {importer.tensor(node, 0)}};
    layer.block = node.integer("blocksize", 0);
    const std::string mode = node.text("mode", "DCR");
    if (mode != "DCR" && mode != "CRD")
        node.fail("mode is " + in_quotes(mode) + ", expected DCR or CRD");
    layer.depth_to_space_crd = mode == "CRD";
    importer.append(node, std::move(layer));
}

// ---- joining

void concat(Importer& importer, Node& node) {
    node.expect_inputs(1, std::numeric_limits<int>::max());
    Layer layer{.kind = LayerKind::concat};
    for (int i = 0; i < node.inputs(); ++i) {
        const Value part = importer.value(node, i);
        const auto* constant = std::get_if<ConstantPtr>(&part);
        const bool is_empty = constant != nullptr && (*constant)->values.empty();
        if (!is_empty) layer.inputs.push_back(importer.tensor(node, i));
    }
    if (layer.inputs.empty()) {
        node.ignore("axis");
        return importer.define(node, importer.value(node, 0));
    }
    layer.axis = Importer::checked_axis(node, node.integer("axis", 1),
                                        importer.dims(layer.inputs[0]).size(), "axis");
    if (layer.inputs.size() == 1) return importer.alias(node, layer.inputs[0]);
    importer.append(node, std::move(layer));
}

// ---- shapes and constants

void constant(Importer& importer, Node& node) {
    if (const auto* value = node.any("value"); value != nullptr && value->has_t()) {
        return importer.define(node,
                               std::visit([](auto v) -> Value { return v; },
                                          decode(value->t(), "node " + node.label() + " (Constant)",
                                                 importer.directory())));
    }
    if (const auto* value = node.any("value_float"))
        return importer.define(node, std::make_shared<const Constant>(Constant{{}, {value->f()}}));
    if (const auto* value = node.any("value_floats")) {
        return importer.define(
            node, std::make_shared<const Constant>(Constant{
                      {value->floats_size()},
                      std::vector<float>(value->floats().begin(), value->floats().end())}));
    }
    if (const auto* value = node.any("value_int"))
        return importer.define(node, IntegerConstant{{}, {value->i()}});
    if (const auto list = node.integers("value_ints"))
        return importer.define(node, IntegerConstant{{static_cast<int64_t>(list->size())}, *list});
    node.fail("has no tensor, float or integer value");
}

void constant_of_shape(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    const Dims target = importer.integers(node, 0).values;
    if (target.size() > most_dimensions)
        node.fail("makes " + std::to_string(target.size()) + " dimensions");
    for (const int64_t extent : target) {
        if (extent < 0) node.fail("shape " + dims_text(target) + " has an extent below 0");
    }
    FileConstant value = std::make_shared<const Constant>(Constant{{1}, {0.0f}});
    if (const auto* given = node.any("value"); given != nullptr && given->has_t()) {
        value =
            decode(given->t(), "node " + node.label() + " (ConstantOfShape)", importer.directory());
    }
    const int64_t count = product(target);
    if (const auto* list = std::get_if<IntegerConstant>(&value)) {
        if (list->values.size() != 1 || count > static_cast<int64_t>(most_shape_values))
            node.fail("makes " + dims_text(target) + " integers");
        return importer.define(
            node, IntegerConstant{target, Dims(static_cast<size_t>(count), list->values[0])});
    }
    if (std::holds_alternative<SmallIntegers>(value)) node.fail("makes integers of 8 or 16 bits");
    const auto& fill = std::get<ConstantPtr>(value);
    if (fill->values.size() != 1) node.fail("value is " + dims_text(fill->dims) + ", expected one");
    importer.fill(static_cast<size_t>(count));
    importer.define(node,
                    std::make_shared<const Constant>(Constant{
                        target, std::vector<float>(static_cast<size_t>(count), fill->values[0])}));
}

void shape(Importer& importer, Node& node) {
    const Dims extents = importer.file_dims(importer.value(node, 0));
    const auto rank = std::ssize(extents);
    const auto clamp = [&](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const int64_t start = clamp(node.integer("start", 0));
    const int64_t end = std::max(start, clamp(node.integer("end", rank)));
    importer.define(
        node, IntegerConstant{{end - start}, {extents.begin() + start, extents.begin() + end}});
}

void size(Importer& importer, Node& node) {
    importer.define(node,
                    IntegerConstant{{}, {product(importer.file_dims(importer.value(node, 0)))}});
}

/// start, start + delta, ... of FLOAT: ceil((limit - start) / delta) values (ONNX).
void range_of_floats(Importer& importer, Node& node) {
    const auto at = [&](int i) { return static_cast<double>(importer.scalar(node, i, 0)); };
    const double start = at(0), limit = at(1), delta = at(2);
    const double count = std::ceil((limit - start) / delta);
    if (!(count <= static_cast<double>(most_filled_values)))
        node.fail("makes " + std::to_string(count) + " values");
    std::vector<float> values;
    importer.fill(static_cast<size_t>(std::max(count, 0.0)));
    for (double k = 0; k < count; ++k) values.push_back(static_cast<float>(start + k * delta));
    const Dims extents{std::ssize(values)};
    importer.define(node, std::make_shared<const Constant>(Constant{extents, std::move(values)}));
}

void range(Importer& importer, Node& node) {
    node.expect_inputs(3, 3);
    if (!importer.is_integer(node, 0)) return range_of_floats(importer, node);
    Dims limits;
    for (const int i : {0, 1, 2}) {
        const Dims value = importer.integers(node, i).values;
        if (value.size() != 1)
            node.fail("input " + in_quotes(node.input(i)) + " has " + std::to_string(value.size()) +
                      " values, expected 1");
        limits.push_back(value[0]);
    }
    if (limits[2] == 0) node.fail("has step 0");
    IntegerConstant result;
    for (int64_t at = limits[0]; limits[2] > 0 ? at < limits[1] : at > limits[1];) {
        result.values.push_back(at);
        if (result.values.size() > most_shape_values || __builtin_add_overflow(at, limits[2], &at))
            break;  // define() refuses it
    }
    result.dims = {std::ssize(result.values)};
    importer.define(node, result);
}

}  // namespace

void Importer::fill(size_t values) {
    filled_ += static_cast<int64_t>(values);
    if (filled_ > most_filled_values) {
        throw InputError("ConstantOfShape nodes make " + std::to_string(filled_) +
                         " values, expected at most " + std::to_string(most_filled_values));
    }
}

void add_shapes(Handlers& handlers) {
    handlers["Reshape"] = reshape;
    handlers["Flatten"] = flatten;
    handlers["Squeeze"] = squeeze;
    handlers["Unsqueeze"] = unsqueeze;
    handlers["Transpose"] = transpose;
    handlers["Slice"] = slice;
    handlers["Split"] = split;
    handlers["Expand"] = expand;
    handlers["SpaceToDepth"] = space_to_depth;
    handlers["DepthToSpace"] = depth_to_space;
    handlers["Concat"] = concat;
    handlers["Constant"] = constant;
    handlers["ConstantOfShape"] = constant_of_shape;
    handlers["Shape"] = shape;
    handlers["Size"] = size;
    handlers["Range"] = range;
}

}  // namespace laminate::onnx
