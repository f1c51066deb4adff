#include "generators/ir/constants.h"

#include <gtest/gtest.h>

namespace laminate {
namespace {

TEST(ConstantBlock, ArraysBeginOnCacheLines) {
    ConstantBlock block;
    EXPECT_EQ(block.append({1, 2, 3}), 0);
    EXPECT_EQ(block.append(std::vector<float>(17, 5.0F)), 16);  // 3 elements fill one line of 16
    EXPECT_EQ(block.append({9}), 48);                           // 17 elements fill two
    EXPECT_EQ(std::move(block).take().size(), 64U);
}

TEST(CanonicalWeights, TransposedConvolutionIsTurnedToOutputFirst) {
    // Two input channels, two outputs in one group, 1x2 kernel; ONNX order [input][output][n][m].
    Layer layer;
    layer.kind = LayerKind::conv_transpose;
    layer.weights = std::make_shared<Constant>(Constant{{2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}});
    LayerProblem p;
    p.extent = {2, 1, 1, 2};
    p.window[1].kernel = 2;
    // [z][i][n][m]: output 0 reads input 0 with 1 2 and input 1 with 5 6.
    EXPECT_EQ(canonical_weights(layer, p), (std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8}));
}

TEST(CanonicalSlope, OneValueServesEveryChannel) {
    Layer layer;
    LayerProblem p;
    p.extent = {3, 1, 1, 1};
    EXPECT_TRUE(canonical_slope(layer, p).empty());
    layer.activation.kind = ActivationKind::prelu;
    layer.activation.slope = std::make_shared<Constant>(Constant{{1}, {0.5F}});
    EXPECT_EQ(canonical_slope(layer, p), (std::vector<float>{0.5F, 0.5F, 0.5F}));
    EXPECT_EQ(canonical_bias(layer, p), (std::vector<float>{0, 0, 0}));
}

}  // namespace
}  // namespace laminate
