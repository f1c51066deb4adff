// ncnn's two files, written by hand: what each layer becomes, with numbers to check on paper.
// tests/real compares whole networks with ncnn itself.
#include "nets/ncnn/ncnn.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::message_of;
using Dims = std::vector<int64_t>;
using Values = std::vector<float>;

template <class Element>
std::string stored(const std::vector<Element>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Element)};
}

/// Weights of 32 bits behind their tag.
std::string tagged(const Values& values) { return std::string(4, '\0') + stored(values); }

/// The text of the layers, behind its two lines of numbers.
std::string text(const std::string& layers) {
    const auto count = std::count(layers.begin(), layers.end(), '\n');
    return "7767517\n" + std::to_string(count) + " 99\n" + layers;
}

Network parsed(const std::string& layers, const std::string& weights = "",
               const InputSizes& sizes = {}) {
    return parse_ncnn(text(layers), weights, "net.param", sizes);
}

Values result(const std::string& layers, const std::string& weights, const Values& x) {
    const Network network = parsed(layers, weights);
    return run_reference_network(network, {x})[0];
}

std::string error(const std::string& layers, const std::string& weights = "") {
    return message_of([&] { (void)parsed(layers, weights); });
}

const std::string one_row = "Input data 0 1 x 0=3 1=1 2=1\n";

/// One convolution of one tap, with the weights that the bytes hold.
Values weights_in(const std::string& bytes, int count) {
    const std::string layers =
        "Input data 0 1 x 0=1 1=1 2=1\nConvolution c 1 1 x y 0=" + std::to_string(count) +
        " 1=1 6=" + std::to_string(count) + "\n";
    return result(layers, bytes, {1});
}

TEST(NcnnWeights, AWordTellsHowTheyAreStored) {
    EXPECT_EQ(weights_in(tagged({1.5f, -2, 3}), 3), (Values{1.5f, -2, 3}));
    // Halves end on a word: three of them take eight bytes.
    EXPECT_EQ(weights_in(stored<uint32_t>({0x01306B47}) +
                             stored<uint16_t>({0x3e00, 0xc000, 0x4200, 0}),
                         3),
              (Values{1.5f, -2, 3}));
    EXPECT_EQ(weights_in(stored<uint32_t>({0x0002C056}) + stored<float>({7}), 1), (Values{7}));
    Values table(256);
    table[3] = 0.25f;
    table[255] = -8;
    EXPECT_EQ(weights_in(stored<uint32_t>({1}) + stored(table) + std::string("\x03\xff\x00\x00", 4),
                         3),
              (Values{0.25f, -8, 0}));
    expect_contains(message_of([] {
                        (void)weights_in(stored<uint32_t>({0x000D4B38}) + "abcd", 3);
                    }),
                    "net.param: line 4: layer \"c\" (Convolution): has weights of 8-bit integers, "
                    "expected floats");
}

TEST(NcnnWeights, TheFileEndsWhereTheLayersEnd) {
    expect_contains(message_of([] { (void)weights_in(tagged({1, 2}), 3); }),
                    "layer \"c\" (Convolution): the file of weights ends after 12 bytes, expected "
                    "12 from byte 4");
    expect_contains(message_of([] { (void)weights_in(tagged({1, 2, 3, 4}), 3); }),
                    "net.param: the file of weights has 4 bytes more than the layers read");
}

TEST(NcnnLayers, ConvolutionWithBiasAndActivation) {
    // (1, 2, 3) padded by one: 0*1 + 1*2 + 2*3 = 8, 1 + 4 + 9 = 14, 2 + 6 = 8; plus -10; leaky 0.5.
    EXPECT_EQ(result(one_row +
                         "Convolution c 1 1 x y 0=1 1=3 11=1 4=1 14=0 5=1 6=3 9=2 -23310=1,0.5\n",
                     tagged({1, 2, 3}) + stored<float>({-10}), {1, 2, 3}),
              (Values{-1, 4, -1}));
}

TEST(NcnnLayers, DepthwiseConvolution) {
    EXPECT_EQ(result("Input data 0 1 x 0=1 1=1 2=2\n"
                     "ConvolutionDepthWise c 1 1 x y 0=2 1=1 6=2 7=2 9=1\n",
                     tagged({3, -4}), {5, 6}),
              (Values{15, 0}));
}

TEST(NcnnLayers, DeconvolutionHasItsOutputsOutside) {
    // Two inputs, two outputs, two taps: weights [output][input][tap].
    EXPECT_EQ(result("Input data 0 1 x 0=1 1=1 2=2\n"
                     "Deconvolution d 1 1 x y 0=2 1=2 11=1 3=2 13=1 6=8\n",
                     tagged({1, 2, 30, 40, 500, 600, 7000, 8000}), {1, 2}),
              (Values{1 + 2 * 30, 2 + 2 * 40, 500 + 2 * 7000, 600 + 2 * 8000}));
}

TEST(NcnnLayers, SqueezeAndExcitationOnVectors) {
    // The means 2 and 6 of two channels, weighted 10 * 2 + 6 = 26 and -6: factors 26 and 0.
    const std::string layers =
        "Input data 0 1 x 0=2 1=1 2=2\n"
        "Split s 1 2 x a b\n"
        "Pooling p 1 1 b mean 0=1 4=1\n"
        "InnerProduct f 1 1 mean factor 0=2 1=1 2=4 9=1\n";
    const std::string weights = tagged({10, 1, 0, -1}) + stored<float>({0, 0});
    for (const char* product :
         {"Scale m 2 1 a factor y 0=-233\n", "BinaryOp m 2 1 a factor y 0=2\n"}) {
        EXPECT_EQ(result(layers + product, weights, {1, 3, 5, 7}), (Values{26, 78, 0, 0}))
            << product;
    }
}

TEST(NcnnLayers, ArithmeticWithNumbersAndFactors) {
    EXPECT_EQ(result(one_row + "BinaryOp b 1 1 x y 0=7 1=1 2=10\n", "", {1, 2, 3}),
              (Values{9, 8, 7}));  // 10 - x
    EXPECT_EQ(result(one_row + "Split s 1 2 x a b\nEltwise e 2 1 a b y 0=1 -23301=2,1.0,-3.0\n",
                     "", {1, 2, 3}),
              (Values{-2, -4, -6}));
}

TEST(NcnnLayers, PartsOfAMap) {
    const std::string grid = "Input data 0 1 x 0=3 1=2 2=1\n";
    const Values x{1, 2, 3, 4, 5, 6};
    EXPECT_EQ(result(grid + "Crop c 1 1 x y 0=1 1=1 3=1 4=-233 5=-233\n", "", x), (Values{5}));
    EXPECT_EQ(result(grid + "Crop c 1 1 x y 0=1 3=-233 4=-233 5=-233 6=1\n", "", x),
              (Values{2, 5}));
    EXPECT_EQ(result(grid + "Crop c 1 1 x y -23309=2,1,0 -23310=2,-233,-1 -23311=2,-2,-1\n", "", x),
              (Values{4, 5}));
    // The crop is as large as a pooled map, and begins one column further on.
    EXPECT_EQ(result(grid + "Split s 1 2 x a b\nPooling p 1 1 b small 1=2 5=1\n"
                            "Crop c 2 1 a small y 0=1 1=1\nBinaryOp m 2 1 y small z\n",
                     "", x),
              (Values{5 + 5, 6 + 6}));
    const Network cut = parsed(grid + "Slice s 1 2 x a b -23300=2,1,-233 1=2\n");
    EXPECT_EQ(cut.tensor(cut.outputs[0]).dims, (Dims{1, 1, 2, 1}));
    EXPECT_EQ(cut.tensor(cut.outputs[1]).dims, (Dims{1, 1, 2, 2}));
}

TEST(NcnnLayers, ShapesAndOrders) {
    const std::string grid = "Input data 0 1 x 0=1 1=1 2=4\n";
    const Values x{1, 2, 3, 4};
    EXPECT_EQ(result(grid + "ShuffleChannel s 1 1 x y 0=2\n", "", x), (Values{1, 3, 2, 4}));
    EXPECT_EQ(parsed(grid + "PixelShuffle s 1 1 x y 0=2\n").tensors.back().dims,
              (Dims{1, 1, 2, 2}));
    EXPECT_EQ(parsed(grid + "Reshape r 1 1 x y 0=2 1=-1 2=1\n").tensors.back().dims,
              (Dims{1, 1, 2, 2}));
    EXPECT_EQ(result(grid + "PixelShuffle s 1 1 x m 0=2\nInterp i 1 1 m y 0=1 3=2 4=4\n", "", x),
              (Values{1, 1, 2, 2, 3, 3, 4, 4}));
    EXPECT_EQ(result(grid + "PixelShuffle s 1 1 x m 0=2\nPadding p 1 1 m y 2=1 4=1\n", "", x),
              (Values{1, 1, 2, 3, 3, 4}));
}

TEST(NcnnLayers, OrdersOfAxesAndBlocks) {
    const std::string map = "Input data 0 1 x 0=2 1=2 2=1\n", tall = "Input data 0 1 x 0=1 1=3 2=2\n";
    const Values x{1, 2, 3, 4};
    EXPECT_EQ(parsed(map + "Reorg r 1 1 x y 0=2\n").tensors.back().dims, (Dims{1, 4, 1, 1}));
    EXPECT_EQ(result(map + "Permute p 1 1 x y 0=1\n", "", x), (Values{1, 3, 2, 4}));
    // Columns, rows and channels of 1 x 3 x 2: of order 3, channels, columns and rows.
    for (const auto& [order, dims] : {std::pair<int, Dims>{0, {1, 2, 3, 1}}, {1, {1, 2, 1, 3}},
                                      {2, {1, 3, 2, 1}}, {3, {1, 3, 1, 2}}, {4, {1, 1, 2, 3}},
                                      {5, {1, 1, 3, 2}}}) {
        EXPECT_EQ(parsed(tall + "Permute p 1 1 x y 0=" + std::to_string(order) + "\n")
                      .tensors.back().dims,
                  dims)
            << order;
    }
}

TEST(NcnnLayers, ReductionsAndNormalisations) {
    // Channels (1, 3) and (5, 9).
    const std::string map = "Input data 0 1 x 0=2 1=1 2=2\n";
    const Values x{1, 3, 5, 9};
    EXPECT_EQ(result(map + "Reduction r 1 1 x y 0=3 1=0 -23303=2,1,2 4=1 5=1\n", "", x),
              (Values{2, 7}));
    EXPECT_EQ(result(map + "Reduction r 1 1 x y 0=0 1=0 2=10 -23303=1,0 4=1 5=1\n", "", x),
              (Values{60, 120}));
    EXPECT_EQ(result(map + "Reduction r 1 1 x y 0=4 5=1\n", "", x), (Values{9}));
    // Deviations of 1 and 2, halved and doubled, plus 10 and 20.
    const std::string affine = stored<float>({0.5f, 2, 10, 20});
    const Values channels = result(map + "InstanceNorm i 1 1 x y 0=2 1=0\n", affine, x);
    EXPECT_EQ(channels, (Values{9.5f, 10.5f, 18, 22}));
    EXPECT_EQ(result(map + "GroupNorm g 1 1 x y 0=2 1=2 2=0\n", affine, x), channels);
    EXPECT_EQ(result(map + "LayerNorm l 1 1 x y 0=2 1=0\n", affine, x), (Values{9.5f, 22, 9.5f, 22}));
    EXPECT_EQ(result(map + "LayerNorm l 1 1 x y 0=2 1=0 2=0\n", "", x), (Values{-1, 1, -1, 1}));
    expect_contains(error(map + "Reduction r 1 1 x y 0=3 1=0 -23303=1,0 5=1\n"),
                    "layer \"r\" (Reduction): leaves two dimensions, expected 1 or 3");
}

TEST(NcnnSizes, TheFileSaysWhatOptionsMayChange) {
    const std::string conv = "Convolution c 1 1 x y 0=1 1=1 6=2\n";
    const std::string weights = tagged({1, 2});
    const auto dims = [&](const std::string& input, const InputSizes& sizes) {
        const Network network = parsed(input + conv, weights, sizes);
        return network.tensor(network.inputs[0]).dims;
    };
    const std::string said = "Input data 0 1 x 0=8 1=6 2=2\n", open = "Input data 0 1 x\n";
    EXPECT_EQ(dims(said, {}), (Dims{1, 2, 6, 8}));
    EXPECT_EQ(dims(said, {.height = 9, .batch = 3}), (Dims{3, 2, 9, 8}));
    // Two weights of one tap and one output: two channels.
    EXPECT_EQ(dims(open, {.height = 4, .width = 5}), (Dims{1, 2, 4, 5}));
    // So it is behind what leaves the channels as they are.
    const Network shifted = parsed(open + "BinaryOp b 1 1 x c 1=1 2=0.5\nReLU r 1 1 c d\n" +
                                       "Convolution c 1 1 d y 0=1 1=1 6=2\n",
                                   weights, {.height = 4, .width = 5});
    EXPECT_EQ(shifted.tensor(shifted.inputs[0]).dims, (Dims{1, 2, 4, 5}));
    EXPECT_EQ(message_of([&] { (void)dims(open, {.height = 4}); }),
              "net.param: input \"x\": dimension 4 of 4 is symbolic (\"width\"); expected --width");
}

TEST(NcnnErrors, OneLineEach) {
    const auto bare = [](const std::string& param) {
        return message_of([&] { (void)parse_ncnn(param, "", "net.param"); });
    };
    EXPECT_EQ(bare("8767517\n"),
              "net.param: is no text of ncnn's layers, whose first line is 7767517");
    EXPECT_EQ(bare("7767517\n1\n"), "net.param: line 2: expected the numbers of layers and blobs");
    EXPECT_EQ(bare("7767517\n2 1\nInput data 0 1 x\n"),
              "net.param: has 1 layers, expected 2 as line 2 says");
    EXPECT_EQ(error("Input data 0 9 x\n"),
              "net.param: line 3: layer \"data\" (Input): ends before its output 2 of 9");
    EXPECT_EQ(error("Input data 0 1 x 0=a\n"),
              "net.param: line 3: layer \"data\" (Input): parameter \"0=a\", expected numbers");
    EXPECT_EQ(error("Input data 0 1 x -23300=3,1\n"),
              "net.param: line 3: layer \"data\" (Input): parameter \"-23300=3,1\", expected as many "
              "values as it says");
    EXPECT_EQ(error(one_row + "ReLU r 1 1 z y\n"),
              "net.param: line 4: layer \"r\" (ReLU): reads \"z\", which no layer before it writes");
    EXPECT_EQ(error(one_row + "ReLU r 1 1 x x\n"),
              "net.param: line 4: layer \"r\" (ReLU): writes \"x\", which exists already");
    EXPECT_EQ(error(one_row + "ReLU r 1 1 x y 5=1\n"),
              "net.param: line 4: layer \"r\" (ReLU): parameter 5 is not supported");
    EXPECT_EQ(error(one_row + "Convolution c 1 1 x y 0=2 1=3 6=17\n"),
              "net.param: line 4: layer \"c\" (Convolution): has 17 weights (parameter 6), expected "
              "9 taps for each of 2 outputs and each input");
    expect_contains(error(one_row + "Convolution c 1 1 x y 0=1 1=1 6=1 8=1\n"),
                    "the scale of 8-bit integers is 1 (parameter 8), expected 0");
    expect_contains(error(one_row + "Convolution c 1 1 x y 0=2 1=1 6=2 7=2\n"),
                    "the number of groups is 2 (parameter 7), expected 1");
    expect_contains(error(one_row + "LSTM l 1 1 x y\n"),
                    "net.param: line 4: layer \"l\" (LSTM): is not supported; supported: ");
    // What only shapes tell comes from the graph, with the layer's name.
    expect_contains(error(one_row + "PixelShuffle s 1 1 x y 0=2\n"),
                    "net.param: node \"s\" (depth_to_space): ");
}

}  // namespace
}  // namespace laminate
