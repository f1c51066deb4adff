// Tiles of one axis of a group with their factors of each term of its costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
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

/// Tiles of one axis with their factors of all terms.
struct Option {
    std::vector<double> factors;
    /// From the last layer to the first; for a channel axis, T_i and T_z.
    std::vector<int64_t> tiles;
    AxisPatterns::Id pattern = 0;  ///< of the tensor that the layers so far read
};

/// The factors of some options by term.
struct AxisFactors {
    struct Column {
        double all = 1;                ///< the factor of each option, ...
        std::vector<double> by_option;  ///< ... unless it has one of its own
    };
    std::vector<Column> columns;
};

/// Many options in one table. Searches make millions of them, so they share their allocations, and only
/// the factors of some terms are stored: the others are one.
class Options {
public:
    Options() = default;
    /// `terms` rise. Every option has as many `tiles`.
    Options(std::vector<size_t> terms, size_t tiles)
        : terms_(std::move(terms)), tiles_of_each_(tiles) {}

    [[nodiscard]] bool empty() const { return patterns_.empty(); }
    [[nodiscard]] size_t size() const { return patterns_.size(); }
    [[nodiscard]] const std::vector<size_t>& terms() const { return terms_; }
    /// The factors of option n, in the order of terms().
    [[nodiscard]] const double* factors(size_t n) const {
        return factors_.data() + n * terms_.size();
    }
    /// The tiles of option n.
    [[nodiscard]] std::span<const int64_t> tiles(size_t n) const {
        return std::span(tiles_).subspan(n * tiles_of_each_, tiles_of_each_);
    }
    [[nodiscard]] AxisPatterns::Id pattern(size_t n) const { return patterns_[n]; }
    /// A table of such options without any.
    [[nodiscard]] Options none() const { return {terms_, tiles_of_each_}; }
    [[nodiscard]] AxisFactors by_term(size_t terms) const;

    void add(const Option& option);
    /// Adds an option whose factors are all one, and returns them.
    double* add(std::span<const int64_t> tiles, int64_t last_tile, AxisPatterns::Id pattern);
    /// Adds an option of another table with the same terms and as many tiles.
    void add(const Options& other, size_t n);
    void shrink_to_fit();

    /// What the limit of memory of a search counts: a row of all `terms` for each option, of which this
    /// table takes a part.
    [[nodiscard]] size_t counted_bytes(size_t terms) const;

private:
    friend class AxisTree;

    std::vector<size_t> terms_;
    size_t tiles_of_each_ = 0;
    std::vector<double> factors_;
    std::vector<int64_t> tiles_;
    std::vector<AxisPatterns::Id> patterns_;
};

/// Keeps the options that no other one equals or beats in every factor. `by_pattern`: compares only
/// options of equal patterns, which earlier layers will see.
[[nodiscard]] Options keep_useful(Options options, bool by_pattern);

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

}  // namespace laminate::search
