#include "generators/instrumented.h"

#include "generators/arrays.h"
#include "generators/constants.h"
#include "scheduler/halide/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// Where an element lives in a buffer of three dimensions that may rotate in each of them.
class RotatingBuffer {
public:
    RotatingBuffer() = default;
    RotatingBuffer(std::string name, const BufferShape& shape, const std::array<int64_t, 3>& coordinates)
        : name_(std::move(name)), shape_(shape), coordinates_(coordinates) {}

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] Expr index(const Expr& a, const Expr& b, const Expr& c) const {
        return (slot(a, 0) * extent(1) + slot(b, 1)) * extent(2) + slot(c, 2);
    }
    [[nodiscard]] Stmt allocate(const Stmt& body) const {
        std::vector<Expr> extents;
        for (size_t d = 0; d < 3; ++d) extents.push_back(extent(d));
        return Allocate::make(name_, Halide::Float(32), Halide::MemoryType::Heap, extents, const_true(), body);
    }

private:
    [[nodiscard]] Expr extent(size_t d) const { return static_cast<int32_t>(shape_.extent[d]); }
    [[nodiscard]] Expr slot(const Expr& coordinate, size_t d) const {
        if (shape_.extent[d] >= coordinates_[d]) return coordinate;  // holds every coordinate there is
        // A buffer that is never filled has no slots; its loops never run.
        return coordinate % static_cast<int32_t>(std::max<int64_t>(shape_.extent[d], 1));
    }

    std::string name_;
    BufferShape shape_;
    std::array<int64_t, 3> coordinates_{};
};

class Instrumented final : public GroupLowering {
public:
    Instrumented(const Network& network, const GroupSchedule& group) : GroupLowering(network, group) {
        const LayerProblem& first = problem(0);
        input_ = RotatingBuffer("X.buffer", input_buffer_shape(group, problems_, 0), {first.inputs.front().channels, first.y().in, first.x().in});
        for (int k = 0; k <= sink(); ++k) {
            const LayerProblem& p = problem(k);
            const BufferShape shape = k == sink() ? output_buffer_shape(group, problems_) : input_buffer_shape(group, problems_, k + 1);
            outputs_.emplace_back(p.name + ".buffer", shape, std::array<int64_t, 3>{p[Dim::z], p[Dim::y], p[Dim::x]});
            weights_.emplace_back(p.name + ".W.buffer", weights_buffer_shape(group, problems_, k),
                                  std::array<int64_t, 3>{p[Dim::z], p[Dim::i], p.y().kernel * p.x().kernel});
        }
    }

    GroupCode code() {
        GroupCode code;
        Stmt body = lower();
        ConstantBlock constants;
        for (int k = 0; k <= sink(); ++k) {
            const auto bind_constants = [&](const std::string& name, const std::vector<float>& values) {
                if (!values.empty()) {
                    body = ir::with_array(name, argument::constants, constants.append(values), body);
                }
            };
            bind_constants(problem(k).name + ".W", canonical_weights(layer(k), problem(k)));
            bind_constants(problem(k).name + ".bias", canonical_bias(layer(k), problem(k)));
            bind_constants(problem(k).name + ".slope", canonical_slope(layer(k), problem(k)));
            code.arrays.push_back({problem(k).name + ".W", ArrayRole::external_weights, k});
            code.arrays.push_back({problem(k).name + ".W.buffer", ArrayRole::weights_buffer, k});
            code.arrays.push_back({problem(k).name + ".buffer", ArrayRole::output_buffer, k});
        }
        code.arrays.push_back({"X", ArrayRole::external_input, 0});
        code.arrays.push_back({"X.buffer", ArrayRole::input_buffer, 0});
        code.inputs = {problem(0).inputs.front().name};
        code.arrays.push_back({"Y", ArrayRole::external_output, sink()});
        body = ir::with_pointer("X", argument::inputs, 0, body);
        body = ir::with_pointer("Y", argument::outputs, 0, body);
        code.body = simplify(body);
        code.constants = std::move(constants).take();
        code.strips = strip_count();
        return code;
    }

protected:
    Stmt allocate_input(Stmt body) override { return input_.allocate(body); }
    Stmt allocate_weights(int k, Stmt body) override { return weights_[static_cast<size_t>(k)].allocate(body); }
    Stmt allocate_output(int k, Stmt body) override { return outputs_[static_cast<size_t>(k)].allocate(body); }

    Stmt copy_input(const Box& box) override {
        const LayerProblem& p = problem(0);
        return over(box, "X.copy", [&](const Expr& c, const Expr& y, const Expr& x) {
            const Expr from = (c * size(p.y().in) + y) * size(p.x().in) + x;
            return ir::store(input_.name(), ir::load("X", from, ir::Alignment::element), input_.index(c, y, x));
        });
    }

    Stmt copy_weights(int k, const Interval<Expr>& z_range, const Interval<Expr>& i_range) override {
        const LayerProblem& p = problem(k);
        const RotatingBuffer& buffer = weights_[static_cast<size_t>(k)];
        const int64_t area = p.y().kernel * p.x().kernel;
        const Box box{z_range, i_range, Interval<Expr>{0, size(area)}};
        return over(box, p.name + ".W.copy", [&](const Expr& z, const Expr& i, const Expr& tap) {
            return ir::store(buffer.name(), ir::load(p.name + ".W", (z * size(p[Dim::i]) + i) * size(area) + tap), buffer.index(z, i, tap));
        });
    }

    Stmt begin_call(int k, const Box& box) override {
        const RotatingBuffer& buffer = outputs_[static_cast<size_t>(k)];
        return over(box, problem(k).name + ".init", [&](const Expr& z, const Expr& y, const Expr& x) {
            return ir::store(buffer.name(), ir::load(problem(k).name + ".bias", z), buffer.index(z, y, x));
        });
    }

    Stmt end_call(int k, const Box& box) override {
        if (layer(k).activation.kind == ActivationKind::none) return {};
        const RotatingBuffer& buffer = outputs_[static_cast<size_t>(k)];
        return over(box, problem(k).name + ".finish", [&](const Expr& z, const Expr& y, const Expr& x) {
            const Expr at = buffer.index(z, y, x);
            return ir::store(buffer.name(), activated(k, ir::load(buffer.name(), at), z), at);
        });
    }

    Stmt begin_output(const Box& box) override {
        const int k = sink();
        const RotatingBuffer& buffer = outputs_.back();
        const Interval<Expr> i = output_reduction();
        return over(box, problem(k).name + ".init", [&](const Expr& z, const Expr& y, const Expr& x) {
            // What an earlier visit left in external memory comes back; the bias starts the sum.
            const Expr start = ir::choose(simplify(i.begin > 0), ir::load("Y", output_index(z, y, x), ir::Alignment::element),
                                          ir::load(problem(k).name + ".bias", z));
            return ir::store(buffer.name(), start, buffer.index(z, y, x));
        });
    }

    Stmt end_output(const Box& box) override {
        const int k = sink();
        const RotatingBuffer& buffer = outputs_.back();
        const Interval<Expr> i = output_reduction();
        return over(box, problem(k).name + ".write", [&](const Expr& z, const Expr& y, const Expr& x) {
            const Expr sum = ir::load(buffer.name(), buffer.index(z, y, x));
            const Expr value = ir::choose(simplify(i.end >= size(problem(k)[Dim::i])), activated(k, sum, z), sum);
            return ir::store("Y", value, output_index(z, y, x), ir::Alignment::element);
        });
    }

    Stmt innermost(int k, int first_loop) override {
        std::array<Interval<Expr>, 4> range;
        for (const Dim d : {Dim::z, Dim::y, Dim::x, Dim::i}) range[static_cast<size_t>(d)] = covered(k, d, first_loop - 1);
        std::array<Expr, 4> point;
        return nested(k, first_loop, range, point);
    }

private:
    static Expr size(int64_t extent) { return static_cast<int32_t>(extent); }

    static Stmt over(const Box& box, const std::string& name, const std::function<Stmt(Expr, Expr, Expr)>& make) {
        return for_each(name + ".a", box[0], [&](const Expr& a) {
            return for_each(name + ".b", box[1], [&](const Expr& b) {
                return for_each(name + ".c", box[2], [&](const Expr& c) { return make(a, b, c); });
            });
        });
    }

    /// The input channels that one body of the output's level accumulates.
    [[nodiscard]] Interval<Expr> output_reduction() const {
        const Level level = nest(sink()).y.store;
        return covered(sink(), Dim::i, level.is_root() ? -1 : level.loop);
    }

    [[nodiscard]] Expr output_index(const Expr& z, const Expr& y, const Expr& x) const {
        const LayerProblem& p = problem(sink());
        return (z * size(p[Dim::y]) + y) * size(p[Dim::x]) + x;
    }

    [[nodiscard]] Expr activated(int k, const Expr& value, const Expr& z) const {
        const Activation& activation = layer(k).activation;
        const Expr slope = activation.kind == ActivationKind::prelu ? ir::load(problem(k).name + ".slope", z) : Expr(0.0F);
        return ir::activate(activation, value, slope);
    }

    /// The loops from `l` on, in the schedule's order. Adjacent bands of one dimension with nothing between need no loop each:
    /// an outer loop runs over tiles, its inner loop over the tile.
    Stmt nested(int k, int l, const std::array<Interval<Expr>, 4>& range, std::array<Expr, 4>& point) {
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
        const Expr step = size(loop.band == Band::strip ? n.strip[d - 1] : n.tile[d]);
        const bool is_strip_range = l == 0 && loop.band == Band::strip;
        const Expr trips = simplify((range[d].end - range[d].begin + step - 1) / step);
        const Interval<Expr> all{is_strip_range ? Variable::make(Halide::Int(32), argument::strip_begin) : Expr(0),
                                 is_strip_range ? Variable::make(Halide::Int(32), argument::strip_end) : trips};
        return for_each(n.layer + "." + to_text(loop), all, [&](const Expr& trip) {
            std::array<Interval<Expr>, 4> inside = range;
            const Expr begin = simplify(range[d].begin + trip * step);
            inside[d] = {begin, simplify(Halide::min(begin + step, range[d].end))};
            return nested(k, l + 1, inside, point);
        });
    }

    /// Kernel loops around one multiply-accumulate.
    Stmt taps(int k, const std::array<Expr, 4>& point) {
        const LayerProblem& p = problem(k);
        const Expr& z = point[0];
        const Expr& i = point[3];
        const RotatingBuffer& to = outputs_[static_cast<size_t>(k)];
        const RotatingBuffer& from = k == 0 ? input_ : outputs_[static_cast<size_t>(k) - 1];
        const RotatingBuffer& weights = weights_[static_cast<size_t>(k)];
        const Expr channel = p.groups == 1 ? i : z / size(p[Dim::z] / p.groups) * size(p[Dim::i]) + i;
        return tap_loop(p, 0, point[1], [&](const Expr& n, const Expr& y, const Expr& y_inside) {
            return tap_loop(p, 1, point[2], [&](const Expr& m, const Expr& x, const Expr& x_inside) {
                const Expr value = ir::choose(simplify(y_inside && x_inside), ir::load(from.name(), from.index(channel, y, x)), Expr(0.0F));
                const Expr weight = ir::load(weights.name(), weights.index(z, i, n * size(p.x().kernel) + m));
                const Expr at = to.index(z, point[1], point[2]);
                return ir::store(to.name(), ir::load(to.name(), at) + value * weight, at);
            });
        });
    }

    /// Loop over the taps of one output coordinate: make(tap, input coordinate, whether that lies inside the input).
    static Stmt tap_loop(const LayerProblem& p, size_t axis, const Expr& out, const std::function<Stmt(Expr, Expr, Expr)>& make) {
        const AxisWindow& w = p.window[axis];
        const std::string name = p.name + (axis == 0 ? ".n" : ".m");
        const auto inside = [&](const Expr& in) { return in >= 0 && in < size(w.in); };
        if (!w.transposed) {
            return for_each(name, {0, size(w.kernel)}, [&](const Expr& tap) {
                const Expr in = out * size(w.stride) + tap * size(w.dilation) - size(w.pad_begin);
                const bool reaches_padding = w.pad_begin > 0 || (w.out - 1) * w.stride + (w.kernel - 1) * w.dilation - w.pad_begin >= w.in;
                return make(tap, in, reaches_padding ? inside(in) : const_true());
            });
        }
        // Taps n with (out + pad - n*dilation) divisible by the stride: every one (stride 1), or first, first + S, ... (dilation 1).
        const Expr shifted = out + size(w.pad_begin);
        const Expr first = w.stride == 1 ? Expr(0) : shifted % size(w.stride);
        const Expr count = (size(w.kernel) - first + size(w.stride - 1)) / size(w.stride);
        return for_each(name, {0, simplify(count)}, [&](const Expr& t) {
            const Expr tap = first + t * size(w.stride);
            const Expr in = (shifted - tap * size(w.dilation)) / size(w.stride);
            return make(tap, in, inside(in));
        });
    }

    RotatingBuffer input_;
    std::vector<RotatingBuffer> outputs_;
    std::vector<RotatingBuffer> weights_;
};

}  // namespace

GroupCode instrumented_code(const Network& network, const GroupSchedule& group) { return Instrumented(network, group).code(); }

}  // namespace laminate
