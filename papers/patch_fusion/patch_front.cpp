#include "papers/patch_fusion/patch_front.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "base/units.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/schedule/window.h"

namespace laminate::patch_fusion {

namespace {

using search::Archive;
using search::Cost;

double as_double(int64_t value) { return static_cast<double>(value); }
int64_t as_integer(double value) { return static_cast<int64_t>(value); }

/// A segment of a block under construction, after another one.
struct Chain {
    Segment segment;
    std::shared_ptr<const Chain> before;
};
using ChainPtr = std::shared_ptr<const Chain>;

/// A block after other blocks.
struct Blocks {
    ChainPtr last;
    int64_t bytes = 0;
    int64_t macs = 0;
    std::shared_ptr<const Blocks> before;
};
using BlocksPtr = std::shared_ptr<const Blocks>;

/// Fronts of (MACs, bytes): MACs are the accesses of a Cost, so two axes suffice.
using Schedules = Archive<BlocksPtr>;
/// Fronts of chains of segments: rings add up (accesses of a Cost), of windows the largest counts
/// (memory), MACs add up.
using Chains = Archive<ChainPtr>;

struct Priced {
    Segment segment;
    SegmentCost cost;
};

/// MACs of the layers before each that every schedule does, and of all. Rows and columns that no
/// reader needs may be left out: the last of 7 before a pool of 2 with stride 2.
std::vector<int64_t> least_macs_before(const PatchGraph& graph) {
    const auto count = static_cast<size_t>(graph.size());
    std::vector<std::array<Range, 2>> needed(count);
    std::vector<int64_t> before(count + 1);
    for (size_t n = count; n-- > 0;) {
        const PatchMap& map = graph.maps[n];
        const PatchLayer& layer = graph.layers[n];
        if (map.is_output) needed[n] = {Range{0, map.height}, Range{0, map.width}};
        const bool has_windows = layer.intake == Intake::windows;
        before[n + 1] = has_windows ? layer.macs_of(needed[n][0], needed[n][1]) : layer.macs;
        for (const int input : layer.inputs) {
            if (input >= graph.size()) continue;
            const std::array<int64_t, 2> all{graph.map(input).height, graph.map(input).width};
            for (size_t axis = 0; axis < 2; ++axis)
                needed[static_cast<size_t>(input)][axis].extend(
                    has_windows ? window_of(layer.window[axis], needed[n][axis])
                                : Range{0, all[axis]});
        }
    }
    std::partial_sum(before.begin(), before.end(), before.begin());
    return before;
}

class Search {
public:
    Search(const PatchGraph& graph, const std::atomic<bool>* stop)
        : graph_(graph), stop_(stop), layers_(graph.size()) {}

    PatchFront run() {
        price_segments();
        // Blocks of one segment first. What their schedules beat no block of several needs.
        find_schedules([&](int first) { return single_segments(first); });
        Schedules best = std::move(best_.back());
        known_ = &best;
        find_schedules([&](int first) { return all_blocks(first); });
        const Schedules more = std::move(best_.back());
        for (size_t n = 0; n < more.size(); ++n) best.offer(more.costs()[n], more.items()[n]);
        PatchFront front;
        front.is_complete = !is_stopped();
        for (size_t n = 0; n < best.size(); ++n)
            front.points.push_back(point(best.costs()[n], best.items()[n]));
        return front;
    }

private:
    [[nodiscard]] static size_t at(int layer) { return static_cast<size_t>(layer); }
    [[nodiscard]] bool is_stopped() const { return stop_ != nullptr && *stop_; }

    /// The fewest rows for every number of strips.
    static std::vector<int64_t> strip_rows(int64_t height) {
        std::vector<int64_t> rows;
        for (int64_t strips = 1; strips <= height; ++strips) {
            const int64_t r = ceil_div(height, strips);
            if (rows.empty() || rows.back() != r) rows.push_back(r);
        }
        return rows;
    }

    void price_segments() {
        segments_.resize(at(layers_));
        least_macs_ = least_macs_before(graph_);
        for (int first = 0; first < layers_; ++first) {
            segments_[at(first)].resize(at(layers_ - first));
            for (int last = first; last < layers_; ++last) {
                if (!is_segment(graph_, first, last)) continue;
                const std::vector<Columns> columns = segment_columns(graph_, first, last);
                for (const int64_t rows : strip_rows(strip_extent(graph_, last))) {
                    const Segment segment{first, last, rows};
                    segments_[at(first)][at(last - first)].push_back(
                        {segment, segment_cost(graph_, segment, columns)});
                }
            }
        }
    }

    [[nodiscard]] const std::vector<Priced>& segments(int first, int last) const {
        return segments_[at(first)][at(last - first)];
    }

    /// Adds a block of these segments to the front of blocks of the same layers.
    static void finish(const ChainPtr& chain, const Cost& cost, int64_t whole,
                       Schedules& blocks) {
        const double bytes = as_double(whole) + cost.accesses + cost.memory;
        blocks.offer({cost.macs, bytes, 0},
                     std::make_shared<Blocks>(
                         Blocks{chain, as_integer(bytes), as_integer(cost.macs), nullptr}));
    }

    /// Returns the front of the blocks from `first` to every last layer.
    [[nodiscard]] std::vector<Schedules> single_segments(int first) const {
        std::vector<Schedules> blocks(at(layers_ - first), Schedules(false));
        for (int last = first; last < layers_; ++last) {
            for (const Priced& priced : segments(first, last)) {
                finish(std::make_shared<Chain>(Chain{priced.segment, nullptr}),
                       {0, as_double(priced.cost.window_bytes), as_double(priced.cost.macs)},
                       whole_bytes(graph_, first, last), blocks[at(last - first)]);
            }
        }
        return blocks;
    }

    /// Whether a known schedule is as good as any with this block, of which the layers up to `last`
    /// are decided.
    [[nodiscard]] bool is_beaten(const Cost& chain, int64_t whole, int first, int last) const {
        const int64_t others =
            least_macs_.back() - (least_macs_[at(last) + 1] - least_macs_[at(first)]);
        return known_->beats_all_above(
            {chain.macs + as_double(others), chain.accesses + chain.memory + as_double(whole), 0});
    }

    [[nodiscard]] std::vector<Schedules> all_blocks(int first) const {
        std::vector<Schedules> blocks(at(layers_ - first), Schedules(false));
        const int64_t inputs = whole_bytes(graph_, first, first - 1);
        // Chains are kept by the last layer and the rows of a strip of the last segment.
        std::vector<std::map<int64_t, Chains>> open(at(layers_ - first));
        const auto offer = [&](const Priced& next, const Cost& cost, const ChainPtr& before) {
            const int last = next.segment.last;
            if (is_beaten(cost, inputs, first, last)) return;
            auto [chains, is_new] =
                open[at(last - first)].try_emplace(next.segment.rows, Chains(true));
            if (!chains->second.beats_all_above(cost))
                chains->second.offer(cost, std::make_shared<Chain>(Chain{next.segment, before}));
        };
        for (int last = first; last < layers_; ++last) {
            for (const Priced& next : segments(first, last))
                offer(next,
                      {0, as_double(next.cost.window_bytes), as_double(next.cost.macs)}, nullptr);
        }
        for (int last = first; last < layers_ && !is_stopped(); ++last) {
            const int64_t whole = whole_bytes(graph_, first, last);
            for (const auto& [rows, chains] : open[at(last - first)]) {
                for (size_t n = 0; n < chains.size(); ++n) {
                    finish(chains.items()[n], chains.costs()[n], whole, blocks[at(last - first)]);
                }
                if (last + 1 < layers_ && can_be_ring(graph_, first, last))
                    extend(chains, last, offer);
            }
            open[at(last - first)].clear();
        }
        return blocks;
    }

    /// Offers every chain that ends with `last` together with every segment that may follow it.
    template <class Offer>
    void extend(const Chains& chains, int last, const Offer& offer) const {
        for (int end = std::max(last + 1, graph_.map(last).last_reader()); end < layers_; ++end) {
            for (const Priced& next : segments(last + 1, end)) {
                const Segment& before = chains.items().front()->segment;
                const Cost added{as_double(ring_bytes(graph_, before, next.cost)),
                                 as_double(next.cost.window_bytes), as_double(next.cost.macs)};
                for (size_t n = 0; n < chains.size(); ++n)
                    offer(next, together(chains.costs()[n], added), chains.items()[n]);
            }
        }
    }

    template <class BlocksFrom>
    void find_schedules(const BlocksFrom& blocks_from) {
        best_.assign(at(layers_) + 1, Schedules(false));
        best_.front().offer({}, nullptr);
        for (int first = 0; first < layers_; ++first) {
            const std::vector<Schedules> blocks = blocks_from(first);
            for (int last = first; last < layers_; ++last) {
                search::add_pairs(best_[at(first)], blocks[at(last - first)], best_[at(last) + 1],
                                  [](const BlocksPtr& before, const BlocksPtr& block) {
                                      return std::make_shared<Blocks>(
                                          Blocks{block->last, block->bytes, block->macs, before});
                                  });
            }
        }
    }

    [[nodiscard]] PatchPoint point(const Cost& cost, BlocksPtr blocks) const {
        PatchPoint point{as_integer(cost.memory), as_integer(cost.accesses), {}};
        for (; blocks != nullptr; blocks = blocks->before) {
            PatchBlock block;
            for (ChainPtr chain = blocks->last; chain != nullptr; chain = chain->before)
                block.segments.push_back(chain->segment);
            std::reverse(block.segments.begin(), block.segments.end());
            block.bytes = blocks->bytes;
            block.macs = blocks->macs;
            point.blocks.push_back(std::move(block));
        }
        std::reverse(point.blocks.begin(), point.blocks.end());
        return point;
    }

    const PatchGraph& graph_;
    const std::atomic<bool>* stop_;
    int layers_;
    std::vector<int64_t> least_macs_;  ///< least_macs_before()
    std::vector<std::vector<std::vector<Priced>>> segments_;
    std::vector<Schedules> best_;  ///< of the layers before each
    const Schedules* known_ = nullptr;
};

}  // namespace

int64_t whole_bytes(const PatchGraph& graph, int first, int last) {
    int64_t bytes = 0;
    for (int n = 0; n < first; ++n)
        if (graph.map(n).last_reader() >= first) bytes += graph.map(n).bytes();
    return last < first ? bytes : bytes + graph.map(last).bytes();
}

int64_t ring_bytes(const PatchGraph& graph, const Segment& before, const SegmentCost& after) {
    const PatchMap& map = graph.map(before.last);
    int64_t made = 0;
    int64_t most = 0;
    for (const Range& rows : after.rows_before) {
        if (rows.empty()) continue;
        if (rows.end > made)
            made = std::min(ceil_div(rows.end, before.rows) * before.rows, map.height);
        most = std::max(most, made - rows.begin);
    }
    return most * map.row_bytes();
}

bool can_be_ring(const PatchGraph& graph, int first, int at) {
    const PatchMap& map = graph.map(at);
    if (map.is_output || map.readers.empty()) return false;
    for (int n = first; n < at; ++n)
        if (graph.map(n).last_reader() > at || graph.map(n).is_output) return false;
    return true;
}

PatchFront patch_front(const PatchGraph& graph, const std::atomic<bool>* stop) {
    return Search(graph, stop).run();
}

}  // namespace laminate::patch_fusion
