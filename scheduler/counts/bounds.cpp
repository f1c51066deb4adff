#include "scheduler/counts/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/indexed.h"

namespace laminate {

namespace {

/// By coordinate of an axis: whether it is needed.
using Coordinates = IndexVector<bool, int64_t>;

int64_t size(const Coordinates& needed) { return std::count(needed.begin(), needed.end(), true); }

/// One axis of a layer, for its needed outputs.
struct AxisTaps {
    Coordinates inputs;          ///< inputs that some needed output multiplies
    int64_t taps = 0;            ///< taps on real elements, over all needed outputs
    int64_t least = INT64_MAX;   ///< fewest taps of one output
    int64_t most_per_input = 0;  ///< most taps that one input coordinate serves
};

AxisTaps axis_taps(const AxisWindow& window, const Coordinates& outputs) {
    AxisTaps axis;
    IndexVector<int64_t, int64_t> served(window.in);
    for (int64_t out = 0; out < window.out; ++out) {
        if (!outputs[out]) continue;
        int64_t taps = 0;
        for (int64_t tap = 0; tap < window.kernel; ++tap) {
            const std::optional<int64_t> in = window.input(out, tap);
            if (!in) continue;
            ++taps;
            ++served[*in];
        }
        axis.taps += taps;
        axis.least = std::min(axis.least, taps);
    }
    for (const int64_t taps : served) {
        axis.inputs.push_back(taps > 0);
        axis.most_per_input = std::max(axis.most_per_input, taps);
    }
    return axis;
}

/// Needed rows and columns.
using Box = std::array<Coordinates, 2>;
using BoxTaps = std::array<AxisTaps, 2>;

int64_t size(const Box& box) { return size(box[0]) * size(box[1]); }

Box whole_output(const LayerProblem& p) {
    return {Coordinates(p.y().out, true), Coordinates(p.x().out, true)};
}

/// What a layer that reads `box` of a map reads of an operand of one pixel.
Box one_pixel(const Box& box) {
    const Coordinates read(1, size(box) > 0);
    return {read, read};
}

BoxTaps box_taps(const LayerProblem& p, const Box& outputs) {
    return {axis_taps(p.y(), outputs[0]), axis_taps(p.x(), outputs[1])};
}

/// What is needed of each tensor. Of several readers' needs the largest is kept, which is no more
/// than their union.
class Needs {
public:
    void whole(const LayerProblem& producer) {
        boxes_[producer.output] = whole_output(producer);
        channels_[producer.output] = producer[Dim::z];
    }
    /// Channels of an operand that the layer reads for the needed channels of its output.
    [[nodiscard]] int64_t channels_of(const LayerProblem& reader, const LayerInput& input) const {
        const int64_t z = channels_.at(reader.output);
        if (input.is_plane) return std::min<int64_t>(z, 1);
        if (reader.operation == Operation::concat) {
            const int64_t covered =
                std::min(reader[Dim::z], input.first_output_channel + input.channels) -
                std::max<int64_t>(0, input.first_output_channel);
            return std::max<int64_t>(0, covered - (reader[Dim::z] - z));
        }
        return ceil_div(z, reader.group_outputs()) * reader[Dim::i];
    }
    /// The layer's weights that belong to the needed channels.
    [[nodiscard]] Elements weights_of(const LayerProblem& layer) const {
        return Elements(layer.weight_elements().value() / layer[Dim::z] *
                        channels_.at(layer.output));
    }
    [[nodiscard]] const Box& of_output(const LayerProblem& producer) const {
        return boxes_.at(producer.output);
    }
    /// Passes the need of the layer's output on to its inputs.
    void pass(const LayerProblem& reader) {
        const BoxTaps taps = box_taps(reader, of_output(reader));
        const Box box{taps[0].inputs, taps[1].inputs};
        for (const LayerInput& input : reader.inputs) {
            const Box needed = input.is_pixel ? one_pixel(box) : box;
            Box& known = boxes_[input.tensor];
            if (known[0].empty() || size(known) < size(needed)) known = needed;
            channels_[input.tensor] =
                std::max(channels_[input.tensor], channels_of(reader, input));
        }
    }

private:
    std::map<TensorId, Box> boxes_;
    std::map<TensorId, int64_t> channels_;
};

/// Elements of one input that a layer reads for the needed part of its output.
Elements read_of(const LayerProblem& reader, const LayerInput& input, const Needs& needs) {
    const BoxTaps taps = box_taps(reader, needs.of_output(reader));
    Box box{taps[0].inputs, taps[1].inputs};
    if (input.is_pixel) box = one_pixel(box);
    return Elements(needs.channels_of(reader, input)) * size(box);
}

bool is_weighted_chain(const std::vector<LayerProblem>& group) {
    for (size_t k = 0; k < group.size(); ++k) {
        if (!group[k].has_weights() ||
            (k > 0 && group[k].inputs.front().tensor != group[k - 1].output))
            return false;
    }
    return true;
}

/// The groups that end with the last layer of `chain`, which holds the layers that may precede it,
/// producers first.
NetworkBound::Tail tail(const std::vector<LayerProblem>& chain, int64_t max_depth) {
    NetworkBound::Tail tail;
    const LayerProblem& sink = chain.back();
    Box needed = whole_output(sink);
    Elements weights;
    for (size_t k = chain.size();
         k-- > 0 && static_cast<int64_t>(tail.layers.size()) < max_depth;) {
        const LayerProblem& p = chain[k];
        const BoxTaps axes = box_taps(p, needed);
        NetworkBound::Layer layer;
        layer.outputs = static_cast<double>(p[Dim::z] * size(needed));
        layer.weights = static_cast<double>(p.weight_elements().value());
        layer.reuse = static_cast<double>(axes[0].most_per_input * axes[1].most_per_input);
        layer.macs_per_output = static_cast<double>(p[Dim::i] * axes[0].least * axes[1].least);
        layer.macs_over_root_reuse = static_cast<double>(p[Dim::z] * p[Dim::i]) *
                                     static_cast<double>(axes[0].taps) *
                                     static_cast<double>(axes[1].taps) / std::sqrt(layer.reuse);
        tail.layers.push_back(layer);
        weights += p.weight_elements();
        tail.compulsory.push_back(Elements(p.inputs.front().channels) * size(axes[0].inputs) *
                                      size(axes[1].inputs) +
                                  weights + sink.output_elements());
        for (size_t axis = 0; axis < 2; ++axis) needed[axis] = axes[axis].inputs;
    }
    return tail;
}

/// The sum of c_k: elements of intermediates that one phase of T reads can compute whole.
double computed_whole(const NetworkBound::Tail& tail, size_t depth, double memory, double reads) {
    double sum = 0, before = 0;
    for (size_t k = depth; --k > 0;) {  // producers first; the sink's output is Y
        const NetworkBound::Layer& layer = tail.layers[k];
        // a_k + b_k <= S + T + c_(k-1). Their product is largest for equal halves, unless there are
        // fewer weights.
        const double touched = memory + reads + before;
        const double weights = std::min(layer.weights, touched / 2);
        const double computed = layer.reuse * weights * (touched - weights) /
                                (layer.macs_per_output * layer.macs_per_output);
        before = std::min(layer.outputs, computed);
        sum += before;
    }
    return sum;
}

/// Reads that the last `depth` layers of the tail need in this memory.
int64_t phase_bound(const NetworkBound::Tail& tail, size_t depth, Elements memory) {
    double work = 0;
    for (size_t k = 0; k < depth; ++k) work += tail.layers[k].macs_over_root_reuse;
    const auto most_work = [](double touched) { return touched / 3 * std::sqrt(touched / 3); };
    constexpr int64_t more_than_any_network = int64_t{1} << 50;
    if (memory.value() > more_than_any_network) return 0;
    int64_t best = 0;
    for (int64_t quarters = 1; quarters <= 48; quarters += quarters < 8 ? 1 : 4) {
        const int64_t reads = std::max<int64_t>(1, memory.value() * quarters / 4);
        const auto s = static_cast<double>(memory.value()), t = static_cast<double>(reads);
        const double whole = depth == 1 ? 0 : 2 * computed_whole(tail, depth, s, t);
        const double first = depth == 1 ? t : s + t + whole;
        const double later = depth == 1 ? s + t : 3 * s + t + whole;
        // Rounded so that arithmetic errors never raise the bound.
        const double phases = std::ceil((work - most_work(first)) / most_work(later) -
                                        1e-9 * (1 + work / most_work(later)));
        if (phases <= 0) break;  // longer phases hold all of the work too
        best = std::max(best, checked_multiply(reads, static_cast<int64_t>(phases)));
    }
    return best;
}

Elements bound(const NetworkBound::Tail& tail, size_t depth, Elements memory) {
    return std::max(tail.compulsory[depth - 1], Elements(phase_bound(tail, depth, memory)));
}

}  // namespace

int64_t reuse_per_input(const LayerProblem& problem) {
    int64_t reuse = 1;
    for (const AxisWindow& window : problem.window)
        reuse *= axis_taps(window, Coordinates(window.out, true)).most_per_input;
    return reuse;
}

Elements compulsory_accesses(const std::vector<LayerProblem>& group) {
    Needs needs;
    needs.whole(group.back());
    std::set<TensorId> computed;
    for (size_t k = group.size(); k-- > 0;) {
        needs.pass(group[k]);
        computed.insert(group[k].output);
    }
    Elements sum = group.back().output_elements();
    std::map<TensorId, Elements> inputs;
    for (const LayerProblem& p : group) {
        sum += needs.weights_of(p);
        for (const LayerInput& input : p.inputs) {
            if (!computed.contains(input.tensor))
                inputs[input.tensor] = std::max(inputs[input.tensor], read_of(p, input, needs));
        }
    }
    for (const auto& [tensor, elements] : inputs) sum += elements;
    return sum;
}

Elements compulsory_accesses(const Network& network) {
    Needs needs;
    Elements sum;
    std::map<TensorId, Elements> inputs;
    for (LayerId id = static_cast<LayerId>(network.layers.size()); id-- > 0;) {
        if (!is_schedulable(network, id)) continue;
        const LayerProblem p = layer_problem(network, id);
        const std::vector<LayerId> readers = network.consumers(p.output);
        const bool leaves = network.is_output(p.output) ||
                            std::any_of(readers.begin(), readers.end(), [&](LayerId reader) {
                                return !is_schedulable(network, reader);
                            });
        if (leaves) needs.whole(p);
        needs.pass(p);
        if (!p.has_weights()) continue;
        sum += needs.weights_of(p);
        if (leaves) sum += p.output_elements();
        for (const LayerInput& input : p.inputs) {
            const LayerId producer = network.producer(input.tensor);
            if (producer < 0 || !is_schedulable(network, producer))
                inputs[input.tensor] = std::max(inputs[input.tensor], read_of(p, input, needs));
        }
    }
    for (const auto& [tensor, elements] : inputs) sum += elements;
    return sum;
}

Elements group_bound(const std::vector<LayerProblem>& group, Elements memory) {
    if (!is_weighted_chain(group)) return compulsory_accesses(group);
    return bound(tail(group, INT64_MAX), group.size(), memory);
}

GroupShape group_shape(const Network& network, const GroupSchedule& group) {
    return is_weighted_chain(group_problems(network, group)) ? GroupShape::chain : GroupShape::dag;
}

GroupShape group_shape(const Network& network, const Schedule& schedule) {
    const std::vector<GroupSchedule>& groups = schedule.groups();
    const auto is_chain = [&](const GroupSchedule& group) {
        return group_shape(network, group) == GroupShape::chain;
    };
    return std::all_of(groups.begin(), groups.end(), is_chain) ? GroupShape::chain
                                                               : GroupShape::dag;
}

NetworkBound::NetworkBound(const Network& network, GroupShape shape, int64_t max_depth) {
    if (shape == GroupShape::dag) {
        compulsory_ = compulsory_accesses(network);
        return;
    }
    for (const std::vector<LayerId>& chain : schedulable_chains(network)) {
        std::vector<LayerProblem> problems;
        std::vector<Tail> tails;
        for (const LayerId id : chain) {
            problems.push_back(layer_problem(network, id));
            tails.push_back(tail(problems, max_depth));
        }
        chains_.push_back(std::move(tails));
    }
    number_groups();
}

void NetworkBound::number_groups() {
    // A group's key is its first layer and the number of the group without that layer.
    std::map<std::tuple<size_t, Layer, Elements>, size_t> known;
    constexpr size_t nothing = std::numeric_limits<size_t>::max();
    for (const std::vector<Tail>& tails : chains_) {
        auto& of_chain = numbers_.emplace_back();
        for (const Tail& tail : tails) {
            auto& of_tail = of_chain.emplace_back();
            size_t shorter = nothing;
            for (size_t depth = 1; depth <= tail.layers.size(); ++depth) {
                const std::tuple key{shorter, tail.layers[depth - 1], tail.compulsory[depth - 1]};
                shorter = known.emplace(key, known.size()).first->second;
                of_tail.push_back(shorter);
            }
        }
    }
    group_count_ = known.size();
}

Elements NetworkBound::accesses(Elements memory) const {
    Elements sum = compulsory_;
    std::vector<std::optional<Elements>> bounds(group_count_);
    for (size_t c = 0; c < chains_.size(); ++c) {
        // by number of layers from the beginning of the chain
        std::vector<Elements> least{Elements{}};
        for (size_t last = 0; last < chains_[c].size(); ++last) {
            const Tail& tail = chains_[c][last];
            Elements best(INT64_MAX);
            for (size_t depth = 1; depth <= tail.layers.size(); ++depth) {
                const Elements before = least[least.size() - depth];
                if (before + tail.compulsory[depth - 1] >= best) continue;
                std::optional<Elements>& known = bounds[numbers_[c][last][depth - 1]];
                if (!known) known = bound(tail, depth, memory);
                best = std::min(best, before + *known);
            }
            least.push_back(best);
        }
        sum += least.back();
    }
    return sum;
}

Certificate NetworkBound::certificate(const NetworkCounts& achieved) const {
    const Elements bound = accesses(achieved.live_total);
    return {bound,
            static_cast<double>(achieved.accesses.value()) / static_cast<double>(bound.value())};
}

Certificate certificate(const Network& network, const NetworkCounts& achieved, GroupShape shape) {
    return NetworkBound(network, shape).certificate(achieved);
}

}  // namespace laminate
