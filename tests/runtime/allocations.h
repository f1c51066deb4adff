// How often this test program has called operator new, to show that a run allocates nothing.
#pragma once

#include <cstdint>

namespace laminate {

[[nodiscard]] int64_t allocation_count();

}  // namespace laminate
