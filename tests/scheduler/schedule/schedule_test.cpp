#include "scheduler/schedule/schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

const char* const line_buffers =
    "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W root/root; Y "
    "root/conv2.yo & "
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
        EXPECT_EQ(parse_schedule(random, to_text(schedule)), schedule)
            << "seed " << seed << ": " << to_text(schedule);
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
              "conv1: compute level of Y is conv2.yo, outside its store level conv2.xo; legal: xo, "
              "io, zi, yi, xi, ii");
}

TEST(ScheduleRefuses, TilesBeyondTheExtent) {
    EXPECT_EQ(message_of(replaced(line_buffers, "y4 x16", "y17 x16")),
              "conv2: tile of y is 17; expected 1 to 16");
    EXPECT_EQ(message_of(replaced(line_buffers, "y4 x16", "y0 x16")),
              "conv2: tile of y is 0; expected 1 to 16");
}

TEST(ScheduleRefuses, PartialSumsInsideAGroup) {
    EXPECT_EQ(message_of(replaced(line_buffers, "i3", "i2")),
              "conv1: tile of i is 2 of 3; a layer that is not the last of its group cannot leave "
              "partial sums");
}

TEST(ScheduleRefuses, AStripInAProducer) {
    EXPECT_EQ(message_of(replaced(line_buffers, "conv1: zo yo xo io | zi yi xi ii n m;",
                                  "conv1: ys || zo yo xo io | zi yi xi ii n m; strip y4;")),
              "conv1: strip loop ys in a layer that is not the last of its group");
}

TEST(ScheduleRefuses, TheInputOfAGroupedLayerInsideIi) {
    const Network network = chain(4, 5, 5, {{4, square_window(3), 2}});
    EXPECT_THROW(
        (void)parse_group(
            network,
            "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y3 x3 i2; X io/ii; W io/io; Y xi/xi}"),
        InputError);
    EXPECT_NO_THROW((void)parse_group(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y3 x3 i2; X io/xi; W io/io; Y xi/xi}"));
}

TEST(ScheduleRefuses, ASharedTensorThatABranchOutlives) {
    // One branch has conv1 and conv2, the other nothing. The input must be kept while rows of conv2
    // are.
    Network network = empty_network(1, 8, 8);
    const TensorId conv1 = append(network, "conv1", 0, {1, square_window(3, 1, 1)});
    const TensorId conv2 = append(network, "conv2", conv1, {1, square_window(3, 1, 1)});
    append(network, "add3", {.kind = LayerKind::add, .inputs = {conv2, 0}});
    const auto text = [](const std::string& x) {
        return "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y8 x8 i1; X " + x +
               "; W root/root; Y add3.yo/add3.yo & " +
               "conv2: zo yo xo io | zi yi xi ii n m; tile z1 y8 x8 i1; W root/root; Y "
               "root/add3.yo & " +
               "add3: zo yo xo io | zi yi xi ii n m; tile z1 y2 x8 i1; Y xi/xi}";
    };
    EXPECT_NO_THROW((void)parse_group(network, text("root/add3.yo")));
    try {
        (void)parse_group(network, text("add3.yo/add3.yo"));
        FAIL() << "accepted";
    } catch (const InputError& error) {
        EXPECT_STREQ(
            error.what(),
            "conv2: computes from input, which several layers of the group read and which is "
            "stored at "
            "add3.yo, inside the "
            "store level root of its own output; expected to be stored there or further out");
    }
}

TEST(BranchNests, EndWhereTheBranchesComeTogether) {
    Network network = empty_network(1, 8, 8);
    const TensorId conv1 = append(network, "conv1", 0, {1, square_window(3, 1, 1)});
    const TensorId conv2 = append(network, "conv2", conv1, {1, square_window(3, 1, 1)});
    const TensorId add3 = append(network, "add3", {.kind = LayerKind::add, .inputs = {conv2, 0}});
    const TensorId conv4 = append(network, "conv4", add3, {1, square_window(3, 1, 1)});
    const TensorId conv5 = append(network, "conv5", add3, {1, square_window(3, 1, 1)});
    const TensorId add6 =
        append(network, "add6", {.kind = LayerKind::add, .inputs = {conv4, conv5}});
    append(network, "conv7", add6, {1, square_window(3, 1, 1)});
    std::vector<LayerProblem> problems;
    for (const LayerId id : all_layers(network)) problems.push_back(layer_problem(network, id));
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    // The input is read by conv1 and add3, in which its branches meet and which reads it itself.
    EXPECT_EQ(branch_nests(tensors, tensors[0]), (std::vector<int>{0, 1, 2}));
    // add3's output goes to conv4 and conv5; add6 reads only what they made of it.
    EXPECT_EQ(branch_nests(tensors, tensors[3]), (std::vector<int>{3, 4}));
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
