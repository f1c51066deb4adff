#include "papers/spatial_fusion/fusion_search.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/indexed.h"
#include "base/units.h"

namespace laminate::spatial_fusion {

namespace {

/// The best stack offered so far: least volume, then footprint, then tile.
class Best {
public:
    void offer(int64_t volume, int64_t footprint, const Tile& tile, bool keeps_halos) {
        const auto rank = [](const PlannedStack& s) {
            return std::tuple(s.volume, s.footprint, s.tile.x, s.tile.y, s.tile.out_channels,
                              s.tile.in_channels);
        };
        PlannedStack offered;
        offered.volume = volume;
        offered.footprint = footprint;
        offered.tile = tile;
        offered.keeps_halos = keeps_halos;
        if (!best_ || rank(offered) < rank(*best_)) best_ = std::move(offered);
    }
    [[nodiscard]] const std::optional<PlannedStack>& get() const { return best_; }

private:
    std::optional<PlannedStack> best_;
};

/// The cuts that may be part of a best tile: those without a smaller one that has no more tiles and
/// fetches no more input. Volumes grow with both, footprints with the size.
template <class CutOf>
std::vector<AxisCut> useful_cuts(const std::vector<int64_t>& sizes, const CutOf& cut_of) {
    std::vector<AxisCut> cuts;
    for (const int64_t size : sizes) {
        const AxisCut cut = cut_of(size);
        const bool beaten = std::ranges::any_of(cuts, [&](const AxisCut& other) {
            return other.tiles <= cut.tiles && other.input <= cut.input;
        });
        if (!beaten) cuts.push_back(cut);
    }
    return cuts;
}

std::vector<int64_t> column_sizes(int64_t extent, const FusionOptions& options) {
    return options.full_rows ? std::vector<int64_t>{extent} : tile_sizes(extent, options.tiles);
}

void offer_stack(const Stack& stack, const FusionOptions& options, Best& best) {
    const LayerProblem& bottom = stack.back();
    const auto cut_of = [&](size_t axis) {
        return [&, axis](int64_t size) { return stack_cut(stack, axis, size, options.reading); };
    };
    const std::vector<AxisCut> ys =
        useful_cuts(tile_sizes(bottom[Dim::y], options.tiles), cut_of(0));
    const std::vector<AxisCut> xs = useful_cuts(column_sizes(bottom[Dim::x], options), cut_of(1));
    for (const AxisCut& y : ys) {
        for (const AxisCut& x : xs) {
            // The volume depends only on whether the tile has all output channels; if not, a single
            // channel needs the least room. A stack's layers have all input channels, so a
            // channelwise layer has all output channels.
            for (const int64_t channels :
                 {is_channelwise(bottom) ? bottom[Dim::z] : int64_t{1}, bottom[Dim::z]}) {
                const Tile tile{x.tile, y.tile, channels, stack.front().inputs.front().channels};
                const int64_t footprint = stack_footprint(stack, tile, options.reuse).total();
                if (footprint <= options.capacity)
                    best.offer(stack_volume(stack, y, x, tile, options.reading), footprint, tile,
                               true);
            }
        }
    }
}

/// The channels (Tof, Tif) of tiles of Eq. 1 and 2 that may be best: no other fetches as little in
/// less room.
std::vector<std::pair<int64_t, int64_t>> channel_tiles(const LayerProblem& layer,
                                                       const FusionOptions& options) {
    const int64_t outs = layer[Dim::z];
    const int64_t ins = layer.inputs.front().channels;
    if (is_channelwise(layer)) return {{outs, outs}, {1, 1}};
    std::vector<std::pair<int64_t, int64_t>> result{{outs, ins}, {1, ins}};
    if (layer.groups > 1) return result;
    // One input channel at a time; the input comes again for every tile of output channels.
    std::set<int64_t> visits;
    for (const int64_t out : tile_sizes(outs, options.tiles))
        if (visits.insert(ceil_div(outs, out)).second) result.emplace_back(out, 1);
    return result;
}

void offer_single(const LayerProblem& layer, const FusionOptions& options, Best& best) {
    const auto cut_of = [&](size_t axis) {
        return [&, axis](int64_t size) {
            return single_layer_cut(layer, axis, size, options.reading);
        };
    };
    const std::vector<AxisCut> ys =
        useful_cuts(tile_sizes(layer[Dim::y], options.tiles), cut_of(0));
    const std::vector<AxisCut> xs = useful_cuts(column_sizes(layer[Dim::x], options), cut_of(1));
    const auto channels = channel_tiles(layer, options);
    for (const AxisCut& y : ys) {
        for (const AxisCut& x : xs) {
            for (const auto& [out, in] : channels) {
                const Tile tile{x.tile, y.tile, out, in};
                const int64_t footprint = single_layer_footprint(layer, tile);
                if (footprint <= options.capacity)
                    best.offer(single_layer_volume(layer, y, x, tile, options.reading), footprint,
                               tile, false);
            }
        }
    }
}

std::optional<PlannedStack> best_of_stack(const Stack& stack, const FusionOptions& options) {
    Best best;
    offer_stack(stack, options, best);
    return best.get();
}

std::optional<PlannedStack> best_of_layer(const LayerProblem& layer, const FusionOptions& options) {
    if (!can_be_stacked(layer)) {
        PlannedStack join;
        join.is_join = true;
        join.volume = each_tensor_once(layer);
        join.footprint = static_cast<int64_t>(layer.inputs.size()) + 1;
        if (join.footprint > options.capacity) return {};
        return join;
    }
    Best best;
    offer_single(layer, options, best);
    if (options.reading == Reading::exact) offer_stack({layer}, options, best);
    return best.get();
}

/// The least that a layer needs alone: the footprint of one pixel of one channel, or of one row.
int64_t least_footprint(const LayerProblem& layer, const FusionOptions& options) {
    if (!can_be_stacked(layer)) return static_cast<int64_t>(layer.inputs.size()) + 1;
    const bool by_groups = layer.groups > 1 && !is_channelwise(layer);
    return single_layer_footprint(layer, {options.full_rows ? layer[Dim::x] : 1, 1, 1,
                                          by_groups ? layer.inputs.front().channels : 1});
}

/// The least capacity that every layer of the network fits in.
int64_t least_footprint(const Network& network, const FusionOptions& options) {
    int64_t least = 0;
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id)
        if (is_schedulable(network, id))
            least = std::max(least, least_footprint(layer_problem(network, id), options));
    return least;
}

/// Finds the best stacks and singles of a network, once for each shape.
class Finder {
public:
    Finder(const Network& network, const FusionOptions& options)
        : network_(network), options_(options) {}

    [[nodiscard]] std::optional<PlannedStack> stack(const std::vector<LayerId>& layers) {
        return remembered(layers, stacks_,
                          [&](const Stack& problems) { return best_of_stack(problems, options_); });
    }
    [[nodiscard]] std::optional<PlannedStack> single(LayerId layer) {
        return remembered({layer}, singles_, [&](const Stack& problems) {
            return best_of_layer(problems.front(), options_);
        });
    }

private:
    using Memory = std::map<std::vector<int64_t>, std::optional<PlannedStack>>;

    template <class Find>
    std::optional<PlannedStack> remembered(const std::vector<LayerId>& layers, Memory& memory,
                                           const Find& find) {
        const Stack problems = layer_problems(network_, layers);
        const std::vector<int64_t> key = shape_key(problems);
        auto known = memory.find(key);
        if (known == memory.end()) known = memory.emplace(key, find(problems)).first;
        std::optional<PlannedStack> result = known->second;
        if (!result) return result;
        result->layers = layers;
        if (result->keeps_halos) {
            result->operations = stack_operations(problems, result->tile);
        } else {
            for (const LayerProblem& problem : problems)
                result->operations += result->is_join ? 0 : operations(problem);
        }
        return result;
    }

    const Network& network_;
    const FusionOptions& options_;
    Memory stacks_;
    Memory singles_;
};

/// The stacks of a chain that compete, by first layer; [first][0] is the single layer.
using Candidates = std::vector<std::vector<PlannedStack>>;

/// Appends the cut of least volume; of equal ones, that with the fewest stacks.
void append_best_cut(const Candidates& candidates, std::vector<PlannedStack>& result) {
    struct Cut {
        int64_t volume = 0;
        int64_t stacks = 0;
        const PlannedStack* first = nullptr;
    };
    std::vector<Cut> best(candidates.size() + 1);
    for (size_t begin = candidates.size(); begin-- > 0;) {
        for (const PlannedStack& stack : candidates[begin]) {
            const Cut& rest = best[begin + stack.layers.size()];
            const Cut cut{checked_add(stack.volume, rest.volume), 1 + rest.stacks, &stack};
            if (best[begin].first == nullptr ||
                std::tuple(cut.volume, cut.stacks) <
                    std::tuple(best[begin].volume, best[begin].stacks))
                best[begin] = cut;
        }
    }
    for (size_t begin = 0; begin < candidates.size(); begin += best[begin].first->layers.size())
        result.push_back(*best[begin].first);
}

/// Adds the stacks of two layers or more that fit to the candidates of a chain. False if stopped.
bool add_stacks(const std::vector<LayerId>& chain, const FusionOptions& options, Finder& finder,
                Candidates& candidates) {
    const size_t most = options.max_layers == 0 ? chain.size() : options.max_layers;
    for (size_t begin = 0; begin < chain.size();) {
        size_t end = begin + 2;  // of the stack to try
        for (; end <= chain.size() && end - begin <= most; ++end) {
            if (options.stop != nullptr && options.stop->load()) return false;
            const auto stack = finder.stack({chain.begin() + static_cast<std::ptrdiff_t>(begin),
                                             chain.begin() + static_cast<std::ptrdiff_t>(end)});
            if (stack) {
                candidates[begin].push_back(*stack);
            } else if (options.growth == Growth::paper || !options.full_rows) {
                break;  // a longer stack needs more, unless its full rows are shorter
            }
        }
        begin = options.growth == Growth::paper ? end - 1 : begin + 1;
    }
    return true;
}

}  // namespace

const char* to_string(Growth growth) { return growth == Growth::optimal ? "optimal" : "paper"; }

int64_t FusionPlan::volume() const {
    int64_t sum = 0;
    for (const PlannedStack& stack : stacks) sum = checked_add(sum, stack.volume);
    return sum;
}

int64_t FusionPlan::single_volume() const {
    int64_t sum = 0;
    for (const PlannedStack& single : singles) sum = checked_add(sum, single.volume);
    return sum;
}

int64_t FusionPlan::single_volume(const std::vector<LayerId>& layers) const {
    int64_t sum = 0;
    for (const PlannedStack& single : singles)
        if (std::ranges::find(layers, single.layers.front()) != layers.end())
            sum = checked_add(sum, single.volume);
    return sum;
}

std::optional<PlannedStack> best_stack(const Network& network, const std::vector<LayerId>& layers,
                                       const FusionOptions& options) {
    return Finder(network, options).stack(layers);
}

std::optional<PlannedStack> best_single(const Network& network, LayerId layer,
                                        const FusionOptions& options) {
    return Finder(network, options).single(layer);
}

std::vector<std::vector<LayerId>> stackable_chains(const Network& network) {
    IndexVector<bool, LayerId> taken(network.layers.size());
    std::vector<std::vector<LayerId>> chains;
    // The paper has no rearrangements, no resampling, no normalisations, no reductions of
    // channels, no parts of tensors and no factors: they stay outside of all stacks.
    const auto is_known = [&](LayerId id) {
        if (!is_schedulable(network, id)) return false;
        const LayerProblem p = layer_problem(network, id);
        return p.operation != Operation::rearrange && p.operation != Operation::resample &&
               p.operation != Operation::normalise && !is_extreme_of_channels(p.operation) &&
               std::none_of(p.inputs.begin(), p.inputs.end(),
                            [](const LayerInput& i) { return i.is_pixel || i.is_plane; }) &&
               (p.operation != Operation::concat || p.inputs.size() > 1);
    };
    const auto stackable = [&](LayerId id) {
        return is_known(id) && can_be_stacked(layer_problem(network, id));
    };
    for (LayerId first = 0; first < static_cast<LayerId>(network.layers.size()); ++first) {
        if (taken[first] || !is_known(first)) continue;
        if (network.layer(first).kind == LayerKind::conv_transpose)
            throw InputError(network.layer(first).name +
                             ": a transposed convolution; the spatial-fusion model knows "
                             "convolutions, pools, fully connected layers, activations, additions "
                             "and concatenations");
        std::vector<LayerId> chain{first};
        for (LayerId id = first; stackable(id);) {
            const TensorId out = network.layer(id).output;
            const std::vector<LayerId> readers = network.consumers(out);
            if (network.is_output(out) || readers.size() != 1 || !stackable(readers.front())) break;
            id = readers.front();
            chain.push_back(id);
        }
        for (const LayerId id : chain) taken[id] = true;
        chains.push_back(std::move(chain));
    }
    return chains;
}

std::variant<FusionPlan, Infeasible> plan_fusion(const Network& network,
                                                 const FusionOptions& options) {
    Finder finder(network, options);
    FusionPlan plan;
    for (const std::vector<LayerId>& chain : stackable_chains(network)) {
        if (options.progress)
            options.progress(network.layer(chain.front()).name + ": a chain of " +
                             std::to_string(chain.size()));
        Candidates candidates(chain.size());
        for (size_t n = 0; n < chain.size(); ++n) {
            const auto single = finder.single(chain[n]);
            if (!single)
                return Infeasible{Elements(least_footprint(network, options)),
                                  Elements(options.capacity)};
            plan.singles.push_back(*single);
            candidates[n].push_back(*single);
        }
        plan.is_complete = add_stacks(chain, options, finder, candidates) && plan.is_complete;
        append_best_cut(candidates, plan.stacks);
    }
    // Chains interleave; a stack runs at its last layer's turn.
    std::ranges::stable_sort(plan.stacks, {},
                             [](const PlannedStack& stack) { return stack.layers.back(); });
    std::ranges::stable_sort(plan.singles, {},
                             [](const PlannedStack& single) { return single.layers.back(); });
    return plan;
}

}  // namespace laminate::spatial_fusion
