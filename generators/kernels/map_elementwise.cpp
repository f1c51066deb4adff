#include "generators/kernels/map_elementwise.h"

#include <utility>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"

namespace laminate {

using namespace Halide::Internal;

GroupCode map_elementwise_code(LayerOutput output, const MapElementwiseLayout& at) {
    MapCode code(std::move(output), 1);
    const std::vector<VectorRun> whole = full_runs(0, at.vectors, at.step(), at.lanes);
    const auto elements = [&](const Expr& map, const Expr& first, const std::vector<VectorRun>& runs) {
        std::vector<Stmt> all;
        for (const VectorRun& run : runs) {
            const Expr position = simplify(first + size(run.first));
            all.push_back(code.output().store_combined(
                {.channel = map,
                 .index = lanes_from(simplify(map * size(at.elements) + position), run.lanes),
                 .position = lanes_from(position, run.lanes)},
                wanted_lanes(run)));
        }
        return ir::sequence(all);
    };
    const bool divides_axes = at.axes > 1;
    const Stmt body = code.for_parts([&](const Expr& part) {
        const Interval maps = part_of(part, at.parts, at.axes, divides_axes);
        return code.loop(".z", maps, [&](const Expr& map) {
            std::vector<Stmt> all;
            if (at.whole_tiles > 0) {
                all.push_back(code.loop(
                    ".x", part_of(part, at.parts, at.whole_tiles, !divides_axes),
                    [&](const Expr& x) { return elements(map, x * size(at.step()), whole); }));
            }
            if (!at.rest.empty()) {
                const Stmt rest = elements(map, 0, at.rest);
                all.push_back(divides_axes ? rest : ir::guarded(part == size(at.parts - 1), rest));
            }
            return ir::sequence(all);
        });
    });
    return std::move(code).code(body, at.scratch_elements(), at.parts);
}

}  // namespace laminate
