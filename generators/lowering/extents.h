// Rows and columns of a group's tensors, and strips, as generated code writes them: numbers, or in
// code of any size expressions of what the caller hands over (argument::sizes).
#pragma once

#include <Halide.h>

#include <cstdint>
#include <vector>

#include "base/size_formula.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// A formula in variables of the generated code, which with_sizes() binds.
[[nodiscard]] Halide::Expr expression(const SizeFormula& formula);
/// Within `body`, the variables are those of the array of sizes, which is element `index` of the
/// array of inputs.
[[nodiscard]] Halide::Internal::Stmt with_sizes(int index, const Halide::Internal::Stmt& body);

class GroupExtents {
public:
    /// `open`: of code for any size; null for code of the size that the problems have.
    GroupExtents(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                 const TensorSizes* open);

    [[nodiscard]] bool is_open() const { return open_ != nullptr; }
    /// The size of the network as it is, with the group's own strips.
    [[nodiscard]] SizeValues reference() const;
    /// Of a nest's output; of its input channels within a group (Dim::i).
    [[nodiscard]] SizeFormula out(int nest, Dim d) const;
    /// Rows or columns of what a nest reads through its window.
    [[nodiscard]] SizeFormula in(int nest, Dim d) const;
    /// Rows or columns of the tensor that a nest reads as an operand.
    [[nodiscard]] SizeFormula read(const TensorReader& reader, Dim d) const;
    /// What one trip of a loop covers of its dimension.
    [[nodiscard]] SizeFormula step(int nest, Loop loop) const;
    /// Whether a loop runs once in every execution, by its tile size alone.
    [[nodiscard]] bool is_single_trip(int nest, Loop loop) const;
    /// Whether any output's window reaches over the edge of the input, at some size.
    [[nodiscard]] bool reaches_padding(int nest, Dim d) const;

    [[nodiscard]] Halide::Expr out_expression(int nest, Dim d) const {
        return expression(out(nest, d));
    }
    [[nodiscard]] Halide::Expr in_expression(int nest, Dim d) const {
        return expression(in(nest, d));
    }
    [[nodiscard]] Halide::Expr read_expression(const TensorReader& reader, Dim d) const {
        return expression(read(reader, d));
    }

private:
    [[nodiscard]] const LayerProblem& problem(int nest) const {
        return problems_[static_cast<size_t>(nest)];
    }
    [[nodiscard]] bool is_open(Dim d) const { return is_open() && (d == Dim::y || d == Dim::x); }

    const GroupSchedule& group_;
    const std::vector<LayerProblem>& problems_;
    const TensorSizes* open_;
};

}  // namespace laminate
