#include <string>
#include <vector>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

// Chains of convolutions without pooling.

Network convfusion(const std::string& name, const ZooOptions& options, int64_t height,
                   int64_t width, const std::vector<int64_t>& maps) {
    Builder b(name, options);
    TensorId x = b.input(3, height, width);
    for (size_t i = 0; i < maps.size(); ++i)
        x = b.conv("conv" + std::to_string(i + 1), x, {.out = maps[i], .bias = false});
    return b.finish(x);
}

Network fsrcnn(const std::string& name, const ZooOptions& options, int64_t height, int64_t width,
               bool upscale) {
    Builder b(name, options);
    const auto block = [&](const std::string& layer, TensorId x, int64_t out, int64_t kernel) {
        return b.conv(layer, x, {.out = out, .kernel = kernel, .pad = kernel / 2}, b.prelu(out));
    };
    TensorId x = block("feature", b.input(1, height, width), 56, 5);
    x = block("shrink", x, 12, 1);
    for (int i = 1; i <= 4; ++i) x = block("map" + std::to_string(i), x, 12, 3);
    x = block("expand", x, 56, 1);
    if (upscale)
        return b.finish(b.conv_transpose(
            "deconv", x, {.out = 1, .kernel = 9, .stride = 2, .pad = 4, .output_padding = 1}));
    return b.finish(b.conv("reconstruct", x, {.out = 1, .kernel = 9, .pad = 4}));
}

Network plain_trunk(const std::string& name, const ZooOptions& options, int64_t in, int64_t height,
                    int64_t width, int depth, int64_t maps, int64_t out) {
    Builder b(name, options);
    TensorId x = b.input(in, height, width);
    for (int i = 1; i < depth; ++i)
        x = b.conv("conv" + std::to_string(i), x, {.out = maps, .pad = 1}, relu());
    return b.finish(b.conv("conv" + std::to_string(depth), x, {.out = out, .pad = 1}));
}

}  // namespace laminate::zoo
