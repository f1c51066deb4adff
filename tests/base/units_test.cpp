#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

namespace laminate {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
    a + b;
};
static_assert(Addable<Elements, Elements>);
static_assert(!Addable<Elements, Macs>, "elements and MACs are different things");
static_assert(!std::is_convertible_v<Elements, Bytes>,
              "only to_bytes() leads from elements to bytes");
static_assert(!std::is_convertible_v<int64_t, Elements>);

TEST(Count, OverflowThrowsInsteadOfWrapping) {
    const Elements most(std::numeric_limits<int64_t>::max());
    EXPECT_THROW((void)(most + Elements(1)), std::overflow_error);
    EXPECT_THROW((void)(most * 2), std::overflow_error);
    EXPECT_EQ(most + Elements(-1), Elements(std::numeric_limits<int64_t>::max() - 1));
}

TEST(Count, AnElementIsFourBytes) { EXPECT_EQ(to_bytes(Elements(6 * 18 * 4)), Bytes(1728)); }

TEST(CeilDiv, RoundsUpOnlyWhatIsRagged) {
    EXPECT_EQ(ceil_div(18, 6), 3);
    EXPECT_EQ(ceil_div(19, 6), 4);
    EXPECT_EQ(ceil_div(0, 6), 0);
}

}  // namespace
}  // namespace laminate
