// Xception as keras.applications builds it (Chollet, "Xception: deep learning with depthwise
// separable convolutions", CVPR 2017).
#include <string>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

namespace {

constexpr double branch_variance = 1.0 / 12;  // 4 strided and 8 middle residual blocks

/// Depthwise 3x3, then 1x1; only the second one is normalised and has an activation.
TensorId separable(Builder& b, const std::string& name, TensorId x, int64_t out,
                   Activation activation = {}, double variance = 1) {
    const int64_t channels = b.dims(x)[1];
    x = b.conv(name + "_depthwise", x,
               {.out = channels, .pad = 1, .groups = channels, .bias = false});
    return b.conv(name + "_pointwise", x, {.out = out, .kernel = 1, .variance = variance},
                  activation);
}

}  // namespace

Network xception(const std::string& name, const ZooOptions& options, int64_t height,
                 int64_t width) {
    Builder b(name, options);
    TensorId x =
        b.conv("block1_conv1", b.input(3, height, width), {.out = 32, .stride = 2}, relu());
    x = b.conv("block1_conv2", x, {.out = 64}, relu());

    // Two separable convolutions and a pool beside a strided 1x1. From the second block on, blocks
    // begin with a ReLU.
    const auto strided = [&](const std::string& block, int64_t inner, int64_t out,
                             bool leading_relu) {
        const TensorId shortcut =
            b.conv(block + "_shortcut", x, {.out = out, .kernel = 1, .stride = 2});
        TensorId y = leading_relu ? b.activation(block + "_sepconv1_act", x, relu()) : x;
        y = separable(b, block + "_sepconv1", y, inner, relu());
        y = separable(b, block + "_sepconv2", y, out, {}, branch_variance);
        x = b.add(block + "_add", b.max_pool_same(block + "_pool", y, 3, 2), shortcut);
    };
    strided("block2", 128, 128, false);
    strided("block3", 256, 256, true);
    strided("block4", 728, 728, true);
    for (int n = 5; n <= 12; ++n) {
        const std::string block = "block" + std::to_string(n);
        TensorId y = b.activation(block + "_sepconv1_act", x, relu());
        y = separable(b, block + "_sepconv1", y, 728, relu());
        y = separable(b, block + "_sepconv2", y, 728, relu());
        y = separable(b, block + "_sepconv3", y, 728, {}, branch_variance);
        x = b.add(block + "_add", y, x);
    }
    strided("block13", 728, 1024, true);
    x = separable(b, "block14_sepconv1", x, 1536, relu());
    x = separable(b, "block14_sepconv2", x, 2048, relu());
    return b.finish(b.classifier(x));
}

}  // namespace laminate::zoo
