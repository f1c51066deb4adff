// CPU time of the calling thread, which other programs on the machine do not change.
#pragma once

#include <time.h>

namespace laminate {

[[nodiscard]] inline double thread_milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

}  // namespace laminate
