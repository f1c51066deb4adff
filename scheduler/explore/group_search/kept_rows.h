// Rows of factors that were kept, and whether one of them is nowhere above another row. A search
// asks this for a hundred thousand combinations of tiles at a time, of which it keeps ten thousand.
//
// A tree divides the rows by one column at each node, and knows the least of each column. So only
// the leaves are looked at whose least row is nowhere above.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace laminate::search {

class KeptRows {
public:
    /// Rows of `width` numbers that are not negative.
    explicit KeptRows(size_t width) : width_(width) { clear(); }

    void clear();
    /// Whether some row is nowhere above `row`.
    [[nodiscard]] bool any_below(const double* row);
    /// Adds a row for which any_below() is false. So no two rows are equal.
    void add(const double* row);

private:
    static constexpr size_t most_in_leaf = 16;

    struct Node {
        uint32_t left = 0;  ///< 0 for a leaf; the right node comes next
        size_t column = 0;  ///< rows below `middle` in this column are on the left
        double middle = 0;
        size_t first = 0;  ///< of a leaf: place in `numbers_`
        size_t count = 0;  ///< of a leaf: rows
    };

    /// A leaf without rows. Returns its number.
    uint32_t make_leaf(size_t first);
    void add_to_leaf(uint32_t leaf, const double* row);
    void divide(uint32_t leaf);
    [[nodiscard]] bool is_above(const double* least, const double* row) const;
    [[nodiscard]] bool any_of_leaf(const Node& leaf, const double* row) const;

    size_t width_;
    std::vector<Node> nodes_;
    std::vector<double> least_;    ///< by node: the least of each column
    std::vector<double> numbers_;  ///< by leaf: column by column, so vectors of rows are compared
    std::vector<uint32_t> open_;   ///< nodes that any_below() has yet to look at
    uint32_t last_ = 0;            ///< the leaf that had a row below last often has one again
};

}  // namespace laminate::search
