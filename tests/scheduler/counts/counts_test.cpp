#include "scheduler/counts/counts.h"

#include <gtest/gtest.h>

namespace laminate {
namespace {

GroupCounts example() {
    GroupCounts counts;
    counts.layers.push_back({"conv1", Macs(100), Elements(9), Elements(3), Elements(7)});
    counts.layers.push_back({"conv2", Macs(50), Elements(4), Elements(4), Elements(1)});
    counts.inputs = {{"x", Elements(30), Elements(1)}};
    counts.output_reads = Elements(5);
    counts.output_writes = Elements(10);
    counts.live_total = Elements(12);
    counts.sum_total = Elements(15);
    return counts;
}

TEST(GroupCounts, AccessesAreReadsOfXWAndYAndWritesOfY) {
    EXPECT_EQ(example().accesses(), Elements(30 + (9 + 4) + 5 + 10));
    EXPECT_EQ(example().macs(), Macs(150));
}

TEST(GroupCounts, DifferenceIsEmptyForEqualCounts) {
    EXPECT_EQ(difference(example(), "model", example(), "walker"), "");
}

TEST(GroupCounts, DifferenceNamesEveryFieldThatDiffers) {
    GroupCounts other = example();
    other.layers[1].macs = Macs(51);
    other.inputs[0].reads = Elements(31);
    const std::string text = difference(example(), "model", other, "walker");
    EXPECT_NE(text.find("conv2 MACs: model 50, walker 51"), std::string::npos) << text;
    EXPECT_NE(text.find("X reads: model 30, walker 31"), std::string::npos) << text;
    EXPECT_EQ(text.find("conv1"), std::string::npos) << text;
}

TEST(NetworkCounts, SumsTrafficAndTakesTheLargestFootprint) {
    GroupCounts other = example();
    other.live_total = Elements(40);
    other.sum_total = Elements(41);
    const NetworkCounts sum = total({example(), other});
    EXPECT_EQ(sum.accesses, Elements(2 * 58));
    EXPECT_EQ(sum.macs, Macs(300));
    EXPECT_EQ(sum.live_total, Elements(40));
    EXPECT_EQ(sum.sum_total, Elements(41));
}

}  // namespace
}  // namespace laminate
