// Every schedule of one group in ConvFusion's spaces (docs/search.md, "Spaces"), counted and
// compared: what the search is tested against.
//
// Shares nothing with scheduler/search and nothing with the cost models: a second reading of
// docs/counting.md for these spaces. From the last layer to the first, every order, level and tile
// is tried. What the layers before can see of the later ones is only in which pieces their output
// is asked for along rows, columns and channels, and which loops lie around: choices alike in that
// are kept side by side as far as none is at least as good in all six numbers that decide the total
// (Costs). Unlike the search it works with the real trips of every loop, drops no order, level or
// tile beforehand and compares no single axes.
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

struct EveryScheduleOptions {
    TileSizes tiles = TileSizes::all;
    Footprint footprint = Footprint::live;
    bool recompute = true;       ///< false: no more MACs than layer by layer
    bool only_resident = false;  ///< fused groups: weights at the root
};

class EverySchedule {
public:
    /// Ungrouped convolutions that feed one another; all extents are tiny.
    EverySchedule(std::vector<LayerProblem> problems, const EveryScheduleOptions& options);
    ~EverySchedule();

    /// Costs of all schedules of the space that no point of `front` beats: the front itself when it
    /// is right and complete.
    [[nodiscard]] std::set<ThreeCosts> unbeaten_by(const std::set<ThreeCosts>& front);
    /// A schedule that unbeaten_by() found to cost this.
    [[nodiscard]] std::string example(const ThreeCosts& cost) const;
    /// The counts of one schedule, as unbeaten_by() sees them.
    [[nodiscard]] ThreeCosts cost(const ChainSchedule& schedule);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace laminate
