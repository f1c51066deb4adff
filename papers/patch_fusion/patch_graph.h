// The layers of a network as patch-based fusion sees them: maps of bytes, and windows on them.
//
// Layers keep the network's order, without those in place (is_in_place()), whose output is the map
// that they read. Layer n writes map n; the network's inputs are the maps after the last layer's.
//
// Source: msf-CNN (Huang and Baccelli, NeurIPS 2025). docs/msf-cnn.md says what counts as memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/range.h"
#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate::patch_fusion {

struct PatchMap {
    int64_t channels = 1;
    int64_t height = 1;
    int64_t width = 1;
    /// 1, or 4 for the sums of a layer that reads its input piece by piece.
    int64_t element_bytes = 1;
    std::vector<int> readers;  ///< layers, ascending
    /// An input of the network, or an output that nothing reads, which is never held: the picture
    /// arrives, and the answer leaves, as they are made.
    bool is_outside = false;
    bool is_output = false;  ///< of the network, so no fused layers may keep it to themselves

    [[nodiscard]] int64_t column_bytes() const { return channels * element_bytes; }
    [[nodiscard]] int64_t row_bytes() const { return column_bytes() * width; }
    [[nodiscard]] int64_t bytes() const { return is_outside ? 0 : row_bytes() * height; }
    [[nodiscard]] int last_reader() const { return readers.empty() ? -1 : readers.back(); }
};

/// How a layer takes in its inputs.
enum class Intake {
    windows,  ///< an output row needs some rows of every input
    /// Its output is a single pixel of sums over its one input, which may come in any pieces:
    /// global pooling and fully connected layers (msf-CNN: "iterative").
    sums,
    whole,  ///< anything else: all inputs whole, the output at once
};

struct PatchLayer {
    LayerId layer = -1;
    std::string name;
    Intake intake = Intake::windows;
    std::vector<int> inputs;            ///< different maps
    std::array<AxisWindow, 2> window{};  ///< y, x; Intake::windows alone
    int64_t macs = 0;                   ///< of the whole output, once
    int64_t macs_per_tap = 0;           ///< of all maps

    /// MACs of these rows and columns of the output, taps on padding included.
    [[nodiscard]] int64_t macs_of(Range rows, Range columns) const;
};

struct PatchGraph {
    std::vector<PatchLayer> layers;
    std::vector<PatchMap> maps;

    [[nodiscard]] int size() const { return static_cast<int>(layers.size()); }
    [[nodiscard]] const PatchLayer& layer(int n) const { return layers[static_cast<size_t>(n)]; }
    [[nodiscard]] const PatchMap& map(int n) const { return maps[static_cast<size_t>(n)]; }
    [[nodiscard]] int64_t macs() const;
};

/// Throws InputError for a batch of more than one image and for a network without layers.
[[nodiscard]] PatchGraph patch_graph(const Network& network);

}  // namespace laminate::patch_fusion
