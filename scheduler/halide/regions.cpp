#include "scheduler/halide/regions.h"

#include <functional>
#include <set>

namespace laminate {

namespace {

/// Walks one axis of a buffer through the loops of the path that index it, with every other loop on its first trip:
/// axes are independent, so this visits every interval the axis takes without executing the nest.
class AxisWalk {
public:
    struct Buffer {
        int nest;              ///< the nest that uses it
        Placement placement;
        Dim axis;
        std::function<bool(const Regions<int64_t>&, Level)> indexed_by;
        std::function<Interval<int64_t>(const Regions<int64_t>&, Level)> needed;
    };
    using Visit = std::function<void(const Regions<int64_t>&, size_t path_position)>;

    AxisWalk(const GroupSchedule& group, const std::vector<LayerProblem>& problems, const Buffer& buffer, Visit visit)
        : group_(group), problems_(problems), buffer_(buffer), visit_(std::move(visit)), regions_(group, problems) {
        levels_ = path(group, buffer.nest);
        run(0);
    }

private:
    void run(size_t position) {
        visit_(regions_, position);
        if (levels_[position] == buffer_.placement.compute) return;
        const Level here = levels_[position];
        const Level next = levels_[position + 1];
        if (next.nest != here.nest && next.nest != group_.sink()) {
            // Nest next.nest hangs here: its call is the new part of its output.
            for (const Dim d : tensor_axes) {
                const Interval<int64_t> call = regions_.new_input(next.nest + 1, d, here);
                if (call.begin >= call.end && d == axis_in(next.nest)) return;
                regions_.set_call(next.nest, d, call);
            }
        }
        loop(position + 1);
    }

    /// The output axis of a nest on the path that corresponds to the buffer's axis.
    [[nodiscard]] Dim axis_in(int /*nest*/) const { return buffer_.axis == Dim::i ? Dim::z : buffer_.axis; }

    void loop(size_t position) {
        const Level level = levels_[position];
        const Nest& nest = group_.nests[static_cast<size_t>(level.nest)];
        const Loop l = nest.loops[static_cast<size_t>(level.loop)];
        const auto d = static_cast<size_t>(l.dim);
        const Interval<int64_t> whole = regions_.covered(level.nest, l.dim, level.loop - 1);
        const int64_t step = l.band == Band::strip ? nest.strip[d - 1] : l.band == Band::outer ? nest.tile[d] : 1;
        if (!buffer_.indexed_by(regions_, level)) {
            // Another axis: whether it is empty on its first trip says nothing about this one.
            regions_.set_loop(level, 0, {whole.begin, std::max(whole.begin, std::min(whole.begin + step, whole.end))});
            return run(position);
        }
        for (int64_t trip = 0, begin = whole.begin; begin < whole.end; ++trip, begin += step) {
            regions_.set_loop(level, trip, {begin, std::min(begin + step, whole.end)});
            run(position);
        }
    }

    const GroupSchedule& group_;
    const std::vector<LayerProblem>& problems_;
    const Buffer& buffer_;
    Visit visit_;
    Regions<int64_t> regions_;
    std::vector<Level> levels_;
};

/// What the fold rule asks about one axis in one lifetime, per level of the path.
struct AxisFacts {
    std::vector<int64_t> needed;   ///< longest interval held in a body of that level; at the store level, in the whole lifetime
    std::vector<bool> repeats;     ///< the loop has more than one trip
    std::vector<bool> overlaps;    ///< needs something that an earlier trip of the lifetime needed too
    friend auto operator<=>(const AxisFacts&, const AxisFacts&) = default;
};

/// The different lifetimes that occur along one axis; the ones of all axes combine freely.
std::vector<AxisFacts> axis_facts(const GroupSchedule& group, const std::vector<LayerProblem>& problems, const AxisWalk::Buffer& buffer,
                     const std::function<std::optional<int64_t>(const Regions<int64_t>&, Level)>& present) {
    const std::vector<Level> levels = path(group, buffer.nest);
    const AxisFacts none{std::vector<int64_t>(levels.size(), 0), std::vector<bool>(levels.size(), false),
                         std::vector<bool>(levels.size(), false)};
    AxisFacts facts = none;
    std::set<AxisFacts> lifetimes;
    const auto position_of = [&](Level level) {
        return static_cast<size_t>(std::find(levels.begin(), levels.end(), level) - levels.begin());
    };
    const size_t store = position_of(buffer.placement.store);
    const size_t compute = position_of(buffer.placement.compute);
    Interval<int64_t> lifetime{};
    std::vector<int64_t> trips(levels.size(), 0);
    AxisWalk(group, problems, buffer, [&](const Regions<int64_t>& regions, size_t position) {
        const Level level = levels[position];
        if (position < store) return;
        if (position == store) {
            if (facts.needed[store] > 0) lifetimes.insert(facts);
            facts = none;
            lifetime = {INT64_MAX, 0};
        }
        if (!level.is_root() && regions.trip(level) == 0) trips[position] = 0;
        const Interval<int64_t> need = buffer.needed(regions, level);
        if (need.begin >= need.end) return;
        if (++trips[position] > 1) facts.repeats[position] = true;
        // Recomputation returns to coordinates that came in earlier: they stay until now, and with them all up to the frontier.
        int64_t held_until = need.end;
        for (size_t v = store + 1; v <= position; ++v) {
            const std::optional<int64_t> end = present(regions, levels[v]);
            if (!end || *end <= need.begin) continue;
            facts.overlaps[position] = true;
            held_until = std::max(held_until, *end);
        }
        if (position > store) facts.needed[position] = std::max(facts.needed[position], held_until - need.begin);
        if (position == compute) {
            // What comes in, not what the store level's body spans: a gap below the first new coordinate is not held.
            lifetime = {std::min(lifetime.begin, need.begin), std::max(lifetime.end, need.end)};
            facts.needed[store] = lifetime.end - lifetime.begin;
        }
    });
    if (facts.needed[store] > 0 || lifetimes.empty()) lifetimes.insert(facts);
    return {lifetimes.begin(), lifetimes.end()};
}

/// Whether a buffer that nest k uses is needed in more than one trip of a loop that does not index it: trips in which nest
/// k is not called (its output is already present, or lies in padding) do not count.
bool needed_again(const GroupSchedule& group, const std::vector<LayerProblem>& problems, int k, Level level) {
    const Regions<int64_t> plain(group, problems);
    for (int c = k + 1; c <= level.nest; ++c) {
        const Placement& placement = plain.input_placement(c);
        const std::vector<Level> repeating = plain.lifetime_loops(c, placement.store, placement.compute);
        const bool is_inside = std::find(repeating.begin(), repeating.end(), level) != repeating.end();
        // Only the first trip finds anything of that tensor missing.
        if (is_inside && !plain.indexes_input(c, level)) return false;
    }
    const Dim d = group.nests[static_cast<size_t>(level.nest)].loops[static_cast<size_t>(level.loop)].dim;
    const Dim axis = level.nest != k && d == Dim::i ? Dim::z : d;
    const auto follows = [&](const Regions<int64_t>& regions, Level v) {
        if (v.nest == k) return group.nests[static_cast<size_t>(k)].loops[static_cast<size_t>(v.loop)].dim == axis;
        return v == level || (axis != Dim::i && regions.indexes_input(k + 1, axis, v));
    };
    const AxisWalk::Buffer probe{k, {Level{}, level}, axis, follows, {}};
    const std::vector<Level> levels = path(group, k);
    int64_t trips = 0;
    bool again = false;
    AxisWalk(group, problems, probe, [&](const Regions<int64_t>& regions, size_t position) {
        if (levels[position] != level) return;
        if (regions.trip(level) == 0) trips = 0;
        if (axis != Dim::i && level.nest != k) {
            const Interval<int64_t> part = regions.produced(k, axis, level);
            if (part.begin >= part.end) return;
        }
        if (++trips > 1) again = true;
    });
    return again;
}

/// The fold rule in one lifetime. `facts[a]` belongs to axis a of the buffer; `axes_of(level)` says which axes a loop indexes.
BufferShape fold_lifetime(const GroupSchedule& group, const std::vector<LayerProblem>& problems, int nest, const Placement& placement,
                 const std::vector<AxisFacts>& facts, const std::function<std::vector<size_t>(Level)>& axes_of) {
    const std::vector<Level> levels = path(group, nest);
    const auto position_of = [&](Level level) {
        return static_cast<size_t>(std::find(levels.begin(), levels.end(), level) - levels.begin());
    };
    const size_t store = position_of(placement.store);
    const size_t compute = position_of(placement.compute);
    BufferShape shape;
    for (size_t a = 0; a < facts.size(); ++a) shape.extent[a] = facts[a].needed[store];
    std::optional<size_t> run;  // axis of the current run of loops
    size_t run_end = 0;
    const auto close_run = [&] {  // false: the walk inwards ends here
        if (!run) return true;
        shape.extent[*run] = facts[*run].needed[run_end];
        shape.folds[*run] = true;
        return !facts[*run].overlaps[run_end];
    };
    for (size_t position = store + 1; position <= compute; ++position) {
        const std::vector<size_t> axes = axes_of(levels[position]);
        if (axes.empty()) {
            if (!needed_again(group, problems, nest, levels[position])) continue;
            close_run();
            return shape;
        }
        const size_t axis = axes.front();
        if (!facts[axis].repeats[position]) continue;
        if (run && *run != axis && !close_run()) return shape;
        run = axis;
        run_end = position;
    }
    close_run();
    return shape;
}

/// One size for all lifetimes: the largest extent of each dimension.
BufferShape fold(const GroupSchedule& group, const std::vector<LayerProblem>& problems, int nest, const Placement& placement,
                 const std::vector<std::vector<AxisFacts>>& lifetimes, const std::function<std::vector<size_t>(Level)>& axes_of) {
    BufferShape largest;
    std::vector<AxisFacts> facts(lifetimes.size());
    const std::function<void(size_t)> combine = [&](size_t axis) {
        if (axis == lifetimes.size()) {
            const BufferShape shape = fold_lifetime(group, problems, nest, placement, facts, axes_of);
            for (size_t a = 0; a < 3; ++a) {
                largest.extent[a] = std::max(largest.extent[a], shape.extent[a]);
                largest.folds[a] = largest.folds[a] || shape.folds[a];
            }
            return;
        }
        for (const AxisFacts& one : lifetimes[axis]) {
            facts[axis] = one;
            combine(axis + 1);
        }
    };
    combine(0);
    return largest;
}

}  // namespace

BufferShape input_buffer_shape(const GroupSchedule& group, const std::vector<LayerProblem>& problems, int c) {
    const Placement placement = c == 0 ? group.nests[0].x.front().placement : group.nests[static_cast<size_t>(c) - 1].y;
    std::vector<std::vector<AxisFacts>> facts;
    int64_t columns = 0;
    for (const Dim axis : tensor_axes) {
        const AxisWalk::Buffer buffer{c, placement, axis,
                                      [c, axis](const Regions<int64_t>& r, Level v) { return r.indexes_input(c, axis, v); },
                                      [c, axis](const Regions<int64_t>& r, Level v) { return r.needed_input(c, axis, v); }};
        facts.push_back(axis_facts(group, problems, buffer, [c, axis](const Regions<int64_t>& r, Level v) {
            return r.present_input(c, axis, v);
        }));
        if (axis == Dim::x) {
            const std::vector<Level> levels = path(group, c);
            AxisWalk(group, problems, buffer, [&](const Regions<int64_t>& r, size_t position) {
                if (!(levels[position] == placement.store)) return;
                const Interval<int64_t> need = r.needed_input(c, axis, levels[position], false);
                columns = std::max(columns, need.end - need.begin);
            });
        }
    }
    const Regions<int64_t> regions(group, problems);
    BufferShape shape = fold(group, problems, c, placement, facts, [&](Level v) {
        std::vector<size_t> axes;
        for (size_t a = 0; a < 3; ++a) {
            if (regions.indexes_input(c, tensor_axes[a], v)) axes.push_back(a);
        }
        return axes;
    });
    shape.unclipped_columns = columns;
    return shape;
}

BufferShape weights_buffer_shape(const GroupSchedule& group, const std::vector<LayerProblem>& problems, int k) {
    const Placement placement = *group.nests[static_cast<size_t>(k)].w;
    constexpr std::array<Dim, 2> axes{Dim::z, Dim::i};
    std::vector<std::vector<AxisFacts>> facts;
    for (const Dim axis : axes) {
        const AxisWalk::Buffer buffer{k, placement, axis,
                                      [k, axis](const Regions<int64_t>& r, Level v) { return r.indexes_weights(k, axis, v); },
                                      [k, axis](const Regions<int64_t>& r, Level v) { return r.needed_weights(k, axis, v); }};
        facts.push_back(axis_facts(group, problems, buffer, [k, axis](const Regions<int64_t>& r, Level v) {
            return r.present_weights(k, axis, v);
        }));
    }
    const Regions<int64_t> regions(group, problems);
    BufferShape shape = fold(group, problems, k, placement, facts, [&](Level v) {
        std::vector<size_t> found;
        for (size_t a = 0; a < 2; ++a) {
            if (regions.indexes_weights(k, axes[a], v)) found.push_back(a);
        }
        return found;
    });
    const LayerProblem& p = problems[static_cast<size_t>(k)];
    shape.extent[2] = p.y().kernel * p.x().kernel;
    return shape;
}

BufferShape output_buffer_shape(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const Nest& nest = group.nests.back();
    const LayerProblem& p = problems.back();
    BufferShape shape;
    for (size_t a = 0; a < 3; ++a) {
        const Dim d = tensor_axes[a];
        int64_t extent = p[d];
        for (int l = 0; l <= nest.y.store.loop; ++l) {
            const Loop loop = nest.loops[static_cast<size_t>(l)];
            if (loop.dim != d) continue;
            const int64_t step = loop.band == Band::strip ? nest.strip[static_cast<size_t>(d) - 1]
                                 : loop.band == Band::outer ? nest[d]
                                                            : 1;
            extent = std::min(extent, step);
        }
        shape.extent[a] = extent;
    }
    return shape;
}

}  // namespace laminate
