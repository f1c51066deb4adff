#include "papers/depth_first/workload.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace laminate::depth_first {

namespace {

[[noreturn]] void refuse(const Layer& layer, const std::string& what) {
    throw InputError(layer.name + " (" + operation_text(layer) + "): " + what +
                     "; the depth-first model knows convolutions, pooling, fully connected layers, "
                     "concatenations and additions of two tensors");
}

/// The loops of a layer of the network. Empty if the layer moves no data of its own.
std::vector<LayerShape> shape_of(const Network& network, const Layer& layer) {
    if (layer.kind == LayerKind::general) refuse(layer, "not modelled");
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
            if (layer.inputs.size() == 1) return {};  // the other operand is a constant
            if (layer.inputs.size() > 2)
                refuse(layer, "addition of " + std::to_string(layer.inputs.size()) + " tensors");
            if (out.size() != 4) refuse(layer, "addition of tensors without rows and columns");
            shape.type = LayerType::addition;
            shape.sizes[Dim::g] = out[1];
            shape.sizes[Dim::oy] = out[2];
            shape.sizes[Dim::ox] = out[3];
            return {shape};
        case LayerKind::flatten:
        case LayerKind::softmax:
        case LayerKind::activation:
            return {};
        case LayerKind::concat:
            if (layer.axis != 1)
                refuse(layer, "concatenated along axis " + std::to_string(layer.axis));
            return {};
        case LayerKind::depth_to_space:
            // Only a reader would notice where on the map an element lies.
            if (layer.output == network.outputs.at(0)) return {};
            break;
        case LayerKind::general:
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

/// Phases of a transposed convolution along one axis with equal numbers of outputs and taps.
struct Phases {
    int64_t count = 0;
    int64_t outputs = 0;
    int64_t taps = 0;
};

std::vector<Phases> phases(OutputSpan outputs, int64_t stride, int64_t kernel) {
    std::vector<Phases> result;
    for (int64_t phase = 0; phase < stride; ++phase) {
        // Outputs of other phases that come first.
        const int64_t before = (phase - outputs.phase + stride) % stride;
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

namespace {

/// Collects the layers of a workload in the order of the network.
class WorkloadBuilder {
public:
    WorkloadBuilder(const Network& network, bool unpadded_from_output)
        : network_(network), unpadded_(unpadded_from_output) {
        workload_.name = network.name;
    }
    void add(LayerId id);
    [[nodiscard]] Workload workload() &&;

private:
    /// Channels of a tensor that a layer of the workload holds.
    struct Part {
        size_t layer;
        int64_t channels;
    };
    [[nodiscard]] const std::vector<Part>& parts_of(TensorId tensor);
    [[nodiscard]] std::vector<Part> parts_read_by(const Layer& layer);
    void check_window(const Layer& layer, const WorkloadLayer& added) const;
    void flatten_input(WorkloadLayer& added) const;
    void span_from_output();

    const Network& network_;
    bool unpadded_;
    Workload workload_;
    std::map<TensorId, std::vector<Part>> written_;
};

/// A tensor that no layer has written so far is an input of the network.
const std::vector<WorkloadBuilder::Part>& WorkloadBuilder::parts_of(TensorId tensor) {
    const auto found = written_.find(tensor);
    if (found != written_.end()) return found->second;
    const std::vector<int64_t>& dims = network_.tensor(tensor).dims;
    WorkloadLayer input{.name = network_.tensor(tensor).name};
    input.shape.sizes[Dim::k] = dims.at(1);
    input.shape.sizes[Dim::oy] = dims.size() > 2 ? dims[2] : 1;
    input.shape.sizes[Dim::ox] = dims.size() > 3 ? dims[3] : 1;
    workload_.layers.push_back(std::move(input));
    return written_[tensor] = {{workload_.layers.size() - 1, dims.at(1)}};
}

std::vector<WorkloadBuilder::Part> WorkloadBuilder::parts_read_by(const Layer& layer) {
    std::vector<Part> read;
    for (const TensorId tensor : layer.inputs) {
        const std::vector<Part>& parts = parts_of(tensor);
        read.insert(read.end(), parts.begin(), parts.end());
    }
    return read;
}

void WorkloadBuilder::check_window(const Layer& layer, const WorkloadLayer& added) const {
    const LayerShape& shape = added.shape;
    const bool is_dilated = shape.dilation != Stride{};
    if (unpadded_ && (added.transposed || is_dilated)) refuse(layer, "not known without padding");
    if (!added.transposed) return;
    if (is_dilated) refuse(layer, "dilated");
    if (shape.sizes[Dim::fx] < shape.stride.x || shape.sizes[Dim::fy] < shape.stride.y)
        refuse(layer, "stride above the kernel");
}

/// A fully connected layer reads its flattened input through one window as large as the map.
void WorkloadBuilder::flatten_input(WorkloadLayer& added) const {
    const Sizes& source = workload_.layers[added.sources[0]].shape.sizes;
    Sizes& sizes = added.shape.sizes;
    sizes[Dim::fy] = source[Dim::oy];
    sizes[Dim::fx] = source[Dim::ox];
    sizes[Dim::c] /= sizes[Dim::fy] * sizes[Dim::fx];
}

void WorkloadBuilder::add(LayerId id) {
    const Layer& layer = network_.layer(id);
    std::vector<Part> read = parts_read_by(layer);
    const std::vector<LayerShape> shapes = shape_of(network_, layer);
    if (shapes.empty()) {
        written_[layer.output] = std::move(read);
        return;
    }
    WorkloadLayer added{.name = layer.name, .layer = id, .shape = shapes[0]};
    for (const Part& part : read) added.sources.push_back(part.layer);
    added.transposed = layer.kind == LayerKind::conv_transpose;
    check_window(layer, added);
    if (!unpadded_ && (layer.kind == LayerKind::conv || added.transposed ||
                       added.shape.type == LayerType::pooling)) {
        added.pad_top = layer.window.pad_begin[0];
        added.pad_left = layer.window.pad_begin[1];
    }
    if (layer.kind == LayerKind::gemm) flatten_input(added);
    // A layer that selects channels is left out, so only the parts of a concatenation have as many
    // channels as lie there; any other reader counts the channels that it wants.
    const bool is_concatenated = read.size() > layer.inputs.size();
    for (const Part& part : read)
        added.source_channels.push_back(is_concatenated ? part.channels
                                                        : added.shape.input_channels());
    const int64_t channels = added.shape.output_channels();
    workload_.layers.push_back(std::move(added));
    written_[layer.output] = {{workload_.layers.size() - 1, channels}};
}

/// Every size but the output's becomes what the windows of the readers span.
void WorkloadBuilder::span_from_output() {
    const std::vector<std::vector<size_t>> readers = workload_.readers();
    for (size_t n = workload_.layers.size() - 1; n-- > 0;) {
        Sizes& sizes = workload_.layers[n].shape.sizes;
        sizes[Dim::ox] = 0;
        sizes[Dim::oy] = 0;
        for (const size_t reader : readers[n]) {
            const LayerShape& shape = workload_.layers[reader].shape;
            sizes[Dim::ox] = std::max(sizes[Dim::ox], shape.input_width());
            sizes[Dim::oy] = std::max(sizes[Dim::oy], shape.input_height());
        }
    }
}

Workload WorkloadBuilder::workload() && {
    if (workload_.layers.empty() || workload_.layers.back().is_input())
        throw InputError(network_.name + ": no layer to cost");
    if (unpadded_) span_from_output();
    return std::move(workload_);
}

}  // namespace

Workload workload_of(const Network& network, bool unpadded_from_output) {
    if (network.outputs.size() != 1)
        throw InputError(network.name + ": found " + std::to_string(network.outputs.size()) +
                         " outputs, expected 1 for the depth-first model");
    WorkloadBuilder builder(network, unpadded_from_output);
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) builder.add(id);
    return std::move(builder).workload();
}

}  // namespace laminate::depth_first
