#include "nets/operators/row_functions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/shared_loop.h"
#include "base/units.h"
#include "base/vector_width.h"
#include "nets/operators/general_operators.h"
#include "nets/operators/reference_operators.h"

// Loops over simple inline functions, which the compiler vectorises: it takes each comparison for a
// minimum, maximum or selection, as all of them have both sides at hand.
#define LAMINATE_IN_VECTORS [[gnu::always_inline]] inline

namespace laminate {
namespace {

/// e^x = power (rest + 1), where power is a power of 2.
struct PowerAndRest {
    float power, rest;
};

/// x lies between -88, where the power is 0, and 89, where it is infinite, or is NaN, which stays
/// in the rest. The polynomial is that of Cephes (expf).
LAMINATE_IN_VECTORS PowerAndRest power_and_rest(float x) {
    constexpr float ln2_high = 0.693359375f;  // few digits: its product with k is exact
    constexpr float ln2_low = -2.12194440e-4f;
    constexpr float to_whole = 0x1.8p23f;  // the sum's last bits are the nearest whole number
    const float shifted = x * std::numbers::log2e_v<float> + to_whole, k = shifted - to_whole;
    const float r = (x - k * ln2_high) - k * ln2_low;
    float series = 1.9875691500e-4f;
    series = series * r + 1.3981999507e-3f;
    series = series * r + 8.3334519073e-3f;
    series = series * r + 4.1665795894e-2f;
    series = series * r + 1.6666665459e-1f;
    series = series * r + 5.0000001201e-1f;
    const uint32_t exponent =
        std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(to_whole) + 127;
    return {std::bit_cast<float>(exponent << 23), series * r * r + r};
}

LAMINATE_IN_VECTORS float between(float x, float low, float high) {
    x = x > high ? high : x;
    return x < low ? low : x;
}

LAMINATE_IN_VECTORS float exponential_of(float x) {
    const auto [power, rest] = power_and_rest(between(x, -88, 89));
    return power * (rest + 1);
}

LAMINATE_IN_VECTORS float tangent_of(float x) {
    const auto [power, rest] = power_and_rest(between(2 * x, -25, 80));  // e^-25 - 1 is -1
    const float minus_one = power * rest + (power - 1);
    return minus_one / (minus_one + 2);
}

LAMINATE_IN_VECTORS float sigmoid_of(float x) { return 1 / (1 + exponential_of(-x)); }

/// x times what a normal distribution has below x: Abramowitz and Stegun, Handbook of Mathematical
/// Functions, 7.1.26.
LAMINATE_IN_VECTORS float gelu_of(float x) {
    const float z = std::abs(x) * (1 / std::numbers::sqrt2_v<float>);
    const float t = 1 / (1 + 0.3275911f * z);
    float series = 1.061405429f;
    series = series * t - 1.453152027f;
    series = series * t + 1.421413741f;
    series = series * t - 0.284496736f;
    series = series * t + 0.254829592f;
    const float tail = 0.5f * t * series * exponential_of(-z * z);
    return x * (x < 0 ? tail : 1 - tail);
}

template <class Value>
LAMINATE_IN_VECTORS void each(const float* input, float* output, int64_t count,
                              const Value& value) {
    for (int64_t k = 0; k < count; ++k) output[k] = value(input[k]);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void exponential_row(const float* input, float* output, int64_t count) {
    each(input, output, count, exponential_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void tangent_row(const float* input, float* output, int64_t count) {
    each(input, output, count, tangent_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void sigmoid_row(const float* input, float* output, int64_t count) {
    each(input, output, count, sigmoid_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void swish_row(float alpha, const float* input, float* output, int64_t count) {
    for (int64_t k = 0; k < count; ++k)
        output[k] = input[k] / (1 + exponential_of(-alpha * input[k]));
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void gelu_row(const float* input, float* output, int64_t count) {
    each(input, output, count, gelu_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void square_root_row(const float* input, float* output, int64_t count) {
    for (int64_t k = 0; k < count; ++k) output[k] = std::sqrt(input[k]);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void floor_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return std::floor(x); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void ceil_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return std::ceil(x); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void round_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return std::nearbyint(x); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void reciprocal_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return 1 / x; });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void absolute_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return std::abs(x); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void negative_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return -x; });
}

// ---- along a row

/// `lanes` results side by side, then halves of them.
template <size_t lanes, class Value, class Term, class Join>
LAMINATE_IN_VECTORS Value joined_in_lanes(const float* row, int64_t count, Value start,
                                          const Term& term, const Join& join) {
    std::array<Value, lanes> parts;
    parts.fill(start);
    int64_t x = 0;
    for (; x + static_cast<int64_t>(lanes) <= count; x += lanes) {
        for (size_t lane = 0; lane < lanes; ++lane)
            parts[lane] = join(parts[lane], term(row[x + static_cast<int64_t>(lane)]));
    }
    for (size_t lane = 0; x < count; ++x, ++lane) parts[lane] = join(parts[lane], term(row[x]));
    for (size_t half = lanes / 2; half > 0; half /= 2) {
        for (size_t lane = 0; lane < half; ++lane)
            parts[lane] = join(parts[lane], parts[lane + half]);
    }
    return parts[0];
}

/// Long rows keep several vectors of results, so that one operation need not wait for another.
template <class Value, class Term, class Join>
LAMINATE_IN_VECTORS Value joined(const float* row, int64_t count, Value start, const Term& term,
                                 const Join& join) {
    return count < 256 ? joined_in_lanes<16>(row, count, start, term, join)
                       : joined_in_lanes<64>(row, count, start, term, join);
}

template <class Value, class Term>
LAMINATE_IN_VECTORS Value sum_of(const float* row, int64_t count, const Term& term) {
    return joined(row, count, Value{0}, term, [](Value a, Value b) { return a + b; });
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
float extreme_in_row(float sign, const float* row, int64_t count) {
    return joined(
        row, count, -std::numeric_limits<float>::infinity(),
        [sign](float x) { return sign * x; },
        [](float a, float b) { return (b > a) | (b != b) ? b : a; });
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
float largest_of(const float* row, int64_t count) {
    return joined(
        row, count, -std::numeric_limits<float>::infinity(), [](float x) { return x; },
        [](float a, float b) { return b > a ? b : a; });
}

/// Writes e^(x - most) and returns the sum. A NaN of the row makes the sum NaN.
LAMINATE_FOR_EACH_VECTOR_WIDTH
double exponentials_below(float most, const float* input, float* output, int64_t count) {
    constexpr int64_t run = 512;  // few enough that their sum in single precision is exact enough
    double sum = 0;
    for (int64_t begin = 0; begin < count; begin += run) {
        const int64_t end = std::min(count, begin + run);
        for (int64_t k = begin; k < end; ++k) output[k] = exponential_of(input[k] - most);
        sum += static_cast<double>(
            sum_of<float>(output + begin, end - begin, [](float x) { return x; }));
    }
    return sum;
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void multiply_row(float factor, float* row, int64_t count) {
    for (int64_t k = 0; k < count; ++k) row[k] *= factor;
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void subtract_row(float most, double logarithm, const float* input, float* output, int64_t count) {
    const double shift = static_cast<double>(most) + logarithm;
    for (int64_t k = 0; k < count; ++k)
        output[k] = static_cast<float>(static_cast<double>(input[k]) - shift);
}

/// (x - middle) * scale. Rounding the mean would shift nearly constant rows, so it has two parts:
/// x - high is exact near it, and low is what rounding leaves.
LAMINATE_FOR_EACH_VECTOR_WIDTH
void standardise_row(float epsilon, const float* input, float* output, int64_t count) {
    constexpr int64_t run = 512;  // few enough that their sum in single precision is exact enough
    const auto extent = static_cast<double>(count);
    const double middle =
        sum_of<double>(input, count, [](float x) { return static_cast<double>(x); }) / extent;
    const auto high = static_cast<float>(middle);
    const double low = middle - static_cast<double>(high);
    double squares = 0;
    for (int64_t begin = 0; begin < count; begin += run) {
        squares += static_cast<double>(
            sum_of<float>(input + begin, std::min(run, count - begin),
                          [high](float x) { return (x - high) * (x - high); }));
    }
    if (!std::isfinite(squares)) {
        squares = sum_of<double>(input, count, [high](float x) {
            const double distance = static_cast<double>(x) - static_cast<double>(high);
            return distance * distance;
        });
    }
    const double variance = std::max(0.0, squares / extent - low * low);
    const double scale = 1 / std::sqrt(variance + static_cast<double>(epsilon));
    const auto factor = static_cast<float>(scale), shift = static_cast<float>(-low * scale);
    for (int64_t k = 0; k < count; ++k) output[k] = (input[k] - high) * factor + shift;
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void root_mean_square_row(float epsilon, const float* input, float* output, int64_t count) {
    const double squares = sum_of<double>(input, count, [](float x) {
        return static_cast<double>(x) * static_cast<double>(x);
    });
    const double scale = 1 / std::sqrt(squares / static_cast<double>(count) +
                                       static_cast<double>(epsilon));
    for (int64_t k = 0; k < count; ++k)
        output[k] = static_cast<float>(static_cast<double>(input[k]) * scale);
}

constexpr int64_t most_columns = 64;

/// Up to most_columns columns at once.
LAMINATE_FOR_EACH_VECTOR_WIDTH
void softmax_of_columns(const float* input, float* output, int64_t extent, int64_t step,
                        int64_t columns) {
    std::array<float, most_columns> most;
    std::array<double, most_columns> sums{};
    std::array<float, most_columns> scales;
    most.fill(-std::numeric_limits<float>::infinity());
    for (int64_t a = 0; a < extent; ++a) {
        for (int64_t x = 0; x < columns; ++x) {
            float& largest = most[static_cast<size_t>(x)];
            largest = std::max(largest, input[a * step + x]);
        }
    }
    for (int64_t a = 0; a < extent; ++a) {
        float* parts = output + a * step;
        for (int64_t x = 0; x < columns; ++x)
            parts[x] = exponential_of(input[a * step + x] - most[static_cast<size_t>(x)]);
        for (int64_t x = 0; x < columns; ++x)
            sums[static_cast<size_t>(x)] += static_cast<double>(parts[x]);
    }
    for (size_t x = 0; x < scales.size(); ++x) scales[x] = static_cast<float>(1 / sums[x]);
    for (int64_t a = 0; a < extent; ++a) {
        for (int64_t x = 0; x < columns; ++x)
            output[a * step + x] *= scales[static_cast<size_t>(x)];
    }
}

template <bool nan_is_first, bool last_of_equals>
LAMINATE_IN_VECTORS void first_of_columns_by(const FirstRule& rule, const float* input,
                                             float* output, int64_t extent, int64_t step,
                                             int64_t columns) {
    const float sign = rule.from_largest ? 1.0F : -1.0F;
    const auto comes_before = [](float a, float b) {
        return nan_is_first ? (a > b) | ((a != a) & (b == b)) : (a > b) | ((b != b) & (a == a));
    };
    std::array<float, most_columns> values{}, places{};
    for (int64_t x = 0; x < columns; ++x) values[static_cast<size_t>(x)] = sign * input[x];
    for (int64_t k = 1; k < extent; ++k) {
        const auto place = static_cast<float>(k);
        for (int64_t x = 0; x < columns; ++x) {
            const float value = sign * input[k * step + x];
            float &best = values[static_cast<size_t>(x)], &at = places[static_cast<size_t>(x)];
            const bool is_better =
                last_of_equals ? !comes_before(best, value) : comes_before(value, best);
            best = is_better ? value : best;
            at = is_better ? place : at;
        }
    }
    for (int64_t x = 0; x < columns; ++x) {
        const auto n = static_cast<size_t>(x);
        output[x] = rule.gives_place ? places[n] : sign * values[n];
    }
}

/// Up to most_columns columns at once.
LAMINATE_FOR_EACH_VECTOR_WIDTH
void first_of_columns(const FirstRule& rule, const float* input, float* output, int64_t extent,
                      int64_t step, int64_t columns) {
    if (rule.nan_is_first && !rule.last_of_equals)
        return first_of_columns_by<true, false>(rule, input, output, extent, step, columns);
    if (rule.nan_is_first)
        return first_of_columns_by<true, true>(rule, input, output, extent, step, columns);
    if (!rule.last_of_equals)
        return first_of_columns_by<false, false>(rule, input, output, extent, step, columns);
    first_of_columns_by<false, true>(rule, input, output, extent, step, columns);
}

/// Rows that are too short for vectors, such as the classes of each box of a detector, are the
/// columns of a square.
constexpr int64_t most_short = 32;

void run_softmax_of_short_rows(int64_t rows, int64_t extent, const float* input, float* output,
                               int threads) {
    parallel_for(ceil_div(rows, most_columns), threads, [&](int64_t part) {
        const int64_t begin = part * most_columns, columns = std::min(most_columns, rows - begin);
        std::array<float, static_cast<size_t>(most_short * most_columns)> square{};
        for (int64_t a = 0; a < extent; ++a) {
            for (int64_t x = 0; x < columns; ++x)
                square[static_cast<size_t>(a * columns + x)] = input[(begin + x) * extent + a];
        }
        softmax_of_columns(square.data(), square.data(), extent, columns, columns);
        for (int64_t x = 0; x < columns; ++x) {
            for (int64_t a = 0; a < extent; ++a)
                output[(begin + x) * extent + a] = square[static_cast<size_t>(a * columns + x)];
        }
    });
}

}  // namespace

void apply_unary_row(GeneralFunction function, float alpha, float beta, const float* input,
                     float* output, int64_t count) {
    switch (function) {
        case GeneralFunction::exponential:
            return exponential_row(input, output, count);
        case GeneralFunction::swish:
            return swish_row(alpha, input, output, count);
        case GeneralFunction::gelu:
            return gelu_row(input, output, count);
        case GeneralFunction::square_root:
            return square_root_row(input, output, count);
        case GeneralFunction::floor:
            return floor_row(input, output, count);
        case GeneralFunction::ceil:
            return ceil_row(input, output, count);
        case GeneralFunction::round_to_even:
            return round_row(input, output, count);
        case GeneralFunction::reciprocal:
            return reciprocal_row(input, output, count);
        case GeneralFunction::absolute:
            return absolute_row(input, output, count);
        case GeneralFunction::negative:
            return negative_row(input, output, count);
        default:
            for (int64_t k = 0; k < count; ++k)
                output[k] = apply_unary(function, input[k], alpha, beta);
    }
}

void apply_activation_row(const Activation& activation, int64_t channel, const float* input,
                          float* output, int64_t count) {
    const auto& [kind, function, alpha, beta, low, high, slope] = activation;
    switch (kind) {
        case ActivationKind::relu:
            for (int64_t k = 0; k < count; ++k) output[k] = std::max(input[k], 0.0f);
            return;
        case ActivationKind::clip:
            for (int64_t k = 0; k < count; ++k)
                output[k] = std::min(std::max(input[k], low), high);
            return;
        case ActivationKind::sigmoid:
            return sigmoid_row(input, output, count);
        case ActivationKind::tanh:
            return tangent_row(input, output, count);
        case ActivationKind::unary:
            return apply_unary_row(function, alpha, beta, input, output, count);
        default:
            for (int64_t k = 0; k < count; ++k)
                output[k] = apply_activation(activation, input[k], channel);
    }
}

float largest_in_row(const float* row, int64_t count) { return extreme_in_row(1, row, count); }
float smallest_in_row(const float* row, int64_t count) { return -extreme_in_row(-1, row, count); }

void normalise_row(GeneralFunction function, float epsilon, const float* input, float* output,
                   int64_t count) {
    if (function == GeneralFunction::standardise)
        return standardise_row(epsilon, input, output, count);
    if (function == GeneralFunction::root_mean_square)
        return root_mean_square_row(epsilon, input, output, count);
    // Subtracting the largest keeps e^x from overflowing and changes nothing else.
    const float most = largest_of(input, count);
    const double sum = exponentials_below(most, input, output, count);
    if (function == GeneralFunction::softmax)
        return multiply_row(static_cast<float>(1 / sum), output, count);
    subtract_row(most, std::log(sum), input, output, count);
}

void run_softmax_along(int64_t outer, int64_t extent, int64_t inner, const float* input,
                       float* output, int threads) {
    if (inner == 1 && extent <= most_short)
        return run_softmax_of_short_rows(outer, extent, input, output, threads);
    if (inner == 1) {
        return parallel_for(outer, threads, [&](int64_t row) {
            normalise_row(GeneralFunction::softmax, 0, input + row * extent, output + row * extent,
                          extent);
        });
    }
    const int64_t parts = ceil_div(inner, most_columns);
    parallel_for(outer * parts, threads, [&](int64_t part) {
        const int64_t begin = part % parts * most_columns,
                      first = part / parts * extent * inner + begin;
        softmax_of_columns(input + first, output + first, extent, inner,
                           std::min(most_columns, inner - begin));
    });
}

void run_first_along(int64_t outer, int64_t extent, int64_t inner, const FirstRule& rule,
                     const float* input, float* output, int threads) {
    const int64_t parts = ceil_div(inner, most_columns);
    parallel_for(outer * parts, threads, [&](int64_t part) {
        const int64_t begin = part % parts * most_columns;
        first_of_columns(rule, input + part / parts * extent * inner + begin,
                         output + part / parts * inner + begin, extent, inner,
                         std::min(most_columns, inner - begin));
    });
}

}  // namespace laminate
