#include "scheduler/counts/two_level/group_model.h"

#include <algorithm>

namespace laminate::two_level {

void AxisTable::set(size_t axis, const AxisCounts& counts) {
    for (size_t b = 0; b < counts.buffers.size(); ++b) buffers[axis][b] = &counts.buffers[b];
    sink_taps[axis] = counts.sink_taps;
}

GroupModel::GroupModel(const std::vector<LayerProblem>& problems, const GroupSchedule& group)
    : problems_(&problems), tensors_(group_tensors(problems)) {
    find_arrays(group);
    find_axes();
    for (Array& array : arrays_) {
        for (size_t a = 0; a < axes_.size(); ++a) {
            if (is_indexed(array, axes_[a])) array.indexing_axes.push_back(a);
        }
    }
    for (const Axis& axis : axes_) {
        std::vector<AxisArray> on_axis;
        for (const Array& array : arrays_) {
            AxisArray result{array.is_weights,
                             array.producer,
                             {},
                             0,
                             {axis_level(axis, group, array.placement.store),
                              axis_level(axis, group, array.placement.compute)}};
            for (const TensorReader& reader : array.readers) {
                const auto nest = static_cast<size_t>(reader.nest);
                result.readers.push_back({reader.nest, 0, 1, false});
                if (array.is_weights) continue;
                const LayerInput& input =
                    problems[nest].inputs[static_cast<size_t>(reader.operand)];
                result.readers.back().is_repeated =
                    axis.is_channels ? input.is_plane : input.is_pixel;
                if (axis.roles[nest] != Role::grouped) continue;
                result.readers.back().first_output = input.first_output_channel;
                result.readers.back().channels = input.channels;
            }
            if (array.is_shared && axis.is_channels) {
                const bool is_its_own =
                    array.producer >= 0 && array.producer == axis.shared_output_of;
                result.whole =
                    is_its_own ? problems[static_cast<size_t>(array.producer)][Dim::z] : 1;
            }
            on_axis.push_back(std::move(result));
        }
        axis_arrays_.push_back(std::move(on_axis));
    }
    find_loops_between(group);
    find_bodies(group, Level{});
}

void GroupModel::find_arrays(const GroupSchedule& group) {
    for (const GroupTensor& t : tensors_) {
        Array array{placement_of(group, t), t.readers, t.producer, false, t.is_shared(), 1, {}};
        const TensorReader& first = t.readers.front();
        if (t.is_external()) {
            ++external_count_;
            if (t.is_shared())
                array.elements = (*problems_)[static_cast<size_t>(first.nest)]
                                     .inputs[static_cast<size_t>(first.operand)]
                                     .channels;
        }
        arrays_.push_back(std::move(array));
    }
    for (size_t k = 0; k < problems_->size(); ++k) {
        const LayerProblem& p = (*problems_)[k];
        weights_.push_back(p.has_weights() ? std::optional(arrays_.size()) : std::nullopt);
        if (!p.has_weights()) continue;
        arrays_.push_back({*group.nests[k].w,
                           {{static_cast<int>(k), 0}},
                           -1,
                           true,
                           false,
                           p.y().kernel * p.x().kernel,
                           {}});
    }
}

void GroupModel::find_axes() {
    const size_t nests = problems_->size();
    for (const Dim d : {Dim::y, Dim::x}) {
        axes_.push_back(
            {std::vector<std::optional<Dim>>(nests, d), std::vector<Role>(nests, Role::spatial)});
    }
    // Axes of channels start at z of the sink, at z of every nest whose output is shared, and at i
    // of every nest. Tensors with one reader form a tree, so no nest is met twice on the way up.
    const auto start = [&](size_t nest, Dim d) {
        Axis axis{std::vector<std::optional<Dim>>(nests), std::vector<Role>(nests, Role::none),
                  true, -1};
        add_channels(axis, nest, d);
        axes_.push_back(std::move(axis));
    };
    start(nests - 1, Dim::z);
    for (size_t k = 0; k < nests; ++k) start(k, Dim::i);
    for (const GroupTensor& tensor : tensors_) {
        if (tensor.is_external() || !tensor.is_shared()) continue;
        start(static_cast<size_t>(tensor.producer), Dim::z);
        axes_.back().shared_output_of = tensor.producer;
    }
}

/// The i of an ungrouped nest is the z of its producers. A grouped nest passes its own z on, and
/// its i indexes only its weights.
void GroupModel::add_channels(Axis& axis, size_t nest, Dim d) const {
    const bool is_grouped = (*problems_)[nest].is_grouped();
    axis.dims[nest] = d;
    if (d == Dim::i)
        axis.roles[nest] = is_grouped ? Role::within_group : Role::inputs;
    else
        axis.roles[nest] = is_grouped ? Role::grouped : Role::outputs;
    if (axis.roles[nest] != Role::inputs && axis.roles[nest] != Role::grouped) return;
    for (const GroupTensor& tensor : tensors_) {
        const bool is_read_here_alone =
            !tensor.is_shared() && tensor.readers.front().nest == static_cast<int>(nest);
        if (is_read_here_alone && !tensor.is_external())
            add_channels(axis, static_cast<size_t>(tensor.producer), Dim::z);
    }
}

/// Whether the array has more than one coordinate along the axis.
bool GroupModel::is_indexed(const Array& array, const Axis& axis) const {
    const Role role = axis.roles[static_cast<size_t>(array.readers.front().nest)];
    if (array.is_weights) return role != Role::spatial && role != Role::none;
    if (!axis.is_channels) return true;
    if (array.is_shared) return array.producer >= 0 && array.producer == axis.shared_output_of;
    return role == Role::grouped || role == Role::inputs;
}

AxisLevel GroupModel::axis_level(const Axis& axis, const GroupSchedule& group, Level level) const {
    if (level.is_root()) return {group.sink(), 0};
    AxisLevel result{level.nest, 0};
    for (int l = 0; l <= level.loop; ++l) {
        if (axis.has(level.nest, group.loop({level.nest, l}).dim)) ++result.depth;
    }
    return result;
}

size_t GroupModel::axis_of(size_t nest, Dim d) const {
    size_t a = 0;
    // Every loop belongs to an axis (find_axes).
    while (!axes_[a].has(static_cast<int>(nest), d)) ++a;
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
                if (loop.dim == *d) n.steps.push_back(group.nests[k].step(loop));
            }
            if (n.role == Role::spatial) n.window = *d == Dim::y ? p.y() : p.x();
            n.group_outputs = p[Dim::z] / p.groups;
            n.group_inputs = p[Dim::i];
        }
        problem.nests.push_back(std::move(n));
    }
    problem.arrays = axis_arrays_[axis];
    return problem;
}

AxisTable GroupModel::empty_table() const {
    return {std::vector<std::vector<const AxisBuffer*>>(
                axes_.size(), std::vector<const AxisBuffer*>(arrays_.size(), nullptr)),
            std::vector<int64_t>(axes_.size(), 0)};
}

// ---- traffic

Elements GroupModel::brought(const AxisTable& table, size_t array) const {
    // Test for zero first: a product that is zero must not overflow on the way.
    for (const auto& axis : table.buffers) {
        if (axis[array]->brought == 0) return Elements{};
    }
    Elements product(arrays_[array].elements);
    for (const auto& axis : table.buffers) product = product * axis[array]->brought;
    return product;
}

Macs GroupModel::work(const AxisTable& table, size_t nest) const {
    const bool is_sink = nest + 1 == problems_->size();
    if (!is_sink && brought(table, output_of(nest)) == Elements{}) return Macs{};
    Macs product((*problems_)[nest][Dim::i]);
    for (size_t a = 0; a < axes_.size(); ++a)
        product =
            product * (is_sink ? table.sink_taps[a] : table.buffers[a][output_of(nest)]->taps);
    return product;
}

Macs GroupModel::work(const AxisTable& table) const {
    Macs sum;
    for (size_t k = 0; k < problems_->size(); ++k) sum += work(table, k);
    return sum;
}

Macs GroupModel::macs(const AxisTable& table, size_t nest) const {
    return (*problems_)[nest].has_weights() ? work(table, nest) : Macs{};
}

int64_t GroupModel::output_visits(const GroupSchedule& group) const {
    const Nest& nest = group.nests.back();
    const int64_t extent = problems_->back()[Dim::i];
    const int level = nest.y.store.is_root() ? -1 : nest.y.store.loop;
    if (level >= nest.find(Loop{Dim::i, Band::inner})) return extent;
    return level >= nest.find(Loop{Dim::i, Band::outer}) ? ceil_div(extent, nest[Dim::i]) : 1;
}

// ---- footprint

int64_t GroupModel::output_extent(const GroupSchedule& group, Dim d) const {
    const Nest& nest = group.nests.back();
    int64_t extent = problems_->back()[d];
    for (int l = 0; !nest.y.store.is_root() && l <= nest.y.store.loop; ++l) {
        const Loop loop = group.loop({group.sink(), l});
        if (loop.dim == d) extent = std::min(extent, nest.step(loop));
    }
    return extent;
}

void GroupModel::find_loops_between(const GroupSchedule& group) {
    for (const Array& array : arrays_) {
        const std::vector<size_t>& indexing = array.indexing_axes;
        std::vector<LoopBetween> loops;
        std::vector<size_t> bodies(
            axes_.size(),
            // By axis: bodies inside the store level so far. Each loop and each call opens one.
            0);
        // Down to the compute level, all readers have the same path.
        const std::vector<Level> levels = path(group, array.readers.front().nest);
        const auto store = std::find(levels.begin(), levels.end(), array.placement.store);
        const auto compute = std::find(levels.begin(), levels.end(), array.placement.compute);
        for (auto level = store + 1; level <= compute; ++level) {
            const Level before = *(level - 1);
            const bool is_call =
                level->nest != before.nest && !(before.is_root() && level->nest == group.sink());
            const Dim d = group.loop(*level).dim;
            for (size_t a = 0; a < axes_.size(); ++a) {
                if (is_call) ++bodies[a];
                if (!axes_[a].has(level->nest, d)) continue;
                loops.push_back({a, ++bodies[a],
                                 std::find(indexing.begin(), indexing.end(), a) != indexing.end()});
            }
        }
        loops_between_.push_back(std::move(loops));
    }
}

/// The fold rule holds for each lifetime, and lifetimes combine freely over axes, so the extents
/// are maxima over all combinations of different lifetimes.
Elements GroupModel::size(const AxisTable& table, size_t array) const {
    if (brought(table, array) == Elements{}) return Elements{};
    std::vector<int64_t> extents(axes_.size(), 1);
    std::vector<size_t> lifetimes(axes_.size(), 0);
    for (;;) {
        fold(table, array, lifetimes, extents);
        size_t a = 0;
        while (a < axes_.size() && ++lifetimes[a] == table.buffers[a][array]->lifetimes.size())
            lifetimes[a++] = 0;
        if (a == axes_.size()) break;
    }
    Elements product(arrays_[array].elements);
    for (const size_t a : arrays_[array].indexing_axes) product = product * extents[a];
    return product;
}

std::vector<Elements> GroupModel::sizes(const AxisTable& table, const GroupSchedule& group) const {
    std::vector<Elements> sizes;
    for (size_t b = 0; b < arrays_.size(); ++b) sizes.push_back(size(table, b));
    sizes.emplace_back(1);
    for (const Dim d : {Dim::z, Dim::y, Dim::x})
        sizes.back() = sizes.back() * output_extent(group, d);
    return sizes;
}

/// Walks the loops inwards for one lifetime per axis, and raises `extents` to the extents found.
void GroupModel::fold(const AxisTable& table, size_t array, const std::vector<size_t>& lifetimes,
                      std::vector<int64_t>& extents) const {
    const auto lifetime = [&](size_t a) -> const AxisLifetime& {
        return table.buffers[a][array]->lifetimes[lifetimes[a]];
    };
    std::vector<int64_t> found(axes_.size(), 1);
    for (const size_t a : arrays_[array].indexing_axes) found[a] = lifetime(a).front().held;
    // The innermost of the adjacent loops of one dimension that were just walked.
    const LoopBetween* run = nullptr;
    const auto close_run = [&] {  // returns false if nothing inside can fold
        if (run == nullptr) return true;
        const AxisBody& body = lifetime(run->axis)[run->body];
        found[run->axis] = body.held;
        return !body.overlaps;
    };
    bool stopped = false;
    for (const LoopBetween& loop : loops_between_[array]) {
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
    for (const size_t a : arrays_[array].indexing_axes) extents[a] = std::max(extents[a], found[a]);
}

size_t GroupModel::find_bodies(const GroupSchedule& group, Level level) {
    const size_t index = bodies_.size();
    bodies_.emplace_back();
    for (size_t b = 0; b < arrays_.size(); ++b) {
        if (arrays_[b].placement.store == level) bodies_[index].stored.push_back(b);
    }
    if (group.nests.back().y.store == level) bodies_[index].stored.push_back(arrays_.size());
    const auto loop_inside = [&](int nest, int loop) {
        if (loop >= static_cast<int>(group.nest(nest).loops.size())) return;
        const size_t child = find_bodies(group, Level{nest, loop});
        bodies_[index].children.push_back(child);
    };
    if (level.is_root())
        loop_inside(group.sink(), 0);
    else
        loop_inside(level.nest, level.loop + 1);
    for (int k = 0; k < group.sink(); ++k) {
        if (group.nest(k).y.compute == level) loop_inside(k, 0);
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

// ---- counts

GroupCounts GroupModel::counts(const AxisTable& table, const GroupSchedule& group) const {
    const std::vector<Elements> sizes = this->sizes(table, group);
    GroupCounts counts;
    for (size_t k = 0; k < problems_->size(); ++k) {
        const std::optional<size_t> w = weights_[k];
        counts.layers.push_back({group.nests[k].layer, macs(table, k),
                                 w ? brought(table, *w) : Elements{}, w ? sizes[*w] : Elements{},
                                 k + 1 < problems_->size() ? sizes[output_of(k)] : sizes.back()});
    }
    for (size_t b = 0; b < external_count_; ++b)
        counts.inputs.push_back({tensors_[b].name, brought(table, b), sizes[b]});
    const int64_t visits = output_visits(group);
    counts.output_writes = problems_->back().output_elements() * visits;
    counts.output_reads = problems_->back().output_elements() * (visits - 1);
    for (const Elements s : sizes) counts.sum_total += s;
    counts.live_total = live(sizes);
    return counts;
}

GroupModel::Totals GroupModel::totals(const AxisTable& table, const GroupSchedule& group) const {
    Totals totals;
    totals.accesses = problems_->back().output_elements() * (2 * output_visits(group) - 1);
    for (size_t b = 0; b < arrays_.size(); ++b) {
        if (arrays_[b].producer < 0) totals.accesses += brought(table, b);
    }
    for (size_t k = 0; k < problems_->size(); ++k) totals.macs += macs(table, k);
    const std::vector<Elements> held = sizes(table, group);
    totals.live_total = live(held);
    for (const Elements size : held) totals.sum_total += size;
    return totals;
}

}  // namespace laminate::two_level
