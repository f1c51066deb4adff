// What a schedule may be: refused here when it is built, with what would be legal.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "scheduler/schedule/kernel_legality.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

namespace {

bool is_spatial(Dim d) { return d == Dim::y || d == Dim::x; }

std::string levels_text(const GroupSchedule& group, int nest, const std::vector<Level>& levels) {
    std::string text;
    for (const Level& level : levels)
        text += (text.empty() ? "" : ", ") + level_text(group, nest, level);
    return text;
}

void check_placement(const GroupSchedule& group, int nest, const std::string& array,
                     const Placement& placement, const std::vector<Level>& levels, int user) {
    const std::string where = group.nests[static_cast<size_t>(nest)].layer + ": ";
    const int store = position(levels, placement.store);
    const int compute = position(levels, placement.compute);
    if (store < 0) {
        throw InputError(
            where + "store level of " + array + " is " + level_text(group, nest, placement.store) +
            ", which is not around its user; legal: " + levels_text(group, user, levels));
    }
    if (compute < store) {
        const std::vector<Level> legal(levels.begin() + store, levels.end());
        throw InputError(where + "compute level of " + array + " is " +
                         level_text(group, nest, placement.compute) + ", outside its store level " +
                         level_text(group, nest, placement.store) +
                         "; legal: " + levels_text(group, user, legal));
    }
}

/// A layer that reads_all_of_i(), for messages.
std::string kind_of(const LayerProblem& problem) {
    if (problem.has_weights()) return "a grouped convolution";
    if (is_extreme_of_channels(problem.operation)) return "a reduction of channels";
    return problem.operation == Operation::normalise ? "a normalisation" : "a rearrangement";
}

/// Inside `ii` a grouped layer reads one channel of each group of its z range. That is no interval,
/// so there is no box to bring in. A rearrangement, a normalisation and a reduction of channels read
/// nothing in most iterations of it.
void check_grouped_input(const GroupSchedule& group, int k, const LayerProblem& problem,
                         const Placement& input) {
    if (!problem.reads_all_of_i()) return;
    const Nest& nest = group.nests[static_cast<size_t>(k)];
    if (input.compute.nest == k && input.compute.loop >= nest.find(Loop{Dim::i, Band::inner})) {
        throw InputError(nest.layer + ": the input of " + kind_of(problem) + " has compute level " +
                         level_text(group, k, input.compute) +
                         ", not outside ii; expected a loop around ii");
    }
}

/// "X", or "X1" where the layer has several inputs.
std::string input_key(const LayerProblem& problem, int operand) {
    return problem.inputs.size() == 1 ? "X" : "X" + std::to_string(operand);
}

/// Checks that the output of every nest but the last is read by later nests of the group only.
void check_wiring(const Network& network, const std::vector<LayerProblem>& problems) {
    std::map<LayerId, size_t> nest_of;
    for (size_t k = 0; k < problems.size(); ++k) {
        if (!nest_of.emplace(problems[k].layer, k).second)
            throw InputError("schedule: layer " + problems[k].name + " is in a group twice");
    }
    for (size_t k = 0; k + 1 < problems.size(); ++k) {
        const std::string& name = problems[k].name;
        const std::vector<LayerId> readers = network.consumers(problems[k].output);
        if (network.is_output(problems[k].output))
            throw InputError(
                name +
                ": its output is an output of the network, so it can only be the last of a group");
        for (const LayerId reader : readers) {
            const auto nest = nest_of.find(reader);
            const std::string& reader_name = network.layer(reader).name;
            if (nest == nest_of.end()) {
                throw InputError(
                    name + ": its output is read by " + reader_name +
                    " outside the group; expected a group with every reader of it, or " + name +
                    " as its last layer");
            }
            if (nest->second <= k)
                throw InputError(name + ": stands after " + reader_name +
                                 ", which reads its output; expected producers first");
        }
    }
}

/// A tensor that several nests read is one box with all its channels. It must be kept at least as
/// long as what they compute from it.
void check_shared(const GroupSchedule& group, const std::vector<GroupTensor>& tensors,
                  const GroupTensor& tensor) {
    const Placement& placement = placement_of(group, tensor);
    for (const int k : branch_nests(tensors, tensor)) {
        const Nest& nest = group.nests[static_cast<size_t>(k)];
        if (encloses(group, k, placement.store, nest.y.store)) continue;
        throw InputError(nest.layer + ": computes from " + tensor.name +
                         ", which several layers of the group read and which is stored at " +
                         level_text(group, k, placement.store) + ", inside the store level " +
                         level_text(group, k, nest.y.store) +
                         " of its own output; expected to be stored there or further out");
    }
}

void check_loops(const Nest& nest, const LayerProblem& problem, bool is_sink) {
    const std::string where = nest.layer + ": ";
    std::vector<Loop> strips;
    std::vector<Loop> outer;
    std::vector<Loop> inner;
    for (const Loop& loop : nest.loops) {
        (loop.band == Band::strip   ? strips
         : loop.band == Band::outer ? outer
                                    : inner)
            .push_back(loop);
    }
    std::vector<Loop> ordered = strips;
    ordered.insert(ordered.end(), outer.begin(), outer.end());
    ordered.insert(ordered.end(), inner.begin(), inner.end());
    const std::set<Loop> distinct(nest.loops.begin(), nest.loops.end());
    if (ordered != nest.loops || outer.size() != 4 || inner.size() != 4 ||
        distinct.size() != nest.loops.size()) {
        throw InputError(where + "loops are " +
                         [&] {
                             std::string text;
                             for (const Loop& loop : nest.loops)
                                 text += (text.empty() ? "" : " ") + to_text(loop);
                             return text;
                         }() +
                         "; expected strip loops (sink only), then zo yo xo io in some order, then "
                         "zi yi xi ii in some order");
    }
    for (const Loop& loop : strips) {
        if (!is_spatial(loop.dim))
            throw InputError(where + "strip loop " + to_text(loop) + "; only ys and xs exist");
    }
    if (!strips.empty() && !is_sink) {
        throw InputError(where + "strip loop " + to_text(strips.front()) +
                         " in a layer that is not the last of its group");
    }
    for (size_t axis = 0; axis < 2; ++axis) {
        const Loop loop{axis == 0 ? Dim::y : Dim::x, Band::strip};
        const bool present = distinct.count(loop) > 0;
        const int64_t extent = problem[loop.dim];
        if (!present && nest.strip[axis] != 0)
            throw InputError(where + "strip size without loop " + to_text(loop));
        if (present && (nest.strip[axis] < 1 || nest.strip[axis] > extent)) {
            throw InputError(where + "strip of " + letter_of(axis == 0 ? Dim::y : Dim::x) + " is " +
                             std::to_string(nest.strip[axis]) + "; expected 1 to " +
                             std::to_string(extent));
        }
    }
    for (const Dim d : all_dims) {
        if (nest[d] < 1 || nest[d] > problem[d]) {
            throw InputError(where + "tile of " + letter_of(d) + " is " + std::to_string(nest[d]) +
                             "; expected 1 to " + std::to_string(problem[d]));
        }
    }
    if (nest[Dim::i] != problem[Dim::i] && (!is_sink || problem.reads_all_of_i())) {
        throw InputError(
            where + "tile of i is " + std::to_string(nest[Dim::i]) + " of " +
            std::to_string(problem[Dim::i]) + "; " +
            (!is_sink ? "a layer that is not the last of its group" : kind_of(problem)) +
            " cannot leave partial sums");
    }
}

}  // namespace

namespace {

void check_layers_of(const Network& network, const GroupSchedule& group) {
    if (group.nests.empty()) throw InputError("schedule: a group without layers");
    for (const Nest& nest : group.nests) {
        const LayerId id = network.find_layer(nest.layer);
        if (id < 0)
            throw InputError("schedule: network " + network.name + " has no layer " + nest.layer);
        if (!is_schedulable(network, id)) {
            throw InputError(nest.layer + ": a " + operation_text(network.layer(id)) +
                             " cannot be scheduled; it runs on the reference operators");
        }
    }
}

/// The sink's Y has one level. Y of another nest must lie on the paths of all its readers.
void check_output_placement(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                            const std::vector<GroupTensor>& tensors, int k) {
    const Nest& nest = group.nests[static_cast<size_t>(k)];
    if (k == group.sink()) {
        check_placement(group, k, "Y", nest.y, path(group, k), k);
        if (nest.y.store != nest.y.compute) {
            throw InputError(nest.layer + ": Y of the last layer has store level " +
                             level_text(group, k, nest.y.store) + " and compute level " +
                             level_text(group, k, nest.y.compute) + "; expected one level");
        }
        const LayerProblem& problem = problems[static_cast<size_t>(k)];
        if (!problem.has_weights() && problem.reads_all_of_i() &&
            nest.y.store.nest == k && nest.y.store.loop >= nest.find(Loop{Dim::i, Band::inner}))
            throw InputError(nest.layer + ": Y of " + kind_of(problem) + " has level " +
                             level_text(group, k, nest.y.store) +
                             ", inside ii, where it has no partial sums; expected a loop around ii");
        return;
    }
    for (const GroupTensor& tensor : tensors) {
        if (tensor.producer != k) continue;
        for (const TensorReader& reader : tensor.readers) {
            check_placement(group, k, "Y", nest.y, path(group, reader.nest), reader.nest);
            check_grouped_input(group, reader.nest, problems[static_cast<size_t>(reader.nest)],
                                nest.y);
        }
    }
}

void check_weights_placement(const GroupSchedule& group, const LayerProblem& problem, int k) {
    const Nest& nest = group.nests[static_cast<size_t>(k)];
    if (nest.w.has_value() != problem.has_weights()) {
        throw InputError(nest.layer + (nest.w ? ": W is placed, but the layer has no weights"
                                              : ": no placement of W, the layer's weights"));
    }
    if (nest.w) check_placement(group, k, "W", *nest.w, path(group, k), k);
}

/// A nest places exactly the external inputs that it is the first to read, each once, in the order
/// of its operands.
void check_placed_inputs(const GroupSchedule& group, const LayerProblem& problem,
                         const std::vector<GroupTensor>& tensors, int k) {
    const Nest& nest = group.nests[static_cast<size_t>(k)];
    const auto is_first_reader = [&](int operand) {
        return std::any_of(tensors.begin(), tensors.end(), [&](const GroupTensor& t) {
            return t.is_external() && t.readers.front() == TensorReader{k, operand};
        });
    };
    int last_operand = -1;
    for (const InputPlacement& x : nest.x) {
        if (x.operand <= last_operand || !is_first_reader(x.operand)) {
            throw InputError(nest.layer + ": " + input_key(problem, x.operand) +
                             " is placed; expected in order, once, the inputs that come from "
                             "outside the group and "
                             "that no earlier layer of it reads");
        }
        last_operand = x.operand;
    }
    for (int operand = 0; operand < static_cast<int>(problem.inputs.size()); ++operand) {
        const bool is_placed =
            std::any_of(nest.x.begin(), nest.x.end(),
                        [&](const InputPlacement& x) { return x.operand == operand; });
        if (!is_placed && is_first_reader(operand)) {
            throw InputError(nest.layer + ": no placement of " + input_key(problem, operand) +
                             ", an external input of the group");
        }
    }
}

/// The levels of an external tensor lie on the paths of all its readers. A shared tensor outlives
/// what its branches compute from it.
void check_tensor(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                  const std::vector<GroupTensor>& tensors, const GroupTensor& tensor) {
    const Placement& placement = placement_of(group, tensor);
    for (const TensorReader& reader : tensor.readers) {
        if (!tensor.is_external()) continue;
        const LayerProblem& problem = problems[static_cast<size_t>(reader.nest)];
        check_placement(group, reader.nest, input_key(problem, reader.operand), placement,
                        path(group, reader.nest), reader.nest);
        check_grouped_input(group, reader.nest, problem, placement);
    }
    if (tensor.is_shared()) check_shared(group, tensors, tensor);
}

}  // namespace

void check_group(const Network& network, const GroupSchedule& group) {
    check_layers_of(network, group);
    const std::vector<LayerProblem> problems = group_problems(network, group);
    check_wiring(network, problems);
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (int k = group.sink(); k >= 0; --k) {
        const LayerProblem& problem = problems[static_cast<size_t>(k)];
        check_loops(group.nests[static_cast<size_t>(k)], problem, k == group.sink());
        check_output_placement(group, problems, tensors, k);
        check_weights_placement(group, problem, k);
        check_placed_inputs(group, problem, tensors, k);
    }
    for (const GroupTensor& tensor : tensors) check_tensor(group, problems, tensors, tensor);
    check_kernels(group, problems);
}

Schedule::Schedule(const Network& network, std::vector<GroupSchedule> groups)
    : groups_(std::move(groups)) {
    std::set<std::string> seen;
    for (const GroupSchedule& group : groups_) {
        check_group(network, group);
        for (const Nest& nest : group.nests) {
            if (!seen.insert(nest.layer).second)
                throw InputError("schedule: layer " + nest.layer + " is in two groups");
        }
    }
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) {
        if (must_be_scheduled(network, id) && seen.count(network.layer(id).name) == 0) {
            throw InputError("schedule: layer " + network.layer(id).name + " is in no group");
        }
    }
}

}  // namespace laminate
