// Compiled with -ffp-contract=fast, so that a * b + c is one instruction where the target has one.
#include "cli/machine_speed.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

namespace laminate::cli {

namespace {

/// Opaque to the compiler: what is read from one is not known, what is written to it is wanted.
volatile float factor = 0.999F;
volatile float addend = 0.001F;
volatile float result = 0;

/// One loop per register width: `count` independent sums, enough to cover the latency of a multiply-add on two ports.
#define LAMINATE_MULTIPLY_ADD_LOOP(name, target_text, lanes, count)                                   \
    target_text int64_t name(int64_t iterations) {                                                    \
        typedef float Vector __attribute__((vector_size(4 * (lanes))));                               \
        Vector sums[count];                                                                           \
        for (int n = 0; n < (count); ++n) sums[n] = Vector{} + static_cast<float>(n);                 \
        const Vector a = Vector{} + factor, b = Vector{} + addend;                                    \
        for (int64_t k = 0; k < iterations; ++k) {                                                    \
            _Pragma("GCC unroll 32") for (int n = 0; n < (count); ++n) { sums[n] = sums[n] * a + b; } \
        }                                                                                             \
        for (int n = 0; n < (count); ++n) result = sums[n][0];                                        \
        return 2 * (lanes) * (count)*iterations;                                                      \
    }

#if defined(__x86_64__)
LAMINATE_MULTIPLY_ADD_LOOP(with_avx512, __attribute__((target("avx512f"))), 16, 24)
LAMINATE_MULTIPLY_ADD_LOOP(with_avx2, __attribute__((target("avx2,fma"))), 8, 12)
#endif
LAMINATE_MULTIPLY_ADD_LOOP(with_any_cpu, , 4, 12)
#undef LAMINATE_MULTIPLY_ADD_LOOP

using Loop = int64_t (*)(int64_t iterations);

Loop widest_loop() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return with_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return with_avx2;
#endif
    return with_any_cpu;
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
    const auto iterations = static_cast<int64_t>(trial * std::max(1.0, piece_seconds / seconds_since(start)));
    double best = 0;
    for (int n = 0; n < pieces; ++n) best = std::max(best, timed_gflops(loop, iterations));
    return best;
}

}  // namespace

double peak_gflops(int threads) {
    const Loop loop = widest_loop();
    std::vector<double> best(static_cast<size_t>(threads));
    std::vector<std::thread> others;
    for (size_t t = 1; t < best.size(); ++t) others.emplace_back([&, t] { best[t] = best_of_one_thread(loop); });
    best[0] = best_of_one_thread(loop);
    for (std::thread& other : others) other.join();
    return std::accumulate(best.begin(), best.end(), 0.0);
}

}  // namespace laminate::cli
