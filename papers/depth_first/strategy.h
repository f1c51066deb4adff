// A point of DeFiNES' design space (section II): the size of the tiles, what neighbouring tiles
// keep for each other, and which layers run together.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "papers/depth_first/objective.h"
#include "papers/depth_first/workload.h"

namespace laminate::depth_first {

/// What a tile keeps of the columns and rows that it shares with its neighbours.
enum class Overlap {
    recompute,     ///< nothing
    h_cached,      ///< columns, for the tile to the right; rows are recomputed
    fully_cached,  ///< both
    v_cached,      ///< rows, for the tile below, which comes next; columns are recomputed. This is
                   ///< h_cached with the axes swapped, and not in the paper
};
[[nodiscard]] const char* to_string(Overlap overlap);
/// "recompute", "h-cached", "fully-cached", "v-cached". Throws InputError.
[[nodiscard]] Overlap parse_overlap(const std::string& text);

/// Which layers run together as a stack.
enum class Stacks {
    weights_fit,   ///< as many as have weights that fit in the second-highest memory of the weights
    single_layer,  ///< each layer alone
    all,           ///< the whole network
};
[[nodiscard]] const char* to_string(Stacks stacks);
/// "weights-fit", "single-layer", "all". Throws InputError.
[[nodiscard]] Stacks parse_stacks(const std::string& text);

struct TileSize {
    int64_t x = 1;
    int64_t y = 1;
    auto operator<=>(const TileSize&) const = default;
};

struct Strategy {
    TileSize tile;  ///< of each stack's output; a tile larger than the map is the map
    Overlap overlap = Overlap::fully_cached;
    Stacks stacks = Stacks::weights_fit;
    Objective mappings = Objective::energy;  ///< what the mapping of each layer minimises
    /// Maps with an overlap mode of their own, by the name of the layer that writes them or of the
    /// network's input. The tiles of a stack go row by row or column by column, so h_cached and
    /// v_cached do not occur in one stack. Nothing is kept of a stack's output.
    std::map<std::string, Overlap> of_maps{};

    [[nodiscard]] Overlap overlap_of(const std::string& map) const;
};

/// Whether the tiles of a stack of these layers go column by column. Throws InputError if some of
/// its maps, the output apart, are h_cached and some v_cached.
[[nodiscard]] bool goes_by_columns(const Workload& workload, const std::vector<size_t>& layers,
                                   const Strategy& strategy);

}  // namespace laminate::depth_first
