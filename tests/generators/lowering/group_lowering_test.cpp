// The lowered text, held beside the schedule: loops bear the schedule's names, single trips vanish,
// folds are explicit.
#include "generators/lowering/group_lowering.h"

#include <gtest/gtest.h>

#include <sstream>

#include "generators/instrumented.h"
#include "nets/zoo/zoo.h"

namespace laminate {
namespace {

std::string lowered(const std::string& text) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = parse_group(network, text);
    std::ostringstream out;
    out << instrumented_code(network, group).body;
    return out.str();
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(GroupLowering, LoopsBearTheNamesOfTheSchedule) {
    const std::string code = lowered(
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y6 x18 i3; X root/yo; W root/root; Y "
        "xi/xi}");
    EXPECT_TRUE(contains(code, "for (conv1.yo")) << code;
    EXPECT_FALSE(contains(code, "for (conv1.zo")) << "a loop of one trip is no loop:\n" << code;
    EXPECT_FALSE(contains(code, "for (conv1.xo")) << code;
}

TEST(GroupLowering, RowsThatRotateAreAddressedModuloTheFold) {
    // Tiles of 6 rows need 8; the picture has 20.
    const std::string code = lowered(
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y6 x18 i3; X root/yo; W root/root; Y "
        "xi/xi}");
    EXPECT_TRUE(contains(code, "allocate X.buffer[float32 * 3 * 8 * 20]")) << code;
    EXPECT_TRUE(contains(code, "% 8")) << code;
}

TEST(GroupLowering, StripsTakeTheirRangeFromTheCaller) {
    const std::string code = lowered(
        "{conv1: ys || zo yo xo io | zi yi xi ii n m; strip y9; tile z4 y3 x18 i3; X ys/yo; W "
        "root/root; Y xi/xi}");
    EXPECT_TRUE(contains(code, "strip_begin, strip_end - strip_begin")) << code;
}

}  // namespace
}  // namespace laminate
