// The witness that Halide schedules itself: the group as Funcs and directives
// (generators/halide/program.h), lowered by Halide's own inference, counted by the pass over its
// final statement (count_pass.h) and, where it is executed, compared with the reference operators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generators/halide/program.h"
#include "instrumentation/count_pass.h"
#include "nets/network/network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct HalideMeasurement {
    /// Reads, writes, MACs and allocated elements as counted. The footprints follow from the sizes
    /// by the rule of docs/counting.md section 5: a buffer lives in the whole body of its level.
    GroupCounts counts;
    /// The most that Halide held at once. It allocates a buffer where its first value is made and
    /// in program order, so this is at most `counts.live_total`.
    Elements live_peak;
    /// Why counts may differ from the schedule's (HalideProgram::exclusions).
    std::vector<HalideExclusion> exclusions;
    /// Empty, or what Halide said of a schedule that it refused to compile or stopped running. Only
    /// outside of the class; counts are then meaningless.
    std::string refused;
    /// Empty, or where the output differs from the reference operators', one line. Count-only
    /// measurements compute nothing.
    std::string wrong_result;
};

/// Throws InputError where the group has no form as Halide Funcs.
[[nodiscard]] HalideMeasurement measure_halide(const Network& network, const GroupSchedule& group,
                                               uint64_t seed, CountMode mode = CountMode::execute);

/// Runs what the printed file with these GeneratorParams says. The caller's arrays are aligned as
/// C++ aligns floats. Returns where the output differs from the reference operators', or what
/// Halide said of a schedule that it refused; else nothing.
[[nodiscard]] std::string printed_difference(const Network& network, const GroupSchedule& group,
                                             uint64_t seed, HalideSpeed speed);

}  // namespace laminate
