// A family of schedules for one group of any graph: the producers hang at the sink's row or tile
// loop, with halos computed again or kept along x or along both axes, or each hangs at the row loop
// of its reader (line buffers), or, where maps are wider than high, at the column loop. The many
// channels that a 1x1 layer makes of few may then be made again for each line, and the sink reads
// its inputs in up to four tiles, or, but for Space::dag, makes its outputs in up to sixteen.
// Weights are resident, or the largest are fetched again in every tile. Groups of more than eight
// layers try fewer of these: no weights or all, and tiles of powers of two instead of all tiles.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/explore/front.h"
#include "scheduler/explore/options.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// What the family may fetch again in every tile.
enum class Refetch {
    largest,  ///< any number of the largest weights, and inputs where tiles share them
    /// Nothing, which reaches compulsory traffic if anything in the family does. Weights are
    /// resident, the sink reads all its inputs at once, and inputs that tiles share are kept.
    none,
};

/// A point of a schedule that many points share, with the sink's sizes of its own.
struct SizedPoint {
    std::shared_ptr<const GroupSchedule> group;
    int64_t rows = 0;     ///< T_y of the sink, or the height of strips of rows; 0: as in `group`
    int64_t columns = 0;  ///< T_x, or the width of strips of columns

    [[nodiscard]] GroupSchedule schedule() const;
    static void set_sizes(GroupSchedule& group, int64_t rows, int64_t columns);
};
using SizedPoints = search::Archive<SizedPoint>;

[[nodiscard]] search::Cost cost_of(Elements accesses, Elements memory, Macs macs);

/// The front of the family. `strips`: which sizes of strips to try where the group goes line by
/// line.
[[nodiscard]] SizedPoints sized_family(const std::vector<LayerProblem>& problems,
                                       const ExploreOptions& options, TileSizes strips,
                                       Refetch refetch, bool macs_is_axis);

[[nodiscard]] std::vector<GroupPoint> with_schedules(const SizedPoints& points);

/// The front of the family on two axes, with schedules.
[[nodiscard]] std::vector<GroupPoint> family_front(const std::vector<LayerProblem>& problems,
                                                   const ExploreOptions& options, TileSizes strips,
                                                   Refetch refetch = Refetch::largest);

}  // namespace laminate
