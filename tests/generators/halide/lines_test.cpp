// Chains of padded layers that keep lines: the form that most schedules of networks for pictures
// have. Each layer brings in a tile's rows (or columns) of the layer before, and keeps them for the
// next tile or computes them again. Inside the class, Halide counts and computes what the closed
// form and the reference operators do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "instrumentation/halide_witness.h"
#include "scheduler/counts/two_level/two_level.h"
#include "tests/instrumentation/join_networks.h"

namespace laminate {
namespace {

enum class Held {
    lines,  ///< kept from tile to tile
    tile,   ///< brought in again for each tile
    whole,  ///< brought in once; of the input only
};

struct Line {
    int64_t kernel = 3, stride = 1, pad = 1;
    Held input = Held::lines;  ///< what the layer reads
};

struct LineCase {
    std::vector<Line> layers;
    int64_t extent = 24;   ///< of the input along the tiles
    int64_t tile = 4;      ///< of the last layer's output
    bool columns = false;  ///< tiles of columns instead of rows
};

Network network_of(const LineCase& c) {
    JoinBuilder b;
    TensorId x = c.columns ? b.input(2, 7, c.extent) : b.input(2, c.extent, 7);
    for (const Line& line : c.layers)
        x = b.padded_conv(x, 2, line.kernel, line.stride, line.pad, 1, ActivationKind::relu);
    return b.finish("lines");
}

std::string schedule_of(const LineCase& c, const Network& network) {
    const std::string sink = fmt::format("conv{}", c.layers.size());
    const char* loop = c.columns ? "xo" : "yo";
    std::string text;
    for (size_t k = 0; k < c.layers.size(); ++k) {
        const bool is_last = k + 1 == c.layers.size();
        const std::vector<int64_t>& out = network.tensor(network.layers[k].output).dims;
        const auto level = [&](Held held, const std::string& at) {
            return held == Held::whole   ? std::string("root/root")
                   : held == Held::lines ? "root/" + at
                                         : at + "/" + at;
        };
        const std::string here = is_last ? loop : sink + "." + loop;
        std::string nest = fmt::format("conv{}: zo {} | zi yi xi ii n m; tile z2 y{} x{} i2; ",
                                       k + 1, c.columns ? "xo yo io" : "yo xo io",
                                       is_last && !c.columns ? c.tile : out[2],
                                       is_last && c.columns ? c.tile : out[3]);
        if (k == 0) nest += "X " + level(c.layers[0].input, here) + "; ";
        nest += "W root/root; Y ";
        nest += is_last ? fmt::format("{0}/{0}", loop)
                        : level(c.layers[k + 1].input, sink + "." + loop);
        text += (text.empty() ? "" : " & ") + nest;
    }
    return "{" + text + "}";
}

std::string text_of(const LineCase& c) {
    std::string text =
        fmt::format("{} {}, tiles of {}:", c.extent, c.columns ? "columns" : "rows", c.tile);
    for (const Line& l : c.layers)
        text +=
            fmt::format(" {}{}/{}p{}", "ltw"[static_cast<int>(l.input)], l.kernel, l.stride, l.pad);
    return text;
}

struct Judged {
    int inside = 0;
    std::map<std::string, int> outside;  ///< by reason
    int not_legal = 0;
};

void judge(const LineCase& c, Judged& judged) {
    std::optional<Network> network;
    std::optional<GroupSchedule> group;
    try {
        network = network_of(c);
        group = parse_group(*network, schedule_of(c, *network));
    } catch (const InputError&) {  // windows that reach no input, tiles above the extent
        ++judged.not_legal;
        return;
    }
    const HalideMeasurement halide = measure_halide(*network, *group, 1);
    const std::string where = text_of(c) + "\n  " + to_text(*group);
    if (!halide.exclusions.empty()) {
        for (const HalideExclusion& e : halide.exclusions) ++judged.outside[to_text(e.reason)];
        EXPECT_EQ(halide.wrong_result, "") << where;
        return;
    }
    ++judged.inside;
    EXPECT_EQ(halide.refused, "") << where;
    EXPECT_EQ(halide.wrong_result, "") << where;
    if (halide.refused.empty()) {
        EXPECT_EQ(difference(two_level_counts(*network, *group), "model", halide.counts, "Halide"),
                  "")
            << where;
    }
}

LineCase random_lines(Rng& rng) {
    LineCase c;
    const int64_t layers = rng.between(2, 5);
    for (int64_t k = 0; k < layers; ++k) {
        Line line{.kernel = 2 * rng.between(0, 2) + 1, .stride = rng.chance(1, 5) ? 2 : 1};
        line.pad = rng.between(0, std::min<int64_t>(2, line.kernel - 1));
        line.input = rng.chance(3, 4) ? Held::lines : Held::tile;
        if (k == 0 && rng.chance(1, 4)) line.input = Held::whole;
        c.layers.push_back(line);
    }
    c.extent = rng.between(8, 40);
    c.columns = rng.chance(1, 4);
    int64_t out = c.extent;
    for (const Line& l : c.layers)
        out = std::max<int64_t>(1, (out + 2 * l.pad - l.kernel) / l.stride + 1);
    do {
        c.tile = rng.between(1, 8);
    } while (out % c.tile != 0 && rng.chance(3, 4));
    return c;
}

TEST(HalideLines, RandomChainsInsideTheClassCountAsTheModelDoes) {
    Judged judged;
    Rng rng(25);
    for (int n = 0; n < 24; ++n) judge(random_lines(rng), judged);
    EXPECT_GE(judged.inside, 9);  // counted: 10
}

LineCase equal_layers(int64_t layers, Line line, int64_t tile, int64_t tiles) {
    LineCase c{.layers = {}, .extent = tile * tiles, .tile = tile};
    c.layers.assign(static_cast<size_t>(layers), line);
    return c;
}

TEST(HalideLines, ThreePaddedLayersAreInside) {
    Judged judged;
    judge(equal_layers(3, {}, 4, 6), judged);
    EXPECT_EQ(judged.inside, 1);
    // An input that is brought in whole, and layers of which one is computed again for each tile.
    LineCase whole = equal_layers(3, {}, 4, 6);
    whole.layers[0].input = Held::whole;
    judge(whole, judged);
    whole.layers[2].input = Held::tile;
    judge(whole, judged);
    EXPECT_EQ(judged.inside, 3);
}

TEST(HalideLinesLong, RandomChainsInsideTheClassCountAsTheModelDoes) {
    Judged judged;
    Rng rng(2025);
    for (int n = 0; n < 600; ++n) judge(random_lines(rng), judged);
    EXPECT_GE(judged.inside, 215);  // counted: 226
    EXPECT_EQ(judged.outside.size(), 4U);
}

}  // namespace
}  // namespace laminate
