#include "generators/kernels/map_addition.h"

#include <utility>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"

namespace laminate {

using namespace Halide::Internal;

GroupCode map_addition_code(LayerOutput output, const MapAdditionLayout& at) {
    MapCode code(std::move(output), 1);
    const std::vector<VectorRun> whole = full_runs(0, at.vectors, at.step(), at.lanes);
    const auto sums = [&](const Expr& map, const Expr& first, const std::vector<VectorRun>& runs) {
        std::vector<Stmt> all;
        for (const VectorRun& run : runs) {
            const Expr index =
                lanes_from(simplify(map * size(at.elements) + first + size(run.first)), run.lanes);
            all.push_back(code.output().store_sum(map, index, wanted_lanes(run)));
        }
        return ir::sequence(all);
    };
    const Stmt body = code.for_parts([&](const Expr& part) {
        return code.loop(".z", {0, size(at.axes)}, [&](const Expr& map) {
            std::vector<Stmt> all;
            if (at.whole_tiles > 0) {
                all.push_back(code.loop(
                    ".x", part_of(part, at.parts, at.whole_tiles),
                    [&](const Expr& x) { return sums(map, x * size(at.step()), whole); }));
            }
            if (!at.rest.empty())
                all.push_back(ir::guarded(part == size(at.parts - 1), sums(map, 0, at.rest)));
            return ir::sequence(all);
        });
    });
    return std::move(code).code(body, at.scratch_elements(), at.parts);
}

}  // namespace laminate
