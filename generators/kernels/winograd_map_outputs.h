// Y of winograd_map: M of a block of output channels, transformed (winograd_map.h).
//
// The lanes of M are output channels, and a tile has few columns of each, so tiles stored one by one would
// come back to every line of as many maps several times; where a map is a power of two, these lines drive
// each other out of the caches. Strips of a band therefore wait in the scratch block, channel by channel,
// until they fill whole lines.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <vector>

#include "generators/ir/activations.h"
#include "generators/ir/arrays.h"
#include "generators/kernels/map_code.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"

namespace laminate {

class MapOutputs {
public:
    MapOutputs(const MapCode& code, const WinogradMapLayout& at)
        : code_(code),
          p_(code.problem()),
          at_(at),
          tiles_together_(at.stored_columns() / at.columns_of_tile) {}

    /// `bands` bands from number `band` of the map on, of block z of output channels, number `place` of M.
    [[nodiscard]] Stmt code(const Expr& z, const Expr& place, const Expr& band,
                            const Expr& bands) const;

private:
    /// Transforms tiles `tile` of the chunk and those beside it that are stored together, of vector v of
    /// output channels, to column `column` of the strip.
    [[nodiscard]] Stmt tiles(const Expr& z, const Expr& place, int64_t v, const Expr& tile,
                             const Expr& column) const;
    /// Puts row r of the columns that are stored together into the strip.
    [[nodiscard]] Stmt staged(Values& name, const std::vector<Expr>& columns, int64_t r,
                              const Expr& column) const;
    /// Stores a strip of so many columns from `column` on of the band that begins with row `row`.
    [[nodiscard]] Stmt strip(const Expr& z, int64_t v, const Expr& row, const Expr& column,
                             int64_t columns) const;
    /// Where the strip's row of a lane begins.
    [[nodiscard]] Expr staged_row(const Expr& lane, const Expr& row) const {
        return (lane * size(at_.rows_of_tile) + row) * size(at_.strip_columns()) + size(at_.staged);
    }

    /// Whether strips go through the activation, and not tiles, whose transform needs the registers.
    [[nodiscard]] bool activates_strips() const {
        return ir::takes_registers(code_.output().layer().activation);
    }

    const MapCode& code_;
    const LayerProblem& p_;
    const WinogradMapLayout& at_;
    int64_t tiles_together_;
};

}  // namespace laminate
