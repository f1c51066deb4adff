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
    EXPECT_EQ(repetitions_of(op), (std::array<int64_t, 2>{2, 1}));
}

TEST(PictureViews, OtherResamplingsAreNoRepetitions) {
    GeneralOperator uneven = repeated({1, 1, 2, 2}, {2, 2});
    uneven.sources[2] = 1;  // rows 1 0 1 1
    EXPECT_EQ(repetitions_of(uneven), std::nullopt);
    GeneralOperator weighted = repeated({1, 1, 2, 2}, {2, 2});
    weighted.factors.assign(weighted.sources.size(), 0.5F);
    EXPECT_EQ(repetitions_of(weighted), std::nullopt);
    GeneralOperator padded = repeated({1, 1, 1, 2}, {3, 1});
    padded.sources[3] = -1;
    EXPECT_EQ(repetitions_of(padded), std::nullopt);
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

TEST(OfAnotherSize, PartsOfChannelsAndRepetitionsFollowTheirMap) {
    const std::vector<int64_t> map{1, 6, 4, 5}, other{2, 6, 7, 3};
    EXPECT_EQ(of_another_size(part_of(map, {2, 0, 0}, {3, 4, 5}), map, other),
              part_of(other, {2, 0, 0}, {3, 7, 3}));
    EXPECT_EQ(of_another_size(repeated(map, {2, 3}), map, other), repeated(other, {2, 3}));
    // How many rows a cut or padded map has of another size, nothing says.
    const GeneralOperator cut = part_of(map, {0, 1, 0}, {6, 3, 5});
    EXPECT_EQ(of_another_size(cut, map, other), cut);
    const GeneralOperator reflected =
        padded(map, {.mode = Padding::Mode::reflect, .begin = {1, 1}, .end = {1, 1}});
    EXPECT_EQ(of_another_size(reflected, map, other), reflected);
}

}  // namespace
}  // namespace laminate
