// Groups with kernels and all that is known of them, for schedules that are chosen by time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/timed/timed_front.h"

namespace laminate::timed {

/// A prediction less than this part of another one is taken for faster.
constexpr double surely_faster = 0.93;

struct Priced {
    GroupSchedule group;
    LayerId sink = 0;
    Elements accesses;
    Elements live;
    Bytes scratch;  ///< of one thread
    double milliseconds = 0;
    /// Live memory or scratch, whichever is more.
    [[nodiscard]] Bytes memory() const { return std::max(to_bytes(live), scratch); }
};

/// Gives groups of a network kernels, and prices them. Groups of the same shape are priced once.
class Pricing {
public:
    /// Both outlive this.
    Pricing(const Network& network, const TimedOptions& options);

    /// Makes price() of these groups quick: the threads of the options divide their shapes.
    void price_together(const std::vector<const GroupSchedule*>& groups);
    /// Valid as long as this.
    const Priced& price(const GroupSchedule& group);
    /// The forms of tiled_layer.h of one layer that need less memory than `alone`, the layer's
    /// group by lines or of its whole map, and that no other of them beats in accesses, memory and
    /// time.
    const std::vector<const Priced*>& tiled(LayerId layer, const Priced& alone);

private:
    using Shape = std::vector<int64_t>;
    /// The place of the price of a group's shape, and whether it is empty yet.
    std::pair<Priced*, bool> place_of(const GroupSchedule& group,
                                      const std::vector<LayerProblem>& problems);
    [[nodiscard]] Priced priced(const GroupSchedule& group,
                                const std::vector<LayerProblem>& problems,
                                TwoLevelCache& cache) const;
    [[nodiscard]] std::vector<GroupSchedule> best_tiled(const std::vector<LayerProblem>& problems,
                                                        const Priced& alone);
    /// Those of the options, with what the group's second-level cache and tensors allow.
    [[nodiscard]] KernelOptions kernel_options(const GroupSchedule& group) const;
    void choose_kernels(Priced& priced, const std::vector<LayerProblem>& problems,
                        const GroupSchedule& group, GroupLoops& loops) const;

    const Network& network_;
    const TimedOptions& options_;
    Bytes weights_;  ///< of the whole network
    TwoLevelCache cache_;
    std::map<std::string, Priced> by_text_;
    std::map<std::pair<Shape, GroupSchedule>, Priced> by_shape_;  ///< groups without layers' names
    std::map<Shape, std::vector<GroupSchedule>> tiled_shapes_;
    std::map<LayerId, std::vector<const Priced*>> tiled_;
};

}  // namespace laminate::timed
