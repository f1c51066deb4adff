// The kernel rows (scheduler/schedule/kernels/rows.cpp has its formula).
#include <algorithm>
#include <utility>
#include <vector>

#include "generators/kernels/ir_names.h"
#include "generators/kernels/nest_code.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class Rows {
public:
    Rows(const NestCode& nest, const Ranges& range)
        : nest_(nest),
          p_(nest.p),
          range_(range),
          lanes_(nest.lanes()),
          channels_(nest.kernel[KernelSize::channels]),
          vectors_(nest.kernel[KernelSize::columns]),
          is_aligned_(has_whole_blocks(range[0], channels_, nest.p[Dim::z])),
          names_(nest.parameters(channels_, is_aligned_)) {}

    Stmt code() const {
        const auto tile_at = [&](const Expr& z_block, const Expr& y, int64_t rows,
                                 const RowStarts& starts,
                                 const Expr& x) { return tile(z_block, y, rows, starts, x); };
        // Weights that do not fit the nearer caches are read once per call, rows of the input again
        // per block of channels.
        const bool weights_outside = p_.weight_elements().value() * 4 > 256 * 1024;
        if (weights_outside) {
            return over_channels([&](const Expr& z) {
                return over_rows([&](const Expr& y, int64_t n, const RowStarts& starts) {
                    return over_columns([&](const Expr& x) { return tile_at(z, y, n, starts, x); });
                });
            });
        }
        return over_rows([&](const Expr& y, int64_t n, const RowStarts& starts) {
            return over_columns([&](const Expr& x) {
                return over_channels([&](const Expr& z) { return tile_at(z, y, n, starts, x); });
            });
        });
    }

private:
    using Make = std::function<Stmt(Expr)>;

    /// Whole tiles of rows, then single ones.
    Stmt over_rows(const std::function<Stmt(Expr, int64_t, RowStarts)>& make) const {
        const int64_t rows = nest_.kernel[KernelSize::rows];
        const auto at_row = [&](const Expr& y, int64_t n) {
            const Expr first = simplify(y * size(p_.y().stride) - size(p_.y().pad_begin));
            return nest_.with_row_starts(
                first, (n - 1) * p_.y().stride + p_.y().span(),
                [&](const RowStarts& starts) { return make(y, n, starts); });
        };
        const Interval& all = range_[1];
        const Expr count = all.end - all.begin;
        const Expr full = simplify(count / size(rows));
        std::vector<Stmt> parts;
        parts.push_back(GroupLowering::for_each(p_.name + ".y", {0, full}, [&](const Expr& y) {
            return at_row(simplify(all.begin + y * size(rows)), rows);
        }));
        const Expr done = simplify(full * size(rows));
        if (rows > 1 && !is_const_zero(simplify(count - done))) {
            parts.push_back(GroupLowering::for_each(
                p_.name + ".y", {done, count},
                [&](const Expr& y) { return at_row(simplify(all.begin + y), 1); }));
        }
        return ir::sequence(parts);
    }

    Stmt over_columns(const Make& make) const {
        const int64_t step = vectors_ * lanes_;
        const Interval& all = range_[2];
        const Expr trips = simplify((all.end - all.begin + size(step - 1)) / size(step));
        return GroupLowering::for_each(p_.name + ".x", {0, trips}, [&](const Expr& x) {
            return make(simplify(all.begin + x * size(step)));
        });
    }

    Stmt over_channels(const Make& make) const {
        return over_channel_blocks(p_, range_[0], channels_, is_aligned_, make);
    }
    /// First channel of a block, and the weight of its channel number z.
    [[nodiscard]] Expr first_output(const Expr& z_block) const {
        return names_.block == 1 ? z_block : simplify(z_block * size(channels_));
    }
    [[nodiscard]] Expr weight(const Expr& z_block, const Expr& n, const Expr& i, const Expr& m,
                              int64_t z) const {
        const Expr at = nest_.weight_index(names_, names_.block == 1 ? z_block + size(z) : z_block,
                                           n, i, m);
        return ir::load(names_.weights, names_.block == 1 ? at : at + size(z));
    }

    [[nodiscard]] int64_t lanes(int64_t vector) const {
        const bool is_half = nest_.kernel[KernelSize::half] == 1 && vector == vectors_ - 1;
        return is_half ? lanes_ / 2 : lanes_;
    }

    /// One row of the input, counted from the first that the tile reads, or the same row in each trip of a
    /// loop, and what it serves.
    struct InputRow {
        Expr number;
        std::vector<std::pair<int64_t, Expr>> served;  ///< output row, kernel row
    };
    /// Row `input`, and the rows that follow it by whole dilations, `trip` of them later.
    [[nodiscard]] InputRow input_row(int64_t input, int64_t rows, const Expr& trip = 0) const {
        const AxisWindow& w = p_.y();
        InputRow row{simplify(size(input) + trip * size(w.dilation)), {}};
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t reach = input - r * w.stride;
            if (reach >= 0 && reach % w.dilation == 0 && reach / w.dilation < w.kernel)
                row.served.emplace_back(r, simplify(size(reach / w.dilation) + trip));
        }
        return row;
    }

    /// What `make` makes of each row of the input that a tile of output rows reads. Those that serve all
    /// rows of the tile are a loop if there are too many products.
    Stmt over_input_rows(int64_t rows, const std::function<Stmt(const InputRow&)>& make) const {
        const AxisWindow& w = p_.y();
        std::vector<Stmt> parts;
        const auto in_sequence = [&](int64_t begin, int64_t end) {
            for (int64_t input = begin; input < end; ++input) {
                const InputRow row = input_row(input, rows);
                if (!row.served.empty()) parts.push_back(make(row));
            }
        };
        const int64_t begin = (rows - 1) * w.stride, end = (w.kernel - 1) * w.dilation + 1;
        const int64_t trips = (end - begin) / w.dilation;
        const int64_t all = begin + end;
        if (trips < 2 || w.kernel * p_.x().kernel * products_of_tap(rows) <= most_products_in_sequence) {
            in_sequence(0, all);
            return ir::sequence(parts);
        }
        in_sequence(0, begin);
        parts.push_back(GroupLowering::for_each(p_.name + ".n", {0, size(trips)}, [&](const Expr& trip) {
            std::vector<Stmt> period;
            for (int64_t input = begin; input < begin + w.dilation; ++input) {
                const InputRow row = input_row(input, rows, trip);
                if (!row.served.empty()) period.push_back(make(row));
            }
            return ir::sequence(period);
        }));
        in_sequence(begin + trips * w.dilation, all);
        return ir::sequence(parts);
    }
    /// Vectors of products of one tap of one kernel row with all it serves.
    [[nodiscard]] int64_t products_of_tap(int64_t rows) const { return channels_ * rows * vectors_; }

    /// Sums of one tile, and where they go. Each in an array of its own: LLVM keeps two halves of
    /// one array in one register and takes them apart for every product.
    struct Tile {
        std::vector<Accumulators> sums;
        int64_t rows = 1;
        int64_t vectors = 1;
        Expr z0, y, x;
        [[nodiscard]] const Accumulators& sum(int64_t z, int64_t r, int64_t v) const {
            return sums[static_cast<size_t>((z * rows + r) * vectors + v)];
        }
    };

    /// Lanes behind the end of a row of Y must not be written, nor ones that hold partial sums of
    /// the next tile.
    [[nodiscard]] Expr predicate(const Tile& tile, int64_t v) const {
        const Expr row_length = simplify(range_[2].end - range_[2].begin);
        const bool is_ragged =
            (nest_.is_sink() || !nest_.has_all_inputs(range_)) &&
            !(is_const(row_length) && *as_const_int(row_length) % (vectors_ * lanes_) == 0);
        if (!is_ragged) return {};
        const int64_t n = lanes(v);
        return lanes_from(simplify(tile.x + size(v * lanes_)), n) < broadcast(range_[2].end, n);
    }
    [[nodiscard]] Expr at(const Tile& tile, int64_t z, int64_t r, int64_t v) const {
        return lanes_from(simplify(nest_.output_index(tile.z0 + size(z), tile.y + size(r),
                                                      tile.x + size(v * lanes_))),
                          lanes(v));
    }

    /// channels x rows x vectors of columns.
    Stmt tile(const Expr& z_block, const Expr& y, int64_t rows, const RowStarts& starts,
              const Expr& x) const {
        Tile tile{{}, rows, vectors_, first_output(z_block), y, x};
        for (int64_t n = 0; n < channels_ * rows * vectors_; ++n)
            tile.sums.push_back({unique_name(p_.name + ".sum"), lanes(n % vectors_)});
        std::vector<Stmt> parts;
        for (int64_t z = 0; z < channels_; ++z) {
            for (int64_t r = 0; r < rows; ++r) {
                for (int64_t v = 0; v < vectors_; ++v) {
                    parts.push_back(tile.sum(z, r, v).set(
                        0, nest_.starting_sum(range_, names_, tile.z0 + size(z), at(tile, z, r, v),
                                              predicate(tile, v), exists(tile.z0, z))));
                }
            }
        }
        parts.push_back(over_input_rows(rows, [&](const InputRow& input) {
            const Expr row = simplify(y * size(p_.y().stride) + input.number - size(p_.y().pad_begin));
            return guarded(nest_.has_row(row), products_of_row(tile, z_block, input, starts));
        }));
        parts.push_back(stores(tile));
        Stmt body = ir::sequence(parts);
        for (const Accumulators& one : tile.sums) body = one.around(1, body);
        return body;
    }

    /// All products with a row of the input.
    Stmt products_of_row(const Tile& tile, const Expr& z_block, const InputRow& input,
                         const RowStarts& starts) const {
        const RowRing& from = nest_.input();
        const Expr column =
            tile.x * size(p_.x().stride) - size(p_.x().pad_begin) - from.first_column;
        const Expr first =
            starts.of(input.number) + nest_.first_channel(tile.z0) * from.pitch() + column;
        return let(p_.name + ".row", first, [&](const Expr& base) {
            return GroupLowering::for_each(p_.name + ".i", range_[3], [&](const Expr& i) {
                return for_taps(p_.name + ".m", p_.x().kernel, taps_together(tile.rows),
                                [&](const Expr& m) {
                                    return products_of_tap(tile, z_block, input, base, i, m);
                                });
            });
        });
    }

    /// Taps of a kernel row in sequence: all, unless a row of them is too much with the rows before and
    /// behind those in a loop.
    [[nodiscard]] int64_t taps_together(int64_t rows) const {
        constexpr int64_t in_loop = 8;
        const AxisWindow& w = p_.y();
        const int64_t kernel_rows = std::min(w.kernel, (rows - 1) * w.stride / w.dilation + 1);
        const int64_t products = kernel_rows * p_.x().kernel * products_of_tap(rows);
        return products <= most_products_in_sequence ? p_.x().kernel : in_loop;
    }

    /// Products of every loaded vector with every weight.
    Stmt products_of_tap(const Tile& tile, const Expr& z_block, const InputRow& input, const Expr& base,
                         const Expr& i, const Expr& m) const {
        const RowRing& from = nest_.input();
        std::vector<Expr> loaded;
        for (int64_t v = 0; v < vectors_; ++v) {
            const Expr first = base + i * from.pitch() +
                               simplify(m * size(p_.x().dilation) + size(v * lanes_ * p_.x().stride));
            loaded.push_back(strided_load(from.name, first, lanes(v), p_.x().stride));
        }
        std::vector<Expr> weights;
        std::vector<std::pair<int64_t, int64_t>> outputs;  // z, row
        for (const auto& [r, n] : input.served) {
            for (int64_t z = 0; z < channels_; ++z) {
                weights.push_back(broadcast(weight(z_block, n, i, m, z), lanes_));
                outputs.emplace_back(z, r);
            }
        }
        const auto product = [&](size_t v, size_t output, const Expr& value, const Expr& weight) {
            const Accumulators& s =
                tile.sum(outputs[output].first, outputs[output].second, static_cast<int64_t>(v));
            const Expr factor = s.lanes == lanes_
                                    ? weight
                                    : Shuffle::make_slice(weight, 0, 1, static_cast<int>(s.lanes));
            return s.set(0, s.get(0) + value * factor);
        };
        return ir::with_pairs(p_.name + ".in", loaded, weights, product);
    }

    Stmt stores(const Tile& tile) const {
        std::vector<Stmt> all;
        for (int64_t z = 0; z < channels_; ++z) {
            std::vector<Stmt> of_channel;
            for (int64_t r = 0; r < tile.rows; ++r) {
                for (int64_t v = 0; v < vectors_; ++v) {
                    of_channel.push_back(ir::store(
                        nest_.output_array(),
                        nest_.finished(range_, names_, tile.z0 + size(z), tile.sum(z, r, v).get(0)),
                        at(tile, z, r, v), ir::Alignment::element, predicate(tile, v)));
                }
            }
            all.push_back(guarded(exists(tile.z0, z), ir::sequence(of_channel)));
        }
        return ir::sequence(all);
    }

    /// Whether channel number z of a block exists: the last block may be filled up with zero
    /// weights, or with channels outside the box.
    [[nodiscard]] Expr exists(const Expr& z0, int64_t z) const {
        if (!is_aligned_)
            return z == 0 ? const_true() : z0 + size(z) < range_[0].end;
        const int64_t rest = p_[Dim::z] % channels_;
        return rest != 0 && z >= rest ? z0 + size(z) < size(p_[Dim::z]) : const_true();
    }

    const NestCode& nest_;
    const LayerProblem& p_;
    const Ranges& range_;
    int64_t lanes_;
    int64_t channels_;
    int64_t vectors_;
    bool is_aligned_;  ///< blocks of channels begin at multiples of their size
    ParameterNames names_;
};

}  // namespace

Stmt rows_code(const NestCode& nest, const Ranges& range) { return Rows(nest, range).code(); }

}  // namespace laminate
