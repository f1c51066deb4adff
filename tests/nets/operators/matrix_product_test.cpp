#include "nets/operators/matrix_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"

namespace laminate {
namespace {

std::vector<float> whole_values(Rng& rng, int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(rng.below(17) - 8);
    return values;
}

/// Products of batches of matrices, the right one of all batches the same, between guards.
std::vector<float> products_of(int64_t batches, int64_t rows, int64_t depth, int64_t columns,
                               const std::vector<float>& left, const std::vector<float>& right,
                               int threads) {
    std::vector<float> guarded(static_cast<size_t>(batches * rows * columns + 2), 12345.0F);
    multiply_matrices({.batches = batches,
                       .rows = rows,
                       .depth = depth,
                       .columns = columns,
                       .left_of = [&](int64_t k) { return left.data() + k * rows * depth; },
                       .right_of = [&](int64_t) { return right.data(); }},
                      guarded.data() + 1, threads);
    EXPECT_EQ(guarded.front(), 12345.0F);
    EXPECT_EQ(guarded.back(), 12345.0F);
    return {guarded.begin() + 1, guarded.end() - 1};
}

// Whole numbers, whose sums are exact: few rows, rows that fill blocks and do not, depths above one
// packed panel of 192 and around the 32 rows that few rows read at a time, columns around one
// vector, two vectors, the panels of few rows and a wide part.
TEST(MatrixProducts, OfWholeNumbersAreExactForEveryShape) {
    Rng rng(7);
    for (const int64_t rows : {1, 2, 3, 4, 5, 12, 13, 100}) {
        for (const int64_t depth : {1, 32, 65, 191, 400}) {
            for (const int64_t columns : {1, 7, 9, 16, 17, 25, 31, 33, 49, 66, 300}) {
                const auto left = whole_values(rng, 2 * rows * depth),
                           right = whole_values(rng, depth * columns);
                std::vector<float> expected;
                for (int64_t row = 0; row < 2 * rows; ++row) {
                    for (int64_t x = 0; x < columns; ++x) {
                        double sum = 0;
                        for (int64_t i = 0; i < depth; ++i)
                            sum += static_cast<double>(left[static_cast<size_t>(row * depth + i)]) *
                                   static_cast<double>(right[static_cast<size_t>(i * columns + x)]);
                        expected.push_back(static_cast<float>(sum));
                    }
                }
                for (const int threads : {0, 1, 3})  // 0: all
                    ASSERT_EQ(products_of(2, rows, depth, columns, left, right, threads), expected)
                        << rows << " x " << depth << " x " << columns << ", " << threads;
            }
        }
    }
}

// A sum of n products in single precision is off by at most n half units of the sum of magnitudes
// (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), and the order is that of the depth
// for any number of threads.
TEST(MatrixProducts, OfFractionsAreAsExactAsASumInOrder) {
    constexpr int64_t rows = 20, depth = 500, columns = 70;
    Rng rng(8);
    std::vector<float> left(rows * depth), right(depth * columns);
    for (std::vector<float>* values : {&left, &right}) {
        for (float& value : *values) value = static_cast<float>(rng.below(2001) - 1000) / 999.0F;
    }
    const auto found = products_of(1, rows, depth, columns, left, right, 1);
    EXPECT_EQ(found, products_of(1, rows, depth, columns, left, right, 4));
    for (int64_t k = 0; k < rows * columns; ++k) {
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < depth; ++i) {
            const double product =
                static_cast<double>(left[static_cast<size_t>(k / columns * depth + i)]) *
                static_cast<double>(right[static_cast<size_t>(i * columns + k % columns)]);
            sum += product;
            magnitude += std::abs(product);
        }
        ASSERT_NEAR(static_cast<double>(found[static_cast<size_t>(k)]), sum,
                    static_cast<double>(depth) * 0x1p-24 * magnitude);
    }
}

}  // namespace
}  // namespace laminate
