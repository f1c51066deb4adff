#include "scheduler/explore/group_search/kept_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace laminate::search {
namespace {

/// Thousands of rows of up to seven columns, few values and many, zeros among them: a row is kept
/// if none that was kept before is nowhere above it, as comparing it with each of them says.
TEST(KeptRows, KeepsWhatNoRowIsBelow) {
    Rng rng(5);
    size_t most_kept = 0;
    for (size_t width = 0; width <= 7; ++width) {
        for (const int64_t values : {2, 9, 1000}) {
            KeptRows tree(width);
            std::vector<std::vector<double>> kept;
            for (int n = 0; n < 1500; ++n) {
                if (n == 1000) {
                    tree.clear();
                    kept.clear();
                }
                std::vector<double> row;
                for (size_t c = 0; c < width; ++c)
                    row.push_back(static_cast<double>(rng.below(values)));
                const bool is_beaten = std::ranges::any_of(kept, [&](const auto& other) {
                    return std::ranges::equal(other, row, std::less_equal());
                });
                ASSERT_EQ(tree.any_below(row.data()), is_beaten)
                    << "row " << n << " of " << width << " columns of " << values << " values";
                if (is_beaten) continue;
                tree.add(row.data());
                kept.push_back(std::move(row));
                most_kept = std::max(most_kept, kept.size());
            }
        }
    }
    // The tree has many leaves.
    EXPECT_GT(most_kept, 500U);
}

}  // namespace
}  // namespace laminate::search
