#include "answers/output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace laminate::cli {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCellAndNumbersStandRight) {
    Table table({{"layer"}, {"MACs", Align::right}});
    table.add({"c1", "34,992"});
    table.add_rule();
    table.add({"2×2", "7"});  // "×" is two bytes but one character
    EXPECT_EQ(table.text(),
              "layer    MACs\n"
              "-------------\n"
              "c1     34,992\n"
              "-------------\n"
              "2×2         7\n");
}

TEST(Table, AsJsonHasItsCellsWithoutRules) {
    Table table({{"layer"}, {"MACs", Align::right}});
    table.add({"c1", "34,992"});
    table.add_rule();
    table.add({"all", "34,992"});
    EXPECT_EQ(table.json().dump(),
              R"({"columns":[{"title":"layer","is_number":false},{"title":"MACs","is_number":true}],)"
              R"("rows":[["c1","34,992"],["all","34,992"]]})");
}

TEST(Grouped, ThousandsAreSeparated) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(-123456), "-123,456");
    EXPECT_EQ(grouped(1234567890), "1,234,567,890");
}

TEST(BytesText, BinaryUnits) {
    EXPECT_EQ(bytes_text(1023), "1023 B");
    EXPECT_EQ(bytes_text(1536), "1.5 KiB");
    EXPECT_EQ(bytes_text(int64_t{3} << 20), "3.0 MiB");
    EXPECT_EQ(bytes_text(int64_t{5} << 29), "2.50 GiB");
}

TEST(ParseBytes, UnitsAreBinaryAndABareNumberIsBytes) {
    EXPECT_EQ(parse_bytes("--memory", "64KiB"), 65536);
    EXPECT_EQ(parse_bytes("--memory", "1.5MiB"), 1572864);
    EXPECT_EQ(parse_bytes("--memory", "2GiB"), int64_t{2} << 30);
    EXPECT_EQ(parse_bytes("--memory", "4096"), 4096);
    EXPECT_EQ(parse_bytes("--memory", "4096B"), 4096);
}

TEST(ParseBytes, WhatIsNoSizeIsRefusedWithTheOptionsName) {
    for (const char* text : {"", "KiB", "64kb", "-1", "64 KiB", "1e30GiB", "nan"}) {
        try {
            (void)parse_bytes("--memory", text);
            FAIL() << text << " was accepted";
        } catch (const UsageError& error) {
            EXPECT_EQ(error.what(), "--memory: found \"" + std::string(text) +
                                        "\", expected a size such as 65536, 64KiB, 1.5MiB or 2GiB");
        }
    }
}

}  // namespace
}  // namespace laminate::cli
