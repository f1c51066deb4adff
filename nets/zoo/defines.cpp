#include <string>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

// The five networks of DeFiNES (HPCA 2023, Table I(b)) with the shapes of its public artifact. No
// layer is padded, so maps shrink from layer to layer and inputs are larger than in the original
// networks. MobileNetV1 is in mobilenet.cpp.

Network fsrcnn_defines(const std::string& name, const ZooOptions& options, int64_t height,
                       int64_t width) {
    Builder b(name, options);
    const auto block = [&](const std::string& layer, TensorId x, int64_t out, int64_t kernel) {
        return b.conv(layer, x, {.out = out, .kernel = kernel}, b.prelu(out));
    };
    TensorId x = block("feature", b.input(1, height, width), 56, 5);
    x = block("shrink", x, 12, 1);
    for (int i = 1; i <= 4; ++i) x = block("map" + std::to_string(i), x, 12, 3);
    x = block("expand", x, 56, 1);
    // The transposed convolution, written as 4 x 4 sub-pixels.
    return b.finish(b.conv("reconstruct", x, {.out = 16}));
}

Network plain_trunk_defines(const std::string& name, const ZooOptions& options, int64_t in,
                            int64_t height, int64_t width, int depth, int64_t out) {
    Builder b(name, options);
    TensorId x = b.input(in, height, width);
    for (int i = 1; i < depth; ++i) x = b.conv("conv" + std::to_string(i), x, {.out = 64}, relu());
    return b.finish(b.conv("conv" + std::to_string(depth), x, {.out = out}));
}

Network resnet18_defines(const std::string& name, const ZooOptions& options, int64_t height,
                         int64_t width) {
    Builder b(name, options);
    TensorId x =
        b.conv("conv1", b.input(3, height, width), {.out = 64, .kernel = 7, .stride = 2}, relu());
    x = b.max_pool("pool1", x, 3, 2);
    for (int stage = 1; stage <= 4; ++stage) {
        const int64_t maps = int64_t{32} << stage;
        for (int i = 0; i < 2; ++i) {
            const std::string block =
                "layer" + std::to_string(stage) + "_" + std::to_string(i) + "_";
            const int64_t stride = stage > 1 && i == 0 ? 2 : 1;
            TensorId y = b.conv(block + "conv1", x, {.out = maps, .stride = stride}, relu());
            y = b.conv(block + "conv2", y, {.out = maps, .variance = 1.0 / 8});
            // Two 3x3 windows without padding lose two columns at either end; a first one of stride
            // 2 loses half as many again.
            x = b.add(block + "add",
                      b.select(block + "shortcut", x, maps, stride == 1 ? 5 : 7, stride), y,
                      relu());
        }
    }
    return b.finish(b.classifier(x));
}

}  // namespace laminate::zoo
