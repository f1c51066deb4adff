// Counts calls of operator new in this test program, to show that a run allocates nothing.
#pragma once

#include <cstdint>

namespace laminate {

[[nodiscard]] int64_t allocation_count();
/// False under clang's sanitizers, which bring their own operators.
extern const bool allocations_are_counted;

}  // namespace laminate
