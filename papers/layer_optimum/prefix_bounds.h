// Lower bounds on the extra words of all schedules that begin with the same outer loops: what the
// branch and bound of this folder cuts by.
//
// Every prefix of an order, with the other loops whole, is a complete schedule. Bound of all that
// begin with it: each of its reuse loops of R rounds, in each of N instances, moves (R - 1) (T -
// M)+ words at least, T the words that a round touches; each partial reuse loop the same with the
// words that neighbouring iterations share: at the border between two iterations at most M of those
// words are present. Borders of different loops count different accesses, and loops further in
// change none of it, so the sum holds. Summed over instances with their true, ragged sizes (sum of
// (T - M)+ >= (sum of T - N M)+). Per tensor this is a convex falling function of its banks; the
// bound is the least sum over divisions of the banks, infinite where not even the smallest blocks
// fit. It holds for both evaluators.
//
// Of one evaluator more is known: what a prefix's groups spill by the formula in every order that
// begins with it (groups_of_prefix(), spill_formula.h), or under Belady's replacement
// (BeladyBound), with what windows further in hold meanwhile. As a function of the banks that is
// not convex; its convex hull takes the place of the sum above where extensions are compared, and
// the function itself where one is taken (may_be_below()).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "papers/layer_optimum/bank_division.h"

namespace laminate {

/// Sums over all blocks of an axis with windows, clipped, for the candidates of its two loops:
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

/// A prefix of an order: everything that bounds of its extensions need.
struct Prefix {
    BlockOrder order;
    PerLoop<size_t> candidate{};  ///< 0: the whole loop
    PerLoop<bool> is_in_order{};
    int64_t iterations = 1;       ///< of all loops of the order together
    PerOperand repeats{1, 1, 1};  ///< of its loops that are reuse loops of the tensor
    int64_t held_words =
        0;               ///< that the tensor with windows must have room for (BoundWeights::held)
    BankCurves curves;   ///< extra words that its loops cost; convex where blocks of one iteration
                         ///< would fit
    BankCurves closest;  ///< BoundWeights::evaluator: the same, not convex and no less; else empty
};

struct Extension {
    int64_t bound = 0;
    ConvolutionLoop loop = ConvolutionLoop::f;
    size_t candidate = 0;
};

/// What a use of the bounds may change: a PE's share is no problem of its own (register_mapping.h).
struct BoundWeights {
    PerOperand of{1, 1, 1};  ///< words that count for one spill of each tensor, beside its traffic
    bool columns_like_rows = true;  ///< false: orders with columns and rows exchanged count
                                    ///< otherwise even on square layers
    /// Of the columns and rows of the tensor with windows: what lies inside the first loop over
    /// them must fit in its banks.
    PerAxis<bool> held{false, false};
    /// Spills are counted so: closer bounds, each of which takes longer.
    std::optional<SpillEvaluator> evaluator = {};
};

class PrefixBounds {
public:
    PrefixBounds(const ConvolutionProblem& problem, const BankedBuffer& buffer,
                 const BoundWeights& weights = {});
    [[nodiscard]] Prefix root() const;
    /// What the loop adds to the curve of each tensor as the innermost of the prefix.
    [[nodiscard]] std::array<Hinge, 3> hinges(const Prefix& prefix, ConvolutionLoop loop,
                                              size_t candidate) const;
    /// For these blocks, whose loops begin with the prefix.
    [[nodiscard]] PerOperand least_banks(const Prefix& prefix, const LoopExtents& blocks) const;
    /// Blocks of the prefix, 1 for the other loops.
    [[nodiscard]] LoopExtents smallest_blocks(const Prefix& prefix) const;
    /// Least sum of the prefix's curves with the hinges added, over divisions with at least `least`
    /// banks; infinite where there is none. The curves are convex: banks move, one by one, to where
    /// they save more, until none does.
    [[nodiscard]] int64_t bound(const Prefix& prefix, const std::array<Hinge, 3>& added,
                                const PerOperand& least) const;
    /// The same; `division` is where it begins, a division of other hinges say, and where it ends.
    /// Anything of a sum of banks is repaired.
    [[nodiscard]] int64_t bound(const Prefix& prefix, const std::array<Hinge, 3>& added,
                                const PerOperand& least, PerOperand& division) const;
    [[nodiscard]] Prefix extended(const Prefix& prefix, ConvolutionLoop loop,
                                  size_t candidate) const;
    /// Whether an order that begins with the prefix may have less than `limit` extra words, with at
    /// least `least` banks.
    [[nodiscard]] bool may_be_below(const Prefix& prefix, const PerOperand& least,
                                    int64_t limit) const;
    /// The best that is known of the prefix's curves.
    [[nodiscard]] const BankCurves& curves(const Prefix& prefix) const {
        return weights_.evaluator ? prefix.closest : prefix.curves;
    }
    [[nodiscard]] const std::vector<int64_t>& candidates(ConvolutionLoop loop) const {
        return candidates_[loop];
    }
    /// All extensions of less than limit(loop, candidate) extra words, least bound first. On square
    /// layers, where columns and rows are alike, the first of their loops is one of columns.
    [[nodiscard]] std::vector<Extension> extensions(
        const Prefix& prefix,
        const std::function<int64_t(ConvolutionLoop loop, size_t candidate)>& limit) const;

private:
    /// Coordinates along an axis with windows, summed over the blocks of the prefix.
    [[nodiscard]] int64_t touched_by_blocks(const Prefix& prefix, MapAxis axis) const;
    /// Words that a tensor touches in one round of a reuse loop inside the prefix, all instances
    /// together.
    [[nodiscard]] int64_t words_of_round(const Prefix& prefix, size_t t) const;
    /// Extra words of the tensor whose reuse loop this is, for each further round, with all banks
    /// that the others' `least` leave. Each loop is one tensor's reuse loop.
    [[nodiscard]] int64_t least_per_round(const Prefix& prefix, ConvolutionLoop loop,
                                          const PerOperand& least) const;

    /// Extra words of a tensor that every order with this prefix has, by banks; `curve` holds what
    /// its loops cost.
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
