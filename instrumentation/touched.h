// Whether the events of code that runs are true: every load of an external input or of packed
// weights and every store of an output, element by element, against the boxes that the code
// announces (generators/lowering/events.h). For small groups: the code is stepped through.
//
// Where an element of the weights lies among the constants is found out from the constants: code is
// made for weights that are numbers of their own (weight_places()), so no layout is known here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "generators/group_code.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// The weights (z, i) of a nest that an element among the constants is made from; a filled-up place
/// has none, nor has what is no weight.
struct WeightPlace {
    int nest = -1;
    int64_t z = -1;
    int64_t i = -1;
};

/// Code with events, and for each of its constants the weights that it comes from.
struct TracedGroup {
    GroupCode code;
    std::vector<WeightPlace> places;
};
/// Throws std::invalid_argument if the group has more pairs (z, i) than floats tell apart, 20,000.
[[nodiscard]] TracedGroup traced_group(const Network& network, const GroupSchedule& group);

/// For the first time in a lifetime, as DoneCounts::inputs and NestDone::weights count them, and
/// elements that each execution of a kernel stores of its nest's output (nothing of the lines of a
/// chain, whose code keeps no plain columns).
struct TouchedCounts {
    std::vector<Elements> inputs;
    std::vector<Elements> weights;
    std::vector<Elements> stored;
    /// Where loads and stores contradict the events, a line each; the first ones.
    std::vector<std::string> wrong;
};
[[nodiscard]] TouchedCounts touched_counts(const TracedGroup& traced, const GroupSchedule& group,
                                           const std::vector<LayerProblem>& problems);

}  // namespace laminate
