#include "papers/layer_optimum/optimum.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/units.h"
#include "papers/layer_optimum/prefix_bounds.h"

namespace laminate {

namespace {

class Search {
public:
    Search(const ConvolutionProblem& problem, const BankedBuffer& buffer, SpillEvaluator evaluator,
           const StreamLimits& limits)
        : problem_(problem),
          buffer_(buffer),
          evaluator_(evaluator),
          bounds_(problem, buffer, {.evaluator = evaluator}),
          known_{{}, limits.longest, limits.together} {}

    /// Short orders first: a good one is found soon, and without one the long ones would take many
    /// more nodes. Orders that need long streams wait: what time there is for them is spent on
    /// those of the least bounds.
    void run() {
        const int64_t longest = std::exchange(known_.longest, known_.longest / shorter_streams);
        in_passes([&] { visit(bounds_.root()); });
        known_.longest = longest;
        std::stable_sort(waiting_.begin(), waiting_.end(),
                         [](const Waiting& a, const Waiting& b) { return a.bound < b.bound; });
        for (const Waiting& order : waiting_) {
            if (order.bound >= best_words_) break;
            const ExactDivision division = evaluate(order.order, zero_curves(buffer_));
            // The bounds of its prefix, which are not looked at again, may have been closer.
            unproven_ = std::min(unproven_, std::max(order.bound, division.unproven));
        }
    }
    /// Of the orders with as few words, one with the fewest sram_words().
    void break_ties() {
        best_sram_words_ = sram_words(problem_, best_order_);
        in_passes([&] { visit_tie(bounds_.root()); });
    }

    /// Takes the order as the best so far if it is.
    ExactDivision evaluate(const BlockOrder& order, const BankCurves& bounds) {
        ExactDivision division =
            exact_division(problem_, order, buffer_, evaluator_, bounds, best_words_, known_);
        if (division.best) {
            best_ = division.best;
            best_words_ = division.best->words;
            best_order_ = order;
        }
        return division;
    }
    /// Neighbouring loops of the best order exchanged, as long as that makes it better.
    void exchange_neighbours() {
        for (int64_t before = infinite_words; best_words_ < before;) {
            before = best_words_;
            const BlockOrder best = best_order_;
            for (size_t p = 1; p < best.size(); ++p) {
                BlockOrder order = best;
                std::swap(order[p - 1], order[p]);
                (void)evaluate(order, zero_curves(buffer_));
            }
        }
    }
    [[nodiscard]] int64_t unproven() const { return unproven_; }
    [[nodiscard]] int64_t nodes() const { return nodes_; }
    [[nodiscard]] const std::optional<Division>& best() const { return best_; }
    [[nodiscard]] const BlockOrder& best_order() const { return best_order_; }

private:
    /// Once for orders of at most two loops, three, four, and all of them.
    template <class Pass>
    void in_passes(const Pass& pass) {
        depth_before_ = -1;
        for (const size_t depth : {size_t{2}, size_t{3}, size_t{4}, convolution_loops.size()}) {
            depth_ = depth;
            pass();
            depth_before_ = static_cast<int64_t>(depth);
        }
    }
    /// Shorter ones were evaluated in the passes before, when no fewer of them were visited.
    [[nodiscard]] bool is_new(const Prefix& prefix) const {
        return static_cast<int64_t>(prefix.order.size()) > depth_before_;
    }

    void visit(const Prefix& prefix) {
        if (!bounds_.may_be_below(
                prefix, bounds_.least_banks(prefix, bounds_.smallest_blocks(prefix)), best_words_))
            return;
        ++nodes_;
        if (is_new(prefix) &&
            bounds_.may_be_below(prefix,
                                 bounds_.least_banks(prefix, block_extents(problem_, prefix.order)),
                                 best_words_)) {
            const ExactDivision division = evaluate(prefix.order, bounds_.curves(prefix));
            if (division.unproven < best_words_)
                waiting_.push_back({division.unproven, prefix.order});
        }
        if (prefix.order.size() == depth_) return;
        for (const Extension& e :
             bounds_.extensions(prefix, [&](ConvolutionLoop, size_t) { return best_words_; })) {
            if (e.bound >= best_words_) break;
            visit(bounds_.extended(prefix, e.loop, e.candidate));
        }
    }

    void visit_tie(const Prefix& prefix) {
        const int64_t limit = best_words_ + 1;
        if (!bounds_.may_be_below(
                prefix, bounds_.least_banks(prefix, bounds_.smallest_blocks(prefix)), limit))
            return;
        ++nodes_;
        if (is_new(prefix) &&
            bounds_.may_be_below(prefix,
                                 bounds_.least_banks(prefix, block_extents(problem_, prefix.order)),
                                 limit)) {
            const ExactDivision division = exact_division(
                problem_, prefix.order, buffer_, evaluator_, bounds_.curves(prefix), limit, known_);
            if (division.best) {
                best_ = division.best;
                best_words_ = division.best->words;
                best_order_ = prefix.order;
                best_sram_words_ = sram_words(problem_, prefix.order);
            }
        }
        if (prefix.order.size() == depth_) return;
        // Extensions have no fewer SRAM words: more block computations, of blocks that together are
        // no smaller.
        const LoopExtents blocks = block_extents(problem_, prefix.order);
        const auto sram_of = [&](ConvolutionLoop loop, size_t candidate) {
            LoopExtents next = blocks;
            next[loop] = bounds_.candidates(loop)[candidate];
            return sram_words_of_blocks(problem_, next);
        };
        std::vector<std::pair<int64_t, Extension>> cheaper;
        for (const Extension& e :
             bounds_.extensions(prefix, [&](ConvolutionLoop loop, size_t candidate) {
                 return sram_of(loop, candidate) < best_sram_words_ ? limit : 0;
             }))
            cheaper.emplace_back(sram_of(e.loop, e.candidate), e);
        std::stable_sort(cheaper.begin(), cheaper.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [sram, e] : cheaper) {
            if (sram >= best_sram_words_) break;
            if (e.bound <= best_words_) visit_tie(bounds_.extended(prefix, e.loop, e.candidate));
        }
    }

    const ConvolutionProblem& problem_;
    BankedBuffer buffer_;
    SpillEvaluator evaluator_;
    PrefixBounds bounds_;
    std::optional<Division> best_;
    BlockOrder best_order_;
    int64_t best_words_ = infinite_words;
    int64_t unproven_ = infinite_words;
    KnownSpills known_;
    size_t depth_ = 0;           ///< longest order of this pass
    int64_t depth_before_ = -1;  ///< and of the one before; -1: there was none
    int64_t best_sram_words_ = 0;
    int64_t nodes_ = 0;

    /// An order some divisions of which have a stream that is not gone through at once, and what
    /// these have at least.
    struct Waiting {
        int64_t bound = 0;
        BlockOrder order;
    };
    static constexpr int64_t shorter_streams = 64;
    std::vector<Waiting> waiting_;
};

}  // namespace

int64_t compulsory_words(const ConvolutionProblem& problem) {
    int64_t words = 0;
    for (const Operand operand : all_operands)
        words = checked_add(words, tensor_words(problem, operand));
    return words;
}

int64_t io_lower_bound_words(const ConvolutionProblem& problem, int64_t buffer_words) {
    double macs = 1;
    for (const int64_t extent : problem.extent) macs *= static_cast<double>(extent);
    double reuse = 1;
    for (const MapAxis axis : map_axes) {
        // Taps that a word along the axis serves at most: those that are a multiple of the stride
        // apart.
        const auto [stride, dilation] = problem.steps[axis];
        const int64_t apart = stride / std::gcd(stride, dilation);
        reuse *= static_cast<double>(std::min(ceil_div(problem.extent[taps_along(axis)], apart),
                                              problem.extent[outputs_along(axis)]));
    }
    const auto words = static_cast<double>(buffer_words);
    const double phases = 2 * macs / std::sqrt(reuse * words) - 2 * words;
    // One word less for the rounding of doubles.
    const int64_t bound =
        phases <= 1 ? 0 : static_cast<int64_t>(std::floor(phases * (1 - 1e-12))) - 1;
    return std::max(compulsory_words(problem), checked_multiply(bound, problem.groups));
}

int64_t sram_words_of_blocks(const ConvolutionProblem& problem, const LoopExtents& blocks) {
    int64_t words = 0;
    for (const Operand operand : all_operands)
        words = checked_add(words, checked_multiply(spill_traffic(operand),
                                                    touched_words(problem, operand, blocks)));
    return checked_multiply(words, block_computations(problem, blocks));
}
int64_t sram_words(const ConvolutionProblem& problem, const BlockOrder& order) {
    return sram_words_of_blocks(problem, block_extents(problem, order));
}

int64_t block_computations(const ConvolutionProblem& problem, const LoopExtents& blocks) {
    int64_t computations = problem.groups;
    for (const ConvolutionLoop loop : convolution_loops)
        computations = checked_multiply(computations, ceil_div(problem.extent[loop], blocks[loop]));
    return computations;
}

ConvolutionProblem with_groups_as_published(ConvolutionProblem problem) {
    problem.extent[ConvolutionLoop::k] *= problem.groups;
    problem.groups = 1;
    return problem;
}

std::variant<LayerOptimum, BufferTooSmall> layer_optimum(const ConvolutionProblem& problem,
                                                         const BankedBuffer& buffer,
                                                         SpillEvaluator evaluator,
                                                         const StreamLimits& limits) {
    // A block of one iteration is one word of each tensor.
    if (buffer.banks < 3) return BufferTooSmall{3};
    Search search(problem, buffer, evaluator, limits);
    if (evaluator == SpillEvaluator::belady) {
        // A good start: what is best by the formula, which is fast; all of its prefixes, for the
        // stream of the whole may be too long.
        Search by_formula(problem, buffer, SpillEvaluator::eq7, limits);
        by_formula.run();
        for (BlockOrder order = by_formula.best_order(); !order.empty(); order.pop_back())
            (void)search.evaluate(order, zero_curves(buffer));
        search.exchange_neighbours();
    }
    search.run();
    const int64_t nodes = search.nodes();
    if (!search.best()) return BufferTooSmall{};
    search.break_ties();
    LayerOptimum optimum;
    optimum.order = search.best_order();
    optimum.division = divided_banks(problem, *search.best(), optimum.order, buffer, evaluator);
    optimum.dram_words = checked_add(compulsory_words(problem), optimum.division.extra_words());
    optimum.nodes = nodes;
    optimum.tie_nodes = search.nodes() - nodes;
    optimum.lower_bound_words =
        compulsory_words(problem) +
        checked_multiply(std::min(search.best()->words, search.unproven()), problem.groups);
    return optimum;
}

std::optional<int64_t> prefix_bound(const ConvolutionProblem& problem, const BlockOrder& prefix,
                                    const BankedBuffer& buffer, SpillEvaluator evaluator) {
    if (buffer.banks < 3) return {};
    const PrefixBounds bounds(problem, buffer, {.evaluator = evaluator});
    Prefix state = bounds.root();
    int64_t words = 0;
    const auto least = [&] { return bounds.least_banks(state, bounds.smallest_blocks(state)); };
    for (const BlockLoop& l : prefix) {
        const std::vector<int64_t>& candidates = bounds.candidates(l.loop);
        const auto found = std::find(candidates.begin(), candidates.end(), l.block);
        if (found == candidates.end()) return {};
        const auto candidate = static_cast<size_t>(found - candidates.begin());
        words =
            std::max(words, bounds.bound(state, bounds.hinges(state, l.loop, candidate), least()));
        state = bounds.extended(state, l.loop, candidate);
    }
    words = std::max(words, bounds.bound(state, {}, least()));
    if (words >= infinite_words || !bounds.may_be_below(state, least(), infinite_words)) return {};
    return std::max(
        words, least_division(bounds.curves(state), buffer.banks, least(), infinite_words).words);
}

}  // namespace laminate
