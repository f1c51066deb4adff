#include "scheduler/schedule/kernels/layout/map_pixels.h"

#include <algorithm>

#include "scheduler/schedule/kernels/layout/pixel_tile.h"

namespace laminate {

int64_t MapPixelsLayout::multiplications() const {
    return tiles.lanes(step()) * blocks * block * inputs;
}

MapPixelsLayout map_pixels_layout(const LayerProblem& p, const VectorUnit& unit,
                                  const std::optional<Bytes>& scratch) {
    MapPixelsLayout at;
    at.lanes = unit.lanes;
    at.inputs = p[Dim::i];
    at.pixels = p[Dim::y] * p[Dim::x];
    const PixelTile tile = pixel_tile(p, at.pixels, unit);
    at.block = tile.channels;
    at.blocks = ceil_div(p[Dim::z], at.block);
    at.vectors = tile.vectors;

    at.tiles = tiles_of_pixels(at.pixels, at.lanes, at.vectors);

    // Blocks of channels that read the same pixels find them in a panel, aligned and one after the
    // other: from there they come out of the second-level cache as fast as the multipliers take
    // them; out of X, rows far apart and across lines, they do not. A map of one tile is such a
    // panel itself.
    const Bytes panel = to_bytes(Elements(at.inputs * at.step()));
    at.has_panel =
        at.tiles.count() > 1 && at.blocks >= fewest_reads_of_copy && (!scratch || panel <= *scratch);
    // Threads divide pixels before channels, because every part fills its panels itself.
    at.chunks = std::min(at.tiles.count(), map_parts_wanted);
    at.channel_parts =
        std::min(at.has_panel ? std::max<int64_t>(1, at.blocks / fewest_reads_of_copy) : at.blocks,
                 ceil_div(map_parts_wanted, at.chunks));
    return at;
}

}  // namespace laminate
