#include "scheduler/explore/group_search/kept_rows.h"

#include <algorithm>
#include <limits>

namespace laminate::search {

void KeptRows::clear() {
    nodes_.clear();
    least_.clear();
    numbers_.assign(most_in_leaf * width_, 0);
    last_ = make_leaf(0);
}

uint32_t KeptRows::make_leaf(size_t first) {
    const auto leaf = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({0, 0, 0, first, 0});
    least_.resize(least_.size() + width_, std::numeric_limits<double>::infinity());
    return leaf;
}

bool KeptRows::is_above(const double* least, const double* row) const {
    for (size_t c = 0; c < width_; ++c) {
        if (least[c] > row[c]) return true;
    }
    return false;
}

bool KeptRows::any_of_leaf(const Node& leaf, const double* row) const {
    std::array<int64_t, most_in_leaf> is_above{};
    const double* column = numbers_.data() + leaf.first;
    for (size_t c = 0; c < width_; ++c, column += most_in_leaf) {
        for (size_t n = 0; n < most_in_leaf; ++n)
            is_above[n] |= column[n] > row[c] ? int64_t{-1} : int64_t{0};
    }
    return std::find(is_above.begin(), is_above.begin() + static_cast<std::ptrdiff_t>(leaf.count),
                     0) != is_above.begin() + static_cast<std::ptrdiff_t>(leaf.count);
}

bool KeptRows::any_below(const double* row) {
    if (nodes_[last_].left == 0 && any_of_leaf(nodes_[last_], row)) return true;
    open_.assign(1, 0);
    while (!open_.empty()) {
        const uint32_t n = open_.back();
        open_.pop_back();
        if (is_above(least_.data() + n * width_, row)) continue;
        const Node& node = nodes_[n];
        if (node.left != 0) {
            open_.insert(open_.end(), {node.left, node.left + 1});
        } else if (any_of_leaf(node, row)) {
            last_ = n;
            return true;
        }
    }
    return false;
}

void KeptRows::add(const double* row) {
    uint32_t n = 0;
    for (;;) {
        if (nodes_[n].left == 0 && nodes_[n].count == most_in_leaf) divide(n);
        if (nodes_[n].left == 0) return add_to_leaf(n, row);
        double* least = least_.data() + n * width_;
        for (size_t c = 0; c < width_; ++c) least[c] = std::min(least[c], row[c]);
        n = nodes_[n].left + (row[nodes_[n].column] < nodes_[n].middle ? 0 : 1);
    }
}

void KeptRows::add_to_leaf(uint32_t leaf, const double* row) {
    double* least = least_.data() + leaf * width_;
    double* at = numbers_.data() + nodes_[leaf].first + nodes_[leaf].count++;
    for (size_t c = 0; c < width_; ++c) {
        least[c] = std::min(least[c], row[c]);
        at[c * most_in_leaf] = row[c];
    }
}

void KeptRows::divide(uint32_t leaf) {
    const size_t first = nodes_[leaf].first;
    const std::vector<double> rows(
        numbers_.begin() + static_cast<std::ptrdiff_t>(first),
        numbers_.begin() + static_cast<std::ptrdiff_t>(first + most_in_leaf * width_));
    // The column whose numbers lie farthest apart. Its middle is above its least number.
    size_t column = 0;
    double middle = 0;
    double widest = 0;
    for (size_t c = 0; c < width_; ++c) {
        std::array<double, most_in_leaf> sorted;
        std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(c * most_in_leaf), most_in_leaf,
                    sorted.begin());
        std::ranges::sort(sorted);
        if (sorted.front() == sorted.back()) continue;
        const double spread = 1 - sorted.front() / sorted.back();
        if (spread <= widest) continue;
        widest = spread;
        column = c;
        middle = sorted[most_in_leaf / 2];
        if (middle == sorted.front()) middle = *std::ranges::upper_bound(sorted, middle);
    }
    const uint32_t left = make_leaf(first);
    make_leaf(numbers_.size());
    numbers_.resize(numbers_.size() + most_in_leaf * width_, 0);
    std::vector<double> row(width_);
    for (size_t n = 0; n < most_in_leaf; ++n) {
        for (size_t c = 0; c < width_; ++c) row[c] = rows[c * most_in_leaf + n];
        add_to_leaf(left + (row[column] < middle ? 0 : 1), row.data());
    }
    nodes_[leaf].left = left;
    nodes_[leaf].column = column;
    nodes_[leaf].middle = middle;
}

}  // namespace laminate::search
