#include "generators/compile/group_reference.h"

#include <algorithm>
#include <map>

#include "base/rng.h"
#include "base/units.h"
#include "nets/network/picture_views.h"
#include "nets/operators/reference_operators.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

namespace {

struct Rows {
    int64_t begin = 0;
    int64_t end = 0;
    bool operator==(const Rows&) const = default;
};

/// Rows of the input that rows `out` of the output read, and the layer with the paddings that make
/// it compute just these, or those of `computed`.
struct CroppedLayer {
    Layer layer;
    Rows in;
    Rows computed;
};

/// Rewrites the operator of a layer that copies elements, which holds the sizes of its maps, for the
/// rows of the crop.
void crop_copy(CroppedLayer& cropped, const LayerProblem& p) {
    const int64_t height = cropped.in.end - cropped.in.begin;
    const std::vector<int64_t> in{1, p.inputs.front().channels, height, p.x().in};
    GeneralOperator& general = cropped.layer.general;
    if (p.operation == Operation::concat && p.inputs.size() == 1)
        general = part_of(in,
                          {-p.inputs.front().first_output_channel, 0, -p.x().pad_begin},
                          {p[Dim::z], height, p[Dim::x]});
    if (p.operation == Operation::rearrange && !p.makes_blocks() &&
        cropped.layer.kind == LayerKind::general)
        general = repeated(in, {p.y().stride, p.x().stride});
}

CroppedLayer cropped_to(const Layer& layer, const LayerProblem& p, Rows out) {
    CroppedLayer cropped{layer, {}, out};
    Window& w = cropped.layer.window;
    const AxisWindow& y = p.y();
    if (p.operation == Operation::resample) {
        cropped.in = {y.sampled_begin(out.begin), y.sampled_end(out.end)};
        cropped.layer.general =
            sampled_rows(layer.general, cropped.in.begin, {out.begin, out.end});
        return cropped;
    }
    const int64_t reach = y.span() - 1;
    if (!y.transposed) {
        const Rows wanted{out.begin * y.stride - y.pad_begin,
                          (out.end - 1) * y.stride - y.pad_begin + reach + 1};
        cropped.in = {std::clamp<int64_t>(wanted.begin, 0, y.in - 1),
                      std::clamp<int64_t>(wanted.end, 1, y.in)};
        w.pad_begin[0] = cropped.in.begin - wanted.begin;
        w.pad_end[0] = wanted.end - cropped.in.end;
        crop_copy(cropped, p);
        return cropped;
    }
    if (p.operation == Operation::rearrange) {
        cropped.in = {out.begin / y.stride, ceil_div(out.end, y.stride)};
        cropped.computed = {cropped.in.begin * y.stride, cropped.in.end * y.stride};
        crop_copy(cropped, p);
        return cropped;
    }
    // Input row i reaches output rows i * S - pad .. i * S - pad + reach.
    const int64_t below = out.begin + y.pad_begin - reach;
    cropped.in.begin = std::clamp<int64_t>(below <= 0 ? 0 : ceil_div(below, y.stride), 0, y.in - 1);
    cropped.in.end =
        std::clamp<int64_t>((out.end - 1 + y.pad_begin) / y.stride + 1, cropped.in.begin + 1, y.in);
    w.pad_begin[0] = y.pad_begin + out.begin - cropped.in.begin * y.stride;
    const int64_t covered =
        (cropped.in.end - cropped.in.begin - 1) * y.stride + reach + 1 - w.pad_begin[0];
    w.pad_end[0] = std::max<int64_t>(0, covered - (out.end - out.begin));
    w.output_padding[0] = std::max<int64_t>(0, out.end - out.begin - covered);
    return cropped;
}

/// What a cropped layer reads of an operand.
Rows rows_of(const CroppedLayer& cropped, const LayerInput& input) {
    return input.is_pixel ? Rows{0, 1} : cropped.in;
}

/// Some rows of a tensor; everything of one that is no map.
struct Part {
    Rows rows;
    std::vector<int64_t> dims;  ///< of the part
    const float* values = nullptr;
    std::vector<float> own{};   ///< the values, unless they are another's

    Part(Rows of, std::vector<int64_t> of_dims, const float* others)
        : rows(of), dims(std::move(of_dims)), values(others) {}
    Part(Rows of, std::vector<int64_t> of_dims, std::vector<float> taken)
        : rows(of), dims(std::move(of_dims)), values(taken.data()), own(std::move(taken)) {}

    Part(Part&&) = default;

    /// Valid as long as this and the array it was made of.
    [[nodiscard]] Part cut(Rows wanted) const {
        if (is_all(wanted)) return {rows, dims, values};
        std::vector<int64_t> fewer = dims;
        fewer[2] = wanted.end - wanted.begin;
        std::vector<float> copied;
        copied.reserve(static_cast<size_t>(element_count(fewer)));
        const int64_t width = dims[3];
        for (int64_t c = 0; c < dims[1]; ++c) {
            const float* first = values + (c * dims[2] + wanted.begin - rows.begin) * width;
            copied.insert(copied.end(), first, first + fewer[2] * width);
        }
        return {wanted, std::move(fewer), std::move(copied)};
    }
    [[nodiscard]] bool is_all(Rows wanted) const { return dims.size() != 4 || wanted == rows; }
};

}  // namespace

std::vector<int64_t> image_dims(const Network& network, TensorId id) {
    std::vector<int64_t> dims = network.tensor(id).dims;
    dims.front() = 1;
    return dims;
}

bool is_steep(const Network& network, const LayerProblem& p) {
    return p.operation == Operation::divide || p.operation == Operation::power ||
           is_steep(network.layer(p.layer).activation.function);
}

bool is_steep(const Network& network, const std::vector<LayerProblem>& problems) {
    return std::ranges::any_of(problems,
                               [&](const LayerProblem& p) { return is_steep(network, p); });
}

std::vector<std::vector<float>> random_group_inputs(const Network& network,
                                                    const std::vector<LayerProblem>& problems,
                                                    uint64_t seed, int64_t around) {
    Rng rng(seed);
    const bool without_zeros = is_steep(network, problems);
    int64_t middle = 0;
    const auto number = [&] {
        if (!without_zeros) return static_cast<float>(middle + rng.between(-8, 8));
        const int64_t magnitude = rng.between(1, 8);
        return static_cast<float>(middle + (rng.chance(1, 2) ? magnitude : -magnitude));
    };
    std::vector<std::vector<float>> inputs;
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (!tensor.is_external()) break;
        inputs.emplace_back(static_cast<size_t>(element_count(image_dims(network, tensor.tensor))));
        middle += around;
        std::ranges::generate(inputs.back(), number);
    }
    return inputs;
}

std::vector<float> reference_rows(const Network& network, const std::vector<LayerProblem>& problems,
                                  const std::vector<std::vector<float>>& inputs, int64_t first,
                                  int64_t last, const AfterLayer& after) {
    std::vector<CroppedLayer> layers(problems.size());
    std::map<TensorId, Rows> wanted{{problems.back().output, {first, last}}};
    for (size_t k = problems.size(); k-- > 0;) {
        layers[k] = cropped_to(network.layer(problems[k].layer), problems[k],
                               wanted.at(problems[k].output));
        for (const LayerInput& input : problems[k].inputs) {
            const Rows in = rows_of(layers[k], input);
            Rows& rows = wanted.try_emplace(input.tensor, in).first->second;
            rows = {std::min(rows.begin, in.begin), std::max(rows.end, in.end)};
        }
    }
    std::map<TensorId, Part> parts;
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (!tensor.is_external()) break;
        const std::vector<int64_t> dims = image_dims(network, tensor.tensor);
        const Rows all{0, dims.size() == 4 ? dims[2] : 1};
        const Part whole(all, dims, inputs.at(parts.size()).data());
        parts.emplace(tensor.tensor, whole.cut(wanted.at(tensor.tensor)));
    }
    for (size_t k = 0; k < problems.size(); ++k) {
        std::vector<Part> operands;
        std::vector<std::vector<int64_t>> dims;
        std::vector<const float*> arrays;
        for (const LayerInput& input : problems[k].inputs)
            operands.push_back(parts.at(input.tensor).cut(rows_of(layers[k], input)));
        for (const Part& operand : operands) {
            dims.push_back(operand.dims);
            arrays.push_back(operand.values);
        }
        const std::vector<int64_t> output_dims = infer_output_dims(layers[k].layer, dims);
        std::vector<float> output(static_cast<size_t>(element_count(output_dims)));
        run_reference_layer(layers[k].layer, dims, arrays, output_dims, output.data(), 1);
        if (after) {
            std::vector<Operand> read;
            for (size_t e = 0; e < dims.size(); ++e) read.push_back({dims[e], arrays[e]});
            after(k, read, output_dims, output.data());
        }
        Part computed(layers[k].computed, output_dims, std::move(output));
        const Rows needed = wanted.at(problems[k].output);
        parts.emplace(problems[k].output,
                      computed.is_all(needed) ? std::move(computed) : computed.cut(needed));
    }
    return std::move(parts.at(problems.back().output).own);
}

std::vector<float> reference_output(const Network& network,
                                    const std::vector<LayerProblem>& problems,
                                    const std::vector<std::vector<float>>& inputs) {
    return reference_rows(network, problems, inputs, 0, problems.back()[Dim::y]);
}

}  // namespace laminate
