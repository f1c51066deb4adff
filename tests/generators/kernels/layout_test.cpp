// Layouts against the code made from them: the multiplications that they predict are those that the
// code executes, and parts and scratch are what the code says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "generators/ir/arrays.h"
#include "generators/ir/layer_output.h"
#include "generators/kernels/group_kernels.h"
#include "generators/kernels/map_elementwise.h"
#include "generators/kernels/map_channels.h"
#include "generators/kernels/map_depthwise.h"
#include "generators/kernels/map_panels.h"
#include "generators/kernels/map_phases.h"
#include "generators/kernels/map_pixels.h"
#include "generators/kernels/map_pooling.h"
#include "generators/kernels/map_windows.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layout/columns.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"
#include "scheduler/schedule/kernels/layout/winograd_rows.h"
#include "tests/generators/kernels/code_by_kernel.h"
#include "tests/generators/kernels/executed_products.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

constexpr VectorUnit by_sixteen{16, 24};
constexpr VectorUnit by_eight{8, 12};
constexpr VectorUnit both_units[] = {by_sixteen, by_eight};

std::string text(const LayerProblem& p, const VectorUnit& unit) {
    return std::to_string(p[Dim::i]) + " -> " + std::to_string(p[Dim::z]) + " channels, " +
           std::to_string(p[Dim::y]) + " x " + std::to_string(p[Dim::x]) + ", kernel " +
           std::to_string(p.y().kernel) + " x " + std::to_string(p.x().kernel) + ", " +
           std::to_string(unit.lanes) + " lanes";
}

/// The layer of a network of one layer, as a group by itself.
struct Alone {
    Network network;
    GroupSchedule group = line_buffer_group(network, {0});
    LayerProblem problem = layer_problem(network, 0);

    explicit Alone(Network all) : network(std::move(all)) {}
    [[nodiscard]] LayerOutput output() const { return LayerOutput::of(network, group); }
};
Alone alone(int64_t channels, int64_t rows, int64_t columns, const LayerSpec& spec) {
    return Alone(chain(channels, rows, columns, {spec}));
}

/// `parts` and `at` against the code.
template <class Layout>
void expect_done(const Layout& at, int64_t parts, const GroupCode& code, const std::string& what) {
    EXPECT_EQ(at.multiplications(), ExecutedProducts::of(code)) << what;
    EXPECT_EQ(at.scratch_elements() * bytes_per_element, code.scratch_bytes) << what;
    EXPECT_EQ(parts, code.strips) << what;
}

/// Places in the code that ask for a line of an array.
class RequestsInCode : private Halide::Internal::IRVisitor {
public:
    [[nodiscard]] static int64_t of(const GroupCode& code, const std::string& array) {
        RequestsInCode counter;
        counter.array_ = array;
        code.body.accept(&counter);
        return counter.lines_;
    }

private:
    using Halide::Internal::IRVisitor::visit;

    void visit(const Halide::Internal::Call* op) override {
        if (op->name == ir::prefetch_function)
            lines_ += Halide::Internal::expr_uses_var(op->args.front(), array_) ? 1 : 0;
        IRVisitor::visit(op);
    }

    std::string array_;
    int64_t lines_ = 0;
};

TEST(Layout, PixelsAskForTheLinesThatTheyFill) {
    // 20 x 24 pixels are 30 vectors of 16, ten tiles of three; a tile of 8 channels and 48 pixels
    // stores to three lines of each, or to four if it begins within a line. Vectors of 8 do not
    // ask.
    const Alone layer = alone(17, 20, 24, {.channels = 64, .window = square_window(1)});
    const auto asked = [&](const VectorUnit& unit) {
        const MapPixelsLayout at = map_pixels_layout(layer.problem, unit, Bytes(0));
        return RequestsInCode::of(map_pixels_code(layer.output(), at), "Y");
    };
    EXPECT_EQ(map_pixels_layout(layer.problem, by_sixteen, Bytes(0)).tiles.count(), 10);
    EXPECT_EQ(asked(by_sixteen), 8 * 4);
    EXPECT_EQ(asked(by_eight), 0);
}

TEST(Layout, ChannelsAskForTheInputsThatTheyReadInPlace) {
    const auto asked = [&](int64_t side, int64_t outputs, const VectorUnit& unit, bool has_panel) {
        const Alone layer =
            alone(48, side, side, {.channels = outputs, .window = square_window(1)});
        const MapChannelsLayout at = map_channels_layout(layer.problem, unit);
        EXPECT_EQ(at.has_panel, has_panel);
        return RequestsInCode::of(map_channels_code(layer.output(), at), "X");
    };
    // 14 x 14 pixels are 14 tiles of 14, in one loop. A tile asks for the lines of its first and its last
    // pixel. 20 x 20 pixels are tiles of 14 and of 13, in two loops.
    EXPECT_EQ(asked(14, 64, by_sixteen, false), 2);
    EXPECT_EQ(asked(20, 64, by_sixteen, false), 4);
    // Filling a panel asks for one line of a tile, here of two lengths, and products read the panel.
    EXPECT_EQ(asked(14, 1024, by_eight, true), 2);
}

TEST(Layout, DividesVectorsIntoTilesWithoutASingleOneLeft) {
    const auto all = [](int64_t vectors, int64_t of_tile) {
        const TileDivision tiles = divide_into_tiles(vectors, of_tile);
        return tiles.whole * of_tile + std::accumulate(tiles.rest.begin(), tiles.rest.end(), 0L);
    };
    for (int64_t of_tile = 1; of_tile <= 4; ++of_tile) {
        for (int64_t vectors = 1; vectors < 20; ++vectors)
            EXPECT_EQ(all(vectors, of_tile), vectors);
    }
    // 7 vectors by 3: 3 + 2 + 2, not 3 + 3 + 1.
    EXPECT_EQ(divide_into_tiles(7, 3).whole, 1);
    EXPECT_EQ(divide_into_tiles(7, 3).rest, (std::vector<int64_t>{2, 2}));
}

TEST(Layout, RunsCoverARow) {
    // 40 columns by 16 lanes: 16 + 16 + 8, half a vector.
    EXPECT_EQ(runs_of(40, by_sixteen),
              (std::vector<VectorRun>{{0, 16, 0, 16}, {16, 16, 0, 16}, {32, 8, 0, 8}}));
    // 25 columns: the last vector begins at 9 and computes 9 .. 15 again.
    EXPECT_EQ(overlapping_runs(25, by_sixteen),
              (std::vector<VectorRun>{{0, 16, 0, 16}, {9, 16, 0, 16}}));
    EXPECT_EQ(moved_inside({16, 16, 0, 9}, 25), (VectorRun{9, 16, 7, 16}));
    EXPECT_EQ(moved_inside({0, 16, 0, 9}, 9), (VectorRun{0, 16, 0, 9}));
}

TEST(Layout, PixelsAreMultipliedAsPredicted) {
    for (const VectorUnit& unit : both_units) {
        for (const auto& [in, extent, out] : {std::array<int64_t, 3>{5, 4, 9},
                                              {9, 7, 41},
                                              {33, 14, 20},
                                              {17, 14, 70},
                                              {3, 20, 64}}) {
            const Alone layer =
                alone(in, extent, extent, {.channels = out, .window = square_window(1)});
            const std::string what = text(layer.problem, unit);
            for (const std::optional<Bytes> scratch : {std::optional<Bytes>(), {Bytes(0)}}) {
                const MapPixelsLayout at = map_pixels_layout(layer.problem, unit, scratch);
                expect_done(at, at.parts(), map_pixels_code(layer.output(), at), what);
            }
        }
    }
    // 14 x 14 pixels are 12.25 vectors of 16; 70 channels.
    const Alone layer = alone(17, 14, 14, {.channels = 70, .window = square_window(1)});
    const MapPixelsLayout at = map_pixels_layout(layer.problem, by_sixteen, std::nullopt);
    EXPECT_EQ(at.multiplications(), 13 * 16 * at.blocks * at.block * 17);
    EXPECT_EQ(at.scratch_elements(), 17 * at.vectors * 16);
}

TEST(Layout, PhasesAreMultipliedAsPredicted) {
    for (const VectorUnit& unit : both_units) {
        for (const auto& [in, rows, columns, out] : {std::array<int64_t, 4>{5, 4, 16, 9},
                                                     {9, 7, 21, 5},
                                                     {300, 3, 48, 64},
                                                     {300, 5, 17, 70}}) {
            for (const auto& [up, along] : {std::array<int64_t, 2>{2, 2}, {1, 2}, {3, 1}, {1, 4}}) {
                const Alone layer = alone(in, rows, columns, enlarged(out, up, along));
                const MapPhasesLayout at = map_phases_layout(layer.problem, unit);
                expect_done(at, at.parts(), map_phases_code(layer.output(), at),
                            text(layer.problem, unit));
            }
        }
    }
    // Four phases of one channel and three vectors of 8 lanes are the 12 sums. Rows of 21 positions are
    // 3 vectors, the last of which begins at 13; 7 rows are 7 tiles of 3 vectors.
    const Alone small = alone(9, 7, 21, enlarged(5, 2, 2));
    const MapPhasesLayout at = map_phases_layout(small.problem, by_eight);
    EXPECT_EQ(at.block, 1);
    EXPECT_EQ(at.vectors, 3);
    EXPECT_EQ(at.tiles.whole, 7);
    EXPECT_EQ(at.multiplications(), 7 * 3 * 8 * 9 * 4 * 5);
    EXPECT_EQ(at.tiles_of_panel, 1);
    EXPECT_EQ(at.scratch_elements(), 9 * 3 * 8);
    // 300 x 64 x 4 weights are 300 KiB. A tile of 300 x 24 inputs has 28.1 KiB: nine in 256 KiB. 3 rows of 6
    // vectors are six tiles, which one panel holds.
    const Alone large = alone(300, 3, 48, enlarged(64, 2, 2));
    const MapPhasesLayout near = map_phases_layout(large.problem, by_eight);
    EXPECT_EQ(near.tiles_of_panel, 9);
    EXPECT_EQ(near.panels(), 1);
    EXPECT_EQ(near.scratch_elements(), 6 * 300 * 24);
    EXPECT_EQ(near.parts(), 8);
}

TEST(Layout, ChannelsAreMultipliedAsPredicted) {
    for (const VectorUnit& unit : both_units) {
        for (const auto& [in, extent, out] : {std::array<int64_t, 3>{5, 3, 9},
                                              {96, 5, 41},
                                              {20, 1, 70},
                                              {30, 1, 1000},
                                              {70, 9, 136},
                                              {17, 9, 288}}) {
            const Alone layer =
                alone(in, extent, extent, {.channels = out, .window = square_window(1)});
            const MapChannelsLayout at = map_channels_layout(layer.problem, unit);
            expect_done(at, at.parts(), map_channels_code(layer.output(), at),
                        text(layer.problem, unit));
        }
    }
    // 41 channels are three vectors of 16.
    const Alone layer = alone(96, 3, 3, {.channels = 41, .window = square_window(1)});
    EXPECT_EQ(map_channels_layout(layer.problem, by_sixteen).multiplications() % (9 * 96 * 16), 0);
    EXPECT_GE(map_channels_layout(layer.problem, by_sixteen).multiplications(), 9 * 96 * 48);
}

/// Xception's 728 channels are 46 vectors, 23 blocks of two: two threads share the twelfth.
TEST(Layout, BlocksOfAnOddNumberHaveTwoParts) {
    const Network network =
        chain(728, 19, 19,
              {{.channels = 728, .window = square_window(1)},
               {.channels = 728, .window = square_window(3, 1, 1), .groups = 728}});
    const LayerProblem pointwise = layer_problem(network, 0), depthwise = layer_problem(network, 1);
    const MapChannelsLayout alone_at = map_channels_layout(pointwise, by_sixteen);
    EXPECT_EQ(alone_at.blocks, 23);
    EXPECT_EQ(alone_at.parts(), 46);
    EXPECT_EQ(alone_at.parts_together(), 2);
    // 361 pixels are 26 tiles of 14 or 13, 19 rows three tiles of 7, 7 and 5. The first part reads
    // rows 0 to 7, so pixels below 152 of eleven tiles; the second one rows 6 to 18, so pixels from
    // 114 on.
    const MapBlocksLayout at = map_blocks_layout(pointwise, by_sixteen, depthwise, by_sixteen);
    EXPECT_EQ(at.parts(), 46);
    EXPECT_EQ(at.parts_together(), 2);
    EXPECT_EQ(at.second_tile, 1);
    EXPECT_EQ(at.first_end, 11);
    EXPECT_EQ(at.pointwise.first_pixel(11), 154);
    EXPECT_EQ(at.second_begin, 8);
    EXPECT_LE(at.pointwise.first_pixel(8), 6 * 19);
    EXPECT_GT(at.pointwise.first_pixel(9), 6 * 19);
    // An even number of blocks needs no parts.
    const MapChannelsLayout even = map_channels_layout(
        alone(64, 14, 14, {.channels = 512, .window = square_window(1)}).problem, by_sixteen);
    EXPECT_EQ(even.blocks % 2, 0);
    EXPECT_EQ(even.parts_together(), 1);
}

TEST(Layout, PanelsOfAFewPixelsStayInTheCaches) {
    const auto layout = [](int64_t inputs, const VectorUnit& unit) {
        return map_channels_layout(
            alone(inputs, 14, 14, {.channels = 136, .window = square_window(1)}).problem, unit);
    };
    // 136 channels are nine blocks of two vectors of 8, 196 pixels 33 tiles of up to six. Weights of 300
    // inputs and a block take 19 KiB, so passes have half of the inputs; the panel takes 230 KiB.
    const MapChannelsLayout whole = layout(300, {8, 12});
    EXPECT_TRUE(whole.has_panel);
    EXPECT_EQ(whole.passes(), 2);
    EXPECT_EQ(whole.chunks, 1);
    EXPECT_EQ(whole.parts_together(), whole.channel_parts);
    EXPECT_EQ(whole.scratch_elements(), 196 * 16 + 300 * 196 + 8);
    // The panel of 700 inputs would take 536 KiB: three chunks of eleven tiles.
    const MapChannelsLayout chunks = layout(700, {8, 12});
    EXPECT_EQ(chunks.chunks, 3);
    EXPECT_EQ(chunks.scratch_elements(), 66 * 16 + 700 * 66 + 8);
    EXPECT_FALSE(layout(700, by_sixteen).has_panel);
}

TEST(VectorUnit, KnowsAZen4AndTakesAVX512WithoutZenForIntels) {
    const auto unit = [](const std::string& features) {
        return vector_unit(Halide::Target("x86-64-linux-sse41-avx-avx2-fma-f16c" + features));
    };
    const std::string avx512_features = "-avx512-avx512_skylake-avx512_cannonlake";
    EXPECT_FALSE(unit("").has_halves);
    EXPECT_FALSE(unit(avx512_features).has_halves);
    EXPECT_TRUE(unit(avx512_features + "-avx512_zen4").has_halves);
    EXPECT_FALSE(unit(avx512_features + "-avx512_zen4-avx512_zen5").has_halves);
    EXPECT_EQ(unit(avx512_features + "-avx512_zen4").lanes, 16);
    EXPECT_FALSE(unit("").adds_in_multipliers);
    EXPECT_TRUE(unit(avx512_features).adds_in_multipliers);
    EXPECT_FALSE(unit(avx512_features + "-avx512_zen4").adds_in_multipliers);
    EXPECT_FALSE(unit(avx512_features + "-avx512_zen4-avx512_zen5").adds_in_multipliers);
}

TEST(Layout, PanelsOfWindowsGoByRows) {
    const auto layout = [](int64_t columns, int64_t channels, const VectorUnit& unit) {
        return map_channels_layout(
            alone(96, 2 * columns, 2 * columns, {.channels = channels, .window = square_window(3, 2, 1)})
                .problem,
            unit);
    };
    // Rows of 14 are tiles of 5, 5 and 4 pixels. Windows of nine taps on 96 inputs take 662 KiB: three
    // chunks of four or five rows. Padding is zeros that are multiplied.
    const MapChannelsLayout at = layout(14, 128, {8, 12});
    EXPECT_TRUE(at.has_panel);
    EXPECT_EQ(at.vectors, 2);
    EXPECT_EQ(at.tiles, 14 * 3);
    EXPECT_EQ(at.first_pixel(3 * 4 + 2), 4 * 14 + 10);
    EXPECT_EQ(at.tile_pixels(3 * 4 + 2), 4);
    EXPECT_EQ(at.chunks, 3);
    EXPECT_EQ(at.scratch_elements(), 5 * 14 * (16 + 9 * 96) + 8);
    EXPECT_EQ(at.multiplications(), int64_t{196} * 9 * 96 * 128);
    // Tiles of 4 and 3 pixels of two vectors wait for their sums; three vectors have enough.
    EXPECT_EQ(layout(7, 384, {8, 12}).vectors, 3);
    // What few blocks read stays in place, unless its taps are too many to be written out.
    EXPECT_FALSE(layout(7, 64, {8, 12}).has_panel);
    EXPECT_FALSE(layout(7, 384, by_sixteen).has_panel);
    EXPECT_TRUE(layout(14, 64, by_sixteen).has_panel);
    // 12 taps of 2 x 5 sums with AVX2; with AVX-512, whose tiles are 2 x 14 sums, 6 taps. LLVM puts sums of
    // longer bodies on the stack.
    EXPECT_EQ(at.inputs_together(), 4);
    EXPECT_EQ(layout(28, 128, by_sixteen).tile_pixels(0), 14);
    EXPECT_EQ(layout(28, 128, by_sixteen).inputs_together(), 2);
}

TEST(Layout, TapsOfAFewPixelsAreMultipliedAsPredicted) {
    for (const VectorUnit& unit : both_units) {
        for (const Window& window :
             {square_window(3, 1, 1), square_window(3, 2, 1), square_window(1, 2),
              square_window(5, 1, 2), square_window(3, 1, 2, 2)}) {
            for (const int64_t extent : {5, 8}) {
                const Alone layer = alone(70, extent, extent, {.channels = 37, .window = window});
                const MapChannelsLayout at = map_channels_layout(layer.problem, unit);
                expect_done(at, at.parts(), map_channels_code(layer.output(), at),
                            text(layer.problem, unit));
            }
        }
    }
    // A 3x3 window with padding on 7 x 7 pixels: of 21 x 21 taps, two rows and columns are padding.
    const Alone layer = alone(70, 7, 7, {.channels = 64, .window = square_window(3, 1, 1)});
    const MapChannelsLayout at = map_channels_layout(layer.problem, by_sixteen);
    EXPECT_EQ(at.multiplications(), 19 * 19 * 64 * 70);
    // Tiles are rows. 70 inputs of three taps and two vectors are 26 KiB, so each row of the window
    // is one pass, between which sums of 49 pixels and two vectors wait.
    EXPECT_EQ(at.tiles, 7);
    EXPECT_EQ(at.passes(), 3);
    EXPECT_EQ(at.scratch_elements(), 49 * 2 * 16);
}

TEST(Layout, PanelsAreMultipliedAsPredicted) {
    for (const VectorUnit& unit : both_units) {
        for (const Window& window : {square_window(3, 2, 1), square_window(7, 2, 3),
                                     square_window(3, 4), square_window(3, 2, 2, 2)}) {
            const Alone layer = alone(3, 59, 67, {.channels = 33, .window = window});
            if (layer.problem[Dim::x] < 16) continue;
            const MapPanelsLayout at = map_panels_layout(layer.problem, unit);
            expect_done(at, at.parts, map_panels_code(layer.output(), at),
                        text(layer.problem, unit));
        }
    }
}

TEST(Layout, WindowsAreMultipliedAsPredicted) {
    for (const VectorUnit& unit : both_units) {
        for (const Window& window :
             {square_window(3, 1, 1), square_window(3, 2, 1), square_window(1, 2),
              square_window(5, 1, 2), square_window(3, 1, 2, 2), square_window(5, 2, 2)}) {
            for (const int64_t extent : {11, 17}) {
                const Alone layer = alone(6, extent, extent, {.channels = 37, .window = window});
                if (layer.problem[Dim::x] < 5) continue;
                const MapWindowsLayout at = map_windows_layout(layer.problem, unit);
                expect_done(at, at.parts(), map_windows_code(layer.output(), at),
                            text(layer.problem, unit));
            }
        }
    }
    // 7 rows of 7 columns, and two columns between rows: 6 * 9 + 7 = 61 pixels, four vectors of 16.
    const Alone layer = alone(6, 7, 7, {.channels = 32, .window = square_window(3, 1, 1)});
    const MapWindowsLayout at = map_windows_layout(layer.problem, by_sixteen);
    EXPECT_EQ(at.grid.pixels, 61);
    EXPECT_EQ(at.multiplications(), 4 * 16 * at.blocks * at.block * 6 * 9);
}

TEST(Layout, DepthwiseLayersAreMultipliedAsPredicted) {
    for (const VectorUnit& unit : both_units) {
        for (const Window& window :
             {square_window(3, 1, 1), square_window(3, 2, 1), square_window(5, 1, 2),
              square_window(3, 1, 2, 2), square_window(3, 1, 6, 6), square_window(7, 1, 3)}) {
            for (const int64_t extent : {5, 7, 14, 40, 75}) {
                if (extent + 2 * window.pad_begin[0] <
                    (window.kernel[0] - 1) * window.dilation[0] + 1)
                    continue;
                const Alone layer =
                    alone(9, extent, extent, {.channels = 9, .window = window, .groups = 9});
                if (layer.problem[Dim::x] < 2) continue;
                const MapDepthwiseLayout at = map_depthwise_layout(layer.problem, unit);
                expect_done(at, at.parts, map_depthwise_code(layer.output(), at),
                            text(layer.problem, unit));
            }
        }
    }
    // 7 x 7, 3 x 3 with padding: 19 rows of the kernel find rows of the picture; half a vector.
    const Alone layer =
        alone(9, 7, 7, {.channels = 9, .window = square_window(3, 1, 1), .groups = 9});
    EXPECT_EQ(map_depthwise_layout(layer.problem, by_sixteen).multiplications(), 9 * 19 * 3 * 8);
}

TEST(Layout, PoolingMultipliesNothing) {
    for (const LayerKind kind : {LayerKind::max_pool, LayerKind::average_pool}) {
        Network network = empty_network(9, 20, 20);
        append(network, "pool", {.kind = kind, .inputs = {0}, .window = square_window(3, 2, 1)});
        const Alone layer(std::move(network));
        const MapPoolingLayout at = map_pooling_layout(layer.problem, by_sixteen);
        expect_done(at, at.parts, map_pooling_code(layer.output(), at), "pooling");
    }
}

TEST(Layout, AdditionMultipliesNothing) {
    for (const int64_t extent : {2, 9, 20}) {
        Network network = empty_network(5, extent, extent);
        network.tensors.push_back({"other", network.tensor(0).dims});
        network.inputs.push_back(1);
        append(network, "add", {.kind = LayerKind::add, .inputs = {0, 1}});
        const Alone layer(std::move(network));
        const MapElementwiseLayout at = map_elementwise_layout(layer.problem, by_sixteen, false);
        expect_done(at, at.parts, map_elementwise_code(layer.output(), at), "addition");
        const int64_t end = at.rest.empty() ? at.whole_tiles * at.step()
                                            : at.rest.back().first + at.rest.back().end;
        EXPECT_EQ(at.axes * end, 5 * extent * extent);
    }
}

/// A tile of r rows loads the r + 2 rows that they read, so two rows would load each of them twice.
TEST(Layout, DepthwiseTilesOfLongRowsHaveFourRows) {
    const Alone layer = alone(16, 112, 112, {16, square_window(3, 1, 1), 16});
    EXPECT_EQ(map_depthwise_layout(layer.problem, by_sixteen).tile_rows, 4);
    EXPECT_EQ(map_depthwise_layout(layer.problem, by_sixteen, 6).tile_rows, 3);  // of a band
    const Alone narrow = alone(16, 14, 14, {16, square_window(3, 1, 1), 16});
    EXPECT_EQ(map_depthwise_layout(narrow.problem, by_sixteen).tile_rows, 14);
}

/// Two runs share a weight that does not stay in a register, if their sums fit; a loop has whole pairs.
TEST(Layout, DepthwiseRunsShareWeightsOfLargeWindows) {
    const auto layout = [](int64_t side, int64_t window, const VectorUnit& unit) {
        const Alone layer = alone(16, side, side, {16, square_window(window, 1, window / 2), 16});
        return map_depthwise_layout(layer.problem, unit);
    };
    EXPECT_EQ(layout(44, 3, by_eight).runs_together, 1);
    EXPECT_EQ(layout(44, 5, by_eight).runs_together, 2);
    EXPECT_EQ(layout(7, 5, by_eight).runs_together, 1);   // one run
    EXPECT_EQ(layout(14, 7, by_eight).runs_together, 1);  // two of seven rows would be 14 sums
    EXPECT_EQ(layout(14, 7, by_sixteen).runs_together, 1);
    const MapDepthwiseLayout long_rows = layout(88, 7, by_eight);  // 11 runs, of which 9 read no padding
    EXPECT_EQ(long_rows.loop_begin, 1);
    EXPECT_EQ(long_rows.loop_end, 9);
}

/// Whether blocks keep their products; none where the layer has no such kernel.
std::optional<bool> expect_winograd_map_done(const Alone& layer, const VectorUnit& unit, int64_t form,
                                             int64_t bands) {
    Kernel kernel{KernelKind::winograd_map, {}};
    kernel.size[KernelSize::form] = form;
    kernel.size[KernelSize::pairs] = bands;
    kernel.size[KernelSize::sums] = unit.accumulators;
    kernel.size[KernelSize::lanes] = unit.lanes;
    if (kernel_refusal(layer.problem, kernel)) return std::nullopt;
    GroupSchedule group = layer.group;
    group.nests.front().kernel = kernel;
    const WinogradMapLayout at = winograd_map_layout(layer.problem, kernel);
    const GroupCode code = group_code(layer.network, group);
    expect_done(at, at.parts(), code, text(layer.problem, unit) + ", " + to_text(kernel));
    EXPECT_EQ(at.channel_parts, code.strips_together);
    return at.parts_outermost;
}

void expect_winograd_map_done(const Alone& layer, const VectorUnit& unit) {
    for (const int64_t form : {0, 1, 2}) {
        for (const int64_t bands : {1, 2, 3})
            expect_winograd_map_done(layer, unit, form, bands);
    }
}

TEST(Layout, WholeMapsForWinogradAreMultipliedAsPredicted) {
    for (const VectorUnit& unit : both_units) {
        for (const auto& [in, rows, columns, out] : {std::array<int64_t, 4>{32, 7, 7, 40},
                                                     {33, 14, 14, 32},
                                                     {64, 13, 30, 70},
                                                     {256, 20, 20, 48},
                                                     {400, 9, 5, 32}}) {
            expect_winograd_map_done(
                alone(in, rows, columns, {.channels = out, .window = square_window(3, 1, 1)}), unit);
        }
        Window along_one_axis;
        along_one_axis.kernel = {7, 1};
        for (const Window& window : {square_window(5, 1, 2), along_one_axis})
            expect_winograd_map_done(alone(40, 19, 17, {.channels = 50, .window = window}), unit);
    }
}

TEST(Layout, KeptProductsOfWholeMapsForWinogradAreMultipliedAsPredicted) {
    const Alone layer = alone(260, 18, 128, {.channels = 32, .window = square_window(3, 1, 1)});
    EXPECT_EQ(expect_winograd_map_done(layer, {8, 12}, 2, 3), true);
}

TEST(Layout, ChunksOfWholeMapsForWinogradAreEvenAndGroupsHaveEveryRow) {
    for (const VectorUnit& unit : both_units) {
        for (const int64_t rows_of_tile : {2, 4, 6}) {
            for (const int64_t rows : {9, 44, 64, 130}) {
                const Alone layer = alone(40, rows, 128,
                                          {.channels = 70, .window = square_window(3, 1, 1)});
                for (const int64_t most : {1, 2, 3, 4, 7}) {
                    const WinogradMapLayout at =
                        winograd_map_layout(layer.problem, unit, {rows_of_tile, most});
                    EXPECT_EQ(at.first_band(0), 0);
                    EXPECT_EQ(at.first_band(at.chunks), at.bands);
                    for (int64_t chunk = 0; chunk < at.chunks; ++chunk) {
                        const int64_t here = at.first_band(chunk + 1) - at.first_band(chunk);
                        EXPECT_LE(here, at.chunk_bands);
                        EXPECT_GE(here, at.bands / at.chunks);
                    }
                    std::multiset<int64_t> grouped, all;
                    for (const std::vector<int64_t>& group : at.row_groups()) {
                        EXPECT_EQ(std::ssize(group) * at.patch_columns(), at.frequencies_together());
                        grouped.insert(group.begin(), group.end());
                    }
                    for (int64_t row = 0; row < at.patch_rows(); ++row) all.insert(row);
                    EXPECT_EQ(grouped, all);
                }
            }
        }
    }
}

/// M of `computed` tiles: of every block that it has, frequency and vector of output channels.
void expect_products_have_places_of_their_own(const WinogradMapLayout& at, int64_t computed) {
    std::set<int64_t> places;
    const int64_t blocks = at.parts_outermost ? at.blocks : 1;
    for (int64_t block = 0; block < blocks; ++block) {
        for (int64_t f = 0; f < at.frequencies; ++f) {
            for (int64_t v = 0; v < at.vectors; ++v) {
                for (int64_t n = 0; n < computed; ++n)
                    places.insert(block * at.product_block + f * at.product_frequency +
                                  v * at.product_vector + n / at.tile * at.product_tile +
                                  n % at.tile * at.lanes);
            }
        }
    }
    EXPECT_EQ(std::ssize(places), blocks * at.frequencies * at.vectors * computed);
    for (auto place = places.begin(); std::next(place) != places.end(); ++place)
        ASSERT_GE(*std::next(place) - *place, at.lanes);
    EXPECT_LE(*places.rbegin() + at.lanes, at.staged - at.products);
}

TEST(Layout, KeptProductsOfWholeMapsForWinogradHavePlacesOfTheirOwn) {
    const Alone layer = alone(400, 64, 64, {.channels = 70, .window = square_window(3, 1, 1)});
    for (const VectorUnit& unit : both_units) {
        for (const int64_t rows_of_tile : {2, 4, 6}) {
            const WinogradMapLayout few = winograd_map_layout(layer.problem, unit, {rows_of_tile, 1});
            EXPECT_FALSE(few.parts_outermost);
            EXPECT_EQ(few.parts_with_patches(), few.input_parts);
            const WinogradMapLayout at =
                winograd_map_layout(layer.problem, unit, {rows_of_tile, few.bands});
            ASSERT_TRUE(at.parts_outermost);
            EXPECT_EQ(at.parts_with_patches(), 1);
            EXPECT_LE(at.frequencies * at.patch_frequency, at.weights);
            expect_products_have_places_of_their_own(
                at, round_up(at.chunk_bands * at.row_tiles, at.tile));
        }
    }
}

TEST(Layout, TilesOfWholeMapsForWinogradHavePlacesOfTheirOwn) {
    for (const VectorUnit& unit : both_units) {
        for (const int64_t rows_of_tile : {2, 4, 6}) {
            for (const int64_t columns : {7, 14, 28, 56, 100}) {
                const Alone layer = alone(40, 30, columns,
                                          {.channels = 70, .window = square_window(3, 1, 1)});
                if (rows_of_tile == 6 && !fills_wide_tiles(layer.problem, unit.lanes)) continue;
                for (const int64_t most : {1, 2, 5}) {
                    const WinogradMapLayout at =
                        winograd_map_layout(layer.problem, unit, {rows_of_tile, most});
                    // Runs of patches begin with a band's tiles, or hold several bands of as many slots.
                    EXPECT_EQ(at.slot_of(at.row_tiles), at.row_slots);
                    EXPECT_EQ(at.row_slots % std::min(at.slots, at.run), 0);
                    EXPECT_LT(at.row_slots - at.row_tiles, std::min(at.slots, at.run));
                    EXPECT_EQ(at.lanes % at.run, 0);
                    const int64_t computed = round_up(at.chunk_bands * at.row_tiles, at.tile);
                    for (int64_t n = 1; n < computed; ++n)
                        EXPECT_GT(at.slot_of(n), at.slot_of(n - 1));
                    EXPECT_LT(at.slot_of(computed - 1), at.patch_runs * at.run);
                    const int64_t of_frequency = at.patch_runs * at.inputs * at.run;
                    EXPECT_LE(of_frequency, at.patch_frequency);
                    EXPECT_GE(at.weights, at.parts_with_patches() * at.frequencies * of_frequency);
                    EXPECT_GE(at.staged - at.products, at.frequencies * computed * at.block);
                    expect_products_have_places_of_their_own(at, computed);
                    EXPECT_EQ(at.strip_columns() % at.stored_columns(), 0);
                }
            }
        }
    }
}

TEST(Layout, TwoThreadsTransformNoPatchesTwiceWhereChunksAreAsEven) {
    // Seven bands: of three chunks both threads would need the second, of two each has one.
    const Alone layer = alone(128, 28, 28, {.channels = 128, .window = square_window(3, 1, 1)});
    const std::optional<WinogradMapChunks> chunks =
        winograd_map_chunks(layer.problem, by_sixteen, 4, 4, std::nullopt);
    ASSERT_TRUE(chunks);
    const WinogradMapLayout at = winograd_map_layout(layer.problem, by_sixteen, *chunks);
    EXPECT_EQ(at.chunks, 2);
    EXPECT_EQ(at.parts() / 2 % at.channel_parts, 0);
}

TEST(Layout, RegisterTilesOfWholeMapsForWinogradDivideTheirTilesWhereTheyCan) {
    // 66 tiles of a chunk of six bands, which five tiles of 14 would compute 70 of.
    const Alone layer = alone(512, 64, 64, {.channels = 512, .window = square_window(3, 1, 1)});
    const WinogradMapLayout at = winograd_map_layout(layer.problem, by_sixteen, {6, 6});
    EXPECT_EQ(at.chunk_bands * at.row_tiles % at.tile, 0);
    EXPECT_EQ(at.chunk_bands * at.row_tiles, 66);
}

TEST(Layout, RowsForWinogradAreMultipliedAsPredicted) {
    int fewer = 0;  // by higher tiles
    for (const VectorUnit& unit : both_units) {
        for (const int64_t columns : {70, 130}) {
            for (const int64_t rows : {2, 3, 4, 5, 6, 8, 11}) {
                const Network network =
                    chain(24, 19, columns, {{.channels = 24, .window = square_window(3, 1, 1)}});
                const GroupSchedule group = line_buffer_group(network, {0}, {rows, 0, 0});
                const std::vector<LayerProblem> problems = group_problems(network, group);
                const LayerProblem& p = problems.front();
                const std::set<std::pair<int64_t, int64_t>> steps =
                    row_steps(group, problems).front();
                std::vector<int64_t> executed;
                for (const int64_t most : {2, 4, 6}) {
                    const std::optional<WinogradTile> tile =
                        winograd_tile(p, steps, columns, unit, WinogradAxes::any, most);
                    ASSERT_TRUE(tile);
                    int64_t predicted = 0;
                    for (const auto& [begin, end] : steps)
                        predicted += winograd_multiplications(p, *tile, {begin, end}, columns);
                    executed.push_back(ExecutedProducts::of(
                        default_code(network, group, unit, {.tile_rows = most})));
                    EXPECT_EQ(predicted, executed.back())
                        << text(p, unit) << ", steps of " << rows << " rows";
                }
                for (const size_t n : {1, 2}) {
                    EXPECT_LE(executed[n], executed[n - 1]);
                    if (executed[n] < executed[n - 1]) ++fewer;
                }
            }
        }
    }
    EXPECT_GE(fewer, 15);
}

Window kernel_of(int64_t rows, int64_t columns, int64_t pad_rows, int64_t pad_columns) {
    Window w;
    w.kernel = {rows, columns};
    w.pad_begin = w.pad_end = {pad_rows, pad_columns};
    return w;
}

/// False where the chain does not suit.
bool expect_columns(const Network& network, const LineBufferSizes& sizes, const VectorUnit& unit) {
    std::vector<LayerId> layers(network.layers.size());
    std::iota(layers.begin(), layers.end(), 0);
    const GroupSchedule group = line_buffer_group(network, layers, sizes);
    const std::optional<GroupCode> code = column_code(network, group, unit);
    if (!code) return false;
    const std::vector<LayerProblem> chain = group_problems(network, group);
    std::vector<int64_t> kept_rows;
    for (const BufferShape& shape : buffer_shapes(group, chain, StripRange::any).tensors)
        kept_rows.push_back(shape.extent[1]);
    const ColumnsLayout at = columns_layout(chain, kept_rows, sizes.strip_columns, unit);
    EXPECT_EQ(at.scratch_elements() * bytes_per_element, code->scratch_bytes);
    const int64_t all = chain.back()[Dim::x];
    const int64_t step = sizes.strip_columns == 0 ? all : sizes.strip_columns;
    int64_t predicted = 0;
    for (int64_t x = 0; x < all; x += step) {
        for (const int64_t of_nest : at.multiplications(chain, x, std::min(x + step, all)))
            predicted += of_nest;
    }
    EXPECT_EQ(predicted, ExecutedProducts::of(*code))
        << to_text(group) << ", " << unit.lanes << " lanes";
    return true;
}

TEST(Layout, ColumnsAreMultipliedAsPredicted) {
    const Window narrow = square_window(3, 1, 1);
    const auto layer = [](int64_t channels, const Window& window) {
        return LayerSpec{.channels = channels, .window = window};
    };
    const std::vector<Network> networks{
        chain(1, 13, 90,
              {layer(7, square_window(5, 1, 2)), layer(5, square_window(1)), layer(6, narrow)}),
        chain(3, 12, 70, {layer(6, square_window(9, 1, 4)), layer(1, square_window(5, 1, 2))}),
        chain(2, 11, 80, {layer(5, square_window(5)), layer(2, square_window(7, 1, 3))}),
        chain(1, 14, 66, {layer(9, kernel_of(1, 5, 0, 2)), layer(3, kernel_of(5, 5, 2, 2))}),
        chain(1, 12, 71,
              {layer(8, square_window(5, 1, 2)),
               {.channels = 1,
                .window = square_window(9, 2, 4),
                .kind = LayerKind::conv_transpose}})};
    int tested = 0;
    for (const VectorUnit& unit : both_units) {
        for (const Network& network : networks) {
            for (const LineBufferSizes& sizes :
                 {LineBufferSizes{1, 0, 0}, {2, 0, 0}, {4, 0, 0}, {2, 0, 32}, {3, 0, 27}})
                tested += expect_columns(network, sizes, unit) ? 1 : 0;
        }
    }
    EXPECT_GE(tested, 40);
}

}  // namespace
}  // namespace laminate
