// GoogLeNet (Szegedy et al., "Going deeper with convolutions", CVPR 2015, Table 1); pools as in
// Caffe's reference model.
#include <array>
#include <string>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

namespace {

/// Columns of the paper's Table 1.
struct InceptionMaps {
    int64_t one, three_reduce, three, five_reduce, five, pool;
};

TensorId inception(Builder& b, const std::string& name, TensorId x, const InceptionMaps& maps) {
    const auto conv = [&](const char* part, TensorId from, int64_t out, int64_t kernel) {
        return b.conv(name + "_" + part, from, {.out = out, .kernel = kernel, .pad = kernel / 2},
                      relu());
    };
    const TensorId one = conv("1x1", x, maps.one, 1);
    const TensorId three = conv("3x3", conv("3x3_reduce", x, maps.three_reduce, 1), maps.three, 3);
    const TensorId five = conv("5x5", conv("5x5_reduce", x, maps.five_reduce, 1), maps.five, 5);
    const TensorId pool = conv("pool_1x1", b.max_pool(name + "_pool", x, 3, 1, 1), maps.pool, 1);
    return b.concat(name, {one, three, five, pool});
}

}  // namespace

Network googlenet(const std::string& name, const ZooOptions& options, int64_t height,
                  int64_t width) {
    Builder b(name, options);
    TensorId x = b.conv("conv1", b.input(3, height, width),
                        {.out = 64, .kernel = 7, .stride = 2, .pad = 3}, relu());
    x = b.max_pool_ceil("pool1", x, 3, 2);
    x = b.conv("conv2_reduce", x, {.out = 64, .kernel = 1}, relu());
    x = b.conv("conv2", x, {.out = 192, .pad = 1}, relu());
    x = b.max_pool_ceil("pool2", x, 3, 2);
    x = inception(b, "inception3a", x, {64, 96, 128, 16, 32, 32});
    x = inception(b, "inception3b", x, {128, 128, 192, 32, 96, 64});
    x = b.max_pool_ceil("pool3", x, 3, 2);
    x = inception(b, "inception4a", x, {192, 96, 208, 16, 48, 64});
    x = inception(b, "inception4b", x, {160, 112, 224, 24, 64, 64});
    x = inception(b, "inception4c", x, {128, 128, 256, 24, 64, 64});
    x = inception(b, "inception4d", x, {112, 144, 288, 32, 64, 64});
    x = inception(b, "inception4e", x, {256, 160, 320, 32, 128, 128});
    x = b.max_pool_ceil("pool4", x, 3, 2);
    x = inception(b, "inception5a", x, {256, 160, 320, 32, 128, 128});
    x = inception(b, "inception5b", x, {384, 192, 384, 48, 128, 128});
    return b.finish(b.classifier(x));
}

}  // namespace laminate::zoo
