// The recipes of the zoo by family. nets/zoo/zoo.cpp gives them names and default sizes. Private to
// nets/zoo.
//
// `height` and `width` are the default input size, which the options override. Batch normalisation
// is folded, so a convolution that was normalised has a bias.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "nets/zoo/zoo.h"

namespace laminate::zoo {

/// Networks of ConvFusion Table 6: 3x3 convolutions of `maps` output channels without padding, bias
/// or activation.
[[nodiscard]] Network convfusion(const std::string& name, const ZooOptions& options, int64_t height,
                                 int64_t width, const std::vector<int64_t>& maps);

/// FSRCNN(56,12,4); `upscale`: x2 by a transposed convolution.
[[nodiscard]] Network fsrcnn(const std::string& name, const ZooOptions& options, int64_t height,
                             int64_t width, bool upscale);
/// `depth` 3x3 "same" convolutions with ReLU between, the last one linear.
[[nodiscard]] Network plain_trunk(const std::string& name, const ZooOptions& options, int64_t in,
                                  int64_t height, int64_t width, int depth, int64_t maps,
                                  int64_t out);

/// Two groups in conv2, conv4 and conv5; no response normalisation. The input is 227 x 227, because
/// the paper's 224 x 224 does not give its 55 x 55.
[[nodiscard]] Network alexnet(const std::string& name, const ZooOptions& options, int64_t height,
                              int64_t width);
/// `convolutions` per stage: 2 2 3 3 3 for VGG16 (configuration D), 2 2 4 4 4 for VGG19 (E).
[[nodiscard]] Network vgg(const std::string& name, const ZooOptions& options, int64_t height,
                          int64_t width, const std::array<int, 5>& convolutions);

struct ResNetShape {
    std::array<int, 4> blocks;  ///< residual blocks of each stage
    /// False: two 3x3. True: 1x1, 3x3, 1x1 to four times the width.
    bool bottleneck;
    /// Stride of a bottleneck: true puts it into the first 1x1 (He et al., 2016; Keras), false into
    /// the 3x3 (torchvision).
    bool stride_in_1x1;
};
[[nodiscard]] Network resnet(const std::string& name, const ZooOptions& options, int64_t height,
                             int64_t width, const ResNetShape& shape);

/// For CIFAR's 32 x 32: three stages of `blocks` basic blocks (6 * blocks + 2 layers), 16, 32 and
/// 64 maps. Shortcuts that change the size are 1x1 convolutions; He et al. subsample and pad with
/// zeros there.
[[nodiscard]] Network resnet_cifar(const std::string& name, const ZooOptions& options,
                                   int64_t height, int64_t width, int blocks);

/// Nine inception modules, without response normalisation and auxiliary classifiers. Pooling is as
/// in Caffe's reference model.
[[nodiscard]] Network googlenet(const std::string& name, const ZooOptions& options, int64_t height,
                                int64_t width);

/// Eight fire modules. 1.0: 7x7 stem with 96 maps, pools after modules 0, 3, 7; 1.1: 3x3 stem with
/// 64 maps, pools after modules 0, 2, 4.
[[nodiscard]] Network squeezenet(const std::string& name, const ZooOptions& options, int64_t height,
                                 int64_t width, bool version_1_1);

/// NASNet-A (cells @ filters of the last one) as in keras.applications, with two differences. Where
/// a cell's older input has another size, one strided 1x1 convolution replaces two of half the
/// filters on pixels one apart. Equal average pools of one tensor are one layer.
[[nodiscard]] Network nasnet_a(const std::string& name, const ZooOptions& options, int64_t height,
                               int64_t width, int cells, int64_t filters);

/// `pad`: at every border of each 3x3 convolution; 1 as published, 0 as in DeFiNES' artifact.
[[nodiscard]] Network mobilenet_v1(const std::string& name, const ZooOptions& options,
                                   int64_t height, int64_t width, int64_t pad);
[[nodiscard]] Network mobilenet_v2(const std::string& name, const ZooOptions& options,
                                   int64_t height, int64_t width);
// Networks for microcontrollers, as the public artifact of msf-CNN lists their layers. It leaves
// out the additions and the head, which are here.
/// Widths times 0.35, rounded down, and a 1x1 convolution in the first block too.
[[nodiscard]] Network mobilenet_v2_of_msf_cnn(const std::string& name, const ZooOptions& options,
                                              int64_t height, int64_t width);
[[nodiscard]] Network mcunet_vww(const std::string& name, const ZooOptions& options, int64_t height,
                                 int64_t width);
[[nodiscard]] Network mcunet_imagenet(const std::string& name, const ZooOptions& options,
                                      int64_t height, int64_t width);

/// As in keras.applications: "valid" stem, branches joined by concatenations, factorised 7x7. The
/// input must be at least 75 x 75.
[[nodiscard]] Network inception_v3(const std::string& name, const ZooOptions& options,
                                   int64_t height, int64_t width);
/// As in keras.applications: residual blocks of separable convolutions (a depthwise one without
/// bias, then a 1x1).
[[nodiscard]] Network xception(const std::string& name, const ZooOptions& options, int64_t height,
                               int64_t width);

// Networks with the shapes of the public artifact of DeFiNES: no padding.
[[nodiscard]] Network fsrcnn_defines(const std::string& name, const ZooOptions& options,
                                     int64_t height, int64_t width);
[[nodiscard]] Network plain_trunk_defines(const std::string& name, const ZooOptions& options,
                                          int64_t in, int64_t height, int64_t width, int depth,
                                          int64_t out);
/// The artifact adds maps of different sizes; here the shortcut selects what is added
/// (Builder::select).
[[nodiscard]] Network resnet18_defines(const std::string& name, const ZooOptions& options,
                                       int64_t height, int64_t width);

}  // namespace laminate::zoo
