// Times the kernels of docs/kernels.md on this machine, one layer or a few at a time, and fits what
// the model of time takes for each kind of work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scheduler/counts/work.h"
#include "scheduler/machine/cpu_speed.h"
#include "scheduler/schedule/kernels/vector_unit.h"

namespace laminate::cli {

struct TimedProbe {
    std::string group;  ///< text
    TimedWork timed;
};
struct MeasuredSpeed {
    CpuSpeed speed;  ///< without names
    std::vector<TimedProbe> probes;
};

/// Amounts of each kind of work that all probes of a processor have together. A kind of which they have
/// none gets the time of usual_cpu_speed().
[[nodiscard]] WorkTerms probed_work(const VectorUnit& unit, const CoreCaches& caches);

/// Takes some minutes. `target`: "host", or a Halide target whose code this processor runs.
/// `gigabytes_per_second`: that a core reads from main memory while all cores do. `note` is told how
/// far it is.
[[nodiscard]] MeasuredSpeed measured_cpu_speed(
    const std::string& target, double gigabytes_per_second,
    const std::function<void(size_t done, size_t all)>& note);

}  // namespace laminate::cli
