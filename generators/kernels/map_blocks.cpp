#include "generators/kernels/map_blocks.h"

#include <utility>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_channels.h"
#include "generators/kernels/map_code.h"
#include "generators/kernels/map_depthwise.h"

namespace laminate {

using namespace Halide::Internal;

GroupCode map_blocks_code(LayerOutput pointwise, LayerOutput depthwise, const MapBlocksLayout& at) {
    const MapChannelsLayout& blocks = at.pointwise;
    MapCode code(std::move(pointwise), blocks.block());
    code.keep_outputs();
    const MapCode::Arrays arrays = code.pack(depthwise, 1);
    const auto of_block = [&](const Expr& block, const Interval& parts) {
        // Tiles of either layer, all of them if both parts are asked for.
        const auto tiles_of = [&](int64_t second_begin, int64_t first_end,
                                  int64_t all) -> Interval {
            if (at.block_parts == 1) return {0, size(all)};
            return {Halide::select(parts.begin == 0, 0, size(second_begin)),
                    Halide::select(parts.end == size(at.block_parts), size(all), size(first_end))};
        };
        const Expr first = simplify(block * size(blocks.block()));
        const Expr begin = simplify(size(at.map_offset()) - first * size(blocks.pixels));
        const DepthwiseSums sums{depthwise, arrays.weights, arrays.bias,
                                 stored_depthwise(depthwise), code.scratch(), begin};
        const Interval channels{
            first, simplify(Halide::min(first + size(blocks.block()),
                                        size(depthwise.problem()[Dim::z])))};
        const Interval tiles = tiles_of(at.second_tile, at.second_tile, at.depthwise.tiles);
        const Interval pixels = tiles_of(at.second_begin, at.first_end, blocks.tiles);
        return ir::sequence({map_channels_block(code, blocks, block, pixels, begin),
                             code.loop(".zi", channels, [&](const Expr& z) {
                                 return depthwise_tiles(sums, at.depthwise, z, tiles);
                             })});
    };
    const Stmt body = ir::sequence(
        {map_channels_panel(code, blocks), code.for_parts_of(".block", at.block_parts, of_block)});
    GroupCode made = std::move(code).code(body, at.scratch_elements(), at.parts());
    made.strips_together = at.parts_together();
    return made;
}

}  // namespace laminate
