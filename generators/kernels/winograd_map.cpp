#include "generators/kernels/winograd_map.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "generators/ir/arrays.h"
#include "generators/ir/code_parts.h"
#include "generators/ir/layer_output.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"
#include "generators/kernels/winograd_transforms.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

bool has_wide_tiles(const WinogradMapLayout& at) {
    return at.columns_of_tile == winograd::wide_columns;
}

/// What patches and products know of each other's place in the scratch block.
class InputParts {
public:
    InputParts(const MapCode& code, const WinogradMapLayout& at) : code_(code), at_(at) {}
    /// Where V of a part of the input channels begins; frequencies of a part follow each other, for
    /// that is the order in which they are read.
    [[nodiscard]] Expr patches_of(const Expr& part) const {
        return part * size(at_.frequencies * at_.patch_frequency);
    }
    /// How many of a part's input channels there are, the first given.
    [[nodiscard]] Expr inputs_from(const Expr& first) const {
        return simplify(Halide::min(size(at_.all_inputs) - first, size(at_.inputs)));
    }
    [[nodiscard]] Stmt loop(const MapCode::Make& make) const {
        return code_.loop(".part", {0, size(at_.input_parts)}, make);
    }

private:
    const MapCode& code_;
    const WinogradMapLayout& at_;
};

/// V of a chunk of bands.
class MapPatches {
public:
    MapPatches(const MapCode& code, const WinogradMapLayout& at)
        : code_(code), p_(code.problem()), at_(at), parts_(code, at) {}

    /// Makes the patches of `bands` bands from `first` on.
    [[nodiscard]] Stmt code(const Expr& first, const Expr& bands) const;

private:
    /// Rows that the bands of a vector read, one after the other: their first elements, and whether
    /// they lie in the picture.
    struct Rows {
        Expr band;  ///< of the chunk, the vector's first
        std::vector<Expr> begins, are_inside;
    };

    /// Patches of input channel i into V's row `to`, of a vector of bands from `band` of the chunk on.
    [[nodiscard]] Stmt vector_of_bands(const Expr& i, const Expr& to, const Expr& first,
                                       const Expr& band) const;
    /// A vector of patches of input channel i into V's row `to`: those from tile x of their rows
    /// on, of several bands.
    [[nodiscard]] Stmt patch(const Expr& i, const Expr& to, int64_t x, const Rows& rows) const;
    /// `width` columns of the patches from `column` on, of row number `row` of all bands of a vector.
    [[nodiscard]] Expr columns_of(Values& name, const Expr& plane, int64_t row, int64_t column,
                                  int64_t width, const Rows& rows) const;
    /// Row r of the patches.
    [[nodiscard]] winograd::PatchRow inputs(Values& name, const Expr& plane, int64_t r, int64_t x,
                                            const Rows& rows) const;
    /// V of a vector of patches of tiles of up to four columns or of six, by row.
    [[nodiscard]] std::vector<winograd::PatchRow> narrow_patches(Values& name, const Expr& plane,
                                                                 int64_t x, const Rows& rows) const;
    [[nodiscard]] std::vector<winograd::PatchRow> wide_patches(Values& name, const Expr& plane,
                                                               int64_t x, const Rows& rows) const;
    /// Asks for what the same patches of the next input channel read. It lies a whole map further,
    /// where no processor foresees it.
    [[nodiscard]] Stmt next_channel(const Expr& plane, int64_t x, const Rows& rows) const;
    /// Columns from `column` on of the row that begins at element `begin`; zero where there is no
    /// picture.
    [[nodiscard]] Expr row_part(const Expr& begin, const Expr& is_inside, int64_t column,
                                int64_t width) const;

    const MapCode& code_;
    const LayerProblem& p_;
    const WinogradMapLayout& at_;
    InputParts parts_;
};

Stmt MapPatches::code(const Expr& first, const Expr& bands) const {
    // All bands of a channel, one after the other: the lines that two bands share, of rows and of V, are
    // still near then.
    const Interval vectors{
        0, simplify((bands + size(at_.bands_of_vector - 1)) / size(at_.bands_of_vector))};
    return parts_.loop([&](const Expr& part) {
        const Expr first_channel = simplify(part * size(at_.inputs));
        const Interval channels{0, parts_.inputs_from(first_channel)};
        return code_.loop(".i", channels, [&](const Expr& i) {
            const Expr to = simplify(parts_.patches_of(part) + i * size(at_.tiles));
            return code_.loop(".band", vectors, [&](const Expr& vector) {
                return vector_of_bands(simplify(first_channel + i), to, first,
                                       simplify(vector * size(at_.bands_of_vector)));
            });
        });
    });
}

Stmt MapPatches::vector_of_bands(const Expr& i, const Expr& to, const Expr& first,
                                 const Expr& band) const {
    Rows rows;
    rows.band = band;
    Values name(p_.name + ".row");
    const int64_t count = at_.bands_of_vector * at_.rows_of_tile + at_.row_taps - 1;
    for (int64_t r = 0; r < count; ++r) {
        const Expr row =
            simplify((first + band) * size(at_.rows_of_tile) + size(r - p_.y().pad_begin));
        rows.are_inside.push_back(name(row >= 0 && row < size(p_.y().in)));
        rows.begins.push_back(
            name(Halide::clamp(row, 0, size(p_.y().in - 1)) * size(p_.x().in)));
    }
    std::vector<Stmt> all;
    for (int64_t x = 0; x < at_.row_tiles; x += at_.slots) all.push_back(patch(i, to, x, rows));
    return name.around(ir::sequence(all));
}

Expr MapPatches::columns_of(Values& name, const Expr& plane, int64_t row, int64_t column,
                            int64_t width, const Rows& rows) const {
    const auto n = static_cast<size_t>(row);
    return name(row_part(plane + rows.begins[n], rows.are_inside[n], column - p_.x().pad_begin, width));
}

winograd::PatchRow MapPatches::inputs(Values& name, const Expr& plane, int64_t r, int64_t x,
                                      const Rows& rows) const {
    winograd::PatchRow d;
    const int64_t columns = at_.columns_of_tile, width = at_.slots * columns;
    for (int64_t c = 0; c < at_.patch_columns(); c += columns) {
        std::vector<Expr> parts;
        for (int64_t n = 0; n < at_.bands_of_vector; ++n)
            parts.push_back(columns_of(name, plane, n * at_.rows_of_tile + r, x * columns + c, width,
                                       rows));
        const Expr wide = parts.size() == 1 ? parts.front() : Shuffle::make_concat(parts);
        for (int64_t m = c; m < std::min(at_.patch_columns(), c + columns); ++m) {
            d.push_back(name(Shuffle::make_slice(wide, static_cast<int>(m - c),
                                                 static_cast<int>(columns),
                                                 static_cast<int>(at_.lanes))));
        }
    }
    return d;
}

std::vector<winograd::PatchRow> MapPatches::narrow_patches(Values& name, const Expr& plane,
                                                           int64_t x, const Rows& rows) const {
    std::vector<winograd::PatchRow> d;
    for (int64_t r = 0; r < at_.patch_rows(); ++r) d.push_back(inputs(name, plane, r, x, rows));
    for (size_t c = 0; c < d.front().size(); ++c) {
        std::vector<Expr> column;
        for (const winograd::PatchRow& row : d) column.push_back(row[c]);
        column = winograd::of_rows(name, column, at_.row_taps);
        for (size_t r = 0; r < d.size(); ++r) d[r][c] = column[r];
    }
    for (winograd::PatchRow& row : d) row = winograd::of_columns(name, row, at_.column_taps);
    return d;
}

std::vector<winograd::PatchRow> MapPatches::wide_patches(Values& name, const Expr& plane, int64_t x,
                                                         const Rows& rows) const {
    const int64_t columns = at_.columns_of_tile, patch_rows = at_.patch_rows();
    // Six vectors of elements as they lie, and the one behind them, by row. Rows are transformed before
    // columns are taken apart, as over lines (winograd.cpp).
    std::vector<std::vector<Expr>> parts;
    for (int64_t n = 0; n <= columns; ++n) {
        std::vector<Expr> d;
        for (int64_t r = 0; r < patch_rows; ++r)
            d.push_back(columns_of(name, plane, r, x * columns + n * at_.lanes, at_.lanes, rows));
        parts.push_back(winograd::of_rows(name, d));
    }
    std::vector<winograd::PatchRow> all;
    for (size_t r = 0; r < static_cast<size_t>(patch_rows); ++r) {
        std::vector<Expr> row;
        for (const std::vector<Expr>& part : parts) row.push_back(part[r]);
        const Expr behind = row.back();
        row.pop_back();
        all.push_back(winograd::of_columns(
            name, winograd::columns_of_wide_patches(name, row, behind)));
    }
    return all;
}

Stmt MapPatches::patch(const Expr& i, const Expr& to, int64_t x, const Rows& rows) const {
    Values name(p_.name + ".patch");
    const Expr plane = name(i * size(p_.y().in * p_.x().in));
    const std::vector<winograd::PatchRow> d = has_wide_tiles(at_)
                                                  ? wide_patches(name, plane, x, rows)
                                                  : narrow_patches(name, plane, x, rows);
    std::vector<Stmt> stores{next_channel(plane, x, rows)};
    for (int64_t f = 0; f < at_.frequencies; ++f) {
        const auto columns = static_cast<int64_t>(d.front().size());
        const Expr& v = d[static_cast<size_t>(f / columns)][static_cast<size_t>(f % columns)];
        const auto put = [&](const Expr& value, const Expr& tile) {
            const Expr index = simplify(to + tile) + size(f * at_.patch_frequency);
            stores.push_back(ir::store(code_.scratch(), value,
                                       lanes_from(index, value.type().lanes()),
                                       ir::Alignment::element));
        };
        if (at_.bands_of_vector == 1 || at_.slots == at_.row_tiles) {
            put(v, simplify(rows.band * size(at_.row_tiles) + size(x)));
            continue;
        }
        // In this order: what a part has beyond the last tile of its rows belongs to the next rows.
        for (int64_t n = 0; n < at_.bands_of_vector; ++n) {
            put(Shuffle::make_slice(v, static_cast<int>(n * at_.slots), 1,
                                    static_cast<int>(at_.slots)),
                simplify((rows.band + size(n)) * size(at_.row_tiles)));
        }
    }
    return name.around(ir::sequence(stores));
}

Stmt MapPatches::next_channel(const Expr& plane, int64_t x, const Rows& rows) const {
    const Expr next = plane + size(p_.y().in * p_.x().in + x * at_.columns_of_tile);
    std::vector<Stmt> all;
    for (const Expr& begin : rows.begins) {
        for (int64_t c = 0; c < at_.slots * at_.columns_of_tile; c += ir::elements_of_line)
            all.push_back(ir::prefetch("X", next + begin + size(c)));
    }
    return ir::sequence(all);
}

Expr MapPatches::row_part(const Expr& begin, const Expr& is_inside, int64_t column,
                          int64_t width) const {
    const int64_t first = std::max<int64_t>(0, -column);
    const int64_t end = std::min(width, p_.x().in - column);
    const Expr zero = make_zero(Halide::Float(32, static_cast<int>(width)));
    if (first >= end) return zero;
    const Expr index = lanes_from(begin + size(column), width);
    Expr value;
    if (first == 0 && end == width) {
        value = ir::load("X", index, ir::Alignment::element);
    } else {
        const Expr lane = lanes_from(0, width);
        const Expr is_column =
            lane >= broadcast(size(first), width) && lane < broadcast(size(end), width);
        value = Halide::select(is_column, ir::load("X", index, ir::Alignment::element, is_column),
                               zero);
    }
    return Halide::select(broadcast(is_inside, width), value, zero);
}

/// M of a block of output channels.
class MapProducts {
public:
    MapProducts(const MapCode& code, const WinogradMapLayout& at)
        : code_(code), p_(code.problem()), at_(at), parts_(code, at) {}

    /// Products of the patches in V of the first `bands` bands.
    [[nodiscard]] Stmt code(const Expr& z, const Expr& bands) const;

private:
    /// A group of rows of frequencies (WinogradMapLayout::row_groups).
    using Rows = std::vector<int64_t>;

    /// U of input channel first + i at the frequencies of `rows`.
    [[nodiscard]] Stmt transformed_weights(const Expr& z, const Expr& first, const Expr& i,
                                           const Rows& rows) const;
    /// Asks for the plain weights of a later input channel.
    [[nodiscard]] Stmt weights_ahead(const Expr& channel) const;
    /// Adds to all tiles of M the products of the `count` input channels of a part at the frequencies
    /// of `rows`.
    [[nodiscard]] Stmt multiplied(const Rows& rows, const Expr& blocks_of_tiles, const Expr& count,
                                  const Expr& part) const;
    /// The same of frequency f, whose weights are number `n` of U, of at_.tile tiles.
    [[nodiscard]] Stmt sums(const Expr& n, const Expr& f, const Expr& tile, const Expr& count,
                            const Expr& part) const;
    [[nodiscard]] Expr weights_of(const Expr& channel) const {
        return channel * size(at_.row_taps * at_.column_taps * at_.block);
    }

    const MapCode& code_;
    const LayerProblem& p_;
    const WinogradMapLayout& at_;
    InputParts parts_;
};

Stmt MapProducts::code(const Expr& z, const Expr& bands) const {
    return parts_.loop([&](const Expr& part) {
        const Expr first = simplify(part * size(at_.inputs));
        const Expr count = parts_.inputs_from(first);
        const Expr blocks_of_tiles =
            simplify((bands * size(at_.row_tiles) + size(at_.tile - 1)) / size(at_.tile));
        std::vector<Stmt> all;
        for (const Rows& rows : at_.row_groups()) {
            all.push_back(code_.loop(".ui", {0, count}, [&](const Expr& i) {
                return transformed_weights(z, first, i, rows);
            }));
            all.push_back(multiplied(rows, blocks_of_tiles, count, part));
        }
        return ir::sequence(all);
    });
}

Stmt MapProducts::multiplied(const Rows& rows, const Expr& blocks_of_tiles, const Expr& count,
                             const Expr& part) const {
    const int64_t columns = at_.patch_columns();
    // Rows of a group follow each other, or are two.
    const bool is_run = rows.back() - rows.front() + 1 == std::ssize(rows);
    return code_.loop(".f", {0, size(std::ssize(rows) * columns)}, [&](const Expr& n) {
        const Expr behind = size((rows.back() - 1) * columns);
        const Expr f = is_run ? n + size(rows.front() * columns)
                              : Halide::select(n < size(columns), n, n + behind);
        return code_.loop(".t", {0, blocks_of_tiles}, [&](const Expr& t) {
            return sums(n, f, simplify(t * size(at_.tile)), count, part);
        });
    });
}

Stmt MapProducts::weights_ahead(const Expr& channel) const {
    const int64_t of_channel = at_.row_taps * at_.column_taps * at_.block;
    std::vector<Stmt> all;
    for (int64_t n = 0; n < of_channel; n += ir::elements_of_line)
        all.push_back(ir::prefetch(code_.weights(), weights_of(channel) + size(n)));
    return ir::sequence(all);
}

Stmt MapProducts::transformed_weights(const Expr& z, const Expr& first, const Expr& i,
                                      const Rows& rows) const {
    constexpr int64_t channels_ahead = 4;
    const int64_t taps = at_.row_taps * at_.column_taps;
    const int64_t lanes = at_.lanes;
    const Expr channel = z * size(p_[Dim::i]) + first + i;
    std::vector<Stmt> all;
    if (rows.front() == 0) all.push_back(weights_ahead(channel + size(channels_ahead)));
    for (int64_t v = 0; v < at_.vectors; ++v) {
        Values name(p_.name + ".weights");
        const auto rounded = [](Values& values) {
            return [&values](const Expr& value) { return values(Halide::strict_float(value)); };
        };
        winograd::Kernel<Expr> g(static_cast<size_t>(at_.row_taps));
        for (int64_t tap = 0; tap < taps; ++tap) {
            const Expr index = weights_of(channel) + size(tap * at_.block + v * lanes);
            g[static_cast<size_t>(tap / at_.column_taps)].push_back(
                name(ir::load(code_.weights(), lanes_from(index, lanes))));
        }
        // Row by row, so that few of U are in registers at a time.
        const auto transformed = winograd::rows_of_kernel(g, at_.rows_of_tile, rounded(name));
        std::vector<Stmt> parts;
        int64_t n = 0;
        for (const int64_t row : rows) {
            Values of_row(p_.name + ".weights");
            std::vector<Stmt> stores;
            for (const Expr& u : winograd::columns_of_kernel(transformed[static_cast<size_t>(row)],
                                                             at_.columns_of_tile, rounded(of_row))) {
                const Expr to = i * size(at_.block) +
                                size(at_.weights + n++ * at_.weight_frequency + v * lanes);
                stores.push_back(ir::store(code_.scratch(), u, lanes_from(to, lanes)));
                // U is larger than the first-level cache, and stores of whole lines wait for them one
                // after the other: those of the next channel are asked for now. Halves of lines gain
                // nothing (docs/performance.md).
                if (lanes >= ir::elements_of_line)
                    stores.push_back(ir::prefetch(code_.scratch(), to + size(at_.block)));
            }
            parts.push_back(of_row.around(ir::sequence(stores)));
        }
        all.push_back(name.around(ir::sequence(parts)));
    }
    return ir::sequence(all);
}

Stmt MapProducts::sums(const Expr& n, const Expr& f, const Expr& tile, const Expr& count,
                       const Expr& part) const {
    const std::string& scratch = code_.scratch();
    const int64_t lanes = at_.lanes;
    Values once(p_.name + ".base");
    const Expr patches = once(parts_.patches_of(part) + f * size(at_.patch_frequency) + tile);
    const Expr kernel = once(n * size(at_.weight_frequency) + size(at_.weights));
    const Expr to =
        once(f * size(at_.product_frequency) + tile * size(at_.block) + size(at_.products));
    const auto product = [&](int64_t v, int64_t t) {
        return lanes_from(to + size(t * at_.block + v * lanes), lanes);
    };
    const ir::SumTerm term{
        const_true(), count,
        [&](const Expr& i, int64_t v) {
            return ir::load(scratch,
                            lanes_from(kernel + i * size(at_.block) + size(v * lanes), lanes));
        },
        [&](const Expr& i, int64_t t) {
            return ir::load(scratch, patches + i * size(at_.tiles) + size(t));
        }};
    const auto start = [&](int64_t v, int64_t t) -> Expr {
        const Expr zero = make_zero(Halide::Float(32, static_cast<int>(lanes)));
        return at_.input_parts == 1 ? zero
                                    : Halide::select(broadcast(part > 0, lanes),
                                                     ir::load(scratch, product(v, t)), zero);
    };
    const auto store = [&](int64_t v, int64_t t, const Expr& sum) {
        return ir::store(scratch, sum, product(v, t));
    };
    return once.around(
        ir::sums_of_products(p_.name, {lanes, at_.vectors, at_.tile}, {term}, store, start));
}

/// M of a block of output channels as rows of Y.
class MapOutputs {
public:
    MapOutputs(const MapCode& code, const WinogradMapLayout& at)
        : code_(code),
          p_(code.problem()),
          at_(at),
          tiles_together_(at.stored_columns() / at.columns_of_tile) {}

    /// `bands` bands from number `band` of the map on.
    [[nodiscard]] Stmt code(const Expr& z, const Expr& band, const Expr& bands) const;

private:
    /// A tile of a vector of output channels: the first channel, the first row and column.
    struct Tile {
        Expr first, row, column;
    };
    /// Columns of a tile of six that are stored together.
    static constexpr std::array<std::pair<int64_t, int64_t>, 2> wide_pieces{{{0, 4}, {4, 6}}};

    /// Tiles that are stored together, of a vector of output channels, to rows from `row` on. `x`: how
    /// many such there are before them in their rows.
    [[nodiscard]] Stmt tiles(const Expr& z, int64_t v, const Expr& tile, const Expr& row,
                             const Expr& x) const;
    /// The stores of row r of four columns, four of a channel at once; `all` has them channel
    /// by channel. `is_whole`: all columns exist.
    [[nodiscard]] Stmt narrow_stores(const Expr& all, const Tile& at, int64_t r, bool is_whole) const;
    /// Those of a tile of 6 x 6, in a loop over channels, from where staged() puts them channel by
    /// channel: LLVM takes a quarter of a minute over as many stores one after the other.
    [[nodiscard]] Stmt wide_stores(const Tile& at, bool is_whole) const;
    [[nodiscard]] Stmt staged(const std::vector<Expr>& row, int64_t r) const;
    [[nodiscard]] Expr staged_at(int64_t row, int64_t column) const {
        return size(at_.staged + (row * at_.columns_of_tile + column) * at_.lanes);
    }
    /// The stores of row r of a tile, if there is one.
    [[nodiscard]] Stmt of_row_if_any(const Tile& at, int64_t r, const Stmt& stores) const;
    /// Asks for the line of an output channel that the tiles behind this one are stored to: those of a
    /// vector of channels lie in as many maps, where no processor foresees them.
    [[nodiscard]] Stmt ahead(const Expr& channel, const Expr& row, const Expr& column) const;
    [[nodiscard]] Expr existing_channel(const Expr& channel) const {
        return simplify(p_[Dim::z] % at_.block == 0 ? channel
                                                    : Halide::min(channel, size(p_[Dim::z] - 1)));
    }
    [[nodiscard]] Expr element_of(const Expr& channel, const Expr& row, const Expr& column) const {
        return simplify((channel * size(p_[Dim::y]) + row) * size(p_[Dim::x]) + column);
    }
    /// Columns from `column` on of output channel `channel`. Channels that fill up the last block are
    /// stored in place of the last one, which is stored after them: conditions for every channel and row
    /// would keep LLVM busy.
    [[nodiscard]] Stmt store_columns(const Expr& channel, const Expr& row, const Expr& column,
                                     const Expr& value, bool is_whole) const;

    const MapCode& code_;
    const LayerProblem& p_;
    const WinogradMapLayout& at_;
    int64_t tiles_together_;
};

Stmt MapOutputs::code(const Expr& z, const Expr& band, const Expr& bands) const {
    return code_.loop(".out", {0, bands}, [&](const Expr& n) {
        return code_.loop(
            ".x", {0, size(ceil_div(at_.row_tiles, tiles_together_))}, [&](const Expr& x) {
                std::vector<Stmt> all;
                // The last channels first (store_columns).
                for (int64_t v = at_.vectors; v-- > 0;)
                    all.push_back(
                        tiles(z, v, simplify(n * size(at_.row_tiles) + x * size(tiles_together_)),
                              simplify((band + n) * size(at_.rows_of_tile)), x));
                return ir::sequence(all);
            });
    });
}

Stmt MapOutputs::tiles(const Expr& z, int64_t v, const Expr& tile, const Expr& row,
                       const Expr& x) const {
    const int64_t columns = at_.stored_columns(), lanes = at_.lanes;
    Values name(p_.name + ".product");
    std::vector<std::vector<winograd::PatchRow>> sums;  // by tile and row
    for (int64_t t = 0; t < tiles_together_; ++t) {
        const auto product = [&](int64_t f) {
            const Expr index =
                simplify(tile * size(at_.block)) +
                size(at_.products + f * at_.product_frequency + t * at_.block + v * lanes);
            return name(ir::load(code_.scratch(), lanes_from(index, lanes)));
        };
        sums.push_back(winograd::rows_of_products(name, at_.rows_of_tile, at_.columns_of_tile,
                                                  product, at_.row_taps, at_.column_taps));
    }
    const Tile at{simplify(z * size(at_.block) + size(v * lanes)), row, simplify(x * size(columns))};
    const Expr channels = lanes_from(at.first, lanes);
    // All of the tile's rows and channels share this condition.
    const Expr is_whole = at.column + size(columns) <= size(p_[Dim::x]);
    const auto stored = [&](const std::function<Stmt(bool is_whole)>& stores) {
        return p_[Dim::x] % columns == 0 ? stores(true)
                                         : IfThenElse::make(is_whole, stores(true), stores(false));
    };
    // Row by row, so that few results are in registers at a time.
    std::vector<Stmt> rows;
    for (int64_t r = 0; r < at_.rows_of_tile; ++r) {
        Values of_row(p_.name + ".product.row");
        std::vector<Expr> results;
        for (const std::vector<winograd::PatchRow>& of_tile : sums) {
            for (const Expr& sum : winograd::columns_of_products(
                     of_row, of_tile[static_cast<size_t>(r)], at_.column_taps))
                results.push_back(of_row(
                    code_.output().activated(channels, sum + ir::load(code_.bias(), channels))));
        }
        if (!has_wide_tiles(at_)) {
            const Expr all = of_row(Shuffle::make_interleave(results));
            rows.push_back(of_row.around(of_row_if_any(at, r, stored([&](bool whole) {
                return narrow_stores(all, at, r, whole);
            }))));
        } else {
            rows.push_back(of_row.around(staged(results, r)));
        }
    }
    if (has_wide_tiles(at_))
        return ir::sequence({name.around(ir::sequence(rows)), stored([&](bool whole) {
                                 return wide_stores(at, whole);
                             })});
    return name.around(ir::sequence(rows));
}

Stmt MapOutputs::narrow_stores(const Expr& all, const Tile& at, int64_t r, bool is_whole) const {
    constexpr int columns = winograd::columns;
    std::vector<Stmt> of_lanes;
    for (int64_t n = at_.lanes; n-- > 0;) {
        const Expr value = Shuffle::make_slice(all, static_cast<int>(n) * columns, 1, columns);
        of_lanes.push_back(ahead(at.first + size(n), at.row + size(r), at.column));
        of_lanes.push_back(
            store_columns(at.first + size(n), at.row + size(r), at.column, value, is_whole));
    }
    return ir::sequence(of_lanes);
}

Stmt MapOutputs::staged(const std::vector<Expr>& row, int64_t r) const {
    std::vector<Stmt> stores;
    for (const auto& [begin, end] : wide_pieces) {
        const Expr piece = Shuffle::make_interleave({row.begin() + begin, row.begin() + end});
        stores.push_back(ir::store(code_.scratch(), piece,
                                   lanes_from(staged_at(r, begin), piece.type().lanes())));
    }
    return ir::sequence(stores);
}

Stmt MapOutputs::wide_stores(const Tile& at, bool is_whole) const {
    return code_.loop(".channel", {0, size(at_.lanes)}, [&](const Expr& n) {
        const Expr lane = simplify(size(at_.lanes - 1) - n);
        std::vector<Stmt> rows;
        for (int64_t r = 0; r < at_.rows_of_tile; ++r) {
            std::vector<Stmt> pieces{ahead(at.first + lane, at.row + size(r), at.column)};
            for (const auto& [begin, end] : wide_pieces) {
                const int64_t wide = end - begin;
                const Expr value =
                    ir::load(code_.scratch(), lanes_from(staged_at(r, begin) + lane * size(wide), wide),
                             ir::Alignment::element);
                pieces.push_back(store_columns(at.first + lane, at.row + size(r),
                                               at.column + size(begin), value, is_whole));
            }
            rows.push_back(of_row_if_any(at, r, ir::sequence(pieces)));
        }
        return ir::sequence(rows);
    });
}

Stmt MapOutputs::of_row_if_any(const Tile& at, int64_t r, const Stmt& stores) const {
    const bool may_be_missing = r > 0 && p_[Dim::y] % at_.rows_of_tile != 0;
    return may_be_missing ? ir::guarded(at.row + size(r) < size(p_[Dim::y]), stores) : stores;
}

Stmt MapOutputs::store_columns(const Expr& channel, const Expr& row, const Expr& column,
                               const Expr& value, bool is_whole) const {
    const int64_t wide = value.type().lanes();
    const Expr predicate =
        is_whole ? Expr() : lanes_from(column, wide) < broadcast(size(p_[Dim::x]), wide);
    const Expr existing = existing_channel(channel);
    return code_.output().store_activated(existing, value,
                                          lanes_from(element_of(existing, row, column), wide), predicate);
}

Stmt MapOutputs::ahead(const Expr& channel, const Expr& row, const Expr& column) const {
    constexpr int64_t columns_ahead = 12;
    return code_.output().prefetch_stored(
        element_of(existing_channel(channel), row, column + size(columns_ahead)));
}

/// All parts: chunks x parts of the blocks of output channels.
Stmt all_parts(const MapCode& code, const WinogradMapLayout& at) {
    const MapPatches patches(code, at);
    const MapProducts products(code, at);
    const MapOutputs outputs(code, at);
    const int64_t channel_parts = at.channel_parts;
    const auto bound = [](const char* name) { return Variable::make(Halide::Int(32), name); };
    const Expr begin = bound(argument::strip_begin);
    const Expr end = bound(argument::strip_end);
    const Interval chunks{simplify(begin / size(channel_parts)),
                          simplify((end + size(channel_parts - 1)) / size(channel_parts))};
    return code.loop(".chunk", chunks, [&](const Expr& chunk) {
        const Expr first = simplify(Halide::max(begin - chunk * size(channel_parts), 0));
        const Expr last =
            simplify(Halide::min(end - chunk * size(channel_parts), size(channel_parts)));
        const Interval blocks{simplify(first * size(at.blocks) / size(channel_parts)),
                              simplify(last * size(at.blocks) / size(channel_parts))};
        const auto first_band = [&](const Expr& c) {
            return simplify(c * size(at.bands) / size(at.chunks));
        };
        const Expr band = first_band(chunk);
        const Expr bands = simplify(first_band(chunk + 1) - band);
        return ir::sequence(
            {as_kernel("patches", patches.code(band, bands)),
             code.loop(".z", blocks, [&](const Expr& z) {
                 return ir::sequence({as_kernel("products", products.code(z, bands)),
                                      as_kernel("outputs", outputs.code(z, band, bands))});
             })});
    });
}

}  // namespace

GroupCode winograd_map_code(LayerOutput output, const WinogradMapLayout& at) {
    MapCode code(std::move(output), at.block, Packing::Order::by_input);
    const Stmt body = all_parts(code, at);
    GroupCode made = std::move(code).code(body, at.scratch_elements(), at.parts());
    made.strips_together = at.channel_parts;  // V of a chunk
    return made;
}

}  // namespace laminate
