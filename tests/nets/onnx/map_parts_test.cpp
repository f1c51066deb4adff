// Slices with steps and Pads of channels: shuffles, parts, resamplings and Concats.
#include "nets/onnx/map_parts.h"

#include <gtest/gtest.h>

#include "nets/network/picture_views.h"
#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::ModelBuilder;
using Values = std::vector<float>;

/// A Slice along one axis of x, whose elements are 0, 1, 2, ...
struct Sliced {
    Network network;
    Values result;
};
Sliced sliced(const std::vector<int64_t>& dims, int64_t axis, int64_t begin, int64_t end,
              int64_t step) {
    ModelBuilder m(dims);
    m.integers("begin", {begin}).integers("end", {end});
    m.integers("axis", {axis}).integers("step", {step});
    m.node("Slice", {"x", "begin", "end", "axis", "step"}, "y");
    Network network = m.parse();
    Values x;
    for (int64_t n = 0; n < element_count(dims); ++n) x.push_back(static_cast<float>(n));
    Values result = run_reference_network(network, {x}, network.outputs, 1).front();
    return {std::move(network), std::move(result)};
}

TEST(MapParts, RowsAndColumnsInStepsAreSampled) {
    const Sliced rows = sliced({1, 1, 5, 2}, 2, 1, 5, 2);
    EXPECT_EQ(rows.result, (Values{2, 3, 6, 7}));
    const Sliced backwards = sliced({1, 2, 1, 3}, 3, -1, -100, -1);
    EXPECT_EQ(backwards.result, (Values{2, 1, 0, 5, 4, 3}));
    for (const Sliced& one : {rows, backwards}) {
        ASSERT_EQ(one.network.layers.size(), 1U);
        EXPECT_TRUE(samples_pixels(one.network.layers[0].general, one.network.tensor(0).dims));
    }
}

TEST(MapParts, ChannelsInStepsAreAShuffleAndAPart) {
    const Sliced odd = sliced({1, 6, 1, 1}, 1, 1, 6, 2);
    EXPECT_EQ(odd.result, (Values{1, 3, 5}));
    ASSERT_EQ(odd.network.layers.size(), 2U);
    EXPECT_EQ(odd.network.layers[0].general, blocks_of(1, 3));
    EXPECT_TRUE(first_of_part(odd.network.layers[1].general, odd.network.tensor(0).dims));
    EXPECT_EQ(sliced({1, 6, 1, 1}, 1, 2, 6, 3).result, (Values{2, 5}));
    // Of 5 channels no shuffle makes every second one neighbours.
    const Sliced uneven = sliced({1, 5, 1, 1}, 1, 0, 5, 2);
    EXPECT_EQ(uneven.result, (Values{0, 2, 4}));
    EXPECT_EQ(uneven.network.layers.size(), 1U);
}

TEST(MapParts, ChannelsOfOneValueAreJoined) {
    ModelBuilder m({1, 2, 1, 2});
    m.weights("value", {}, {9});
    m.integers("pads", {0, 1, 0, 0, 0, 2, 0, 1});
    m.node("Pad", {"x", "pads", "value"}, "y");
    const Network network = m.parse();
    EXPECT_EQ(run_reference_network(network, {{1, 2, 3, 4}}, network.outputs, 1).front(),
              (Values{9, 9, 9, 1, 2, 9, 3, 4, 9, 9, 9, 9, 9, 9, 9}));
    ASSERT_EQ(network.layers.size(), 4U);
    EXPECT_EQ(network.layers[3].kind, LayerKind::concat);
}

TEST(MapParts, ACroppingResizeSamplesRowsAndColumnsAlone) {
    ModelBuilder m({1, 2, 2, 3});
    m.weights("roi", {8}, {0, 0, 0, 0.5F, 1, 1, 1, 1});
    m.integers("sizes", {1, 2, 2, 2});
    m.node("Resize", {"x", "roi", "", "sizes"}, "y")
        .text("mode", "linear")
        .text("coordinate_transformation_mode", "tf_crop_and_resize");
    const Network network = m.parse();
    EXPECT_EQ(run_reference_network(network, {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
                                    network.outputs, 1)
                  .front(),
              (Values{1, 2, 4, 5, 7, 8, 10, 11}));
    ASSERT_EQ(network.layers.size(), 1U);
    EXPECT_TRUE(samples_pixels(network.layers[0].general, {1, 2, 2, 3}));
}

TEST(MapParts, NormsOverChannelsAreConvolutionsOfMagnitudesOrSquares) {
    for (const auto& [op, expected] : {std::pair{"ReduceL1", Values{7, 2}},
                                       {"ReduceL2", Values{5, 2}},
                                       {"ReduceSumSquare", Values{25, 4}}}) {
        ModelBuilder m({1, 2, 1, 2});
        m.node(op, {"x"}, "y").integers("axes", {1});
        const Network network = m.parse();
        EXPECT_EQ(run_reference_network(network, {{3, -2, -4, 0}}, network.outputs, 1).front(),
                  expected)
            << op;
        ASSERT_EQ(network.layers.size(), 2U);
        EXPECT_EQ(network.layers[1].kind, LayerKind::conv);
    }
}

}  // namespace
}  // namespace laminate
