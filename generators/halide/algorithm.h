// Private to generators/halide: the algorithm of a group, its inputs and Funcs with their
// definitions. stage_loops.h gives the Funcs their loops, program.cpp places their buffers.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generators/halide/levels.h"
#include "generators/halide/program.h"

namespace laminate {

/// Identifiers for C++ and Halide, each given once.
class HalideNames {
public:
    std::string identifier(const std::string& wanted);

private:
    std::set<std::string> used_;
};

/// Definitions that read the schedule where it decides how often the output is visited.
class HalideAlgorithm {
public:
    HalideAlgorithm(const Network& network, const GroupSchedule& group, HalidePadding padding)
        : network_(network),
          group_(group),
          problems_(group_problems(network, group)),
          placement_(group, problems_) {
        if (padding == HalidePadding::opaque) {
            Halide::Param<float> zero("padding", 0.0F);
            zero_ = zero;
            is_opaque_ = true;
        }
    }

protected:
    // ---- the group

    [[nodiscard]] const LayerProblem& problem(int k) const {
        return problems_[static_cast<size_t>(k)];
    }
    [[nodiscard]] const Nest& nest(int k) const { return group_.nests[static_cast<size_t>(k)]; }
    [[nodiscard]] const Layer& layer(int k) const { return network_.layer(problem(k).layer); }
    [[nodiscard]] int sink() const { return group_.sink(); }

    // ---- definitions

    HalideInput& add_input(const std::string& name, const std::vector<int64_t>& extents,
                           const std::string& axes);

    int add_func(const std::string& wanted, const std::vector<Halide::Var>& args,
                 std::optional<CodeArray> buffer);

    /// Defines or updates a Func at its arguments.
    void define(int f, HalideDefinition definition) {
        HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
        func.func(func.args) = definition.value;
        func.definitions.push_back(std::move(definition));
    }
    [[nodiscard]] Halide::Expr itself(int f) const {
        const HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
        return func.func(func.args);
    }

    void declare_inputs();

    /// Whether Halide's bounds of tiles whose last is short may reach beyond an input.
    [[nodiscard]] bool overestimates_bounds() const;

    void declare_constants(int k);

    /// Whether coordinates of an axis are clamped to a tensor. Where one reader of the tensor
    /// passes it all are clamped: Halide 21 fills a window wrongly whose bounds are clamped in
    /// part.
    [[nodiscard]] bool is_clamped(int tensor, Dim axis) const;

    /// Whether something depends on a tensor at (x, y); undefined: always.
    [[nodiscard]] Halide::Expr is_read(int tensor) const;

    /// A value read of a tensor whose channel, row and column may lie outside: the coordinates that
    /// may are clamped, and the condition says whether they had to be.
    struct Tap {
        Halide::Expr value;
        Halide::Expr inside;  ///< undefined: always
    };
    Tap tap(int k, int operand, const Halide::Expr& column, const Halide::Expr& row,
            const Halide::Expr& channel);

    [[nodiscard]] int tensor_read(int k, int operand) const;

    void define_layer(int k);

    void define_reduction(int k, int f);

    Halide::Expr elementwise(int k);

    /// What the layer makes of its finished sum; the same node where that is the sum itself.
    Halide::Expr finished(int k, const Halide::Expr& sum);

    void define_output();

    /// Y in external memory takes a sum for each visit, and the first visit finds nothing there.
    void define_partial_sums(int f);

    [[nodiscard]] int output_level() const {
        const Level level = nest(sink()).y.store;
        return level.is_root() ? -1 : level.loop;
    }

    /// How often the output is accumulated from external memory: trips of the loops over input
    /// channels around the level of Y.
    [[nodiscard]] int64_t visits() const {
        const LayerProblem& p = problem(sink());
        if (!p.has_weights()) return 1;
        return ceil_div(p[Dim::i], channels_of_a_visit());
    }
    [[nodiscard]] int64_t channels_of_a_visit() const;

    struct Constants {
        std::optional<Halide::ImageParam> weights, bias, slope;
    };

    const Network& network_;
    const GroupSchedule& group_;
    const std::vector<LayerProblem> problems_;
    const HalidePlacement placement_;
    const Halide::Var x_{"x"}, y_{"y"}, z_{"z"}, visit_{"visit"};
    HalideProgram program_;
    HalideNames names_;
    std::vector<Constants> constants_;  ///< by nest
    std::vector<int> tensor_func_;      ///< by tensor
    std::vector<int> layer_func_;       ///< by nest
    std::vector<int> weights_func_;     ///< by nest
    int output_ = -1;
    Halide::Expr unfinished_;
    Halide::Expr zero_ = 0.0F;  ///< what padding reads
    bool is_opaque_ = false;
};

}  // namespace laminate
