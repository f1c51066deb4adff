#include "scheduler/explore/group_search/choice_limit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace laminate::search {

LimitOfChoices::LimitOfChoices(const ChainSizes& sizes, const ChoiceLimit& limit)
    : sizes_(sizes), limit_(limit), roots_{0}, least_channels_{std::numeric_limits<double>::max()} {
    for (size_t k = 1; k < sizes.layers; ++k) {
        roots_.push_back(std::sqrt(sizes.weights[k] * sizes.pixels[k]));
        least_channels_.push_back(std::min(least_channels_.back(), sizes.channels[k]));
    }
}

double LimitOfChoices::wide(size_t k, double root_of_again, double slope) const {
    return std::min((1 + slope * slope) * sizes_.weights[k],
                    2 * slope * root_of_again * roots_[k] * std::sqrt(sizes_.channels[k]));
}

void LimitOfChoices::begin(double held, double again) {
    sums_.clear();
    slope_ = 0;
    const double memory = limit_.memory - held;
    if (!has_tangents() || memory <= 0) return;
    const double root = std::sqrt(again);
    const auto bound = [&](double slope) {
        double sum = -slope * slope * memory;
        for (size_t k = 1; k < sizes_.layers; ++k) sum += wide(k, root, slope);
        return sum;
    };
    // The bound is concave, and beyond the tangent of the choice that holds nothing it falls.
    double low = 0, high = 0;
    for (size_t k = 1; k < sizes_.layers; ++k)
        high += root * roots_[k] * std::sqrt(sizes_.channels[k]) / memory;
    constexpr int rounds = 24;
    for (int n = 0; n < rounds; ++n) {
        const double third = (high - low) / 3;
        if (bound(low + third) < bound(high - third))
            low += third;
        else
            high -= third;
    }
    slope_ = (low + high) / 2;
}

const LimitOfChoices::Sums& LimitOfChoices::sums(double again) {
    for (const Sums& s : sums_) {
        if (s.again == again) return s;
    }
    Sums s{again, {0}, {{}}};
    const double root = std::sqrt(again);
    std::vector<double> savings;  // falling
    double all = 0;
    for (size_t k = 1; k < sizes_.layers; ++k) {
        const double own = wide(k, root, slope_);
        const double narrow =
            std::min((1 + slope_ * slope_) * sizes_.weights[k] / sizes_.channels[k],
                     2 * slope_ * root * roots_[k]);
        s.wide.push_back(s.wide.back() + own);
        savings.insert(std::ranges::upper_bound(savings, own - narrow, std::greater()),
                       own - narrow);
        all += own - narrow;
        auto& saved = s.saved.emplace_back();
        for (size_t m = 1; m < most_narrow && m <= savings.size(); ++m)
            saved[m] = saved[m - 1] + savings[m - 1];
        saved[most_narrow] = all;
    }
    return sums_.emplace_back(std::move(s));
}

bool LimitOfChoices::is_out(size_t open, double held, double roots, double again, double visits) {
    if (held >= limit_.memory) return true;
    const double decided = held + roots * roots / (limit_.memory - held);
    const auto costs_too_much = [&](double times, double weights) {
        return (times * sizes_.input() + visits + std::max(sizes_.all_weights, weights)) *
                   rounding_of_sums >
               limit_.accesses;
    };
    if (costs_too_much(again, decided)) return true;
    if (open == 0 || !has_tangents()) return false;
    const Sums& s = sums(again);
    const double square = slope_ * slope_;
    const double tangent =
        (1 + square) * held + 2 * slope_ * roots - square * limit_.memory + s.wide[open];
    double times = again;
    for (size_t m = 0; m <= std::min(open, most_narrow); ++m) {
        if (!costs_too_much(times, std::max(decided, tangent - s.saved[open][m]))) return false;
        times = std::min(most_again, times * least_channels_[open]);
    }
    return true;
}

}  // namespace laminate::search
