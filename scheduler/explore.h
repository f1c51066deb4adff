// Search for schedules of a whole network: Pareto fronts of external accesses, live memory and MACs under the two-level model.
//
// Space. Each chain of schedulable layers is cut into groups in every way (up to max_depth layers each).
// - A group of one layer: ConvFusion's space 2 (Tiling & Reorder): every order of the inner loops, every store level of X and W from the
//   innermost outer loop inwards, compute levels as deep as legal, Y just outside ii, every tile of the chosen kind. Orders and levels whose cost formula is
//   dominated for every tile (same counts from larger buffers) are left out: they cannot be on a front.
// - A fused group: producers hang at the sink's row loop, at its column loop, or at their own consumer's rows or pixels; kept between
//   neighbouring tiles: nothing, the overlap along x, along y, or both; row and column tiles of the chosen kind, also column
//   strips; the largest 0, 1, 2, ... weights fetched again in every tile, the others resident. X kept as the intermediates are, or for the whole group.
// - Every group also in the line-buffer form that the generators of fast code execute (line_buffers.h).
// Counts of every point come from two_level_counts(). The result does not depend on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/counts.h"
#include "scheduler/schedule.h"

namespace laminate {

enum class TileSizes {
    divisors,       ///< of the extent: no ragged tiles; the default, seconds for most networks
    powers_of_two,  ///< and the extent itself; fewest candidates
    all,            ///< 1 .. extent; the finest fronts, minutes on large pictures
};

struct ExploreProgress {
    int64_t segments_done = 0;
    int64_t segments_total = 0;
    std::string segment;  ///< "conv1 .. conv3"
};

struct ExploreOptions {
    TileSizes tiles = TileSizes::divisors;
    int64_t max_depth = 8;           ///< layers in a group; the work grows with the square of it
    bool recompute = true;           ///< false: no element of an intermediate is computed twice
    std::optional<Elements> memory;  ///< only schedules with live_total within it
    int threads = 1;
    std::function<void(const ExploreProgress&)> progress = {};  ///< called from one thread at a time
    const std::atomic<bool>* stop = nullptr;  ///< set it to get the front of what was looked at so far
};

struct FrontPoint {
    Schedule schedule;
    NetworkCounts counts;
};

struct Front {
    std::vector<FrontPoint> points;  ///< by accesses, fewest first; then memory, MACs, text
    /// False when the fronts of the groups were too large to combine on three axes: then no point is beaten in (accesses, memory)
    /// together, and MACs only decide between equals.
    bool macs_is_axis = true;
};

/// Not fitting is a result: no schedule lives in less than `demand`.
struct Infeasible {
    Elements demand;
    Elements capacity;
};

/// Throws InputError for a network without schedulable layers. Empty when nothing fits in options.memory.
[[nodiscard]] Front explore(const Network& network, const ExploreOptions& options = {});

/// Fewest accesses within the budget; ties by MACs, then by text. `front` is not empty.
[[nodiscard]] std::variant<FrontPoint, Infeasible> choose(const Front& front, Elements budget);

/// One candidate for a group, with the three axes of the search.
struct GroupPoint {
    GroupSchedule group;
    Elements accesses;
    Elements live_total;
    Macs macs;
};
/// The front of one group: consecutive layers of one chain. By accesses, fewest first.
[[nodiscard]] std::vector<GroupPoint> group_front(const Network& network, const std::vector<LayerId>& segment,
                                                  const ExploreOptions& options);

/// Sizes that a tile of an extent may take: ascending, the extent itself last.
[[nodiscard]] std::vector<int64_t> tile_sizes(int64_t extent, TileSizes kind);

}  // namespace laminate
