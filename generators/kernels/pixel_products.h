// Sums of products in registers for a tile of pixels and a block of output channels
// (layout/pixel_tile.h), and the panel from which a tile's pixels come. map_pixels, map_panels and
// map_windows use it.
//
//     sum[z][q] += W[z][n][i][m] * pixel(i, m, q)     for each z of the block and pixel q
//
// Each vector of pixels is loaded once for all channels of the block, each weight once for all
// vectors.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "generators/kernels/map_code.h"
#include "scheduler/schedule/kernels/layout/runs.h"

namespace laminate {

class PixelProducts {
public:
    /// When code asks for the lines that outputs are stored to, and for those that are added to them:
    /// while it computes their sums or, where those take less time than a line from memory, the sums
    /// of the block before.
    enum class Asks { with_sums, block_ahead };

    /// `block`: output channels for which the code packs weights.
    PixelProducts(const MapCode& code, int64_t block, int64_t lanes, Asks asks = Asks::with_sums)
        : code_(code),
          p_(code.problem()),
          block_(block),
          lanes_(lanes),
          asks_ahead_(asks == Asks::block_ahead && lanes <= 8) {}

    /// Vector v of what a tile reads of input channel i through tap m of a row of the window.
    using Pixels = std::function<Expr(const Expr& i, int64_t m, size_t v)>;
    /// What a sum starts from and what becomes of it; z: the channel within its block.
    using Start = std::function<Expr(int64_t z, size_t v)>;
    using Put = std::function<Stmt(const Expr& channel, int64_t z, size_t v, const Expr& sum)>;
    /// What else is done with the vectors of input channel i and tap m while their products are added.
    using Also =
        std::function<Stmt(const Expr& i, int64_t m, const std::vector<Expr>& vectors)>;

    /// Bias of channel z of a block, in all lanes.
    [[nodiscard]] Expr bias(const Expr& z_block, int64_t z) const;
    /// Sums over `inputs` input channels of the window's rows from n on, one row after the other.
    [[nodiscard]] Stmt sums(const Expr& z_block, const Expr& n, int64_t inputs,
                            const std::vector<VectorRun>& runs, const Start& start,
                            const Pixels& pixels, const Put& put, const Also& also = {}) const;
    /// Sums over all input channels and rows, stored to the runs of Y's pixels from `x` on.
    [[nodiscard]] Stmt outputs(const Expr& z_block, const Expr& x,
                               const std::vector<VectorRun>& runs, const Pixels& pixels,
                               const Also& also = {}) const;

    /// A panel, in the scratch block from element `first` on, holds what some input channels (of
    /// some rows of the window) give a tile: [i][m][v][lane].
    [[nodiscard]] Expr panel_index(const Expr& i, int64_t m, size_t v,
                                   const std::vector<VectorRun>& runs, const Expr& first = 0) const;
    [[nodiscard]] Pixels of_panel(const std::vector<VectorRun>& runs, const Expr& first = 0) const;
    /// `make` for every block of output channels, of which there is one at least. The first block takes
    /// `pixels` and copies them to the panel, from which the others take them: a copy by itself would
    /// wait for the caches. `ahead`: what else is done while the others are computed. `first`: where
    /// the panel begins.
    using Make = std::function<Stmt(const Expr& z_block, const Pixels&, const Also&)>;
    [[nodiscard]] Stmt by_panel(const Interval& blocks, const std::vector<VectorRun>& runs,
                                const Pixels& pixels, const Make& make,
                                const std::function<Also(const Interval& others, const Expr& z_block)>&
                                    ahead = {},
                                const Expr& first = 0) const;

private:
    [[nodiscard]] Expr channel(const Expr& z_block, int64_t z) const;

    const MapCode& code_;
    const LayerProblem& p_;
    int64_t block_;
    int64_t lanes_;
    bool asks_ahead_;
};

}  // namespace laminate
