// Tiles of one axis of a group with their factors of each term of its costs, and trees of them for
// bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/explore/group_search/axis_patterns.h"

namespace laminate::search {

/// Numbers of the terms of a group of n layers. As in the papers, layer k reads A_{k-1} and writes
/// A_k, and A_0 is the input.
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

/// Rows of factors are padded so that they are multiplied in whole vectors.
[[nodiscard]] constexpr size_t padded_terms(size_t terms) { return (terms + 3) / 4 * 4; }

/// Whether the weights of a layer are resident, as decided before its structure.
enum class Residence : uint8_t { no, yes, open };

/// Tiles of one axis with their factors.
struct Option {
    std::vector<double> factors;
    /// From the last layer to the first; for a channel axis, T_i and T_z.
    std::vector<int64_t> tiles;
    AxisPatterns::Id pattern = 0;  ///< of the tensor that the layers so far read
};

/// Approximate bytes that `options` take.
[[nodiscard]] size_t bytes_of(const std::vector<Option>& options);

/// Keeps the options that no other one equals or beats in every factor. `by_pattern`: compares only
/// options of equal patterns, which earlier layers will see.
[[nodiscard]] std::vector<Option> keep_useful(std::vector<Option> options, bool by_pattern);

enum class Tiles : uint8_t {
    whole,
    divisors,
    powers_of_two,
    /// the smallest tile of each number of trips, which suffices if padding does not interfere
    trips,
    all,
};
/// Sizes that a tile of an extent may take, ascending; the extent itself is last.
[[nodiscard]] std::vector<int64_t> tile_candidates(int64_t extent, Tiles kind);

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
    AxisTree(std::vector<Option> options, size_t terms, std::vector<char>* marks = nullptr);

    [[nodiscard]] bool empty() const { return options_.empty(); }
    [[nodiscard]] const Node& node(uint32_t n) const { return nodes_[n]; }
    /// By term, padded_terms() of them.
    [[nodiscard]] const double* least(uint32_t n) const {
        return least_.data() + n * padded_terms(terms_);
    }
    /// Factors of one term that varies: by place.
    [[nodiscard]] const double* column(size_t term) const {
        return columns_.data() + column_of_[term] * options_.size();
    }
    [[nodiscard]] uint32_t leaf_at(uint32_t place) const { return leaves_[place]; }
    /// By term: whether its factors differ.
    [[nodiscard]] const std::vector<char>& varies() const { return varies_; }
    [[nodiscard]] const Option& option(uint32_t n) const { return options_[nodes_[n].option]; }
    /// Approximate bytes stored.
    [[nodiscard]] size_t bytes() const;
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

    uint32_t build(Iterator begin, Iterator end, uint32_t first);

    size_t terms_;
    std::vector<Option> options_;
    std::vector<Node> nodes_;
    std::vector<double> least_;
    std::vector<double> columns_;     ///< of the terms that vary
    std::vector<size_t> column_of_;   ///< by term
    std::vector<uint32_t> leaves_;  ///< by place
    std::vector<char> varies_;      ///< by term
    std::vector<char>* marks_;
};

}  // namespace laminate::search
