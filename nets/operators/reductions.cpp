#include "nets/operators/reductions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/range.h"
#include "base/shared_loop.h"
#include "base/units.h"
#include "base/vector_width.h"
#include "nets/operators/box.h"
#include "nets/operators/vector_functions.h"

namespace laminate {
namespace {

/// Loops of a reduction. The innermost one, over `run` neighbours, is either reduced as well, or makes
/// neighbours of the output.
struct Reduction {
    Box kept, reduced;
    int64_t run = 1;
    bool is_run_reduced = false;

    Reduction(const std::vector<int64_t>& dims, const std::vector<int64_t>& axes) {
        struct Joined {
            int64_t extent;
            bool is_reduced;
        };
        std::vector<Joined> joined;
        for (size_t d = 0; d < dims.size(); ++d) {
            if (dims[d] == 1) continue;
            const bool is_reduced = std::ranges::binary_search(axes, static_cast<int64_t>(d));
            if (joined.empty() || joined.back().is_reduced != is_reduced) {
                joined.push_back({dims[d], is_reduced});
            } else {
                joined.back().extent *= dims[d];
            }
        }
        if (joined.empty()) return;
        run = joined.back().extent;
        is_run_reduced = joined.back().is_reduced;
        joined.pop_back();
        int64_t step = run;
        for (const auto& [extent, is_reduced] : joined) step *= extent;
        for (const auto& [extent, is_reduced] : joined) {
            step /= extent;
            (is_reduced ? reduced : kept).add(extent, step);
        }
    }
    [[nodiscard]] int64_t elements() const {
        return reduced.count() * (is_run_reduced ? run : 1);
    }
};

/// A part of the work: some results, or columns of each of these.
struct Part {
    const Reduction& loops;
    Range rows;
    Range columns;
    const float* input;
    float* output;
};

constexpr int64_t most_columns = 128;

enum class Join { sum, product, largest, smallest };

/// What joining begins with, and whether it met a NaN, which comparisons pass by.
template <Join join, class State>
struct Joined {
    static constexpr bool is_extreme = join == Join::largest || join == Join::smallest;
    static constexpr State infinity = std::numeric_limits<State>::infinity();
    State state = join == Join::largest    ? -infinity
                  : join == Join::smallest ? infinity
                                           : State{join == Join::product};
    int32_t unordered = 0;

    LAMINATE_IN_VECTORS static void add(State x, State& state, int32_t& unordered) {
        if constexpr (join == Join::sum) state += x;
        if constexpr (join == Join::product) state *= x;
        if constexpr (join == Join::largest) state = x > state ? x : state;
        if constexpr (join == Join::smallest) state = x < state ? x : state;
        if constexpr (is_extreme) unordered |= x != x ? 1 : 0;
    }
    /// Adds the terms of a row. Each loop is one that the compiler divides among lanes.
    template <class Term>
    LAMINATE_IN_VECTORS void add_row(const float* row, float most, int64_t count, const Term& term) {
        State all = state;
        int32_t any = unordered;
        if constexpr (join == Join::sum) {
#pragma omp simd reduction(+ : all)
            for (int64_t x = 0; x < count; ++x) all += term(row[x], most);
        } else if constexpr (join == Join::product) {
#pragma omp simd reduction(* : all)
            for (int64_t x = 0; x < count; ++x) all *= term(row[x], most);
        } else if constexpr (join == Join::largest) {
#pragma omp simd reduction(max : all) reduction(| : any)
            for (int64_t x = 0; x < count; ++x) {
                all = row[x] > all ? row[x] : all;
                any |= row[x] != row[x] ? 1 : 0;
            }
        } else {
#pragma omp simd reduction(min : all) reduction(| : any)
            for (int64_t x = 0; x < count; ++x) {
                all = row[x] < all ? row[x] : all;
                any |= row[x] != row[x] ? 1 : 0;
            }
        }
        state = all;
        unordered = any;
    }
    [[nodiscard]] State result() const {
        return unordered != 0 ? std::numeric_limits<State>::quiet_NaN() : state;
    }
};

/// Lanes of loops that sum in double precision. With sixteen, as many as floats in the widest vector,
/// the compiler takes vectors apart more often than it adds.
constexpr int doubles = 8;

/// Sums rows from number k on, four at once, so that none waits for the lanes of another to be
/// added. Returns the first that is left.
template <class Term, class Finish>
LAMINATE_IN_VECTORS int64_t fold_four_rows(const Part& part, int64_t k, const Term& term,
                                           const Finish& finish) {
    const auto& [loops, rows, columns, input, output] = part;
    for (; k + 4 <= rows.end; k += 4) {
        const float *a = input + loops.kept.offset(k), *b = input + loops.kept.offset(k + 1),
                    *c = input + loops.kept.offset(k + 2), *d = input + loops.kept.offset(k + 3);
        float* results = output + k;
        const float of_a = results[0], of_b = results[1], of_c = results[2], of_d = results[3];
        double sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
#pragma omp simd reduction(+ : sum_a, sum_b, sum_c, sum_d) simdlen(doubles)
        for (int64_t x = 0; x < loops.run; ++x) {
            sum_a += term(a[x], of_a);
            sum_b += term(b[x], of_b);
            sum_c += term(c[x], of_c);
            sum_d += term(d[x], of_d);
        }
        results[0] = finish(sum_a, of_a);
        results[1] = finish(sum_b, of_b);
        results[2] = finish(sum_c, of_c);
        results[3] = finish(sum_d, of_d);
    }
    return k;
}

/// Joins terms of the elements; `finish` makes the result of a state. The terms and the result may
/// depend on what the output holds before, `most`.
template <Join join, class State, class Term, class Finish>
LAMINATE_IN_VECTORS void fold(const Part& part, const Term& term, const Finish& finish) {
    const auto& [loops, rows, columns, input, output] = part;
    const int64_t joined = loops.reduced.count();
    constexpr int lanes = sizeof(State) == sizeof(double) ? doubles : 16;
    int64_t k = rows.begin;
    if constexpr (join == Join::sum) {
        if (loops.is_run_reduced && joined == 1) k = fold_four_rows(part, k, term, finish);
    }
    for (; k < rows.end; ++k) {
        const float* first = input + loops.kept.offset(k);
        if (loops.is_run_reduced) {
            Joined<join, State> all;
            for (int64_t j = 0; j < joined; ++j)
                all.add_row(first + loops.reduced.offset(j), output[k], loops.run, term);
            output[k] = finish(all.result(), output[k]);
            continue;
        }
        const int64_t count = columns.size();
        float* results = output + k * loops.run + columns.begin;
        std::array<State, most_columns> states;
        std::array<int32_t, most_columns> unordered{};
        states.fill(Joined<join, State>().state);
        const auto add = [&](size_t n, float x) {
            Joined<join, State>::add(term(x, results[n]), states[n], unordered[n]);
        };
        const auto row = [&](int64_t j) { return first + loops.reduced.offset(j) + columns.begin; };
        int64_t j = 0;
        for (; j + 4 <= joined; j += 4) {  // a state is loaded and stored once for four rows
            const float *a = row(j), *b = row(j + 1), *c = row(j + 2), *d = row(j + 3);
#pragma omp simd simdlen(lanes)
            for (int64_t x = 0; x < count; ++x) {
                const auto n = static_cast<size_t>(x);
                add(n, a[x]);
                add(n, b[x]);
                add(n, c[x]);
                add(n, d[x]);
            }
        }
        for (; j < joined; ++j) {
            const float* of_row = row(j);
            for (int64_t x = 0; x < count; ++x) add(static_cast<size_t>(x), of_row[x]);
        }
        for (int64_t x = 0; x < count; ++x) {
            const auto n = static_cast<size_t>(x);
            results[x] = finish(Joined<join, State>{states[n], unordered[n]}.result(), results[x]);
        }
    }
}

LAMINATE_IN_VECTORS void fold_sums(const Part& part, auto term, auto finish) {
    fold<Join::sum, double>(
        part, [&](float x, float) { return term(static_cast<double>(x)); },
        [&](double sum, float) { return static_cast<float>(finish(sum)); });
}

/// The variance, from the sums of distances from one of the elements and of their squares: one pass is enough
/// for both. Of n elements that one is at most sqrt(n) deviations from the mean, so the difference cancels
/// at most n times the variance, for which 64 bits are enough.
LAMINATE_IN_VECTORS float variance_of(double sum, double squares, double count) {
    const double mean = sum / count, result = squares / count - mean * mean;
    return static_cast<float>(result < 0 ? 0 : result);
}

LAMINATE_IN_VECTORS void fold_variances(const Part& part) {
    const auto& [loops, rows, columns, input, output] = part;
    const int64_t joined = loops.reduced.count();
    const auto all = static_cast<double>(loops.elements());
    for (int64_t k = rows.begin; k < rows.end; ++k) {
        const float* first = input + loops.kept.offset(k);
        if (loops.is_run_reduced) {
            const auto middle = static_cast<double>(*first);
            double sum = 0, squares = 0;
            for (int64_t j = 0; j < joined; ++j) {
                const float* row = first + loops.reduced.offset(j);
#pragma omp simd reduction(+ : sum, squares)
                for (int64_t x = 0; x < loops.run; ++x) {
                    const double distance = static_cast<double>(row[x]) - middle;
                    sum += distance;
                    squares += distance * distance;
                }
            }
            output[k] = variance_of(sum, squares, all);
            continue;
        }
        std::array<double, most_columns> sums{}, squares{};
        const float* middle = first + columns.begin;
        for (int64_t j = 0; j < joined; ++j) {
            const float* row = middle + loops.reduced.offset(j);
            for (int64_t x = 0; x < columns.size(); ++x) {
                const double distance = static_cast<double>(row[x]) - static_cast<double>(middle[x]);
                sums[static_cast<size_t>(x)] += distance;
                squares[static_cast<size_t>(x)] += distance * distance;
            }
        }
        float* results = output + k * loops.run + columns.begin;
        for (int64_t x = 0; x < columns.size(); ++x) {
            const auto n = static_cast<size_t>(x);
            results[x] = variance_of(sums[n], squares[n], all);
        }
    }
}

template <Join join>
LAMINATE_IN_VECTORS void fold_extremes(const Part& part) {
    const auto as_is = [](float x, float) { return x; };
    fold<join, float>(part, as_is, as_is);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void reduce_part(GeneralFunction function, const Part& part) {
    using enum GeneralFunction;
    const auto as_is = [](double x) { return x; };
    const auto square = [](double x) { return x * x; };
    const auto count = static_cast<double>(part.loops.elements());
    switch (function) {
        case mean:
            return fold_sums(part, as_is, [&](double sum) { return sum / count; });
        case variance:
            return fold_variances(part);
        case product:
            return fold<Join::product, double>(
                part, [](float x, float) { return static_cast<double>(x); },
                [](double all, float) { return static_cast<float>(all); });
        case largest:
            return fold_extremes<Join::largest>(part);
        case smallest:
            return fold_extremes<Join::smallest>(part);
        case norm_1:
            return fold_sums(part, [](double x) { return std::abs(x); }, as_is);
        case norm_2:
            return fold_sums(part, square, [](double sum) { return std::sqrt(sum); });
        case log_sum:
            return fold_sums(part, as_is, [](double sum) { return std::log(sum); });
        case log_sum_exp:
            fold_extremes<Join::largest>(part);
            return fold<Join::sum, double>(
                part,
                [](float x, float most) { return static_cast<double>(exponential_of(x - most)); },
                [](double sum, float most) {
                    return std::isfinite(most) ? most + static_cast<float>(std::log(sum)) : most;
                });
        case sum_of_squares:
            return fold_sums(part, square, as_is);
        default:
            return fold_sums(part, as_is, as_is);
    }
}

// ---- running sums

void sum_row(const RunningSums& s, const float* input, float* output) {
    const int64_t step = s.from_end ? -1 : 1;
    double sum = 0;
    for (int64_t at = s.from_end ? s.extent - 1 : 0; at >= 0 && at < s.extent; at += step) {
        const double before = sum;
        sum += static_cast<double>(input[at]);
        output[at] = static_cast<float>(s.leaves_out_itself ? before : sum);
    }
}

/// Results of four rows at once: sums that pass through the memory with each row would wait for it.
template <bool leaves_out_itself>
LAMINATE_IN_VECTORS void sum_four_rows(const float* input, float* output, int64_t step,
                                       double* sums, int64_t columns) {
    const float *second = input + step, *third = second + step, *fourth = third + step;
    float *to_second = output + step, *to_third = to_second + step, *to_fourth = to_third + step;
#pragma omp simd simdlen(doubles)
    for (int64_t x = 0; x < columns; ++x) {
        const double a = sums[x], b = a + static_cast<double>(input[x]),
                     c = b + static_cast<double>(second[x]), d = c + static_cast<double>(third[x]),
                     e = d + static_cast<double>(fourth[x]);
        output[x] = static_cast<float>(leaves_out_itself ? a : b);
        to_second[x] = static_cast<float>(leaves_out_itself ? b : c);
        to_third[x] = static_cast<float>(leaves_out_itself ? c : d);
        to_fourth[x] = static_cast<float>(leaves_out_itself ? d : e);
        sums[x] = e;
    }
}

/// Columns that a thread sums at once: threads in the same rows would take lines from each other.
constexpr int64_t most_summed = 128;

LAMINATE_FOR_EACH_VECTOR_WIDTH
void sum_columns(const RunningSums& s, const float* input, float* output, int64_t columns) {
    std::array<double, most_summed> sums{};
    const int64_t step = s.from_end ? -s.inner : s.inner;
    int64_t at = s.from_end ? (s.extent - 1) * s.inner : 0, k = 0;
    for (; k + 4 <= s.extent; k += 4, at += 4 * step) {
        if (s.leaves_out_itself)
            sum_four_rows<true>(input + at, output + at, step, sums.data(), columns);
        else
            sum_four_rows<false>(input + at, output + at, step, sums.data(), columns);
    }
    for (; k < s.extent; ++k, at += step) {
        for (int64_t x = 0; x < columns; ++x) {
            double& sum = sums[static_cast<size_t>(x)];
            const double before = sum;
            sum += static_cast<double>(input[at + x]);
            output[at + x] = static_cast<float>(s.leaves_out_itself ? before : sum);
        }
    }
}

}  // namespace

void run_sums(const RunningSums& s, const float* input, float* output, int threads) {
    if (s.inner == 1) {
        constexpr int64_t elements = 1 << 12;  // of a part
        const int64_t together = std::max<int64_t>(1, elements / s.extent);
        return parallel_for(ceil_div(s.outer, together), threads, [&](int64_t part) {
            const int64_t end = std::min(s.outer, (part + 1) * together);
            for (int64_t row = part * together; row < end; ++row)
                sum_row(s, input + row * s.extent, output + row * s.extent);
        });
    }
    const int64_t across = ceil_div(s.inner, most_summed), columns = ceil_div(s.inner, across);
    parallel_for(s.outer * across, threads, [&](int64_t k) {
        const int64_t column = k % across * columns, first = k / across * s.extent * s.inner + column;
        sum_columns(s, input + first, output + first, std::min(columns, s.inner - column));
    });
}

void reduce_axes(GeneralFunction function, const std::vector<int64_t>& dims,
                 const std::vector<int64_t>& axes, const float* input, float* output, int threads) {
    constexpr int64_t elements = 1 << 13;  // of a part
    const Reduction loops(dims, axes);
    const int64_t across = loops.is_run_reduced ? 1 : ceil_div(loops.run, most_columns);
    const int64_t columns = ceil_div(loops.run, across);
    const int64_t row_elements = loops.elements() * (loops.is_run_reduced ? 1 : columns);
    const int64_t rows = std::max<int64_t>(1, elements / row_elements);
    const int64_t all = loops.kept.count();
    parallel_for(ceil_div(all, rows) * across, threads, [&](int64_t k) {
        const int64_t row = k / across * rows, column = k % across * columns;
        reduce_part(function, {loops,
                               {row, std::min(all, row + rows)},
                               {column, std::min(loops.run, column + columns)},
                               input,
                               output});
    });
}

}  // namespace laminate
