// Options of an axis as a tree of sets with bounds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/explore/group_search/axis_options.h"

namespace laminate::search {

/// The options of an axis, repeatedly halved, with the smallest factors of each part.
class AxisTree {
public:
    struct Node {
        uint32_t left = 0;  ///< 0 for a leaf
        uint32_t right = 0;
        uint32_t option = 0;
        uint32_t parent = 0;
        uint32_t unmarked = 0;  ///< unmarked options in the node
        uint32_t first = 0;     ///< the node's options are neighbours, from this place on
        uint32_t count = 1;
        double spread = 0;  ///< how far the factors in the node lie apart
    };

    /// `marks`: flags by option, which mark() sets; outlives the tree.
    AxisTree(Options options, size_t terms, std::vector<char>* marks = nullptr);
    /// The same with other factors, and without tiles.
    AxisTree(const AxisFactors& factors, const Options& options, std::vector<char>* marks);

    [[nodiscard]] bool empty() const { return leaves_.empty(); }
    [[nodiscard]] const Node& node(uint32_t n) const { return nodes_[n]; }
    /// Multiplies `product`, term by term, by the least factors of a node.
    void multiply(uint32_t n, double* product) const {
        const double* least = least_.data() + n * used_.size();
        for (size_t c = 0; c < used_.size(); ++c) product[used_[c]] *= least[c];
    }
    /// The same by the factors of terms that do not vary.
    void multiply_fixed(double* product) const {
        for (size_t c = 0; c < used_.size(); ++c) {
            if (varies_[used_[c]] == 0) product[used_[c]] *= least_[c];
        }
    }
    /// Factors of one term that varies: by place.
    [[nodiscard]] const double* column(size_t term) const {
        return columns_.data() + column_of_[term] * leaves_.size();
    }
    [[nodiscard]] uint32_t leaf_at(uint32_t place) const { return leaves_[place]; }
    /// Says of each term whether its factors differ.
    [[nodiscard]] const std::vector<char>& varies() const { return varies_; }
    /// The tiles of the option of leaf n.
    [[nodiscard]] std::span<const int64_t> tiles(uint32_t n) const {
        return options_.tiles(nodes_[n].option);
    }
    /// What the limit of memory of a search counts.
    [[nodiscard]] size_t counted_bytes() const;
    /// Marks the option of a leaf.
    void mark(uint32_t n) {
        if (nodes_[n].unmarked == 0) return;
        (*marks_)[nodes_[n].option] = 1;
        for (;; n = nodes_[n].parent) {
            --nodes_[n].unmarked;
            if (n == 0) return;
        }
    }

private:
    using Iterator = std::vector<uint32_t>::iterator;

    /// A term that varies, with its factors by option.
    struct Varying {
        size_t place;  ///< in `used_`
        const double* factors;
    };

    void build(const AxisFactors& factors);
    uint32_t build(Iterator begin, Iterator end, uint32_t first, const std::vector<Varying>& terms);

    size_t terms_;
    Options options_;         ///< their tiles alone
    size_t counted_bytes_ = 0;  ///< of the options
    std::vector<Node> nodes_;
    std::vector<uint32_t> used_;  ///< terms of which some factor is not one
    std::vector<double> least_;  ///< by node, in the order of `used_`
    std::vector<double> columns_;   ///< of the terms that vary
    std::vector<size_t> column_of_; ///< by term
    std::vector<uint32_t> leaves_;  ///< by place
    std::vector<char> varies_;      ///< by term
    std::vector<char>* marks_;
};

}  // namespace laminate::search
