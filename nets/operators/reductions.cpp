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

constexpr int64_t most_columns = 64;

/// Takes the terms of `count` elements into as many states.
template <class State, class Term, class Join>
LAMINATE_IN_VECTORS void join_terms(const float* row, const float* most, int64_t count, State* states,
                                    const Term& term, const Join& join) {
    for (int64_t x = 0; x < count; ++x) states[x] = join(states[x], term(row[x], most[x]));
}

/// Joins terms of the elements with `start`; `finish` makes the result of a state. The terms and the
/// result may depend on what the output holds before, `most`.
template <class State, class Term, class Join, class Finish>
LAMINATE_IN_VECTORS void fold(const Part& part, State start, const Term& term, const Join& join,
                              const Finish& finish) {
    const auto& [loops, rows, columns, input, output] = part;
    const int64_t joined = loops.reduced.count();
    for (int64_t k = rows.begin; k < rows.end; ++k) {
        const float* first = input + loops.kept.offset(k);
        if (loops.is_run_reduced) {
            constexpr int64_t lanes = 32, half = lanes / 2;
            std::array<State, lanes> states;
            std::array<float, lanes> most;
            states.fill(start);
            most.fill(output[k]);
            for (int64_t j = 0; j < joined; ++j) {
                const float* row = first + loops.reduced.offset(j);
                int64_t x = 0;
                for (; x + lanes <= loops.run; x += lanes)
                    join_terms(row + x, most.data(), lanes, states.data(), term, join);
                for (; x + half <= loops.run; x += half)
                    join_terms(row + x, most.data(), half, states.data(), term, join);
                join_terms(row + x, most.data(), loops.run - x, states.data(), term, join);
            }
            for (size_t n = lanes / 2; n > 0; n /= 2) {
                for (size_t lane = 0; lane < n; ++lane)
                    states[lane] = join(states[lane], states[lane + n]);
            }
            output[k] = finish(states[0], output[k]);
        } else {
            const int64_t count = columns.size();
            float* results = output + k * loops.run + columns.begin;
            std::array<State, most_columns> states;
            states.fill(start);
            for (int64_t j = 0; j < joined; ++j) {
                join_terms(first + loops.reduced.offset(j) + columns.begin, results, count,
                           states.data(), term, join);
            }
            for (int64_t x = 0; x < count; ++x)
                results[x] = finish(states[static_cast<size_t>(x)], results[x]);
        }
    }
}

LAMINATE_IN_VECTORS void fold_sums(const Part& part, auto term, auto finish) {
    fold(
        part, 0.0, [&](float x, float) { return term(static_cast<double>(x)); },
        [](double a, double b) { return a + b; },
        [&](double sum, float) { return static_cast<float>(finish(sum)); });
}

LAMINATE_IN_VECTORS void fold_extremes(const Part& part, float start, auto is_further) {
    fold(
        part, start, [](float x, float) { return x; },
        [&](float a, float b) { return is_further(b, a) | (b != b) ? b : a; },
        [](float most, float) { return most; });
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void reduce_part(GeneralFunction function, const Part& part) {
    using enum GeneralFunction;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const auto as_is = [](double x) { return x; };
    const auto square = [](double x) { return x * x; };
    const auto count = static_cast<double>(part.loops.elements());
    switch (function) {
        case mean:
            return fold_sums(part, as_is, [&](double sum) { return sum / count; });
        case product:
            return fold(
                part, 1.0, [](float x, float) { return static_cast<double>(x); },
                [](double a, double b) { return a * b; },
                [](double all, float) { return static_cast<float>(all); });
        case largest:
            return fold_extremes(part, -infinity, [](float a, float b) { return a > b; });
        case smallest:
            return fold_extremes(part, infinity, [](float a, float b) { return a < b; });
        case norm_1:
            return fold_sums(part, [](double x) { return std::abs(x); }, as_is);
        case norm_2:
            return fold_sums(part, square, [](double sum) { return std::sqrt(sum); });
        case log_sum:
            return fold_sums(part, as_is, [](double sum) { return std::log(sum); });
        case log_sum_exp:
            fold_extremes(part, -infinity, [](float a, float b) { return a > b; });
            return fold(
                part, 0.0,
                [](float x, float most) { return static_cast<double>(exponential_of(x - most)); },
                [](double a, double b) { return a + b; },
                [](double sum, float most) {
                    return std::isfinite(most) ? most + static_cast<float>(std::log(sum)) : most;
                });
        case sum_of_squares:
            return fold_sums(part, square, as_is);
        default:
            return fold_sums(part, as_is, as_is);
    }
}

}  // namespace

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
