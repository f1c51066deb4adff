// The graph that Optimus groups: operators on feature maps, small layers merged into their
// neighbours.
//
// Every operator writes one map; its number is the operator's. Maps that come from outside (network
// inputs) follow after them. Operators are in topological order. Merged: activations, softmax,
// flatten and additions of constants into the map that they read (whoever reads their output reads
// that map); a pool of stride 1 read by one 1x1 convolution alone into that convolution; with
// adds_merged an Add into a convolution that feeds it alone.
//
// Source: Optimus (Cai, Wang, Zhang, ACM TECS 22(1), 2022), section 3; docs/optimus.md says where
// we read it in our way.
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
    std::vector<LayerId> layers;  ///< ascending; the last one, but for merged activations and the
                                  ///< like, gives the name
    std::vector<OperatorInput> inputs;  ///< different maps
    int64_t weights = 0;                ///< elements; without biases
    bool is_direct = true;  ///< its layers follow one another without a merged one in between
};

struct Map {
    int64_t channels = 1;
    int64_t height = 1;
    int64_t width = 1;
    std::vector<int> readers;  ///< operators, ascending
    bool is_output = false;    ///< of the network, or read by what was left out
    [[nodiscard]] int64_t elements() const { return channels * height * width; }  ///< of one image
    [[nodiscard]] PerAxis<int64_t> size() const { return {width, height}; }
};

struct OperatorGraph {
    std::vector<Operator> operators;
    std::vector<Map> maps;  ///< of the operators, then the network's inputs
    /// Fully connected layers on maps of more than one pixel, and what follows them: as a
    /// convolution with K = 1 (Optimus, footnote 1) they have no window on that map, nothing is
    /// gained by grouping them, and VGG16 has 18 operators only without them.
    std::vector<LayerId> left_out;

    [[nodiscard]] int size() const { return static_cast<int>(operators.size()); }
    /// Whether every grouping moves this map: an input of the network that is read, or what leaves
    /// it.
    [[nodiscard]] bool always_moves(size_t map) const {
        const Map& m = maps[map];
        return map >= operators.size() ? !m.readers.empty() : m.is_output || m.readers.empty();
    }
    /// By operator: the operators whose maps it reads.
    [[nodiscard]] std::vector<std::vector<int>> needs() const;
};

struct MergeOptions {
    bool adds = false;  ///< an Add into the producer of its last operand that is a convolution and
                        ///< feeds nothing else
    bool pools = true;  ///< pools of stride 1 into the 1x1 convolution that alone reads them
};

/// Throws InputError for a network in which nothing is left to group.
[[nodiscard]] OperatorGraph operator_graph(const Network& network,
                                           const MergeOptions& options = {});

}  // namespace laminate::dag_groups
