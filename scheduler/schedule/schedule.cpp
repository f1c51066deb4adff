#include "scheduler/schedule/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace laminate {

int position(const std::vector<Level>& levels, Level level) {
    const auto it = std::find(levels.begin(), levels.end(), level);
    return it == levels.end() ? -1 : static_cast<int>(it - levels.begin());
}

int64_t Nest::step(Loop loop) const {
    switch (loop.band) {
        case Band::strip:
            return strip[static_cast<size_t>(loop.dim) - 1];
        case Band::outer:
            return tile[loop.dim];
        case Band::inner:
            break;
    }
    return 1;
}

int Nest::find(Loop loop) const {
    const auto it = std::find(loops.begin(), loops.end(), loop);
    return it == loops.end() ? -1 : static_cast<int>(it - loops.begin());
}

bool GroupSchedule::is_placed(Level level) const {
    const auto is_here = [&](const Placement& p) { return p.store == level || p.compute == level; };
    for (const Nest& nest : nests) {
        if (is_here(nest.y) || (nest.w && is_here(*nest.w))) return true;
        for (const InputPlacement& x : nest.x) {
            if (is_here(x.placement)) return true;
        }
    }
    return false;
}

std::vector<GroupTensor> group_tensors(const std::vector<LayerProblem>& problems) {
    std::vector<GroupTensor> external;
    std::vector<GroupTensor> internal;
    for (size_t k = 0; k + 1 < problems.size(); ++k) {
        const auto tensor = problems[k].output;
        internal.push_back({tensor, problems[k].name, static_cast<int>(k), {}});
    }
    for (size_t k = 0; k < problems.size(); ++k) {
        for (size_t operand = 0; operand < problems[k].inputs.size(); ++operand) {
            const LayerInput& input = problems[k].inputs[operand];
            const auto is_it = [&](const GroupTensor& t) { return t.tensor == input.tensor; };
            auto found = std::find_if(internal.begin(), internal.end(), is_it);
            if (found == internal.end()) {
                found = std::find_if(external.begin(), external.end(), is_it);
                if (found == external.end())
                    found = external.insert(external.end(), {input.tensor, input.name, -1, {}});
            } else {
                found->name = input.name;
            }
            found->readers.push_back({static_cast<int>(k), static_cast<int>(operand)});
        }
    }
    external.insert(external.end(), internal.begin(), internal.end());
    return external;
}

Elements external_elements(const GroupTensor& tensor, const std::vector<LayerProblem>& problems) {
    const TensorReader& reader = tensor.readers.front();
    const auto [channels, rows, columns] =
        problems[static_cast<size_t>(reader.nest)].operand_extents(reader.operand);
    return Elements(channels * rows * columns);
}

const Placement& placement_of(const GroupSchedule& group, const GroupTensor& tensor) {
    if (!tensor.is_external()) return group.nests[static_cast<size_t>(tensor.producer)].y;
    const TensorReader& first = tensor.readers.front();
    for (const InputPlacement& x : group.nests[static_cast<size_t>(first.nest)].x) {
        if (x.operand == first.operand) return x.placement;
    }
    throw InputError(group.nests[static_cast<size_t>(first.nest)].layer + ": no placement of " +
                     tensor.name + ", an external input of the group");
}

std::vector<int> branch_nests(const std::vector<GroupTensor>& tensors, const GroupTensor& tensor) {
    const auto reads = [](const GroupTensor& t, int nest) {
        return std::any_of(t.readers.begin(), t.readers.end(),
                           [&](const TensorReader& r) { return r.nest == nest; });
    };
    std::vector<int> nests;
    std::vector<const GroupTensor*> computed{&tensor};  // and whatever is computed from it
    int last = tensor.readers.back().nest;              // the last nest that reads any of them
    for (int k = tensor.readers.front().nest;; ++k) {
        if (std::none_of(computed.begin(), computed.end(),
                         [&](const GroupTensor* t) { return reads(*t, k); }))
            continue;
        const auto output = std::find_if(tensors.begin(), tensors.end(),
                                         [&](const GroupTensor& t) { return t.producer == k; });
        if (output == tensors.end()) break;  // the sink
        if (k < last || reads(tensor, k)) nests.push_back(k);
        if (k == last) break;  // all has come together
        computed.push_back(&*output);
        last = std::max(last, output->readers.back().nest);
    }
    return nests;
}

std::vector<Level> path(const GroupSchedule& group, int nest) {
    std::vector<Level> levels{Level{}};
    const Nest& own = group.nests[static_cast<size_t>(nest)];
    // check_group refuses a level of an earlier nest.
    if (const Level hang = own.y.compute; nest != group.sink() && hang.nest > nest) {
        levels = path(group, hang.nest);
        levels.resize(static_cast<size_t>(position(levels, hang)) + 1);
    }
    for (int loop = 0; loop < static_cast<int>(own.loops.size()); ++loop)
        levels.push_back(Level{nest, loop});
    return levels;
}

bool encloses(const GroupSchedule& group, int nest, Level outer, Level inner) {
    const std::vector<Level> levels = path(group, nest);
    const int a = position(levels, outer);
    const int b = position(levels, inner);
    return a >= 0 && b >= a;
}

std::vector<LayerProblem> group_problems(const Network& network, const GroupSchedule& group) {
    std::vector<LayerProblem> problems;
    for (const Nest& nest : group.nests)
        problems.push_back(layer_problem(network, network.find_layer(nest.layer)));
    return problems;
}

int64_t images_of(const Network& network, const GroupSchedule& group) {
    const Layer& sink = network.layer(network.find_layer(group.nests.back().layer));
    return network.tensor(sink.output).dims.front();
}

}  // namespace laminate
