// The instrumented kind of code: the schedule taken literally. Every buffer is allocated at its
// store level with exactly the elements it needs and rotates where it folds; external memory is
// touched only by copies and by the output; one multiply-accumulate at a time, in the schedule's
// loop order. Slow, and countable: instrumentation/ counts what it did.
#pragma once

#include "generators/group_code.h"

namespace laminate {

[[nodiscard]] GroupCode instrumented_code(const Network& network, const GroupSchedule& group);

}  // namespace laminate
