// Blocks of pixels as channels, and the convolution that reads them.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

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

TEST(SpaceToDepth, StaysBeforeOtherLayersAndWherePixelsMoveOtherwise) {
    ModelBuilder pool = model_of_map();
    pool.node("SpaceToDepth", {"x"}, "blocks").integer("blocksize", 2);
    pool.node("MaxPool", {"blocks"}, "y").integers("kernel_shape", {2, 2});
    EXPECT_GT(pool.parse().layers.size(), 1u);

    ModelBuilder turned = model_of_map();
    turned.node("Transpose", {"x"}, "turned").integers("perm", {0, 1, 3, 2});
    add_convolution(turned, "turned", 2);
    EXPECT_EQ(turned.parse().layers.size(), 2u);
}

}  // namespace
}  // namespace laminate
