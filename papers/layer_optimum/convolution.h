// The seven loops of one convolution and how they address its tensors. CNNFlow (Nie, Malik, TODAES
// 28(3), 2023) section 3.
//
//   for f k c x y m n:  O[f, k, x, y] += I[f, c, S x + E m, S y + E n] * W[k, c, m, n]
//
// f batch, k output channel, c input channel, x and y output column and row, m and n kernel column
// and row; S stride, E dilation (1 in the paper). Unlike docs/counting.md, this model stores zero
// padding and counts it like data (a 224 x 224 picture padded by 1 is 226 x 226), counts the whole
// batch, and moves words, not boxes: what a stride skips is never moved.
//
// Per tensor a loop is *related* (selects other words), *reuse* (the same words again) or *partial
// reuse* (the windows of neighbouring iterations overlap). x and m, or y and n, are partial where
// their windows can overlap, that is for a kernel larger than the stride; else both are related.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "papers/workload.h"
#include "scheduler/machine/machine.h"

namespace laminate {

enum class ConvolutionLoop { f = 0, k = 1, c = 2, x = 3, y = 4, m = 5, n = 6 };
/// One value per loop, in the order f k c x y m n.
template <class T>
using PerLoop = PerEnum<T, ConvolutionLoop, 7>;
using LoopExtents = PerLoop<int64_t>;
inline constexpr PerLoop<ConvolutionLoop> convolution_loops{
    ConvolutionLoop::f, ConvolutionLoop::k, ConvolutionLoop::c, ConvolutionLoop::x,
    ConvolutionLoop::y, ConvolutionLoop::m, ConvolutionLoop::n};
inline constexpr LoopExtents one_iteration{1, 1, 1, 1, 1, 1, 1};

[[nodiscard]] constexpr char to_char(ConvolutionLoop loop) {
    return "fkcxymn"[static_cast<size_t>(loop)];
}
[[nodiscard]] std::optional<ConvolutionLoop> loop_named(char name);

/// The loops whose windows lie along an axis: x and m along columns, y and n along rows.
[[nodiscard]] constexpr ConvolutionLoop outputs_along(MapAxis axis) {
    return axis == MapAxis::x ? ConvolutionLoop::x : ConvolutionLoop::y;
}
[[nodiscard]] constexpr ConvolutionLoop taps_along(MapAxis axis) {
    return axis == MapAxis::x ? ConvolutionLoop::m : ConvolutionLoop::n;
}
[[nodiscard]] constexpr bool is_output_loop(ConvolutionLoop loop) {
    return loop == ConvolutionLoop::x || loop == ConvolutionLoop::y;
}
[[nodiscard]] constexpr bool is_tap_loop(ConvolutionLoop loop) {
    return loop == ConvolutionLoop::m || loop == ConvolutionLoop::n;
}
/// Of x, m, y or n.
[[nodiscard]] constexpr MapAxis axis_of(ConvolutionLoop loop) {
    return loop == ConvolutionLoop::x || loop == ConvolutionLoop::m ? MapAxis::x : MapAxis::y;
}

struct ConvolutionProblem {
    std::string name;
    LoopExtents extent = one_iteration;
    PerAxis<WindowSteps> steps;
    /// Independent problems of these extents, one after another: the groups of a grouped
    /// convolution (a depthwise one has as many as channels). They share no word, so their order
    /// does not matter.
    int64_t groups = 1;
    /// The output is the tensor with windows: O[f, k, S x + E m, S y + E n] += I[f, c, x, y] * W[k,
    /// c, m, n].
    bool transposed = false;
    /// Outputs leave only when they are finished: none is spilled, and blocks hold whole windows of
    /// so many columns (x) and rows (y), so that a pool of such windows side by side, or an
    /// activation, can follow block by block before anything is written (fused_groups.h). Not for
    /// transposed convolutions.
    std::optional<PerAxis<int64_t>> finished;

    /// Coordinates along the axis of the tensor with windows that loops of these extents touch.
    [[nodiscard]] int64_t touched(MapAxis axis, const LoopExtents& extents) const {
        return steps[axis].touched(extents[outputs_along(axis)], extents[taps_along(axis)]);
    }
    friend bool operator==(const ConvolutionProblem&, const ConvolutionProblem&) = default;
};

/// Convolution, transposed convolution, Gemm: the layers for which must_be_scheduled() is true. The
/// whole batch. Throws InputError for others.
[[nodiscard]] ConvolutionProblem convolution_problem(const Network& network, LayerId layer);

/// "f4 k96 c3 x55 y55 m11 n11", with " stride 4", " dilation 2", " groups 2", " transposed" where
/// they differ from 1, " finished 2" or " finished 2x1" where outputs leave finished alone.
[[nodiscard]] std::string to_text(const ConvolutionProblem& problem);
/// Reads to_text()'s form; loops left out are 1. Throws InputError.
[[nodiscard]] ConvolutionProblem parse_convolution(const std::string& text);

enum class LoopRole { related, reuse, partial };

/// Words moved for one that was evicted and is needed again: 1, and 2 for the output, which is
/// written and read.
[[nodiscard]] constexpr int64_t spill_traffic(Operand operand) {
    return operand == Operand::output ? 2 : 1;
}

/// How one tensor is addressed.
struct TensorAccess {
    PerLoop<LoopRole> role{};
    int64_t traffic = 1;  ///< spill_traffic()
    [[nodiscard]] LoopRole operator[](ConvolutionLoop loop) const { return role[loop]; }
    /// Whether neighbouring windows along the axis share words.
    [[nodiscard]] bool is_partial(MapAxis axis) const {
        return role[outputs_along(axis)] == LoopRole::partial;
    }
};
[[nodiscard]] TensorAccess tensor_access(const ConvolutionProblem& problem, Operand operand);

/// Words of the box of a tensor that loops of these extents touch.
[[nodiscard]] int64_t touched_words(const ConvolutionProblem& problem, Operand operand,
                                    const LoopExtents& extents);

/// Words of the tensor, all groups together: each has to cross once.
[[nodiscard]] int64_t tensor_words(const ConvolutionProblem& problem, Operand operand);

}  // namespace laminate
