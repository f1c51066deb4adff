#include "scheduler/explore/group_search/halo_borders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "scheduler/schedule/window.h"
#include "tests/support/chain.h"

namespace laminate::search {
namespace {

std::vector<AxisWindow> rows_of(int64_t rows, const std::vector<LayerSpec>& layers) {
    const Network network = chain(1, rows, rows, layers);
    return windows_along(layer_problems(network, all_layers(network)), 0);
}

int64_t read_by(const std::vector<AxisWindow>& layers, Range range) {
    for (size_t k = layers.size(); k-- > 0;) range = window_of(layers[k], range);
    return range.size();
}

/// What the best pieces of at most `longest` coordinates read, of all ways to cut the output.
int64_t best_pieces(const std::vector<AxisWindow>& layers, int64_t longest) {
    std::vector<int64_t> best{0};
    for (int64_t end = 1; end <= layers.back().out; ++end) {
        int64_t least = INT64_MAX;
        for (int64_t size = 1; size <= std::min(longest, end); ++size)
            least = std::min(
                least, best[static_cast<size_t>(end - size)] + read_by(layers, {end - size, end}));
        best.push_back(least);
    }
    return best.back();
}

/// One layer of 3 after the other, so p coordinates read p + 2 t.
TEST(PieceReads, CountsTheBordersToo) {
    const auto layers = rows_of(60, std::vector<LayerSpec>(5, {1, square_window(3, 1, 1)}));
    const PieceReads reads(layers, 5, 1, 10);
    EXPECT_EQ(reads.needed(), 60);
    EXPECT_EQ(reads.outputs(), 60);
    EXPECT_EQ(reads.inner(), 50);
    EXPECT_EQ(reads.pieces(7), 9);
    EXPECT_EQ(reads.pieces(17), 1);
    EXPECT_EQ(reads.inner_of(25), 25);
    EXPECT_EQ(reads.inner_of(26), 25);
    EXPECT_EQ(reads.inner_of(30), 25);
    EXPECT_EQ(reads.inner_of(60), 50);
    // Pieces may be longer, and the last one shorter.
    for (int64_t piece = 1; piece <= 60; ++piece) {
        int64_t least = 50;
        for (int64_t size = piece; size <= 60; ++size) {
            int64_t most = 0;
            for (int64_t first = 0; first < 60; first += size)
                most = std::max(most,
                                std::min<int64_t>(first + size, 55) - std::max<int64_t>(first, 5));
            least = std::min(least, most);
        }
        EXPECT_EQ(reads.inner_of(static_cast<double>(piece)), least) << piece;
    }
    // There may be two or three pieces, most of whose coordinates are not inner.
    EXPECT_EQ(reads.read_by(17), 60);
    // By ones, coordinate c reads 11 less what lies beyond the borders: 5, 4, .. 1 of each.
    EXPECT_DOUBLE_EQ(reads.read_by(1), 60 * 11 - 2 * 15);
    for (const int64_t piece : {1, 2, 3, 4, 6, 10, 16}) {
        const double inner = 50 * (1 + 10.0 / static_cast<double>(piece));
        const auto best = static_cast<double>(best_pieces(layers, piece));
        EXPECT_LE(reads.read_by(piece), best + 1e-9) << piece;
        EXPECT_GE(reads.read_by(piece), best * 0.9) << piece;
        if (piece <= 6) {
            EXPECT_GT(reads.read_by(piece), inner * 1.05) << piece;
        }
    }
}

TEST(PieceReads, IsBelowAllPiecesOfRandomChains) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        Rng rng(seed);
        std::vector<LayerSpec> specs;
        double slope = 1, extra = 0;
        for (int64_t layers = rng.between(1, 5); layers > 0; --layers) {
            const int64_t kernel = rng.between(1, 5);
            const int64_t stride = rng.between(1, std::min<int64_t>(kernel, 2));
            specs.push_back({1, square_window(kernel, stride, rng.between(0, kernel / 2))});
        }
        for (size_t k = specs.size(); k-- > 0;) {
            const auto stride = static_cast<double>(specs[k].window.stride[0]);
            extra = stride * extra + static_cast<double>(specs[k].window.kernel[0]) - stride;
            slope *= stride;
        }
        const auto layers = rows_of(rng.between(120, 200), specs);
        const PieceReads reads(layers, layers.size(), slope, extra);
        for (const int64_t piece : {1, 2, 3, 5, 8, 13, 70, 200}) {
            const int64_t best = best_pieces(layers, piece);
            EXPECT_LE(reads.read_by(piece), static_cast<double>(best) + 1e-9)
                << "seed " << seed << ", pieces of " << piece;
        }
    }
}

}  // namespace
}  // namespace laminate::search
