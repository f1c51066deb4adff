#include "nets/operators/pooling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/shared_loop.h"
#include "base/units.h"
#include "base/vector_width.h"
#include "nets/operators/box.h"

namespace laminate {
namespace {

/// Kernel elements of one window along one axis.
struct Taps {
    int64_t begin = 0, end = 0;  ///< inside the input
    int64_t padded = 0;          ///< inside the input or its padding
};

/// Clipped by division, so that a window of 2^31 elements takes no longer than the input is wide.
Taps taps_of(const PoolingProblem& p, size_t axis, int64_t out) {
    const int64_t in = p.in[axis + 2];
    const int64_t first = out * p.stride[axis] - p.pad_begin[axis];  // coordinate of element 0
    const auto taps_before = [&](int64_t coordinate) {
        return coordinate <= first
                   ? 0
                   : std::min(p.kernel[axis], ceil_div(coordinate - first, p.dilation[axis]));
    };
    return {taps_before(0), taps_before(in), taps_before(in + p.pad_end[axis])};
}

/// Joins `count` elements, `step` apart, into states side by side. Loops with known steps are
/// vectorised.
template <class Value, class State, class Join>
[[gnu::always_inline]] inline void join_row(const Value* from, int64_t step, State* states,
                                            int64_t count, const Join& join) {
    if (step == 1) {
        for (int64_t x = 0; x < count; ++x) states[x] = join(states[x], from[x]);
    } else if (step == 2) {
        for (int64_t x = 0; x < count; ++x) states[x] = join(states[x], from[2 * x]);
    } else {
        for (int64_t x = 0; x < count; ++x) states[x] = join(states[x], from[step * x]);
    }
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void join_largest(const float* __restrict from, int64_t step, float* __restrict states,
                  int64_t count) {
    join_row(from, step, states, count, [](float a, float b) {
        const float most = a < b ? b : a;
        return b != b ? b : most;
    });
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void join_sum(const float* __restrict from, int64_t step, float* __restrict states, int64_t count) {
    join_row(from, step, states, count, [](float a, float b) { return a + b; });
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void join_squares(const float* __restrict from, double* __restrict states, int64_t count) {
    join_row(from, 1, states, count, [](double sum, float x) {
        return sum + static_cast<double>(x) * static_cast<double>(x);
    });
}

void join_powers(double power, const float* from, double* states, int64_t count) {
    join_row(from, 1, states, count, [power](double sum, float x) {
        return sum + std::pow(std::abs(static_cast<double>(x)), power);
    });
}

/// A kernel element of the last axis and the outputs [first, end) that read an input element by it.
struct ColumnTap {
    int64_t tap = 0, first = 0, end = 0;
};

/// Rows of the input that one row of the output joins, as offsets in a box, and their number.
struct RowBox {
    int64_t first = 0, channel = 0;
    double inside = 1, padded = 1;  ///< with those in the padding; products of huge windows pass 64 bits
    size_t axes = 0;
    std::array<int64_t, most_axes> counts{}, steps{};

    /// `taps_of_axes`: of each output along an axis, because divisions would take longer than a
    /// short row.
    RowBox(const PoolingProblem& p, const std::vector<std::vector<Taps>>& taps_of_axes,
           int64_t row) {
        const size_t last = p.kernel.size() - 1;
        int64_t step = p.in.back();
        for (size_t d = last; d-- > 0; step *= p.in[d + 2]) {
            const int64_t at = row % p.out[d + 2];
            row /= p.out[d + 2];
            const Taps& taps = taps_of_axes[d][static_cast<size_t>(at)];
            first += (at * p.stride[d] - p.pad_begin[d] + taps.begin * p.dilation[d]) * step;
            inside *= static_cast<double>(taps.end - taps.begin);
            padded *= static_cast<double>(taps.padded);
            counts[axes] = taps.end - taps.begin;
            steps[axes++] = p.dilation[d] * step;
        }
        first += row * step;
        channel = row % p.in[1];
    }
    /// Calls body(offset of a row).
    template <class Body>
    void for_each(const Body& body) const {
        each_of(axes, first, body);
    }

private:
    template <class Body>
    void each_of(size_t outer, int64_t offset, const Body& body) const {
        if (outer == 0) return body(offset);
        for (int64_t k = 0; k < counts[outer - 1]; ++k)
            each_of(outer - 1, offset + k * steps[outer - 1], body);
    }
};

/// The kernel elements of the last axis that some output reads an input element by.
std::vector<ColumnTap> column_taps(const PoolingProblem& p, const std::vector<Taps>& columns) {
    const size_t last = p.kernel.size() - 1;
    std::vector<ColumnTap> taps;
    int64_t next = 0;
    for (size_t x = columns.size(); x-- > 0;) {  // the last window begins with the first elements
        for (next = std::max(next, columns[x].begin); next < columns[x].end; ++next) {
            const int64_t shift = next * p.dilation[last] - p.pad_begin[last];
            const int64_t first = shift >= 0 ? 0 : ceil_div(-shift, p.stride[last]);
            const int64_t end = (p.in.back() - 1 - shift) / p.stride[last] + 1;
            taps.push_back({next, first, std::min(end, p.out.back())});
        }
    }
    return taps;
}

/// join_line(line, states, count) takes in a row of the input, join_columns(states, step, results,
/// count) makes results of these, and finish(result, elements) an element of the output, where
/// elements() counts those of its window. States of single precision begin as the first row, and
/// their results lie in the output: rows of pictures are so short that each pass over one counts.
template <class State, class JoinLine, class JoinColumns, class Finish>
void pool(const PoolingProblem& p, const float* input, float* output, int threads, State start,
          const JoinLine& join_line, const JoinColumns& join_columns, const Finish& finish) {
    constexpr int64_t together = 16;  // rows that share their memory
    const size_t last = p.kernel.size() - 1;
    const int64_t in = p.in.back(), width = p.out.back();
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < p.out.size(); ++d) rows *= p.out[d];
    std::vector<std::vector<Taps>> taps_of_axes(p.kernel.size());
    for (size_t d = 0; d <= last; ++d) {
        for (int64_t x = 0; x < p.out[d + 2]; ++x) taps_of_axes[d].push_back(taps_of(p, d, x));
    }
    const std::vector<Taps>& columns = taps_of_axes[last];
    const std::vector<ColumnTap> taps = column_taps(p, columns);
    parallel_for(ceil_div(rows, together), threads, [&](int64_t part) {
        constexpr bool is_plain = std::is_same_v<State, float>;
        std::vector<State> states(static_cast<size_t>(in)),
            apart(static_cast<size_t>(is_plain ? 0 : width));
        for (int64_t row = part * together; row < std::min(rows, (part + 1) * together); ++row) {
            const RowBox box(p, taps_of_axes, row);
            float* finished = output + row * width;
            State* results;
            if constexpr (is_plain)
                results = finished;
            else
                results = apart.data();
            std::fill_n(results, width, start);
            bool has_begun = false;
            if (!is_plain || box.inside == 0) std::ranges::fill(states, start);
            box.for_each([&](int64_t at) {
                if (is_plain && !std::exchange(has_begun, true))
                    std::copy_n(input + at, in, states.data());
                else
                    join_line(input + at, states.data(), in);
            });
            for (const auto& [tap, first, end] : taps) {
                const int64_t at = first * p.stride[last] + tap * p.dilation[last] - p.pad_begin[last];
                join_columns(states.data() + at, p.stride[last], results + first, end - first);
            }
            for (int64_t x = 0; x < width; ++x) {
                finished[x] = finish(results[x], [&] {
                    const Taps& column = columns[static_cast<size_t>(x)];
                    return p.count_include_pad
                               ? box.padded * static_cast<double>(column.padded)
                               : box.inside * static_cast<double>(column.end - column.begin);
                });
            }
            if (p.finish) p.finish(box.channel, finished, width);
        }
    });
}

}  // namespace

void pool_windows(const PoolingProblem& p, const float* input, float* output, int threads) {
    const auto sum_columns = [](const double* from, int64_t step, double* sums, int64_t count) {
        join_row(from, step, sums, count, std::plus<double>());
    };
    const auto power = static_cast<double>(p.power);
    if (p.kind == GeneralKind::max_pool) {
        pool(
            p, input, output, threads, -std::numeric_limits<float>::infinity(),
            [](const float* line, float* states, int64_t count) { join_largest(line, 1, states, count); },
            join_largest, [](float most, const auto&) { return most; });
    } else if (p.kind == GeneralKind::average_pool) {
        pool(
            p, input, output, threads, 0.0F,
            [](const float* line, float* states, int64_t count) { join_sum(line, 1, states, count); },
            join_sum,
            [](float sum, const auto& count) { return sum / static_cast<float>(count()); });
    } else if (power == 2) {
        pool(p, input, output, threads, 0.0, join_squares, sum_columns,
             [](double sum, const auto&) { return static_cast<float>(std::sqrt(sum)); });
    } else {
        pool(
            p, input, output, threads, 0.0,
            [&](const float* line, double* states, int64_t count) {
                join_powers(power, line, states, count);
            },
            sum_columns,
            [&](double sum, const auto&) { return static_cast<float>(std::pow(sum, 1 / power)); });
    }
}

}  // namespace laminate
