#include "scheduler/explore/group_search/group_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/units.h"
#include "scheduler/explore/group_search/spatial_axis.h"

namespace laminate::search {

namespace {

/// The structures of a layer in some surroundings; what they ask of the axes and of the memory,
/// numbered, since many ask the same.
struct StructureSet {
    struct Uses {
        std::array<size_t, 2> spatial{};
        size_t output_channels = 0;
        size_t input_channels = 0;
        size_t plan = 0;
    };
    std::vector<LayerStructure> all;
    std::vector<Uses> uses;  ///< by structure
    Uses count;              ///< how many numbers there are

    explicit StructureSet(std::vector<LayerStructure> structures) : all(std::move(structures)) {
        std::array<std::map<SpatialUse, size_t>, 2> spatial;
        std::map<std::tuple<bool, bool, WeightsLife, bool, bool, Kind, int>, size_t> output;
        std::map<std::tuple<Kind, int, bool, bool>, size_t> input;
        std::map<std::tuple<bool, WeightsLife, bool, bool>, size_t> plan;
        const auto number = [](auto& numbers, const auto& key) {
            return numbers.emplace(key, numbers.size()).first->second;
        };
        for (const LayerStructure& s : all) {
            const int fold = s.fold[ScopeLoop::channel];
            uses.push_back(
                {{number(spatial[0], spatial_use(s, 0)), number(spatial[1], spatial_use(s, 1))},
                 number(output,
                        std::make_tuple(s.z_above, s.weights_hold_z, s.weights, s.output_holds[0],
                                        s.whole_calls, s.channel_kind, fold)),
                 number(input, std::make_tuple(s.channel_kind, fold, s.weights_hold_i,
                                               s.weights == WeightsLife::resident)),
                 number(plan,
                        std::make_tuple(s.store < 0, s.weights, s.weights_below, s.output_below))});
        }
        count = {{spatial[0].size(), spatial[1].size()}, output.size(), input.size(), plan.size()};
    }
};

/// What structures ask of the channels of A_j: the i of layer j + 1 and the z of layer j.
struct ChannelUse {
    // Layer j + 1, where there is one.
    Kind kind = Kind::below;
    int fold = 0;
    bool input_weights_hold = false;
    bool input_weights_resident = false;
    // Layer j, where there is one and its structure is known.
    bool is_known = false;
    bool z_above = false;
    bool output_weights_hold = false;
    WeightsLife weights = WeightsLife::own;
    bool output_holds = false;
    bool whole_calls = false;
    [[nodiscard]] uint64_t key() const {
        uint64_t number = static_cast<uint64_t>(fold);
        const auto add = [&](auto value) { number = number << 3U | static_cast<uint64_t>(value); };
        add(kind);
        add(weights);
        for (const bool flag : {input_weights_hold, input_weights_resident, is_known, z_above,
                                output_weights_hold, output_holds, whole_calls})
            add(flag);
        return number;
    }
};

}  // namespace

bool may_fuse(const LayerProblem& p) {
    if (p.groups > 1) return false;
    return std::none_of(p.window.begin(), p.window.end(),
                        [](const AxisWindow& w) { return sharing(w) == Sharing::by_tile; });
}

class GroupSearch::Impl {
public:
    Impl(const std::vector<LayerProblem>& problems, const GroupSearchOptions& options)
        : problems_(problems),
          options_(options),
          terms_(static_cast<int>(problems.size())),
          found_(options.macs_is_axis),
          rows_(problems, 0, options.tiles, work_.steps, options.max_steps),
          coefficients_(padded_terms(terms_.count()), 1),
          prepared_plan_(terms_, {}),
          open_(options.macs_is_axis) {
        is_square_ = std::all_of(problems.begin(), problems.end(),
                                 [](const LayerProblem& p) { return p.window[0] == p.window[1]; });
        if (!is_square_)
            columns_.emplace(problems, 1, options.tiles, work_.steps, options.max_steps);
        for (int k = 1; k <= terms_.n; ++k) {
            const LayerProblem& p = problem(k);
            const double channels = static_cast<double>(checked_multiply(p[Dim::z], p[Dim::i]));
            const double kernel = static_cast<double>(p.y().kernel * p.x().kernel);
            coefficients_[terms_.weights(k)] = kernel * channels;
            coefficients_[terms_.macs(k)] = channels;
            coefficients_[terms_.weight_buffer(k)] = kernel;
        }
        const LayerProblem& first = problems.front();
        if (first.groups == 1) coefficients_[terms_.input()] = static_cast<double>(first[Dim::i]);
        coefficients_[terms_.visits()] =
            static_cast<double>(problems.back().output_elements().value());
        least_macs_ = 0;
        for (int k = 1; k <= terms_.n; ++k) {
            double macs = coefficients_[terms_.macs(k)];
            for (const AxisWindow& w : problem(k).window)
                macs *= static_cast<double>(taps_of_whole(w));
            least_macs_ += macs;
        }
    }

    void know(const Cost& cost) { know({cost, {}}); }
    void know(const GroupSearch::Point& point) {
        known_accesses_.add(point.cost);
        found_.offer(point.cost, point.choice);
    }

    void run() {
        chosen_.assign(problems_.size(), nullptr);
        find_open_memory();
        if (options_.bound != nullptr && open_memory_.empty()) return;
        // Layer by layer, so that tiles that matter to no structure of the later layers are gone
        // for the earlier ones.
        std::vector<Prefix> prefixes = starts();
        for (int k = terms_.n; k >= 1; --k) {
            std::vector<Prefix> wanted;
            for (const Prefix& prefix : prefixes) extend(prefix, k, wanted);
            prefixes = std::move(wanted);
        }
    }

    std::vector<GroupSearch::Point> front() const {
        std::vector<GroupSearch::Point> points;
        for (size_t n = 0; n < found_.size(); ++n) {
            if (!found_.items()[n].structures.empty())
                points.push_back({found_.costs()[n], found_.items()[n]});
        }
        return points;
    }
    [[nodiscard]] bool is_complete() const { return open_.size() == 0; }
    [[nodiscard]] const std::vector<Cost>& open() const { return open_.costs(); }
    [[nodiscard]] Work work() const { return work_; }

private:
    static int64_t taps_of_whole(const AxisWindow& w) {
        const AxisPatterns patterns({w});
        return patterns.facts(1, patterns.whole()).taps;
    }

    [[nodiscard]] const LayerProblem& problem(int k) const {
        return problems_[static_cast<size_t>(k - 1)];
    }
    [[nodiscard]] const LayerStructure*& chosen(int k) {
        return chosen_[static_cast<size_t>(k - 1)];
    }
    [[nodiscard]] const LayerStructure* chosen(int k) const {
        return chosen_[static_cast<size_t>(k - 1)];
    }

    [[nodiscard]] Residence residence(int k) const {
        return residence_[static_cast<size_t>(k - 1)];
    }
    [[nodiscard]] bool is_resident(int k) const { return residence(k) == Residence::yes; }
    /// Of the layers 1 .. k, as a number.
    [[nodiscard]] Residences residences(int k) const {
        Residences number = 0;
        for (int j = 1; j <= k; ++j) number = number << 2U | static_cast<Residences>(residence(j));
        return number;
    }
    [[nodiscard]] SpatialAxis& columns() { return is_square_ ? rows_ : *columns_; }

    const StructureSet& structures(int k) {
        LayerContext context;
        context.is_first = k == 1;
        context.is_last = k == terms_.n;
        if (!context.is_last) {
            context.scope = chosen(k + 1)->scope;
            context.may_be_apart = {may_be_apart(k, 0), may_be_apart(k, 1)};
        }
        const auto key = std::make_pair(k, context);
        const auto known = structures_.find(key);
        if (known != structures_.end()) return known->second;
        return structures_
            .emplace(key, StructureSet(layer_structures(problem(k), context, options_.structures)))
            .first->second;
    }

    /// In a lifetime of A_k: where a reader leaves gaps, or so few coordinates are there that one
    /// call may bring them all.
    [[nodiscard]] bool may_be_apart(int k, size_t axis) const {
        for (int reader = k + 1;; ++reader) {
            const AxisWindow& w = problem(reader).window[axis];
            const int64_t span = (w.kernel - 1) * w.dilation + 1;
            if ((!w.transposed && span < w.stride) || w.in <= 2 * span) return true;
            if (chosen(reader)->store >= 0) return false;
        }
    }

    [[nodiscard]] bool is_over() const {
        return work_.steps >= options_.max_steps ||
               (options_.stop != nullptr && options_.stop->load());
    }

    /// Structures of the layers n .. k, what they ask of rows and columns, and where the weights of
    /// all layers are.
    struct Prefix {
        std::vector<Residence> residence;
        std::vector<const LayerStructure*> chosen;
        std::array<SpatialAxis::List*, 2> lists{};
    };

    /// Which weights are resident is chosen first: it makes the bounds of what is still open tight.
    [[nodiscard]] std::vector<Prefix> starts() {
        const std::array<SpatialAxis::List*, 2> nothing{&rows_.nothing(), &columns().nothing()};
        if (terms_.n == 1) return {{{Residence::no}, {}, nothing}};
        if (options_.structures.only_resident)
            return {{std::vector<Residence>(problems_.size(), Residence::yes), {}, nothing}};
        if (terms_.n > most_residences)
            return {{std::vector<Residence>(problems_.size(), Residence::open), {}, nothing}};
        std::vector<Prefix> result;
        for (size_t choice = size_t{1} << problems_.size(); choice-- > 0;) {
            Prefix prefix{{}, {}, nothing};
            for (size_t k = 0; k < problems_.size(); ++k)
                prefix.residence.push_back(((choice >> k) & 1U) != 0 ? Residence::yes
                                                                     : Residence::no);
            result.push_back(std::move(prefix));
        }
        return result;
    }

    void extend(const Prefix& prefix, int k, std::vector<Prefix>& wanted) {
        residence_ = prefix.residence;
        lists_ = prefix.lists;
        std::copy(prefix.chosen.begin(), prefix.chosen.end(),
                  chosen_.end() - static_cast<std::ptrdiff_t>(prefix.chosen.size()));
        const auto give_up = [&] {
            if (k < terms_.n && prepare(k + 1)) note_open(most_open_depth);
        };
        if (k < terms_.n && is_over()) return give_up();
        const StructureSet& set = structures(k);
        start_looking(k, set);
        for (size_t n = 0; n < set.all.size(); ++n) {
            const LayerStructure& s = set.all[n];
            const auto resides =
                s.weights == WeightsLife::resident ? Residence::yes : Residence::no;
            const Residence planned = prefix.residence[static_cast<size_t>(k - 1)];
            if (planned != Residence::open && planned != resides) continue;
            if (k == terms_.n && is_square_ && !options_.structures.is_baseline && is_mirrored(s))
                continue;
            if (options_.structures.only_kept && k < terms_.n - 1 && !is_alike(s, *chosen(k + 1)))
                continue;
            chosen(k) = &s;
            residence_[static_cast<size_t>(k - 1)] = resides;
            const bool survives = look(k, prefix, set.uses[n]);
            if (k < terms_.n && is_over()) {
                residence_ = prefix.residence;
                lists_ = prefix.lists;
                return give_up();
            }
            if (!survives || k == 1) continue;
            Prefix longer{residence_, {&s}, lists_};
            longer.chosen.insert(longer.chosen.end(), prefix.chosen.begin(), prefix.chosen.end());
            wanted.push_back(std::move(longer));
        }
    }

    /// The line-buffer family runs all layers but the last in the same way.
    static bool is_alike(const LayerStructure& a, const LayerStructure& b) {
        return a.kind == b.kind && a.weights == b.weights && a.channel_kind == b.channel_kind;
    }

    /// Rows and columns exchanged cost the same: of the two the one whose rows come first.
    static bool is_mirrored(const LayerStructure& s) {
        const auto one = [&](size_t axis) {
            return std::make_tuple(s.kind[axis], s.fold[axis], s.weights_per_tile[axis],
                                   s.output_holds[axis + 1]);
        };
        return one(1) < one(0);
    }

    // ---- channels

    [[nodiscard]] ChannelUse channel_use(int j, int k) const {
        ChannelUse use;
        if (j < terms_.n) {
            const LayerStructure& s = *chosen(j + 1);
            use.kind = s.channel_kind;
            use.fold = s.fold[ScopeLoop::channel];
            use.input_weights_hold = s.weights_hold_i;
            use.input_weights_resident = s.weights == WeightsLife::resident;
        }
        if (j >= k && j > 0) {
            const LayerStructure& s = *chosen(j);
            use.is_known = true;
            use.z_above = s.z_above;
            use.output_weights_hold = s.weights_hold_z;
            use.weights = s.weights;
            use.output_holds = s.output_holds[0];
            use.whole_calls = s.whole_calls;
            if (problem(j).groups > 1) {
                use.kind = s.channel_kind;
                use.fold = s.fold[ScopeLoop::channel];
            }
        }
        return use;
    }

    AxisTree& channels(int j, int k) {
        const ChannelUse use = channel_use(j, k);
        auto& tree = channel_trees_[{static_cast<uint64_t>(j), use.key(), residences(j)}];
        if (!tree)
            tree = std::make_unique<AxisTree>(keep_useful(channel_options(j, use), false),
                                              terms_.count());
        return *tree;
    }

    std::vector<Option> channel_options(int j, const ChannelUse& use) const {
        if (j == 1 && terms_.n == 1 && problem(1).groups > 1) return grouped_options(use);
        std::vector<Option> options;
        const bool has_reader = j < terms_.n;
        const bool reader_is_last = j + 1 == terms_.n;
        const int64_t width = has_reader ? problem(j + 1)[Dim::i] : problem(j)[Dim::z];
        const bool may_tile_reader = has_reader && reader_is_last && problem(j + 1).groups == 1;
        for (const int64_t ti : may_tile_reader ? tile_candidates(width, options_.tiles)
                                                : std::vector<int64_t>{width}) {
            Option o;
            o.factors.assign(terms_.count(), 1);
            // Calls of layer j along z: extents with how many there are.
            std::vector<std::pair<int64_t, int64_t>> calls;
            int64_t scopes = 1;
            if (!has_reader) {
                calls = {{width, 1}};
            } else {
                const int64_t tiles = ceil_div(width, ti);
                const bool wide = use.kind == Kind::below || use.kind == Kind::kept_below;
                scopes = use.kind == Kind::above ? width : tiles;
                calls = {{1, width}};
                if (wide) {
                    calls = {{ti, width / ti}};
                    if (width % ti != 0) calls.emplace_back(width % ti, 1);
                }
                const bool holds = wide || (use.kind != Kind::above && use.fold == 0);
                if (problem(j + 1).groups == 1)
                    o.factors[terms_.buffer(j)] = holds ? static_cast<double>(ti) : 1;
                const int64_t weights = use.input_weights_resident ? width
                                        : use.input_weights_hold   ? ti
                                                                   : 1;
                o.factors[terms_.weight_buffer(j + 1)] = static_cast<double>(weights);
                if (reader_is_last) o.factors[terms_.visits()] = static_cast<double>(2 * tiles - 1);
            }
            o.tiles = {ti, 1};
            if (j == 0) {
                options.push_back(std::move(o));
                continue;
            }
            if (!use.is_known) {
                multiply_before(o, j, static_cast<double>(scopes), true);
                options.push_back(std::move(o));
                continue;
            }
            const int64_t largest = calls.front().first;
            int64_t fewest = INT64_MAX;
            for (const int64_t tz : use.whole_calls ? std::vector<int64_t>{largest}
                                                    : tile_candidates(largest, options_.tiles)) {
                int64_t trips = 0;
                for (const auto& [extent, count] : calls) trips += count * ceil_div(extent, tz);
                if (trips == fewest || (use.z_above && fewest != INT64_MAX))
                    continue;  // larger for nothing
                fewest = trips;
                Option t = o;
                t.tiles[1] = tz;
                multiply_before(t, j, static_cast<double>(use.z_above ? width : trips), false);
                double held = use.output_weights_hold ? static_cast<double>(tz) : 1;
                if (use.weights == WeightsLife::scope)
                    held = static_cast<double>(use.kind == Kind::above ? 1 : ti);
                if (use.weights == WeightsLife::resident) held = static_cast<double>(width);
                t.factors[terms_.weight_buffer(j)] = held;
                if (!has_reader)
                    t.factors[terms_.output_buffer()] =
                        use.output_holds ? static_cast<double>(tz) : 1;
                options.push_back(std::move(t));
            }
        }
        return options;
    }

    /// Every layer before j does its work so many times.
    void multiply_before(Option& o, int j, double times, bool is_open) const {
        o.factors[terms_.input()] *= times;
        for (int k = 1; k < j; ++k) {
            o.factors[terms_.macs(k)] *= times;
            if (residence(k) == Residence::no) o.factors[terms_.weights(k)] *= times;
        }
        if (is_open && is_resident(j))
            o.factors[terms_.weight_buffer(j)] = static_cast<double>(problem(j)[Dim::z]);
    }

    /// A layer of several groups by itself: its input's channels are those of the groups that z
    /// touches.
    [[nodiscard]] std::vector<Option> grouped_options(const ChannelUse& use) const {
        const LayerProblem& p = problem(1);
        const int64_t outputs = p[Dim::z] / p.groups;
        std::vector<Option> options;
        for (const int64_t tz : tile_candidates(p[Dim::z], options_.tiles)) {
            int64_t brought = 0;
            int64_t most = 0;
            for (int64_t begin = 0; begin < p[Dim::z]; begin += tz) {
                const int64_t end = std::min(begin + tz, p[Dim::z]);
                const int64_t touched = (end - 1) / outputs - begin / outputs + 1;
                brought += touched;
                most = std::max(most, touched);
            }
            if (use.kind == Kind::above) brought = p[Dim::z];
            if (use.kind == Kind::above || use.fold > 0) most = 1;
            Option o;
            o.factors.assign(terms_.count(), 1);
            o.factors[terms_.input()] = static_cast<double>(brought * p[Dim::i]);
            o.factors[terms_.buffer(0)] = static_cast<double>(most * p[Dim::i]);
            o.factors[terms_.weight_buffer(1)] =
                use.output_weights_hold ? static_cast<double>(tz) : 1;
            o.factors[terms_.output_buffer()] = use.output_holds ? static_cast<double>(tz) : 1;
            o.tiles = {p[Dim::i], tz};
            options.push_back(std::move(o));
        }
        return options;
    }

    // ---- branch and bound

    /// The coefficients, with layers before the k-th at their least.
    [[nodiscard]] std::vector<double> base_before(int k) const {
        std::vector<double> base = coefficients_;
        for (int j = 1; j < k; ++j) {
            // One kernel at least; resident: all of it. The channel axes that are open give the
            // rest.
            if (!is_resident(j)) continue;
            const LayerProblem& p = problem(j);
            base[terms_.weight_buffer(j)] *=
                static_cast<double>(j == k - 1 ? p[Dim::i] : p[Dim::z] * p[Dim::i]);
        }
        return base;
    }

    /// Layers n .. k chosen: their trees, with the least that is possible before them. False where
    /// no tiles fit the structures.
    bool prepare(int k) {
        trees_.clear();
        trees_.push_back(&rows_.tree(*lists_[0], residence_, residences(k - 1)));
        trees_.push_back(&columns().tree(*lists_[1], residence_, residences(k - 1)));
        if (lists_[0]->is_cut || lists_[1]->is_cut) return false;
        for (int j = terms_.n; j >= std::max(k - 1, 0); --j) trees_.push_back(&channels(j, k));
        base_ = base_before(k);
        prepared_plan_ = plan(k);
        return begin_at_roots(prepared_plan_);
    }

    bool begin_at_roots(const CostPlan& plan) {
        plan_ = &plan;
        rows_of_.clear();
        rows_of_.resize(trees_.size());
        at_.assign(trees_.size(), 0);
        return std::none_of(trees_.begin(), trees_.end(),
                            [](const AxisTree* tree) { return tree->empty(); });
    }

    /// What the structures of layer k share while the layers after it stay as they are, by
    /// StructureSet::Uses. Most structures are dropped by the bound of all their tiles, so that
    /// bound has to be quick. Made when first asked for.
    struct Shared {
        struct OfAnAxis {
            SpatialAxis::List* list = nullptr;
            AxisTree* tree = nullptr;
        };
        std::array<std::vector<OfAnAxis>, 2> spatial;
        struct OfAResidence {
            std::vector<AxisTree*> later;            ///< channels of A_n .. A_{k+1}
            std::vector<double> product;             ///< their least, times base_
            std::vector<AxisTree*> output_channels;  ///< of A_k
            std::vector<AxisTree*> input_channels;   ///< of A_{k-1}
        };
        std::array<OfAResidence, 2> by_residence;  ///< of layer k: not at the root, at the root
        std::vector<std::optional<CostPlan>> plans;
    };

    void start_looking(int k, const StructureSet& set) {
        base_ = base_before(k);
        for (size_t axis = 0; axis < 2; ++axis)
            shared_.spatial[axis].assign(set.count.spatial[axis], {});
        for (auto& own : shared_.by_residence) {
            own.later.clear();
            own.product.clear();
            own.output_channels.assign(set.count.output_channels, nullptr);
            own.input_channels.assign(set.count.input_channels, nullptr);
        }
        shared_.plans.clear();
        shared_.plans.resize(set.count.plan);
    }

    /// Layers n .. k chosen. Complete for k == 1; else whether some combination of their tiles may
    /// still matter.
    bool look(int k, const Prefix& prefix, const StructureSet::Uses& uses) {
        work_.steps += steps_of_a_look;
        std::array<AxisTree*, 2> spatial{};
        for (size_t axis = 0; axis < 2; ++axis) {
            Shared::OfAnAxis& own = shared_.spatial[axis][uses.spatial[axis]];
            if (own.tree == nullptr) {
                own.list = &SpatialAxis::longer(*prefix.lists[axis], spatial_use(*chosen(k), axis));
                own.tree =
                    &(axis == 0 ? rows_ : columns()).tree(*own.list, residence_, residences(k - 1));
            }
            lists_[axis] = own.list;
            spatial[axis] = own.tree;
        }
        if (lists_[0]->is_cut || lists_[1]->is_cut) return false;
        const size_t count = padded_terms(terms_.count());
        Shared::OfAResidence& own = shared_.by_residence[is_resident(k) ? 1 : 0];
        if (own.product.empty()) {
            own.product = base_;
            for (int j = terms_.n; j > k; --j) {
                own.later.push_back(&channels(j, k));
                multiply(own.product.data(), own.later.back()->least(0), count, own.product.data());
            }
        }
        AxisTree*& output = own.output_channels[uses.output_channels];
        if (output == nullptr) output = &channels(k, k);
        AxisTree*& input = own.input_channels[uses.input_channels];
        if (input == nullptr) input = &channels(k - 1, k);
        const std::array<AxisTree*, 4> others{spatial[0], spatial[1], output, input};
        if (std::any_of(others.begin(), others.end(),
                        [](const AxisTree* tree) { return tree->empty(); }))
            return false;
        if (k == 1) {
            double all = 1;
            for (const AxisTree* tree : own.later) all *= static_cast<double>(tree->node(0).count);
            for (const AxisTree* tree : others) all *= static_cast<double>(tree->node(0).count);
            work_.covered += all;
        }
        auto& plan_of_uses = shared_.plans[uses.plan];
        if (!plan_of_uses) plan_of_uses = plan(k);
        double product[max_terms];
        std::copy(own.product.begin(), own.product.end(), product);
        for (const AxisTree* tree : others) multiply(product, tree->least(0), count, product);
        if (!is_wanted(plan_of_uses->cost(product))) return false;

        trees_ = {spatial[0], spatial[1]};
        trees_.insert(trees_.end(), own.later.begin(), own.later.end());
        trees_.insert(trees_.end(), {output, input});
        begin_at_roots(*plan_of_uses);
        if (is_over() && k == terms_.n) {
            note_open(most_open_depth);
            return false;
        }
        any_ = false;
        if (k == 1)
            descend<true>();
        else
            descend<false>();
        return any_;
    }

    [[nodiscard]] CostPlan plan(int k) const {
        std::vector<BufferPlace> places;
        const auto scope_nest = [&](int tensor) {  // nest in whose loops A_tensor is stored
            int j = tensor + 1;
            while (j >= k && chosen(j)->store < 0) ++j;
            return j;
        };
        for (int j = terms_.n; j >= 1; --j) {
            const bool is_open = j < k;
            places.push_back({terms_.buffer(j - 1), is_open ? j : scope_nest(j - 1), false});
            BufferPlace weights{terms_.weight_buffer(j), j, is_open};
            if (is_resident(j))
                weights = {terms_.weight_buffer(j), 0, false};
            else if (!is_open && chosen(j)->weights == WeightsLife::scope)
                weights = {terms_.weight_buffer(j), scope_nest(j), false};
            else if (!is_open)
                weights.is_below = chosen(j)->weights_below;
            places.push_back(weights);
        }
        places.push_back({terms_.output_buffer(), terms_.n, chosen(terms_.n)->output_below});
        if (!options_.live) {
            for (BufferPlace& place : places) place = {place.term, 0, false};
        }
        return {terms_, std::move(places)};
    }

    [[nodiscard]] Cost bound() const {
        double product[max_terms];
        const size_t count = padded_terms(terms_.count());
        std::copy(base_.begin(), base_.end(), product);
        for (size_t a = 0; a < trees_.size(); ++a)
            multiply(product, trees_[a]->least(at_[a]), count, product);
        return plan_->cost(product);
    }

    /// `count`: a multiple of four.
    static void multiply(const double* a, const double* b, size_t count, double* result) {
        for (size_t begin = 0; begin < count; begin += 4) {
            for (size_t t = begin; t < begin + 4; ++t) result[t] = a[t] * b[t];
        }
    }

    /// Where schedules that nothing known beats may be, by CallBound: from each memory to the next
    /// of its steps.
    void find_open_memory() {
        open_memory_.clear();
        if (options_.bound == nullptr) return;
        const std::vector<Cost>& steps = options_.bound->steps();
        for (size_t n = 0; n < steps.size(); ++n) {
            if (found_.beats_all_above(steps[n])) continue;
            const double end = n + 1 < steps.size() ? steps[n + 1].memory : INFINITY;
            if (!open_memory_.empty() && open_memory_.back().second == steps[n].memory)
                open_memory_.back().second = end;
            else
                open_memory_.emplace_back(steps[n].memory, end);
        }
    }

    /// From `memory` on the first at which schedules may matter; infinite where there is none.
    [[nodiscard]] double next_open_memory(double memory) const {
        const auto next =
            std::upper_bound(open_memory_.begin(), open_memory_.end(), memory,
                             [](double m, const auto& part) { return m < part.second; });
        return next == open_memory_.end() ? INFINITY : std::max(memory, next->first);
    }

    [[nodiscard]] bool is_wanted(Cost cost) const {
        if (options_.bound != nullptr) {
            cost.memory = next_open_memory(cost.memory);
            if (cost.memory == INFINITY) return false;
        }
        if (options_.memory && cost.memory > *options_.memory) return false;
        if (!options_.recompute && cost.macs > least_macs_) return false;
        return !found_.beats_all_above(cost);
    }

    /// complete: offers what is left at single combinations. Else marks the tiles of rows and
    /// columns that are left, and whether any are.
    template <bool complete>
    void descend() {
        if (!complete && any_ && is_marked()) return;
        const Cost cost = bound();
        ++work_.steps;
        if (!is_wanted(cost)) return;
        const size_t widest = widest_axis();
        if (widest == trees_.size()) {
            work_.evaluated += complete ? 1 : 0;
            take<complete>(cost);
            return;
        }
        if (is_small()) {
            scan<complete>();
            return;
        }
        const uint32_t before = at_[widest];
        const AxisTree::Node node = trees_[widest]->node(before);
        for (const uint32_t half : {node.left, node.right}) {
            at_[widest] = half;
            descend<complete>();
        }
        at_[widest] = before;
    }

    /// One combination is left, and nothing known beats it.
    template <bool complete>
    void take(const Cost& cost) {
        any_ = true;
        if (complete) {
            known_accesses_.add(cost);
            found_.offer(cost, choice());
        } else {
            trees_[0]->mark(at_[0]);
            trees_[1]->mark(at_[1]);
        }
    }

    // So few combinations are quicker evaluated than bounded: all of them, in rows along the axis
    // that has most.

    [[nodiscard]] bool is_small() const {
        double combinations = 1;
        for (size_t a = 0; a < trees_.size(); ++a)
            combinations *= static_cast<double>(trees_[a]->node(at_[a]).count);
        return combinations <= static_cast<double>(options_.most_in_a_grid);
    }

    template <bool complete>
    void scan() {
        grid_axes_.clear();
        for (size_t a = 0; a < trees_.size(); ++a) {
            if (trees_[a]->node(at_[a]).count > 1) grid_axes_.push_back(a);
        }
        std::sort(grid_axes_.begin(), grid_axes_.end(), [&](size_t a, size_t b) {
            return trees_[a]->node(at_[a]).count < trees_[b]->node(at_[b]).count;
        });
        const size_t row_axis = grid_axes_.back();
        const size_t count = padded_terms(terms_.count());
        grid_products_.resize(grid_axes_.size() * count);
        double* product = grid_products_.data();
        std::copy(base_.begin(), base_.end(), product);
        for (size_t a = 0; a < trees_.size(); ++a) {
            const AxisTree& tree = *trees_[a];
            if (tree.node(at_[a]).count == 1) multiply(product, tree.least(at_[a]), count, product);
        }
        for (size_t t = 0; t < terms_.count(); ++t) {
            if (trees_[row_axis]->varies()[t] == 0) product[t] *= trees_[row_axis]->least(0)[t];
        }
        if (!rows_of_[row_axis]) rows_of_[row_axis].emplace(*plan_, *trees_[row_axis]);
        scan_from<complete>(0, product);
    }

    /// The axes from the `depth`-th on are not down to one combination.
    template <bool complete>
    void scan_from(size_t depth, double* product) {
        const size_t axis = grid_axes_[depth];
        if (depth + 1 == grid_axes_.size()) return scan_row<complete>(axis, product);
        const AxisTree& tree = *trees_[axis];
        const uint32_t before = at_[axis];
        const AxisTree::Node node = tree.node(before);
        const size_t count = padded_terms(terms_.count());
        for (uint32_t place = node.first; place < node.first + node.count; ++place) {
            at_[axis] = tree.leaf_at(place);
            multiply(product, tree.least(at_[axis]), count, product + count);
            scan_from<complete>(depth + 1, product + count);
        }
        at_[axis] = before;
    }

    template <bool complete>
    void scan_row(size_t axis, const double* product) {
        const AxisTree& tree = *trees_[axis];
        const uint32_t before = at_[axis];
        const AxisTree::Node node = tree.node(before);
        const bool with_macs = found_.macs_is_axis();
        CostRow row;
        KnownAccesses::Flags may_matter;
        for (uint32_t begin = 0; begin < node.count; begin += CostRow::most) {
            const size_t size = std::min<size_t>(CostRow::most, node.count - begin);
            rows_of_[axis]->costs(product, node.first + begin, size, with_macs, row);
            ++work_.steps;
            work_.evaluated += complete ? static_cast<int64_t>(size) : 0;
            double most = INFINITY;
            if (options_.bound != nullptr || with_macs) {
                double memory = least(row.memory.data(), size);
                if (options_.bound != nullptr) memory = next_open_memory(memory);
                if (memory == INFINITY) continue;
                const double macs = with_macs ? least(row.macs.data(), size) : 0;
                most = found_.most_accesses(memory, macs);
            }
            if (with_macs) {
                for (size_t j = 0; j < size; ++j) may_matter[j] = row.accesses[j] <= most ? 1 : 0;
            } else {
                known_accesses_.compare(row, size, most, may_matter);
            }
            for (size_t j = 0; j < size; ++j) {
                if (may_matter[j] == 0) continue;
                if (!is_wanted({row.accesses[j], row.memory[j], with_macs ? row.macs[j] : 0}))
                    continue;
                at_[axis] = tree.leaf_at(node.first + begin + static_cast<uint32_t>(j));
                const Cost cost = bound();
                if (is_wanted(cost)) take<complete>(cost);
            }
        }
        at_[axis] = before;
    }

    [[nodiscard]] bool is_marked() const {
        return trees_[0]->node(at_[0]).unmarked == 0 && trees_[1]->node(at_[1]).unmarked == 0;
    }

    /// The axis to halve next; the number of axes when all are down to one combination.
    [[nodiscard]] size_t widest_axis() const {
        size_t widest = trees_.size();
        double spread = 0;
        for (size_t a = 0; a < trees_.size(); ++a) {
            const double s = trees_[a]->node(at_[a]).spread;
            if (s > spread) {
                widest = a;
                spread = s;
            }
        }
        return widest;
    }

    /// Bounds of what is left out, after so many halvings.
    void note_open(int depth) {
        const Cost cost = bound();
        if (!is_wanted(cost)) return;
        const size_t widest = widest_axis();
        if (depth > 0 && widest < trees_.size()) {
            const uint32_t before = at_[widest];
            const AxisTree::Node& node = trees_[widest]->node(before);
            for (const uint32_t half : {node.left, node.right}) {
                at_[widest] = half;
                note_open(depth - 1);
            }
            at_[widest] = before;
            return;
        }
        open_.offer(cost, {});
    }

    [[nodiscard]] GroupChoice choice() const {
        GroupChoice choice;
        for (int k = 1; k <= terms_.n; ++k) {
            choice.structures.push_back(*chosen(k));
            const LayerProblem& p = problem(k);
            const auto from_last = static_cast<size_t>(terms_.n - k);
            PerDim<int64_t> tiles;
            tiles[Dim::y] = trees_[0]->option(at_[0]).tiles[from_last];
            tiles[Dim::x] = trees_[1]->option(at_[1]).tiles[from_last];
            // Channel axis of A_j is number 2 + n - j; it has T_i of its reader and T_z of its
            // producer.
            const auto z_axis = 2 + from_last;
            tiles[Dim::z] = trees_[z_axis]->option(at_[z_axis]).tiles[1];
            tiles[Dim::i] =
                p.groups > 1 ? p[Dim::i] : trees_[z_axis + 1]->option(at_[z_axis + 1]).tiles[0];
            choice.tiles.push_back(tiles);
        }
        return choice;
    }

    static constexpr int most_open_depth = 6;
    static constexpr int64_t steps_of_a_look = 1;  ///< as measured: a fifth of a microsecond
    static constexpr int most_residences =
        5;  ///< layers whose weights are placed before anything else
    static constexpr size_t max_terms = padded_terms(Terms(CostPlan::most_layers).count());

    const std::vector<LayerProblem>& problems_;
    GroupSearchOptions options_;
    Work work_;
    Terms terms_;
    Archive<GroupChoice> found_;
    KnownAccesses known_accesses_;  ///< of what was found; for two axes
    SpatialAxis rows_;
    std::optional<SpatialAxis> columns_;
    bool is_square_ = false;
    std::vector<double> coefficients_;
    double least_macs_ = 0;
    std::map<std::pair<int, LayerContext>, StructureSet> structures_;
    struct ChannelKeyHash {
        size_t operator()(const std::array<uint64_t, 3>& key) const {
            size_t h = 1469598103934665603ULL;
            for (const uint64_t part : key) h = (h ^ part) * 1099511628211ULL;
            return h ^ (h >> 32U);
        }
    };
    std::unordered_map<std::array<uint64_t, 3>, std::unique_ptr<AxisTree>, ChannelKeyHash>
        channel_trees_;  ///< by layer, ChannelUse::key(), residences()
    // The choice in progress.
    std::vector<Residence> residence_;
    std::vector<const LayerStructure*> chosen_;
    std::array<SpatialAxis::List*, 2> lists_{};  ///< of the layers chosen so far, rows and columns
    std::vector<AxisTree*> trees_;
    std::vector<double> base_;
    const CostPlan* plan_ = nullptr;
    CostPlan prepared_plan_;
    Shared shared_;
    std::vector<std::optional<CostPlan::Row>> rows_of_;  ///< by axis, made when first used
    std::vector<size_t> grid_axes_;
    std::vector<double> grid_products_;
    std::vector<std::pair<double, double>> open_memory_;
    std::vector<uint32_t> at_;
    bool any_ = false;
    struct Nothing {};
    Archive<Nothing> open_;  ///< the cheapest of what was left out
};

GroupSearch::GroupSearch(const std::vector<LayerProblem>& problems,
                         const GroupSearchOptions& options)
    : impl_(std::make_unique<Impl>(problems, options)) {}
GroupSearch::~GroupSearch() = default;
void GroupSearch::know(const Cost& cost) { impl_->know(cost); }
void GroupSearch::know(const Point& point) { impl_->know(point); }
void GroupSearch::run() { impl_->run(); }
std::vector<GroupSearch::Point> GroupSearch::front() const { return impl_->front(); }
bool GroupSearch::is_complete() const { return impl_->is_complete(); }
const std::vector<Cost>& GroupSearch::open() const { return impl_->open(); }
GroupSearch::Work GroupSearch::work() const { return impl_->work(); }

GroupSchedule group_schedule(const std::vector<LayerProblem>& problems, const GroupChoice& choice) {
    const int layers = static_cast<int>(problems.size());
    const auto level = [](int nest, int position) { return Level{nest, 3 + position}; };
    // Where the input of a nest is stored: in its own loops, or with its output.
    const auto store_of_input = [&](int nest) {
        while (choice.structures[static_cast<size_t>(nest)].store < 0) ++nest;
        return level(nest, choice.structures[static_cast<size_t>(nest)].store);
    };
    GroupSchedule group;
    for (int k = 0; k < layers; ++k) {
        const LayerStructure& s = choice.structures[static_cast<size_t>(k)];
        Nest nest;
        nest.layer = problems[static_cast<size_t>(k)].name;
        for (const Dim d : all_dims) nest.loops.push_back({d, Band::outer});
        for (const Dim d : s.order) nest.loops.push_back({d, Band::inner});
        nest.tile = choice.tiles[static_cast<size_t>(k)];
        if (k == 0) nest.x = {{0, {store_of_input(0), level(0, s.compute)}}};
        switch (s.weights) {
            case WeightsLife::own:
                nest.w = Placement{level(k, s.weights_store), level(k, 4)};
                break;
            case WeightsLife::scope:
                nest.w = Placement{store_of_input(k + 1), store_of_input(k + 1)};
                break;
            case WeightsLife::resident:
                nest.w = Placement{};
                break;
        }
        if (k + 1 < layers) {
            nest.y = {store_of_input(k + 1),
                      level(k + 1, choice.structures[static_cast<size_t>(k) + 1].compute)};
        } else {
            const auto ii = std::find(s.order.begin(), s.order.end(), Dim::i) - s.order.begin();
            nest.y = {level(k, static_cast<int>(ii)), level(k, static_cast<int>(ii))};
        }
        group.nests.push_back(std::move(nest));
    }
    return group;
}

}  // namespace laminate::search
