// A plain witness that walks over the tiles of a stack's output and keeps sets of pixels. It goes
// through windows tap by tap and knows nothing else of the model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tests/support/chain.h"

namespace laminate::spatial_fusion {

struct PixelWalk {
    using Pixel = std::pair<int64_t, int64_t>;  ///< row, column
    /// New pixels of one channel of a layer's input, by tile of the walk.
    std::vector<std::vector<int64_t>> new_pixels;
    std::vector<int64_t> most_kept;  ///< by layer: the most pixels at once that are still read
    int64_t recomputed = 0;          ///< pixels that were asked for again after they were dropped
};

/// Only for windows without gaps (kernel >= stride, no dilation): taps are visited one by one, so
/// gaps would not move.
inline PixelWalk walk_pixels(const std::vector<LayerProblem>& stack, int64_t tile_y,
                             int64_t tile_x) {
    using Pixels = std::set<PixelWalk::Pixel>;
    const auto read_by = [](const LayerProblem& layer, const Pixels& outputs) {
        Pixels inputs;
        for (const auto& [y, x] : outputs) {
            for (int64_t n = 0; n < layer.y().kernel; ++n) {
                for (int64_t m = 0; m < layer.x().kernel; ++m) {
                    const auto row = layer.y().input(y, n);
                    const auto column = layer.x().input(x, m);
                    if (row && column) inputs.insert({*row, *column});
                }
            }
        }
        return inputs;
    };
    const LayerProblem& bottom = stack.back();
    const size_t layers = stack.size();
    // First find what every tile computes anew, then which tile reads a pixel last.
    std::vector<std::vector<Pixels>> read(layers);  // [layer][tile]
    std::vector<Pixels> present(layers);
    PixelWalk walk{std::vector<std::vector<int64_t>>(layers), std::vector<int64_t>(layers, 0), 0};
    std::vector<std::vector<Pixels>> fresh(layers);
    for (int64_t y = 0; y < bottom[Dim::y]; y += tile_y) {
        for (int64_t x = 0; x < bottom[Dim::x]; x += tile_x) {
            Pixels outputs;
            for (int64_t row = y; row < std::min(y + tile_y, bottom[Dim::y]); ++row)
                for (int64_t column = x; column < std::min(x + tile_x, bottom[Dim::x]); ++column)
                    outputs.insert({row, column});
            for (size_t l = layers; l-- > 0;) {
                Pixels inputs = read_by(stack[l], outputs);
                Pixels added;
                std::ranges::set_difference(inputs, present[l], std::inserter(added, added.end()));
                present[l].insert(added.begin(), added.end());
                walk.new_pixels[l].push_back(static_cast<int64_t>(added.size()));
                read[l].push_back(std::move(inputs));
                outputs = added;
                fresh[l].push_back(std::move(added));
            }
        }
    }
    for (size_t l = 0; l < layers; ++l) {
        std::map<PixelWalk::Pixel, size_t> last_read;
        for (size_t t = 0; t < read[l].size(); ++t)
            for (const auto& pixel : read[l][t]) last_read[pixel] = t;
        Pixels kept;
        for (size_t t = 0; t < read[l].size(); ++t) {
            for (const auto& pixel : fresh[l][t]) kept.insert(pixel);
            for (const auto& pixel : read[l][t]) walk.recomputed += kept.contains(pixel) ? 0 : 1;
            walk.most_kept[l] = std::max(walk.most_kept[l], static_cast<int64_t>(kept.size()));
            std::erase_if(kept, [&](const auto& pixel) { return last_read.at(pixel) <= t; });
        }
    }
    return walk;
}

/// A chain of one to four layers on 6 to 20 rows and columns. Kernels of 1 to 5 are no smaller than
/// their strides and may be padded.
inline std::vector<LayerProblem> random_stack(Rng& rng) {
    for (;;) {
        std::vector<LayerSpec> specs;
        const int64_t layers = rng.between(1, 4);
        for (int64_t l = 0; l < layers; ++l) {
            const int64_t stride = rng.chance(1, 4) ? 2 : 1;
            const int64_t kernel = rng.between(stride, 5);
            specs.push_back({rng.between(1, 3),
                             square_window(kernel, stride, rng.between(0, (kernel - 1) / 2))});
        }
        try {
            const Network network =
                chain(rng.between(1, 3), rng.between(6, 20), rng.between(6, 20), specs);
            return layer_problems(network, all_layers(network));
        } catch (const InputError&) {  // a map without extent: draw again
        }
    }
}

}  // namespace laminate::spatial_fusion
