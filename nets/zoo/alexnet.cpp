#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

Network alexnet(const std::string& name, const ZooOptions& options, int64_t height, int64_t width) {
    Builder b(name, options);
    TensorId x =
        b.conv("conv1", b.input(3, height, width), {.out = 96, .kernel = 11, .stride = 4}, relu());
    x = b.max_pool("pool1", x, 3, 2);
    x = b.conv("conv2", x, {.out = 256, .kernel = 5, .pad = 2, .groups = 2}, relu());
    x = b.max_pool("pool2", x, 3, 2);
    x = b.conv("conv3", x, {.out = 384, .pad = 1}, relu());
    x = b.conv("conv4", x, {.out = 384, .pad = 1, .groups = 2}, relu());
    x = b.conv("conv5", x, {.out = 256, .pad = 1, .groups = 2}, relu());
    x = b.max_pool("pool5", x, 3, 2);
    x = b.simple(LayerKind::flatten, "flatten", x);
    x = b.gemm("fc6", x, 4096, relu());
    x = b.gemm("fc7", x, 4096, relu());
    return b.finish(b.simple(LayerKind::softmax, "softmax", b.gemm("fc8", x, 1000)));
}

}  // namespace laminate::zoo
