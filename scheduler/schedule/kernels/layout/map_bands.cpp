#include "scheduler/schedule/kernels/layout/map_bands.h"

#include "scheduler/schedule/kernels/layout/pixel_tile.h"

namespace laminate {

int64_t MapBandsLayout::multiplications() const {
    const int64_t pixels = (bands - 1) * whole_band.lanes(step()) + last_band.lanes(step());
    return pixels * blocks * block * inputs;
}

MapBandsLayout map_bands_layout(const LayerProblem& depthwise, const VectorUnit& depthwise_unit,
                                const LayerProblem& pointwise, const VectorUnit& unit,
                                int64_t rows) {
    MapBandsLayout at;
    at.depthwise = map_depthwise_layout(depthwise, depthwise_unit, rows);
    const int64_t all_rows = depthwise[Dim::y], columns = depthwise[Dim::x];
    at.lanes = unit.lanes;
    at.inputs = pointwise[Dim::i];
    at.band_pixels = rows * columns;
    at.bands = ceil_div(all_rows, rows);
    at.band_tiles = rows / at.depthwise.tile_rows;
    const PixelTile tile = pixel_tile(pointwise, at.band_pixels, unit);
    at.block = tile.channels;
    at.blocks = ceil_div(pointwise[Dim::z], at.block);
    at.vectors = tile.vectors;
    at.whole_band = tiles_of_pixels(at.band_pixels, at.lanes, at.vectors);
    at.last_band =
        tiles_of_pixels((all_rows - (at.bands - 1) * rows) * columns, at.lanes, at.vectors);
    // An odd number of lines, so that channels do not share sets of a cache.
    constexpr int64_t line = 16;
    const int64_t room = columns < depthwise_unit.lanes ? depthwise_unit.lanes : 0;
    at.pitch = ceil_div(at.band_pixels + room, 2 * line) * 2 * line + line;
    // A tile of three vectors of 8 has up to three lines of each channel in the band, and the lines
    // of all channels fill the first-level cache. Side by side they are half as many.
    constexpr int64_t fewer_lanes_than_lines = line;
    at.has_tile_panel = at.lanes < fewer_lanes_than_lines && at.blocks >= fewest_reads_of_copy;
    return at;
}

}  // namespace laminate
