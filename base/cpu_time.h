// CPU time of the calling thread: what a search or a kernel took, whatever else the machine was
// doing.
#pragma once

#include <time.h>

namespace laminate {

[[nodiscard]] inline double thread_milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

}  // namespace laminate
