// A group that grows backwards, one operator at a time, and what it costs at least: what prunes a
// search over groups.
//
// An operator comes into the group after all of its readers that will be in it. What is known of a
// map is then final or only grows:
// - extents at the least tile of every sink bound the buffer from below (least_entries): Eq. 4 with
// every map streaming, and what
//   is lost because of two maps of which one is read for the other only one streams (Algorithm 2).
//   What streaming saves of a map is shared out among such pairs, no more than there is of either;
//   the sum over pairs is lost at least, whichever maps stream: a packing of edges, below every
//   cover of them by vertices.
// - extents that all tiles hold together bound the passes of the weights (least_passes): passes *
// buffer >= B * volume.
//
// A part of a graph: what a group of the whole graph holds of it, as bounds that are sums over
// parts need it. Maps that cross the part's border are free, and an operator that is read outside
// of it may be no sink of the group, so that its extents are the least that any reader asks for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "papers/dag_groups/graph_rows.h"
#include "papers/dag_groups/group_cost.h"

namespace laminate::dag_groups {

class GrowingGroup {
public:
    /// `part`: by operator, whether it belongs to the part; empty: the whole graph.
    GrowingGroup(const OperatorGraph& graph, const GroupMachine& machine, const GroupRules& rules,
                 const std::vector<bool>& part = {});

    /// Its readers are in the group or will never be.
    void push(int op);
    void pop();  ///< the operator that came last

    [[nodiscard]] const std::vector<int>& operators() const {
        return operators_;
    }  ///< as they came
    [[nodiscard]] bool contains(int op) const { return state_[static_cast<size_t>(op)].is_inside; }
    [[nodiscard]] int readers_inside(int map) const {
        return state_[static_cast<size_t>(map)].readers_inside;
    }
    /// Whether some, but not all, of those who read its map are in the group.
    [[nodiscard]] bool is_read_in_part(int op) const {
        const int inside = readers_inside(op);
        return inside != 0 && inside != rows_.map(static_cast<size_t>(op)).readers;
    }
    /// Whether its map is needed outside, as the group is now.
    [[nodiscard]] bool leaves(int op) const {
        const GraphRows::MapRow& map = rows_.map(static_cast<size_t>(op));
        return map.leaves_always || readers_inside(op) < map.readers;
    }
    /// One of several operators of the group that neither feeds, nor is fed by, nor shares an input
    /// with another one of it.
    [[nodiscard]] bool has_lonely_operator() const;

    [[nodiscard]] int64_t inputs() const {
        return sums().inputs;
    }  ///< elements of one image from outside
    [[nodiscard]] int64_t outputs() const { return sums().outputs; }  ///< that leave
    [[nodiscard]] int64_t weights() const { return sums().weights; }
    /// No tile of a group that holds this one needs less.
    [[nodiscard]] int64_t least_entries() const { return sums().least_entries; }
    [[nodiscard]] int64_t least_passes() const;
    /// Columns and rows of an operator's map at the least tile, and of all tiles together, when
    /// none of its readers is in the group.
    [[nodiscard]] std::array<int64_t, 4> sink_extents(int op) const {
        const auto& [extent, covered] = sink_[static_cast<size_t>(op)];
        return {extent[MapAxis::x], extent[MapAxis::y], covered[MapAxis::x], covered[MapAxis::y]};
    }
    /// No group with these operators costs less.
    [[nodiscard]] int64_t least_cost() const {
        return rules_.images * (inputs() + outputs()) + least_passes() * weights();
    }

private:
    using Extent = PerAxis<int64_t>;
    [[nodiscard]] static int64_t area(const Extent& extent) {
        return extent[MapAxis::x] * extent[MapAxis::y];
    }
    /// Rows and columns of a map; 0 where the group does not touch it.
    struct Extents {
        Extent extent{0, 0};   ///< at the least tile
        Extent covered{0, 0};  ///< of all tiles together, at least
    };
    struct MapState {
        Extents extents;
        int64_t packed = 0;  ///< of what streaming saves at the least tile: what was shared out
        int64_t packed_covered = 0;  ///< and of all tiles together
        int readers_inside = 0;
        bool is_inside = false;
    };

    /// Of all operators so far.
    struct Sums {
        int64_t inputs = 0;
        int64_t outputs = 0;
        int64_t weights = 0;
        int64_t least_entries = 0;
        int64_t volume = 0;  ///< entries that all tiles of an image hold together, a lower bound
    };
    [[nodiscard]] const Sums& sums() const { return sums_[operators_.size()]; }
    void enlarge(size_t map, const Extents& extents, int64_t& least_entries, int64_t& volume);
    void share_out(size_t a, size_t b, int64_t& least_entries, int64_t& volume);
    void save(const MapState& state);
    void restore(MapState& state);
    [[nodiscard]] int64_t floor_of(MapAxis axis, int64_t size) const;
    [[nodiscard]] Extents of_inputs(const GraphRows::InputRow& input, const Extents& outputs) const;
    /// What streaming saves of a map of these rows and columns.
    [[nodiscard]] int64_t saving(size_t map, const Extent& extent) const {
        return (rows_.map(map).channels - rows_.map(map).lanes) * area(extent);
    }

    GroupMachine machine_;
    GroupRules rules_;
    GraphRows rows_;
    std::vector<int64_t>
        charged_;  ///< by map: elements that pass when it crosses the border of a group
    std::vector<Extents> sink_;  ///< by map: when no reader is in the group

    std::vector<int> operators_;
    std::vector<MapState> state_;  ///< by map
    /// What pop() cannot tell from the operator: of those that are read in the group and of inputs
    /// that others of it read too. No more is kept, and sums lie side by side: what a push has just
    /// written in parts and the next one copies as a whole, a processor waits for.
    struct Before {
        Extents extents;
        int64_t packed;
        int64_t packed_covered;
    };
    std::vector<Before> before_;  ///< as many as there can be; `saved_` are
    size_t saved_ = 0;
    std::vector<int> sinks_;
    std::vector<Sums> sums_;  ///< after so many operators
};

}  // namespace laminate::dag_groups
