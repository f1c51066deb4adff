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
    const Stmt of_parts = code.for_parts([&](const Expr& block) {
        const Expr first = simplify(block * size(blocks.block()));
        const Expr begin = simplify(size(at.map_offset()) - first * size(blocks.pixels));
        const DepthwiseSums sums{depthwise, arrays.weights, arrays.bias,
                                 stored_depthwise(depthwise), code.scratch(), begin};
        const Interval channels{
            first, simplify(Halide::min(first + size(blocks.block()),
                                        size(depthwise.problem()[Dim::z])))};
        const Interval tiles{0, size(at.depthwise.tiles)};
        return ir::sequence({map_channels_block(code, blocks, block, begin),
                             code.loop(".zi", channels, [&](const Expr& z) {
                                 return depthwise_tiles(sums, at.depthwise, z, tiles);
                             })});
    });
    const Stmt body = ir::sequence({map_channels_panel(code, blocks), of_parts});
    GroupCode made = std::move(code).code(body, at.scratch_elements(), blocks.blocks);
    if (blocks.has_panel) made.strips_together = blocks.blocks;
    return made;
}

}  // namespace laminate
