// The plain walker: one of the three witnesses of docs/counting.md. It executes the loop nests of a group, body by
// body, on sets of elements, and counts what it sees. It knows no formula: no closed form, no fold rule, no model. What
// a body will read is found by running that body in rehearsal; what is new is found by looking at each element; the
// size of a buffer is found by noting when each element came in and when it was last needed.
//
// The price is time: proportional to the elements that the bodies touch, which is about the multiply-accumulates
// divided by the kernel size. Meant for networks of up to some 10^8 of them, not for 4K pictures.
#pragma once

#include "nets/network.h"
#include "scheduler/counts.h"
#include "scheduler/schedule.h"

namespace laminate {

/// The counts of one legal group (check_group() accepts it), for one image of the batch. Elements and MACs as in
/// counts.h.
///
/// Sizes of buffers: an element is live from the body of the compute level that brought it in up to the last such body
/// that needs it, within one lifetime. Along each dimension the buffer must span the live elements (largest minus
/// smallest coordinate plus one, at the worst moment of any lifetime); its size is the product of the three spans.
///
/// Throws std::logic_error when the new part of an intermediate tensor is not a box (section 4.4 says it always is).
[[nodiscard]] GroupCounts walk(const Network& network, const GroupSchedule& group);

}  // namespace laminate
