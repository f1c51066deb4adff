// The reach of a network that turns one picture into another: how far around a position its layers
// look.
#pragma once

#include <cstdint>

#include "nets/network/network.h"
#include "nets/network/reach.h"

namespace laminate {

struct ReachOptions {
    /// Whether layers that suit Winograd's filtering are computed by it, in pairs of rows. Rounding
    /// then depends on the position of a row in its pair, so the pairs of all windows must fall on
    /// the same rows of the picture. It also depends on the position of a column in its vector,
    /// which windows narrower than the picture cannot keep. For layers filtered by tiles of columns
    /// (column_chain.h), rounding depends on the position of a column in its tile, so windows move
    /// by whole tiles.
    bool winograd = true;
};

/// Whether any layer suits Winograd's filtering.
[[nodiscard]] bool has_winograd_layers(const Network& network);
/// Whether any layer may be filtered by tiles of columns.
[[nodiscard]] bool has_column_tiles(const Network& network);

/// Throws InputError, naming the layer, if a layer has unbounded reach (dense, global pooling,
/// Flatten, Softmax along rows or columns, a constant map) or joins branches of different sizes.
/// The network must have one input and one output, each of one image.
[[nodiscard]] Reach reach_of(const Network& network, const ReachOptions& options = {});

/// `larger` is the same network opened for a picture that is larger by multiples of the input
/// steps. Throws InputError unless it has the same layers and an output larger by as many output
/// steps.
void check_moves_alike(const Network& network, const Network& larger, const Reach& reach);

}  // namespace laminate
