// Compiled with -ffp-contract=fast, so that a * b + c is one instruction where the target has one.
#include "cli/machine_speed.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "answers/program.h"
#include "base/aligned.h"
#include "base/caches.h"
#include "base/cpu_time.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "cli/resident_memory.h"

namespace laminate::cli {

namespace {

/// Volatile, so that the compiler neither knows the operands nor drops the results.
volatile float factor = 0.999F;
volatile float addend = 0.001F;
thread_local volatile float result = 0;  // per thread, because threads measure at the same time

/// One loop per register width: `count` independent sums, enough to cover the latency of a
/// multiply-add on two ports.
#define LAMINATE_MULTIPLY_ADD_LOOP(name, target_text, lanes, count)                   \
    target_text int64_t name(int64_t iterations) {                                    \
        typedef float Vector __attribute__((vector_size(4 * (lanes))));               \
        Vector sums[count];                                                           \
        for (int n = 0; n < (count); ++n) sums[n] = Vector{} + static_cast<float>(n); \
        const Vector a = Vector{} + factor, b = Vector{} + addend;                    \
        for (int64_t k = 0; k < iterations; ++k) {                                    \
            _Pragma("GCC unroll 32") for (int n = 0; n < (count); ++n) {              \
                sums[n] = sums[n] * a + b;                                            \
            }                                                                         \
        }                                                                             \
        for (int n = 0; n < (count); ++n) result = sums[n][0];                        \
        return 2 * (lanes) * (count)*iterations;                                      \
    }

#if defined(__x86_64__)
LAMINATE_MULTIPLY_ADD_LOOP(with_avx512, __attribute__((target("avx512f"))), 16, 24)
LAMINATE_MULTIPLY_ADD_LOOP(with_avx2, __attribute__((target("avx2,fma"))), 8, 12)
#endif
LAMINATE_MULTIPLY_ADD_LOOP(with_any_cpu, , 4, 12)
#undef LAMINATE_MULTIPLY_ADD_LOOP

/// Adds up `count` floats, a multiple of 128, in eight independent sums.
#define LAMINATE_READ_LOOP(name, target_text, lanes)                                \
    target_text void name(const float* from, int64_t count) {                       \
        typedef float Vector __attribute__((vector_size(4 * (lanes)), aligned(4))); \
        Vector sums[8] = {};                                                        \
        for (int64_t k = 0; k < count; k += 8 * (lanes)) {                          \
            _Pragma("GCC unroll 8") for (int n = 0; n < 8; ++n) sums[n] +=          \
                *reinterpret_cast<const Vector*>(from + k + n * (lanes));           \
        }                                                                           \
        for (int n = 0; n < 8; ++n) result = sums[n][0];                            \
    }

#if defined(__x86_64__)
LAMINATE_READ_LOOP(read_with_avx512, __attribute__((target("avx512f"))), 16)
LAMINATE_READ_LOOP(read_with_avx2, __attribute__((target("avx2,fma"))), 8)
#endif
LAMINATE_READ_LOOP(read_with_any_cpu, , 4)
#undef LAMINATE_READ_LOOP

using Loop = int64_t (*)(int64_t iterations);

Loop widest_loop() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return with_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return with_avx2;
#endif
    return with_any_cpu;
}

using ReadLoop = void (*)(const float* from, int64_t count);

ReadLoop widest_read_loop() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return read_with_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return read_with_avx2;
#endif
    return read_with_any_cpu;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double timed_gflops(Loop loop, int64_t iterations) {
    const auto start = std::chrono::steady_clock::now();
    const int64_t operations = loop(iterations);
    return static_cast<double>(operations) / seconds_since(start) / 1e9;
}

double best_of_one_thread(Loop loop) {
    constexpr int pieces = 40;
    constexpr int64_t trial = 10'000;
    const auto start = std::chrono::steady_clock::now();
    (void)loop(trial);
    constexpr double piece_seconds = 0.0005;
    const auto iterations =
        static_cast<int64_t>(trial * std::max(1.0, piece_seconds / seconds_since(start)));
    double best = 0;
    for (int n = 0; n < pieces; ++n) best = std::max(best, timed_gflops(loop, iterations));
    return best;
}

/// GB/s that one thread reads: the best of several pieces, each short enough to fit into a time
/// slice of a busy machine.
double best_read_of_one_thread(ReadLoop loop, int64_t bytes) {
    constexpr int64_t step = 128;
    const int64_t count = std::max<int64_t>(step, bytes / 4 / step * step);
    const AlignedFloats array(static_cast<size_t>(count), 1.0F);
    constexpr int64_t piece_bytes = 4 << 20;
    const int64_t passes = std::max<int64_t>(1, piece_bytes / (4 * count));
    constexpr int pieces = 12;
    loop(array.data(), count);
    double best = 0;
    for (int n = 0; n < pieces; ++n) {
        const auto start = std::chrono::steady_clock::now();
        for (int64_t pass = 0; pass < passes; ++pass) loop(array.data(), count);
        best = std::max(best, static_cast<double>(4 * count * passes) / seconds_since(start) / 1e9);
    }
    return best;
}

/// The sum of `measure` over `threads` threads at once.
double sum_over_threads(int threads, const std::function<double()>& measure) {
    std::vector<double> found(static_cast<size_t>(threads));
    try {
        in_parallel(found.size(), threads, [&](size_t t) { found[t] = measure(); });
    } catch (const std::bad_alloc&) {
        throw InfeasibleError(fmt::format(
            "measuring with {} threads: out of memory; expected fewer threads", threads));
    } catch (const std::system_error& error) {
        throw InfeasibleError(fmt::format("measuring with {} threads: {}", threads, error.what()));
    }
    return std::accumulate(found.begin(), found.end(), 0.0);
}

}  // namespace

int64_t main_memory_array_bytes(int64_t last_level_bytes, int64_t own_bytes, int threads,
                                int64_t budget_bytes) {
    constexpr int64_t times = 4, fewest = 64 << 20, most = 512 << 20;
    const int64_t wanted = std::clamp(times * last_level_bytes, fewest, most);
    const int64_t needed =
        std::min(wanted, times * std::max(own_bytes, last_level_bytes / threads));
    return std::clamp(budget_bytes / threads, needed, wanted);
}

double read_gigabytes_per_second(int64_t bytes, int threads) {
    const ReadLoop loop = widest_read_loop();
    return sum_over_threads(threads, [&] { return best_read_of_one_thread(loop, bytes); });
}

double load_nanoseconds(int64_t bytes) {
    // A ring of lines in random order, as indices of the first number of each (Sattolo's shuffle).
    constexpr int64_t line = 16;
    constexpr int passes = 4;
    std::vector<int32_t> next(static_cast<size_t>(bytes) / sizeof(int32_t));
    const auto lines = std::ssize(next) / line;
    std::vector<int32_t> order(static_cast<size_t>(lines));
    std::iota(order.begin(), order.end(), 0);
    Rng rng(1);
    for (int64_t n = lines - 1; n > 0; --n)
        std::swap(order[static_cast<size_t>(n)], order[static_cast<size_t>(rng.below(n))]);
    for (int64_t n = 0; n < lines; ++n) {
        const int64_t to = order[static_cast<size_t>((n + 1) % lines)];
        next[static_cast<size_t>(order[static_cast<size_t>(n)] * line)] =
            static_cast<int32_t>(to * line);
    }
    // Each pass takes whole rounds: what the caches keep of the ring as it was written, or of the pass
    // before, is a small part of the ring then, unless all of it fits.
    constexpr int64_t least_loads = 200'000;
    const int64_t loads = (least_loads + lines - 1) / lines * lines;
    double least = HUGE_VAL;
    int32_t at = 0;
    for (int pass = 0; pass < passes; ++pass) {
        const double start = thread_milliseconds();
        for (int64_t n = 0; n < loads; ++n) at = next[static_cast<size_t>(at)];
        least = std::min(least, (thread_milliseconds() - start) * 1e6 / static_cast<double>(loads));
    }
    result = static_cast<float>(at);
    return least;
}

int64_t reached_bytes(int64_t least_bytes, int64_t most_bytes,
                      const std::function<double(int64_t bytes)>& nanoseconds) {
    constexpr int64_t surely_beyond = 4;
    const double of_main = nanoseconds(surely_beyond * most_bytes);
    for (int64_t bytes = most_bytes; bytes > least_bytes; bytes /= 2) {
        if (nanoseconds(bytes) < of_main / 2) return bytes;
    }
    return least_bytes;
}

std::vector<MemoryLevel> measured_memory_levels(int threads) {
    std::vector<MemoryLevel> levels;
    int64_t largest = 0, largest_own = 0;
    for (const Cache& cache : data_caches()) {
        const int64_t bytes = cache.size.value();
        const bool is_shared = cache.level == 3;
        largest = std::max(largest, bytes);
        if (!is_shared) largest_own = std::max(largest_own, bytes);
        levels.push_back(
            {"L" + std::to_string(cache.level), bytes, bytes / 2 / (is_shared ? threads : 1), 0});
    }
    constexpr int64_t usual_budget = int64_t{2} << 30;
    const int64_t budget =
        std::min(usual_budget, available_memory_bytes().value_or(2 * usual_budget) / 2);
    levels.push_back(
        {"DRAM", 0, main_memory_array_bytes(largest, largest_own, threads, budget), 0});
    require_available_memory(fmt::format("reading main memory with {} threads takes", threads),
                             levels.back().array_bytes * threads);
    for (MemoryLevel& level : levels)
        level.gigabytes_per_second = read_gigabytes_per_second(level.array_bytes, threads);
    return levels;
}

double peak_gflops(int threads) {
    const Loop loop = widest_loop();
    return sum_over_threads(threads, [&] { return best_of_one_thread(loop); });
}

}  // namespace laminate::cli
