#include "scheduler/models/layer_optimum/optimum.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "scheduler/models/layer_optimum/belady.h"
#include "scheduler/models/layer_optimum/spill_formula.h"

namespace laminate {

namespace {

constexpr int64_t infinite = INT64_MAX / 8;

/// Uses of cells that a search goes through: about a second. Counted, not timed, so that the answer is the same everywhere.
constexpr int64_t longest_stream = 1'000'000;
constexpr int64_t longest_streams_together = 8'000'000;

int64_t traffic(const ConvolutionProblem& problem, size_t t) { return tensor_access(problem, all_operands[t]).traffic; }

/// Extra words of a tensor by tensor, banks and the loops that matter; nothing for streams that are too long.
struct KnownSpills {
    std::map<std::tuple<size_t, int64_t, std::string>, std::optional<int64_t>> words;
    int64_t longest = INT64_MAX;   ///< uses that a stream may have
    int64_t together = INT64_MAX;  ///< uses that all further streams may have
};

/// Extra words of one tensor by banks: lower bounds, and exact numbers once they are asked for.
class TensorCurve {
public:
    TensorCurve(const ConvolutionProblem& problem, size_t tensor, const BlockOrder& order, const BankedBuffer& buffer,
                SpillEvaluator evaluator, KnownSpills& known)
        : problem_(problem), order_(order), tensor_(tensor), bank_words_(buffer.bank_words), evaluator_(evaluator),
          traffic_(traffic(problem, tensor)), known_(known) {
        const int64_t block = touched_words(problem, all_operands[tensor], block_extents(problem, order));
        least_banks_ = ceil_div(block, buffer.bank_words);
    }
    [[nodiscard]] int64_t least_banks() const { return least_banks_; }
    /// Nothing where the stream is too long to be gone through.
    [[nodiscard]] std::optional<int64_t> exact(int64_t banks) {
        const int64_t memory = checked_multiply(banks, bank_words_);
        if (evaluator_ == SpillEvaluator::eq7) {
            if (!groups_) groups_ = reuse_groups(problem_, all_operands[tensor_], order_);
            return checked_multiply(formula_spills(*groups_, memory), traffic_);
        }
        const BlockOrder needed = needed_order(problem_, all_operands[tensor_], order_, memory);
        const auto [entry, is_new] = known_.words.try_emplace({tensor_, banks, to_text(needed)});
        if (!is_new) return entry->second;
        const int64_t uses = BeladyStream::uses(problem_, all_operands[tensor_], needed, memory);
        if (uses > std::min(known_.longest, known_.together)) return {};
        known_.together -= uses;
        entry->second = checked_multiply(BeladyStream(problem_, all_operands[tensor_], needed, memory).spills(), traffic_);
        return entry->second;
    }
    /// Of the complete order; at least the bound of its prefix.
    [[nodiscard]] int64_t bound(int64_t banks) {
        if (evaluator_ == SpillEvaluator::eq7) return 0;
        if (!bound_) bound_.emplace(problem_, all_operands[tensor_], order_);
        return checked_multiply(bound_->spills(checked_multiply(banks, bank_words_)), traffic_);
    }

private:
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

/// Lower bounds of the three tensors, [banks - 1].
using BankCurves = std::array<std::vector<int64_t>, 3>;

struct Division {
    PerOperand banks{};
    int64_t words = infinite;
};

/// Least sum of the curves over all divisions.
Division least_division(const BankCurves& curves, int64_t banks) {
    Division best;
    for (int64_t i = 1; i <= banks - 2; ++i) {
        const int64_t input = curves[0][static_cast<size_t>(i - 1)];
        if (input >= best.words) continue;
        for (int64_t w = 1; w <= banks - 1 - i; ++w) {
            const int64_t words =
                input + curves[1][static_cast<size_t>(w - 1)] + curves[2][static_cast<size_t>(banks - i - w - 1)];
            if (words < best.words) best = {{i, w, banks - i - w}, words};
        }
    }
    return best;
}

struct ExactDivision {
    std::optional<Division> best;     ///< of less than the limit
    int64_t unproven = infinite;      ///< divisions that could not be evaluated have at least this many words
};

/// The best division of less than `limit` extra words (per group of the layer). `curves` are lower bounds; exact values are
/// computed only where the least sum of what is known asks for them.
ExactDivision exact_division(const ConvolutionProblem& problem, const BlockOrder& order, const BankedBuffer& buffer,
                             SpillEvaluator evaluator, BankCurves curves, int64_t limit, KnownSpills& known) {
    std::array<TensorCurve, 3> tensors{TensorCurve(problem, 0, order, buffer, evaluator, known),
                                       TensorCurve(problem, 1, order, buffer, evaluator, known),
                                       TensorCurve(problem, 2, order, buffer, evaluator, known)};
    for (size_t t = 0; t < 3; ++t) {
        for (int64_t b = 1; b <= buffer.banks - 2; ++b) {
            int64_t& words = curves[t][static_cast<size_t>(b - 1)];
            words = b < tensors[t].least_banks() ? infinite : std::max(words, tensors[t].bound(b));
        }
    }
    std::array<std::vector<bool>, 3> is_exact;
    for (std::vector<bool>& flags : is_exact) flags.assign(curves[0].size(), false);
    ExactDivision result;
    while (true) {
        const Division division = least_division(curves, buffer.banks);
        if (division.words >= std::min(limit, infinite)) return result;
        bool all_exact = true;
        for (size_t t = 0; t < 3; ++t) {
            const auto b = static_cast<size_t>(division.banks[t] - 1);
            if (is_exact[t][b]) continue;
            all_exact = false;
            is_exact[t][b] = true;
            const std::optional<int64_t> words = tensors[t].exact(division.banks[t]);
            if (!words) {
                result.unproven = std::min(result.unproven, division.words);
                curves[t][b] = infinite;
                break;
            }
            const bool is_more = *words > curves[t][b];
            curves[t][b] = *words;
            // With fewer banks there are no fewer spills.
            for (size_t fewer = b; fewer-- > 0;) curves[t][fewer] = std::max(curves[t][fewer], *words);
            if (is_more) break;  // perhaps that rules the division out
        }
        if (all_exact) {
            result.best = division;
            return result;
        }
    }
}

/// Sums over all blocks of an axis with windows, clipped, for the candidates of its two loops: [output candidate][tap candidate].
struct WindowSums {
    std::vector<std::vector<int64_t>> touched;         ///< words of every block
    std::vector<std::vector<int64_t>> output_overlap;  ///< words that neighbours in the output loop share
    std::vector<std::vector<int64_t>> tap_overlap;     ///< words that neighbours in the tap loop share
};

WindowSums window_sums(int64_t outputs, int64_t taps, const std::vector<int64_t>& output_blocks, const std::vector<int64_t>& tap_blocks,
                       int64_t stride, int64_t dilation) {
    const auto words = [&](int64_t i, int64_t j) { return touched_words(i, j, stride, dilation); };
    WindowSums sums;
    for (const int64_t b : output_blocks) {
        for (auto* table : {&sums.touched, &sums.output_overlap, &sums.tap_overlap}) table->emplace_back();
        for (const int64_t q : tap_blocks) {
            int64_t touched = 0;
            int64_t output_overlap = 0;
            int64_t tap_overlap = 0;
            for_each_block(outputs, b, [&](int64_t n, int64_t i) {
                for_each_block(taps, q, [&](int64_t k, int64_t j) { touched += n * k * words(i, j); });
                for_each_border(taps, q, [&](int64_t k, int64_t before, int64_t j) {
                    tap_overlap += n * k * (words(i, before) + words(i, j) - words(i, before + j));
                });
            });
            for_each_block(taps, q, [&](int64_t k, int64_t j) {
                for_each_border(outputs, b, [&](int64_t n, int64_t before, int64_t i) {
                    output_overlap += n * k * (words(before, j) + words(i, j) - words(before + i, j));
                });
            });
            sums.touched.back().push_back(touched);
            sums.output_overlap.back().push_back(output_overlap);
            sums.tap_overlap.back().push_back(tap_overlap);
        }
    }
    return sums;
}

/// words - slope * memory, 0 where that is negative.
struct Hinge {
    int64_t words = 0;
    int64_t slope = 1;
    [[nodiscard]] int64_t at(int64_t memory) const { return memory > words / slope ? 0 : words - slope * memory; }
};

/// A prefix of an order: everything that bounds of its extensions need.
struct Prefix {
    BlockOrder order;
    std::array<size_t, convolution_loops> candidate{};  ///< of each loop; 0: whole
    std::array<bool, convolution_loops> is_in_order{};
    int64_t iterations = 1;  ///< of all loops of the order together
    PerOperand repeats{1, 1, 1};  ///< of its loops that are reuse loops of the tensor
    BankCurves curves;            ///< extra words that its loops cost; convex where blocks of one iteration would fit
};

struct Extension {
    int64_t bound = 0;
    size_t loop = 0;
    size_t candidate = 0;
};

class Search {
public:
    Search(const ConvolutionProblem& problem, const BankedBuffer& buffer, SpillEvaluator evaluator)
        : problem_(problem), buffer_(buffer), evaluator_(evaluator) {
        for (size_t l = 0; l < convolution_loops; ++l) candidates_[l] = block_candidates(problem.extent[l]);
        for (size_t t = 0; t < 3; ++t) {
            access_[t] = tensor_access(problem, all_operands[t]);
            for (size_t l = 0; l < convolution_loops; ++l)
                if (access_[t].role[l] == LoopRole::related) related_words_[t] *= problem.extent[l];
        }
        for (size_t a = 0; a < 2; ++a) {
            windows_[a] = window_sums(problem.extent[3 + a], problem.extent[5 + a], candidates_[3 + a], candidates_[5 + a],
                                      problem.stride[a], problem.dilation[a]);
        }
        is_square_ = problem.extent[3] == problem.extent[4] && problem.extent[5] == problem.extent[6] &&
                     problem.stride[0] == problem.stride[1] && problem.dilation[0] == problem.dilation[1];
    }

    [[nodiscard]] Prefix root() const {
        Prefix prefix;
        for (std::vector<int64_t>& curve : prefix.curves) curve.assign(static_cast<size_t>(buffer_.banks - 2), 0);
        return prefix;
    }

    /// What the loop adds to the curve of each tensor as the innermost of the prefix.
    [[nodiscard]] std::array<Hinge, 3> hinges(const Prefix& prefix, size_t loop, size_t candidate) const {
        std::array<Hinge, 3> added;
        const int64_t iterations = ceil_div(problem_.extent[loop], candidates_[loop][candidate]);
        for (size_t t = 0; t < 3; ++t) {
            const LoopRole role = access_[t].role[loop];
            if (role == LoopRole::related) continue;
            int64_t words = related_words_[t] * prefix.repeats[t];
            for (size_t a = 0; a < 2; ++a) {
                if (access_[t].role[3 + a] != LoopRole::partial) continue;
                if (loop == 3 + a) {
                    words *= windows_[a].output_overlap[candidate][prefix.candidate[5 + a]];
                } else if (loop == 5 + a) {
                    words *= windows_[a].tap_overlap[prefix.candidate[3 + a]][candidate];
                } else {
                    words *= windows_[a].touched[prefix.candidate[3 + a]][prefix.candidate[5 + a]];
                }
            }
            if (role == LoopRole::reuse) words *= iterations - 1;
            added[t] = {words * access_[t].traffic, prefix.iterations * (iterations - 1) * access_[t].traffic};
        }
        return added;
    }

    [[nodiscard]] PerOperand least_banks(const LoopExtents& blocks) const {
        PerOperand banks;
        for (size_t t = 0; t < 3; ++t) banks[t] = ceil_div(touched_words(problem_, all_operands[t], blocks), buffer_.bank_words);
        return banks;
    }

    /// Blocks of the prefix, 1 for the other loops.
    [[nodiscard]] LoopExtents smallest_blocks(const Prefix& prefix) const {
        LoopExtents blocks{1, 1, 1, 1, 1, 1, 1};
        for (const BlockLoop& l : prefix.order) at(blocks, l.loop) = l.block;
        return blocks;
    }

    /// Least sum of the prefix's curves with the hinges added, over divisions with at least `least` banks; infinite where there is none. The
    /// curves are convex: the next bank goes where it saves most.
    [[nodiscard]] int64_t bound(const Prefix& prefix, const std::array<Hinge, 3>& added, const PerOperand& least) const {
        int64_t left = buffer_.banks - least[0] - least[1] - least[2];
        if (left < 0) return infinite;
        const auto value = [&](size_t t, int64_t banks) {
            return prefix.curves[t][static_cast<size_t>(banks - 1)] + added[t].at(banks * buffer_.bank_words);
        };
        PerOperand banks = least;
        PerOperand words;
        PerOperand saved;
        for (size_t t = 0; t < 3; ++t) {
            words[t] = value(t, banks[t]);
            saved[t] = left > 0 ? words[t] - value(t, banks[t] + 1) : 0;
        }
        for (; left > 0; --left) {
            const size_t t = saved[0] >= saved[1] ? (saved[0] >= saved[2] ? 0 : 2) : (saved[1] >= saved[2] ? 1 : 2);
            if (saved[t] == 0) break;
            ++banks[t];
            words[t] -= saved[t];
            saved[t] = left > 1 ? words[t] - value(t, banks[t] + 1) : 0;
        }
        return words[0] + words[1] + words[2];
    }

    [[nodiscard]] Prefix extended(const Prefix& prefix, size_t loop, size_t candidate) const {
        const std::array<Hinge, 3> added = hinges(prefix, loop, candidate);
        const int64_t block = candidates_[loop][candidate];
        const int64_t iterations = ceil_div(problem_.extent[loop], block);
        Prefix next = prefix;
        next.order.push_back({static_cast<ConvolutionLoop>(loop), block});
        next.candidate[loop] = candidate;
        next.is_in_order[loop] = true;
        next.iterations *= iterations;
        for (size_t t = 0; t < 3; ++t) {
            if (access_[t].role[loop] == LoopRole::reuse) next.repeats[t] *= iterations;
            for (int64_t b = 1; b <= buffer_.banks - 2; ++b)
                next.curves[t][static_cast<size_t>(b - 1)] += added[t].at(b * buffer_.bank_words);
        }
        return next;
    }

    [[nodiscard]] int64_t bound(const Prefix& prefix) const { return bound(prefix, {}, least_banks(smallest_blocks(prefix))); }

    [[nodiscard]] const std::vector<int64_t>& candidates(size_t loop) const { return candidates_[loop]; }

    /// All extensions of less than the best so far, least bound first.
    [[nodiscard]] std::vector<Extension> extensions(const Prefix& prefix) const {
        std::vector<Extension> list;
        LoopExtents blocks = smallest_blocks(prefix);
        const PerOperand least = least_banks(blocks);
        const bool is_first_window =
            !prefix.is_in_order[3] && !prefix.is_in_order[4] && !prefix.is_in_order[5] && !prefix.is_in_order[6];
        for (size_t l = 0; l < convolution_loops; ++l) {
            if (prefix.is_in_order[l]) continue;
            if (is_square_ && is_first_window && (l == 4 || l == 6)) continue;  // columns and rows alike
            for (size_t c = 1; c < candidates_[l].size(); ++c) {
                blocks[l] = candidates_[l][c];
                PerOperand needed = least;
                for (size_t t = 0; t < 3; ++t) {
                    if (access_[t].role[l] == LoopRole::reuse) continue;
                    needed[t] = ceil_div(touched_words(problem_, all_operands[t], blocks), buffer_.bank_words);
                }
                const int64_t extra = bound(prefix, hinges(prefix, l, c), needed);
                if (extra < best_words_) list.push_back({extra, l, c});
            }
            blocks[l] = 1;
        }
        std::stable_sort(list.begin(), list.end(), [](const Extension& a, const Extension& b) { return a.bound < b.bound; });
        return list;
    }

    /// Short orders first: a good one is found soon, and without one the long ones would take many more nodes.
    void run() {
        for (depth_ = 2; depth_ <= convolution_loops; ++depth_) {
            visit(root());
        }
    }
    /// Takes the order as the best so far if it is.
    void evaluate(const BlockOrder& order, const BankCurves& bounds) {
        const ExactDivision division = exact_division(problem_, order, buffer_, evaluator_, bounds, best_words_, known_);
        unproven_ = std::min(unproven_, division.unproven);
        if (!division.best) return;
        best_ = division.best;
        best_words_ = division.best->words;
        best_order_ = order;
    }
    [[nodiscard]] int64_t unproven() const { return unproven_; }
    [[nodiscard]] int64_t nodes() const { return nodes_; }
    [[nodiscard]] const std::optional<Division>& best() const { return best_; }
    [[nodiscard]] const BlockOrder& best_order() const { return best_order_; }

private:
    void visit(const Prefix& prefix) {
        ++nodes_;
        const PerOperand whole = least_banks(block_extents(problem_, prefix.order));
        if (bound(prefix, {}, whole) < best_words_) {
            evaluate(prefix.order, prefix.curves);
        }
        if (prefix.order.size() == depth_) return;
        for (const Extension& e : extensions(prefix)) {
            if (e.bound >= best_words_) break;
            visit(extended(prefix, e.loop, e.candidate));
        }
    }

    const ConvolutionProblem& problem_;
    BankedBuffer buffer_;
    SpillEvaluator evaluator_;
    std::array<std::vector<int64_t>, convolution_loops> candidates_;  ///< blocks, the whole loop first
    std::array<TensorAccess, 3> access_;
    PerOperand related_words_{1, 1, 1};  ///< product of the extents of a tensor's related loops
    std::array<WindowSums, 2> windows_;
    bool is_square_ = false;
    std::optional<Division> best_;
    BlockOrder best_order_;
    int64_t best_words_ = infinite;
    int64_t unproven_ = infinite;
    KnownSpills known_{{}, longest_stream, longest_streams_together};
    size_t depth_ = 0;  ///< longest order of this pass
    int64_t nodes_ = 0;
};

DividedBanks divided(const ConvolutionProblem& problem, const Division& division, const BlockOrder& order, const BankedBuffer& buffer,
                     SpillEvaluator evaluator) {
    DividedBanks result;
    result.banks = division.banks;
    for (size_t t = 0; t < 3; ++t) {
        KnownSpills known;
        TensorCurve curve(problem, t, order, buffer, evaluator, known);
        result.spills[t] = checked_multiply(curve.exact(division.banks[t]).value() / traffic(problem, t), problem.groups);
    }
    return result;
}

}  // namespace

const char* to_string(SpillEvaluator evaluator) { return evaluator == SpillEvaluator::eq7 ? "eq7" : "belady"; }

SpillEvaluator parse_spill_evaluator(const std::string& name) {
    for (const SpillEvaluator evaluator : {SpillEvaluator::eq7, SpillEvaluator::belady})
        if (name == to_string(evaluator)) return evaluator;
    throw UsageError("evaluator \"" + name + "\": expected eq7 or belady");
}

int64_t compulsory_words(const ConvolutionProblem& problem) {
    int64_t words = 0;
    for (const Operand operand : all_operands) words = checked_add(words, tensor_words(problem, operand));
    return words;
}

int64_t io_lower_bound_words(const ConvolutionProblem& problem, int64_t buffer_words) {
    double macs = 1;
    for (const int64_t extent : problem.extent) macs *= static_cast<double>(extent);
    double reuse = 1;
    for (size_t a = 0; a < 2; ++a) {
        // Taps that a word along the axis serves at most: those that are a multiple of the stride apart.
        const int64_t apart = problem.stride[a] / std::gcd(problem.stride[a], problem.dilation[a]);
        reuse *= static_cast<double>(std::min(ceil_div(problem.extent[5 + a], apart), problem.extent[3 + a]));
    }
    const auto words = static_cast<double>(buffer_words);
    const double phases = 2 * macs / std::sqrt(reuse * words) - 2 * words;
    // One word less for the rounding of doubles.
    const int64_t bound = phases <= 1 ? 0 : static_cast<int64_t>(std::floor(phases * (1 - 1e-12))) - 1;
    return std::max(compulsory_words(problem), checked_multiply(bound, problem.groups));
}

int64_t sram_words(const ConvolutionProblem& problem, const BlockOrder& order) {
    const LoopExtents blocks = block_extents(problem, order);
    int64_t words = 0;
    for (const Operand operand : all_operands)
        words = checked_add(words, checked_multiply(tensor_access(problem, operand).traffic, touched_words(problem, operand, blocks)));
    words = checked_multiply(words, problem.groups);
    for (const BlockLoop& l : order) words = checked_multiply(words, ceil_div(at(problem.extent, l.loop), l.block));
    return words;
}

ConvolutionProblem with_groups_as_published(ConvolutionProblem problem) {
    at(problem.extent, ConvolutionLoop::k) *= problem.groups;
    problem.groups = 1;
    return problem;
}

std::optional<DividedBanks> divide_banks(const ConvolutionProblem& problem, const BlockOrder& order, const BankedBuffer& buffer,
                                         SpillEvaluator evaluator) {
    if (buffer.banks < 3) return {};
    BankCurves curves;
    for (std::vector<int64_t>& curve : curves) curve.assign(static_cast<size_t>(buffer.banks - 2), 0);
    KnownSpills known;
    const ExactDivision division = exact_division(problem, order, buffer, evaluator, curves, infinite, known);
    if (!division.best) return {};
    return divided(problem, *division.best, order, buffer, evaluator);
}

std::variant<LayerOptimum, BufferTooSmall> layer_optimum(const ConvolutionProblem& problem, const BankedBuffer& buffer,
                                                         SpillEvaluator evaluator) {
    // A block of one iteration is one word of each tensor.
    if (buffer.banks < 3) return BufferTooSmall{3};
    Search search(problem, buffer, evaluator);
    if (evaluator == SpillEvaluator::belady) {
        // A good start: what is best by the formula, which is fast; all of its prefixes, for the stream of the whole may be too long.
        Search by_formula(problem, buffer, SpillEvaluator::eq7);
        by_formula.run();
        for (BlockOrder order = by_formula.best_order(); !order.empty(); order.pop_back()) search.evaluate(order, search.root().curves);
    }
    search.run();
    LayerOptimum optimum;
    optimum.order = search.best_order();
    optimum.division = divided(problem, *search.best(), optimum.order, buffer, evaluator);
    optimum.dram_words = checked_add(compulsory_words(problem), optimum.division.extra_words());
    optimum.nodes = search.nodes();
    optimum.lower_bound_words =
        compulsory_words(problem) + checked_multiply(std::min(search.best()->words, search.unproven()), problem.groups);
    return optimum;
}

std::optional<int64_t> prefix_bound(const ConvolutionProblem& problem, const BlockOrder& prefix, const BankedBuffer& buffer) {
    if (buffer.banks < 3) return {};
    const Search search(problem, buffer, SpillEvaluator::eq7);
    Prefix state = search.root();
    for (const BlockLoop& l : prefix) {
        const auto loop = static_cast<size_t>(l.loop);
        const std::vector<int64_t>& candidates = search.candidates(loop);
        const auto found = std::find(candidates.begin(), candidates.end(), l.block);
        if (found == candidates.end()) return {};
        state = search.extended(state, loop, static_cast<size_t>(found - candidates.begin()));
    }
    const int64_t words = search.bound(state);
    if (words >= infinite) return {};
    return words;
}

}  // namespace laminate
