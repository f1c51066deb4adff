// A group that grows backwards, one operator at a time, and what it costs at least: what prunes a search over groups.
//
// An operator comes into the group after all of its readers that will be in it. What is known of a map is then final or only
// grows:
// - extents at the least tile of every sink bound the buffer from below (least_entries): Eq. 4 with every map streaming, and of
//   two maps of which one is read for the other the smaller saving lost, because only one of them streams (Algorithm 2). Pairs
//   share no map, so losses add up.
// - extents that all tiles hold together bound the passes of the weights (least_passes): passes * buffer >= B * volume.
//
// A part of a graph: what a group of the whole graph holds of it, as bounds that are sums over parts need it. Maps that cross the
// part's border are free, and an operator that is read outside of it may be no sink of the group, so that its extents are the
// least that any reader asks for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/models/dag_groups/group_cost.h"

namespace laminate::dag_groups {

class GrowingGroup {
public:
    /// `part`: by operator, whether it belongs to the part; empty: the whole graph. Refers to the graph.
    GrowingGroup(const OperatorGraph& graph, const GroupMachine& machine, const GroupRules& rules,
                 const std::vector<bool>& part = {});

    struct Undo {
        int64_t inputs, outputs, weights, least_entries, volume;
        size_t enlarged;
        int matched = -1;
    };
    /// Its readers are in the group or will never be.
    Undo push(int op);
    void pop(const Undo& undo);  ///< the operator that came last

    [[nodiscard]] const std::vector<int>& operators() const { return operators_; }  ///< as they came
    [[nodiscard]] bool contains(int op) const { return is_inside_[static_cast<size_t>(op)]; }
    [[nodiscard]] int readers_inside(int map) const { return readers_inside_[static_cast<size_t>(map)]; }
    /// Whether its map is needed outside, as the group is now.
    [[nodiscard]] bool leaves(int op) const {
        const Map& map = graph_.maps[static_cast<size_t>(op)];
        return map.is_output || map.readers.empty() || readers_inside(op) < static_cast<int>(map.readers.size());
    }

    [[nodiscard]] int64_t inputs() const { return inputs_; }    ///< elements of one image from outside
    [[nodiscard]] int64_t outputs() const { return outputs_; }  ///< that leave
    [[nodiscard]] int64_t weights() const { return weights_; }
    [[nodiscard]] int64_t least_entries() const {
        return least_entries_;
    }  ///< no tile of a group that holds this one needs less
    [[nodiscard]] int64_t least_passes() const;
    /// Rows and columns of an operator's map at the least tile, and of all tiles together, when none of its readers is in the
    /// group.
    [[nodiscard]] std::array<int64_t, 4> sink_extents(int op) const {
        const auto n = static_cast<size_t>(op);
        return {sink_extent_[n][0], sink_extent_[n][1], sink_covered_[n][0], sink_covered_[n][1]};
    }
    /// No group with these operators costs less.
    [[nodiscard]] int64_t least_cost() const {
        return rules_.images * (inputs_ + outputs_) + least_passes() * weights_;
    }

private:
    using Extent = std::array<int64_t, 2>;

    void enlarge(int map, const Extent& extent, const Extent& covered);
    void match(int op, Undo& undo);
    [[nodiscard]] int64_t floor_of(size_t axis, int64_t size) const;
    [[nodiscard]] Extent inputs_covered(const OperatorInput& input, const Extent& outputs) const;
    [[nodiscard]] Extent inputs_of_least_tile(const OperatorInput& input, const Extent& outputs) const;
    [[nodiscard]] int64_t streaming_lanes(const Map& map) const {
        return std::min(machine_.lanes_channels, map.channels);
    }
    [[nodiscard]] int64_t saving(int map, const std::vector<Extent>& extents) const;

    const OperatorGraph& graph_;
    GroupMachine machine_;
    GroupRules rules_;
    std::vector<int64_t> charged_;  ///< by map: elements that pass when it crosses the border of a group
    std::vector<Extent>
        sink_extent_;  ///< by operator: rows and columns at the least tile when no reader is in the group
    std::vector<Extent> sink_covered_;  ///< and of all tiles together

    std::vector<int> operators_;
    std::vector<bool> is_inside_;
    std::vector<int> readers_inside_;  ///< by map
    struct Enlarged {
        int map;
        Extent extent, covered;  ///< before
    };
    std::vector<Enlarged> enlarged_;
    std::vector<Extent> extent_;   ///< rows and columns of a map at the least tile, 0 where the group does not touch it
    std::vector<Extent> covered_;  ///< rows and columns that all tiles hold together at least
    std::vector<bool> is_matched_;
    int64_t inputs_ = 0;
    int64_t outputs_ = 0;
    int64_t weights_ = 0;
    int64_t least_entries_ = 0;
    int64_t volume_ = 0;  ///< entries that all tiles of an image hold together, a lower bound
};

}  // namespace laminate::dag_groups
