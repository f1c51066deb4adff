#include "papers/depth_first/workload.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "papers/workload.h"

namespace laminate::depth_first {

namespace {

[[noreturn]] void refuse(const Layer& layer, const std::string& what) {
    throw InputError(layer.name + " (" + operation_text(layer) + "): " + what +
                     "; the depth-first model knows convolutions, pooling, fully connected layers, "
                     "concatenations and "
                     "additions of two tensors");
}

/// Loops of a layer of the network; none for one that moves no data of its own.
std::vector<LayerShape> shape_of(const Network& network, const Layer& layer) {
    if (layer.kind == LayerKind::general) refuse(layer, "not modelled");
    if (is_in_place(layer)) return {};
    const std::vector<int64_t>& in = network.tensor(layer.inputs.at(0)).dims;
    const std::vector<int64_t>& out = network.tensor(layer.output).dims;
    LayerShape shape;
    const auto windowed = [&](LayerType type, const Window& window) {
        for (const size_t axis : {0, 1}) {
            if (window.dilation[axis] > 1 && window.stride[axis] > 1)
                refuse(layer, "strided and dilated along one axis");
        }
        shape.type = type;
        shape.sizes[Dim::fy] = window.kernel[0];
        shape.sizes[Dim::fx] = window.kernel[1];
        shape.stride = {.x = window.stride[1], .y = window.stride[0]};
        shape.dilation = {.x = window.dilation[1], .y = window.dilation[0]};
        shape.sizes[Dim::oy] = out.at(2);
        shape.sizes[Dim::ox] = out.at(3);
    };
    switch (layer.kind) {
        case LayerKind::conv:
            if (only_selects(layer)) return {};
            [[fallthrough]];
        case LayerKind::conv_transpose:
            windowed(LayerType::convolution, layer.window);
            shape.sizes[Dim::g] = layer.groups;
            shape.sizes[Dim::k] = out[1] / layer.groups;
            shape.sizes[Dim::c] = in[1] / layer.groups;
            if (layer.groups > 1 && shape.sizes[Dim::k] == 1 && shape.sizes[Dim::c] == 1)
                shape.type = LayerType::depthwise;
            return {shape};
        case LayerKind::max_pool:
        case LayerKind::average_pool:
            windowed(LayerType::pooling, layer.window);
            shape.sizes[Dim::g] = out[1];
            return {shape};
        case LayerKind::global_average_pool:
            windowed(LayerType::pooling, {.kernel = {in.at(2), in.at(3)}});
            shape.sizes[Dim::g] = out[1];
            return {shape};
        case LayerKind::gemm:
            shape.sizes[Dim::k] = out.at(1);
            shape.sizes[Dim::c] = in.at(1);
            return {shape};
        case LayerKind::add:
            if (layer.inputs.size() > 2)
                refuse(layer, "addition of " + std::to_string(layer.inputs.size()) + " tensors");
            if (out.size() != 4) refuse(layer, "addition of tensors without rows and columns");
            shape.type = LayerType::addition;
            shape.sizes[Dim::g] = out[1];
            shape.sizes[Dim::oy] = out[2];
            shape.sizes[Dim::ox] = out[3];
            return {shape};
        case LayerKind::concat:
            if (layer.axis != 1)
                refuse(layer, "concatenated along axis " + std::to_string(layer.axis));
            return {};
        case LayerKind::depth_to_space:
            // It only says where on the map an element lies, which matters to a reader alone.
            if (layer.output == network.outputs.at(0)) return {};
            break;
        default:
            break;
    }
    refuse(layer, "not modelled");
}

}  // namespace

std::vector<std::vector<size_t>> Workload::readers() const {
    std::vector<std::vector<size_t>> result(layers.size());
    for (size_t n = 0; n < layers.size(); ++n) {
        for (const size_t source : layers[n].sources) {
            if (std::ranges::count(result[source], n) == 0) result[source].push_back(n);
        }
    }
    return result;
}

int64_t Workload::macs() const {
    int64_t sum = 0;
    for (const WorkloadLayer& layer : layers) {
        if (layer.is_input()) continue;
        for (const LayerShape& shape : executed_shapes(layer)) sum += shape.macs();
    }
    return sum;
}

namespace {

/// Phases of a transposed convolution along one axis that have as many outputs and taps.
struct Phases {
    int64_t count = 0;
    int64_t outputs = 0;
    int64_t taps = 0;
};

std::vector<Phases> phases(OutputSpan outputs, int64_t stride, int64_t kernel) {
    std::vector<Phases> result;
    for (int64_t phase = 0; phase < stride; ++phase) {
        const int64_t before =
            (phase - outputs.phase + stride) % stride;  // outputs of other phases that come first
        const Phases here{1, before < outputs.size ? ceil_div(outputs.size - before, stride) : 0,
                          ceil_div(kernel - phase, stride)};
        if (here.outputs == 0) continue;
        const auto alike = std::ranges::find_if(result, [&](const Phases& p) {
            return p.outputs == here.outputs && p.taps == here.taps;
        });
        if (alike == result.end()) {
            result.push_back(here);
        } else {
            ++alike->count;
        }
    }
    return result;
}

}  // namespace

std::vector<LayerShape> executed_shapes(const WorkloadLayer& layer, OutputSpan columns,
                                        OutputSpan rows) {
    LayerShape shape = layer.shape;
    shape.sizes[Dim::ox] = columns.size;
    shape.sizes[Dim::oy] = rows.size;
    if (!layer.transposed || layer.shape.stride == Stride{}) return {shape};
    shape.stride = {};
    std::vector<LayerShape> shapes;
    for (const Phases& down : phases(rows, layer.shape.stride.y, layer.shape.sizes[Dim::fy])) {
        for (const Phases& across :
             phases(columns, layer.shape.stride.x, layer.shape.sizes[Dim::fx])) {
            LayerShape part = shape;
            part.sizes[Dim::k] *= across.count * down.count;
            part.sizes[Dim::ox] = across.outputs;
            part.sizes[Dim::oy] = down.outputs;
            part.sizes[Dim::fx] = across.taps;
            part.sizes[Dim::fy] = down.taps;
            if (part.sizes[Dim::k] > 1 && part.type == LayerType::depthwise)
                part.type = LayerType::convolution;
            shapes.push_back(part);
        }
    }
    return shapes;
}

std::vector<LayerShape> executed_shapes(const WorkloadLayer& layer) {
    const Sizes& sizes = layer.shape.sizes;
    return executed_shapes(layer, {sizes[Dim::ox], layer.pad_left % layer.shape.stride.x},
                           {sizes[Dim::oy], layer.pad_top % layer.shape.stride.y});
}

bool only_selects(const Layer& layer) {
    if (layer.kind != LayerKind::conv || layer.bias ||
        layer.activation.kind != ActivationKind::none || !layer.weights)
        return false;
    const auto kernel = static_cast<size_t>(layer.weights->dims[1] * layer.window.kernel[0] *
                                            layer.window.kernel[1]);
    for (size_t begin = 0; begin < layer.weights->values.size(); begin += kernel) {
        size_t ones = 0;
        for (size_t i = begin; i < begin + kernel; ++i) {
            if (layer.weights->values[i] == 1) {
                ++ones;
            } else if (layer.weights->values[i] != 0) {
                return false;
            }
        }
        if (ones != 1) return false;
    }
    return true;
}

Workload workload_of(const Network& network, bool unpadded_from_output) {
    if (network.outputs.size() != 1)
        throw InputError(network.name + ": found " + std::to_string(network.outputs.size()) +
                         " outputs, expected 1 for the depth-first model");
    Workload workload;
    workload.name = network.name;
    struct Part {
        size_t layer;
        int64_t channels;
    };
    std::map<TensorId, std::vector<Part>>
        written;  // tensor -> layers of the workload that hold its channels
    const auto parts_of = [&](TensorId tensor) -> const std::vector<Part>& {
        const auto found = written.find(tensor);
        if (found != written.end()) return found->second;
        // Not written by any layer so far: an input.
        const std::vector<int64_t>& dims = network.tensor(tensor).dims;
        WorkloadLayer input{.name = network.tensor(tensor).name};
        input.shape.sizes[Dim::k] = dims.at(1);
        input.shape.sizes[Dim::oy] = dims.size() > 2 ? dims[2] : 1;
        input.shape.sizes[Dim::ox] = dims.size() > 3 ? dims[3] : 1;
        workload.layers.push_back(std::move(input));
        return written[tensor] = {{workload.layers.size() - 1, dims.at(1)}};
    };
    for (size_t id = 0; id < network.layers.size(); ++id) {
        const Layer& layer = network.layers[id];
        std::vector<Part> read;
        for (const TensorId tensor : layer.inputs) {
            const std::vector<Part>& parts = parts_of(tensor);
            read.insert(read.end(), parts.begin(), parts.end());
        }
        const std::vector<LayerShape> shapes = shape_of(network, layer);
        if (shapes.empty()) {
            written[layer.output] = std::move(read);
            continue;
        }
        WorkloadLayer added{
            .name = layer.name, .layer = static_cast<LayerId>(id), .shape = shapes[0]};
        for (const Part& part : read) added.sources.push_back(part.layer);
        added.transposed = layer.kind == LayerKind::conv_transpose;
        const Stride one;
        if (unpadded_from_output && (added.transposed || added.shape.dilation != one))
            refuse(layer, "not known without padding");
        if (added.transposed && added.shape.dilation != one) refuse(layer, "dilated");
        if (added.transposed && (added.shape.sizes[Dim::fx] < added.shape.stride.x ||
                                 added.shape.sizes[Dim::fy] < added.shape.stride.y))
            refuse(layer, "stride above the kernel");
        if (!unpadded_from_output && (layer.kind == LayerKind::conv || added.transposed ||
                                      added.shape.type == LayerType::pooling)) {
            added.pad_top = layer.window.pad_begin[0];
            added.pad_left = layer.window.pad_begin[1];
        }
        if (layer.kind == LayerKind::gemm) {
            // After flattening: one window over the whole map.
            const WorkloadLayer& source = workload.layers[added.sources[0]];
            added.shape.sizes[Dim::fy] = source.shape.sizes[Dim::oy];
            added.shape.sizes[Dim::fx] = source.shape.sizes[Dim::ox];
            const int64_t elements = added.shape.sizes[Dim::fy] * added.shape.sizes[Dim::fx];
            added.shape.sizes[Dim::c] /= elements;
        }
        // A layer that selects channels is left out: what its reader wants counts, not what lies
        // there.
        const bool concatenated = read.size() > layer.inputs.size();
        for (const Part& part : read)
            added.source_channels.push_back(concatenated ? part.channels
                                                         : added.shape.input_channels());
        const int64_t channels = added.shape.output_channels();
        workload.layers.push_back(std::move(added));
        written[layer.output] = {{workload.layers.size() - 1, channels}};
    }
    if (workload.layers.empty() || workload.layers.back().is_input())
        throw InputError(network.name + ": no layer to cost");
    if (!unpadded_from_output) return workload;

    const std::vector<std::vector<size_t>> readers = workload.readers();
    for (size_t n = workload.layers.size() - 1; n-- > 0;) {
        Sizes& sizes = workload.layers[n].shape.sizes;
        sizes[Dim::ox] = 0;
        sizes[Dim::oy] = 0;
        for (const size_t reader : readers[n]) {
            sizes[Dim::ox] = std::max(sizes[Dim::ox], workload.layers[reader].shape.input_width());
            sizes[Dim::oy] = std::max(sizes[Dim::oy], workload.layers[reader].shape.input_height());
        }
    }
    return workload;
}

}  // namespace laminate::depth_first
