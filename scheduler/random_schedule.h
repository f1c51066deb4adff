// Random legal schedules and random small networks, for tests and `laminate validate --random`. Everything legal may come out: every
// partition of a chain into groups, loop order, tile (divisors and ragged ones), strip, and pair of store and compute levels.
// The same seed gives the same schedule on every machine: own generator, no std:: distributions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "nets/network.h"
#include "scheduler/schedule.h"

namespace laminate {

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
class Rng {
public:
    explicit Rng(uint64_t seed) : state_(seed) {}
    [[nodiscard]] uint64_t next();
    /// Uniform in [0, n), n > 0; the bias of the multiply-shift is below n / 2^64.
    [[nodiscard]] int64_t below(int64_t n);
    /// Uniform in [low, high].
    [[nodiscard]] int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
    /// True with probability numerator / denominator.
    [[nodiscard]] bool chance(int64_t numerator, int64_t denominator) { return below(denominator) < numerator; }
    template <class T>
    void shuffle(std::vector<T>& values) {
        for (size_t n = values.size(); n > 1; --n)
            std::swap(values[n - 1], values[static_cast<size_t>(below(static_cast<int64_t>(n)))]);
    }

private:
    uint64_t state_;
};

struct RandomOptions {
    /// Recomputation can multiply the work by the kernel area at every layer of a group: a group whose closed form says more than this (and more
    /// than four times its work without recomputation) is drawn again. Nothing else is left out.
    Macs max_macs{2'000'000'000};
    int64_t max_depth = INT64_MAX;  ///< layers in a group
};

/// `segment`: consecutive layers of one chain (schedulable_chains), producers first.
[[nodiscard]] GroupSchedule random_group(const Network& network, const std::vector<LayerId>& segment, Rng& rng,
                                         const RandomOptions& options = {});
[[nodiscard]] Schedule random_schedule(const Network& network, uint64_t seed, const RandomOptions& options = {});

/// A chain of one to four small schedulable layers (convolutions with any stride, dilation, padding and groups; transposed
/// convolutions; Gemms), with activations, biases and small sparse integer weights so that every sum is exact in 32-bit floats.
[[nodiscard]] Network random_network(uint64_t seed);

}  // namespace laminate
