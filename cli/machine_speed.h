// What this machine can do at best, measured: fused multiply-adds in registers, nothing loaded or
// stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace laminate::cli {

/// 32-bit GFLOP/s (a multiply-add is two) of `threads` threads together, with the widest vectors
/// that this CPU has. Each thread takes the best of many pieces of half a millisecond, shorter than
/// a busy machine's time slices; about 20 ms in all. Throws InfeasibleError when the system has no
/// room for so many threads, as all functions here do. Call it several times and take the largest:
/// a clock that has not yet risen makes it smaller.
[[nodiscard]] double peak_gflops(int threads);

/// Bytes of the array of each thread when main memory is read: several times the caches that it
/// must not be found in, `last_level_bytes` of all threads and `own_bytes` of each; no more than
/// `budget_bytes` in all where that is enough.
[[nodiscard]] int64_t main_memory_array_bytes(int64_t last_level_bytes, int64_t own_bytes,
                                              int threads, int64_t budget_bytes);

/// 10^9 bytes per second that `threads` threads together read, each from an array of its own of so
/// many bytes, again and again: the best of several passes.
[[nodiscard]] double read_gigabytes_per_second(int64_t bytes, int threads);

struct MemoryLevel {
    std::string name;         ///< L1, L2, L3, DRAM
    int64_t size_bytes = 0;   ///< as the operating system says; 0 for DRAM
    int64_t array_bytes = 0;  ///< each thread's array in the measurement: half of the level (of its
                              ///< share of L3), or several times what is before DRAM
    double gigabytes_per_second = 0;
};

/// The caches that the operating system knows of, nearest first, then DRAM. Throws InfeasibleError
/// when the arrays do not fit in what memory is available.
[[nodiscard]] std::vector<MemoryLevel> measured_memory_levels(int threads);

}  // namespace laminate::cli
