// Code with hooks: events (generators/lowering/events.h) that call a function of the library, and
// what the manifest says of the buffers that they name (runtime/manifest.h, runtime/trace.h).
#pragma once

#include <Halide.h>

#include <string>

#include "generators/group_code.h"
#include "nets/network/network.h"
#include "runtime/manifest.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// What the schedule of a group promises: sizes of its buffers by the fold rule, and the counts of
/// the model. Buffers are the external inputs, Y, then for each nest its weights, if it has any,
/// and its output, if it is not Y.
[[nodiscard]] GroupPromise promise_of(const Network& network, const GroupSchedule& group);

/// The body of group_code() with events, each of which calls the C function
///
///   int symbol(const laminate_hook* hook, int32_t kind, int32_t buffer, int32_t box[0], ...,
///   box[7])
///
/// with the argument `hook` of the group's function. `buffer` is an index into promise_of().
[[nodiscard]] Halide::Internal::Stmt hooked_body(const Network& network, const GroupSchedule& group,
                                                 const std::string& symbol);

}  // namespace laminate
