// Search for schedules of a whole network: Pareto fronts of external accesses, memory and MACs under the two-level model.
//
// Four of the spaces are ConvFusion's (IEEE Access 2021, section VII), searched completely: docs/search.md says what is in them, why
// nothing is lost on the way, and how long it takes. A *sequence* is a run of ungrouped convolutions that feed one another; a *segment* is a contiguous run
// of a sequence, executed as one group. Every layer that must be scheduled is in one group; pooling, additions and concatenations stay outside and are not
// counted, as in the paper. Space::dag counts them all.
//
// Counts of every point come from two_level_counts(): the search throws std::logic_error where its own differ. The result does not depend on the number
// of threads. What a limit or an interrupt left out is bounded from below, never cut silently: Front::bounds, Front::gap. Groups
// that were not searched to the end get the tile and line-buffer family of search/dag_groups.h besides.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

enum class Space {
    baseline,          ///< layer by layer, no tiles, inner order zi yi xi ii; every store level
    tiling,            ///< layer by layer, every inner order, tile and store level (the paper's Tiling & Reorder)
    fusion,            ///< and segments with resident weights in which nothing is computed twice
    fusion_recompute,  ///< and segments in which weights may come again and halos may be computed again
    dag,  ///< beyond the paper: every schedulable layer in a group, groups with forks and joins; a family of schedules (search/dag_groups.h)
};

enum class TileSizes {
    divisors,       ///< of the extent (of a producer: of its largest call): no ragged tiles
    powers_of_two,  ///< and the extent itself; fewest candidates
    all,            ///< 1 .. extent
};

/// Which memory a schedule needs: docs/counting.md section 5.
enum class Footprint {
    live,  ///< the largest sum of buffers that live at the same time: what a machine needs
    sum,   ///< all buffers of a group: ConvFusion's rule, for comparison with its numbers
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
    /// False: no more MACs than layer by layer. That is to compute nothing twice, but for what strides and cropped borders of a later layer leave unread: not
    /// computing it makes up for something else computed again.
    bool recompute = true;
    std::optional<Elements> memory;  ///< only schedules within it, by `footprint`
    /// MACs as a third axis, else they only decide between equals. Not given: for one sequence of at most four layers. Sums of three-axis fronts
    /// multiply, so for several sequences it may be given up: Front::macs_is_axis.
    std::optional<bool> macs_is_axis;
    /// Work in one segment, in bounds evaluated (some 0.2 us), before the rest of it is bounded instead of searched. Segments of one and two layers
    /// get ten times that, of six and more a twentieth; longer ones with parts that were left half done a hundredth.
    int64_t max_steps = 40'000'000;
    int threads = 1;
    std::function<void(const ExploreProgress&)> progress = {};  ///< called from one thread at a time
    const std::atomic<bool>* stop = nullptr;  ///< set it to get the front of what was looked at so far
};

/// 8 in Space::dag, whose groups branch; in the other spaces as many as the search can hold, which is more than it proves: Front::gap.
[[nodiscard]] int64_t default_max_depth(Space space);

/// One schedule of a front, by the groups that it consists of.
struct FrontPoint {
    std::vector<uint32_t> groups;  ///< into Front::groups, in the order of the schedule
    NetworkCounts counts;
};

/// No schedule of the space with at most `memory` moves fewer than `accesses`, as far as it was left out.
struct FrontBound {
    Elements memory;
    Elements accesses;
};

struct Front {
    std::vector<GroupSchedule> groups;  ///< each legal in the network, and there once: points share most of theirs
    std::vector<FrontPoint> points;     ///< by accesses, fewest first; then memory, MACs, text
    /// False: no point is beaten in (accesses, memory) together, and MACs only decide between equals.
    bool macs_is_axis = true;
    Footprint footprint = Footprint::live;
    /// Everything in the space was searched or proven worse. (The space is what the options ask for, max_depth included.)
    bool is_complete = true;
    /// When not complete: a staircase below all schedules of the space, by memory; accesses fall.
    std::vector<FrontBound> bounds;
    /// Accesses of the front over those of the bounds at equal memory, minus one, where that is largest; 0 when complete. At memories where the
    /// bounds have something and the front nothing there is no ratio.
    double gap = 0;
};

/// The memory that the front is about.
[[nodiscard]] inline Elements memory_of(const NetworkCounts& counts, Footprint footprint) {
    return footprint == Footprint::live ? counts.live_total : counts.sum_total;
}

/// The schedule of a point of `front`.
[[nodiscard]] Schedule schedule_of(const Network& network, const Front& front, const FrontPoint& point);

/// These schedules, counted and in a front's order, whichever they are: none is taken for better than others, and nothing is said of a space.
[[nodiscard]] Front front_of(const Network& network, const std::vector<Schedule>& schedules);

/// Not fitting is a result: no schedule lives in less than `demand`.
struct Infeasible {
    Elements demand;
    Elements capacity;
};

/// Throws InputError for a network without schedulable layers. Empty when nothing fits in options.memory.
[[nodiscard]] Front explore(const Network& network, const ExploreOptions& options = {});

/// Fewest accesses within the budget of live memory; ties by MACs, then by text. `front` is not empty.
[[nodiscard]] std::variant<FrontPoint, Infeasible> choose(const Front& front, Elements budget);

/// One candidate for a group, with the three axes of the search.
struct GroupPoint {
    GroupSchedule group;
    Elements accesses;
    Elements live_total;  ///< with Footprint::sum the sum of all buffers
    Macs macs;
};
/// The three-axis front of one group: consecutive layers of one chain. By accesses, fewest first. Empty when the space does not have
/// the group: several layers of which one is grouped, fully connected or a transposed convolution with kernel equal to stride.
[[nodiscard]] std::vector<GroupPoint> group_front(const Network& network, const std::vector<LayerId>& segment,
                                                  const ExploreOptions& options);

/// The same with the group's loop problems at hand; none of several is fully connected.
[[nodiscard]] std::vector<GroupPoint> group_front(const std::vector<LayerProblem>& problems,
                                                  const ExploreOptions& options);

/// Sizes that a tile of an extent may take: ascending, the extent itself last.
[[nodiscard]] std::vector<int64_t> tile_sizes(int64_t extent, TileSizes kind);

}  // namespace laminate
