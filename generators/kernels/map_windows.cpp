#include "generators/kernels/map_windows.h"

#include <utility>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"
#include "generators/kernels/pixel_products.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class MapWindows {
public:
    MapWindows(const MapCode& code, const MapWindowsLayout& at)
        : code_(code), p_(code.problem()), at_(at), products_(code, at.block, at.lanes) {}

    [[nodiscard]] Stmt body() const;

private:
    /// Some pixels of the grid from `x` on, and the blocks of channels that a part computes.
    struct Tile {
        const Interval& channels;
        Expr x;
        const std::vector<VectorRun>& runs;
    };

    [[nodiscard]] Stmt part(const Interval& channels, const Interval& chunk) const;
    /// Copies rows of all phases of all input channels, in the order of memory, because vectors run
    /// over the ends of rows.
    [[nodiscard]] Stmt fill_grid(const Interval& rows) const;
    [[nodiscard]] Stmt fill_row(const Expr& i, const Expr& row, int64_t py, int64_t px) const;
    [[nodiscard]] Stmt tile(const Tile& tile) const;
    /// Adds the products of row n of the window to the sums of a tile.
    [[nodiscard]] Stmt add_row(const Tile& tile, const Expr& n) const;
    /// Sums of a tile, row by row, to Y.
    [[nodiscard]] Stmt store_sums(const Tile& tile) const;
    [[nodiscard]] Stmt store_row(const Tile& tile, const Expr& first_channel, const Expr& channel,
                                 const Expr& row) const;

    /// What a tile reads through a row of the window; `row`: of the grid, its first element.
    [[nodiscard]] PixelProducts::Pixels pixels_of(const Tile& tile, const Expr& row) const;
    [[nodiscard]] int64_t width_of(const Tile& tile) const {
        return std::ssize(tile.runs) * at_.lanes;
    }

    const MapCode& code_;
    const LayerProblem& p_;
    const MapWindowsLayout& at_;
    PixelProducts products_;
};

Stmt MapWindows::body() const {
    return code_.for_parts([&](const Expr& number) {
        const Interval channels =
            part_of(simplify(number % size(at_.channel_parts)), at_.channel_parts, at_.blocks);
        return part(channels,
                    part_of(simplify(number / size(at_.channel_parts)), at_.chunks, at_.tiles()));
    });
}

Stmt MapWindows::part(const Interval& channels, const Interval& chunk) const {
    const PixelGrid& grid = at_.grid;
    const Expr first_row = simplify(Halide::min(chunk.begin, size(at_.whole_tiles)) *
                                    size(at_.step()) / size(grid.columns));
    // Smaller tiles at the end reach less far than whole ones would.
    const Expr end_row = simplify((chunk.end * size(at_.step()) - 1) / size(grid.columns) +
                                  size(grid.rows - p_[Dim::y] + 1));
    std::vector<Stmt> all{fill_grid({first_row, Halide::min(end_row, size(grid.rows))})};
    if (at_.whole_tiles > 0) {
        const Interval tiles{chunk.begin, simplify(Halide::min(chunk.end, size(at_.whole_tiles)))};
        const std::vector<VectorRun> runs = full_runs(0, at_.vectors, at_.step(), at_.lanes);
        all.push_back(code_.loop(".x", tiles, [&](const Expr& x) {
            return tile({channels, simplify(x * size(at_.step())), runs});
        }));
    }
    for (int64_t n = 0; n < std::ssize(at_.rest); ++n) {
        const MapWindowsLayout::Tile& rest = at_.rest[static_cast<size_t>(n)];
        all.push_back(ir::guarded(has(chunk, at_.whole_tiles + n),
                                  tile({channels, size(rest.first), rest.runs})));
    }
    return ir::sequence(all);
}

Stmt MapWindows::fill_grid(const Interval& rows) const {
    return code_.loop(".grid", {0, size(p_[Dim::i])}, [&](const Expr& i) {
        std::vector<Stmt> phases;
        for (int64_t py = 0; py < at_.grid.phases[0]; ++py) {
            for (int64_t px = 0; px < at_.grid.phases[1]; ++px) {
                phases.push_back(code_.loop(
                    ".row", rows, [&](const Expr& row) { return fill_row(i, row, py, px); }));
            }
        }
        return ir::sequence(phases);
    });
}

Stmt MapWindows::fill_row(const Expr& i, const Expr& row, int64_t py, int64_t px) const {
    const PixelGrid& grid = at_.grid;
    const Expr y = simplify(row * size(p_.y().stride) + size(py - p_.y().pad_begin));
    const Expr from = simplify((i * size(p_.y().in) + Halide::clamp(y, 0, size(p_.y().in - 1))) *
                               size(p_.x().in));
    const Expr is_inside = y >= 0 && y < size(p_.y().in);
    std::vector<Stmt> stores;
    for (const VectorRun& run : at_.grid_runs) {
        const Expr inside =
            row_of_input(p_.x(), from, run.first * p_.x().stride + px - p_.x().pad_begin, run);
        const Expr value =
            Halide::select(broadcast(is_inside, run.lanes), inside, make_zero(inside.type()));
        const Expr to =
            simplify(i * size(grid.channel()) + row * size(grid.columns)) +
            size(at_.grid_offset + (py * grid.phases[1] + px) * grid.plane() + run.first);
        stores.push_back(
            ir::store(code_.scratch(), value, lanes_from(to, run.lanes), ir::Alignment::element));
    }
    return ir::sequence(stores);
}

PixelProducts::Pixels MapWindows::pixels_of(const Tile& tile, const Expr& row) const {
    return [this, &tile, row](const Expr& i, int64_t m, size_t v) {
        const AxisWindow& wx = p_.x();
        const int64_t tap =
            m * wx.dilation % wx.stride * at_.grid.plane() + m * wx.dilation / wx.stride;
        const Expr first = simplify(i * size(at_.grid.channel()) + row + tile.x) +
                           size(at_.grid_offset + tap + tile.runs[v].first);
        return ir::load(code_.scratch(), lanes_from(first, at_.lanes), ir::Alignment::element);
    };
}

Stmt MapWindows::tile(const Tile& tile) const {
    // One tap: sums of the only row are finished, and the grid, without columns in between, is in
    // Y's order.
    if (at_.has_one_tap()) {
        return products_.by_panel(
            tile.channels, tile.runs, pixels_of(tile, 0),
            [&](const Expr& z, const PixelProducts::Pixels& pixels,
                const PixelProducts::Also& also) {
                return products_.outputs(z, tile.x, tile.runs, pixels, also);
            });
    }
    const Stmt products =
        code_.loop(".n", {0, size(p_.y().kernel)}, [&](const Expr& n) { return add_row(tile, n); });
    return ir::sequence({products, store_sums(tile)});
}

Stmt MapWindows::add_row(const Tile& tile, const Expr& n) const {
    const AxisWindow& wy = p_.y();
    const PixelGrid& grid = at_.grid;
    const Expr row = n * size(wy.dilation) % size(wy.stride) * size(grid.phases[1] * grid.plane()) +
                     n * size(wy.dilation) / size(wy.stride) * size(grid.columns);
    const int64_t width = width_of(tile);
    const auto sums_at = [&](const Expr& z_block, int64_t z, size_t v) {
        return lanes_from(simplify((z_block - tile.channels.begin) * size(at_.block * width)) +
                              size(at_.sums_offset + z * width + tile.runs[v].first),
                          at_.lanes);
    };
    const auto add = [&](const Expr& z_block, const PixelProducts::Pixels& pixels,
                         const PixelProducts::Also& also) {
        const PixelProducts::Start start = [&](int64_t z, size_t v) {
            const Expr bias = products_.bias(z_block, z);
            return wy.kernel == 1
                       ? bias
                       : Halide::select(n > 0, ir::load(code_.scratch(), sums_at(z_block, z, v)),
                                        bias);
        };
        const PixelProducts::Put put = [&](const Expr&, int64_t z, size_t v, const Expr& sum) {
            return ir::store(code_.scratch(), sum, sums_at(z_block, z, v));
        };
        return products_.sums(z_block, n, p_[Dim::i], tile.runs, start, pixels, put, also);
    };
    return products_.by_panel(tile.channels, tile.runs, pixels_of(tile, row), add);
}

Stmt MapWindows::store_sums(const Tile& tile) const {
    const Expr columns = size(at_.grid.columns);
    const Interval rows{
        simplify(tile.x / columns),
        simplify(Halide::min((tile.x + size(width_of(tile) - 1)) / columns + 1, size(p_[Dim::y])))};
    const Interval channels{
        simplify(tile.channels.begin * size(at_.block)),
        simplify(Halide::min(tile.channels.end * size(at_.block), size(p_[Dim::z])))};
    return code_.loop(".zi", channels, [&](const Expr& channel) {
        return code_.loop(".row", rows, [&](const Expr& row) {
            return store_row(tile, channels.begin, channel, row);
        });
    });
}

Stmt MapWindows::store_row(const Tile& tile, const Expr& first_channel, const Expr& channel,
                           const Expr& row) const {
    const int64_t width = width_of(tile);
    std::vector<Stmt> stores;
    for (const VectorRun& run : at_.row_runs) {
        const Expr first = simplify(row * size(at_.grid.columns) - tile.x +
                                    size(run.first));  // of the tile's pixels
        const Expr pixel = lanes_from(first, run.lanes);
        Expr wanted =
            pixel >= broadcast(Expr(0), run.lanes) && pixel < broadcast(size(width), run.lanes);
        if (const Expr of_row = wanted_lanes(run); of_row.defined()) wanted = wanted && of_row;
        const Expr from = (channel - first_channel) * size(width) + first + size(at_.sums_offset);
        const Expr sum =
            ir::load(code_.scratch(), lanes_from(from, run.lanes), ir::Alignment::element, wanted);
        const Expr to =
            simplify((channel * size(p_[Dim::y]) + row) * size(p_[Dim::x]) + size(run.first));
        stores.push_back(code_.output().store(channel, sum, lanes_from(to, run.lanes), wanted));
    }
    return ir::sequence(stores);
}

}  // namespace

GroupCode map_windows_code(LayerOutput output, const MapWindowsLayout& at) {
    MapCode code(std::move(output), at.block);
    const Stmt body = MapWindows(code, at).body();
    return std::move(code).code(body, at.scratch_elements(), at.parts());
}

}  // namespace laminate
