#include "papers/dag_groups/growing_group.h"

#include <algorithm>

#include "base/units.h"

namespace laminate::dag_groups {

/// Of two maps of which one is read for the other only one streams.
inline void GrowingGroup::share_out(size_t a, size_t b, int64_t& least_entries, int64_t& volume) {
    MapState& one = state_[a];
    MapState& other = state_[b];
    const int64_t lost = std::min(saving(a, one.extents.extent) - one.packed,  //
                                  saving(b, other.extents.extent) - other.packed);
    one.packed += lost;
    other.packed += lost;
    least_entries += lost;
    const int64_t covered = std::min(saving(a, one.extents.covered) - one.packed_covered,
                                     saving(b, other.extents.covered) - other.packed_covered);
    one.packed_covered += covered;
    other.packed_covered += covered;
    volume += covered;
}

/// Extents of a map, at least these; its streaming entries are counted.
inline void GrowingGroup::enlarge(size_t map, const Extents& extents, int64_t& least_entries,
                                  int64_t& volume) {
    const int64_t lanes = rows_.map(map).lanes;
    const auto grow_to = [](Extent& to, const Extent& least) {
        const int64_t before = area(to);
        for (const MapAxis axis : map_axes) to[axis] = std::max(to[axis], least[axis]);
        return area(to) - before;
    };
    least_entries += lanes * grow_to(state_[map].extents.extent, extents.extent);
    volume += lanes * grow_to(state_[map].extents.covered, extents.covered);
}

inline GrowingGroup::Extents GrowingGroup::of_inputs(const GraphRows::InputRow& input,
                                                     const Extents& outputs) const {
    const Extent& size = rows_.map(static_cast<size_t>(input.map)).size;
    Extents needed;
    for (const MapAxis axis : map_axes) {
        needed.extent[axis] = input.reach[axis].inputs(outputs.extent[axis]);
        if (rules_.clips_maps) needed.extent[axis] = std::min(needed.extent[axis], size[axis]);
        needed.covered[axis] =
            std::min(size[axis], input.reach[axis].covered(outputs.covered[axis]));
    }
    return needed;
}

GrowingGroup::GrowingGroup(const OperatorGraph& graph, const GroupMachine& machine,
                           const GroupRules& rules, const std::vector<bool>& part)
    : machine_(machine),
      rules_(rules),
      rows_(graph, machine.lanes_channels),
      state_(graph.maps.size()),
      sums_(graph.operators.size() + 1) {
    before_.resize(graph.operators.size() + rows_.input_count());
    for (const Map& map : graph.maps) {
        charged_.push_back(map.elements());
        sink_.push_back(
            {{floor_of(MapAxis::x, map.width), floor_of(MapAxis::y, map.height)}, map.size()});
    }
    if (part.empty()) return;
    std::vector<Extents> least = sink_;
    for (int op = graph.size() - 1; op >= 0; --op) {
        for (const GraphRows::InputRow& input : rows_.inputs(op)) {
            const Extents needed = of_inputs(input, least[static_cast<size_t>(op)]);
            Extents& read = least[static_cast<size_t>(input.map)];
            for (const MapAxis axis : map_axes) {
                read.extent[axis] = std::min(read.extent[axis], needed.extent[axis]);
                read.covered[axis] = std::min(read.covered[axis], needed.covered[axis]);
            }
        }
    }
    const auto is_in_part = [&](int op) { return part[static_cast<size_t>(op)]; };
    for (size_t m = 0; m < graph.maps.size(); ++m) {
        const std::vector<int>& readers = graph.maps[m].readers;
        const bool has_producer = m < graph.operators.size();
        const bool read_inside_alone = std::all_of(readers.begin(), readers.end(), is_in_part);
        if (!read_inside_alone || (has_producer && !part[m])) charged_[m] = 0;
        if (!read_inside_alone) sink_[m] = least[m];
    }
}

inline void GrowingGroup::save(const MapState& state) {
    before_[saved_++] = {state.extents, state.packed, state.packed_covered};
}
inline void GrowingGroup::restore(MapState& state) {
    const Before& before = before_[--saved_];
    state.extents = before.extents;
    state.packed = before.packed;
    state.packed_covered = before.packed_covered;
}

void GrowingGroup::push(int op) {
    const auto n = static_cast<size_t>(op);
    const Sums& before = sums();
    int64_t inputs = before.inputs;
    int64_t outputs = before.outputs;
    int64_t least_entries = before.least_entries;
    int64_t volume = before.volume;
    MapState& own = state_[n];
    if (leaves(op)) outputs += charged_[n];
    own.is_inside = true;
    if (own.readers_inside > 0) {
        inputs -= charged_[n];
        // Extents only grow with more readers, and its own are final.
        save(own);
    } else {
        enlarge(n, sink_[n], least_entries, volume);
        sinks_.push_back(op);
    }
    for (const GraphRows::InputRow& input : rows_.inputs(op)) {
        const auto map = static_cast<size_t>(input.map);
        MapState& read = state_[map];
        if (read.readers_inside++ == 0) {
            inputs += charged_[map];
        } else {
            save(read);
        }
        enlarge(map, of_inputs(input, own.extents), least_entries, volume);
        share_out(map, n, least_entries, volume);
    }
    const int64_t weights = before.weights + rows_.weights(op);
    operators_.push_back(op);
    sums_[operators_.size()] = {inputs, outputs, weights, least_entries, volume};
}

void GrowingGroup::pop() {
    const int op = operators_.back();
    operators_.pop_back();
    const auto inputs = rows_.inputs(op);
    for (size_t i = inputs.size(); i-- > 0;) {
        MapState& read = state_[static_cast<size_t>(inputs[i].map)];
        if (--read.readers_inside == 0) {
            read = {};
        } else {
            restore(read);
        }
    }
    MapState& own = state_[static_cast<size_t>(op)];
    if (own.readers_inside > 0) {
        own.is_inside = false;
        restore(own);
    } else {
        own = {};
        sinks_.pop_back();
    }
}

int64_t GrowingGroup::least_passes() const {
    const int64_t room =
        rules_.weight_buffer_entries.value_or(rules_.buffer_entries - least_entries());
    if (rules_.weights_may_stay && weights() <= room) return 1;
    const int64_t held = (rules_.batch_is_tile ? rules_.images : 1) * sums().volume;
    if (held <= rules_.buffer_entries) return 1;
    return ceil_div(held, rules_.buffer_entries);
}

bool GrowingGroup::has_lonely_operator() const {
    if (sinks_.size() == 1) return false;  // which all others feed, if there are any
    return std::any_of(sinks_.begin(), sinks_.end(), [&](int op) {
        for (const GraphRows::InputRow& input : rows_.inputs(op))
            if (readers_inside(input.map) > 1 || contains(input.map)) return false;
        return true;
    });
}

int64_t GrowingGroup::floor_of(MapAxis axis, int64_t size) const {
    if (axis == MapAxis::x && !rules_.searches_width) return size;
    return std::min(size, axis == MapAxis::y ? machine_.lanes_height : machine_.lanes_width);
}

}  // namespace laminate::dag_groups
