#include "scheduler/explore/group_search/incumbents.h"

#include <algorithm>

namespace laminate::search {

void Incumbents::find_open_memory() {
    open_memory_.clear();
    if (options_.bound == nullptr) return;
    const std::vector<Cost>& steps = *options_.bound;
    for (size_t n = 0; n < steps.size(); ++n) {
        if (front_.beats_all_above(steps[n])) continue;
        const double end = n + 1 < steps.size() ? steps[n + 1].memory : INFINITY;
        if (!open_memory_.empty() && open_memory_.back().second == steps[n].memory)
            open_memory_.back().second = end;
        else
            open_memory_.emplace_back(steps[n].memory, end);
    }
}

double Incumbents::next_open_memory(double memory) const {
    if (options_.bound == nullptr) return memory;
    const auto next = std::upper_bound(open_memory_.begin(), open_memory_.end(), memory,
                                       [](double m, const auto& part) { return m < part.second; });
    return next == open_memory_.end() ? INFINITY : std::max(memory, next->first);
}

void Incumbents::compare(const CostRow& row, size_t size, KnownAccesses::Flags& may_matter) const {
    const bool with_macs = front_.macs_is_axis();
    double most = INFINITY;
    if (options_.bound != nullptr || with_macs) {
        const double memory = next_open_memory(least(row.memory.data(), size));
        if (memory == INFINITY) {
            std::fill_n(may_matter.begin(), size, 0);
            return;
        }
        most = front_.most_accesses(memory, with_macs ? least(row.macs.data(), size) : 0);
    }
    if (with_macs) {
        for (size_t j = 0; j < size; ++j) may_matter[j] = row.accesses[j] <= most ? 1 : 0;
    } else {
        known_accesses_.compare(row, size, most, may_matter);
    }
}

}  // namespace laminate::search
