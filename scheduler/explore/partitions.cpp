#include "scheduler/explore/partitions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace laminate::search {

namespace {

/// The best cost within `memory`; null if nothing fits.
const Cost* within(const CostFront& front, double memory) {
    const std::vector<Cost>& costs = front.costs();
    const auto next = std::ranges::upper_bound(costs, memory, std::ranges::less(), &Cost::memory);
    return next == costs.begin() ? nullptr : &*(next - 1);
}

bool is_less(const Cost& a, const Cost& b) {
    return std::tie(a.accesses, a.macs) < std::tie(b.accesses, b.macs);
}

std::vector<double> memories_of(std::initializer_list<const CostFront*> fronts) {
    std::vector<double> memories;
    for (const CostFront* front : fronts) {
        for (const Cost& cost : front->costs()) memories.push_back(cost.memory);
    }
    std::ranges::sort(memories);
    const auto [first, last] = std::ranges::unique(memories);
    memories.erase(first, last);
    return memories;
}

void add_cost_pairs(const CostFront& a, const CostFront& b, CostFront& sum) {
    add_pairs(a, b, sum, [](Nothing, Nothing) { return Nothing(); });
}

CostFront nothing_needed() {
    CostFront front(false);
    front.offer(Cost{}, {});
    return front;
}

}  // namespace

void add_pairs(const Partials& a, const Partials& b, Partials& sum) {
    add_pairs(a, b, sum, [](const auto& first, const auto& second) {
        return std::make_shared<const Partial>(Partial{nullptr, nullptr, nullptr, first, second});
    });
}

void collect_groups(const Partial& partial, std::vector<const Partial*>& groups) {
    if (partial.group != nullptr) groups.push_back(&partial);
    for (const auto* part : {partial.first.get(), partial.second.get()}) {
        if (part != nullptr) collect_groups(*part, groups);
    }
}

Partitions::Partitions(size_t layers, bool macs_is_axis) : layers_(layers) {
    for (size_t n = 0; n < (layers + 1) * (layers + 1); ++n) {
        best_.emplace_back(macs_is_axis);
        least_.emplace_back(false);
    }
}

void Partitions::combine(size_t begin, size_t end) {
    for (size_t middle = begin + 1; middle < end; ++middle) {
        const auto last = segment_fronts_.find({middle, end});
        // Not a segment of the space.
        if (last == segment_fronts_.end()) continue;
        add_pairs(best(begin, middle), last->second.first, at(best_, begin, end));
        add_pairs(least(begin, middle), last->second.second, at(least_, begin, end));
    }
}

void Partitions::add(size_t begin, const std::vector<LayerId>& layers, const SegmentFront& front) {
    const size_t end = begin + layers.size();
    Partials& all_best = at(best_, begin, end);
    Partials& all_least = at(least_, begin, end);
    auto& [points, least] =
        segment_fronts_
            .try_emplace({begin, end}, Partials(all_best.macs_is_axis()), Partials(false))
            .first->second;
    Costs costs;
    for (size_t n = 0; n < front.points.size(); ++n) {
        const GroupPoint& point = front.points[n];
        const Cost cost = cost_of(point);
        const auto partial = std::make_shared<const Partial>(
            Partial{&point, &front.counts[n], &layers, nullptr, nullptr});
        for (Partials* archive : {&points, &all_best, &least, &all_least})
            archive->offer(cost, partial);
        costs.known.offer(cost, {});
        costs.least.offer(cost, {});
    }
    for (const Cost& cost : front.open) {
        for (Partials* archive : {&least, &all_least}) archive->offer(cost, nullptr);
        costs.least.offer(cost, {});
    }
    costs_[{begin, end}] = std::move(costs);
}

void Partitions::expect(size_t begin, size_t end, const std::vector<Cost>& known,
                        const std::vector<Cost>& least) {
    Costs& costs = costs_[{begin, end}];
    for (const Cost& cost : known) costs.known.offer(cost, {});
    for (const auto* bounds : {&known, &least}) {
        for (const Cost& cost : *bounds) costs.least.offer(cost, {});
    }
}

void Partitions::find_limits() {
    std::vector<CostFront> known(layers_ + 1, CostFront(false));
    before_ = after_ = known;
    known.front() = before_.front() = after_.back() = nothing_needed();
    // Runs are in order of their first layers, then of their last ones.
    for (const auto& [run, costs] : costs_) {
        add_cost_pairs(known[run.first], costs.known, known[run.second]);
        add_cost_pairs(before_[run.first], costs.least, before_[run.second]);
    }
    for (auto run = costs_.rbegin(); run != costs_.rend(); ++run)
        add_cost_pairs(after_[run->first.second], run->second.least, after_[run->first.first]);
    known_ = known.back();
}

CostFront Partitions::limits(size_t begin, size_t end) const {
    CostFront own(false);
    for (const Cost& cost : best(begin, end).costs()) own.offer(cost, {});
    const auto expected = costs_.find({begin, end});
    if (expected != costs_.end()) {
        for (const Cost& cost : expected->second.known.costs()) own.offer(cost, {});
    }
    const CostFront& before = before_[begin];
    const CostFront& after = after_[end];
    const std::vector<double> memories = memories_of({&own, &known_, &before, &after});
    std::vector<Cost> falling;  // limits, by falling memory
    // `largest` is the largest cost, from the largest memory on, that the segment must stay below.
    std::optional<Cost> largest;
    for (size_t n = memories.size(); n-- > 0;) {
        const double memory = memories[n];
        const Cost* all = within(known_, memory);
        const Cost* first = within(before, memory);
        const Cost* last = within(after, memory);
        // The other layers need more, so this matters as much as what needs more.
        if (first == nullptr || last == nullptr) {
            if (largest) falling.push_back({largest->accesses, 0, largest->macs});
            break;
        }
        std::optional<Cost> here;
        if (all != nullptr)
            here = {all->accesses - std::floor(first->accesses) - std::floor(last->accesses),
                    memory, all->macs - first->macs - last->macs};
        const Cost* alone = within(own, memory);
        if (alone != nullptr && (!here || is_less(*alone, *here))) here = *alone;
        // Everything matters in less memory than this.
        if (!here) break;
        if (largest && is_less(*here, *largest)) here = largest;
        here->memory = memory;
        largest = here;
        falling.push_back(*here);
    }
    CostFront limits(false);
    for (size_t n = falling.size(); n-- > 0;) limits.offer(falling[n], {});
    return limits;
}

CostFront weaker(const CostFront& a, const CostFront& b) {
    CostFront both(false);
    for (const double memory : memories_of({&a, &b})) {
        const Cost* of_a = within(a, memory);
        const Cost* of_b = within(b, memory);
        if (of_a == nullptr || of_b == nullptr) continue;
        const Cost& larger = is_less(*of_a, *of_b) ? *of_b : *of_a;
        both.offer({larger.accesses, memory, larger.macs}, {});
    }
    return both;
}

}  // namespace laminate::search
