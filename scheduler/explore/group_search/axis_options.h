// Tiles of one axis of a group with the factors that they contribute to each term of its costs, and
// trees of them, for bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/explore/group_search/axis_patterns.h"

namespace laminate::search {

/// Numbers of the terms of a group of n layers; layers and tensors count as in the papers: layer k
/// reads A_{k-1} and writes A_k, A_0 is the input.
struct Terms {
    constexpr explicit Terms(int layers) : n(layers) {}
    int n;
    [[nodiscard]] size_t input() const { return 0; }
    [[nodiscard]] size_t weights(int k) const { return static_cast<size_t>(k); }
    [[nodiscard]] size_t visits() const { return static_cast<size_t>(n + 1); }
    [[nodiscard]] size_t macs(int k) const { return static_cast<size_t>(n + 1 + k); }
    [[nodiscard]] size_t buffer(int k) const {
        return static_cast<size_t>(2 * n + 2 + k);
    }  ///< of A_k, k < n
    [[nodiscard]] size_t weight_buffer(int k) const { return static_cast<size_t>(3 * n + 1 + k); }
    [[nodiscard]] size_t output_buffer() const { return static_cast<size_t>(4 * n + 2); }
    [[nodiscard]] constexpr size_t count() const { return static_cast<size_t>(4 * n + 3); }
};

/// So that rows of factors are multiplied in whole vectors.
[[nodiscard]] constexpr size_t padded_terms(size_t terms) { return (terms + 3) / 4 * 4; }

/// Where the weights of a layer are decided to be, before its structure is.
enum class Residence : uint8_t { no, yes, open };

/// Tiles of one axis with their factors.
struct Option {
    std::vector<double> factors;
    std::vector<int64_t>
        tiles;  ///< from the last layer to the first; for a channel axis T_i and T_z
    AxisPatterns::Id pattern = 0;  ///< of the tensor that the layers so far ask for
};

/// Keeps options that no other one beats in every factor; with equal patterns only, unless they are
/// of no further consequence.
[[nodiscard]] std::vector<Option> keep_useful(std::vector<Option> options, bool by_pattern);

enum class Tiles : uint8_t {
    whole,
    divisors,
    powers_of_two,
    trips,  ///< the smallest of each number of trips: what matters where no padding interferes
    all,
};
/// Sizes that a tile of an extent may take: ascending, the extent itself last.
[[nodiscard]] std::vector<int64_t> tile_candidates(int64_t extent, Tiles kind);

/// The options of an axis, halved again and again, with the smallest factors of each part.
class AxisTree {
public:
    struct Node {
        uint32_t left = 0;  ///< 0: a leaf
        uint32_t right = 0;
        uint32_t option = 0;
        uint32_t parent = 0;
        uint32_t unmarked = 0;  ///< options in it
        uint32_t first = 0;     ///< the options of a node are neighbours, from this place on
        uint32_t count = 1;
        double spread = 0;  ///< how far the factors in it lie apart
    };

    /// `marks`: by option, set by mark(); lives as long.
    AxisTree(std::vector<Option> options, size_t terms, std::vector<char>* marks = nullptr);

    [[nodiscard]] bool empty() const { return options_.empty(); }
    [[nodiscard]] const Node& node(uint32_t n) const { return nodes_[n]; }
    /// By term, padded_terms() of them.
    [[nodiscard]] const double* least(uint32_t n) const {
        return least_.data() + n * padded_terms(terms_);
    }
    /// Factors of one term: by place.
    [[nodiscard]] const double* column(size_t term) const {
        return columns_.data() + term * options_.size();
    }
    [[nodiscard]] uint32_t leaf_at(uint32_t place) const { return leaves_[place]; }
    /// Terms whose factors are not all equal.
    [[nodiscard]] const std::vector<char>& varies() const { return varies_; }
    [[nodiscard]] const Option& option(uint32_t n) const { return options_[nodes_[n].option]; }
    /// A leaf's option matters.
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

    uint32_t build(Iterator begin, Iterator end, uint32_t first);

    size_t terms_;
    std::vector<Option> options_;
    std::vector<Node> nodes_;
    std::vector<double> least_;
    std::vector<double> columns_;
    std::vector<uint32_t> leaves_;  ///< by place
    std::vector<char> varies_;      ///< by term
    std::vector<char>* marks_;
};

}  // namespace laminate::search
