// NASNet-A (Zoph et al., "Learning transferable architectures for scalable image recognition", CVPR
// 2018), as keras.applications builds it.
#include <map>
#include <string>

#include "nets/zoo/builder.h"
#include "nets/zoo/recipes.h"

namespace laminate::zoo {

namespace {

/// By tensor: up to four convolutions of a cell, and two cells, read the same tensor rectified.
using Rectified = std::map<TensorId, TensorId>;

/// A cell reads the last output `h` and the one before it, `p`, both brought to its number of
/// filters. The first cell's `p` is the stem, unchanged.
class Cell {
public:
    Cell(Builder& builder, Rectified& rectified, const std::string& name, TensorId last,
         TensorId older, int64_t filters)
        : b_(builder),
          rectified_(rectified),
          name_(name + "_"),
          filters_(filters),
          h_(squeeze("h", last, 1)),
          p_(older) {
        const int64_t stride = b_.dims(older)[2] == b_.dims(last)[2] ? 1 : 2;
        if (older != last && (stride != 1 || b_.dims(older)[1] != filters))
            p_ = squeeze("p", older, stride);
    }

    TensorId normal() {
        const TensorId b1 =
            add("b1", separable("b1_h5x5", h_, 5, 1), separable("b1_p3x3", p_, 3, 1));
        const TensorId b2 =
            add("b2", separable("b2_p5x5", p_, 5, 1), separable("b2_p3x3", p_, 3, 1));
        const TensorId b3 = add("b3", b_.average_pool_same(name_ + "b3_pool", h_, 3), p_);
        const TensorId pooled = b_.average_pool_same(name_ + "b4_pool", p_, 3);
        const TensorId b4 = add("b4", pooled, pooled);
        const TensorId b5 = add("b5", separable("b5_h3x3", h_, 3, 1), h_);
        return b_.concat(name_ + "join", {p_, b1, b2, b3, b4, b5});
    }

    TensorId reduction() {
        const TensorId b1 =
            add("b1", separable("b1_h5x5", h_, 5, 2), separable("b1_p7x7", p_, 7, 2));
        const TensorId largest = b_.max_pool(name_ + "largest", h_, 3, 2, 1);
        const TensorId b2 = add("b2", largest, separable("b2_p7x7", p_, 7, 2));
        const TensorId b3 = add("b3", b_.average_pool_same(name_ + "b3_pool", h_, 3, 2),
                                separable("b3_p5x5", p_, 5, 2));
        const TensorId b4 = add("b4", b_.average_pool_same(name_ + "b4_pool", b1, 3), b2);
        const TensorId b5 = add("b5", separable("b5_3x3", b1, 3, 1), largest);
        return b_.concat(name_ + "join", {b2, b3, b4, b5});
    }

private:
    TensorId rectified(const std::string& name, TensorId x) {
        const auto found = rectified_.find(x);
        if (found != rectified_.end()) return found->second;
        return rectified_[x] = b_.activation(name_ + name + "_relu", x, relu());
    }
    TensorId squeeze(const std::string& name, TensorId x, int64_t stride) {
        return b_.conv(name_ + name, rectified(name, x),
                       {.out = filters_, .kernel = 1, .stride = stride});
    }
    TensorId add(const std::string& name, TensorId a, TensorId b) {
        return b_.add(name_ + name, a, b);
    }
    /// Two times a rectifier, a depthwise and a 1x1 convolution; the first depthwise one has the
    /// stride.
    TensorId separable(const std::string& name, TensorId x, int64_t kernel, int64_t stride) {
        x = rectified(name, x);
        for (const char* pass : {"_1", "_2"}) {
            const bool first = pass[1] == '1';
            const int64_t channels = b_.dims(x)[1];
            x = b_.conv(name_ + name + pass + "_depthwise", x,
                        {.out = channels,
                         .kernel = kernel,
                         .stride = first ? stride : 1,
                         .pad = kernel / 2,
                         .groups = channels,
                         .bias = false});
            x = b_.conv(name_ + name + pass + "_pointwise", x, {.out = filters_, .kernel = 1},
                        first ? relu() : Activation{});
        }
        return x;
    }

    Builder& b_;
    Rectified& rectified_;
    std::string name_;
    int64_t filters_;
    TensorId h_;
    TensorId p_;
};

}  // namespace

Network nasnet_a(const std::string& name, const ZooOptions& options, int64_t height, int64_t width,
                 int cells, int64_t filters) {
    Builder b(name, options);
    Rectified rectified;
    const int64_t first =
        filters / 24;  // the last cells join six tensors of four times as many filters
    TensorId older = b.conv("stem", b.input(3, height, width), {.out = 32, .stride = 2});
    TensorId last = Cell(b, rectified, "stem1", older, older, first / 4).reduction();
    const auto step = [&](TensorId next) {
        older = last;
        last = next;
    };
    step(Cell(b, rectified, "stem2", last, older, first / 2).reduction());
    for (int stage = 0; stage < 3; ++stage) {
        const int64_t maps = first << stage;
        const std::string prefix = "stage" + std::to_string(stage + 1);
        if (stage > 0)
            step(Cell(b, rectified, prefix + "_reduction", last, older, maps).reduction());
        for (int c = 1; c <= cells; ++c)
            step(Cell(b, rectified, prefix + "_cell" + std::to_string(c), last, older, maps)
                     .normal());
    }
    return b.finish(b.classifier(b.activation("last_relu", last, relu())));
}

}  // namespace laminate::zoo
