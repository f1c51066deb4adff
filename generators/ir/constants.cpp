#include "generators/ir/constants.h"

#include <cassert>

namespace laminate {

int64_t ConstantBlock::append(const std::vector<float>& values) {
    constexpr size_t alignment = 16;  // elements: 64 bytes, a cache line and an AVX-512 vector
    const auto offset = static_cast<int64_t>(values_.size());
    values_.insert(values_.end(), values.begin(), values.end());
    values_.resize((values_.size() + alignment - 1) / alignment * alignment, 0.0F);
    return offset;
}

std::vector<float> canonical_weights(const Layer& layer, const LayerProblem& p) {
    const std::vector<float>& from = layer.weights->values;
    if (layer.kind != LayerKind::conv_transpose) return from;  // [z][i][n][m] already
    const int64_t area = p.y().kernel * p.x().kernel;
    const int64_t outputs = p[Dim::z] / p.groups;  // per group
    std::vector<float> to(from.size());
    for (int64_t z = 0; z < p[Dim::z]; ++z) {
        for (int64_t i = 0; i < p[Dim::i]; ++i) {
            const int64_t channel = z / outputs * p[Dim::i] + i;
            for (int64_t t = 0; t < area; ++t) {
                to[static_cast<size_t>((z * p[Dim::i] + i) * area + t)] =
                    from[static_cast<size_t>((channel * outputs + z % outputs) * area + t)];
            }
        }
    }
    return to;
}

std::vector<float> canonical_bias(const Layer& layer, const LayerProblem& p) {
    if (layer.bias) return layer.bias->values;
    return std::vector<float>(static_cast<size_t>(p[Dim::z]), 0.0F);
}

std::vector<float> canonical_slope(const Layer& layer, const LayerProblem& p) {
    if (layer.activation.kind != ActivationKind::prelu) return {};
    const std::vector<float>& slope = layer.activation.slope->values;
    if (slope.size() == 1) return std::vector<float>(static_cast<size_t>(p[Dim::z]), slope.front());
    return slope;
}

std::vector<float> packed_weights(const std::vector<float>& canonical, const LayerProblem& p,
                                  int64_t block) {
    const int64_t kn = p.y().kernel;
    const int64_t km = p.x().kernel;
    const int64_t di = p[Dim::i];
    std::vector<float> packed(
        static_cast<size_t>(ceil_div(p[Dim::z], block) * block * kn * di * km), 0.0F);
    for (int64_t z = 0; z < p[Dim::z]; ++z) {
        for (int64_t i = 0; i < di; ++i) {
            for (int64_t n = 0; n < kn; ++n) {
                for (int64_t m = 0; m < km; ++m) {
                    packed[static_cast<size_t>((((z / block * kn + n) * di + i) * km + m) * block +
                                               z % block)] =
                        canonical[static_cast<size_t>(((z * di + i) * kn + n) * km + m)];
                }
            }
        }
    }
    return packed;
}

std::vector<float> padded(std::vector<float> per_channel, int64_t block) {
    per_channel.resize(static_cast<size_t>(ceil_div(std::ssize(per_channel), block) * block), 0.0F);
    return per_channel;
}

}  // namespace laminate
