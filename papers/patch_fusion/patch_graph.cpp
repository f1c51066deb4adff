#include "papers/patch_fusion/patch_graph.h"

#include <algorithm>

#include "base/error.h"
#include "papers/workload.h"
#include "scheduler/schedule/window.h"

namespace laminate::patch_fusion {

namespace {

PatchMap map_of_dims(const std::vector<int64_t>& dims) {
    PatchMap map;
    if (dims.size() == 4) {
        map = {.channels = dims[1], .height = dims[2], .width = dims[3], .readers = {}};
    } else {
        map.channels = element_count(dims);
    }
    return map;
}

class Builder {
public:
    explicit Builder(const Network& network)
        : network_(network), map_of_tensor_(network.tensors.size(), -1) {}

    PatchGraph build() {
        for (const Layer& layer : network_.layers)
            if (!is_in_place(layer)) ++layers_;
        if (layers_ == 0) throw InputError("network " + network_.name + ": no layer to fuse");
        graph_.maps.resize(static_cast<size_t>(layers_));
        for (const TensorId input : network_.inputs) add_input(input);
        for (size_t n = 0; n < network_.layers.size(); ++n) add_layer(static_cast<LayerId>(n));
        for (const TensorId output : network_.outputs) {
            PatchMap& map = graph_.maps[static_cast<size_t>(map_of(output))];
            map.is_output = true;
            map.is_outside = map.readers.empty();
        }
        return std::move(graph_);
    }

private:
    [[nodiscard]] int& map_of(TensorId id) { return map_of_tensor_[static_cast<size_t>(id)]; }

    void add_input(TensorId id) {
        const std::vector<int64_t>& dims = network_.tensor(id).dims;
        if (!dims.empty() && dims.front() > 1)
            throw InputError("input " + network_.tensor(id).name + " has a batch of " +
                             std::to_string(dims.front()) + ", expected one image");
        map_of(id) = static_cast<int>(graph_.maps.size());
        graph_.maps.push_back(map_of_dims(dims));
        graph_.maps.back().is_outside = true;
    }

    void add_layer(LayerId id) {
        const Layer& layer = network_.layer(id);
        if (is_in_place(layer)) {
            map_of(layer.output) = map_of(layer.inputs.front());
            return;
        }
        PatchLayer patch;
        patch.layer = id;
        patch.name = layer.name;
        patch.macs = layer_macs(network_, id);
        const int number = graph_.size();
        for (const TensorId input : layer.inputs) {
            const int map = map_of(input);
            if (std::find(patch.inputs.begin(), patch.inputs.end(), map) != patch.inputs.end())
                continue;
            patch.inputs.push_back(map);
            graph_.maps[static_cast<size_t>(map)].readers.push_back(number);
        }
        set_intake(patch, layer);
        map_of(layer.output) = number;
        PatchMap& output = graph_.maps[static_cast<size_t>(number)];
        output = map_of_dims(network_.tensor(layer.output).dims);
        if (patch.intake == Intake::sums) output.element_bytes = 4;
        graph_.layers.push_back(std::move(patch));
    }

    void set_intake(PatchLayer& patch, const Layer& layer) {
        patch.intake = Intake::whole;
        const bool keeps_its_shape =
            std::all_of(layer.inputs.begin(), layer.inputs.end(), [&](TensorId input) {
                const PatchMap map = map_of_dims(network_.tensor(input).dims);
                const PatchMap& held = graph_.maps[static_cast<size_t>(map_of(input))];
                return map.height == held.height && map.width == held.width;
            });
        if (!is_schedulable(network_, patch.layer)) return;
        const LayerProblem problem = layer_problem(network_, patch.layer);
        // A factor per channel or position has no window of the product.
        if (std::any_of(problem.inputs.begin(), problem.inputs.end(),
                        [](const LayerInput& input) { return input.is_pixel || input.is_plane; }))
            return;
        if (!keeps_its_shape) {
            // A fully connected layer on a map that was flattened.
            if (problem.has_weights() && patch.inputs.size() == 1) patch.intake = Intake::sums;
            return;
        }
        const auto sees_all = [](const AxisWindow& w) {
            return w.out == 1 && !w.transposed && w.pad_begin == 0 && w.dilation == 1 &&
                   w.kernel == w.in;
        };
        const bool is_one_pixel = problem.y().in == 1 && problem.x().in == 1;
        patch.window = problem.window;
        patch.macs_per_tap = patch.macs / taps_of(problem.y(), {0, problem.y().out}) /
                             taps_of(problem.x(), {0, problem.x().out});
        patch.intake = !is_one_pixel && patch.inputs.size() == 1 &&
                               problem.operation != Operation::max_pool &&
                               sees_all(problem.y()) && sees_all(problem.x())
                           ? Intake::sums
                           : Intake::windows;
    }

    const Network& network_;
    int layers_ = 0;
    PatchGraph graph_;
    std::vector<int> map_of_tensor_;
};

}  // namespace

int64_t PatchLayer::macs_of(Range rows, Range columns) const {
    return macs_per_tap * taps_of(window[0], rows) * taps_of(window[1], columns);
}

int64_t PatchGraph::macs() const {
    int64_t sum = 0;
    for (const PatchLayer& layer : layers) sum += layer.macs;
    return sum;
}

PatchGraph patch_graph(const Network& network) { return Builder(network).build(); }

}  // namespace laminate::patch_fusion
