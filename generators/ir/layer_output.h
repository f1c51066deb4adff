// What becomes of the sums of a layer that is computed from its whole input (whole_map.h,
// winograd_map.h): Y = f(sum), or, if its group ends in an Add of its output and of tensors from
// outside, Y = g(f(sum) + X2 + ...), with the activations f and g. All of that happens before
// anything is stored, so neither the layer's own output nor a second pass over the sum goes to
// memory. An elementwise layer, all of whose operands come from outside, and an activation are stored
// the same way, by themselves or before an Add.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generators/group_code.h"
#include "generators/ir/arrays.h"
#include "generators/ir/code_frame.h"
#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

class LayerOutput {
public:
    /// The group has a map kernel (is_whole_map_group, scheduler/schedule/kernel_legality.h).
    [[nodiscard]] static LayerOutput of(const Network& network, const GroupSchedule& group) {
        return of(network, group, 0, group.nests.size());
    }
    /// Takes part in the group with the layers from `first` to `end` - 1.
    [[nodiscard]] static LayerOutput of(const Network& network, const GroupSchedule& group,
                                        size_t first, size_t end);

    [[nodiscard]] const LayerProblem& problem() const { return layers_.front().problem; }
    [[nodiscard]] const Layer& layer() const { return *layers_.front().layer; }
    /// Has stores go to another array than "Y".
    void store_in(const std::string& array) { target_ = array; }
    /// The layer's place in its group.
    [[nodiscard]] int place() const { return static_cast<int>(first_); }
    /// Keeps the slopes of activations for blocks of output channels; before any of the following.
    void pack(int64_t block, NamedConstants& constants);

    /// `sum` after the layer's own activation. `channel`: one for all lanes, or as many as there
    /// are lanes.
    [[nodiscard]] Halide::Expr activated(const Halide::Expr& channel,
                                         const Halide::Expr& sum) const;
    /// Puts activated values into the array's elements `index` (not where the predicate is false), added to
    /// what the group adds.
    [[nodiscard]] Halide::Internal::Stmt store_activated(
        const Halide::Expr& channel, const Halide::Expr& value, const Halide::Expr& index,
        const Halide::Expr& predicate = Halide::Expr()) const;
    [[nodiscard]] Halide::Internal::Stmt store(
        const Halide::Expr& channel, const Halide::Expr& sum, const Halide::Expr& index,
        const Halide::Expr& predicate = Halide::Expr()) const {
        return store_activated(channel, activated(channel, sum), index, predicate);
    }

    /// Elements of a map, or of several where no operand has one element for each channel or position.
    struct Place {
        Halide::Expr channel;     ///< of all lanes
        Halide::Expr index;       ///< of Y, by lane
        Halide::Expr position{};  ///< within their map, by lane
    };
    /// The same of an elementwise layer or an activation of tensors from outside.
    [[nodiscard]] Halide::Internal::Stmt store_combined(
        const Place& place, const Halide::Expr& predicate = Halide::Expr()) const {
        const Halide::Expr value = combined_operands(0, Halide::Expr(), place, predicate);
        return store(place.channel, value, place.index, predicate);
    }
    /// Whether an activation multiplies each channel by a value of its own.
    [[nodiscard]] bool has_slopes() const;

    [[nodiscard]] bool adds() const { return layers_.back().problem.operation == Operation::add; }
    /// Has what will be added to Y's elements first .. first + count brought into the cache while
    /// their sums are computed: runs of a map's rows are too short for the processor to see them
    /// coming.
    [[nodiscard]] Halide::Internal::Stmt prefetch(const Halide::Expr& first, int64_t count) const;
    /// Has the line of Y's element `index` brought into the cache before it is stored to; the element
    /// need not exist.
    [[nodiscard]] Halide::Internal::Stmt prefetch_stored(const Halide::Expr& index) const {
        return ir::prefetch(target_, index);
    }

    /// The group's code: `body` reads "X", the input of the group's first layer, and stores by the
    /// functions above; it calls its scratch memory, from the beginning on, `scratch`.
    [[nodiscard]] GroupCode code(Halide::Internal::Stmt body, NamedConstants constants,
                                 const std::string& scratch, int64_t scratch_bytes,
                                 int64_t strips) const;

private:
    struct Stage {
        LayerProblem problem;
        const Layer* layer = nullptr;
        std::string slope{};  ///< name of the constants, none without PRelu
    };
    [[nodiscard]] static Halide::Expr after(const Stage& stage, const Halide::Expr& channel,
                                            const Halide::Expr& value);
    /// Array of an operand, from outside, of the elementwise layer or activation that is layers_[k].
    [[nodiscard]] static std::string array_of(size_t k, size_t operand) {
        return "X" + std::to_string(k) + "." + std::to_string(operand);
    }
    [[nodiscard]] bool is_own(const LayerInput& operand) const {
        return operand.tensor == problem().output;
    }
    /// Whether layers_[k] is an elementwise layer or an activation; all behind the first one are Adds.
    [[nodiscard]] bool combines(size_t k) const {
        const Operation operation = layers_[k].problem.operation;
        return is_elementwise(operation) || operation == Operation::pointwise;
    }
    /// What layers_[k], which combines(), makes of its operands, of which `own` may be one.
    [[nodiscard]] Halide::Expr combined_operands(size_t k, const Halide::Expr& own, const Place& place,
                                                 const Halide::Expr& predicate) const;

    std::string target_ = "Y";
    size_t first_ = 0, sink_ = 0;
    LayerInput source_;
    std::vector<Stage> layers_;  ///< the layer, and perhaps an Add of its output
};

}  // namespace laminate
