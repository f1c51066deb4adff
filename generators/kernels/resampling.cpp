// Pad and Resize in the kernel vectors (scheduler/schedule/kernels/vectors.cpp has its formula).
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "generators/ir/sampled_tables.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/nest_code.h"
#include "generators/lowering/group_lowering.h"
#include "nets/network/picture_views.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

Expr whole(const Expr& number) {
    return Halide::cast(number.type().with_code(Halide::Type::Int), number);
}

/// One axis of a Pad or Resize, as code reads it: by tables of every output, or in code of any size
/// by those of one period.
class AxisCode {
public:
    /// `behind`: outputs behind the last one that may be asked for.
    AxisCode(const NestCode& nest, size_t axis, const std::string& name, int64_t behind = 0)
        : in_(nest.in(axis == 0 ? Dim::y : Dim::x)) {
        const AxisWindow& w = nest.p.window[axis];
        constexpr int64_t most_phases = 8;
        const Sampling& s = w.sampling;
        block_ = s.numerator == 1 && s.denominator <= most_phases ? s.denominator : 1;
        if (nest.extents.is_open()) {
            periodic_ = periodic_axis(sampled_axis(nest.layer.general, 2 + axis), w.in);
            tables_ = period_tables();
            if (periodic_->advance == 1) find_steady(nest.out(axis == 0 ? Dim::y : Dim::x));
        } else {
            tables_ = sampled_tables(nest.layer, nest.p, axis, behind);
            const SteadyOutputs found = steady_outputs(tables_, w.out, block_);
            if (!found.outputs.empty()) {
                first_steady_ = found.outputs.begin;
                steady_ = {size(first_steady_), size(found.outputs.end)};
                offsets_ = found.offsets;
            }
        }
        const auto constant = [&](const char* kind, const std::vector<float>& values) {
            if (values.empty()) return std::string();
            return nest.constants.append(
                unique_name(nest.p.name) + "." + name + kind,
                {.layer = nest.nest, .source = Packing::Source::numbers, .values = values},
                nest.layer, nest.p);
        };
        sources_ = constant("sources", tables_.sources);
        factors_ = constant("factors", tables_.factors);
        has_outside_ = periodic_ ? periodic_->border == Padding::Mode::constant
                                 : tables_.inside != Range{0, w.out};
    }

    [[nodiscard]] int64_t taps() const { return tables_.taps; }
    /// Outputs for one input, where that is a whole number.
    [[nodiscard]] int64_t block() const { return block_; }
    [[nodiscard]] bool has_factors() const { return !factors_.empty(); }
    [[nodiscard]] bool has_outside() const { return has_outside_; }

    // `output` is one coordinate, or a vector of them.
    /// The coordinate that a tap reads. Of an output that reads nothing, one that its interval has.
    [[nodiscard]] Expr source(const Expr& output, int64_t tap) const {
        const Expr at = unmoved(output, tap);
        if (!periodic_) return at;
        const Expr last = spread(in_ - 1, output);
        Expr moved = at;
        if (periodic_->border == Padding::Mode::reflect) {
            const Expr right = Halide::select(at < 0, 0 - at, at);
            moved = Halide::min(right, last * 2 - right);
        }
        return Halide::clamp(moved, spread(0, output), last);
    }
    /// What a tap's element is multiplied by; undefined if all factors are 1.
    [[nodiscard]] Expr factor(const Expr& output, int64_t tap) const {
        return has_factors() ? looked_up(factors_, output, tap) : Expr();
    }
    [[nodiscard]] Expr is_inside(const Expr& output) const {
        if (!periodic_) {
            return output >= spread(size(tables_.inside.begin), output) &&
                   output < spread(size(tables_.inside.end), output);
        }
        const Expr at = unmoved(output, 0);
        return at >= spread(0, output) && at < spread(in_, output);
    }

    /// Outputs, in whole blocks, that read one input further on than the block before; undefined if
    /// there are none.
    [[nodiscard]] const Interval& steady() const { return steady_; }
    /// The coordinate that a tap of an output of a block reads there, less the block's number.
    [[nodiscard]] int64_t offset(int64_t phase, int64_t tap) const {
        return offsets_[static_cast<size_t>(phase)][static_cast<size_t>(tap)];
    }
    [[nodiscard]] float steady_factor(int64_t phase, int64_t tap) const {
        return tables_.factors[static_cast<size_t>(tap * tables_.outputs + first_steady_ + phase)];
    }

private:
    [[nodiscard]] static Expr spread(const Expr& number, const Expr& like) {
        return like.type().is_scalar() ? number : broadcast(number, like.type().lanes());
    }
    [[nodiscard]] Expr looked_up(const std::string& table, const Expr& output, int64_t tap) const {
        const Expr at = periodic_ ? output % spread(size(periodic_->period), output) : output;
        return ir::load(table, at + spread(size(tap * tables_.outputs), output),
                        ir::Alignment::element);
    }
    [[nodiscard]] Expr unmoved(const Expr& output, int64_t tap) const {
        const Expr at = whole(looked_up(sources_, output, tap));
        if (!periodic_) return at;
        return at + output / spread(size(periodic_->period), output) *
                        spread(size(periodic_->advance), output);
    }

    [[nodiscard]] SampledTables period_tables() const {
        SampledTables tables;
        tables.taps = std::ssize(periodic_->bases.front());
        tables.outputs = periodic_->period;
        for (size_t tap = 0; tap < periodic_->bases.front().size(); ++tap) {
            for (const std::vector<int64_t>& bases : periodic_->bases)
                tables.sources.push_back(static_cast<float>(bases[tap]));
            for (const std::vector<float>& factors : periodic_->factors)
                tables.factors.push_back(factors[tap]);
        }
        const auto is_one = [](float factor) { return factor == 1; };
        if (std::all_of(tables.factors.begin(), tables.factors.end(), is_one))
            tables.factors.clear();
        return tables;
    }

    /// From the first block that reads nothing before the map to the last that reads nothing behind.
    void find_steady(const Expr& outputs) {
        int64_t least = 0, most = 0;
        for (const std::vector<int64_t>& bases : periodic_->bases) {
            for (const int64_t base : bases) {
                least = std::min(least, base);
                most = std::max(most, base);
            }
        }
        steady_ = {size(-least * block_),
                   Halide::min(in_ - size(most), outputs / size(block_)) * size(block_)};
        offsets_ = periodic_->bases;
    }

    Expr in_;
    int64_t block_ = 1;
    std::optional<PeriodicAxis> periodic_;  ///< in code of any size
    SampledTables tables_;
    Interval steady_;
    int64_t first_steady_ = 0;  ///< in the tables
    std::vector<std::vector<int64_t>> offsets_;
    std::string sources_, factors_;  ///< factors: none if all are 1
    bool has_outside_ = false;
};

/// What a row of outputs reads: rows of the input, and their factors.
struct SampledRow {
    std::vector<Expr> begins;  ///< where column 0 of the row would lie in the ring
    std::vector<Expr> factors;
};

class Resampling {
public:
    Resampling(const NestCode& nest, const Ranges& range)
        : nest_(nest),
          p_(nest.p),
          range_(range),
          lanes_(nest.lanes()),
          rows_(nest, 0, "row_"),
          columns_(nest, 1, "", behind()),
          block_(columns_.block()) {}

    Stmt code() const {
        return GroupLowering::for_each(p_.name + ".y", range_[1], [&](const Expr& y) {
            return with_values(y, [&](const std::vector<Expr>& rows,
                                      const std::vector<Expr>& factors) {
                return GroupLowering::for_each(p_.name + ".z", range_[0], [&](const Expr& z) {
                    SampledRow row{{}, factors};
                    for (const Expr& at : rows)
                        row.begins.push_back(nest_.input().index(z, whole(at), 0));
                    return row_code(row, y, z);
                });
            });
        });
    }

private:
    /// Outputs behind the last one that vectors run over.
    [[nodiscard]] int64_t behind() const { return lanes_ * 9; }

    /// The rows that row y reads, and their factors: floats, as tables are, which no count takes for
    /// its own.
    Stmt with_values(const Expr& y, const std::function<Stmt(const std::vector<Expr>&,
                                                             const std::vector<Expr>&)>& make) const {
        std::vector<Expr> values;
        for (int64_t tap = 0; tap < rows_.taps(); ++tap)
            values.push_back(Halide::cast<float>(rows_.source(y, tap)));
        for (int64_t tap = 0; rows_.has_factors() && tap < rows_.taps(); ++tap)
            values.push_back(rows_.factor(y, tap));
        return ir::with_values(p_.name + ".row", values, [&](const std::vector<Expr>& names) {
            const auto factors = names.begin() + rows_.taps();
            return make({names.begin(), factors}, {factors, names.end()});
        });
    }

    Stmt row_code(const SampledRow& row, const Expr& y, const Expr& z) const {
        const Interval& all = range_[2];
        const int64_t step = lanes_ * block_;
        // As many columns as in other kernels of vectors: those behind the end of a row fit into
        // rings only.
        const Expr limit = nest_.is_sink() ? all.end
                                           : all.begin + (all.end - all.begin + size(lanes_ - 1)) /
                                                             size(lanes_) * size(lanes_);
        const Expr first = block_ == 1 ? all.begin : all.begin / size(block_) * size(block_);
        const Expr trips = simplify((limit - first + size(step - 1)) / size(step));
        const Stmt read = GroupLowering::for_each(p_.name + ".x", {0, trips}, [&](const Expr& v) {
            const Expr x = simplify(first + v * size(step));
            std::vector<Stmt> parts;
            for (int64_t part = 0; part < block_; ++part) {
                const Expr at = simplify(x + size(part * lanes_));
                parts.push_back(masked(y, z, at, looked_up(row, at), limit));
            }
            const Stmt any = ir::sequence(parts);
            const Interval& outputs = columns_.steady();
            if (!outputs.begin.defined()) return any;
            const Expr is_steady = x >= outputs.begin && x + size(step) <= outputs.end &&
                                   x >= all.begin && x + size(step) <= limit;
            return IfThenElse::make(simplify(is_steady), stored(y, z, x, steady(row, x), {}), any);
        });
        if (!rows_.has_outside()) return read;
        const Stmt outside = GroupLowering::for_each(
            p_.name + ".outside", {0, simplify((limit - all.begin + size(lanes_ - 1)) / size(lanes_))},
            [&](const Expr& v) {
                const Expr x = simplify(all.begin + v * size(lanes_));
                return masked(y, z, x, alpha(lanes_), limit);
            });
        return IfThenElse::make(rows_.is_inside(y), read, outside);
    }

    [[nodiscard]] Expr alpha(int64_t lanes) const {
        return broadcast(Expr(nest_.layer.general.alpha), lanes);
    }

    /// Never joined with a sum to one operation: LLVM would do so with another product in steady code
    /// than in code that looks up, and bits would depend on the place in the map.
    [[nodiscard]] static Expr product(const Expr& a, const Expr& b) {
        return Halide::strict_float(a * b);
    }
    /// The sum over rows and columns: of `taps` columns, load(row, tap) by its factor(tap).
    [[nodiscard]] Expr sum(const SampledRow& row, int64_t taps,
                           const std::function<Expr(const Expr& begin, int64_t tap)>& load,
                           const std::function<Expr(int64_t tap)>& factor) const {
        Expr total;
        for (size_t n = 0; n < row.begins.size(); ++n) {
            Expr along;
            for (int64_t tap = 0; tap < taps; ++tap) {
                Expr value = load(row.begins[n], tap);
                if (const Expr f = factor(tap); f.defined()) value = product(value, f);
                along = along.defined() ? along + value : value;
            }
            if (!row.factors.empty())
                along = product(along, broadcast(row.factors[n], along.type().lanes()));
            total = total.defined() ? total + along : along;
        }
        return total;
    }

    /// `lanes` outputs from x on, wherever they read.
    [[nodiscard]] Expr looked_up(const SampledRow& row, const Expr& x) const {
        // Lanes before the box, which are not stored, read what its first output reads.
        const Expr first = range_[2].begin;
        const Expr lane = lanes_from(x, lanes_);
        const Expr column = block_ == 1 ? lane : Halide::max(lane, broadcast(first, lanes_));
        const Expr value = sum(
            row, columns_.taps(),
            [&](const Expr& begin, int64_t tap) {
                return ir::load(nest_.input().name,
                                broadcast(begin, lanes_) + columns_.source(column, tap),
                                ir::Alignment::element);
            },
            [&](int64_t tap) { return columns_.factor(column, tap); });
        if (!columns_.has_outside()) return value;
        return Halide::select(columns_.is_inside(column), value, alpha(lanes_));
    }

    /// As many vectors as a block has outputs, interleaved, where all read alike.
    [[nodiscard]] Expr steady(const SampledRow& row, const Expr& x) const {
        const Expr position = x / size(block_);
        std::vector<Expr> phases;
        for (int64_t phase = 0; phase < block_; ++phase) {
            phases.push_back(sum(
                row, columns_.taps(),
                [&](const Expr& begin, int64_t tap) {
                    const Expr from = begin + position + size(columns_.offset(phase, tap));
                    return ir::load(nest_.input().name, lanes_from(simplify(from), lanes_),
                                    ir::Alignment::element);
                },
                [&](int64_t tap) {
                    if (!columns_.has_factors()) return Expr();
                    return broadcast(Expr(columns_.steady_factor(phase, tap)), lanes_);
                }));
        }
        return block_ == 1 ? phases.front() : Shuffle::make_interleave(phases);
    }

    Stmt stored(const Expr& y, const Expr& z, const Expr& x, const Expr& value,
                const Expr& predicate) const {
        return ir::store(
            nest_.output_array(), value,
            lanes_from(simplify(nest_.output_index(z, y, x)), value.type().lanes()),
            ir::Alignment::element, predicate);
    }
    /// A vector whose lanes before the box and from `limit` on are not stored.
    Stmt masked(const Expr& y, const Expr& z, const Expr& x, const Expr& value,
                const Expr& limit) const {
        const Expr lane = lanes_from(x, lanes_);
        Expr predicate;
        if (nest_.is_sink() || block_ > 1) predicate = lane < broadcast(simplify(limit), lanes_);
        if (block_ > 1) predicate = predicate && lane >= broadcast(range_[2].begin, lanes_);
        return stored(y, z, x, value, predicate);
    }

    const NestCode& nest_;
    const LayerProblem& p_;
    const Ranges& range_;
    int64_t lanes_;
    AxisCode rows_, columns_;
    int64_t block_;  ///< outputs for one input
};

}  // namespace

Stmt resampling_code(const NestCode& nest, const Ranges& range) {
    return Resampling(nest, range).code();
}

}  // namespace laminate
