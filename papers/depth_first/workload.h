// A network as the depth-first model sees it: layers with windows, poolings and additions; what
// moves no data of its own (activations, flattening, concatenation, layers that only select
// elements) is left out, and its readers read what it read.
#pragma once

#include <string>
#include <vector>

#include "nets/network/network.h"
#include "papers/depth_first/layer_shape.h"

namespace laminate::depth_first {

struct WorkloadLayer {
    std::string name;
    LayerId layer = -1;  ///< in the network, -1: a network input
    /// Full sizes. Of an input: K, OX, OY.
    LayerShape shape{};
    int64_t pad_left = 0;  ///< 0 where sizes are unpadded
    int64_t pad_top = 0;
    /// A transposed convolution: input i adds to outputs i * stride - pad + tap; `shape` has the
    /// outputs' sizes and the whole kernel.
    bool transposed = false;
    bool renames_input_channels = false;  ///< by quirk; published_layers.h
    /// Layers of the workload that it reads, all before it: operand by operand, the parts of a
    /// concatenation each by itself.
    std::vector<size_t> sources{};
    std::vector<int64_t> source_channels{};  ///< parallel to sources
    [[nodiscard]] bool is_input() const { return layer < 0; }
};

/// Outputs of a layer along one axis. `phase`: of a transposed convolution, the first one's
/// coordinate + padding modulo the stride; otherwise 0.
struct OutputSpan {
    int64_t size = 0;
    int64_t phase = 0;
};
/// The layer as a machine executes it when it computes columns x rows of the output: itself, or,
/// where it is a strided transposed convolution, one convolution per phase of the stride, with the
/// taps that meet an input there. Phases of as many outputs and as many taps are executed as output
/// channels of one: at most two different numbers of taps and two of outputs along an axis. Phases
/// without outputs are left out.
[[nodiscard]] std::vector<LayerShape> executed_shapes(const WorkloadLayer& layer,
                                                      OutputSpan columns, OutputSpan rows);
/// Of the whole output.
[[nodiscard]] std::vector<LayerShape> executed_shapes(const WorkloadLayer& layer);

struct Workload {
    std::string name;
    std::vector<WorkloadLayer> layers;  ///< topological order; inputs where they are first read
    [[nodiscard]] std::vector<std::vector<size_t>> readers() const;
    /// Of all layers; poolings and additions count one per tap and output.
    [[nodiscard]] int64_t macs() const;
};

/// The layer's outputs are input elements as they are: a convolution whose kernels hold one 1 and
/// otherwise 0, without bias and activation. Addressing does its work.
[[nodiscard]] bool only_selects(const Layer& layer);

/// One image of the batch. Throws InputError naming a layer that the model does not know, and for
/// networks with several outputs.
///
/// `unpadded_from_output`: as in DeFiNES' artifact every size but the output's is what the windows
/// of its readers span, without padding; a network with padding grows towards its input then.
/// Otherwise sizes are the network's.
[[nodiscard]] Workload workload_of(const Network& network, bool unpadded_from_output);

}  // namespace laminate::depth_first
