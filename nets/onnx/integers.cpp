// Constant integers, from which shapes are computed: arithmetic with broadcasting, and operators
// that only move elements.
#include <algorithm>
#include <limits>

#include "nets/onnx/importer.h"

namespace laminate::onnx {

namespace {

/// Nullopt if there is no result in 64 bits.
std::optional<int64_t> result_of(GeneralFunction function, int64_t a, int64_t b) {
    using enum GeneralFunction;
    int64_t result = 0;
    const auto unless = [&](bool overflows) {
        return overflows ? std::nullopt : std::optional(result);
    };
    const bool divides = b != 0 && (b != -1 || a != std::numeric_limits<int64_t>::min());
    switch (function) {
        case add:
            return unless(__builtin_add_overflow(a, b, &result));
        case subtract:
            return unless(__builtin_sub_overflow(a, b, &result));
        case multiply:
            return unless(__builtin_mul_overflow(a, b, &result));
        case divide:
            return divides ? std::optional(a / b) : std::nullopt;
        case remainder:
            return divides ? std::optional(a % b) : std::nullopt;
        case minimum:
            return std::min(a, b);
        case maximum:
            return std::max(a, b);
        case equal:
            return a == b;
        case less:
            return a < b;
        case less_or_equal:
            return a <= b;
        case greater:
            return a > b;
        case greater_or_equal:
            return a >= b;
        default:
            return std::nullopt;
    }
}

/// `x` repeated to the shape `to`, to which it broadcasts.
std::vector<int64_t> spread(const IntegerConstant& x, const Dims& to) {
    std::vector<int64_t> values = x.values;
    // Axis by axis from the last one: an extent of 1 repeats runs of `run` values.
    size_t run = 1;
    for (size_t k = 1; k <= to.size(); ++k) {
        const auto extent = static_cast<size_t>(to[to.size() - k]);
        if (k > x.dims.size() || x.dims[x.dims.size() - k] == 1) {
            std::vector<int64_t> repeated;
            repeated.reserve(values.size() * extent);
            for (size_t begin = 0; begin < values.size(); begin += run) {
                for (size_t n = 0; n < extent; ++n)
                    repeated.insert(repeated.end(),
                                    values.begin() + static_cast<std::ptrdiff_t>(begin),
                                    values.begin() + static_cast<std::ptrdiff_t>(begin + run));
            }
            values = std::move(repeated);
        }
        run *= extent;
        if (run == 0) return {};
    }
    return values;
}

Dims checked_broadcast(const Node& node, const Dims& a, const Dims& b) {
    const Dims to = broadcast_dims(a, b);
    int64_t count = 1;
    for (const int64_t extent : to) {
        if (__builtin_mul_overflow(count, extent, &count) ||
            count > static_cast<int64_t>(most_shape_values))
            node.fail("makes " + dims_text(to) + " integers, expected at most " +
                      std::to_string(most_shape_values));
    }
    return to;
}

}  // namespace

IntegerConstant combined(const Node& node, GeneralFunction function, const IntegerConstant& a,
                         const IntegerConstant& b) {
    IntegerConstant result{checked_broadcast(node, a.dims, b.dims), {}};
    const std::vector<int64_t> left = spread(a, result.dims), right = spread(b, result.dims);
    for (size_t i = 0; i < left.size(); ++i) {
        const auto value = result_of(function, left[i], right[i]);
        if (!value)
            node.fail("of " + std::to_string(left[i]) + " and " + std::to_string(right[i]) +
                      " is no 64-bit integer");
        result.values.push_back(*value);
    }
    return result;
}

IntegerConstant chosen(const Node& node, const IntegerConstant& condition, const IntegerConstant& a,
                       const IntegerConstant& b) {
    IntegerConstant result{
        checked_broadcast(node, checked_broadcast(node, condition.dims, a.dims), b.dims), {}};
    const auto flags = spread(condition, result.dims), left = spread(a, result.dims),
               right = spread(b, result.dims);
    for (size_t i = 0; i < flags.size(); ++i)
        result.values.push_back(flags[i] != 0 ? left[i] : right[i]);
    return result;
}

bool Importer::moves_integers(const Node& node) {
    if (!node.has_input(0)) return false;
    const Value data = value(node, 0);
    return std::holds_alternative<IntegerConstant>(data) ||
           std::holds_alternative<SmallIntegers>(data);
}

/// Floats hold positions exactly, as most_shape_values is below 2^24, but not 64-bit integers. So
/// the operator moves the positions of the integers, and define() looks the integers up.
void Importer::move_integers(Node& node, Handler handler) {
    const int parts = node.op() == "Concat" ? node.inputs() : 1;
    MovedIntegers moved;
    for (int i = 0; i < parts; ++i) {
        const Value data = value(node, i);
        if (const auto* small = std::get_if<SmallIntegers>(&data)) {
            moved.are_small = true;
            moved.stand_ins.emplace(i, small->values);
            continue;
        }
        const IntegerConstant list = integers(node, i);
        std::vector<float> positions(list.values.size());
        for (float& position : positions)
            position = static_cast<float>(moved.values.size() +
                                          static_cast<size_t>(&position - positions.data()));
        moved.values.insert(moved.values.end(), list.values.begin(), list.values.end());
        moved.stand_ins.emplace(
            i, std::make_shared<const Constant>(Constant{list.dims, std::move(positions)}));
    }
    if (moved.are_small && !moved.values.empty())
        node.fail("joins integers of 8 or 16 bits with others");
    if (moved.values.size() > most_shape_values)
        node.fail("reads " + std::to_string(moved.values.size()) + " integers, expected at most " +
                  std::to_string(most_shape_values));
    moved_integers_ = std::move(moved);
    handler(*this, node);
    moved_integers_.reset();
}

Value Importer::MovedIntegers::at(const ConstantPtr& positions) const {
    if (are_small) return SmallIntegers{positions};
    IntegerConstant result{positions->dims, {}};
    for (const float position : positions->values)
        result.values.push_back(values[static_cast<size_t>(position)]);
    return result;
}

}  // namespace laminate::onnx
