#include "generators/kernels/columns_scattered.h"

#include <functional>

#include "generators/kernels/columns_rows.h"
#include "generators/kernels/ir_names.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

Expr sums_row(const ColumnsCode& code, const Expr& y) {
    const ColumnsSizes& at = code.sizes();
    return (at.sums_rotate ? y % size(code.at().sums_rows) : y) * expression(at.sums_row_elements);
}

class ScatteredRow {
public:
    ScatteredRow(const ColumnsCode& code, const Expr& r)
        : code_(code),
          sink_(code.sink()),
          r_(r),
          p_(code.problem(sink_)),
          w_(p_.y()),
          blocks_(code.blocks(sink_)),
          sums_starts_(p_.name + ".sums") {
        for (int64_t n = 0; n < w_.kernel; ++n)
            (void)sums_starts_(sums_row(code, Halide::clamp(output_row(n), 0, simplify(rows_out() - 1))));
    }

    [[nodiscard]] Stmt code() const;

private:
    /// Rows from one output row to the next that a row of the input reaches.
    [[nodiscard]] int64_t step() const { return w_.transposed ? w_.stride : 1; }
    /// The output row that multiplies row r with row n of the kernel.
    [[nodiscard]] Expr output_row(int64_t n) const {
        return simplify(w_.transposed ? r_ * size(step()) + size(n - w_.pad_begin)
                                      : r_ + size(w_.pad_begin - n));
    }
    [[nodiscard]] Expr rows_out() const { return code_.out(sink_, Dim::y); }
    [[nodiscard]] Expr is_output(int64_t n) const {
        return output_row(n) >= 0 && output_row(n) < rows_out();
    }
    /// Clears a row of sums.
    [[nodiscard]] Stmt set_to_zero(const Expr& start) const;
    /// V of a block of tiles.
    [[nodiscard]] Stmt patches(const Expr& tile, int64_t vectors) const;
    /// Products of V with all rows of the kernel, added to the sums.
    [[nodiscard]] Stmt products(const Expr& tile, int64_t vectors) const;
    /// Those of the blocks of rows of the kernel together from `block` on; `plane`, `kernel`,
    /// `sums`: the frequency's first elements of V, the weights and a row of sums.
    [[nodiscard]] Stmt products_of_blocks(int64_t block, int64_t vectors, const Expr& plane,
                                          const Expr& kernel, const Expr& sums) const;
    [[nodiscard]] int64_t block_weights() const {
        return p_[Dim::i] * code_.window(sink_).pieces * blocks_.scalars;
    }

    const ColumnsCode& code_;
    int sink_;
    Expr r_;
    const LayerProblem& p_;
    const AxisWindow& w_;
    const ColumnBlocks& blocks_;
    ir::Integers sums_starts_;  ///< of the output row of each row of the kernel
};

Stmt ScatteredRow::code() const {
    // Rows come in order: the first one that an output row reads is its first or last row of the
    // kernel, or the first of the picture.
    std::vector<Stmt> all, at_top;
    for (int64_t n = 0; n < w_.kernel; ++n) {
        const bool always = w_.transposed ? n >= w_.kernel - step() : n == 0;
        (always ? all : at_top).push_back(guarded(is_output(n), set_to_zero(sums_starts_.of(ir::size(n)))));
    }
    all.push_back(guarded(r_ == 0, ir::sequence(at_top)));
    all.push_back(
        code_.over_tiles(p_.name + ".tile", code_.tiles_of(sink_ + 1), blocks_.vectors,
                         [&](const Expr& tile, int64_t vectors) {
                             return ir::sequence({patches(tile, vectors), products(tile, vectors)});
                         }));
    return sums_starts_.around(ir::sequence(all));
}

Stmt ScatteredRow::set_to_zero(const Expr& start) const {
    const auto lanes = static_cast<int>(code_.lanes());
    const Interval vectors{0, expression(code_.sizes().sums_row_elements / code_.lanes())};
    return GroupLowering::for_each(code_.sums_name() + ".vector", vectors, [&](const Expr& v) {
        return ir::store(code_.sums_name(), make_zero(Halide::Float(32, lanes)),
                         lanes_from(start + v * size(lanes), lanes), ir::Alignment::element);
    });
}

Stmt ScatteredRow::patches(const Expr& tile, int64_t vectors) const {
    const std::string& line = code_.line_name(sink_);
    const Interval channels{0, size(code_.line(sink_).channels)};
    const Interval all{0, size(vectors + code_.at().extra_vectors(sink_))};
    return GroupLowering::for_each(line + ".channel", channels, [&](const Expr& channel) {
        return GroupLowering::for_each(line + ".vector", all, [&](const Expr& v) {
            const Expr first = v * size(code_.lanes());
            return transform_patches(code_, sink_, channel,
                                     simplify(code_.shift(sink_) + tile + first), simplify(first));
        });
    });
}

Stmt ScatteredRow::products(const Expr& tile, int64_t vectors) const {
    const int64_t frequencies = code_.window(sink_).patch();
    const int64_t together = blocks_.together(vectors);
    const Interval outputs{0, size(code_.at().outputs_at_once)};
    return GroupLowering::for_each(p_.name + ".output", outputs, [&](const Expr& output) {
        const Interval all_frequencies{0, size(frequencies)};
        return GroupLowering::for_each(p_.name + ".f", all_frequencies, [&](const Expr& q) {
            Values name(p_.name + ".base");
            const Expr frequency = name(simplify(output * size(frequencies) + q));
            const Expr plane = name(simplify(code_.line_plane(sink_, q, 0)));
            const Expr kernel = name(simplify(frequency * size(blocks_.count * block_weights())));
            const Expr sums = name(simplify(frequency * expression(code_.sizes().sums_pitch) + tile));
            std::vector<Stmt> all;
            for (int64_t block = 0; block < blocks_.count; block += together)
                all.push_back(products_of_blocks(block, vectors, plane, kernel, sums));
            return name.around(ir::sequence(all));
        });
    });
}

Stmt ScatteredRow::products_of_blocks(int64_t block, int64_t vectors, const Expr& plane,
                                      const Expr& kernel, const Expr& sums) const {
    const int64_t lanes = code_.lanes(), pieces = code_.window(sink_).pieces;
    std::vector<ir::SumTerm> terms;
    for (int64_t piece = 0; piece < pieces; ++piece) {
        terms.push_back({const_true(), size(p_[Dim::i]),
                         [=, this](const Expr& i, int64_t v) {
                             const Expr index = plane + i * code_.pitch(sink_) +
                                                size(v * lanes + piece);
                             return ir::load(code_.line_name(sink_), lanes_from(index, lanes),
                                             ir::Alignment::element);
                         },
                         [=, this](const Expr& i, int64_t n) {
                             const Expr tap = i * size(pieces) + size(piece);
                             const int64_t of_block =
                                 (block + n / blocks_.scalars) * block_weights() +
                                 n % blocks_.scalars;
                             return ir::load(code_.weights(sink_),
                                             kernel + tap * size(blocks_.scalars) + size(of_block));
                         }});
    }
    const ir::SumShape shape{lanes, vectors, blocks_.together(vectors) * blocks_.scalars};
    return ir::sums_of_products(
        p_.name, shape, terms, [&](int64_t v, int64_t scalar, const Expr& sum) -> Stmt {
            const int64_t n = block * blocks_.scalars + scalar;
            if (n >= w_.kernel) return {};
            const std::string& array = code_.sums_name();
            const Expr at = lanes_from(sums_starts_.of(ir::size(n)) + sums + size(v * lanes), lanes);
            return guarded(is_output(n),
                           ir::store(array, ir::load(array, at, ir::Alignment::element) + sum, at,
                                     ir::Alignment::element));
        });
}

}  // namespace

Stmt scattered_row(const ColumnsCode& code, const Expr& r) { return ScatteredRow(code, r).code(); }

Stmt finished_row(const ColumnsCode& code, const Expr& y, const Interval& wanted) {
    const int sink = code.sink();
    const LayerProblem& p = code.problem(sink);
    const int64_t phases = code.window(sink).phases, frequencies = code.window(sink).patch();
    Values row(p.name + ".row");
    const Expr base = row(simplify(sums_row(code, y)));
    const auto outputs = [&](const Expr& channel, const Expr& tile) {
        Values name(p.name + ".sums");
        std::vector<Expr> columns(static_cast<size_t>(tile_columns * phases));
        for (int64_t phase = 0; phase < phases; ++phase) {
            std::vector<Expr> m;
            for (int64_t q = 0; q < frequencies; ++q) {
                const Expr number =
                    (channel * size(phases) + size(phase)) * size(frequencies) + size(q);
                const Expr index = base + number * expression(code.sizes().sums_pitch) + tile;
                m.push_back(name(ir::load(code.sums_name(), lanes_from(index, code.lanes()),
                                          ir::Alignment::element)));
            }
            const std::vector<Expr> of_phase = code.finished(name, sink, channel, m);
            for (int64_t c = 0; c < tile_columns; ++c)
                columns[static_cast<size_t>(c * phases + phase)] = of_phase[static_cast<size_t>(c)];
        }
        return name.around(store_columns(code, channel, y, tile, columns, wanted));
    };
    return row.around(code.over_tiles(
        p.name + ".tile", code.tiles_of(sink + 1), 1, [&](const Expr& tile, int64_t) {
            return GroupLowering::for_each(
                p.name + ".z", {0, size(p[Dim::z])},
                [&](const Expr& channel) { return outputs(channel, tile); });
        }));
}

}  // namespace laminate
