// What the papers' views of a machine ask of it first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "scheduler/machine/machine.h"

namespace laminate {

/// "machine NAME: WHAT", to be thrown.
[[nodiscard]] InputError machine_error(const Machine& machine, const std::string& what);

enum class PartialSums { may_be_wider, as_wide };
/// Width of the elements of maps and weights. Throws InputError where they have more than one.
[[nodiscard]] int64_t element_bits(const Machine& machine,
                                   PartialSums sums = PartialSums::may_be_wider);

/// Indices of the memories, lowest first, where input, weights and outputs share all of theirs.
/// Throws InputError where they do not.
[[nodiscard]] std::vector<size_t> shared_hierarchy(const Machine& machine);

}  // namespace laminate
