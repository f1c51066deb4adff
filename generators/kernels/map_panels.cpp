#include "generators/kernels/map_panels.h"

#include <functional>
#include <utility>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"
#include "generators/kernels/pixel_products.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// Fills the panel with all that the runs of the output rows from y on read.
Stmt fill_window_panel(const MapCode& code, const MapPanelsLayout& at,
                       const PixelProducts& products, const Expr& y,
                       const std::vector<VectorRun>& runs) {
    const LayerProblem& p = code.problem();
    const AxisWindow& wy = p.y();
    const AxisWindow& wx = p.x();
    return code.loop(".panel", {0, size(at.panel_rows)}, [&](const Expr& n) {
        const Expr row = simplify(y * size(wy.stride) + n * size(wy.dilation) - size(wy.pad_begin));
        using Value = std::function<Expr(const Expr& from, int64_t column, const VectorRun&)>;
        const auto fill = [&](const Value& value) {
            return code.loop(".i", {0, size(p[Dim::i])}, [&](const Expr& i) {
                const Expr from = simplify((i * size(wy.in) + row) * size(wx.in));
                const Expr to = simplify(n * size(p[Dim::i]) + i);
                std::vector<Stmt> stores;
                for (int64_t m = 0; m < wx.kernel; ++m) {
                    for (size_t v = 0; v < runs.size(); ++v) {
                        const int64_t column =
                            runs[v].first * wx.stride + m * wx.dilation - wx.pad_begin;
                        stores.push_back(ir::store(code.scratch(), value(from, column, runs[v]),
                                                   products.panel_index(to, m, v, runs)));
                    }
                }
                return ir::sequence(stores);
            });
        };
        const Stmt inside = fill([&](const Expr& from, int64_t column, const VectorRun& run) {
            return row_of_input(wx, from, column, run);
        });
        if (!ir::reaches_padding(wy)) return inside;
        const Stmt outside = fill([&](const Expr&, int64_t, const VectorRun& run) {
            return broadcast(Expr(0.0F), run.lanes);
        });
        return IfThenElse::make(row >= 0 && row < size(wy.in), inside, outside);
    });
}

}  // namespace

GroupCode map_panels_code(LayerOutput output, const MapPanelsLayout& at) {
    MapCode code(std::move(output), at.block);
    const LayerProblem& p = code.problem();
    const PixelProducts products(code, at.block, at.lanes, PixelProducts::Asks::block_ahead);
    const Stmt body = code.for_parts([&](const Expr& part) {
        return code.loop(".y", part_of(part, at.parts, at.panels()), [&](const Expr& panel) {
            const Expr y = simplify(panel * size(at.rows_of_panel));
            std::vector<Stmt> all;
            for (const std::vector<VectorRun>& runs : at.tiles) {
                all.push_back(fill_window_panel(code, at, products, y, runs));
                const int64_t of_row = at.panel_row * std::ssize(runs) * at.lanes;
                all.push_back(code.loop(".z", {0, size(at.blocks)}, [&](const Expr& z) {
                    return code.loop(".row", {0, size(at.rows_of_panel)}, [&](const Expr& row) {
                        const Expr first = simplify(row * size(p.y().stride * of_row));
                        return products.outputs(z, simplify((y + row) * size(p[Dim::x])), runs,
                                                products.of_panel(runs, first));
                    });
                }));
            }
            return ir::sequence(all);
        });
    });
    return std::move(code).code(body, at.scratch_elements(), at.parts);
}

}  // namespace laminate
