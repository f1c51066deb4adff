#include "papers/layer_optimum/convolution.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "nets/open.h"
#include "tests/papers/layer_optimum/element_stream.h"
#include "tests/papers/layer_optimum/random_problem.h"

namespace laminate {
namespace {

TEST(Convolution, LoopsOfZooLayers) {
    const Network plain = open_network("zoo:mc-cnn-64?batch=3&height=20&width=30");
    EXPECT_EQ(to_text(convolution_problem(plain, plain.find_layer("conv2"))),
              "f3 k64 c64 x30 y20 m3 n3");
    const Network mobile = open_network("zoo:mobilenetv1");
    for (size_t l = 0; l < mobile.layers.size(); ++l) {
        if (mobile.layers[l].kind != LayerKind::conv || mobile.layers[l].groups == 1) continue;
        const ConvolutionProblem depthwise = convolution_problem(mobile, static_cast<LayerId>(l));
        EXPECT_EQ(depthwise.groups, mobile.layers[l].groups);
        EXPECT_EQ(depthwise.extent[ConvolutionLoop::k], 1);
        EXPECT_EQ(depthwise.extent[ConvolutionLoop::c], 1);
    }
    const LayerId classifier = static_cast<LayerId>(mobile.layers.size()) - 2;
    EXPECT_EQ(to_text(convolution_problem(mobile, classifier)), "f1 k1000 c1024 x1 y1 m1 n1");
    EXPECT_THROW((void)convolution_problem(mobile, classifier + 1), InputError);  // softmax
    const Network fsrcnn = open_network("zoo:fsrcnn-x2?height=10&width=20");
    EXPECT_EQ(to_text(convolution_problem(fsrcnn, fsrcnn.find_layer("deconv"))),
              "f1 k1 c56 x20 y10 m9 n9 stride 2 transposed");
}

TEST(Convolution, PaddingIsStoredAndCounted) {
    // AlexNet conv1 as CNNFlow counts it: 56 outputs read (56 - 1) * 4 + 11 = 231 columns.
    const ConvolutionProblem p = parse_convolution("f4 k96 c3 x56 y56 m11 n11 stride 4");
    EXPECT_EQ(tensor_words(p, Operand::input), 4 * 3 * 231 * 231);
    EXPECT_EQ(tensor_words(p, Operand::weight), 96 * 3 * 11 * 11);
    EXPECT_EQ(tensor_words(p, Operand::output), 4 * 96 * 56 * 56);
}

TEST(Convolution, StridesBeyondTheKernelLeaveNoPartialReuse) {
    const ConvolutionProblem p = parse_convolution("x5 y5 m1 n2 stride 2");
    const TensorAccess input = tensor_access(p, Operand::input);
    EXPECT_EQ(input[ConvolutionLoop::x], LoopRole::related);
    EXPECT_EQ(input[ConvolutionLoop::n], LoopRole::related);
    EXPECT_EQ(input[ConvolutionLoop::k], LoopRole::reuse);
    EXPECT_EQ(tensor_words(p, Operand::input), 5 * 10);  // not the 9 x 10 of its box
    EXPECT_EQ(
        tensor_access(parse_convolution("x5 m3 stride 2"), Operand::input)[ConvolutionLoop::x],
        LoopRole::partial);
}

TEST(Convolution, TouchedWordsAreThoseOfTheElements) {
    Rng rng(3);
    for (int n = 0; n < 500; ++n) {
        const ConvolutionProblem p = random_convolution(rng, 5);
        for (const Operand operand : all_operands)
            ASSERT_EQ(tensor_words(p, operand),
                      static_cast<int64_t>(element_stream(p, operand, {}).front().size()))
                << to_text(p);
    }
}

}  // namespace
}  // namespace laminate
