#include "scheduler/explore/group_search/group_search.h"

#include <algorithm>
#include <tuple>

#include "scheduler/explore/group_search/descent.h"
#include "scheduler/explore/group_search/group_space.h"
#include "scheduler/explore/group_search/incumbents.h"

namespace laminate::search {

bool may_fuse(const LayerProblem& p) {
    if (p.groups > 1) return false;
    return std::none_of(p.window.begin(), p.window.end(),
                        [](const AxisWindow& w) { return sharing(w) == Sharing::by_tile; });
}

namespace {

/// Structures of the layers n .. k, and their lists of tiles of rows and columns.
struct Prefix {
    PartialChoice choice;
    std::array<SpatialAxis::List*, 2> lists{};
};

/// What structures of layer k share for the same later layers, by StructureSet::Uses. Each part is
/// made when first used. The bound over all tiles drops most structures, so it must be quick.
struct Shared {
    struct OfAnAxis {
        SpatialAxis::List* list = nullptr;
        AxisTree* tree = nullptr;
    };
    struct OfAResidence {
        std::vector<AxisTree*> later;  ///< trees of the channels of A_n .. A_{k+1}
        /// the coefficients times the least factors of `later`
        std::vector<double> product;
        std::vector<AxisTree*> output_channels;  ///< of A_k
        std::vector<AxisTree*> input_channels;   ///< of A_{k-1}
    };
    std::vector<double> coefficients;
    std::array<std::vector<OfAnAxis>, 2> spatial;
    std::array<OfAResidence, 2> by_residence;  ///< weights of layer k: not at the root, at the root
    std::vector<std::optional<CostPlan>> plans;

    Shared(std::vector<double> of_layer, const StructureSet& set)
        : coefficients(std::move(of_layer)), plans(set.count.plan) {
        for (size_t axis = 0; axis < 2; ++axis) spatial[axis].resize(set.count.spatial[axis]);
        for (OfAResidence& own : by_residence) {
            own.output_channels.resize(set.count.output_channels);
            own.input_channels.resize(set.count.input_channels);
        }
    }
};

/// Whether both layers run in the same way, as all layers but the last do in the line-buffer
/// family.
bool is_alike(const LayerStructure& a, const LayerStructure& b) {
    return a.kind == b.kind && a.weights == b.weights && a.channel_kind == b.channel_kind;
}

/// Whether to skip a structure because the one with rows and columns exchanged, which costs the
/// same on a square axis, is searched instead.
bool is_mirrored(const LayerStructure& s) {
    const auto one = [&](size_t axis) {
        return std::make_tuple(s.kind[axis], s.fold[axis], s.weights_per_tile[axis],
                               s.output_holds[axis + 1]);
    };
    return one(1) < one(0);
}

}  // namespace

class GroupSearch::Impl {
public:
    Impl(const std::vector<LayerProblem>& problems, const GroupSearchOptions& options)
        : options_(options),
          space_(problems, options, work_.steps),
          incumbents_(options, space_.least_macs()),
          descent_(space_, options_, incumbents_, work_),
          open_(options.macs_is_axis) {}

    void know(const GroupSearch::Point& point) { incumbents_.offer(point.cost, point.choice); }

    void run() {
        incumbents_.find_open_memory();
        if (!incumbents_.has_open_memory()) return;
        // Layer by layer, so that tiles that matter to no structure of the later layers are dropped
        // for the earlier ones.
        std::vector<Prefix> prefixes = starts();
        for (int k = space_.layers(); k >= 1; --k) {
            std::vector<Prefix> wanted;
            for (const Prefix& prefix : prefixes) extend(prefix, k, wanted);
            prefixes = std::move(wanted);
            space_.finish(k);
        }
    }

    std::vector<GroupSearch::Point> front() const {
        const Archive<GroupChoice>& found = incumbents_.front();
        std::vector<GroupSearch::Point> points;
        for (size_t n = 0; n < found.size(); ++n) {
            if (!found.items()[n].structures.empty())
                points.push_back({found.costs()[n], found.items()[n]});
        }
        return points;
    }
    [[nodiscard]] const std::vector<Cost>& open() const { return open_.costs(); }
    [[nodiscard]] Work work() const { return work_; }

private:
    [[nodiscard]] bool is_over() const {
        return work_.steps >= options_.max_steps ||
               (options_.stop != nullptr && options_.stop->load());
    }

    /// The choice of resident weights comes first, because it tightens the bounds of open layers.
    [[nodiscard]] std::vector<Prefix> starts() {
        const auto layers = static_cast<size_t>(space_.layers());
        const auto start = [&](std::vector<Residence> residence) {
            return Prefix{PartialChoice(std::move(residence)),
                          {&space_.spatial(0).nothing(), &space_.spatial(1).nothing()}};
        };
        const auto all = [&](Residence r) { return std::vector<Residence>(layers, r); };
        if (layers == 1) return {start(all(Residence::no))};
        if (options_.structures.only_resident) return {start(all(Residence::yes))};
        if (layers > most_residences) return {start(all(Residence::open))};
        std::vector<Prefix> result;
        for (size_t set = size_t{1} << layers; set-- > 0;) {
            std::vector<Residence> residence;
            for (size_t k = 0; k < layers; ++k)
                residence.push_back(((set >> k) & 1U) != 0 ? Residence::yes : Residence::no);
            result.push_back(start(std::move(residence)));
        }
        return result;
    }

    /// Extends `prefix` by each structure of layer k, and adds those that survive to `wanted`.
    void extend(const Prefix& prefix, int k, std::vector<Prefix>& wanted) {
        const bool is_last = k == space_.layers();
        if (!is_last && is_over()) return give_up(prefix, k);
        const StructureSet& set = space_.structures(k, prefix.choice);
        Shared shared(space_.coefficients(k, prefix.choice), set);
        for (size_t n = 0; n < set.all.size(); ++n) {
            const LayerStructure& s = set.all[n];
            if (is_excluded(s, prefix.choice, k)) continue;
            Prefix longer{prefix.choice, {}};
            longer.choice.choose(k, s);
            const bool survives = look(k, prefix, set.uses[n], longer, shared);
            if (!is_last && is_over()) return give_up(prefix, k);
            if (survives && k > 1) wanted.push_back(std::move(longer));
        }
    }

    [[nodiscard]] bool is_excluded(const LayerStructure& s, const PartialChoice& choice,
                                   int k) const {
        const auto resides = s.weights == WeightsLife::resident ? Residence::yes : Residence::no;
        const Residence planned = choice.residence(k);
        if (planned != Residence::open && planned != resides) return true;
        if (options_.near != nullptr && !is_near(*options_.near, s, choice, k)) return true;
        if (k == space_.layers())
            return space_.is_square() && !options_.structures.is_baseline && is_mirrored(s);
        return options_.structures.only_kept && k < space_.layers() - 1 &&
               !is_alike(s, choice.structure(k + 1));
    }

    /// Whether the choice for the later layers and `s` for layer k differ from some of `all` in at
    /// most one layer.
    [[nodiscard]] bool is_near(const std::vector<IndexVector<LayerStructure, int>>& all,
                               const LayerStructure& s, const PartialChoice& choice, int k) const {
        return std::any_of(all.begin(), all.end(), [&](const auto& structures) {
            int differ = say_the_same(structures[k - 1], s) ? 0 : 1;
            for (int j = space_.layers(); differ <= 1 && j > k; --j)
                differ += say_the_same(structures[j - 1], choice.structure(j)) ? 0 : 1;
            return differ <= 1;
        });
    }

    /// Bounds all schedules with the choices of `prefix` for the layers n .. k + 1.
    void give_up(const Prefix& prefix, int k) {
        const Residences before = prefix.choice.residences(k);
        std::vector<AxisTree*> axes;
        for (size_t axis = 0; axis < 2; ++axis)
            axes.push_back(
                &space_.spatial(axis).tree(*prefix.lists[axis], prefix.choice.residence(), before));
        if (prefix.lists[0]->is_cut || prefix.lists[1]->is_cut) return;
        for (int j = space_.layers(); j >= k; --j)
            axes.push_back(&space_.channels().tree(j, k + 1, prefix.choice));
        const CostPlan plan = space_.plan(k + 1, prefix.choice);
        if (descent_.start(axes, space_.coefficients(k + 1, prefix.choice), plan))
            descent_.note_open(most_open_depth, open_);
    }

    /// Layers n .. k are chosen. For k == 1, searches all their tiles; otherwise returns whether
    /// some combination may still matter.
    bool look(int k, const Prefix& prefix, const StructureSet::Uses& uses, Prefix& longer,
              Shared& shared) {
        work_.steps += steps_of_a_look;
        const PartialChoice& choice = longer.choice;
        std::array<AxisTree*, 4> own{};
        for (size_t axis = 0; axis < 2; ++axis) {
            Shared::OfAnAxis& known = shared.spatial[axis][uses.spatial[axis]];
            if (known.tree == nullptr) {
                known.list = &space_.spatial(axis).longer(*prefix.lists[axis],
                                                          spatial_use(choice.structure(k), axis));
                known.tree = &space_.spatial(axis).tree(*known.list, choice.residence(),
                                                        choice.residences(k - 1));
            }
            longer.lists[axis] = known.list;
            own[axis] = known.tree;
        }
        if (longer.lists[0]->is_cut || longer.lists[1]->is_cut) return false;
        const Shared::OfAResidence& later = channels(k, choice, uses, shared);
        own[2] = later.output_channels[uses.output_channels];
        own[3] = later.input_channels[uses.input_channels];
        if (std::any_of(own.begin(), own.end(), [](const AxisTree* tree) { return tree->empty(); }))
            return false;
        if (k == 1) {
            double all = 1;
            for (const AxisTree* tree : later.later)
                all *= static_cast<double>(tree->node(0).count);
            for (const AxisTree* tree : own) all *= static_cast<double>(tree->node(0).count);
            work_.covered += all;
        }
        std::optional<CostPlan>& plan = shared.plans[uses.plan];
        if (!plan) plan = space_.plan(k, choice);
        double product[Descent::max_terms];
        std::copy(later.product.begin(), later.product.end(), product);
        for (const AxisTree* tree : own) tree->multiply(0, product);
        if (!incumbents_.is_wanted(plan->cost(product))) return false;

        std::vector<AxisTree*> axes{own[0], own[1]};
        axes.insert(axes.end(), later.later.begin(), later.later.end());
        axes.insert(axes.end(), {own[2], own[3]});
        descent_.start(axes, shared.coefficients, *plan);
        if (is_over() && k == space_.layers()) {
            descent_.note_open(most_open_depth, open_);
            return false;
        }
        if (k > 1) return descent_.mark();
        descent_.search(choice);
        return false;
    }

    /// The channel axes of a choice. Missing ones are made.
    const Shared::OfAResidence& channels(int k, const PartialChoice& choice,
                                         const StructureSet::Uses& uses, Shared& shared) {
        Shared::OfAResidence& known = shared.by_residence[choice.is_resident(k) ? 1 : 0];
        ChannelAxes& channels = space_.channels();
        if (known.product.empty()) {
            known.product = shared.coefficients;
            for (int j = space_.layers(); j > k; --j) {
                known.later.push_back(&channels.tree(j, k, choice));
                known.later.back()->multiply(0, known.product.data());
            }
        }
        AxisTree*& output = known.output_channels[uses.output_channels];
        if (output == nullptr) output = &channels.tree(k, k, choice);
        AxisTree*& input = known.input_channels[uses.input_channels];
        if (input == nullptr) input = &channels.tree(k - 1, k, choice);
        return known;
    }

    static constexpr int most_open_depth = 6;
    static constexpr int64_t steps_of_a_look = 1;  ///< measured: a fifth of a microsecond
    /// ^ Up to this many layers, the residence of weights is chosen first.
    static constexpr size_t most_residences = 5;

    GroupSearchOptions options_;
    Work work_;
    GroupSpace space_;
    Incumbents incumbents_;
    Descent descent_;
    Archive<Nothing> open_;  ///< bounds of what was left out
};

GroupSearch::GroupSearch(const std::vector<LayerProblem>& problems,
                         const GroupSearchOptions& options)
    : impl_(std::make_unique<Impl>(problems, options)) {}
GroupSearch::~GroupSearch() = default;
void GroupSearch::know(const Cost& cost) { impl_->know({cost, {}}); }
void GroupSearch::know(const Point& point) { impl_->know(point); }
void GroupSearch::run() { impl_->run(); }
std::vector<GroupSearch::Point> GroupSearch::front() const { return impl_->front(); }
bool GroupSearch::is_complete() const { return impl_->open().empty(); }
const std::vector<Cost>& GroupSearch::open() const { return impl_->open(); }
GroupSearch::Work GroupSearch::work() const { return impl_->work(); }

}  // namespace laminate::search
