#include "generators/kernels/winograd_map_patches.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "generators/ir/code_parts.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// Processors take a vector of 64 bytes apart with as few instructions as half of it, from any two
/// vectors; those with shorter ones only within 16 bytes.
bool takes_apart_any_lanes(const WinogradMapLayout& at) { return at.lanes >= 16; }

}  // namespace

Expr PatchPlaces::of_tile(const Expr& tile) const {
    const auto number = [](int64_t n) { return make_const(Halide::UInt(32), n); };
    const Expr n = Halide::cast<uint32_t>(tile);
    const Expr slot = n + n / number(at_.row_tiles) * number(at_.row_slots - at_.row_tiles);
    const Expr in_run = slot % number(at_.run);
    const int64_t fours = at_.lanes / winograd::columns;
    const Expr lane = order() == winograd::TileOrder::by_fours
                          ? in_run % number(fours) * number(winograd::columns) +
                                in_run / number(fours)
                          : in_run;
    return Halide::cast<int32_t>(slot / number(at_.run) * number(at_.inputs * at_.run) + lane);
}

Stmt MapPatches::code(const Expr& group, const Expr& part, const Expr& first,
                      const Expr& bands) const {
    const Interval vectors{
        0, simplify((bands + size(at_.bands_of_vector - 1)) / size(at_.bands_of_vector))};
    const Expr of_group = simplify(part * size(at_.inputs));
    const Interval channels{0, places_.inputs_from(of_group)};
    const Expr channel = simplify(group * size(at_.all_inputs) + of_group);
    const auto of_channel = [&](const Expr& i, const Vectors& at) {
        return patch(channel + i, at.place + i * size(at_.run), at.x, at.rows);
    };
    // Vectors of a whole line fill it in any order. All bands of a channel then follow each other: the
    // rows that two bands share are still near. Half a line waits for the next channel's half, so that
    // a vector's channels follow each other, and only as many lines as frequencies wait.
    if (at_.lanes >= ir::elements_of_line) {
        return code_.loop(".i", channels, [&](const Expr& i) {
            return code_.loop(".band", vectors, [&](const Expr& vector) {
                return of_bands(part, first, vector,
                                [&](const Vectors& at) { return of_channel(i, at); });
            });
        });
    }
    return code_.loop(".band", vectors, [&](const Expr& vector) {
        return of_bands(part, first, vector, [&](const Vectors& at) {
            return code_.loop(".i", channels, [&](const Expr& i) { return of_channel(i, at); });
        });
    });
}

Stmt MapPatches::of_bands(const Expr& part, const Expr& first, const Expr& vector,
                          const std::function<Stmt(const Vectors&)>& make) const {
    Values name(p_.name + ".row");
    Vectors at{.rows = rows_from(name, simplify(first + vector * size(at_.bands_of_vector)))};
    const int64_t of_all_bands = at_.bands_of_vector * at_.row_slots;
    std::vector<Stmt> all;
    for (at.x = 0; at.x < at_.row_tiles; at.x += at_.slots) {
        at.place = name(places_.patches_of(part) +
                        (vector * size(of_all_bands) + size(at.x)) * size(at_.inputs));
        all.push_back(make(at));
    }
    return name.around(ir::sequence(all));
}

bool MapPatches::may_be_outside(int64_t r) const {
    // A row that two bands share is the upper one's last, which reaches further down.
    const int64_t band = std::max<int64_t>(0, ceil_div(r + 1 - at_.patch_rows(), at_.rows_of_tile));
    const int64_t lowest = (at_.bands - 1) * at_.rows_of_tile + r - band * at_.rows_of_tile;
    return r < p_.y().pad_begin || lowest - p_.y().pad_begin >= p_.y().in;
}

MapPatches::Rows MapPatches::rows_from(Values& name, const Expr& band) const {
    Rows rows;
    const int64_t count = at_.bands_of_vector * at_.rows_of_tile + at_.row_taps - 1;
    for (int64_t r = 0; r < count; ++r) {
        const Expr row = simplify(band * size(at_.rows_of_tile) + size(r - p_.y().pad_begin));
        rows.are_inside.push_back(may_be_outside(r) ? name(row >= 0 && row < size(p_.y().in))
                                                    : Expr());
        rows.begins.push_back(
            name(Halide::clamp(row, 0, size(p_.y().in - 1)) * size(p_.x().in)));
    }
    return rows;
}

std::vector<std::vector<MapPatches::Piece>> MapPatches::loaded_vectors() const {
    std::vector<std::vector<Piece>> all;
    // Vectors of the bands' columns side by side, `count` of them from column `first` of each band on.
    const auto add = [&](int64_t first, int64_t count) {
        const int64_t of_band = at_.slots * at_.columns_of_tile;
        const int64_t width = std::min(at_.lanes, of_band);
        for (int64_t n = 0; n < count; ++n) {
            std::vector<Piece>& pieces = all.emplace_back();
            for (int64_t e = n * at_.lanes; e < (n + 1) * at_.lanes; e += width)
                pieces.push_back({e / of_band, first + e % of_band, width});
        }
    };
    const int64_t columns = at_.columns_of_tile;
    if (columns == winograd::wide_columns && !takes_apart_any_lanes(at_)) {
        // Four columns of tiles n, n + 4, ..., which are taken apart within 16 bytes.
        constexpr int64_t four = winograd::columns;
        for (int64_t c = 0; c < at_.patch_columns(); c += four) {
            for (int64_t n = 0; n < four; ++n) {
                std::vector<Piece>& pieces = all.emplace_back();
                for (int64_t t = n; t < at_.lanes; t += four)
                    pieces.push_back({0, t * columns + c, four});
            }
        }
        return all;
    }
    add(0, columns);
    if (columns == winograd::columns && at_.column_taps != winograd::kernel_size) {
        for (int64_t c = columns; c < at_.patch_columns(); c += columns) add(c, columns);
        return all;
    }
    if (columns == 1) return all;
    // What is behind the last tile of each band.
    std::vector<Piece>& behind = all.emplace_back();
    for (int64_t n = 0; n < at_.bands_of_vector; ++n)
        behind.push_back({n, at_.slots * columns, at_.slots});
    return all;
}

winograd::PatchRow MapPatches::taken_apart(Values& name, const std::vector<Expr>& loaded) const {
    constexpr auto fours = static_cast<size_t>(winograd::columns);
    if (at_.columns_of_tile == 1) return loaded;
    if (at_.columns_of_tile == winograd::wide_columns && takes_apart_any_lanes(at_))
        return winograd::columns_of_wide_patches(name, {loaded.begin(), loaded.end() - 1},
                                                 loaded.back());
    winograd::PatchRow row;
    std::array<Expr, fours> four;
    if (loaded.size() % fours != 0) {
        std::array<Expr, fours + 1> parts;
        std::copy(loaded.begin(), loaded.end(), parts.begin());
        return winograd::columns_of_patches(name, parts, places_.order(), at_.slots);
    }
    for (size_t n = 0; n < loaded.size(); n += fours) {
        std::copy_n(loaded.begin() + static_cast<std::ptrdiff_t>(n), fours, four.begin());
        const int64_t count = std::min(winograd::columns, at_.patch_columns() - std::ssize(row));
        const winograd::PatchRow columns = at_.columns_of_tile == winograd::wide_columns
                                               ? winograd::transposed_fours(name, four)
                                               : winograd::columns_by_fours(name, four, count);
        row.insert(row.end(), columns.begin(), columns.end());
    }
    return row;
}

Stmt MapPatches::patch(const Expr& i, const Expr& to, int64_t x, const Rows& rows) const {
    Values name(p_.name + ".patch");
    const Expr plane = name(i * size(p_.y().in * p_.x().in));
    const int64_t column = x * at_.columns_of_tile - p_.x().pad_begin;
    // Rows are transformed before columns are taken apart, as over lines (winograd.cpp): fewer vectors
    // are in registers at a time.
    std::vector<std::vector<Expr>> loaded;  // then by row
    for (const std::vector<Piece>& pieces : loaded_vectors()) {
        std::vector<Expr> d;
        for (int64_t r = 0; r < at_.patch_rows(); ++r)
            d.push_back(name(row_of(pieces, plane, r, column, rows)));
        loaded.push_back(winograd::of_rows(name, d, at_.row_taps));
    }
    std::vector<Stmt> all;
    // The same patches of the next input channel lie a whole map further, where no processor foresees
    // them.
    const Expr next_channel = Halide::min(i + 1, size(p_.groups * p_[Dim::i] - 1));
    const Expr next = name(next_channel * size(p_.y().in * p_.x().in) + size(x * at_.columns_of_tile));
    for (const Expr& begin : rows.begins) {
        for (int64_t c = 0; c < at_.slots * at_.columns_of_tile; c += ir::elements_of_line)
            all.push_back(ir::prefetch("X", next + begin + size(c)));
    }
    // Runs without a tile have no place in V.
    const int64_t tiles = std::min(at_.lanes, round_up(at_.row_tiles - x, at_.run));
    for (int64_t r = 0; r < at_.patch_rows(); ++r) {
        Values of_row(p_.name + ".patch.row");
        std::vector<Expr> row;
        for (const std::vector<Expr>& part : loaded) row.push_back(part[static_cast<size_t>(r)]);
        const winograd::PatchRow v =
            winograd::of_columns(of_row, taken_apart(of_row, row), at_.column_taps);
        std::vector<Stmt> stores;
        for (int64_t c = 0; c < at_.patch_columns(); ++c) {
            const Expr index = to + size((r * at_.patch_columns() + c) * at_.patch_frequency);
            for (int64_t tile = 0; tile < tiles; tile += at_.run) {
                const Expr of_run = Shuffle::make_slice(v[static_cast<size_t>(c)],
                                                        static_cast<int>(tile), 1,
                                                        static_cast<int>(at_.run));
                stores.push_back(ir::store(code_.scratch(), of_run,
                                           lanes_from(index + size(tile * at_.inputs), at_.run)));
            }
        }
        all.push_back(of_row.around(ir::sequence(stores)));
    }
    return name.around(ir::sequence(all));
}

Expr MapPatches::row_of(const std::vector<Piece>& pieces, const Expr& plane, int64_t r,
                        int64_t column, const Rows& rows) const {
    std::vector<Expr> parts;
    for (const Piece& piece : pieces) {
        const auto n = static_cast<size_t>(piece.band * at_.rows_of_tile + r);
        parts.push_back(row_part(plane + rows.begins[n], rows.are_inside[n], column + piece.column,
                                 piece.width));
    }
    return parts.size() == 1 ? parts.front() : Shuffle::make_concat(parts);
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
    return is_inside.defined() ? Halide::select(broadcast(is_inside, width), value, zero) : value;
}

}  // namespace laminate
