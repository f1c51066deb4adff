#include "scheduler/problem.h"

#include "base/error.h"

namespace laminate {

std::optional<int64_t> AxisWindow::input(int64_t out_at, int64_t tap) const {
    int64_t at = out_at * stride + tap * dilation - pad_begin;
    if (transposed) {
        const int64_t scaled = out_at + pad_begin - tap * dilation;
        if (scaled < 0 || scaled % stride != 0) return std::nullopt;
        at = scaled / stride;
    }
    return at >= 0 && at < in ? std::optional(at) : std::nullopt;
}

Elements LayerProblem::weight_elements() const {
    return Elements(y().kernel) * x().kernel * extent[3] * extent[0];
}
Elements LayerProblem::output_elements() const { return Elements(extent[0]) * extent[1] * extent[2]; }
Elements LayerProblem::input_elements() const { return Elements(in_channels) * y().in * x().in; }

namespace {

/// Whether every output coordinate's window reaches at least one real input: true of every sensible layer. Where it
/// does not hold, parts of the output depend on padding alone, and a needed region can be empty in the middle of a loop.
bool windows_reach_input(const AxisWindow& w) {
    for (int64_t out = 0; out < w.out; ++out) {
        bool reaches = false;
        for (int64_t tap = 0; tap < w.kernel && !reaches; ++tap) reaches = w.input(out, tap).has_value();
        if (!reaches) return false;
    }
    // Tap sets of a strided and dilated transposed window are no intervals.
    return !w.transposed || w.dilation == 1 || w.stride == 1;
}

LayerProblem problem_of(const Network& network, LayerId id) {
    const Layer& layer = network.layer(id);
    LayerProblem p;
    p.layer = id;
    p.name = layer.name;
    p.input = layer.inputs.at(0);
    p.output = layer.output;
    p.groups = layer.groups;
    const std::vector<int64_t>& in = network.tensor(p.input).dims;
    const std::vector<int64_t>& out = network.tensor(p.output).dims;
    p.in_channels = in.at(1);
    if (layer.kind == LayerKind::gemm) {
        p.extent = {out.at(1), 1, 1, in.at(1)};
        return p;
    }
    p.extent = {out.at(1), out.at(2), out.at(3), in.at(1) / layer.groups};
    for (size_t axis = 0; axis < 2; ++axis) {
        const Window& w = layer.window;
        p.window[axis] = {layer.kind == LayerKind::conv_transpose, w.kernel[axis], w.stride[axis], w.dilation[axis],
                          w.pad_begin[axis], in.at(2 + axis), out.at(2 + axis)};
    }
    return p;
}

}  // namespace

bool is_schedulable(const Network& network, LayerId id) {
    const LayerKind kind = network.layer(id).kind;
    if (kind == LayerKind::gemm) return true;
    if (kind != LayerKind::conv && kind != LayerKind::conv_transpose) return false;
    const LayerProblem p = problem_of(network, id);
    return windows_reach_input(p.y()) && windows_reach_input(p.x());
}

LayerProblem layer_problem(const Network& network, LayerId id) {
    if (!is_schedulable(network, id)) {
        const Layer& layer = network.layer(id);
        throw InputError("layer " + layer.name + ": a " + to_string(layer.kind) + " of this shape cannot be scheduled; see is_schedulable");
    }
    return problem_of(network, id);
}

std::vector<std::vector<LayerId>> schedulable_chains(const Network& network) {
    const auto count = static_cast<LayerId>(network.layers.size());
    std::vector<bool> taken(network.layers.size(), false);
    std::vector<std::vector<LayerId>> chains;
    for (LayerId first = 0; first < count; ++first) {
        if (taken[static_cast<size_t>(first)] || !is_schedulable(network, first)) continue;
        std::vector<LayerId> chain;
        for (LayerId id = first;;) {
            taken[static_cast<size_t>(id)] = true;
            chain.push_back(id);
            const TensorId out = network.layer(id).output;
            const std::vector<LayerId> readers = network.consumers(out);
            if (network.is_output(out) || readers.size() != 1) break;
            const LayerId next = readers.front();
            if (taken[static_cast<size_t>(next)] || !is_schedulable(network, next)) break;
            id = next;
        }
        chains.push_back(std::move(chain));
    }
    return chains;
}

}  // namespace laminate
