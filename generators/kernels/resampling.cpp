// Pad and Resize in the kernel vectors (scheduler/schedule/kernels/vectors.cpp has its formula).
#include <vector>

#include "generators/ir/sampled_tables.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/nest_code.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

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
          rows_(sampled_tables(nest.layer, nest.p, 0)),
          columns_(sampled_tables(nest.layer, nest.p, 1, behind())) {
        row_sources_ = constant(".row_sources", rows_.sources);
        row_factors_ = constant(".row_factors", rows_.factors);
        sources_ = constant(".sources", columns_.sources);
        factors_ = constant(".factors", columns_.factors);
        const Sampling& s = p_.x().sampling;
        constexpr int64_t most_phases = 8;
        block_ = s.numerator == 1 && s.denominator <= most_phases ? s.denominator : 1;
        steady_ = steady_outputs(columns_, p_[Dim::x], block_);
    }

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

    std::string constant(const char* name, const std::vector<float>& values) const {
        if (values.empty()) return {};
        return nest_.constants.append(
            unique_name(p_.name) + name,
            {.layer = nest_.nest, .source = Packing::Source::numbers, .values = values},
            nest_.layer, p_);
    }

    [[nodiscard]] static Expr whole(const Expr& number) {
        return Halide::cast(number.type().with_code(Halide::Type::Int), number);
    }

    /// The rows that row y reads, in floats, which no count takes for its own, and their factors.
    Stmt with_values(const Expr& y, const std::function<Stmt(const std::vector<Expr>&,
                                                             const std::vector<Expr>&)>& make) const {
        std::vector<Expr> values;
        for (const std::string& table : {row_sources_, row_factors_}) {
            for (int64_t tap = 0; tap < (table.empty() ? 0 : rows_.taps); ++tap)
                values.push_back(ir::load(table, y + size(tap * rows_.outputs)));
        }
        return ir::with_values(p_.name + ".row", values, [&](const std::vector<Expr>& names) {
            const auto factors = names.begin() + rows_.taps;
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
            if (steady_.outputs.empty()) return any;
            const Expr is_steady = x >= size(steady_.outputs.begin) &&
                                   x + size(step) <= size(steady_.outputs.end) &&
                                   x >= all.begin && x + size(step) <= limit;
            return IfThenElse::make(simplify(is_steady), stored(y, z, x, steady(row, x), {}), any);
        });
        if (rows_.inside == Range{0, p_[Dim::y]}) return read;
        const Stmt outside = GroupLowering::for_each(
            p_.name + ".outside", {0, simplify((limit - all.begin + size(lanes_ - 1)) / size(lanes_))},
            [&](const Expr& v) {
                const Expr x = simplify(all.begin + v * size(lanes_));
                return masked(y, z, x, alpha(lanes_), limit);
            });
        return IfThenElse::make(y >= size(rows_.inside.begin) && y < size(rows_.inside.end), read,
                                outside);
    }

    [[nodiscard]] Expr alpha(int64_t lanes) const {
        return broadcast(Expr(nest_.layer.general.alpha), lanes);
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
                if (const Expr f = factor(tap); f.defined()) value = value * f;
                along = along.defined() ? along + value : value;
            }
            if (!row.factors.empty())
                along = along * broadcast(row.factors[n], along.type().lanes());
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
        const auto at = [&](const std::string& table, int64_t tap) {
            return ir::load(table, column + broadcast(size(tap * columns_.outputs), lanes_),
                            ir::Alignment::element);
        };
        const Expr value = sum(
            row, columns_.taps,
            [&](const Expr& begin, int64_t tap) {
                return ir::load(nest_.input().name, broadcast(begin, lanes_) + whole(at(sources_, tap)),
                                ir::Alignment::element);
            },
            [&](int64_t tap) { return factors_.empty() ? Expr() : at(factors_, tap); });
        const Range& inside = columns_.inside;
        if (inside == Range{0, p_[Dim::x]}) return value;
        return Halide::select(column >= size(inside.begin) && column < size(inside.end), value,
                              alpha(lanes_));
    }

    /// As many vectors as a block has outputs, interleaved, where all read alike.
    [[nodiscard]] Expr steady(const SampledRow& row, const Expr& x) const {
        const Expr position = x / size(block_);
        std::vector<Expr> phases;
        for (int64_t phase = 0; phase < block_; ++phase) {
            const std::vector<int64_t>& offsets = steady_.offsets[static_cast<size_t>(phase)];
            phases.push_back(sum(
                row, columns_.taps,
                [&](const Expr& begin, int64_t tap) {
                    const Expr from =
                        begin + position + size(offsets[static_cast<size_t>(tap)]);
                    return ir::load(nest_.input().name, lanes_from(simplify(from), lanes_),
                                    ir::Alignment::element);
                },
                [&](int64_t tap) {
                    if (factors_.empty()) return Expr();
                    const int64_t at = tap * columns_.outputs + steady_.outputs.begin + phase;
                    return broadcast(Expr(columns_.factors[static_cast<size_t>(at)]), lanes_);
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
    SampledTables rows_, columns_;
    std::string row_sources_, row_factors_, sources_, factors_;  ///< factors: none if all are 1
    int64_t block_ = 1;  ///< outputs for one input
    SteadyOutputs steady_;
};

}  // namespace

Stmt resampling_code(const NestCode& nest, const Ranges& range) {
    return Resampling(nest, range).code();
}

}  // namespace laminate
