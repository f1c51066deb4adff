// Random legal schedules, for tests and `laminate validate --random`. Everything legal may come
// out: every partition into groups with one sink each, forks and joins inside them, layers without
// weights inside or left out, loop order, tile (divisors and ragged ones), strip, and pair of store
// and compute levels. The same seed gives the same schedule on every machine: own generator, no
// std:: distributions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "nets/network/network.h"
#include "nets/random/random_network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct RandomOptions {
    /// Recomputation can multiply the work by the kernel area at every layer of a group: a group
    /// whose closed form says more than this (and more than four times its work without
    /// recomputation) is drawn again. Nothing else is left out. Work: two_level_work().
    Macs max_macs{2'000'000'000};
    int64_t max_depth = INT64_MAX;  ///< layers in a group
};

/// `segment`: layers that may form a group (check_group), producers first.
[[nodiscard]] GroupSchedule random_group(const Network& network,
                                         const std::vector<LayerId>& segment, Rng& rng,
                                         const RandomOptions& options = {});
[[nodiscard]] Schedule random_schedule(const Network& network, uint64_t seed,
                                       const RandomOptions& options = {});

}  // namespace laminate
