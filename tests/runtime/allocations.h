// How often this test program has called operator new, to show that a run allocates nothing.
#pragma once

#include <cstdint>

namespace laminate {

[[nodiscard]] int64_t allocation_count();
/// False in programs of clang's sanitizers, which bring operators of their own.
extern const bool allocations_are_counted;

}  // namespace laminate
