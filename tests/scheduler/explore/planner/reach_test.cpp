// The reach of networks, worked out by hand.
#include "scheduler/explore/planner/reach.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "nets/network/picture_views.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

constexpr ReachOptions direct{.winograd = false};

LayerSpec conv(int64_t channels, const Window& window) {
    return {channels, window, 1, LayerKind::conv};
}
LayerSpec transposed(int64_t channels, const Window& window) {
    return {channels, window, 1, LayerKind::conv_transpose};
}

TEST(Reach, ConvolutionsAddTheirPadding) {
    // 5x5 reads 2 on either side, 3x3 one: 3 in all.
    const Network network =
        chain(1, 40, 50, {conv(4, square_window(5, 1, 2)), conv(4, square_window(3, 1, 1))});
    const Reach reach = reach_of(network, direct);
    EXPECT_EQ(reach.y, (AxisReach{1, 1, 3, 3}));
    EXPECT_EQ(reach.x, reach.y);
}

TEST(Reach, FunctionsOfOneElementAddNothing) {
    Network network = chain(1, 40, 50, {conv(4, square_window(5, 1, 2))});
    const TensorId before = network.outputs[0];
    network.outputs[0] = static_cast<TensorId>(network.tensors.size());
    network.tensors.push_back({"floor", network.tensor(before).dims});
    Layer floor{.name = "floor",
                .kind = LayerKind::general,
                .inputs = {before},
                .output = network.outputs[0]};
    floor.general = {.kind = GeneralKind::unary, .function = GeneralFunction::floor};
    network.layers.push_back(floor);
    EXPECT_EQ(reach_of(network, direct).y, (AxisReach{1, 1, 2, 2}));
    network.layers.back().general = {.kind = GeneralKind::reduce, .function = GeneralFunction::add};
    EXPECT_THROW((void)reach_of(network, direct), InputError);
}

/// The second map of a Concat along rows is padded by as many rows as the first one has.
TEST(Reach, MapsBelowOthersHaveNone) {
    for (const int64_t rows : {3, 40}) {
        Network network = chain(1, 40, 50, {conv(4, square_window(5, 1, 2))});
        Padding padding;
        padding.begin = {rows, 0};
        append(network, "place",
               {.kind = LayerKind::general,
                .inputs = {network.outputs[0]},
                .general = padded({1, 4, 40, 50}, padding)});
        if (rows == 3) {
            EXPECT_EQ(reach_of(network, direct).y.output_step, 1);
        } else {
            EXPECT_THROW((void)reach_of(network, direct), InputError);
        }
    }
}

TEST(Reach, WithoutPaddingAWindowBeginsAtItsOutput) {
    // Output k reads inputs k .. k + 4.
    const Network network =
        chain(1, 40, 50, {conv(4, square_window(3)), conv(4, square_window(3))});
    EXPECT_EQ(reach_of(network, direct).y, (AxisReach{1, 1, 0, 4}));
}

TEST(Reach, StridesMakeStepsAndTransposedWindowsUndoThem) {
    // Stride 2, 3 and then up by 2: 6 inputs move the output by 2.
    const Network network = chain(1, 72, 72,
                                  {conv(2, square_window(3, 2, 1)), conv(2, square_window(3, 3, 1)),
                                   transposed(1, square_window(4, 2, 1))});
    const Reach reach = reach_of(network, direct);
    EXPECT_EQ(reach.y.input_step, 6);
    EXPECT_EQ(reach.y.output_step, 2);
    // Outputs 2k, 2k + 1 of the transposed window (kernel 4, padding 1) read k - 1 .. k + 1; those
    // read rows 3(k-1) - 1 .. 3(k+1) + 1 of the first layer, those 6k - 9 .. 6k + 9. Before 6k lie
    // 9, in whole steps 12; from 6(k + 1) on lie 4 (up to 6k + 9), in whole steps 6.
    EXPECT_EQ(reach.y.before, 12);
    EXPECT_EQ(reach.y.after, 6);
}

TEST(Reach, DepthToSpaceMultipliesTheOutput) {
    Network network = chain(1, 20, 30, {conv(9, square_window(3, 1, 1))});
    append(network, "shuffle",
           {.kind = LayerKind::depth_to_space, .inputs = {network.outputs[0]}, .block = 3});
    EXPECT_EQ(reach_of(network, direct).x, (AxisReach{1, 3, 1, 1}));
}

TEST(Reach, ResamplingsMoveByTheirPeriod) {
    const auto of = [](const GeneralOperator& op) {
        Network network = chain(1, 20, 30, {conv(2, square_window(1))});
        append(network, "moved",
               {.kind = LayerKind::general, .inputs = {network.outputs[0]}, .general = op});
        return reach_of(network, direct).y;
    };
    const std::vector<int64_t> map{1, 2, 20, 30};
    // Two rows above and three below: output k reads k - 2.
    EXPECT_EQ(of(padded(map, {Padding::Mode::reflect, {2, 0}, {3, 0}})), (AxisReach{1, 1, 2, 0}));
    EXPECT_EQ(of(part_of(map, {0, 3, 0}, {2, 15, 30})), (AxisReach{1, 1, 0, 3}));
    // Outputs 2k and 2k + 1 read k - 1 to k + 1.
    EXPECT_EQ(of(interpolated(map, {40, 30})), (AxisReach{1, 2, 1, 1}));
    // Outputs 3k to 3k + 2 lie at 2k - 1/6, 2k + 1/2 and 2k + 7/6, and read 2k - 1 to 2k + 2.
    EXPECT_EQ(of(interpolated(map, {30, 30})), (AxisReach{2, 3, 2, 2}));
    EXPECT_THROW((void)of(interpolated(map, {23, 30})), InputError);
}

TEST(Reach, WinogradsPairsWantRowsByFour) {
    const Network network =
        chain(16, 40, 64, {conv(16, square_window(3, 1, 1)), conv(16, square_window(3, 1, 1))});
    EXPECT_TRUE(has_winograd_layers(network));
    const Reach reach = reach_of(network);
    EXPECT_EQ(reach.x, (AxisReach{1, 1, 2, 2}));
    // A pair may reach a row further than needed, twice, and each row reads one more: 4 below, and
    // 8 if the last step ends early. Above it is the same, and as much again because the first step
    // may be longer.
    EXPECT_EQ(reach.y, (AxisReach{4, 4, 4 + 4 + 8, 4 + 8}));
    EXPECT_EQ(reach_of(network, direct).y, (AxisReach{1, 1, 2, 2}));
    EXPECT_FALSE(has_winograd_layers(chain(1, 40, 64, {conv(4, square_window(3, 1, 1))})));
}

TEST(Reach, ANetworkThatReadsTheWholePictureIsRefusedByName) {
    Network network = chain(1, 20, 30, {conv(4, square_window(3, 1, 1))});
    append(network, "pool",
           {.kind = LayerKind::global_average_pool, .inputs = {network.outputs[0]}});
    try {
        (void)reach_of(network);
        FAIL() << "not refused";
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     "chain: cannot run in windows: layer pool: global_average_pool reads the "
                     "whole picture");
    }
}

TEST(Reach, BranchesOfDifferentRatesAreRefused) {
    // 5 rows by stride 2 with padding are 3, and so are 5 by an unpadded 3x3: equal by chance, at
    // this size only.
    Network network = empty_network(1, 5, 5);
    const TensorId a = append(network, "halved", 0, conv(2, square_window(3, 2, 1)));
    const TensorId b = append(network, "cut", 0, conv(2, square_window(3)));
    append(network, "sum", {.kind = LayerKind::add, .inputs = {a, b}});
    EXPECT_THROW((void)reach_of(network), InputError);
}

TEST(Reach, ALargerPictureMovesTheOutputByItsSteps) {
    const auto network = [](int64_t rows) {
        return chain(1, rows, 30, {conv(2, square_window(3, 2, 1))});
    };
    const Reach reach = reach_of(network(21), direct);
    EXPECT_NO_THROW(check_moves_alike(network(21), network(21 + 2 * 5), reach));
    // A kernel that changes with the size is no longer the same network.
    EXPECT_THROW(
        check_moves_alike(network(21), chain(1, 31, 30, {conv(2, square_window(5, 2, 2))}), reach),
        InputError);
}

}  // namespace
}  // namespace laminate
