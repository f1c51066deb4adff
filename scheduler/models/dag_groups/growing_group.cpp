#include "scheduler/models/dag_groups/growing_group.h"

#include <algorithm>

#include "base/units.h"

namespace laminate::dag_groups {

namespace {

/// Rows of an input that n tiles hold together, when they hold `outputs` rows of what is computed from it. With K >= S each of n
/// tiles needs r S + K - S, together outputs S + K - S or more; else r S + K - S >= r K.
int64_t covered_by(const Reach& reach, int64_t outputs) {
    if (reach.upscale > 1) return ceil_div(outputs, reach.upscale);
    return reach.kernel >= reach.stride ? reach.inputs(outputs) : outputs * reach.kernel;
}

}  // namespace

/// Of two maps of which one is read for the other only one streams.
inline void GrowingGroup::share_out(size_t a, size_t b) {
    MapState& one = state_[a];
    MapState& other = state_[b];
    const int64_t lost = std::min(saving(a, one.extents.extent) - one.packed,  //
                                  saving(b, other.extents.extent) - other.packed);
    one.packed += lost;
    other.packed += lost;
    least_entries_ += lost;
    const int64_t covered = std::min(saving(a, one.extents.covered) - one.packed_covered,
                                     saving(b, other.extents.covered) - other.packed_covered);
    one.packed_covered += covered;
    other.packed_covered += covered;
    volume_ += covered;
}

/// Extents of a map, at least these; its streaming entries are counted.
inline void GrowingGroup::enlarge(size_t map, const Extents& extents) {
    const int64_t lanes = rows_.map(map).lanes;
    const auto grow_to = [](Extent& to, const Extent& least) {
        const int64_t before = to[0] * to[1];
        for (size_t axis = 0; axis < 2; ++axis) to[axis] = std::max(to[axis], least[axis]);
        return to[0] * to[1] - before;
    };
    least_entries_ += lanes * grow_to(state_[map].extents.extent, extents.extent);
    volume_ += lanes * grow_to(state_[map].extents.covered, extents.covered);
}

inline GrowingGroup::Extents GrowingGroup::of_inputs(const GraphRows::InputRow& input, const Extents& outputs) const {
    const Extent& size = rows_.map(static_cast<size_t>(input.map)).size;
    Extents needed;
    for (size_t axis = 0; axis < 2; ++axis) {
        needed.extent[axis] = input.reach[axis].inputs(outputs.extent[axis]);
        if (rules_.clips_maps) needed.extent[axis] = std::min(needed.extent[axis], size[axis]);
        needed.covered[axis] = std::min(size[axis], covered_by(input.reach[axis], outputs.covered[axis]));
    }
    return needed;
}

GrowingGroup::GrowingGroup(const OperatorGraph& graph, const GroupMachine& machine, const GroupRules& rules,
                           const std::vector<bool>& part)
    : machine_(machine), rules_(rules), rows_(graph, machine.lanes_channels), state_(graph.maps.size()) {
    for (const Map& map : graph.maps) {
        charged_.push_back(map.elements());
        sink_.push_back({{floor_of(0, map.height), floor_of(1, map.width)}, {map.height, map.width}});
    }
    if (part.empty()) return;
    std::vector<Extents> least = sink_;
    for (int op = graph.size() - 1; op >= 0; --op) {
        for (const GraphRows::InputRow& input : rows_.inputs(op)) {
            const Extents needed = of_inputs(input, least[static_cast<size_t>(op)]);
            Extents& read = least[static_cast<size_t>(input.map)];
            for (size_t axis = 0; axis < 2; ++axis) {
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

GrowingGroup::Undo GrowingGroup::push(int op) {
    const auto n = static_cast<size_t>(op);
    const Undo undo{inputs_, outputs_, weights_, least_entries_, volume_, sinks_, changed_.size()};
    const bool is_read_inside = state_[n].readers_inside > 0;
    if (leaves(op)) outputs_ += charged_[n];
    if (is_read_inside) inputs_ -= charged_[n];
    weights_ += rows_.weights(op);
    operators_.push_back(op);
    remember(n);
    state_[n].is_inside = true;
    // Extents only grow with more readers, and its own are final.
    if (!is_read_inside) {
        enlarge(n, sink_[n]);
        ++sinks_;
    }
    for (const GraphRows::InputRow& input : rows_.inputs(op)) {
        const auto read = static_cast<size_t>(input.map);
        remember(read);
        if (state_[read].readers_inside++ == 0) inputs_ += charged_[read];
        enlarge(read, of_inputs(input, state_[n].extents));
        share_out(read, n);
    }
    return undo;
}

void GrowingGroup::pop(const Undo& undo) {
    while (changed_.size() > undo.changed) {
        state_[changed_.back().map] = changed_.back().before;
        changed_.pop_back();
    }
    inputs_ = undo.inputs;
    outputs_ = undo.outputs;
    weights_ = undo.weights;
    least_entries_ = undo.least_entries;
    volume_ = undo.volume;
    sinks_ = undo.sinks;
    operators_.pop_back();
}

int64_t GrowingGroup::least_passes() const {
    const int64_t room = rules_.weight_buffer_entries.value_or(rules_.buffer_entries - least_entries_);
    if (rules_.weights_may_stay && weights_ <= room) return 1;
    return std::max<int64_t>(1, ceil_div((rules_.batch_is_tile ? rules_.images : 1) * volume_, rules_.buffer_entries));
}

bool GrowingGroup::has_lonely_operator() const {
    if (sinks_ == 1) return false;  // which all others feed, if there are any
    return std::any_of(operators_.begin(), operators_.end(), [&](int op) {
        if (readers_inside(op) > 0) return false;
        const auto inputs = rows_.inputs(op);
        return std::none_of(inputs.begin(), inputs.end(), [&](const GraphRows::InputRow& input) {
            return readers_inside(input.map) > 1 || contains(input.map);
        });
    });
}

int64_t GrowingGroup::floor_of(size_t axis, int64_t size) const {
    if (axis == 1 && !rules_.searches_width) return size;
    return std::min(size, axis == 0 ? machine_.lanes_height : machine_.lanes_width);
}

}  // namespace laminate::dag_groups
