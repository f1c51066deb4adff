// The reach of a network that turns one picture into another: which of its layers look at their
// surroundings only, and how far.
#pragma once

#include <cstdint>

#include "nets/network/network.h"
#include "nets/network/reach.h"

namespace laminate {

struct ReachOptions {
    /// Whether layers that suit Winograd's filtering are computed by it, in pairs of rows whose
    /// sums round by the place of a row in its pair. Pairs of all windows then fall on the same
    /// rows of the picture. Columns round by their place in a vector, which windows narrower than
    /// the picture cannot keep. Layers that are filtered by tiles of columns (column_chain.h) round
    /// by the place of a column in its tile: windows then move by whole tiles.
    bool winograd = true;
};

/// Whether Winograd's filtering would compute any layer.
[[nodiscard]] bool has_winograd_layers(const Network& network);
/// Whether filtering by tiles of columns may compute any layer.
[[nodiscard]] bool has_column_tiles(const Network& network);

/// Throws InputError that names the layer when the network has a layer without bounds (dense,
/// global pooling, Flatten, Softmax along rows or columns, a constant map), when it has not one
/// input and one output, both of one image, or when branches of different sizes meet.
[[nodiscard]] Reach reach_of(const Network& network, const ReachOptions& options = {});

/// Throws InputError unless `larger`, the same network opened for a picture larger by multiples of
/// the input steps, has the same layers and an output larger by as many output steps.
void check_moves_alike(const Network& network, const Network& larger, const Reach& reach);

}  // namespace laminate
