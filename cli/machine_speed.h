// Measures the peak of this machine: fused multiply-adds in registers, and reads from each memory.
#pragma once

#include <cstdint>
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
