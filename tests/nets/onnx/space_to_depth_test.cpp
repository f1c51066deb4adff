// Blocks of pixels as channels, and the convolution that reads them.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "nets/network/picture_views.h"
#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::ModelBuilder;
using WriteBlocks = std::function<void(ModelBuilder&, const std::string& to)>;

constexpr int64_t map_channels = 2, map_rows = 6, map_columns = 4;

ModelBuilder model_of_map() { return ModelBuilder({1, map_channels, map_rows, map_columns}); }

/// 3x3 with stride 2, padding above and to the right.
void add_convolution(ModelBuilder& m, const std::string& from, int64_t channels) {
    std::vector<float> weights(static_cast<size_t>(3 * channels * 9));
    for (size_t n = 0; n < weights.size(); ++n) weights[n] = static_cast<float>(n * 7 % 5) - 2;
    m.weights("w", {3, channels, 3, 3}, weights);
    m.node("Conv", {from, "w"}, "y", "conv")
        .integers("strides", {2, 1})
        .integers("pads", {1, 0, 0, 1});
}

std::vector<float> first_result(const Network& network, std::vector<float> input) {
    return run_reference_network(network, {std::move(input)}, network.outputs, 1).front();
}

/// The network of `write` and a convolution, which must have the result of one that reads what
/// `write` made.
Network with_convolution(const WriteBlocks& write) {
    std::vector<float> values(static_cast<size_t>(map_channels * map_rows * map_columns));
    std::iota(values.begin(), values.end(), 1.0F);
    ModelBuilder alone = model_of_map();
    write(alone, "y");
    const Network blocks = alone.parse();
    const std::vector<int64_t> dims = blocks.tensor(blocks.outputs[0]).dims;

    ModelBuilder behind(dims);
    add_convolution(behind, "x", dims[1]);
    const std::vector<float> expected =
        first_result(behind.parse(), first_result(blocks, values));

    ModelBuilder whole = model_of_map();
    write(whole, "blocks");
    add_convolution(whole, "blocks", dims[1]);
    const Network network = whole.parse();
    EXPECT_EQ(first_result(network, values), expected);
    EXPECT_EQ(layer_macs(network, static_cast<LayerId>(network.layers.size()) - 1),
              layer_macs(behind.parse(), 0));
    return network;
}

/// The same, of one layer.
Layer folded(const WriteBlocks& write) {
    const Network network = with_convolution(write);
    EXPECT_EQ(network.layers.size(), 1u);
    return network.layers.back();
}

TEST(SpaceToDepth, IsPartOfTheConvolutionBehindIt) {
    for (const char* mode : {"DCR", "CRD"}) {
        SCOPED_TRACE(mode);
        const Layer conv = folded([&](ModelBuilder& m, const std::string& to) {
            m.node("SpaceToDepth", {"x"}, to).integer("blocksize", 2).text("mode", mode);
        });
        EXPECT_EQ(conv.window.kernel, (std::array<int64_t, 2>{6, 6}));
        EXPECT_EQ(conv.window.stride, (std::array<int64_t, 2>{4, 2}));
        EXPECT_EQ(conv.window.pad_begin, (std::array<int64_t, 2>{2, 0}));
        EXPECT_EQ(conv.window.pad_end, (std::array<int64_t, 2>{0, 2}));
        EXPECT_EQ(conv.weights->dims, (std::vector<int64_t>{3, 2, 6, 6}));
    }
}

TEST(SpaceToDepth, AsPyTorchWritesPixelUnshuffle) {
    folded([](ModelBuilder& m, const std::string& to) {
        m.integers("split", {1, 2, 3, 2, 2, 2}).integers("joined", {1, 8, 3, 2});
        m.node("Reshape", {"x", "split"}, "apart");
        m.node("Transpose", {"apart"}, "moved").integers("perm", {0, 1, 3, 5, 2, 4});
        m.node("Reshape", {"moved", "joined"}, to);
    });
}

/// Four parts of every other row and column, one behind the other.
void add_slices(ModelBuilder& m, const std::string& from, const std::string& to) {
    m.integers("end", {100}).integers("two", {2});
    m.integers("row", {2}).integers("column", {3}).integers("first0", {0}).integers("first1", {1});
    std::vector<std::string> parts;
    for (const std::string q : {"0", "1"}) {
        for (const std::string r : {"0", "1"}) {
            m.node("Slice", {from, "first" + r, "end", "row", "two"}, "rows" + r + q);
            parts.push_back("part" + r + q);
            m.node("Slice", {"rows" + r + q, "first" + q, "end", "column", "two"}, parts.back());
        }
    }
    m.node("Concat", parts, to).integer("axis", 1);
}

TEST(SpaceToDepth, AsTheSlicesOfAYolo) {
    const Layer conv = folded(
        [](ModelBuilder& m, const std::string& to) { add_slices(m, "x", to); });
    EXPECT_EQ(conv.window.kernel, (std::array<int64_t, 2>{6, 6}));
}

/// A Concat of several images puts the channels of each image together.
TEST(SpaceToDepth, SlicesOfChannelsAsImagesKeepTheirOrder) {
    with_convolution([](ModelBuilder& m, const std::string& to) {
        m.integers("images", {2, 1, 6, 4}).integers("joined", {1, 8, 3, 2});
        m.node("Reshape", {"x", "images"}, "apart");
        add_slices(m, "apart", "parts");
        m.node("Reshape", {"parts", "joined"}, to);
    });
}

TEST(SpaceToDepth, MovedChannelsMoveWeights) {
    const Layer conv = folded([](ModelBuilder& m, const std::string& to) {
        m.integers("zero", {0}).integers("one", {1}).integers("two", {2});
        m.node("Slice", {"x", "one", "two", "one"}, "second");
        m.node("Slice", {"x", "zero", "one", "one"}, "first");
        m.node("Concat", {"second", "first"}, to).integer("axis", 1);
    });
    EXPECT_EQ(conv.window.kernel, (std::array<int64_t, 2>{3, 3}));
}

/// Red, green and blue change their order, as before networks that take them as OpenCV has them.
TEST(SpaceToDepth, GatheredChannelsMoveWeights) {
    const Layer conv = folded([](ModelBuilder& m, const std::string& to) {
        m.integers("turned", {1, 0});
        m.node("Gather", {"x", "turned"}, to).integer("axis", 1);
    });
    EXPECT_EQ(conv.window.kernel, (std::array<int64_t, 2>{3, 3}));
}

/// Of a map with its channels last, as TensorFlow has SpaceToDepth: channel (r 2 + q) 2 + c is channel c
/// of row r and column q of a block.
TEST(SpaceToDepth, WithChannelsLastReadsTheMapTurned) {
    for (const bool has_convolution : {true, false}) {
        ModelBuilder m({1, map_rows, map_columns, map_channels});
        m.integers("split", {1, 3, 2, 2, 2, 2}).integers("joined", {1, 3, 2, 8});
        m.node("Reshape", {"x", "split"}, "apart");
        m.node("Transpose", {"apart"}, "moved").integers("perm", {0, 1, 3, 2, 4, 5});
        m.node("Reshape", {"moved", "joined"}, "last");
        m.node("Transpose", {"last"}, "blocks").integers("perm", {0, 3, 1, 2});
        if (has_convolution) {
            add_convolution(m, "blocks", 8);
        } else {
            m.node("MaxPool", {"blocks"}, "y").integers("kernel_shape", {1, 1});
        }
        const Network network = m.parse();
        ASSERT_EQ(network.layers.size(), has_convolution ? 2U : 3U);
        EXPECT_EQ(network.layers[0].general.kind, GeneralKind::view);
        std::vector<float> values(static_cast<size_t>(map_channels * map_rows * map_columns));
        std::iota(values.begin(), values.end(), 1.0F);
        const std::vector<float> found = first_result(network, values);
        if (has_convolution) {
            EXPECT_EQ(network.layers[1].window.kernel, (std::array<int64_t, 2>{6, 6}));
            continue;
        }
        EXPECT_EQ(network.layers[1].general, blocks_of(2, 2));
        std::vector<float> expected;
        for (int64_t z = 0; z < 8; ++z) {
            for (int64_t i = 0; i < 3; ++i) {
                for (int64_t j = 0; j < 2; ++j) {
                    const int64_t row = 2 * i + z / 4, column = 2 * j + z / 2 % 2;
                    expected.push_back(
                        static_cast<float>((row * map_columns + column) * 2 + z % 2 + 1));
                }
            }
        }
        EXPECT_EQ(found, expected);
    }
}

TEST(SpaceToDepth, IsOneLayerBeforeOthers) {
    for (const auto& [mode, shuffle] : {std::pair{"DCR", 2}, std::pair{"CRD", 1}}) {
        ModelBuilder pool = model_of_map();
        pool.node("SpaceToDepth", {"x"}, "blocks").integer("blocksize", 2).text("mode", mode);
        pool.node("MaxPool", {"blocks"}, "y").integers("kernel_shape", {2, 2});
        const Network network = pool.parse();
        ASSERT_EQ(network.layers.size(), 2u);
        EXPECT_EQ(network.layers[0].general, blocks_of(2, shuffle));
    }
}

/// y[k g + j] = x[j C / g + k], as ShuffleNet's Reshape, Transpose and Reshape.
void add_shuffle(ModelBuilder& m, const std::string& from, const std::string& to, int64_t channels,
                 int64_t groups) {
    m.integers(to + "_split", {1, groups, channels / groups, 6, 4});
    m.integers(to + "_joined", {1, channels, 6, 4});
    m.node("Reshape", {from, to + "_split"}, to + "_apart");
    m.node("Transpose", {to + "_apart"}, to + "_moved").integers("perm", {0, 2, 1, 3, 4});
    m.node("Reshape", {to + "_moved", to + "_joined"}, to);
}

std::vector<float> first_numbers(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 1.0F);
    return values;
}

TEST(ChannelShuffle, IsOneLayerBeforeOthers) {
    ModelBuilder m({1, 6, 6, 4});
    add_shuffle(m, "x", "shuffled", 6, 3);
    m.node("MaxPool", {"shuffled"}, "y").integers("kernel_shape", {1, 1});
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 2u);
    EXPECT_EQ(network.layers[0].general, blocks_of(1, 3));
    const std::vector<float> result = first_result(network, first_numbers(6 * 24));
    for (int64_t z = 0; z < 6; ++z)
        EXPECT_EQ(result[static_cast<size_t>(z * 24)], static_cast<float>((z % 3 * 2 + z / 3) * 24 + 1));
}

/// The second unit of ShuffleNetV2 on what the first one made: split, one half convolved, joined,
/// shuffled; then depthwise and dense convolutions of all channels. With Identity in place of the
/// shuffles' last nodes it would be another network, so its result is computed layer by layer.
TEST(ChannelShuffle, ConvolutionsTakeTheirChannels) {
    const auto write = [](bool is_output) {
        ModelBuilder m({1, 4, 6, 4});
        m.integers("zero", {0}).integers("two", {2}).integers("four", {4}).integers("one", {1});
        m.weights("w1", {2, 2, 1, 1}, {1, 2, -1, 3}).weights("w2", {4, 1, 1, 1}, {1, 2, 3, 4});
        m.weights("b2", {4}, {1, -2, 3, -4});
        m.weights("w3", {3, 4, 1, 1}, {1, 2, 3, 4, -1, 5, 2, 0, 7, 1, -3, 2});
        add_shuffle(m, "x", "a", 4, 2);
        m.node("Slice", {"a", "zero", "two", "one"}, "left");
        m.node("Slice", {"a", "two", "four", "one"}, "right");
        m.node("Conv", {"right", "w1"}, "right_out", "conv1");
        m.node("Concat", {"left", "right_out"}, "joined").integer("axis", 1);
        add_shuffle(m, "joined", "b", 4, 2);
        m.node("Conv", {"b", "w2", "b2"}, "deep", "conv2").integer("group", 4);
        m.node("Conv", {"deep", "w3"}, is_output ? "y" : "z", "conv3");
        if (!is_output) m.node("Identity", {"b"}, "y");
        return m.parse();
    };
    const Network network = write(true), shuffles = write(false);
    for (const Layer& layer : network.layers)
        EXPECT_NE(layer.general.kind, GeneralKind::blocks) << layer.name;
    const auto x = first_numbers(4 * 24);
    // The plain meaning, of the network whose output the shuffle is.
    const std::vector<float> b = first_result(shuffles, x);
    const std::vector<float> y = first_result(network, x);
    const float w2[] = {1, 2, 3, 4}, b2[] = {1, -2, 3, -4};
    const float w3[3][4] = {{1, 2, 3, 4}, {-1, 5, 2, 0}, {7, 1, -3, 2}};
    for (size_t z = 0; z < 3; ++z) {
        for (size_t at = 0; at < 24; ++at) {
            float sum = 0;
            for (size_t i = 0; i < 4; ++i) sum += w3[z][i] * (w2[i] * b[i * 24 + at] + b2[i]);
            EXPECT_EQ(y[z * 24 + at], sum);
        }
    }
    // And of the shuffle: channels of x and of conv1 in turn.
    const float w1[2][2] = {{1, 2}, {-1, 3}};
    for (size_t at = 0; at < 24; ++at) {
        const auto a = [&](size_t z) { return x[(z % 2 * 2 + z / 2) * 24 + at]; };
        for (size_t k = 0; k < 2; ++k) {
            EXPECT_EQ(b[2 * k * 24 + at], a(k));
            EXPECT_EQ(b[(2 * k + 1) * 24 + at], w1[k][0] * a(2) + w1[k][1] * a(3));
        }
    }
}

/// A shift of channels keeps their order, so the depthwise convolution before it must as well.
TEST(ChannelShuffle, StaysBeforeWhatKeepsTheOrderOfChannels) {
    ModelBuilder m({1, 4, 6, 4});
    add_shuffle(m, "x", "a", 4, 2);
    m.weights("w", {4, 1, 1, 1}, {1, 2, 3, 4}).weights("shift", {1, 4, 1, 1}, {10, 20, 30, 40});
    m.node("Conv", {"a", "w"}, "deep").integer("group", 4);
    m.node("Relu", {"deep"}, "positive");
    m.node("Add", {"positive", "shift"}, "shifted");
    m.node("MaxPool", {"shifted"}, "y").integers("kernel_shape", {1, 1});
    const std::vector<float> x = first_numbers(4 * 24), y = first_result(m.parse(), x);
    for (size_t z = 0; z < 4; ++z) {
        const float of_shuffle = x[(z % 2 * 2 + z / 2) * 24];
        EXPECT_EQ(y[z * 24], static_cast<float>(z + 1) * (of_shuffle + 10));
    }
}

TEST(SpaceToDepth, StaysWherePixelsMoveOtherwise) {
    ModelBuilder turned = model_of_map();
    turned.node("Transpose", {"x"}, "turned").integers("perm", {0, 1, 3, 2});
    add_convolution(turned, "turned", 2);
    EXPECT_EQ(turned.parse().layers.size(), 2u);
}

}  // namespace
}  // namespace laminate
