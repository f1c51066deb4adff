// The kernel channels (scheduler/schedule/kernels/channels.cpp has its formula).
#include <vector>

#include "generators/ir/activations.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/nest_code.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class Channels {
public:
    Channels(const NestCode& nest, const Ranges& range)
        : nest_(nest),
          p_(nest.p),
          range_(range),
          lanes_(nest.lanes()),
          vectors_(nest.kernel[KernelSize::channels]),
          block_(vectors_ * lanes_),
          names_(nest.parameters(block_)) {}

    Stmt code() const {
        return over_channel_blocks(p_, range_[0], block_, true, [&](const Expr& z_block) {
            return GroupLowering::for_each(p_.name + ".y", range_[1], [&](const Expr& y) {
                const Expr first = simplify(y * size(p_.y().stride) - size(p_.y().pad_begin));
                return nest_.with_row_starts(first, p_.y().span(), [&](const RowStarts& starts) {
                    return row(z_block, y, starts);
                });
            });
        });
    }

private:
    /// Whole tiles of columns, then the rest: one narrower tile if its width is known.
    Stmt row(const Expr& z_block, const Expr& y, const RowStarts& starts) const {
        const int64_t columns = nest_.kernel[KernelSize::columns];
        const Interval& all = range_[2];
        const Expr count = simplify(all.end - all.begin);
        const Expr full = simplify(count / size(columns));
        std::vector<Stmt> parts;
        parts.push_back(GroupLowering::for_each(p_.name + ".x", {0, full}, [&](const Expr& x) {
            return tile(columns, starts, z_block, y, simplify(all.begin + x * size(columns)));
        }));
        const Expr done = simplify(full * size(columns));
        const Expr rest = simplify(count - done);
        if (is_const(rest) && !is_const_zero(rest)) {
            parts.push_back(
                tile(*as_const_int(rest), starts, z_block, y, simplify(all.begin + done)));
        } else if (columns > 1 && !is_const_zero(rest)) {
            parts.push_back(
                GroupLowering::for_each(p_.name + ".x", {done, count}, [&](const Expr& x) {
                    return tile(1, starts, z_block, y, simplify(all.begin + x));
                }));
        }
        return ir::sequence(parts);
    }

    /// Where a tile's results go.
    struct Place {
        int64_t columns;
        Expr z0, y, x;
    };
    [[nodiscard]] Expr channel(const Place& to, int64_t v) const {
        return lanes_from(simplify(to.z0 + size(v * lanes_)), lanes_);
    }
    [[nodiscard]] Expr at(const Place& to, int64_t v, int64_t c) const {
        return lanes_from(
            simplify(nest_.output_index(to.z0 + size(v * lanes_), to.y, to.x + size(c))), lanes_,
            nest_.output_plane());
    }
    /// Lanes without a channel are not stored.
    [[nodiscard]] Expr predicate(const Place& to, int64_t v) const {
        const int64_t rest = p_[Dim::z] % block_;
        if (rest == 0 || (v + 1) * lanes_ <= rest) return {};
        return channel(to, v) < broadcast(size(p_[Dim::z]), lanes_);
    }

    /// Vectors of channels x columns of one row.
    Stmt tile(int64_t columns, const RowStarts& starts, const Expr& z_block, const Expr& y,
              const Expr& x) const {
        const Accumulators sums{unique_name(p_.name + ".sum"), lanes_};
        const Place to{columns, simplify(z_block * size(block_)), y, x};
        std::vector<Stmt> parts;
        for (int64_t v = 0; v < vectors_; ++v) {
            for (int64_t c = 0; c < columns; ++c) {
                parts.push_back(
                    sums.set(v * columns + c, nest_.starting_sum(range_, names_, channel(to, v),
                                                                 at(to, v, c), predicate(to, v))));
            }
        }
        constexpr int64_t most_rows_in_sequence = 16;
        parts.push_back(for_taps(
            p_.name + ".n", p_.y().kernel,
            p_.y().kernel <= most_rows_in_sequence ? p_.y().kernel : 1, [&](const Expr& n) {
                const Expr row = simplify(y * size(p_.y().stride) + n * size(p_.y().dilation) -
                                          size(p_.y().pad_begin));
                return guarded(row >= 0 && row < nest_.in(Dim::y),
                               products_of_row(sums, to, starts, z_block, n));
            }));
        for (int64_t v = 0; v < vectors_; ++v) {
            const Expr slope = names_.slope.empty() ? broadcast(Expr(0.0F), lanes_)
                                                    : ir::load(names_.slope, channel(to, v));
            for (int64_t c = 0; c < columns; ++c) {
                const Expr sum = sums.get(v * columns + c);
                Expr value = ir::activate(nest_.layer.activation, sum, slope);
                if (!nest_.has_all_inputs(range_))
                    value = Halide::select(range_[3].end >= size(p_[Dim::i]), value, sum);
                const auto store = [&](const Expr& lanes) {
                    return ir::store(nest_.output_array(), value, at(to, v, c),
                                     ir::Alignment::element, lanes);
                };
                const Expr lanes = predicate(to, v);
                // Stores of some lanes are far slower than of all, which all blocks but the last
                // have.
                parts.push_back(lanes.defined()
                                    ? IfThenElse::make(
                                          to.z0 + size((v + 1) * lanes_) <= size(p_[Dim::z]),
                                          store({}), store(lanes))
                                    : store({}));
            }
        }
        return sums.around(vectors_ * columns, ir::sequence(parts));
    }

    /// The products of kernel row n. Taps are a loop: they share elements, and the compiler would
    /// keep more of them than there are registers.
    Stmt products_of_row(const Accumulators& sums, const Place& to, const RowStarts& starts,
                         const Expr& z_block, const Expr& n) const {
        const RowRing& from = nest_.input();
        const Expr column = to.x * size(p_.x().stride) - size(p_.x().pad_begin) - from.first_column;
        const Expr first = starts.of(simplify(n * size(p_.y().dilation))) + column;
        return let(p_.name + ".row", first, [&](const Expr& base) {
            return GroupLowering::for_each(p_.name + ".i", range_[3], [&](const Expr& i) {
                return GroupLowering::for_each(
                    p_.name + ".m", {0, size(p_.x().kernel)}, [&](const Expr& m) {
                        return products_of_tap(sums, to, base,
                                               nest_.weight_index(names_, z_block, n, i, m), i, m);
                    });
            });
        });
    }

    Stmt products_of_tap(const Accumulators& sums, const Place& to, const Expr& base,
                         const Expr& weight, const Expr& i, const Expr& m) const {
        const RowRing& from = nest_.input();
        std::vector<Expr> weights;
        for (int64_t v = 0; v < vectors_; ++v)
            weights.push_back(
                ir::load(names_.weights, lanes_from(weight + size(v * lanes_), lanes_)));
        return ir::with_values(p_.name + ".w", weights, [&](const std::vector<Expr>& w) {
            std::vector<Stmt> products;
            for (int64_t c = 0; c < to.columns; ++c) {
                const Expr value =
                    ir::load(from.name, base + i * from.pitch() + m * size(p_.x().dilation) +
                                            size(c * p_.x().stride));
                const auto with_value = [&](const std::vector<Expr>& in) {
                    std::vector<Stmt> uses;
                    for (int64_t v = 0; v < vectors_; ++v) {
                        const int64_t s = v * to.columns + c;
                        uses.push_back(
                            sums.set(s, sums.get(s) + in.front() * w[static_cast<size_t>(v)]));
                    }
                    return ir::sequence(uses);
                };
                products.push_back(
                    ir::with_values(p_.name + ".in", {broadcast(value, lanes_)}, with_value));
            }
            return ir::sequence(products);
        });
    }

    const NestCode& nest_;
    const LayerProblem& p_;
    const Ranges& range_;
    int64_t lanes_;
    int64_t vectors_;
    int64_t block_;
    ParameterNames names_;
};

}  // namespace

Stmt channels_code(const NestCode& nest, const Ranges& range) {
    return Channels(nest, range).code();
}

}  // namespace laminate
