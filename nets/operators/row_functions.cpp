#include "nets/operators/row_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/shared_loop.h"
#include "base/units.h"
#include "base/vector_width.h"
#include "nets/operators/general_operators.h"
#include "nets/operators/reference_operators.h"
#include "nets/operators/vector_functions.h"

namespace laminate {
namespace {

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
void power_row(float exponent, const float* input, float* output, int64_t count) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (exponent == 2) return each(input, output, count, [](float x) { return x * x; });
    if (exponent == 3) return each(input, output, count, [](float x) { return x * x * x; });
    if (exponent == 0.5F) {  // infinite at -infinity, 0 at -0
        return each(input, output, count, [](float x) {
            return std::sqrt(x == -infinity ? infinity : x) + 0.0F;
        });
    }
    for (int64_t k = 0; k < count; ++k) output[k] = std::pow(input[k], exponent);
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
LAMINATE_FOR_EACH_VECTOR_WIDTH
void sign_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) {
        const float above = x > 0 ? 1.0F : x;
        return x < 0 ? -1.0F : above;
    });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void thresholded_row(float alpha, const float* input, float* output, int64_t count) {
    each(input, output, count, [alpha](float x) { return x > alpha ? x : 0.0F; });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void shrink_row(float alpha, float beta, const float* input, float* output, int64_t count) {
    each(input, output, count, [alpha, beta](float x) {
        const float above = x > alpha ? x - beta : 0.0F;
        return x < -alpha ? x + beta : above;
    });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void error_function_row(const float* input, float* output, int64_t count) {
    each(input, output, count, error_function_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void logarithm_row(const float* input, float* output, int64_t count) {
    each(input, output, count, logarithm_of);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void rectified_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return std::max(x, 0.0F); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void clipped_row(float low, float high, const float* input, float* output, int64_t count) {
    each(input, output, count, [low, high](float x) { return std::min(std::max(x, low), high); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void leaky_row(float alpha, const float* input, float* output, int64_t count) {
    each(input, output, count, [alpha](float x) {
        const float below = alpha * x;
        return x < 0 ? below : x;
    });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void elu_row(float alpha, const float* input, float* output, int64_t count) {
    each(input, output, count, [alpha](float x) {
        const float below = alpha * exponential_minus_one_of(x);
        return x < 0 ? below : x;
    });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void selu_row(float alpha, float beta, const float* input, float* output, int64_t count) {
    each(input, output, count, [alpha, beta](float x) {
        const float below = beta * alpha * exponential_minus_one_of(x), above = beta * x;
        return x > 0 ? above : below;
    });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void celu_row(float alpha, const float* input, float* output, int64_t count) {
    each(input, output, count, [alpha](float x) {
        const float above = x < 0 ? 0 : x, below = alpha * exponential_minus_one_of(x / alpha);
        return above + (below < 0 ? below : 0);
    });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void softplus_row(const float* input, float* output, int64_t count) {
    each(input, output, count, softplus_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void softsign_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return x / (1 + std::abs(x)); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void hard_sigmoid_row(float alpha, float beta, const float* input, float* output, int64_t count) {
    each(input, output, count, [alpha, beta](float x) { return between(alpha * x + beta, 0, 1); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void hard_swish_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return x * between(x / 6 + 0.5F, 0, 1); });
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void mish_row(const float* input, float* output, int64_t count) {
    each(input, output, count, mish_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void gelu_by_tangent_row(const float* input, float* output, int64_t count) {
    each(input, output, count, gelu_by_tangent_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void is_zero_row(const float* input, float* output, int64_t count) {
    each(input, output, count, [](float x) { return x == 0 ? 1.0F : 0.0F; });
}

// ---- along a row

// Sums and extremes say to the compiler that it may divide them among lanes.

template <class Value, class Term>
LAMINATE_IN_VECTORS Value sum_of(const float* row, int64_t count, const Term& term) {
    Value sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t x = 0; x < count; ++x) sum += term(row[x]);
    return sum;
}

/// Finds the largest sign * x; a NaN is passed over.
LAMINATE_IN_VECTORS float largest_of(float sign, const float* row, int64_t count) {
    float most = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : most)
    for (int64_t x = 0; x < count; ++x) most = sign * row[x] > most ? sign * row[x] : most;
    return most;
}

/// The elements behind a row's whole vectors are computed with those before them, in a vector of so
/// many.
constexpr int64_t row_lanes = 8;
using RowLanes = std::array<float, row_lanes>;

/// How many elements stand behind a row's whole vectors; none if the row is shorter than a vector.
constexpr int64_t left_of(int64_t count) { return count < row_lanes ? 0 : count % row_lanes; }

using Lanes [[gnu::vector_size(sizeof(RowLanes))]] = float;

// Arguments are references, because how vectors are passed depends on the processor.
LAMINATE_IN_VECTORS void load(const float* values, Lanes& lanes) {
    std::memcpy(&lanes, values, sizeof lanes);
}

/// Joins all lanes, halves first: join(a, b) makes of a what both are together. A loop over the
/// lanes in an array would wait for the memory and for one lane after the other.
template <class Join>
LAMINATE_IN_VECTORS float joined(Lanes lanes, const Join& join) {
    join(lanes, __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7, 0, 1, 2, 3));
    join(lanes, __builtin_shufflevector(lanes, lanes, 2, 3, 0, 1, 6, 7, 4, 5));
    join(lanes, __builtin_shufflevector(lanes, lanes, 1, 0, 3, 2, 5, 4, 7, 6));
    return lanes[0];
}

/// largest_of() 1, where the last vector overlaps the one before.
LAMINATE_IN_VECTORS float largest_in_vectors(const float* row, int64_t count) {
    if (count < row_lanes) return largest_of(1, row, count);
    const auto take_larger = [](Lanes& a, const Lanes& b) { a = b > a ? b : a; };
    Lanes most = Lanes{} - std::numeric_limits<float>::infinity(), values;
    for (int64_t x = 0; x < count; x += row_lanes) {
        load(row + std::min(x, count - row_lanes), values);
        take_larger(most, values);
    }
    return joined(most, take_larger);
}

/// The sum of numbers of one sign. A NaN makes it NaN.
LAMINATE_IN_VECTORS double sum_in_vectors(const float* row, int64_t count) {
    if (count < row_lanes)
        return sum_of<double>(row, count, [](float x) { return static_cast<double>(x); });
    constexpr int64_t run = 512;  // few enough that their sum in single precision is exact enough
    constexpr Lanes places{0, 1, 2, 3, 4, 5, 6, 7};
    const auto add = [](Lanes& a, const Lanes& b) { a += b; };
    const int64_t left = left_of(count), whole = count - left;
    const Lanes counted = Lanes{} + static_cast<float>(row_lanes - left);
    Lanes values, sum;
    load(row + count - row_lanes, values);
    sum = places < counted ? Lanes{} : values;
    double total = 0;
    for (int64_t begin = 0; begin < whole; begin += run) {
        for (int64_t k = begin; k < std::min(whole, begin + run); k += row_lanes) {
            load(row + k, values);
            sum += values;
        }
        total += static_cast<double>(joined(sum, add));
        sum = Lanes{};
    }
    return total;
}

/// output = value(input); `output` may be `input`.
template <class Value>
LAMINATE_IN_VECTORS void each_in_vectors(const float* input, float* output, int64_t count,
                                         const Value& value) {
    const int64_t left = left_of(count);
    RowLanes last;  // copied because `output` may be `input`
    if (left > 0) std::copy_n(input + count - row_lanes, row_lanes, last.begin());
    each(input, output, count - left, value);
    if (left == 0) return;
#pragma omp simd  // else the compiler takes the elements one by one
    for (size_t k = 0; k < last.size(); ++k) last[k] = value(last[k]);
    std::copy_n(last.begin(), row_lanes, output + count - row_lanes);
}

/// e^(x - most), where no x is above `most`. A row of equal infinities makes it NaN.
LAMINATE_IN_VECTORS float exponential_below(float most, float x) {
    const float distance = x - most;
    const Exponential e = exponential_parts(distance < -88 ? -88 : distance);
    return e.power * (e.series * e.square + (e.r + 1));
}

/// softmax or log_softmax of up to most_together rows. Each pass takes all of them, so that a row
/// need not wait for the largest value, the sum and the quotient of the row before.
constexpr int64_t most_together = 64;

LAMINATE_IN_VECTORS void softmax_rows(bool is_log, const float* input, float* output, int64_t rows,
                                      int64_t count) {
    std::array<float, most_together> most, factors;
    for (int64_t r = 0; r < rows; ++r)
        most[static_cast<size_t>(r)] = largest_in_vectors(input + r * count, count);
    // Subtracting the largest keeps e^x from overflowing and changes nothing else.
    for (int64_t r = 0; r < rows; ++r) {
        const float top = most[static_cast<size_t>(r)];
        each_in_vectors(input + r * count, output + r * count, count,
                        [top](float x) { return exponential_below(top, x); });
    }
    for (int64_t r = 0; r < rows; ++r) {
        const double sum = sum_in_vectors(output + r * count, count);
        factors[static_cast<size_t>(r)] = static_cast<float>(is_log ? std::log(sum) : 1 / sum);
    }
    for (int64_t r = 0; r < rows; ++r) {
        const float factor = factors[static_cast<size_t>(r)], top = most[static_cast<size_t>(r)];
        float* to = output + r * count;
        if (is_log) {  // both terms are at most 0, so that no digits are lost
            each_in_vectors(input + r * count, to, count,
                            [=](float x) { return (x - top) - factor; });
        } else {
            each_in_vectors(to, to, count, [factor](float x) { return x * factor; });
        }
    }
}

/// (x - middle) * scale. Rounding the mean would shift nearly constant rows, so it has two parts:
/// x - high is exact near it, and low is what rounding leaves.
LAMINATE_IN_VECTORS void standardise_row(float epsilon, const float* input, float* output, int64_t count) {
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

LAMINATE_IN_VECTORS void root_mean_square_row(float epsilon, const float* input, float* output, int64_t count) {
    const double squares = sum_of<double>(input, count, [](float x) {
        return static_cast<double>(x) * static_cast<double>(x);
    });
    const double scale = 1 / std::sqrt(squares / static_cast<double>(count) +
                                       static_cast<double>(epsilon));
    for (int64_t k = 0; k < count; ++k)
        output[k] = static_cast<float>(static_cast<double>(input[k]) * scale);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void normalise_some_rows(GeneralFunction function, float epsilon, const float* input, float* output,
                         int64_t rows, int64_t count) {
    if (function == GeneralFunction::softmax || function == GeneralFunction::log_softmax) {
        const bool is_log = function == GeneralFunction::log_softmax;
        for (int64_t row = 0; row < rows; row += most_together) {
            softmax_rows(is_log, input + row * count, output + row * count,
                         std::min(most_together, rows - row), count);
        }
        return;
    }
    for (int64_t row = 0; row < rows; ++row, input += count, output += count) {
        if (function == GeneralFunction::standardise) {
            standardise_row(epsilon, input, output, count);
        } else {
            root_mean_square_row(epsilon, input, output, count);
        }
    }
}

constexpr int64_t most_columns = 64;

/// softmax or log_softmax of up to most_columns columns at once. `output` may be `input`.
template <bool is_log>
LAMINATE_IN_VECTORS void softmax_of_columns(const float* input, float* output, int64_t extent,
                                            int64_t step, int64_t columns) {
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
        std::array<float, most_columns> own;
        float* parts = is_log ? own.data() : output + a * step;
        for (int64_t x = 0; x < columns; ++x)
            parts[x] = exponential_of(input[a * step + x] - most[static_cast<size_t>(x)]);
        for (int64_t x = 0; x < columns; ++x)
            sums[static_cast<size_t>(x)] += static_cast<double>(parts[x]);
    }
    if (is_log) {
        for (size_t x = 0; x < static_cast<size_t>(columns); ++x)
            sums[x] = static_cast<double>(most[x]) + std::log(sums[x]);
        for (int64_t a = 0; a < extent; ++a) {
            for (int64_t x = 0; x < columns; ++x)
                output[a * step + x] = static_cast<float>(
                    static_cast<double>(input[a * step + x]) - sums[static_cast<size_t>(x)]);
        }
        return;
    }
    for (size_t x = 0; x < scales.size(); ++x) scales[x] = static_cast<float>(1 / sums[x]);
    for (int64_t a = 0; a < extent; ++a) {
        for (int64_t x = 0; x < columns; ++x)
            output[a * step + x] *= scales[static_cast<size_t>(x)];
    }
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void softmax_columns(bool is_log, const float* input, float* output, int64_t extent, int64_t step,
                     int64_t columns) {
    if (is_log) return softmax_of_columns<true>(input, output, extent, step, columns);
    softmax_of_columns<false>(input, output, extent, step, columns);
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

/// The first few of up to most_columns columns, as lists that each element enters where it belongs.
struct FewOfColumns {
    int64_t extent, step, columns, most;
};

template <bool nan_is_first, bool last_of_equals>
LAMINATE_IN_VECTORS void first_few_of_columns_by(const FirstRule& rule, const FewOfColumns& few,
                                                 const float* input, float* output) {
    const float sign = rule.from_largest ? 1.0F : -1.0F;
    const auto comes_before = [](float a, float b) {
        return nan_is_first ? (a > b) | ((a != a) & (b == b)) : (a > b) | ((b != b) & (a == a));
    };
    std::array<std::array<float, most_columns>, most_listed> values, places;
    for (int64_t k = 0; k < few.extent; ++k) {
        std::array<float, most_columns> value, place;
        std::array<int32_t, most_columns> has_entered{};
        for (int64_t x = 0; x < few.columns; ++x)
            value[static_cast<size_t>(x)] = sign * input[k * few.step + x];
        place.fill(static_cast<float>(k));
        const auto listed = static_cast<size_t>(std::min(k, few.most));
        for (size_t n = 0; n < listed; ++n) {
            // Behind the place where an element enters, all others move on by one.
            for (size_t x = 0; x < static_cast<size_t>(few.columns); ++x) {
                const float old_value = values[n][x], old_place = places[n][x];
                const bool is_before = last_of_equals ? !comes_before(old_value, value[x])
                                                      : comes_before(value[x], old_value);
                const bool enters = (has_entered[x] != 0) | is_before;
                values[n][x] = enters ? value[x] : old_value;
                places[n][x] = enters ? place[x] : old_place;
                value[x] = enters ? old_value : value[x];
                place[x] = enters ? old_place : place[x];
                has_entered[x] = enters ? 1 : 0;
            }
        }
        if (k < few.most) {
            values[listed] = value;
            places[listed] = place;
        }
    }
    for (int64_t n = 0; n < few.most; ++n) {
        const auto& row = (rule.gives_place ? places : values)[static_cast<size_t>(n)];
        const float factor = rule.gives_place ? 1.0F : sign;
        for (int64_t x = 0; x < few.columns; ++x)
            output[n * few.step + x] = factor * row[static_cast<size_t>(x)];
    }
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void first_few_of_columns(const FirstRule& rule, const FewOfColumns& few, const float* input,
                          float* output) {
    if (rule.nan_is_first && !rule.last_of_equals)
        return first_few_of_columns_by<true, false>(rule, few, input, output);
    if (rule.nan_is_first) return first_few_of_columns_by<true, true>(rule, few, input, output);
    if (!rule.last_of_equals)
        return first_few_of_columns_by<false, false>(rule, few, input, output);
    first_few_of_columns_by<false, true>(rule, few, input, output);
}

/// The first element of each of some rows: first its value, then where it stands.
LAMINATE_FOR_EACH_VECTOR_WIDTH
void first_of_rows(const FirstRule& rule, const float* row, float* output, int64_t rows,
                   int64_t extent) {
    constexpr int32_t beyond = std::numeric_limits<int32_t>::max();
    const float sign = rule.from_largest ? 1.0F : -1.0F;
    for (int64_t k = 0; k < rows; ++k, row += extent) {
        const float best = largest_of(sign, row, extent);
        const auto unordered =
            sum_of<int32_t>(row, extent, [](float x) { return x != x ? 1 : 0; });
        const bool is_nan = unordered == extent || (unordered > 0 && rule.nan_is_first);
        const float wanted = sign * best;
        int32_t place = rule.last_of_equals ? -1 : beyond;
        const auto look = [&](const auto& is_it) {
            if (rule.last_of_equals) {
                for (int32_t x = 0; x < extent; ++x) place = std::max(place, is_it(row[x]) ? x : -1);
            } else {
                for (int32_t x = 0; x < extent; ++x)
                    place = std::min(place, is_it(row[x]) ? x : beyond);
            }
        };
        if (is_nan) {
            look([](float x) { return x != x; });
        } else {
            look([wanted](float x) { return x == wanted; });
        }
        output[k] = rule.gives_place ? static_cast<float>(place) : row[place];
    }
}

/// Rows that are too short for vectors, such as the classes of each box of a detector, are the
/// columns of a square.
constexpr int64_t most_short = 32;

void run_softmax_of_short_rows(bool is_log, int64_t rows, int64_t extent, const float* input,
                               float* output, int threads) {
    parallel_for(ceil_div(rows, most_columns), threads, [&](int64_t part) {
        const int64_t begin = part * most_columns, columns = std::min(most_columns, rows - begin);
        std::array<float, static_cast<size_t>(most_short * most_columns)> square{};
        for (int64_t a = 0; a < extent; ++a) {
            for (int64_t x = 0; x < columns; ++x)
                square[static_cast<size_t>(a * columns + x)] = input[(begin + x) * extent + a];
        }
        softmax_columns(is_log, square.data(), square.data(), extent, columns, columns);
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
        case GeneralFunction::sign:
            return sign_row(input, output, count);
        case GeneralFunction::thresholded_relu:
            return thresholded_row(alpha, input, output, count);
        case GeneralFunction::shrink:
            return shrink_row(alpha, beta, input, output, count);
        case GeneralFunction::error_function:
            return error_function_row(input, output, count);
        case GeneralFunction::logarithm:
            return logarithm_row(input, output, count);
        case GeneralFunction::power:
            return power_row(alpha, input, output, count);
        case GeneralFunction::elu:
            return elu_row(alpha, input, output, count);
        case GeneralFunction::selu:
            return selu_row(alpha, beta, input, output, count);
        case GeneralFunction::celu:
            return celu_row(alpha, input, output, count);
        case GeneralFunction::softplus:
            return softplus_row(input, output, count);
        case GeneralFunction::softsign:
            return softsign_row(input, output, count);
        case GeneralFunction::hard_sigmoid:
            return hard_sigmoid_row(alpha, beta, input, output, count);
        case GeneralFunction::hard_swish:
            return hard_swish_row(input, output, count);
        case GeneralFunction::mish:
            return mish_row(input, output, count);
        case GeneralFunction::gelu_tanh:
            return gelu_by_tangent_row(input, output, count);
        case GeneralFunction::is_zero:
            return is_zero_row(input, output, count);
        default:
            for (int64_t k = 0; k < count; ++k)
                output[k] = apply_unary(function, input[k], alpha, beta);
    }
}

void apply_activation_row(const Activation& activation, int64_t channel, const float* input,
                          float* output, int64_t count) {
    const auto& [kind, function, alpha, beta, low, high, slope] = activation;
    switch (kind) {
        case ActivationKind::leaky_relu:
            return leaky_row(alpha, input, output, count);
        case ActivationKind::prelu:
            return leaky_row(
                slope->values[slope->values.size() == 1 ? 0 : static_cast<size_t>(channel)], input,
                output, count);
        case ActivationKind::relu:
            return rectified_row(input, output, count);
        case ActivationKind::clip:
            return clipped_row(low, high, input, output, count);
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

void normalise_rows(GeneralFunction function, float epsilon, const float* input, float* output,
                    int64_t rows, int64_t count, int threads) {
    constexpr int64_t elements = 1 << 12;  // of a part
    const int64_t together = std::max<int64_t>(1, elements / count);
    parallel_for(ceil_div(rows, together), threads, [&](int64_t part) {
        const int64_t row = part * together;
        normalise_some_rows(function, epsilon, input + row * count, output + row * count,
                            std::min(together, rows - row), count);
    });
}

void run_softmax_along(bool is_log, int64_t outer, int64_t extent, int64_t inner, const float* input,
                       float* output, int threads) {
    if (inner == 1 && extent <= most_short)
        return run_softmax_of_short_rows(is_log, outer, extent, input, output, threads);
    if (inner == 1) {
        const auto function = is_log ? GeneralFunction::log_softmax : GeneralFunction::softmax;
        return normalise_rows(function, 0, input, output, outer, extent, threads);
    }
    const int64_t parts = ceil_div(inner, most_columns);
    parallel_for(outer * parts, threads, [&](int64_t part) {
        const int64_t begin = part % parts * most_columns,
                      first = part / parts * extent * inner + begin;
        softmax_columns(is_log, input + first, output + first, extent, inner,
                        std::min(most_columns, inner - begin));
    });
}

namespace {

/// Calls body(place of the first in the input, place of its result, count) for up to most_columns rows or
/// columns at a time, in parallel.
template <class Body>
void for_each_block(int64_t outer, int64_t extent, int64_t inner, int threads, const Body& body) {
    const int64_t along = inner == 1 ? outer : inner, parts = ceil_div(along, most_columns);
    parallel_for((inner == 1 ? 1 : outer) * parts, threads, [&](int64_t part) {
        const int64_t begin = part % parts * most_columns, row = part / parts;
        body(row * extent * inner + begin * (inner == 1 ? extent : 1), row * along + begin,
             std::min(most_columns, along - begin));
    });
}

void first_of_block(const FirstRule& rule, int64_t extent, int64_t inner, const float* input,
                    float* output, int64_t count) {
    if (inner == 1) return first_of_rows(rule, input, output, count, extent);
    first_of_columns(rule, input, output, extent, inner, count);
}

}  // namespace

void run_first_along(int64_t outer, int64_t extent, int64_t inner, const FirstRule& rule,
                     const float* input, float* output, int threads) {
    for_each_block(outer, extent, inner, threads, [&](int64_t from, int64_t to, int64_t count) {
        first_of_block(rule, extent, inner, input + from, output + to, count);
    });
}

void run_first_few_along(int64_t outer, int64_t extent, int64_t inner, int64_t most,
                         const FirstRule& rule, const float* input, float* output, int threads) {
    const int64_t parts = ceil_div(inner, most_columns);
    parallel_for(outer * parts, threads, [&](int64_t part) {
        const int64_t begin = part % parts * most_columns, row = part / parts;
        first_few_of_columns(rule, {extent, inner, std::min(most_columns, inner - begin), most},
                             input + row * extent * inner + begin,
                             output + row * most * inner + begin);
    });
}

void run_hardmax_along(int64_t outer, int64_t extent, int64_t inner, const float* input, float* output,
                       int threads) {
    for_each_block(outer, extent, inner, threads, [&](int64_t from, int64_t, int64_t count) {
        std::array<float, most_columns> places;
        first_of_block({}, extent, inner, input + from, places.data(), count);
        float* block = output + from;
        if (inner == 1) std::fill_n(block, count * extent, 0.0F);
        for (int64_t a = 0; inner > 1 && a < extent; ++a) std::fill_n(block + a * inner, count, 0.0F);
        for (int64_t k = 0; k < count; ++k) {
            const auto place = static_cast<int64_t>(places[static_cast<size_t>(k)]);
            block[k * (inner == 1 ? extent : 1) + place * inner] = 1;
        }
    });
}

}  // namespace laminate
