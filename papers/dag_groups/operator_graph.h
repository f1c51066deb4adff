// The graph that Optimus groups: operators on feature maps, with small layers merged into their
// neighbours.
//
// Every operator writes one map, which has its number. Maps from outside (network inputs) follow
// after them. Operators are in topological order. Merged are:
// - activations, softmax, flatten and additions of constants into the map that they read: whoever
//   reads their output reads that map (is_in_place());
// - a pool of stride 1 read by a single 1x1 convolution into that convolution;
// - with MergeOptions::adds, an Add and a convolution that feeds it alone.
//
// Source: Optimus (Cai, Wang, Zhang, ACM TECS 22(1), 2022), section 3. docs/optimus.md says where
// the paper leaves a choice.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "nets/network/network.h"
#include "papers/workload.h"

namespace laminate::dag_groups {

/// What an operator reads along one axis: t consecutive outputs need inputs(t) consecutive inputs.
struct Reach {
    int64_t kernel = 1;  ///< from its first tap to its last: dilation is in it
    int64_t stride = 1;
    int64_t upscale = 1;  ///< outputs per input of a transposed convolution or depth-to-space
    /// t S + K - S (Optimus 4.2). Where the operator enlarges its input, for the worst place of the
    /// first output.
    [[nodiscard]] constexpr int64_t inputs(int64_t outputs) const {
        const int64_t span = WindowSteps{stride, 1}.span(outputs, kernel);
        if (upscale == 1) return span;  // divisions would take most of the time of a search
        return (span - 1) / upscale + 1;
    }
    /// Inputs that all tiles read together, at least, for so many outputs of all together. Where K
    /// >= S, tiles of t outputs read t S + K - S each; else t S + K - S >= t K.
    [[nodiscard]] constexpr int64_t covered(int64_t outputs) const {
        if (upscale > 1) return ceil_div(outputs, upscale);
        return WindowSteps{stride, 1}.touched(outputs, kernel);
    }
    friend bool operator==(const Reach&, const Reach&) = default;
};

struct OperatorInput {
    int map = -1;
    PerAxis<Reach> reach;
    /// No layer was merged in between, so that a schedule can hold both operators in one group.
    bool is_direct = true;
};

struct Operator {
    std::string name;
    /// Ascending. The last one that is not in place gives the name.
    std::vector<LayerId> layers;
    std::vector<OperatorInput> inputs;  ///< different maps
    int64_t weights = 0;                ///< elements; without biases
    bool is_direct = true;              ///< no layer was merged between its layers
};

struct Map {
    int64_t channels = 1;
    int64_t height = 1;
    int64_t width = 1;
    std::vector<int> readers;  ///< operators, ascending
    bool is_output = false;    ///< of the network, or read by a layer that was left out
    [[nodiscard]] int64_t elements() const { return channels * height * width; }  ///< of one image
    [[nodiscard]] PerAxis<int64_t> size() const { return {width, height}; }
};

struct OperatorGraph {
    std::vector<Operator> operators;
    std::vector<Map> maps;  ///< of the operators, then the network's inputs
    /// Fully connected layers on maps of more than one pixel, and what follows them. As a
    /// convolution with K = 1 (Optimus, footnote 1) they have no window on that map, and grouping
    /// them gains nothing; VGG16 has 18 operators only without them.
    std::vector<LayerId> left_out;

    [[nodiscard]] int size() const { return static_cast<int>(operators.size()); }
    /// Whether every grouping moves this map: an input of the network that is read, or a map that
    /// leaves it.
    [[nodiscard]] bool always_moves(size_t map) const {
        const Map& m = maps[map];
        return map >= operators.size() ? !m.readers.empty() : m.is_output || m.readers.empty();
    }
    /// For each operator, the operators whose maps it reads.
    [[nodiscard]] std::vector<std::vector<int>> needs() const;
};

struct MergeOptions {
    /// An Add and the convolution that produces the last of its operands that feed nothing else.
    bool adds = false;
    bool pools = true;  ///< a pool of stride 1 and the single 1x1 convolution that reads it
};

/// Throws InputError for a network without any operator to group.
[[nodiscard]] OperatorGraph operator_graph(const Network& network,
                                           const MergeOptions& options = {});

}  // namespace laminate::dag_groups
