#include "base/rng.h"

#include <gtest/gtest.h>

#include <map>

namespace laminate {
namespace {

TEST(Rng, IsSplitMix64) {
    // The published sequence for seed 1234567.
    Rng rng(1234567);
    EXPECT_EQ(rng.next(), 6457827717110365317u);
    EXPECT_EQ(rng.next(), 3203168211198807973u);
    EXPECT_EQ(rng.next(), 9817491932198370423u);
}

TEST(Rng, SkippingIsCallingSoOften) {
    Rng called(7);
    for (int n = 0; n < 5; ++n) (void)called.next();
    Rng skipped(7);
    skipped.skip(5);
    EXPECT_EQ(skipped.next(), called.next());
}

TEST(Rng, BelowCoversItsRangeEvenly) {
    Rng rng(5);
    std::map<int64_t, int> hits;
    for (int n = 0; n < 7000; ++n) ++hits[rng.below(7)];
    ASSERT_EQ(hits.size(), 7u);
    for (const auto& [value, count] : hits) EXPECT_NEAR(count, 1000, 150) << value;
}

}  // namespace
}  // namespace laminate
