#include "scheduler/explore/group_search/axis_options.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <numeric>

#include "base/units.h"

namespace laminate::search {

namespace {

/// What an allocation takes besides its content.
constexpr size_t of_an_allocation = 16;

template <class T>
size_t bytes_of(const std::vector<T>& values) {
    return values.capacity() == 0 ? 0 : values.capacity() * sizeof(T) + of_an_allocation;
}

}  // namespace

size_t bytes_of(const std::vector<Option>& options) {
    if (options.empty()) return 0;
    // All are about as large as the last one.
    return options.capacity() * sizeof(Option) +
           options.size() * (bytes_of(options.back().factors) + bytes_of(options.back().tiles));
}

std::vector<Option> keep_useful(std::vector<Option> options, bool by_pattern) {
    if (options.size() < 2) return options;
    // Compare only the terms that differ between options, stored contiguously.
    std::vector<size_t> terms;
    std::vector<double> scale;
    for (size_t t = 0; t < options.front().factors.size(); ++t) {
        double most = 0;
        bool varies = false;
        for (const Option& o : options) {
            most = std::max(most, o.factors[t]);
            varies |= o.factors[t] != options.front().factors[t];
        }
        if (!varies) continue;
        terms.push_back(t);
        scale.push_back(1 / most);
    }
    const size_t width = terms.size();
    struct Candidate {
        AxisPatterns::Id pattern;
        double sum;  ///< an option that is no worse has no larger sum, so it comes first
        size_t index;
        auto operator<=>(const Candidate&) const = default;
    };
    std::vector<Candidate> order;
    order.reserve(options.size());
    for (size_t n = 0; n < options.size(); ++n) {
        double sum = 0;
        for (size_t c = 0; c < width; ++c) sum += options[n].factors[terms[c]] * scale[c];
        order.push_back({by_pattern ? options[n].pattern : AxisPatterns::Id{}, sum, n});
    }
    std::sort(order.begin(), order.end());
    std::vector<Option> result;
    std::vector<double> kept;  // factors of kept options of this pattern, row by row
    std::vector<double> own(width);
    for (size_t n = 0; n < order.size(); ++n) {
        if (n > 0 && order[n].pattern != order[n - 1].pattern) kept.clear();
        Option& option = options[order[n].index];
        for (size_t c = 0; c < width; ++c) own[c] = option.factors[terms[c]];
        bool is_beaten = width == 0 && n > 0 && order[n].pattern == order[n - 1].pattern;
        for (size_t end = kept.size(); end > 0 && !is_beaten; end -= width) {
            const double* other = kept.data() + end - width;
            size_t c = 0;
            while (c < width && other[c] <= own[c]) ++c;
            is_beaten = c == width;
        }
        if (is_beaten) continue;
        kept.insert(kept.end(), own.begin(), own.end());
        result.push_back(std::move(option));
    }
    return result;
}

std::vector<int64_t> tile_candidates(int64_t extent, Tiles kind) {
    if (kind == Tiles::whole) return {extent};
    std::vector<int64_t> sizes;
    if (kind == Tiles::trips) {
        sizes.push_back(1);
        for (int64_t trips = extent; trips > 1; trips = ceil_div(extent, sizes.back()))
            sizes.push_back(ceil_div(extent, trips - 1));
        return sizes;
    }
    for (int64_t t = 1; t <= extent; kind == Tiles::powers_of_two ? t *= 2 : ++t) {
        if (kind != Tiles::divisors || extent % t == 0) sizes.push_back(t);
    }
    if (sizes.back() != extent) sizes.push_back(extent);
    return sizes;
}

AxisTree::AxisTree(std::vector<Option> options, size_t terms, std::vector<char>* marks)
    : terms_(terms),
      options_(std::move(options)),
      leaves_(options_.size()),
      varies_(terms, 0),
      marks_(marks) {
    std::vector<uint32_t> order(options_.size());
    std::iota(order.begin(), order.end(), 0U);
    if (order.empty()) return;
    nodes_.reserve(2 * order.size() - 1);
    least_.reserve(nodes_.capacity() * padded_terms(terms_));
    build(order.begin(), order.end(), 0);
    column_of_.assign(terms_, 0);
    size_t columns = 0;
    for (size_t t = 0; t < terms_; ++t) {
        const double first = options_.front().factors[t];
        varies_[t] =
            std::ranges::any_of(options_, [&](const Option& o) { return o.factors[t] != first; });
        if (varies_[t] != 0) column_of_[t] = columns++;
    }
    columns_.reserve(columns * order.size());
    for (size_t t = 0; t < terms_; ++t) {
        if (varies_[t] == 0) continue;
        for (const uint32_t n : order) columns_.push_back(options_[n].factors[t]);
    }
    for (Option& o : options_) o.factors = {};
}

size_t AxisTree::bytes() const {
    return bytes_of(options_) + bytes_of(nodes_) + bytes_of(least_) + bytes_of(columns_) +
           bytes_of(leaves_);
}

uint32_t AxisTree::build(Iterator begin, Iterator end, uint32_t first) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
    const size_t row = least_.size();
    least_.resize(row + padded_terms(terms_));
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
        least_[row + t] = low;
        const double ratio = std::log((high + 1e-9) / (low + 1e-9));
        spread += ratio;
        if (ratio > widest_spread) {
            widest = t;
            widest_spread = ratio;
        }
    }
    const auto size = end - begin;
    nodes_[index].first = first;
    nodes_[index].count = nodes_[index].unmarked = static_cast<uint32_t>(size);
    if (size == 1) {
        nodes_[index].option = *begin;
        leaves_[first] = index;
        return index;
    }
    nodes_[index].spread = spread + 1e-6;
    std::sort(begin, end, [&](uint32_t a, uint32_t b) {
        const double fa = options_[a].factors[widest];
        const double fb = options_[b].factors[widest];
        return fa != fb ? fa < fb : a < b;
    });
    const uint32_t left = build(begin, begin + size / 2, first);
    const uint32_t right = build(begin + size / 2, end, first + static_cast<uint32_t>(size / 2));
    nodes_[index].left = left;
    nodes_[index].right = right;
    nodes_[left].parent = nodes_[right].parent = index;
    return index;
}

}  // namespace laminate::search
