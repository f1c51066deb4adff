#include "generators/instrumented.h"

#include <limits>

#include "generators/ir/activations.h"
#include "generators/ir/arrays.h"
#include "generators/ir/constants.h"
#include "generators/ir/normalisation.h"
#include "generators/ir/sampled_tables.h"
#include "generators/lowering/group_lowering.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/buffer_shapes.h"

namespace laminate {

using namespace Halide::Internal;
using ir::size;

namespace {

/// Where an element lives in a buffer of three dimensions that may rotate in each of them.
class RotatingBuffer {
public:
    RotatingBuffer() = default;
    RotatingBuffer(std::string name, const BufferShape& shape,
                   const std::array<int64_t, 3>& coordinates)
        : name_(std::move(name)), shape_(shape), coordinates_(coordinates) {}

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] Expr index(const Expr& a, const Expr& b, const Expr& c) const {
        return (slot(a, 0) * extent(1) + slot(b, 1)) * extent(2) + slot(c, 2);
    }
    [[nodiscard]] Stmt allocate(const Stmt& body) const {
        std::vector<Expr> extents;
        for (size_t d = 0; d < 3; ++d) extents.push_back(extent(d));
        return Allocate::make(name_, Halide::Float(32), Halide::MemoryType::Heap, extents,
                              const_true(), body);
    }

private:
    [[nodiscard]] Expr extent(size_t d) const { return static_cast<int32_t>(shape_.extent[d]); }
    [[nodiscard]] Expr slot(const Expr& coordinate, size_t d) const {
        if (shape_.extent[d] >= coordinates_[d])
            return coordinate;  // holds every coordinate there is
        // A buffer that is never filled has no slots; its loops never run.
        return coordinate % static_cast<int32_t>(std::max<int64_t>(shape_.extent[d], 1));
    }

    std::string name_;
    BufferShape shape_;
    std::array<int64_t, 3> coordinates_{};
};

/// What the code of a Pad or Resize looks up, by name; nothing of other layers.
std::vector<std::pair<std::string, std::vector<float>>> sampled_constants(const Layer& layer,
                                                                          const LayerProblem& p) {
    std::vector<std::pair<std::string, std::vector<float>>> constants;
    if (p.operation != Operation::resample) return constants;
    for (const size_t axis : {size_t{0}, size_t{1}}) {
        const SampledTables tables = sampled_tables(layer, p, axis);
        constants.emplace_back(p.name + ".sources" + "yx"[axis], tables.sources);
        constants.emplace_back(p.name + ".factors" + "yx"[axis], tables.factors);
    }
    return constants;
}

/// An output of a Pad or Resize, as the reference operators sum it: rows outside, columns inside.
/// `load`: of a row and column of the input.
Expr sampled_sum(const Layer& layer, const LayerProblem& p, const std::array<Expr, 2>& output,
                 const std::function<Expr(Expr, Expr)>& load) {
    const std::array<SampledTables, 2> tables{sampled_tables(layer, p, 0),
                                              sampled_tables(layer, p, 1)};
    const auto looked_up = [&](size_t axis, const char* table, int64_t tap) {
        const auto first = static_cast<int32_t>(tap * tables[axis].outputs);
        return ir::load(p.name + table + "yx"[axis], output[axis] + first);
    };
    const auto source = [&](size_t axis, int64_t tap) {
        return Halide::cast<int32_t>(looked_up(axis, ".sources", tap));
    };
    const auto weighted = [&](size_t axis, int64_t tap, const Expr& value) {
        return tables[axis].factors.empty() ? value : value * looked_up(axis, ".factors", tap);
    };
    Expr total = 0.0F, is_inside = const_true();
    for (int64_t n = 0; n < tables[0].taps; ++n) {
        Expr along = 0.0F;
        for (int64_t m = 0; m < tables[1].taps; ++m)
            along = along + weighted(1, m, load(source(0, n), source(1, m)));
        total = total + weighted(0, n, along);
    }
    for (const size_t axis : {size_t{0}, size_t{1}}) {
        const Range& inside = tables[axis].inside;
        is_inside = is_inside && output[axis] >= static_cast<int32_t>(inside.begin) &&
                    output[axis] < static_cast<int32_t>(inside.end);
    }
    return ir::choose(simplify(is_inside), total, Expr(layer.general.alpha));
}

/// The element that a rearrangement copies, and the iteration of i that copies it: all others do
/// nothing.
struct Rearranged {
    Expr iteration, channel, row, column;
};
Rearranged rearranged_from(const LayerProblem& p, const std::array<Expr, 4>& point) {
    const auto& [z, y, x, i] = point;
    const Expr rows = size(p.y().stride), columns = size(p.x().stride);
    if (p.makes_blocks()) {
        const Expr place = place_before_shuffle(z, size(p[Dim::z]), size(p.shuffle));
        const Expr channel = place / (rows * columns);
        return {p[Dim::i] == 1 ? Expr(0) : channel, channel, y * rows + place / columns % rows,
                x * columns + place % columns};
    }
    const Expr outputs = size(p.group_outputs());
    const Expr wanted =
        p[Dim::i] == 1 ? Expr(0) : (y % rows * columns + x % columns) * outputs + z % outputs;
    return {wanted, z / outputs * size(p[Dim::i]) + i, y / rows, x / columns};
}

class Instrumented final : public GroupLowering {
public:
    Instrumented(const Network& network, const GroupSchedule& group)
        : GroupLowering(network, group) {
        const BufferShapes shapes = buffer_shapes(group, problems_);
        for (int t = 0; t < std::ssize(tensors_); ++t) {
            const std::string name =
                tensor(t).is_external() ? input_name(t) : problem(tensor(t).producer).name;
            tensor_buffers_.emplace_back(name + ".buffer", shapes.tensors[static_cast<size_t>(t)],
                                         tensor_extents(t));
        }
        const LayerProblem& last = problem(sink());
        output_ = RotatingBuffer(last.name + ".buffer", shapes.output,
                                 {last[Dim::z], last[Dim::y], last[Dim::x]});
        for (int k = 0; k <= sink(); ++k) {
            const LayerProblem& p = problem(k);
            weights_.emplace_back(
                p.name + ".W.buffer", shapes.weights[static_cast<size_t>(k)],
                std::array<int64_t, 3>{p[Dim::z], p[Dim::i], p.y().kernel * p.x().kernel});
        }
    }

    GroupCode code() {
        GroupCode code;
        Stmt body = lower();
        ConstantBlock constants;
        for (int k = 0; k <= sink(); ++k) {
            const auto bind_constants = [&](const std::string& name,
                                            const std::vector<float>& values) {
                if (!values.empty()) {
                    body =
                        ir::with_array(name, argument::constants, constants.append(values), body);
                }
            };
            if (problem(k).has_weights()) {
                bind_constants(problem(k).name + ".W", canonical_weights(layer(k), problem(k)));
                bind_constants(problem(k).name + ".bias", canonical_bias(layer(k), problem(k)));
                code.arrays.push_back({problem(k).name + ".W", ArrayRole::external_weights, k});
                code.arrays.push_back(
                    {problem(k).name + ".W.buffer", ArrayRole::weights_buffer, k});
            }
            bind_constants(problem(k).name + ".slope", canonical_slope(layer(k), problem(k)));
            for (const auto& [name, values] : sampled_constants(layer(k), problem(k)))
                bind_constants(name, values);
            code.arrays.push_back({problem(k).name + ".buffer", ArrayRole::output_buffer, k});
        }
        for (int t = 0; t < std::ssize(tensors_); ++t) {
            if (!tensor(t).is_external()) break;
            code.arrays.push_back({input_name(t), ArrayRole::external_input, t});
            code.arrays.push_back({input_name(t) + ".buffer", ArrayRole::input_buffer, t});
            code.inputs.push_back(tensor(t).name);
            body = ir::with_pointer(input_name(t), argument::inputs, t, body);
        }
        code.arrays.push_back({"Y", ArrayRole::external_output, sink()});
        body = ir::with_pointer("Y", argument::outputs, 0, body);
        code.body = simplify(body);
        code.constants = std::move(constants).take();
        code.strips = strip_count();
        return code;
    }

protected:
    Stmt allocate_input(int t, Stmt body) override {
        return tensor_buffers_[static_cast<size_t>(t)].allocate(body);
    }
    Stmt allocate_weights(int k, Stmt body) override {
        return weights_[static_cast<size_t>(k)].allocate(body);
    }
    Stmt allocate_output(int k, Stmt body) override { return output_buffer(k).allocate(body); }

    Stmt copy_input(int t, const Box& box) override {
        const RotatingBuffer& buffer = tensor_buffers_[static_cast<size_t>(t)];
        const auto [channels, rows, columns] = tensor_extents(t);
        return over(box, input_name(t) + ".copy", [&](const Expr& c, const Expr& y, const Expr& x) {
            const Expr from = (c * size(rows) + y) * size(columns) + x;
            return ir::store(buffer.name(), ir::load(input_name(t), from, ir::Alignment::element),
                             buffer.index(c, y, x));
        });
    }

    Stmt copy_weights(int k, const Interval& z_range, const Interval& i_range) override {
        const LayerProblem& p = problem(k);
        const RotatingBuffer& buffer = weights_[static_cast<size_t>(k)];
        const int64_t area = p.y().kernel * p.x().kernel;
        const Box box{z_range, i_range, Interval{0, size(area)}};
        return over(box, p.name + ".W.copy", [&](const Expr& z, const Expr& i, const Expr& tap) {
            return ir::store(buffer.name(),
                             ir::load(p.name + ".W", (z * size(p[Dim::i]) + i) * size(area) + tap),
                             buffer.index(z, i, tap));
        });
    }

    Stmt begin_call(int k, const Box& box) override {
        if (!accumulates(k)) return {};
        const RotatingBuffer& buffer = output_buffer(k);
        return over(box, problem(k).name + ".init",
                    [&](const Expr& z, const Expr& y, const Expr& x) {
                        return ir::store(buffer.name(), start(k, z), buffer.index(z, y, x));
                    });
    }

    Stmt end_call(int k, const Box& box) override {
        const bool is_finished = problem(k).operation != Operation::average_pool &&
                                 layer(k).activation.kind == ActivationKind::none;
        if (is_finished) return {};
        const RotatingBuffer& buffer = output_buffer(k);
        return over(box, problem(k).name + ".finish",
                    [&](const Expr& z, const Expr& y, const Expr& x) {
                        const Expr at = buffer.index(z, y, x);
                        return ir::store(buffer.name(),
                                         finished(k, ir::load(buffer.name(), at), z, y, x), at);
                    });
    }

    Stmt begin_output(const Box& box) override {
        const int k = sink();
        if (!accumulates(k)) return {};
        const Interval i = output_reduction();
        return over(
            box, problem(k).name + ".init", [&](const Expr& z, const Expr& y, const Expr& x) {
                // What an earlier visit left in external memory comes back; the bias starts the
                // sum.
                const Expr first = simplify(i.begin <= 0);
                const Expr value =
                    is_const_one(first)
                        ? start(k, z)
                        : ir::choose(simplify(!first),
                                     ir::load("Y", output_index(z, y, x), ir::Alignment::element),
                                     start(k, z));
                return ir::store(output_.name(), value, output_.index(z, y, x));
            });
    }

    Stmt end_output(const Box& box) override {
        const int k = sink();
        const Interval i = output_reduction();
        return over(box, problem(k).name + ".write",
                    [&](const Expr& z, const Expr& y, const Expr& x) {
                        const Expr sum = ir::load(output_.name(), output_.index(z, y, x));
                        const Expr value = ir::choose(simplify(i.end >= size(problem(k)[Dim::i])),
                                                      finished(k, sum, z, y, x), sum);
                        return ir::store("Y", value, output_index(z, y, x), ir::Alignment::element);
                    });
    }

    Stmt innermost(int k, int first_loop) override {
        std::array<Interval, 4> range;
        for (const Dim d : all_dims) range[static_cast<size_t>(d)] = covered(k, d, first_loop - 1);
        std::array<Expr, 4> point;
        return nested(k, first_loop, range, point);
    }

private:
    static Expr size(int64_t extent) { return static_cast<int32_t>(extent); }

    [[nodiscard]] const RotatingBuffer& output_buffer(int k) const {
        return k == sink() ? output_ : tensor_buffers_[static_cast<size_t>(output_tensor(k))];
    }

    static Stmt over(const Box& box, const std::string& name,
                     const std::function<Stmt(Expr, Expr, Expr)>& make) {
        return for_each(name + ".a", box[0], [&](const Expr& a) {
            return for_each(name + ".b", box[1], [&](const Expr& b) {
                return for_each(name + ".c", box[2], [&](const Expr& c) { return make(a, b, c); });
            });
        });
    }

    /// The input channels that one body of the output's level accumulates.
    [[nodiscard]] Interval output_reduction() const {
        const Level level = nest(sink()).y.store;
        return covered(sink(), Dim::i, level.is_root() ? -1 : level.loop);
    }

    [[nodiscard]] Expr output_index(const Expr& z, const Expr& y, const Expr& x) const {
        const LayerProblem& p = problem(sink());
        return (z * size(p[Dim::y]) + y) * size(p[Dim::x]) + x;
    }

    /// Whether an output element is built up from a starting value; otherwise it is stored once.
    [[nodiscard]] bool accumulates(int k) const {
        const Operation operation = problem(k).operation;
        return problem(k).has_weights() || is_extreme_of_channels(operation) ||
               operation == Operation::max_pool || operation == Operation::average_pool;
    }
    [[nodiscard]] Expr start(int k, const Expr& z) const {
        if (problem(k).has_weights()) return ir::load(problem(k).name + ".bias", z);
        if (problem(k).operation == Operation::average_pool) return 0.0F;
        constexpr float infinity = std::numeric_limits<float>::infinity();
        return problem(k).operation == Operation::smallest_channel ? infinity : -infinity;
    }

    /// The output element whose parts are all in.
    [[nodiscard]] Expr finished(int k, Expr value, const Expr& z, const Expr& y,
                                const Expr& x) const {
        if (problem(k).operation == Operation::average_pool)
            value = value / Halide::cast<float>(ir::averaged_elements(layer(k), problem(k), y, x));
        const Activation& activation = layer(k).activation;
        const Expr slope = activation.kind == ActivationKind::prelu
                               ? ir::load(problem(k).name + ".slope", z)
                               : Expr(0.0F);
        return ir::activate(activation, value, slope);
    }

    /// The loops from `l` on, in the schedule's order. Adjacent bands of one dimension with nothing
    /// between need no loop each: an outer loop runs over tiles, its inner loop over the tile.
    Stmt nested(int k, int l, const std::array<Interval, 4>& range, std::array<Expr, 4>& point) {
        const Nest& n = nest(k);
        if (l == static_cast<int>(n.loops.size())) {
            for (size_t d = 0; d < 4; ++d) {
                if (!point[d].defined()) point[d] = range[d].begin;
            }
            return taps(k, point);
        }
        const Loop loop = n.loops[static_cast<size_t>(l)];
        const auto d = static_cast<size_t>(loop.dim);
        if (loop.band == Band::inner) {
            return for_each(n.layer + "." + to_text(loop), range[d], [&](const Expr& at) {
                std::array<Expr, 4> inside = point;
                inside[d] = at;
                return nested(k, l + 1, range, inside);
            });
        }
        const Expr step = size(n.step(loop));
        const bool is_strip_range = l == 0 && loop.band == Band::strip;
        const Expr trips = simplify((range[d].end - range[d].begin + step - 1) / step);
        const Interval all{
            is_strip_range ? Variable::make(Halide::Int(32), argument::strip_begin) : Expr(0),
            is_strip_range ? Variable::make(Halide::Int(32), argument::strip_end) : trips};
        return for_each(n.layer + "." + to_text(loop), all, [&](const Expr& trip) {
            std::array<Interval, 4> inside = range;
            const Expr begin = simplify(range[d].begin + trip * step);
            inside[d] = {begin, simplify(Halide::min(begin + step, range[d].end))};
            return nested(k, l + 1, inside, point);
        });
    }

    /// What one iteration of all loops does: the kernel loops around one multiply-accumulate, or
    /// the layer's own operation.
    Stmt taps(int k, const std::array<Expr, 4>& point) {
        const LayerProblem& p = problem(k);
        const Expr& z = point[0];
        const RotatingBuffer& to = output_buffer(k);
        const Expr at = to.index(z, point[1], point[2]);
        const auto operand = [&](int e, const Expr& channel) {
            const RotatingBuffer& from = tensor_buffers_[static_cast<size_t>(tensor_of(k, e))];
            const LayerInput& input = p.inputs[static_cast<size_t>(e)];
            const Expr of = input.is_plane ? Expr(0) : channel;
            if (input.is_pixel) return ir::load(from.name(), from.index(of, 0, 0));
            return ir::load(from.name(), from.index(of, point[1] - size(p.y().pad_begin),
                                                    point[2] - size(p.x().pad_begin)));
        };
        switch (p.operation) {
            case Operation::multiply_accumulate:
                return multiply_accumulate(k, point);
            case Operation::max_pool:
            case Operation::average_pool: {
                const RotatingBuffer& from = tensor_buffers_[static_cast<size_t>(tensor_of(k, 0))];
                return tap_loop(
                    p, 0, point[1], [&](const Expr&, const Expr& y, const Expr& y_inside) {
                        return tap_loop(
                            p, 1, point[2], [&](const Expr&, const Expr& x, const Expr& x_inside) {
                                const Expr before = ir::load(to.name(), at);
                                const Expr value = ir::load(from.name(), from.index(z, y, x));
                                const Expr after = p.operation == Operation::max_pool
                                                       ? ir::largest({value, before})
                                                       : before + value;
                                return ir::store(
                                    to.name(),
                                    ir::choose(simplify(y_inside && x_inside), after, before), at);
                            });
                    });
            }
            case Operation::add:
            case Operation::subtract:
            case Operation::multiply:
            case Operation::divide:
            case Operation::minimum:
            case Operation::maximum:
            case Operation::power:
            case Operation::prelu:
            case Operation::pointwise: {
                Expr value = operand(0, z);
                for (int e = 1; e < std::ssize(p.inputs); ++e)
                    value = ir::combined(p.operation, value, operand(e, z));
                return ir::store(to.name(), value, at);
            }
            case Operation::concat: {
                Expr value = operand(0, z - size(p.inputs.front().first_output_channel));
                for (int e = 1; e < std::ssize(p.inputs); ++e) {
                    const Expr first = size(p.inputs[static_cast<size_t>(e)].first_output_channel);
                    value = ir::choose(z >= first, operand(e, z - first), value);
                }
                return ir::store(to.name(), value, at);
            }
            case Operation::rearrange:
                return rearranged(k, point);
            case Operation::resample:
                return ir::store(to.name(), resampled(k, point), at);
            case Operation::normalise:
                return normalised(k, point);
            case Operation::largest_channel:
            case Operation::smallest_channel:
                return ir::store(to.name(), ir::combined(p.operation, operand(0, point[3]),
                                                         ir::load(to.name(), at)), at);
        }
        return {};
    }

    /// A Pad or Resize.
    Expr resampled(int k, const std::array<Expr, 4>& point) {
        const RotatingBuffer& from = tensor_buffers_[static_cast<size_t>(tensor_of(k, 0))];
        return sampled_sum(layer(k), problem(k), {point[1], point[2]},
                           [&](const Expr& row, const Expr& column) {
                               return ir::load(from.name(), from.index(point[0], row, column));
                           });
    }

    /// The first iteration of i does it all, so that sums need no place between iterations.
    Stmt normalised(int k, const std::array<Expr, 4>& point) {
        const auto& [z, y, x, i] = point;
        const RotatingBuffer& to = output_buffer(k);
        const RotatingBuffer& from = tensor_buffers_[static_cast<size_t>(tensor_of(k, 0))];
        const auto element = [&](const Expr& channel) {
            return ir::load(from.name(), from.index(channel, y, x));
        };
        const ir::PixelVectors pixel{
            .name = problem(k).name,
            .channels = problem(k)[Dim::i],
            .load = [&](const Expr& channel, int64_t) { return element(channel); }};
        const Stmt body =
            ir::with_statistics(layer(k), pixel, [&](const ir::Normalised& normalised) {
                return ir::store(to.name(), normalised(element(z), 0), to.index(z, y, x));
            });
        return ir::guarded(i == 0, body);
    }

    Stmt rearranged(int k, const std::array<Expr, 4>& point) {
        const RotatingBuffer& to = output_buffer(k);
        const RotatingBuffer& from = tensor_buffers_[static_cast<size_t>(tensor_of(k, 0))];
        const Rearranged of = rearranged_from(problem(k), point);
        const Stmt copy =
            ir::store(to.name(), ir::load(from.name(), from.index(of.channel, of.row, of.column)),
                      to.index(point[0], point[1], point[2]));
        return ir::guarded(point[3] == of.iteration, copy);
    }

    /// Kernel loops around one multiply-accumulate.
    Stmt multiply_accumulate(int k, const std::array<Expr, 4>& point) {
        const LayerProblem& p = problem(k);
        const Expr& z = point[0];
        const Expr& i = point[3];
        const RotatingBuffer& to = output_buffer(k);
        const RotatingBuffer& from = tensor_buffers_[static_cast<size_t>(tensor_of(k, 0))];
        const RotatingBuffer& weights = weights_[static_cast<size_t>(k)];
        const Expr channel =
            p.groups == 1 ? i : z / size(p[Dim::z] / p.groups) * size(p[Dim::i]) + i;
        return tap_loop(p, 0, point[1], [&](const Expr& n, const Expr& y, const Expr& y_inside) {
            return tap_loop(
                p, 1, point[2], [&](const Expr& m, const Expr& x, const Expr& x_inside) {
                    const Expr value =
                        ir::choose(simplify(y_inside && x_inside),
                                   ir::load(from.name(), from.index(channel, y, x)), Expr(0.0F));
                    const Expr weight =
                        ir::load(weights.name(), weights.index(z, i, n * size(p.x().kernel) + m));
                    const Expr at = to.index(z, point[1], point[2]);
                    return ir::store(to.name(), ir::load(to.name(), at) + value * weight, at);
                });
        });
    }

    /// Loop over the taps of one output coordinate: make(tap, input coordinate, whether that lies
    /// inside the input).
    static Stmt tap_loop(const LayerProblem& p, size_t axis, const Expr& out,
                         const std::function<Stmt(Expr, Expr, Expr)>& make) {
        const AxisWindow& w = p.window[axis];
        const std::string name = p.name + (axis == 0 ? ".n" : ".m");
        const auto inside = [&](const Expr& in) { return in >= 0 && in < size(w.in); };
        if (!w.transposed) {
            return for_each(name, {0, size(w.kernel)}, [&](const Expr& tap) {
                const Expr in = out * size(w.stride) + tap * size(w.dilation) - size(w.pad_begin);
                return make(tap, in, ir::reaches_padding(w) ? inside(in) : const_true());
            });
        }
        // Taps n with (out + pad - n*dilation) divisible by the stride: every one (stride 1), or
        // first, first + S, ... (dilation 1).
        const Expr shifted = out + size(w.pad_begin);
        const Expr first = w.stride == 1 ? Expr(0) : shifted % size(w.stride);
        const Expr count = (size(w.kernel) - first + size(w.stride - 1)) / size(w.stride);
        return for_each(name, {0, simplify(count)}, [&](const Expr& t) {
            const Expr tap = first + t * size(w.stride);
            const Expr in = (shifted - tap * size(w.dilation)) / size(w.stride);
            return make(tap, in, inside(in));
        });
    }

    std::vector<RotatingBuffer> tensor_buffers_;  ///< by tensor
    RotatingBuffer output_;
    std::vector<RotatingBuffer> weights_;  ///< by nest
};

}  // namespace

GroupCode instrumented_code(const Network& network, const GroupSchedule& group) {
    return Instrumented(network, group).code();
}

}  // namespace laminate
