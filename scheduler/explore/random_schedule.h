// Random legal schedules, for tests and `laminate validate --random`. Every legal schedule may be
// drawn: every partition into groups with one sink each, forks and joins inside them, layers
// without weights inside or left out, loop orders, tiles (divisors and ragged ones), strips, and
// pairs of store and compute levels. The same seed gives the same schedule on every machine.
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
    /// Recomputation can multiply the work by the kernel area at every layer of a group. A group is
    /// drawn again if two_level_work() exceeds this and also four times its work without
    /// recomputation.
    Macs max_macs{2'000'000'000};
    /// A group is also drawn again if its kernels are called more often, because a witness that
    /// steps through the calls of large layers one pixel and channel at a time takes minutes.
    /// Nothing else is left out.
    int64_t max_calls = 250'000;
    int64_t max_depth = INT64_MAX;  ///< layers in a group
    /// One in eight groups of so many layers or fewer has tiles of whole maps, which hardly any free
    /// draw has in all of its layers. Kernels of whole maps (is_whole_map_group) take up to three.
    size_t whole_map_layers = 0;
};

/// `segment` has layers that may form a group (check_group), producers first.
[[nodiscard]] GroupSchedule random_group(const Network& network,
                                         const std::vector<LayerId>& segment, Rng& rng,
                                         const RandomOptions& options = {});
[[nodiscard]] Schedule random_schedule(const Network& network, uint64_t seed,
                                       const RandomOptions& options = {});

}  // namespace laminate
