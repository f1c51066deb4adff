// The kernel vectors (scheduler/schedule/kernels/vectors.cpp has its formula).
#include <algorithm>
#include <limits>
#include <vector>

#include "generators/ir/activations.h"
#include "generators/ir/normalisation.h"
#include "generators/ir/packing.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/nest_code.h"
#include "generators/lowering/group_lowering.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/kernels/layer_forms.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class Vectors {
public:
    Vectors(const NestCode& nest, const Ranges& range)
        : nest_(nest), p_(nest.p), range_(range), lanes_(nest.lanes()) {
        slope_ = nest.constants.append(unique_name(p_.name) + ".slope",
                                       {.layer = nest.nest, .source = Packing::Source::slope},
                                       nest.layer, p_);
    }

    Stmt code() const {
        if (p_.operation == Operation::max_pool || p_.operation == Operation::average_pool) {
            return GroupLowering::for_each(p_.name + ".y", range_[1], [&](const Expr& y) {
                const auto pools = [&](const RowStarts* starts) {
                    return pools_columns_first(p_) ? pooled_columns_first(y, starts) : pooled(y, starts);
                };
                constexpr int64_t most_on_stack = 4096;
                if (p_.y().span() > most_on_stack) return pools(nullptr);
                const Expr first = simplify(y * size(p_.y().stride) - size(p_.y().pad_begin));
                return nest_.with_row_starts(first, p_.y().span(),
                                             [&](const RowStarts& starts) { return pools(&starts); });
            });
        }
        if (p_.makes_blocks()) return blocks();
        if (p_.operation == Operation::rearrange) return rearranged();
        if (p_.operation == Operation::normalise) {
            return in_blocks([&](const Expr& y, const Expr& x, int64_t vectors) {
                return normalised(y, x, vectors);
            });
        }
        if (is_extreme_of_channels(p_.operation)) {
            return in_blocks([&](const Expr& y, const Expr& x, int64_t vectors) {
                return extreme_of_channels(y, x, vectors);
            });
        }
        std::vector<Stmt> operands;
        const bool is_concat = p_.operation == Operation::concat;
        for (size_t e = 0; e < (is_concat ? p_.inputs.size() : 1); ++e) {
            const int64_t first = p_.inputs[e].first_output_channel;
            const Interval channels =
                !is_concat ? range_[0]
                           : Interval{simplify(Halide::max(range_[0].begin, size(first))),
                                      simplify(Halide::min(range_[0].end,
                                                           size(first + p_.inputs[e].channels)))};
            operands.push_back(
                over_rows(channels, [&](const Expr& z, const Expr& y, const Expr& x) {
                    Expr value = element_of(static_cast<int>(e), z - size(first), y, x);
                    if (is_elementwise(p_.operation)) {
                        for (size_t other = 1; other < p_.inputs.size(); ++other)
                            value = ir::combined(p_.operation, value,
                                                 element_of(static_cast<int>(other), z, y, x));
                    }
                    return store(z, y, x, value);
                }));
        }
        return ir::sequence(operands);
    }

private:
    using Make = std::function<Stmt(const Expr& z, const Expr& y, const Expr& x)>;

    Stmt over_rows(const Interval& channels, const Make& make) const {
        return GroupLowering::for_each(p_.name + ".y", range_[1], [&](const Expr& y) {
            return over_channels(channels, [&](const Expr& z, const Expr& x) { return make(z, y, x); });
        });
    }
    Stmt over_channels(const Interval& channels,
                       const std::function<Stmt(const Expr& z, const Expr& x)>& make) const {
        return GroupLowering::for_each(p_.name + ".z", channels, [&](const Expr& z) {
            const Interval& all = range_[2];
            const Expr trips = simplify((all.end - all.begin + size(lanes_ - 1)) / size(lanes_));
            return GroupLowering::for_each(p_.name + ".x", {0, trips}, [&](const Expr& x) {
                return make(z, simplify(all.begin + x * size(lanes_)));
            });
        });
    }

    [[nodiscard]] Expr element_of(int operand, const Expr& channel, const Expr& y,
                                  const Expr& x) const {
        const RowRing& from = nest_.input(operand);
        const LayerInput& input = p_.inputs[static_cast<size_t>(operand)];
        const Expr of = input.is_plane ? Expr(0) : channel;
        if (input.is_pixel)
            return broadcast(ir::load(from.name, simplify(from.index(of, 0, 0))), lanes_);
        const Expr at = from.index(of, y - size(p_.y().pad_begin), x - size(p_.x().pad_begin));
        return ir::load(from.name, lanes_from(simplify(at), lanes_), ir::Alignment::element);
    }

    Stmt store(const Expr& z, const Expr& y, const Expr& x, const Expr& value) const {
        const Expr slopes =
            slope_.empty() ? broadcast(Expr(0.0F), lanes_) : broadcast(ir::load(slope_, z), lanes_);
        // Lanes behind the end of a row of Y must not be written; rings have room for them.
        Expr predicate;
        if (nest_.is_sink()) predicate = lanes_from(x, lanes_) < broadcast(range_[2].end, lanes_);
        return ir::store(nest_.output_array(), ir::activate(nest_.layer.activation, value, slopes),
                         lanes_from(simplify(nest_.output_index(z, y, x)), lanes_),
                         ir::Alignment::element, predicate);
    }

    /// Vectors of a row, `together` of them as long as there are as many, then one by one.
    Stmt in_blocks_of_row(int64_t together,
                          const std::function<Stmt(const Expr& x, int64_t vectors)>& make) const {
        const Interval& all = range_[2];
        const Expr vectors = (all.end - all.begin + size(lanes_ - 1)) / size(lanes_);
        const Expr blocks = simplify(vectors / size(together));
        const auto from = [&](const Expr& vector, int64_t count) {
            return make(simplify(all.begin + vector * size(lanes_)), count);
        };
        return ir::sequence(
            {GroupLowering::for_each(
                 p_.name + ".x", {0, blocks},
                 [&](const Expr& block) { return from(block * size(together), together); }),
             GroupLowering::for_each(
                 p_.name + ".rest", {simplify(blocks * size(together)), simplify(vectors)},
                 [&](const Expr& vector) { return from(vector, 1); })});
    }
    /// Vectors of pixels together: the sum or maximum of each waits for its last channel.
    Stmt in_blocks(
        const std::function<Stmt(const Expr& y, const Expr& x, int64_t vectors)>& make) const {
        constexpr int64_t together = 4;
        return GroupLowering::for_each(p_.name + ".y", range_[1], [&](const Expr& y) {
            return in_blocks_of_row(together, [&](const Expr& x, int64_t vectors) {
                return make(y, x, vectors);
            });
        });
    }
    Stmt normalised(const Expr& y, const Expr& x, int64_t vectors) const {
        const auto column = [&](int64_t v) { return simplify(x + size(v * lanes_)); };
        const ir::PixelVectors pixels{
            .name = p_.name,
            .channels = p_[Dim::i],
            .lanes = lanes_,
            .vectors = vectors,
            .load = [&](const Expr& c, int64_t v) { return element_of(0, c, y, column(v)); }};
        return ir::with_statistics(nest_.layer, pixels, [&](const ir::Normalised& normalised) {
            return GroupLowering::for_each(p_.name + ".z", range_[0], [&](const Expr& z) {
                std::vector<Stmt> parts;
                for (int64_t v = 0; v < vectors; ++v)
                    parts.push_back(store(z, y, column(v), normalised(pixels.load(z, v), v)));
                return ir::sequence(parts);
            });
        });
    }

    Stmt extreme_of_channels(const Expr& y, const Expr& x, int64_t vectors) const {
        const Accumulators result{unique_name(p_.name + ".extreme"), lanes_};
        const auto column = [&](int64_t v) { return simplify(x + size(v * lanes_)); };
        const auto each = [&](const std::function<Stmt(int64_t vector)>& make) {
            std::vector<Stmt> parts;
            for (int64_t v = 0; v < vectors; ++v) parts.push_back(make(v));
            return ir::sequence(parts);
        };
        const Stmt first =
            each([&](int64_t v) { return result.set(v, element_of(0, 0, y, column(v))); });
        const Stmt others = GroupLowering::for_each(
            p_.name + ".c", {1, size(p_[Dim::i])}, [&](const Expr& c) {
                return each([&](int64_t v) {
                    return result.set(v, ir::combined(p_.operation, element_of(0, c, y, column(v)),
                                                      result.get(v)));
                });
            });
        const Stmt stores = each([&](int64_t v) { return store(0, y, column(v), result.get(v)); });
        return result.around(vectors, ir::sequence({first, others, stores}));
    }

    /// Each row of input positions makes a row of outputs, interleaved of one channel per phase.
    Stmt rearranged() const {
        const int64_t rows = p_.y().stride, columns = p_.x().stride, lanes = lanes_ * columns;
        const Interval& all = range_[2];
        // store() writes these columns: those behind the end of a row fit into rings only.
        const Expr limit =
            nest_.is_sink()
                ? all.end
                : all.begin + (all.end - all.begin + size(lanes_ - 1)) / size(lanes_) * size(lanes_);
        const Expr first = simplify(all.begin / size(columns));
        const Expr positions = (limit + size(columns - 1)) / size(columns) - first;
        const Expr trips = simplify((positions + size(lanes_ - 1)) / size(lanes_));
        return GroupLowering::for_each(p_.name + ".y", range_[1], [&](const Expr& y) {
            const Expr from_row = y / size(rows), row_phase = y % size(rows);
            return GroupLowering::for_each(p_.name + ".z", range_[0], [&](const Expr& z) {
                return GroupLowering::for_each(p_.name + ".x", {0, trips}, [&](const Expr& v) {
                    const Expr position = simplify(first + v * size(lanes_));
                    std::vector<Expr> phases;
                    for (int64_t phase = 0; phase < columns; ++phase) {
                        const Expr channel = rearranged_channel(z, row_phase, phase);
                        phases.push_back(element_of(0, channel, from_row, position));
                    }
                    const Expr value =
                        columns == 1 ? phases.front() : Shuffle::make_interleave(phases);
                    const Expr x = simplify(position * size(columns));
                    const Expr at = lanes_from(simplify(nest_.output_index(z, y, x)), lanes);
                    const auto store = [&](const Expr& predicate) {
                        return ir::store(nest_.output_array(), value, at, ir::Alignment::element,
                                         predicate);
                    };
                    const Expr column = lanes_from(x, lanes);
                    const Stmt masked =
                        store(column >= broadcast(all.begin, lanes) &&
                              column < broadcast(simplify(limit), lanes));
                    const Expr is_inside =
                        simplify(x >= all.begin && x + size(lanes) <= limit);
                    if (is_const_one(is_inside)) return store({});
                    return IfThenElse::make(is_inside, store({}), masked);
                });
            });
        });
    }

    [[nodiscard]] Expr rearranged_channel(const Expr& z, const Expr& row_phase,
                                          int64_t phase) const {
        if (p_[Dim::i] == 1) return nest_.first_channel(z);
        const Expr outputs = size(p_.group_outputs());
        const Expr tap = row_phase * size(p_.x().stride) + size(phase);
        return nest_.first_channel(z) + tap * outputs + z % outputs;
    }

    Stmt blocks() const {
        const Expr rows = size(p_.y().stride), columns = size(p_.x().stride);
        return over_rows(range_[0], [&](const Expr& z, const Expr& y, const Expr& x) {
            const Expr place = place_before_shuffle(z, size(p_[Dim::z]), size(p_.shuffle));
            const Expr at = nest_.input().index(simplify(place / (rows * columns)),
                                                simplify(y * rows + place / columns % rows),
                                                simplify(x * columns + place % columns));
            return store(z, y, x,
                         strided_load(nest_.input().name, simplify(at), lanes_, p_.x().stride));
        });
    }

    /// The row of the input that row n of output row y's windows is, and where the channel's begins; without
    /// `starts`, this is found where it is used.
    [[nodiscard]] Expr row_of_window(const Expr& y, const Expr& n) const {
        const AxisWindow& w = p_.y();
        return simplify(y * size(w.stride) + n * size(w.dilation) - size(w.pad_begin));
    }
    [[nodiscard]] Expr start_of_row(const RowStarts* starts, const Expr& z, const Expr& y,
                                    const Expr& n) const {
        const Expr start = starts != nullptr ? starts->of(simplify(n * size(p_.y().dilation)))
                                             : nest_.input().row_index(row_of_window(y, n));
        return start + z * nest_.input().pitch();
    }

    Stmt pooled(const Expr& y, const RowStarts* starts) const {
        return over_channels(range_[0], [&](const Expr& z, const Expr& x) { return pooled(z, y, x, starts); });
    }
    Stmt pooled(const Expr& z, const Expr& y, const Expr& x, const RowStarts* starts) const {
        const Accumulators result{unique_name(p_.name + ".pooled"), lanes_};
        const Stmt start = result.set(0, no_taps());
        const Stmt taps =
            GroupLowering::for_each(p_.name + ".n", {0, size(p_.y().kernel)}, [&](const Expr& n) {
                const Expr of_row = start_of_row(starts, z, y, n);
                const Stmt along = GroupLowering::for_each(
                    p_.name + ".m", {0, size(p_.x().kernel)}, [&](const Expr& m) {
                        return result.set(0, with_tap(result.get(0), tap(of_row, x, m)));
                    });
                return guarded(nest_.has_row(row_of_window(y, n)), along);
            });
        return result.around(
            1, ir::sequence({start, taps, store(z, y, x, pooled_value(result.get(0), y, x))}));
    }
    [[nodiscard]] bool is_max() const { return p_.operation == Operation::max_pool; }
    /// What windows without any element begin with.
    [[nodiscard]] Expr no_taps() const { return broadcast(is_max() ? lowest() : Expr(0.0F), lanes_); }
    [[nodiscard]] Expr with_tap(const Expr& taps, const Expr& value) const {
        // Sums are added in this order, also where the compiler unrolls the loops.
        return is_max() ? ir::largest({value, taps}) : Halide::strict_float(taps + value);
    }
    /// The maximum or mean, given the maximum or sum of the windows.
    [[nodiscard]] Expr pooled_value(const Expr& value, const Expr& y, const Expr& x) const {
        if (is_max()) return value;
        const auto axis = [&](Dim d) {
            return ir::AveragedAxis{nest_.extents.reaches_padding(nest_.nest, d), nest_.in(d)};
        };
        const Expr count = ir::averaged_elements(nest_.layer, p_, y, lanes_from(x, lanes_),
                                                 {axis(Dim::y), axis(Dim::x)});
        return value / Halide::cast(value.type(),
                                    count.type().is_scalar() ? broadcast(count, lanes_) : count);
    }

    /// Each column of the windows of some output vectors, then windows of these results.
    Stmt pooled_columns_first(const Expr& y, const RowStarts* starts) const {
        constexpr int64_t outputs_together = 64;
        const int64_t together = std::max<int64_t>(1, outputs_together / (lanes_ * p_.x().stride));
        return GroupLowering::for_each(p_.name + ".z", range_[0], [&](const Expr& z) {
            return in_blocks_of_row(together, [&](const Expr& x, int64_t vectors) {
                return pooled_columns_first(z, y, x, vectors, starts);
            });
        });
    }
    Stmt pooled_columns_first(const Expr& z, const Expr& y, const Expr& x, int64_t vectors,
                              const RowStarts* starts) const {
        const AxisWindow& w = p_.x();
        const std::string columns = unique_name(p_.name + ".columns");
        const int64_t reach = (w.kernel - 1) * w.dilation + 1;
        const int64_t span = (vectors * lanes_ - 1) * w.stride + reach;
        // Y has no columns behind its end, whose windows take time.
        Expr wanted = size(span);
        if (nest_.is_sink()) {
            const Expr outputs = Halide::min(range_[2].end - x, size(vectors * lanes_));
            wanted = (outputs - 1) * size(w.stride) + size(reach);
        }
        const int64_t columns_together = span < 4 * lanes_ ? 1 : 4;
        const Expr all_columns = (wanted + size(lanes_ - 1)) / size(lanes_);
        const Expr trips = simplify(all_columns / size(columns_together));
        const auto reduce = [&](const Expr& vector, int64_t count) {
            // The last vector ends with the last window.
            const Expr first = Halide::min(vector * size(lanes_), size(span - lanes_ * count));
            return let(p_.name + ".at", first, [&](const Expr& at) {
                return reduced_columns(columns, z, y, x, at, count, starts);
            });
        };
        const Stmt reduced = ir::sequence(
            {GroupLowering::for_each(p_.name + ".column", {0, trips},
                                     [&](const Expr& trip) {
                                         return reduce(trip * size(columns_together), columns_together);
                                     }),
             GroupLowering::for_each(p_.name + ".column",
                                     {simplify(trips * size(columns_together)), simplify(all_columns)},
                                     [&](const Expr& vector) { return reduce(vector, 1); })});
        const Accumulators result{unique_name(p_.name + ".pooled"), lanes_};
        std::vector<Stmt> nothing, stores;
        for (int64_t v = 0; v < vectors; ++v) {
            const Expr at = simplify(x + size(v * lanes_));
            nothing.push_back(result.set(v, no_taps()));
            stores.push_back(store(z, y, at, pooled_value(result.get(v), y, at)));
        }
        const Stmt taps = GroupLowering::for_each(p_.name + ".m", {0, size(w.kernel)}, [&](const Expr& m) {
            std::vector<Stmt> steps;
            for (int64_t v = 0; v < vectors; ++v) {
                const Expr first = m * size(w.dilation) + size(v * lanes_ * w.stride);
                steps.push_back(result.set(
                    v, with_tap(result.get(v), strided_load(columns, simplify(first), lanes_, w.stride))));
            }
            return ir::sequence(steps);
        });
        std::vector<Stmt> all{reduced};
        all.insert(all.end(), nothing.begin(), nothing.end());
        all.push_back(taps);
        all.insert(all.end(), stores.begin(), stores.end());
        // Wide loads of strided columns reach over the last window.
        const int64_t room = round_up(span + w.stride, lanes_);
        return Allocate::make(columns, Halide::Float(32), Halide::MemoryType::Stack, {size(room)},
                              const_true(), result.around(vectors, ir::sequence(all)));
    }
    /// Vectors of columns of the windows of output row y, `at` columns behind the first of the windows of x.
    Stmt reduced_columns(const std::string& columns, const Expr& z, const Expr& y, const Expr& x,
                         const Expr& at, int64_t vectors, const RowStarts* starts) const {
        const AxisWindow& w = p_.y();
        const RowRing& from = nest_.input();
        const Expr column = simplify(x * size(p_.x().stride) - size(p_.x().pad_begin) + at);
        const Accumulators result{unique_name(p_.name + ".reduced"), lanes_};
        const auto each = [&](const std::function<Stmt(int64_t vector, const Expr& first)>& make) {
            std::vector<Stmt> all;
            for (int64_t v = 0; v < vectors; ++v)
                all.push_back(make(v, simplify(column + size(v * lanes_))));
            return ir::sequence(all);
        };
        const Stmt none = each([&](int64_t v, const Expr&) { return result.set(v, no_taps()); });
        const Stmt rows =
            GroupLowering::for_each(p_.name + ".n", {0, size(w.kernel)}, [&](const Expr& n) {
                const Expr start = start_of_row(starts, z, y, n) - from.first_column;
                const Stmt row = each([&](int64_t v, const Expr& first) {
                    const Expr value = ir::load(from.name, lanes_from(simplify(start + first), lanes_),
                                                ir::Alignment::element);
                    return result.set(v, with_tap(result.get(v), value));
                });
                return guarded(nest_.has_row(row_of_window(y, n)), row);
            });
        const Stmt stores = each([&](int64_t v, const Expr& first) {
            Expr value = result.get(v);
            if (is_max() && nest_.extents.reaches_padding(nest_.nest, Dim::x)) {
                const Expr columns_of_input = lanes_from(first, lanes_);
                value = Halide::select(columns_of_input >= 0 && columns_of_input < nest_.in(Dim::x), value,
                                       broadcast(lowest(), lanes_));
            }
            return ir::store(columns, value, lanes_from(simplify(at + size(v * lanes_)), lanes_),
                             ir::Alignment::element);
        });
        return result.around(vectors, ir::sequence({none, rows, stores}));
    }

    [[nodiscard]] static Expr lowest() { return Expr(-std::numeric_limits<float>::infinity()); }

    /// Tap m of a row that begins at `start`; outside of the picture, what no maximum takes.
    [[nodiscard]] Expr tap(const Expr& start, const Expr& x, const Expr& m) const {
        const RowRing& from = nest_.input();
        const Expr column =
            simplify(x * size(p_.x().stride) + m * size(p_.x().dilation) - size(p_.x().pad_begin));
        const Expr value =
            strided_load(from.name, simplify(start + column - from.first_column), lanes_, p_.x().stride);
        if (p_.operation != Operation::max_pool ||
            !nest_.extents.reaches_padding(nest_.nest, Dim::x))
            return value;
        const Expr at = lanes_from(column, lanes_, p_.x().stride);
        return Halide::select(at >= 0 && at < nest_.in(Dim::x), value, broadcast(lowest(), lanes_));
    }

    const NestCode& nest_;
    const LayerProblem& p_;
    const Ranges& range_;
    int64_t lanes_;
    std::string slope_;  ///< name of the constants, none without PRelu
};

}  // namespace

Stmt vectors_code(const NestCode& nest, const Ranges& range) {
    return nest.p.operation == Operation::resample ? resampling_code(nest, range)
                                                   : Vectors(nest, range).code();
}

}  // namespace laminate
