#include "generators/kernels/columns_gathered.h"

#include <functional>
#include <utility>

#include "generators/kernels/columns_rows.h"
#include "generators/kernels/ir_names.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class GatheredRow {
public:
    GatheredRow(const ColumnsCode& code, int k, const Expr& y)
        : code_(code),
          k_(k),
          y_(y),
          p_(code.problem(k)),
          blocks_(code.blocks(k)),
          row_starts_(p_.name + ".rows") {
        for (int64_t n = 0; n < p_.y().kernel; ++n)
            (void)row_starts_(code.line_row(k, input_row(n)));
    }

    [[nodiscard]] Stmt code(const Interval& wanted) const;

private:
    /// Vectors of tiles from `tile` on, and how many blocks of output channels are summed together.
    struct Part {
        Expr tile;
        int64_t vectors = 1;
        int64_t together = 1;
        int64_t at_once = 1;   ///< output channels whose products wait for their last frequency
        bool has_all = false;  ///< products of all blocks wait
    };
    using StoreSum = std::function<Stmt(int64_t v, int64_t z, const Expr& sum)>;
    using StoreOutputs = std::function<Stmt(const Expr& channel, const Expr& tile,
                                            const std::vector<Expr>& columns)>;

    [[nodiscard]] Expr input_row(int64_t n) const {
        return simplify(y_ * size(p_.y().stride) + size(n - p_.y().pad_begin));
    }
    [[nodiscard]] Stmt over_row(const std::function<Stmt(const Part&)>& make) const;
    [[nodiscard]] Stmt over_blocks(const Part& part,
                                   const std::function<Stmt(const Expr& block)>& make) const;
    [[nodiscard]] Stmt over_frequencies(const std::function<Stmt(Expr)>& make) const;
    /// `make` of scalar z of the blocks together from `block` on, if it is a channel: zeros fill up
    /// the last block.
    [[nodiscard]] Stmt if_channel(const Expr& block, const Part& part, int64_t z,
                                  const std::function<Stmt(const Expr&)>& make) const;

    /// Sums that are finished outputs, to planes.
    [[nodiscard]] Stmt direct(const RowPlanes& to) const;
    [[nodiscard]] Stmt direct_sums(const RowPlanes& to, const Part& part, const Expr& block,
                                   const Expr& q) const;
    /// Products by frequency, then outputs.
    [[nodiscard]] Stmt by_frequency(const StoreOutputs& store) const;
    [[nodiscard]] Expr product_at(const Part& part, const Expr& q, const Expr& block, int64_t z,
                                  int64_t v) const;
    [[nodiscard]] Stmt multiply(const Part& part, const Expr& block, const Expr& q) const;
    [[nodiscard]] Stmt finish(const Part& part, const Expr& block, const StoreOutputs& store) const;
    [[nodiscard]] Stmt store_to_planes(const RowPlanes& to, const Expr& channel, const Expr& tile,
                                       const std::vector<Expr>& columns) const;

    /// Sums over rows, channels and pieces of the blocks together from `block` on, at one
    /// frequency.
    [[nodiscard]] Stmt sums(const Part& part, const Expr& block, const Expr& q,
                            const StoreSum& store) const;

    const ColumnsCode& code_;
    int k_;
    Expr y_;
    const LayerProblem& p_;
    const ColumnBlocks& blocks_;
    ir::Integers row_starts_;  ///< of the input rows that the kernel's rows read
};

Stmt GatheredRow::code(const Interval& wanted) const {
    if (k_ == code_.sink()) {
        return row_starts_.around(by_frequency(
            [&](const Expr& channel, const Expr& tile, const std::vector<Expr>& columns) {
                return store_columns(code_, channel, y_, tile, columns, wanted);
            }));
    }
    return row_starts_.around(code_.with_planes(k_ + 1, y_, [&](const RowPlanes& to) {
        if (code_.at().is_direct(k_)) return direct(to);
        return by_frequency(
            [&](const Expr& channel, const Expr& tile, const std::vector<Expr>& columns) {
                return store_to_planes(to, channel, tile, columns);
            });
    }));
}

Stmt GatheredRow::over_row(const std::function<Stmt(const Part&)>& make) const {
    return code_.over_tiles(p_.name + ".tile", code_.tiles_of(k_ + 1), blocks_.vectors,
                            [&](const Expr& tile, int64_t vectors) {
                                const auto& [of_one, of_all] =
                                    code_.at().products_at_once[static_cast<size_t>(k_)];
                                Part part{tile, vectors, blocks_.together(vectors),
                                          vectors == blocks_.vectors ? of_all : of_one};
                                part.has_all = part.at_once > part.together * blocks_.scalars;
                                return make(part);
                            });
}

Stmt GatheredRow::over_blocks(const Part& part,
                              const std::function<Stmt(const Expr& block)>& make) const {
    return GroupLowering::for_each(
        p_.name + ".z", {0, size(blocks_.count / part.together)},
        [&](const Expr& n) { return make(simplify(n * size(part.together))); });
}

Stmt GatheredRow::over_frequencies(const std::function<Stmt(Expr)>& make) const {
    return GroupLowering::for_each(p_.name + ".f", {0, size(code_.window(k_).patch())}, make);
}

Stmt GatheredRow::if_channel(const Expr& block, const Part& part, int64_t z,
                             const std::function<Stmt(const Expr&)>& make) const {
    const Expr channel = simplify(block * size(blocks_.scalars) + size(z));
    const int64_t filling = blocks_.count * blocks_.scalars - p_[Dim::z];
    const bool may_be_missing = z >= part.together * blocks_.scalars - filling;
    return may_be_missing ? guarded(channel < size(p_[Dim::z]), make(channel)) : make(channel);
}

Stmt GatheredRow::direct(const RowPlanes& to) const {
    return over_row([&](const Part& part) {
        return over_frequencies([&](const Expr& q) {
            return over_blocks(part,
                               [&](const Expr& block) { return direct_sums(to, part, block, q); });
        });
    });
}

Stmt GatheredRow::direct_sums(const RowPlanes& to, const Part& part, const Expr& block,
                              const Expr& q) const {
    return sums(part, block, q, [&](int64_t v, int64_t z, const Expr& sum) {
        return if_channel(block, part, z, [&](const Expr& channel) {
            const Expr index = simplify(to.at(q, channel) + part.tile + size(v * code_.lanes()));
            const Expr value = code_.activated(k_, channel, sum + code_.bias(k_, channel));
            return ir::store(to.array, value, lanes_from(index, code_.lanes()),
                             ir::Alignment::element);
        });
    });
}

Stmt GatheredRow::by_frequency(const StoreOutputs& store) const {
    return over_row([&](const Part& part) {
        const auto finish_block = [&](const Expr& block) { return finish(part, block, store); };
        if (part.has_all) {
            const Stmt products = over_frequencies([&](const Expr& q) {
                return over_blocks(part,
                                   [&](const Expr& block) { return multiply(part, block, q); });
            });
            return ir::sequence({products, over_blocks(part, finish_block)});
        }
        return over_blocks(part, [&](const Expr& block) {
            return ir::sequence(
                {over_frequencies([&](const Expr& q) { return multiply(part, block, q); }),
                 finish_block(block)});
        });
    });
}

Expr GatheredRow::product_at(const Part& part, const Expr& q, const Expr& block, int64_t z,
                             int64_t v) const {
    const Expr output = (part.has_all ? block * size(blocks_.scalars) : Expr(0)) + size(z);
    const Expr vector =
        ((q * size(part.at_once) + output) * size(part.vectors) + size(v)) * size(code_.lanes());
    return lanes_from(simplify(vector), code_.lanes());
}

Stmt GatheredRow::multiply(const Part& part, const Expr& block, const Expr& q) const {
    return sums(part, block, q, [&](int64_t v, int64_t z, const Expr& sum) {
        return ir::store(code_.products_name(), sum, product_at(part, q, block, z, v),
                         ir::Alignment::element);
    });
}

Stmt GatheredRow::finish(const Part& part, const Expr& block, const StoreOutputs& store) const {
    const auto outputs = [&](const Expr& channel, int64_t z, int64_t v) {
        Values name(p_.name + ".product");
        std::vector<Expr> m;
        for (int64_t q = 0; q < code_.window(k_).patch(); ++q)
            m.push_back(name(ir::load(code_.products_name(), product_at(part, size(q), block, z, v),
                                      ir::Alignment::element)));
        const std::vector<Expr> columns = code_.finished(name, k_, channel, m);
        return name.around(store(channel, simplify(part.tile + size(v * code_.lanes())), columns));
    };
    std::vector<Stmt> all;
    for (int64_t z = 0; z < part.together * blocks_.scalars; ++z) {
        all.push_back(if_channel(block, part, z, [&](const Expr& channel) {
            std::vector<Stmt> stores;
            for (int64_t v = 0; v < part.vectors; ++v) stores.push_back(outputs(channel, z, v));
            return ir::sequence(stores);
        }));
    }
    return ir::sequence(all);
}

Stmt GatheredRow::store_to_planes(const RowPlanes& to, const Expr& channel, const Expr& tile,
                                  const std::vector<Expr>& columns) const {
    std::vector<Stmt> stores;
    for (int64_t q = 0; q < tile_columns; ++q) {
        const Expr index = simplify(to.at(size(q), channel) + tile);
        stores.push_back(ir::store(to.array, columns[static_cast<size_t>(q)],
                                   lanes_from(index, code_.lanes()), ir::Alignment::element));
    }
    return ir::sequence(stores);
}

Stmt GatheredRow::sums(const Part& part, const Expr& block, const Expr& q,
                       const StoreSum& store) const {
    const ColumnWindow& w = code_.window(k_);
    const int64_t lanes = code_.lanes();
    Values name(p_.name + ".base");
    const int64_t frequencies = w.is_plain() ? 1 : w.patch();
    const Expr frequency = w.is_plain() ? block : block * size(frequencies) + q;
    const int64_t block_weights = p_.y().kernel * p_[Dim::i] * w.pieces * blocks_.scalars;
    const Expr kernel = name(simplify(frequency * size(block_weights)));
    const Expr plane = name(simplify(code_.line_plane(k_, q, 0) + part.tile));
    std::vector<ir::SumTerm> terms;
    for (int64_t n = 0; n < p_.y().kernel; ++n) {
        const Expr base = name(row_starts_.of(ir::size(n)) + plane);
        const Expr row = input_row(n);
        const Expr runs =
            code_.reaches_padding(k_, Dim::y) ? row >= 0 && row < code_.in(k_, Dim::y)
                                              : const_true();
        for (int64_t piece = 0; piece < w.pieces; ++piece) {
            terms.push_back(
                {runs, size(p_[Dim::i]),
                 [=, this](const Expr& i, int64_t v) {
                     const Expr index =
                         base + i * code_.pitch(k_) + size(v * lanes + piece);
                     return ir::load(code_.line_name(k_), lanes_from(index, lanes),
                                     ir::Alignment::element);
                 },
                 [=, this](const Expr& i, int64_t z) {
                     const Expr tap = (size(n * p_[Dim::i]) + i) * size(w.pieces) + size(piece);
                     const int64_t of_block =
                         z / blocks_.scalars * frequencies * block_weights + z % blocks_.scalars;
                     return ir::load(code_.weights(k_),
                                     kernel + tap * size(blocks_.scalars) + size(of_block));
                 }});
        }
    }
    const ir::SumShape shape{lanes, part.vectors, part.together * blocks_.scalars};
    return name.around(ir::sums_of_products(p_.name, shape, terms, store));
}

}  // namespace

Stmt gathered_row(const ColumnsCode& code, int k, const Expr& y, const Interval& wanted) {
    return GatheredRow(code, k, y).code(wanted);
}

}  // namespace laminate
