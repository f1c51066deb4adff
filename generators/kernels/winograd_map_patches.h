// V of winograd_map: patches of a chunk of bands, transformed (winograd_map.h), in the order in which
// products read them: the lanes of a vector are tiles, and vectors or halves of them, runs, of all input
// channels follow each other, so that a register tile reads few pieces of whole lines for a frequency.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "generators/ir/arrays.h"
#include "generators/kernels/map_code.h"
#include "generators/kernels/winograd_transforms.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"

namespace laminate {

/// Where V is in the scratch block, for those who write and read it.
class PatchPlaces {
public:
    PatchPlaces(const MapCode& code, const WinogradMapLayout& at) : code_(code), at_(at) {}
    /// Where V of a part of the input channels begins; frequencies of a part follow each other, for
    /// that is the order in which they are read.
    [[nodiscard]] Expr patches_of(const Expr& part) const {
        return at_.parts_outermost ? Expr(0) : part * size(at_.frequencies * at_.patch_frequency);
    }
    /// The first input channel of a chunk's tile behind the begin of a frequency; the next channel is
    /// a run further.
    [[nodiscard]] Expr of_tile(const Expr& tile) const;
    /// How many of a part's input channels there are, the first given.
    [[nodiscard]] Expr inputs_from(const Expr& first) const {
        return simplify(Halide::min(size(at_.all_inputs) - first, size(at_.inputs)));
    }
    [[nodiscard]] Stmt loop(const MapCode::Make& make) const {
        return code_.loop(".part", {0, size(at_.input_parts)}, make);
    }
    /// Orders the tiles in a vector so that taking their columns apart needs fewest instructions.
    [[nodiscard]] winograd::TileOrder order() const {
        return at_.columns_of_tile == winograd::columns ? winograd::TileOrder::by_fours
                                                        : winograd::TileOrder::ascending;
    }

private:
    const MapCode& code_;
    const WinogradMapLayout& at_;
};

class MapPatches {
public:
    MapPatches(const MapCode& code, const WinogradMapLayout& at)
        : code_(code), p_(code.problem()), at_(at), places_(code, at) {}

    /// Makes the patches of a part of a group's input channels, of `bands` bands from `first` on.
    [[nodiscard]] Stmt code(const Expr& group, const Expr& part, const Expr& first,
                            const Expr& bands) const;

private:
    /// Rows that the bands of a vector read, one after the other: their first elements, and whether
    /// they lie in the picture; undefined where all that matter do.
    struct Rows {
        std::vector<Expr> begins, are_inside;
    };
    /// Columns of the patches of a band, counted from the first of the vector.
    struct Piece {
        int64_t band, column, width;
    };

    /// Vectors of patches of bands, from tile x of their rows on, with the place of the first channel's.
    struct Vectors {
        Rows rows{};
        int64_t x = 0;
        Expr place{};
    };

    /// What `make` makes of all vectors of the bands of vector number `vector` from band `first` on.
    [[nodiscard]] Stmt of_bands(const Expr& part, const Expr& first, const Expr& vector,
                                const std::function<Stmt(const Vectors&)>& make) const;
    [[nodiscard]] Rows rows_from(Values& name, const Expr& band) const;
    /// Whether row number r of a vector's bands may lie beside the picture where it matters.
    [[nodiscard]] bool may_be_outside(int64_t r) const;
    /// What a row of a vector of patches is loaded as: vectors of elements as they lie.
    [[nodiscard]] std::vector<std::vector<Piece>> loaded_vectors() const;
    /// The columns of the patches, from those.
    [[nodiscard]] winograd::PatchRow taken_apart(Values& name, const std::vector<Expr>& loaded) const;
    /// The patches of input channel i from tile x of their rows on, to element `to` of each frequency.
    [[nodiscard]] Stmt patch(const Expr& i, const Expr& to, int64_t x, const Rows& rows) const;
    /// Row r of patches whose first column is number `column` of the plane's rows.
    [[nodiscard]] Expr row_of(const std::vector<Piece>& pieces, const Expr& plane, int64_t r,
                              int64_t column, const Rows& rows) const;
    /// Columns from `column` on of the row that begins at element `begin`; zero where there is no
    /// picture.
    [[nodiscard]] Expr row_part(const Expr& begin, const Expr& is_inside, int64_t column,
                                int64_t width) const;

    const MapCode& code_;
    const LayerProblem& p_;
    const WinogradMapLayout& at_;
    PatchPlaces places_;
};

}  // namespace laminate
