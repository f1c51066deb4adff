// The two halves of the closed form. Loop orders and levels of a group decide once which axes there
// are, which loops lie between a buffer's levels, and which lifetimes nest. The sums along axes
// depend on tile sizes, and are combined here by products. two_level_counts() joins both halves;
// the search keeps one GroupModel for thousands of tile sizes.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/counts/two_level/axis.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::two_level {

/// The sums of every array along every axis, borrowed from AxisCounts that outlive the table.
struct AxisTable {
    std::vector<std::vector<const AxisBuffer*>> buffers;  ///< [axis][array]
    std::vector<int64_t> sink_taps;                       ///< [axis]
    void set(size_t axis, const AxisCounts& counts);
};

/// Arrays are numbered: first the tensors that the group's nests read, as in group_tensors()
/// (external inputs, then outputs of nests 0, 1, ...), then the weights of the nests that have any,
/// in order. The sink's output Y comes last and is not an AxisArray.
class GroupModel {
public:
    struct Totals {
        Elements accesses;
        Elements live_total;
        Elements sum_total;
        Macs macs;
    };

    /// `problems` outlives the model. Tile and strip sizes of `group` are ignored.
    GroupModel(const std::vector<LayerProblem>& problems, const GroupSchedule& group);

    [[nodiscard]] size_t axis_count() const { return axes_.size(); }
    [[nodiscard]] const std::vector<GroupTensor>& tensors() const { return tensors_; }
    [[nodiscard]] size_t array_count() const { return arrays_.size(); }
    [[nodiscard]] size_t output_of(size_t nest) const {
        return external_count_ + nest;
    }  ///< not for the sink
    [[nodiscard]] std::optional<size_t> weights_of(size_t nest) const { return weights_[nest]; }
    /// The axis that a loop of this dimension belongs to.
    [[nodiscard]] size_t axis_of(size_t nest, Dim d) const;
    /// The problem of one axis for the sizes of `group`, whose orders and levels are those given to
    /// the constructor.
    [[nodiscard]] AxisProblem axis_problem(size_t axis, const GroupSchedule& group) const;
    [[nodiscard]] AxisTable empty_table() const;

    [[nodiscard]] GroupCounts counts(const AxisTable& table, const GroupSchedule& group) const;
    [[nodiscard]] Totals totals(const AxisTable& table, const GroupSchedule& group) const;
    /// The work of executing the group: MACs, and for layers without weights the elements that they
    /// read.
    [[nodiscard]] Macs work(const AxisTable& table) const;

    /// Number of times that an element of Y is written: once per iteration of the i loops around
    /// Y's level.
    [[nodiscard]] int64_t output_visits(const GroupSchedule& group) const;
    /// Largest extent of Y's buffer along z, y or x.
    [[nodiscard]] int64_t output_extent(const GroupSchedule& group, Dim d) const;

private:
    struct Array {
        Placement placement;
        std::vector<TensorReader> readers;
        int producer = -1;
        bool is_weights = false;
        bool is_shared = false;
        /// Elements that no axis indexes: the kernel of weights, or all channels of a shared input.
        int64_t elements = 1;
        std::vector<size_t> indexing_axes;  ///< axes along which it has more than one coordinate
    };
    struct Axis {
        /// By nest: the dimension whose loops belong to the axis.
        std::vector<std::optional<Dim>> dims;
        std::vector<Role> roles;
        bool is_channels = false;
        int shared_output_of = -1;  ///< nest with a shared output whose z starts the axis
        [[nodiscard]] bool has(int nest, Dim d) const {
            return dims[static_cast<size_t>(nest)] == d;
        }
    };
    /// A loop between the store and compute levels of an array: its axis, and its body in
    /// AxisBuffer::levels.
    struct LoopBetween {
        size_t axis = 0;
        size_t body = 0;
        bool indexes = false;
    };
    /// A body in which something is stored or called. Children come after their parent.
    struct Body {
        std::vector<size_t> stored;
        std::vector<size_t> children;
    };

    void find_arrays(const GroupSchedule& group);
    void find_axes();
    void add_channels(Axis& axis, size_t nest, Dim d) const;
    [[nodiscard]] bool is_indexed(const Array& array, const Axis& axis) const;
    void find_loops_between(const GroupSchedule& group);
    size_t find_bodies(const GroupSchedule& group, Level level);
    [[nodiscard]] AxisLevel axis_level(const Axis& axis, const GroupSchedule& group,
                                       Level level) const;
    [[nodiscard]] Elements brought(const AxisTable& table, size_t array) const;
    [[nodiscard]] Macs work(const AxisTable& table, size_t nest) const;
    [[nodiscard]] Macs macs(const AxisTable& table, size_t nest) const;
    [[nodiscard]] std::vector<Elements> sizes(const AxisTable& table,
                                              const GroupSchedule& group) const;
    [[nodiscard]] Elements size(const AxisTable& table, size_t array) const;
    void fold(const AxisTable& table, size_t array, const std::vector<size_t>& lifetimes,
              std::vector<int64_t>& extents) const;
    [[nodiscard]] Elements live(const std::vector<Elements>& sizes) const;

    const std::vector<LayerProblem>* problems_;
    std::vector<GroupTensor> tensors_;
    std::vector<Array> arrays_;
    std::vector<std::optional<size_t>> weights_;  ///< by nest: its array
    size_t external_count_ = 0;
    std::vector<Axis> axes_;
    std::vector<std::vector<AxisArray>> axis_arrays_;      ///< [axis][array]
    std::vector<std::vector<LoopBetween>> loops_between_;  ///< [array], outermost first
    std::vector<Body> bodies_;
};

}  // namespace laminate::two_level
