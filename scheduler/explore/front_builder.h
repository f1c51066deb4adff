// The points of a front from their groups. Points share most of theirs, so each group is checked,
// counted and kept once.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/front.h"

namespace laminate::search {

/// `group`, found for layers of the same shape, with these layers in their place.
[[nodiscard]] GroupSchedule on_layers(const Network& network, GroupSchedule group,
                                      const std::vector<LayerId>& layers);

class FrontBuilder {
public:
    explicit FrontBuilder(const Network& network);

    /// The place of a group in the front. Throws InputError when it is illegal in the network.
    [[nodiscard]] uint32_t group(GroupSchedule group);
    /// With the model's counts of the same group on layers of the same shape at hand.
    [[nodiscard]] uint32_t group(GroupSchedule group, const NetworkCounts& counts);

    /// Groups in the order of the schedule, which are a schedule of the network together. Throws
    /// std::logic_error where a layer is in two of them or a layer that must be in one is not.
    void add_point(std::vector<uint32_t> groups);

    /// Points by accesses, then memory, then MACs; of equal ones the first added comes first. What
    /// else a front says is for the caller to fill in.
    [[nodiscard]] Front front(Footprint footprint) &&;

private:
    [[nodiscard]] uint32_t group(GroupSchedule group, const NetworkCounts* counts);

    const Network& network_;
    TwoLevelCache cache_;
    std::unordered_map<std::string, uint32_t> known_;  ///< by text
    std::vector<NetworkCounts> counts_;                ///< by group
    std::vector<std::vector<LayerId>> layers_;         ///< by group
    std::vector<LayerId> must_be_covered_;
    std::vector<char> is_covered_;  ///< by layer, of the point that is added
    Front front_;
};

}  // namespace laminate::search
