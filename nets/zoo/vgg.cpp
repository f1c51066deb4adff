#include <array>
#include <string>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

Network vgg(const std::string& name, const ZooOptions& options, int64_t height, int64_t width,
            const std::array<int, 5>& convolutions) {
    Builder b(name, options);
    TensorId x = b.input(3, height, width);
    const std::array<int64_t, 5> maps{64, 128, 256, 512, 512};
    for (size_t s = 0; s < maps.size(); ++s) {
        const std::string stage = std::to_string(s + 1);
        for (int i = 1; i <= convolutions[s]; ++i) {
            x = b.conv("conv" + stage + "_" + std::to_string(i), x, {.out = maps[s], .pad = 1},
                       relu());
        }
        x = b.max_pool("pool" + stage, x, 2, 2);
    }
    x = b.simple(LayerKind::flatten, "flatten", x);
    x = b.gemm("fc6", x, 4096, relu());
    x = b.gemm("fc7", x, 4096, relu());
    return b.finish(b.simple(LayerKind::softmax, "softmax", b.gemm("fc8", x, 1000)));
}

}  // namespace laminate::zoo
