#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

Network mobilenet_v1(const std::string& name, const ZooOptions& options, int64_t height,
                     int64_t width, int64_t pad) {
    Builder b(name, options);
    TensorId x =
        b.conv("conv1", b.input(3, height, width), {.out = 32, .stride = 2, .pad = pad}, relu6());
    const std::array<std::pair<int64_t, int64_t>, 13> blocks{{{64, 1},
                                                              {128, 2},
                                                              {128, 1},
                                                              {256, 2},
                                                              {256, 1},
                                                              {512, 2},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {1024, 2},
                                                              {1024, 1}}};
    for (size_t i = 0; i < blocks.size(); ++i) {
        const std::string number = std::to_string(i + 1);
        const int64_t channels = b.dims(x)[1];
        x = b.conv("depthwise" + number, x,
                   {.out = channels, .stride = blocks[i].second, .pad = pad, .groups = channels},
                   relu6());
        x = b.conv("pointwise" + number, x, {.out = blocks[i].first, .kernel = 1}, relu6());
    }
    return b.finish(b.classifier(x));
}

namespace {

/// `repeats` inverted residual blocks: a 1x1 convolution to `expansion` times the maps, a depthwise
/// one, and a 1x1 convolution to `out` maps, without activation. Expansion 0: no first convolution.
/// The first block has the stride. Blocks that keep the size add their input.
struct InvertedResiduals {
    int64_t expansion, out;
    int repeats;
    int64_t stride;
    int64_t kernel = 3;
};

TensorId inverted_residuals(Builder& b, TensorId x, const std::vector<InvertedResiduals>& stages) {
    int number = 0;
    for (const InvertedResiduals& stage : stages) {
        for (int i = 0; i < stage.repeats; ++i) {
            const std::string block = "block" + std::to_string(++number) + "_";
            const int64_t in = b.dims(x)[1];
            const int64_t inner = in * std::max<int64_t>(stage.expansion, 1);
            const int64_t stride = i == 0 ? stage.stride : 1;
            const bool residual = stride == 1 && in == stage.out;
            TensorId y = x;
            if (stage.expansion > 0)
                y = b.conv(block + "expand", y, {.out = inner, .kernel = 1}, relu6());
            y = b.conv(block + "depthwise", y,
                       {.out = inner,
                        .kernel = stage.kernel,
                        .stride = stride,
                        .pad = stage.kernel / 2,
                        .groups = inner},
                       relu6());
            y = b.conv(block + "project", y,
                       {.out = stage.out,
                        .kernel = 1,
                        .variance = residual ? 0.1 : 1.0});  // 10 residual blocks
            x = residual ? b.add(block + "add", x, y) : y;
        }
    }
    return x;
}

/// The stages between a first strided convolution of `first` maps and a last one of `last`.
Network classifier_of(Builder& b, TensorId input, int64_t first,
                      const std::vector<InvertedResiduals>& stages, int64_t last) {
    TensorId x = b.conv("conv1", input, {.out = first, .stride = 2, .pad = 1}, relu6());
    x = inverted_residuals(b, x, stages);
    x = b.conv("conv_last", x, {.out = last, .kernel = 1}, relu6());
    return b.finish(b.classifier(x));
}

}  // namespace

Network mobilenet_v2(const std::string& name, const ZooOptions& options, int64_t height,
                     int64_t width) {
    Builder b(name, options);
    return classifier_of(b, b.input(3, height, width), 32,
                         {{0, 16, 1, 1},
                          {6, 24, 2, 2},
                          {6, 32, 3, 2},
                          {6, 64, 4, 2},
                          {6, 96, 3, 1},
                          {6, 160, 3, 2},
                          {6, 320, 1, 1}},
                         1280);
}

Network mobilenet_v2_of_msf_cnn(const std::string& name, const ZooOptions& options, int64_t height,
                                int64_t width) {
    Builder b(name, options);
    return classifier_of(b, b.input(3, height, width), 11,
                         {{1, 5, 1, 1},
                          {6, 8, 2, 2},
                          {6, 11, 3, 2},
                          {6, 22, 4, 2},
                          {6, 33, 3, 1},
                          {6, 56, 3, 2},
                          {6, 112, 1, 1}},
                         448);
}

namespace {

/// MCUNet: a first convolution to 16 maps, and blocks chosen by a search.
Network mcunet(const std::string& name, const ZooOptions& options, int64_t height, int64_t width,
               int64_t classes, const std::vector<InvertedResiduals>& stages) {
    Builder b(name, options);
    const TensorId x =
        b.conv("conv1", b.input(3, height, width), {.out = 16, .stride = 2, .pad = 1}, relu6());
    return b.finish(b.classifier(inverted_residuals(b, x, stages), classes));
}

}  // namespace

Network mcunet_vww(const std::string& name, const ZooOptions& options, int64_t height,
                   int64_t width) {
    return mcunet(name, options, height, width, 2,
                  {{0, 8, 1, 1},
                   {6, 16, 1, 2},
                   {3, 16, 2, 1},
                   {3, 24, 1, 2, 7},
                   {6, 24, 1, 1},
                   {5, 24, 1, 1, 5},
                   {6, 40, 1, 2, 7},
                   {6, 40, 1, 1, 7},
                   {6, 48, 1, 1},
                   {4, 48, 1, 1},
                   {5, 96, 1, 2, 5},
                   {5, 96, 1, 1},
                   {4, 96, 1, 1},
                   {3, 160, 1, 1, 7}});
}

Network mcunet_imagenet(const std::string& name, const ZooOptions& options, int64_t height,
                        int64_t width) {
    return mcunet(name, options, height, width, 1000,
                  {{0, 8, 1, 1},
                   {3, 16, 1, 2, 7},
                   {5, 16, 1, 1},
                   {5, 16, 1, 1, 7},
                   {4, 16, 1, 1, 5},
                   {5, 24, 1, 2, 5},
                   {5, 24, 2, 1, 5},
                   {5, 40, 1, 2},
                   {6, 40, 1, 1, 7},
                   {4, 40, 1, 1, 5},
                   {5, 48, 1, 1, 5},
                   {5, 48, 1, 1, 7},
                   {5, 48, 1, 1},
                   {6, 96, 1, 2},
                   {5, 96, 1, 1, 7},
                   {4, 96, 1, 1},
                   {5, 160, 1, 1, 7}});
}

}  // namespace laminate::zoo
