#include "scheduler/search/axis_options.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace laminate::search {

namespace {

bool no_worse(const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t t = 0; t < a.size(); ++t) {
        if (a[t] > b[t]) return false;
    }
    return true;
}

}  // namespace

std::vector<Option> keep_useful(std::vector<Option> options, bool by_pattern) {
    std::vector<std::pair<double, size_t>> order;
    for (size_t n = 0; n < options.size(); ++n) {
        double sum = 0;
        for (const double f : options[n].factors) sum += std::log(f + 1);
        order.emplace_back(sum, n);
    }
    std::sort(order.begin(), order.end());
    std::map<AxisPatterns::Id, std::vector<size_t>> kept;
    for (const auto& [sum, n] : order) {
        std::vector<size_t>& others = kept[by_pattern ? options[n].pattern : 0];
        if (std::any_of(others.rbegin(), others.rend(), [&](size_t o) { return no_worse(options[o].factors, options[n].factors); }))
            continue;
        others.push_back(n);
    }
    std::vector<Option> result;
    for (const auto& [pattern, indices] : kept) {
        for (const size_t n : indices) result.push_back(std::move(options[n]));
    }
    return result;
}

std::vector<int64_t> tile_candidates(int64_t extent, Tiles kind) {
    if (kind == Tiles::whole) return {extent};
    std::vector<int64_t> sizes;
    for (int64_t t = 1; t <= extent; kind == Tiles::powers_of_two ? t *= 2 : ++t) {
        if (kind != Tiles::divisors || extent % t == 0) sizes.push_back(t);
    }
    if (sizes.back() != extent) sizes.push_back(extent);
    return sizes;
}

uint32_t AxisTree::build(Iterator begin, Iterator end) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
    least_.resize(least_.size() + terms_);
    size_t widest = 0;
    double widest_spread = -1;
    double spread = 0;
    for (size_t t = 0; t < terms_; ++t) {
        double low = INFINITY;
        double high = 0;
        for (auto it = begin; it != end; ++it) {
            low = std::min(low, options_[*it].factors[t]);
            high = std::max(high, options_[*it].factors[t]);
        }
        least_[index * terms_ + t] = low;
        const double ratio = std::log((high + 1e-9) / (low + 1e-9));
        spread += ratio;
        if (ratio > widest_spread) {
            widest = t;
            widest_spread = ratio;
        }
    }
    const auto size = end - begin;
    nodes_[index].count = static_cast<double>(size);
    nodes_[index].unmarked = static_cast<uint32_t>(size);
    if (size == 1) {
        nodes_[index].option = *begin;
        return index;
    }
    nodes_[index].spread = spread + 1e-6;
    std::sort(begin, end, [&](uint32_t a, uint32_t b) {
        const double fa = options_[a].factors[widest];
        const double fb = options_[b].factors[widest];
        return fa != fb ? fa < fb : a < b;
    });
    const uint32_t left = build(begin, begin + size / 2);
    const uint32_t right = build(begin + size / 2, end);
    nodes_[index].left = left;
    nodes_[index].right = right;
    nodes_[left].parent = nodes_[right].parent = index;
    return index;
}

}  // namespace laminate::search
