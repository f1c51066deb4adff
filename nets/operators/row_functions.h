// Functions of rows of values in vectors of the processor's width, in single precision, to a few
// units in the last place of the functions in <cmath>, GELU to 1e-7 of its argument. NaN and infinities
// are as there, but that e^x is infinite from 88.4 on. Results below the least normal number may
// be 0.
#pragma once

#include <cstdint>

#include "nets/network/network.h"

namespace laminate {

/// A unary function of each value; `output` may be `input`.
void apply_unary_row(GeneralFunction function, float alpha, float beta, const float* input,
                     float* output, int64_t count);
/// Likewise a folded activation; `channel` chooses the slope of prelu.
void apply_activation_row(const Activation& activation, int64_t channel, const float* input,
                          float* output, int64_t count);

/// softmax, log_softmax, standardise or root_mean_square of each row; `epsilon` for the last two.
void normalise_rows(GeneralFunction function, float epsilon, const float* input, float* output,
                    int64_t rows, int64_t count, int threads);

/// softmax or its logarithm along the middle of three axes.
void run_softmax_along(bool is_log, int64_t outer, int64_t extent, int64_t inner, const float* input,
                       float* output, int threads);

/// Which of equal and of unordered values is the first.
struct FirstRule {
    bool from_largest = true;
    bool gives_place = true;     ///< its coordinate, not its value
    bool nan_is_first = true;    ///< else NaN is the last
    bool last_of_equals = false;
};
/// The largest or smallest value along the middle of three axes.
void run_first_along(int64_t outer, int64_t extent, int64_t inner, const FirstRule& rule,
                     const float* input, float* output, int threads);
/// The `most` first values along the middle of three axes, in their order; inner > 1.
inline constexpr int64_t most_listed = 8;
void run_first_few_along(int64_t outer, int64_t extent, int64_t inner, int64_t most,
                         const FirstRule& rule, const float* input, float* output, int threads);
/// 1 for the first of the largest values along the middle of three axes, NaN among them, 0 for others.
void run_hardmax_along(int64_t outer, int64_t extent, int64_t inner, const float* input, float* output,
                       int threads);

}  // namespace laminate
