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
#include "scheduler/machine/machine.h"

namespace laminate {

enum class ConvolutionLoop { f = 0, k = 1, c = 2, x = 3, y = 4, m = 5, n = 6 };
inline constexpr size_t convolution_loops = 7;
/// One number per loop, by ConvolutionLoop.
using LoopExtents = std::array<int64_t, convolution_loops>;
[[nodiscard]] inline char to_char(ConvolutionLoop loop) {
    return "fkcxymn"[static_cast<size_t>(loop)];
}
[[nodiscard]] inline int64_t& at(LoopExtents& extents, ConvolutionLoop loop) {
    return extents[static_cast<size_t>(loop)];
}
[[nodiscard]] inline int64_t at(const LoopExtents& extents, ConvolutionLoop loop) {
    return extents[static_cast<size_t>(loop)];
}

struct ConvolutionProblem {
    std::string name;
    LoopExtents extent{1, 1, 1, 1, 1, 1, 1};
    std::array<int64_t, 2> stride{1, 1};    ///< of x, y
    std::array<int64_t, 2> dilation{1, 1};  ///< of m, n
    /// Independent problems of these extents, one after another: the groups of a grouped
    /// convolution (a depthwise one has as many as channels). They share no word, so no order of
    /// them is better.
    int64_t groups = 1;
    /// The output is the tensor with windows: O[f, k, S x + E m, S y + E n] += I[f, c, x, y] * W[k,
    /// c, m, n].
    bool transposed = false;
    /// Outputs leave finished alone: none is spilled, and blocks hold whole windows of so many
    /// columns (x) and rows (y), so that a pool of such windows side by side, or an activation, can
    /// follow block by block before anything is written (fused_groups.h). Not of transposed ones.
    std::optional<std::array<int64_t, 2>> finished;
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

/// Words moved for one that was evicted and is needed again: 1; the output 2, it is written and
/// read.
[[nodiscard]] constexpr int64_t spill_traffic(Operand operand) {
    return operand == Operand::output ? 2 : 1;
}

/// How one tensor is addressed.
struct TensorAccess {
    std::array<LoopRole, convolution_loops> role{};
    int64_t traffic = 1;  ///< spill_traffic()
    [[nodiscard]] LoopRole operator[](ConvolutionLoop loop) const {
        return role[static_cast<size_t>(loop)];
    }
};
[[nodiscard]] TensorAccess tensor_access(const ConvolutionProblem& problem, Operand operand);

/// Words along one axis with windows, {S i + E j : i < outputs, j < taps}.
[[nodiscard]] int64_t touched_words(int64_t outputs, int64_t taps, int64_t stride,
                                    int64_t dilation);

/// Words of the box of a tensor that loops of these extents touch.
[[nodiscard]] int64_t touched_words(const ConvolutionProblem& problem, Operand operand,
                                    const LoopExtents& extents);

/// Words of the tensor, all groups together: each has to cross once.
[[nodiscard]] int64_t tensor_words(const ConvolutionProblem& problem, Operand operand);

}  // namespace laminate
