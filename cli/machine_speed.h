// Measures the peak of this machine: fused multiply-adds in registers, and reads from each memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace laminate::cli {

/// 32-bit GFLOP/s (a multiply-add is two) of `threads` threads together, with the widest vectors of
/// this CPU, without loads or stores. Each thread takes the best of many pieces of half a
/// millisecond, shorter than a busy machine's time slices; about 20 ms in all. Call it several
/// times and take the largest, because the clock may still have to rise. Like all functions here it
/// throws InfeasibleError when the system cannot start so many threads.
[[nodiscard]] double peak_gflops(int threads);

/// Bytes of each thread's array for reading main memory: several times the caches that must not
/// hold it, `last_level_bytes` shared by all threads and `own_bytes` of each. All arrays together
/// take `budget_bytes` at most where that is enough.
[[nodiscard]] int64_t main_memory_array_bytes(int64_t last_level_bytes, int64_t own_bytes,
                                              int threads, int64_t budget_bytes);

/// 10^9 bytes per second that `threads` threads together read, each from its own array of `bytes`
/// bytes: the best of several passes.
[[nodiscard]] double read_gigabytes_per_second(int64_t bytes, int threads);

/// Nanoseconds of a load from an array of `bytes` bytes whose address the load before it read, lines in no
/// order: the least of several passes, by the thread's own clock.
[[nodiscard]] double load_nanoseconds(int64_t bytes);

/// How large an array may be to stay in a cache of `most_bytes` that other programs use too, on a virtual
/// machine also those of other machines: the largest of `most_bytes` and its halves above `least_bytes`
/// whose loads take less than half of the time of those from main memory, or else `least_bytes`.
/// `nanoseconds`: of a load from an array of so many bytes.
[[nodiscard]] int64_t reached_bytes(int64_t least_bytes, int64_t most_bytes,
                                    const std::function<double(int64_t bytes)>& nanoseconds);

struct MemoryLevel {
    std::string name;        ///< L1, L2, L3, DRAM
    int64_t size_bytes = 0;  ///< as the operating system says; 0 for DRAM
    /// Each thread's array in the measurement: half of the level (of its share of L3), or several
    /// times all caches for DRAM.
    int64_t array_bytes = 0;
    double gigabytes_per_second = 0;
};

/// The caches that the operating system reports, nearest first, then DRAM. Throws InfeasibleError
/// when the arrays do not fit in the available memory.
[[nodiscard]] std::vector<MemoryLevel> measured_memory_levels(int threads);

}  // namespace laminate::cli
