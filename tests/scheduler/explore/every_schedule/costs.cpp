#include "tests/scheduler/explore/every_schedule/costs.h"

#include <array>
#include <set>

#include "base/units.h"

namespace laminate::every {

namespace {

using Tilings = std::array<const Patterns::Tiling*, 2>;

/// Weights of layer k with its output tiled along rows and columns, and its channels.
void add_weights(const Patterns& patterns, size_t k, const Patterns::Tables& tables, const Shape& s,
                 const Tilings& tiles, const Patterns::Channels& channels, Local& local) {
    const LayerProblem& p = patterns.problem(k);
    const int64_t kernel = patterns.kernel(k);
    if (s.weights == 6) {
        local.accesses += kernel * p[Dim::i] * p[Dim::z];
        local.resident += kernel * p[Dim::i] * p[Dim::z];
    } else if (s.weights == 5) {
        local.accesses +=
            kernel * p[Dim::i] * tables.channels * tables.scopes[0] * tables.scopes[1];
        local.with_output += kernel * p[Dim::i] * tables.most_in_a_scope;
    } else {
        int64_t times = 1;
        for (size_t axis = 0; axis < 2; ++axis)
            times *= s.inside_weights[axis] ? tiles[axis]->tiles : tiles[axis]->coordinates;
        local.accesses += kernel * p[Dim::i] * tables.channels * times;
        static const BodiesOfLifetimes one{Bodies{{false, 1, false}}};
        const auto inside = [&](Axis a, const BodiesOfLifetimes& lifetimes) {
            return s.inside_weights[a] ? &lifetimes : &one;
        };
        (s.weights_below ? local.below : local.held) +=
            kernel * fold(s.weights_walk,
                          {inside(rows, tiles[0]->lifetimes), inside(columns, tiles[1]->lifetimes),
                           inside(inputs, channels.of_weights_i), inside(outputs, channels.of_z)},
                          {false, false, true, true});
    }
}

/// Y of the last layer.
void add_output(const LayerProblem& p, const Shape& s, const PerDim<int64_t>& tile, Local& local) {
    local.accesses += p.output_elements().value() * (2 * ceil_div(p[Dim::i], tile[Dim::i]) - 1);
    int64_t buffer = 1;
    for (const Dim d : {Dim::z, Dim::y, Dim::x})
        buffer *= s.inside_output[axis_of(d)] ? tile[d] : 1;
    (s.output_below ? local.below : local.held) += buffer;
}

}  // namespace

Local local_costs(Patterns& patterns, size_t k, const Patterns::Tables& tables, const Shape& s,
                  PerDim<int64_t> tile, State& next) {
    const State& state = *tables.state;
    const LayerProblem& p = patterns.problem(k);
    if (s.is_kept || s.weights == 5) tile = p.extent;
    if (!patterns.is_last(k)) tile[Dim::i] = p[Dim::i];
    const std::array<Dim, 2> dims{Dim::y, Dim::x};
    std::array<const Patterns::Spatial*, 2> along{};
    Tilings tiles{};
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t size = tile[dims[axis]];
        along[axis] = &patterns.spatial(k, axis, state.pattern[axis], s.place[axis], size);
        tiles[axis] = &patterns.tiling(state.pattern[axis], size);
    }
    const Patterns::Channels& channels =
        patterns.channels(k, state.channels, s, tile[Dim::z], tile[Dim::i]);

    next.pattern = {along[0]->pattern, along[1]->pattern};
    next.channels = channels.asked;
    next.walk = s.is_kept ? state.walk : std::vector<Axis>{};
    next.walk.insert(next.walk.end(), s.walk.begin(), s.walk.end());

    Local local;
    if (k == 0) local.accesses += along[0]->brought * along[1]->brought * p[Dim::i] * channels.runs;
    const int64_t input_buffer = fold(
        next.walk, {&along[0]->lifetimes, &along[1]->lifetimes, &channels.of_i, &channels.of_z},
        {true, true, true, false});
    (s.is_kept ? local.with_output : local.held) += input_buffer;
    std::erase(next.walk, outputs);
    add_weights(patterns, k, tables, s, tiles, channels, local);
    if (patterns.is_last(k)) add_output(p, s, tile, local);
    local.layer.tile = tile;
    return local;
}

Costs add_layer(Costs c, const Local& l, bool is_kept, int64_t macs, Footprint footprint) {
    c.accesses += l.accesses;
    c.macs += macs;
    if (footprint == Footprint::sum) {
        c.around += l.resident + l.with_output + l.held + l.below;
        return c;
    }
    c.resident += l.resident;
    c.beside += c.beside > 0 ? l.with_output : 0;
    c.around += l.with_output;
    if (!is_kept) {
        // What comes next is stored in this nest, so none of it lives while the later layers ran.
        c.elsewhere = std::max(c.elsewhere, c.beside);
        c.beside = 0;
    }
    c.around += l.held;
    c.beside = std::max(c.beside, c.around + l.below);
    return c;
}

LeastCosts::LeastCosts(const std::vector<LayerProblem>& problems)
    : kernel_(problems.front().y().kernel * problems.front().x().kernel),
      macs_(problems.size() + 1, 0),
      accesses_(problems.size() + 1, 0) {
    std::vector<int64_t> own(problems.size());
    std::array<std::set<int64_t>, 2> needed;
    for (size_t axis = 0; axis < 2; ++axis) {
        for (int64_t out = 0; out < problems.back().window[axis].out; ++out)
            needed[axis].insert(out);
    }
    for (size_t k = problems.size(); k-- > 0;) {
        own[k] = problems[k][Dim::z] * problems[k][Dim::i];
        for (size_t axis = 0; axis < 2; ++axis) {
            const AxisWindow& w = problems[k].window[axis];
            std::set<int64_t> read;
            int64_t taps = 0;
            for (const int64_t out : needed[axis]) {
                taps += taps_of(w, out);
                for (int64_t n = 0; n < w.kernel; ++n) {
                    if (const auto in = w.input(out, n)) read.insert(*in);
                }
            }
            own[k] *= taps;
            needed[axis] = std::move(read);
        }
    }
    accesses_[0] = std::ssize(needed[0]) * std::ssize(needed[1]) * problems[0][Dim::i];
    for (size_t k = 0; k < problems.size(); ++k) {
        accesses_[k + 1] = accesses_[k] + problems[k].weight_elements().value();
        macs_[k + 1] = macs_[k] + own[k];
        int64_t alone = problems[k][Dim::z] * problems[k][Dim::i];
        for (const AxisWindow& w : problems[k].window) {
            int64_t taps = 0;
            for (int64_t out = 0; out < w.out; ++out) taps += taps_of(w, out);
            alone *= taps;
        }
        macs_alone_ += alone;
    }
}

ThreeCosts LeastCosts::bound(size_t k, Costs c, int64_t macs_of_next) const {
    if (k == 0) return {c.accesses, c.memory(), c.macs};
    c.around += kernel_ + static_cast<int64_t>(k);
    return {c.accesses + accesses_[k], c.memory(), c.macs + macs_of_next + macs_[k - 1]};
}

}  // namespace laminate::every
