#include "scheduler/models/two_level/group_model.h"

#include <algorithm>

namespace laminate::two_level {

namespace {

const Placement& placement(const GroupSchedule& group, size_t buffer) {
    if (buffer == 0) return group.nests[0].x.front().placement;
    return buffer % 2 == 1 ? *group.nests[buffer / 2].w : group.nests[buffer / 2 - 1].y;
}

/// A dimension of a buffer is an axis along which it has more than the unit interval.
bool indexes(Role role, bool is_weights) {
    if (role == Role::grouped || role == Role::inputs) return true;
    return is_weights ? role == Role::outputs || role == Role::within_group : role == Role::spatial;
}

/// Elements that one trip of the loop covers.
int64_t step(const Nest& nest, Loop loop) {
    if (loop.band == Band::inner) return 1;
    return loop.band == Band::outer ? nest[loop.dim] : nest.strip[static_cast<size_t>(loop.dim) - 1];
}

}  // namespace

void AxisTable::set(size_t axis, const AxisCounts& counts) {
    for (size_t b = 0; b < counts.buffers.size(); ++b) buffers[axis][b] = &counts.buffers[b];
    sink_taps[axis] = counts.sink_taps;
}

GroupModel::GroupModel(const std::vector<LayerProblem>& problems, const GroupSchedule& group) : problems_(&problems) {
    find_axes();
    for (const Axis& axis : axes_) {
        std::vector<AxisPlacement> placements;
        for (size_t b = 0; b < 2 * problems.size(); ++b) {
            placements.push_back({axis_level(axis, group, placement(group, b).store),
                                  axis_level(axis, group, placement(group, b).compute)});
        }
        placements_.push_back(std::move(placements));
    }
    find_loops_between(group);
    find_bodies(group, Level{});
}

void GroupModel::find_axes() {
    const size_t nests = problems_->size();
    for (const Dim d : {Dim::y, Dim::x}) {
        axes_.push_back({std::vector<std::optional<Dim>>(nests, d), std::vector<Role>(nests, Role::spatial)});
    }
    // Channels: z of the sink, and i of every nest, start an axis each. The i of an ungrouped nest is the z of its producer;
    // a grouped nest passes its own z on, and its i indexes nothing but its weights.
    const auto start = [&](size_t nest, Dim d) {
        Axis axis{std::vector<std::optional<Dim>>(nests), std::vector<Role>(nests, Role::none)};
        const bool is_grouped = (*problems_)[nest].groups > 1;
        axis.dims[nest] = d;
        if (d == Dim::i)
            axis.roles[nest] = is_grouped ? Role::within_group : Role::inputs;
        else
            axis.roles[nest] = is_grouped ? Role::grouped : Role::outputs;
        bool goes_on = axis.roles[nest] == Role::inputs || axis.roles[nest] == Role::grouped;
        for (size_t k = nest; goes_on && k-- > 0;) {
            goes_on = (*problems_)[k].groups > 1;
            axis.dims[k] = Dim::z;
            axis.roles[k] = goes_on ? Role::grouped : Role::outputs;
        }
        axes_.push_back(std::move(axis));
    };
    start(nests - 1, Dim::z);
    for (size_t k = 0; k < nests; ++k) start(k, Dim::i);
}

AxisLevel GroupModel::axis_level(const Axis& axis, const GroupSchedule& group, Level level) const {
    if (level.is_root()) return {group.sink(), 0};
    AxisLevel result{level.nest, 0};
    const Nest& nest = group.nests[static_cast<size_t>(level.nest)];
    for (int l = 0; l <= level.loop; ++l) {
        if (axis.has(level.nest, nest.loops[static_cast<size_t>(l)].dim)) ++result.depth;
    }
    return result;
}

size_t GroupModel::axis_of(size_t nest, Dim d) const {
    size_t a = 0;
    while (!axes_[a].has(static_cast<int>(nest), d)) ++a;  // every loop belongs to an axis, see find_axes
    return a;
}

AxisProblem GroupModel::axis_problem(size_t axis, const GroupSchedule& group) const {
    AxisProblem problem;
    for (size_t k = 0; k < problems_->size(); ++k) {
        const LayerProblem& p = (*problems_)[k];
        AxisNest n;
        n.role = axes_[axis].roles[k];
        if (const std::optional<Dim> d = axes_[axis].dims[k]) {
            n.extent = p[*d];
            for (const Loop& loop : group.nests[k].loops) {
                if (loop.dim == *d) n.steps.push_back(step(group.nests[k], loop));
            }
            if (n.role == Role::spatial) n.window = *d == Dim::y ? p.y() : p.x();
            n.group_outputs = p[Dim::z] / p.groups;
            n.group_inputs = p[Dim::i];
        }
        problem.nests.push_back(std::move(n));
    }
    problem.buffers = placements_[axis];
    return problem;
}

AxisTable GroupModel::empty_table() const {
    return {std::vector<std::vector<const AxisBuffer*>>(axes_.size(),
                                                        std::vector<const AxisBuffer*>(2 * problems_->size(), nullptr)),
            std::vector<int64_t>(axes_.size(), 0)};
}

// ---------------------------------------------------------------------------------------------------------------- traffic

Elements GroupModel::brought(const AxisTable& table, size_t buffer) const {
    // Zero first: what no combination of the axes ever brings in must not overflow on the way.
    for (const auto& axis : table.buffers) {
        if (axis[buffer]->brought == 0) return Elements{};
    }
    Elements product(1);
    for (const auto& axis : table.buffers) product = product * axis[buffer]->brought;
    if (buffer % 2 == 0) return product;
    const LayerProblem& p = (*problems_)[buffer / 2];
    return product * (p.y().kernel * p.x().kernel);
}

Macs GroupModel::macs(const AxisTable& table, size_t nest) const {
    const bool is_sink = nest + 1 == problems_->size();
    if (!is_sink && brought(table, 2 * nest + 2) == Elements{}) return Macs{};
    Macs product((*problems_)[nest][Dim::i]);
    for (size_t a = 0; a < axes_.size(); ++a)
        product = product * (is_sink ? table.sink_taps[a] : table.buffers[a][2 * nest + 2]->taps);
    return product;
}

int64_t GroupModel::output_visits(const GroupSchedule& group) const {
    const Nest& nest = group.nests.back();
    const int64_t extent = problems_->back()[Dim::i];
    const int level = nest.y.store.is_root() ? -1 : nest.y.store.loop;
    if (level >= nest.find(Loop{Dim::i, Band::inner})) return extent;
    return level >= nest.find(Loop{Dim::i, Band::outer}) ? ceil_div(extent, nest[Dim::i]) : 1;
}

// -------------------------------------------------------------------------------------------------------------- footprint

int64_t GroupModel::output_extent(const GroupSchedule& group, Dim d) const {
    const Nest& nest = group.nests.back();
    int64_t extent = problems_->back()[d];
    for (int l = 0; !nest.y.store.is_root() && l <= nest.y.store.loop; ++l) {
        const Loop loop = nest.loops[static_cast<size_t>(l)];
        if (loop.dim == d) extent = std::min(extent, step(nest, loop));
    }
    return extent;
}

void GroupModel::find_loops_between(const GroupSchedule& group) {
    for (size_t b = 0; b < 2 * problems_->size(); ++b) {
        const size_t user = b / 2;
        std::vector<size_t> indexing;
        for (size_t a = 0; a < axes_.size(); ++a) {
            if (indexes(axes_[a].roles[user], b % 2 == 1)) indexing.push_back(a);
        }
        std::vector<LoopBetween> loops;
        std::vector<size_t> bodies(axes_.size(),
                                   0);  // inside the store level, by axis: each loop and each call opens one
        const std::vector<Level> levels = path(group, static_cast<int>(user));
        const auto store = std::find(levels.begin(), levels.end(), placement(group, b).store);
        const auto compute = std::find(levels.begin(), levels.end(), placement(group, b).compute);
        for (auto level = store + 1; level <= compute; ++level) {
            const Level before = *(level - 1);
            const bool is_call = level->nest != before.nest && !(before.is_root() && level->nest == group.sink());
            const Dim d = group.nests[static_cast<size_t>(level->nest)].loops[static_cast<size_t>(level->loop)].dim;
            for (size_t a = 0; a < axes_.size(); ++a) {
                if (is_call) ++bodies[a];
                if (!axes_[a].has(level->nest, d)) continue;
                loops.push_back({a, ++bodies[a], std::find(indexing.begin(), indexing.end(), a) != indexing.end()});
            }
        }
        loops_between_.push_back(std::move(loops));
        indexing_axes_.push_back(std::move(indexing));
    }
}

/// The fold rule holds for each lifetime by itself, and lifetimes combine freely over axes: the extents are maxima over all
/// combinations of lifetimes that differ.
Elements GroupModel::size(const AxisTable& table, const GroupSchedule& group, size_t buffer) const {
    Elements product(1);
    if (buffer == output()) {
        for (const Dim d : {Dim::z, Dim::y, Dim::x}) product = product * output_extent(group, d);
        return product;
    }
    if (brought(table, buffer) == Elements{}) return Elements{};
    std::vector<int64_t> extents(axes_.size(), 1);
    std::vector<size_t> lifetimes(axes_.size(), 0);
    for (;;) {
        fold(table, buffer, lifetimes, extents);
        size_t a = 0;
        while (a < axes_.size() && ++lifetimes[a] == table.buffers[a][buffer]->lifetimes.size()) lifetimes[a++] = 0;
        if (a == axes_.size()) break;
    }
    for (const size_t a : indexing_axes_[buffer]) product = product * extents[a];
    if (buffer % 2 == 0) return product;
    const LayerProblem& p = (*problems_)[buffer / 2];
    return product * (p.y().kernel * p.x().kernel);
}

/// Walks the loops inwards for one lifetime per axis and raises `extents` to what it finds.
void GroupModel::fold(const AxisTable& table, size_t buffer, const std::vector<size_t>& lifetimes,
                      std::vector<int64_t>& extents) const {
    const auto lifetime = [&](size_t a) -> const AxisLifetime& {
        return table.buffers[a][buffer]->lifetimes[lifetimes[a]];
    };
    std::vector<int64_t> found(axes_.size(), 1);
    for (const size_t a : indexing_axes_[buffer]) found[a] = lifetime(a).front().held;
    const LoopBetween* run = nullptr;  // innermost of the adjacent loops of one dimension just walked
    const auto close_run = [&] {       // false: nothing inside can fold
        if (run == nullptr) return true;
        const AxisBody& body = lifetime(run->axis)[run->body];
        found[run->axis] = body.held;
        return !body.overlaps;
    };
    bool stopped = false;
    for (const LoopBetween& loop : loops_between_[buffer]) {
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
    for (const size_t a : indexing_axes_[buffer]) extents[a] = std::max(extents[a], found[a]);
}

size_t GroupModel::find_bodies(const GroupSchedule& group, Level level) {
    const size_t index = bodies_.size();
    bodies_.emplace_back();
    for (size_t b = 0; b < output(); ++b) {
        if (placement(group, b).store == level) bodies_[index].stored.push_back(b);
    }
    if (group.nests.back().y.store == level) bodies_[index].stored.push_back(output());
    const auto loop_inside = [&](int nest, int loop) {
        if (loop >= static_cast<int>(group.nests[static_cast<size_t>(nest)].loops.size())) return;
        const size_t child = find_bodies(group, Level{nest, loop});
        bodies_[index].children.push_back(child);
    };
    if (level.is_root())
        loop_inside(group.sink(), 0);
    else
        loop_inside(level.nest, level.loop + 1);
    for (int k = 0; k < group.sink(); ++k) {
        if (group.nests[static_cast<size_t>(k)].y.compute == level) loop_inside(k, 0);
    }
    return index;
}

Elements GroupModel::live(const std::vector<Elements>& sizes) const {
    std::vector<Elements> live(bodies_.size());
    for (size_t n = bodies_.size(); n-- > 0;) {
        for (const size_t child : bodies_[n].children) live[n] = std::max(live[n], live[child]);
        for (const size_t b : bodies_[n].stored) live[n] += sizes[b];
    }
    return live.front();
}

// ------------------------------------------------------------------------------------------------------------------ counts

GroupCounts GroupModel::counts(const AxisTable& table, const GroupSchedule& group) const {
    std::vector<Elements> sizes;
    for (size_t b = 0; b <= output(); ++b) sizes.push_back(size(table, group, b));
    GroupCounts counts;
    for (size_t k = 0; k < problems_->size(); ++k) {
        counts.layers.push_back(
            {group.nests[k].layer, macs(table, k), brought(table, 2 * k + 1), sizes[2 * k + 1], sizes[2 * k + 2]});
    }
    counts.inputs.push_back({problems_->front().inputs.front().name, brought(table, 0), sizes[0]});
    const int64_t visits = output_visits(group);
    counts.output_writes = problems_->back().output_elements() * visits;
    counts.output_reads = problems_->back().output_elements() * (visits - 1);
    for (const Elements s : sizes) counts.sum_total += s;
    counts.live_total = live(sizes);
    return counts;
}

GroupModel::Totals GroupModel::totals(const AxisTable& table, const GroupSchedule& group) const {
    Totals totals;
    std::vector<Elements> sizes;
    for (size_t b = 0; b <= output(); ++b) sizes.push_back(size(table, group, b));
    totals.accesses = brought(table, 0) + problems_->back().output_elements() * (2 * output_visits(group) - 1);
    for (size_t k = 0; k < problems_->size(); ++k) {
        totals.accesses += brought(table, 2 * k + 1);
        totals.macs += macs(table, k);
    }
    totals.live_total = live(sizes);
    return totals;
}

}  // namespace laminate::two_level
