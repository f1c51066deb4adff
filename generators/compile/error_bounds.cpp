#include "generators/compile/error_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <utility>

#include "generators/compile/group_reference.h"
#include "nets/network/picture_views.h"
#include "nets/operators/reference_operators.h"

namespace laminate {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
/// Beyond it the order of a sum says whether it overflows.
constexpr float largest_sum = 1e38F;
/// What a function in code may be off by, relative to its value.
constexpr float last_places = 0x1p-19F;
/// What results of code may be off by, relative to the largest one, by experience.
constexpr float part_of_range = 1e-4F;

/// The most by which an activation enlarges a difference of its arguments.
float steepness(const Activation& a) {
    float slope = 1;
    if (a.kind == ActivationKind::leaky_relu) slope = std::abs(a.alpha);
    if (a.kind == ActivationKind::prelu) {
        for (const float value : a.slope->values) slope = std::max(slope, std::abs(value));
    }
    if (a.kind == ActivationKind::unary)  // 1.5 is HardSwish's
        slope = 1.5F * std::max(1.0F, std::abs(a.alpha)) * std::max(1.0F, std::abs(a.beta));
    return std::max(1.0F, slope);
}

/// The most that an activation makes of a sum that says nothing about it: of an infinite one, or of
/// zero.
float largest_constant(const Activation& a) {
    float most = std::max(1.0F, std::abs(a.alpha)) * std::max(1.0F, std::abs(a.beta));
    for (const float bound : {a.low, a.high}) {
        if (std::isfinite(bound)) most = std::max(most, std::abs(bound));
    }
    return most;
}

/// A 1x1 convolution that bounds what a normalisation makes of the error of each channel. Softmax
/// and its logarithm pass on the sum of all; the others divide those of the channel and of the mean
/// by a standard deviation of no less than sqrt(alpha), which may be 0.
Layer enlarged_errors(const Layer& layer, int64_t channels) {
    const GeneralFunction function = *normalisation_of(layer);
    const bool is_log = function == GeneralFunction::log_softmax;
    const bool is_softmax = function == GeneralFunction::softmax || is_log;
    const float scale = is_softmax ? 1 : 1 / std::sqrt(std::max(layer.general.alpha, 1e-12F));
    const float of_all = is_softmax ? 1 : scale / static_cast<float>(channels);
    const auto count = static_cast<size_t>(channels);
    std::vector<float> weights(count * count, of_all);
    for (size_t c = 0; c < count; ++c) weights[c * (count + 1)] += scale;
    const auto constant = [](std::vector<int64_t> dims, std::vector<float> values) {
        return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
    };
    Layer bound = layer;
    bound.kind = LayerKind::conv;
    bound.general = {};
    bound.weights = constant({channels, channels, 1, 1}, std::move(weights));
    // No result of the others is larger than this. A logarithm of Softmax is a distance from the
    // largest channel, which the weights bound, and no more than log(channels) beside it.
    const float most = is_log       ? 1 + std::log(static_cast<float>(channels))
                       : is_softmax ? 1
                                    : std::sqrt(static_cast<float>(channels));
    bound.bias = constant({channels}, std::vector<float>(count, most));
    return bound;
}

/// The network with weights, biases and values of its group's layers by magnitude, so that it
/// computes sums of |w x|. What an activation adds becomes a lower bound.
Network of_magnitudes(const Network& network, const std::vector<LayerProblem>& problems) {
    const auto magnitudes = [](const ConstantPtr& constant) {
        if (!constant) return constant;
        std::vector<float> values(constant->values.begin(), constant->values.end());
        for (float& value : values) value = std::abs(value);
        return std::make_shared<const Constant>(Constant{constant->dims, std::move(values)});
    };
    Network result = network;
    for (const LayerProblem& p : problems) {
        Layer& layer = result.layers[static_cast<size_t>(p.layer)];
        if (p.operation == Operation::normalise) {
            layer = enlarged_errors(layer, p[Dim::i]);
            continue;
        }
        layer.weights = magnitudes(layer.weights);
        layer.bias = magnitudes(layer.bias);
        GeneralOperator& general = layer.general;
        if (general.function == GeneralFunction::subtract) general.function = GeneralFunction::add;
        general.alpha = std::abs(general.alpha);
        for (float& factor : general.factors) factor = std::abs(factor);
        // Of two or more numbers each may be the smallest one in code. A steep function is a layer of
        // its own, whose results are written anew.
        if (general.function == GeneralFunction::minimum) general.function = GeneralFunction::maximum;
        if (general.function == GeneralFunction::smallest) general.function = GeneralFunction::largest;
        if (layer.activation.kind == ActivationKind::none) continue;
        if (is_steep(layer.activation.function)) {
            layer.activation = {.kind = ActivationKind::relu};
            continue;
        }
        layer.activation = {.kind = ActivationKind::clip,
                            .low = largest_constant(layer.activation),
                            .high = std::numeric_limits<float>::infinity()};
    }
    return result;
}

/// By layer, what factor of its sums of |w x| its outputs may be off by.
std::vector<float> relative_bounds(const Network& network,
                                   const std::vector<LayerProblem>& problems, Sums sums) {
    std::vector<float> bounds;
    float bound = 0;
    for (const LayerProblem& p : problems) {
        // A sum of n products in any order is within n 2^-24 of its sum of |w x|; an activation adds
        // some units in the last place. Both sides may be as far off.
        const int64_t terms = p.y().kernel * p.x().kernel * p[Dim::i] + std::ssize(p.inputs) + 16;
        float own = std::ldexp(static_cast<float>(terms), -23);
        // Sums at a border have fewer products than those in the middle of the map, which their
        // errors depend on: up to four times in 3x3 windows, of 2^-17 in tiles of 6 x 6.
        if (sums == Sums::in_any_kernel && p.has_weights()) own += std::ldexp(1.0F, -15);
        // Each factor may be off by so much.
        if (p.operation == Operation::multiply || p.operation == Operation::prelu) bound *= 2;
        const Activation& activation = network.layer(p.layer).activation;
        bound = (bound + own) * (is_steep(activation.function) ? 1 : steepness(activation));
        bounds.push_back(bound);
    }
    return bounds;
}

std::vector<std::vector<float>> magnitudes_of(const std::vector<std::vector<float>>& inputs,
                                              Sums sums) {
    std::vector<std::vector<float>> result = inputs;
    for (std::vector<float>& values : result) {
        for (float& value : values) value = std::isfinite(value) ? std::abs(value) : 1.0F;
        if (sums == Sums::in_any_kernel && !values.empty())
            std::ranges::fill(values, *std::ranges::max_element(values));
    }
    return result;
}

/// An operand of an elementwise layer, by the element of the output.
class Repeated {
public:
    Repeated(const Operand& of, const std::vector<int64_t>& dims)
        : values_(of.values), columns_(dims[3]), rows_(dims[2]) {
        int64_t step = 1;
        for (size_t d = 4; d-- > 1; step *= of.dims[d]) steps_[d] = of.dims[d] == 1 ? 0 : step;
    }
    float operator[](int64_t n) const {
        return values_[n / columns_ / rows_ * steps_[1] + n / columns_ % rows_ * steps_[2] +
                       n % columns_ * steps_[3]];
    }

private:
    const float* values_;
    int64_t columns_, rows_;
    std::array<int64_t, 4> steps_{};
};

/// A group whose steep functions are layers of their own.
struct GroupInParts {
    Network network;
    std::vector<LayerProblem> problems;
};

GroupInParts with_steep_apart(const Network& network, const std::vector<LayerProblem>& problems) {
    GroupInParts parts{network, {}};
    for (const LayerProblem& p : problems) {
        Activation& activation = parts.network.layers[static_cast<size_t>(p.layer)].activation;
        parts.problems.push_back(p);
        if (p.operation == Operation::pointwise || !is_steep(activation.function)) continue;
        const auto sum = static_cast<TensorId>(parts.network.tensors.size());
        parts.network.tensors.push_back(network.tensor(p.output));
        LayerProblem apart = p;
        apart.layer = static_cast<LayerId>(parts.network.layers.size());
        apart.operation = Operation::pointwise;
        apart.inputs = {p.inputs.front()};
        apart.inputs.front().tensor = sum;
        apart.inputs.front().channels = apart.groups = p[Dim::z];
        apart.extent[Dim::i] = 1;
        for (AxisWindow& w : apart.window) {
            const int64_t extent = w.out;
            w = {};
            w.in = w.out = extent;
        }
        Layer layer{.kind = LayerKind::activation, .inputs = {sum}, .output = p.output};
        std::swap(layer.activation, activation);
        parts.network.layers[static_cast<size_t>(p.layer)].output = sum;
        parts.problems.back().output = sum;
        parts.network.layers.push_back(std::move(layer));
        parts.problems.push_back(std::move(apart));
    }
    return parts;
}

/// Arguments of a quotient, a power or a steep function and its values, in the rows that are
/// computed.
struct SteepResults {
    std::vector<std::vector<float>> arguments;
    std::vector<float> values;
};

/// The magnitude of a quotient (error_bounds.h), of operands that may be off by `bound` times theirs.
float magnitude_of_quotient(float dividend, float divisor, float y, float quotient, float bound) {
    if (!(dividend <= largest_sum && divisor <= largest_sum)) return infinity;
    if (!std::isfinite(y)) return dividend;  // the result is 0 or NaN, whatever is divided
    const float least = std::abs(y) - bound * divisor;
    if (!(least > 0)) return infinity;
    const float of_divisor = std::isfinite(quotient) ? std::abs(quotient) * divisor : 0;
    return (dividend + of_divisor) / least;
}

/// What code that rounds the logarithm of x may make of x^exponent, in units of `last_places`.
float units_of_power(float x, float exponent) {
    return x != 0 ? 1 + std::abs(exponent * std::log(std::abs(x))) / 8 : 1;
}

/// How far a steep function's value at x may be off (error_bounds.h), where x may be off by `error`.
float error_of_function(const Activation& f, float error, float x, float value) {
    if (!std::isfinite(x)) return 0;
    if (!(error <= largest_sum)) return infinity;
    const bool has_pole = f.function == GeneralFunction::reciprocal ||
                          (f.function == GeneralFunction::power && f.alpha < 0);
    if (has_pole && std::abs(x) <= error) return infinity;
    // Number n of the tangent's poles is at (n + 1/2) pi.
    const auto poles_before = [](float at) {
        return std::floor(static_cast<double>(at) / std::numbers::pi + 0.5);
    };
    if (f.function == GeneralFunction::tangent &&
        poles_before(x - error) != poles_before(x + error))
        return infinity;
    // Between their jumps these two go along with x.
    const bool follows = f.function == GeneralFunction::thresholded_relu ||
                         f.function == GeneralFunction::shrink;
    float most = follows ? error : 0;
    for (const float at : {x - error, x + error}) {
        const float other = apply_activation(f, at, 0);
        if (std::isnan(other) && std::isnan(value)) continue;
        if (other != value) most = std::max(most, std::abs(other - value));
        if (!(std::abs(other) <= largest_sum) || std::isnan(value)) return infinity;
    }
    if (std::isnan(value)) return 0;
    const float units = f.function == GeneralFunction::power ? units_of_power(x, f.alpha) : 1;
    return most + units * last_places * std::abs(value);
}

/// How far x^y may be off (error_bounds.h), where x and y may be off by so much.
float error_of_power(float error_x, float error_y, float x, float y, float value) {
    const bool may_be_one = std::abs(y) <= error_y || std::abs(std::abs(x) - 1) <= error_x;
    if (!std::isfinite(x) || !std::isfinite(y)) return may_be_one ? infinity : 0;
    if (!(error_x <= largest_sum && error_y <= largest_sum)) return infinity;
    const bool is_exact = error_x == 0 && error_y == 0;
    if (x <= error_x && !is_exact) return infinity;
    if (std::isnan(value)) return 0;
    float most = std::numeric_limits<float>::min();  // results below it may be 0 in code
    for (const float base : {x - error_x, x + error_x}) {
        for (const float exponent : {y - error_y, y + error_y}) {
            const float other = std::pow(base, exponent);
            if (!(std::abs(other) <= largest_sum)) return infinity;
            most = std::max(most, std::abs(other - value));
        }
    }
    return most + units_of_power(x, y) * last_places * std::abs(value);
}

/// The largest of those that are numbers.
float largest_magnitude(const std::vector<float>& values) {
    float most = 0;
    for (const float value : values) {
        if (std::isfinite(value)) most = std::max(most, std::abs(value));
    }
    return most;
}

}  // namespace

bool BoundedRows::holds(float found, size_t n) const {
    const float wanted = expected[n];
    return found == wanted || (std::isnan(found) && std::isnan(wanted)) || allowed[n] == infinity ||
           std::abs(found - wanted) <= allowed[n];
}

int64_t BoundedRows::judged() const {
    std::vector<float> sizes;
    for (const float value : expected) {
        if (std::isfinite(value) && value != 0) sizes.push_back(std::abs(value));
    }
    if (sizes.empty()) return 0;
    const auto middle = sizes.begin() + std::ssize(sizes) / 2;
    std::nth_element(sizes.begin(), middle, sizes.end());
    const float most = *middle / 100;
    return std::ranges::count_if(allowed, [most](float error) { return error <= most; });
}

bool BoundedRows::judge_nothing() const {
    return std::ranges::all_of(allowed, [](float error) { return error == infinity; });
}

BoundedRows bounded_rows(const Network& network, const std::vector<LayerProblem>& problems,
                         const std::vector<std::vector<float>>& inputs, int64_t first, int64_t last,
                         Sums sums) {
    const GroupInParts group = with_steep_apart(network, problems);
    const std::vector<float> bounds = relative_bounds(group.network, group.problems, sums);
    std::vector<SteepResults> steep(group.problems.size());
    const auto activation_of = [&](size_t k) -> const Activation& {
        return group.network.layer(group.problems[k].layer).activation;
    };
    const AfterLayer note = [&](size_t k, const std::vector<Operand>& read,
                                const std::vector<int64_t>& dims, const float* output) {
        if (!is_steep(group.network, group.problems[k])) return;
        SteepResults& results = steep[k];
        const int64_t count = element_count(dims);
        results.values.assign(output, output + count);
        results.arguments.resize(read.size());
        if (read.size() == 1) {
            results.arguments[0].assign(read[0].values, read[0].values + count);
            return;
        }
        for (size_t e = 0; e < read.size(); ++e) {
            const Repeated operand(read[e], dims);
            for (int64_t n = 0; n < count; ++n) results.arguments[e].push_back(operand[n]);
        }
    };
    const AfterLayer enlarge = [&](size_t k, const std::vector<Operand>& read,
                                   const std::vector<int64_t>& dims, float* output) {
        const Operation operation = group.problems[k].operation;
        if (operation == Operation::prelu) {
            const Repeated x(read[0], dims), slope(read[1], dims);
            for (int64_t n = 0; n < element_count(dims); ++n)
                output[n] = x[n] * std::max(1.0F, slope[n]);
        }
        if (!is_steep(group.network, group.problems[k])) return;
        const SteepResults& results = steep[k];
        const float bound = k == 0 ? 0 : bounds[k - 1];
        if (read.size() == 1) {
            const float most = sums == Sums::in_any_kernel
                                   ? part_of_range * largest_magnitude(results.arguments[0])
                                   : infinity;
            for (size_t n = 0; n < results.values.size(); ++n) {
                const float error = std::min(bound * read[0].values[n], most);
                output[n] = error_of_function(activation_of(k), error, results.arguments[0][n],
                                              results.values[n]) /
                            bounds[k];
            }
            return;
        }
        const Repeated of_x(read[0], dims), of_y(read[1], dims);
        for (size_t n = 0; n < results.values.size(); ++n) {
            const auto at = static_cast<int64_t>(n);
            const float x = results.arguments[0][n], y = results.arguments[1][n];
            output[n] =
                operation == Operation::power
                    ? error_of_power(bound * of_x[at], bound * of_y[at], x, y, results.values[n]) /
                          bounds[k]
                    : magnitude_of_quotient(of_x[at], of_y[at], y, results.values[n], bound);
        }
    };
    BoundedRows rows;
    rows.expected = reference_rows(group.network, group.problems, inputs, first, last, note);
    rows.allowed =
        reference_rows(of_magnitudes(group.network, group.problems), group.problems,
                       magnitudes_of(inputs, sums), first, last, enlarge);
    for (float& most : rows.allowed)
        most = most <= largest_sum ? bounds.back() * most : infinity;
    return rows;
}

std::vector<std::vector<float>> judged_inputs(const Network& network,
                                              const std::vector<LayerProblem>& problems,
                                              uint64_t seed) {
    if (!is_steep(network, problems)) return random_group_inputs(network, problems, seed);
    constexpr int64_t most_rows = 4;
    const int64_t rows = std::min(most_rows, problems.back()[Dim::y]);
    std::vector<std::vector<float>> best;
    int64_t most_judged = -1;
    for (const int64_t around : {0, 16, 256, 4096}) {
        std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, seed, around);
        const BoundedRows bounded =
            bounded_rows(network, problems, inputs, 0, rows, Sums::in_any_kernel);
        const int64_t judged = bounded.judged();
        if (judged <= most_judged) continue;
        most_judged = judged;
        best = std::move(inputs);
        if (100 * judged >= 98 * std::ssize(bounded.allowed)) break;
    }
    return best;
}

BoundedRows judged_rows(const Network& network, const std::vector<LayerProblem>& problems,
                        const std::vector<std::vector<float>>& inputs, int64_t first,
                        int64_t last) {
    if (is_steep(network, problems))
        return bounded_rows(network, problems, inputs, first, last, Sums::in_any_kernel);
    BoundedRows rows;
    rows.expected = reference_rows(network, problems, inputs, first, last);
    const auto [low, high] = std::minmax_element(rows.expected.begin(), rows.expected.end());
    const float of_range =
        part_of_range * std::max({*high - *low, std::abs(*high), std::abs(*low)});
    rows.allowed.assign(rows.expected.size(), of_range);
    return rows;
}

}  // namespace laminate
