// The content of a schedule file; load_schedule() (schedule.h) reads it from a path.
#pragma once

#include <string>

#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Parses JSON or the bare text form. Throws InputError if it is neither, or was made for a network
/// of another structure.
[[nodiscard]] Schedule parse_schedule_file(const Network& network, const std::string& content);

}  // namespace laminate
