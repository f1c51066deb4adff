#include "scheduler/explore/group_search/axis_options.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/explore/group_search/kept_rows.h"

namespace laminate::search {

AxisFactors Options::by_term(size_t terms) const {
    AxisFactors factors;
    factors.columns.resize(terms);
    for (size_t c = 0; c < terms_.size(); ++c) {
        AxisFactors::Column& column = factors.columns[terms_[c]];
        column.by_option.reserve(size());
        for (size_t n = 0; n < size(); ++n)
            column.by_option.push_back(factors_[n * terms_.size() + c]);
    }
    return factors;
}

void Options::add(const Option& option) {
    for (const size_t term : terms_) factors_.push_back(option.factors[term]);
    tiles_.insert(tiles_.end(), option.tiles.begin(), option.tiles.end());
    patterns_.push_back(option.pattern);
}

double* Options::add(std::span<const int64_t> tiles, int64_t last_tile, AxisPatterns::Id pattern) {
    factors_.resize(factors_.size() + terms_.size(), 1.0);
    tiles_.insert(tiles_.end(), tiles.begin(), tiles.end());
    tiles_.push_back(last_tile);
    patterns_.push_back(pattern);
    return factors_.data() + factors_.size() - terms_.size();
}

void Options::add(const Options& other, size_t n) {
    factors_.insert(factors_.end(), other.factors(n), other.factors(n) + terms_.size());
    tiles_.insert(tiles_.end(), other.tiles(n).begin(), other.tiles(n).end());
    patterns_.push_back(other.patterns_[n]);
}

void Options::shrink_to_fit() {
    factors_.shrink_to_fit();
    tiles_.shrink_to_fit();
    patterns_.shrink_to_fit();
}

size_t Options::counted_bytes(size_t terms) const {
    if (empty()) return 0;
    // An Option by itself has two vectors, whose own 24 bytes, a pattern and its padding make 56,
    // and each vector's allocation has 16 more. The vector of tiles has room for twice what it
    // needs.
    constexpr size_t of_an_option = 56;
    constexpr size_t of_an_allocation = 16;
    const size_t tiles = tiles_of_each_ < 2 ? tiles_of_each_ : 2 * (tiles_of_each_ - 1);
    return patterns_.capacity() * of_an_option +
           size() * ((terms + tiles) * sizeof(double) + 2 * of_an_allocation);
}

Options keep_useful(Options options, bool by_pattern) {
    if (options.size() < 2) return options;
    // Compare only the terms that differ between options, stored contiguously.
    const size_t all = options.terms().size();
    std::vector<double> most(options.factors(0), options.factors(0) + all);
    std::vector<char> varies(all, 0);
    for (size_t n = 1; n < options.size(); ++n) {
        const double* own = options.factors(n);
        for (size_t t = 0; t < all; ++t) {
            most[t] = std::max(most[t], own[t]);
            if (own[t] != options.factors(0)[t]) varies[t] = 1;
        }
    }
    std::vector<size_t> terms;
    std::vector<double> scale;
    for (size_t t = 0; t < all; ++t) {
        if (varies[t] == 0) continue;
        terms.push_back(t);
        scale.push_back(1 / most[t]);
    }
    const size_t width = terms.size();
    struct Candidate {
        AxisPatterns::Id pattern;
        double sum;  ///< an option that is no worse has no larger sum, so it comes first
        size_t index;
    };
    std::vector<Candidate> order;
    order.reserve(options.size());
    for (size_t n = 0; n < options.size(); ++n) {
        double sum = 0;
        for (size_t c = 0; c < width; ++c) sum += options.factors(n)[terms[c]] * scale[c];
        order.push_back({by_pattern ? options.pattern(n) : AxisPatterns::Id{}, sum, n});
    }
    std::sort(order.begin(), order.end(), [](const Candidate& a, const Candidate& b) {
        if (a.pattern != b.pattern) return a.pattern < b.pattern;
        return a.sum != b.sum ? a.sum < b.sum : a.index < b.index;
    });
    Options result = options.none();
    KeptRows kept(width);  // factors of kept options of this pattern
    std::vector<double> own(width);
    for (size_t n = 0; n < order.size(); ++n) {
        if (n > 0 && order[n].pattern != order[n - 1].pattern) kept.clear();
        const double* factors = options.factors(order[n].index);
        for (size_t c = 0; c < width; ++c) own[c] = factors[terms[c]];
        if (kept.any_below(own.data())) continue;
        kept.add(own.data());
        result.add(options, order[n].index);
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

}  // namespace laminate::search
