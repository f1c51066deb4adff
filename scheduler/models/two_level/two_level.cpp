#include "scheduler/models/two_level/two_level.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "scheduler/models/two_level/axis.h"

namespace laminate {

struct TwoLevelCache::Entries {
    struct Hash {
        size_t operator()(const std::vector<int64_t>& key) const {
            size_t h = 1469598103934665603ULL;
            for (const int64_t v : key) h = (h ^ static_cast<size_t>(v)) * 1099511628211ULL;
            return h;
        }
    };
    std::unordered_map<std::vector<int64_t>, std::shared_ptr<const two_level::AxisCounts>, Hash> axes;
};

TwoLevelCache::TwoLevelCache() : entries_(std::make_unique<Entries>()) {}
TwoLevelCache::TwoLevelCache(TwoLevelCache&&) noexcept = default;
TwoLevelCache& TwoLevelCache::operator=(TwoLevelCache&&) noexcept = default;
TwoLevelCache::~TwoLevelCache() = default;

namespace {

using two_level::AxisBody;
using two_level::AxisCounts;
using two_level::AxisLevel;
using two_level::AxisLifetime;
using two_level::AxisNest;
using two_level::AxisProblem;
using two_level::Role;

/// One axis of the group: which dimension of which nest belongs to it.
struct Axis {
    std::vector<std::optional<Dim>> dims;  ///< by nest
    std::vector<Role> roles;
    std::shared_ptr<const AxisCounts> counts;

    [[nodiscard]] bool has(int nest, Dim d) const { return dims[static_cast<size_t>(nest)] == d; }
};

class Composer {
public:
    Composer(const std::vector<LayerProblem>& problems, const GroupSchedule& group, TwoLevelCache* cache)
        : problems_(problems), group_(group), cache_(cache) {
        find_axes();
        for (Axis& axis : axes_) axis.counts = evaluate(axis);
    }

    [[nodiscard]] GroupCounts counts() {
        GroupCounts counts;
        const size_t sink = problems_.size() - 1;
        for (size_t k = 0; k <= sink; ++k) {
            const LayerProblem& p = problems_[k];
            LayerCounts layer;
            layer.layer = group_.nests[k].layer;
            int64_t macs = p[Dim::i];
            for (const Axis& axis : axes_) {
                macs = checked_multiply(macs, k == sink ? axis.counts->sink_taps : axis.counts->buffers[2 * k + 2].taps);
            }
            layer.macs = Macs(macs);
            layer.weight_reads = brought(2 * k + 1) * p.y().kernel * p.x().kernel;
            layer.weight_buffer = size(2 * k + 1) * p.y().kernel * p.x().kernel;
            layer.output_buffer = k == sink ? output_buffer() : size(2 * k + 2);
            counts.layers.push_back(std::move(layer));
        }
        counts.input_reads = brought(0);
        counts.input_buffer = size(0);
        const int64_t visits = output_visits();
        counts.output_writes = problems_[sink].output_elements() * visits;
        counts.output_reads = problems_[sink].output_elements() * (visits - 1);
        counts.sum_total = counts.input_buffer;
        for (const LayerCounts& layer : counts.layers) counts.sum_total += layer.weight_buffer + layer.output_buffer;
        counts.live_total = live(counts, Level{});
        return counts;
    }

private:
    // ---------------------------------------------------------------------------------------------------------- axes
    void find_axes() {
        const size_t nests = problems_.size();
        for (const Dim d : {Dim::y, Dim::x}) {
            Axis axis{std::vector<std::optional<Dim>>(nests, d), std::vector<Role>(nests, Role::spatial), nullptr};
            axes_.push_back(std::move(axis));
        }
        // Channels: z of the sink, and i of every nest, start an axis each. The i of an ungrouped nest is the z of its producer;
        // a grouped nest passes its own z on, and its i indexes nothing but its weights.
        const auto start = [&](size_t nest, Dim d) {
            Axis axis{std::vector<std::optional<Dim>>(nests), std::vector<Role>(nests, Role::none), nullptr};
            axis.dims[nest] = d;
            const bool is_grouped = problems_[nest].groups > 1;
            bool goes_on = false;
            if (d == Dim::i) {
                axis.roles[nest] = is_grouped ? Role::within_group : Role::inputs;
                goes_on = !is_grouped;
            } else {
                axis.roles[nest] = is_grouped ? Role::grouped : Role::outputs;
                goes_on = is_grouped;
            }
            for (size_t k = nest; goes_on && k-- > 0;) {
                goes_on = problems_[k].groups > 1;
                axis.dims[k] = Dim::z;
                axis.roles[k] = goes_on ? Role::grouped : Role::outputs;
            }
            axes_.push_back(std::move(axis));
        };
        start(nests - 1, Dim::z);
        for (size_t k = 0; k < nests; ++k) start(k, Dim::i);
    }

    [[nodiscard]] AxisLevel axis_level(const Axis& axis, Level level) const {
        if (level.is_root()) return {group_.sink(), 0};
        AxisLevel result{level.nest, 0};
        const Nest& nest = group_.nests[static_cast<size_t>(level.nest)];
        for (int l = 0; l <= level.loop; ++l) {
            if (axis.has(level.nest, nest.loops[static_cast<size_t>(l)].dim)) ++result.depth;
        }
        return result;
    }

    [[nodiscard]] const Placement& placement(size_t buffer) const {
        if (buffer == 0) return *group_.nests[0].x;
        return buffer % 2 == 1 ? group_.nests[buffer / 2].w : group_.nests[buffer / 2 - 1].y;
    }

    [[nodiscard]] std::shared_ptr<const AxisCounts> evaluate(const Axis& axis) const {
        AxisProblem problem;
        for (size_t k = 0; k < problems_.size(); ++k) {
            const LayerProblem& p = problems_[k];
            const Nest& nest = group_.nests[k];
            AxisNest n;
            n.role = axis.roles[k];
            if (axis.dims[k]) {
                const Dim d = *axis.dims[k];
                n.extent = p[d];
                for (const Loop& loop : nest.loops) {
                    if (loop.dim != d) continue;
                    n.steps.push_back(loop.band == Band::strip   ? nest.strip[static_cast<size_t>(d) - 1]
                                      : loop.band == Band::outer ? nest[d]
                                                                 : 1);
                }
                if (n.role == Role::spatial) n.window = d == Dim::y ? p.y() : p.x();
                n.group_outputs = p[Dim::z] / p.groups;
                n.group_inputs = p[Dim::i];
            }
            problem.nests.push_back(std::move(n));
        }
        for (size_t b = 0; b < 2 * problems_.size(); ++b) {
            problem.buffers.push_back({axis_level(axis, placement(b).store), axis_level(axis, placement(b).compute)});
        }
        if (cache_ == nullptr) return std::make_shared<AxisCounts>(axis_counts(problem));
        std::shared_ptr<const AxisCounts>& entry = cache_->entries().axes[problem.key()];
        if (!entry) entry = std::make_shared<AxisCounts>(axis_counts(problem));
        return entry;
    }

    // -------------------------------------------------------------------------------------------------------- traffic
    [[nodiscard]] Elements brought(size_t buffer) const {
        // Zero first: a buffer that no axis combination ever fills must not overflow on the way.
        for (const Axis& axis : axes_) {
            if (axis.counts->buffers[buffer].brought == 0) return Elements{};
        }
        Elements product(1);
        for (const Axis& axis : axes_) product = product * axis.counts->buffers[buffer].brought;
        return product;
    }

    /// How often an element of Y is accumulated and written: once per iteration of the i loops around Y's level.
    [[nodiscard]] int64_t output_visits() const {
        const Nest& nest = group_.nests.back();
        const LayerProblem& p = problems_.back();
        const int level = nest.y.store.is_root() ? -1 : nest.y.store.loop;
        if (level >= nest.find(Loop{Dim::i, Band::inner})) return p[Dim::i];
        return level >= nest.find(Loop{Dim::i, Band::outer}) ? ceil_div(p[Dim::i], nest[Dim::i]) : 1;
    }

    // ------------------------------------------------------------------------------------------------------ footprint
    [[nodiscard]] Elements output_buffer() const {
        const Nest& nest = group_.nests.back();
        Elements product(1);
        for (const Dim d : {Dim::z, Dim::y, Dim::x}) {
            int64_t extent = problems_.back()[d];
            for (int l = 0; !nest.y.store.is_root() && l <= nest.y.store.loop; ++l) {
                const Loop loop = nest.loops[static_cast<size_t>(l)];
                if (loop.dim != d) continue;
                extent = std::min(extent, loop.band == Band::strip   ? nest.strip[static_cast<size_t>(d) - 1]
                                          : loop.band == Band::outer ? nest[d]
                                                                     : 1);
            }
            product = product * extent;
        }
        return product;
    }

    /// A dimension of the buffer is an axis along which it has more than the unit interval.
    [[nodiscard]] static bool indexes(Role role, bool is_weights) {
        if (role == Role::grouped || role == Role::inputs) return true;
        return is_weights ? role == Role::outputs || role == Role::within_group : role == Role::spatial;
    }

    /// Size of a buffer by the fold rule (section 5); the kernel area of weights is not included. The rule holds for each lifetime
    /// by itself, and lifetimes combine freely over axes: the extents are maxima over all combinations of lifetimes that differ.
    [[nodiscard]] Elements size(size_t buffer) const {
        if (brought(buffer) == Elements{}) return Elements{};
        const std::vector<LoopBetween> loops = loops_between(buffer);
        std::vector<int64_t> extents(axes_.size(), 1);
        std::vector<size_t> choice(axes_.size(), 0);
        for (;;) {
            fold(buffer, loops, choice, extents);
            size_t a = 0;
            while (a < axes_.size() && ++choice[a] == axes_[a].counts->buffers[buffer].lifetimes.size()) choice[a++] = 0;
            if (a == axes_.size()) break;
        }
        Elements product(1);
        for (const int64_t extent : extents) product = product * extent;
        return product;
    }

    /// A loop between store and compute level of a buffer: its axis and the body in AxisBuffer::levels.
    struct LoopBetween {
        size_t axis = 0;
        size_t body = 0;
        bool indexes = false;
    };

    [[nodiscard]] std::vector<LoopBetween> loops_between(size_t buffer) const {
        const size_t user = buffer / 2;
        const std::vector<Level> levels = path(group_, static_cast<int>(user));
        const auto store = std::find(levels.begin(), levels.end(), placement(buffer).store);
        const auto compute = std::find(levels.begin(), levels.end(), placement(buffer).compute);
        std::vector<LoopBetween> loops;
        for (auto level = store + 1; level <= compute; ++level) {
            const Dim d = group_.nests[static_cast<size_t>(level->nest)].loops[static_cast<size_t>(level->loop)].dim;
            for (size_t a = 0; a < axes_.size(); ++a) {
                if (!axes_[a].has(level->nest, d)) continue;
                const std::vector<AxisLevel>& bodies = axes_[a].counts->buffers[buffer].levels;
                const auto body = std::find(bodies.begin(), bodies.end(), axis_level(axes_[a], *level));
                loops.push_back({a, static_cast<size_t>(body - bodies.begin()), indexes(axes_[a].roles[user], buffer % 2 == 1)});
            }
        }
        return loops;
    }

    /// Walks the loops inwards for one lifetime per axis and raises `extents` to what it finds.
    void fold(size_t buffer, const std::vector<LoopBetween>& loops, const std::vector<size_t>& choice,
              std::vector<int64_t>& extents) const {
        std::vector<int64_t> found(axes_.size(), 1);
        const auto lifetime = [&](size_t a) -> const AxisLifetime& { return axes_[a].counts->buffers[buffer].lifetimes[choice[a]]; };
        for (size_t a = 0; a < axes_.size(); ++a) {
            if (indexes(axes_[a].roles[buffer / 2], buffer % 2 == 1)) found[a] = lifetime(a).front().held;
        }
        const LoopBetween* run = nullptr;  // innermost of the adjacent loops of one dimension just walked
        const auto close_run = [&] {       // false: nothing inside can fold
            if (run == nullptr) return true;
            const AxisBody& body = lifetime(run->axis)[run->body];
            found[run->axis] = body.held;
            return !body.overlaps;
        };
        bool stopped = false;
        for (const LoopBetween& loop : loops) {
            if (lifetime(loop.axis)[loop.body].trips <= 1) continue;
            if (run != nullptr && run->axis != loop.axis) {
                stopped = !close_run();
                run = nullptr;
            }
            if (!loop.indexes) stopped = true;
            if (stopped) break;
            run = &loop;
        }
        if (!stopped) close_run();
        for (size_t a = 0; a < axes_.size(); ++a) extents[a] = std::max(extents[a], found[a]);
    }

    [[nodiscard]] Elements live(const GroupCounts& counts, Level level) const {
        Elements stored;
        if (group_.nests[0].x->store == level) stored += counts.input_buffer;
        for (size_t k = 0; k < group_.nests.size(); ++k) {
            if (group_.nests[k].w.store == level) stored += counts.layers[k].weight_buffer;
            if (group_.nests[k].y.store == level) stored += counts.layers[k].output_buffer;
        }
        Elements inside;
        const auto loop_inside = [&](int nest, int loop) {
            if (loop < static_cast<int>(group_.nests[static_cast<size_t>(nest)].loops.size())) {
                inside = std::max(inside, live(counts, Level{nest, loop}));
            }
        };
        if (level.is_root()) loop_inside(group_.sink(), 0);
        else loop_inside(level.nest, level.loop + 1);
        for (int k = 0; k < group_.sink(); ++k) {
            if (group_.nests[static_cast<size_t>(k)].y.compute == level) loop_inside(k, 0);
        }
        return stored + inside;
    }

    const std::vector<LayerProblem>& problems_;
    const GroupSchedule& group_;
    TwoLevelCache* cache_;
    std::vector<Axis> axes_;
};

}  // namespace

GroupCounts two_level_counts(const std::vector<LayerProblem>& problems, const GroupSchedule& group, TwoLevelCache* cache) {
    return Composer(problems, group, cache).counts();
}

GroupCounts two_level_counts(const Network& network, const GroupSchedule& group, TwoLevelCache* cache) {
    return two_level_counts(group_problems(network, group), group, cache);
}

NetworkCounts two_level_counts(const Network& network, const Schedule& schedule, TwoLevelCache* cache) {
    std::vector<GroupCounts> groups;
    for (const GroupSchedule& group : schedule.groups()) groups.push_back(two_level_counts(network, group, cache));
    return total(groups);
}

}  // namespace laminate
