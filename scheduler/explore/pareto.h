// Costs, and the Pareto front that a search has found so far.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace laminate::search {

/// Smaller is better in each member. Searches multiply millions of lower bounds, so costs are
/// doubles: exact up to 2^53, and rounding is monotone, so a bound stays a bound.
struct Cost {
    double accesses = 0;  ///< elements
    double memory = 0;    ///< elements, of the footprint that counts
    double macs = 0;
    friend auto operator<=>(const Cost&, const Cost&) = default;
};

/// Whether nothing that costs `b` or more is wanted beside `a`. On two axes, MACs only decide
/// between equal accesses. (accesses, MACs) is then one axis in lexicographic order, which is total
/// and preserved by sums.
[[nodiscard]] inline bool beats(const Cost& a, const Cost& b, bool macs_is_axis) {
    if (a.memory > b.memory) return false;
    if (macs_is_axis) return a.accesses <= b.accesses && a.macs <= b.macs;
    return a.accesses < b.accesses || (a.accesses == b.accesses && a.macs <= b.macs);
}

/// The cost of one after the other: traffic and work add up, memory is reused.
[[nodiscard]] inline Cost together(const Cost& a, const Cost& b) {
    return {a.accesses + b.accesses, std::max(a.memory, b.memory), a.macs + b.macs};
}

/// The item of an archive of costs only.
struct Nothing {};

/// A Pareto front with an item for each point. Of equal points the first stays.
template <class Item>
class Archive {
public:
    explicit Archive(bool macs_is_axis) : macs_is_axis_(macs_is_axis) {}

    [[nodiscard]] bool macs_is_axis() const { return macs_is_axis_; }
    [[nodiscard]] size_t size() const { return costs_.size(); }
    [[nodiscard]] const std::vector<Cost>& costs() const { return costs_; }
    [[nodiscard]] const std::vector<Item>& items() const { return items_; }

    /// Whether some point beats everything that costs `bound` or more.
    [[nodiscard]] bool beats_all_above(const Cost& bound) const {
        // Memory rises; on two axes (accesses, MACs) then fall.
        const size_t end = first_above(bound.memory);
        if (!macs_is_axis_) return end > 0 && beats(costs_[end - 1], bound, false);
        for (size_t n = end; n-- > 0;) {
            if (costs_[n].accesses <= bound.accesses && costs_[n].macs <= bound.macs) return true;
        }
        return false;
    }

    /// Some point beats everything that needs at least `memory` and `macs` and moves more than
    /// this; on three axes, everything that moves as much.
    [[nodiscard]] double most_accesses(double memory, double macs) const {
        const size_t end = first_above(memory);
        double most = std::numeric_limits<double>::infinity();
        if (!macs_is_axis_) return end > 0 ? costs_[end - 1].accesses : most;
        for (size_t n = 0; n < end; ++n) {
            if (costs_[n].macs <= macs) most = std::min(most, costs_[n].accesses);
        }
        return most;
    }

    /// Returns false, and adds nothing, if some point beats it.
    bool offer(const Cost& cost, Item item) {
        if (beats_all_above(cost)) return false;
        if (!macs_is_axis_) {
            replace_beaten(cost, std::move(item));
            return true;
        }
        size_t kept = 0;
        for (size_t n = 0; n < costs_.size(); ++n) {
            if (beats(cost, costs_[n], true)) continue;
            if (kept != n) {
                costs_[kept] = costs_[n];
                items_[kept] = std::move(items_[n]);
            }
            ++kept;
        }
        costs_.resize(kept);
        items_.resize(kept);
        const auto at = static_cast<std::ptrdiff_t>(first_above(cost.memory));
        costs_.insert(costs_.begin() + at, cost);
        items_.insert(items_.begin() + at, std::move(item));
        return true;
    }

    /// The same for many costs at once, on two axes: memory rises, and (accesses, MACs) fall. Equal
    /// to offering one after the other, but what stands behind a new point is moved once for all of
    /// them. `item_of(n)` makes the item of the n-th cost.
    template <class ItemOf>
    void offer_stairs(const std::vector<Cost>& stairs, const ItemOf& item_of) {
        std::vector<Cost> costs;
        std::vector<Item> items;
        costs.reserve(costs_.size() + stairs.size());
        items.reserve(costs_.size() + stairs.size());
        const auto add = [&](const Cost& cost, const auto& item) {
            if (!costs.empty() && beats(costs.back(), cost, false)) return;
            if (!costs.empty() && costs.back().memory == cost.memory) {
                costs.pop_back();
                items.pop_back();
            }
            costs.push_back(cost);
            items.push_back(item());
        };
        size_t known = 0;
        const auto add_known = [&](double last_memory) {
            for (; known < costs_.size() && costs_[known].memory <= last_memory; ++known)
                add(costs_[known], [&] { return std::move(items_[known]); });
        };
        for (size_t n = 0; n < stairs.size(); ++n) {
            add_known(stairs[n].memory);
            add(stairs[n], [&] { return item_of(n); });
        }
        add_known(std::numeric_limits<double>::infinity());
        costs_ = std::move(costs);
        items_ = std::move(items);
    }

private:
    /// On two axes the points that the new one beats are neighbours, because (accesses, MACs) fall
    /// as memory rises.
    void replace_beaten(const Cost& cost, Item item) {
        const auto first =
            std::lower_bound(costs_.begin(), costs_.end(), cost.memory,
                             [](const Cost& c, double memory) { return c.memory < memory; });
        const auto last = std::find_if(first, costs_.end(),
                                       [&](const Cost& c) { return !beats(cost, c, false); });
        const auto own = items_.begin() + (first - costs_.begin());
        if (first == last) {
            items_.insert(own, std::move(item));
            costs_.insert(first, cost);
            return;
        }
        *own = std::move(item);
        items_.erase(own + 1, own + (last - first));
        *first = cost;
        costs_.erase(first + 1, last);
    }

    [[nodiscard]] size_t first_above(double memory) const {
        const auto at =
            std::upper_bound(costs_.begin(), costs_.end(), memory,
                             [](double value, const Cost& cost) { return value < cost.memory; });
        return static_cast<size_t>(at - costs_.begin());
    }

    bool macs_is_axis_;
    std::vector<Cost> costs_;
    std::vector<Item> items_;
};

/// Adds to `sum` every item of `a` together with every item of `b`, as join(item, item). On two
/// axes only the best within each memory counts, so one pass over both suffices.
template <class A, class B, class Sum, class Join>
void add_pairs(const Archive<A>& a, const Archive<B>& b, Archive<Sum>& sum, const Join& join) {
    if (sum.macs_is_axis()) {
        for (size_t i = 0; i < a.size(); ++i) {
            for (size_t j = 0; j < b.size(); ++j) {
                const Cost cost = together(a.costs()[i], b.costs()[j]);
                if (!sum.beats_all_above(cost)) sum.offer(cost, join(a.items()[i], b.items()[j]));
            }
        }
        return;
    }
    if (a.size() == 0 || b.size() == 0) return;
    std::vector<Cost> stairs;
    std::vector<std::pair<size_t, size_t>> pairs;
    constexpr double never = std::numeric_limits<double>::infinity();
    for (size_t i = 0, j = 0;;) {
        const Cost cost = together(a.costs()[i], b.costs()[j]);
        if (!sum.beats_all_above(cost)) {
            stairs.push_back(cost);
            pairs.emplace_back(i, j);
        }
        // Go to the next memory in which either has something better.
        const double next_a = i + 1 == a.size() ? never : a.costs()[i + 1].memory;
        const double next_b = j + 1 == b.size() ? never : b.costs()[j + 1].memory;
        const double next =
            std::max({a.costs()[i].memory, b.costs()[j].memory, std::min(next_a, next_b)});
        if (next == never) break;
        if (next_a <= next) ++i;
        if (next_b <= next) ++j;
    }
    if (stairs.empty()) return;
    sum.offer_stairs(stairs, [&](size_t n) {
        return join(a.items()[pairs[n].first], b.items()[pairs[n].second]);
    });
}

}  // namespace laminate::search
