// Energies and latencies of points that were run in the public artifact of DeFiNES (commit
// 7097d609), with the settings of its main.py. --as-published has to meet them.
#include "papers/depth_first/depth_first.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "nets/zoo/zoo.h"

namespace laminate::depth_first {
namespace {

struct Point {
    const char* machine;
    const char* network;
    Overlap overlap;
    TileSize tile;
    size_t limit;
    double energy_pj;
    int64_t latency_cycles;
};

class AsPublished : public ::testing::TestWithParam<Point> {};

TEST_P(AsPublished, EqualsTheArtifact) {
    const Point& point = GetParam();
    const DepthFirst model(open_machine(point.machine), zoo_network(point.network),
                           Fidelity::as_published(point.limit));
    const DepthFirstCost cost = model.cost({.tile = point.tile, .overlap = point.overlap});
    EXPECT_NEAR(cost.energy_pj / point.energy_pj, 1, 1e-9);
    EXPECT_EQ(cost.latency_cycles, point.latency_cycles);
}

INSTANTIATE_TEST_SUITE_P(
    Defines, AsPublished,
    ::testing::Values(
        Point{"meta_proto_df",
              "fsrcnn-defines",
              Overlap::fully_cached,
              {60, 72},
              6,
              2154699943.145,
              20187977},
        Point{"meta_proto_df",
              "fsrcnn-defines",
              Overlap::h_cached,
              {60, 72},
              6,
              2220992385.935,
              21345958},
        Point{"meta_proto_df",
              "fsrcnn-defines",
              Overlap::recompute,
              {60, 72},
              6,
              2361363150.545,
              22776595},
        Point{"meta_proto_df",
              "fsrcnn-defines",
              Overlap::fully_cached,
              {16, 18},
              6,
              1822760872.09,
              20523395},
        Point{"meta_proto_df",
              "fsrcnn-defines",
              Overlap::fully_cached,
              {4, 72},
              6,
              1813734143.38,
              18484958},
        // Every layer is cut off, and the cut after the first is ignored, so everything is costed
        // twice.
        Point{"tpu",
              "fsrcnn-defines",
              Overlap::fully_cached,
              {240, 270},
              6,
              37868337312.315,
              128867502},
        Point{"tpu",
              "mccnn-defines",
              Overlap::fully_cached,
              {94, 207},
              6,
              53619209970.175,
              135878174},
        // Branches cross cuts; the input of a stack has its channels twice.
        Point{"edge_tpu",
              "resnet18-defines",
              Overlap::fully_cached,
              {20, 30},
              6,
              16722816441.08,
              27900941},
        // Depthwise and pointwise layers, five stacks.
        Point{"ascend",
              "mobilenetv1-defines",
              Overlap::h_cached,
              {14, 14},
              6,
              3277106832.93,
              6854856},
        // Branches inside a stack, cached over two axes.
        Point{"tesla_npu_df",
              "resnet18-defines",
              Overlap::fully_cached,
              {20, 20},
              6,
              2688618017.467858,
              13064698},
        Point{"edge_tpu_df",
              "resnet18-defines",
              Overlap::h_cached,
              {5, 9},
              6,
              5641174767.055,
              27271852},
        Point{
            "ascend_df", "fsrcnn-defines", Overlap::h_cached, {60, 72}, 6, 2564963338.88, 27859385},
        Point{"meta_proto",
              "fsrcnn-defines",
              Overlap::h_cached,
              {16, 18},
              6,
              2510769496.285,
              27013618},
        Point{"tpu_df",
              "mobilenetv1-defines",
              Overlap::recompute,
              {12, 12},
              6,
              5382911237.021,
              10693251},
        // Tiles that divide nothing, exceed the picture along one axis or both, or have a few
        // pixels.
        Point{"edge_tpu_df",
              "mccnn-defines",
              Overlap::fully_cached,
              {41, 97},
              6,
              9281980914.98,
              65381325},
        Point{"ascend_df",
              "mccnn-defines",
              Overlap::fully_cached,
              {50, 333},
              6,
              29791258020.985004,
              70776960},
        Point{"ascend", "fsrcnn-defines", Overlap::recompute, {131, 77}, 6, 2395074425.0, 28068270},
        Point{"tesla_npu",
              "mccnn-defines",
              Overlap::h_cached,
              {2000, 3000},
              6,
              29380981035.776,
              55478649},
        Point{"tesla_npu_df",
              "fsrcnn-defines",
              Overlap::h_cached,
              {97, 541},
              6,
              18044631127.83222,
              31734014},
        Point{"tpu_df",
              "mobilenetv1-defines",
              Overlap::h_cached,
              {3, 1},
              6,
              3667974226.594001,
              27727867},
        Point{"meta_proto_df",
              "mccnn-defines",
              Overlap::recompute,
              {94, 414},
              7,
              26371948412.04,
              60851088}),
    [](const auto& point) {
        const Point& p = point.param;
        std::string name = std::string(p.machine) + "_" + p.network + "_" + to_string(p.overlap) +
                           "_" + std::to_string(p.tile.x) + "x" + std::to_string(p.tile.y);
        std::erase(name, '-');
        return name;
    });

TEST(DepthFirst, KindsOfTilesAreThoseOfThePaper) {
    // 960 x 540 in tiles of 60 x 72: 3, 6 and 9 kinds (DeFiNES, section III).
    const DepthFirst model(open_machine("meta_proto_df"), zoo_network("fsrcnn-defines"),
                           Fidelity::as_published(3));
    const auto kinds = [&](Overlap overlap) {
        return model.cost({.tile = {60, 72}, .overlap = overlap}).tile_kinds;
    };
    EXPECT_EQ(kinds(Overlap::recompute), 3);
    EXPECT_EQ(kinds(Overlap::h_cached), 6);
    EXPECT_EQ(kinds(Overlap::fully_cached), 9);
}

TEST(DepthFirst, FullyCachedComputesEverythingOnce) {
    const Network network = zoo_network("fsrcnn-defines");
    const DepthFirst model(open_machine("meta_proto_df"), network, Fidelity::as_published(3));
    EXPECT_EQ(model.workload().macs(), 8'362'594'208);
    const DepthFirstCost cached = model.cost({.tile = {60, 72}, .overlap = Overlap::fully_cached});
    EXPECT_EQ(cached.macs, 8'362'594'208);
    EXPECT_GT(model.cost({.tile = {60, 72}, .overlap = Overlap::h_cached}).macs, cached.macs);
}

std::vector<std::string> last_layers(const char* machine, const char* network) {
    Fidelity fidelity = Fidelity::as_published(1);
    fidelity.quirks.first_cut_is_ignored = false;
    const DepthFirst model(open_machine(machine), zoo_network(network), fidelity);
    std::vector<std::string> names;
    for (const std::vector<size_t>& stack : model.stacks(Stacks::weights_fit))
        names.push_back(model.workload().layers[stack.back()].name);
    return names;
}

TEST(DepthFirst, StacksAreCutWhereWeightsNoLongerFit) {
    // 1 MB of weights: MobileNetV1 is cut after layers 17, 23, 25 and 27 (DeFiNES' artifact).
    EXPECT_EQ(
        last_layers("meta_proto_df", "mobilenetv1-defines"),
        (std::vector<std::string>{"depthwise9", "depthwise12", "depthwise13", "average", "fc"}));
    // ResNet18 is cut after layers 13 and 16 and then after each layer to 25.
    EXPECT_EQ(last_layers("meta_proto_df", "resnet18-defines"),
              (std::vector<std::string>{"layer2_1_add", "layer3_0_add", "layer3_1_conv1",
                                        "layer3_1_conv2", "layer3_1_add", "layer4_0_conv1",
                                        "layer4_0_conv2", "layer4_0_add", "layer4_1_conv1",
                                        "layer4_1_conv2", "layer4_1_add", "fc"}));
    EXPECT_EQ(last_layers("meta_proto_df", "dmcnn-vd-defines").size(), 1u);
    // Edge-TPU-like with 32 KB: FSRCNN is whole, every layer of MC-CNN is alone.
    EXPECT_EQ(last_layers("edge_tpu", "fsrcnn-defines").size(), 1u);
    EXPECT_EQ(last_layers("edge_tpu", "mccnn-defines").size(), 4u);
}

TEST(DepthFirst, SingleLayersGoThroughTheHighestMemory) {
    const DepthFirst model(open_machine("meta_proto_df"), zoo_network("fsrcnn-defines"),
                           Fidelity::as_published(3));
    const Strategy whole{
        .tile = {960, 540}, .overlap = Overlap::fully_cached, .stacks = Stacks::all};
    Strategy single = whole;
    single.stacks = Stacks::single_layer;
    EXPECT_EQ(model.cost(single).stacks.size(), 8u);
    EXPECT_GE(model.cost(single).energy_pj, model.cost(whole).energy_pj * 0.99);
}

// With padding, strides, branches and shortcuts, and for any tile, each output is computed once and
// none outside the map is.
TEST(DepthFirst, PaddedNetworksAreComputedOnceToo) {
    for (const char* name : {"vgg16", "resnet18", "mobilenetv2", "fsrcnn"}) {
        const DepthFirst model(open_machine("meta_proto_df"),
                               zoo_network(name, {.height = 96, .width = 80}),
                               Fidelity{.loop_limit = 1});
        int64_t recomputed = 0;
        for (const TileSize tile : {TileSize{3, 5}, TileSize{7, 2}, TileSize{100, 100}}) {
            EXPECT_EQ(model.cost({.tile = tile, .overlap = Overlap::fully_cached}).macs,
                      model.workload().macs())
                << name << " " << tile.x << "x" << tile.y;
            recomputed = std::max(recomputed,
                                  model.cost({.tile = tile, .overlap = Overlap::recompute}).macs);
        }
        EXPECT_GT(recomputed, model.workload().macs()) << name;
    }
}

TEST(DepthFirst, KnowsTransposedAndDilatedConvolutionsAndConcatenations) {
    // 9 x 9, stride 4, 12 -> 2 channels: of 4 phases along an axis one has 3 taps, the others 2.
    // Eight columns from phase 0 on have two outputs of each phase: 2 * 3 + 3 * 2 * 2 = 18 taps.
    // Six rows have two outputs of phases 0 and 1 and one of the others: 2 * 3 + 2 * 2 + 2 * 2
    // = 14.
    WorkloadLayer layer;
    layer.transposed = true;
    layer.shape.sizes[Dim::k] = 2;
    layer.shape.sizes[Dim::c] = 12;
    layer.shape.sizes[Dim::fx] = layer.shape.sizes[Dim::fy] = 9;
    layer.shape.stride = {4, 4};
    const std::vector<LayerShape> executed = executed_shapes(layer, {8, 0}, {6, 0});
    EXPECT_EQ(executed.size(), 2u * 3u);
    int64_t macs = 0, weights = 0;
    for (const LayerShape& shape : executed) {
        macs += shape.macs();
        weights += shape.weight_elements();
    }
    EXPECT_EQ(macs, 2 * 12 * 18 * 14);
    EXPECT_EQ(weights, 2 * 12 * 9 * 9);  // no phase is padded
    // For any first phase and size there are as many taps as counting at each output finds.
    for (int64_t phase = 0; phase < 4; ++phase) {
        for (int64_t size = 1; size < 10; ++size) {
            int64_t taps = 0, found = 0;
            for (int64_t out = phase; out < phase + size; ++out) {
                for (int64_t tap = 0; tap < 9; ++tap) taps += (out - tap) % 4 == 0 ? 1 : 0;
            }
            for (const LayerShape& shape : executed_shapes(layer, {size, phase}, {1, 3}))
                found += shape.macs();
            EXPECT_EQ(found, 2 * 12 * 2 * taps) << phase << " " << size;  // row phase 3: 2 taps
        }
    }

    // With taps 3 apart, one output sees 1, 4, 7 and four see 1 .. 10.
    EXPECT_EQ(span(1, 1, 3, 3), 3);
    EXPECT_EQ(span(2, 1, 3, 3), 6);
    EXPECT_EQ(span(4, 1, 3, 3), 10);

    // An inception network: a concatenation lies in its parts, and readers fetch from each.
    const Workload workload = workload_of(zoo_network("inceptionv3"), false);
    const auto readers_of_parts = std::ranges::count_if(
        workload.layers, [](const WorkloadLayer& l) { return l.sources.size() > 2; });
    EXPECT_GT(readers_of_parts, 10);
    for (const WorkloadLayer& l : workload.layers) {
        if (l.is_input()) continue;
        int64_t channels = 0;
        for (const int64_t part : l.source_channels) channels += part;
        EXPECT_EQ(channels, l.shape.input_channels()) << l.name;
    }
}

TEST(DepthFirst, CachesRowsAsItCachesColumns) {
    // A square network that treats rows and columns alike, on a machine with neither on its array.
    const DepthFirst model(open_machine("tpu_df"), zoo_network("l2net"), {});
    const DepthFirstCost columns =
        model.cost({.tile = {3, 5}, .overlap = Overlap::h_cached, .stacks = Stacks::all});
    const DepthFirstCost rows =
        model.cost({.tile = {5, 3}, .overlap = Overlap::v_cached, .stacks = Stacks::all});
    EXPECT_EQ(rows.macs, columns.macs);
    EXPECT_EQ(rows.on_chip_bits, columns.on_chip_bits);
    EXPECT_NEAR(rows.energy_pj, columns.energy_pj, 1e-9 * columns.energy_pj);
}

TEST(DepthFirst, LanesAreHalvedWhereTheirElementsDoNotFit) {
    // 32 x 8 x 4 lanes take 1 KB of each operand of an addition, and both operands lie in a memory
    // of 1 KB.
    const DepthFirst model(open_machine("tesla_npu"), zoo_network("resnet18-defines"), {});
    const DepthFirstCost cost = model.cost({.tile = {16, 18}});
    const auto addition = std::ranges::find_if(
        cost.details, [](const LayerTileCost& d) { return d.shape.type == LayerType::addition; });
    ASSERT_NE(addition, cost.details.end());
    // With half the lanes, each 1024 elements take at least two cycles.
    EXPECT_GE(addition->mapping.cost.latency.temporal_cycles * 512,
              addition->shape.output_elements());
    EXPECT_GT(cost.energy_pj, 0);
}

TEST(DepthFirst, EveryQuirkHasItsName) {
    Quirks quirks;
    for (const QuirkName& quirk : quirk_names()) {
        EXPECT_FALSE(quirks.*quirk.member);
        add_quirk(quirks, quirk.name);
        EXPECT_TRUE(quirks.*quirk.member);
    }
    EXPECT_THROW(add_quirk(quirks, "none"), InputError);
}

TEST(DepthFirst, RefusesWhatItDoesNotKnow) {
    // A transposed convolution in an endless map.
    EXPECT_THROW(
        DepthFirst(open_machine("tpu"), zoo_network("fsrcnn-x2"), Fidelity::as_published(6)),
        InputError);
    EXPECT_THROW((void)parse_overlap("some"), InputError);
    const DepthFirst model(open_machine("tpu"), zoo_network("l2net"), Fidelity::as_published(3));
    EXPECT_THROW((void)model.cost({.tile = {0, 4}}), InputError);
}

}  // namespace
}  // namespace laminate::depth_first
