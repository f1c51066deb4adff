#include "nets/onnx/constant_maps.h"

#include <map>
#include <memory>
#include <utility>

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

bool is_of_two_maps(GeneralFunction function) {
    switch (function) {
        case GeneralFunction::add:
        case GeneralFunction::subtract:
        case GeneralFunction::multiply:
        case GeneralFunction::divide:
        case GeneralFunction::minimum:
        case GeneralFunction::maximum:
        case GeneralFunction::power:
        case GeneralFunction::prelu:
            return true;
        default:
            return false;
    }
}

class ConstantMaps {
public:
    explicit ConstantMaps(RawNetwork& raw) : raw_(raw) {}

    void run() {
        raw_.change_each([&](RawLayer& layer) {
            if (is_of_map(layer.layer)) write(layer);
        });
    }

private:
    [[nodiscard]] bool is_of_map(const Layer& layer) const {
        if (layer.inputs.size() != 1 || !layer.weights) return false;
        // One value beside other functions is part of an activation or of a convolution.
        if (layer.weights->values.size() == 1 && layer.general.function != GeneralFunction::power)
            return false;
        const Dims &in = raw_.dims(layer.inputs[0]), &out = raw_.dims(layer.output);
        if (out.size() != 4 || in != out) return false;
        if (layer.kind == LayerKind::add) return layer.weights->dims.size() > 1;
        return layer.kind == LayerKind::general && layer.general.kind == GeneralKind::binary &&
               is_of_two_maps(layer.general.function);
    }

    void write(RawLayer& raw) {
        Layer& layer = raw.layer;
        const bool is_first = layer.general.constant_first;
        const TensorId map = map_of(layer.weights, raw, raw_.dims(layer.output));
        layer.inputs.insert(is_first ? layer.inputs.begin() : layer.inputs.end(), map);
        layer.general.constant_first = false;
        layer.weights = nullptr;
    }

    /// A constant beside a map of `out`. Layers that share one share its map.
    TensorId map_of(const ConstantPtr& constant, const RawLayer& raw, const Dims& out) {
        Dims own(out.size() - constant->dims.size(), 1);
        own.insert(own.end(), constant->dims.begin(), constant->dims.end());
        const bool is_pixel = own[2] == 1 && own[3] == 1;
        const bool is_whole = raw.layer.kind == LayerKind::add;
        Dims dims = out;
        if (own[1] == 1 && !is_whole) dims[1] = 1;
        if (is_pixel && !is_whole) dims[2] = dims[3] = 1;
        const auto [known, is_new] = maps_.try_emplace({constant, dims}, -1);
        if (is_new)
            known->second = raw_.append_constant(spread(*constant, own, dims), raw,
                                                 raw_.name_of(raw.layer.output) + "_constant");
        return known->second;
    }

    /// The constant, of the shape `own`, with each element as often as `dims` asks for.
    [[nodiscard]] ConstantPtr spread(const Constant& constant, const Dims& own, const Dims& dims) {
        const int64_t count = element_count(dims);
        raw_.charge(static_cast<size_t>(count));
        const Dims steps = row_major_steps(own);
        std::vector<float> values;
        values.reserve(static_cast<size_t>(count));
        for (int64_t n = 0; n < count; ++n) {
            int64_t from = 0;
            int64_t rest = n;
            for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) {
                if (own[axis] > 1) from += rest % dims[axis] * steps[axis];
            }
            values.push_back(constant.values[static_cast<size_t>(from)]);
        }
        return std::make_shared<const Constant>(Constant{dims, std::move(values)});
    }

    RawNetwork& raw_;
    std::map<std::pair<ConstantPtr, Dims>, TensorId> maps_;
};

}  // namespace

void write_constants_as_maps(RawNetwork& raw) { ConstantMaps(raw).run(); }

}  // namespace laminate::onnx
