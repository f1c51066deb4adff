#include "papers/layer_optimum/dram_sram_front.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "papers/layer_optimum/optimum.h"
#include "papers/layer_optimum/prefix_bounds.h"

namespace laminate {

namespace {

class FrontSearch {
public:
    FrontSearch(const ConvolutionProblem& problem, const BankedBuffer& buffer,
                const std::optional<RegisterArray>& registers, int64_t most_sram_words,
                const std::atomic<bool>* stop)
        : problem_(problem),
          buffer_(buffer),
          bounds_(problem, buffer),
          most_sram_words_(most_sram_words),
          stop_(stop) {
        if (registers) mapper_.emplace(problem, *registers, stop);
    }

    /// Short orders first: they soon give points that cut the long ones.
    void run() {
        size_t before = 0;
        for (const size_t depth : {size_t{2}, size_t{3}, size_t{4}, convolution_loops.size()}) {
            depth_ = depth;
            evaluated_ = before;
            visit(bounds_.root());
            before = depth + 1;
        }
    }
    [[nodiscard]] int64_t nodes() const { return nodes_; }
    [[nodiscard]] bool is_stopped() const {
        return stop_ != nullptr && stop_->load(std::memory_order_relaxed);
    }

    struct Point {
        BlockOrder order;
        Division division;
        std::optional<RegisterMapping> registers;
    };
    /// By SRAM words, of each the least extra words; extra words fall.
    [[nodiscard]] const std::map<int64_t, Point>& points() const { return points_; }

private:
    /// Extra words that an order with so many SRAM words has to stay below.
    [[nodiscard]] int64_t limit(int64_t sram) const {
        if (sram > most_sram_words_) return 0;
        const auto after = points_.upper_bound(sram);
        return after == points_.begin() ? infinite_words : std::prev(after)->second.division.words;
    }

    /// The least SRAM words, at most most_sram_words_, from which on an order of so many extra
    /// words is worth nothing.
    [[nodiscard]] int64_t worthless_from(int64_t extra_words) const {
        for (const auto& [sram, point] : points_)
            if (point.division.words <= extra_words) return sram;
        return most_sram_words_ == INT64_MAX ? INT64_MAX : most_sram_words_ + 1;
    }

    /// What is known of the mappings of a block.
    struct KnownMapping {
        std::optional<RegisterMapping> best;
        int64_t none_below = 0;  ///< extra accesses
    };
    [[nodiscard]] const RegisterMapping* mapping(const LoopExtents& blocks, int64_t below) {
        KnownMapping& known = mappings_[blocks];
        if (!known.best && below > known.none_below) {
            known.best = mapper_->fewest_extra(blocks, below);
            known.none_below = known.best ? known.best->extra_words() : below;
        }
        return known.best && known.best->extra_words() < below ? &*known.best : nullptr;
    }

    /// Takes the order in if the registers can serve it with so few extra accesses that no point is
    /// as good.
    void take(const BlockOrder& order, const Division& division, int64_t sram) {
        Point point{order, division, {}};
        if (mapper_) {
            const LoopExtents blocks = block_extents(problem_, order);
            const int64_t computations = block_computations(problem_, blocks);
            const RegisterMapping* registers =
                mapping(blocks, ceil_div(worthless_from(division.words) - sram, computations));
            if (registers == nullptr) return;
            point.registers = *registers;
            sram += checked_multiply(registers->extra_words(), computations);
        }
        points_[sram] = point;
        for (auto next = points_.upper_bound(sram);
             next != points_.end() && next->second.division.words >= division.words;)
            next = points_.erase(next);
    }

    void visit(const Prefix& prefix) {
        if (is_stopped()) return;
        ++nodes_;
        // Extensions have no fewer SRAM words: more block computations, of blocks that together are
        // no smaller.
        const LoopExtents blocks = block_extents(problem_, prefix.order);
        if (prefix.order.size() >= evaluated_) {
            const int64_t sram = sram_words_of_blocks(problem_, blocks);
            const int64_t below = limit(sram);
            if (bounds_.bound(prefix, {}, bounds_.least_banks(prefix, blocks)) < below) {
                const ExactDivision division =
                    exact_division(problem_, prefix.order, buffer_, SpillEvaluator::eq7,
                                   prefix.curves, below, known_);
                if (division.best) take(prefix.order, *division.best, sram);
            }
        }
        if (prefix.order.size() == depth_) return;
        const auto limit_of = [&](ConvolutionLoop loop, size_t candidate) {
            LoopExtents next = blocks;
            next[loop] = bounds_.candidates(loop)[candidate];
            return limit(sram_words_of_blocks(problem_, next));
        };
        for (const Extension& e : bounds_.extensions(prefix, limit_of))
            if (e.bound < limit_of(e.loop, e.candidate))
                visit(bounds_.extended(prefix, e.loop, e.candidate));
    }

    const ConvolutionProblem& problem_;
    BankedBuffer buffer_;
    PrefixBounds bounds_;
    int64_t most_sram_words_;
    const std::atomic<bool>* stop_;
    std::optional<RegisterMapper> mapper_;
    std::map<LoopExtents, KnownMapping> mappings_;
    std::map<int64_t, Point> points_;
    KnownSpills known_;
    size_t depth_ = 0;      ///< longest order of this pass
    size_t evaluated_ = 0;  ///< shorter ones were evaluated in the passes before
    int64_t nodes_ = 0;
};

}  // namespace

DramSramFront dram_sram_front(const ConvolutionProblem& problem, const BankedBuffer& buffer,
                              const std::optional<RegisterArray>& registers,
                              int64_t most_sram_words, const std::atomic<bool>* stop) {
    DramSramFront front;
    if (buffer.banks < 3) return front;
    FrontSearch search(problem, buffer, registers, most_sram_words, stop);
    search.run();
    front.nodes = search.nodes();
    front.is_complete = !search.is_stopped();
    for (const auto& [sram, point] : search.points()) {
        DramSramPoint& p = front.points.emplace_back();
        p.order = point.order;
        p.division =
            divided_banks(problem, point.division, point.order, buffer, SpillEvaluator::eq7);
        p.dram_words = checked_add(compulsory_words(problem), p.division.extra_words());
        p.sram_words = sram;
        p.registers = point.registers;
    }
    return front;
}

const DramSramPoint& choose(const DramSramFront& front, double weight) {
    const auto cost = [&](const DramSramPoint& p) {
        return static_cast<double>(p.dram_words) + weight * static_cast<double>(p.sram_words);
    };
    return *std::min_element(
        front.points.begin(), front.points.end(),
        [&](const DramSramPoint& a, const DramSramPoint& b) { return cost(a) < cost(b); });
}

}  // namespace laminate
