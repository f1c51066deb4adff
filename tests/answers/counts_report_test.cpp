#include "answers/counts_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace laminate::cli {
namespace {

GroupCounts group(const std::string& layer, int64_t base) {
    GroupCounts counts;
    counts.layers = {
        {layer, Macs(10 * base), Elements(2 * base), Elements(3 * base), Elements(base)}};
    counts.inputs = {{"x", Elements(5 * base), Elements(7 * base)}};
    counts.output_reads = Elements(base);
    counts.output_writes = Elements(4 * base);
    counts.live_total = Elements(20 * base);
    counts.sum_total = Elements(30 * base);
    return counts;
}

TEST(CountsJson, WhatMovesIsSummedAndWhatIsHeldIsTheLargest) {
    const auto json = counts_json({group("a", 1), group("b", 100)});
    EXPECT_EQ(json.at("macs"), 1010);
    EXPECT_EQ(json.at("reads").at("X"), 505);
    EXPECT_EQ(json.at("reads").at("W"), 202);
    EXPECT_EQ(json.at("reads").at("Y"), 101);
    EXPECT_EQ(json.at("writes").at("Y"), 404);
    EXPECT_EQ(json.at("buffer_elements").at("X"), 700);
    EXPECT_EQ(json.at("buffer_elements").at("total"), 2000);
    ASSERT_EQ(json.at("groups").size(), 2U);
    EXPECT_EQ(json.at("groups")[0], group_json(group("a", 1)));
}

TEST(SideBySide, ADifferenceIsMarkedInItsRowOnly) {
    GroupCounts wrong = group("a", 1);
    wrong.output_writes += Elements(1);
    const std::string text = side_by_side({{"model", {group("a", 1)}}, {"measured", {wrong}}});
    EXPECT_NE(text.find("external writes of Y          4         5  DIFFERENT\n"),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find("DIFFERENT"), text.rfind("DIFFERENT")) << text;
    EXPECT_NE(text.find("MACs                         10        10  equal\n"), std::string::npos)
        << text;
}

}  // namespace
}  // namespace laminate::cli
