// Compiled with -ffp-contract=fast, so that a * b + c is one instruction where the target has one.
#include "cli/machine_speed.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
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

}  // namespace

double peak_gflops(int threads) {
    constexpr double wanted_seconds = 0.01;
    constexpr int64_t trial = 100'000;
    const Loop loop = widest_loop();
    auto start = std::chrono::steady_clock::now();
    (void)loop(trial);
    const auto iterations = static_cast<int64_t>(trial * std::max(1.0, wanted_seconds / seconds_since(start)));

    std::vector<std::thread> others;
    std::vector<int64_t> operations(static_cast<size_t>(threads));
    start = std::chrono::steady_clock::now();
    for (size_t t = 1; t < operations.size(); ++t) others.emplace_back([&, t] { operations[t] = loop(iterations); });
    operations[0] = loop(iterations);
    for (std::thread& other : others) other.join();
    const double seconds = seconds_since(start);
    int64_t sum = 0;
    for (const int64_t n : operations) sum += n;
    return static_cast<double>(sum) / seconds / 1e9;
}

}  // namespace laminate::cli
