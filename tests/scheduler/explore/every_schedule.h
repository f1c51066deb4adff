// Counts and compares every schedule of one group in ConvFusion's spaces (docs/search.md,
// "What is searched"). The search is tested against it.
//
// It shares nothing with scheduler/explore and the cost models: it is a second reading of
// docs/counting.md for these spaces. It tries every order, level and tile, from the last layer to
// the first. Of the later layers, the layers before see only the pieces in which their output is
// asked for, along rows, columns and channels, and the loops around. Among choices that agree in
// these, only those are kept that no other one equals or beats in all six numbers that decide the
// total (Costs). Unlike the search, it uses the real trips of every loop, drops no order, level or
// tile beforehand, and compares no single axes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scheduler/explore/explore.h"
#include "tests/scheduler/explore/space_of_a_chain.h"

namespace laminate {
namespace every {

struct EveryScheduleOptions {
    TileSizes tiles = TileSizes::all;
    Footprint footprint = Footprint::live;
    bool recompute = true;       ///< if false, no more MACs than layer by layer
    bool only_resident = false;  ///< fused groups keep weights at the root
    bool macs_is_axis = true;    ///< if false, MACs only decide between equals
};

class EverySchedule {
public:
    /// `problems`: ungrouped convolutions that feed one another, with tiny extents.
    EverySchedule(std::vector<LayerProblem> problems, const EveryScheduleOptions& options);
    ~EverySchedule();

    /// Costs of all schedules of the space that no point of `front` beats. A correct and complete
    /// front is returned itself.
    [[nodiscard]] std::set<ThreeCosts> unbeaten_by(const std::set<ThreeCosts>& front);
    /// A schedule to which unbeaten_by() gave this cost.
    [[nodiscard]] std::string example(const ThreeCosts& cost) const;
    /// The counts of one schedule, as unbeaten_by() sees them.
    [[nodiscard]] ThreeCosts cost(const ChainSchedule& schedule);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace every

using every::EverySchedule;
using every::EveryScheduleOptions;

}  // namespace laminate
