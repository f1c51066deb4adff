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

}  // namespace
}  // namespace laminate
