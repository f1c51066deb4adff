// Builds the points of a front from their groups. Points share most of their groups, so each group
// is checked, counted and kept once.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/indexed.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/front.h"

namespace laminate::search {

/// `group`, which was found for other layers of the same shape, with `layers` in their place.
[[nodiscard]] GroupSchedule on_layers(const Network& network, GroupSchedule group,
                                      const std::vector<LayerId>& layers);

class FrontBuilder {
public:
    explicit FrontBuilder(const Network& network);

    /// The place of a group in the front. Throws InputError if it is illegal in the network.
    /// `counts`, if given, were found for layers of the same shape.
    [[nodiscard]] uint32_t group(GroupSchedule group, const NetworkCounts* counts = nullptr);
    /// The same of a group that a search found, with the compute levels of
    /// with_outer_compute_levels().
    [[nodiscard]] uint32_t found_group(GroupSchedule group);

    /// Adds a schedule of the network by its groups, in order. Throws std::logic_error if a layer
    /// is in two of them, or if a layer that must be in one is not.
    void add_point(std::vector<uint32_t> groups, std::optional<double> milliseconds = {},
                   std::optional<Bytes> scratch = {});

    /// The points by accesses, then memory, then MACs; equal ones in the order in which they were
    /// added. The caller fills in the other members of the front.
    [[nodiscard]] Front front(Footprint footprint) &&;

private:
    const Network& network_;
    TwoLevelCache cache_;
    std::unordered_map<std::string, uint32_t> known_;  ///< by text
    std::vector<NetworkCounts> counts_;                ///< by group
    std::vector<std::vector<LayerId>> layers_;         ///< by group
    std::vector<LayerId> must_be_covered_;
    IndexVector<char, LayerId> is_covered_;  ///< of the point that is being added
    Front front_;
};

}  // namespace laminate::search
