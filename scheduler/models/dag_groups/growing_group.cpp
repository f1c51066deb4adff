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

GrowingGroup::GrowingGroup(const OperatorGraph& graph, const GroupMachine& machine, const GroupRules& rules,
                           const std::vector<bool>& part)
    : graph_(graph),
      machine_(machine),
      rules_(rules),
      is_inside_(graph.operators.size(), false),
      readers_inside_(graph.maps.size(), 0),
      extent_(graph.maps.size(), Extent{0, 0}),
      covered_(graph.maps.size(), Extent{0, 0}),
      is_matched_(graph.maps.size(), false) {
    for (const Map& map : graph.maps) charged_.push_back(map.elements());
    for (const Map& map : graph.maps) {
        sink_extent_.push_back({floor_of(0, map.height), floor_of(1, map.width)});
        sink_covered_.push_back({map.height, map.width});
    }
    if (part.empty()) return;
    std::vector<Extent> least_extent = sink_extent_;
    std::vector<Extent> least_covered = sink_covered_;
    for (int op = graph.size() - 1; op >= 0; --op) {
        for (const OperatorInput& input : graph.operators[static_cast<size_t>(op)].inputs) {
            const auto read = static_cast<size_t>(input.map);
            const Extent extent = inputs_of_least_tile(input, least_extent[static_cast<size_t>(op)]);
            const Extent covered = inputs_covered(input, least_covered[static_cast<size_t>(op)]);
            for (size_t axis = 0; axis < 2; ++axis) {
                least_extent[read][axis] = std::min(least_extent[read][axis], extent[axis]);
                least_covered[read][axis] = std::min(least_covered[read][axis], covered[axis]);
            }
        }
    }
    const auto is_in_part = [&](int op) { return part[static_cast<size_t>(op)]; };
    for (size_t m = 0; m < graph.maps.size(); ++m) {
        const std::vector<int>& readers = graph.maps[m].readers;
        const bool has_producer = m < graph.operators.size();
        const bool read_inside_alone = std::all_of(readers.begin(), readers.end(), is_in_part);
        if (!read_inside_alone || (has_producer && !part[m])) charged_[m] = 0;
        if (read_inside_alone) continue;
        sink_extent_[m] = least_extent[m];
        sink_covered_[m] = least_covered[m];
    }
}

GrowingGroup::Undo GrowingGroup::push(int op) {
    const auto n = static_cast<size_t>(op);
    const Operator& o = graph_.operators[n];
    Undo undo{inputs_, outputs_, weights_, least_entries_, volume_, enlarged_.size()};
    const bool is_read_inside = readers_inside_[n] > 0;
    if (leaves(op)) outputs_ += charged_[n];
    if (is_read_inside) inputs_ -= charged_[n];
    for (const OperatorInput& input : o.inputs) {
        if (readers_inside_[static_cast<size_t>(input.map)]++ == 0) inputs_ += charged_[static_cast<size_t>(input.map)];
    }
    weights_ += o.weights;
    operators_.push_back(op);
    is_inside_[n] = true;
    // Extents only grow with more readers, and its own are final.
    if (!is_read_inside) enlarge(op, sink_extent_[n], sink_covered_[n]);
    for (const OperatorInput& input : o.inputs)
        enlarge(input.map, inputs_of_least_tile(input, extent_[n]), inputs_covered(input, covered_[n]));
    match(op, undo);
    return undo;
}

void GrowingGroup::pop(const Undo& undo) {
    const int op = operators_.back();
    const auto n = static_cast<size_t>(op);
    while (enlarged_.size() > undo.enlarged) {
        const Enlarged& last = enlarged_.back();
        extent_[static_cast<size_t>(last.map)] = last.extent;
        covered_[static_cast<size_t>(last.map)] = last.covered;
        enlarged_.pop_back();
    }
    if (undo.matched >= 0) is_matched_[static_cast<size_t>(undo.matched)] = is_matched_[n] = false;
    for (const OperatorInput& input : graph_.operators[n].inputs) --readers_inside_[static_cast<size_t>(input.map)];
    inputs_ = undo.inputs;
    outputs_ = undo.outputs;
    weights_ = undo.weights;
    least_entries_ = undo.least_entries;
    volume_ = undo.volume;
    is_inside_[n] = false;
    operators_.pop_back();
}

int64_t GrowingGroup::least_passes() const {
    const int64_t room = rules_.weight_buffer_entries.value_or(rules_.buffer_entries - least_entries_);
    if (rules_.weights_may_stay && weights_ <= room) return 1;
    return std::max<int64_t>(1, ceil_div((rules_.batch_is_tile ? rules_.images : 1) * volume_, rules_.buffer_entries));
}

/// Of two maps of which one is read for the other only one streams: the smaller saving is lost.
void GrowingGroup::match(int op, Undo& undo) {
    const auto n = static_cast<size_t>(op);
    if (is_matched_[n]) return;
    int partner = -1;
    for (const OperatorInput& input : graph_.operators[n].inputs) {
        if (is_matched_[static_cast<size_t>(input.map)]) continue;
        if (partner < 0 || saving(input.map, extent_) > saving(partner, extent_)) partner = input.map;
    }
    if (partner < 0) return;
    least_entries_ += std::min(saving(partner, extent_), saving(op, extent_));
    volume_ += std::min(saving(partner, covered_), saving(op, covered_));
    is_matched_[static_cast<size_t>(partner)] = is_matched_[n] = true;
    undo.matched = partner;
}

/// Extents of a map, at least these; its streaming entries are counted.
void GrowingGroup::enlarge(int map, const Extent& extent, const Extent& covered) {
    const auto m = static_cast<size_t>(map);
    enlarged_.push_back({map, extent_[m], covered_[m]});
    const int64_t lanes = streaming_lanes(graph_.maps[m]);
    const auto grow_to = [](Extent& to, const Extent& least) {
        const int64_t before = to[0] * to[1];
        for (size_t axis = 0; axis < 2; ++axis) to[axis] = std::max(to[axis], least[axis]);
        return to[0] * to[1] - before;
    };
    least_entries_ += lanes * grow_to(extent_[m], extent);
    volume_ += lanes * grow_to(covered_[m], covered);
}

int64_t GrowingGroup::floor_of(size_t axis, int64_t size) const {
    if (axis == 1 && !rules_.searches_width) return size;
    return std::min(size, axis == 0 ? machine_.lanes_height : machine_.lanes_width);
}

GrowingGroup::Extent GrowingGroup::inputs_of_least_tile(const OperatorInput& input, const Extent& outputs) const {
    const Map& read = graph_.maps[static_cast<size_t>(input.map)];
    const Extent size{read.height, read.width};
    Extent extent{};
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t needed = input.reach[axis].inputs(outputs[axis]);
        extent[axis] = rules_.clips_maps ? std::min(needed, size[axis]) : needed;
    }
    return extent;
}

GrowingGroup::Extent GrowingGroup::inputs_covered(const OperatorInput& input, const Extent& outputs) const {
    const Map& read = graph_.maps[static_cast<size_t>(input.map)];
    return {std::min(read.height, covered_by(input.reach[0], outputs[0])),
            std::min(read.width, covered_by(input.reach[1], outputs[1]))};
}

/// What streaming saves of a map of these extents.
int64_t GrowingGroup::saving(int id, const std::vector<Extent>& extents) const {
    const Map& map = graph_.maps[static_cast<size_t>(id)];
    const Extent& extent = extents[static_cast<size_t>(id)];
    return (map.channels - streaming_lanes(map)) * extent[0] * extent[1];
}

}  // namespace laminate::dag_groups
