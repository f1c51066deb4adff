#include "scheduler/explore/planner/runs.h"

#include <gtest/gtest.h>

#include "nets/network/picture_views.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

using Runs = std::vector<std::vector<LayerId>>;

/// conv1, conv2 and their sum, enlarged by conv4 and a DepthToSpace.
Network enlarging() {
    Network network = empty_network(1, 64, 128);
    const TensorId first = append(network, "conv1", 0, {8, square_window(3, 1, 1)});
    const TensorId second = append(network, "conv2", first, {8, square_window(3, 1, 1)});
    const TensorId sum =
        append(network, "add3", {.kind = LayerKind::add, .inputs = {first, second}});
    const TensorId many = append(network, "conv4", sum, {4, square_window(3, 1, 1)});
    append(network, "shuffle5",
           {.kind = LayerKind::depth_to_space, .inputs = {many}, .block = 2});
    return network;
}

TEST(Runs, HoldEverythingBesideALayerOfPictures) {
    EXPECT_EQ(planned_runs(enlarging()), (Runs{{0, 1, 2, 3, 4}}));
}

TEST(Runs, AreChainsElsewhere) {
    const Network resnet = zoo_network("resnet18");
    EXPECT_EQ(planned_runs(resnet), schedulable_chains(resnet));
}

TEST(Runs, EndWhereNoScheduleReaches) {
    Network network = enlarging();
    network.layers[2].inputs = {1, 1};  // a tensor and itself: no joining of two
    EXPECT_EQ(planned_runs(network), (Runs{{3, 4}, {0}, {1}}));
}

TEST(Runs, GroupsAreClosed) {
    const Network network = enlarging();
    EXPECT_TRUE(is_closed(network, {0, 1, 2}));
    EXPECT_FALSE(is_closed(network, {0, 1}));  // add3 reads conv1
    EXPECT_TRUE(is_closed(network, {1, 2}));
}

/// Rows that add3 and conv2 read come in at the rows of add3, the first loop around both.
TEST(Runs, OneGroupByLinesHoldsAll) {
    const auto planned = line_buffer_schedule(enlarging());
    EXPECT_EQ(to_text(std::get<Schedule>(planned)),
              "{conv1: zo yo xo io | zi yi xi ii n m; tile z8 y1 x128 i1; X root/yo; W root/root; "
              "Y root/add3.yo & "
              "conv2: zo yo xo io | zi yi xi ii n m; tile z8 y1 x128 i8; W root/root; "
              "Y root/add3.yo & "
              "add3: zo yo xo io | zi yi xi ii n m; tile z8 y4 x128 i1; Y root/conv4.yo & "
              "conv4: zo yo xo io | zi yi xi ii n m; tile z4 y4 x128 i8; W root/root; "
              "Y root/shuffle5.yo & "
              "shuffle5: zo yo xo io | zi yi xi ii n m; tile z1 y8 x256 i4; Y xi/xi}");
}

TEST(Runs, WithoutJoinsChainsStayApart) {
    LineBufferOptions options;
    options.joins = false;
    const Schedule apart = std::get<Schedule>(line_buffer_schedule(enlarging(), options));
    for (const GroupSchedule& group : apart.groups()) {
        for (const Nest& nest : group.nests) EXPECT_NE(nest.layer, "shuffle5");
    }
    const Schedule whole = with_layers_alone(enlarging(), apart);
    EXPECT_EQ(whole.groups().back().nests.front().layer, "shuffle5");
}

}  // namespace
}  // namespace laminate
