// Loads, stores and names in Halide IR, the same for every kind of code.
#pragma once

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

#include "nets/network.h"
#include "scheduler/problem.h"

namespace laminate::ir {

using Halide::Expr;
using Halide::Internal::Stmt;

/// Loads of arrays that others own: their alignment is that of an element.
enum class Alignment { element, vector };

/// Lanes that the predicate leaves out are not read.
[[nodiscard]] Expr load(const std::string& array, const Expr& index, Alignment alignment = Alignment::vector, const Expr& predicate = Expr());
[[nodiscard]] Stmt store(const std::string& array, const Expr& value, const Expr& index, Alignment alignment = Alignment::vector,
                         const Expr& predicate = Expr());
/// Evaluates only the chosen side, unlike select.
[[nodiscard]] Expr choose(const Expr& condition, const Expr& then, const Expr& otherwise);
[[nodiscard]] Stmt sequence(const std::vector<Stmt>& parts);
/// Within `body`, `name` is the array that starts `offset` elements into `array`; a multiple of 16.
[[nodiscard]] Stmt with_array(const std::string& name, const std::string& array, int64_t offset, const Stmt& body);
/// Within `body`, `name` is element `index` of an array of pointers.
[[nodiscard]] Stmt with_pointer(const std::string& name, const std::string& pointers, int index, const Stmt& body);

[[nodiscard]] inline Expr size(int64_t extent) { return static_cast<int32_t>(extent); }
/// Indices first, first + stride, ...
[[nodiscard]] Expr lanes_from(const Expr& first, int64_t lanes, int64_t stride = 1);
/// Every stride-th element from `first` on, by one wide load and a selection: reads up to lanes * stride elements.
[[nodiscard]] Expr strided_load(const std::string& array, const Expr& first, int64_t lanes, int64_t stride);
[[nodiscard]] Expr broadcast(const Expr& e, int64_t lanes);
/// The statement without the test where the condition is known to hold.
[[nodiscard]] Stmt guarded(const Expr& condition, const Stmt& body);

/// Binds values for what `make` does with their names. A kernel binds the vectors that all products of a step share first and the others one after the other:
/// the compiler keeps that order, and with it the number of registers.
[[nodiscard]] Stmt with_values(const std::string& name, const std::vector<Expr>& values, const std::function<Stmt(const std::vector<Expr>&)>& make);

/// Vectors kept in registers: a constant-sized array that the compiler dissolves.
struct Accumulators {
    std::string name;
    int64_t lanes;
    [[nodiscard]] Expr index(int64_t n) const { return lanes_from(size(n * lanes), lanes); }
    [[nodiscard]] Expr get(int64_t n) const { return load(name, index(n)); }
    [[nodiscard]] Stmt set(int64_t n, const Expr& value) const { return store(name, value, index(n)); }
    [[nodiscard]] Stmt around(int64_t count, const Stmt& body) const;
};

/// The activation of a finished value (any number of lanes); `slope` only matters to PRelu.
[[nodiscard]] Expr activate(const Activation& activation, const Expr& value, const Expr& slope);

/// Whether any output's window reaches over the edge of the input.
[[nodiscard]] bool reaches_padding(const AxisWindow& window);
/// How many elements the average at an output position divides by; a constant where no padding matters.
[[nodiscard]] Expr averaged_elements(const Layer& layer, const LayerProblem& problem, const Expr& y, const Expr& x);

}  // namespace laminate::ir
