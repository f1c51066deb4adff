#include "papers/spatial_fusion/tiles.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "papers/spatial_fusion/volume.h"
#include "tests/papers/spatial_fusion/pixel_walker.h"

namespace laminate::spatial_fusion {
namespace {

Stack two_of_three_by_three() {
    const Network network =
        chain(1, 12, 12, {{1, square_window(3, 1, 1)}, {1, square_window(3, 1, 1)}});
    return layer_problems(network, all_layers(network));
}

std::vector<int64_t> sizes(const std::vector<Range>& ranges) {
    std::vector<int64_t> result;
    for (const Range& range : ranges) result.push_back(range.size());
    return result;
}

TEST(Tiles, SpansGrowFromTheBottomUp) {
    // Eq. 4: (4 - 1) 1 + 3 = 6 rows of the second layer's input, and (6 - 1) 1 + 3 = 8 of the
    // first's.
    EXPECT_EQ(tile_spans(two_of_three_by_three(), 0, 4), (std::vector<int64_t>{8, 6}));
}

TEST(Tiles, NewInputsOfThreeTiles) {
    const Stack stack = two_of_three_by_three();
    // Rows 0..4 of the second layer's input for the first four of its output, then four at a time,
    // then the rest of 12. One layer further up, the walk is one row ahead.
    const auto inputs = new_inputs(stack, 0, 4);
    EXPECT_EQ(sizes(inputs[1]), (std::vector<int64_t>{5, 4, 3}));
    EXPECT_EQ(sizes(inputs[0]), (std::vector<int64_t>{6, 4, 2}));
    const auto classes = tile_classes(stack, 0, 4);
    EXPECT_EQ(classes[0].first, 6);
    EXPECT_EQ(classes[0].middle, 4);
    EXPECT_EQ(classes[0].last, 2);
}

TEST(Tiles, StrideAboveKernelLeavesGapsOut) {
    // 1x1 with stride 2 on 9 rows: tiles of one row read rows 0, 2, 4, 6, 8 only; a single tile
    // reads 0 to 8 with the gaps.
    const Network network = chain(1, 9, 9, {{1, square_window(1, 2)}});
    const Stack stack = layer_problems(network, all_layers(network));
    EXPECT_EQ(sizes(new_inputs(stack, 0, 1).front()), (std::vector<int64_t>{1, 1, 1, 1, 1}));
    EXPECT_EQ(sizes(new_inputs(stack, 0, 5).front()), (std::vector<int64_t>{9}));
}

TEST(Tiles, OverhangThatEmptiesTheLastTileIsRefusedByName) {
    // Three layers of 3x3: X1 = T + 3, X3 = T - 3.
    const Network network = chain(
        1, 12, 12,
        {{1, square_window(3, 1, 1)}, {1, square_window(3, 1, 1)}, {1, square_window(3, 1, 1)}});
    const Stack stack = layer_problems(network, all_layers(network));
    EXPECT_EQ(tile_classes(stack, 0, 3).front().last, 0);
    try {
        (void)tile_classes(stack, 1, 2);
        FAIL() << "expected InputError";
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     "conv1: tiles of 2 columns leave -1 new ones for the last tile, expected 0 or "
                     "more for three "
                     "classes of tiles");
    }
    EXPECT_EQ(sizes(new_inputs(stack, 1, 2).front()),
              (std::vector<int64_t>{5, 2, 2, 2, 1, 0}));  // a fourth size, and an empty tile
}

TEST(Tiles, RandomStacksAgreeWithTheWalk) {
    Rng rng(7);
    for (int n = 0; n < 400; ++n) {
        const Stack stack = random_stack(rng);
        const int64_t tile_y = rng.between(1, stack.back()[Dim::y]);
        const int64_t tile_x = rng.between(1, stack.back()[Dim::x]);
        const PixelWalk walk = walk_pixels(stack, tile_y, tile_x);
        EXPECT_EQ(walk.recomputed, 0);
        const auto rows = new_inputs(stack, 0, tile_y);
        const auto columns = new_inputs(stack, 1, tile_x);
        const std::vector<int64_t> kept = kept_inputs(stack, tile_y, tile_x);
        for (size_t l = 0; l < stack.size(); ++l) {
            size_t tile = 0;
            for (const Range& y : rows[l])
                for (const Range& x : columns[l])
                    ASSERT_EQ(y.size() * x.size(), walk.new_pixels[l][tile++])
                        << "stack " << n << ", layer " << l;
            ASSERT_EQ(kept[l], walk.most_kept[l] * stack[l].inputs.front().channels)
                << "stack " << n << ", layer " << l;
        }
    }
}

TEST(Tiles, ClassesAreTheWalkWhereTheyExistAndNowhereElse) {
    Rng rng(8);
    int refused = 0;
    for (int n = 0; n < 3000; ++n) {
        const Stack stack = random_stack(rng);
        const int64_t tile = rng.between(1, stack.back()[Dim::y]);
        const auto inputs = new_inputs(stack, 0, tile);
        // The tiles of each layer's input that three classes describe.
        const auto agrees = [&](const std::vector<TileClasses>& classes) {
            for (size_t l = 0; l < stack.size(); ++l) {
                const auto tiles = static_cast<int64_t>(inputs[l].size());
                for (int64_t j = 0; j < tiles; ++j) {
                    const TileClasses& c = classes[l];
                    const int64_t size = j == 0 ? c.first : j + 1 == tiles ? c.last : c.middle;
                    if (size != inputs[l][static_cast<size_t>(j)].size()) return false;
                }
            }
            return true;
        };
        try {
            EXPECT_TRUE(agrees(tile_classes(stack, 0, tile))) << "stack " << n << ", tile " << tile;
        } catch (const InputError&) {
            ++refused;
            // Some layer has tiles of more than three sizes, or first and last ones of other
            // extents than the middle formula: the last tile or one before is cut.
            bool uneven = false;
            for (size_t l = 0; l < stack.size(); ++l) {
                const auto all = sizes(inputs[l]);
                for (size_t j = 2; j + 1 < all.size(); ++j) uneven |= all[j] != all[1];
                uneven |= all.back() == 0;
            }
            EXPECT_TRUE(uneven) << "stack " << n << ", tile " << tile;
        }
    }
    EXPECT_GT(refused, 100);
}

TEST(Tiles, Equation4And8AreEnough) {
    Rng rng(9);
    for (int n = 0; n < 1000; ++n) {
        const Stack stack = random_stack(rng);
        const Tile tile{rng.between(1, stack.back()[Dim::x]), rng.between(1, stack.back()[Dim::y]),
                        1, 1};
        const StackFootprint paper = stack_footprint(stack, tile, ReuseModel::own);
        const StackFootprint alwani = stack_footprint(stack, tile, ReuseModel::alwani);
        EXPECT_LE(exact_stack_footprint(stack, tile).inputs, paper.inputs + paper.reuse)
            << "stack " << n;
        EXPECT_LE(paper.reuse, alwani.reuse);
    }
}

}  // namespace
}  // namespace laminate::spatial_fusion
