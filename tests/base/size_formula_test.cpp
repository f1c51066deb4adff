#include "base/size_formula.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"

namespace laminate {
namespace {

const SizeFormula h = SizeVariable::rows, w = SizeVariable::columns;

TEST(SizeFormula, SumsHaveOneForm) {
    EXPECT_EQ(to_text(h + 2 - 2), "h");
    EXPECT_EQ(to_text(w * 3 + h - 4), "h + 3*w - 4");
    EXPECT_EQ(h + w, w + h);
    EXPECT_TRUE((h - h).is_constant());
    EXPECT_EQ(to_text(h * -1), "-h");
}

TEST(SizeFormula, MultiplesComeOutOfQuotients) {
    // (4 h + 9) / 4 = h + 2 + (1 / 4) and 1 / 4 is 0.
    EXPECT_EQ((h * 4 + 9) / 4, h + 2);
    EXPECT_EQ(to_text((h - 1) / 2 + 1), "(h + 1)/2");
    // Two layers of stride 2: ((h - 1) / 2) / 2 = (h - 1) / 4.
    EXPECT_EQ(to_text(((h - 1) / 2) / 2), "(h + 3)/4 - 1");
    EXPECT_EQ(((h - 1) / 2 / 2).at({.rows = 10}), 2);
}

TEST(SizeFormula, SmallerAndLargerAreKnownWhereTheyDifferByAConstant) {
    EXPECT_EQ(least(h, h + 1), h);
    EXPECT_EQ(most(h, h + 1), h + 1);
    EXPECT_EQ(to_text(least(h, w)), "min(h, w)");
    EXPECT_EQ(least(h, w).at({.rows = 7, .columns = 5}), 5);
    EXPECT_EQ(most(h, w).at({.rows = 7, .columns = 5}), 7);
}

SizeFormula random_formula(Rng& rng, int depth) {
    const auto part = [&] { return random_formula(rng, depth - 1); };
    switch (depth == 0 ? rng.below(3) : rng.below(8)) {
        case 0:
            return static_cast<int64_t>(rng.below(9)) - 4;
        case 1:
            return h;
        case 2:
            return w;
        case 3:
            return part() + part();
        case 4:
            return part() - part() * static_cast<int64_t>(rng.below(4));
        case 5:
            return part() / static_cast<int64_t>(1 + rng.below(5));
        case 6:
            return rng.below(2) == 0 ? least(part(), part()) : most(part(), part());
        default:
            return part() * part();
    }
}

TEST(SizeFormula, TextIsTheFormula) {
    Rng rng(1);
    for (int n = 0; n < 2000; ++n) {
        const SizeFormula formula = random_formula(rng, 3);
        const SizeFormula parsed = parse_size_formula(to_text(formula), "test");
        EXPECT_EQ(to_text(parsed), to_text(formula));
        for (const SizeValues& values :
             {SizeValues{.rows = 1, .columns = 64}, SizeValues{.rows = 37, .columns = 9}})
            EXPECT_EQ(parsed.at(values), formula.at(values)) << to_text(formula);
    }
}

/// The same arithmetic on numbers beside it.
TEST(SizeFormula, ValuesAreThoseOfTheOperations) {
    Rng rng(2);
    for (int n = 0; n < 500; ++n) {
        const SizeFormula a = random_formula(rng, 2), b = random_formula(rng, 2);
        const SizeValues at{.rows = static_cast<int64_t>(1 + rng.below(99)),
                            .columns = static_cast<int64_t>(1 + rng.below(99))};
        const int64_t x = a.at(at), y = b.at(at);
        EXPECT_EQ((a + b).at(at), x + y);
        EXPECT_EQ((a - b).at(at), x - y);
        EXPECT_EQ((a * b).at(at), x * y);
        EXPECT_EQ((a / 3).at(at), floor_div(x, 3)) << to_text(a);
        EXPECT_EQ(((a / 3 + 1) / 2).at(at), floor_div(floor_div(x, 3) + 1, 2)) << to_text(a);
        EXPECT_EQ(least(a, b).at(at), std::min(x, y));
        EXPECT_EQ(most(a, b).at(at), std::max(x, y));
    }
}

TEST(SizeFormula, RefusesWhatIsNoFormula) {
    const auto refusal = [](const std::string& text) -> std::string {
        try {
            (void)parse_size_formula(text, "manifest");
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(refusal("h + z"),
              "manifest: formula \"h + z\", column 5: expected a number, n, h, w, strip_h, strip_w, "
              "min, max or (");
    EXPECT_EQ(refusal("h / w"),
              "manifest: formula \"h / w\", column 6: expected a number from 1 on");
    EXPECT_EQ(refusal("(h"), "manifest: formula \"(h\", column 3: expected )");
    EXPECT_EQ(refusal("h h"), "manifest: formula \"h h\", column 3: expected the end");
    EXPECT_NE(refusal(std::string(100000, '(')).find("less nesting"), std::string::npos);
}

}  // namespace
}  // namespace laminate
