#include "scheduler/schedule/problem.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "nets/network/picture_views.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

TEST(LayerProblem, ConvolutionHasItsOutputAndTheChannelsOfOneGroup) {
    const Network network = chain(6, 9, 11, {{4, square_window(3, 2, 1), 2}});
    const LayerProblem p = layer_problem(network, 0);
    // Rows: (9 + 2 - 3) / 2 + 1 = 5, columns: (11 + 2 - 3) / 2 + 1 = 6; 6 channels in 2 groups.
    EXPECT_EQ(p.extent, (PerDim<int64_t>{4, 5, 6, 3}));
    EXPECT_EQ(p.inputs.at(0).channels, 6);
    EXPECT_EQ(p.weight_elements(), Elements(3 * 3 * 3 * 4));
    EXPECT_EQ(p.input_elements(), Elements(6 * 9 * 11));
    EXPECT_EQ(p.output_elements(), Elements(4 * 5 * 6));
}

TEST(LayerProblem, TransposedConvolutionWithHolesIsNotSchedulable) {
    Network network = chain(1, 4, 4, {{1, square_window(2, 2), 1, LayerKind::conv_transpose}});
    EXPECT_TRUE(is_schedulable(network, 0));
    network = chain(
        1, 4, 4,
        {{1, square_window(2, 3), 1, LayerKind::conv_transpose}});  // every third row has no tap
    EXPECT_FALSE(is_schedulable(network, 0));
    EXPECT_THROW((void)layer_problem(network, 0), InputError);
    EXPECT_TRUE(schedulable_chains(network).empty());
}

TEST(LayerProblem, WindowsInThePaddingAloneAreNotSchedulable) {
    EXPECT_TRUE(is_schedulable(chain(1, 4, 4, {{1, square_window(3, 1, 2)}}), 0));
    EXPECT_FALSE(is_schedulable(chain(1, 4, 4, {{1, square_window(3, 1, 3)}}), 0));
}

/// Checks every output one by one.
TEST(LayerProblem, WindowsReachInputsAsEveryOutputByItselfDoes) {
    int schedulable = 0;
    int refused = 0;
    for (const LayerKind kind : {LayerKind::conv, LayerKind::conv_transpose}) {
        for (int64_t n = 0; n < 4 * 4 * 2 * 4 * 7; ++n) {
            const int64_t kernel = n % 4 + 1, stride = n / 4 % 4 + 1, dilation = n / 16 % 2 + 1,
                          pad = n / 32 % 4, in = n / 128 + 3;
            Network network;
            try {
                network =
                    chain(1, in, in, {{1, square_window(kernel, stride, pad, dilation), 1, kind}});
            } catch (const InputError&) {  // an output without extent
                continue;
            }
            const bool transposed = kind == LayerKind::conv_transpose;
            const AxisWindow w{transposed,
                               kernel,
                               stride,
                               dilation,
                               pad,
                               in,
                               network.tensor(network.outputs.at(0)).dims.at(2),
                               {}};
            bool reach = !transposed || dilation == 1 || stride == 1;
            for (int64_t out = 0; out < w.out; ++out) {
                bool one = false;
                for (int64_t tap = 0; tap < kernel; ++tap)
                    one = one || w.input(out, tap).has_value();
                reach = reach && one;
            }
            EXPECT_EQ(is_schedulable(network, 0), reach)
                << "kernel " << kernel << " stride " << stride << " dilation " << dilation
                << " pad " << pad << " in " << in;
            ++(reach ? schedulable : refused);
        }
    }
    EXPECT_GT(schedulable, 100);
    EXPECT_GT(refused, 100);
}

TEST(LayerProblem, MapsRepeatedAFewTimesAndWholeAreRearranged) {
    const auto operation_of = [](const std::vector<int64_t>& in, const GeneralOperator& op) {
        Network network = empty_network(in[1], in[2], in[3]);
        append(network, "resize1", {.kind = LayerKind::general, .inputs = {0}, .general = op});
        EXPECT_TRUE(is_schedulable(network, 0));
        return layer_problem(network, 0).operation;
    };
    EXPECT_EQ(operation_of({1, 2, 4, 5}, repeated({1, 2, 4, 5}, {2, 1})), Operation::rearrange);
    EXPECT_EQ(operation_of({1, 2, 1, 1}, repeated({1, 2, 1, 1}, {8, 8})), Operation::rearrange);
    EXPECT_EQ(operation_of({1, 2, 1, 1}, repeated({1, 2, 1, 1}, {8, 9})), Operation::resample);
    // Rows and columns 0 .. 3 of 5, once each: the rest is cut off.
    EXPECT_EQ(operation_of({1, 2, 5, 5}, repeated({1, 2, 4, 4}, {1, 1})), Operation::resample);
}

TEST(LayerProblem, NormalisationsOverTheChannelsOfAPixelReadAllOfThem) {
    Network network = empty_network(3, 4, 5);
    append(network, "softmax1", {.kind = LayerKind::softmax, .inputs = {0}});
    ASSERT_TRUE(is_schedulable(network, 0));
    const LayerProblem p = layer_problem(network, 0);
    EXPECT_EQ(p.operation, Operation::normalise);
    EXPECT_EQ(p.extent, (PerDim<int64_t>{3, 4, 5, 3}));
    EXPECT_EQ(p.groups, 1);
    // Over columns, or over channels and rows together, they do not go pixel by pixel.
    const auto is_covered = [](std::vector<int64_t> axes) {
        Network other = empty_network(3, 4, 5);
        append(other, "norm1",
               {.kind = LayerKind::general,
                .inputs = {0},
                .general = {.kind = GeneralKind::normalise,
                            .function = GeneralFunction::standardise,
                            .axes = std::move(axes)}});
        return is_schedulable(other, 0);
    };
    EXPECT_TRUE(is_covered({1}));
    EXPECT_FALSE(is_covered({3}));
    EXPECT_FALSE(is_covered({1, 2}));
}

TEST(LayerProblem, TheLargestAndTheSmallestChannelOfAPixelAreOneChannelOfAll) {
    const auto reduced = [](GeneralFunction function, std::vector<int64_t> axes) {
        Network network = empty_network(3, 4, 5);
        append(network, "extreme1",
               {.kind = LayerKind::general,
                .inputs = {0},
                .general = {.kind = GeneralKind::reduce,
                            .function = function,
                            .axes = std::move(axes)}});
        return network;
    };
    for (const auto& [function, operation] :
         {std::pair{GeneralFunction::largest, Operation::largest_channel},
          std::pair{GeneralFunction::smallest, Operation::smallest_channel}}) {
        const Network network = reduced(function, {1});
        ASSERT_TRUE(is_schedulable(network, 0));
        const LayerProblem p = layer_problem(network, 0);
        EXPECT_EQ(p.operation, operation);
        EXPECT_EQ(p.extent, (PerDim<int64_t>{1, 4, 5, 3}));
        EXPECT_EQ(p.groups, 1);
        EXPECT_FALSE(p.is_grouped());
        EXPECT_TRUE(p.reads_all_of_i());
        EXPECT_FALSE(is_schedulable(reduced(function, {2}), 0)) << "over rows";
        EXPECT_FALSE(is_schedulable(reduced(function, {1, 2}), 0)) << "over channels and rows";
    }
    EXPECT_FALSE(is_schedulable(reduced(GeneralFunction::product, {1}), 0));
}

TEST(Chains, EndWhereATensorIsUsedTwiceOrLeaves) {
    Network network =
        chain(2, 8, 8, {{2, square_window(3)}, {2, square_window(3)}, {2, square_window(3)}});
    EXPECT_EQ(schedulable_chains(network), (std::vector<std::vector<LayerId>>{{0, 1, 2}}));
    network.outputs.push_back(network.layers[0].output);
    EXPECT_EQ(schedulable_chains(network), (std::vector<std::vector<LayerId>>{{0}, {1, 2}}));
}

}  // namespace
}  // namespace laminate
