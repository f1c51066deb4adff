// Softmax, its logarithm and standardisation over the channels of a pixel in Halide IR, for vectors
// of pixels.
//
// Sums go through the channels in their order, in runs of 64 where there are more, and are not
// contracted to fused multiply-additions. The reference operators sum runs, or all, in doubles.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "generators/ir/arrays.h"
#include "nets/network/network.h"

namespace laminate::ir {

/// Pixels side by side, all of whose channels can be loaded.
struct PixelVectors {
    std::string name;  ///< of the loops
    int64_t channels = 1;
    int64_t lanes = 1;    ///< pixels of a vector
    int64_t vectors = 1;  ///< computed together
    std::function<Expr(const Expr& channel, int64_t vector)> load;
};
/// What becomes of a channel's element in a vector of pixels.
using Normalised = std::function<Expr(const Expr& element, int64_t vector)>;

/// Computes the statistics of the pixels that the layer's normalisation_of() needs, for what `make`
/// does with them.
[[nodiscard]] Stmt with_statistics(const Layer& layer, const PixelVectors& pixels,
                                   const std::function<Stmt(const Normalised&)>& make);

}  // namespace laminate::ir
