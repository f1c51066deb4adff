#include "papers/layer_optimum/bank_division.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "papers/layer_optimum/belady.h"
#include "papers/layer_optimum/belady_bound.h"
#include "papers/layer_optimum/spill_formula.h"

namespace laminate {

namespace {

/// Extra words of one tensor by banks: lower bounds, and exact numbers once they are asked for.
class TensorCurve {
public:
    TensorCurve(const ConvolutionProblem& problem, size_t tensor, const BlockOrder& order,
                const BankedBuffer& buffer, SpillEvaluator evaluator, KnownSpills& known)
        : problem_(problem),
          order_(order),
          tensor_(tensor),
          bank_words_(buffer.bank_words),
          evaluator_(evaluator),
          traffic_(spill_traffic(all_operands[tensor])),
          known_(known) {
        const int64_t block =
            touched_words(problem, all_operands[tensor], block_extents(problem, order));
        least_banks_ = ceil_div(block, buffer.bank_words);
    }
    [[nodiscard]] int64_t least_banks() const { return least_banks_; }
    /// Nothing where the stream is too long to be gone through; infinite where there must be no
    /// spill.
    [[nodiscard]] std::optional<int64_t> exact(int64_t banks) {
        const std::optional<int64_t> words = spilled(banks);
        return words ? std::optional(permitted(*words)) : words;
    }
    /// Under belady, of the complete order; at least the bound of its prefix.
    [[nodiscard]] int64_t bound(int64_t banks) {
        if (!bound_) bound_.emplace(problem_, all_operands[tensor_], order_);
        return permitted(
            checked_multiply(bound_->spills(checked_multiply(banks, bank_words_)), traffic_));
    }

private:
    [[nodiscard]] int64_t permitted(int64_t words) const {
        return words > 0 && problem_.finished && all_operands[tensor_] == Operand::output
                   ? infinite_words
                   : words;
    }
    [[nodiscard]] std::optional<int64_t> spilled(int64_t banks) {
        const int64_t memory = checked_multiply(banks, bank_words_);
        if (evaluator_ == SpillEvaluator::eq7) {
            if (!groups_) groups_ = reuse_groups(problem_, all_operands[tensor_], order_);
            return checked_multiply(formula_spills(*groups_, memory), traffic_);
        }
        const BlockOrder needed = needed_order(problem_, all_operands[tensor_], order_, memory);
        // Not there, or too long when it was asked for before.
        std::optional<int64_t>& words = known_.words[{tensor_, banks, to_text(needed)}];
        if (words) return words;
        const int64_t uses = BeladyStream::uses(problem_, all_operands[tensor_], needed, memory);
        if (uses > std::min(known_.longest, known_.together)) return {};
        known_.together -= uses;
        words = checked_multiply(
            BeladyStream(problem_, all_operands[tensor_], needed, memory).spills(), traffic_);
        return words;
    }

    const ConvolutionProblem& problem_;
    const BlockOrder& order_;
    size_t tensor_;
    int64_t bank_words_;
    SpillEvaluator evaluator_;
    int64_t traffic_;
    KnownSpills& known_;
    int64_t least_banks_ = 1;
    std::optional<TensorGroups> groups_;
    std::optional<BeladyBound> bound_;
};

}  // namespace

BankCurves zero_curves(const BankedBuffer& buffer) {
    BankCurves curves;
    for (std::vector<int64_t>& curve : curves)
        curve.assign(static_cast<size_t>(buffer.banks - 2), 0);
    return curves;
}

Division least_division(const BankCurves& curves, int64_t banks, const PerOperand& least,
                        int64_t limit) {
    Division best{{}, limit};
    const auto words_of = [&](size_t t, int64_t b) {
        return curves[t][static_cast<size_t>(b - 1)];
    };
    // The least of weights and output with no more than so many banks.
    const int64_t spare = banks - least[0] - least[1] - least[2];
    std::array<std::vector<int64_t>, 2> fewest;
    for (size_t t = 1; t < 3; ++t) {
        for (int64_t b = least[t]; b <= least[t] + spare; ++b)
            fewest[t - 1].push_back(b == least[t] ? words_of(t, b)
                                                  : std::min(fewest[t - 1].back(), words_of(t, b)));
    }
    for (int64_t more = 0; more <= spare; ++more) {
        const int64_t i = least[0] + more;
        const int64_t input = words_of(0, i);
        const auto left = static_cast<size_t>(spare - more);
        if (input + fewest[0][left] + fewest[1][left] >= best.words) continue;
        for (int64_t w = least[1]; w <= banks - i - least[2]; ++w) {
            const int64_t words = input + words_of(1, w) + words_of(2, banks - i - w);
            if (words < best.words) best = {{i, w, banks - i - w}, words};
        }
    }
    return best;
}

ExactDivision exact_division(const ConvolutionProblem& problem, const BlockOrder& order,
                             const BankedBuffer& buffer, SpillEvaluator evaluator,
                             BankCurves curves, int64_t limit, KnownSpills& known) {
    std::array<TensorCurve, 3> tensors{TensorCurve(problem, 0, order, buffer, evaluator, known),
                                       TensorCurve(problem, 1, order, buffer, evaluator, known),
                                       TensorCurve(problem, 2, order, buffer, evaluator, known)};
    PerOperand least;
    for (size_t t = 0; t < 3; ++t) least[t] = tensors[t].least_banks();
    ExactDivision result;
    limit = std::min(limit, infinite_words);
    if (least[0] + least[1] + least[2] > buffer.banks) return result;
    if (evaluator == SpillEvaluator::eq7) {
        // The formula is quick: all of its curves, as long as what is known stays below the limit;
        // that of the windows, which takes longest, at last.
        Division division;
        const int64_t spare = buffer.banks - least[0] - least[1] - least[2];
        for (const size_t t :
             problem.transposed ? std::array<size_t, 3>{0, 1, 2} : std::array<size_t, 3>{1, 2, 0}) {
            for (int64_t b = least[t]; b <= least[t] + spare; ++b)
                curves[t][static_cast<size_t>(b - 1)] = tensors[t].exact(b).value();
            division = least_division(curves, buffer.banks, least, limit);
            if (division.words >= limit) return result;
        }
        result.best = division;
        return result;
    }
    for (size_t t = 0; t < 3; ++t) {
        int64_t with_more = 0;  // with fewer banks there are no fewer spills
        for (int64_t b = buffer.banks - 2; b >= least[t]; --b) {
            int64_t& words = curves[t][static_cast<size_t>(b - 1)];
            words = with_more = std::max({words, with_more, tensors[t].bound(b)});
        }
    }
    std::array<std::vector<bool>, 3> is_exact;
    for (std::vector<bool>& flags : is_exact) flags.assign(curves[0].size(), false);
    while (true) {
        const Division division = least_division(curves, buffer.banks, least, limit);
        if (division.words >= limit) return result;
        bool all_exact = true;
        for (size_t t = 0; t < 3; ++t) {
            const auto b = static_cast<size_t>(division.banks[t] - 1);
            if (is_exact[t][b]) continue;
            all_exact = false;
            is_exact[t][b] = true;
            const std::optional<int64_t> words = tensors[t].exact(division.banks[t]);
            if (!words) {
                result.unproven = std::min(result.unproven, division.words);
                curves[t][b] = infinite_words;
                break;
            }
            const bool is_more = *words > curves[t][b];
            curves[t][b] = *words;
            // With fewer banks there are no fewer spills.
            for (size_t fewer = b; fewer-- > 0;)
                curves[t][fewer] = std::max(curves[t][fewer], *words);
            if (is_more) break;  // perhaps that rules the division out
        }
        if (all_exact) {
            result.best = division;
            return result;
        }
    }
}

DividedBanks divided_banks(const ConvolutionProblem& problem, const Division& division,
                           const BlockOrder& order, const BankedBuffer& buffer,
                           SpillEvaluator evaluator) {
    DividedBanks result;
    result.banks = division.banks;
    for (size_t t = 0; t < 3; ++t) {
        KnownSpills known;
        TensorCurve curve(problem, t, order, buffer, evaluator, known);
        result.spills[t] = checked_multiply(
            curve.exact(division.banks[t]).value() / spill_traffic(all_operands[t]),
            problem.groups);
    }
    return result;
}

const char* to_string(SpillEvaluator evaluator) {
    return evaluator == SpillEvaluator::eq7 ? "eq7" : "belady";
}

SpillEvaluator parse_spill_evaluator(const std::string& name) {
    for (const SpillEvaluator evaluator : {SpillEvaluator::eq7, SpillEvaluator::belady})
        if (name == to_string(evaluator)) return evaluator;
    throw UsageError("evaluator \"" + name + "\": expected eq7 or belady");
}

std::optional<DividedBanks> divide_banks(const ConvolutionProblem& problem, const BlockOrder& order,
                                         const BankedBuffer& buffer, SpillEvaluator evaluator) {
    if (buffer.banks < 3) return {};
    KnownSpills known;
    const ExactDivision division = exact_division(problem, order, buffer, evaluator,
                                                  zero_curves(buffer), infinite_words, known);
    if (!division.best) return {};
    return divided_banks(problem, *division.best, order, buffer, evaluator);
}

}  // namespace laminate
