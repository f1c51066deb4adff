// Writes a zoo network layer by layer, with seeded weights. Private to nets/zoo.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "nets/network/network.h"
#include "nets/zoo/zoo.h"

namespace laminate::zoo {

[[nodiscard]] inline Activation relu() { return {.kind = ActivationKind::relu}; }
[[nodiscard]] inline Activation relu6() {
    return {.kind = ActivationKind::clip, .low = 0, .high = 6};
}

/// Rows and columns of a window; a single number sets both.
struct Extent2 {
    std::array<int64_t, 2> yx;
    Extent2(int64_t both) : yx{both, both} {}
    Extent2(int64_t y, int64_t x) : yx{y, x} {}
};

/// Parameters of a convolution with `out` output channels.
struct ConvShape {
    int64_t out = 1;
    Extent2 kernel = 3;
    int64_t stride = 1;
    Extent2 pad = 0;  ///< at both ends
    int64_t groups = 1;
    int64_t output_padding = 0;  ///< transposed only
    bool bias = true;
    /// Further factor on the variance of the weights. The last convolution of each of n residual
    /// branches takes 1/n, so that their sum stays as large as the network's input.
    double variance = 1;
};

/// Every method except input(), prelu() and finish() appends a layer and returns the tensor that it
/// writes.
class Builder {
public:
    Builder(std::string name, const ZooOptions& options);

    /// The network's input. The height and width of the options take precedence over these.
    TensorId input(int64_t channels, int64_t height, int64_t width);

    TensorId conv(const std::string& name, TensorId x, const ConvShape& shape,
                  Activation activation = {});
    TensorId conv_transpose(const std::string& name, TensorId x, const ConvShape& shape);
    /// Selects elements of the input: every `stride`-th row and column of what a window of `kernel`
    /// leaves, channels in turn (out / channels copies of each). Written as a convolution whose
    /// kernels hold a single 1 in the middle.
    TensorId select(const std::string& name, TensorId x, int64_t out, int64_t kernel,
                    int64_t stride);
    TensorId gemm(const std::string& name, TensorId x, int64_t out, Activation activation = {});

    TensorId max_pool(const std::string& name, TensorId x, int64_t kernel, int64_t stride,
                      int64_t pad = 0);
    /// Output ceil(size / stride), padded as TensorFlow does for "same": an odd element goes to the
    /// end.
    TensorId max_pool_same(const std::string& name, TensorId x, int64_t kernel, int64_t stride);
    /// Pads only the end, for a last window that begins inside the input and ends beyond it (Caffe,
    /// PyTorch's ceil_mode).
    TensorId max_pool_ceil(const std::string& name, TensorId x, int64_t kernel, int64_t stride);
    /// An odd kernel, padded by half of it, so that stride 1 keeps the size and stride 2 halves it.
    /// Averages leave padding out.
    TensorId average_pool_same(const std::string& name, TensorId x, int64_t kernel,
                               int64_t stride = 1);

    TensorId add(const std::string& name, TensorId a, TensorId b, Activation activation = {});
    /// Concatenates along the channels.
    TensorId concat(const std::string& name, std::vector<TensorId> parts);
    /// An activation as a layer of its own, for a tensor with other readers that must not see it.
    TensorId activation(const std::string& name, TensorId x, Activation activation);
    TensorId simple(LayerKind kind, const std::string& name, TensorId x);
    /// Global average pooling, one fully connected layer, softmax.
    TensorId classifier(TensorId x, int64_t classes = 1000);

    /// Slopes between 0.1 and 0.4, one per channel.
    [[nodiscard]] Activation prelu(int64_t channels);
    [[nodiscard]] const std::vector<int64_t>& dims(TensorId id) const {
        return network_.tensor(id).dims;
    }
    /// The checked network; the builder is empty afterwards.
    [[nodiscard]] Network finish(TensorId output);

private:
    TensorId tensor(const std::string& name, std::vector<int64_t> tensor_dims);
    TensorId append(Layer layer);
    TensorId convolution(LayerKind kind, const std::string& name, TensorId x,
                         const ConvShape& shape, Activation activation);
    ConstantPtr weights(std::vector<int64_t> weight_dims, double fan_in, ActivationKind after,
                        double variance);
    ConstantPtr bias(int64_t channels);

    ZooOptions options_;
    Rng rng_;
    Network network_;
};

}  // namespace laminate::zoo
