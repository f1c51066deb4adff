#include "generators/kernels/map_pixels.h"

#include <utility>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"
#include "generators/kernels/pixel_products.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// A tile of the pixels from `x` on, and all channels of a part.
Stmt tile_of_pixels(const MapCode& code, const MapPixelsLayout& at, const Interval& channels,
                    const Expr& x, const std::vector<VectorRun>& runs) {
    // Sums of few inputs take less time than lines from memory.
    constexpr int64_t few_inputs = 64;
    const bool is_short = code.output().adds() && code.problem()[Dim::i] <= few_inputs;
    const PixelProducts products(
        code, at.block, at.lanes,
        is_short ? PixelProducts::Asks::block_ahead : PixelProducts::Asks::with_sums);
    const PixelProducts::Pixels in_place = [&](const Expr& i, int64_t, size_t v) {
        const Expr first = simplify(i * size(at.pixels) + x + size(runs[v].first));
        return ir::load("X", lanes_from(first, runs[v].lanes), ir::Alignment::element);
    };
    if (!at.has_panel) {
        return code.loop(".z", channels, [&](const Expr& z) {
            return products.outputs(z, x, runs, in_place);
        });
    }
    // While the panel is read, the pixels of the next tile are asked for, line by line of each input
    // channel: a few lines lie in each of many pages.
    const auto next_tile = [&](const Interval& others, const Expr& z) -> PixelProducts::Also {
        const Expr line =
            (z - others.begin) * size(std::ssize(runs)) / (others.end - others.begin);
        const Expr next =
            simplify(Halide::min(x + size(at.step()) + line * size(at.lanes), size(at.pixels - 1)));
        return [&at, next](const Expr& i, int64_t, const std::vector<Expr>&) {
            return ir::prefetch("X", i * size(at.pixels) + next);
        };
    };
    return products.by_panel(
        channels, runs, in_place,
        [&](const Expr& z, const PixelProducts::Pixels& pixels, const PixelProducts::Also& also) {
            return products.outputs(z, x, runs, pixels, also);
        },
        next_tile);
}

}  // namespace

GroupCode map_pixels_code(LayerOutput output, const MapPixelsLayout& at) {
    MapCode code(std::move(output), at.block);
    const std::vector<VectorRun> whole = full_runs(0, at.vectors, at.step(), at.lanes);
    const Stmt body = code.for_parts([&](const Expr& part) {
        const Interval channels =
            part_of(simplify(part % size(at.channel_parts)), at.channel_parts, at.blocks);
        const Interval chunk =
            part_of(simplify(part / size(at.channel_parts)), at.chunks, at.tiles.count());
        std::vector<Stmt> all;
        if (at.tiles.whole > 0) {
            all.push_back(code.loop(".x", common(chunk, 0, at.tiles.whole), [&](const Expr& x) {
                return tile_of_pixels(code, at, channels, simplify(x * size(at.step())), whole);
            }));
        }
        for (int64_t n = 0; n < std::ssize(at.tiles.rest); ++n) {
            all.push_back(ir::guarded(
                has(chunk, at.tiles.whole + n),
                tile_of_pixels(code, at, channels, 0, at.tiles.rest[static_cast<size_t>(n)])));
        }
        return ir::sequence(all);
    });
    return std::move(code).code(body, at.scratch_elements(), at.parts());
}

}  // namespace laminate
