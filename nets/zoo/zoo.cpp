#include "nets/zoo/zoo.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "nets/zoo/recipes.h"

namespace laminate {

namespace {

using Build = std::function<Network(const std::string& name, const ZooOptions& options,
                                    int64_t height, int64_t width)>;

struct Recipe {
    ZooEntry entry;
    Build build;
};

Build convfusion_of(std::vector<int64_t> maps) {
    return [maps = std::move(maps)](const std::string& name, const ZooOptions& options,
                                    int64_t height, int64_t width) {
        return zoo::convfusion(name, options, height, width, maps);
    };
}

using S = const std::string&;
using O = const ZooOptions&;

/// Networks from picture to picture, ConvFusion's first.
std::vector<Recipe> picture_networks() {
    return {
        {{"l2net", {}, "two 3x3 convolutions, 3-4-4 maps (ConvFusion, Table 6)", 20, 20},
         convfusion_of({4, 4})},
        {{"l3net", {}, "three 3x3 convolutions, 3-4-4-4 maps (ConvFusion, Table 6)", 22, 22},
         convfusion_of({4, 4, 4})},
        {{"l2net-4k", {"4k"}, "l2net on a 4K picture (ConvFusion, Table 6)", 2160, 3840},
         convfusion_of({4, 4})},
        {{"l3net-4k", {}, "l3net on a 4K picture (ConvFusion, Table 6)", 2160, 3840},
         convfusion_of({4, 4, 4})},
        {{"l2net-wide", {"wide"}, "l2net with 1024 maps between (ConvFusion, Table 6)", 20, 20},
         convfusion_of({1024, 4})},
        {{"l3net-wide", {}, "l3net with 1024 maps between (ConvFusion, Table 6)", 22, 22},
         convfusion_of({1024, 1024, 4})},
        {{"fsrcnn",
          {},
          "FSRCNN(56,12,4), all convolutions, last one 9x9 (Dong et al., ECCV 2016)",
          540,
          960},
         [](S n, O o, int64_t h, int64_t w) { return zoo::fsrcnn(n, o, h, w, false); }},
        {{"fsrcnn-x2",
          {},
          "FSRCNN(56,12,4), x2 by a 9x9 transposed convolution (Dong et al., ECCV 2016)",
          540,
          960},
         [](S n, O o, int64_t h, int64_t w) { return zoo::fsrcnn(n, o, h, w, true); }},
        {{"dmcnn-vd",
          {},
          "DMCNN-VD demosaicing, 20 3x3 convolutions, 64 maps (Syu et al., 2018)",
          540,
          960},
         [](S n, O o, int64_t h, int64_t w) { return zoo::plain_trunk(n, o, 3, h, w, 20, 64, 3); }},
        {{"mc-cnn",
          {},
          "MC-CNN fast trunk with 32 maps, four 3x3 convolutions (after Zbontar and LeCun, JMLR "
          "2016)",
          540,
          960},
         [](S n, O o, int64_t h, int64_t w) { return zoo::plain_trunk(n, o, 1, h, w, 4, 32, 32); }},
        {{"mc-cnn-64",
          {},
          "MC-CNN fast trunk with 64 maps, KITTI size (Zbontar and LeCun, JMLR 2016; as in "
          "DeFiNES)",
          376,
          1242},
         [](S n, O o, int64_t h, int64_t w) { return zoo::plain_trunk(n, o, 1, h, w, 4, 64, 64); }},
    };
}

/// Classifiers of plain chains.
std::vector<Recipe> early_classifiers() {
    return {
        {{"alexnet",
          {},
          "AlexNet with head, two groups as published (Krizhevsky et al., NIPS 2012)",
          227,
          227},
         zoo::alexnet},
        {{"vgg16", {}, "VGG16 with head (Simonyan and Zisserman, 2014)", 224, 224},
         [](S n, O o, int64_t h, int64_t w) {
             return zoo::vgg(n, o, h, w, {2, 2, 3, 3, 3});
         }},
        {{"vgg19", {}, "VGG19 with head, configuration E of the same paper", 224, 224},
         [](S n, O o, int64_t h, int64_t w) {
             return zoo::vgg(n, o, h, w, {2, 2, 4, 4, 4});
         }},
    };
}

/// ResNets.
std::vector<Recipe> residual_networks() {
    return {
        {{"resnet18", {}, "ResNet18, batch norm folded (He et al., CVPR 2016)", 224, 224},
         [](S n, O o, int64_t h, int64_t w) {
             return zoo::resnet(
                 n, o, h, w, {.blocks = {2, 2, 2, 2}, .bottleneck = false, .stride_in_1x1 = false});
         }},
        {{"resnet50",
          {},
          "ResNet50, stride in the 3x3 convolution, batch norm folded (He et al., CVPR 2016)",
          224,
          224},
         [](S n, O o, int64_t h, int64_t w) {
             return zoo::resnet(
                 n, o, h, w, {.blocks = {3, 4, 6, 3}, .bottleneck = true, .stride_in_1x1 = false});
         }},
        {{"resnet50-keras",
          {},
          "ResNet50, stride in the first 1x1 convolution, batch norm folded (He et al., CVPR 2016; "
          "Keras)",
          224,
          224},
         [](S n, O o, int64_t h, int64_t w) {
             return zoo::resnet(
                 n, o, h, w, {.blocks = {3, 4, 6, 3}, .bottleneck = true, .stride_in_1x1 = true});
         }},
        {{"resnet152",
          {},
          "ResNet152, stride in the 3x3 convolution, batch norm folded (He et al., CVPR 2016)",
          224,
          224},
         [](S n, O o, int64_t h, int64_t w) {
             return zoo::resnet(
                 n, o, h, w, {.blocks = {3, 8, 36, 3}, .bottleneck = true, .stride_in_1x1 = false});
         }},
        {{"resnet1202",
          {},
          "ResNet1202 for CIFAR, 600 basic blocks, batch norm folded (He et al., CVPR 2016)",
          32,
          32},
         [](S n, O o, int64_t h, int64_t w) { return zoo::resnet_cifar(n, o, h, w, 200); }},
    };
}

/// Classifiers with branches or depthwise layers.
std::vector<Recipe> branching_networks() {
    return {
        {{"googlenet",
          {"inceptionv1"},
          "GoogLeNet, pools as in Caffe (Szegedy et al., CVPR 2015)",
          224,
          224},
         zoo::googlenet},
        {{"squeezenet", {"squeezenet1.0"}, "SqueezeNet 1.0 (Iandola et al., 2016)", 224, 224},
         [](S n, O o, int64_t h, int64_t w) { return zoo::squeezenet(n, o, h, w, false); }},
        {{"squeezenet-1.1", {"squeezenet1.1"}, "SqueezeNet 1.1 (Iandola et al., 2016)", 224, 224},
         [](S n, O o, int64_t h, int64_t w) { return zoo::squeezenet(n, o, h, w, true); }},
        {{"nasnet-a",
          {"nasnet-mobile"},
          "NASNet-A (4 @ 1056), batch norm folded (Zoph et al., CVPR 2018; Keras)",
          224,
          224},
         [](S n, O o, int64_t h, int64_t w) { return zoo::nasnet_a(n, o, h, w, 4, 1056); }},
        {{"mobilenetv1", {}, "MobileNetV1 1.0, batch norm folded (Howard et al., 2017)", 224, 224},
         [](S n, O o, int64_t h, int64_t w) { return zoo::mobilenet_v1(n, o, h, w, 1); }},
    };
}

/// Networks as in DeFiNES' artifact.
std::vector<Recipe> defines_networks() {
    return {
        {{"fsrcnn-defines",
          {},
          "FSRCNN as in DeFiNES' artifact: no padding, sub-pixel output (HPCA 2023)",
          554,
          974},
         zoo::fsrcnn_defines},
        {{"dmcnn-vd-defines", {}, "DMCNN-VD as in DeFiNES' artifact: no padding", 552, 808},
         [](S n, O o, int64_t h, int64_t w) {
             return zoo::plain_trunk_defines(n, o, 3, h, w, 20, 3);
         }},
        {{"mccnn-defines", {}, "MC-CNN fast trunk as in DeFiNES' artifact: no padding", 1250, 384},
         [](S n, O o, int64_t h, int64_t w) {
             return zoo::plain_trunk_defines(n, o, 1, h, w, 4, 64);
         }},
        {{"mobilenetv1-defines", {}, "MobileNetV1 as in DeFiNES' artifact: no padding", 507, 507},
         [](S n, O o, int64_t h, int64_t w) { return zoo::mobilenet_v1(n, o, h, w, 0); }},
        {{"resnet18-defines",
          {},
          "ResNet18 as in DeFiNES' artifact: no padding, shortcuts that select",
          627,
          627},
         zoo::resnet18_defines},
    };
}

/// Classifiers with separable convolutions and factorised kernels.
std::vector<Recipe> later_classifiers() {
    return {
        {{"mobilenetv2",
          {},
          "MobileNetV2 1.0, batch norm folded (Sandler et al., CVPR 2018)",
          224,
          224},
         zoo::mobilenet_v2},
        {{"inceptionv3",
          {},
          "InceptionV3, batch norm folded (Szegedy et al., CVPR 2016; Keras)",
          299,
          299},
         zoo::inception_v3},
        {{"xception", {}, "Xception, batch norm folded (Chollet, CVPR 2017; Keras)", 299, 299},
         zoo::xception},
    };
}

/// Classifiers for microcontrollers.
std::vector<Recipe> microcontroller_networks() {
    return {
        {{"mobilenetv2-w0.35",
          {},
          "MobileNetV2 0.35 as in msf-CNN's artifact (Sandler et al., CVPR 2018)",
          144,
          144},
         zoo::mobilenet_v2_of_msf_cnn},
        {{"mcunet-5fps-vww",
          {},
          "MCUNet for visual wake words, two classes (Lin et al., NeurIPS 2020)",
          80,
          80},
         zoo::mcunet_vww},
        {{"mcunet-320kb",
          {},
          "MCUNet for ImageNet in 320 KB of memory (Lin et al., NeurIPS 2020)",
          176,
          176},
         zoo::mcunet_imagenet},
    };
}

/// Every network, in the order of `zoo list`.
const std::vector<Recipe>& recipes() {
    static const std::vector<Recipe> all = [] {
        std::vector<Recipe> joined;
        for (auto family : {picture_networks, early_classifiers, residual_networks,
                            branching_networks, defines_networks, later_classifiers,
                            microcontroller_networks}) {
            const std::vector<Recipe> some = family();
            joined.insert(joined.end(), some.begin(), some.end());
        }
        return joined;
    }();
    return all;
}

}  // namespace

const std::vector<ZooEntry>& zoo_entries() {
    static const std::vector<ZooEntry> entries = [] {
        std::vector<ZooEntry> list;
        for (const Recipe& recipe : recipes()) list.push_back(recipe.entry);
        return list;
    }();
    return entries;
}

Network zoo_network(const std::string& name, const ZooOptions& options) {
    std::string known;
    for (const Recipe& recipe : recipes()) {
        const auto& aliases = recipe.entry.aliases;
        if (recipe.entry.name == name ||
            std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
            std::string identifier = recipe.entry.name;
            std::replace_if(
                identifier.begin(), identifier.end(), [](char c) { return c == '-' || c == '.'; },
                '_');
            try {
                (void)element_count({options.batch, options.height.value_or(recipe.entry.height),
                                     options.width.value_or(recipe.entry.width)});
            } catch (const InputError& error) {
                throw InputError("zoo:" + recipe.entry.name +
                                 ": batch, height, width: " + error.what());
            }
            return recipe.build(identifier, options, recipe.entry.height, recipe.entry.width);
        }
        known += (known.empty() ? "" : ", ") + recipe.entry.name;
    }
    throw InputError("zoo:" + name + ": no such network; known: " + known);
}

}  // namespace laminate
