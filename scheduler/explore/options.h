// Which schedules a search considers, how long it may take, and whom it tells.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "scheduler/explore/front.h"
#include "scheduler/explore/group_search/axis_options.h"

namespace laminate {

enum class Space {
    baseline,  ///< layer by layer, no tiles, inner order zi yi xi ii; every store level
    tiling,    ///< layer by layer, every inner order, tile and store level (the paper's Tiling &
               ///< Reorder)
    fusion,    ///< and segments with resident weights in which nothing is computed twice
    fusion_recompute,  ///< and segments in which weights may come again and halos may be computed
                       ///< again
    dag,  ///< beyond the paper: every schedulable layer in a group, groups with forks and joins; a
          ///< family of schedules (search/dag_groups.h)
};

enum class TileSizes {
    divisors,       ///< of the extent (of a producer: of its largest call): no ragged tiles
    powers_of_two,  ///< and the extent itself; fewest candidates
    all,            ///< 1 .. extent
};

struct ExploreProgress {
    int64_t segments_done = 0;
    int64_t segments_total = 0;
    std::string segment;  ///< "conv1 .. conv3"
};

struct ExploreOptions {
    Space space = Space::fusion_recompute;
    TileSizes tiles = TileSizes::divisors;
    Footprint footprint = Footprint::live;
    std::optional<int64_t> max_depth;  ///< layers in a group; not given: default_max_depth()
    /// False: no more MACs than layer by layer. That is to compute nothing twice, but for what
    /// strides and cropped borders of a later layer leave unread: not computing it makes up for
    /// something else computed again.
    bool recompute = true;
    std::optional<Elements> memory;  ///< only schedules within it, by `footprint`
    /// MACs as a third axis, else they only decide between equals. Not given: for one sequence of
    /// at most four layers. Sums of three-axis fronts multiply, so for several sequences it may be
    /// given up: Front::macs_is_axis.
    std::optional<bool> macs_is_axis;
    /// Work in one segment, in bounds evaluated (some 0.2 us), before the rest of it is bounded
    /// instead of searched. Segments of one and two layers get ten times that, of six and more a
    /// twentieth; longer ones with parts that were left half done a hundredth.
    int64_t max_steps = 40'000'000;
    int threads = 1;
    std::function<void(const ExploreProgress&)> progress =
        {};  ///< called from one thread at a time
    const std::atomic<bool>* stop =
        nullptr;  ///< set it to get the front of what was looked at so far
};

/// 8 in Space::dag, whose groups branch; in the other spaces as many as the search can hold, which
/// is more than it proves: Front::gap.
[[nodiscard]] int64_t default_max_depth(Space space);

/// The tiles that a search of a group considers under these options.
[[nodiscard]] search::Tiles search_tiles(const ExploreOptions& options);

/// Sizes that a tile of an extent may take: ascending, the extent itself last.
[[nodiscard]] std::vector<int64_t> tile_sizes(int64_t extent, TileSizes kind);

}  // namespace laminate
