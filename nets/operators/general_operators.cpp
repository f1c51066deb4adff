#include "nets/operators/general_operators.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>

#include "base/shared_loop.h"
#include "base/units.h"
#include "base/vector_width.h"
#include "nets/network/picture_views.h"
#include "nets/operators/box.h"
#include "nets/operators/convolution.h"
#include "nets/operators/matrix_product.h"
#include "nets/operators/pooling.h"
#include "nets/operators/reductions.h"
#include "nets/operators/row_functions.h"
#include "nets/operators/vector_functions.h"

namespace laminate {

namespace {

using Dims = std::vector<int64_t>;

Coordinates steps_of(std::span<const int64_t> dims) {
    Coordinates steps{};
    int64_t step = 1;
    for (size_t d = dims.size(); d-- > 0;) {
        steps[d] = step;
        step *= dims[d];
    }
    return steps;
}

Coordinates coordinates_of(int64_t index, std::span<const int64_t> dims) {
    Coordinates at{};
    for (size_t d = dims.size(); d-- > 0;) {
        at[d] = index % dims[d];
        index /= dims[d];
    }
    return at;
}

/// Calls body(row, coordinates of its first element) for each row along the last axis, in parallel.
template <class Body>
void for_each_row(const Dims& dims, int threads, const Body& body) {
    const std::span<const int64_t> outer(dims.data(), dims.size() - 1);
    const int64_t rows = element_count(dims) / dims.back();
    parallel_for(rows, threads, [&](int64_t row) { body(row, coordinates_of(row, outer)); });
}

/// Loops over a tensor and what `count` operands read for it, whose axes are joined where the tensor
/// and all operands pass from one to the next without a jump.
template <size_t count>
class JoinedLoops {
public:
    JoinedLoops(const Dims& dims, const std::array<Coordinates, count>& steps) {
        for (size_t d = 0; d < dims.size(); ++d) {
            if (dims[d] == 1) continue;
            bool joins = rank_ > 0;
            for (size_t k = 0; k < count; ++k)
                joins = joins && steps_[k][rank_ - 1] == steps[k][d] * dims[d];
            if (!joins) ++rank_;
            extents_[rank_ - 1] = dims[d] * (joins ? extents_[rank_ - 1] : 1);
            for (size_t k = 0; k < count; ++k) steps_[k][rank_ - 1] = steps[k][d];
        }
        if (rank_ == 0) extents_[rank_++] = 1;
    }

    /// Step of operand k along the innermost loop.
    [[nodiscard]] int64_t step(size_t k) const { return steps_[k][rank_ - 1]; }

    /// Calls body(place in the tensor, places in the operands, length) for runs of elements along
    /// the innermost loop, in parallel.
    template <class Body>
    void run(int threads, const Body& body) const {
        constexpr int64_t longest = 1 << 12;  // elements that a core takes from its own caches
        const std::span<const int64_t> outer(extents_.data(), rank_ - 1);
        const int64_t extent = extents_[rank_ - 1], parts = ceil_div(extent, longest);
        const int64_t together = std::max<int64_t>(1, longest / extent);  // rows, where they are short
        int64_t rows = 1;
        for (const int64_t n : outer) rows *= n;
        parallel_for(ceil_div(rows, together) * parts, threads, [&](int64_t part) {
            const int64_t first = part / parts * together, begin = part % parts * longest;
            Coordinates at = coordinates_of(first, outer);
            std::array<int64_t, count> from{};
            for (size_t k = 0; k < count; ++k) {
                from[k] = begin * step(k);
                for (size_t d = 0; d + 1 < rank_; ++d) from[k] += at[d] * steps_[k][d];
            }
            for (int64_t row = first; row < std::min(rows, first + together); ++row) {
                body(row * extent + begin, from, std::min(longest, extent - begin));
                advance(at, from);
            }
        });
    }

    /// If the first operand passes from one element to the next along an outer loop only, calls
    /// body(place in the tensor, place in the operand, elements between rows of the tensor, rows,
    /// columns) for tiles of that loop and the innermost one, in parallel. Otherwise returns false.
    template <class Body>
    bool run_tiles(int threads, const Body& body) const {
        constexpr int64_t side = 64;  // of a tile that a first-level cache holds
        const size_t last = rank_ - 1;
        const auto unit = std::find(steps_[0].begin(), steps_[0].begin() + last, 1);
        const auto along = static_cast<size_t>(unit - steps_[0].begin());
        if (along == last || step(0) == 1 || step(0) == 0) return false;
        Coordinates tiles = extents_, places{};
        tiles[along] = ceil_div(extents_[along], side);
        tiles[last] = ceil_div(extents_[last], side);
        int64_t count_of_tiles = 1, place = 1;
        for (size_t d = rank_; d-- > 0;) {
            count_of_tiles *= tiles[d];
            places[d] = place;
            place *= extents_[d];
        }
        parallel_for(count_of_tiles, threads, [&](int64_t tile) {
            Coordinates at = coordinates_of(tile, std::span<const int64_t>(tiles.data(), rank_));
            at[along] *= side;
            at[last] *= side;
            int64_t to = 0, from = 0;
            for (size_t d = 0; d < rank_; ++d) {
                to += at[d] * places[d];
                from += at[d] * steps_[0][d];
            }
            body(to, from, places[along], std::min(side, extents_[along] - at[along]),
                 std::min(side, extents_[last] - at[last]));
        });
        return true;
    }

private:
    /// Moves on to the next row of the outer loops.
    void advance(Coordinates& at, std::array<int64_t, count>& from) const {
        for (size_t d = rank_ - 1; d-- > 0;) {
            for (size_t k = 0; k < count; ++k) from[k] += steps_[k][d];
            if (++at[d] < extents_[d]) return;
            for (size_t k = 0; k < count; ++k) from[k] -= extents_[d] * steps_[k][d];
            at[d] = 0;
        }
    }

    size_t rank_ = 0;
    Coordinates extents_{};
    std::array<Coordinates, count> steps_{};
};

/// The box of the axes over which an operator reduces, and the box of the others.
struct SplitAxes {
    Box inside, outside;
    SplitAxes(const Dims& dims, const Dims& axes) {
        const Coordinates steps = steps_of(dims);
        for (size_t d = 0; d < dims.size(); ++d) {
            const bool sums =
                std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
            (sums ? inside : outside).add(dims[d], steps[d]);
        }
    }
};

// ---- element by element

/// Larger and smaller value; NaN if either is (IEEE 754-2019, maximum and minimum). std::max(a, b)
/// drops a second operand that is NaN.
LAMINATE_IN_VECTORS float maximum_of(float a, float b) { return a < b || b != b ? b : a; }
LAMINATE_IN_VECTORS float minimum_of(float a, float b) { return b < a || b != b ? b : a; }

/// max(0, min(1, x)), which keeps NaN.
float clip_to_unit(float x) { return x < 0 ? 0.0f : x > 1 ? 1.0f : x; }

float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); }

template <GeneralFunction function>
LAMINATE_IN_VECTORS float apply_binary(float a, float b) {
    using enum GeneralFunction;
    switch (function) {
        case add:
            return a + b;
        case subtract:
            return a - b;
        case multiply:
            return a * b;
        case divide:
            return a / b;
        case power:
            return std::pow(a, b);
        case minimum:
            return minimum_of(a, b);
        case maximum:
            return maximum_of(a, b);
        case remainder:
            return std::fmod(a, b);
        case prelu: {
            const float below = a * b;  // of all elements, so that rows are computed in vectors
            return a < 0 ? below : a;
        }
        case equal:
            return a == b ? 1.0f : 0.0f;
        case less:
            return a < b ? 1.0f : 0.0f;
        case less_or_equal:
            return a <= b ? 1.0f : 0.0f;
        case greater:
            return a > b ? 1.0f : 0.0f;
        case greater_or_equal:
            return a >= b ? 1.0f : 0.0f;
        default:
            assert(false && "general_output_dims() refuses it");
            return a;
    }
}

void run_unary(const GeneralOperator& op, const float* input, const Dims& out, float* output,
               int threads) {
    constexpr int64_t longest = 1 << 12;
    const int64_t count = element_count(out);
    parallel_for(ceil_div(count, longest), threads, [&](int64_t part) {
        const int64_t begin = part * longest;
        apply_unary_row(op.function, op.alpha, op.beta, input + begin, output + begin,
                        std::min(longest, count - begin));
    });
}

/// The two operands of a binary operator or a matrix product, in order.
struct Operands {
    std::array<const Dims*, 2> dims{};
    std::array<const float*, 2> values{};
    Operands(const Layer& layer, const std::vector<Dims>& in,
             const std::vector<const float*>& inputs) {
        const size_t live = layer.weights != nullptr && layer.general.constant_first ? 1 : 0;
        dims[live] = &in[0];
        values[live] = inputs[0];
        dims[1 - live] = layer.weights != nullptr ? &layer.weights->dims : &in[1];
        values[1 - live] = layer.weights != nullptr ? layer.weights->values.data() : inputs[1];
    }
};

/// Steps of an operand along the axes of the shape that it is broadcast to.
Coordinates broadcast_steps(std::span<const int64_t> dims, size_t rank) {
    const Coordinates own = steps_of(dims);
    Coordinates steps{};
    for (size_t d = 0; d < dims.size(); ++d)
        steps[rank - dims.size() + d] = dims[d] == 1 ? 0 : own[d];
    return steps;
}

template <GeneralFunction function>
LAMINATE_IN_VECTORS void binary_row_of(const float* a, int64_t a_step, const float* b,
                                       int64_t b_step, float* out, int64_t count) {
    // Loops with known steps are vectorised.
    if (a_step == 1 && b_step == 1) {
        for (int64_t k = 0; k < count; ++k) out[k] = apply_binary<function>(a[k], b[k]);
    } else if (a_step == 1 && b_step == 0) {
        const float value = *b;
        for (int64_t k = 0; k < count; ++k) out[k] = apply_binary<function>(a[k], value);
    } else if (a_step == 0 && b_step == 1) {
        const float value = *a;
        for (int64_t k = 0; k < count; ++k) out[k] = apply_binary<function>(value, b[k]);
    } else {
        for (int64_t k = 0; k < count; ++k)
            out[k] = apply_binary<function>(a[k * a_step], b[k * b_step]);
    }
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void binary_row(GeneralFunction function, const float* a, int64_t a_step, const float* b,
                int64_t b_step, float* out, int64_t count) {
    using enum GeneralFunction;
    switch (function) {
        case add:
            return binary_row_of<add>(a, a_step, b, b_step, out, count);
        case subtract:
            return binary_row_of<subtract>(a, a_step, b, b_step, out, count);
        case multiply:
            return binary_row_of<multiply>(a, a_step, b, b_step, out, count);
        case divide:
            return binary_row_of<divide>(a, a_step, b, b_step, out, count);
        case power:
            return binary_row_of<power>(a, a_step, b, b_step, out, count);
        case minimum:
            return binary_row_of<minimum>(a, a_step, b, b_step, out, count);
        case maximum:
            return binary_row_of<maximum>(a, a_step, b, b_step, out, count);
        case equal:
            return binary_row_of<equal>(a, a_step, b, b_step, out, count);
        case less:
            return binary_row_of<less>(a, a_step, b, b_step, out, count);
        case less_or_equal:
            return binary_row_of<less_or_equal>(a, a_step, b, b_step, out, count);
        case greater:
            return binary_row_of<greater>(a, a_step, b, b_step, out, count);
        case greater_or_equal:
            return binary_row_of<greater_or_equal>(a, a_step, b, b_step, out, count);
        case remainder:
            return binary_row_of<remainder>(a, a_step, b, b_step, out, count);
        default:
            return binary_row_of<prelu>(a, a_step, b, b_step, out, count);
    }
}

void run_binary(const Layer& layer, const Operands& operands, const Dims& out, float* output,
                int threads) {
    const JoinedLoops<2> loops(out, {broadcast_steps(*operands.dims[0], out.size()),
                                     broadcast_steps(*operands.dims[1], out.size())});
    const bool is_power =
        layer.general.function == GeneralFunction::power && element_count(*operands.dims[1]) == 1;
    loops.run(threads, [&](int64_t to, const std::array<int64_t, 2>& from, int64_t count) {
        if (is_power && loops.step(0) == 1)
            return apply_unary_row(GeneralFunction::power, *operands.values[1], 0,
                                   operands.values[0] + from[0], output + to, count);
        binary_row(layer.general.function, operands.values[0] + from[0], loops.step(0),
                   operands.values[1] + from[1], loops.step(1), output + to, count);
    });
}

void run_select(const std::vector<Dims>& in, const std::vector<const float*>& inputs,
                const Dims& out, float* output, int threads) {
    std::array<Coordinates, 3> steps;
    for (size_t k = 0; k < 3; ++k) steps[k] = broadcast_steps(in[k], out.size());
    const JoinedLoops<3> loops(out, steps);
    const auto run = [&](auto a_step, auto b_step) {  // constants, so that loops are vectorised
        loops.run(threads, [&](int64_t to, const std::array<int64_t, 3>& from, int64_t count) {
            const float *c = inputs[0] + from[0], *a = inputs[1] + from[1], *b = inputs[2] + from[2];
            const int64_t step = loops.step(0);
            if (step == 1) {
                for (int64_t x = 0; x < count; ++x) {
                    const float if_true = a[x * a_step], if_false = b[x * b_step];
                    output[to + x] = c[x] != 0 ? if_true : if_false;
                }
            } else {
                for (int64_t x = 0; x < count; ++x)
                    output[to + x] = c[x * step] != 0 ? a[x * a_step] : b[x * b_step];
            }
        });
    };
    const std::integral_constant<int64_t, 0> none;
    const std::integral_constant<int64_t, 1> one;
    const int64_t a = loops.step(1), b = loops.step(2);
    if (a == 1 && b == 1) return run(one, one);
    if (a == 1 && b == 0) return run(one, none);
    if (a == 0 && b == 1) return run(none, one);
    run(a, b);
}

// ---- moving

/// A square of a transposition: element (y, x) of the output is input element x * step + y.
void transpose_square(const float* input, int64_t step, float* output, int64_t row_length) {
    using Lanes [[gnu::vector_size(4 * sizeof(float))]] = float;
    const auto first_halves = [](const Lanes& a, const Lanes& b) {
        return __builtin_shufflevector(a, b, 0, 4, 1, 5);
    };
    const auto second_halves = [](const Lanes& a, const Lanes& b) {
        return __builtin_shufflevector(a, b, 2, 6, 3, 7);
    };
    std::array<Lanes, 4> in, out;
    for (size_t x = 0; x < 4; ++x)
        std::memcpy(&in[x], input + static_cast<int64_t>(x) * step, sizeof(Lanes));
    const Lanes low_02 = first_halves(in[0], in[2]), high_02 = second_halves(in[0], in[2]),
                low_13 = first_halves(in[1], in[3]), high_13 = second_halves(in[1], in[3]);
    out = {first_halves(low_02, low_13), second_halves(low_02, low_13),
           first_halves(high_02, high_13), second_halves(high_02, high_13)};
    for (size_t y = 0; y < 4; ++y)
        std::memcpy(output + static_cast<int64_t>(y) * row_length, &out[y], sizeof(Lanes));
}

/// A tile of a transposition, `rows` x `columns` of the output.
void transpose_tile(const float* input, int64_t step, float* output, int64_t row_length,
                    int64_t rows, int64_t columns) {
    constexpr int64_t side = 4;
    int64_t y = 0;
    for (; y + side <= rows; y += side) {
        int64_t x = 0;
        for (; x + side <= columns; x += side)
            transpose_square(input + x * step + y, step, output + y * row_length + x, row_length);
        for (; x < columns; ++x) {
            for (int64_t k = y; k < y + side; ++k) output[k * row_length + x] = input[x * step + k];
        }
    }
    for (; y < rows; ++y) {
        for (int64_t x = 0; x < columns; ++x) output[y * row_length + x] = input[x * step + y];
    }
}

void run_view(const GeneralOperator& op, const float* input, const Dims& out, float* output,
              int threads) {
    Coordinates steps{};
    std::copy(op.steps.begin(), op.steps.end(), steps.begin());
    const JoinedLoops<1> loops(out, {steps});
    if (loops.run_tiles(threads, [&](int64_t to, int64_t from, int64_t row_length, int64_t rows,
                                     int64_t columns) {
            transpose_tile(input + op.first + from, loops.step(0), output + to, row_length, rows,
                           columns);
        }))
        return;
    loops.run(threads, [&](int64_t to, const std::array<int64_t, 1>& from, int64_t count) {
        const float* first = input + op.first + from[0];
        if (loops.step(0) == 1) {
            std::copy_n(first, count, output + to);
        } else {
            for (int64_t k = 0; k < count; ++k) output[to + k] = first[k * loops.step(0)];
        }
    });
}

void run_blocks(const GeneralOperator& op, const Dims& in, const float* input, const Dims& out,
                float* output, int threads) {
    const int64_t b = op.kernel[0], channels = out[1];
    parallel_for(out[0] * channels, threads, [&](int64_t map) {
        const int64_t place = place_before_shuffle(map % channels, channels, op.first);
        const int64_t from = map / channels * in[1] + place / (b * b);
        float* to = output + map * out[2] * out[3];
        for (int64_t y = 0; y < out[2]; ++y) {
            const float* row = input + (from * in[2] + y * b + place / b % b) * in[3] + place % b;
            for (int64_t x = 0; x < out[3]; ++x) *to++ = row[x * b];
        }
    });
}

/// The weighted sum of one output element, axis by axis.
class Resampler {
public:
    Resampler(const GeneralOperator& op, const Dims& in, const Dims& out, const float* input)
        : op_(op), rank_(in.size()), steps_(steps_of(in)), input_(input) {
        int64_t begin = 0;
        for (size_t d = 0; d < rank_; ++d) {
            begins_[d] = begin;
            begin += op.tap_counts[d] * out[d];
        }
    }
    [[nodiscard]] float at(const Coordinates& out) const {
        for (size_t d = 0; d < rank_; ++d) {
            for (int64_t t = 0; t < op_.tap_counts[d]; ++t) {
                if (op_.sources[tap(d, out[d], t)] < 0) return op_.alpha;
            }
        }
        return static_cast<float>(sum(0, out, 0));
    }

private:
    [[nodiscard]] size_t tap(size_t d, int64_t at, int64_t t) const {
        return static_cast<size_t>(begins_[d] + at * op_.tap_counts[d] + t);
    }
    [[nodiscard]] double sum(size_t d, const Coordinates& out, int64_t offset) const {
        if (d == rank_) return static_cast<double>(input_[offset]);
        double total = 0;
        for (int64_t t = 0; t < op_.tap_counts[d]; ++t) {
            const size_t k = tap(d, out[d], t);
            const double value = sum(d + 1, out, offset + op_.sources[k] * steps_[d]);
            total += op_.factors.empty() ? value : value * static_cast<double>(op_.factors[k]);
        }
        return total;
    }

    const GeneralOperator& op_;
    size_t rank_;
    Coordinates steps_;
    Coordinates begins_{};
    const float* input_;
};

/// Rows along the last axis, from sums over the other axes that all elements of a row share.
class RowResampler {
public:
    RowResampler(const GeneralOperator& op, const Dims& in, const Dims& out, const float* input)
        : op_(op), last_(in.size() - 1), in_(in), steps_(steps_of(in)), input_(input) {
        int64_t begin = 0;
        for (size_t d = 0; d < in.size(); ++d) {
            begins_[d] = begin;
            begin += op.tap_counts[d] * out[d];
        }
    }

    /// Whether sums for whole rows of the input are less work than those for each element.
    [[nodiscard]] bool pays(const Dims& out) const {
        return in_[last_] <= most_columns && in_[last_] <= op_.tap_counts[last_] * out[last_];
    }

    void run(const Coordinates& at, int64_t width, float* output) const {
        std::array<double, most_columns> sums;
        std::fill_n(sums.begin(), in_[last_], 0.0);
        if (!add_rows(0, at, 0, 1, sums.data())) {
            std::fill_n(output, width, op_.alpha);
            return;
        }
        const int64_t taps = op_.tap_counts[last_];
        const int64_t* sources = op_.sources.data() + begins_[last_];
        const float* factors = op_.factors.empty() ? nullptr : op_.factors.data() + begins_[last_];
        for (int64_t x = 0; x < width; ++x, sources += taps) {
            double total = 0;
            bool is_inside = true;
            for (int64_t t = 0; t < taps; ++t) {
                if (sources[t] < 0) {
                    is_inside = false;
                    break;
                }
                const double value = sums[static_cast<size_t>(sources[t])];
                total += factors == nullptr ? value
                                            : value * static_cast<double>(factors[x * taps + t]);
            }
            output[x] = is_inside ? static_cast<float>(total) : op_.alpha;
        }
    }

private:
    static constexpr int64_t most_columns = 1 << 12;

    /// Adds the rows that axes d, d + 1, ... read, times `factor`. False if one is outside.
    bool add_rows(size_t d, const Coordinates& at, int64_t offset, double factor,
                  double* sums) const {
        if (d == last_) {
            const float* row = input_ + offset;
            for (int64_t x = 0; x < in_[last_]; ++x) sums[x] += factor * static_cast<double>(row[x]);
            return true;
        }
        for (int64_t t = 0; t < op_.tap_counts[d]; ++t) {
            const auto tap = static_cast<size_t>(begins_[d] + at[d] * op_.tap_counts[d] + t);
            const double own = op_.factors.empty() ? 1 : static_cast<double>(op_.factors[tap]);
            if (op_.sources[tap] < 0 ||
                !add_rows(d + 1, at, offset + op_.sources[tap] * steps_[d], factor * own, sums))
                return false;
        }
        return true;
    }

    const GeneralOperator& op_;
    size_t last_;
    const Dims& in_;
    Coordinates steps_;
    Coordinates begins_{};
    const float* input_;
};

/// Rows of copies: Tile, Gather, Pad of other axes than rows and columns, nearest elements.
class RowCopies {
public:
    RowCopies(const GeneralOperator& op, const Dims& out, const Dims& in, const float* input)
        : op_(op), input_(input), steps_(steps_of(in)), last_(out.size() - 1) {
        copies_ = op.factors.empty() &&
                  std::ranges::all_of(op.tap_counts, [](int64_t taps) { return taps == 1; });
        if (!copies_) return;
        for (size_t d = 0; d < last_; ++d) begins_[d + 1] = begins_[d] + out[d];
        const int64_t* sources = op.sources.data() + begins_[last_];
        for (int64_t x = 0; x < out[last_]; ++x) {
            const bool continues = x > 0 && (sources[x] < 0 ? sources[x - 1] < 0
                                                            : sources[x] == sources[x - 1] + 1 &&
                                                                  sources[x - 1] >= 0);
            if (continues) {
                ++runs_.back().count;
            } else {
                runs_.push_back({sources[x], 1});
            }
        }
    }

    [[nodiscard]] bool are_all() const { return copies_; }

    void run(const Coordinates& at, int64_t width, float* output) const {
        const float* row = input_;
        for (size_t d = 0; d < last_; ++d) {
            const int64_t source = op_.sources[static_cast<size_t>(begins_[d] + at[d])];
            if (source < 0) {
                std::fill_n(output, width, op_.alpha);
                return;
            }
            row += source * steps_[d];
        }
        for (const auto& [source, count] : runs_) {
            if (source < 0) {
                std::fill_n(output, count, op_.alpha);
            } else if (count == 1) {
                *output = row[source];
            } else {
                std::copy_n(row + source, count, output);
            }
            output += count;
        }
    }

private:
    /// Neighbours of the last axis that are copies of neighbours, or outside (-1).
    struct Run {
        int64_t source, count;
    };
    const GeneralOperator& op_;
    const float* input_;
    Coordinates steps_;
    Coordinates begins_{};
    size_t last_;
    std::vector<Run> runs_;
    bool copies_ = false;
};

void run_resample(const GeneralOperator& op, const Dims& in, const float* input, const Dims& out,
                  float* output, int threads) {
    const size_t last = out.size() - 1;
    if (const RowCopies copies(op, out, in, input); copies.are_all()) {
        return for_each_row(out, threads, [&](int64_t row, const Coordinates& at) {
            copies.run(at, out[last], output + row * out[last]);
        });
    }
    if (const RowResampler rows(op, in, out, input); rows.pays(out)) {
        return for_each_row(out, threads, [&](int64_t row, const Coordinates& at) {
            rows.run(at, out[last], output + row * out[last]);
        });
    }
    const Resampler resampler(op, in, out, input);
    for_each_row(out, threads, [&](int64_t row, Coordinates at) {
        for (at[last] = 0; at[last] < out[last]; ++at[last])
            output[row * out[last] + at[last]] = resampler.at(at);
    });
}

// ---- over axes

/// The axes of a reduction as one, if they are neighbours: outer x over x inner elements.
struct NeighbouringAxes {
    int64_t outer = 1, over = 1, inner = 1;
    bool are_neighbours = true;
    NeighbouringAxes(const Dims& dims, const Dims& axes) {
        for (size_t d = 0; d < dims.size(); ++d) {
            if (dims[d] == 1) continue;
            const bool sums =
                std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
            are_neighbours = are_neighbours && !(sums && inner > 1);
            (sums ? over : over > 1 ? inner : outer) *= dims[d];
        }
    }
};

void run_normalise(const GeneralOperator& op, const Dims& in, const float* input, float* output,
                   int threads) {
    using enum GeneralFunction;
    const NeighbouringAxes axes(in, op.axes);
    const bool is_log = op.function == log_softmax;
    if (axes.are_neighbours && (op.function == softmax || is_log))
        return run_softmax_along(is_log, axes.outer, axes.over, axes.inner, input, output, threads);
    if (axes.are_neighbours && op.function == hardmax)
        return run_hardmax_along(axes.outer, axes.over, axes.inner, input, output, threads);
    if (axes.are_neighbours && axes.inner == 1) {
        return normalise_rows(op.function, op.alpha, input, output, axes.outer, axes.over, threads);
    }
    const SplitAxes split(in, op.axes);
    parallel_for(split.outside.count(), threads, [&](int64_t k) {
        const int64_t first = split.outside.offset(k);
        std::vector<float> row;
        row.reserve(static_cast<size_t>(split.inside.count()));
        split.inside.for_each([&](int64_t at) { row.push_back(input[first + at]); });
        if (op.function == hardmax) {
            std::vector<float> marked(row.size());
            run_hardmax_along(1, std::ssize(row), 1, row.data(), marked.data(), 1);
            row = marked;
        } else {
            normalise_rows(op.function, op.alpha, row.data(), row.data(), 1, std::ssize(row), 1);
        }
        auto next = row.begin();
        split.inside.for_each([&](int64_t at) { output[first + at] = *next++; });
    });
}

void run_local_response(const GeneralOperator& op, const Dims& in, const float* input,
                        float* output, int threads) {
    const int64_t size = op.kernel[0], channels = in[1];
    const int64_t plane = element_count(in) / in[0] / channels;
    parallel_for(in[0] * channels, threads, [&](int64_t k) {
        const int64_t channel = k % channels;
        const int64_t begin = std::max<int64_t>(0, channel - (size - 1) / 2),
                      end = std::min(channels, channel + size / 2 + 1);
        const float* image = input + (k - channel) * plane;
        for (int64_t at = 0; at < plane; ++at) {
            float squares = 0;
            for (int64_t c = begin; c < end; ++c)
                squares += image[c * plane + at] * image[c * plane + at];
            output[k * plane + at] =
                input[k * plane + at] /
                std::pow(op.gamma + op.alpha / static_cast<float>(size) * squares, op.beta);
        }
    });
}

void run_running_sum(const GeneralOperator& op, const Dims& in, const float* input, float* output,
                     int threads) {
    const NeighbouringAxes axes(in, op.axes);
    run_sums({.outer = axes.outer,
              .extent = axes.over,
              .inner = axes.inner,
              .from_end = op.alpha != 0,
              .leaves_out_itself = op.beta != 0},
             input, output, threads);
}

// ---- order

/// A value and where it stood.
struct Placed {
    float value;
    int64_t place;
};

/// Which of two elements of different places comes first.
struct Order {
    bool from_largest, nan_is_smallest, last_of_equals;

    explicit Order(const GeneralOperator& op)
        : from_largest(op.function == GeneralFunction::largest_values ||
                       op.function == GeneralFunction::largest_places),
          nan_is_smallest(op.alpha != 0 && !from_largest),
          last_of_equals(op.constant_first) {}
    [[nodiscard]] bool is_less(float a, float b) const {
        return a < b || (nan_is_smallest ? a != a && b == b : b != b && a == a);
    }
    bool operator()(const Placed& a, const Placed& b) const {
        if (is_less(a.value, b.value)) return !from_largest;
        if (is_less(b.value, a.value)) return from_largest;
        return last_of_equals ? a.place > b.place : a.place < b.place;
    }
};

/// Calls body(k) for the elements of a row that may stand before `last` or beside it.
template <class Body>
void for_each_candidate(const float* row, int64_t count, bool from_largest, const float& last,
                        const Body& body) {
    constexpr int64_t lanes = 16;
    const float sign = from_largest ? 1 : -1;
    int64_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        int32_t behind = 0;
        const float limit = sign * last;
        for (int64_t x = k; x < k + lanes; ++x) behind += sign * row[x] < limit ? 1 : 0;
        for (int64_t x = k; behind < lanes && x < k + lanes; ++x) body(x);
    }
    for (; k < count; ++k) body(k);
}

/// The `most` first elements of a row in their order. Twice as many are kept, and the later half of them
/// thrown away whenever they are full.
void first_elements(const Order& order, const float* row, int64_t count, int64_t most,
                    std::vector<Placed>& kept) {
    constexpr int64_t few = 32;  // that a sorted list takes in faster
    kept.clear();
    float last = order.from_largest ? -std::numeric_limits<float>::infinity()
                                    : std::numeric_limits<float>::infinity();
    const auto is_full = [&] { return std::ssize(kept) >= most; };
    if (most <= few) {
        for_each_candidate(row, count, order.from_largest, last, [&](int64_t k) {
            const Placed next{row[k], k};
            if (is_full() && !order(next, kept.back())) return;
            if (is_full()) kept.pop_back();
            auto at = kept.insert(kept.end(), next);
            for (; at != kept.begin() && order(next, at[-1]); --at) *at = at[-1];
            *at = next;
            if (is_full()) last = kept.back().value;
        });
        return;
    }
    std::optional<Placed> worst;
    const auto forget = [&] {
        std::nth_element(kept.begin(), kept.begin() + most - 1, kept.end(), order);
        kept.resize(static_cast<size_t>(most));
        worst = kept.back();
        last = worst->value;
    };
    for_each_candidate(row, count, order.from_largest, last, [&](int64_t k) {
        const Placed next{row[k], k};
        if (worst && !order(next, *worst)) return;
        kept.push_back(next);
        if (std::ssize(kept) == 2 * most) forget();
    });
    if (std::ssize(kept) > most) forget();
    std::ranges::sort(kept, order);
}

void run_order(const GeneralOperator& op, const Dims& in, const float* input, const Dims& out,
               float* output, int threads) {
    using enum GeneralFunction;
    const SplitAxes from(in, op.axes), to(out, op.axes);
    const bool gives_places = op.function == largest_places || op.function == smallest_places;
    const Order order(op);
    const FirstRule rule{.from_largest = order.from_largest,
                         .gives_place = gives_places,
                         .nan_is_first = order.from_largest || op.alpha != 0,
                         .last_of_equals = op.constant_first};
    const NeighbouringAxes axes(in, op.axes);
    if (to.inside.count() == 1)
        return run_first_along(axes.outer, axes.over, axes.inner, rule, input, output, threads);
    if (axes.inner > 1 && to.inside.count() <= most_listed)
        return run_first_few_along(axes.outer, axes.over, axes.inner, to.inside.count(), rule, input,
                                   output, threads);
    const int64_t count = from.inside.count(), most = to.inside.count();
    parallel_for(from.outside.count(), threads, [&](int64_t k) {
        const float* row = input + from.outside.offset(k);
        std::vector<float> own(static_cast<size_t>(from.inside.steps[0] == 1 ? 0 : count));
        for (size_t x = 0; x < own.size(); ++x)
            own[x] = row[static_cast<int64_t>(x) * from.inside.steps[0]];
        if (!own.empty()) row = own.data();
        std::vector<Placed> kept;
        kept.reserve(static_cast<size_t>(std::min(count, 2 * most)));
        first_elements(order, row, count, most, kept);
        float* result = output + to.outside.offset(k);
        for (const auto& [value, place] : kept) {
            *result = gives_places ? static_cast<float>(place) : value;
            result += to.inside.steps[0];
        }
    });
}

// ---- sampling

constexpr size_t most_sampled_axes = 3;
constexpr size_t most_sample_taps = 4;
constexpr size_t most_point_taps = most_sample_taps * most_sample_taps * most_sample_taps;

/// What one point reads along one axis: coordinates inside the input, or -1 for a zero, and
/// weights.
struct AxisSamples {
    size_t count = 0;
    std::array<int64_t, most_sample_taps> at{};
    std::array<double, most_sample_taps> weight{};

    void add(int64_t coordinate, double w) {
        at[count] = coordinate;
        weight[count++] = w;
    }
};

/// Reflects x at `low` and `high` until it lies between them.
[[gnu::always_inline]] inline double reflected(double x, double low, double high) {
    if (high <= low || !std::isfinite(x)) return low;
    const double period = 2 * (high - low);
    double distance = std::fmod(x - low, period);
    if (distance < 0) distance += period;
    return low + std::min(distance, period - distance);
}

/// Keys' cubic convolution kernel at distance x, a = -0.75.
double cubic_weight(double x) {
    constexpr double a = -0.75;
    x = std::abs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

[[gnu::always_inline]] inline AxisSamples samples_of(const GeneralOperator& op, float position,
                                                     int64_t extent) {
    const auto length = static_cast<double>(extent);
    const auto padding = static_cast<GridPadding>(static_cast<int>(op.alpha));
    const bool centres = op.beta != 0;
    const double low = centres ? 0 : -0.5, high = low + (centres ? length - 1 : length);
    const auto place = [&](double x) -> int64_t {  // of a whole coordinate
        if (padding == GridPadding::reflection) x = std::nearbyint(reflected(x, low, high));
        if (padding != GridPadding::zeros)
            return static_cast<int64_t>(std::clamp(x, 0.0, length - 1));
        return x >= 0 && x < length ? static_cast<int64_t>(x) : -1;
    };
    double x = centres ? (static_cast<double>(position) + 1) / 2 * (length - 1)
                       : ((static_cast<double>(position) + 1) * length - 1) / 2;
    AxisSamples samples;
    if (x != x) x = -1;  // NaN has no place: onnxruntime reads one element before the first
    if (op.function == GeneralFunction::nearest) {
        samples.add(place(std::nearbyint(x)), 1);
        return samples;
    }
    if (op.function == GeneralFunction::linear) {
        if (padding == GridPadding::border) x = std::clamp(x, 0.0, length - 1);
        if (padding == GridPadding::reflection)
            x = std::clamp(reflected(x, low, high), 0.0, length - 1);
        const double below = std::floor(x);
        samples.add(place(below), 1 - (x - below));
        samples.add(place(below + 1), x - below);
        return samples;
    }
    const double below = std::floor(x);
    for (const double tap : {-1.0, 0.0, 1.0, 2.0})
        samples.add(place(below + tap), cubic_weight(tap - (x - below)));
    return samples;
}

/// Points [begin, end) of all images.
LAMINATE_FOR_EACH_VECTOR_WIDTH
void sample_points(const GeneralOperator& op, const std::vector<Dims>& in,
                   const std::vector<const float*>& inputs, const Dims& out, float* output,
                   int64_t begin, int64_t end) {
    const size_t axes = in[0].size() - 2;
    const int64_t points = element_count(out) / out[0] / out[1];
    const Coordinates steps = steps_of(in[0]);
    for (int64_t k = begin; k < end; ++k) {
        const int64_t image = k / points, point = k % points;
        const float* position = inputs[1] + k * static_cast<int64_t>(axes);
        std::array<AxisSamples, most_sampled_axes> samples;
        std::array<int64_t, most_sampled_axes> taps{};
        for (size_t d = 0; d < axes; ++d) {  // the grid names the last axis first
            samples[d] = samples_of(op, position[axes - 1 - d], in[0][d + 2]);
            taps[d] = static_cast<int64_t>(samples[d].count);
        }
        const std::span<const int64_t> extents(taps.data(), axes);
        const int64_t all = std::accumulate(extents.begin(), extents.end(), int64_t{1},
                                            std::multiplies<int64_t>());
        // The taps that read something, the same of all channels.
        std::array<int64_t, most_point_taps> from;
        std::array<double, most_point_taps> weight;
        size_t count = 0;
        for (int64_t tap = 0; tap < all; ++tap) {
            const Coordinates at = coordinates_of(tap, extents);
            from[count] = image * steps[0];
            weight[count] = 1;
            bool reads = true;
            for (size_t d = 0; d < axes; ++d) {
                const auto t = static_cast<size_t>(at[d]);
                weight[count] *= samples[d].weight[t];
                from[count] += samples[d].at[t] * steps[d + 2];
                reads = reads && samples[d].at[t] >= 0;
            }
            if (reads) ++count;
        }
        for (int64_t channel = 0; channel < out[1]; ++channel) {
            const float* map = inputs[0] + channel * steps[1];
            double sum = 0;
            for (size_t n = 0; n < count; ++n) sum += weight[n] * static_cast<double>(map[from[n]]);
            output[(image * out[1] + channel) * points + point] = static_cast<float>(sum);
        }
    }
}

/// What some points of an image read along one axis, each by its first coordinate and, if they
/// interpolate, the next one: -1 is a zero.
struct PointsOfAxis {
    static constexpr int64_t most = 64;
    std::array<std::array<int32_t, most>, 2> at;
    std::array<float, most> second_weight;
};

/// `step`: between positions. Points are linear or nearest, their padding zeros or border.
[[gnu::always_inline]] inline void set_points(const GeneralOperator& op, const float* positions,
                                              int64_t step, int64_t count, int64_t extent,
                                              PointsOfAxis& points) {
    const bool is_nearest = op.function == GeneralFunction::nearest, centres = op.beta != 0;
    const bool has_border = static_cast<GridPadding>(static_cast<int>(op.alpha)) == GridPadding::border;
    const auto length = static_cast<double>(extent), last = length - 1;
    const double scale = centres ? last / 2 : length / 2, shift = centres ? 0 : -0.5;
    for (int64_t k = 0; k < count; ++k) {
        double x = (static_cast<double>(positions[k * step]) + 1) * scale + shift;
        x = x != x ? -1 : x;  // NaN has no place: onnxruntime reads one element before the first
        const double inside = std::clamp(x, 0.0, last);
        x = has_border ? inside : x;
        const double first = is_nearest ? std::nearbyint(x) : std::floor(x), second = first + 1;
        const auto n = static_cast<size_t>(k);
        const bool has_first = has_border || (first >= 0 && first <= last);
        const bool has_second = has_border || (second >= 0 && second <= last);
        points.at[0][n] = has_first ? static_cast<int32_t>(std::clamp(first, 0.0, last)) : -1;
        points.at[1][n] = has_second ? static_cast<int32_t>(std::clamp(second, 0.0, last)) : -1;
        points.second_weight[n] = static_cast<float>(x - first);
    }
}

/// Whether sample_pixels() computes an operator.
bool samples_points_of_pixels(const GeneralOperator& op, const Dims& in) {
    return in.size() == 4 && in[2] * in[3] < std::numeric_limits<int32_t>::max() &&
           op.function != GeneralFunction::cubic &&
           static_cast<GridPadding>(static_cast<int>(op.alpha)) != GridPadding::reflection;
}

/// Up to PointsOfAxis::most points of one image, at the positions that `grid` begins with.
LAMINATE_FOR_EACH_VECTOR_WIDTH
void sample_pixels(const GeneralOperator& op, const Dims& in, const float* image, const float* grid,
                   int64_t count, float* output, int64_t output_step) {
    constexpr size_t most = PointsOfAxis::most;
    PointsOfAxis rows, columns;
    set_points(op, grid, 2, count, in[3], columns);  // the grid names the last axis first
    set_points(op, grid + 1, 2, count, in[2], rows);
    std::array<std::array<int32_t, most>, 4> from;
    std::array<std::array<float, most>, 4> weight;
    const size_t taps = op.function == GeneralFunction::nearest ? 1 : 4;
    const auto width = static_cast<int32_t>(in[3]);
    for (size_t tap = 0; tap < taps; ++tap) {
        const auto &row_at = rows.at[tap / 2], &column_at = columns.at[tap % 2];
        for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
            const bool reads = row_at[k] >= 0 && column_at[k] >= 0;
            from[tap][k] = reads ? row_at[k] * width + column_at[k] : -1;
            const float of_row = tap / 2 == 0 ? 1 - rows.second_weight[k] : rows.second_weight[k];
            const float of_column =
                tap % 2 == 0 ? 1 - columns.second_weight[k] : columns.second_weight[k];
            weight[tap][k] = taps == 1 ? 1 : of_row * of_column;
        }
    }
    for (int64_t channel = 0; channel < in[1]; ++channel, image += in[2] * in[3], output += output_step) {
        std::array<float, most> sums{};
        for (size_t tap = 0; tap < taps; ++tap) {
            for (size_t k = 0; k < static_cast<size_t>(count); ++k)
                sums[k] += from[tap][k] >= 0 ? weight[tap][k] * image[from[tap][k]] : 0;
        }
        std::copy_n(sums.begin(), count, output);
    }
}

void run_sample(const GeneralOperator& op, const std::vector<Dims>& in,
                const std::vector<const float*>& inputs, const Dims& out, float* output,
                int threads) {
    if (samples_points_of_pixels(op, in[0])) {
        constexpr int64_t most = PointsOfAxis::most;
        const int64_t points = out[2] * out[3], parts = ceil_div(points, most);
        return parallel_for(out[0] * parts, threads, [&](int64_t part) {
            const int64_t image = part / parts, first = part % parts * most;
            sample_pixels(op, in[0], inputs[0] + image * in[0][1] * in[0][2] * in[0][3],
                          inputs[1] + (image * points + first) * 2, std::min(most, points - first),
                          output + image * out[1] * points + first, points);
        });
    }
    constexpr int64_t most = 256;
    const int64_t points = element_count(out) / out[1];
    parallel_for(ceil_div(points, most), threads, [&](int64_t part) {
        sample_points(op, in, inputs, out, output, part * most, std::min(points, (part + 1) * most));
    });
}

void run_matmul(const Operands& operands, const Constant* bias, float* output, int threads) {
    Dims a = *operands.dims[0], b = *operands.dims[1];
    if (a.size() == 1) a.insert(a.begin(), 1);
    if (b.size() == 1) b.push_back(1);
    if (b.size() == 2) a = {element_count(a) / a.back(), a.back()};  // one product of all rows
    const int64_t depth = a.back(), rows = a[a.size() - 2], columns = b.back();
    const std::span<const int64_t> a_batch(a.data(), a.size() - 2), b_batch(b.data(), b.size() - 2);
    const Dims batch =
        broadcast_dims({a_batch.begin(), a_batch.end()}, {b_batch.begin(), b_batch.end()});
    const Coordinates a_steps = broadcast_steps(a_batch, batch.size()),
                      b_steps = broadcast_steps(b_batch, batch.size());
    int64_t batches = 1;
    for (const int64_t extent : batch) batches *= extent;
    const auto matrix_of = [&](size_t operand, const Coordinates& steps, int64_t elements) {
        return [&batch, &operands, operand, steps, elements](int64_t k) {
            const Coordinates at = coordinates_of(k, batch);
            int64_t place = 0;
            for (size_t d = 0; d < batch.size(); ++d) place += at[d] * steps[d];
            return operands.values[operand] + place * elements;
        };
    };
    multiply_matrices({.batches = batches,
                       .rows = rows,
                       .depth = depth,
                       .columns = columns,
                       .left_of = matrix_of(0, a_steps, rows * depth),
                       .right_of = matrix_of(1, b_steps, depth * columns),
                       .bias = bias == nullptr ? nullptr : bias->values.data()},
                      output, threads);
}

}  // namespace

float apply_unary(GeneralFunction function, float x, float alpha, float beta) {
    using enum GeneralFunction;
    switch (function) {
        case absolute:
            return std::abs(x);
        case negative:
            return -x;
        case exponential:
            return std::exp(x);
        case logarithm:
            return std::log(x);
        case square_root:
            return std::sqrt(x);
        case reciprocal:
            return 1.0f / x;
        case floor:
            return std::floor(x);
        case ceil:
            return std::ceil(x);
        case round_to_even:
            return std::nearbyint(x);
        case sign:
            return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
        case error_function:
            return std::erf(x);
        case sine:
            return std::sin(x);
        case cosine:
            return std::cos(x);
        case tangent:
            return std::tan(x);
        case elu:
            return x < 0 ? alpha * std::expm1(x) : x;
        case selu:
            return x > 0 ? beta * x : beta * alpha * std::expm1(x);
        case celu:
            return std::max(x, 0.0f) + std::min(0.0f, alpha * std::expm1(x / alpha));
        case GeneralFunction::softplus:
            return laminate::softplus(x);
        case softsign:
            return x / (1.0f + std::abs(x));
        case hard_sigmoid:
            return clip_to_unit(alpha * x + beta);
        case hard_swish:
            return x * clip_to_unit(x / 6.0f + 0.5f);
        case mish:
            return x * std::tanh(laminate::softplus(x));
        case swish:
            return x / (1.0f + std::exp(-alpha * x));
        case thresholded_relu:
            return x > alpha ? x : 0.0f;
        case shrink:
            return x < -alpha ? x + beta : x > alpha ? x - beta : 0.0f;
        case gelu:
            return 0.5f * x * (1.0f + std::erf(x / std::numbers::sqrt2_v<float>));
        case gelu_tanh: {
            const float inner =
                std::sqrt(2.0f * std::numbers::inv_pi_v<float>) * (x + 0.044715f * x * x * x);
            return 0.5f * x * (1.0f + std::tanh(inner));
        }
        case is_zero:
            return x == 0 ? 1.0f : 0.0f;
        case power:
            return std::pow(x, alpha);
        default:
            assert(false && "general_output_dims() refuses it");
            return x;
    }
}

void run_general_layer(const Layer& layer, const std::vector<std::vector<int64_t>>& in,
                       const std::vector<const float*>& inputs, const std::vector<int64_t>& out,
                       float* output, int threads) {
    const GeneralOperator& op = layer.general;
    switch (op.kind) {
        case GeneralKind::constant:
            std::copy(layer.weights->values.begin(), layer.weights->values.end(), output);
            return;
        case GeneralKind::reshape:
            if (inputs[0] != output) std::copy_n(inputs[0], element_count(out), output);
            return;
        case GeneralKind::view:
            return run_view(op, inputs[0], out, output, threads);
        case GeneralKind::resample:
            return run_resample(op, in[0], inputs[0], out, output, threads);
        case GeneralKind::unary:
            return run_unary(op, inputs[0], out, output, threads);
        case GeneralKind::binary:
            return run_binary(layer, Operands(layer, in, inputs), out, output, threads);
        case GeneralKind::select:
            return run_select(in, inputs, out, output, threads);
        case GeneralKind::reduce:
            return reduce_axes(op.function, in[0], op.axes, inputs[0], output, threads);
        case GeneralKind::normalise:
            return run_normalise(op, in[0], inputs[0], output, threads);
        case GeneralKind::matmul:
            return run_matmul(Operands(layer, in, inputs), layer.bias.get(), output, threads);
        case GeneralKind::convolution:
        case GeneralKind::transposed_convolution:
            return convolve({.transposed = op.kind == GeneralKind::transposed_convolution,
                             .groups = layer.groups,
                             .in = in[0],
                             .out = out,
                             .kernel = op.kernel,
                             .stride = op.stride,
                             .dilation = op.dilation,
                             .pad_begin = op.pad_begin,
                             .weights = layer.weights->values.data(),
                             .bias = layer.bias ? layer.bias->values.data() : nullptr},
                            inputs[0], output, threads);
        case GeneralKind::max_pool:
        case GeneralKind::average_pool:
        case GeneralKind::power_pool:
            return pool_windows({.kind = op.kind,
                                 .in = in[0],
                                 .out = out,
                                 .kernel = op.kernel,
                                 .stride = op.stride,
                                 .dilation = op.dilation,
                                 .pad_begin = op.pad_begin,
                                 .pad_end = op.pad_end,
                                 .count_include_pad = op.count_include_pad,
                                 .power = op.alpha},
                                inputs[0], output, threads);
        case GeneralKind::running_sum:
            return run_running_sum(op, in[0], inputs[0], output, threads);
        case GeneralKind::order:
            return run_order(op, in[0], inputs[0], out, output, threads);
        case GeneralKind::sample:
            return run_sample(op, in, inputs, out, output, threads);
        case GeneralKind::blocks:
            return run_blocks(op, in[0], inputs[0], out, output, threads);
        case GeneralKind::local_response:
            return run_local_response(op, in[0], inputs[0], output, threads);
    }
}

}  // namespace laminate
