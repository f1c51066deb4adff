#include "nets/network/picture_views.h"

#include <gtest/gtest.h>

namespace laminate {
namespace {

using MapDims = std::vector<int64_t>;
using Corner = std::array<int64_t, 3>;

TEST(PictureViews, APartIsRecognised) {
    const MapDims map{2, 6, 5, 7};
    const GeneralOperator op = part_of(map, {3, 1, 2}, {2, 4, 1});
    EXPECT_EQ(op.dims, (MapDims{2, 2, 4, 1}));
    EXPECT_EQ(op.first, 3 * 35 + 1 * 7 + 2);
    EXPECT_EQ(op.steps, (MapDims{210, 35, 7, 0}));
    EXPECT_EQ(first_of_part(op, map), (Corner{3, 1, 2}));
}

TEST(PictureViews, OtherViewsAreNoParts) {
    const MapDims map{1, 6, 5, 7};
    GeneralOperator every_second = part_of(map, {0, 0, 0}, {3, 5, 7});
    every_second.steps[1] *= 2;
    EXPECT_EQ(first_of_part(every_second, map), std::nullopt);
    GeneralOperator turned = part_of(map, {0, 0, 6}, {6, 5, 7});
    turned.steps[3] = -1;
    EXPECT_EQ(first_of_part(turned, map), std::nullopt);
    EXPECT_EQ(first_of_part({.kind = GeneralKind::reshape, .dims = map}, map), std::nullopt);
    EXPECT_EQ(first_of_part(part_of({6, 5, 7, 1}, {0, 0, 0}, {5, 7, 1}), {6, 35}), std::nullopt);
}

TEST(PictureViews, RepetitionsAreRecognised) {
    const GeneralOperator op = repeated({1, 2, 2, 3}, {2, 1});
    EXPECT_EQ(op.dims, (MapDims{1, 2, 4, 3}));
    EXPECT_EQ(op.sources, (MapDims{0, 0, 1, 0, 0, 1, 1, 0, 1, 2}));
    EXPECT_EQ(repetitions_of(op, {1, 2, 2, 3}), (std::array<int64_t, 2>{2, 1}));
}

TEST(PictureViews, OtherResamplingsAreNoRepetitions) {
    GeneralOperator uneven = repeated({1, 1, 2, 2}, {2, 2});
    uneven.sources[2] = 1;  // rows 1 0 1 1
    EXPECT_EQ(repetitions_of(uneven, {1, 1, 2, 2}), std::nullopt);
    GeneralOperator weighted = repeated({1, 1, 2, 2}, {2, 2});
    weighted.factors.assign(weighted.sources.size(), 0.5F);
    EXPECT_EQ(repetitions_of(weighted, {1, 1, 2, 2}), std::nullopt);
    GeneralOperator padded = repeated({1, 1, 1, 2}, {3, 1});
    padded.sources[3] = -1;
    EXPECT_EQ(repetitions_of(padded, {1, 1, 1, 2}), std::nullopt);
    const GeneralOperator first_image = repeated({1, 2, 2, 3}, {1, 1});
    EXPECT_EQ(repetitions_of(first_image, {3, 2, 2, 3}), std::nullopt);
    EXPECT_EQ(repetitions_of(first_image, {1, 4, 2, 3}), std::nullopt);
}

TEST(PictureViews, PaddingIsRecognised) {
    const MapDims map{2, 3, 4, 5};
    for (const Padding& padding : {Padding{Padding::Mode::constant, {1, 0}, {0, 3}, -2},
                                   Padding{Padding::Mode::edge, {2, 1}, {1, 1}},
                                   Padding{Padding::Mode::reflect, {3, 1}, {0, 4}}}) {
        const GeneralOperator op = padded(map, padding);
        EXPECT_EQ(padding_of(op, map), padding);
        EXPECT_TRUE(samples_pixels(op, map));
    }
    const GeneralOperator reflected = padded({1, 1, 3, 1}, {Padding::Mode::reflect, {2, 0}, {1, 0}});
    EXPECT_EQ(MapDims(reflected.sources.begin() + 2, reflected.sources.end()),
              (MapDims{2, 1, 0, 1, 2, 1, 0}));
    EXPECT_EQ(padding_of(interpolated(map, {8, 5}), map), std::nullopt);
}

TEST(PictureViews, OutputsOutsideLieBeforeAndBehindTheOthers) {
    const MapDims map{1, 1, 4, 4};
    GeneralOperator op = padded(map, {Padding::Mode::constant, {1, 0}, {2, 0}});
    EXPECT_EQ(inside_of(sampled_axis(op, 2)), (Range{1, 5}));
    EXPECT_EQ(inside_of(sampled_axis(op, 3)), (Range{0, 4}));
    op.sources[2 + 2] = -1;  // row 2, amid those inside
    EXPECT_FALSE(samples_pixels(op, map));
}

TEST(PictureViews, InterpolationReadsBothNeighbours) {
    const GeneralOperator op = interpolated({1, 1, 2, 2}, {4, 1});
    EXPECT_EQ(op.tap_counts, (MapDims{1, 1, 2, 2}));
    EXPECT_EQ(op.sources, (MapDims{0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1}));
    EXPECT_EQ(op.factors, (std::vector<float>{1, 1, 0.25F, 0.75F, 0.75F, 0.25F, 0.25F, 0.75F, 0.75F,
                                              0.25F, 0.5F, 0.5F}));
}

TEST(PictureViews, RowsOfAResamplingAreItsOwnRows) {
    const GeneralOperator op = interpolated({1, 1, 4, 2}, {8, 2});
    const GeneralOperator rows = sampled_rows(op, 1, {3, 5});
    EXPECT_EQ(rows.dims, (MapDims{1, 1, 2, 2}));
    EXPECT_EQ(rows.sources, (MapDims{0, 0, 0, 1, 0, 1, 0, 1}));
    EXPECT_EQ(sampled_rows(interpolated({3, 1, 4, 2}, {8, 2}), 1, {3, 5}), rows);
}

TEST(PeriodicAxis, IsWhatOutputsRepeat) {
    const MapDims map{1, 1, 6, 6};
    const auto of = [&](const GeneralOperator& op) {
        return periodic_axis(sampled_axis(op, 2), map[2]);
    };
    const auto reflected = of(padded(map, {Padding::Mode::reflect, {2, 0}, {1, 0}}));
    ASSERT_TRUE(reflected);
    EXPECT_EQ(reflected->border, Padding::Mode::reflect);
    EXPECT_EQ(reflected->bases, (std::vector<MapDims>{{-2}}));
    EXPECT_EQ(reflected->more, 3);
    const auto twice = of(interpolated(map, {12, 6}));
    ASSERT_TRUE(twice);
    EXPECT_EQ(twice->period, 2);
    EXPECT_EQ(twice->advance, 1);
    EXPECT_EQ(twice->bases, (std::vector<MapDims>{{-1, 0}, {0, 1}}));
    EXPECT_EQ(twice->factors, (std::vector<std::vector<float>>{{0.25F, 0.75F}, {0.75F, 0.25F}}));
    // 11 rows of 6: no two outputs lie alike between theirs.
    EXPECT_FALSE(of(interpolated(map, {11, 6})));
}

TEST(OfAnotherSize, OperatorsFollowTheirMap) {
    const std::vector<int64_t> map{1, 6, 8, 10}, other{2, 6, 14, 6};
    EXPECT_EQ(of_another_size(part_of(map, {2, 0, 0}, {3, 8, 10}), map, other),
              part_of(other, {2, 0, 0}, {3, 14, 6}));
    EXPECT_EQ(of_another_size(part_of(map, {0, 1, 2}, {6, 6, 5}), map, other),
              part_of(other, {0, 1, 2}, {6, 12, 1}));
    EXPECT_EQ(of_another_size(repeated(map, {2, 3}), map, other), repeated(other, {2, 3}));
    for (const auto mode :
         {Padding::Mode::constant, Padding::Mode::edge, Padding::Mode::reflect}) {
        const Padding padding{mode, {1, 2}, {3, 0}, 0.5F};
        EXPECT_EQ(of_another_size(padded(map, padding), map, other), padded(other, padding));
    }
    EXPECT_EQ(of_another_size(interpolated(map, {16, 15}), map, other),
              interpolated(other, {28, 9}));
    EXPECT_EQ(of_another_size(interpolated(map, {4, 20}), map, other),
              interpolated(other, {7, 12}));
}

TEST(OfAnotherSize, OthersStayAsTheyAre) {
    const std::vector<int64_t> map{1, 6, 8, 10}, small{1, 6, 2, 2};
    const GeneralOperator uneven = interpolated(map, {11, 13});
    EXPECT_EQ(of_another_size(uneven, map, small), uneven);
    // Too small to be cut so, or to have what is reflected.
    const GeneralOperator cut = part_of(map, {0, 1, 0}, {6, 5, 10});
    EXPECT_EQ(of_another_size(cut, map, small), cut);
    const GeneralOperator reflected =
        padded(map, {.mode = Padding::Mode::reflect, .begin = {2, 1}, .end = {1, 1}});
    EXPECT_EQ(of_another_size(reflected, map, small), reflected);
}

}  // namespace
}  // namespace laminate
