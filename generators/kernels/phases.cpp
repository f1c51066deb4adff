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
    [[nodiscard]] Expr weight(const Expr& z_block, const Expr& n, const Expr& i, const Expr& m,
                              int64_t z) const {
        const Expr block = names_.block == 1 ? z_block + size(z) : z_block;
        const Expr at = nest_.weight_index(names_, block, n, i, m);
        return ir::load(names_.weights, names_.block == 1 ? at : at + size(z));
    }

    /// Neighbouring phases along one axis whose sums are in registers together.
    struct PhasesOfAxis {
        Expr first;
        int64_t count;
        int64_t kernel;  ///< taps of all phases, counted from the first phase: phase + tap * stride
        /// Taps that every phase has. Phases without any are those of an axis of one input position whose
        /// stride is longer than the kernel.
        [[nodiscard]] int64_t whole_taps(const AxisWindow& w) const {
            return kernel < count ? 0 : (kernel - count) / w.stride + 1;
        }
    };
    /// Phases along both axes.
    struct PhaseBlock {
        PhasesOfAxis y, x;
        int64_t channels, vectors;
        [[nodiscard]] int64_t sums() const { return channels * y.count * x.count * vectors; }
        [[nodiscard]] int64_t sum(int64_t z, int64_t py, int64_t px, int64_t v) const {
            return ((z * y.count + py) * x.count + px) * vectors + v;
        }
    };

    /// Blocks of at most `together` phases with equally many taps, in loops.
    Stmt over_phases(const std::string& name, const AxisWindow& w, int64_t together,
                     const std::function<Stmt(const PhasesOfAxis&)>& make) const {
        if (w.stride <= together) return make({0, w.stride, w.kernel});
        std::vector<Stmt> parts;
        const auto blocks = [&](int64_t begin, int64_t end) {
            const int64_t kernel = ceil_div(w.kernel - begin, w.stride) * w.stride;
            const int64_t whole = (end - begin) / together;
            parts.push_back(GroupLowering::for_each(name, {0, size(whole)}, [&](const Expr& block) {
                return make({simplify(size(begin) + block * size(together)), together, kernel});
            }));
            const int64_t done = begin + whole * together;
            if (done < end) parts.push_back(make({size(done), end - done, kernel}));
        };
        const int64_t with_one_more = w.kernel % w.stride;
        if (with_one_more > 0) blocks(0, with_one_more);
        blocks(with_one_more, w.stride);
        return ir::sequence(parts);
    }

    /// All phases of a block of channels at vectors of positions (qy, qx), (qy, qx + 1), ... Those of large
    /// strides have too many sums for registers: a row of some phases at a time.
    Stmt tile(const RowStarts& starts, const Expr& z_block, const Expr& qy, const Expr& qx) const {
        constexpr int64_t most_sums = 64, phases_of_row = 8;
        const bool all_together = wy_.stride * wx_.stride * channels_ * vectors_ <= most_sums;
        return over_phases(
            p_.name + ".py", wy_, all_together ? wy_.stride : 1, [&](const PhasesOfAxis& y) {
                return over_phases(p_.name + ".px", wx_, all_together ? wx_.stride : phases_of_row,
                                   [&](const PhasesOfAxis& x) {
                                       return tile({y, x, channels_, vectors_}, starts, z_block, qy, qx);
                                   });
            });
    }

    Stmt tile(const PhaseBlock& phases, const RowStarts& starts, const Expr& z_block, const Expr& qy,
              const Expr& qx) const {
        const Accumulators sums{unique_name(p_.name + ".sum"), lanes_};
        const Expr z0 = names_.block == 1 ? z_block : simplify(z_block * size(channels_));
        std::vector<Stmt> parts;
        for (int64_t n = 0; n < phases.sums(); ++n) {
            const int64_t z = n / (phases.sums() / channels_);
            parts.push_back(sums.set(n, broadcast(ir::load(names_.bias, z0 + size(z)), lanes_)));
        }
        // Rows of taps that all phases have are a loop if there are too many products.
        const int64_t whole_rows = phases.y.whole_taps(wy_);
        const int64_t rows_of_taps = ceil_div(phases.y.kernel, wy_.stride);
        const bool in_loop =
            rows_of_taps * products_of_row_of_taps(phases) > most_products_in_sequence;
        const auto row_of_taps = [&](const Expr& ty, int64_t rows) {
            const Expr row = simplify(qy - ty * size(wy_.dilation));
            return guarded(row >= 0 && row < nest_.in(Dim::y),
                           products_of_row(phases, sums, starts, z_block, z0, qx, ty, rows));
        };
        parts.push_back(for_taps(p_.name + ".ty", whole_rows, in_loop ? 1 : whole_rows,
                                 [&](const Expr& ty) { return row_of_taps(ty, phases.y.count); }));
        if (whole_rows < rows_of_taps) {
            parts.push_back(
                row_of_taps(size(whole_rows), phases.y.kernel - whole_rows * wy_.stride));
        }
        for (int64_t z = 0; z < channels_; ++z) {
            for (int64_t py = 0; py < phases.y.count; ++py) {
                const Expr row = simplify(qy * size(wy_.stride) + phases.y.first +
                                          size(py - wy_.pad_begin));
                Expr wanted = row >= range_[1].begin && row < range_[1].end;
                if (!is_aligned_) {
                    if (z > 0) wanted = wanted && z0 + size(z) < range_[0].end;
                } else if (p_[Dim::z] % channels_ != 0) {
                    wanted = wanted && z0 + size(z) < size(p_[Dim::z]);
                }
                parts.push_back(
                    guarded(wanted, stores_of_row(phases, sums, z0 + size(z), z, py, row, qx)));
            }
        }
        return sums.around(phases.sums(), ir::sequence(parts));
    }

    [[nodiscard]] int64_t products_of_row_of_taps(const PhaseBlock& phases) const {
        return phases.y.count * phases.x.kernel * phases.channels * phases.vectors;
    }

    /// Products of the first `rows` rows of phases with the input row that taps ty, ty + S, ... of the
    /// kernel's rows meet.
    Stmt products_of_row(const PhaseBlock& phases, const Accumulators& sums, const RowStarts& starts,
                         const Expr& z_block, const Expr& z0, const Expr& qx, const Expr& ty,
                         int64_t rows) const {
        const RowRing& from = nest_.input();
        const Expr column = qx - from.first_column;
        const Expr first = starts.of(simplify(size(input_rows() - 1) - ty * size(wy_.dilation))) +
                           nest_.first_channel(z0) * from.pitch() + column;
        const int64_t whole_taps = phases.x.whole_taps(wx_);
        const int64_t taps = ceil_div(phases.x.kernel, wx_.stride);
        constexpr int64_t in_loop = 4;
        const int64_t together =
            products_of_row_of_taps(phases) > most_products_in_sequence ? in_loop : whole_taps;
        return let(p_.name + ".row", first, [&](const Expr& base) {
            return GroupLowering::for_each(p_.name + ".i", range_[3], [&](const Expr& i) {
                const Stmt whole = for_taps(
                    p_.name + ".tx", whole_taps, together, [&](const Expr& tx) {
                        return products_of_tap(phases, sums, z_block, base, i, {ty, rows},
                                               {tx, phases.x.count});
                    });
                if (whole_taps == taps) return whole;
                const int64_t columns = phases.x.kernel - whole_taps * wx_.stride;
                return ir::sequence({whole, products_of_tap(phases, sums, z_block, base, i, {ty, rows},
                                                            {size(whole_taps), columns})});
            });
        });
    }

    /// A tap of the first `phases` phases along an axis.
    struct Tap {
        Expr number;
        int64_t phases;
    };
    /// Products of every vector of inputs with the weights of all phases that have the tap.
    Stmt products_of_tap(const PhaseBlock& phases, const Accumulators& sums, const Expr& z_block,
                         const Expr& base, const Expr& i, const Tap& ty, const Tap& tx) const {
        const RowRing& from = nest_.input();
        std::vector<Expr> loaded;
        for (int64_t v = 0; v < vectors_; ++v) {
            const Expr first = base + i * from.pitch() +
                               simplify(size(v * lanes_) - tx.number * size(wx_.dilation));
            loaded.push_back(ir::load(from.name, lanes_from(first, lanes_), ir::Alignment::element));
        }
        std::vector<Expr> weights;
        std::vector<int64_t> first_sums;
        const auto kernel_index = [](const PhasesOfAxis& axis, int64_t phase, const Expr& tap,
                                     int64_t stride) {
            return simplify(axis.first + size(phase) + tap * size(stride));
        };
        for (int64_t py = 0; py < ty.phases; ++py) {
            for (int64_t px = 0; px < tx.phases; ++px) {
                for (int64_t z = 0; z < channels_; ++z) {
                    const Expr w = weight(
                        z_block, kernel_index(phases.y, py, ty.number, wy_.stride), i,
                        kernel_index(phases.x, px, tx.number, wx_.stride), z);
                    weights.push_back(broadcast(w, lanes_));
                    first_sums.push_back(phases.sum(z, py, px, 0));
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

    /// Row `py` of the phases of one channel, its columns interleaved. Of some phases, each position is a
    /// run of columns by itself.
    Stmt stores_of_row(const PhaseBlock& phases, const Accumulators& sums, const Expr& channel, int64_t z,
                       int64_t py, const Expr& row, const Expr& qx) const {
        const int64_t columns = phases.x.count;
        std::vector<Stmt> stores;
        for (int64_t v = 0; v < vectors_; ++v) {
            std::vector<Expr> of_phases;
            for (int64_t px = 0; px < columns; ++px)
                of_phases.push_back(sums.get(phases.sum(z, py, px, v)));
            const Expr all = columns == 1 ? of_phases.front() : Shuffle::make_interleave(of_phases);
            const auto first_column = [&](int64_t position) {
                return simplify((qx + size(v * lanes_ + position)) * size(wx_.stride) +
                                phases.x.first - size(wx_.pad_begin));
            };
            if (columns == wx_.stride) {
                stores.push_back(store_columns(channel, row, first_column(0), all));
                continue;
            }
            // Under a name: Halide's simplifier takes one lane of a vector in an array of one vector for
            // an element behind its end, and leaves out what reads it.
            stores.push_back(ir::with_values(
                p_.name + ".positions", {all}, [&](const std::vector<Expr>& positions) {
                    std::vector<Stmt> of_position;
                    for (int64_t position = 0; position < lanes_; ++position) {
                        const Expr run = Shuffle::make_slice(
                            positions.front(), static_cast<int>(position * columns), 1,
                            static_cast<int>(columns));
                        of_position.push_back(
                            store_columns(channel, row, first_column(position), run));
                    }
                    return ir::sequence(of_position);
                }));
        }
        return ir::sequence(stores);
    }
    /// Sums of neighbouring columns, from `first` on, where they are in the box.
    Stmt store_columns(const Expr& channel, const Expr& row, const Expr& first, const Expr& sums) const {
        const int64_t lanes = sums.type().lanes();
        const Expr column = lanes_from(first, lanes);
        const Expr predicate =
            column >= broadcast(range_[2].begin, lanes) && column < broadcast(range_[2].end, lanes);
        const Expr at = lanes_from(simplify(nest_.output_index(channel, row, first)), lanes);
        // Halide's code generator has predicates for vectors only.
        const Expr lanes_wanted = lanes == 1 ? const_true() : predicate;
        const auto store = [&](const Expr& sum) {
            return ir::store(nest_.output_array(), nest_.finished(range_, names_, channel, sum), at,
                             ir::Alignment::element, lanes_wanted);
        };
        const auto where_wanted = [&](const Stmt& body) {
            return lanes == 1 ? guarded(predicate, body) : body;
        };
        if (nest_.has_all_inputs(range_)) return where_wanted(store(sums));
        // Partial sums join what is there already; the bias came in with the first.
        const Expr before = Load::make(sums.type(), nest_.output_array(), at, Halide::Buffer<>(),
                                       Halide::Parameter(Halide::Float(32), true, 1, "partial"),
                                       lanes_wanted, ModulusRemainder());
        const Expr bias = broadcast(ir::load(names_.bias, channel), lanes);
        const Expr joined =
            sums + ir::choose(range_[3].begin > 0, before - bias, make_zero(sums.type()));
        return where_wanted(
            ir::with_values(p_.name + ".joined", {joined},
                            [&](const std::vector<Expr>& sum) { return store(sum.front()); }));
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
