#include "papers/layer_optimum/register_mapping.h"

#include <algorithm>
#include <set>

#include "base/units.h"
#include "papers/layer_optimum/prefix_bounds.h"
#include "papers/layer_optimum/spill_formula.h"

namespace laminate {

namespace {

/// Appends to `batches` every spread of `lanes` over the loops from number `first` on that `taken`
/// leaves.
void spread(int64_t lanes, size_t first, LoopExtents& batch, std::vector<LoopExtents>& batches,
            const LoopExtents& taken) {
    if (first == convolution_loops.size()) {
        if (lanes == 1) batches.push_back(batch);
        return;
    }
    const ConvolutionLoop loop = convolution_loops.values.at(first);
    for (int64_t p = 1; p <= lanes; ++p) {
        if (lanes % p != 0 || (p > 1 && taken[loop] > 1)) continue;
        batch[loop] = p;
        spread(lanes / p, first + 1, batch, batches, taken);
        batch[loop] = 1;
    }
}

/// Orders of the loops with x beside y and m beside n. First the one in which outputs stay and
/// channels come one by one ("cmnfxyk"), which most block computations can use.
std::vector<std::vector<ConvolutionLoop>> pe_orders() {
    using enum ConvolutionLoop;
    std::vector<std::vector<ConvolutionLoop>> orders{{c, m, n, f, x, y, k}};
    std::vector<std::string> parts{"c", "f", "k", "mn", "xy"};
    do {
        std::vector<ConvolutionLoop> order;
        for (const std::string& part : parts)
            for (const char name : part) order.push_back(loop_named(name).value());
        if (order != orders.front()) orders.push_back(std::move(order));
    } while (std::next_permutation(parts.begin(), parts.end()));
    return orders;
}

/// The iterations of a PE: of each loop those of a block, divided among so many lanes.
LoopExtents share_of(const LoopExtents& blocks, const LoopExtents& lanes) {
    LoopExtents share;
    for (const ConvolutionLoop loop : convolution_loops)
        share[loop] = ceil_div(blocks[loop], lanes[loop]);
    return share;
}

ConvolutionProblem share_problem(const ConvolutionProblem& problem, const LoopExtents& share) {
    ConvolutionProblem of_share = problem;
    of_share.name.clear();
    of_share.extent = share;
    of_share.groups = 1;
    of_share.finished = {};  // what leaves a block for a pool leaves the registers as any output
    return of_share;
}

/// How the PEs of an array have one tensor of a block computation in common.
class ArrayTensor {
public:
    ArrayTensor(const ConvolutionProblem& problem, Operand operand, const LoopExtents& blocks,
                const LoopExtents& share)
        : operand_(operand), share_(share) {
        const TensorAccess access = tensor_access(problem, operand);
        traffic_ = access.traffic;
        has_windows_ =
            operand != Operand::weight && (operand == Operand::output) == problem.transposed;
        const auto lanes_of = [&](ConvolutionLoop loop) {
            return ceil_div(blocks[loop], share[loop]);
        };
        for (const ConvolutionLoop loop : convolution_loops) {
            const bool is_of_windows = has_windows_ && (is_output_loop(loop) || is_tap_loop(loop));
            if (access[loop] == LoopRole::reuse || is_of_windows) continue;
            lanes_ *= lanes_of(loop);
            plain_words_ *= blocks[loop];
        }
        if (!has_windows_) return;
        for (const MapAxis a : map_axes) {
            WordsAlong& along = along_[a];
            along.of_block = problem.touched(a, blocks);
            along.of_lane = problem.touched(a, share);
            // Without overlap each word is one lane's.
            along.of_lanes = access.is_partial(a) ? lanes_of(outputs_along(a)) *
                                                        lanes_of(taps_along(a)) * along.of_lane
                                                  : along.of_block;
        }
    }
    /// Whether lanes share words along an axis, so that it matters when the words come.
    [[nodiscard]] bool lanes_overlap(MapAxis axis) const {
        return along_[axis].of_lanes > along_[axis].of_block;
    }
    /// Words of all lanes for one of a PE, at least. `together`: whether the words of an axis come
    /// to its lanes at the same time.
    [[nodiscard]] int64_t least_factor(const PerAxis<bool>& together) const {
        return std::max<int64_t>(lanes_ * of_all_lanes(together) / of_one_lane(), 1);
    }
    /// Accesses beyond the block once where nothing spills.
    [[nodiscard]] int64_t doubled(const PerAxis<bool>& together) const {
        int64_t once = plain_words_;
        for (const WordsAlong& along : along_) once *= along.of_block;
        return (plain_words_ * of_all_lanes(together) - once) * traffic_;
    }
    [[nodiscard]] int64_t traffic() const { return traffic_; }

    /// Of blocks of the share in an order.
    class InOrder {
    public:
        InOrder(const ArrayTensor& tensor, const ConvolutionProblem& of_share,
                const BlockOrder& order)
            : tensor_(tensor), groups_(reuse_groups(of_share, tensor.operand_, order)) {
            if (!tensor.has_windows_) return;
            // Loops from one on may be taken together without more spills where it is a reuse loop,
            // or none outside it uses words again (belady.h, needed_order()).
            const TensorAccess access = tensor_access(of_share, tensor.operand_);
            LoopExtents inside = tensor.share_;
            int64_t together = 0;
            bool is_used_again = false;
            for (const BlockLoop& l : order) {
                if (access[l.loop] == LoopRole::reuse || !is_used_again)
                    together = touched_words(of_share, tensor.operand_, inside);
                is_used_again |= access[l.loop] != LoopRole::related;
                if (is_output_loop(l.loop) || is_tap_loop(l.loop)) {
                    int64_t& held = held_[axis_of(l.loop)];
                    if (held == 0) held = together;
                }
                inside[l.loop] = l.block;
            }
        }
        [[nodiscard]] int64_t least_words() const { return groups_.block; }
        [[nodiscard]] int64_t extra(int64_t memory) const {
            const int64_t spills = formula_spills(groups_, memory);
            PerAxis<bool> together{};
            for (const MapAxis a : map_axes) together[a] = memory >= held_[a];
            const int64_t all_lanes = tensor_.lanes_ * tensor_.of_all_lanes(together);
            const int64_t again =
                ceil_div(checked_multiply(spills, all_lanes), tensor_.of_one_lane());
            return checked_add(checked_multiply(again, tensor_.traffic_),
                               tensor_.doubled(together));
        }

    private:
        const ArrayTensor& tensor_;
        TensorGroups groups_;
        /// Words that must fit for those of an axis to come together; 0: it is not cut.
        PerAxis<int64_t> held_{};
    };

private:
    /// Words along an axis with windows.
    struct WordsAlong {
        int64_t of_block = 1;
        int64_t of_lane = 1;
        int64_t of_lanes = 1;  ///< of each lane, together
    };
    Operand operand_;
    LoopExtents share_;
    int64_t traffic_ = 1;
    bool has_windows_ = false;
    int64_t lanes_ = 1;        ///< that hold different words, but for the axes with windows
    int64_t plain_words_ = 1;  ///< of the block, but for them
    PerAxis<WordsAlong> along_;

    [[nodiscard]] int64_t of_all_lanes(const PerAxis<bool>& together) const {
        int64_t words = 1;
        for (const MapAxis a : map_axes)
            words *= together[a] ? along_[a].of_block : along_[a].of_lanes;
        return words;
    }
    [[nodiscard]] int64_t of_one_lane() const {
        return along_[MapAxis::x].of_lane * along_[MapAxis::y].of_lane;
    }
};

/// The orders of one share: branch and bound over prefixes, as for the buffer, with registers for
/// banks of one word.
class ShareSearch {
public:
    ShareSearch(const ConvolutionProblem& problem, const LoopExtents& blocks,
                const LoopExtents& share, int64_t words, int64_t below,
                const std::atomic<bool>* stop)
        : share_(share_problem(problem, share)),
          registers_{words, 1},
          tensors_{ArrayTensor(problem, Operand::input, blocks, share),
                   ArrayTensor(problem, Operand::weight, blocks, share),
                   ArrayTensor(problem, Operand::output, blocks, share)},
          below_(below),
          stop_(stop) {
        using enum ConvolutionLoop;
        columns_like_rows_ = blocks[x] == blocks[y] && blocks[m] == blocks[n];
    }

    /// Finds orders in four parts: the words of columns, or rows, that lanes share come together,
    /// or for each lane.
    void run() {
        for (const bool columns : {true, false}) {
            for (const bool rows : {true, false}) {
                const ArrayTensor& windows = tensors_[share_.transposed ? 2 : 0];
                together_ = {columns, rows};
                if ((!columns && !windows.lanes_overlap(MapAxis::x)) ||
                    (!rows && !windows.lanes_overlap(MapAxis::y)))
                    continue;
                doubled_ = windows.doubled(together_);
                if (!can_be_below()) continue;
                BoundWeights weights;
                for (size_t t = 0; t < 3; ++t) weights.of[t] = tensors_[t].least_factor(together_);
                weights.columns_like_rows = columns_like_rows_ && columns == rows;
                weights.held = {columns && windows.lanes_overlap(MapAxis::x),
                                rows && windows.lanes_overlap(MapAxis::y)};
                bounds_.emplace(share_, registers_, weights);
                for (depth_ = 1; depth_ <= convolution_loops.size(); ++depth_)
                    visit(bounds_->root());
            }
        }
    }
    /// The division of the registers as that of banks.
    [[nodiscard]] const std::optional<Division>& best() const { return best_; }
    [[nodiscard]] const BlockOrder& best_order() const { return best_order_; }

private:
    /// Of whatever loop comes first, one tensor at least is used again, and the registers hold a
    /// part of it at most.
    [[nodiscard]] bool can_be_below() const {
        PerOperand words;
        for (size_t t = 0; t < 3; ++t)
            words[t] = touched_words(share_, all_operands[t], share_.extent);
        if (words[0] + words[1] + words[2] <= registers_.banks) return doubled_ < below_;
        for (const ConvolutionLoop loop : convolution_loops) {
            if (share_.extent[loop] == 1) continue;
            int64_t extra = doubled_;
            for (size_t t = 0; t < 3; ++t) {
                if (tensor_access(share_, all_operands[t])[loop] != LoopRole::reuse) continue;
                extra += std::max<int64_t>(words[t] - (registers_.banks - 2), 0) *
                         tensors_[t].least_factor(together_) * tensors_[t].traffic();
            }
            if (extra < below_) return true;
        }
        return false;
    }
    void visit(const Prefix& prefix) {
        if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return;
        if (prefix.order.size() == depth_ || depth_ == 1) {
            const PerOperand least =
                bounds_->least_banks(prefix, block_extents(share_, prefix.order));
            if (bounds_->bound(prefix, {}, least) + doubled_ < below_) evaluate(prefix, least);
        }
        if (prefix.order.size() == depth_) return;
        for (const Extension& e : bounds_->extensions(
                 prefix, [&](ConvolutionLoop, size_t) { return below_ - doubled_; })) {
            if (e.bound + doubled_ >= below_) break;
            visit(bounds_->extended(prefix, e.loop, e.candidate));
        }
    }
    void evaluate(const Prefix& prefix, PerOperand least) {
        BankCurves curves = prefix.curves;
        Division division;
        for (const size_t t : {size_t{1}, size_t{2}, size_t{0}}) {
            const ArrayTensor::InOrder in_order(tensors_[t], share_, prefix.order);
            least[t] =
                std::max(least[t], in_order.least_words());  // the formula pads the last block
            if (least[0] + least[1] + least[2] > registers_.banks) return;
            const int64_t most = registers_.banks - least[(t + 1) % 3] - least[(t + 2) % 3];
            for (int64_t words = least[t]; words <= most; ++words)
                curves[t][static_cast<size_t>(words - 1)] = in_order.extra(words);
            division = least_division(curves, registers_.banks, least, below_);
            if (division.words >= below_) return;
        }
        best_ = division;
        best_order_ = prefix.order;
        below_ = division.words;
    }

    ConvolutionProblem share_;
    BankedBuffer registers_;
    std::array<ArrayTensor, 3> tensors_;
    bool columns_like_rows_ = false;
    int64_t below_;
    const std::atomic<bool>* stop_;
    PerAxis<bool> together_{};  ///< of this part of the orders
    int64_t doubled_ = 0;       ///< accesses that it costs anyway
    std::optional<PrefixBounds> bounds_;
    std::optional<Division> best_;
    BlockOrder best_order_;
    size_t depth_ = 0;  ///< longest order of this pass
};

}  // namespace

std::vector<LoopExtents> lane_batches(const std::vector<int64_t>& lanes) {
    std::vector<LoopExtents> batches{one_iteration};
    for (const int64_t axis : lanes) {
        std::set<LoopExtents> next;
        for (const LoopExtents& taken : batches) {
            std::vector<LoopExtents> added;
            LoopExtents batch = one_iteration;
            spread(axis, 0, batch, added, taken);
            for (LoopExtents& more : added) {
                for (const ConvolutionLoop loop : convolution_loops) more[loop] *= taken[loop];
                next.insert(more);
            }
        }
        batches.assign(next.begin(), next.end());
    }
    return batches;
}

RegisterMapper::RegisterMapper(const ConvolutionProblem& problem, const RegisterArray& registers,
                               const std::atomic<bool>* stop)
    : problem_(problem),
      registers_(registers),
      stop_(stop),
      batches_(lane_batches(registers.lanes)),
      orders_(pe_orders()) {
    for (size_t t = 0; t < 3; ++t) access_[t] = tensor_access(problem, all_operands[t]);
}

std::vector<RegisterMapper::Share> RegisterMapper::shares(const LoopExtents& blocks) const {
    std::set<LoopExtents> seen;
    std::vector<Share> list;
    for (const LoopExtents& batch : batches_) {
        const Share share{share_of(blocks, batch), batch};
        if (seen.insert(share.extents).second) list.push_back(share);
    }
    return list;
}

/// Loops one by one (blocks of 1), and of each tensor what lies inside the outermost loop that uses
/// words of it again: if that fits, nothing comes twice. Found quickly, and most block computations
/// have such a mapping.
std::optional<RegisterMapping> RegisterMapper::without_extra(
    const std::vector<Share>& shares) const {
    for (const std::vector<ConvolutionLoop>& order : orders_) {
        for (const Share& share : shares) {
            RegisterMapping mapping{share.lanes, {}, {}, {}};
            int64_t words = 0;
            for (size_t t = 0; t < 3 && words <= registers_.words; ++t) {
                LoopExtents inside = share.extents;
                for (const ConvolutionLoop loop : order) {
                    if (access_[t][loop] != LoopRole::related && share.extents[loop] > 1) break;
                    if (access_[t][loop] == LoopRole::related) inside[loop] = 1;
                }
                mapping.words[t] = touched_words(problem_, all_operands[t], inside);
                words += mapping.words[t];
            }
            if (words > registers_.words) continue;
            for (const ConvolutionLoop loop : order)
                if (share.extents[loop] > 1) mapping.order.push_back({loop, 1});
            return mapping;
        }
    }
    return {};
}

std::optional<RegisterMapping> RegisterMapper::fewest_extra(const LoopExtents& blocks,
                                                            int64_t below) const {
    if (below <= 0 || registers_.words < 3) return {};
    below = std::min(below, infinite_words);
    const std::vector<Share> all = shares(blocks);
    if (std::optional<RegisterMapping> mapping = without_extra(all)) return mapping;
    std::optional<RegisterMapping> best;
    for (const Share& share : all) {
        ShareSearch search(problem_, blocks, share.extents, registers_.words, below, stop_);
        search.run();
        if (!search.best()) continue;
        below = search.best()->words;
        best = RegisterMapping{share.lanes, search.best_order(), search.best()->banks, {}};
        if (below == 0) break;
    }
    if (best) best->extra = extra_accesses(problem_, blocks, *best).value();
    return best;
}

std::optional<PerOperand> extra_accesses(const ConvolutionProblem& problem,
                                         const LoopExtents& blocks,
                                         const RegisterMapping& mapping) {
    const LoopExtents share = share_of(blocks, mapping.lanes);
    const ConvolutionProblem of_share = share_problem(problem, share);
    PerOperand extra;
    for (size_t t = 0; t < 3; ++t) {
        const ArrayTensor tensor(problem, all_operands[t], blocks, share);
        const ArrayTensor::InOrder in_order(tensor, of_share, mapping.order);
        if (mapping.words[t] < in_order.least_words()) return {};
        extra[t] = in_order.extra(mapping.words[t]);
    }
    return extra;
}

}  // namespace laminate
