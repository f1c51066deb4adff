// Tile and scratch of winograd.h: F(6x4, 3x3), F(4x4, 3x3), F(2x4, 3x3) and F(1x4, 3x3) on rows of a line buffer.
//
// A band is a row of tiles: two, four or six rows of outputs. A step, the rows asked for at once, goes by
// bands from its first row on. Tiles of two rows leave a row without a partner to F(1x4, 3x3), but at
// the end of the picture. Tiles of four or six compute a last band whose end is missing too.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "base/range.h"
#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/kernels/register_tile.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// How one layer is computed.
struct WinogradTile {
    static constexpr int64_t columns = 4;  ///< outputs of a patch
    /// Products per patch and pair of channels; `rows`: of outputs, 1, 2, 4 or 6.
    [[nodiscard]] static constexpr int64_t frequencies(int64_t rows) {
        return (rows + 2) * (columns + 2);
    }
    VectorAxis axis = VectorAxis::x;
    int64_t rows = 2;           ///< of outputs in a band, 2, 4 or 6
    int64_t channels = 1;       ///< output channels of a block; with VectorAxis::z whole vectors
    int64_t tiles = 1;          ///< with sums in registers together; VectorAxis::x: whole vectors
    int64_t bands = 1;          ///< whose patches are in V together; 1 with VectorAxis::x
    bool has_bands = false;     ///< some rows are computed by bands
    bool has_singles = false;   ///< some rows are computed alone
    bool has_partial = false;   ///< some bands reach over the end of their step into zeros
    /// With VectorAxis::x: blocks of output channels whose weights code transforms together, again and again;
    /// 0: they are constants. Those of all blocks are transformed once for all bands of a step.
    int64_t weights = 0;
    /// With VectorAxis::x: how often `tiles` of a band, side by side, have patches in V together.
    int64_t parts = 1;
    /// With VectorAxis::x: blocks of output channels that are multiplied by the patches of one frequency
    /// while these are in the first-level cache.
    int64_t blocks = 1;
};

/// What lanes may be: whatever is faster, or tiles of a row alone, whose layout depends on no width.
enum class WinogradAxes { any, tiles };
/// Whether a 3x3 layer is worth it by tiles of four rows, which save more products: layers of few
/// outputs as well, such as the last one before a DepthToSpace.
[[nodiscard]] bool tiles_of_four_pay(const LayerProblem& problem);
/// None where the layer is no 3x3 convolution worth it (kernel_pays, or with `most_rows` from 4 on
/// tiles_of_four_pay() where steps are nearly whole tiles of four), or so narrow that most lanes
/// would be empty. `steps`: the rows asked for (row_steps()); `columns`: the most asked for at
/// once. `most_rows`: tiles have up to so many rows where that multiplies less.
[[nodiscard]] std::optional<WinogradTile> winograd_tile(
    const LayerProblem& problem, const std::set<std::pair<int64_t, int64_t>>& steps, int64_t columns,
    const VectorUnit& unit, WinogradAxes axes = WinogradAxes::any, int64_t most_rows = 2);

/// Whether code can transform the weights: in whole vectors, for tiles of four or six rows.
[[nodiscard]] bool transforms_weights(const LayerProblem& problem, const WinogradTile& tile,
                                      int64_t lanes);
/// Whether it transforms those of all blocks together.
[[nodiscard]] bool transforms_all_weights(const LayerProblem& problem, const WinogradTile& tile);
/// Parts whose patches a second-level cache of 1 MiB holds; perhaps none.
[[nodiscard]] int64_t parts_in_cache(const LayerProblem& problem, const WinogradTile& tile);
/// The tile with its `parts` and `blocks`, which follow from its weights and from the columns asked for. Beside
/// the weights of some blocks, patches are of as many columns as that cache holds, else of one tile.
[[nodiscard]] WinogradTile with_parts(const LayerProblem& problem, WinogradTile tile, int64_t columns);

/// The kernel winograd_rows or winograd_channels with that tile, and its tile for rows of any kind.
[[nodiscard]] Kernel kernel_of(const WinogradTile& tile, int64_t lanes);
[[nodiscard]] WinogradTile winograd_tile_of(const Kernel& kernel);
/// The same for the rows asked for.
[[nodiscard]] WinogradTile winograd_tile_of(const LayerProblem& problem, const Kernel& kernel,
                                            const std::set<std::pair<int64_t, int64_t>>& steps);

/// Where V[part][frequency][input channel][tile] and M lie in the scratch array, in elements; M is
/// [frequency][output channel][tile], with VectorAxis::z [frequency][tile][output channel]. It has the output
/// channels of `blocks` blocks.
struct WinogradRowsLayout {
    int64_t lanes = 0;
    int64_t row_tiles = 0;  ///< tiles of one band that are looked at together
    int64_t tiles = 0;      ///< of V's rows
    int64_t frequencies = 0;
    int64_t frequency = 0;  ///< from one frequency of V to the next
    int64_t part = 0;       ///< from one part of V to the next
    int64_t products = 0;   ///< where M begins
    int64_t product = 0;    ///< from one frequency of M to the next
    /// `rows`: of outputs in a tile.
    WinogradRowsLayout(const LayerProblem& problem, const WinogradTile& tile,
                       const VectorUnit& unit, int64_t rows);
    [[nodiscard]] int64_t elements() const { return products + frequencies * product; }
};

/// Elements of V and M together.
[[nodiscard]] int64_t winograd_scratch_elements(const LayerProblem& problem,
                                                const WinogradTile& tile, const VectorUnit& unit);

/// From one frequency of a block of transformed weights for bands to the next. Those that code transforms
/// lie a cache line apart: as powers of two all frequencies would meet in one cache set.
[[nodiscard]] int64_t weights_of_frequency(const LayerProblem& problem, const WinogradTile& tile);
/// Elements of a block of these weights; of all that code transforms together.
[[nodiscard]] int64_t transformed_block_elements(const LayerProblem& problem,
                                                 const WinogradTile& tile);
[[nodiscard]] int64_t weights_together_elements(const LayerProblem& problem, const WinogradTile& tile);
/// Elements of all blocks. The last one is filled up with zeros, which count.
[[nodiscard]] int64_t transformed_weight_elements(const LayerProblem& problem,
                                                  const WinogradTile& tile);

/// Rows [begin, end) of a step as the code divides them: bands from the first row on, the last one
/// perhaps partial, and perhaps a single row.
struct WinogradRows {
    int64_t bands = 0;
    int64_t singles = 0;  ///< 0 or 1
};
[[nodiscard]] WinogradRows winograd_rows_of(const LayerProblem& problem, const WinogradTile& tile,
                                            int64_t begin, int64_t end);

/// Products of so many columns of a step's rows in the frequency domain: 24 * D_i for each tile of
/// two rows and each channel of each block, 36 * D_i for four, 48 * D_i for six, 18 * D_i for a single
/// row. Counts tiles behind the end of a row or of a batch of bands, the missing rows of a partial
/// band, and channels of zero weights. Does not count the products with constants in the transforms.
[[nodiscard]] int64_t winograd_multiplications(const LayerProblem& problem,
                                               const WinogradTile& tile, const Range& rows,
                                               int64_t columns);

}  // namespace laminate
