#include "scheduler/schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "scheduler/random_schedule.h"
#include "tests/scheduler/chain.h"

namespace laminate {
namespace {

const char* const line_buffers =
    "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W root/root; Y root/conv2.yo & "
    "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y xi/xi}";

std::string message_of(const std::string& text) {
    try {
        (void)parse_group(l2net(), text);
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return text;
}

TEST(ScheduleText, IsTheIdentity) {
    const Network network = l2net();
    EXPECT_EQ(to_text(parse_group(network, line_buffers)), line_buffers);
    for (uint64_t seed = 0; seed < 300; ++seed) {
        const Network random = random_chain(seed);
        const Schedule schedule = random_schedule(random, seed);
        EXPECT_EQ(parse_schedule(random, to_text(schedule)), schedule) << "seed " << seed << ": " << to_text(schedule);
    }
}

TEST(ScheduleText, LevelsOfAProducerAreOnItsConsumersPath) {
    const GroupSchedule group = parse_group(l2net(), line_buffers);
    // root, conv2.zo, conv2.yo, then the eight loops of conv1.
    EXPECT_EQ(path(group, 0).size(), 3u + 8u);
    EXPECT_TRUE(encloses(group, 0, Level{1, 1}, Level{0, 0}));
    EXPECT_FALSE(encloses(group, 0, Level{0, 0}, Level{1, 1}));
}

TEST(ScheduleRefuses, ComputeLevelOutsideTheStoreLevel) {
    EXPECT_EQ(message_of(replaced(line_buffers, "Y root/conv2.yo", "Y conv2.xo/conv2.yo")),
              "conv1: compute level of Y is conv2.yo, outside its store level conv2.xo; legal: xo, io, zi, yi, xi, ii");
}

TEST(ScheduleRefuses, TilesBeyondTheExtent) {
    EXPECT_EQ(message_of(replaced(line_buffers, "y4 x16", "y17 x16")), "conv2: tile of y is 17; expected 1 to 16");
    EXPECT_EQ(message_of(replaced(line_buffers, "y4 x16", "y0 x16")), "conv2: tile of y is 0; expected 1 to 16");
}

TEST(ScheduleRefuses, PartialSumsInsideAGroup) {
    EXPECT_EQ(message_of(replaced(line_buffers, "i3", "i2")),
              "conv1: tile of i is 2 of 3; a layer that is not the last of its group cannot leave partial sums");
}

TEST(ScheduleRefuses, AStripInAProducer) {
    EXPECT_EQ(message_of(replaced(line_buffers, "conv1: zo yo xo io | zi yi xi ii n m;",
                                  "conv1: ys || zo yo xo io | zi yi xi ii n m; strip y4;")),
              "conv1: strip loop ys in a layer that is not the last of its group");
}

TEST(ScheduleRefuses, TheInputOfAGroupedLayerInsideIi) {
    const Network network = chain(4, 5, 5, {{4, square_window(3), 2}});
    EXPECT_THROW((void)parse_group(
                     network, "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y3 x3 i2; X io/ii; W io/io; Y xi/xi}"),
                 InputError);
    EXPECT_NO_THROW((void)parse_group(
        network, "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y3 x3 i2; X io/xi; W io/io; Y xi/xi}"));
}

TEST(ScheduleRefuses, LayersInNoGroupAndInTwo) {
    const Network network = l2net();
    const GroupSchedule both = parse_group(network, line_buffers);
    EXPECT_THROW(Schedule(network, {}), InputError);
    EXPECT_THROW(Schedule(network, {both, both}), InputError);
}

TEST(ScheduleText, ErrorsNameTheColumn) {
    const std::string message = message_of(replaced(line_buffers, "W root/root", "W rot/root"));
    EXPECT_EQ(message.substr(0, 23), "schedule text, column 7") << message;
    EXPECT_NE(message.find("\"rot\""), std::string::npos) << message;
}

}  // namespace
}  // namespace laminate
