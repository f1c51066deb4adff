#include "generators/halide/program.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/range.h"
#include "generators/halide/levels.h"
#include "generators/ir/arrays.h"
#include "generators/ir/constants.h"

namespace laminate {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

Expr number(int64_t n) { return static_cast<int32_t>(n); }
Expr times(const Expr& e, int64_t factor) { return factor == 1 ? e : e * number(factor); }
Expr plus(const Expr& e, int64_t term) {
    if (term == 0) return e;
    return term > 0 ? e + number(term) : e - number(-term);
}

/// Names that C++ or the generated class uses.
bool is_taken(const std::string& name) {
    static const std::set<std::string> taken{
        "x",        "y",    "z",        "m",      "n",        "i",       "auto",    "bool",
        "break",    "case", "char",     "class",  "const",    "delete",  "default", "do",
        "double",   "else", "enum",     "float",  "for",      "goto",    "if",      "int",
        "long",     "new",  "operator", "return", "short",    "static",  "struct",  "switch",
        "template", "this", "union",    "void",   "while",    "select",  "clamp",   "max",
        "min",      "exp",  "tanh",     "target", "schedule", "generate"};
    return taken.contains(name);
}

class Names {
public:
    std::string identifier(const std::string& wanted) {
        std::string name;
        for (const char c : wanted) {
            const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
            name += fits ? c : '_';
        }
        if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
            name = "t" + name;
        // Halide keeps names with two underscores for itself, and so does C++.
        for (size_t at; (at = name.find("__")) != std::string::npos;) name.erase(at, 1);
        while (is_taken(name) || used_.contains(name)) name += "_";
        used_.insert(name);
        return name;
    }

private:
    std::set<std::string> used_;
};

/// Evaluates only the chosen side, so that the other one reads nothing.
Expr lazily(const Expr& condition, const Expr& then, const Expr& otherwise) {
    return ir::choose(condition, then, otherwise);
}

/// One stage's loops of a nest: which of the schedule's loops it keeps, by their positions.
struct KeptLoop {
    Loop loop;
    int position = 0;
};

/// The algorithm of the group: inputs and Funcs with their definitions.
class Algorithm {
public:
    Algorithm(const Network& network, const GroupSchedule& group, HalidePadding padding)
        : network_(network),
          group_(group),
          problems_(group_problems(network, group)),
          placement_(group, problems_) {
        if (padding == HalidePadding::opaque) {
            Halide::Param<float> zero("padding", 0.0F);
            zero_ = zero;
            is_opaque_ = true;
        }
    }

protected:
    [[nodiscard]] const LayerProblem& problem(int k) const {
        return problems_[static_cast<size_t>(k)];
    }
    [[nodiscard]] const Nest& nest(int k) const { return group_.nests[static_cast<size_t>(k)]; }
    [[nodiscard]] const Layer& layer(int k) const { return network_.layer(problem(k).layer); }
    [[nodiscard]] int sink() const { return group_.sink(); }

    HalideInput& add_input(const std::string& name, const std::vector<int64_t>& extents,
                           const std::string& axes) {
        program_.inputs.push_back(
            {Halide::ImageParam(Halide::Float(32), static_cast<int>(extents.size()),
                                names_.identifier(name)),
             extents, axes});
        HalideInput& input = program_.inputs.back();
        int64_t stride = 1;
        for (size_t d = 0; d < extents.size(); ++d) {
            input.param.dim(static_cast<int>(d))
                .set_bounds(0, number(extents[d]))
                .set_stride(number(stride));
            stride *= extents[d];
        }
        return input;
    }

    int add_func(const std::string& wanted, const std::vector<Var>& args,
                 std::optional<CodeArray> buffer) {
        const std::string name = names_.identifier(wanted);
        HalideFunc f{name, Func(name), args, {}, {}, {}, std::move(buffer)};
        if (f.buffer) f.buffer->name = f.name();
        program_.funcs.push_back(std::move(f));
        return static_cast<int>(program_.funcs.size()) - 1;
    }

    /// Defines or updates a Func at its arguments.
    void define(int f, HalideDefinition definition) {
        HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
        func.func(func.args) = definition.value;
        func.definitions.push_back(std::move(definition));
    }
    [[nodiscard]] Expr itself(int f) const {
        const HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
        return func.func(func.args);
    }

    void declare_inputs() {
        const std::vector<GroupTensor>& tensors = placement_.group_tensors();
        tensor_func_.resize(tensors.size(), -1);
        std::vector<Halide::ImageParam> arrays;
        for (size_t t = 0; t < tensors.size() && tensors[t].is_external(); ++t) {
            const LayerProblem& p = problem(tensors[t].readers.front().nest);
            const int64_t channels =
                p.inputs[static_cast<size_t>(tensors[t].readers.front().operand)].channels;
            HalideInput& input =
                add_input(tensors[t].name, {p.x().in, p.y().in, channels}, "x, y, z");
            input.tensor = static_cast<int>(t);
            program_.input_tensors.push_back(tensors[t].name);
            arrays.push_back(input.param);
        }
        for (int k = 0; k <= sink(); ++k) declare_constants(k);
        for (size_t t = 0; t < arrays.size(); ++t) {
            tensor_func_[t] = add_func("in_" + arrays[t].name(), {x_, y_, z_},
                                       CodeArray{"", ArrayRole::input_buffer, static_cast<int>(t)});
            // Halide would refuse an array that only its bounds pass.
            const std::vector<int64_t>& extents = program_.inputs[t].extents;
            const Expr x = overestimates_bounds()
                               ? Halide::clamp(is_opaque_ ? Expr(x_) : Halide::likely(x_), 0,
                                               number(extents[0] - 1))
                               : Expr(x_);
            const Expr y = overestimates_bounds()
                               ? Halide::clamp(is_opaque_ ? Expr(y_) : Halide::likely(y_), 0,
                                               number(extents[1] - 1))
                               : Expr(y_);
            define(tensor_func_[t], {{}, arrays[t](x, y, z_)});
        }
    }

    /// Whether Halide's bounds of tiles whose last is short may reach beyond an input.
    [[nodiscard]] bool overestimates_bounds() const {
        return std::any_of(problems_.begin(), problems_.end(), [](const LayerProblem& p) {
            return std::any_of(p.window.begin(), p.window.end(), [](const AxisWindow& w) {
                return w.stride > 1 || w.pad_begin > 0 ||
                       (w.out - 1) * w.stride + w.span() - w.pad_begin > w.in;
            });
        });
    }

    void declare_constants(int k) {
        constants_.emplace_back();
        if (!problem(k).has_weights()) return;
        const LayerProblem& p = problem(k);
        const auto declare = [&](const std::string& what, const std::vector<int64_t>& extents,
                                 HalideInput::Values values, const std::string& axes) {
            HalideInput& input = add_input(p.name + "_" + what, extents, axes);
            input.nest = k;
            input.values = values;
            return input.param;
        };
        Constants& c = constants_.back();
        c.weights = declare("weights", {p.x().kernel, p.y().kernel, p[Dim::i], p[Dim::z]},
                            HalideInput::Values::weights, "m, n, i, z");
        if (layer(k).bias) c.bias = declare("bias", {p[Dim::z]}, HalideInput::Values::bias, "z");
        if (layer(k).activation.kind == ActivationKind::prelu) {
            c.slope = declare("slope", {p[Dim::z]}, HalideInput::Values::slope, "z");
        }
    }

    /// A value read of a tensor whose channel, row and column may lie outside: the coordinates that
    /// may are clamped, and the condition says whether they had to be.
    struct Tap {
        Expr value;
        Expr inside;  ///< undefined: always
    };
    Tap tap(int k, int operand, const Expr& column, const Expr& row, const Expr& channel) {
        const LayerProblem& p = problem(k);
        const Func& from = program_.funcs[static_cast<size_t>(source(k, operand))].func;
        const auto kept = [this](const Expr& at, const AxisWindow& w, Expr& inside) {
            Expr clamped = at;
            Expr condition;
            if (w.pad_begin > 0) condition = at >= 0;
            const bool passes_end = (w.out - 1) * w.stride + w.span() - w.pad_begin > w.in;
            if (passes_end)
                condition =
                    condition.defined() ? condition && at < number(w.in) : at < number(w.in);
            if (!condition.defined()) return clamped;
            inside = inside.defined() ? inside && condition : condition;
            return Halide::clamp(is_opaque_ ? at : Halide::likely(at), 0, number(w.in - 1));
        };
        Tap t;
        const Expr y = kept(row, p.y(), t.inside);
        const Expr x = kept(column, p.x(), t.inside);
        t.value = from(x, y, channel);
        return t;
    }

    [[nodiscard]] int source(int k, int operand) const {
        const std::vector<GroupTensor>& tensors = placement_.group_tensors();
        for (size_t t = 0; t < tensors.size(); ++t) {
            for (const TensorReader& r : tensors[t].readers) {
                if (r.nest == k && r.operand == operand) return tensor_func_[t];
            }
        }
        return -1;
    }

    static Expr coordinate(const Expr& out, const Expr& tap, const AxisWindow& w) {
        return plus(times(out, w.stride) + times(tap, w.dilation), -w.pad_begin);
    }

    void define_layer(int k) {
        const LayerProblem& p = problem(k);
        if (p.y().transposed || p.x().transposed) {
            throw InputError(p.name +
                             ": transposed convolutions have no form as Halide Funcs here");
        }
        if (p.has_weights()) {
            const Var m("m"), n("n"), i("i");
            const int copy =
                add_func("w_" + p.name, {m, n, i, z_}, CodeArray{"", ArrayRole::weights_buffer, k});
            weights_func_[static_cast<size_t>(k)] = copy;
            define(copy, {{}, (*constants_[static_cast<size_t>(k)].weights)(m, n, i, z_)});
        }
        const bool is_partial = k == sink() && visits() > 1;
        const int f = add_func(
            p.name,
            is_partial ? std::vector<Var>{x_, y_, z_, visit_} : std::vector<Var>{x_, y_, z_},
            CodeArray{"", ArrayRole::output_buffer, k});
        layer_func_[static_cast<size_t>(k)] = f;
        for (size_t t = 0; t < tensor_func_.size(); ++t) {
            if (placement_.group_tensors()[t].producer == k) tensor_func_[t] = f;
        }
        switch (p.operation) {
            case Operation::multiply_accumulate:
            case Operation::max_pool:
            case Operation::average_pool:
                define_reduction(k, f);
                break;
            case Operation::add:
            case Operation::concat:
            case Operation::pointwise:
                define(f, {{}, finished(k, elementwise(k))});
        }
    }

    void define_reduction(int k, int f) {
        const LayerProblem& p = problem(k);
        const Constants& c = constants_[static_cast<size_t>(k)];
        HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
        func.reduction = {p.x().kernel, p.y().kernel};
        const int64_t visited = k == sink() ? visits() : 1;
        const int64_t per_visit = visited > 1 ? channels_of_a_visit() : p[Dim::i];
        if (p.has_weights()) func.reduction.push_back(per_visit);
        Halide::Region region;
        for (const int64_t extent : func.reduction) region.emplace_back(0, number(extent));
        Halide::RDom r(region, func.domain());
        HalideDefinition update;
        Expr i = p.has_weights() ? Expr(r.z) : Expr(0);
        if (visited > 1) {
            i = per_visit == 1 ? Expr(visit_) : times(visit_, per_visit) + r.z;
            if (p[Dim::i] % per_visit != 0) {
                func.condition = i < number(p[Dim::i]);
                r.where(func.condition);
                i = Halide::min(i, number(p[Dim::i] - 1));  // says where regions end
                update.locals.emplace_back(func.identifier + "_i", i);
            }
        }
        const bool is_maximum = p.operation == Operation::max_pool;
        const Expr nothing =
            is_maximum ? Expr(-std::numeric_limits<float>::infinity()) : Expr(0.0F);
        define(f, {{}, c.bias && visited == 1 ? Expr((*c.bias)(z_)) : nothing});
        const auto local = [&](const char* name, const Expr& value) {
            update.locals.emplace_back(func.identifier + name, value);
            return value;
        };
        const Expr column = local("_x", coordinate(x_, r.x, p.x()));
        const Expr row = local("_y", coordinate(y_, r.y, p.y()));
        Expr channel = z_;
        if (p.has_weights()) {
            if (p.groups == 1) {
                channel = i;
            } else if (p[Dim::i] > 1 || p.groups < p[Dim::z]) {
                channel = times(z_ / number(p[Dim::z] / p.groups), p[Dim::i]) + i;
            }
        }
        const Tap t = tap(k, 0, column, row, channel);
        const Expr in = t.inside.defined()
                            ? Halide::select(t.inside, t.value, is_maximum ? nothing : zero_)
                            : t.value;
        if (t.inside.defined()) update.locals.emplace_back(func.identifier + "_in", in);
        if (p.has_weights()) {
            const Func& w =
                program_.funcs[static_cast<size_t>(weights_func_[static_cast<size_t>(k)])].func;
            update.value = itself(f) + in * w(r.x, r.y, i, z_);
        } else {
            update.value = is_maximum ? Halide::max(itself(f), in) : itself(f) + in;
        }
        define(f, std::move(update));
        if (k == sink()) return;
        const Expr value = finished(k, itself(f));
        if (!value.same_as(unfinished_)) define(f, {{}, value});
    }

    Expr elementwise(int k) {
        const LayerProblem& p = problem(k);
        const auto operand = [&](size_t e, const Expr& channel) {
            return Expr(program_.funcs[static_cast<size_t>(source(k, static_cast<int>(e)))].func(
                x_, y_, channel));
        };
        Expr value = operand(0, p.operation == Operation::concat
                                    ? Halide::min(z_, number(p.inputs[0].channels - 1))
                                    : Expr(z_));
        for (size_t e = 1; e < p.inputs.size(); ++e) {
            const LayerInput& input = p.inputs[e];
            if (p.operation == Operation::add) {
                value = value + operand(e, z_);
            } else {
                const Expr channel = Halide::clamp(z_ - number(input.first_output_channel), 0,
                                                   number(input.channels - 1));
                value = Halide::select(z_ < number(input.first_output_channel), value,
                                       operand(e, channel));
            }
        }
        return value;
    }

    /// What the layer makes of its finished sum; the same node where that is the sum itself.
    Expr finished(int k, const Expr& sum) {
        unfinished_ = sum;
        const LayerProblem& p = problem(k);
        Expr value = sum;
        if (p.operation == Operation::average_pool) {
            value = value / Halide::cast<float>(ir::averaged_elements(layer(k), p, y_, x_));
        }
        const Activation& a = layer(k).activation;
        switch (a.kind) {
            case ActivationKind::none:
                return value;
            case ActivationKind::relu:
                return Halide::max(value, 0.0F);
            case ActivationKind::leaky_relu:
                return Halide::select(value < 0.0F, value * a.alpha, value);
            case ActivationKind::prelu:
                if (!constants_[static_cast<size_t>(k)].slope) break;
                return Halide::select(
                    value < 0.0F, value * (*constants_[static_cast<size_t>(k)].slope)(z_), value);
            case ActivationKind::clip:
                return Halide::clamp(value, a.low, a.high);
            case ActivationKind::sigmoid:
                return 1.0F / (1.0F + Halide::exp(-value));
            case ActivationKind::tanh:
                return Halide::tanh(value);
            case ActivationKind::unary:
                break;
        }
        throw InputError(p.name + ": activation " + activation_text(a) +
                         " has no form as Halide Funcs here");
    }

    void define_output() {
        const LayerProblem& p = problem(sink());
        std::string name = network_.tensor(p.output).name;
        const int f = layer_func_.back();
        output_ = add_func(name == p.name ? name + "_out" : name, {x_, y_, z_},
                           CodeArray{"", ArrayRole::external_output, sink()});
        const bool is_reduction = !program_.funcs[static_cast<size_t>(f)].reduction.empty();
        if (visits() > 1) {
            define_partial_sums(f);
        } else {
            define(output_, {{}, is_reduction ? finished(sink(), itself(f)) : itself(f)});
        }
        program_.output_extents = {p[Dim::x], p[Dim::y], p[Dim::z]};
        Func& func = program_.funcs.back().func;
        int64_t stride = 1;
        for (int d = 0; d < 3; ++d) {
            const int64_t extent = program_.output_extents[static_cast<size_t>(d)];
            func.output_buffer().dim(d).set_bounds(0, number(extent)).set_stride(number(stride));
            stride *= extent;
            program_.directives.push_back(
                {HalideVerb::bound, output_, -1, {"xyz"[d] + std::string()}, extent});
        }
    }

    /// Y in external memory takes a sum for each visit, and the first visit finds nothing there.
    void define_partial_sums(int f) {
        HalideFunc& out = program_.funcs.back();
        define(output_, {{}, Halide::undef<float>()});
        out.reduction = {visits()};
        const Halide::RDom v(0, number(visits()), out.domain());
        const std::optional<Halide::ImageParam>& bias = constants_.back().bias;
        const Expr before =
            lazily(v.x == 0, bias ? Expr((*bias)(z_)) : Expr(0.0F), itself(output_));
        const Expr sum = before + program_.funcs[static_cast<size_t>(f)].func(x_, y_, z_, v.x);
        const Expr value = finished(sink(), sum);
        define(output_,
               {{}, value.same_as(sum) ? sum : lazily(v.x == number(visits() - 1), value, sum)});
    }

    [[nodiscard]] int output_level() const {
        const Level level = nest(sink()).y.store;
        return level.is_root() ? -1 : level.loop;
    }

    /// How often the output is accumulated from external memory: trips of the loops over input
    /// channels around the level of Y.
    [[nodiscard]] int64_t visits() const {
        const LayerProblem& p = problem(sink());
        if (!p.has_weights()) return 1;
        return ceil_div(p[Dim::i], channels_of_a_visit());
    }
    [[nodiscard]] int64_t channels_of_a_visit() const {
        const Nest& n = nest(sink());
        int64_t channels = problem(sink())[Dim::i];
        for (int l = 0; l <= output_level(); ++l) {
            const Loop loop = n.loops[static_cast<size_t>(l)];
            if (loop.dim == Dim::i) channels = std::min(channels, n.step(loop));
        }
        return channels;
    }

    struct Constants {
        std::optional<Halide::ImageParam> weights, bias, slope;
    };

    const Network& network_;
    const GroupSchedule& group_;
    const std::vector<LayerProblem> problems_;
    const HalidePlacement placement_;
    const Var x_{"x"}, y_{"y"}, z_{"z"}, visit_{"visit"};
    HalideProgram program_;
    Names names_;
    std::vector<Constants> constants_;  ///< by nest
    std::vector<int> tensor_func_;      ///< by tensor
    std::vector<int> layer_func_;       ///< by nest
    std::vector<int> weights_func_;     ///< by nest
    int output_ = -1;
    Expr unfinished_;
    Expr zero_ = 0.0F;  ///< what padding reads
    bool is_opaque_ = false;
};

/// The loops of each stage: which of the schedule's loops it keeps, split and in their order.
class StageLoops : protected Algorithm {
public:
    using Algorithm::Algorithm;

protected:
    void find_placed() {
        const auto note = [&](const HalideLevels& levels) {
            placed_.insert({levels.store, levels.compute});
            if (levels.exclusion) program_.exclusions.push_back(*levels.exclusion);
        };
        for (const HalideLevels& levels : placement_.tensors()) note(levels);
        for (const auto& levels : placement_.weights()) {
            if (levels) note(*levels);
        }
        placed_.insert(placement_.outermost_like(nest(sink()).y.store));
        for (size_t t = 0; t < placement_.tensors().size(); ++t) {
            const HalideLevels& levels = placement_.tensors()[t];
            if (!levels.merged_loop || is_one_loop(*levels.merged_loop, *levels.slide_loop))
                continue;
            program_.exclusions.push_back(
                {HalideReason::second_loop,
                 placement_.group_tensors()[t].name + " is kept along two loops, " +
                     level_text(group_, -1, *levels.merged_loop) + " and " +
                     level_text(group_, -1, *levels.slide_loop)});
        }
        check_strips();
        const bool slides_inside =
            std::any_of(placement_.tensors().begin(), placement_.tensors().end(),
                        [&](const HalideLevels& levels) {
                            return levels.slide_loop && levels.slide_loop->nest == sink() &&
                                   levels.slide_loop->loop > output_level();
                        });
        if (visits() > 1 && (sink() > 0 || slides_inside) &&
            problem(sink())[Dim::i] % channels_of_a_visit() != 0) {
            program_.exclusions.push_back(
                {HalideReason::short_visit,
                 nest(sink()).layer +
                     ": the last visit of Y has fewer input channels than the others"});
        }
        check_order();
    }

    /// Halide begins a sliding window early, with trips that only fill it. It guards what comes
    /// after the window's producer in the loop's body; what comes before runs in these trips too.
    void check_order() {
        for (size_t t = 0; t < tensor_func_.size(); ++t) {
            const HalideLevels& window = placement_.tensors()[t];
            if (!window.slides) continue;
            const auto check = [&](int f, const HalideLevels& levels) {
                if (levels.slides || !(levels.compute == *window.slide_loop) ||
                    !(levels.lifetime == levels.compute || levels.store == levels.compute))
                    return;
                if (name_of(f) < name_of(tensor_func_[t]))
                    program_.exclusions.push_back(
                        {HalideReason::before_window, name_of(f) + " comes before " +
                                                          name_of(tensor_func_[t]) +
                                                          " in the loop along which that is kept"});
            };
            for (size_t u = 0; u < tensor_func_.size(); ++u) {
                if (!is_made_from(u, t)) check(tensor_func_[u], placement_.tensors()[u]);
            }
            for (size_t k = 0; k < weights_func_.size(); ++k) {
                if (placement_.weights()[k]) check(weights_func_[k], *placement_.weights()[k]);
            }
        }
    }
    /// Whether a tensor is computed from another one.
    [[nodiscard]] bool is_made_from(size_t made, size_t source) const {
        const std::vector<GroupTensor>& tensors = placement_.group_tensors();
        const int producer = tensors[made].producer;
        if (producer < 0) return false;
        for (size_t t = 0; t < tensors.size(); ++t) {
            const bool reads =
                std::any_of(tensors[t].readers.begin(), tensors[t].readers.end(),
                            [&](const TensorReader& r) { return r.nest == producer; });
            if (reads && (t == source || is_made_from(t, source))) return true;
        }
        return false;
    }
    [[nodiscard]] std::string name_of(int f) const {
        return program_.funcs[static_cast<size_t>(f)].name();
    }

    /// Trips over tiles of a strip are as many in the last strip, though it be shorter.
    void check_strips() {
        const Nest& n = nest(sink());
        for (const Dim d : {Dim::y, Dim::x}) {
            const int64_t strip = n.strip[d == Dim::y ? 0 : 1];
            if (strip == 0) continue;
            const int64_t rest = problem(sink())[d] % strip;
            const int64_t tile = n[d];
            if (rest == 0 || ceil_div(rest, tile) == ceil_div(strip, tile)) continue;
            program_.exclusions.push_back(
                {HalideReason::short_strip, n.layer + ": the last strip of " +
                                                to_text(Loop{d, Band::strip}) +
                                                " has fewer tiles than the others"});
        }
    }

    /// Which loops [first, last) of nest k are loops of its code: those that repeat or hold
    /// something. An outer loop right around its inner loop holds nothing and is one with it.
    [[nodiscard]] std::vector<KeptLoop> kept_loops(int k, int first, int last, bool reduces) const {
        std::vector<KeptLoop> kept;
        for (int l = first; l < last; ++l) {
            const Loop loop = nest(k).loops[static_cast<size_t>(l)];
            const bool is_placed = placed_.contains({k, l}) && (reduces || loop.dim != Dim::i);
            if (!is_placed && placement_.trips({k, l}) <= 1) continue;
            if (!kept.empty() && kept.back().loop.dim == loop.dim &&
                !is_placed_between(k, kept.back().position, l) &&
                nest(k).step(kept.back().loop) % nest(k).step(loop) == 0) {
                kept.pop_back();
            }
            kept.push_back({loop, l});
        }
        return kept;
    }

    [[nodiscard]] bool is_one_loop(Level outer, Level inner) const {
        const Nest& n = nest(outer.nest);
        const auto step = [&](Level v) { return n.step(n.loops[static_cast<size_t>(v.loop)]); };
        return !is_placed_between(outer.nest, outer.loop, inner.loop) &&
               step(outer) % step(inner) == 0;
    }

    [[nodiscard]] bool is_placed_between(int k, int first, int last) const {
        for (int l = first; l < last; ++l) {
            if (placed_.contains({k, l})) return true;
        }
        return false;
    }

    std::string parameter(int k, Loop loop) {
        const std::string name = group_.nests[static_cast<size_t>(k)].layer + "_" + to_text(loop);
        for (const HalideParameter& known : program_.parameters) {
            if (known.name == name) return name;
        }
        program_.parameters.push_back({name, nest(k).step(loop)});
        return name;
    }

    /// Splits the dimensions of a stage into the kept loops and orders them; what is left of a
    /// dimension below its kept loops runs innermost.
    void schedule_stage(int k, int f, int stage, const std::vector<KeptLoop>& kept) {
        const HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
        std::vector<std::string> innermost;  // innermost first
        if (stage >= 0 && f != output_ && !func.reduction.empty()) {
            innermost = {func.domain() + ".x", func.domain() + ".y"};
            if (func.args.size() > 3) innermost.push_back(visit_.name());
        }
        std::vector<std::string> order(kept.size());
        for (const Dim d : {Dim::x, Dim::y, Dim::z, Dim::i}) {
            if (d == Dim::i && f != output_ && func.reduction.size() < 3) continue;
            if (d == Dim::i && func.reduction.empty()) continue;
            std::string base = d == Dim::i ? func.domain() + (f == output_ ? ".x" : ".z")
                                           : std::string(1, "zyxi"[static_cast<size_t>(d)]);
            std::vector<size_t> mine;
            for (size_t l = 0; l < kept.size(); ++l) {
                if (kept[l].loop.dim == d) mine.push_back(l);
            }
            const std::string dim = to_text(Loop{d, Band::inner}).substr(0, 1);
            for (size_t l = 0; l < mine.size(); ++l) {
                const Loop loop = kept[mine[l]].loop;
                const std::string var = to_text(loop);
                const bool is_last = l + 1 == mine.size();
                const bool is_visit = f == output_ && loop.dim == Dim::i;
                if (is_last && (nest(k).step(loop) == 1 || is_visit)) {
                    program_.directives.push_back({HalideVerb::rename, f, stage, {base, var}});
                    base.clear();
                } else {
                    std::string rest = dim + "r";
                    const bool next_is_unit = !is_last && l + 2 == mine.size() &&
                                              nest(k).step(kept[mine[l + 1]].loop) == 1;
                    if (next_is_unit)
                        rest = to_text(kept[mine[l + 1]].loop);
                    else if (loop.band == Band::strip)
                        rest = dim + "s_";
                    program_.directives.push_back({HalideVerb::split,
                                                   f,
                                                   stage,
                                                   {base, var, rest},
                                                   nest(k).step(loop),
                                                   parameter(k, loop)});
                    base = rest;
                    if (next_is_unit) {
                        order[mine[l]] = var;
                        order[mine[l + 1]] = rest;
                        base.clear();
                        break;
                    }
                }
                order[mine[l]] = var;
            }
            if (!base.empty()) innermost.push_back(base);
        }
        innermost.insert(innermost.end(), order.rbegin(), order.rend());
        if (innermost.size() > 1)
            program_.directives.push_back({HalideVerb::reorder, f, stage, innermost});
    }

    void schedule_loops(int k) {
        const int loops = static_cast<int>(nest(k).loops.size());
        const int f = layer_func_[static_cast<size_t>(k)];
        int first = 0;
        if (k == sink()) {
            first = output_level() + 1;
            const std::vector<KeptLoop> kept = kept_loops(k, 0, first, false);
            remember(k, output_, kept);
            schedule_stage(k, output_, visits() > 1 ? 0 : -1, kept);
        }
        const bool reduces = program_.funcs[static_cast<size_t>(f)].reduction.size() > 2;
        const std::vector<KeptLoop> kept = kept_loops(k, first, loops, reduces);
        remember(k, f, kept);
        const bool is_pure = program_.funcs[static_cast<size_t>(f)].reduction.empty();
        schedule_stage(k, f, is_pure ? -1 : 0, kept);
        if (program_.funcs[static_cast<size_t>(f)].definitions.size() > 2)
            program_.directives.push_back({HalideVerb::reorder, f, 1, {"x", "y", "z"}});
    }

    void remember(int k, int f, const std::vector<KeptLoop>& kept) {
        for (const KeptLoop& l : kept) {
            loops_.push_back({{k, l.position}, {f, to_text(l.loop)}});
        }
    }

    /// The Halide loop whose body is that level's: the kept loop at or around it.
    [[nodiscard]] HalideLoop loop_of(Level level) const {
        if (level.is_root()) return {};
        const KnownLoop* best = nullptr;
        for (const KnownLoop& known : loops_) {
            if (known.level.nest != level.nest || known.level.loop > level.loop) continue;
            if (!best || known.level.loop > best->level.loop) best = &known;
        }
        if (best) return best->loop;
        if (level.nest == sink()) return {};
        for (const GroupTensor& tensor : placement_.group_tensors()) {
            if (tensor.producer == level.nest) return loop_of(placement_of(group_, tensor).compute);
        }
        return {};
    }

    struct KnownLoop {
        Level level;
        HalideLoop loop;
    };

    std::set<Level> placed_;
    std::vector<KnownLoop> loops_;
};

/// The directives that give the algorithm the group's loops and buffers, applied.
class Builder : private StageLoops {
public:
    using StageLoops::StageLoops;

    HalideProgram build() {
        declare_inputs();
        const int nests = static_cast<int>(group_.nests.size());
        layer_func_.resize(static_cast<size_t>(nests), -1);
        weights_func_.resize(static_cast<size_t>(nests), -1);
        for (int k = 0; k < nests; ++k) define_layer(k);
        define_output();
        find_placed();
        for (int k = 0; k < nests; ++k) schedule_loops(k);
        place_buffers();
        make_fast();
        std::stable_sort(program_.directives.begin(), program_.directives.end(),
                         [](const HalideDirective& a, const HalideDirective& b) {
                             return std::tie(b.func, a.stage) < std::tie(a.func, b.stage);
                         });
        for (const HalideDirective& directive : program_.directives) apply(directive);
        return std::move(program_);
    }

private:
    void place(int f, const HalideLevels& levels, const std::string& folded, int64_t fold) {
        const HalideLoop store = loop_of(levels.store), compute = loop_of(levels.compute);
        if (!(store == compute))
            program_.directives.push_back({.verb = HalideVerb::store, .func = f, .at = store});
        program_.directives.push_back({.verb = HalideVerb::compute, .func = f, .at = compute});
        if (fold > 0) {
            HalideDirective directive{HalideVerb::fold, f, -1, {folded}, fold};
            const Loop loop =
                nest(levels.slide_loop->nest).loops[static_cast<size_t>(levels.slide_loop->loop)];
            const std::string tile = nest(levels.slide_loop->nest).layer + "_" + to_text(loop);
            for (const HalideParameter& known : program_.parameters) {
                if (known.name == tile) directive.parameter = tile;
            }
            directive.scale = levels.scale;
            program_.directives.push_back(directive);
        }
    }

    void place_buffers() {
        const BufferShapes shapes = buffer_shapes(group_, problems_);
        for (size_t t = 0; t < tensor_func_.size(); ++t) {
            const HalideLevels& levels = placement_.tensors()[t];
            std::string folded;
            int64_t fold = 0;  // where Halide does something else, it chooses
            if (levels.slides && !levels.exclusion &&
                (!levels.merged_loop || is_one_loop(*levels.merged_loop, *levels.slide_loop))) {
                const auto axis = static_cast<size_t>(*levels.slides);
                folded = std::string(1, "zyx"[axis]);
                fold = shapes.tensors[t].extent[axis];
            }
            place(tensor_func_[t], levels, folded, fold);
        }
        for (int k = 0; k <= sink(); ++k) {
            const auto& levels = placement_.weights()[static_cast<size_t>(k)];
            if (levels) place(weights_func_[static_cast<size_t>(k)], *levels, "", 0);
        }
        const Level y = nest(sink()).y.store;
        place(layer_func_.back(), {y, y, y, {}, {}, {}, 1, {}}, "", 0);
    }

    /// Vectors along columns, whole kernel rows at once, and threads over the outermost loop where
    /// nothing is kept from one trip to the next.
    void make_fast() {
        const auto add = [&](HalideVerb verb, int f, int stage, const std::string& var) {
            program_.fast_directives.push_back({verb, f, stage, {var}});
        };
        const std::vector<KeptLoop> outer = kept_loops(sink(), 0, output_level() + 1, false);
        const bool slides =
            std::any_of(placement_.tensors().begin(), placement_.tensors().end(),
                        [&](const HalideLevels& levels) {
                            return levels.slide_loop ==
                                   Level{sink(), outer.empty() ? -1 : outer.front().position};
                        });
        if (!outer.empty() && outer.front().loop.dim != Dim::i && !slides)
            add(HalideVerb::parallel, output_, visits() > 1 ? 0 : -1, to_text(outer.front().loop));
        if (const std::string x = innermost_loop(sink(), Dim::x, outer, output_level() + 1);
            !x.empty())
            add(HalideVerb::vectorize, output_, visits() > 1 ? 0 : -1, x);
        for (int k = sink(); k >= 0; --k) {
            const int f = layer_func_[static_cast<size_t>(k)];
            const HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
            const int first = k == sink() ? output_level() + 1 : 0;
            const std::vector<KeptLoop> kept = kept_loops(
                k, first, static_cast<int>(nest(k).loops.size()), func.reduction.size() > 2);
            const std::string x =
                innermost_loop(k, Dim::x, kept, static_cast<int>(nest(k).loops.size()));
            const bool is_wide =
                placement_.covered(k, Dim::x, k == sink() ? nest(k).y.store : Level{k, -1}) >=
                least_columns;
            const int update = func.reduction.empty() ? -1 : 0;
            if (update == 0 && is_wide) add(HalideVerb::vectorize, f, -1, "x");
            if (update == 0 && !x.empty()) unroll_channels(k, f, kept);
            if (!x.empty()) add(HalideVerb::vectorize, f, update, x);
            if (update == 0) {
                add(HalideVerb::unroll, f, 0, func.domain() + ".x");
                add(HalideVerb::unroll, f, 0, func.domain() + ".y");
            }
            if (func.definitions.size() > 2 && is_wide) add(HalideVerb::vectorize, f, 1, "x");
        }
        for (size_t t = 0; t < tensor_func_.size() && placement_.group_tensors()[t].is_external();
             ++t)
            add(HalideVerb::vectorize, tensor_func_[t], -1, "x");
    }
    static constexpr int64_t least_columns = 8;

    /// A stage's innermost loop over a dimension, where it is long enough and nothing is brought in
    /// inside of it; else empty.
    [[nodiscard]] std::string innermost_loop(int k, Dim d, const std::vector<KeptLoop>& kept,
                                             int end) const {
        const std::string dim(1, "zyx"[static_cast<size_t>(d)]);
        std::string var = dim;
        const int before = kept.empty() ? end - 1 : kept.front().position - 1;
        int64_t extent = placement_.covered(k, d, Level{k, before});
        for (const KeptLoop& l : kept) {
            if (l.loop.dim != d) continue;
            const int64_t step = nest(k).step(l.loop);
            var = step == 1 ? to_text(l.loop) : dim + "r";
            if (step == 1 && is_placed_between(k, l.position, end)) return "";
            if (step > 1) extent = std::min(extent, step);
        }
        const bool is_long = d == Dim::x ? extent >= least_columns : extent % channels_at_once == 0;
        return is_long ? var : "";
    }
    static constexpr int64_t channels_at_once = 4;

    /// Several output channels for each vector of the input: their sums do not wait for each other.
    void unroll_channels(int k, int f, const std::vector<KeptLoop>& kept) {
        const std::string z =
            innermost_loop(k, Dim::z, kept, static_cast<int>(nest(k).loops.size()));
        if (z.empty() || problem(k).groups > 1) return;
        for (const HalideDirective& d : program_.directives) {
            if (d.verb != HalideVerb::reorder || d.func != f || d.stage != 0) continue;
            std::vector<std::string> order = d.vars;
            order.insert(order.begin(), "zu");
            program_.fast_directives.push_back({.verb = HalideVerb::split,
                                                .func = f,
                                                .stage = 0,
                                                .vars = {z, z, "zu"},
                                                .factor = channels_at_once});
            program_.fast_directives.push_back(
                {.verb = HalideVerb::reorder, .func = f, .stage = 0, .vars = order});
            program_.fast_directives.push_back(
                {.verb = HalideVerb::unroll, .func = f, .stage = 0, .vars = {"zu"}});
            return;
        }
    }

    // ---- applying it

    [[nodiscard]] Halide::VarOrRVar variable(const std::string& name) const {
        const size_t dot = name.find('.');
        if (dot != std::string::npos)
            return Halide::RVar(name.substr(0, dot) + "$" + name.substr(dot + 1));
        if (name.front() == 'i' && name != "i") return Halide::RVar(name);
        return Var(name);
    }

    [[nodiscard]] Halide::LoopLevel loop_level(const HalideLoop& at) const {
        if (at.func < 0) return Halide::LoopLevel::root();
        return {program_.funcs[static_cast<size_t>(at.func)].func, variable(at.var)};
    }

    void apply(const HalideDirective& d) {
        Func& func = program_.funcs[static_cast<size_t>(d.func)].func;
        const auto var = [&](size_t n) { return variable(d.vars[n]); };
        std::vector<Halide::VarOrRVar> vars;
        for (size_t n = 0; n < d.vars.size(); ++n) vars.push_back(var(n));
        Halide::Stage stage = d.stage < 0 ? Halide::Stage(func) : func.update(d.stage);
        switch (d.verb) {
            case HalideVerb::split:
                stage.split(vars[0], vars[1], vars[2], number(d.factor),
                            Halide::TailStrategy::GuardWithIf);
                break;
            case HalideVerb::rename:
                stage.rename(vars[0], vars[1]);
                break;
            case HalideVerb::reorder:
                stage.reorder(vars);
                break;
            case HalideVerb::compute:
                func.compute_at(loop_level(d.at));
                break;
            case HalideVerb::store:
                func.store_at(loop_level(d.at));
                break;
            case HalideVerb::fold:
                func.fold_storage(Var(d.vars[0]), number(d.factor));
                break;
            case HalideVerb::bound:
                func.bound(Var(d.vars[0]), 0, number(d.factor));
                break;
            case HalideVerb::vectorize:
            case HalideVerb::unroll:
            case HalideVerb::parallel:
                break;
        }
    }
};

}  // namespace

HalideProgram halide_program(const Network& network, const GroupSchedule& group,
                             HalidePadding padding) {
    return Builder(network, group, padding).build();
}

std::vector<float> halide_constants(const Network& network, const GroupSchedule& group,
                                    const HalideInput& input) {
    const LayerProblem problem = group_problems(network, group).at(static_cast<size_t>(input.nest));
    const Layer& layer = network.layer(problem.layer);
    switch (input.values) {
        case HalideInput::Values::bias:
            return canonical_bias(layer, problem);
        case HalideInput::Values::slope:
            return canonical_slope(layer, problem);
        default:
            return canonical_weights(layer, problem);
    }
}

}  // namespace laminate
