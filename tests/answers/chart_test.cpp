#include "answers/chart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "answers/output.h"

namespace laminate::cli {
namespace {

TEST(ShortNumber, HasThreeDigitsAndNoExponent) {
    EXPECT_EQ(short_number(0), "0");
    EXPECT_EQ(short_number(1039.91), "1,040");
    EXPECT_EQ(short_number(170.78), "171");
    EXPECT_EQ(short_number(19.02), "19");
    EXPECT_EQ(short_number(1.8136), "1.81");
    EXPECT_EQ(short_number(5.006e-5), "0.0000501");
}

TEST(CountText, HasASuffix) {
    EXPECT_EQ(count_text(950), "950");
    EXPECT_EQ(count_text(2872), "2.87 k");
    EXPECT_EQ(count_text(190'096'584), "190 M");
}

TEST(LogAxis, MarksDifferAndHaveRoom) {
    for (const double most : {1.001, 1.3, 12.0, 5e4, 1e11}) {
        const LogAxis axis({1000, 1000 * most}, 80, 600);
        EXPECT_GT(axis.at(1000), 80);
        EXPECT_LT(axis.at(1000 * most), 600);
        for (const double base : {10.0, 1024.0}) {
            const auto text = [&](double value) {
                return base == 10 ? short_number(value) : bytes_text(std::llround(value));
            };
            const auto marks = axis.marks(base, text, room_across);
            EXPECT_GE(marks.size(), 2U) << most << " times, base " << base;
            for (size_t n = 1; n < marks.size(); ++n) {
                EXPECT_NE(marks[n].text, marks[n - 1].text);
                EXPECT_GE(marks[n].at - marks[n - 1].at,
                          (room_across(marks[n].text) + room_across(marks[n - 1].text)) / 2);
            }
        }
    }
}

}  // namespace
}  // namespace laminate::cli
