#include "scheduler/explore.h"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "scheduler/line_buffers.h"
#include "scheduler/models/two_level/group_model.h"
#include "scheduler/models/two_level/two_level.h"

namespace laminate {

namespace {

using two_level::AxisCounts;
using two_level::AxisLifetime;
using two_level::AxisProblem;
using two_level::AxisTable;
using two_level::GroupModel;

// ------------------------------------------------------------------------------------------------------------ Pareto sets

/// Accesses, memory, MACs: what a front is about, smaller is better in each.
struct Cost {
    int64_t accesses = 0;
    int64_t memory = 0;
    int64_t macs = 0;
    friend auto operator<=>(const Cost&, const Cost&) = default;
};

/// Keeps the items that no other one beats or equals on every axis, sorted by cost; the first of equals stays.
template <class Item>
void keep_front(std::vector<Item>& items, bool macs_is_axis) {
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.cost < b.cost; });
    // Sorted by accesses, so an item is beaten exactly when an earlier one needs no more memory and no more MACs. The
    // staircase holds the earlier ones: MACs by memory, falling.
    std::map<int64_t, int64_t> staircase;
    std::vector<Item> kept;
    for (Item& item : items) {
        const int64_t macs = macs_is_axis ? item.cost.macs : 0;
        const auto above = staircase.upper_bound(item.cost.memory);
        if (above != staircase.begin() && std::prev(above)->second <= macs) continue;
        auto at = staircase.lower_bound(item.cost.memory);
        while (at != staircase.end() && at->second >= macs) at = staircase.erase(at);
        staircase.emplace(item.cost.memory, macs);
        kept.push_back(std::move(item));
    }
    items = std::move(kept);
}

// ------------------------------------------------------------------------------------------- one structure, all its tile sizes

/// A loop size that the search may choose: T or the strip of one dimension of one nest.
struct FreeSize {
    size_t nest = 0;
    Dim dim = Dim::z;
    bool is_strip = false;

    void set(GroupSchedule& group, int64_t value) const {
        Nest& n = group.nests[nest];
        if (is_strip)
            n.strip[static_cast<size_t>(dim) - 1] = value;
        else
            n.tile[static_cast<size_t>(dim)] = value;
    }
};

/// Loop orders and levels with a hole for each free size; every free size is on an axis of its own.
struct Structure {
    GroupSchedule group;
    std::vector<FreeSize> free;
};

/// A choice for a hole, with the sums along its axis.
struct SizeOption {
    int64_t value = 0;
    const AxisCounts* counts = nullptr;
};

class GroupSearch {
public:
    GroupSearch(const std::vector<LayerProblem>& problems, const ExploreOptions& options)
        : problems_(problems), options_(options) {
        for (const LayerProblem& p : problems) {
            int64_t macs = checked_multiply(p[Dim::z], p[Dim::i]);
            for (size_t axis = 0; axis < 2; ++axis) macs = checked_multiply(macs, taps(p.window[axis]));
            least_macs_ = checked_add(least_macs_, macs);
        }
    }

    void add(const Structure& structure) {
        if (stopped()) return;
        const GroupModel model(problems_, structure.group);
        GroupSchedule group = structure.group;
        AxisTable table = model.empty_table();
        std::vector<bool> is_free(model.axis_count(), false);
        std::vector<std::vector<SizeOption>> options;
        std::vector<size_t> axes;
        for (const FreeSize& size : structure.free) {
            const size_t axis = model.axis_of(size.nest, size.dim);
            is_free[axis] = true;
            axes.push_back(axis);
            options.push_back(useful_sizes(model, group, size, axis));
        }
        for (size_t a = 0; a < model.axis_count(); ++a) {
            if (!is_free[a]) table.set(a, cache_.counts(model.axis_problem(a, group)));
        }
        const auto evaluate = [&](const auto& self, size_t n) -> void {
            if (n == options.size()) {
                const GroupModel::Totals totals = model.totals(table, group);
                offer(totals, group);
                return;
            }
            for (const SizeOption& option : options[n]) {
                structure.free[n].set(group, option.value);
                table.set(axes[n], *option.counts);
                self(self, n + 1);
            }
        };
        evaluate(evaluate, 0);
        shrink();
    }

    [[nodiscard]] std::vector<GroupPoint> front() {
        keep_front(found_, true);
        std::vector<GroupPoint> points;
        for (const Found& f : found_)
            points.push_back({f.group, Elements(f.cost.accesses), Elements(f.cost.memory), Macs(f.cost.macs)});
        return points;
    }

    [[nodiscard]] bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

private:
    struct Found {
        Cost cost;
        GroupSchedule group;
    };

    /// Kernel positions used along an axis by the whole output.
    static int64_t taps(const AxisWindow& w) {
        if (!w.transposed) return checked_multiply(w.out, w.kernel);
        int64_t count = 0;
        for (int64_t n = 0; n < w.kernel; ++n) {
            int64_t first = (n * w.dilation - w.pad_begin) % w.stride;
            if (first < 0) first += w.stride;
            if (first < w.out) count += (w.out - 1 - first) / w.stride + 1;
        }
        return count;
    }

    void offer(const GroupModel::Totals& totals, const GroupSchedule& group) {
        const Cost cost{totals.accesses.value(), totals.live_total.value(), totals.macs.value()};
        if (options_.memory && totals.live_total > *options_.memory) return;
        if (!options_.recompute && cost.macs > least_macs_) return;
        // Most candidates are beaten by one of a few: ask the one that won last first.
        for (size_t n = 0; n < found_.size(); ++n) {
            const Cost& c = found_[n].cost;
            if (c.accesses <= cost.accesses && c.memory <= cost.memory && c.macs <= cost.macs) {
                if (n > 0) std::swap(found_[n], found_[n / 2]);
                return;
            }
        }
        found_.push_back({cost, group});
        if (found_.size() >= shrink_at_) shrink();
    }

    void shrink() {
        keep_front(found_, true);
        shrink_at_ = 2 * found_.size() + 64;
    }

    /// The sizes worth trying on one axis: those that no other one beats in everything that the counts are made of. Fold rules see
    /// which loops have several trips and which bodies overlap, so only options alike in that are compared.
    std::vector<SizeOption> useful_sizes(const GroupModel& model, GroupSchedule group, const FreeSize& size,
                                         size_t axis) {
        const int64_t extent = problems_[size.nest][size.dim];
        struct Rated {
            SizeOption option;
            std::vector<bool> kind;
            std::vector<int64_t> numbers;
        };
        std::vector<Rated> rated;
        for (const int64_t value : tile_sizes(extent, options_.tiles)) {
            size.set(group, value);
            Rated r;
            r.option = {value, &cache_.counts(model.axis_problem(axis, group))};
            for (const two_level::AxisBuffer& b : r.option.counts->buffers) {
                r.numbers.push_back(b.brought);
                r.numbers.push_back(b.taps);
                for (const AxisLifetime& lifetime : b.lifetimes) {
                    for (const two_level::AxisBody& body : lifetime) {
                        r.kind.push_back(body.trips > 1);
                        r.kind.push_back(body.overlaps);
                        r.numbers.push_back(body.held);
                    }
                    r.kind.push_back(true);
                }
                r.kind.push_back(false);
            }
            if (size.dim == Dim::i)
                r.numbers.push_back(model.output_visits(group));
            else
                r.numbers.push_back(model.output_extent(group, size.dim));
            const auto beaten_by = [](const Rated& a, const Rated& b) {
                if (a.kind != b.kind) return false;
                for (size_t n = 0; n < a.numbers.size(); ++n) {
                    if (b.numbers[n] > a.numbers[n]) return false;
                }
                return true;
            };
            if (std::any_of(rated.begin(), rated.end(), [&](const Rated& other) { return beaten_by(r, other); }))
                continue;
            std::erase_if(rated, [&](const Rated& other) { return beaten_by(other, r); });
            rated.push_back(std::move(r));
        }
        std::vector<SizeOption> options;
        for (const Rated& r : rated) options.push_back(r.option);
        return options;
    }

    const std::vector<LayerProblem>& problems_;
    const ExploreOptions& options_;
    TwoLevelCache cache_;
    int64_t least_macs_ = 0;
    std::vector<Found> found_;
    size_t shrink_at_ = 64;
};

// ---------------------------------------------------------------------------------------------------- groups of one layer

constexpr std::array<Dim, 4> all_dims{Dim::z, Dim::y, Dim::x, Dim::i};

std::vector<Loop> loop_order(const std::vector<Loop>& strips, const std::array<Dim, 4>& outer,
                             const std::array<Dim, 4>& inner) {
    std::vector<Loop> loops = strips;
    for (const Dim d : outer) loops.push_back({d, Band::outer});
    for (const Dim d : inner) loops.push_back({d, Band::inner});
    return loops;
}

/// Deepest legal compute level of the input of nest k: outside ii where groups make the channels of ii no interval.
Level deepest_input_level(const Nest& nest, int k, const LayerProblem& p) {
    if (p.groups > 1 && p[Dim::i] > 1) return {k, nest.find({Dim::i, Band::inner}) - 1};
    return {k, static_cast<int>(nest.loops.size()) - 1};
}

/// The cost formula of an order with store levels when every loop has several trips: for X and W, the dimensions whose loops save
/// traffic, and those whose tile makes the buffer larger. ConvFusion's count and buffer terms.
struct Formula {
    std::array<std::array<bool, 4>, 2> saves{};     ///< [X, W][Dim]
    std::array<std::array<bool, 4>, 3> enlarges{};  ///< [X, W, Y][Dim]

    /// At least as cheap for all sizes.
    [[nodiscard]] bool beats(const Formula& other) const {
        for (size_t d = 0; d < 4; ++d) {
            for (size_t a = 0; a < 2; ++a) {
                if (other.saves[a][d] && !saves[a][d]) return false;
            }
            for (size_t a = 0; a < 3; ++a) {
                if (enlarges[a][d] && !other.enlarges[a][d]) return false;
            }
        }
        return true;
    }
};

Formula formula_of(const LayerProblem& p, const std::array<Dim, 4>& inner, size_t x_store, size_t w_store) {
    // Which dimensions index the array, and along which of them neighbouring iterations share elements.
    std::array<std::array<bool, 4>, 2> indexes{};
    std::array<bool, 4> shares{};
    const bool grouped = p.groups > 1;
    indexes[0] = {grouped, true, true, !grouped};
    indexes[1] = {true, false, false, true};
    shares[0] = grouped && p[Dim::z] > p.groups;  // several outputs of one group read the same channels
    for (size_t axis = 0; axis < 2; ++axis) {
        const AxisWindow& w = p.window[axis];
        shares[axis + 1] = w.transposed ? w.kernel > w.stride : (w.kernel - 1) * w.dilation + 1 > w.stride;
    }
    const size_t ii = static_cast<size_t>(std::find(inner.begin(), inner.end(), Dim::i) - inner.begin());
    Formula f;
    for (size_t a = 0; a < 2; ++a) {
        const size_t store = a == 0 ? x_store : w_store;
        const size_t compute =
            a == 0 && grouped && p[Dim::i] > 1 ? ii : 4;  // first inner loop inside the compute level
        bool folds = true;
        for (size_t n = store; n < 4; ++n) {
            const auto d = static_cast<size_t>(inner[n]);
            const bool is_index = indexes[a][d];
            const bool overlaps = a == 0 && is_index && shares[d];
            f.saves[a][d] = n < compute && (!is_index || overlaps);
            if (n >= compute) folds = false;
            if (!is_index) folds = false;
            f.enlarges[a][d] = is_index && !folds;
            if (overlaps) folds = false;
        }
        // What lies inside the compute level is fetched together: an overlap there is shared too.
        for (size_t n = compute; n < 4; ++n) {
            const auto d = static_cast<size_t>(inner[n]);
            f.saves[a][d] = !indexes[a][d] || shares[d];
        }
    }
    for (size_t n = ii + 1; n < 4; ++n) f.enlarges[2][static_cast<size_t>(inner[n])] = true;
    return f;
}

void search_single(const LayerProblem& p, GroupSearch& search) {
    struct Candidate {
        Formula formula;
        std::array<Dim, 4> inner;
        size_t x_store;
        size_t w_store;
    };
    std::vector<Candidate> candidates;
    std::array<Dim, 4> inner = all_dims;
    do {
        const size_t ii = static_cast<size_t>(std::find(inner.begin(), inner.end(), Dim::i) - inner.begin());
        const size_t x_limit = p.groups > 1 && p[Dim::i] > 1 ? ii : 4;
        for (size_t x_store = 0; x_store <= x_limit; ++x_store) {
            for (size_t w_store = 0; w_store <= 4; ++w_store) {
                Candidate c{formula_of(p, inner, x_store, w_store), inner, x_store, w_store};
                if (std::any_of(candidates.begin(), candidates.end(),
                                [&](const Candidate& o) { return o.formula.beats(c.formula); }))
                    continue;
                std::erase_if(candidates, [&](const Candidate& o) { return c.formula.beats(o.formula); });
                candidates.push_back(c);
            }
        }
    } while (std::next_permutation(inner.begin(), inner.end()));
    for (const Candidate& c : candidates) {
        Structure s;
        Nest nest;
        nest.layer = p.name;
        nest.loops = loop_order({}, all_dims, c.inner);
        nest.tile = p.extent;
        nest.x = {{0, {{0, 3 + static_cast<int>(c.x_store)}, deepest_input_level(nest, 0, p)}}};
        nest.w = Placement{{0, 3 + static_cast<int>(c.w_store)}, {0, 7}};
        const Level y{0, nest.find({Dim::i, Band::inner}) - 1};
        nest.y = {y, y};
        s.group.nests = {nest};
        for (const Dim d : all_dims) {
            if (p[d] > 1 && (d != Dim::i || p.groups == 1)) s.free.push_back({0, d, false});
        }
        search.add(s);
    }
}

// ------------------------------------------------------------------------------------------------------------ fused groups

/// Where the producers of a fused group hang, and how long what they computed is kept.
enum class Hang {
    rows_recomputed,     ///< at the sink's yo, stored there: halo rows are computed again
    rows_kept,           ///< at yo, stored at the root
    tiles_recomputed,    ///< at xo, stored there
    tiles_kept_along_x,  ///< at xo, stored at yo
    tiles_kept,          ///< at xo, stored at the root
    column_strips,       ///< at yo inside column strips xs, stored at xs
    own_rows,            ///< each at its own consumer's yi, stored at the root
    own_pixels,          ///< each at its own consumer's xi, stored at the root
};
constexpr std::array<Hang, 8> all_hangs{Hang::rows_recomputed,    Hang::rows_kept,  Hang::tiles_recomputed,
                                        Hang::tiles_kept_along_x, Hang::tiles_kept, Hang::column_strips,
                                        Hang::own_rows,           Hang::own_pixels};

/// `refetched`: nests whose weights are fetched again in every call (slice by slice of z); the others' stay for the whole group.
Structure fused_structure(const std::vector<LayerProblem>& problems, Hang hang, bool keep_input,
                          const std::vector<bool>& refetched) {
    constexpr std::array<Dim, 4> channels_first{Dim::z, Dim::y, Dim::x, Dim::i};
    constexpr std::array<Dim, 4> rows_first{Dim::y, Dim::x, Dim::z, Dim::i};
    Structure s;
    const int sink = static_cast<int>(problems.size()) - 1;
    for (int k = 0; k <= sink; ++k) {
        const LayerProblem& p = problems[static_cast<size_t>(k)];
        Nest nest;
        nest.layer = p.name;
        std::vector<Loop> strips;
        if (k == sink && hang == Hang::column_strips) strips.push_back({Dim::x, Band::strip});
        // A slice of refetched weights serves a whole call; resident weights let the input pass row by row.
        nest.loops =
            loop_order(strips, channels_first, refetched[static_cast<size_t>(k)] ? channels_first : rows_first);
        nest.tile = p.extent;
        if (!strips.empty()) nest.strip[1] = p[Dim::x];
        s.group.nests.push_back(std::move(nest));
    }
    const Nest& last = s.group.nests.back();
    const Level rows{sink, last.find({Dim::y, Band::outer})};
    const Level columns{sink, last.find({Dim::x, Band::outer})};
    const Level strip{sink, last.find({Dim::x, Band::strip})};
    const auto placement = [&](int consumer) -> Placement {
        const Nest& nest = s.group.nests[static_cast<size_t>(consumer)];
        switch (hang) {
            case Hang::rows_recomputed:
                return {rows, rows};
            case Hang::rows_kept:
                return {{}, rows};
            case Hang::tiles_recomputed:
                return {columns, columns};
            case Hang::tiles_kept_along_x:
                return {rows, columns};
            case Hang::tiles_kept:
                return {{}, columns};
            case Hang::column_strips:
                return {strip, rows};
            case Hang::own_rows:
                return {{}, {consumer, nest.find({Dim::y, Band::inner})}};
            case Hang::own_pixels:
                break;
        }
        return {{}, {consumer, nest.find({Dim::x, Band::inner})}};
    };
    for (int k = 0; k <= sink; ++k) {
        Nest& nest = s.group.nests[static_cast<size_t>(k)];
        if (k > 0)
            s.group.nests[static_cast<size_t>(k) - 1].y = placement(k);
        else
            nest.x = {{0, {keep_input ? Level{} : placement(0).store, deepest_input_level(nest, 0, problems[0])}}};
        if (refetched[static_cast<size_t>(k)]) {
            nest.w = Placement{{k, nest.find({Dim::i, Band::outer})}, {k, nest.find({Dim::z, Band::inner})}};
        } else {
            nest.w = Placement{};
        }
        if (k == sink) {
            const Level y{k, nest.find({Dim::i, Band::inner}) - 1};
            nest.y = {y, y};
        }
    }
    const auto sink_nest = static_cast<size_t>(sink);
    if (hang != Hang::own_rows && hang != Hang::own_pixels) s.free.push_back({sink_nest, Dim::y, false});
    if (hang == Hang::tiles_recomputed || hang == Hang::tiles_kept_along_x || hang == Hang::tiles_kept) {
        s.free.push_back({sink_nest, Dim::x, false});
    }
    if (hang == Hang::column_strips) s.free.push_back({sink_nest, Dim::x, true});
    return s;
}

void search_fused(const std::vector<LayerProblem>& problems, const ExploreOptions& options, GroupSearch& search) {
    std::vector<size_t> by_weights(problems.size());
    std::iota(by_weights.begin(), by_weights.end(), size_t{0});
    std::stable_sort(by_weights.begin(), by_weights.end(),
                     [&](size_t a, size_t b) { return problems[a].weight_elements() > problems[b].weight_elements(); });
    for (const Hang hang : all_hangs) {
        const bool own = hang == Hang::own_rows || hang == Hang::own_pixels;
        const bool recomputes = hang == Hang::rows_recomputed || hang == Hang::tiles_recomputed ||
                                hang == Hang::tiles_kept_along_x || hang == Hang::column_strips;
        if (recomputes && !options.recompute) continue;
        for (const bool keep_input : {false, true}) {
            if (keep_input && !recomputes) continue;  // kept anyway
            std::vector<bool> refetched(problems.size(), false);
            for (size_t count = 0; count <= (own ? 0 : problems.size()); ++count) {
                if (count > 0) refetched[by_weights[count - 1]] = true;
                search.add(fused_structure(problems, hang, keep_input, refetched));
            }
        }
    }
}

std::vector<LayerProblem> segment_problems(const Network& network, const std::vector<LayerId>& segment) {
    std::vector<LayerProblem> problems;
    for (const LayerId id : segment) problems.push_back(layer_problem(network, id));
    return problems;
}

/// Two segments with equal shapes have the same front up to the names of their layers.
std::vector<int64_t> shape_key(const std::vector<LayerProblem>& problems) {
    std::vector<int64_t> key;
    for (const LayerProblem& p : problems) {
        key.insert(key.end(), p.extent.begin(), p.extent.end());
        key.push_back(p.groups);
        for (const AxisWindow& w : p.window)
            key.insert(key.end(), {w.transposed ? 1 : 0, w.kernel, w.stride, w.dilation, w.pad_begin, w.in, w.out});
    }
    return key;
}

// ----------------------------------------------------------------------------------------------------------- whole networks

/// A partial answer: a group added to an earlier one.
struct Partial {
    Cost cost;
    std::shared_ptr<const Partial> before;
    const GroupPoint* group = nullptr;
};

Cost cost_of(const GroupPoint& point) { return {point.accesses.value(), point.live_total.value(), point.macs.value()}; }

Cost together(const Cost& a, const Cost& b) {
    return {checked_add(a.accesses, b.accesses), std::max(a.memory, b.memory), checked_add(a.macs, b.macs)};
}

/// Beyond this many pairs the MACs axis is given up: sums of three-axis fronts multiply.
constexpr size_t most_pairs = 2'000'000;

using Partials = std::vector<std::shared_ptr<const Partial>>;

class Combination {
public:
    [[nodiscard]] bool macs_is_axis() const { return macs_is_axis_; }

    /// Sums of accesses and MACs, maximum of memory, over all pairs.
    void add_pairs(Partials front, std::vector<const GroupPoint*> points) {
        if (front.size() * points.size() > most_pairs) {
            macs_is_axis_ = false;
            front = thinned(front);
            points = thinned(points);
        }
        for (const auto& before : front) {
            for (const GroupPoint* point : points)
                found_.push_back({together(before->cost, cost_of(*point)), before, point});
        }
        if (found_.size() > most_pairs) keep_front(found_, macs_is_axis_);
    }

    [[nodiscard]] Partials take() {
        keep_front(found_, macs_is_axis_);
        Partials front;
        for (Partial& p : found_) front.push_back(std::make_shared<const Partial>(std::move(p)));
        found_.clear();
        return front;
    }

private:
    static Cost cost(const std::shared_ptr<const Partial>& p) { return p->cost; }
    static Cost cost(const GroupPoint* p) { return cost_of(*p); }

    template <class T>
    static std::vector<T> thinned(const std::vector<T>& items) {
        struct Item {
            Cost cost;
            T value;
        };
        std::vector<Item> front;
        for (const T& item : items) front.push_back({cost(item), item});
        keep_front(front, false);
        std::vector<T> kept;
        for (const Item& item : front) kept.push_back(item.value);
        return kept;
    }

    bool macs_is_axis_ = true;
    std::vector<Partial> found_;
};

struct Segment {
    std::vector<LayerId> layers;
    size_t begin = 0;
    size_t chain = 0;
    size_t like = 0;  ///< first segment of the same shape
    std::vector<GroupPoint> front;
};

}  // namespace

std::vector<int64_t> tile_sizes(int64_t extent, TileSizes kind) {
    std::vector<int64_t> sizes;
    for (int64_t t = 1; t <= extent; kind == TileSizes::powers_of_two ? t *= 2 : ++t) {
        if (kind != TileSizes::divisors || extent % t == 0) sizes.push_back(t);
    }
    if (sizes.back() != extent) sizes.push_back(extent);
    return sizes;
}

std::vector<GroupPoint> group_front(const Network& network, const std::vector<LayerId>& segment,
                                    const ExploreOptions& options) {
    const std::vector<LayerProblem> problems = segment_problems(network, segment);
    GroupSearch search(problems, options);
    // First of all, so that an interrupted search has an answer: what the fast generators execute.
    for (const int64_t rows : {8, 4, 2, 1}) search.add({line_buffer_group(network, segment, {rows, 0, 0}), {}});
    if (problems.size() == 1)
        search_single(problems[0], search);
    else
        search_fused(problems, options, search);
    return search.front();
}

Front explore(const Network& network, const ExploreOptions& options) {
    const std::vector<std::vector<LayerId>> chains = schedulable_chains(network);
    if (chains.empty())
        throw InputError("network " + network.name + ": no layer that a schedule covers; nothing to explore");
    std::vector<Segment> segments;
    std::map<std::vector<int64_t>, size_t> shapes;
    const size_t longest = std::max<size_t>(1, static_cast<size_t>(std::min<int64_t>(options.max_depth, 1 << 20)));
    for (size_t length = 1; length <= longest; ++length) {
        for (size_t c = 0; c < chains.size(); ++c) {
            for (size_t begin = 0; begin + length <= chains[c].size(); ++begin) {
                const auto first = chains[c].begin() + static_cast<std::ptrdiff_t>(begin);
                Segment s{{first, first + static_cast<std::ptrdiff_t>(length)}, begin, c, segments.size(), {}};
                s.like = shapes.emplace(shape_key(segment_problems(network, s.layers)), segments.size()).first->second;
                segments.push_back(std::move(s));
            }
        }
        if (std::all_of(chains.begin(), chains.end(), [&](const auto& chain) { return chain.size() <= length; })) break;
    }
    std::vector<size_t> work;
    for (size_t n = 0; n < segments.size(); ++n) {
        if (segments[n].like == n) work.push_back(n);
    }
    std::mutex mutex;
    ExploreProgress progress{0, static_cast<int64_t>(work.size()), ""};
    in_parallel(work.size(), std::max(1, options.threads), [&](size_t n) {
        // Long segments first: they take longest.
        Segment& segment = segments[work[work.size() - 1 - n]];
        const bool stopped = options.stop != nullptr && options.stop->load();
        if (stopped && segment.layers.size() > 1) return;
        ExploreOptions own = options;
        if (stopped) {  // single layers always, if coarsely: an answer needs them
            own.stop = nullptr;
            own.tiles = TileSizes::powers_of_two;
        }
        segment.front = group_front(network, segment.layers, own);
        if (!options.progress) return;
        const std::lock_guard<std::mutex> lock(mutex);
        ++progress.segments_done;
        progress.segment = network.layer(segment.layers.front()).name;
        if (segment.layers.size() > 1) progress.segment += " .. " + network.layer(segment.layers.back()).name;
        options.progress(progress);
    });
    for (Segment& segment : segments) {
        if (&segment == &segments[segment.like]) continue;
        segment.front = segments[segment.like].front;
        for (GroupPoint& point : segment.front) {
            for (size_t k = 0; k < segment.layers.size(); ++k)
                point.group.nests[k].layer = network.layer(segment.layers[k]).name;
        }
    }

    // Partitions of each chain by dynamic programming over its prefixes; each chain goes on from the front of the ones before it.
    Combination combination;
    Partials front{std::make_shared<const Partial>()};
    for (size_t c = 0; c < chains.size(); ++c) {
        std::vector<Partials> prefix(chains[c].size() + 1);
        prefix[0] = std::move(front);
        for (size_t end = 1; end <= chains[c].size(); ++end) {
            for (const Segment& segment : segments) {
                if (segment.chain != c || segment.begin + segment.layers.size() != end) continue;
                std::vector<const GroupPoint*> points;
                for (const GroupPoint& point : segment.front) points.push_back(&point);
                combination.add_pairs(prefix[segment.begin], points);
            }
            prefix[end] = combination.take();
        }
        front = std::move(prefix.back());
    }

    Front result;
    result.macs_is_axis = combination.macs_is_axis();
    for (const auto& partial : front) {
        std::vector<GroupSchedule> groups;
        for (const Partial* p = partial.get(); p->group != nullptr; p = p->before.get())
            groups.push_back(p->group->group);
        std::sort(groups.begin(), groups.end(), [&](const GroupSchedule& a, const GroupSchedule& b) {
            return network.find_layer(a.nests.back().layer) < network.find_layer(b.nests.back().layer);
        });
        result.points.push_back({Schedule(network, std::move(groups)), {}});
    }
    TwoLevelCache cache;
    for (FrontPoint& point : result.points) point.counts = two_level_counts(network, point.schedule, &cache);
    return result;
}

std::variant<FrontPoint, Infeasible> choose(const Front& front, Elements budget) {
    const FrontPoint* best = nullptr;
    Elements least = front.points.at(0).counts.live_total;
    for (const FrontPoint& point : front.points) {
        least = std::min(least, point.counts.live_total);
        if (point.counts.live_total > budget) continue;
        const auto key = [](const FrontPoint& p) {
            return std::make_tuple(p.counts.accesses, p.counts.macs, to_text(p.schedule));
        };
        if (best == nullptr || key(point) < key(*best)) best = &point;
    }
    if (best == nullptr) return Infeasible{least, budget};
    return *best;
}

}  // namespace laminate
