// The networks of HW-Flow-Fusion with the paper's names of layers, and what its tables print.
// Branches are left out, as in the paper.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/chain.h"

namespace laminate::spatial_fusion {

struct NamedLayer {
    std::string name;
    LayerSpec spec;
};

/// A chain of convolutions and max pools on maps of `size` x `size`.
inline Network named_chain(int64_t channels, int64_t size, const std::vector<NamedLayer>& layers) {
    Network network = empty_network(channels, size, size);
    TensorId last = 0;
    for (const NamedLayer& layer : layers) {
        last =
            layer.spec.kind == LayerKind::conv
                ? append(network, layer.name, last, layer.spec)
                : append(network, layer.name,
                         {.kind = layer.spec.kind, .inputs = {last}, .window = layer.spec.window});
    }
    check(network);
    return network;
}

inline LayerSpec conv3(int64_t channels, int64_t stride = 1) {
    return {channels, square_window(3, stride, 1)};
}
inline LayerSpec pool(int64_t kernel, int64_t pad) {
    return {1, square_window(kernel, 2, pad), 1, LayerKind::max_pool};
}

/// VGG configuration E up to CONV16 and POOL5: POOL3 feeds CONV9, POOL4 feeds CONV13.
inline Network vgg16_e() {
    std::vector<NamedLayer> layers;
    int convolution = 0;
    int stage = 0;
    for (const auto& [count, maps] :
         std::vector<std::pair<int, int64_t>>{{2, 64}, {2, 128}, {4, 256}, {4, 512}, {4, 512}}) {
        for (int n = 0; n < count; ++n)
            layers.push_back({"CONV" + std::to_string(++convolution), conv3(maps)});
        layers.push_back({"POOL" + std::to_string(++stage), pool(2, 0)});
    }
    return named_chain(3, 224, layers);
}

/// ResNet18 without its shortcuts, up to the last layer that the paper fuses and the one behind it.
inline Network resnet18_trunk() {
    return named_chain(3, 224,
                       {{"CONV1", {64, square_window(7, 2, 3)}},
                        {"POOL1", pool(3, 1)},
                        {"CONV2_1_1", conv3(64)},
                        {"CONV2_1_2", conv3(64)},
                        {"CONV2_2_1", conv3(64)},
                        {"CONV2_2_2", conv3(64)},
                        {"CONV3_1_1", conv3(128, 2)},
                        {"CONV3_1_2", conv3(128)},
                        {"CONV3_2_1", conv3(128)},
                        {"CONV3_2_2", conv3(128)},
                        {"CONV4_1_1", conv3(256, 2)},
                        {"CONV4_1_2", conv3(256)},
                        {"CONV4_2_1", conv3(256)}});
}

inline LayerProblem problem(const Network& network, const std::string& name) {
    return layer_problem(network, network.find_layer(name));
}
inline std::vector<LayerId> ids(const Network& network, const std::vector<std::string>& names) {
    std::vector<LayerId> result;
    for (const std::string& name : names) result.push_back(network.find_layer(name));
    return result;
}

/// The single-layer column of Table 7, convolutions. Toy follows from the number for tiles of whole
/// rows (Tox = Nox) and all channels.
struct PublishedSingle {
    std::string layer;
    int64_t rows;
    int64_t volume;  ///< elements, by our reading
    double ctc;      ///< as printed
};
inline const std::vector<PublishedSingle> vgg_singles{
    {"CONV1", 32, 3'384'724, 0.80},  {"CONV2", 8, 8'293'376, 6.97},  {"CONV3", 16, 3'041'024, 9.50},
    {"CONV4", 16, 4'476'416, 12.91}, {"CONV5", 8, 3'386'880, 8.53},  {"CONV6", 8, 5'970'944, 9.68},
    {"CONV9", 28, 1'811'456, 15.95}, {"CONV13", 14, 2'590'720, 5.58}};
inline const std::vector<PublishedSingle> resnet_singles{
    {"CONV1", 16, 1'046'605, 3.52},   {"CONV2_1_1", 8, 718'592, 5.03},
    {"CONV2_1_2", 8, 718'592, 5.03},  {"CONV2_2_1", 8, 718'592, 5.03},
    {"CONV2_2_2", 8, 718'592, 5.03},  {"CONV3_1_1", 28, 382'016, 4.73},
    {"CONV3_1_2", 28, 363'008, 9.95}, {"CONV3_2_1", 28, 363'008, 9.95},
    {"CONV3_2_2", 28, 363'008, 9.95}, {"CONV4_1_1", 14, 452'736, 3.99},
    {"CONV4_1_2", 14, 705'536, 5.12}};

/// The pairs that Table 7 fuses, with its fused CTC (temporal) and with our reading of Eq. 6: whole
/// rows, least volume within 512 KiB.
struct PublishedPair {
    std::vector<std::string> layers;
    int64_t rows;
    int64_t volume;
    double ctc;
};
inline const std::vector<PublishedPair> vgg_pairs{
    {{"CONV1", "CONV2"}, 28, 3'424'960, 58.06}, {{"POOL1", "CONV3"}, 8, 5'765'120, 15.09},
    {{"CONV4", "POOL2"}, 4, 2'591'744, 23.02},  {{"CONV5", "CONV6"}, 7, 2'363'392, 42.47},
    {{"POOL3", "CONV9"}, 7, 2'686'976, 11.76},  {{"POOL4", "CONV13"}, 7, 3'049'472, 4.83}};
inline const std::vector<PublishedPair> resnet_pairs{
    {{"CONV1", "POOL1"}, 14, 384'748, 9.62},
    {{"CONV2_1_1", "CONV2_1_2"}, 56, 504'832, 14.65},
    {{"CONV2_2_1", "CONV2_2_2"}, 56, 504'832, 14.65},
    {{"CONV3_1_1", "CONV3_1_2"}, 28, 559'680, 10.90},
    {{"CONV3_2_1", "CONV3_2_2"}, 28, 526'336, 9.90},
    {{"CONV4_1_1", "CONV4_1_2"}, 14, 1'074'304, 5.10}};

}  // namespace laminate::spatial_fusion
