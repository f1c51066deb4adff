// The plain walker: one of the three witnesses of docs/counting.md. It executes the loop nests of a
// group, body by body, on sets of elements, and counts what it sees. It knows no formula: no closed
// form, no arithmetic of windows, no model. What a body will read is found by running that body in
// rehearsal (of a tensor that several nests read: by walking each axis alone first, as section 4.8
// asks); what is new is found by looking at what is present; the size of a buffer is found by
// applying section 5 to what each body was seen to need.
//
// The price is time: proportional to the rows that the bodies touch, channel by channel. Meant for
// networks of up to some 10^8 multiply-accumulates, not for 4K pictures.
#pragma once

#include "nets/network/network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// The counts of one legal group (check_group() accepts it), for one image of the batch. Elements
/// and MACs as in counts.h.
///
/// Throws std::logic_error where what the page says of every legal group turns out not to hold: the
/// new part of an intermediate tensor is always a box, loops run forward, axes are independent
/// (sections 4.4 and 4.8).
[[nodiscard]] GroupCounts walk(const Network& network, const GroupSchedule& group);

}  // namespace laminate
