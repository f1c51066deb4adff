#include "scheduler/problem.h"

#include "base/error.h"

namespace laminate {

Elements LayerProblem::weight_elements() const {
    return Elements(y().kernel) * x().kernel * extent[3] * extent[0];
}
Elements LayerProblem::output_elements() const { return Elements(extent[0]) * extent[1] * extent[2]; }
Elements LayerProblem::input_elements() const { return Elements(in_channels) * y().in * x().in; }

bool is_schedulable(const Layer& layer) {
    if (layer.kind != LayerKind::conv_transpose) return layer.kind == LayerKind::conv || layer.kind == LayerKind::gemm;
    // Where a transposed window has holes, an output need not have any tap and the needed box is no simple interval.
    for (size_t axis = 0; axis < 2; ++axis) {
        const Window& w = layer.window;
        if (w.kernel[axis] < w.stride[axis] || (w.dilation[axis] > 1 && w.stride[axis] > 1)) return false;
    }
    return true;
}

LayerProblem layer_problem(const Network& network, LayerId id) {
    const Layer& layer = network.layer(id);
    if (!is_schedulable(layer)) {
        throw InputError("layer " + layer.name + ": a " + to_string(layer.kind) +
                         " of this shape cannot be scheduled; see is_schedulable");
    }
    LayerProblem p;
    p.layer = id;
    p.name = layer.name;
    p.input = layer.inputs.at(0);
    p.output = layer.output;
    p.groups = layer.groups;
    const std::vector<int64_t>& in = network.tensor(p.input).dims;
    const std::vector<int64_t>& out = network.tensor(p.output).dims;
    if (layer.kind == LayerKind::gemm) {
        p.in_channels = in.at(1);
        p.extent = {out.at(1), 1, 1, in.at(1)};
        return p;
    }
    p.in_channels = in.at(1);
    p.extent = {out.at(1), out.at(2), out.at(3), in.at(1) / layer.groups};
    for (size_t axis = 0; axis < 2; ++axis) {
        const Window& w = layer.window;
        p.window[axis] = {layer.kind == LayerKind::conv_transpose, w.kernel[axis], w.stride[axis], w.dilation[axis],
                          w.pad_begin[axis], in.at(2 + axis), out.at(2 + axis)};
    }
    return p;
}

std::vector<std::vector<LayerId>> schedulable_chains(const Network& network) {
    const auto count = static_cast<LayerId>(network.layers.size());
    std::vector<bool> taken(network.layers.size(), false);
    std::vector<std::vector<LayerId>> chains;
    for (LayerId first = 0; first < count; ++first) {
        if (taken[static_cast<size_t>(first)] || !is_schedulable(network.layer(first))) continue;
        std::vector<LayerId> chain;
        for (LayerId id = first;;) {
            taken[static_cast<size_t>(id)] = true;
            chain.push_back(id);
            const TensorId out = network.layer(id).output;
            const std::vector<LayerId> readers = network.consumers(out);
            if (network.is_output(out) || readers.size() != 1) break;
            const LayerId next = readers.front();
            if (taken[static_cast<size_t>(next)] || !is_schedulable(network.layer(next))) break;
            id = next;
        }
        chains.push_back(std::move(chain));
    }
    return chains;
}

}  // namespace laminate
