// The kernel phases (scheduler/schedule/kernels/phases.cpp has its formula).
#include <vector>

#include "generators/kernels/ir_names.h"
#include "generators/kernels/nest_code.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class Phases {
public:
    Phases(const NestCode& nest, const Ranges& range)
        : nest_(nest),
          p_(nest.p),
          wy_(nest.p.y()),
          wx_(nest.p.x()),
          range_(range),
          lanes_(nest.lanes()),
          channels_(nest.kernel[KernelSize::channels]),
          vectors_(nest.kernel[KernelSize::columns]),
          is_aligned_(has_whole_blocks(range[0], channels_, nest.p[Dim::z])),
          names_(nest.parameters(channels_, is_aligned_)) {}

    Stmt code() const {
        const bool weights_outside = p_.weight_elements().value() * 4 > nearer_caches;
        if (weights_outside && (weights_are_near() || input_is_near())) {
            return over_channels([&](const Expr& z) {
                return over_rows([&](const Expr& q, const RowStarts& starts) {
                    return over_columns([&](const Expr& x) { return tile(starts, z, q, x); });
                });
            });
        }
        // A block of few channels multiplies an input with few weights, so all rows once for each
        // block are more bytes from a far cache than all weights once for each row.
        if (weights_outside) {
            return over_rows([&](const Expr& q, const RowStarts& starts) {
                return over_channels([&](const Expr& z) {
                    return over_columns([&](const Expr& x) { return tile(starts, z, q, x); });
                });
            });
        }
        return over_rows([&](const Expr& q, const RowStarts& starts) {
            return over_columns([&](const Expr& x) {
                return over_channels([&](const Expr& z) { return tile(starts, z, q, x); });
            });
        });
    }

private:
    using Make = std::function<Stmt(Expr)>;
    static constexpr int64_t nearer_caches = 256 * 1024;  ///< bytes

    /// Whether a box, and `elements` for each of its elements, is known to stay in the nearer
    /// caches.
    [[nodiscard]] static bool is_near(const std::vector<Interval>& box, int64_t elements) {
        int64_t bytes = elements * bytes_per_element;
        for (const Interval& side : box) {
            const Expr extent = simplify(side.end - side.begin);
            const auto known = as_const_int(extent);
            if (!known) return false;
            bytes *= *known;
        }
        return bytes <= nearer_caches;
    }
    /// Whether the weights of the box's outputs are.
    [[nodiscard]] bool weights_are_near() const {
        return is_near({range_[0], range_[3]}, wy_.kernel * wx_.kernel);
    }
    /// Whether the input that the box reads is.
    [[nodiscard]] bool input_is_near() const {
        return is_near({positions(wy_, range_[1]), positions(wx_, range_[2]), range_[3]}, 1);
    }

    /// Rows of the kernel that meet one row of the grid, one input row each.
    [[nodiscard]] int64_t input_rows() const {
        return (ceil_div(wy_.kernel, wy_.stride) - 1) * wy_.dilation + 1;
    }
    /// Positions of the input grid whose phases meet outputs of the box.
    [[nodiscard]] static Interval positions(const AxisWindow& w, const Interval& out) {
        return {(out.begin + size(w.pad_begin)) / size(w.stride),
                (out.end - 1 + size(w.pad_begin)) / size(w.stride) + 1};
    }

    Stmt over_rows(const std::function<Stmt(Expr, RowStarts)>& make) const {
        return GroupLowering::for_each(
            p_.name + ".q", positions(wy_, range_[1]), [&](const Expr& row) {
                return nest_.with_row_starts(
                    row - size(input_rows() - 1), input_rows(),
                    [&](const RowStarts& starts) { return make(row, starts); });
            });
    }
    Stmt over_columns(const Make& make) const {
        const int64_t step = vectors_ * lanes_;
        const Interval all = wx_.transposed ? positions(wx_, range_[2]) : range_[2];
        const Expr trips = simplify((all.end - all.begin + size(step - 1)) / size(step));
        return GroupLowering::for_each(p_.name + ".x", {0, trips}, [&](const Expr& x) {
            return make(simplify(all.begin + x * size(step)));
        });
    }
    Stmt over_channels(const Make& make) const {
        return over_channel_blocks(p_, range_[0], channels_, is_aligned_, make);
    }
    [[nodiscard]] Expr weight(const Expr& z_block, int64_t n, const Expr& i, int64_t m,
                              int64_t z) const {
        const Expr block = names_.block == 1 ? z_block + size(z) : z_block;
        const Expr at = nest_.weight_index(names_, block, n, i, size(m));
        return ir::load(names_.weights, names_.block == 1 ? at : at + size(z));
    }

    [[nodiscard]] int64_t sum(int64_t z, int64_t py, int64_t px, int64_t v) const {
        return ((z * wy_.stride + py) * wx_.stride + px) * vectors_ + v;
    }

    /// All phases of a block of channels at vectors of positions (qy, qx), (qy, qx + 1), ...
    Stmt tile(const RowStarts& starts, const Expr& z_block, const Expr& qy, const Expr& qx) const {
        const Accumulators sums{unique_name(p_.name + ".sum"), lanes_};
        const Expr z0 = names_.block == 1 ? z_block : simplify(z_block * size(channels_));
        const int64_t count = channels_ * wy_.stride * wx_.stride * vectors_;
        std::vector<Stmt> parts;
        for (int64_t n = 0; n < count; ++n) {
            const int64_t z = n / (wy_.stride * wx_.stride * vectors_);
            parts.push_back(sums.set(n, broadcast(ir::load(names_.bias, z0 + size(z)), lanes_)));
        }
        for (int64_t ty = 0; ty * wy_.stride < wy_.kernel; ++ty) {
            const Expr row = simplify(qy - size(ty * wy_.dilation));
            parts.push_back(guarded(row >= 0 && row < nest_.in(Dim::y),
                                    products_of_row(sums, starts, z_block, z0, qx, ty)));
        }
        for (int64_t z = 0; z < channels_; ++z) {
            for (int64_t py = 0; py < wy_.stride; ++py) {
                const Expr row = simplify(qy * size(wy_.stride) + size(py - wy_.pad_begin));
                Expr wanted = row >= range_[1].begin && row < range_[1].end;
                if (!is_aligned_) {
                    if (z > 0) wanted = wanted && z0 + size(z) < range_[0].end;
                } else if (p_[Dim::z] % channels_ != 0) {
                    wanted = wanted && z0 + size(z) < size(p_[Dim::z]);
                }
                parts.push_back(guarded(wanted, stores_of_row(sums, z0 + size(z), z, py, row, qx)));
            }
        }
        return sums.around(count, ir::sequence(parts));
    }

    /// Products with the input row that taps ty, ty + S, ... of the kernel's rows meet.
    Stmt products_of_row(const Accumulators& sums, const RowStarts& starts, const Expr& z_block,
                         const Expr& z0, const Expr& qx, int64_t ty) const {
        const RowRing& from = nest_.input();
        const Expr column = qx - from.first_column;
        const Expr first = starts.of(input_rows() - 1 - ty * wy_.dilation) +
                           nest_.first_channel(z0) * from.pitch() + column;
        return let(p_.name + ".row", first, [&](const Expr& base) {
            return GroupLowering::for_each(p_.name + ".i", range_[3], [&](const Expr& i) {
                std::vector<Stmt> steps;
                for (int64_t tx = 0; tx * wx_.stride < wx_.kernel; ++tx)
                    steps.push_back(products_of_tap(sums, z_block, base, i, ty, tx));
                return ir::sequence(steps);
            });
        });
    }

    /// Products of every vector of inputs with the weights of all phases.
    Stmt products_of_tap(const Accumulators& sums, const Expr& z_block, const Expr& base,
                         const Expr& i, int64_t ty, int64_t tx) const {
        const RowRing& from = nest_.input();
        std::vector<Expr> loaded;
        for (int64_t v = 0; v < vectors_; ++v) {
            const Expr first = base + i * from.pitch() + size(v * lanes_ - tx * wx_.dilation);
            loaded.push_back(ir::load(from.name, lanes_from(first, lanes_), ir::Alignment::element));
        }
        std::vector<Expr> weights;
        std::vector<int64_t> first_sums;
        for (int64_t py = 0; py < wy_.stride && py + ty * wy_.stride < wy_.kernel; ++py) {
            for (int64_t px = 0; px < wx_.stride && px + tx * wx_.stride < wx_.kernel; ++px) {
                for (int64_t z = 0; z < channels_; ++z) {
                    const Expr w =
                        weight(z_block, py + ty * wy_.stride, i, px + tx * wx_.stride, z);
                    weights.push_back(broadcast(w, lanes_));
                    first_sums.push_back(sum(z, py, px, 0));
                }
            }
        }
        return ir::with_pairs(
            p_.name + ".in", loaded, weights,
            [&](size_t v, size_t w, const Expr& value, const Expr& weight) {
                const int64_t s = first_sums[w] + static_cast<int64_t>(v);
                return sums.set(s, sums.get(s) + value * weight);
            });
    }

    [[nodiscard]] Expr output_column(const Expr& qx, int64_t v) const {
        return simplify((qx + size(v * lanes_)) * size(wx_.stride) - size(wx_.pad_begin));
    }
    [[nodiscard]] Expr column_predicate(const Expr& qx, int64_t v) const {
        const int64_t n = lanes_ * wx_.stride;
        const Expr column = lanes_from(output_column(qx, v), n);
        return column >= broadcast(range_[2].begin, n) && column < broadcast(range_[2].end, n);
    }

    /// Row `py` of the phases of one channel, its columns interleaved.
    Stmt stores_of_row(const Accumulators& sums, const Expr& channel, int64_t z, int64_t py,
                       const Expr& row, const Expr& qx) const {
        std::vector<Stmt> stores;
        for (int64_t v = 0; v < vectors_; ++v) {
            std::vector<Expr> phases;
            for (int64_t px = 0; px < wx_.stride; ++px)
                phases.push_back(sums.get(sum(z, py, px, v)));
            const Expr all = wx_.stride == 1 ? phases.front() : Shuffle::make_interleave(phases);
            const Expr at =
                lanes_from(simplify(nest_.output_index(channel, row, output_column(qx, v))),
                           lanes_ * wx_.stride);
            const auto store = [&](const Expr& sum) {
                return ir::store(nest_.output_array(), nest_.finished(range_, names_, channel, sum),
                                 at, ir::Alignment::element, column_predicate(qx, v));
            };
            if (nest_.has_all_inputs(range_)) {
                stores.push_back(store(all));
                continue;
            }
            // Partial sums join what is there already; the bias came in with the first.
            const Expr before = Load::make(all.type(), nest_.output_array(), at, Halide::Buffer<>(),
                                           Halide::Parameter(Halide::Float(32), true, 1, "partial"),
                                           column_predicate(qx, v), ModulusRemainder());
            const Expr bias = broadcast(ir::load(names_.bias, channel), all.type().lanes());
            const Expr joined =
                all + ir::choose(range_[3].begin > 0, before - bias, make_zero(all.type()));
            stores.push_back(
                ir::with_values(p_.name + ".joined", {joined},
                                [&](const std::vector<Expr>& sum) { return store(sum.front()); }));
        }
        return ir::sequence(stores);
    }

    const NestCode& nest_;
    const LayerProblem& p_;
    const AxisWindow& wy_;
    const AxisWindow& wx_;
    const Ranges& range_;
    int64_t lanes_;
    int64_t channels_;
    int64_t vectors_;
    bool is_aligned_;  ///< blocks of channels begin at multiples of their size
    ParameterNames names_;
};

}  // namespace

Stmt phases_code(const NestCode& nest, const Ranges& range) { return Phases(nest, range).code(); }

}  // namespace laminate
