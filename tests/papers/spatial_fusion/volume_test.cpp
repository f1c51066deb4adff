#include "papers/spatial_fusion/volume.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/papers/spatial_fusion/pixel_walker.h"

namespace laminate::spatial_fusion {
namespace {

/// 2 -> 3 maps of 8 x 8, 3x3, padded by 1.
LayerProblem one_layer() {
    const Network network = chain(2, 8, 8, {{3, square_window(3, 1, 1)}});
    return layer_problem(network, 0);
}

TEST(SingleLayerVolume, AsPrintedTilesFetchPaddingAndAllWeights) {
    const LayerProblem layer = one_layer();
    // Two tiles of 4 rows: (4 + 2) x (8 + 2) x 2 inputs and 9 x 2 x 3 weights each; 8 x 8 x 3
    // outputs.
    EXPECT_EQ(single_layer_volume(layer, {8, 4, 3, 2}, Reading::paper),
              2 * (6 * 10 * 2 + 54) + 192);
    // Exact: rows 0..4 and 3..7 of real pixels, weights once.
    EXPECT_EQ(single_layer_volume(layer, {8, 4, 3, 2}, Reading::exact), (5 + 5) * 8 * 2 + 54 + 192);
    // One output channel at a time: the weights come again for the second tile, inputs stay.
    EXPECT_EQ(single_layer_volume(layer, {8, 4, 1, 2}, Reading::exact),
              (5 + 5) * 8 * 2 + 2 * 54 + 192);
    // One input channel at a time: inputs come again for each of three output channels.
    EXPECT_EQ(single_layer_volume(layer, {8, 4, 1, 1}, Reading::exact),
              3 * (5 + 5) * 8 * 2 + 2 * 54 + 192);
}

TEST(SingleLayerFootprint, Equation1) {
    EXPECT_EQ(single_layer_footprint(one_layer(), {8, 4, 3, 2}),
              6 * 10 * 2 + 4 * 8 * 3 + 9 * 2 * 3);
    EXPECT_EQ(single_layer_footprint(one_layer(), {1, 1, 1, 1}), 9 + 1 + 9);
}

TEST(StackFootprint, Equation5And8) {
    const Network network =
        chain(2, 8, 8, {{3, square_window(3, 1, 1)}, {5, square_window(3, 1, 1)}});
    const Stack stack = layer_problems(network, all_layers(network));
    const StackFootprint own = stack_footprint(stack, {2, 2, 1, 2}, ReuseModel::own);
    EXPECT_EQ(own.inputs, 6 * 6 * 2 + 4 * 4 * 3);
    EXPECT_EQ(own.reuse,
              (10 - 6) * 2 * 2 +
                  (10 - 4) * 2 * 3);  // 8 + 2 columns with their padding, less the tile's, two rows
    EXPECT_EQ(own.weights, 9 * 2 * 3 + 9 * 3 * 1);
    EXPECT_EQ(own.output, 2 * 2 * 1);
    const StackFootprint alwani = stack_footprint(stack, {2, 2, 1, 2}, ReuseModel::alwani);
    EXPECT_EQ(alwani.reuse, own.reuse + (6 - 2) * 2 * 2 + (4 - 2) * 2 * 3);
}

TEST(StackVolume, Equation6AndWhatMustMove) {
    const Network network =
        chain(2, 8, 8, {{3, square_window(3, 1, 1)}, {5, square_window(3, 1, 1)}});
    const Stack stack = layer_problems(network, all_layers(network));
    const int64_t weights = 9 * 2 * 3 + 9 * 3 * 5;
    EXPECT_EQ(stack_volume(stack, {4, 4, 5, 2}, Reading::paper),
              4 * 8 * 8 * 2 + weights + 8 * 8 * 5);
    EXPECT_EQ(stack_volume(stack, {4, 4, 5, 2}, Reading::exact), 8 * 8 * 2 + weights + 8 * 8 * 5);
    EXPECT_EQ(stack_volume(stack, {3, 3, 5, 2}, Reading::exact),
              8 * 8 * 2 + weights + 8 * 8 * 5);  // whatever the tile
    // One channel of the bottom layer at a time: its weights come for each of four tiles.
    EXPECT_EQ(stack_volume(stack, {4, 4, 1, 2}, Reading::exact),
              8 * 8 * 2 + weights + 3 * 9 * 3 * 5 + 8 * 8 * 5);
}

TEST(StackOperations, AsManyAsLayerByLayerOrFewerWhereNobodyReads) {
    Rng rng(5);
    int less = 0;
    for (int n = 0; n < 300; ++n) {
        const Stack stack = random_stack(rng);
        const Tile tile{rng.between(1, stack.back()[Dim::x]), rng.between(1, stack.back()[Dim::y]),
                        1, 1};
        const PixelWalk walk = walk_pixels(stack, tile.y, tile.x);
        int64_t walked = 0;
        int64_t apart = 0;
        for (size_t l = 0; l < stack.size(); ++l) {
            const int64_t pixels = l + 1 < stack.size()
                                       ? std::accumulate(walk.new_pixels[l + 1].begin(),
                                                         walk.new_pixels[l + 1].end(), int64_t{0})
                                       : stack[l][Dim::y] * stack[l][Dim::x];
            walked += pixels * stack[l][Dim::z] * stack[l][Dim::i] * stack[l].y().kernel *
                      stack[l].x().kernel;
            apart += operations(stack[l]);
        }
        ASSERT_EQ(stack_operations(stack, tile), walked) << "stack " << n;
        ASSERT_LE(walked, apart);
        less += walked < apart ? 1 : 0;
    }
    EXPECT_GT(less, 0);    // strides that leave the last row unread
    EXPECT_LT(less, 150);  // otherwise as in Eq. 13
}

}  // namespace
}  // namespace laminate::spatial_fusion
