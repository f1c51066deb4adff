// A network as the depth-first model sees it: layers with windows, fully connected layers, poolings
// and additions. Layers that move no data of their own are left out (activations, flattening,
// concatenation, layers that only select elements); their readers read what they read.
#pragma once

#include <string>
#include <vector>

#include "nets/network/network.h"
#include "papers/depth_first/layer_shape.h"

namespace laminate::depth_first {

struct WorkloadLayer {
    std::string name;
    LayerId layer = -1;  ///< in the network; -1 is a network input
    /// Full sizes. An input has K, OX and OY.
    LayerShape shape{};
    int64_t pad_left = 0;  ///< 0 if sizes are unpadded
    int64_t pad_top = 0;
    /// Input i adds to outputs i * stride - pad + tap. `shape` has the outputs' sizes and the whole
    /// kernel.
    bool transposed = false;
    bool renames_input_channels = false;  ///< by quirk; published_layers.h
    /// Earlier layers of the workload that this one reads, operand by operand; a concatenation has
    /// one entry per part.
    std::vector<size_t> sources{};
    std::vector<int64_t> source_channels{};  ///< parallel to sources
    [[nodiscard]] bool is_input() const { return layer < 0; }
};

/// Outputs of a layer along one axis. `phase` is (coordinate of the first + padding) modulo the
/// stride for a transposed convolution and 0 for other layers.
struct OutputSpan {
    int64_t size = 0;
    int64_t phase = 0;
};
/// What a machine executes to compute columns x rows of the layer's output. A strided transposed
/// convolution becomes one convolution per phase of the stride, with the taps that meet an input
/// there; phases with equal numbers of outputs and taps run together as output channels of one, and
/// phases without outputs are left out. Any other layer is executed as it is.
[[nodiscard]] std::vector<LayerShape> executed_shapes(const WorkloadLayer& layer,
                                                      OutputSpan columns, OutputSpan rows);
/// The same for the whole output.
[[nodiscard]] std::vector<LayerShape> executed_shapes(const WorkloadLayer& layer);

struct Workload {
    std::string name;
    std::vector<WorkloadLayer> layers;  ///< in topological order; inputs where they are first read
    [[nodiscard]] std::vector<std::vector<size_t>> readers() const;
    /// MACs of all layers. Poolings and additions count one per tap and output.
    [[nodiscard]] int64_t macs() const;
};

/// Whether the layer copies input elements as they are: a convolution without bias and activation
/// whose kernels hold a single 1 and otherwise 0. Addressing can do its work.
[[nodiscard]] bool only_selects(const Layer& layer);

/// The workload of one image of the batch. Throws InputError for networks with several outputs, and
/// names the layer if the model does not know one.
///
/// `unpadded_from_output`: as in DeFiNES' artifact, every size but the output's is what the windows
/// of its readers span, without padding. A network with padding then grows towards its input.
[[nodiscard]] Workload workload_of(const Network& network, bool unpadded_from_output);

}  // namespace laminate::depth_first
