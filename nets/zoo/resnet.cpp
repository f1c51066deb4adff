#include <string>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

Network resnet(const std::string& name, const ZooOptions& options, int64_t height, int64_t width,
               const ResNetShape& shape) {
    const auto& [blocks, bottleneck, stride_in_1x1] = shape;
    Builder b(name, options);
    TensorId x = b.conv("conv1", b.input(3, height, width),
                        {.out = 64, .kernel = 7, .stride = 2, .pad = 3}, relu());
    x = b.max_pool("pool1", x, 3, 2, 1);
    const double branch_variance = 1.0 / (blocks[0] + blocks[1] + blocks[2] + blocks[3]);
    const int64_t expansion = bottleneck ? 4 : 1;
    for (size_t s = 0; s < 4; ++s) {
        const int64_t maps = int64_t{64} << s;
        for (int i = 0; i < blocks[s]; ++i) {
            const std::string block =
                "layer" + std::to_string(s + 1) + "_" + std::to_string(i) + "_";
            const int64_t stride = s > 0 && i == 0 ? 2 : 1;
            TensorId y = x;
            if (bottleneck) {
                const int64_t first = stride_in_1x1 ? stride : 1;
                y = b.conv(block + "conv1", y, {.out = maps, .kernel = 1, .stride = first}, relu());
                y = b.conv(block + "conv2", y, {.out = maps, .stride = stride / first, .pad = 1},
                           relu());
                y = b.conv(block + "conv3", y,
                           {.out = maps * expansion, .kernel = 1, .variance = branch_variance});
            } else {
                y = b.conv(block + "conv1", y, {.out = maps, .stride = stride, .pad = 1}, relu());
                y = b.conv(block + "conv2", y,
                           {.out = maps, .pad = 1, .variance = branch_variance});
            }
            if (b.dims(x)[1] != maps * expansion || stride != 1) {
                x = b.conv(block + "shortcut", x,
                           {.out = maps * expansion, .kernel = 1, .stride = stride});
            }
            x = b.add(block + "add", x, y, relu());
        }
    }
    return b.finish(b.classifier(x));
}

Network resnet_cifar(const std::string& name, const ZooOptions& options, int64_t height,
                     int64_t width, int blocks) {
    Builder b(name, options);
    TensorId x = b.conv("conv1", b.input(3, height, width), {.out = 16, .pad = 1}, relu());
    for (int s = 0; s < 3; ++s) {
        const int64_t maps = int64_t{16} << s;
        for (int i = 0; i < blocks; ++i) {
            const std::string block =
                "layer" + std::to_string(s + 1) + "_" + std::to_string(i) + "_";
            const int64_t stride = s > 0 && i == 0 ? 2 : 1;
            TensorId y =
                b.conv(block + "conv1", x, {.out = maps, .stride = stride, .pad = 1}, relu());
            y = b.conv(block + "conv2", y, {.out = maps, .pad = 1, .variance = 1.0 / (3 * blocks)});
            if (stride != 1)
                x = b.conv(block + "shortcut", x, {.out = maps, .kernel = 1, .stride = stride});
            x = b.add(block + "add", x, y, relu());
        }
    }
    return b.finish(b.classifier(x, 10));
}

}  // namespace laminate::zoo
