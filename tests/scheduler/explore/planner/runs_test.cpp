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

/// conv1, a map of constants or of conv2, their Concat or sum, and conv4.
Network joining(LayerKind join, bool is_constant) {
    Network network = empty_network(1, 64, 128);
    const int64_t channels = join == LayerKind::concat ? 2 : 8;
    const TensorId x = append(network, "conv1", 0, {8, square_window(3, 1, 1)});
    const Constant ones{{1, channels, 64, 128},
                        std::vector<float>(static_cast<size_t>(channels * 64 * 128), 1.0F)};
    const TensorId other =
        is_constant ? append(network, "map2",
                             {.kind = LayerKind::general,
                              .weights = std::make_shared<const Constant>(ones),
                              .general = {.kind = GeneralKind::constant}})
                    : append(network, "conv2", 0, {channels, square_window(3, 1, 1)});
    const TensorId both = append(network, "join3", {.kind = join, .inputs = {x, other}});
    append(network, "conv4", both, {4, square_window(3, 1, 1)});
    return network;
}

TEST(Runs, HoldAConcatOrSumWithConstantsAndNoOther) {
    for (const LayerKind join : {LayerKind::concat, LayerKind::add}) {
        EXPECT_EQ(planned_runs(joining(join, true)), (Runs{{0, 2, 3}}));
        EXPECT_EQ(planned_runs(joining(join, false)), (Runs{{0}, {1}, {3}}));
    }
}

TEST(Runs, KnowTheLastReaderOfEachOutput) {
    const Network network = enlarging();
    const Readers readers = all_readers(network);
    // conv1 is read by conv2 and add3, and what shuffle5 makes is the network's output.
    EXPECT_EQ(last_readers(network, readers, {0, 1, 2, 3, 4}),
              (std::vector<size_t>{2, 2, 3, 4, 5}));
    // add3 reads conv1 from outside, conv4 reads add3.
    EXPECT_EQ(last_readers(network, readers, {0, 1}), (std::vector<size_t>{2, 2}));
    EXPECT_EQ(last_readers(network, readers, {1, 2}), (std::vector<size_t>{1, 2}));
}

TEST(Runs, WhereOneLayerWithoutWeightsDoesNotFitChainsArePlanned) {
    Network network = enlarging();
    LineBufferOptions options;
    options.joins = false;
    // The least budget for the convolutions, whose rows are half as wide as those of shuffle5.
    int64_t bytes = 1024;
    const auto fits = [&](bool joins) {
        options.joins = joins;
        options.memory = Bytes(bytes);
        return std::holds_alternative<Schedule>(line_buffer_schedule(network, options));
    };
    while (!fits(false)) bytes += 1024;
    EXPECT_TRUE(fits(true)) << bytes;
}

/// Global means lie between groups, and the products with what is made of them within.
TEST(Runs, AreDividedByGlobalMeans) {
    Network network = empty_network(1, 64, 128);
    const TensorId x = append(network, "conv1", 0, {8, square_window(3, 1, 1)});
    const TensorId mean =
        append(network, "mean2", {.kind = LayerKind::global_average_pool, .inputs = {x}});
    const TensorId factors = append(network, "conv3", mean, {8, square_window(1, 1, 0)});
    const TensorId excited = append(
        network, "product4",
        {.kind = LayerKind::general,
         .inputs = {x, factors},
         .general = {.kind = GeneralKind::binary, .function = GeneralFunction::multiply}});
    append(network, "conv5", excited, {8, square_window(3, 1, 1)});
    EXPECT_EQ(planned_runs(network), (Runs{{2, 3, 4}, {0}}));
    const auto planned = line_buffer_schedule(network);
    const Schedule& schedule = std::get<Schedule>(planned);
    const std::vector<Nest>& nests = schedule.groups().back().nests;
    ASSERT_GE(nests.size(), 2U);
    EXPECT_EQ(nests[nests.size() - 2].layer, "product4");
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
    EXPECT_EQ(whole.groups().back().nests.front().strip[0], 0);
    const Schedule shared = with_layers_alone(enlarging(), apart, 2);
    const Nest& last = shared.groups().back().nests.front();
    EXPECT_EQ(last.layer, "shuffle5");
    EXPECT_EQ(last.strip[0], 32) << to_text(shared);  // two strips for each thread
}

/// Threads share the channels of whole maps where a kernel has them.
TEST(Runs, AdditionsAloneNeedNoStrips) {
    Network network = empty_network(1, 64, 128);
    const TensorId x = append(network, "conv1", 0, {8, square_window(3, 1, 1)});
    const TensorId y = append(network, "conv2", 0, {8, square_window(3, 1, 1)});
    append(network, "add3", {.kind = LayerKind::add, .inputs = {x, y}});
    const Schedule whole = with_layers_alone(network, layer_by_layer_schedule(network, 2), 2);
    const Nest& last = whole.groups().back().nests.front();
    EXPECT_EQ(last.layer, "add3");
    EXPECT_EQ(last.strip[0], 0);
}

}  // namespace
}  // namespace laminate
