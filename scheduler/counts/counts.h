// The counts of one group, from any of the three witnesses. docs/counting.md defines them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace laminate {

/// Counts of one layer of a group, for one image.
struct LayerCounts {
    std::string layer;
    Macs macs;
    Elements weight_reads;   ///< external reads of this layer's weights
    Elements weight_buffer;  ///< size of its weight buffer
    /// Size of the buffer of its output: the intermediate tensor, or Y for the sink.
    Elements output_buffer;
    friend bool operator==(const LayerCounts&, const LayerCounts&) = default;
};

/// Counts of one external input X of a group.
struct InputCounts {
    std::string tensor;
    Elements reads;   ///< external reads
    Elements buffer;  ///< size of its buffer
    friend bool operator==(const InputCounts&, const InputCounts&) = default;
};

struct GroupCounts {
    std::vector<LayerCounts> layers;  ///< in schedule order, sink last
    std::vector<InputCounts> inputs;  ///< in the order of group_tensors()
    Elements output_reads;            ///< external reads of partial sums of Y
    Elements output_writes;           ///< external writes of Y
    Elements live_total;              ///< footprint: largest live sum
    Elements sum_total;               ///< sum of all buffers (ConvFusion)
    friend bool operator==(const GroupCounts&, const GroupCounts&) = default;

    [[nodiscard]] Macs macs() const {
        Macs sum;
        for (const LayerCounts& l : layers) sum += l.macs;
        return sum;
    }
    [[nodiscard]] Elements input_reads() const {
        Elements sum;
        for (const InputCounts& x : inputs) sum += x.reads;
        return sum;
    }
    [[nodiscard]] Elements input_buffers() const {
        Elements sum;
        for (const InputCounts& x : inputs) sum += x.buffer;
        return sum;
    }
    [[nodiscard]] Elements weight_reads() const {
        Elements sum;
        for (const LayerCounts& l : layers) sum += l.weight_reads;
        return sum;
    }
    /// All external traffic: reads of X, W, Y and writes of Y.
    [[nodiscard]] Elements accesses() const {
        return input_reads() + weight_reads() + output_reads + output_writes;
    }
};

/// Empty if equal, else one line with every field that differs: "conv1 MACs: model 34992, measured
/// 34990; ...".
[[nodiscard]] std::string difference(const GroupCounts& a, const std::string& a_name,
                                     const GroupCounts& b, const std::string& b_name);

/// Counts of a network: sums of accesses and MACs over its groups, and maxima of the two
/// footprints.
struct NetworkCounts {
    Elements accesses;
    Macs macs;
    Elements live_total;
    Elements sum_total;
    friend bool operator==(const NetworkCounts&, const NetworkCounts&) = default;
};
[[nodiscard]] NetworkCounts total(const std::vector<GroupCounts>& groups);

}  // namespace laminate
