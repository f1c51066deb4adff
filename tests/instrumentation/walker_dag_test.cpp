// Hand arithmetic for groups with forks and joins and for layers without weights, from
// docs/counting.md alone. Sizes in the comments are rows x columns x channels.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "instrumentation/walker.h"
#include "nets/network/network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

GroupCounts walked(const Network& network, const std::string& text) {
    return walk(network, parse_group(network, text));
}

Window window(int64_t kernel_y, int64_t kernel_x, int64_t stride_y, int64_t stride_x) {
    Window w;
    w.kernel = {kernel_y, kernel_x};
    w.stride = {stride_y, stride_x};
    return w;
}

TEST(WalkerDag, ResidualBlockByLineBuffers) {
    // Row y of add2 reads row y of X, its call of conv1 rows y-1 to y+1: one hull of at most 3 rows
    // of 8; every row of X comes once, 64. Add has no weights and no MACs: conv1 64 * 9.
    const GroupCounts counts =
        walked(residual(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x8 i1; X root/add2.yo; W "
               "root/root; Y add2.yo/add2.yo & "
               "add2: yo zo xo io | zi yi xi ii n m; tile z1 y1 x8 i1; Y xi/xi}");
    ASSERT_EQ(counts.inputs.size(), 1U);
    EXPECT_EQ(counts.inputs[0].tensor, "input");
    EXPECT_EQ(counts.inputs[0].reads, Elements(64));
    EXPECT_EQ(counts.inputs[0].buffer, Elements(3 * 8));
    EXPECT_EQ(counts.layers[0].macs, Macs(64 * 9));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(8));
    EXPECT_EQ(counts.layers[1].macs, Macs(0));
    EXPECT_EQ(counts.layers[1].weight_reads, Elements(0));
    EXPECT_EQ(counts.layers[1].weight_buffer, Elements(0));
    EXPECT_EQ(counts.output_writes, Elements(64));
    // X 24, W 9, conv1's output 8, Y 1: all around add2's pixel.
    EXPECT_EQ(counts.live_total, Elements(24 + 9 + 8 + 1));
}

TEST(WalkerDag, ResidualBlockWithoutRetention) {
    // Tiles of 4 x 4 of add2, nothing kept: conv1 reads 5 x 5 of X at each corner of the picture,
    // which hold the 4 x 4 that add2 reads: 4 * 25, not 4 * (25 + 16).
    const GroupCounts counts =
        walked(residual(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y8 x8 i1; X add2.xo/add2.xo; W "
               "root/root; Y add2.xo/add2.xo & "
               "add2: zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 i1; Y xi/xi}");
    EXPECT_EQ(counts.inputs[0].reads, Elements(4 * 25));
    EXPECT_EQ(counts.inputs[0].buffer, Elements(25));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(16));
}

/// input 4 x 4 x 4 -> depthwise conv1 3x3 pad 1 -> add2, which adds the input.
Network depthwise_residual() {
    Network network = empty_network(4, 4, 4);
    const TensorId conv1 = append(network, "conv1", 0, {4, square_window(3, 1, 1), 4});
    append(network, "add2", {.kind = LayerKind::add, .inputs = {conv1, 0}});
    return network;
}

TEST(WalkerDag, ASharedTensorComesWithAllItsChannels) {
    // add2 channel by channel: a trip of zo reads one plane of 16, but X is shared: all 64 in each
    // of 4 trips. conv1's output is read by add2 alone: plane by plane.
    const std::string rest =
        "; W root/root; Y add2.zo/add2.zo & add2: zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 i1; "
        "Y xi/xi}";
    const std::string nest = "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y4 x4 i1; X ";
    const GroupCounts again = walked(depthwise_residual(), nest + "add2.zo/add2.zo" + rest);
    EXPECT_EQ(again.inputs[0].reads, Elements(4 * 64));
    EXPECT_EQ(again.inputs[0].buffer, Elements(64));
    EXPECT_EQ(again.layers[0].output_buffer, Elements(16));
    EXPECT_EQ(again.layers[0].macs, Macs(64 * 9));
    // Kept from the root on: once, and no loop over channels folds it.
    const GroupCounts kept = walked(depthwise_residual(), nest + "root/add2.zo" + rest);
    EXPECT_EQ(kept.inputs[0].reads, Elements(64));
    EXPECT_EQ(kept.inputs[0].buffer, Elements(64));
}

TEST(WalkerDag, ASharedTensorHasNoGaps) {
    // Two 1x1 convolutions of stride 2 on 7 x 7, added row by row: both read rows 0, 2, 4, 6 and no
    // other. Shared, row 2 comes with row 1: 49 in all, two rows held. Read by one of them alone, 4
    // rows of 7.
    Network network = empty_network(1, 7, 7);
    const TensorId conv1 = append(network, "conv1", 0, {1, square_window(1, 2)});
    const TensorId conv2 = append(network, "conv2", 0, {1, square_window(1, 2)});
    append(network, "add3", {.kind = LayerKind::add, .inputs = {conv1, conv2}});
    const GroupCounts shared = walked(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 i1; X root/add3.yo; W root/root; Y "
        "add3.yo/add3.yo & "
        "conv2: zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 i1; W root/root; Y add3.yo/add3.yo & "
        "add3: yo zo xo io | zi yi xi ii n m; tile z1 y1 x4 i1; Y xi/xi}");
    EXPECT_EQ(shared.inputs[0].reads, Elements(49));
    EXPECT_EQ(shared.inputs[0].buffer, Elements(2 * 7));
    const GroupCounts single = walked(chain(1, 7, 7, {{1, square_window(1, 2)}}),
                                      "{conv1: yo zo xo io | zi yi xi ii n m; tile z1 y1 x4 i1; X "
                                      "root/yo; W root/root; Y xi/xi}");
    EXPECT_EQ(single.inputs[0].reads, Elements(4 * 7));
    EXPECT_EQ(single.inputs[0].buffer, Elements(7));
}

TEST(WalkerDag, ConcatCallsOnlyTheOperandsThatATileTouches) {
    // conv1 has channels 0-2 of the result, conv2 3 and 4; tiles of 2: {0,1} conv1, {2,3} both, {4}
    // conv2. 1x1 on 4 x 4: each channel of each is computed once, 16 MACs.
    Network network = empty_network(1, 4, 4);
    const TensorId conv1 = append(network, "conv1", 0, {3, square_window(1)});
    const TensorId conv2 = append(network, "conv2", 0, {2, square_window(1)});
    append(network, "concat3", {.kind = LayerKind::concat, .inputs = {conv1, conv2}, .axis = 1});
    const GroupCounts counts =
        walked(network,
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i1; X concat3.zo/concat3.zo; "
               "W concat3.zo/concat3.zo; Y "
               "concat3.zo/concat3.zo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i1; W concat3.zo/concat3.zo; Y "
               "concat3.zo/concat3.zo & "
               "concat3: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i1; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(3 * 16));
    EXPECT_EQ(counts.layers[1].macs, Macs(2 * 16));
    // Each of the three trips calls some reader of X.
    EXPECT_EQ(counts.inputs[0].reads, Elements(3 * 16));
    // conv1 for 2 channels, 1 and none; conv2 for none, 1 and 1.
    EXPECT_EQ(counts.layers[0].weight_reads, Elements(3));
    EXPECT_EQ(counts.layers[0].weight_buffer, Elements(2));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(2 * 16));
    EXPECT_EQ(counts.layers[1].weight_reads, Elements(2));
    EXPECT_EQ(counts.layers[1].weight_buffer, Elements(1));
    EXPECT_EQ(counts.layers[1].output_buffer, Elements(16));
    EXPECT_EQ(counts.output_writes, Elements(5 * 16));
}

TEST(WalkerDag, AxesAreJudgedByThemselves) {
    // conv1 reads the even rows of X and is spread to all rows again, conv2 the even columns. Pixel
    // by pixel, both kept from the root on: along rows conv2 reads in every body, along columns
    // conv1 does, so all 16 elements come in, also the 4 on odd rows and odd columns that nobody
    // reads.
    Network network = empty_network(1, 4, 4);
    const TensorId conv1 = append(network, "conv1", 0, {1, window(1, 1, 2, 1)});
    const TensorId up2 =
        append(network, "up2", conv1, {1, window(2, 1, 2, 1), 1, LayerKind::conv_transpose});
    const TensorId conv3 = append(network, "conv3", 0, {1, window(1, 1, 1, 2)});
    const TensorId up4 =
        append(network, "up4", conv3, {1, window(1, 2, 1, 2), 1, LayerKind::conv_transpose});
    append(network, "add5", {.kind = LayerKind::add, .inputs = {up2, up4}});
    const std::string loops = ": zo yo xo io | zi yi xi ii n m; tile z1 y";
    const GroupCounts counts =
        walked(network,
               "{conv1" + loops + "2 x4 i1; X root/add5.xi; W root/root; Y root/add5.xi & up2" +
                   loops + "4 x4 i1; W root/root; Y add5.xi/add5.xi & conv3" + loops +
                   "4 x2 i1; W root/root; Y root/add5.xi & up4" + loops +
                   "4 x4 i1; W root/root; Y add5.xi/add5.xi & add5" + loops + "4 x4 i1; Y xi/xi}");
    EXPECT_EQ(counts.inputs[0].reads, Elements(16));
    EXPECT_EQ(counts.layers[0].macs, Macs(8));
    EXPECT_EQ(counts.layers[1].macs, Macs(16));
    EXPECT_EQ(counts.layers[2].macs, Macs(8));
}

TEST(WalkerDag, AnIntermediateTensorReadTwiceIsComputedOnce) {
    // conv1 3x3 on 10 x 10 -> 8 x 8 x 2, read by conv2 3x3 pad 1 and by add3. Row by row: conv1's
    // output needs 3 rows for conv2 and holds the row that add3 reads; each row is computed once:
    // 64 * 2 * 9 MACs.
    Network network = empty_network(1, 10, 10);
    const TensorId conv1 = append(network, "conv1", 0, {2, square_window(3)});
    const TensorId conv2 = append(network, "conv2", conv1, {2, square_window(3, 1, 1)});
    append(network, "add3", {.kind = LayerKind::add, .inputs = {conv1, conv2}});
    const GroupCounts counts = walked(
        network,
        "{conv1: yo zo xo io | zi yi xi ii n m; tile z2 y1 x8 i1; X root/yo; W root/root; Y "
        "root/add3.yo & "
        "conv2: zo yo xo io | zi yi xi ii n m; tile z2 y1 x8 i2; W root/root; Y add3.yo/add3.yo & "
        "add3: yo zo xo io | zi yi xi ii n m; tile z2 y1 x8 i1; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(64 * 2 * 9));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(3 * 8 * 2));
    EXPECT_EQ(counts.layers[1].macs, Macs(64 * 2 * 18));
    EXPECT_EQ(counts.layers[1].output_buffer, Elements(8 * 2));
    EXPECT_EQ(counts.inputs[0].reads, Elements(100));
    EXPECT_EQ(counts.inputs[0].buffer, Elements(3 * 10));
}

TEST(WalkerDag, ExternalInputsOfOneNestAreKeptApart) {
    // add1 of two inputs, each at a level of its own: X0 row by row, X1 whole.
    Network network = empty_network(1, 4, 4);
    network.tensors.push_back({"other", {1, 1, 4, 4}});
    network.inputs = {0, 1};
    append(network, "add1", {.kind = LayerKind::add, .inputs = {0, 1}});
    const GroupCounts counts = walked(
        network,
        "{add1: yo zo xo io | zi yi xi ii n m; tile z1 y1 x4 i1; X0 yo/yo; X1 root/root; Y xi/xi}");
    ASSERT_EQ(counts.inputs.size(), 2U);
    EXPECT_EQ(counts.inputs[0].tensor, "input");
    EXPECT_EQ(counts.inputs[0].reads, Elements(16));
    EXPECT_EQ(counts.inputs[0].buffer, Elements(4));
    EXPECT_EQ(counts.inputs[1].tensor, "other");
    EXPECT_EQ(counts.inputs[1].reads, Elements(16));
    EXPECT_EQ(counts.inputs[1].buffer, Elements(16));
}

TEST(WalkerDag, PoolingIsADepthwiseLayerWithoutWeights) {
    // conv1 3x3 pad 1 on 8 x 8 x 1 -> 3 channels, 2x2 pooling of stride 2 -> 4 x 4 x 3, row by row
    // of one channel: two rows of 8 of one channel of conv1 at a time, each computed once.
    Network network = empty_network(1, 8, 8);
    const TensorId conv1 = append(network, "conv1", 0, {3, square_window(3, 1, 1)});
    append(network, "pool2",
           {.kind = LayerKind::max_pool, .inputs = {conv1}, .window = square_window(2, 2)});
    const GroupCounts counts =
        walked(network,
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y8 x8 i1; X root/root; W root/root; "
               "Y pool2.zo/pool2.yo & "
               "pool2: zo yo xo io | zi yi xi ii n m; tile z1 y1 x4 i1; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(64 * 3 * 9));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(2 * 8));
    EXPECT_EQ(counts.layers[1].macs, Macs(0));
    EXPECT_EQ(counts.output_writes, Elements(48));
}

TEST(WalkerDag, GlobalAveragePoolingReadsAWholeChannel) {
    // conv1 3x3 pad 1 on 4 x 4 x 2 -> 2 channels; the pool takes one channel at a time: conv1 is
    // called for 16 outputs twice.
    Network network = empty_network(2, 4, 4);
    const TensorId conv1 = append(network, "conv1", 0, {2, square_window(3, 1, 1)});
    append(network, "mean2", {.kind = LayerKind::global_average_pool, .inputs = {conv1}});
    const GroupCounts counts =
        walked(network,
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i2; X mean2.zo/mean2.zo; W "
               "root/mean2.zo; Y root/mean2.zo & "
               "mean2: zo yo xo io | zi yi xi ii n m; tile z1 y1 x1 i1; Y zi/zi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(2 * 16 * 18));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(16));
    EXPECT_EQ(counts.layers[0].weight_buffer, Elements(18));
    EXPECT_EQ(counts.inputs[0].reads, Elements(2 * 32));
    EXPECT_EQ(counts.output_writes, Elements(2));
}

}  // namespace
}  // namespace laminate
