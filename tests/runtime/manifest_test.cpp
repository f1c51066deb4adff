#include "runtime/manifest.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "tests/runtime/hand_network.h"

namespace laminate {
namespace {

ConstantPtr constant(std::vector<int64_t> dims, std::vector<float> values) {
    return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
}

/// x -> group -> a -> convolution -> b, ...; every attribute of a layer differs from its default
/// somewhere.
HandNetwork example() {
    HandNetwork network;
    network.manifest.cpu_features = {"avx2", "fma"};
    const TensorId x = network.tensor("x", {1, 1, 3, 3}), a = network.tensor("a", {1, 1, 3, 3}),
                   b = network.tensor("b", {1, 2, 2, 2});
    const TensorId c = network.tensor("c", {1, 2, 2, 2});
    network.manifest.inputs = {x};
    network.manifest.outputs = {c, a};
    network.group(nullptr, {x}, {a}, 3, 256, {1, 2, 3});
    Layer conv;
    conv.name = "conv", conv.onnx_name = "Conv/\"1\"", conv.inputs = {a}, conv.output = b;
    conv.window.kernel = {2, 2};
    conv.weights = constant({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    conv.bias = constant({2}, {9, 10});
    conv.activation.kind = ActivationKind::prelu;
    conv.activation.slope = constant({1}, {0.5f});
    network.layer(conv);
    Layer clip;
    clip.name = "clip", clip.kind = LayerKind::activation, clip.inputs = {b}, clip.output = c;
    clip.activation.kind = ActivationKind::clip;
    clip.activation.low = 0.1f;
    clip.activation.high = std::numeric_limits<float>::infinity();
    network.layer(clip);
    return network;
}

TEST(Manifest, TextAndBackIsTheSameText) {
    HandNetwork network = example();
    std::get<GroupStep>(network.manifest.steps.front()).strips_together = 3;
    network.manifest.strict = true;
    const std::string text = to_json(network.manifest);
    EXPECT_EQ(to_json(parse_manifest(text, "m")), text);
    EXPECT_TRUE(parse_manifest(text, "m").strict);
    EXPECT_NE(text, to_json(example().manifest));
}

TEST(Manifest, TypesOfTensorsComeBack) {
    HandNetwork network = example();
    network.manifest.tensors[0].type = ElementType::uint8;
    network.manifest.tensors[3].type = ElementType::int8;
    const std::string text = to_json(network.manifest);
    const Manifest read = parse_manifest(text, "m");
    EXPECT_EQ(read.tensors[0].type, ElementType::uint8);
    EXPECT_EQ(read.tensors[1].type, ElementType::float32);
    EXPECT_EQ(read.tensors[3].type, ElementType::int8);
    EXPECT_EQ(to_json(read), text);
}

TEST(Manifest, StepsComeBackWithEveryField) {
    const HandNetwork network = example();
    const Manifest read = parse_manifest(to_json(network.manifest), "m");
    EXPECT_EQ(read.network, "by hand");
    EXPECT_EQ(read.network_hash, "0123456789abcdef");
    EXPECT_EQ(read.target, "x86-64-linux");
    EXPECT_EQ(read.halide_version, "21.0.0");
    EXPECT_EQ(read.cpu_features, (std::vector<std::string>{"avx2", "fma"}));
    EXPECT_EQ(read.outputs, (std::vector<TensorId>{3, 1}));
    EXPECT_EQ(read.tensors[2].dims, (std::vector<int64_t>{1, 2, 2, 2}));
    ASSERT_EQ(read.steps.size(), 3u);
    EXPECT_EQ(std::get<GroupStep>(read.steps[0]), std::get<GroupStep>(network.manifest.steps[0]));
    const Layer& clip = std::get<LayerStep>(read.steps[2]).layer;
    EXPECT_EQ(clip.activation.low, 0.1f);
    EXPECT_EQ(clip.activation.high, std::numeric_limits<float>::infinity());
}

TEST(Manifest, ConstantsOfALayerLieOnCacheLinesAndComeBack) {
    const HandNetwork network = example();
    const auto& step = std::get<LayerStep>(network.manifest.steps[1]);
    // Three elements of the group, then 64-byte boundaries (16 elements): 8 weights, 2 biases, 1
    // slope.
    EXPECT_EQ(step.weights->offset_elements, 16);
    EXPECT_EQ(step.bias->offset_elements, 32);
    EXPECT_EQ(step.slope->offset_elements, 48);
    EXPECT_EQ(network.constants.size(), 49u);
    const Layer layer = restored_layer(step, network.constants.data(), 49);
    EXPECT_EQ(layer.weights->dims, (std::vector<int64_t>{2, 1, 2, 2}));
    EXPECT_EQ(layer.weights->values, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(layer.bias->values, (std::vector<float>{9, 10}));
    EXPECT_EQ(layer.activation.slope->values, (std::vector<float>{0.5f}));
    EXPECT_EQ(layer.onnx_name, "Conv/\"1\"");
}

TEST(Manifest, ConstantsThatEndOutsideTheBlockAreRefused) {
    const HandNetwork network = example();
    try {
        (void)restored_layer(std::get<LayerStep>(network.manifest.steps[1]),
                             network.constants.data(), 48);
        FAIL() << "expected InputError";
    } catch (const InputError& error) {
        EXPECT_STREQ(
            error.what(),
            "conv: slopes are 1 at element 48 of the constants, expected an end at or before 48");
    }
}

TEST(Manifest, EveryAttributeOfALayerComesBack) {
    Layer layer;
    layer.name = "all", layer.kind = LayerKind::conv_transpose, layer.inputs = {0},
    layer.output = 1;
    layer.window = {{2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {1, 2}};
    layer.groups = 12, layer.axis = 2, layer.block = 3, layer.depth_to_space_crd = true,
    layer.count_include_pad = true;
    layer.activation.kind = ActivationKind::unary;
    layer.activation.function = GeneralFunction::selu;
    layer.activation.alpha = 0.3f;
    layer.activation.beta = 1.7f;
    HandNetwork network;
    network.manifest.inputs = {network.tensor("x", {1, 1, 1, 1})};
    network.manifest.outputs = {network.tensor("y", {1, 1, 1, 1})};
    network.layer(layer);
    const Manifest manifest = parse_manifest(to_json(network.manifest), "m");
    const Layer& read = std::get<LayerStep>(manifest.steps[0]).layer;
    EXPECT_EQ(read.kind, LayerKind::conv_transpose);
    EXPECT_EQ(read.window.kernel, layer.window.kernel);
    EXPECT_EQ(read.window.stride, layer.window.stride);
    EXPECT_EQ(read.window.dilation, layer.window.dilation);
    EXPECT_EQ(read.window.pad_begin, layer.window.pad_begin);
    EXPECT_EQ(read.window.pad_end, layer.window.pad_end);
    EXPECT_EQ(read.window.output_padding, layer.window.output_padding);
    EXPECT_EQ(read.groups, 12);
    EXPECT_EQ(read.axis, 2);
    EXPECT_EQ(read.block, 3);
    EXPECT_TRUE(read.depth_to_space_crd);
    EXPECT_TRUE(read.count_include_pad);
    EXPECT_EQ(read.activation.kind, ActivationKind::unary);
    EXPECT_EQ(read.activation.function, GeneralFunction::selu);
    EXPECT_EQ(read.activation.alpha, 0.3f);
    EXPECT_EQ(read.activation.beta, 1.7f);
}

/// The error message for the example after `change`.
std::string error_after(const std::function<void(nlohmann::ordered_json&)>& change) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(to_json(example().manifest));
    change(json);
    try {
        (void)parse_manifest(json.dump(), "m.json");
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Manifest, WhatIsWrongIsNamedWithItsPlace) {
    using Json = nlohmann::ordered_json;
    EXPECT_EQ(error_after([](Json& m) { m["schema"] = "other"; }),
              "m.json: schema is \"other\", expected \"laminate.manifest\"");
    EXPECT_EQ(error_after([](Json& m) { m["version"] = 2; }), "m.json: version is 2, expected 1");
    EXPECT_EQ(error_after([](Json& m) { m.erase("target"); }), "m.json: has no \"target\"");
    EXPECT_EQ(error_after([](Json& m) { m["library"] = "../evil"; }),
              "m.json: library is \"../evil\", expected a name of letters, digits and _");
    EXPECT_EQ(error_after([](Json& m) { m["tensors"][1]["dims"][2] = 0; }),
              "m.json.tensors[1].dims[2]: is 0, expected an integer from 1");
    EXPECT_EQ(error_after([](Json& m) {
                  m["tensors"][1]["dims"] = {1 << 30, 1 << 30};
              }),
              "m.json: tensor a: tensor of 1073741824x1073741824: more than 2^40 elements");
    EXPECT_EQ(error_after([](Json& m) { m["inputs"] = Json::object(); }),
              "m.json.inputs: is object, expected an array");
    EXPECT_EQ(error_after([](Json& m) { m["inputs"][0] = 4; }),
              "m.json: inputs names tensor 4 of 4");
    EXPECT_EQ(error_after([](Json& m) { m["inputs"][0] = 5000000000; }),
              "m.json.inputs[0]: is 5000000000, expected an integer 0 to 2147483647");
    EXPECT_EQ(error_after([](Json& m) { m["inputs"][0] = 18446744073709551615u; }),
              "m.json.inputs[0]: is 18446744073709551615, expected an integer 0 to 2147483647");
    EXPECT_EQ(error_after([](Json& m) { m["outputs"] = Json::array(); }), "m.json: has no outputs");
    EXPECT_EQ(error_after([](Json& m) { m["steps"][0]["kind"] = "loop"; }),
              "m.json.steps[0]: kind is \"loop\", expected group or layer");
    EXPECT_EQ(error_after([](Json& m) { m["steps"][0]["strips"] = 0; }),
              "m.json.steps[0].strips: is 0, expected an integer 1 to 2147483647");
    EXPECT_EQ(error_after([](Json& m) { m["steps"][0]["strips_together"] = 2; }),
              "m.json: step group0 has 2 of 3 strips together, expected a divisor");
    EXPECT_EQ(error_after([](Json& m) { m["steps"][0]["scratch_bytes"] = int64_t{1} << 50; }),
              "m.json: step group0 needs 1125899906842624 bytes of scratch, expected at most "
              "1099511627776");
    EXPECT_EQ(error_after([](Json& m) { m["steps"][0]["outputs"] = {0}; }),
              "m.json: step group0 writes tensor x, which is already written");
    EXPECT_EQ(error_after([](Json& m) { m["steps"].erase(0); }),
              "m.json: step conv reads tensor a, which is not yet written");
    EXPECT_EQ(error_after([](Json& m) { m["tensors"][1]["dims"][0] = 2; }),
              "m.json: step group0: tensor a is 2x1x3x3, expected a batch of 1");
    EXPECT_EQ(error_after([](Json& m) {
                  m["steps"][1]["layer"]["window"]["kernel"] = {1, 2, 3};
              }),
              "m.json.steps[1].layer.window.kernel: has 3 elements, expected 2, y and x");
    EXPECT_EQ(error_after([](Json& m) { m["steps"][1]["layer"]["activation"]["kind"] = "gelu"; }),
              "m.json.steps[1].layer.activation.kind: is \"gelu\", expected one of none, relu, "
              "leaky_relu, prelu, "
              "clip, sigmoid, tanh, unary");
    EXPECT_EQ(
        error_after([](Json& m) { m["steps"][1]["layer"]["weights"]["offset_elements"] = -1; }),
        "m.json.steps[1].layer.weights.offset_elements: is -1, expected an integer from 0");
}

TEST(Manifest, GarbageIsAnErrorNeverACrash) {
    EXPECT_THROW((void)parse_manifest("", "m"), InputError);
    EXPECT_THROW((void)parse_manifest("[1, 2", "m"), InputError);
    EXPECT_THROW((void)parse_manifest("[]", "m"), InputError);
    EXPECT_THROW((void)parse_manifest(std::string(100000, '['), "m"), InputError);
    // A good manifest with any single byte changed is read or refused.
    const std::string good = to_json(example().manifest);
    std::mt19937 random(3);
    int refused = 0;
    for (int trial = 0; trial < 2000; ++trial) {
        std::string bad = good;
        bad[random() % bad.size()] = static_cast<char>(random() % 256);
        try {
            (void)parse_manifest(bad, "m");
        } catch (const InputError&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace laminate
