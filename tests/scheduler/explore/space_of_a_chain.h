// The space fusion-recompute of one group, implemented from docs/search.md for the tests of the
// search.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/explore.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

using ThreeCosts = std::array<int64_t, 3>;  ///< accesses, memory, MACs

[[nodiscard]] inline bool is_at_least_as_good(const ThreeCosts& a, const ThreeCosts& b) {
    return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2];
}
[[nodiscard]] inline bool beats(const ThreeCosts& a, const ThreeCosts& b) {
    return is_at_least_as_good(a, b) && a != b;
}

/// On two axes, where MACs only decide between equal accesses: with as much memory or less, as in
/// lexicographic order.
[[nodiscard]] inline bool beats_before_macs(const ThreeCosts& a, const ThreeCosts& b) {
    const bool moves_no_more = a[0] < b[0] || (a[0] == b[0] && a[2] <= b[2]);
    return a[1] <= b[1] && moves_no_more && a != b;
}

/// What a schedule of the space decides. Position 0 is the body of the innermost outer loop,
/// position p that of the p-th inner loop.
struct ChainSchedule {
    struct Layer {
        std::array<Dim, 4> order{Dim::z, Dim::y, Dim::x, Dim::i};  ///< of the inner loops
        int store = 0;    ///< of the input; -1: where the layer's own output is stored
        int compute = 0;  ///< of the input; of the first layer's: 4
        int weights = 0;  ///< 0 .. 4 own position, 5 as long as the layer's output, 6 resident
        PerDim<int64_t> tile{1, 1, 1, 1};
    };
    std::vector<Layer> layers;
};

class SpaceOfAChain {
public:
    explicit SpaceOfAChain(std::vector<LayerProblem> problems) : problems_(std::move(problems)) {}

    /// Draws each decision independently, so the result may lie outside the space.
    [[nodiscard]] ChainSchedule draw(Rng& rng) const;
    /// One decision changed.
    void change(ChainSchedule& schedule, Rng& rng) const;
    /// Returns nullopt if the schedule lies outside the space.
    [[nodiscard]] std::optional<GroupSchedule> group(const ChainSchedule& schedule) const;
    /// By the closed form.
    [[nodiscard]] ThreeCosts cost(const GroupSchedule& group, Footprint footprint,
                                  TwoLevelCache& cache) const;

private:
    void change(ChainSchedule& schedule, size_t layer, int field, Rng& rng) const;

    std::vector<LayerProblem> problems_;
};

}  // namespace laminate
