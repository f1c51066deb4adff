#include "scheduler/models/bounds/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace laminate {

namespace {

/// Which coordinates of an axis are needed.
using Coordinates = std::vector<bool>;

int64_t size(const Coordinates& needed) { return std::count(needed.begin(), needed.end(), true); }

/// One axis of a layer, for the outputs that are needed.
struct AxisTaps {
    Coordinates inputs;          ///< that some needed output multiplies
    int64_t taps = 0;            ///< on real elements, over all needed outputs
    int64_t least = INT64_MAX;   ///< of one output
    int64_t most_per_input = 0;  ///< that one input coordinate serves
};

AxisTaps axis_taps(const AxisWindow& window, const Coordinates& outputs) {
    AxisTaps axis;
    std::vector<int64_t> served(static_cast<size_t>(window.in), 0);
    for (int64_t out = 0; out < window.out; ++out) {
        if (!outputs[static_cast<size_t>(out)]) continue;
        int64_t taps = 0;
        for (int64_t tap = 0; tap < window.kernel; ++tap) {
            const std::optional<int64_t> in = window.input(out, tap);
            if (!in) continue;
            ++taps;
            ++served[static_cast<size_t>(*in)];
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

/// `chain` holds the layers that may precede the last one, producers first.
NetworkBound::Tail tail(const std::vector<LayerProblem>& chain, int64_t max_depth) {
    NetworkBound::Tail tail;
    const LayerProblem& sink = chain.back();
    std::array<Coordinates, 2> needed;
    for (size_t axis = 0; axis < 2; ++axis) needed[axis].assign(static_cast<size_t>(sink.window[axis].out), true);
    Elements weights;
    for (size_t k = chain.size(); k-- > 0 && static_cast<int64_t>(tail.layers.size()) < max_depth;) {
        const LayerProblem& p = chain[k];
        const std::array<AxisTaps, 2> axes{axis_taps(p.y(), needed[0]), axis_taps(p.x(), needed[1])};
        NetworkBound::Layer layer;
        layer.outputs = static_cast<double>(p[Dim::z] * size(needed[0]) * size(needed[1]));
        layer.weights = static_cast<double>(p.weight_elements().value());
        layer.reuse = static_cast<double>(axes[0].most_per_input * axes[1].most_per_input);
        layer.macs_per_output = static_cast<double>(p[Dim::i] * axes[0].least * axes[1].least);
        layer.macs_over_root_reuse = static_cast<double>(p[Dim::z] * p[Dim::i]) * static_cast<double>(axes[0].taps) *
                                     static_cast<double>(axes[1].taps) / std::sqrt(layer.reuse);
        tail.layers.push_back(layer);
        weights += p.weight_elements();
        const int64_t channels = p.input_elements().value() / (p.y().in * p.x().in);
        tail.compulsory.push_back(Elements(channels) * size(axes[0].inputs) * size(axes[1].inputs) + weights +
                                  sink.output_elements());
        for (size_t axis = 0; axis < 2; ++axis) needed[axis] = axes[axis].inputs;
    }
    return tail;
}

/// Elements of intermediates that one phase of T reads can compute whole: sum of c_k.
double computed_whole(const NetworkBound::Tail& tail, size_t depth, double memory, double reads) {
    double sum = 0, before = 0;
    for (size_t k = depth; --k > 0;) {  // producers first; the sink's output is Y
        const NetworkBound::Layer& layer = tail.layers[k];
        // a_k + b_k <= S + T + c_(k-1); the product is largest in halves, unless there are fewer weights.
        const double touched = memory + reads + before;
        const double weights = std::min(layer.weights, touched / 2);
        const double computed =
            layer.reuse * weights * (touched - weights) / (layer.macs_per_output * layer.macs_per_output);
        before = std::min(layer.outputs, computed);
        sum += before;
    }
    return sum;
}

/// Reads that the last `depth` layers of a chain up to the tail's need in so much memory.
int64_t phase_bound(const NetworkBound::Tail& tail, size_t depth, Elements memory) {
    double work = 0;
    for (size_t k = 0; k < depth; ++k) work += tail.layers[k].macs_over_root_reuse;
    const auto most_work = [](double touched) { return std::pow(touched / 3, 1.5); };
    constexpr int64_t more_than_any_network = int64_t{1} << 50;
    if (memory.value() > more_than_any_network) return 0;
    int64_t best = 0;
    for (int64_t quarters = 1; quarters <= 48; quarters += quarters < 8 ? 1 : 4) {
        const int64_t reads = std::max<int64_t>(1, memory.value() * quarters / 4);
        const auto s = static_cast<double>(memory.value()), t = static_cast<double>(reads);
        const double whole = depth == 1 ? 0 : 2 * computed_whole(tail, depth, s, t);
        const double first = depth == 1 ? t : s + t + whole;
        const double later = depth == 1 ? s + t : 3 * s + t + whole;
        // Rounded so that an error of the arithmetic never raises the bound.
        const double phases = std::ceil((work - most_work(first)) / most_work(later) - 1e-9 * (1 + work / most_work(later)));
        if (phases > 0) best = std::max(best, checked_multiply(reads, static_cast<int64_t>(phases)));
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
        reuse *= axis_taps(window, Coordinates(static_cast<size_t>(window.out), true)).most_per_input;
    return reuse;
}

Elements compulsory_accesses(const std::vector<LayerProblem>& group) { return tail(group, INT64_MAX).compulsory.back(); }

Elements group_bound(const std::vector<LayerProblem>& group, Elements memory) {
    return bound(tail(group, INT64_MAX), group.size(), memory);
}

NetworkBound::NetworkBound(const Network& network, int64_t max_depth) {
    for (const std::vector<LayerId>& chain : schedulable_chains(network)) {
        std::vector<LayerProblem> problems;
        std::vector<Tail> tails;
        for (const LayerId id : chain) {
            problems.push_back(layer_problem(network, id));
            tails.push_back(tail(problems, max_depth));
        }
        chains_.push_back(std::move(tails));
    }
}

Elements NetworkBound::accesses(Elements memory) const {
    Elements sum;
    for (const std::vector<Tail>& tails : chains_) {
        std::vector<Elements> least{Elements{}};  // by number of layers from the chain's begin
        for (const Tail& tail : tails) {
            Elements best(INT64_MAX);
            for (size_t depth = 1; depth <= tail.layers.size(); ++depth)
                best = std::min(best, least[least.size() - depth] + bound(tail, depth, memory));
            least.push_back(best);
        }
        sum += least.back();
    }
    return sum;
}

Certificate NetworkBound::certificate(const NetworkCounts& achieved) const {
    const Elements bound = accesses(achieved.live_total);
    return {bound, static_cast<double>(achieved.accesses.value()) / static_cast<double>(bound.value())};
}

Certificate certificate(const Network& network, const NetworkCounts& achieved) {
    return NetworkBound(network).certificate(achieved);
}

}  // namespace laminate
