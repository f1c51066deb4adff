#include "scheduler/schedule/kernels/layout/map_blocks.h"

#include <algorithm>

#include "base/units.h"

namespace laminate {

int64_t MapBlocksLayout::map_offset() const {
    constexpr int64_t line = 16;
    return round_up(pointwise.scratch_elements(), line);
}

namespace {

/// Two parts for each block, as even as the tiles of the depthwise layer allow.
void divide_blocks(MapBlocksLayout& at) {
    const AxisWindow& y = at.depthwise.y;
    const int64_t tiles = at.depthwise.tiles;
    // Rows that tiles of the depthwise layer read: those before `tile`, and those from it on.
    const auto rows_end = [&](int64_t tile) {
        const int64_t last = std::min(tile * at.depthwise.tile_rows, y.out) - 1;
        return std::min(last * y.stride - y.pad_begin + y.span(), y.in);
    };
    const auto rows_begin = [&](int64_t tile) {
        return std::max<int64_t>(0, tile * at.depthwise.tile_rows * y.stride - y.pad_begin);
    };
    int64_t least = y.in;
    for (int64_t tile = 1; tile < tiles; ++tile) {
        const int64_t rows = std::max(rows_end(tile), y.in - rows_begin(tile));
        if (rows >= least) continue;
        least = rows;
        at.block_parts = 2;
        at.second_tile = tile;
    }
    if (at.block_parts == 1) return;
    const int64_t columns = at.depthwise.x.in;
    at.first_end = at.second_begin = 0;
    for (int64_t n = 0; n < at.pointwise.tiles; ++n) {
        if (at.pointwise.first_pixel(n) < rows_end(at.second_tile) * columns) at.first_end = n + 1;
        if (at.pointwise.first_pixel(n) <= rows_begin(at.second_tile) * columns)
            at.second_begin = n;
    }
}

}  // namespace

MapBlocksLayout map_blocks_layout(const LayerProblem& pointwise, const VectorUnit& unit,
                                  const LayerProblem& depthwise,
                                  const VectorUnit& depthwise_unit) {
    MapBlocksLayout at{map_channels_layout(pointwise, unit),
                       map_depthwise_layout(depthwise, depthwise_unit)};
    at.pointwise.chunks = 1;
    at.pointwise.block_parts = 1;
    if (at.pointwise.blocks % 2 == 1 && !at.pointwise.has_panel) divide_blocks(at);
    return at;
}

}  // namespace laminate
