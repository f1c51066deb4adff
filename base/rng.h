// A seeded random generator with the same sequence on every machine. It uses no std::
// distributions, because their results differ between standard libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace laminate {

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Rng {
public:
    explicit Rng(uint64_t seed) : state_(seed) {}

    [[nodiscard]] uint64_t next() {
        state_ += 0x9e3779b97f4a7c15u;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    /// Has the effect of `count` calls of next().
    void skip(uint64_t count) { state_ += count * 0x9e3779b97f4a7c15u; }

    /// Uniform in [0, n) for n > 0. The bias of the multiply-shift is below n / 2^64.
    [[nodiscard]] int64_t below(int64_t n) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<int64_t>((static_cast<Wide>(next()) * static_cast<Wide>(n)) >> 64);
    }

    /// Uniform in [low, high].
    [[nodiscard]] int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }

    /// True with probability numerator / denominator.
    [[nodiscard]] bool chance(int64_t numerator, int64_t denominator) {
        return below(denominator) < numerator;
    }

    template <class T>
    void shuffle(std::vector<T>& values) {
        for (size_t n = values.size(); n > 1; --n)
            std::swap(values[n - 1], values[static_cast<size_t>(below(static_cast<int64_t>(n)))]);
    }

private:
    uint64_t state_;
};

}  // namespace laminate
