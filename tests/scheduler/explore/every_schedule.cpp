#include "tests/scheduler/explore/every_schedule.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <map>
#include <numeric>
#include <optional>

#include "base/units.h"

namespace laminate {

namespace {

enum Axis : uint8_t { rows = 0, columns = 1, inputs = 2, outputs = 3 };  // of loops: y, x, i, z
constexpr size_t axis_count = 4;
Axis axis_of(Dim d) {
    return d == Dim::y ? rows : d == Dim::x ? columns : d == Dim::i ? inputs : outputs;
}

/// Where the loop of an axis lies in the nest that reads a tensor.
enum class Place : uint8_t { above_store, between, below_compute, kept_between, kept_below };

/// A piece of a tensor along one axis, asked for in the iteration of the loops between its levels
/// that `path` numbers.
struct Piece {
    std::vector<int> path;
    int64_t begin = 0;
    int64_t end = 0;
    friend auto operator<=>(const Piece&, const Piece&) = default;
};
using Lifetime = std::vector<Piece>;  // of a buffer: what is new in it, in order
/// How often which lifetime comes; all that a nest knows of the nests after it along one axis.
using Pattern = std::map<Lifetime, int64_t>;
/// The same for channels, where pieces are disjoint: their sizes.
using ChannelPattern = std::map<std::vector<int64_t>, int64_t>;

/// What a lifetime shows of the bodies of one axis, the store level's first: docs/counting.md
/// section 5.
struct Body {
    bool has_trips = false;  ///< several
    int64_t held = 0;
    bool overlaps = false;
    friend auto operator<=>(const Body&, const Body&) = default;
};
using Bodies = std::vector<Body>;
using BodiesOfLifetimes = std::vector<Bodies>;  // those that differ

Bodies bodies_of(const Lifetime& needs) {
    Bodies bodies;
    for (size_t depth = 0; depth <= needs.front().path.size(); ++depth) {
        const auto is_same = [&](const Piece& a, const Piece& b, size_t length) {
            return std::equal(a.path.begin(), a.path.begin() + static_cast<std::ptrdiff_t>(length),
                              b.path.begin());
        };
        Body body;
        int64_t frontier = INT64_MIN;
        for (size_t first = 0, last = 0; first < needs.size(); first = last) {
            int64_t begin = INT64_MAX;
            int64_t end = INT64_MIN;
            for (last = first; last < needs.size() && is_same(needs[first], needs[last], depth);
                 ++last) {
                begin = std::min(begin, needs[last].begin);
                end = std::max(end, needs[last].end);
            }
            body.overlaps |= begin < frontier;
            frontier = std::max(frontier, end);
            body.held = std::max(body.held, frontier - begin);
            if (first > 0 && depth > 0)
                body.has_trips |= is_same(needs[first - 1], needs[first], depth - 1);
        }
        bodies.push_back(body);
    }
    return bodies;
}

/// A loop over `length` coordinates that are all different, inside the store level.
Bodies plain_bodies(int64_t length) { return {{false, length, false}, {length > 1, 1, false}}; }

/// Elements of a buffer along its `indexing` axes together, by the fold rule.
int64_t fold(const std::vector<Axis>& walk,
             const std::array<const BodiesOfLifetimes*, axis_count>& lifetimes,
             const std::array<bool, axis_count>& indexing) {
    std::array<int64_t, axis_count> extent{1, 1, 1, 1};
    std::array<size_t, axis_count> at{};
    for (;;) {
        const auto bodies = [&](Axis a) -> const Bodies& { return (*lifetimes[a])[at[a]]; };
        std::array<int64_t, axis_count> found{1, 1, 1, 1};
        for (const Axis a : {rows, columns, inputs, outputs}) {
            if (indexing[a]) found[a] = bodies(a).front().held;
        }
        std::array<size_t, axis_count> depth{};
        std::optional<Axis> run;
        bool goes_on = true;
        const auto end_run = [&] {
            if (!run) return;
            const Body& body = bodies(*run)[depth[*run]];
            found[*run] = body.held;
            goes_on = !body.overlaps;
        };
        std::array<size_t, axis_count> next{};
        for (const Axis a : walk) {
            if (!bodies(a)[++next[a]].has_trips) continue;
            if (run && run != a) {
                end_run();
                run.reset();
            }
            goes_on = goes_on && indexing[a];
            if (!goes_on) break;
            run = a;
            depth[a] = next[a];
        }
        if (goes_on) end_run();
        for (size_t a = 0; a < axis_count; ++a) extent[a] = std::max(extent[a], found[a]);
        size_t a = 0;
        while (a < axis_count && (lifetimes[a] == nullptr || ++at[a] == lifetimes[a]->size()))
            at[a++] = 0;
        if (a == axis_count) break;
    }
    return extent[0] * extent[1] * extent[2] * extent[3];
}

/// What the counts see of a layer's order and levels; equal values, equal counts.
struct Shape {
    std::array<Place, axis_count> place{};
    std::vector<Axis> walk;  ///< own loops between the levels of the input
    bool is_kept = false;    ///< the input lives as long as the output
    int weights = 0;         ///< 0 at an own level, 5 as long as the output, 6 resident
    std::array<bool, axis_count> inside_weights{};  ///< own level: loops inside it
    std::vector<Axis> weights_walk;
    bool weights_below = false;  ///< inside the compute level of the input
    bool output_below = false;
    std::array<bool, axis_count> inside_output{};  ///< last layer: loops inside ii
    friend auto operator<=>(const Shape&, const Shape&) = default;
};

/// A nest's output as the nests after it ask for it.
struct State {
    std::array<size_t, 2> pattern{};  ///< rows, columns
    size_t channels = 0;
    std::vector<Axis> walk;  ///< loops between the levels of the output
    friend auto operator<=>(const State&, const State&) = default;
};

/// Of the layers so far, last one first. Total memory: resident + the largest of `elsewhere`,
/// `beside + s`, `around + s + m`, where s is stored with the tensor that comes next (by the layers
/// before it) and m is held by the nests before.
struct Costs {
    int64_t accesses = 0;
    int64_t macs = 0;
    int64_t resident = 0;
    int64_t elsewhere = 0;
    int64_t beside = 0;
    int64_t around = 0;
    size_t trace = 0;
    [[nodiscard]] int64_t memory() const {
        return resident + std::max({elsewhere, beside, around});
    }
    [[nodiscard]] bool no_worse(const Costs& o) const {
        return accesses <= o.accesses && macs <= o.macs && resident <= o.resident &&
               elsewhere <= o.elsewhere && beside <= o.beside && around <= o.around;
    }
};

/// Of one layer.
struct Local {
    int64_t accesses = 0;
    int64_t resident = 0;
    int64_t with_output = 0;  ///< stored where the output is
    int64_t held = 0;         ///< in the nest, while the producer runs too
    int64_t below = 0;        ///< inside, not while the producer runs
    ChainSchedule::Layer layer;
    [[nodiscard]] bool no_worse(const Local& o) const {
        return accesses <= o.accesses && resident <= o.resident && with_output <= o.with_output &&
               held <= o.held && below <= o.below;
    }
};

template <class T>
void insert(std::vector<T>& set, const T& value) {
    for (const T& other : set) {
        if (other.no_worse(value)) return;
    }
    std::erase_if(set, [&](const T& other) { return value.no_worse(other); });
    set.push_back(value);
}

std::vector<int64_t> candidates(int64_t extent, TileSizes kind) {
    std::vector<int64_t> sizes;
    for (int64_t t = 1; t <= extent; ++t) {
        const bool is_power = (t & (t - 1)) == 0 || t == extent;
        if (kind == TileSizes::all || (kind == TileSizes::divisors ? extent % t == 0 : is_power))
            sizes.push_back(t);
    }
    return sizes;
}

template <class T>
class Numbered {
public:
    size_t number(const T& value) {
        const auto [at, is_new] = numbers_.emplace(value, values_.size());
        if (is_new) values_.push_back(value);
        return at->second;
    }
    [[nodiscard]] const T& operator[](size_t n) const { return values_[n]; }

private:
    std::map<T, size_t> numbers_;
    std::deque<T> values_;
};

}  // namespace

class EverySchedule::Impl {
public:
    Impl(std::vector<LayerProblem> problems, const EveryScheduleOptions& options)
        : problems_(std::move(problems)), options_(options), space_(problems_) {
        for (size_t k = 0; k < problems_.size(); ++k) shapes_.push_back(shapes(k));
        find_least();
    }

    std::set<ThreeCosts> unbeaten_by(const std::set<ThreeCosts>& front) {
        trace_.assign(1, {});
        examples_.clear();
        std::map<State, std::vector<Costs>> states{{whole_output(), {Costs{}}}};
        for (size_t k = problems_.size(); k-- > 0;) {
            std::map<State, std::vector<Costs>> next;
            for (const auto& [state, costs] : states) expand(k, state, costs, front, next);
            states = std::move(next);
        }
        return front_of_examples();
    }

    [[nodiscard]] std::string example(const ThreeCosts& cost) const {
        ChainSchedule schedule;
        for (size_t t = examples_.at(cost); t != 0; t = trace_[t].after)
            schedule.layers.push_back(trace_[t].layer);
        // Traced from the first layer to the last.
        const auto group = space_.group(schedule);
        return group ? to_text(*group) : "outside the space";
    }

    ThreeCosts cost(const ChainSchedule& schedule) {
        State state = whole_output();
        Costs costs;
        for (size_t k = problems_.size(); k-- > 0;) {
            const ChainSchedule::Layer& layer = schedule.layers[k];
            Shape shape = shape_of(k, layer);
            if (k > 0 && (shape.place[outputs] == Place::between ||
                          shape.place[outputs] == Place::kept_between)) {
                // In the space with a single trip only.
                std::erase(shape.walk, outputs);
                shape.place[outputs] = Place::below_compute;
            }
            const Tables tables = this->tables(state);
            State next;
            const Local local = this->local(k, tables, shape, layer.tile, next);
            costs = step(costs, local, shape, macs(k, state));
            state = next;
        }
        return {costs.accesses, costs.memory(), costs.macs};
    }

private:
    /// Along one spatial axis, for one place and tile of the loop that runs over the layer's
    /// output.
    struct Spatial {
        size_t pattern = 0;
        int64_t brought = 0;
        BodiesOfLifetimes lifetimes;
    };
    /// Tiles of the layer's own output along an axis.
    struct Tiling {
        int64_t tiles = 0;
        int64_t coordinates = 0;
        BodiesOfLifetimes lifetimes;  ///< one per tile, those that differ
    };
    /// Along z of the layer and i, its input's channels, for one place and tile of each.
    struct Channels {
        size_t asked = 0;  ///< channel pattern
        int64_t runs = 0;  ///< how often all of i comes anew
        BodiesOfLifetimes of_i;
        BodiesOfLifetimes of_weights_i;
        BodiesOfLifetimes of_z;
    };
    struct Tables {
        const State* state = nullptr;
        std::array<int64_t, 2> scopes{};
        std::array<int64_t, 2> largest{};
        int64_t largest_channels = 0;
        int64_t channels = 0;         ///< all calls together
        int64_t most_in_a_scope = 0;  ///< channels
    };
    struct Trace {
        ChainSchedule::Layer layer;
        size_t after = 0;
    };

    [[nodiscard]] const LayerProblem& problem(size_t k) const { return problems_[k]; }
    [[nodiscard]] bool is_last(size_t k) const { return k + 1 == problems_.size(); }
    [[nodiscard]] int64_t kernel(size_t k) const {
        return problem(k).y().kernel * problem(k).x().kernel;
    }

    State whole_output() {
        const LayerProblem& p = problems_.back();
        return {{patterns_.number({{{{{}, 0, p[Dim::y]}}, 1}}),
                 patterns_.number({{{{{}, 0, p[Dim::x]}}, 1}})},
                channel_patterns_.number({{{p[Dim::z]}, 1}}),
                {}};
    }

    // ---- orders and levels

    Shape shape_of(size_t k, const ChainSchedule::Layer& l) const {
        Shape s;
        s.is_kept = l.store < 0;
        const int store = std::max(l.store, 0);
        const int compute = k == 0 ? 4 : l.compute;
        s.weights = l.weights <= 4 ? 0 : l.weights;
        bool is_inside_output = false;
        int ii = 0;
        for (int n = 0; n < 4; ++n) {
            const Axis a = axis_of(l.order[static_cast<size_t>(n)]);
            const bool has_one_trip =
                a == inputs && problem(k)[Dim::i] == 1;  // as though it were the innermost
            if (n >= compute || has_one_trip)
                s.place[a] = s.is_kept ? Place::kept_below : Place::below_compute;
            else if (s.is_kept || n >= store)
                s.place[a] = s.is_kept ? Place::kept_between : Place::between;
            else
                s.place[a] = Place::above_store;
            if (n >= store && n < compute && !has_one_trip) s.walk.push_back(a);
            if (s.weights == 0 && n >= l.weights) {
                s.inside_weights[a] = true;
                s.weights_walk.push_back(a);
            }
            if (is_inside_output && is_last(k)) s.inside_output[a] = true;
            if (a == inputs) {
                is_inside_output = true;
                ii = n;
            }
        }
        // Of neighbouring loops that all index the weights, or all do not, the order does not
        // matter: none of them overlaps.
        const auto indexes = [](Axis a) { return a == inputs || a == outputs; };
        for (auto begin = s.weights_walk.begin(); begin != s.weights_walk.end();) {
            auto end = begin;
            while (end != s.weights_walk.end() && indexes(*end) == indexes(*begin)) ++end;
            std::sort(begin, end);
            begin = end;
        }
        s.weights_below = k > 0 && s.weights == 0 && l.weights > compute;
        s.output_below = k > 0 && is_last(k) && ii > compute;
        return s;
    }

    [[nodiscard]] std::map<Shape, ChainSchedule::Layer> shapes(size_t k) const {
        std::map<Shape, ChainSchedule::Layer> found;
        const bool is_alone = problems_.size() == 1;
        ChainSchedule::Layer l;
        std::sort(l.order.begin(), l.order.end());
        do {
            for (l.store = is_last(k) ? 0 : -1; l.store <= 4; ++l.store) {
                for (l.compute = k == 0 ? 4 : std::max(l.store, 0); l.compute <= 4; ++l.compute) {
                    for (l.weights = 0; l.weights <= 6; ++l.weights) {
                        if (l.weights == 5 && is_last(k)) continue;
                        if (l.weights == 6 && is_alone) continue;
                        if (options_.only_resident && !is_alone && l.weights != 6) continue;
                        const Shape s = shape_of(k, l);
                        const bool is_z_between = s.place[outputs] == Place::between ||
                                                  s.place[outputs] == Place::kept_between;
                        if (k > 0 && is_z_between) continue;
                        found.emplace(s, l);
                    }
                }
            }
        } while (std::next_permutation(l.order.begin(), l.order.end()));
        return found;
    }

    // ---- along an axis

    /// Input coordinate of an output and a tap, wherever it lies; none where a transposed
    /// convolution has no tap.
    static std::optional<int64_t> tap_at(const AxisWindow& w, int64_t out, int64_t tap) {
        if (!w.transposed) return out * w.stride + tap * w.dilation - w.pad_begin;
        const int64_t scaled = out + w.pad_begin - tap * w.dilation;
        if (scaled % w.stride != 0) return std::nullopt;
        return scaled / w.stride;
    }

    /// The box around all taps of outputs begin .. end, those on padding too, clipped to the input.
    [[nodiscard]] Piece window(size_t k, size_t axis, int64_t begin, int64_t end) const {
        const AxisWindow& w = problem(k).window[axis];
        Piece hull{{}, INT64_MAX, INT64_MIN};
        for (int64_t out = begin; out < end; ++out) {
            for (int64_t tap = 0; tap < w.kernel; ++tap) {
                const std::optional<int64_t> in = tap_at(w, out, tap);
                if (!in) continue;
                hull.begin = std::min(hull.begin, *in);
                hull.end = std::max(hull.end, *in + 1);
            }
        }
        return {{}, std::max<int64_t>(hull.begin, 0), std::min(hull.end, w.in)};
    }

    const Spatial& spatial(size_t k, size_t axis, size_t pattern, Place place, int64_t tile) {
        const auto key = std::make_tuple(k, axis, pattern, place, tile);
        const auto known = spatial_.find(key);
        if (known != spatial_.end()) return known->second;
        Spatial result;
        Pattern asked;
        std::set<Bodies> lifetimes;
        const auto add = [&](const Lifetime& needs, int64_t times) {
            lifetimes.insert(bodies_of(needs));
            Lifetime fresh;
            int64_t frontier = INT64_MIN;
            for (Piece piece : needs) {
                const int64_t end = piece.end;
                piece.begin = std::max(piece.begin, frontier);
                if (piece.begin < piece.end) {
                    fresh.push_back(piece);
                    result.brought += (piece.end - piece.begin) * times;
                }
                frontier = std::max(frontier, end);
            }
            asked[fresh] += times;
        };
        for (const auto& [scope, times] : patterns_[pattern]) {
            Lifetime kept;
            for (const Piece& call : scope) {
                if (place == Place::kept_below) {
                    Piece need = window(k, axis, call.begin, call.end);
                    need.path = call.path;
                    kept.push_back(need);
                    continue;
                }
                if (place == Place::kept_between) {
                    for (int64_t out = call.begin; out < call.end; ++out) {
                        Piece need = window(k, axis, out, out + 1);
                        need.path = call.path;
                        need.path.push_back(static_cast<int>(out - call.begin));
                        kept.push_back(need);
                    }
                    continue;
                }
                for (int64_t begin = call.begin; begin < call.end; begin += tile) {
                    const int64_t end = std::min(begin + tile, call.end);
                    if (place == Place::below_compute) add({window(k, axis, begin, end)}, times);
                    Lifetime between;
                    for (int64_t out = begin; out < end; ++out) {
                        Piece need = window(k, axis, out, out + 1);
                        if (place == Place::above_store) add({need}, times);
                        need.path = {static_cast<int>(out - begin)};
                        between.push_back(need);
                    }
                    if (place == Place::between) add(between, times);
                }
            }
            if (!kept.empty()) add(kept, times);
        }
        result.pattern = patterns_.number(asked);
        result.lifetimes.assign(lifetimes.begin(), lifetimes.end());
        return spatial_.emplace(key, std::move(result)).first->second;
    }

    const Tiling& tiling(size_t pattern, int64_t tile) {
        const auto key = std::make_pair(pattern, tile);
        const auto known = tilings_.find(key);
        if (known != tilings_.end()) return known->second;
        Tiling result;
        std::set<Bodies> lifetimes;
        for (const auto& [scope, times] : patterns_[pattern]) {
            for (const Piece& call : scope) {
                const int64_t extent = call.end - call.begin;
                result.tiles += ceil_div(extent, tile) * times;
                result.coordinates += extent * times;
                for (int64_t at = 0; at < extent; at += tile)
                    lifetimes.insert(plain_bodies(std::min(tile, extent - at)));
            }
        }
        result.lifetimes.assign(lifetimes.begin(), lifetimes.end());
        return tilings_.emplace(key, std::move(result)).first->second;
    }

    /// The nest runs over all of i for each z, or each tile of z, for which its input comes anew.
    const Channels& channels(size_t k, size_t pattern, const Shape& s, int64_t tile_z,
                             int64_t tile_i) {
        const auto key =
            std::make_tuple(k, pattern, s.place[outputs], s.place[inputs], tile_z, tile_i);
        const auto known = channels_.find(key);
        if (known != channels_.end()) return known->second;
        const LayerProblem& p = problem(k);
        Channels result;
        std::set<Bodies> z_lifetimes;
        for (const auto& [scope, times] : channel_patterns_[pattern]) {
            if (s.is_kept) result.runs += times;
            for (const int64_t call : scope) {
                if (!s.is_kept)
                    result.runs +=
                        times *
                        (s.place[outputs] == Place::above_store ? call : ceil_div(call, tile_z));
                for (int64_t at = 0; at < call; at += tile_z)
                    z_lifetimes.insert(plain_bodies(std::min(tile_z, call - at)));
            }
        }
        ChannelPattern asked;
        std::set<Bodies> i_lifetimes;
        std::set<Bodies> weights_i_lifetimes;
        for (int64_t at = 0; at < p[Dim::i]; at += tile_i) {
            const int64_t length = std::min(tile_i, p[Dim::i] - at);
            weights_i_lifetimes.insert(plain_bodies(length));
            switch (s.place[inputs]) {
                case Place::above_store:
                    asked[{1}] += length * result.runs;
                    i_lifetimes.insert(Bodies{{false, 1, false}});
                    break;
                case Place::between:
                case Place::kept_between:
                    asked[std::vector<int64_t>(static_cast<size_t>(length), 1)] += result.runs;
                    i_lifetimes.insert(plain_bodies(length));
                    break;
                case Place::below_compute:
                case Place::kept_below:
                    asked[{length}] += result.runs;
                    i_lifetimes.insert(Bodies{{false, length, false}});
                    break;
            }
        }
        result.asked = channel_patterns_.number(asked);
        result.of_z.assign(z_lifetimes.begin(), z_lifetimes.end());
        result.of_i.assign(i_lifetimes.begin(), i_lifetimes.end());
        result.of_weights_i.assign(weights_i_lifetimes.begin(), weights_i_lifetimes.end());
        return channels_.emplace(key, std::move(result)).first->second;
    }

    [[nodiscard]] int64_t taps(size_t k, size_t axis, size_t pattern) const {
        const AxisWindow& w = problem(k).window[axis];
        int64_t sum = 0;
        for (const auto& [scope, times] : patterns_[pattern]) {
            for (const Piece& call : scope) {
                for (int64_t out = call.begin; out < call.end; ++out)
                    sum += times * taps_of(w, out);
            }
        }
        return sum;
    }

    /// Taps on padding are taps; of a transposed convolution those that fall between inputs are
    /// not.
    [[nodiscard]] static int64_t taps_of(const AxisWindow& w, int64_t out) {
        int64_t taps = 0;
        for (int64_t n = 0; n < w.kernel; ++n) taps += tap_at(w, out, n) ? 1 : 0;
        return taps;
    }

    [[nodiscard]] int64_t macs(size_t k, const State& state) {
        const auto key =
            std::make_pair(k, std::make_tuple(state.pattern[0], state.pattern[1], state.channels));
        const auto known = macs_.find(key);
        if (known != macs_.end()) return known->second;
        int64_t channels = 0;
        for (const auto& [scope, times] : channel_patterns_[state.channels])
            channels += times * std::accumulate(scope.begin(), scope.end(), int64_t{0});
        const int64_t macs = taps(k, 0, state.pattern[0]) * taps(k, 1, state.pattern[1]) *
                             channels * problem(k)[Dim::i];
        macs_.emplace(key, macs);
        return macs;
    }

    [[nodiscard]] Tables tables(const State& state) const {
        Tables t;
        t.state = &state;
        for (size_t axis = 0; axis < 2; ++axis) {
            for (const auto& [scope, times] : patterns_[state.pattern[axis]]) {
                t.scopes[axis] += times;
                for (const Piece& call : scope)
                    t.largest[axis] = std::max(t.largest[axis], call.end - call.begin);
            }
        }
        for (const auto& [scope, times] : channel_patterns_[state.channels]) {
            const int64_t all = std::accumulate(scope.begin(), scope.end(), int64_t{0});
            t.channels += times * all;
            t.most_in_a_scope = std::max(t.most_in_a_scope, all);
            for (const int64_t call : scope)
                t.largest_channels = std::max(t.largest_channels, call);
        }
        return t;
    }

    // ---- one layer

    /// `next`: what is asked of the layer before.
    Local local(size_t k, const Tables& tables, const Shape& s, PerDim<int64_t> tile, State& next) {
        const State& state = *tables.state;
        const LayerProblem& p = problem(k);
        if (s.is_kept || s.weights == 5) tile = p.extent;
        if (!is_last(k)) tile[Dim::i] = p[Dim::i];
        const auto size = [&](Dim d) { return tile[d]; };
        const std::array<Dim, 2> dims{Dim::y, Dim::x};
        std::array<const Spatial*, 2> along{};
        std::array<const Tiling*, 2> tiles{};
        for (size_t axis = 0; axis < 2; ++axis) {
            along[axis] = &spatial(k, axis, state.pattern[axis], s.place[axis], size(dims[axis]));
            tiles[axis] = &tiling(state.pattern[axis], size(dims[axis]));
        }

        const Channels& channels = this->channels(k, state.channels, s, size(Dim::z), size(Dim::i));

        next.pattern = {along[0]->pattern, along[1]->pattern};
        next.channels = channels.asked;
        next.walk = s.is_kept ? state.walk : std::vector<Axis>{};
        next.walk.insert(next.walk.end(), s.walk.begin(), s.walk.end());

        Local local;
        if (k == 0)
            local.accesses += along[0]->brought * along[1]->brought * p[Dim::i] * channels.runs;
        const int64_t input_buffer = fold(
            next.walk, {&along[0]->lifetimes, &along[1]->lifetimes, &channels.of_i, &channels.of_z},
            {true, true, true, false});
        (s.is_kept ? local.with_output : local.held) += input_buffer;
        std::erase(next.walk, outputs);

        if (s.weights == 6) {
            local.accesses += kernel(k) * p[Dim::i] * p[Dim::z];
            local.resident += kernel(k) * p[Dim::i] * p[Dim::z];
        } else if (s.weights == 5) {
            local.accesses +=
                kernel(k) * p[Dim::i] * tables.channels * tables.scopes[0] * tables.scopes[1];
            local.with_output += kernel(k) * p[Dim::i] * tables.most_in_a_scope;
        } else {
            int64_t times = 1;
            for (size_t axis = 0; axis < 2; ++axis)
                times *= s.inside_weights[axis] ? tiles[axis]->tiles : tiles[axis]->coordinates;
            local.accesses += kernel(k) * p[Dim::i] * tables.channels * times;
            static const BodiesOfLifetimes one{Bodies{{false, 1, false}}};
            const auto inside = [&](Axis a, const BodiesOfLifetimes& lifetimes) {
                return s.inside_weights[a] ? &lifetimes : &one;
            };
            (s.weights_below ? local.below : local.held) +=
                kernel(k) *
                fold(s.weights_walk,
                     {inside(rows, tiles[0]->lifetimes), inside(columns, tiles[1]->lifetimes),
                      inside(inputs, channels.of_weights_i), inside(outputs, channels.of_z)},
                     {false, false, true, true});
        }
        if (is_last(k)) {
            local.accesses +=
                p.output_elements().value() * (2 * ceil_div(p[Dim::i], size(Dim::i)) - 1);
            int64_t buffer = 1;
            for (const Dim d : {Dim::z, Dim::y, Dim::x})
                buffer *= s.inside_output[axis_of(d)] ? size(d) : 1;
            (s.output_below ? local.below : local.held) += buffer;
        }
        local.layer.tile = tile;
        return local;
    }

    [[nodiscard]] Costs step(Costs c, const Local& l, const Shape& s, int64_t macs) const {
        c.accesses += l.accesses;
        c.macs += macs;
        if (options_.footprint == Footprint::sum) {
            c.around += l.resident + l.with_output + l.held + l.below;
            return c;
        }
        c.resident += l.resident;
        c.beside += c.beside > 0 ? l.with_output : 0;
        c.around += l.with_output;
        if (!s.is_kept) {
            // What comes next is stored in this nest: nothing of it lives in what was looked at
            // before.
            c.elsewhere = std::max(c.elsewhere, c.beside);
            c.beside = 0;
        }
        c.around += l.held;
        c.beside = std::max(c.beside, c.around + l.below);
        return c;
    }

    // ---- all of them

    void expand(size_t k, const State& state, const std::vector<Costs>& costs,
                const std::set<ThreeCosts>& front, std::map<State, std::vector<Costs>>& states) {
        const Tables tables = this->tables(state);
        const bool has_channel_loop =
            std::find(state.walk.begin(), state.walk.end(), inputs) != state.walk.end();
        const LayerProblem& p = problem(k);
        std::map<std::pair<State, bool>, std::vector<Local>> choices;
        for (const auto& [shape, layer] : shapes_[k]) {
            if (shape.is_kept && has_channel_loop) continue;
            const bool is_whole = shape.is_kept || shape.weights == 5;
            const auto sizes = [&](int64_t extent) {
                return is_whole ? std::vector<int64_t>{extent} : candidates(extent, options_.tiles);
            };
            PerDim<int64_t> tile;
            for (const int64_t y : sizes(tables.largest[0])) {
                for (const int64_t x : sizes(tables.largest[1])) {
                    for (const int64_t z : sizes(tables.largest_channels)) {
                        for (const int64_t i :
                             is_last(k) ? sizes(p[Dim::i]) : std::vector<int64_t>{p[Dim::i]}) {
                            tile = {z, y, x, i};
                            State next;
                            Local local = this->local(k, tables, shape, tile, next);
                            if (k == 0) next = {};
                            const PerDim<int64_t> sizes_used = local.layer.tile;
                            local.layer = layer;
                            local.layer.tile = sizes_used;
                            insert(choices[{next, shape.is_kept}], local);
                        }
                    }
                }
            }
        }
        const int64_t own_macs = macs(k, state);
        for (const auto& [key, locals] : choices) {
            const auto& [next, is_kept] = key;
            Shape shape;
            shape.is_kept = is_kept;
            const int64_t macs_of_next = k > 0 ? macs(k - 1, next) : 0;
            for (const Costs& before : costs) {
                for (const Local& local : locals) {
                    Costs c = step(before, local, shape, own_macs);
                    const ThreeCosts least = bound(k, c, macs_of_next);
                    if (is_beaten(least, front) || (!options_.recompute && least[2] > macs_alone_))
                        continue;
                    c.trace = trace_.size();
                    trace_.push_back({local.layer, before.trace});
                    if (k == 0)
                        examples_.emplace(ThreeCosts{c.accesses, c.memory(), c.macs}, c.trace);
                    else
                        insert(states[next], c);
                }
            }
        }
    }

    /// Least that layers 0 .. k need: coordinates that are really read, each once.
    void find_least() {
        std::vector<std::array<std::set<int64_t>, 2>> used(problems_.size());  // outputs of a layer
        least_macs_.assign(problems_.size() + 1, 0);
        least_accesses_.assign(problems_.size() + 1, 0);
        std::vector<int64_t> own(problems_.size());
        std::array<std::set<int64_t>, 2> needed;
        for (size_t axis = 0; axis < 2; ++axis) {
            for (int64_t out = 0; out < problems_.back().window[axis].out; ++out)
                needed[axis].insert(out);
        }
        for (size_t k = problems_.size(); k-- > 0;) {
            own[k] = problem(k)[Dim::z] * problem(k)[Dim::i];
            for (size_t axis = 0; axis < 2; ++axis) {
                const AxisWindow& w = problem(k).window[axis];
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
        least_accesses_[0] =
            static_cast<int64_t>(needed[0].size() * needed[1].size()) * problem(0)[Dim::i];
        for (size_t k = 0; k < problems_.size(); ++k) {
            least_accesses_[k + 1] = least_accesses_[k] + problem(k).weight_elements().value();
            least_macs_[k + 1] = least_macs_[k] + own[k];
            int64_t alone = problem(k)[Dim::z] * problem(k)[Dim::i];
            for (const AxisWindow& w : problem(k).window) {
                int64_t taps = 0;
                for (int64_t out = 0; out < w.out; ++out) taps += taps_of(w, out);
                alone *= taps;
            }
            macs_alone_ += alone;
        }
    }

    /// Layers before the k-th (which is done): weights and input once, the next one's MACs as they
    /// are, a kernel and one element each.
    [[nodiscard]] ThreeCosts bound(size_t k, Costs c, int64_t macs_of_next) const {
        if (k == 0) return {c.accesses, c.memory(), c.macs};
        c.around += kernel(0) + static_cast<int64_t>(k);
        return {c.accesses + least_accesses_[k], c.memory(),
                c.macs + macs_of_next + least_macs_[k - 1]};
    }

    static bool is_beaten(const ThreeCosts& cost, const std::set<ThreeCosts>& front) {
        return std::any_of(front.begin(), front.end(),
                           [&](const ThreeCosts& f) { return beats(f, cost); });
    }

    [[nodiscard]] std::set<ThreeCosts> front_of_examples() const {
        std::set<ThreeCosts> all;
        for (const auto& example : examples_) {
            const ThreeCosts& cost = example.first;
            if (std::none_of(examples_.begin(), examples_.end(),
                             [&](const auto& other) { return beats(other.first, cost); }))
                all.insert(cost);
        }
        return all;
    }

    std::vector<LayerProblem> problems_;
    EveryScheduleOptions options_;
    SpaceOfAChain space_;
    std::vector<std::map<Shape, ChainSchedule::Layer>>
        shapes_;  ///< with one order and levels of that shape
    Numbered<Pattern> patterns_;
    Numbered<ChannelPattern> channel_patterns_;
    std::map<std::tuple<size_t, size_t, size_t, Place, int64_t>, Spatial> spatial_;
    std::map<std::pair<size_t, int64_t>, Tiling> tilings_;
    std::map<std::tuple<size_t, size_t, Place, Place, int64_t, int64_t>, Channels> channels_;
    std::map<std::pair<size_t, std::tuple<size_t, size_t, size_t>>, int64_t> macs_;
    std::vector<int64_t> least_macs_;      ///< of layers 0 .. k-1
    std::vector<int64_t> least_accesses_;  ///< their weights and the group's input
    int64_t macs_alone_ = 0;               ///< of all layers, each by itself
    std::vector<Trace> trace_;
    std::map<ThreeCosts, size_t> examples_;
};

EverySchedule::EverySchedule(std::vector<LayerProblem> problems,
                             const EveryScheduleOptions& options)
    : impl_(std::make_unique<Impl>(std::move(problems), options)) {}
EverySchedule::~EverySchedule() = default;
std::set<ThreeCosts> EverySchedule::unbeaten_by(const std::set<ThreeCosts>& front) {
    return impl_->unbeaten_by(front);
}
std::string EverySchedule::example(const ThreeCosts& cost) const { return impl_->example(cost); }
ThreeCosts EverySchedule::cost(const ChainSchedule& schedule) { return impl_->cost(schedule); }

}  // namespace laminate
