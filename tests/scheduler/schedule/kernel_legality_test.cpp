#include "scheduler/schedule/kernel_legality.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

void expect_illegal(const Network& network, const std::string& group, const std::string& message) {
    try {
        (void)parse_group(network, group);
        ADD_FAILURE() << "expected InputError";
    } catch (const InputError& error) {
        EXPECT_EQ(error.what(), message);
    }
}

TEST(KernelLegality, ABlockOfChannelsLiesInOneGroupOfThem) {
    // Two output channels in each of two groups, in tiles of three: the second tile would begin a
    // block of two at channel 3, or the first one end with channels 2 and 3 apart.
    const Network network = chain(4, 8, 8, {{4, square_window(3, 1, 1), 2}});
    const auto text = [](const std::string& tile, const std::string& kernel) {
        return "{conv1: zo yo xo io | zi yi xi ii n m; tile " + tile +
               " y8 x8 i2; X zo/zo; W root/root; Y root/root; kernel " + kernel + "}";
    };
    EXPECT_NO_THROW((void)parse_group(network, text("z4", "rows z2 y1 x1 v4")));
    EXPECT_NO_THROW((void)parse_group(network, text("z3", "rows z1 y1 x1 v4")));
    expect_illegal(network, text("z3", "rows z2 y1 x1 v4"),
                   "conv1: kernel rows z2 y1 x1 v4: its boxes have parts of the 4 output channels, so "
                   "a block of channels would lie in two groups of them; expected z1");
}

TEST(KernelLegality, BoxesHaveWholeBlocksOfVectorsOfChannels) {
    const auto text = [](const std::string& tile) {
        return "{conv1: zo yo xo io | zi yi xi ii n m; tile " + tile +
               " y8 x8 i2; X zo/zo; W root/root; Y root/root; kernel channels z2 x4 v4}";
    };
    // Blocks of eight: of 24 channels any multiple of eight, of 20 with the last one shorter.
    for (const int64_t channels : {20, 24}) {
        const Network network = chain(4, 8, 8, {{channels, square_window(3, 1, 1)}});
        for (const char* tile : {"z8", "z16", channels == 20 ? "z20" : "z24"})
            EXPECT_NO_THROW((void)parse_group(network, text(tile))) << tile;
        expect_illegal(network, text("z12"),
                       "conv1: kernel channels z2 x4 v4: its boxes begin or end at multiples of "
                       "12 output channels; expected multiples of the 8 that it computes "
                       "together, or another kernel: rows, channels, winograd_rows, "
                       "winograd_channels, columns, map_channels, map_windows");
    }
}

TEST(KernelLegality, MinimalFilteringHasAllColumnsOfAStripAtOnce) {
    const Network network = chain(8, 8, 64, {{8, square_window(3, 1, 1)}});
    const auto text = [](const std::string& tile, const std::string& lines, const char* kernel) {
        return "{conv1: xs || zo yo xo io | zi yi xi ii n m; strip x32; tile z8 y4 " + tile +
               " i8; X " + lines + "; W root/root; Y xi/xi; kernel " + kernel + " z2 x1 f1 v4}";
    };
    EXPECT_NO_THROW((void)parse_group(network, text("x32", "xs/yo", "winograd_rows")));
    for (const auto& [tile, lines] :
         {std::pair<const char*, const char*>{"x16", "xs/xo"}, {"x32", "root/yo"}}) {
        expect_illegal(network, text(tile, lines, "winograd_rows"),
                       "conv1: kernel winograd_rows z2 x1 f1 v4: its boxes have parts of the "
                       "columns of a strip; expected all of them, stored inside the strip loops, "
                       "or another kernel: rows, channels, winograd_rows, winograd_channels, "
                       "columns, map_channels, map_windows");
    }
    EXPECT_THROW((void)parse_group(network, text("x32", "xs/yo", "winograd_channels")), InputError);
}

TEST(KernelLegality, ADepthwiseLayerFillsThePanelOfAPointwiseLayer) {
    const Network network = chain(6, 9, 5, {{6, square_window(3, 1, 1), 6}, {8, square_window(1)}});
    const auto text = [](const std::string& rows, const std::string& first,
                         const std::string& second) {
        return "{conv1: zo yo xo io | zi yi xi ii n m; tile z6 y" + rows +
               " x5 i1; X root/yo; W root/root; Y root/conv2.yo; kernel " + first +
               " & conv2: zo yo xo io | zi yi xi ii n m; tile z8 y" + rows +
               " x5 i6; W root/root; Y xi/xi; kernel " + second + "}";
    };
    const std::string depthwise = "map_depthwise a12 v8", pixels = "map_pixels a12 v8";
    EXPECT_NO_THROW((void)parse_group(network, text("4", depthwise, "map_pixels a12 v4")));
    expect_illegal(network, text("4", depthwise, pixels),
                   "conv2: kernel map_pixels a12 v8: a tile of 5 pixels, expected a vector of them "
                   "or more in each tile of rows");
    expect_illegal(network, text("5", depthwise, "map_channels a12 v8"),
                   "conv2: kernel map_channels a12 v8: behind map_depthwise; legal: map_pixels "
                   "without c");
    const Network reversed = chain(6, 9, 5, {{8, square_window(1)}, {8, square_window(3, 1, 1), 8}});
    expect_illegal(
        reversed,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z8 y4 x5 i6; X root/yo; W root/root; Y "
        "root/conv2.yo; kernel map_pixels a12 v8 & conv2: zo yo xo io | zi yi xi ii n m; tile "
        "z8 y4 x5 i1; W root/root; Y xi/xi; kernel map_depthwise a12 v8}",
        "conv1: kernel map_pixels a12 v8: before a depthwise layer of its group; legal: map_channels");
}

}  // namespace
}  // namespace laminate
