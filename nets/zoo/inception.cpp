// InceptionV3 as keras.applications builds it (Szegedy et al., "Rethinking the Inception
// architecture", CVPR 2016).
#include <string>
#include <utility>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

namespace {

/// One module: branches from `x` to a concatenation named after the module, as Keras names it
/// ("mixed0").
class Module {
public:
    Module(Builder& builder, std::string name, TensorId x)
        : b_(builder), name_(std::move(name)), x_(x) {}

    [[nodiscard]] TensorId x() const { return x_; }

    /// Stride 1, size unchanged, ReLU.
    TensorId same(const std::string& branch, TensorId from, int64_t out, Extent2 kernel) {
        const auto [rows, columns] = kernel.yx;
        return b_.conv(name_ + "_" + branch, from,
                       {.out = out, .kernel = kernel, .pad = {rows / 2, columns / 2}}, relu());
    }
    /// 3x3, stride 2, no padding, ReLU.
    TensorId halve(const std::string& branch, TensorId from, int64_t out) {
        return b_.conv(name_ + "_" + branch, from, {.out = out, .stride = 2}, relu());
    }
    TensorId average(int64_t out) {
        return same("pool_1x1", b_.average_pool_same(name_ + "_pool", x_, 3), out, 1);
    }
    TensorId max() { return b_.max_pool(name_ + "_pool", x_, 3, 2); }
    TensorId join(const std::string& suffix, std::vector<TensorId> branches) {
        return b_.concat(name_ + suffix, std::move(branches));
    }

private:
    Builder& b_;
    std::string name_;
    TensorId x_;
};

/// 35 x 35: 1x1, 5x5, two 3x3, pool.
TensorId module_a(Module m, int64_t pool_maps) {
    const TensorId one = m.same("1x1", m.x(), 64, 1);
    const TensorId five = m.same("5x5_2", m.same("5x5_1", m.x(), 48, 1), 64, 5);
    TensorId twice = m.same("3x3dbl_2", m.same("3x3dbl_1", m.x(), 64, 1), 96, 3);
    twice = m.same("3x3dbl_3", twice, 96, 3);
    return m.join("", {one, five, twice, m.average(pool_maps)});
}

/// 17 x 17: 1x1, one factorised 7x7, two of them, pool; `maps` inside the branches.
TensorId module_b(Module m, int64_t maps) {
    const TensorId one = m.same("1x1", m.x(), 192, 1);
    TensorId once = m.same("7x7_2", m.same("7x7_1", m.x(), maps, 1), maps, {1, 7});
    once = m.same("7x7_3", once, 192, {7, 1});
    TensorId twice = m.same("7x7dbl_2", m.same("7x7dbl_1", m.x(), maps, 1), maps, {7, 1});
    twice = m.same("7x7dbl_4", m.same("7x7dbl_3", twice, maps, {1, 7}), maps, {7, 1});
    twice = m.same("7x7dbl_5", twice, 192, {1, 7});
    return m.join("", {one, once, twice, m.average(192)});
}

/// 8 x 8: 1x1, 3x3 split into its row and its column, the same after a 3x3, pool.
TensorId module_c(Module m) {
    const TensorId one = m.same("1x1", m.x(), 320, 1);
    const auto split = [&](const std::string& branch, TensorId from) {
        const TensorId row = m.same(branch + "_row", from, 384, {1, 3});
        return m.join("_" + branch, {row, m.same(branch + "_column", from, 384, {3, 1})});
    };
    const TensorId once = split("3x3", m.same("3x3_1", m.x(), 384, 1));
    const TensorId twice =
        split("3x3dbl", m.same("3x3dbl_2", m.same("3x3dbl_1", m.x(), 448, 1), 384, 3));
    return m.join("", {one, once, twice, m.average(192)});
}

}  // namespace

Network inception_v3(const std::string& name, const ZooOptions& options, int64_t height,
                     int64_t width) {
    Builder b(name, options);
    TensorId x = b.conv("conv1", b.input(3, height, width), {.out = 32, .stride = 2}, relu());
    x = b.conv("conv2", x, {.out = 32}, relu());
    x = b.conv("conv3", x, {.out = 64, .pad = 1}, relu());
    x = b.max_pool("pool1", x, 3, 2);
    x = b.conv("conv4", x, {.out = 80, .kernel = 1}, relu());
    x = b.conv("conv5", x, {.out = 192}, relu());
    x = b.max_pool("pool2", x, 3, 2);

    x = module_a({b, "mixed0", x}, 32);
    x = module_a({b, "mixed1", x}, 64);
    x = module_a({b, "mixed2", x}, 64);
    {
        Module m(b, "mixed3", x);
        const TensorId once = m.halve("3x3", x, 384);
        const TensorId twice =
            m.halve("3x3dbl_3", m.same("3x3dbl_2", m.same("3x3dbl_1", x, 64, 1), 96, 3), 96);
        x = m.join("", {once, twice, m.max()});
    }
    x = module_b({b, "mixed4", x}, 128);
    x = module_b({b, "mixed5", x}, 160);
    x = module_b({b, "mixed6", x}, 160);
    x = module_b({b, "mixed7", x}, 192);
    {
        Module m(b, "mixed8", x);
        const TensorId three = m.halve("3x3_2", m.same("3x3_1", x, 192, 1), 320);
        const TensorId seven = m.same("7x7x3_2", m.same("7x7x3_1", x, 192, 1), 192, {1, 7});
        x = m.join(
            "", {three, m.halve("7x7x3_4", m.same("7x7x3_3", seven, 192, {7, 1}), 192), m.max()});
    }
    x = module_c({b, "mixed9", x});
    x = module_c({b, "mixed10", x});
    return b.finish(b.classifier(x));
}

}  // namespace laminate::zoo
