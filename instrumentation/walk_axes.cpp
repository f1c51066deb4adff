#include "instrumentation/walk_axes.h"

#include <algorithm>

namespace laminate::walking {

Axis axis_of(Dim dim) {
    return dim == Dim::y ? Axis::rows : dim == Dim::x ? Axis::columns : Axis::channels;
}

LayerProblem alone(LayerProblem problem, Axis axis) {
    if (axis != Axis::channels) {
        problem.extent[Dim::z] = 1;
        problem.extent[Dim::i] = 1;
        problem.groups = 1;
        for (LayerInput& input : problem.inputs) {
            input.channels = 1;
            input.first_output_channel = 0;
            input.is_plane = false;
        }
    }
    for (const Dim dim : {Dim::y, Dim::x}) {
        if (axis_of(dim) == axis) continue;
        problem.extent[dim] = 1;
        problem.window[static_cast<size_t>(dim) - 1] = {};
    }
    return problem;
}

Nest alone(Nest nest, Axis axis) {
    for (const Dim dim : {Dim::z, Dim::y, Dim::x, Dim::i}) {
        if (axis_of(dim) != axis) nest.tile[dim] = 1;
    }
    for (const Dim dim : {Dim::y, Dim::x}) {
        int64_t& strip = nest.strip[static_cast<size_t>(dim) - 1];
        if (axis_of(dim) != axis) strip = std::min<int64_t>(strip, 1);
    }
    return nest;
}

bool moves_outputs(const std::vector<LayerProblem>& problems,
                   const std::vector<GroupTensor>& tensors, int k, Dim dim, int nest) {
    if (nest == k) return dim == Dim::z;
    const auto output = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const GroupTensor& t) { return t.producer == nest; });
    return !output->is_shared() &&
           moves_channels(problems, tensors, k, dim, output->readers.front().nest);
}

bool moves_channels(const std::vector<LayerProblem>& problems,
                    const std::vector<GroupTensor>& tensors, int k, Dim dim, int reader) {
    if (reader == k && dim == Dim::i) return true;
    // Output channels read the channels of their group.
    return problems[static_cast<size_t>(reader)].is_grouped() &&
           moves_outputs(problems, tensors, k, dim, reader);
}

}  // namespace laminate::walking
