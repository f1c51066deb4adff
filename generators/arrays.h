// Loads, stores and names in Halide IR, the same for every kind of code.
#pragma once

#include <Halide.h>

#include <string>
#include <vector>

#include "nets/network.h"
#include "scheduler/problem.h"

namespace laminate::ir {

using Halide::Expr;
using Halide::Internal::Stmt;

/// Loads of arrays that others own: their alignment is that of an element.
enum class Alignment { element, vector };

[[nodiscard]] Expr load(const std::string& array, const Expr& index, Alignment alignment = Alignment::vector);
[[nodiscard]] Stmt store(const std::string& array, const Expr& value, const Expr& index, Alignment alignment = Alignment::vector,
                         const Expr& predicate = Expr());
/// Evaluates only the chosen side, unlike select.
[[nodiscard]] Expr choose(const Expr& condition, const Expr& then, const Expr& otherwise);
[[nodiscard]] Stmt sequence(const std::vector<Stmt>& parts);
/// Within `body`, `name` is the array that starts `offset` elements into `array`; a multiple of 16.
[[nodiscard]] Stmt with_array(const std::string& name, const std::string& array, int64_t offset, const Stmt& body);
/// Within `body`, `name` is element `index` of an array of pointers.
[[nodiscard]] Stmt with_pointer(const std::string& name, const std::string& pointers, int index, const Stmt& body);

/// The activation of a finished value (any number of lanes); `slope` only matters to PRelu.
[[nodiscard]] Expr activate(const Activation& activation, const Expr& value, const Expr& slope);

/// Whether any output's window reaches over the edge of the input.
[[nodiscard]] bool reaches_padding(const AxisWindow& window);
/// How many elements the average at an output position divides by; a constant where no padding matters.
[[nodiscard]] Expr averaged_elements(const Layer& layer, const LayerProblem& problem, const Expr& y, const Expr& x);

}  // namespace laminate::ir
