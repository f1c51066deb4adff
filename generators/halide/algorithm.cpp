#include "generators/halide/algorithm.h"

#include <algorithm>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "base/range.h"
#include "generators/ir/arrays.h"

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
    // clang-format off
    static const std::set<std::string> taken{
        "x", "y", "z", "m", "n", "i", "auto", "bool", "break", "case", "char", "class", "const",
        "delete", "default", "do", "double", "else", "enum", "float", "for", "goto", "if",
        "int", "long", "new", "operator", "return", "short", "static", "struct", "switch",
        "template", "this", "union", "void", "while", "select", "clamp", "max", "min", "abs", "exp",
        "tanh", "target", "lanes", "threads", "dense", "lazily", "likely", "cast", "undef",
        "Func", "Var", "RVar", "RDom", "Expr", "Input", "Output", "Buffer", "Float",
        "Generator", "GeneratorParam", "TailStrategy", "schedule", "generate", "within"};
    // clang-format on
    return taken.contains(name);
}

/// A letter and a number: Halide gives its own variables such names, and does not look whether an
/// input has one.
bool is_numbered_letter(const std::string& name) {
    return name.size() > 1 && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
           name.find_first_not_of("0123456789", 1) == std::string::npos;
}

/// Evaluates only the chosen side, so that the other one reads nothing.
Expr lazily(const Expr& condition, const Expr& then, const Expr& otherwise) {
    return ir::choose(condition, then, otherwise);
}

/// Whether a coordinate is one of `extent`. Halide takes the bounds of what stands under the
/// condition from comparisons, and what it needs here are bounds without an edge.
Expr within(const Expr& coordinate, int64_t extent) { return coordinate / number(extent) == 0; }

/// What a normal distribution has below x, as ir::activate() computes it.
Expr normal_probability(const Expr& x) {
    const Expr z = Halide::abs(x) * (1 / std::numbers::sqrt2_v<float>);
    const Expr t = 1.0F / (1.0F + 0.3275911F * z);
    const Expr series =
        t * (0.254829592F +
             t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F))));
    const Expr tail = 0.5F * series * Halide::exp(0.0F - z * z);
    return Halide::select(x < 0.0F, tail, 1.0F - tail);
}

/// The functions of one element that Halide has the parts of; undefined for others.
Expr unary(const Activation& a, const Expr& x) {
    switch (a.function) {
        case GeneralFunction::absolute:
            return Halide::abs(x);
        case GeneralFunction::negative:
            return -x;
        case GeneralFunction::exponential:
            return Halide::exp(x);
        case GeneralFunction::logarithm:
            return Halide::log(x);
        case GeneralFunction::square_root:
            return Halide::sqrt(x);
        case GeneralFunction::sine:
            return Halide::sin(x);
        case GeneralFunction::cosine:
            return Halide::cos(x);
        case GeneralFunction::tangent:
            return Halide::tan(x);
        case GeneralFunction::reciprocal:
            return 1.0F / x;
        case GeneralFunction::power:
            return Halide::pow(x, a.alpha);
        case GeneralFunction::floor:
            return Halide::floor(x);
        case GeneralFunction::ceil:
            return Halide::ceil(x);
        case GeneralFunction::round_to_even:
            return Halide::round(x);
        case GeneralFunction::hard_sigmoid:
            return Halide::clamp(x * a.alpha + a.beta, 0.0F, 1.0F);
        case GeneralFunction::hard_swish:
            return x * Halide::clamp(x * (1.0F / 6) + 0.5F, 0.0F, 1.0F);
        case GeneralFunction::swish:
            return x / (1.0F + Halide::exp(x * -a.alpha));
        case GeneralFunction::gelu:
            return x * normal_probability(x);
        case GeneralFunction::gelu_tanh: {
            constexpr float slope = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
            return 0.5F * x * (1.0F + Halide::tanh(slope * x * (1.0F + 0.044715F * x * x)));
        }
        default:
            return {};
    }
}

Expr coordinate(const Expr& out, const Expr& tap, const AxisWindow& w) {
    return plus(times(out, w.stride) + times(tap, w.dilation), -w.pad_begin);
}

}  // namespace

std::string HalideNames::identifier(const std::string& wanted) {
    std::string name;
    for (const char c : wanted) {
        const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
        name += fits ? c : '_';
    }
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
        name = "t" + name;
    // Halide keeps names with two underscores for itself, and so does C++.
    for (size_t at; (at = name.find("__")) != std::string::npos;) name.erase(at, 1);
    while (is_taken(name) || is_numbered_letter(name) || used_.contains(name)) name += "_";
    used_.insert(name);
    return name;
}

HalideInput& HalideAlgorithm::add_input(const std::string& name,
                                        const std::vector<int64_t>& extents,
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

int HalideAlgorithm::add_func(const std::string& wanted, const std::vector<Var>& args,
                              std::optional<CodeArray> buffer) {
    const std::string name = names_.identifier(wanted);
    HalideFunc f{name, Func(name), args, {}, {}, {}, std::move(buffer)};
    if (f.buffer) f.buffer->name = f.name();
    program_.funcs.push_back(std::move(f));
    return static_cast<int>(program_.funcs.size()) - 1;
}

void HalideAlgorithm::declare_inputs() {
    const std::vector<GroupTensor>& tensors = placement_.group_tensors();
    tensor_func_.resize(tensors.size(), -1);
    std::vector<Halide::ImageParam> arrays;
    for (size_t t = 0; t < tensors.size() && tensors[t].is_external(); ++t) {
        const LayerProblem& p = problem(tensors[t].readers.front().nest);
        const auto [channels, rows, columns] = p.operand_extents(tensors[t].readers.front().operand);
        HalideInput& input = add_input(tensors[t].name, {columns, rows, channels}, "x, y, z");
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
        const Expr inside = is_read(static_cast<int>(t));
        const Expr value = arrays[t](x, y, z_);
        define(tensor_func_[t], {{}, inside.defined() ? lazily(inside, value, 0.0F) : value});
    }
}

bool HalideAlgorithm::overestimates_bounds() const {
    const auto& strip = nest(sink()).strip;
    if (strip[0] > 0 || strip[1] > 0) return true;
    return std::any_of(problems_.begin(), problems_.end(), [](const LayerProblem& p) {
        return std::any_of(p.window.begin(), p.window.end(), [](const AxisWindow& w) {
            return w.stride > 1 || w.pad_begin > 0 || passes_end(w);
        });
    });
}

void HalideAlgorithm::declare_constants(int k) {
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

bool HalideAlgorithm::is_clamped(int t, Dim axis) const {
    const std::vector<TensorReader>& readers =
        placement_.group_tensors()[static_cast<size_t>(t)].readers;
    return !placement_.is_extended(t, axis) &&
           std::any_of(readers.begin(), readers.end(), [&](const TensorReader& r) {
               const AxisWindow w = operand_window(problem(r.nest), r.operand, axis);
               const int out = placement_.output_tensor(r.nest);
               return w.pad_begin > 0 || passes_end(w) ||
                      (w.stride > 0 && out >= 0 && placement_.overruns(out, axis));
           });
}

Expr HalideAlgorithm::is_read(int t) const {
    Expr inside;
    for (const auto& [axis, var] : {std::pair(Dim::y, y_), std::pair(Dim::x, x_)}) {
        if (!placement_.overruns(t, axis)) continue;
        const Expr along = within(var, placement_.read_end(t, axis));
        inside = inside.defined() ? inside && along : along;
    }
    return inside;
}

HalideAlgorithm::Tap HalideAlgorithm::tap(int k, int operand, const Expr& column, const Expr& row,
                                          const Expr& channel) {
    const LayerProblem& p = problem(k);
    const int tensor = tensor_read(k, operand);
    const Func& from =
        program_.funcs[static_cast<size_t>(tensor_func_[static_cast<size_t>(tensor)])].func;
    const auto kept = [&](const Expr& at, Dim axis, Expr& inside) {
        const AxisWindow w = operand_window(p, operand, axis);
        Expr condition;
        if (w.pad_begin > 0) condition = at >= 0;
        if (passes_end(w))
            condition = condition.defined() ? condition && at < number(w.in) : at < number(w.in);
        const bool clamps = is_clamped(tensor, axis);
        // Halide makes one comparison alone an edge of what is brought in.
        if (!clamps && (w.pad_begin > 0) != passes_end(w)) condition = within(at, w.in);
        if (condition.defined()) {
            if (!clamps && !is_opaque_) condition = Halide::likely(condition);
            inside = inside.defined() ? inside && condition : condition;
        }
        if (!clamps) return at;
        return Halide::clamp(is_opaque_ ? at : Halide::likely(at), 0,
                             number(placement_.read_end(TensorReader{k, operand}, axis) - 1));
    };
    Tap t;
    const Expr y = kept(row, Dim::y, t.inside);
    const Expr x = kept(column, Dim::x, t.inside);
    t.value = from(x, y, channel);
    return t;
}

int HalideAlgorithm::tensor_read(int k, int operand) const {
    const std::vector<GroupTensor>& tensors = placement_.group_tensors();
    for (size_t t = 0; t < tensors.size(); ++t) {
        for (const TensorReader& r : tensors[t].readers) {
            if (r.nest == k && r.operand == operand) return static_cast<int>(t);
        }
    }
    return -1;
}

void HalideAlgorithm::define_layer(int k) {
    const LayerProblem& p = problem(k);
    if (p.y().transposed || p.x().transposed) {
        throw InputError(p.name + ": transposed windows have no form as Halide Funcs here");
    }
    if (p.makes_blocks())
        throw InputError(p.name + ": blocks and channel shuffles have no form as Halide Funcs here");
    if (p.operation == Operation::normalise)
        throw InputError(p.name + ": normalisations have no form as Halide Funcs here");
    if (is_extreme_of_channels(p.operation))
        throw InputError(p.name + ": reductions of channels have no form as Halide Funcs here");
    if (p.operation == Operation::resample)
        throw InputError(p.name + ": padding and resizing have no form as Halide Funcs here");
    if (p.has_weights()) {
        const Var m("m"), n("n"), i("i");
        const int copy =
            add_func("w_" + p.name, {m, n, i, z_}, CodeArray{"", ArrayRole::weights_buffer, k});
        weights_func_[static_cast<size_t>(k)] = copy;
        define(copy, {{}, (*constants_[static_cast<size_t>(k)].weights)(m, n, i, z_)});
    }
    const bool is_partial = k == sink() && visits() > 1;
    const int f = add_func(
        p.name, is_partial ? std::vector<Var>{x_, y_, z_, visit_} : std::vector<Var>{x_, y_, z_},
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
        case Operation::subtract:
        case Operation::multiply:
        case Operation::divide:
        case Operation::minimum:
        case Operation::maximum:
        case Operation::power:
        case Operation::prelu:
        case Operation::pointwise:
            define(f, {{}, finished(k, elementwise(k))});
            break;
        case Operation::rearrange:
        case Operation::resample:
        case Operation::normalise:
        case Operation::largest_channel:
        case Operation::smallest_channel:
            break;  // refused above
    }
}

void HalideAlgorithm::define_reduction(int k, int f) {
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
    if (const int out = placement_.output_tensor(k); out >= 0) {
        const Expr inside = is_read(out);
        if (inside.defined()) {
            func.condition = inside;
            r.where(inside);
        }
    }
    const bool is_maximum = p.operation == Operation::max_pool;
    const Expr nothing = is_maximum ? Expr(-std::numeric_limits<float>::infinity()) : Expr(0.0F);
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

Expr HalideAlgorithm::elementwise(int k) {
    const LayerProblem& p = problem(k);
    const auto operand = [&](size_t e, const Expr& channel) {
        const int n = static_cast<int>(e);
        const auto along = [&](Dim axis, const Expr& at) {
            return p.repeats(n, axis) ? Expr(0) : at;
        };
        return tap(k, n, along(Dim::x, coordinate(x_, 0, p.x())),
                   along(Dim::y, coordinate(y_, 0, p.y())), along(Dim::z, channel))
            .value;
    };
    const int64_t skipped = -p.inputs[0].first_output_channel;
    Expr first = skipped == 0 ? Expr(z_) : z_ + number(skipped);
    if (p.inputs.size() > 1 && p.operation == Operation::concat)
        first = Halide::min(z_, number(p.inputs[0].channels - 1));
    Expr value = operand(0, first);
    for (size_t e = 1; e < p.inputs.size(); ++e) {
        const LayerInput& input = p.inputs[e];
        if (p.operation == Operation::power) {
            value = Halide::pow(value, operand(e, z_));
        } else if (p.operation == Operation::prelu) {
            // A selection would read slopes only where they count.
            value = Halide::max(value, 0.0F) + Halide::min(value, 0.0F) * operand(e, z_);
        } else if (is_elementwise(p.operation)) {
            value = ir::combined(p.operation, value, operand(e, z_));
        } else {
            const Expr channel = Halide::clamp(z_ - number(input.first_output_channel), 0,
                                               number(input.channels - 1));
            value =
                Halide::select(z_ < number(input.first_output_channel), value, operand(e, channel));
        }
    }
    return value;
}

Expr HalideAlgorithm::finished(int k, const Expr& sum) {
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
            return Halide::select(value < 0.0F,
                                  value * (*constants_[static_cast<size_t>(k)].slope)(z_), value);
        case ActivationKind::clip:
            return Halide::clamp(value, a.low, a.high);
        case ActivationKind::sigmoid:
            return 1.0F / (1.0F + Halide::exp(-value));
        case ActivationKind::tanh:
            return Halide::tanh(value);
        case ActivationKind::unary:
            if (const Expr all = unary(a, value); all.defined()) return all;
            break;
    }
    throw InputError(p.name + ": activation " + activation_text(a) +
                     " has no form as Halide Funcs here");
}

void HalideAlgorithm::define_output() {
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

void HalideAlgorithm::define_partial_sums(int f) {
    HalideFunc& out = program_.funcs.back();
    define(output_, {{}, Halide::undef<float>()});
    out.reduction = {visits()};
    const Halide::RDom v(0, number(visits()), out.domain());
    const std::optional<Halide::ImageParam>& bias = constants_.back().bias;
    const Expr before = lazily(v.x == 0, bias ? Expr((*bias)(z_)) : Expr(0.0F), itself(output_));
    const Expr sum = before + program_.funcs[static_cast<size_t>(f)].func(x_, y_, z_, v.x);
    const Expr value = finished(sink(), sum);
    define(output_,
           {{}, value.same_as(sum) ? sum : lazily(v.x == number(visits() - 1), value, sum)});
}

int64_t HalideAlgorithm::channels_of_a_visit() const {
    const Nest& n = nest(sink());
    int64_t channels = problem(sink())[Dim::i];
    for (int l = 0; l <= output_level(); ++l) {
        const Loop loop = n.loops[static_cast<size_t>(l)];
        if (loop.dim == Dim::i) channels = std::min(channels, n.step(loop));
    }
    return channels;
}

}  // namespace laminate
