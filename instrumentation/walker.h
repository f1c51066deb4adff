// The plain walker, one of the three witnesses of docs/counting.md. It executes the loop nests of a
// group, body by body, on sets of elements, and counts what it sees. It knows no formula: no closed
// form, no arithmetic of windows, no model. It finds what a body will read by rehearsing the body
// (for a tensor with several readers, by walking each axis alone first, as section 4.8 asks), what
// is new by looking at what is present, and the size of a buffer by applying section 5 to the needs
// of each body.
//
// Its time is proportional to the rows that the bodies touch in each channel. It is meant for
// networks of up to about 10^8 multiply-accumulates, not for 4K pictures.
#pragma once

#include "nets/network/network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// The counts of one legal group (check_group), for one image.
///
/// Throws std::logic_error if a property that the page claims for every legal group fails: the new
/// part of an intermediate tensor is a box, loops run forward, and axes are independent (sections
/// 4.4 and 4.8).
[[nodiscard]] GroupCounts walk(const Network& network, const GroupSchedule& group);

}  // namespace laminate
