// How closely the model follows DeFiNES' public artifact.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "papers/depth_first/layer_shape.h"

namespace laminate::depth_first {

/// Where the artifact departs from the paper, or from what one would want. docs/defines.md has an
/// example of each.
struct Quirks {
    /// Sizes are what the windows span from the output backwards, without padding.
    bool unpadded = false;
    /// The ragged tile is the leftmost and topmost, not the last.
    bool left_over_tiles_first = false;
    /// A cache lies at the level of the tile looked at last, not at the highest level of the tiles
    /// that share it.
    bool last_cache_level_wins = false;
    /// The cache of columns is sized as if rows were cached too.
    bool column_cache_sized_with_cached_rows = false;
    /// A cut after the first layer counts as none, so the stacks on both sides are the whole
    /// network.
    bool first_cut_is_ignored = false;
    /// Lanes and indices of single layers are those of the artifact's files (published_layers.h).
    bool published_layers = false;
    /// Latency leaves out the final off-load of each layer.
    bool no_off_load = false;
    /// Poolings and additions cost the energy of multiplications.
    bool macs_of_poolings_and_additions = false;

    [[nodiscard]] static Quirks as_published();
    [[nodiscard]] static Quirks mended() { return {}; }
    /// Whether the multiplications of such a layer cost energy.
    [[nodiscard]] bool counts_macs_of(LayerType type) const;
};

struct QuirkName {
    const char* name;  ///< "left-over-tiles-first"
    bool Quirks::*member;
};
/// In the order of the members.
[[nodiscard]] const std::vector<QuirkName>& quirk_names();
/// Switches one quirk on. Throws InputError with the list of names.
void add_quirk(Quirks& quirks, const std::string& name);

struct Fidelity {
    Quirks quirks = Quirks::mended();
    /// The number of loops to which the artifact's mapper (LOMA) merges prime factors before it
    /// tries all orders. 0: the exact mapper, with all factors and all allocations.
    size_t loop_limit = 0;
    [[nodiscard]] static Fidelity as_published(size_t limit) {
        return {Quirks::as_published(), limit};
    }
};

}  // namespace laminate::depth_first
