#include "nets/zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

int64_t total_macs(const Network& network) {
    int64_t macs = 0;
    for (size_t i = 0; i < network.layers.size(); ++i)
        macs += layer_macs(network, static_cast<LayerId>(i));
    return macs;
}

/// Number of weights and biases.
int64_t parameters(const Network& network) {
    int64_t count = 0;
    for (const Layer& layer : network.layers) {
        for (const ConstantPtr& c : {layer.weights, layer.bias})
            count += c == nullptr ? 0 : static_cast<int64_t>(c->values.size());
    }
    return count;
}

std::vector<int64_t> output_dims(const Network& network, const char* layer) {
    return network.tensor(network.layer(network.find_layer(layer)).output).dims;
}

int64_t count_of(const Network& network, LayerKind kind) {
    return std::count_if(network.layers.begin(), network.layers.end(),
                         [&](const Layer& layer) { return layer.kind == kind; });
}

TEST(Zoo, L2NetIsTable6) {
    const Network net = zoo_network("l2net");
    EXPECT_EQ(net.tensor(net.inputs[0]).dims, (std::vector<int64_t>{1, 3, 20, 20}));
    EXPECT_EQ(output_dims(net, "conv1"), (std::vector<int64_t>{1, 4, 18, 18}));
    EXPECT_EQ(output_dims(net, "conv2"), (std::vector<int64_t>{1, 4, 16, 16}));
    EXPECT_EQ(layer_macs(net, 0), 18 * 18 * 4 * 3 * 9);  // 34,992
    EXPECT_EQ(layer_macs(net, 1), 16 * 16 * 4 * 4 * 9);  // 36,864
    EXPECT_EQ(total_macs(net), 71856);                   // ConvFusion's anchor
    for (const Layer& layer : net.layers) {
        EXPECT_EQ(layer.bias, nullptr);
        EXPECT_EQ(layer.activation.kind, ActivationKind::none);
    }
}

TEST(Zoo, AlexNetIsAsPublished) {
    const Network net = zoo_network("alexnet");
    EXPECT_EQ(output_dims(net, "conv1"), (std::vector<int64_t>{1, 96, 55, 55}));
    EXPECT_EQ(output_dims(net, "conv2"), (std::vector<int64_t>{1, 256, 27, 27}));
    EXPECT_EQ(output_dims(net, "conv5"), (std::vector<int64_t>{1, 256, 13, 13}));
    const int64_t convolutions = 55 * 55 * 96 * 3 * 121 + 27 * 27 * 256 * 48 * 25 +
                                 13 * 13 * (384 * 256 + 384 * 192 + 256 * 192) * 9;
    EXPECT_EQ(total_macs(net),
              convolutions + 9216 * 4096 + 4096 * 4096 + 4096 * 1000);  // 724,406,816
    EXPECT_EQ(parameters(net), 60965224);                               // the paper: 60 million
}

TEST(Zoo, OtherNetsOfTable6) {
    const Network three = zoo_network("l3net");
    EXPECT_EQ(three.tensor(three.inputs[0]).dims, (std::vector<int64_t>{1, 3, 22, 22}));
    EXPECT_EQ(output_dims(three, "conv1"), (std::vector<int64_t>{1, 4, 20, 20}));
    EXPECT_EQ(total_macs(three),
              20 * 20 * 4 * 27 + 18 * 18 * 4 * 36 + 16 * 16 * 4 * 36);  // 126,720
    EXPECT_EQ(output_dims(zoo_network("4k"), "conv1"), (std::vector<int64_t>{1, 4, 2158, 3838}));
    EXPECT_EQ(output_dims(zoo_network("4k"), "conv2"), (std::vector<int64_t>{1, 4, 2156, 3836}));
    EXPECT_EQ(output_dims(zoo_network("l3net-4k"), "conv3"),
              (std::vector<int64_t>{1, 4, 2154, 3834}));
    EXPECT_EQ(output_dims(zoo_network("wide"), "conv1"), (std::vector<int64_t>{1, 1024, 18, 18}));
    EXPECT_EQ(output_dims(zoo_network("wide"), "conv2"), (std::vector<int64_t>{1, 4, 16, 16}));
    EXPECT_EQ(output_dims(zoo_network("l3net-wide"), "conv2"),
              (std::vector<int64_t>{1, 1024, 18, 18}));
    EXPECT_EQ(output_dims(zoo_network("l3net-wide"), "conv3"),
              (std::vector<int64_t>{1, 4, 16, 16}));
}

TEST(Zoo, SuperResolutionAndStereo) {
    // Per pixel: 25 * 56 + 56 * 12 + 4 * 12 * 12 * 9 + 12 * 56 + 56 * 81 = 1400 + 672 + 5184 + 672
    // + 4536 = 12,464.
    const Network fsrcnn = zoo_network("fsrcnn");
    EXPECT_EQ(total_macs(fsrcnn), int64_t{540 * 960} * 12464);  // 12.9 GFLOP
    EXPECT_EQ(fsrcnn.tensor(fsrcnn.outputs[0]).dims, (std::vector<int64_t>{1, 1, 540, 960}));
    // With stride 2 every second tap per axis reaches an output, so the 4 outputs of an input pixel
    // take 81 taps together, as many as without stride.
    const Network x2 = zoo_network("fsrcnn-x2");
    EXPECT_EQ(total_macs(x2), int64_t{540 * 960} * 12464);
    EXPECT_EQ(x2.tensor(x2.outputs[0]).dims, (std::vector<int64_t>{1, 1, 1080, 1920}));
    EXPECT_EQ(total_macs(zoo_network("dmcnn-vd")),
              int64_t{540 * 960} * (3 * 64 * 9 + 18 * 64 * 64 * 9 + 64 * 3 * 9));  // 692 GFLOP
    EXPECT_EQ(zoo_network("dmcnn-vd").layers.size(), 20u);
    const Network whole =
        zoo_network("dmcnn-vd", {.height = 2160, .width = 3840});  // ConvFusion's headline size
    EXPECT_EQ(whole.tensor(whole.outputs[0]).dims, (std::vector<int64_t>{1, 3, 2160, 3840}));
    EXPECT_EQ(parameters(whole),
              3 * 64 * 9 + 18 * 64 * 64 * 9 + 64 * 3 * 9 + 19 * 64 + 3);  // 668,227
    EXPECT_EQ(total_macs(zoo_network("mc-cnn")),
              int64_t{540 * 960} * (32 * 9 + 3 * 32 * 32 * 9));  // 29 GFLOP
}

TEST(Zoo, ClassificationNetsHaveThePublishedSizes) {
    // torchvision's documentation: parameters without batch norm's own, multiply-adds at 224 x 224.
    const Network vgg = zoo_network("vgg16");
    EXPECT_EQ(parameters(vgg), 138357544);
    EXPECT_EQ(total_macs(vgg), 15470264320);  // 15.47 G
    EXPECT_EQ(output_dims(vgg, "pool5"), (std::vector<int64_t>{1, 512, 7, 7}));

    const Network vgg19 = zoo_network("vgg19", {.height = 32, .width = 32});
    // 143,667,240 in torchvision, with 7 x 7 x 512 inputs of fc6 where this small picture has one
    // pixel.
    EXPECT_EQ(parameters(vgg19), 143667240 - 48 * 512 * 4096);
    EXPECT_EQ(vgg19.layers.size(), 16u + 5 + 1 + 3 + 1);

    const Network resnet18 = zoo_network("resnet18");
    EXPECT_EQ(total_macs(resnet18), 1814073344);  // 1.81 G
    EXPECT_EQ(output_dims(resnet18, "layer4_1_add"), (std::vector<int64_t>{1, 512, 7, 7}));
    // 11,689,512 in torchvision, where each of 4800 normalised channels has two parameters; folded,
    // one bias.
    EXPECT_EQ(parameters(resnet18), 11689512 - 4800);

    const Network resnet50 = zoo_network("resnet50");
    EXPECT_EQ(total_macs(resnet50), 4089184256);  // 4.09 G
    EXPECT_EQ(parameters(resnet50), 25557032 - 26560);
    EXPECT_EQ(output_dims(resnet50, "layer4_2_add"), (std::vector<int64_t>{1, 2048, 7, 7}));

    // keras.applications: 25,636,712 parameters. Each of 26,560 normalised channels has a bias and
    // four parameters of batch norm, folded into one. Stride in the first 1x1 of a bottleneck: 3.8
    // G (He et al., Table 1).
    const Network keras = zoo_network("resnet50-keras");
    EXPECT_EQ(total_macs(keras), 3857973248);
    EXPECT_EQ(parameters(keras), 25636712 - 4 * 26560);
    EXPECT_EQ(keras.layers.size(), resnet50.layers.size());

    const Network v1 = zoo_network("mobilenetv1");
    EXPECT_EQ(total_macs(v1), 568740352);  // 569 M
    EXPECT_EQ(output_dims(v1, "pointwise13"), (std::vector<int64_t>{1, 1024, 7, 7}));

    const Network v2 = zoo_network("mobilenetv2");
    EXPECT_EQ(total_macs(v2), 300774272);  // 301 M
    EXPECT_EQ(parameters(v2), 3504872 - 17056);
    EXPECT_EQ(output_dims(v2, "conv_last"), (std::vector<int64_t>{1, 1280, 7, 7}));
}

TEST(Zoo, NetsThatOptimusGroups) {
    const Network googlenet = zoo_network("googlenet");
    EXPECT_EQ(output_dims(googlenet, "pool1"), (std::vector<int64_t>{1, 64, 56, 56}));
    EXPECT_EQ(output_dims(googlenet, "inception4e"), (std::vector<int64_t>{1, 832, 14, 14}));
    EXPECT_EQ(parameters(googlenet), 6998552);  // Caffe's bvlc_googlenet
    EXPECT_NEAR(static_cast<double>(total_macs(googlenet)), 1.58e9, 0.01e9);

    const Network squeezenet =
        zoo_network("squeezenet");  // torchvision: 1,248,424 and 1,235,496 parameters
    EXPECT_EQ(parameters(squeezenet), 1248424);
    EXPECT_EQ(output_dims(squeezenet, "conv1"), (std::vector<int64_t>{1, 96, 109, 109}));
    EXPECT_EQ(output_dims(squeezenet, "pool4"),
              (std::vector<int64_t>{1, 256, 27,
                                    27}));  // (54 - 3) / 2 = 25.5, the window at 52 lacks a row
    EXPECT_EQ(parameters(zoo_network("squeezenet-1.1")), 1235496);

    const Network resnet152 =
        zoo_network("resnet152");  // torchvision: 60,192,808, with two parameters for each of
                                   // 75,712 normalised channels
    EXPECT_EQ(parameters(resnet152), 60192808 - 75712);
    EXPECT_EQ(count_of(resnet152, LayerKind::conv), 151 + 4);
    EXPECT_NEAR(static_cast<double>(total_macs(resnet152)), 11.5e9, 0.05e9);

    // 1201 convolutions of 3x3, two shortcuts that change the size, one fully connected layer; 19.4
    // M parameters in He et al., Table 6.
    const Network resnet1202 = zoo_network("resnet1202");
    EXPECT_EQ(count_of(resnet1202, LayerKind::conv), 1 + 3 * 200 * 2 + 2);
    EXPECT_NEAR(static_cast<double>(parameters(resnet1202)), 19.4e6, 0.05e6);
    EXPECT_EQ(output_dims(resnet1202, "layer3_199_add"), (std::vector<int64_t>{1, 64, 8, 8}));

    // Zoph et al., Table 2: 564 M multiply-adds, 5.3 M parameters. 16 cells: 12 with 5 Adds, 4
    // with 5.
    const Network nasnet = zoo_network("nasnet-a");
    EXPECT_EQ(count_of(nasnet, LayerKind::add), 16 * 5);
    // No tensor is rectified twice: the stem, the 16 outputs of cells, the 16 h, the 15 p (the
    // first cell's is the stem), and b1 in the 4 reductions.
    EXPECT_EQ(count_of(nasnet, LayerKind::activation), 1 + 16 + 16 + 15 + 4);
    EXPECT_EQ(output_dims(nasnet, "stage3_cell4_join"), (std::vector<int64_t>{1, 1056, 7, 7}));
    EXPECT_NEAR(static_cast<double>(total_macs(nasnet)), 564e6, 6e6);
    EXPECT_NEAR(static_cast<double>(parameters(nasnet)), 5.3e6, 0.05e6);
}

TEST(Zoo, InceptionV3IsThatOfKeras) {
    const Network net = zoo_network("inceptionv3");
    EXPECT_EQ(net.tensor(net.inputs[0]).dims, (std::vector<int64_t>{1, 3, 299, 299}));
    EXPECT_EQ(output_dims(net, "pool2"), (std::vector<int64_t>{1, 192, 35, 35}));
    EXPECT_EQ(output_dims(net, "mixed0"), (std::vector<int64_t>{1, 64 + 64 + 96 + 32, 35, 35}));
    EXPECT_EQ(output_dims(net, "mixed2"), (std::vector<int64_t>{1, 64 + 64 + 96 + 64, 35, 35}));
    EXPECT_EQ(output_dims(net, "mixed3"), (std::vector<int64_t>{1, 384 + 96 + 288, 17, 17}));
    EXPECT_EQ(output_dims(net, "mixed7"), (std::vector<int64_t>{1, 4 * 192, 17, 17}));
    EXPECT_EQ(output_dims(net, "mixed8"), (std::vector<int64_t>{1, 320 + 192 + 768, 8, 8}));
    EXPECT_EQ(output_dims(net, "mixed10"), (std::vector<int64_t>{1, 320 + 768 + 768 + 192, 8, 8}));
    EXPECT_EQ(count_of(net, LayerKind::conv), 94);
    // keras.applications: 23,851,784 parameters, of which each of 17,216 normalised channels has
    // three (no scale); folded, one.
    EXPECT_EQ(parameters(net), 23851784 - 2 * 17216);

    const auto a = [](int64_t in,
                      int64_t pool) {  // 1x1; 1x1, 5x5; 1x1, two 3x3; 1x1 after the pool
        return 35 * 35 *
               (in * 64 + in * 48 + 48 * 64 * 25 + in * 64 + 64 * 96 * 9 + 96 * 96 * 9 + in * pool);
    };
    const auto b =
        [](int64_t maps) {  // 1x1; 1x1 and two of 7; 1x1 and four of 7; 1x1 after the pool
            return 17 * 17 *
                   (768 * 192 + 768 * maps + 7 * maps * (maps + 192) + 768 * maps +
                    7 * maps * (3 * maps + 192) + 768 * 192);
        };
    const auto c =
        [](int64_t in) {  // 1x1; 1x1 and two of 3; 1x1, 3x3 and two of 3; 1x1 after the pool
            return 8 * 8 *
                   (in * 320 + in * 384 + 2 * 384 * 384 * 3 + in * 448 + 448 * 384 * 9 +
                    2 * 384 * 384 * 3 + in * 192);
        };
    const int64_t stem = 149 * 149 * 3 * 32 * 9 + 147 * 147 * (32 * 32 * 9 + 32 * 64 * 9) +
                         73 * 73 * 64 * 80 + 71 * 71 * 80 * 192 * 9;
    const int64_t mixed3 =
        17 * 17 * 288 * 384 * 9 + 35 * 35 * (288 * 64 + 64 * 96 * 9) + 17 * 17 * 96 * 96 * 9;
    const int64_t mixed8 = 17 * 17 * 768 * 192 + 8 * 8 * 192 * 320 * 9 +
                           17 * 17 * (768 * 192 + 2 * 7 * 192 * 192) + 8 * 8 * 192 * 192 * 9;
    EXPECT_EQ(total_macs(net), stem + a(192, 32) + a(256, 64) + a(288, 64) + mixed3 + b(128) +
                                   2 * b(160) + b(192) + mixed8 + c(1280) + c(2048) + 2048 * 1000);
    EXPECT_NEAR(static_cast<double>(total_macs(net)), 5.7e9, 0.05e9);  // torchvision: 5.71 G
}

TEST(Zoo, XceptionIsThatOfKeras) {
    const Network net = zoo_network("xception");
    EXPECT_EQ(net.tensor(net.inputs[0]).dims, (std::vector<int64_t>{1, 3, 299, 299}));
    EXPECT_EQ(output_dims(net, "block1_conv2"), (std::vector<int64_t>{1, 64, 147, 147}));
    EXPECT_EQ(output_dims(net, "block2_add"), (std::vector<int64_t>{1, 128, 74, 74}));
    EXPECT_EQ(output_dims(net, "block3_add"), (std::vector<int64_t>{1, 256, 37, 37}));
    EXPECT_EQ(output_dims(net, "block4_add"), (std::vector<int64_t>{1, 728, 19, 19}));
    EXPECT_EQ(output_dims(net, "block12_add"), (std::vector<int64_t>{1, 728, 19, 19}));
    EXPECT_EQ(output_dims(net, "block13_add"), (std::vector<int64_t>{1, 1024, 10, 10}));
    EXPECT_EQ(output_dims(net, "block14_sepconv2_pointwise"),
              (std::vector<int64_t>{1, 2048, 10, 10}));
    // With even sizes "same" pads only the end.
    const Window& pool =
        net.layer(net.find_layer("block3_pool")).window;  // 74 -> 37: (37 - 1) * 2 + 3 - 74 = 1
    EXPECT_EQ(pool.pad_begin[0], 0);
    EXPECT_EQ(pool.pad_end[0], 1);
    // 36 convolutional layers in the paper: 2 and 34 separable ones; beside them 4 shortcuts.
    EXPECT_EQ(count_of(net, LayerKind::conv), 2 + 2 * 34 + 4);
    EXPECT_EQ(count_of(net, LayerKind::add), 12);
    // keras.applications: 22,910,480 parameters, of which each of 27,264 normalised channels has
    // four; folded, one.
    EXPECT_EQ(parameters(net), 22910480 - 3 * 27264);

    const auto separable = [](int64_t size, int64_t in, int64_t out) {
        return size * size * in * (9 + out);
    };
    const auto shortcut = [](int64_t size, int64_t in, int64_t out) {
        return size * size * in * out;
    };
    EXPECT_EQ(total_macs(net),
              149 * 149 * 3 * 32 * 9 + 147 * 147 * 32 * 64 * 9 + separable(147, 64, 128) +
                  separable(147, 128, 128) + shortcut(74, 64, 128) + separable(74, 128, 256) +
                  separable(74, 256, 256) + shortcut(37, 128, 256) + separable(37, 256, 728) +
                  separable(37, 728, 728) + shortcut(19, 256, 728) +
                  8 * 3 * separable(19, 728, 728) + separable(19, 728, 728) +
                  separable(19, 728, 1024) + shortcut(10, 728, 1024) + separable(10, 1024, 1536) +
                  separable(10, 1536, 2048) + 2048 * 1000);
    EXPECT_NEAR(static_cast<double>(total_macs(net)), 8.4e9,
                0.05e9);  // 8.4 G (Cadene, pretrained-models.pytorch)
}

TEST(Zoo, DefinesNetsHaveTheShapesOfTheArtifact) {
    const Network fsrcnn = zoo_network("fsrcnn-defines");
    EXPECT_EQ(total_macs(fsrcnn), 8'362'594'208);
    EXPECT_EQ(output_dims(fsrcnn, "map2"), (std::vector<int64_t>{1, 12, 546, 966}));
    EXPECT_EQ(output_dims(fsrcnn, "reconstruct"), (std::vector<int64_t>{1, 16, 540, 960}));
    EXPECT_EQ(total_macs(zoo_network("dmcnn-vd-defines")), 278'813'332'224);
    EXPECT_EQ(total_macs(zoo_network("mccnn-defines")), 52'278'792'192);
    // The artifact also counts the average pooling: 7 * 7 * 1024.
    EXPECT_EQ(total_macs(zoo_network("mobilenetv1-defines")), 1'891'288'512 - 50'176);

    // The artifact counts poolings (13,838,400 and 25,088) and additions, one each per output; we
    // count our shortcuts.
    const Network resnet18 = zoo_network("resnet18-defines");
    int64_t additions = 0, shortcuts = 0;
    for (size_t i = 0; i < resnet18.layers.size(); ++i) {
        const Layer& layer = resnet18.layers[i];
        if (layer.kind == LayerKind::add)
            additions += element_count(resnet18.tensor(layer.output).dims);
        if (layer.name.ends_with("shortcut"))
            shortcuts += layer_macs(resnet18, static_cast<LayerId>(i));
    }
    EXPECT_EQ(additions,
              1'459'264 + 1'382'976 + 645'248 + 574'592 + 246'016 + 186'624 + 61'952 + 25'088);
    EXPECT_EQ(total_macs(resnet18) - shortcuts, 9'353'143'424 - 13'838'400 - 25'088 - additions);
    EXPECT_EQ(output_dims(resnet18, "layer4_1_add"), (std::vector<int64_t>{1, 512, 7, 7}));
}

TEST(Zoo, EveryNetIsLegalAtAnotherSize) {
    for (const ZooEntry& entry : zoo_entries()) {
        // Not below 75: InceptionV3 halves five times without padding. DeFiNES' nets have no
        // padding at all.
        const bool unpadded = entry.name.ends_with("-defines");
        const int64_t height = unpadded ? entry.height + 5 : 80;
        const int64_t width = unpadded ? entry.width + 4 : 75;
        const Network network =
            zoo_network(entry.name, {.height = height, .width = width, .batch = 2});
        EXPECT_NO_THROW(check(network)) << entry.name;
        EXPECT_TRUE(is_identifier(network.name)) << network.name;
        EXPECT_EQ(network.tensor(network.inputs[0]).dims[0], 2) << entry.name;
        EXPECT_EQ(network.tensor(network.inputs[0]).dims[2], height) << entry.name;
        EXPECT_EQ(network.tensor(network.inputs[0]).dims[3], width) << entry.name;
    }
}

TEST(Zoo, WeightsDependOnTheSeedOnly) {
    EXPECT_EQ(network_hash(zoo_network("fsrcnn")), network_hash(zoo_network("fsrcnn")));
    EXPECT_NE(network_hash(zoo_network("fsrcnn")),
              network_hash(zoo_network("fsrcnn", {.seed = 2})));
    // Golden values: the generator's first values must be the same on every machine, because
    // compiled code carries the hash of a network.
    EXPECT_EQ(network_hash(zoo_network("l2net")), "73551c626310201c");
}

TEST(Zoo, WeightsHaveHeVariance) {
    const Network net = zoo_network("dmcnn-vd");
    const Constant& weights = *net.layers[5].weights;  // 64 -> 64, 3x3, ReLU after
    double sum = 0, squares = 0;
    for (const float w : weights.values) {
        sum += w;
        squares += double{w} * w;
    }
    const auto n = static_cast<double>(
        weights.values.size());  // 36,864: deviation of the mean 1/192, of the variance 1 %
    const double variance = 2.0 / (64 * 9);
    EXPECT_NEAR(sum / n, 0.0, 4 * std::sqrt(variance / n));
    EXPECT_NEAR(squares / n / variance, 1.0, 0.04);
}

TEST(Zoo, Refusals) {
    test::expect_contains(test::message_of([] { (void)zoo_network("lenet"); }),
                          "zoo:lenet: no such network; known: l2net, l3net, l2net-4k");
    test::expect_contains(
        test::message_of([] { (void)zoo_network("l2net", {.height = 4, .width = 20}); }),
        "zoo:l2net: input 1x3x4x20: conv2 (conv): window spans 3 along y, the padded input only 2");
    test::expect_contains(test::message_of([] { (void)zoo_network("l2net", {.batch = 0}); }),
                          "zoo:l2net: batch, height, width: tensor of 0x20x20: dimension 0");
}

}  // namespace
}  // namespace laminate
