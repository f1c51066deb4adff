// No seam: a picture in windows is, bit for bit, what the same network compiled for the whole
// picture makes of it. Weights and pixels are any floats, so that another order of summation would
// show.
#include "runtime/windows.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"
#include "generators/compile/compile.h"
#include "nets/network/picture_views.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/planner/reach.h"
#include "scheduler/schedule/kernels/layer_forms.h"

namespace laminate {
namespace {

using NetworkOfSize = std::function<Network(int64_t height, int64_t width)>;

float fraction(Rng& rng) { return static_cast<float>(rng.between(-4095, 4095)) / 4096; }

ConstantPtr random_constant(std::vector<int64_t> dims, Rng& rng) {
    std::vector<float> values(static_cast<size_t>(element_count(dims)));
    for (float& value : values) value = fraction(rng);
    return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
}

Window square(int64_t kernel, int64_t stride, int64_t pad) {
    Window w;
    w.kernel = {kernel, kernel};
    w.stride = {stride, stride};
    w.pad_begin = w.pad_end = {pad, pad};
    return w;
}

/// Layers one after the other, each given by its output channels, kind and window.
class PictureNetwork {
public:
    PictureNetwork(int64_t channels, int64_t height, int64_t width) {
        network_.name = "picture";
        network_.tensors.push_back({"input", {1, channels, height, width}});
        network_.inputs = {0};
    }
    TensorId add(Layer layer) {
        layer.name = layer.onnx_name = "layer" + std::to_string(network_.layers.size());
        std::vector<std::vector<int64_t>> dims;
        for (const TensorId id : layer.inputs) dims.push_back(network_.tensor(id).dims);
        layer.output = static_cast<TensorId>(network_.tensors.size());
        network_.tensors.push_back({layer.name + "_out", infer_output_dims(layer, dims)});
        network_.layers.push_back(std::move(layer));
        network_.outputs = {network_.layers.back().output};
        return network_.outputs[0];
    }
    TensorId conv(TensorId in, int64_t channels, const Window& window,
                  LayerKind kind = LayerKind::conv) {
        const int64_t from = network_.tensor(in).dims[1];
        std::vector<int64_t> dims{channels, from, window.kernel[0], window.kernel[1]};
        if (kind == LayerKind::conv_transpose) std::swap(dims[0], dims[1]);
        return add({.kind = kind,
                    .inputs = {in},
                    .window = window,
                    .weights = random_constant(dims, rng_),
                    .bias = random_constant({channels}, rng_)});
    }
    TensorId relu(TensorId in) {
        return add({.kind = LayerKind::activation,
                    .inputs = {in},
                    .activation = {.kind = ActivationKind::relu}});
    }
    [[nodiscard]] Network network() const {
        check(network_);
        return network_;
    }

private:
    Network network_;
    Rng rng_{7};
};

struct Compiled {
    Network network;
    JitNetwork code;
    Compiled(Network of, const LineBufferOptions& options, const KernelOptions& kernels)
        : network(std::move(of)),
          code(network, std::get<Schedule>(line_buffer_schedule(network, options)),
               compile_options(kernels)) {}
    static CompileOptions compile_options(const KernelOptions& kernels) {
        CompileOptions options;
        options.kernels = kernels;
        options.kernels.tile_rows = 2;  // as run_stream.cpp has them
        options.note = [](const std::string& line) { ADD_FAILURE() << line; };
        return options;
    }
};

/// Windows of count_y x count_x against the whole.
void expect_seamless(const NetworkOfSize& network_of, int64_t height, int64_t width,
                     int64_t count_y, int64_t count_x, const LineBufferOptions& options = {},
                     const KernelOptions& kernels = {}) {
    const Compiled whole(network_of(height, width), options, kernels);
    const Reach reach = reach_of(whole.network, {.winograd = kernels.winograd});
    const int64_t window_height = window_for(reach.y, height, count_y),
                  window_width = window_for(reach.x, width, count_x);
    const Compiled part(network_of(window_height, window_width), options, kernels);
    check_moves_alike(part.network, whole.network, reach);

    const int64_t channels = whole.network.tensor(0).dims[1];
    std::vector<float> picture(static_cast<size_t>(channels * height * width));
    Rng rng(3);
    for (float& value : picture) value = fraction(rng);
    Session whole_session = Session::open(&whole.code.descriptor(), {options.threads});
    const std::vector<int64_t> out = whole_session.outputs()[0].dims;
    std::vector<float> expected(static_cast<size_t>(element_count(out))),
        found(expected.size(), -1e30F);
    whole_session.run({picture.data()}, {expected.data()});

    Session session = Session::open(&part.code.descriptor(), {options.threads});
    WindowRun windows(session, reach, height, width);
    ASSERT_EQ(windows.output_height(), out[2]);
    ASSERT_EQ(windows.output_width(), out[3]);
    ASSERT_GT(windows.count(), 1);
    windows.run(
        [&](const PictureBox& box, float* values, const BoxStrides& strides) {
            for (int64_t c = 0; c < channels; ++c)
                for (int64_t y = 0; y < box.height; ++y)
                    std::copy_n(picture.data() + (c * height + box.y + y) * width + box.x,
                                box.width, values + c * strides.plane + y * strides.row);
        },
        [&](const PictureBox& box, const float* values, const BoxStrides& strides) {
            for (int64_t c = 0; c < out[1]; ++c)
                for (int64_t y = 0; y < box.height; ++y)
                    std::copy_n(values + c * strides.plane + y * strides.row, box.width,
                                found.data() + (c * out[2] + box.y + y) * out[3] + box.x);
        });
    int64_t wrong = 0;
    std::string first;
    for (size_t n = 0; n < expected.size(); ++n) {
        if (found[n] == expected[n]) continue;
        const auto at = static_cast<int64_t>(n);
        if (wrong++ == 0)
            first = "channel " + std::to_string(at / (out[2] * out[3])) + ", row " +
                    std::to_string(at / out[3] % out[2]) + ", column " +
                    std::to_string(at % out[3]) + ": " + std::to_string(found[n]) + ", expected " +
                    std::to_string(expected[n]);
    }
    EXPECT_EQ(wrong, 0) << "of " << expected.size() << ", first " << first << "; windows of "
                        << window_height << " x " << window_width;
}

NetworkOfSize zoo(const std::string& name) {
    return [name](int64_t height, int64_t width) {
        return zoo_network(name, {.height = height, .width = width});
    };
}

TEST(Seams, FsrcnnByTransposedConvolution) { expect_seamless(zoo("fsrcnn-x2"), 131, 203, 3, 2); }
TEST(SeamsLong, FsrcnnOfConvolutions) { expect_seamless(zoo("fsrcnn"), 97, 150, 2, 2); }
TEST(SeamsLong, FsrcnnWithoutPaddingAndSubPixels) {
    expect_seamless(zoo("fsrcnn-defines"), 91, 127, 2, 2, {}, {.winograd = false});
}
TEST(SeamsLong, FsrcnnWithinABudget) {
    expect_seamless(zoo("fsrcnn-x2"), 131, 203, 3, 2, {.memory = Bytes(96 << 10), .threads = 2});
}
/// Winograd's windows are as wide as the picture.
TEST(SeamsLong, FsrcnnWithoutPaddingByWinograd) {
    expect_seamless(zoo("fsrcnn-defines"), 91, 127, 2, 1);
}
TEST(SeamsLong, McCnnByWinograd) { expect_seamless(zoo("mc-cnn"), 173, 309, 3, 1); }
TEST(Seams, McCnnByWinogradInStrips) {
    expect_seamless(zoo("mc-cnn"), 173, 250, 2, 1, {.memory = {}, .threads = 2});
}

TEST(SeamsLong, McCnnByItsDefinition) {
    expect_seamless(zoo("mc-cnn"), 97, 309, 2, 2, {}, {.winograd = false});
}

TEST(Seams, StridesPoolingAndBackUp) {
    const auto network = [](int64_t height, int64_t width) {
        PictureNetwork n(3, height, width);
        const TensorId a = n.conv(0, 8, square(3, 1, 1));
        const TensorId b =
            n.add({.kind = LayerKind::max_pool, .inputs = {a}, .window = square(2, 2, 0)});
        const TensorId c = n.relu(n.conv(b, 8, square(3, 2, 1)));
        const TensorId d = n.conv(c, 6, square(4, 2, 1), LayerKind::conv_transpose);
        n.conv(d, 4, square(5, 1, 2));
        return n.network();
    };
    expect_seamless(network, 111, 145, 2, 3, {.memory = {}, .threads = 2});
}

TEST(Seams, ResidualAndConcat) {
    const auto network = [](int64_t height, int64_t width) {
        PictureNetwork n(2, height, width);
        const TensorId a = n.relu(n.conv(0, 6, square(3, 1, 1)));
        const TensorId b = n.conv(a, 6, square(5, 1, 2));
        const TensorId c = n.add({.kind = LayerKind::add, .inputs = {a, b}});
        const TensorId d =
            n.add({.kind = LayerKind::average_pool, .inputs = {c}, .window = square(3, 1, 1)});
        const TensorId e = n.add({.kind = LayerKind::concat, .inputs = {c, d}});
        const TensorId f = n.conv(e, 8, square(3, 1, 1));
        n.add({.kind = LayerKind::depth_to_space, .inputs = {f}, .block = 2});
        return n.network();
    };
    expect_seamless(network, 73, 99, 2, 2);
}

/// Borders that reflect or repeat, rows cut off, and both enlarged and reduced maps in between.
TEST(Seams, PaddingCropsAndResizes) {
    const auto network = [](int64_t height, int64_t width) {
        PictureNetwork n(2, height, width);
        const auto resampled = [&](TensorId in, GeneralOperator op) {
            return n.add({.kind = LayerKind::general, .inputs = {in}, .general = std::move(op)});
        };
        const auto dims = [&](TensorId id) { return n.network().tensor(id).dims; };
        const TensorId padded_input = n.add(
            {.kind = LayerKind::general,
             .inputs = {0},
             .general = padded({1, 2, height, width}, {Padding::Mode::reflect, {4, 3}, {2, 5}})});
        const TensorId a = n.conv(padded_input, 5, square(3, 1, 0));
        const std::vector<int64_t> map = dims(a);
        const TensorId twice = resampled(a, interpolated(map, {2 * map[2], 2 * map[3]}));
        const TensorId b = n.conv(twice, 4, square(3, 1, 1));
        const std::vector<int64_t> large = dims(b);
        const TensorId cut =
            resampled(b, part_of(large, {0, 3, 1}, {4, large[2] - 4, large[3] - 6}));
        const std::vector<int64_t> less = dims(cut);
        const TensorId edges = resampled(cut, padded(less, {Padding::Mode::edge, {1, 2}, {3, 2}}));
        const std::vector<int64_t> more = dims(edges);
        const TensorId half = resampled(edges, interpolated(more, {more[2] / 2, more[3] / 2}));
        const TensorId c = n.conv(half, 3, square(3, 1, 1));
        (void)resampled(c, padded(dims(c), {Padding::Mode::constant, {2, 0}, {1, 3}, 0.25F}));
        return n.network();
    };
    expect_seamless(network, 90, 122, 3, 2, {}, {.winograd = false});
}

/// Narrow pictures of many channels: windows are small enough for kernels that take whole maps
/// (winograd_map.h, whole_map.h), the picture is not.
TEST(Seams, NarrowPicturesByWinograd) {
    for (const int64_t width : {13, 33, 60}) {
        const auto network = [=](int64_t height, int64_t columns) {
            PictureNetwork n(32, height, columns);
            const TensorId a = n.relu(n.conv(0, 40, square(3, 1, 1)));
            n.conv(a, 33, square(3, 1, 1));
            return n.network();
        };
        constexpr int64_t height = 151, windows = 5;
        const Network whole = network(height, width);
        const Network part = network(window_for(reach_of(whole).y, height, windows), width);
        for (LayerId id : {0, 2}) {
            EXPECT_TRUE(is_wide_map(layer_problem(whole, id)));
            EXPECT_FALSE(is_wide_map(layer_problem(part, id)));
            EXPECT_TRUE(kernel_pays(layer_problem(part, id), KernelKind::winograd_map));
        }
        expect_seamless(network, height, width, windows, 1);
    }
}

TEST(Seams, NarrowPicturesByTheirDefinition) {
    const auto network = [](int64_t height, int64_t width) {
        PictureNetwork n(32, height, width);
        const TensorId a = n.conv(0, 32, square(5, 1, 2));
        const TensorId b = n.relu(n.conv(a, 48, square(1, 1, 0)));
        const TensorId c = n.conv(b, 64, square(3, 2, 1));
        n.conv(c, 32, square(3, 1, 1));
        return n.network();
    };
    constexpr int64_t height = 93, width = 61, rows = 6, columns = 4;
    const Network whole = network(height, width);
    const Reach reach = reach_of(whole, {.winograd = false});
    const Network part =
        network(window_for(reach.y, height, rows), window_for(reach.x, width, columns));
    int64_t differ = 0;
    const auto pays = [](const Network& of, LayerId id) {
        return a_map_kernel_pays(layer_problem(of, id), false);
    };
    for (LayerId id = 0; id < std::ssize(whole.layers); ++id)
        differ += pays(whole, id) != pays(part, id) ? 1 : 0;
    EXPECT_GE(differ, 1);
    expect_seamless(network, height, width, rows, columns, {}, {.winograd = false});
}

}  // namespace
}  // namespace laminate
