// The costs that a search of one group has found or been told, and whether others may still matter.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "scheduler/explore/group_search/cost_plan.h"
#include "scheduler/explore/group_search/group_choice.h"
#include "scheduler/explore/group_search/search_options.h"
#include "scheduler/explore/pareto.h"

namespace laminate::search {

class Incumbents {
public:
    /// `least_macs`: MACs of a schedule that recomputes nothing.
    Incumbents(const GroupSearchOptions& options, double least_macs)
        : options_(options), least_macs_(least_macs), front_(options.macs_is_axis) {}

    /// A cost that is reached elsewhere has an empty `choice`.
    void offer(const Cost& cost, const GroupChoice& choice) {
        known_accesses_.add(cost);
        front_.offer(cost, choice);
    }

    [[nodiscard]] const Archive<GroupChoice>& front() const { return front_; }

    /// Finds, by GroupSearchOptions::bound, the memory in which there may be schedules that no
    /// incumbent beats. Without a bound every memory is open.
    void find_open_memory();
    [[nodiscard]] bool has_open_memory() const {
        return options_.bound == nullptr || !open_memory_.empty();
    }
    /// The first open memory from `memory` on; infinite if there is none.
    [[nodiscard]] double next_open_memory(double memory) const;

    /// Whether schedules that cost `cost` or more in every respect may matter.
    [[nodiscard]] bool is_wanted(Cost cost) const {
        if (options_.bound != nullptr) {
            cost.memory = next_open_memory(cost.memory);
            if (cost.memory == INFINITY) return false;
        }
        if (options_.memory && cost.memory > *options_.memory) return false;
        if (!options_.recompute && cost.macs > least_macs_) return false;
        return !front_.beats_all_above(cost);
    }

    /// Flags the schedules of a row that may matter. The others do not.
    void compare(const CostRow& row, size_t size, KnownAccesses::Flags& may_matter) const;

private:
    GroupSearchOptions options_;
    double least_macs_;
    Archive<GroupChoice> front_;
    KnownAccesses known_accesses_;                        ///< used on two axes
    std::vector<std::pair<double, double>> open_memory_;  ///< half-open intervals, rising
};

}  // namespace laminate::search
