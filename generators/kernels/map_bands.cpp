#include "generators/kernels/map_bands.h"

#include <utility>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"
#include "generators/kernels/map_depthwise.h"
#include "generators/kernels/pixel_products.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// The 1x1 layer's outputs of a band, whose first pixel is `first`, from the panel.
Stmt outputs_of_band(const MapCode& code, const MapBandsLayout& at, const PixelTiles& tiles,
                     const Expr& first) {
    const PixelProducts products(code, at.block, at.lanes);
    // `x`: the tile's first pixel in the band.
    const auto tile = [&](const Expr& x, const std::vector<VectorRun>& runs) {
        const PixelProducts::Pixels pixels = [&](const Expr& i, int64_t, size_t v) {
            const Expr index = simplify(i * size(at.pitch) + x + size(runs[v].first));
            return ir::load(code.scratch(), lanes_from(index, runs[v].lanes),
                            ir::Alignment::element);
        };
        const Interval blocks{0, size(at.blocks)};
        const auto outputs = [&](const Expr& z, const PixelProducts::Pixels& from,
                                 const PixelProducts::Also& also) {
            return products.outputs(z, simplify(first + x), runs, from, also);
        };
        if (at.has_tile_panel)
            return products.by_panel(blocks, runs, pixels, outputs, {},
                                     size(at.tile_panel_offset()));
        return code.loop(".z", blocks, [&](const Expr& z) { return outputs(z, pixels, {}); });
    };
    std::vector<Stmt> all;
    if (tiles.whole > 0) {
        const std::vector<VectorRun> runs = full_runs(0, at.vectors, at.step(), at.lanes);
        all.push_back(code.loop(".x", {0, size(tiles.whole)}, [&](const Expr& x) {
            return tile(simplify(x * size(at.step())), runs);
        }));
    }
    for (const std::vector<VectorRun>& runs : tiles.rest) all.push_back(tile(0, runs));
    return ir::sequence(all);
}

}  // namespace

GroupCode map_bands_code(LayerOutput depthwise, LayerOutput pointwise, const MapBandsLayout& at) {
    MapCode code(std::move(pointwise), at.block);
    const MapCode::Arrays arrays = code.pack(depthwise, 1);
    const int64_t columns = depthwise.problem()[Dim::x];
    const auto band = [&](const Expr& number) {
        const Expr first_row = simplify(number * size(at.band_pixels / columns));
        // A run is stored whole: what lies behind the end of its row is the next row's, which is
        // stored later, or room.
        const DepthwiseSums sums{
            depthwise, arrays.weights, arrays.bias,
            [&](const Expr& z, const Expr& y, const Expr& x, const Expr& value,
                const VectorRun& run) {
                const Expr to = z * size(at.pitch) + (y - first_row) * size(columns) + x;
                return ir::store(code.scratch(), value,
                                 lanes_from(simplify(to + size(run.first)), run.lanes),
                                 ir::Alignment::element);
            }};
        const Interval tiles{simplify(number * size(at.band_tiles)),
                             simplify(Halide::min((number + 1) * size(at.band_tiles),
                                                  size(at.depthwise.tiles)))};
        const Stmt fill = code.loop(".panel", {0, size(at.inputs)}, [&](const Expr& z) {
            return depthwise_tiles(sums, at.depthwise, z, tiles);
        });
        const Expr first = simplify(number * size(at.band_pixels));
        const Stmt whole = outputs_of_band(code, at, at.whole_band, first);
        const Stmt outputs =
            at.last_band == at.whole_band
                ? whole
                : IfThenElse::make(number < size(at.bands - 1), whole,
                                   outputs_of_band(code, at, at.last_band, first));
        return ir::sequence({fill, outputs});
    };
    const Stmt body = code.for_parts(band);
    return std::move(code).code(body, at.scratch_elements(), at.bands);
}

}  // namespace laminate
