#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "nets/zoo/zoo.h"
#include "tests/nets/onnx/builder.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::message_of;
using test::ModelBuilder;
using test::Scratch;

Network read_back(const Network& network) {
    Scratch directory;
    const std::string path = directory / "net.onnx";
    save_onnx(network, path);
    return load_onnx(path);
}

void expect_round_trip(const Network& network) {
    const Network back = read_back(network);
    EXPECT_EQ(network_hash(back), network_hash(network)) << network.name;
    EXPECT_EQ(back.name, network.name);
    ASSERT_EQ(back.layers.size(), network.layers.size());
    for (size_t i = 0; i < back.layers.size(); ++i) {
        EXPECT_EQ(back.layers[i].name, network.layers[i].name);
        EXPECT_EQ(back.tensor(back.layers[i].output).name,
                  network.tensor(network.layers[i].output).name);
    }
}

TEST(SaveOnnx, EveryZooNetComesBackTheSame) {
    // Under a sanitizer test every fourth network: one function that makes weights takes most of
    // the time.
    size_t place = 0;
    for (const ZooEntry& entry : zoo_entries()) {
        if (place++ % 4 != 0 && test::is_sanitized) continue;
        // 75 pixels, the least that InceptionV3 takes, keep VGG16's head small. The 4K nets are
        // l2net and l3net again. The unpadded networks of DeFiNES work at their own sizes only.
        const bool is_unpadded = entry.name.ends_with("-defines");
        const Network network = zoo_network(
            entry.name,
            is_unpadded ? ZooOptions{} : ZooOptions{.height = 75, .width = 76, .batch = 2});
        // NASNet-A adds maps to themselves, as published. The reader makes factors of two of them, so
        // what it has read comes back the same.
        const bool doubles = std::ranges::any_of(network.layers, [](const Layer& layer) {
            return layer.kind == LayerKind::add && layer.inputs.size() == 2 &&
                   layer.inputs[0] == layer.inputs[1];
        });
        EXPECT_EQ(doubles, entry.name == "nasnet-a");
        expect_round_trip(doubles ? read_back(network) : network);
    }
}

TEST(SaveOnnx, EveryOperatorComesBackTheSame) {
    ModelBuilder m({2, 4, 9, 8});
    m.weights("w", {6, 2, 3, 2})
        .weights("b", {6})
        .weights("dw", {6, 2, 3, 3})
        .weights("slope", {6, 1, 1})
        .weights("one", {1});
    m.weights("low", {}, {-1})
        .weights("high", {}, {2.5})
        .weights("whole", {10, 1, 1})
        .weights("fc", {3, 30});
    m.node("Conv", {"x", "w", "b"}, "a", "c")
        .integers("strides", {2, 1})
        .integers("dilations", {1, 2})
        .integers("pads", {1, 2, 0, 1})
        .integer("group", 2);
    m.node("PRelu", {"a", "slope"}, "a2");     // folds
    m.node("Sigmoid", {"a2"}, "a3", "twice");  // stays
    m.node("ConvTranspose", {"a3", "dw"}, "d")
        .integers("strides", {2, 2})
        .integers("output_padding", {1, 0})
        .integer("group", 3);
    m.node("Clip", {"d", "low", "high"}, "d2");
    m.node("MaxPool", {"d2"}, "e")
        .integers("kernel_shape", {3, 2})
        .integers("strides", {2, 2})
        .integers("dilations", {1, 2})
        .integers("pads", {1, 0, 1, 1});
    m.node("AveragePool", {"e"}, "f")
        .integers("kernel_shape", {2, 2})
        .integers("pads", {1, 0, 0, 1})
        .integer("count_include_pad", 1);
    m.node("LeakyRelu", {"f"}, "g").real("alpha", 0.125f);
    m.node("Add", {"g", "f"}, "h");
    m.node("Tanh", {"h"}, "h2");
    m.node("Concat", {"h2", "g"}, "i").integer("axis", 1);
    m.node("PRelu", {"i", "one"}, "i2");
    m.weights("c8", {8, 12, 1, 1});
    m.node("Conv", {"i2", "c8"}, "j");
    m.node("DepthToSpace", {"j"}, "k").integer("blocksize", 2).text("mode", "CRD");
    m.weights("per_channel", {2, 1, 1});
    m.node("Add", {"k", "per_channel"}, "l", "shifted");
    m.node("GlobalAveragePool", {"l"}, "p");
    m.node("Flatten", {"p"}, "q");
    m.weights("gemm", {2, 5});
    m.node("Gemm", {"q", "gemm"}, "r");
    m.node("Relu", {"r"}, "r2");
    m.node("Softmax", {"r2"}, "y").integer("axis", -1);
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 16u);
    expect_round_trip(network);
}

TEST(SaveOnnx, MapsOfConstantsComeBackTheSame) {
    ModelBuilder m({1, 2, 3, 4});
    m.weights("plane", {3, 4}).weights("map", {1, 1, 3, 4});
    m.node("Mul", {"x", "plane"}, "a", "product");
    m.node("Concat", {"map", "a"}, "y", "beside").integer("axis", 1);
    const Network network = m.parse();
    EXPECT_EQ(network.layers.size(), 4U);
    EXPECT_EQ(network_hash(read_back(network)), network_hash(network));
}

TEST(SaveOnnx, EveryActivationComesBackTheSame) {
    const Network plain = zoo_network("l2net", {.height = 8, .width = 8});
    using enum GeneralFunction;
    for (const auto& [function, alpha, beta] :
         std::vector<std::tuple<GeneralFunction, float, float>>{{absolute, 0, 0},
                                                                {negative, 0, 0},
                                                                {elu, 0.5f, 0},
                                                                {selu, 1.5f, 2},
                                                                {celu, 3, 0},
                                                                {softplus, 0, 0},
                                                                {softsign, 0, 0},
                                                                {hard_sigmoid, 0.3f, 0.25f},
                                                                {hard_swish, 0, 0},
                                                                {mish, 0, 0},
                                                                {swish, 1, 0},
                                                                {swish, 1.7f, 0},
                                                                {gelu, 0, 0},
                                                                {gelu_tanh, 0, 0},
                                                                {exponential, 0, 0},
                                                                {logarithm, 0, 0},
                                                                {square_root, 0, 0},
                                                                {reciprocal, 0, 0},
                                                                {floor, 0, 0},
                                                                {ceil, 0, 0},
                                                                {round_to_even, 0, 0},
                                                                {sign, 0, 0},
                                                                {error_function, 0, 0},
                                                                {sine, 0, 0},
                                                                {cosine, 0, 0},
                                                                {tangent, 0, 0},
                                                                {thresholded_relu, 0.5f, 0},
                                                                {shrink, 0.5f, 0.25f},
                                                                {power, 2, 0},
                                                                {power, -1.5f, 0}}) {
        SCOPED_TRACE(to_string(function));
        Network network = plain;
        for (Layer& layer : network.layers)
            layer.activation = {
                .kind = ActivationKind::unary, .function = function, .alpha = alpha, .beta = beta};
        expect_round_trip(network);
    }
}

/// The operator set that the file declares.
int64_t written_opset(const Network& network) {
    Scratch directory;
    save_onnx(network, directory / "net.onnx");
    onnx_file::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(read_file(directory / "net.onnx")));
    return model.opset_import(0).version();
}

TEST(SaveOnnx, TheOpsetIsTheLeastThatHasAll) {
    Network network = zoo_network("l2net", {.height = 8, .width = 8});
    EXPECT_EQ(written_opset(network), 17);
    network.layers[0].activation = {.kind = ActivationKind::unary,
                                    .function = GeneralFunction::mish};
    EXPECT_EQ(written_opset(network), 18);
    network.layers[1].activation = {.kind = ActivationKind::unary,
                                    .function = GeneralFunction::gelu};
    EXPECT_EQ(written_opset(network), 20);
}

TEST(SaveOnnx, ADilatedAveragePoolingComesBackTheSame) {
    ModelBuilder m({1, 2, 9, 8}, 19);
    m.node("AveragePool", {"x"}, "y")
        .integers("kernel_shape", {2, 3})
        .integers("dilations", {3, 2});
    const Network network = m.parse();
    expect_round_trip(network);
    EXPECT_EQ(written_opset(network), 19);
}

TEST(SaveOnnx, NamesMadeUpDoNotMeetNamesThatExist) {
    Network network = zoo_network("fsrcnn", {.height = 8, .width = 8});
    network.tensors[1].name = "feature_weights";  // what the initializer would be called
    network.tensors[2].name = "feature_linear";   // and the value before the activation
    network.layers[1].name = "feature_prelu";     // and the activation's node
    check(network);
    expect_round_trip(network);
}

TEST(SaveOnnx, SharedWeightsAreWrittenOnce) {
    Network network = zoo_network("dmcnn-vd", {.height = 8, .width = 8});
    for (size_t i = 2; i < 19; ++i) network.layers[i].weights = network.layers[1].weights;
    Scratch directory;
    save_onnx(network, directory / "net.onnx");
    // 64 * 64 * 9 * 4 = 147,456 bytes for the shared weights, 3 * 64 * 9 * 4 * 2 for the first and
    // last layer, and some for biases and structure.
    EXPECT_LT(std::filesystem::file_size(directory / "net.onnx"), 147456u + 13824u + 12000u);
    expect_round_trip(network);
}

TEST(SaveOnnx, AFileThatCannotBeWrittenLeavesNothing) {
    Scratch directory;
    const Network network = zoo_network("l2net");
    expect_contains(message_of([&] { save_onnx(network, directory / "none/net.onnx"); }),
                    "none/net.onnx: cannot be written");
    EXPECT_TRUE(std::filesystem::is_empty(directory / ""));
}

TEST(SaveOnnx, ABrokenNetworkIsNotWritten) {
    Scratch directory;
    Network network = zoo_network("l2net");
    network.outputs.clear();
    expect_contains(message_of([&] { save_onnx(network, directory / "net.onnx"); }),
                    "l2net: has no outputs");
    EXPECT_TRUE(std::filesystem::is_empty(directory / ""));
}

}  // namespace
}  // namespace laminate
