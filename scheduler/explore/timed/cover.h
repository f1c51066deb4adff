// Chooses the groups of a schedule by time. Groups of different candidates mix, as long as every
// layer is in one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/explore/timed/pricing.h"

namespace laminate::timed {

using Groups = std::vector<const Priced*>;

/// Layers that groups of the candidates tie together, directly or by way of other groups. Parts
/// share no group, so each is covered on its own.
struct Part {
    std::vector<std::string> layers;  ///< in the network's order
    /// The candidates' groups of these layers, without repetition, in the order of candidates.
    std::vector<Groups> ways;
    /// Further groups of these layers.
    Groups others;
};

/// The limit and the price by which groups are chosen.
struct Wish {
    Elements memory;  ///< only groups whose live memory is within it
    /// How much an access counts beside time; infinite: accesses first, then time.
    double milliseconds_per_access = 0;
};

/// Covers a part with groups that disjointly hold what one of its ways holds.
class Cover {
public:
    /// Groups beyond `memory`, live or of scratch, are left out.
    Cover(const Part& part, const std::optional<Bytes>& memory);

    /// The groups with the lowest sum of time and priced accesses; empty if nothing fits. The
    /// groups of the first way that fits, the planner's own, are kept unless others are faster by
    /// more than what the model of time is sure of, or no slower with at most half the accesses, or
    /// those with the fewest accesses where these save 128 MiB and are not surely slower.
    [[nodiscard]] const Groups& cheapest(const Wish& wish) const;
    /// Makes cheapest() of these wishes quick: threads divide them.
    void find(const std::vector<Wish>& wishes, int threads);
    /// Live memory of all groups, ascending.
    [[nodiscard]] const std::vector<Elements>& memories() const { return memories_; }
    /// Time and accesses of the first way, in milliseconds and elements.
    [[nodiscard]] std::pair<double, double> first_way() const;

private:
    /// Where known_ has the groups of a wish.
    [[nodiscard]] std::pair<int64_t, double> place_of(const Wish& wish) const;
    [[nodiscard]] Groups found(const Wish& wish) const;
    /// The times of the planner's own groups count `own_share` times.
    [[nodiscard]] Groups search(const Wish& wish, double own_share) const;

    struct Choice {
        const Priced* group;
        std::vector<int> places;  ///< of its layers in the part, ascending
    };
    std::vector<std::vector<Choice>> choices_;  ///< by the place of a group's first layer
    std::vector<char> may_be_left_;             ///< by place: whether some way does not hold it
    std::vector<Groups> ways_;                  ///< those that fit
    std::vector<Elements> memories_;
    /// What was found, by how many groups fitted and by the price of an access.
    mutable std::map<std::pair<int64_t, double>, Groups> known_;
};

}  // namespace laminate::timed
