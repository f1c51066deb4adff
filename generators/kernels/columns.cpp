#include "generators/kernels/columns.h"

#include <utility>

#include "generators/ir/arrays.h"
#include "generators/ir/code_parts.h"
#include "generators/ir/code_frame.h"
#include "generators/kernels/columns_code.h"
#include "generators/kernels/columns_gathered.h"
#include "generators/kernels/columns_rows.h"
#include "generators/kernels/columns_scattered.h"
#include "generators/kernels/ir_names.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class Columns final : public GroupLowering {
public:
    Columns(const Network& network, const GroupSchedule& group, Events events,
            const TensorSizes* open)
        : GroupLowering(network, group, events, open),
          at_(columns_layout(group, problems_)),
          sizes_(open == nullptr ? columns_sizes(at_, problems_)
                                 : open_columns_sizes(at_, group, problems_, *open)),
          code_(network, problems_, at_, sizes_, extents_, constants_) {}

    GroupCode code() {
        GroupCode code;
        Stmt body = code_.with_arrays(constants_.around(lower()));
        body = ir::with_pointer("X", argument::inputs, 0, body);
        body = ir::with_pointer("Y", argument::outputs, 0, body);
        if (extents_.is_open()) body = with_sizes(1, body);
        code.body = simplify(body);
        code.arrays = {{"X", ArrayRole::external_input, 0},
                       {"Y", ArrayRole::external_output, sink()}};
        code.inputs = {tensor(0).name};
        std::move(constants_).move_into(code);
        const SizeFormula scratch_bytes = sizes_.elements * bytes_per_element;
        code.scratch_bytes = scratch_bytes.at(extents_.reference());
        if (extents_.is_open()) {
            code.open_scratch_bytes = scratch_bytes;
            code.size = extents_.reference();
        }
        code.strips = strip_count();
        return code;
    }

protected:
    // As in line_buffers.cpp: weights are read in place and sums are in registers.
    bool is_placed(Level level) const override {
        for (int k = 0; k <= sink(); ++k) {
            const Placement& lines = k == 0 ? nest(0).x.front().placement : nest(k - 1).y;
            if (lines.store == level || lines.compute == level) return true;
        }
        return level.nest == sink() && level.loop == 0 &&
               nest(sink()).loops.front().band == Band::strip;
    }
    Stmt allocate_input(int, Stmt body) override { return with_tiles(body); }
    Stmt allocate_output(int, Stmt body) override { return body; }
    Stmt allocate_weights(int, Stmt body) override { return body; }
    Stmt copy_weights(int, const Interval&, const Interval&) override { return {}; }
    Stmt begin_output(const Box&) override { return {}; }
    Stmt end_output(const Box&) override { return {}; }
    Stmt begin_call(int, const Box&) override { return {}; }
    Stmt end_call(int, const Box&) override { return {}; }

    // Whole tiles of columns, as far as X has them.
    Box read_of_input(int, const Box& box) const override {
        return {box[0],
                box[1],
                {code_.first_tile(0) * size(tile_columns),
                 Halide::min(code_.end_tile(0) * size(tile_columns), extents_.in_expression(0, Dim::x))}};
    }
    // All channels. Blocks of a scattered last layer are of rows of its kernel.
    Interval weights_read(int k, const Interval& z) const override {
        if (code_.line(k).form == LineForm::scattered) return z;
        return {0, size(code_.blocks(k).count * code_.blocks(k).scalars)};
    }
    Box stored(int k, const Box& box, const Interval&) const override {
        if (k == sink()) return box;
        return {box[0],
                box[1],
                {code_.first_tile(k + 1) * size(tile_columns),
                 code_.end_tile(k + 1) * size(tile_columns)}};
    }

    Stmt copy_input(int, const Box& box) override {
        return as_kernel("X.copy", for_each("X.copy", box[1], [&](const Expr& y) {
            return ir::sequence({split_columns(code_, y), pass_on(0, y)});
        }));
    }

    Stmt innermost(int k, int first_loop) override {
        const Interval rows = covered(k, Dim::y, first_loop - 1);
        const auto row = [&](const Expr& y) -> Stmt {
            const Interval wanted = sink_columns();
            if (k < sink())
                return ir::sequence({gathered_row(code_, k, y, wanted), pass_on(k + 1, y)});
            return at_.lines.back().form == LineForm::scattered ? finished_row(code_, y, wanted)
                                                                : gathered_row(code_, k, y, wanted);
        };
        return as_kernel(problem(k).name, for_each(problem(k).name + ".y", rows, row));
    }

private:
    /// Row y of tensor t is finished: to its reader.
    [[nodiscard]] Stmt pass_on(int t, const Expr& y) const {
        switch (code_.line(t).form) {
            case LineForm::plain:
                return {};
            case LineForm::gathered:
                return ir::sequence({zeros_around_row(code_, t), transform_row(code_, t, y)});
            case LineForm::scattered:
                return ir::sequence({zeros_around_row(code_, t), scattered_row(code_, y)});
        }
        return {};
    }

    /// Columns of the last layer's output in the strip.
    [[nodiscard]] Interval sink_columns() const {
        int strips = 0;
        while (nest(sink()).loops[static_cast<size_t>(strips)].band == Band::strip) ++strips;
        return covered(sink(), Dim::x, strips - 1);
    }

    /// Binds the tiles of each tensor in the strip, whole ones, so that no patch reads what is not
    /// computed: ColumnsLayout::tiles_for, in expressions.
    [[nodiscard]] Stmt with_tiles(Stmt body) const {
        const auto let = [&](const Expr& variable, const Expr& value) {
            body = LetStmt::make(variable.as<Variable>()->name, simplify(value), body);
        };
        for (int k = 0; k <= sink(); ++k) {
            const ColumnWindow& w = code_.window(k);
            let(code_.end_tile(k),
                Halide::min(code_.end_tile(k + 1) + size(w.last_tile()), code_.picture_tiles(k)));
            let(code_.first_tile(k),
                Halide::max(code_.first_tile(k + 1) + size(w.first_tile()), 0));
        }
        const Interval columns = sink_columns();
        const int64_t step = tile_columns * code_.window(sink()).phases;
        let(code_.end_tile(sink() + 1), (columns.end + size(step - 1)) / size(step));
        let(code_.first_tile(sink() + 1), columns.begin / size(step));
        return body;
    }

    ColumnsLayout at_;
    ColumnsSizes sizes_;
    NamedConstants constants_;
    ColumnsCode code_;
};

}  // namespace

GroupCode columns_code(const Network& network, const GroupSchedule& group, Events events,
                       const TensorSizes* open) {
    return Columns(network, group, events, open).code();
}

}  // namespace laminate
