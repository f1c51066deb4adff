#include "nets/operators/pooling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

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

/// NaN if either is.
constexpr auto larger_of = [](float a, float b) {
    const float most = a < b ? b : a;
    return b != b ? b : most;
};
constexpr auto sum_of = [](float a, float b) { return a + b; };

LAMINATE_FOR_EACH_VECTOR_WIDTH
void join_largest(const float* __restrict from, int64_t step, float* __restrict states,
                  int64_t count) {
    join_row(from, step, states, count, larger_of);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void join_sum(const float* __restrict from, int64_t step, float* __restrict states, int64_t count) {
    join_row(from, step, states, count, sum_of);
}

/// Rows that states take in with one pass, or places from which results take in columns.
constexpr size_t most_rows = 5;
using Rows = std::array<const float*, most_rows>;

/// Sets states to the join of so many rows, the first of which may be the states.
template <class Join>
[[gnu::always_inline]] inline void join_rows(const Rows& rows, size_t count, float* states,
                                             int64_t columns, const Join& join) {
    const auto [a, b, c, d, e] = rows;
    if (count == 5) {
#pragma GCC ivdep
        for (int64_t x = 0; x < columns; ++x)
            states[x] = join(join(join(join(a[x], b[x]), c[x]), d[x]), e[x]);
    } else if (count == 4) {
#pragma GCC ivdep
        for (int64_t x = 0; x < columns; ++x) states[x] = join(join(join(a[x], b[x]), c[x]), d[x]);
    } else if (count == 3) {
#pragma GCC ivdep
        for (int64_t x = 0; x < columns; ++x) states[x] = join(join(a[x], b[x]), c[x]);
    } else {
#pragma GCC ivdep
        for (int64_t x = 0; x < columns; ++x) states[x] = join(a[x], b[x]);
    }
}

/// Sets each result to the join of an element from each of up to three places on, `step` apart.
template <class Join>
[[gnu::always_inline]] inline void join_columns_at(const Rows& places, size_t count, int64_t step,
                                                   float* __restrict results, int64_t columns,
                                                   const Join& join) {
    const float *a = places[0], *b = places[1], *c = places[2];
    if (count == 3) {
        for (int64_t x = 0; x < columns; ++x)
            results[x] = join(join(a[step * x], b[step * x]), c[step * x]);
    } else if (count == 2) {
        for (int64_t x = 0; x < columns; ++x) results[x] = join(a[step * x], b[step * x]);
    } else {
        for (int64_t x = 0; x < columns; ++x) results[x] = a[step * x];
    }
}
template <class Join>
[[gnu::always_inline]] inline void join_columns(const Rows& places, size_t count, int64_t step,
                                                float* results, int64_t columns, const Join& join) {
    if (step == 1) return join_columns_at(places, count, 1, results, columns, join);
    if (step == 2) return join_columns_at(places, count, 2, results, columns, join);
    join_columns_at(places, count, step, results, columns, join);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void largest_of_rows(const Rows& rows, size_t count, float* states, int64_t columns) {
    join_rows(rows, count, states, columns, larger_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void largest_of_columns(const Rows& places, size_t count, int64_t step, float* results,
                        int64_t columns) {
    join_columns(places, count, step, results, columns, larger_of);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void sum_of_rows(const Rows& rows, size_t count, float* states, int64_t columns) {
    join_rows(rows, count, states, columns, sum_of);
}
LAMINATE_FOR_EACH_VECTOR_WIDTH
void sum_of_columns(const Rows& places, size_t count, int64_t step, float* results,
                    int64_t columns) {
    join_columns(places, count, step, results, columns, sum_of);
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

/// How the rows and columns of windows become results.
struct Pooling {
    const PoolingProblem& p;
    int64_t rows = 1;  ///< of the output
    std::vector<std::vector<Taps>> taps_of_axes;
    std::vector<ColumnTap> taps;
    /// Outputs that all taps have an element for.
    int64_t first = 0, end = 0;

    explicit Pooling(const PoolingProblem& problem) : p(problem), taps_of_axes(p.kernel.size()) {
        for (size_t d = 0; d + 1 < p.out.size(); ++d) rows *= p.out[d];
        for (size_t d = 0; d < p.kernel.size(); ++d) {
            for (int64_t x = 0; x < p.out[d + 2]; ++x) taps_of_axes[d].push_back(taps_of(p, d, x));
        }
        taps = column_taps(p, taps_of_axes.back());
        if (taps.empty()) return;
        end = p.out.back();
        for (const ColumnTap& tap : taps) {
            first = std::max(first, tap.first);
            end = std::min(end, tap.end);
        }
        first = std::min(first, end);
    }
    [[nodiscard]] int64_t stride() const { return p.stride.back(); }
    /// The column that an output reads by a tap.
    [[nodiscard]] int64_t column(const ColumnTap& tap, int64_t x) const {
        return x * stride() + tap.tap * p.dilation.back() - p.pad_begin.back();
    }
    /// Calls body(box, results) for each row of the output, in parallel; make() makes it for some
    /// rows.
    template <class Make>
    void for_each_row(float* output, int threads, const Make& make) const {
        constexpr int64_t together = 16;  // rows that share their memory
        const int64_t width = p.out.back();
        parallel_for(ceil_div(rows, together), threads, [&](int64_t part) {
            auto body = make();
            for (int64_t row = part * together; row < std::min(rows, (part + 1) * together);
                 ++row) {
                const RowBox box(p, taps_of_axes, row);
                float* results = output + row * width;
                body(box, results);
                if (p.finish) p.finish(box.channel, results, width);
            }
        });
    }
    /// Elements of a window.
    [[nodiscard]] double elements(const RowBox& box, int64_t x) const {
        const Taps& column = taps_of_axes.back()[static_cast<size_t>(x)];
        return p.count_include_pad ? box.padded * static_cast<double>(column.padded)
                                   : box.inside * static_cast<double>(column.end - column.begin);
    }
};

/// Pools by joins in single precision. It joins several rows and columns in one pass, because rows of
/// pictures are so short that each pass counts.
template <class JoinRows, class JoinColumns, class JoinColumn, class Join, class Finish>
void pool_plainly(const Pooling& pooling, const float* input, float* output, int threads,
                  float start, const JoinRows& join_rows, const JoinColumns& join_columns,
                  const JoinColumn& join_column, const Join& join, const Finish& finish) {
    const auto& [p, rows, taps_of_axes, taps, first, end] = pooling;
    const int64_t in = p.in.back(), width = p.out.back(), stride = pooling.stride();
    pooling.for_each_row(output, threads, [&] {
        return [&, states = std::vector<float>(static_cast<size_t>(in))](const RowBox& box,
                                                                         float* results) mutable {
            Rows lines{states.data()};
            size_t count = 0;
            const auto take_lines = [&] {
                join_rows(lines, count, states.data(), in);
                lines[0] = states.data();
                count = 1;
            };
            if (box.inside == 0) std::ranges::fill(states, start);
            box.for_each([&](int64_t at) {
                if (count == most_rows) take_lines();
                lines[count++] = input + at;
            });
            if (count > 1) take_lines();
            const float* joined = lines[0];

            constexpr size_t together = 3;
            if (first < end) {
                Rows places{};
                for (size_t n = 0; n < std::min(together, taps.size()); ++n)
                    places[n] = joined + pooling.column(taps[n], first);
                join_columns(places, std::min(together, taps.size()), stride, results + first,
                             end - first);
                for (size_t n = together; n < taps.size(); ++n)
                    join_column(joined + pooling.column(taps[n], first), stride, results + first,
                                end - first);
            }
            for (int64_t x = 0; x < width; ++x) {
                if (x == first) x = end;
                if (x == width) break;
                results[x] = start;
                for (const ColumnTap& tap : taps) {
                    if (x >= tap.first && x < tap.end)
                        results[x] = join(results[x], joined[pooling.column(tap, x)]);
                }
            }
            finish(box, results);
        };
    });
}

/// Pools by sums in double precision. take_row(row, states, count) adds a row of the input to them.
template <class JoinRow, class Finish>
void pool_in_doubles(const Pooling& pooling, const float* input, float* output, int threads,
                     const JoinRow& take_row, const Finish& finish) {
    const int64_t in = pooling.p.in.back(), width = pooling.p.out.back();
    pooling.for_each_row(output, threads, [&] {
        return [&, states = std::vector<double>(static_cast<size_t>(in)),
                sums = std::vector<double>(static_cast<size_t>(width))](const RowBox& box,
                                                                        float* results) mutable {
            std::ranges::fill(states, 0);
            std::ranges::fill(sums, 0);
            box.for_each([&](int64_t at) { take_row(input + at, states.data(), in); });
            for (const ColumnTap& tap : pooling.taps) {
                join_row(states.data() + pooling.column(tap, tap.first), pooling.stride(),
                         sums.data() + tap.first, tap.end - tap.first, std::plus<double>());
            }
            std::ranges::transform(sums, results, finish);
        };
    });
}

}  // namespace

void pool_windows(const PoolingProblem& p, const float* input, float* output, int threads) {
    const Pooling pooling(p);
    const auto power = static_cast<double>(p.power);
    if (p.kind == GeneralKind::max_pool) {
        pool_plainly(pooling, input, output, threads, -std::numeric_limits<float>::infinity(),
                     largest_of_rows, largest_of_columns, join_largest, larger_of,
                     [](const RowBox&, float*) {});
    } else if (p.kind == GeneralKind::average_pool) {
        pool_plainly(pooling, input, output, threads, 0.0F, sum_of_rows, sum_of_columns, join_sum,
                     sum_of, [&](const RowBox& box, float* results) {
                         for (int64_t x = 0; x < p.out.back(); ++x)
                             results[x] /= static_cast<float>(pooling.elements(box, x));
                     });
    } else if (power == 2) {
        pool_in_doubles(pooling, input, output, threads, join_squares,
                        [](double sum) { return static_cast<float>(std::sqrt(sum)); });
    } else {
        pool_in_doubles(
            pooling, input, output, threads,
            [&](const float* row, double* states, int64_t count) {
                join_powers(power, row, states, count);
            },
            [&](double sum) { return static_cast<float>(std::pow(sum, 1 / power)); });
    }
}

}  // namespace laminate
