#include <array>
#include <string>
#include <utility>

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

Network mobilenet_v2(const std::string& name, const ZooOptions& options, int64_t height,
                     int64_t width) {
    struct Stage {
        int64_t expansion, out;
        int repeats;
        int64_t stride;
    };
    Builder b(name, options);
    TensorId x =
        b.conv("conv1", b.input(3, height, width), {.out = 32, .stride = 2, .pad = 1}, relu6());
    int number = 0;
    for (const Stage& stage :
         {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
          Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
        for (int i = 0; i < stage.repeats; ++i) {
            const std::string block = "block" + std::to_string(++number) + "_";
            const int64_t in = b.dims(x)[1];
            const int64_t inner = in * stage.expansion;
            const bool residual = i > 0;
            TensorId y = x;
            if (stage.expansion != 1)
                y = b.conv(block + "expand", y, {.out = inner, .kernel = 1}, relu6());
            y = b.conv(
                block + "depthwise", y,
                {.out = inner, .stride = i == 0 ? stage.stride : 1, .pad = 1, .groups = inner},
                relu6());
            y = b.conv(block + "project", y,
                       {.out = stage.out,
                        .kernel = 1,
                        .variance = residual ? 0.1 : 1.0});  // 10 residual blocks
            x = residual ? b.add(block + "add", x, y) : y;
        }
    }
    x = b.conv("conv_last", x, {.out = 1280, .kernel = 1}, relu6());
    return b.finish(b.classifier(x));
}

}  // namespace laminate::zoo
