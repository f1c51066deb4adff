#include "scheduler/explore/group_search/call_choices.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "base/indexed.h"
#include "scheduler/explore/group_search/choice_limit.h"
#include "scheduler/explore/group_search/halo_bound.h"
#include "scheduler/schedule/window.h"

namespace laminate::search {

namespace {

/// By coordinate of an axis: whether it is needed.
using Coordinates = IndexVector<char, int64_t>;

/// The input coordinates that the needed outputs read.
Coordinates read_by(const AxisWindow& w, const Coordinates& needed) {
    Coordinates inputs(w.in, 0);
    for (int64_t out = 0; out < w.out; ++out) {
        if (needed[out] == 0) continue;
        for (int64_t tap = 0; tap < w.kernel; ++tap) {
            if (const auto in = w.input(out, tap)) inputs[*in] = 1;
        }
    }
    return inputs;
}

int64_t taps(const AxisWindow& w, const Coordinates& needed) {
    int64_t sum = 0;
    for (int64_t out = 0; out < w.out; ++out) {
        if (needed[out] != 0) sum += taps_of(w, {out, out + 1});
    }
    return sum;
}

/// Numbers of coordinates of A_0 .. A_n along one axis that the whole output needs.
std::vector<int64_t> needed_coordinates(const std::vector<LayerProblem>& problems, size_t axis) {
    Coordinates needed(problems.back().window[axis].out, 1);
    std::vector<int64_t> result{static_cast<int64_t>(needed.size())};
    for (size_t k = problems.size(); k-- > 0;) {
        needed = read_by(problems[k].window[axis], needed);
        result.push_back(std::count(needed.begin(), needed.end(), 1));
    }
    std::reverse(result.begin(), result.end());
    return result;
}

/// Layers n - 1 .. k decided.
struct State {
    double held = 0;
    double roots = 0;        ///< without that of `open`
    double open = 0;         ///< a_k so far: layer k - 1 may add to it
    double again = 1;        ///< rho_{k-1}
    uint32_t narrow = 0;     ///< bit j: calls of layer j make one channel; or some_layer
    uint32_t own = 0;        ///< bit j: a_j > 0, or some_layer
    bool has_parts = false;  ///< as of Halos
    double per_call = 0;     ///< as of Halos, so far
    /// Whether each call of layer n - 1 calls layer k - 1 and, if k < n, brings weights (13).
    bool calls_on = false;
    // Of 10:
    bool has_groups = false;   ///< so far
    size_t divider = 0;        ///< 0 if there is none
    double groups = 0;         ///< sum of the square roots of g_j from there on
    double groups_before = 0;  ///< and before
    double waiting = 0;        ///< elements of layers that the group of the next such layer gets
};
using States = std::vector<State>;

/// Limits the number of states. If there are more, the costly ones become so many.
constexpr size_t most_states = 160;
constexpr size_t most_merged = 40;

/// Up to so many layers, narrow layers and numbers of trips are told from each other.
constexpr size_t most_told_apart = 5;
/// Channels that are told apart by their number of trips.
constexpr double most_by_trips = 128;

/// Groups are for choices that compute everything up to so many times. Others cost much anyway.
constexpr double most_again_of_groups = 4;

/// Chains of up to so many layers tell apart up to `most_own` layers whose weights come anew with
/// each call, and one narrow layer. To find all sets takes too long in longer ones.
constexpr size_t most_layers_of_sets = 8;
constexpr int most_own = 2;

/// Gives `s` the lesser of what both have.
void take_less(State& s, const State& other) {
    s.roots = std::min(s.roots, other.roots);
    s.groups = std::min(s.groups, other.groups);
    s.groups_before = std::min(s.groups_before, other.groups_before);
    s.waiting = std::min(s.waiting, other.waiting);
    s.per_call = std::min(s.per_call, other.per_call);
}
/// Whether `o` costs no more than `s`, which has no less `held`, whatever follows.
bool is_no_worse(const State& o, const State& s) {
    return o.roots <= s.roots && o.groups <= s.groups && o.groups_before <= s.groups_before &&
           o.waiting <= s.waiting && o.per_call <= s.per_call;
}

/// Keeps the states that no other one beats. All agree in everything but `held`, `roots`,
/// `per_call` and what groups have.
void keep_best(States& states) {
    std::ranges::sort(states, {}, [](const State& s) {
        return std::tuple(s.held, s.roots, s.groups + s.groups_before, s.groups);
    });
    States kept;
    for (const State& s : states) {
        if (std::none_of(kept.rbegin(), kept.rend(),
                         [&](const State& o) { return is_no_worse(o, s); }))
            kept.push_back(s);
    }
    if (kept.size() <= most_states) {
        states = std::move(kept);
        return;
    }
    // Those that cost most are told apart least: neighbours of them are merged into one state that
    // is as good as the best of them in each respect.
    const auto by_roots = [](const State& s) { return std::tuple(s.roots, s.held); };
    std::ranges::sort(kept, {}, by_roots);
    const auto costly = kept.begin() + static_cast<std::ptrdiff_t>(most_states - most_merged);
    states.assign(kept.begin(), costly);
    std::ranges::sort(costly, kept.end(), {}, &State::held);
    const auto count = static_cast<size_t>(kept.end() - costly);
    for (size_t n = 0; n < most_merged; ++n) {
        State s = costly[static_cast<std::ptrdiff_t>(n * count / most_merged)];
        for (size_t other = n * count / most_merged; other < (n + 1) * count / most_merged; ++other)
            take_less(s, costly[static_cast<std::ptrdiff_t>(other)]);
        states.push_back(s);
    }
}

/// Tiles of a class. All tiles of a class make as many trips if these are up to `few_trips`, or if
/// `by_trips` and there are up to most_by_trips channels. Else tiles from one power of two to the
/// next are a class. The smallest tile of a class stands for all where a term rises with the tile,
/// and the largest where it falls.
struct Tile {
    double least, most;
};
/// Tiles of inputs decide how much of A_{n-1} its buffer holds and how often Y comes.
constexpr double few_trips_of_inputs = 8;
constexpr double few_trips_of_outputs = 4;
/// The same if layer n reads all its inputs at once and calls of layer n - 1 make all of them.
/// There X comes once per trip, and the kernels of a tile leave room for lines or do not.
constexpr double few_trips_beside_whole_inputs = 8;

std::vector<Tile> tiles_of(double extent, double few_trips, bool by_trips) {
    std::vector<Tile> tiles;
    const double first_of_few = std::ceil(extent / few_trips);
    for (double t = 1; t <= extent; t = tiles.back().most + 1) {
        const double trips = std::ceil(extent / t);
        const double alike = trips == 1 ? extent : std::ceil(extent / (trips - 1)) - 1;
        const bool is_few = t >= first_of_few || (by_trips && extent <= most_by_trips);
        tiles.push_back({t, is_few ? alike : std::min(t * 2 - 1, first_of_few - 1)});
    }
    return tiles;
}

/// The channels of A_{n-1} for which halos are bounded. Tiles of an octave share them, unless they
/// make few trips.
double channels_of_halos(const Tile& t, double extent) {
    if (t.least >= std::ceil(extent / few_trips_of_inputs)) return t.least;
    return static_cast<double>(std::bit_floor(static_cast<uint64_t>(t.least)));
}

/// Decides for one layer after the other, from layer n - 1 to layer 1, for each choice of the last
/// layer's tiles and weights.
class CallChoices {
public:
    CallChoices(const ChainSizes& sizes, Detail detail, const ChoiceLimit& limit)
        : n_(sizes.layers),
          sizes_(sizes),
          limit_(sizes, limit),
          tells_apart_(detail == Detail::fine && n_ <= most_told_apart),
          is_short_(n_ <= most_layers_of_sets) {}

    [[nodiscard]] std::vector<CallChoice> all() {
        std::vector<CallChoice> choices;
        const double width = sizes_.channels[n_ - 1];
        for (const Tile& t : tiles_of(width, few_trips_of_inputs, tells_apart_)) {
            const double input_tiles = std::ceil(width / t.most);
            const double visits = sizes_.output * (2 * input_tiles - 1);
            for (const bool wide : {true, false}) {
                for (const Last& last : choices_of_last(t, wide)) {
                    for (const State& s : states_of(t, input_tiles, wide, last, visits)) {
                        const Halos halos{s.narrow != some_layer,
                                          channels_of_halos(t, width),
                                          s.narrow,
                                          s.has_parts,
                                          last.comes_with_tiles,
                                          s.per_call,
                                          last.sums};
                        const CallChoice choice{s.held,   s.roots + std::sqrt(s.open),
                                                s.own,    s.has_groups ? s.divider : 0,
                                                s.groups, s.groups_before,
                                                s.again,  halos,
                                                visits};
                        if (!limit_.is_out(0, choice.held, choice.all_roots(), choice.again,
                                           visits))
                            choices.push_back(choice);
                    }
                }
            }
        }
        return choices;
    }

private:
    /// The last layer's weights (6).
    struct Last {
        double held = 0, again = 1, extra = 0;
        double per_buffer = 0;          ///< over Y's buffer, which is held with the others
        bool comes_with_tiles = false;  ///< all weights with each tile of rows and columns
        bool comes_with_calls = false;  ///< all weights with each call of layer n - 1
        double sums = 0;                ///< as of HaloBound::End
    };
    [[nodiscard]] std::vector<Last> choices_of_last(const Tile& t, bool wide) const {
        const double weights = sizes_.weights[n_], channels = sizes_.channels[n_];
        const double work = weights * sizes_.pixels[n_];
        const double kernel = weights / (sizes_.channels[n_ - 1] * channels);
        std::vector<Last> lasts;
        if (wide)
            lasts = {
                {weights},
                {.extra = weights * sizes_.pixels[n_ - 1] * t.least, .comes_with_calls = true}};
        const bool is_whole = wide && t.least == sizes_.channels[n_ - 1];
        const double few_trips = is_whole ? few_trips_beside_whole_inputs : few_trips_of_outputs;
        for (const Tile& z : tiles_of(channels, few_trips, tells_apart_)) {
            const double again = std::ceil(channels / z.most);
            const double sums = wide ? 0 : z.least;
            if (!wide) {
                lasts.push_back({.held = weights, .again = again, .sums = sums});
                lasts.push_back({.again = again, .per_buffer = work * z.least, .sums = sums});
            }
            lasts.push_back({.held = kernel * t.least * z.least,
                             .again = again,
                             .comes_with_tiles = true,
                             .sums = sums});
        }
        return lasts;
    }

    /// All layers decided, for one choice of the last layer's tile `t` of its inputs and weights.
    [[nodiscard]] States states_of(const Tile& t, double input_tiles, bool wide, const Last& last,
                                   double visits) {
        const double width = sizes_.channels[n_ - 1];
        const double c = wide ? t.least : 1;
        const double again_before = std::min(most_again, last.again * (wide ? input_tiles : width));
        States states;
        State first{last.held, std::sqrt(last.per_buffer), 0, last.again};
        first.per_call = last.comes_with_calls ? sizes_.weights[n_] : 0;
        first.calls_on = wide;
        first.has_groups = wide && again_before <= most_again_of_groups;
        decide({n_ - 1, c, again_before, sizes_.weights[n_ - 1] * c / width, !wide, last.extra},
               first, states);
        limit_.begin(last.held, again_before);
        // Layers 1 .. `open` are not decided.
        const auto is_out = [&](size_t open, const State& s) {
            return limit_.is_out(open, s.held, s.roots + std::sqrt(s.open), s.again, visits);
        };
        std::erase_if(states, [&](const State& s) { return is_out(n_ - 2, s); });
        for (size_t k = n_ - 1; k-- > 1;) {
            const double channels = sizes_.channels[k], weights = sizes_.weights[k];
            std::map<std::array<double, 7>, States> next;
            States made;
            for (const State& s : states) {
                made.clear();
                decide({k, channels, s.again, weights, false, 0}, s, made);
                decide({k, 1, std::min(most_again, s.again * channels), weights, true, 0}, s, made);
                for (const State& m : made) {
                    if (is_out(k - 1, m)) continue;
                    next[{m.open, m.again, static_cast<double>(m.narrow),
                          static_cast<double>(m.own),
                          m.has_groups ? static_cast<double>(m.divider) : -1, m.has_parts ? 1.0 : 0,
                          m.calls_on ? 1.0 : 0}]
                        .push_back(m);
                }
            }
            states.clear();
            for (auto& [key, alike] : next) {
                keep_best(alike);
                states.insert(states.end(), alike.begin(), alike.end());
            }
        }
        return states;
    }

    struct Decision {
        size_t k = 0;
        double c = 1;             ///< channels of a call
        double again_before = 1;  ///< rho_{k-1}
        double long_held = 0;     ///< elements of weights that are kept as long as A_k
        bool is_narrow = false;   ///< one channel at a time
        double extra = 0;         ///< what layer k + 1 adds to a_k
    };
    /// Makes the states that follow `s`: weights of layer k in its own nest, kept as long as A_k,
    /// all of them kept where those are a part, or (narrow) one channel of them kept as long as its
    /// channel.
    void decide(const Decision& d, const State& s, States& out) const {
        const double weights = sizes_.weights[d.k];
        const double roots = s.roots + std::sqrt(s.open);
        const size_t first = out.size();
        uint32_t narrow = s.narrow;
        if (d.is_narrow) narrow = with(narrow, d.k, tells_apart_ ? most_narrow : is_short_ ? 1 : 0);
        out.push_back({s.held, roots, weights * d.c * s.again * sizes_.pixels[d.k] + d.extra,
                       d.again_before, narrow, with_own(s.own, d.k)});
        if (s.calls_on) out.back().per_call = weights * s.again;
        if (s.has_groups && !d.is_narrow) add_group(d, s, out.back());
        out.push_back({s.held + d.long_held, roots, d.extra, d.again_before, narrow,
                       d.extra > 0 ? with_own(s.own, d.k) : s.own});
        if (s.has_groups && !d.is_narrow) wait_for_group(d, s, out.back());
        if (d.long_held < weights) {
            State at_root = out.back();
            at_root.held = s.held + weights;
            out.back().has_parts = true;
            out.push_back(at_root);
        }
        if (d.is_narrow && d.k < n_ - 1) {
            const double more = weights * sizes_.channels[d.k + 1] * sizes_.pixels[d.k + 1];
            out.push_back({s.held + weights / sizes_.channels[d.k],
                           s.roots + std::sqrt(s.open + more), 0, d.again_before, narrow,
                           with_own(s.own, d.k + 1)});
        }
        for (size_t n = first; n < out.size(); ++n) {
            State& made = out[n];
            made.has_parts |= s.has_parts;
            made.per_call += s.per_call;
            made.calls_on = s.calls_on && made.per_call > 0 && sizes_.transposed[d.k] == 0;
        }
    }

    /// Layer k begins a group: all layers from it to the next one that does.
    void add_group(const Decision& d, const State& s, State& to) const {
        begin_group(
            d.k, sizes_.weights[d.k] * (d.c * s.again * sizes_.pixels[d.k] + s.waiting) + d.extra,
            s, to);
    }
    /// The weights of layer k are held, so its calls are no more than those of a layer before;
    /// unless those of layer n come with them.
    void wait_for_group(const Decision& d, const State& s, State& to) const {
        if (d.extra > 0) {
            begin_group(d.k, d.extra, s, to);
            return;
        }
        to.has_groups = true;
        to.divider = s.divider;
        to.groups = s.groups;
        to.groups_before = s.groups_before;
        if (sizes_.transposed[d.k] != 0) return;
        to.waiting = s.waiting + sizes_.channels[d.k] * s.again * sizes_.inner[d.k];
    }
    /// The first layer of a group is k, and its g is `elements`.
    void begin_group(size_t k, double elements, const State& s, State& to) const {
        const double group = std::sqrt(elements);
        to.has_groups = true;
        // Any of these layers may be the divider. The earlier it is, the fewer layers have halos,
        // so what the layer moves with calls must make up for it.
        const bool divides = group * (2 * k > n_ ? 2 : 1) >= s.groups;
        to.divider = divides ? k : s.divider;
        to.groups = s.groups + (divides ? s.groups_before + group : 0);
        to.groups_before = divides ? 0 : s.groups_before + group;
    }

    /// The set of `layers` and layer k; some_layer if it has more than `most`.
    static uint32_t with(uint32_t layers, size_t k, int most) {
        const uint32_t all = layers | 1U << k;
        return layers == some_layer || std::popcount(all) > most ? some_layer : all;
    }
    [[nodiscard]] uint32_t with_own(uint32_t own, size_t k) const {
        return with(own, k, is_short_ ? most_own : 0);
    }

    size_t n_;
    const ChainSizes& sizes_;
    LimitOfChoices limit_;
    bool tells_apart_;
    bool is_short_;
    static constexpr int most_narrow = most_told_apart;
};

/// Whether choice `o` costs no more than `c`, which has no less `held`, in any memory.
bool is_no_worse(const CallChoice& o, const CallChoice& c) {
    return o.roots <= c.roots && (o.own & c.own) == c.own && o.again <= c.again &&
           (o.divider == 0 || (o.divider == c.divider && o.groups <= c.groups &&
                               o.groups_before <= c.groups_before)) &&
           o.halos.are_fewer(c.halos) && o.output <= c.output;
}

/// What choices are told apart by first: one of those with equal keys often beats the other.
using AlikeKey = std::array<double, 9>;
AlikeKey alike_key(const CallChoice& c) {
    const int flags = (c.halos.has_parts ? 1 : 0) + (c.halos.has_tiles ? 2 : 0);
    return {static_cast<double>(c.own),
            static_cast<double>(c.divider),
            c.again,
            c.halos.count ? 1.0 : 0.0,
            c.halos.last_channels,
            static_cast<double>(c.halos.narrow),
            static_cast<double>(flags),
            c.halos.per_call,
            c.halos.sums};
}
/// Choices that beat others of different keys: only the latest are tried again.
constexpr size_t most_others = 64;

}  // namespace

ChainSizes::ChainSizes(const std::vector<LayerProblem>& problems)
    : layers(problems.size()),
      pixels(layers + 1, 1),
      inner(inner_pixels(problems)),
      transposed{0},
      weights{0},
      channels{static_cast<double>(problems.front()[Dim::i])},
      output(static_cast<double>(problems.back().output_elements().value())) {
    for (size_t axis = 0; axis < 2; ++axis) {
        const std::vector<int64_t> coordinates = needed_coordinates(problems, axis);
        for (size_t k = 0; k <= layers; ++k) pixels[k] *= static_cast<double>(coordinates[k]);
    }
    for (const LayerProblem& p : problems) {
        weights.push_back(static_cast<double>(p.weight_elements().value()));
        channels.push_back(static_cast<double>(p[Dim::z]));
        transposed.push_back(p.window[0].transposed || p.window[1].transposed ? 1 : 0);
        all_weights += weights.back();
    }
}

std::vector<CallChoice> call_choices(const ChainSizes& sizes, Detail detail,
                                     const ChoiceLimit& limit) {
    std::vector<CallChoice> choices = CallChoices(sizes, detail, limit).all();
    std::sort(choices.begin(), choices.end(),
              [](const CallChoice& a, const CallChoice& b) { return a.held < b.held; });
    std::vector<CallChoice> kept;
    std::map<AlikeKey, std::vector<size_t>> alike;  // places in `kept`
    std::vector<size_t> others;  // that beat something lately, the last one first
    for (const CallChoice& c : choices) {
        const auto is_beaten = [&](size_t n) { return is_no_worse(kept[n], c); };
        const auto beats = std::ranges::find_if(others, is_beaten);
        if (beats != others.end()) {
            std::rotate(others.begin(), beats, beats + 1);
            continue;
        }
        std::vector<size_t>& own = alike[alike_key(c)];
        const auto beats_alike = std::find_if(own.rbegin(), own.rend(), is_beaten);
        if (beats_alike != own.rend()) {
            if (others.size() == most_others) others.pop_back();
            others.insert(others.begin(), *beats_alike);
            continue;
        }
        own.push_back(kept.size());
        kept.push_back(c);
    }
    return kept;
}

double least_macs(const std::vector<LayerProblem>& problems) {
    std::vector<double> macs(problems.size(), 1);
    for (size_t axis = 0; axis < 2; ++axis) {
        Coordinates needed(problems.back().window[axis].out, 1);
        for (size_t k = problems.size(); k-- > 0;) {
            const AxisWindow& w = problems[k].window[axis];
            macs[k] *= static_cast<double>(taps(w, needed));
            needed = read_by(w, needed);
        }
    }
    double sum = 0;
    for (size_t k = 0; k < problems.size(); ++k)
        sum += macs[k] * static_cast<double>(problems[k][Dim::z] * problems[k][Dim::i]);
    return sum;
}

}  // namespace laminate::search
