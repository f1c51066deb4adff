#include "scheduler/schedule/problem.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/sampled_window.h"

namespace laminate {

int64_t AxisWindow::sampled_begin(int64_t begin) const {
    const int64_t at =
        floor_div(begin * sampling.numerator + sampling.first, sampling.denominator);
    return std::clamp<int64_t>(at, 0, in - 1 - sampling.whole_end);
}
int64_t AxisWindow::sampled_end(int64_t end) const {
    const int64_t at =
        floor_div((end - 1) * sampling.numerator + sampling.last, sampling.denominator);
    return std::clamp<int64_t>(at, sampling.whole_begin, in - 1) + 1;
}

std::optional<int64_t> AxisWindow::input(int64_t out_at, int64_t tap) const {
    if (is_sampled()) {
        const int64_t at = sampled_begin(out_at) + tap;
        return at < sampled_end(out_at + 1) ? std::optional(at) : std::nullopt;
    }
    int64_t at = out_at * stride + tap * dilation - pad_begin;
    if (transposed) {
        const int64_t scaled = out_at + pad_begin - tap * dilation;
        if (scaled < 0 || scaled % stride != 0) return std::nullopt;
        at = scaled / stride;
    }
    return at >= 0 && at < in ? std::optional(at) : std::nullopt;
}

Elements LayerProblem::weight_elements() const {
    return has_weights() ? Elements(y().kernel) * x().kernel * extent[Dim::i] * extent[Dim::z]
                         : Elements{};
}
Elements LayerProblem::output_elements() const {
    return Elements(extent[Dim::z]) * extent[Dim::y] * extent[Dim::x];
}
Elements LayerProblem::input_elements() const {
    Elements sum;
    for (int operand = 0; operand < std::ssize(inputs); ++operand) {
        const auto [channels, rows, columns] = operand_extents(operand);
        sum += Elements(channels) * rows * columns;
    }
    return sum;
}
std::array<int64_t, 3> LayerProblem::operand_extents(int operand) const {
    const LayerInput& input = inputs[static_cast<size_t>(operand)];
    if (input.is_pixel) return {input.channels, 1, 1};
    return {input.channels, y().in, x().in};
}

namespace {

/// Whether the window of every output coordinate reaches at least one real input, as it does in
/// every sensible layer. Otherwise parts of the output depend on padding alone, and a needed region
/// can be empty in the middle of a loop.
bool windows_reach_input(const AxisWindow& w) {
    if (w.is_sampled()) return true;
    // Away from the borders all outputs reach an input: tap 0, or in a transposed window every tap
    // that the stride does not leave out. The check runs for every schedule that is built, so it
    // skips these outputs.
    const int64_t alike_from = w.transposed
                                   ? std::max<int64_t>(0, w.span() - 1 - w.pad_begin) + w.stride
                                   : ceil_div(std::max<int64_t>(w.pad_begin, 0), w.stride);
    const int64_t alike_to =
        w.transposed ? (w.in - 1) * w.stride - w.pad_begin : (w.in - 1 + w.pad_begin) / w.stride;
    for (int64_t out = 0; out < w.out; ++out) {
        if (out >= alike_from && out <= alike_to) {
            out = alike_to;
            continue;
        }
        bool reaches = false;
        for (int64_t tap = 0; tap < w.kernel && !reaches; ++tap)
            reaches = w.input(out, tap).has_value();
        if (!reaches) return false;
    }
    // The tap sets of a strided and dilated transposed window are no intervals.
    return !w.transposed || w.dilation == 1 || w.stride == 1;
}

bool is_one_pixel(const std::vector<int64_t>& dims) { return dims[2] == 1 && dims[3] == 1; }

/// Of a general layer that computes each output from two elements in its place, or in the place of
/// which one operand has one element for all rows and columns, or for all channels.
std::optional<Operation> elementwise_operation(const Network& network, const Layer& layer) {
    const GeneralOperator& general = layer.general;
    if (general.kind != GeneralKind::binary || layer.inputs.size() != 2 ||
        layer.inputs[0] == layer.inputs[1])
        return {};
    const std::vector<int64_t>& out = network.tensor(layer.output).dims;
    bool is_whole = false;
    for (const TensorId id : layer.inputs) {
        const std::vector<int64_t>& dims = network.tensor(id).dims;
        const bool has_pixels = std::equal(dims.begin() + 2, dims.end(), out.begin() + 2);
        if (dims[0] != out[0] || (dims[1] != out[1] && dims[1] != 1) ||
            (!has_pixels && !is_one_pixel(dims)))
            return {};
        is_whole = is_whole || dims == out;
    }
    if (!is_whole) return {};
    switch (general.function) {
        case GeneralFunction::add:
            return Operation::add;
        case GeneralFunction::subtract:
            return Operation::subtract;
        case GeneralFunction::multiply:
            return Operation::multiply;
        case GeneralFunction::divide:
            return Operation::divide;
        case GeneralFunction::minimum:
            return Operation::minimum;
        case GeneralFunction::maximum:
            return Operation::maximum;
        case GeneralFunction::power:
            return Operation::power;
        case GeneralFunction::prelu:
            return Operation::prelu;
        default:
            return {};
    }
}

/// Copies of an element along an axis. Code stores all of them at once, in vectors that so many
/// copies make longer.
constexpr int64_t most_repeated = 8;

/// Whether a general layer repeats all rows and columns of its map, and no more often than code does.
bool is_repeated(const Network& network, const Layer& layer) {
    const auto times = repetitions_of(layer.general, network.tensor(layer.inputs[0]).dims);
    return times && std::ranges::max(*times) <= most_repeated;
}

std::optional<Operation> operation_of(const Network& network, const Layer& layer) {
    const auto is_feature_map = [&](TensorId id) { return network.tensor(id).dims.size() == 4; };
    if (layer.kind == LayerKind::gemm) return Operation::multiply_accumulate;
    if (!is_feature_map(layer.output) ||
        !std::all_of(layer.inputs.begin(), layer.inputs.end(), is_feature_map))
        return {};
    const std::set<TensorId> distinct(layer.inputs.begin(), layer.inputs.end());
    const bool joins = layer.inputs.size() > 1 && distinct.size() == layer.inputs.size();
    const bool has_no_activation = layer.activation.kind == ActivationKind::none;
    switch (layer.kind) {
        case LayerKind::conv:
        case LayerKind::conv_transpose:
            return Operation::multiply_accumulate;
        case LayerKind::max_pool:
            return Operation::max_pool;
        case LayerKind::average_pool:
        case LayerKind::global_average_pool:
            return Operation::average_pool;
        case LayerKind::add:
            return joins ? std::optional(Operation::add) : std::nullopt;
        case LayerKind::concat:
            return joins && layer.axis == 1 ? std::optional(Operation::concat) : std::nullopt;
        case LayerKind::activation:
            return Operation::pointwise;
        case LayerKind::softmax:
            return normalisation_of(layer) ? std::optional(Operation::normalise) : std::nullopt;
        case LayerKind::depth_to_space:
            if (!has_no_activation || layer.block > most_repeated) return {};
            return Operation::rearrange;
        case LayerKind::general:
            if (!has_no_activation) return {};
            if (layer.inputs.size() != 1) return elementwise_operation(network, layer);
            if (first_of_part(layer.general, network.tensor(layer.inputs[0]).dims))
                return Operation::concat;
            if (is_repeated(network, layer)) return Operation::rearrange;
            if (layer.general.kind == GeneralKind::blocks && layer.general.kernel[0] <= most_repeated)
                return Operation::rearrange;
            if (samples_pixels(layer.general, network.tensor(layer.inputs[0]).dims))
                return Operation::resample;
            if (normalisation_of(layer)) return Operation::normalise;
            if (const auto extreme = extreme_of_channels(layer))
                return *extreme == GeneralFunction::largest ? Operation::largest_channel
                                                            : Operation::smallest_channel;
            return {};
        default:
            return {};
    }
}

/// Returns nullopt for layers of other kinds.
std::optional<LayerProblem> problem_of(const Network& network, LayerId id) {
    const Layer& layer = network.layer(id);
    const std::optional<Operation> operation = operation_of(network, layer);
    if (!operation) return {};
    LayerProblem p;
    p.layer = id;
    p.name = layer.name;
    p.operation = *operation;
    p.output = layer.output;
    const std::vector<int64_t>& out = network.tensor(p.output).dims;
    // An operand of an elementwise operation may be smaller than the others.
    const std::vector<int64_t>& in =
        is_elementwise(*operation) ? out : network.tensor(layer.inputs.at(0)).dims;
    int64_t channels = 0;
    for (const TensorId tensor : layer.inputs) {
        const Tensor& t = network.tensor(tensor);
        p.inputs.push_back(
            {tensor, t.name, t.dims.at(1), *operation == Operation::concat ? channels : 0});
        channels += t.dims.at(1);
        if (!is_elementwise(*operation)) continue;
        p.inputs.back().is_pixel = is_one_pixel(t.dims) && !is_one_pixel(out);
        p.inputs.back().is_plane = t.dims[1] != out[1];
    }
    if (layer.kind == LayerKind::gemm) {
        p.extent = {out.at(1), 1, 1, in.at(1)};
        return p;
    }
    p.groups = p.has_weights() ? layer.groups : out.at(1);
    p.extent = {out.at(1), out.at(2), out.at(3), p.has_weights() ? in.at(1) / layer.groups : 1};
    if (layer.kind == LayerKind::depth_to_space) {
        // DCR takes the channels of an output from all over the input.
        p.groups = layer.depth_to_space_crd ? out.at(1) : 1;
        p.extent[Dim::i] = in.at(1) / p.groups;
    }
    if (layer.kind == LayerKind::general && layer.general.kind == GeneralKind::blocks) {
        p.shuffle = layer.general.first;
        p.groups = p.shuffle == 1 ? in.at(1) : 1;
        p.extent[Dim::i] = in.at(1) / p.groups;
    }
    if (*operation == Operation::normalise || is_extreme_of_channels(*operation)) {
        p.groups = 1;
        p.extent[Dim::i] = in.at(1);
    }
    for (size_t axis = 0; axis < 2; ++axis) {
        AxisWindow& w = p.window[axis];
        w = *operation == Operation::resample ? sampled_window(layer.general, axis, in.at(2 + axis))
                                              : axis_window(network, layer, axis);
        w.in = in.at(2 + axis);
        w.out = out.at(2 + axis);
        if (layer.kind == LayerKind::global_average_pool) w.kernel = w.in;
    }
    if (const auto first = first_of_part(layer.general, in);
        layer.kind == LayerKind::general && first) {
        p.inputs.front().first_output_channel = -(*first)[0];
        p.window[0].pad_begin = -(*first)[1];
        p.window[1].pad_begin = -(*first)[2];
    }
    return p;
}

}  // namespace

AxisWindow axis_window(const Network& network, const Layer& layer, size_t axis) {
    AxisWindow w;
    if (layer.kind == LayerKind::depth_to_space) {
        w.transposed = true;
        w.kernel = w.stride = layer.block;
        return w;
    }
    if (layer.kind == LayerKind::general && layer.general.kind == GeneralKind::resample) {
        const auto times = repetitions_of(layer.general, network.tensor(layer.inputs[0]).dims);
        if (!times) return w;
        w.transposed = true;
        w.kernel = w.stride = (*times)[axis];
        return w;
    }
    if (layer.kind == LayerKind::general && layer.general.kind == GeneralKind::blocks) {
        w.kernel = w.stride = layer.general.kernel[0];
        return w;
    }
    const bool has_window =
        layer.kind == LayerKind::conv || layer.kind == LayerKind::conv_transpose ||
        layer.kind == LayerKind::max_pool || layer.kind == LayerKind::average_pool;
    if (!has_window) return w;
    w.transposed = layer.kind == LayerKind::conv_transpose;
    w.kernel = layer.window.kernel[axis];
    w.stride = layer.window.stride[axis];
    w.dilation = layer.window.dilation[axis];
    w.pad_begin = layer.window.pad_begin[axis];
    return w;
}

namespace {

/// Returns nullopt for layers that cannot be scheduled.
std::optional<LayerProblem> schedulable_problem(const Network& network, LayerId id) {
    std::optional<LayerProblem> p = problem_of(network, id);
    if (p && !(windows_reach_input(p->y()) && windows_reach_input(p->x()))) p.reset();
    return p;
}

}  // namespace

bool is_schedulable(const Network& network, LayerId id) {
    return schedulable_problem(network, id).has_value();
}

bool must_be_scheduled(const Network& network, LayerId id) {
    const std::optional<LayerProblem> p = schedulable_problem(network, id);
    return p && p->has_weights();
}

LayerProblem layer_problem(const Network& network, LayerId id) {
    std::optional<LayerProblem> p = schedulable_problem(network, id);
    if (!p) {
        const Layer& layer = network.layer(id);
        throw InputError("layer " + layer.name + ": a " + operation_text(layer) +
                         " of this shape cannot be scheduled; see is_schedulable");
    }
    return *std::move(p);
}

std::vector<LayerProblem> layer_problems(const Network& network,
                                         const std::vector<LayerId>& layers) {
    std::vector<LayerProblem> problems;
    for (const LayerId id : layers) problems.push_back(layer_problem(network, id));
    return problems;
}

void append_window(std::vector<int64_t>& key, const AxisWindow& w) {
    const Sampling& s = w.sampling;
    key.insert(key.end(), {w.transposed ? 1 : 0, w.kernel, w.stride, w.dilation, w.pad_begin, w.in,
                           w.out, s.numerator, s.denominator, s.first, s.last, s.whole_begin,
                           s.whole_end});
}

std::vector<int64_t> shape_key(const std::vector<LayerProblem>& problems) {
    std::vector<int64_t> key;
    std::map<TensorId, int64_t> numbers;
    for (const LayerProblem& p : problems) {
        key.push_back(static_cast<int64_t>(p.operation));
        key.insert(key.end(), p.extent.begin(), p.extent.end());
        key.insert(key.end(), {p.groups, p.shuffle});
        for (const AxisWindow& w : p.window)
            append_window(key, w);
        key.push_back(static_cast<int64_t>(p.inputs.size()));
        for (const LayerInput& input : p.inputs) {
            key.push_back(
                numbers.emplace(input.tensor, static_cast<int64_t>(numbers.size())).first->second);
            key.insert(key.end(), {input.channels, input.first_output_channel,
                                   input.is_pixel ? 1 : 0, input.is_plane ? 1 : 0});
        }
        key.push_back(
            numbers.emplace(p.output, static_cast<int64_t>(numbers.size())).first->second);
    }
    return key;
}

std::vector<std::vector<LayerId>> schedulable_chains(const Network& network) {
    const auto count = static_cast<LayerId>(network.layers.size());
    std::vector<bool> taken(network.layers.size(), false);
    std::vector<std::vector<LayerId>> chains;
    for (LayerId first = 0; first < count; ++first) {
        if (taken[static_cast<size_t>(first)] || !must_be_scheduled(network, first)) continue;
        std::vector<LayerId> chain;
        for (LayerId id = first;;) {
            taken[static_cast<size_t>(id)] = true;
            chain.push_back(id);
            const TensorId out = network.layer(id).output;
            const std::vector<LayerId> readers = network.consumers(out);
            if (network.is_output(out) || readers.size() != 1) break;
            const LayerId next = readers.front();
            if (taken[static_cast<size_t>(next)] || !must_be_scheduled(network, next)) break;
            id = next;
        }
        chains.push_back(std::move(chain));
    }
    return chains;
}

}  // namespace laminate
