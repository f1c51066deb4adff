// The division of a buffer's banks among input, weights and output with the fewest spills, for one
// order of blocks. CNNFlow 5.1.
//
// CNNFlow gives the next bank to the tensor that gains most (Alg. 2), which misses the best
// division where gains rise with more banks. Here all divisions are compared. Lower bounds come
// first; an exact count of spills is made only for divisions that the bounds leave in question.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

enum class SpillEvaluator {
    eq7,     ///< CNNFlow's formula, corrected (spill_formula.h)
    belady,  ///< Belady's replacement on the real stream (belady.h)
};
[[nodiscard]] const char* to_string(SpillEvaluator evaluator);
/// Throws UsageError listing the names.
[[nodiscard]] SpillEvaluator parse_spill_evaluator(const std::string& name);

/// A buffer of equal banks, each of which serves one tensor.
struct BankedBuffer {
    int64_t banks = 1;
    int64_t bank_words = 1;
};

/// One number per Operand.
using PerOperand = std::array<int64_t, 3>;

/// The best division of the banks for one order, in words of the whole layer (all groups).
struct DividedBanks {
    PerOperand banks{};   ///< at least one each; the sum is the buffer's banks
    PerOperand spills{};  ///< words evicted that are needed again
    /// Words beyond every tensor once; each spill of the output counts twice.
    [[nodiscard]] int64_t extra_words() const { return spills[0] + spills[1] + 2 * spills[2]; }
};
/// Nothing where the blocks do not fit. Among equal divisions, the one with the fewest banks for
/// the input, then for the weights.
[[nodiscard]] std::optional<DividedBanks> divide_banks(const ConvolutionProblem& problem,
                                                       const BlockOrder& order,
                                                       const BankedBuffer& buffer,
                                                       SpillEvaluator evaluator);

/// Above any number of words; the sum of three does not overflow.
inline constexpr int64_t infinite_words = INT64_MAX / 8;

/// Words beyond every tensor once of one of the problem's groups, by banks: [Operand][banks - 1],
/// for one bank to all banks but two.
using BankCurves = std::array<std::vector<int64_t>, 3>;
[[nodiscard]] BankCurves zero_curves(const BankedBuffer& buffer);

struct Division {
    PerOperand banks{};
    int64_t words = infinite_words;
};

/// The least sum of the curves over all divisions with at least `least` banks for each tensor, if
/// it is below the limit. Else a division whose words are the limit.
[[nodiscard]] Division least_division(const BankCurves& curves, int64_t banks,
                                      const PerOperand& least, int64_t limit);

/// Extra words by tensor, banks and the loops that matter; nothing for a stream that is too long.
struct KnownSpills {
    std::map<std::tuple<size_t, int64_t, std::string>, std::optional<int64_t>> words;
    int64_t longest = INT64_MAX;   ///< uses that one stream may have
    int64_t together = INT64_MAX;  ///< uses that all further streams may have
};

struct ExactDivision {
    std::optional<Division> best;  ///< below the limit
    /// A lower bound on the divisions that were not evaluated.
    int64_t unproven = infinite_words;
};

/// The best division with less than `limit` extra words, of one of the problem's groups. `bounds`:
/// lower bounds by tensor and banks.
[[nodiscard]] ExactDivision exact_division(const ConvolutionProblem& problem,
                                           const BlockOrder& order, const BankedBuffer& buffer,
                                           SpillEvaluator evaluator, BankCurves bounds,
                                           int64_t limit, KnownSpills& known);

/// The spills of a division that exact_division() found, of all groups of the problem.
[[nodiscard]] DividedBanks divided_banks(const ConvolutionProblem& problem,
                                         const Division& division, const BlockOrder& order,
                                         const BankedBuffer& buffer, SpillEvaluator evaluator);

}  // namespace laminate
