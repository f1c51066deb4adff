// Lower bounds on the extra words of all schedules that begin with the same outer loops, for the
// branch and bound of this folder.
//
// Every prefix of an order, with the other loops whole, is a complete schedule. For all orders that
// begin with it, each of its reuse loops of R rounds, in each of N instances, moves at least (R -
// 1) (T - M)+ words, where T is the words that a round touches. Each partial reuse loop moves the
// same with the words that neighbouring iterations share: at the border between two iterations, at
// most M of those words are present. Borders of different loops count different accesses, and loops
// further in change none of them, so the sum holds. It is taken over instances with their true
// sizes, last blocks included (sum of (T - M)+ >= (sum of T - N M)+). Per tensor it is a convex
// falling function of the tensor's banks. The bound is the least sum over divisions of the banks,
// and infinite where not even the smallest blocks fit. It holds for both evaluators.
//
// More is known for one evaluator: the spills of a prefix's groups in every order that begins with
// it, by the formula (groups_of_prefix(), spill_formula.h) or under Belady's replacement
// (belady_bound.h), with the words that windows further in hold meanwhile. As a function of the
// banks this is not convex. Its convex hull takes the place of the sum above where extensions are
// compared, and the function itself where one is taken (may_be_below()).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "papers/layer_optimum/bank_division.h"

namespace laminate {

/// Sums over all blocks of an axis with windows, clipped, by the candidates of its two loops:
/// [output candidate][tap candidate].
struct WindowSums {
    std::vector<std::vector<int64_t>> touched;         ///< words of every block
    std::vector<std::vector<int64_t>> output_overlap;  ///< shared by neighbours in the output loop
    std::vector<std::vector<int64_t>> tap_overlap;     ///< shared by neighbours in the tap loop
};

/// words - slope * memory, 0 where that is negative.
struct Hinge {
    int64_t words = 0;
    int64_t slope = 1;
    [[nodiscard]] int64_t at(int64_t memory) const {
        int64_t kept = 0;
        return __builtin_mul_overflow(slope, memory, &kept) || kept >= words ? 0 : words - kept;
    }
};

/// A prefix of an order with everything that the bounds of its extensions need.
struct Prefix {
    BlockOrder order;
    PerLoop<size_t> candidate{};  ///< 0: the whole loop
    PerLoop<bool> is_in_order{};
    int64_t iterations = 1;       ///< of all loops of the order together
    PerOperand repeats{1, 1, 1};  ///< of its loops that are reuse loops of the tensor
    /// Words that the tensor with windows must have room for (BoundWeights::held).
    int64_t held_words = 0;
    /// Extra words that its loops cost; convex where blocks of one iteration would fit.
    BankCurves curves;
    /// With BoundWeights::evaluator, a closer bound on them that need not be convex; else empty.
    BankCurves closest;
};

struct Extension {
    int64_t bound = 0;
    ConvolutionLoop loop = ConvolutionLoop::f;
    size_t candidate = 0;
};

/// What differs between uses of the bounds: a PE's share is no problem of its own
/// (register_mapping.h).
struct BoundWeights {
    PerOperand of{1, 1, 1};  ///< factor on the traffic of one spill of each tensor
    /// Exchanging columns and rows changes nothing on square layers.
    bool columns_like_rows = true;
    /// Axes of the tensor with windows for which the words inside the first loop over the axis must
    /// fit in the tensor's banks.
    PerAxis<bool> held{false, false};
    /// The evaluator that counts spills: closer bounds, each of which takes longer.
    std::optional<SpillEvaluator> evaluator = {};
};

class PrefixBounds {
public:
    PrefixBounds(const ConvolutionProblem& problem, const BankedBuffer& buffer,
                 const BoundWeights& weights = {});
    [[nodiscard]] Prefix root() const;
    /// What the loop adds to the curve of each tensor when it becomes the innermost of the prefix.
    [[nodiscard]] std::array<Hinge, 3> hinges(const Prefix& prefix, ConvolutionLoop loop,
                                              size_t candidate) const;
    /// Banks that these blocks need; their loops begin with the prefix.
    [[nodiscard]] PerOperand least_banks(const Prefix& prefix, const LoopExtents& blocks) const;
    /// The blocks of the prefix, and 1 for the other loops.
    [[nodiscard]] LoopExtents smallest_blocks(const Prefix& prefix) const;
    /// The least sum of the prefix's curves with the hinges added, over divisions with at least
    /// `least` banks; infinite where there is none. The curves are convex: banks move one by one to
    /// where they save more.
    [[nodiscard]] int64_t bound(const Prefix& prefix, const std::array<Hinge, 3>& added,
                                const PerOperand& least) const;
    /// The same. The search starts from `division`, such as the best one of other hinges, and
    /// leaves the one found there. Its banks may have any sum.
    [[nodiscard]] int64_t bound(const Prefix& prefix, const std::array<Hinge, 3>& added,
                                const PerOperand& least, PerOperand& division) const;
    [[nodiscard]] Prefix extended(const Prefix& prefix, ConvolutionLoop loop,
                                  size_t candidate) const;
    /// Whether an order that begins with the prefix may have less than `limit` extra words with at
    /// least `least` banks.
    [[nodiscard]] bool may_be_below(const Prefix& prefix, const PerOperand& least,
                                    int64_t limit) const;
    /// The closest known bounds on the prefix's curves.
    [[nodiscard]] const BankCurves& curves(const Prefix& prefix) const {
        return weights_.evaluator ? prefix.closest : prefix.curves;
    }
    [[nodiscard]] const std::vector<int64_t>& candidates(ConvolutionLoop loop) const {
        return candidates_[loop];
    }
    /// All extensions with less than limit(loop, candidate) extra words, least bound first. On
    /// square layers, where columns and rows are alike, the first of their loops is one of columns.
    [[nodiscard]] std::vector<Extension> extensions(
        const Prefix& prefix,
        const std::function<int64_t(ConvolutionLoop loop, size_t candidate)>& limit) const;

private:
    /// Coordinates along an axis with windows, summed over the blocks of the prefix.
    [[nodiscard]] int64_t touched_by_blocks(const Prefix& prefix, MapAxis axis) const;
    /// Words that a tensor touches in one round of a reuse loop inside the prefix, all instances
    /// together.
    [[nodiscard]] int64_t words_of_round(const Prefix& prefix, size_t t) const;
    /// Extra words for each further round of the tensor whose reuse loop this is, with all banks
    /// that the others' `least` leave. Each loop is a reuse loop of one tensor.
    [[nodiscard]] int64_t least_per_round(const Prefix& prefix, ConvolutionLoop loop,
                                          const PerOperand& least) const;

    /// Raises `curve`, the cost of the prefix's loops by banks, to the extra words of a tensor in
    /// every order with this prefix.
    void put_closest(const BlockOrder& prefix, size_t t, std::vector<int64_t>& curve) const;

    /// Prefix::held_words with one more loop.
    [[nodiscard]] int64_t held_words(const Prefix& prefix, ConvolutionLoop loop) const;

    const ConvolutionProblem& problem_;
    BankedBuffer buffer_;
    BoundWeights weights_;
    size_t windows_tensor_ = 0;
    PerLoop<std::vector<int64_t>> candidates_;  ///< blocks, the whole loop first
    std::array<TensorAccess, 3> access_;
    PerOperand per_spill_{1, 1, 1};      ///< words: traffic and weight
    PerOperand related_words_{1, 1, 1};  ///< product of the extents of a tensor's related loops
    PerAxis<WindowSums> windows_;
    bool is_square_ = false;
};

}  // namespace laminate
