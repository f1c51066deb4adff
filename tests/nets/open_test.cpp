#include "nets/open.h"

#include <gtest/gtest.h>

#include "nets/random/random_network.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::message_of;

std::vector<int64_t> input_dims(const Network& network) {
    return network.tensor(network.inputs[0]).dims;
}

TEST(OpenNetwork, ZooWithOptions) {
    EXPECT_EQ(input_dims(open_network("zoo:fsrcnn")), (std::vector<int64_t>{1, 1, 540, 960}));
    EXPECT_EQ(input_dims(open_network("zoo:fsrcnn?height=54&width=96&batch=2")),
              (std::vector<int64_t>{2, 1, 54, 96}));
    EXPECT_NE(network_hash(open_network("zoo:l2net?seed=7")),
              network_hash(open_network("zoo:l2net")));
}

TEST(OpenNetwork, AnOptionInTheSpecWins) {
    const InputSizes sizes{.height = 30, .width = 40};
    EXPECT_EQ(input_dims(open_network("zoo:l2net", sizes)), (std::vector<int64_t>{1, 3, 30, 40}));
    EXPECT_EQ(input_dims(open_network("zoo:l2net?height=25", sizes)),
              (std::vector<int64_t>{1, 3, 25, 40}));
}

TEST(OpenNetwork, RefusesOptionsItCannotRead) {
    const auto error = [](const std::string& spec) {
        return message_of([&] { (void)open_network(spec); });
    };
    expect_contains(
        error("zoo:l2net?heigth=3"),
        "zoo:l2net?heigth=3: unknown option \"heigth\"; expected height, width, batch or seed");
    expect_contains(error("zoo:l2net?height=3x"),
                    "option height is \"3x\", expected a whole number");
    expect_contains(error("zoo:l2net?height=8&width=8&height=9"),
                    "option height is given twice, expected once");
    expect_contains(error("zoo:l2net?height"), "option height is \"\", expected a whole number");
    expect_contains(error("zoo:l2net?height=99999999999999999999"), "expected a whole number");
    expect_contains(error("zoo:l2net?height=-4"), "dimension -4, expected 1 to 2147483647");
    expect_contains(error("zoo:"), "no such network");
    expect_contains(error("no/such/net.onnx"), "no/such/net.onnx: no such file");
}

TEST(OpenNetwork, RandomBySeed) {
    const std::string hash = network_hash(random_network(7));
    EXPECT_EQ(network_hash(open_network("random:7")), hash);
    EXPECT_EQ(network_hash(open_network("zoo:random:7")), hash);
    expect_contains(message_of([] { (void)open_network("random:x"); }),
                    "random:x: option random is \"x\", expected a whole number");
    expect_contains(message_of([] { (void)open_network("random:7", {.height = 5}); }),
                    "random:7: the seed alone decides its sizes");
}

TEST(OpenNetwork, TheExampleNetworkTakesAnyPictureSize) {
    const std::string path = LAMINATE_EXAMPLE_DATA "/fsrcnn_x2.onnx";
    const Network net = open_network(path, {.height = 37, .width = 53});
    EXPECT_EQ(net.name, "fsrcnn_x2");
    EXPECT_EQ(input_dims(net), (std::vector<int64_t>{1, 1, 37, 53}));
    EXPECT_EQ(net.tensor(net.outputs[0]).dims, (std::vector<int64_t>{1, 1, 74, 106}));
    ASSERT_EQ(net.layers.size(), 8u);  // seven PRelu nodes are folded away
    EXPECT_EQ(net.folded.size(), 7u);
    EXPECT_EQ(net.layers[0].name, "conv1");
    EXPECT_EQ(net.layers[7].name, "deconv1");
    EXPECT_EQ(net.layers[0].activation.kind, ActivationKind::prelu);
    EXPECT_EQ(net.layers[0].activation.slope->values.size(), 56u);
    EXPECT_EQ(net.layers[7].window.output_padding, (std::array<int64_t, 2>{1, 1}));
    expect_contains(message_of([&] { (void)open_network(path); }),
                    "input \"luma\": dimension 3 of 4 is symbolic (\"H\"); expected --height");
    expect_contains(message_of([&] { (void)open_network(path, {.height = 37}); }),
                    "dimension 4 of 4 is symbolic (\"W\"); expected --width");
}

}  // namespace
}  // namespace laminate
