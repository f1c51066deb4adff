// SqueezeNet (Iandola et al., 2016), versions 1.0 and 1.1 of the authors' repository.
#include <algorithm>
#include <array>
#include <string>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

Network squeezenet(const std::string& name, const ZooOptions& options, int64_t height,
                   int64_t width, bool version_1_1) {
    Builder b(name, options);
    const ConvShape stem = version_1_1 ? ConvShape{.out = 64, .kernel = 3, .stride = 2}
                                       : ConvShape{.out = 96, .kernel = 7, .stride = 2};
    TensorId x = b.conv("conv1", b.input(3, height, width), stem, relu());
    const std::array<int, 3> pooled_after =
        version_1_1 ? std::array{1, 3, 5}
                    : std::array{1, 4, 8};  // numbers of the authors: conv1, fire2 .. fire9
    for (int number = 1; number <= 9; ++number) {
        if (number > 1) {
            const std::string fire = "fire" + std::to_string(number);
            const int64_t squeezed = 16 * (number / 2);
            const TensorId s = b.conv(fire + "_squeeze", x, {.out = squeezed, .kernel = 1}, relu());
            const TensorId one =
                b.conv(fire + "_expand1x1", s, {.out = 4 * squeezed, .kernel = 1}, relu());
            const TensorId three =
                b.conv(fire + "_expand3x3", s, {.out = 4 * squeezed, .pad = 1}, relu());
            x = b.concat(fire, {one, three});
        }
        if (std::find(pooled_after.begin(), pooled_after.end(), number) != pooled_after.end())
            x = b.max_pool_ceil("pool" + std::to_string(number), x, 3, 2);
    }
    x = b.conv("conv10", x, {.out = 1000, .kernel = 1}, relu());
    x = b.simple(LayerKind::global_average_pool, "average", x);
    return b.finish(
        b.simple(LayerKind::softmax, "softmax", b.simple(LayerKind::flatten, "flatten", x)));
}

}  // namespace laminate::zoo
