#include "generators/kernels/optimised.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "base/error.h"
#include "generators/ir/activations.h"
#include "generators/ir/arrays.h"
#include "generators/ir/code_frame.h"
#include "generators/ir/constants.h"
#include "generators/kernels/columns.h"
#include "generators/kernels/register_tile.h"
#include "generators/kernels/whole_map.h"
#include "generators/kernels/winograd.h"
#include "generators/kernels/winograd_map.h"
#include "generators/lowering/buffer_shapes.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;
using ir::Accumulators;
using ir::broadcast;
using ir::guarded;
using ir::lanes_from;
using ir::size;
using ir::strided_load;

namespace {

int64_t round_up(int64_t n, int64_t step) { return ceil_div(n, step) * step; }

/// A ring of rows in the scratch block; see optimised.h.
struct RowRing {
    std::string name;
    int64_t rows = 1;
    int64_t channels = 1;
    int64_t pitch = 16;       ///< elements from one channel's row to the next channel's
    int64_t coordinates = 1;  ///< rows of the whole tensor
    int64_t offset_elements = 0;
    Expr first_column;  ///< coordinate of the column stored first

    [[nodiscard]] int64_t elements() const { return rows * channels * pitch; }
    [[nodiscard]] Expr slot(const Expr& row) const {
        return rows >= coordinates ? row : row % size(rows);
    }
    /// Of channel 0's element of that row and column.
    [[nodiscard]] Expr row_index(const Expr& row) const {
        return slot(row) * size(channels * pitch);
    }
    [[nodiscard]] Expr index(const Expr& channel, const Expr& row, const Expr& column) const {
        return row_index(row) + channel * size(pitch) + (column - first_column);
    }
};

using Ranges = std::array<Interval, 4>;  ///< by Dim

class Optimised final : public GroupLowering {
public:
    Optimised(const Network& network, const GroupSchedule& group, const VectorUnit& unit,
              const KernelOptions& kernels)
        : GroupLowering(network, group), unit_(unit), winograd_(problems_.size()) {
        const std::vector<BufferShape> shapes =
            buffer_shapes(group, problems_, StripRange::any).tensors;
        if (kernels.winograd && std::any_of(problems_.begin(), problems_.end(), suits_winograd)) {
            const auto steps = row_steps(group, problems_);
            for (int k = 0; k <= sink(); ++k) {
                if (k == sink() || strips_begin_anew())
                    winograd_[static_cast<size_t>(k)] =
                        winograd_tile(problem(k), steps[static_cast<size_t>(k)], unit);
            }
        }
        for (int k = 0; k <= sink(); ++k) {
            const Nest& last = nest(sink());
            const int64_t sink_rows =
                std::min(last[Dim::y], last.strip[0] == 0 ? last[Dim::y] : last.strip[0]);
            const int64_t sink_columns =
                std::min(last.strip[1] == 0 ? problem(k)[Dim::x] : last.strip[1], last[Dim::x]);
            // A call of a producer with retention computes about as many rows as its consumer's
            // rows need anew.
            int64_t rows = sink_rows;
            int64_t columns = sink_columns;
            if (k != sink()) {
                const BufferShape& shape = shapes[static_cast<size_t>(output_tensor(k))];
                rows = std::max<int64_t>(1, std::min(shape.extent[1], sink_rows));
                columns = std::max<int64_t>(1, shape.extent[2]);
            }
            tiles_.push_back(problem(k).has_weights()
                                 ? register_tile(problem(k), rows, columns, unit)
                                 : RegisterTile{});
        }
        int64_t offset = 0;
        for (int t = 0; t < std::ssize(tensors_); ++t) {
            const BufferShape& shape = shapes[static_cast<size_t>(t)];
            // A kernel's last vectors of a row run over its end: reading past what is needed,
            // writing past what is new.
            const auto run = [&](int k) {
                const RegisterTile& tile = tiles_[static_cast<size_t>(k)];
                return std::max(tile.axis == VectorAxis::x ? tile.x : 1, int64_t{1}) * unit.lanes;
            };
            int64_t overrun = tensor(t).is_external() ? 0 : run(tensor(t).producer);
            for (const TensorReader& reader : tensor(t).readers) {
                const AxisWindow& w = problem(reader.nest).x();
                overrun = std::max(overrun, run(reader.nest) * (w.transposed ? 1 : w.stride));
            }
            RowRing ring;
            ring.name =
                (tensor(t).is_external() ? input_name(t) : problem(tensor(t).producer).name) +
                ".rows";
            ring.rows = std::max<int64_t>(1, shape.extent[1]);
            ring.channels = channels(t);
            ring.coordinates = first_reader(t).y().in;
            ring.pitch = round_up(
                std::max<int64_t>(1, shape.unclipped_columns) + overrun + unit.lanes, unit.lanes);
            // Rows a multiple of 4 KiB apart fall into the same cache set.
            if (ring.pitch % 1024 < unit.lanes) ring.pitch += unit.lanes;
            ring.offset_elements = offset;
            // Bound where the buffer's lifetime begins (with_first_column).
            ring.first_column = Variable::make(Halide::Int(32), ring.name + ".first");
            offset += round_up(ring.elements(), 16);
            rings_.push_back(ring);
        }
        // Last: patches behind the end of a row may be read beyond it.
        transforms_offset_elements_ = offset;
        int64_t transforms = 0;
        for (size_t k = 0; k < problems_.size(); ++k) {
            if (winograd_[k])
                transforms = std::max(transforms,
                                      winograd_scratch_elements(problems_[k], *winograd_[k], unit));
        }
        scratch_bytes_ = (offset + transforms) * 4;
    }

    GroupCode code() {
        GroupCode code;
        Stmt body = lower();
        body = constants_.around(body);
        for (const RowRing& ring : rings_)
            body = ir::with_array(ring.name, argument::scratch, ring.offset_elements, body);
        body = ir::with_array(transforms_, argument::scratch, transforms_offset_elements_, body);
        for (int t = 0; t < std::ssize(tensors_) && tensor(t).is_external(); ++t) {
            body = ir::with_pointer(input_name(t), argument::inputs, t, body);
            code.arrays.push_back({input_name(t), ArrayRole::external_input, t});
            code.inputs.push_back(tensor(t).name);
        }
        body = ir::with_pointer("Y", argument::outputs, 0, body);
        code.body = simplify(body);
        code.constants = std::move(constants_).take();
        code.scratch_bytes = scratch_bytes_;
        code.strips = strip_count();
        code.arrays.push_back({"Y", ArrayRole::external_output, sink()});
        return code;
    }

protected:
    // Weights are read in place and sums are in registers: neither needs a loop level of its own.
    bool is_placed(Level level) const override {
        for (int k = 0; k <= sink(); ++k) {
            const Nest& n = nest(k);
            for (const InputPlacement& x : n.x) {
                if (x.placement.store == level || x.placement.compute == level) return true;
            }
            if (k != sink() && (n.y.store == level || n.y.compute == level)) return true;
        }
        // Strips are what threads divide, so their loop always exists.
        return level.nest == sink() && level.loop == 0 &&
               nest(sink()).loops.front().band == Band::strip;
    }

    Stmt allocate_input(int t, Stmt body) override { return with_first_column(t, body); }
    Stmt allocate_output(int k, Stmt body) override {
        return k == sink() ? body : with_first_column(output_tensor(k), body);
    }
    Stmt allocate_weights(int, Stmt body) override { return body; }
    Stmt copy_weights(int, const Interval&, const Interval&) override { return {}; }
    Stmt begin_output(const Box&) override { return {}; }
    Stmt end_output(const Box&) override { return {}; }
    Stmt begin_call(int k, const Box& box) override { return zero_columns(output_tensor(k), box); }
    Stmt end_call(int k, const Box& box) override {
        return zero_columns_after(output_tensor(k), box);
    }

    Stmt copy_input(int t, const Box& box) override {
        const LayerProblem& p = first_reader(t);
        const int64_t lanes = unit_.lanes;
        const std::string name = input_name(t);
        const Stmt rows = for_each(name + ".copy.y", box[1], [&](const Expr& y) {
            return for_each(name + ".copy.c", box[0], [&](const Expr& c) {
                const Expr from = (c * size(p.y().in) + y) * size(p.x().in) + box[2].begin;
                const Expr to = ring(t).index(c, y, box[2].begin);
                const Expr count = box[2].end - box[2].begin;
                const auto copy = [&](const Expr& at, int64_t n) {
                    return ir::store(
                        ring(t).name,
                        ir::load(name, lanes_from(from + at, n), ir::Alignment::element),
                        lanes_from(to + at, n), ir::Alignment::element);
                };
                const Stmt vectors =
                    for_each(name + ".copy.v", {0, count / size(lanes)},
                             [&](const Expr& v) { return copy(v * size(lanes), lanes); });
                const Stmt rest =
                    for_each(name + ".copy.x", {count / size(lanes) * size(lanes), count},
                             [&](const Expr& x) { return copy(x, 1); });
                return ir::sequence({vectors, rest});
            });
        });
        return ir::sequence({zero_columns(t, box), rows, zero_columns_after(t, box)});
    }

    Stmt innermost(int k, int first_loop) override {
        Ranges range;
        for (const Dim d : all_dims) range[static_cast<size_t>(d)] = covered(k, d, first_loop - 1);
        if (first_loop == 0 && nest(k).loops.front().band == Band::strip) {
            throw std::logic_error("a strip loop inside a kernel");
        }
        return problem(k).has_weights() ? kernel(k, range) : plain_kernel(k, range);
    }

private:
    /// Whether a strip computes the same rows wherever a thread begins. Where rows are kept from
    /// strip to strip, it depends on the thread which of them are paired.
    [[nodiscard]] bool strips_begin_anew() const {
        if (nest(sink()).loops.front().band != Band::strip) return true;
        for (int k = 0; k < sink(); ++k) {
            if (nest(k).y.store.is_root()) return false;
        }
        return true;
    }

    // ---- rows and padding

    Stmt with_first_column(int t, const Stmt& body) {
        const Expr first =
            simplify(needed(t, Dim::x, placement_of(group_, tensor(t)).store, false).begin);
        return LetStmt::make(ring(t).first_column.as<Variable>()->name, first, body);
    }
    [[nodiscard]] const RowRing& ring(int t) const { return rings_[static_cast<size_t>(t)]; }
    [[nodiscard]] const RowRing& input_ring(int k, int operand = 0) const {
        return ring(tensor_of(k, operand));
    }

    /// Zero columns left of the picture, in the new rows of a tensor.
    Stmt zero_columns(int t, const Box& box) {
        const RowRing& to = ring(t);
        const auto& readers = tensor(t).readers;
        const auto reads_left = [&](const TensorReader& r) {
            return problem(r.nest).x().pad_begin > 0 || problem(r.nest).x().transposed;
        };
        if (std::none_of(readers.begin(), readers.end(), reads_left)) return {};
        return for_each(to.name + ".left.y", box[1], [&](const Expr& y) {
            return for_each(to.name + ".left.c", box[0], [&](const Expr& channel) {
                return for_each(
                    to.name + ".left.x", {Halide::min(to.first_column, 0), 0}, [&](const Expr& x) {
                        return ir::store(to.name, make_zero(Halide::Float(32)),
                                         to.index(channel, y, x), ir::Alignment::element);
                    });
            });
        });
    }

    /// Zero columns right of the picture: after the kernel, whose last vectors ran over them.
    Stmt zero_columns_after(int t, const Box& box) {
        const RowRing& to = ring(t);
        const int64_t columns = first_reader(t).x().in;
        int64_t beyond = 0;
        for (const TensorReader& reader : tensor(t).readers) {
            const AxisWindow& w = problem(reader.nest).x();
            const int64_t outputs = winograd_[static_cast<size_t>(reader.nest)]
                                        ? round_up(w.out, WinogradTile::columns)
                                        : w.out;
            const int64_t last_read = w.transposed
                                          ? (w.out - 1 + w.pad_begin) / w.stride
                                          : (outputs - 1) * w.stride - w.pad_begin + w.span() - 1;
            beyond = std::max(beyond, last_read - columns + 1);
        }
        if (beyond <= 0) return {};
        const int64_t lanes = unit_.lanes;
        // Only the box that reaches the picture's edge; an inner one leaves the columns to its
        // right alone.
        const Stmt fill = for_each(to.name + ".right.y", box[1], [&](const Expr& y) {
            return for_each(to.name + ".right.c", box[0], [&](const Expr& channel) {
                return for_each(
                    to.name + ".right.v", {0, size(ceil_div(beyond, lanes))}, [&](const Expr& v) {
                        const Expr at = to.index(channel, y, size(columns) + v * size(lanes));
                        return ir::store(to.name,
                                         make_zero(Halide::Float(32, static_cast<int>(lanes))),
                                         lanes_from(at, lanes), ir::Alignment::element);
                    });
            });
        });
        const Expr at_edge = simplify(box[2].end >= size(columns));
        return is_const_one(at_edge) ? fill : IfThenElse::make(at_edge, fill);
    }

    // ---- constants

    std::string constant(const std::string& name, const std::vector<float>& values) {
        return constants_.append(name, values);
    }

    struct Parameters {
        std::string weights;
        std::string bias;
        std::string slope;
        int64_t block = 1;
    };

    Parameters parameters(int k, int64_t block) {
        const LayerProblem& p = problem(k);
        const std::string prefix = unique(p.name);
        Parameters names;
        names.block = block;
        names.weights =
            constant(prefix + ".packed", packed_weights(canonical_weights(layer(k), p), p, block));
        names.bias = constant(prefix + ".bias", padded(canonical_bias(layer(k), p), block));
        const std::vector<float> slope = canonical_slope(layer(k), p);
        if (!slope.empty()) names.slope = constant(prefix + ".slope", padded(slope, block));
        return names;
    }

    [[nodiscard]] Expr weight_index(const LayerProblem& p, const Parameters& names,
                                    const Expr& z_block, int64_t n, const Expr& i,
                                    const Expr& m) const {
        const Expr row = (z_block * size(p.y().kernel) + size(n)) * size(p[Dim::i]) + i;
        return (row * size(p.x().kernel) + m) * size(names.block);
    }

    // ---- kernels

    /// Where a kernel's results go.
    [[nodiscard]] Expr output_index(int k, const Expr& z, const Expr& y, const Expr& x) {
        if (k != sink()) return ring(output_tensor(k)).index(z, y, x);
        const LayerProblem& p = problem(k);
        return (z * size(p[Dim::y]) + y) * size(p[Dim::x]) + x;
    }
    [[nodiscard]] std::string output_array(int k) const {
        return k == sink() ? "Y" : ring(output_tensor(k)).name;
    }
    [[nodiscard]] int64_t output_plane(int k) const {
        return k == sink() ? problem(k)[Dim::y] * problem(k)[Dim::x] : ring(output_tensor(k)).pitch;
    }

    [[nodiscard]] static bool is_whole(const Interval& range, int64_t extent) {
        return is_const(range.begin, 0) && is_const(range.end, extent);
    }
    /// Binds an index expression so that it is computed once, outside the loops below.
    static Stmt let(const std::string& name, const Expr& value,
                    const std::function<Stmt(Expr)>& make) {
        const Expr simple = simplify(value);
        if (is_const(simple) || simple.as<Variable>()) return make(simple);
        const std::string id = unique(name);
        return LetStmt::make(id, simple, make(Variable::make(simple.type(), id)));
    }

    /// Where rows of the ring that a nest reads begin.
    using RowStarts = ir::Integers;
    /// For `count` rows from `first` on.
    Stmt with_row_starts(int k, const Expr& first, int64_t count,
                         const std::function<Stmt(const RowStarts&)>& make) const {
        RowStarts starts(problem(k).name + ".row_starts");
        for (int64_t n = 0; n < count; ++n) (void)starts(input_ring(k).row_index(first + size(n)));
        return starts.around(make(starts));
    }
    /// From the first to the last row that an output row reads.
    [[nodiscard]] static int64_t window_rows(const LayerProblem& p) { return p.y().span(); }
    [[nodiscard]] static Expr window_begin(const LayerProblem& p, const Expr& y) {
        return simplify(y * size(p.y().stride) - size(p.y().pad_begin));
    }
    /// The same of a row of a transposed convolution's input grid, which reads this row and earlier
    /// ones.
    [[nodiscard]] static int64_t phase_rows(const LayerProblem& p) {
        return (ceil_div(p.y().kernel, p.y().stride) - 1) * p.y().dilation + 1;
    }

    Stmt kernel(int k, const Ranges& range) {
        const LayerProblem& p = problem(k);
        if (winograd_[static_cast<size_t>(k)] && is_whole(range[0], p[Dim::z]) &&
            is_whole(range[2], p[Dim::x]) && is_whole(range[3], p[Dim::i]))
            return winograd_kernel(k, range);
        RegisterTile tile = tiles_[static_cast<size_t>(k)];
        // Channel tiles of a schedule need not fit the packed blocks.
        const bool whole_z = is_whole(range[0], p[Dim::z]);
        if (tile.axis == VectorAxis::z && whole_z) return channel_kernel(k, tile, range);
        if (tile.axis == VectorAxis::z) tile = {VectorAxis::x, 1, 1, 1};
        if (!whole_z) tile.z = 1;
        if (!is_whole(range[2], p[Dim::x])) tile.has_half = false;
        const Parameters names = parameters(k, tile.z);
        const Interval blocks{simplify(range[0].begin / size(tile.z)),
                              simplify((range[0].end + size(tile.z - 1)) / size(tile.z))};

        const auto rows = [&](const std::function<Stmt(Expr, int64_t, RowStarts)>& make) {
            const auto at_row = [&](const Expr& y, int64_t n) {
                return with_row_starts(k, window_begin(p, y),
                                       (n - 1) * p.y().stride + window_rows(p),
                                       [&](const RowStarts& starts) { return make(y, n, starts); });
            };
            if (p.y().transposed) {
                // Rows of the input's grid, each with its phases.
                const Interval q{
                    (range[1].begin + size(p.y().pad_begin)) / size(p.y().stride),
                    (range[1].end - 1 + size(p.y().pad_begin)) / size(p.y().stride) + 1};
                return for_each(p.name + ".q", q, [&](const Expr& row) {
                    return with_row_starts(
                        k, row - size(phase_rows(p) - 1), phase_rows(p),
                        [&](const RowStarts& starts) { return make(row, 1, starts); });
                });
            }
            const Expr count = range[1].end - range[1].begin;
            const Expr full = simplify(count / size(tile.y));
            std::vector<Stmt> parts;
            parts.push_back(for_each(p.name + ".y", {0, full}, [&](const Expr& y) {
                return at_row(simplify(range[1].begin + y * size(tile.y)), tile.y);
            }));
            const Expr done = simplify(full * size(tile.y));
            if (tile.y > 1 && !is_const_zero(simplify(count - done))) {
                parts.push_back(for_each(p.name + ".y", {done, count}, [&](const Expr& y) {
                    return at_row(simplify(range[1].begin + y), 1);
                }));
            }
            return ir::sequence(parts);
        };
        const auto columns = [&](const std::function<Stmt(Expr)>& make) {
            const int64_t step = tile.x * unit_.lanes;
            Interval part = range[2];
            if (p.x().transposed) {
                part = {(range[2].begin + size(p.x().pad_begin)) / size(p.x().stride),
                        (range[2].end - 1 + size(p.x().pad_begin)) / size(p.x().stride) + 1};
            }
            const Expr trips = simplify((part.end - part.begin + size(step - 1)) / size(step));
            return for_each(p.name + ".x", {0, trips}, [&](const Expr& x) {
                return make(simplify(part.begin + x * size(step)));
            });
        };
        const auto channels = [&](const std::function<Stmt(Expr)>& make) {
            return for_each(p.name + ".z", blocks, make);
        };
        const auto tile_at = [&](const Expr& z_block, const Expr& y, int64_t tile_rows,
                                 const RowStarts& starts, const Expr& x) {
            RegisterTile here = tile;
            here.y = tile_rows;
            return p.y().transposed ? phase_tile(k, here, names, range, starts, z_block, y, x)
                                    : column_tile(k, here, names, range, starts, z_block, y, x);
        };
        // Weights that do not fit the nearer caches are read once per call, rows of the input again
        // per block of channels.
        const bool weights_outside = p.weight_elements().value() * 4 > 256 * 1024;
        if (weights_outside) {
            return channels([&](const Expr& z) {
                return rows([&](const Expr& y, int64_t n, const RowStarts& starts) {
                    return columns([&](const Expr& x) { return tile_at(z, y, n, starts, x); });
                });
            });
        }
        return rows([&](const Expr& y, int64_t n, const RowStarts& starts) {
            return columns([&](const Expr& x) {
                return channels([&](const Expr& z) { return tile_at(z, y, n, starts, x); });
            });
        });
    }

    Stmt winograd_kernel(int k, const Ranges& range) {
        const LayerProblem& p = problem(k);
        const WinogradTile& tile = *winograd_[static_cast<size_t>(k)];
        const std::string prefix = unique(p.name);
        Parameters names;
        names.bias = constant(prefix + ".bias", padded(canonical_bias(layer(k), p), tile.channels));
        const std::vector<float> slope = canonical_slope(layer(k), p);
        if (!slope.empty()) names.slope = constant(prefix + ".slope", padded(slope, tile.channels));
        WinogradNames code;
        code.input = input_ring(k).name;
        code.output = output_array(k);
        const auto weights = [&](int64_t rows) {
            return constant(
                prefix + (rows == 1 ? ".transformed1" : ".transformed2"),
                winograd_weights(canonical_weights(layer(k), p), p, rows, tile.channels));
        };
        if (tile.has_singles) code.weights[0] = weights(1);
        if (tile.has_pairs) code.weights[1] = weights(2);
        code.scratch = transforms_;
        code.input_row = [&](const Expr& row) { return simplify(input_ring(k).index(0, row, 0)); };
        code.input_plane = input_ring(k).pitch;
        code.output_row = [&](const Expr& row) { return simplify(output_index(k, 0, row, 0)); };
        code.output_plane = output_plane(k);
        code.finished = [&](const Expr& channel, const Expr& sum) {
            return finished(k, range, names, channel,
                            sum + per_channel(names.bias, channel, sum.type().lanes()));
        };
        return winograd_rows(p, tile, unit_, code, range[1]);
    }

    /// First input channel that output channel z reads.
    [[nodiscard]] static Expr first_channel(const LayerProblem& p, const Expr& z) {
        if (p.groups == 1) return 0;
        return z / size(p[Dim::z] / p.groups) * size(p[Dim::i]);
    }

    [[nodiscard]] Expr starting_sum(int k, const Ranges& range, const Parameters& names,
                                    const Expr& z, const Expr& at, const Expr& predicate) const {
        const int64_t lanes = at.type().lanes();
        const Expr bias = broadcast(ir::load(names.bias, z), lanes);
        if (is_whole(range[3], problem(k)[Dim::i])) return bias;
        Expr before =
            Load::make(Halide::Float(32, static_cast<int>(lanes)), output_array(k), at,
                       Halide::Buffer<>(), Halide::Parameter(Halide::Float(32), true, 1, "partial"),
                       predicate.defined() ? predicate : const_true(static_cast<int>(lanes)),
                       ModulusRemainder());
        return Halide::select(range[3].begin > 0, before, bias);
    }

    /// Of one channel for all lanes, or of a vector of channels.
    [[nodiscard]] static Expr per_channel(const std::string& array, const Expr& channel,
                                          int64_t lanes) {
        const Expr value = ir::load(array, channel);
        return channel.type().is_scalar() ? broadcast(value, lanes) : value;
    }

    [[nodiscard]] Expr finished(int k, const Ranges& range, const Parameters& names, const Expr& z,
                                const Expr& sum) const {
        const int64_t lanes = sum.type().lanes();
        const Expr slope =
            names.slope.empty() ? broadcast(Expr(0.0F), lanes) : per_channel(names.slope, z, lanes);
        const Expr value = ir::activate(layer(k).activation, sum, slope);
        if (is_whole(range[3], problem(k)[Dim::i])) return value;
        return Halide::select(range[3].end >= size(problem(k)[Dim::i]), value, sum);
    }

    /// tile.z channels x tile.y rows x tile.x vectors of columns of a convolution.
    Stmt column_tile(int k, const RegisterTile& tile, const Parameters& names, const Ranges& range,
                     const RowStarts& starts, const Expr& z_block, const Expr& y, const Expr& x) {
        const LayerProblem& p = problem(k);
        const int64_t lanes = unit_.lanes;
        const int64_t last_block = p[Dim::z] / tile.z;
        // Each in an array of its own: LLVM keeps two halves of one array in one register and takes
        // them apart for every product.
        std::vector<Accumulators> sums;
        for (int64_t n = 0; n < tile.z * tile.y * tile.x; ++n)
            sums.push_back({unique(p.name + ".sum"), tile.lanes(n % tile.x, unit_)});
        const auto sum = [&](int64_t z, int64_t r, int64_t v) -> const Accumulators& {
            return sums[static_cast<size_t>((z * tile.y + r) * tile.x + v)];
        };
        const Expr z0 = simplify(z_block * size(tile.z));

        // Lanes behind the end of a row of Y must not be written, nor ones that hold partial sums
        // of the next tile.
        const Expr row_length = simplify(range[2].end - range[2].begin);
        const bool ragged =
            (k == sink() || !is_whole(range[3], p[Dim::i])) &&
            !(is_const(row_length) && *as_const_int(row_length) % (tile.x * lanes) == 0);
        const auto predicate = [&](int64_t v) -> Expr {
            if (!ragged) return {};
            const int64_t n = tile.lanes(v, unit_);
            return lanes_from(simplify(x + size(v * lanes)), n) < broadcast(range[2].end, n);
        };
        const auto at = [&](int64_t z, int64_t r, int64_t v) {
            return lanes_from(
                simplify(output_index(k, z0 + size(z), y + size(r), x + size(v * lanes))),
                tile.lanes(v, unit_));
        };

        std::vector<Stmt> parts;
        for (int64_t z = 0; z < tile.z; ++z) {
            for (int64_t r = 0; r < tile.y; ++r) {
                for (int64_t v = 0; v < tile.x; ++v) {
                    parts.push_back(sum(z, r, v).set(
                        0, starting_sum(k, range, names, z0 + size(z), at(z, r, v), predicate(v))));
                }
            }
        }
        // Input rows that any of the tile's rows reads, each with the (row, n) pairs it serves.
        const RowRing& from = input_ring(k);
        for (int64_t input = 0;
             input <= (tile.y - 1) * p.y().stride + (p.y().kernel - 1) * p.y().dilation; ++input) {
            std::vector<std::pair<int64_t, int64_t>> served;
            for (int64_t r = 0; r < tile.y; ++r) {
                const int64_t reach = input - r * p.y().stride;
                if (reach >= 0 && reach % p.y().dilation == 0 &&
                    reach / p.y().dilation < p.y().kernel)
                    served.emplace_back(r, reach / p.y().dilation);
            }
            if (served.empty()) continue;
            const Expr row = simplify(y * size(p.y().stride) + size(input - p.y().pad_begin));
            const Expr column = x * size(p.x().stride) - size(p.x().pad_begin) - from.first_column;
            const Stmt block = let(
                p.name + ".row",
                starts.of(input) + first_channel(p, z0) * size(from.pitch) + column,
                [&](const Expr& base) {
                    return for_each(p.name + ".i", range[3], [&](const Expr& i) {
                        std::vector<Stmt> steps;
                        for (int64_t m = 0; m < p.x().kernel; ++m) {
                            std::vector<Expr> loaded;
                            for (int64_t v = 0; v < tile.x; ++v) {
                                const Expr first =
                                    base + i * size(from.pitch) +
                                    size(m * p.x().dilation + v * lanes * p.x().stride);
                                loaded.push_back(strided_load(from.name, first,
                                                              tile.lanes(v, unit_), p.x().stride));
                            }
                            // Products of every loaded vector with every weight; the fewer ones are
                            // bound first.
                            std::vector<Expr> weights;
                            std::vector<std::pair<int64_t, int64_t>> outputs;  // z, row
                            for (const auto& [r, n] : served) {
                                for (int64_t z = 0; z < tile.z; ++z) {
                                    weights.push_back(broadcast(
                                        ir::load(names.weights,
                                                 weight_index(p, names, z_block, n, i, size(m)) +
                                                     size(z)),
                                        lanes));
                                    outputs.emplace_back(z, r);
                                }
                            }
                            const auto product = [&](int64_t v, size_t output, const Expr& value,
                                                     const Expr& weight) {
                                const Accumulators& s =
                                    sum(outputs[output].first, outputs[output].second, v);
                                const Expr factor =
                                    s.lanes == lanes ? weight
                                                     : Shuffle::make_slice(
                                                           weight, 0, 1, static_cast<int>(s.lanes));
                                return s.set(0, s.get(0) + value * factor);
                            };
                            const bool few_weights = weights.size() < loaded.size();
                            steps.push_back(ir::with_values(
                                p.name + ".in", few_weights ? weights : loaded,
                                [&](const std::vector<Expr>& bound) {
                                    std::vector<Stmt> products;
                                    for (size_t other = 0;
                                         other < (few_weights ? loaded : weights).size(); ++other) {
                                        products.push_back(ir::with_values(
                                            p.name + ".w",
                                            {(few_weights ? loaded : weights)[other]},
                                            [&](const std::vector<Expr>& one) {
                                                std::vector<Stmt> uses;
                                                for (size_t b = 0; b < bound.size(); ++b) {
                                                    uses.push_back(
                                                        few_weights
                                                            ? product(static_cast<int64_t>(other),
                                                                      b, one.front(), bound[b])
                                                            : product(static_cast<int64_t>(b),
                                                                      other, bound[b],
                                                                      one.front()));
                                                }
                                                return ir::sequence(uses);
                                            }));
                                    }
                                    return ir::sequence(products);
                                }));
                        }
                        return ir::sequence(steps);
                    });
                });
            parts.push_back(ir::reaches_padding(p.y())
                                ? guarded(row >= 0 && row < size(p.y().in), block)
                                : block);
        }
        for (int64_t z = 0; z < tile.z; ++z) {
            std::vector<Stmt> stores;
            for (int64_t r = 0; r < tile.y; ++r) {
                for (int64_t v = 0; v < tile.x; ++v) {
                    stores.push_back(
                        ir::store(output_array(k),
                                  finished(k, range, names, z0 + size(z), sum(z, r, v).get(0)),
                                  at(z, r, v), ir::Alignment::element, predicate(v)));
                }
            }
            // The last block of channels may be filled up with zero weights.
            const bool may_be_missing =
                p[Dim::z] % tile.z != 0 && z >= p[Dim::z] - last_block * tile.z;
            const Stmt all = ir::sequence(stores);
            parts.push_back(may_be_missing ? guarded(z0 + size(z) < size(p[Dim::z]), all) : all);
        }
        Stmt body = ir::sequence(parts);
        for (const Accumulators& one : sums) body = one.around(1, body);
        return body;
    }

    /// All phases of tile.z channels at tile.x vectors of input positions (qy, qx...) of a
    /// transposed convolution: output o = q * S + phase - pad reads inputs q - t with taps phase +
    /// t * S.
    Stmt phase_tile(int k, const RegisterTile& tile, const Parameters& names, const Ranges& range,
                    const RowStarts& starts, const Expr& z_block, const Expr& qy, const Expr& qx) {
        const LayerProblem& p = problem(k);
        const int64_t lanes = unit_.lanes;
        const AxisWindow& wy = p.y();
        const AxisWindow& wx = p.x();
        const Accumulators sums{unique(p.name + ".sum"), lanes};
        const auto sum = [&](int64_t z, int64_t py, int64_t px, int64_t v) {
            return ((z * wy.stride + py) * wx.stride + px) * tile.x + v;
        };
        const Expr z0 = simplify(z_block * size(tile.z));
        const int64_t count = tile.z * wy.stride * wx.stride * tile.x;
        const RowRing& from = input_ring(k);

        const auto output_row = [&](int64_t py) {
            return simplify(qy * size(wy.stride) + size(py - wy.pad_begin));
        };
        const auto output_column = [&](int64_t v) {
            return simplify((qx + size(v * lanes)) * size(wx.stride) - size(wx.pad_begin));
        };
        const auto column_predicate = [&](int64_t v) {
            const int64_t n = lanes * wx.stride;
            const Expr column = lanes_from(output_column(v), n);
            return column >= broadcast(range[2].begin, n) && column < broadcast(range[2].end, n);
        };

        std::vector<Stmt> parts;
        for (int64_t n = 0; n < count; ++n) {
            const int64_t z = n / (wy.stride * wx.stride * tile.x);
            parts.push_back(sums.set(n, broadcast(ir::load(names.bias, z0 + size(z)), lanes)));
        }
        for (int64_t ty = 0; ty * wy.stride < wy.kernel; ++ty) {
            const Expr row = simplify(qy - size(ty * wy.dilation));
            const Expr column = qx - from.first_column;
            const Stmt block = let(
                p.name + ".row",
                starts.of(phase_rows(p) - 1 - ty * wy.dilation) +
                    first_channel(p, z0) * size(from.pitch) + column,
                [&](const Expr& base) {
                    return for_each(p.name + ".i", range[3], [&](const Expr& i) {
                        std::vector<Stmt> steps;
                        for (int64_t tx = 0; tx * wx.stride < wx.kernel; ++tx) {
                            for (int64_t v = 0; v < tile.x; ++v) {
                                const Expr first = base + i * size(from.pitch) +
                                                   size(v * lanes - tx * wx.dilation);
                                const Expr value = ir::load(from.name, lanes_from(first, lanes),
                                                            ir::Alignment::element);
                                const std::string loaded = unique(p.name + ".in");
                                std::vector<Stmt> uses;
                                for (int64_t py = 0;
                                     py < wy.stride && py + ty * wy.stride < wy.kernel; ++py) {
                                    for (int64_t px = 0;
                                         px < wx.stride && px + tx * wx.stride < wx.kernel; ++px) {
                                        for (int64_t z = 0; z < tile.z; ++z) {
                                            const Expr weight = ir::load(
                                                names.weights,
                                                weight_index(p, names, z_block, py + ty * wy.stride,
                                                             i, size(px + tx * wx.stride)) +
                                                    size(z));
                                            const int64_t s = sum(z, py, px, v);
                                            uses.push_back(sums.set(
                                                s,
                                                sums.get(s) + Variable::make(value.type(), loaded) *
                                                                  broadcast(weight, lanes)));
                                        }
                                    }
                                }
                                steps.push_back(LetStmt::make(loaded, value, ir::sequence(uses)));
                            }
                        }
                        return ir::sequence(steps);
                    });
                });
            parts.push_back(guarded(row >= 0 && row < size(wy.in), block));
        }
        for (int64_t z = 0; z < tile.z; ++z) {
            for (int64_t py = 0; py < wy.stride; ++py) {
                std::vector<Stmt> stores;
                for (int64_t v = 0; v < tile.x; ++v) {
                    std::vector<Expr> phases;
                    for (int64_t px = 0; px < wx.stride; ++px)
                        phases.push_back(sums.get(sum(z, py, px, v)));
                    const Expr all =
                        wx.stride == 1 ? phases.front() : Shuffle::make_interleave(phases);
                    const Expr at = lanes_from(
                        simplify(output_index(k, z0 + size(z), output_row(py), output_column(v))),
                        lanes * wx.stride);
                    Expr value = finished(k, range, names, z0 + size(z), all);
                    if (!is_whole(range[3], p[Dim::i])) {
                        // Partial sums join what is there already; the bias came in with the first.
                        const Expr before =
                            Load::make(value.type(), output_array(k), at, Halide::Buffer<>(),
                                       Halide::Parameter(Halide::Float(32), true, 1, "partial"),
                                       column_predicate(v), ModulusRemainder());
                        const Expr bias =
                            broadcast(ir::load(names.bias, z0 + size(z)), value.type().lanes());
                        value = finished(k, range, names, z0 + size(z),
                                         all + Halide::select(range[3].begin > 0, before - bias,
                                                              make_zero(value.type())));
                    }
                    stores.push_back(ir::store(output_array(k), value, at, ir::Alignment::element,
                                               column_predicate(v)));
                }
                const Expr row = output_row(py);
                Expr wanted = row >= range[1].begin && row < range[1].end;
                if (p[Dim::z] % tile.z != 0) wanted = wanted && z0 + size(z) < size(p[Dim::z]);
                parts.push_back(guarded(wanted, ir::sequence(stores)));
            }
        }
        return sums.around(count, ir::sequence(parts));
    }

    /// Vectors along output channels: tile.z vectors x tile.x columns of one row. For small maps
    /// and dense layers.
    Stmt channel_kernel(int k, const RegisterTile& tile, const Ranges& range) {
        const LayerProblem& p = problem(k);
        const int64_t lanes = unit_.lanes;
        const int64_t block = tile.z * lanes;
        const Parameters names = parameters(k, block);
        const Interval blocks{0, size(ceil_div(p[Dim::z], block))};
        return for_each(p.name + ".z", blocks, [&](const Expr& z_block) {
            const auto row = [&](const Expr& y, const RowStarts& starts) {
                const Expr count = simplify(range[2].end - range[2].begin);
                const Expr full = simplify(count / size(tile.x));
                std::vector<Stmt> parts;
                parts.push_back(for_each(p.name + ".x", {0, full}, [&](const Expr& x) {
                    return channel_tile(k, tile.z, tile.x, names, range, starts, z_block, y,
                                        simplify(range[2].begin + x * size(tile.x)));
                }));
                const Expr done = simplify(full * size(tile.x));
                const Expr rest = simplify(count - done);
                if (is_const(rest) && !is_const_zero(rest)) {
                    parts.push_back(channel_tile(k, tile.z, *as_const_int(rest), names, range,
                                                 starts, z_block, y,
                                                 simplify(range[2].begin + done)));
                } else if (tile.x > 1 && !is_const_zero(rest)) {
                    parts.push_back(for_each(p.name + ".x", {done, count}, [&](const Expr& x) {
                        return channel_tile(k, tile.z, 1, names, range, starts, z_block, y,
                                            simplify(range[2].begin + x));
                    }));
                }
                return ir::sequence(parts);
            };
            return for_each(p.name + ".y", range[1], [&](const Expr& y) {
                return with_row_starts(k, window_begin(p, y), window_rows(p),
                                       [&](const RowStarts& starts) { return row(y, starts); });
            });
        });
    }

    Stmt channel_tile(int k, int64_t vectors, int64_t columns, const Parameters& names,
                      const Ranges& range, const RowStarts& starts, const Expr& z_block,
                      const Expr& y, const Expr& x) {
        const LayerProblem& p = problem(k);
        const int64_t lanes = unit_.lanes;
        const Accumulators sums{unique(p.name + ".sum"), lanes};
        const auto sum = [&](int64_t v, int64_t c) { return v * columns + c; };
        const Expr z0 = simplify(z_block * size(names.block));
        const RowRing& from = input_ring(k);
        const auto channel = [&](int64_t v) {
            return lanes_from(simplify(z0 + size(v * lanes)), lanes);
        };
        const auto at = [&](int64_t v, int64_t c) {
            return lanes_from(simplify(output_index(k, z0 + size(v * lanes), y, x + size(c))),
                              lanes, output_plane(k));
        };
        const auto predicate = [&](int64_t v) -> Expr {
            if (p[Dim::z] % names.block == 0) return {};
            return channel(v) < broadcast(size(p[Dim::z]), lanes);
        };
        std::vector<Stmt> parts;
        for (int64_t v = 0; v < vectors; ++v) {
            for (int64_t c = 0; c < columns; ++c) {
                Expr start = ir::load(names.bias, channel(v));
                if (!is_whole(range[3], p[Dim::i])) {
                    const Expr before = Load::make(
                        start.type(), output_array(k), at(v, c), Halide::Buffer<>(),
                        Halide::Parameter(Halide::Float(32), true, 1, "partial"),
                        predicate(v).defined() ? predicate(v) : const_true(static_cast<int>(lanes)),
                        ModulusRemainder());
                    start = Halide::select(range[3].begin > 0, before, start);
                }
                parts.push_back(sums.set(sum(v, c), start));
            }
        }
        for (int64_t n = 0; n < p.y().kernel; ++n) {
            const Expr row =
                simplify(y * size(p.y().stride) + size(n * p.y().dilation - p.y().pad_begin));
            const Expr column = x * size(p.x().stride) - size(p.x().pad_begin) - from.first_column;
            const Stmt block =
                let(p.name + ".row", starts.of(n * p.y().dilation) + column, [&](const Expr& base) {
                    return for_each(p.name + ".i", range[3], [&](const Expr& i) {
                        // A loop: taps share elements, and the compiler would keep more of them
                        // than there are registers.
                        return for_each(p.name + ".m", {0, size(p.x().kernel)}, [&](const Expr& m) {
                            std::vector<Expr> weights;
                            for (int64_t v = 0; v < vectors; ++v) {
                                weights.push_back(ir::load(
                                    names.weights,
                                    lanes_from(
                                        weight_index(p, names, z_block, n, i, m) + size(v * lanes),
                                        lanes)));
                            }
                            return ir::with_values(
                                p.name + ".w", weights, [&](const std::vector<Expr>& w) {
                                    std::vector<Stmt> products;
                                    for (int64_t c = 0; c < columns; ++c) {
                                        const Expr value =
                                            ir::load(from.name, base + i * size(from.pitch) +
                                                                    m * size(p.x().dilation) +
                                                                    size(c * p.x().stride));
                                        products.push_back(ir::with_values(
                                            p.name + ".in", {broadcast(value, lanes)},
                                            [&](const std::vector<Expr>& in) {
                                                std::vector<Stmt> uses;
                                                for (int64_t v = 0; v < vectors; ++v) {
                                                    uses.push_back(sums.set(
                                                        sum(v, c),
                                                        sums.get(sum(v, c)) +
                                                            in.front() *
                                                                w[static_cast<size_t>(v)]));
                                                }
                                                return ir::sequence(uses);
                                            }));
                                    }
                                    return ir::sequence(products);
                                });
                        });
                    });
                });
            parts.push_back(guarded(row >= 0 && row < size(p.y().in), block));
        }
        for (int64_t v = 0; v < vectors; ++v) {
            const Expr slope = names.slope.empty() ? broadcast(Expr(0.0F), lanes)
                                                   : ir::load(names.slope, channel(v));
            for (int64_t c = 0; c < columns; ++c) {
                Expr value = ir::activate(layer(k).activation, sums.get(sum(v, c)), slope);
                if (!is_whole(range[3], p[Dim::i]))
                    value =
                        Halide::select(range[3].end >= size(p[Dim::i]), value, sums.get(sum(v, c)));
                parts.push_back(ir::store(output_array(k), value, at(v, c), ir::Alignment::element,
                                          predicate(v)));
            }
        }
        return sums.around(vectors * columns, ir::sequence(parts));
    }

    // ---- layers without weights

    /// One vector of columns of one row and channel at a time.
    Stmt plain_kernel(int k, const Ranges& range) {
        const LayerProblem& p = problem(k);
        const std::vector<float> slopes = canonical_slope(layer(k), p);
        const std::string slope = slopes.empty() ? "" : constant(unique(p.name) + ".slope", slopes);
        const auto columns = [&](const std::function<Stmt(Expr)>& make) {
            const Expr trips = simplify((range[2].end - range[2].begin + size(unit_.lanes - 1)) /
                                        size(unit_.lanes));
            return for_each(p.name + ".x", {0, trips}, [&](const Expr& x) {
                return make(simplify(range[2].begin + x * size(unit_.lanes)));
            });
        };
        if (p.operation == Operation::max_pool || p.operation == Operation::average_pool) {
            return for_each(p.name + ".y", range[1], [&](const Expr& y) {
                return for_each(p.name + ".z", range[0], [&](const Expr& z) {
                    return columns([&](const Expr& x) { return pooled(k, range, slope, z, y, x); });
                });
            });
        }
        std::vector<Stmt> operands;
        const bool is_concat = p.operation == Operation::concat;
        for (size_t e = 0; e < (is_concat ? p.inputs.size() : 1); ++e) {
            const int64_t first = p.inputs[e].first_output_channel;
            const Interval channels =
                !is_concat
                    ? range[0]
                    : Interval{
                          simplify(Halide::max(range[0].begin, size(first))),
                          simplify(Halide::min(range[0].end, size(first + p.inputs[e].channels)))};
            operands.push_back(for_each(p.name + ".y", range[1], [&](const Expr& y) {
                return for_each(p.name + ".z", channels, [&](const Expr& z) {
                    return columns([&](const Expr& x) {
                        Expr value = element_of(k, static_cast<int>(e), z - size(first), y, x);
                        if (p.operation == Operation::add) {
                            for (size_t other = 1; other < p.inputs.size(); ++other)
                                value = value + element_of(k, static_cast<int>(other), z, y, x);
                        }
                        return store_columns(k, range, slope, z, y, x, value);
                    });
                });
            }));
        }
        return ir::sequence(operands);
    }

    [[nodiscard]] Expr element_of(int k, int operand, const Expr& channel, const Expr& y,
                                  const Expr& x) const {
        const RowRing& from = input_ring(k, operand);
        return ir::load(from.name, lanes_from(simplify(from.index(channel, y, x)), unit_.lanes),
                        ir::Alignment::element);
    }

    Stmt store_columns(int k, const Ranges& range, const std::string& slope, const Expr& z,
                       const Expr& y, const Expr& x, const Expr& value) {
        const int64_t lanes = unit_.lanes;
        const Expr slopes =
            slope.empty() ? broadcast(Expr(0.0F), lanes) : broadcast(ir::load(slope, z), lanes);
        // Lanes behind the end of a row of Y must not be written; rings have room for them.
        Expr predicate;
        if (k == sink()) predicate = lanes_from(x, lanes) < broadcast(range[2].end, lanes);
        return ir::store(output_array(k), ir::activate(layer(k).activation, value, slopes),
                         lanes_from(simplify(output_index(k, z, y, x)), lanes),
                         ir::Alignment::element, predicate);
    }

    Stmt pooled(int k, const Ranges& range, const std::string& slope, const Expr& z, const Expr& y,
                const Expr& x) {
        const LayerProblem& p = problem(k);
        const int64_t lanes = unit_.lanes;
        const bool is_max = p.operation == Operation::max_pool;
        const RowRing& from = input_ring(k);
        const Accumulators result{unique(p.name + ".pooled"), lanes};
        const auto scalar = [&](float v) { return broadcast(Expr(v), lanes); };
        const Stmt start =
            result.set(0, scalar(is_max ? -std::numeric_limits<float>::infinity() : 0.0F));
        const Stmt taps = for_each(p.name + ".n", {0, size(p.y().kernel)}, [&](const Expr& n) {
            const Expr row =
                simplify(y * size(p.y().stride) + n * size(p.y().dilation) - size(p.y().pad_begin));
            const Stmt along = for_each(p.name + ".m", {0, size(p.x().kernel)}, [&](const Expr& m) {
                const Expr column = simplify(x * size(p.x().stride) + m * size(p.x().dilation) -
                                             size(p.x().pad_begin));
                Expr value = strided_load(from.name, simplify(from.index(z, row, column)), lanes,
                                          p.x().stride);
                if (is_max && ir::reaches_padding(p.x())) {
                    const Expr at = lanes_from(column, lanes, p.x().stride);
                    value = Halide::select(at >= 0 && at < size(p.x().in), value,
                                           scalar(-std::numeric_limits<float>::infinity()));
                }
                // In this order, also where the compiler unrolls the loops.
                return result.set(0, is_max ? Halide::max(result.get(0), value)
                                            : Halide::strict_float(result.get(0) + value));
            });
            return ir::reaches_padding(p.y()) ? guarded(row >= 0 && row < size(p.y().in), along)
                                              : along;
        });
        Expr value = result.get(0);
        if (!is_max) {
            const Expr count = ir::averaged_elements(layer(k), p, y, lanes_from(x, lanes));
            value =
                value / Halide::cast(value.type(),
                                     count.type().is_scalar() ? broadcast(count, lanes) : count);
        }
        return result.around(
            1, ir::sequence({start, taps, store_columns(k, range, slope, z, y, x, value)}));
    }

    VectorUnit unit_;
    std::vector<RegisterTile> tiles_;
    std::vector<RowRing> rings_;  ///< by tensor
    NamedConstants constants_;
    std::vector<std::optional<WinogradTile>> winograd_;  ///< by nest; none: directly
    std::string transforms_ = unique("transforms");
    int64_t transforms_offset_elements_ = 0;
    int64_t scratch_bytes_ = 0;
};

}  // namespace

VectorUnit vector_unit(const Halide::Target& target) {
    const auto lanes = static_cast<int64_t>(target.natural_vector_size<float>());
    // 32 registers with AVX-512 and NEON, 16 otherwise; a quarter stays free for loaded values.
    const bool many = lanes >= 16 || target.arch == Halide::Target::ARM;
    return {lanes, many ? 24 : 12};
}

namespace {

/// Code counts the elements of an image's tensors, and of scratch, in 32 bits.
void require_addressable(const std::string& what, int64_t elements) {
    if (elements <= std::numeric_limits<int32_t>::max()) return;
    throw InfeasibleError(what + ": " + std::to_string(elements) +
                          " elements, expected at most 2147483647 (fewer layers by themselves, or "
                          "the picture in windows: run --stream)");
}

void require_addressable(const Network& network, const GroupSchedule& group) {
    const auto check = [&](TensorId id) {
        const Tensor& tensor = network.tensor(id);
        require_addressable("tensor " + tensor.name, element_count(tensor.dims) / tensor.dims[0]);
    };
    for (const GroupTensor& tensor : group_tensors(group_problems(network, group))) {
        if (tensor.is_external()) check(tensor.tensor);
    }
    check(network.layer(network.find_layer(group.nests.back().layer)).output);
}

}  // namespace

GroupCode optimised_code(const Network& network, const GroupSchedule& group, const VectorUnit& unit,
                         const KernelOptions& kernels) {
    require_addressable(network, group);
    if (std::optional<GroupCode> code = winograd_map_code(network, group, unit, kernels))
        return *std::move(code);
    if (std::optional<GroupCode> code = whole_map_code(network, group, unit, kernels))
        return *std::move(code);
    const auto fits = [&](const GroupCode& code) {
        return !kernels.scratch || code.scratch_bytes <= kernels.scratch->value();
    };
    if (kernels.winograd) {
        std::optional<GroupCode> tiled = column_tiles_code(network, group, unit);
        if (tiled && fits(*tiled)) return *std::move(tiled);
    }
    GroupCode code = Optimised(network, group, unit, kernels).code();
    if (kernels.winograd && !fits(code))
        code = Optimised(network, group, unit, {.winograd = false}).code();
    require_addressable("scratch of the group of " + group.nests.back().layer,
                        code.scratch_bytes / bytes_per_element);
    return code;
}

}  // namespace laminate
