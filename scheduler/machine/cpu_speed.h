// How long a core of a processor takes for each kind of work, as data (machines/README.md), fitted
// by `laminate machine measure` to kernels that ran on it.
//
//   time of a group = sum over terms of amount (scheduler/counts/work.h) * nanoseconds of one
//
// No network is timed: what is measured are single layers, once per machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/kernels/vector_unit.h"

namespace laminate {

struct CpuSpeed {
    std::string name;
    std::string about;        ///< one line
    std::string source;       ///< of the numbers
    Bytes second_level_cache; ///< of a core
    Bytes third_level_cache;  ///< of all cores together; a core's second-level cache without one
    /// By term: "rows.products". Vectors have the lanes of the kernel, or 16 where the term is none
    /// of a kernel's.
    std::map<std::string, double> nanoseconds;
};

/// Throws InputError if the text is not JSON, if a key is missing, unknown or negative, or if some
/// kernel has no time. Messages begin with `where`.
[[nodiscard]] CpuSpeed parse_cpu_speed(const std::string& json, const std::string& where);
[[nodiscard]] std::string to_json(const CpuSpeed& speed);

/// Names of the processors that come with the program, sorted: "avx2", "avx512", "xeon6", "zen4".
[[nodiscard]] std::vector<std::string> cpu_speed_names();
/// Opens one of them, or else a file. Throws InputError like parse_cpu_speed, or with the names.
[[nodiscard]] CpuSpeed open_cpu_speed(const std::string& name_or_file);
/// The one that comes with the program for code for such vectors.
[[nodiscard]] CpuSpeed usual_cpu_speed(const VectorUnit& unit);

/// Time of one core for `amounts`, in nanoseconds. A term without a measured time counts nothing.
[[nodiscard]] double nanoseconds_of(const std::map<std::string, double>& amounts,
                                    const CpuSpeed& speed);

/// What a core did and how long it took.
struct TimedWork {
    std::map<std::string, double> amounts;  ///< by term
    double nanoseconds = 0;
};
/// What no fit may go below.
struct LeastNanoseconds {
    double product_vector;  ///< of the multipliers at their peak
    double map_vector;  ///< 16 elements from main memory at the rate of a core while all cores read
};
/// Times per term that explain measured times best: least squares of relative errors. No time is
/// below zero, none of a vector of products below what the multipliers need at their peak, and none
/// of "memory.maps" below what main memory needs: probes run on one core, whose arrays are partly
/// in the caches yet.
[[nodiscard]] std::map<std::string, double> fitted_nanoseconds(const std::vector<TimedWork>& rows,
                                                               const LeastNanoseconds& least);

}  // namespace laminate
