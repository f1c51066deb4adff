// The plain walker, one of the three witnesses of docs/counting.md. It executes the loop nests of a
// group, body by body, on sets of elements, and counts what it sees. It knows no formula: no closed
// form, no arithmetic of windows, no model. It finds what a body will read by rehearsing the body
// (for a tensor with several readers, by walking each axis alone first, as section 4.8 asks), what
// is new by looking at what is present, and the size of a buffer by applying section 5 to the needs
// of each body.
//
// Where nothing that arrives in a loop's body depends on the loop's coordinate, every trip asks for
// the same. The first trip may bring it in; the second finds all that outlives the body, and so does
// every later one. So two trips are executed and what the second counts is multiplied. Its time is
// proportional to the rows that the other bodies touch in each channel.
#pragma once

#include "nets/network/network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

enum class WalkTrips {
    alike_together,
    every_trip,  ///< plain execution, to check the other mode
};

/// The counts of one legal group (check_group), for one image.
///
/// Throws std::logic_error if a property that the page claims for every legal group fails: the new
/// part of an intermediate tensor is a box, loops run forward, and axes are independent (sections
/// 4.4 and 4.8).
[[nodiscard]] GroupCounts walk(const Network& network, const GroupSchedule& group,
                               WalkTrips trips = WalkTrips::alike_together);

}  // namespace laminate
