// Activations in Halide IR: what a layer makes of its finished sums, in vectors and without calls
// of a library.
//
// Against the reference operators (nets/operators/reference_operators.h), for arguments from -1e4
// to 1e4: relu, leaky_relu, prelu, clip, absolute and negative are the same to the bit, the others
// differ by at most 8 units in the last place of the larger of argument and result;
// tests/generators/ir/activations_test.cpp has the bound of each. Results below 2^-80 may be 0. NaN
// and infinities become what the reference operators make of them.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "generators/ir/arrays.h"
#include "nets/network/network.h"

namespace laminate::ir {

/// Whether the code of a LeakyRelu or PRelu is max(x, slope x), as slopes above 0 up to 1 allow:
/// all that code depends on of the values of a layer's constants. Code for such slopes is wrong for
/// others.
[[nodiscard]] bool is_maximum(const Activation& activation);

/// Whether the activation is a function of so many steps and constants that it wants the registers
/// which sums occupy.
[[nodiscard]] bool takes_registers(const Activation& activation);

/// Vectors that activate_waiting() computes at once.
inline constexpr int64_t activated_together = 4;
/// Computes the activation, which has no slopes, of vectors first .. first + count - 1 that wait in an array.
/// `use` takes each, n counted from `first` on.
[[nodiscard]] Halide::Internal::Stmt activate_waiting(
    const Activation& activation, const Accumulators& waiting, const Halide::Expr& first, int64_t count,
    const std::function<Halide::Internal::Stmt(int64_t n, const Halide::Expr& value)>& use);
/// Replaces the first `count` vectors of an array by their activations, in a loop.
[[nodiscard]] Halide::Internal::Stmt activate_waiting(const Activation& activation,
                                                      const Accumulators& waiting, int64_t count);

/// The activation of a finished value (any number of lanes); `slope` only matters to PRelu.
[[nodiscard]] Halide::Expr activate(const Activation& activation, const Halide::Expr& value,
                                    const Halide::Expr& slope);

/// e^x to the last bit or two; 0 below -88.
[[nodiscard]] Halide::Expr exponential(const Halide::Expr& x);

/// The natural logarithm to the last bit or two; NaN below 0.
[[nodiscard]] Halide::Expr logarithm(const Halide::Expr& x);

/// The square root; Halide::sqrt() takes no vectors.
[[nodiscard]] Halide::Expr square_root(const Halide::Expr& x);

/// x^y as std::pow() has it, but for the rounding of y log x; x and y are loaded.
[[nodiscard]] Halide::Expr power(const Halide::Expr& x, const Halide::Expr& y);

/// The largest element, as max pooling takes it: NaN wins. The elements are loaded: LLVM assumes
/// that sums in registers are not NaN.
[[nodiscard]] Halide::Expr largest(const std::vector<Halide::Expr>& elements);

}  // namespace laminate::ir
