// Which schedules a search considers, how long it may take, and to whom it reports.
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
    /// layer by layer, every inner order, tile and store level (the paper's Tiling & Reorder)
    tiling,
    /// also segments with resident weights in which nothing is computed twice
    fusion,
    /// also segments in which weights are fetched again and halos are recomputed
    fusion_recompute,
    /// beyond the paper: every schedulable layer is in a group, groups may fork and join, and
    /// schedules are a family (dag/family.h)
    dag,
};

enum class TileSizes {
    divisors,       ///< of the extent (for a producer, of its largest call), so no tile is ragged
    powers_of_two,  ///< and the extent itself; the fewest candidates
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
    std::optional<int64_t> max_depth;  ///< layers in a group; by default default_max_depth()
    /// If false, no more MACs than layer by layer. Nothing is computed twice then, except that MACs
    /// saved by skipping what strides and cropped borders leave unread may pay for recomputed
    /// halos.
    bool recompute = true;
    std::optional<Elements> memory;  ///< only schedules whose `footprint` fits
    /// Whether MACs are a third axis; otherwise they only decide between equals. By default they
    /// are an axis for one sequence of at most three layers. Sums of three-axis fronts multiply, so
    /// for several sequences the axis may be dropped (Front::macs_is_axis).
    std::optional<bool> macs_is_axis;
    /// Bounds evaluated in one segment (about 0.2 us each) before the rest of it is bounded instead
    /// of searched. Segments of one or two layers get ten times as many, those of six and more a
    /// twentieth. Segments of more than two layers whose parts were left half done get a hundredth.
    int64_t max_steps = 40'000'000;
    int threads = 1;
    /// Called from one thread at a time.
    std::function<void(const ExploreProgress&)> progress = {};
    /// Set it to get the front of what has been searched so far.
    const std::atomic<bool>* stop = nullptr;
};

/// 8 in Space::dag, whose groups branch. In the other spaces it is as many as the search can hold,
/// which is more than it can prove (Front::gap).
[[nodiscard]] int64_t default_max_depth(Space space);

/// The tiles that the search of a group considers under these options.
[[nodiscard]] search::Tiles search_tiles(const ExploreOptions& options);

/// Sizes that a tile of an extent may take, ascending; the extent itself is last.
[[nodiscard]] std::vector<int64_t> tile_sizes(int64_t extent, TileSizes kind);

}  // namespace laminate
