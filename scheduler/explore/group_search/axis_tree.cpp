#include "scheduler/explore/group_search/axis_tree.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace laminate::search {

namespace {

template <class T>
size_t bytes_of(const std::vector<T>& values) {
    constexpr size_t of_an_allocation = 16;
    return values.capacity() == 0 ? 0 : values.capacity() * sizeof(T) + of_an_allocation;
}

}  // namespace

AxisTree::AxisTree(Options options, size_t terms, std::vector<char>* marks)
    : terms_(terms),
      options_(std::move(options)),
      counted_bytes_(options_.counted_bytes(terms)),
      leaves_(options_.size()),
      varies_(terms, 0),
      marks_(marks) {
    build(options_.by_term(terms));
    std::vector<double>().swap(options_.factors_);
}

AxisTree::AxisTree(const AxisFactors& factors, const Options& options, std::vector<char>* marks)
    : terms_(factors.columns.size()),
      counted_bytes_(options.counted_bytes(terms_)),
      leaves_(options.size()),
      varies_(terms_, 0),
      marks_(marks) {
    build(factors);
}

void AxisTree::build(const AxisFactors& factors) {
    const size_t options = leaves_.size();
    if (options == 0) return;
    std::vector<Varying> varying;
    std::vector<double> fixed;  // by `used_`, of terms that do not vary
    for (size_t t = 0; t < terms_; ++t) {
        const AxisFactors::Column& column = factors.columns[t];
        const double first = column.by_option.empty() ? column.all : column.by_option.front();
        varies_[t] = std::ranges::any_of(column.by_option, [&](double f) { return f != first; });
        if (varies_[t] == 0 && first == 1) continue;
        if (varies_[t] != 0) varying.push_back({used_.size(), column.by_option.data()});
        used_.push_back(static_cast<uint32_t>(t));
        fixed.push_back(first);
    }
    std::vector<uint32_t> order(options);
    std::iota(order.begin(), order.end(), 0U);
    nodes_.reserve(2 * options - 1);
    least_.reserve(nodes_.capacity() * fixed.size());
    for (size_t n = 0; n < nodes_.capacity(); ++n)
        least_.insert(least_.end(), fixed.begin(), fixed.end());
    build(order.begin(), order.end(), 0, varying);
    column_of_.assign(terms_, 0);
    columns_.reserve(varying.size() * options);
    for (size_t c = 0; c < varying.size(); ++c) {
        column_of_[used_[varying[c].place]] = c;
        for (const uint32_t n : order) columns_.push_back(varying[c].factors[n]);
    }
}

size_t AxisTree::counted_bytes() const {
    return counted_bytes_ + bytes_of(nodes_) + bytes_of(columns_) + bytes_of(leaves_) +
           nodes_.capacity() * padded_terms(terms_) * sizeof(double) + (nodes_.empty() ? 0 : 16);
}

uint32_t AxisTree::build(Iterator begin, Iterator end, uint32_t first,
                         const std::vector<Varying>& terms) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
    double* least = least_.data() + index * used_.size();
    const double* widest = nullptr;
    double widest_spread = 0;
    double spread = 0;
    for (const Varying& term : terms) {
        double low = INFINITY;
        double high = 0;
        for (auto it = begin; it != end; ++it) {
            low = std::min(low, term.factors[*it]);
            high = std::max(high, term.factors[*it]);
        }
        least[term.place] = low;
        if (low == high) continue;
        const double ratio = std::log((high + 1e-9) / (low + 1e-9));
        spread += ratio;
        if (ratio > widest_spread) {
            widest = term.factors;
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
        if (widest == nullptr || widest[a] == widest[b]) return a < b;
        return widest[a] < widest[b];
    });
    const uint32_t left = build(begin, begin + size / 2, first, terms);
    const uint32_t right =
        build(begin + size / 2, end, first + static_cast<uint32_t>(size / 2), terms);
    nodes_[index].left = left;
    nodes_[index].right = right;
    nodes_[left].parent = nodes_[right].parent = index;
    return index;
}

}  // namespace laminate::search
