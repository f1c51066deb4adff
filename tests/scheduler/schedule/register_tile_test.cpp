#include "scheduler/schedule/kernels/register_tile.h"

#include <gtest/gtest.h>

namespace laminate {
namespace {

constexpr VectorUnit avx512{16, 24};

LayerProblem conv(int64_t z, int64_t i, int64_t kernel, int64_t extent) {
    LayerProblem p;
    p.extent = {z, extent, extent, i};
    p.inputs = {{-1, "x", i, 0}};
    p.window = {AxisWindow{false, kernel, 1, 1, kernel / 2, extent, extent, {}},
                AxisWindow{false, kernel, 1, 1, kernel / 2, extent, extent, {}}};
    return p;
}

constexpr VectorUnit avx2{8, 12};

TEST(VectorUnit, SumsVectorsAndAValueFitTheRegisters) {
    EXPECT_EQ(avx2.registers(), 16);
    EXPECT_EQ(avx512.registers(), 32);
    // 3 x 4 + 3 + 1 = 16; four vectors by three values would need 17.
    EXPECT_EQ(avx2.sums_per_vector(3), 4);
    EXPECT_EQ(avx2.sums_per_vector(4), 2);
    for (const VectorUnit& unit : {avx2, avx512, VectorUnit{4, 24}}) {
        for (int64_t vectors = 1; vectors <= 4; ++vectors) {
            EXPECT_LE(unit.sums_per_vector(vectors) * vectors + vectors + 1, unit.registers());
            EXPECT_LE(unit.sums_per_vector(vectors) * vectors, unit.accumulators);
        }
    }
}

TEST(RegisterTile, RowsThatFillVectorsBadlyGoByChannels) {
    // 35 columns are five vectors of 8 lanes, the last of them nearly empty; six columns of two
    // vectors of channels waste nothing.
    const RegisterTile tile = register_tile(conv(64, 48, 5, 35), 4, 35, avx2);
    EXPECT_EQ(tile.axis, VectorAxis::z);
    EXPECT_EQ(tile.z, 2);
    EXPECT_EQ(tile.x, 6);
    EXPECT_EQ(register_tile(conv(64, 48, 5, 960), 4, 960, avx2).axis, VectorAxis::x);
}

/// Vectors of columns would take many loads, so vectors of channels pay on long rows, too, but not for so few
/// products that their stores take longer.
TEST(RegisterTile, WideStridesGoByChannels) {
    const auto axis = [](int64_t kernel, int64_t stride) {
        LayerProblem p = conv(64, 1, kernel, 960);
        for (AxisWindow& w : p.window) w.stride = stride;
        return register_tile(p, 4, 960, avx2).axis;
    };
    EXPECT_EQ(axis(4, 4), VectorAxis::z);
    EXPECT_EQ(axis(4, 3), VectorAxis::z);
    EXPECT_EQ(axis(4, 2), VectorAxis::x);
    EXPECT_EQ(axis(2, 4), VectorAxis::x);
}

TEST(RegisterTile, TilesOfChannelsAreWholeBlocksOfTheirWeights) {
    const LayerProblem layer = conv(1024, 1024, 1, 7);
    for (const int64_t channels : {16, 32, 40, 64, 96}) {
        const RegisterTile tile = register_tile(
            layer, 4, 7, avx512, {.channel_blocks = 1, .channels = channels});
        EXPECT_EQ(channels % tile.z, 0) << channels << " channels, z" << tile.z;
        EXPECT_GE(tile.z, 16);
    }
}

TEST(RegisterTile, TilesOfADenseLayerGoByTheBlocksThatDivideThem) {
    const LayerProblem layer = conv(1000, 512, 1, 1);
    for (const int64_t blocks : {16, 32, 48, 200}) {
        const RegisterTile tile =
            register_tile(layer, 1, 1, avx512, {.channel_blocks = blocks, .channels = blocks});
        EXPECT_EQ(tile.axis, blocks % 16 == 0 ? VectorAxis::z : VectorAxis::x) << blocks;
        if (tile.axis == VectorAxis::z) {
            EXPECT_EQ(blocks % (16 * tile.z), 0) << blocks;
        }
    }
}

TEST(RegisterTile, PartialSumsOfAMapAreNotKeptByChannels) {
    // They would be stored and loaded lane by lane; those of a single pixel lie side by side.
    const TileLimits parts{.has_partial_sums = true};
    EXPECT_EQ(register_tile(conv(512, 512, 3, 7), 4, 7, avx512, parts).axis, VectorAxis::x);
    EXPECT_EQ(register_tile(conv(1000, 512, 1, 1), 1, 1, avx512, parts).axis, VectorAxis::z);
}

TEST(RegisterTile, BlocksFitTheLastTileOfChannelsToo) {
    // Twelve channels in tiles of eight: a block of eight would be half empty in the second.
    const RegisterTile tile =
        register_tile(conv(12, 12, 3, 16), 4, 16, avx512, {.channel_blocks = 8, .channels = 8});
    EXPECT_EQ(tile.z, 4);
}

TEST(RegisterTile, NeverNeedsMoreSumsThanThereAreRegisters) {
    for (const VectorUnit& unit : {avx2, avx512}) {
        for (const int64_t z : {1, 3, 4, 12, 56, 64, 1000}) {
            for (const int64_t extent : {1, 5, 7, 14, 16, 31, 224, 960}) {
                for (const int64_t rows : {1, 4, 8}) {
                    const RegisterTile tile =
                        register_tile(conv(z, 8, 3, extent), rows, extent, unit);
                    const int64_t sums = tile.z * tile.y * tile.x;
                    const int64_t loaded = (tile.axis == VectorAxis::x ? tile.x : tile.z) + 1;
                    EXPECT_LE(sums, unit.accumulators)
                        << z << " channels, " << extent << " columns";
                    EXPECT_LE(sums + loaded, unit.registers())
                        << z << " channels, " << extent << " columns";
                    EXPECT_GE(sums, 1);
                    EXPECT_LE(tile.y, std::max<int64_t>(rows, 1));
                }
            }
        }
    }
}

TEST(RegisterTile, OneOutputChannelSharesLoadsAmongRows) {
    // 56 -> 1, 9x9: only several rows per step let a loaded vector serve many sums.
    EXPECT_GE(register_tile(conv(1, 56, 9, 960), 4, 960, avx512).y, 2);
}

TEST(RegisterTile, ChannelsDivideWithoutRest) {
    const RegisterTile tile = register_tile(conv(12, 12, 3, 960), 4, 960, avx512);
    EXPECT_EQ(tile.axis, VectorAxis::x);
    EXPECT_EQ(12 % tile.z, 0);
}

TEST(RegisterTile, AShortEndOfARowTakesHalfAVector) {
    // 56 columns: three vectors and a half; 960: whole vectors; 60: the last vector is more than
    // half full.
    const RegisterTile tile = register_tile(conv(128, 128, 1, 56), 1, 56, avx512);
    EXPECT_EQ(tile.x, 4);
    EXPECT_TRUE(tile.has_half);
    EXPECT_EQ(tile.lanes(2, avx512), 16);
    EXPECT_EQ(tile.lanes(3, avx512), 8);
    EXPECT_FALSE(register_tile(conv(128, 128, 1, 960), 1, 960, avx512).has_half);
    EXPECT_FALSE(register_tile(conv(128, 128, 1, 60), 1, 60, avx512).has_half);
}

TEST(RegisterTile, SmallMapsAndDenseLayersUseVectorsOfChannels) {
    EXPECT_EQ(register_tile(conv(1000, 512, 1, 1), 1, 1, avx512).axis, VectorAxis::z);
    EXPECT_EQ(register_tile(conv(512, 512, 3, 7), 4, 7, avx512).axis, VectorAxis::z);
    // 17 of 24 lanes at best along columns; along channels all, with 9 and 8 columns at a time.
    const RegisterTile tile = register_tile(conv(192, 192, 7, 17), 4, 17, avx512);
    EXPECT_EQ(tile.axis, VectorAxis::z);
    EXPECT_EQ(tile.x, 9);
    EXPECT_EQ(tile.z, 2);
    EXPECT_EQ(register_tile(conv(512, 512, 3, 31), 4, 31, avx512).axis, VectorAxis::x);
    EXPECT_EQ(register_tile(conv(3, 512, 3, 17), 4, 17, avx512).axis, VectorAxis::x);
}

}  // namespace
}  // namespace laminate
