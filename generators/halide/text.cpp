#include "generators/halide/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// How tightly C++ binds.
enum class Binding { select, either, both, compare, sum, product, value };

class ExprText {
public:
    explicit ExprText(const HalideProgram& program) {
        for (const HalideFunc& func : program.funcs) names_[func.name()] = func.identifier;
        for (const HalideInput& input : program.inputs)
            names_[Halide::Func(input.param).name()] = input.param.name();
    }

    /// `locals` are printed by their names, except as a whole.
    std::string operator()(const Expr& e,
                           const std::vector<std::pair<std::string, Expr>>& locals = {}) {
        locals_ = &locals;
        return text(e, Binding::select, true);
    }

private:
    std::string text(const Expr& e, Binding around, bool is_whole = false) {
        if (!is_whole) {
            for (const auto& [name, value] : *locals_) {
                if (e.same_as(value)) return name;
            }
        }
        if (const auto* v = e.as<Variable>()) return variable(v->name);
        if (const auto* v = e.as<IntImm>()) return std::to_string(v->value);
        if (const auto* v = e.as<FloatImm>()) return number(v->value);
        if (const auto* v = e.as<Max>()) {
            if (const auto* m = v->a.as<Min>()) return call("clamp", {m->a, v->b, m->b});
            return call("max", {v->a, v->b});
        }
        if (const auto* v = e.as<Min>()) return call("min", {v->a, v->b});
        if (const auto* v = e.as<Add>()) return binary(*v, " + ", Binding::sum, around);
        if (const auto* v = e.as<Sub>()) return binary(*v, " - ", Binding::sum, around);
        if (const auto* v = e.as<Mul>()) return binary(*v, " * ", Binding::product, around);
        if (const auto* v = e.as<Div>()) return binary(*v, " / ", Binding::product, around);
        if (const auto* v = e.as<Mod>()) return binary(*v, " % ", Binding::product, around);
        if (const auto* v = e.as<LT>()) return binary(*v, " < ", Binding::compare, around);
        if (const auto* v = e.as<LE>()) return binary(*v, " <= ", Binding::compare, around);
        if (const auto* v = e.as<GT>()) return binary(*v, " > ", Binding::compare, around);
        if (const auto* v = e.as<GE>()) return binary(*v, " >= ", Binding::compare, around);
        if (const auto* v = e.as<EQ>()) {
            const auto* quotient = v->a.as<Div>();
            if (quotient && is_const_zero(v->b)) return call("within", {quotient->a, quotient->b});
            return binary(*v, " == ", Binding::compare, around);
        }
        if (const auto* v = e.as<And>()) return binary(*v, " && ", Binding::both, around);
        if (const auto* v = e.as<Select>())
            return call("select", {v->condition, v->true_value, v->false_value});
        if (const auto* v = e.as<Cast>())
            return "cast<" + std::string(v->type.is_float() ? "float" : "int") + ">(" +
                   text(v->value, Binding::select) + ")";
        if (const auto* v = e.as<Call>()) {
            if (v->is_intrinsic(Call::if_then_else)) return call("lazily", v->args);
            if (v->is_intrinsic(Call::likely)) return call("likely", v->args);
            if (v->is_intrinsic(Call::undef)) return "undef<float>()";
            if (v->is_intrinsic(Call::abs)) return call("abs", v->args);
            if (const auto name = names_.find(v->name); name != names_.end())
                return call(name->second, v->args);
            if (v->name.ends_with("_f32"))
                return call(v->name.substr(0, v->name.size() - 4), v->args);
        }
        std::ostringstream unknown;
        unknown << e;
        throw std::logic_error("expression that has no text: " + unknown.str());
    }

    template <class Node>
    std::string binary(const Node& node, const char* sign, Binding binding, Binding around) {
        // What stands on the right of a minus or a quotient keeps its parentheses.
        const auto tighter = static_cast<Binding>(static_cast<int>(binding) + 1);
        const std::string both = text(node.a, binding) + sign + text(node.b, tighter);
        return around > binding ? "(" + both + ")" : both;
    }

    std::string call(const std::string& name, const std::vector<Expr>& args) {
        std::string all;
        for (const Expr& arg : args) all += (all.empty() ? "" : ", ") + text(arg, Binding::select);
        return name + "(" + all + ")";
    }

    static std::string variable(const std::string& name) {
        const size_t dot = name.find('$');
        return dot == std::string::npos ? name : name.substr(0, dot) + "." + name.substr(dot + 1);
    }

    static std::string number(double value) {
        if (std::isinf(value)) return value < 0 ? "Float(32).min()" : "Float(32).max()";
        std::string digits = fmt::format("{}", static_cast<float>(value));
        if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
        return digits + "f";
    }

    std::map<std::string, std::string> names_;
    const std::vector<std::pair<std::string, Expr>>* locals_ = nullptr;
};

bool is_reduction(const std::string& var) {
    return var.find('.') != std::string::npos || (var.front() == 'i' && var != "i");
}

class Printer {
public:
    explicit Printer(const HalideGenerator& generator)
        : program_(generator.program),
          name_(generator.name),
          comment_(generator.comment),
          expr_(generator.program) {}

    std::string print() {
        std::string class_name = name_;
        class_name.front() =
            static_cast<char>(std::toupper(static_cast<unsigned char>(class_name.front())));
        class_name += "Generator";  // Halide has classes of its own: Text, Pipeline, Target, ...
        for (const std::string& line : comment_) out(0, line.empty() ? "//" : "// " + line);
        out(0, fmt::format("class {0} : public Generator<{0}> {{\npublic:", class_name));
        interface();
        out(0, "");
        generate();
        out(0, "");
        schedule();
        out(0, "\nprivate:");
        members();
        out(0, "};\n");
        out(0, fmt::format("HALIDE_REGISTER_GENERATOR({}, {})", class_name, name_));
        return text_;
    }

private:
    void out(int depth, const std::string& line) {
        text_ += std::string(line.empty() ? 0 : 4 * static_cast<size_t>(depth), ' ') + line + "\n";
    }

    [[nodiscard]] const HalideFunc& func(int f) const {
        return program_.funcs[static_cast<size_t>(f)];
    }

    static std::string product(const std::vector<int64_t>& extents) {
        return fmt::format("{}", fmt::join(extents, " x "));
    }

    void interface() {
        for (const HalideParameter& p : program_.parameters)
            out(1, fmt::format("GeneratorParam<int> {0}{{\"{0}\", {1}}};", p.name, p.value));
        if (!program_.parameters.empty()) out(0, "");
        if (!program_.fast_directives.empty()) {
            out(1,
                "/// 0: one element at a time, in the schedule's order. Else floats of a vector.");
            out(1, "GeneratorParam<int> lanes{\"lanes\", 0};");
            if (is_parallel()) out(1, "GeneratorParam<bool> threads{\"threads\", false};");
            out(0, "");
        }
        for (const HalideInput& input : program_.inputs) {
            const std::string port = fmt::format("Input<Buffer<float, {0}>> {1}{{\"{1}\"}};",
                                                 input.extents.size(), input.param.name());
            const std::string axes = fmt::format("// {}: {}", input.axes, product(input.extents));
            if (port.size() + axes.size() > 94) out(1, axes);
            out(1, port.size() + axes.size() > 94 ? port : port + "  " + axes);
        }
        out(1, fmt::format("Output<Buffer<float, 3>> {0}{{\"{0}\"}};  // x, y, z: {1}",
                           program_.output().identifier, product(program_.output_extents)));
    }

    [[nodiscard]] bool is_parallel() const {
        return std::any_of(program_.fast_directives.begin(), program_.fast_directives.end(),
                           [](const HalideDirective& d) { return d.verb == HalideVerb::parallel; });
    }

    /// Long expressions continue on the next line, at a comma or a sign outside of the innermost
    /// parentheses if there is one.
    void statement(int depth, const std::string& text, bool is_continued = false) {
        const size_t width = 100 - 4 * static_cast<size_t>(depth);
        if (text.size() <= width) return out(depth, text);
        size_t cut = 0;
        int best = INT32_MAX;
        int open = 0;
        for (size_t at = 0; at < text.size() && at < width; ++at) {
            if (text[at] == '(' || text[at] == '{') ++open;
            if (text[at] == ')' || text[at] == '}') --open;
            if (text[at] != ' ' || at == 0) continue;
            const bool is_break = text[at - 1] == ',' || text[at - 1] == '=' ||
                                  text.compare(at, 3, " + ") == 0 ||
                                  text.compare(at, 4, " && ") == 0;
            if (is_break && open <= best) {
                best = open;
                cut = at;
            }
        }
        if (cut == 0) return out(depth, text);
        out(depth, text.substr(0, cut));
        statement(depth + (is_continued ? 0 : 1), text.substr(cut + 1), true);
    }

    void generate() {
        out(1, "void generate() {");
        for (const HalideFunc& f : program_.funcs) {
            if (f.condition.defined())
                statement(2, f.domain() + ".where(" + expr_(f.condition) + ");");
            std::string args;
            for (const Halide::Var& arg : f.args) args += (args.empty() ? "" : ", ") + arg.name();
            const std::string left = f.identifier + "(" + args + ")";
            for (const HalideDefinition& definition : f.definitions) {
                std::vector<std::pair<std::string, Expr>> known;
                for (const auto& local : definition.locals) {
                    statement(2, "Expr " + local.first + " = " + expr_(local.second, known) + ";");
                    known.push_back(local);
                }
                std::string value = expr_(definition.value, definition.locals);
                const std::string sum = left + " + ";
                const bool adds = value.starts_with(sum);
                if (adds) value.erase(0, sum.size());
                statement(2, left + (adds ? " += " : " = ") + value + ";");
            }
        }
        out(1, "}");
    }

    std::string method(const HalideDirective& d) const {
        std::string args;
        for (const std::string& v : d.vars) args += (args.empty() ? "" : ", ") + v;
        const int64_t rest = d.factor - d.scale * value_of(d.parameter);
        std::string factor = std::to_string(d.factor);
        if (!d.parameter.empty()) {
            factor = d.scale == 1 ? d.parameter : fmt::format("{} * {}", d.scale, d.parameter);
            if (d.verb == HalideVerb::fold && rest != 0)
                factor += fmt::format(" {} {}", rest < 0 ? "-" : "+", std::abs(rest));
        }
        const std::string at = d.at.func < 0 ? "" : func(d.at.func).identifier + ", " + d.at.var;
        switch (d.verb) {
            case HalideVerb::split:
                return "split(" + args + ", " + factor + ", TailStrategy::GuardWithIf)";
            case HalideVerb::rename:
                return "rename(" + args + ")";
            case HalideVerb::reorder:
                return "reorder(" + args + ")";
            case HalideVerb::compute:
                return at.empty() ? "compute_root()" : "compute_at(" + at + ")";
            case HalideVerb::store:
                return at.empty() ? "store_root()" : "store_at(" + at + ")";
            case HalideVerb::fold:
                return "fold_storage(" + args + ", " + factor + ")";
            case HalideVerb::bound:
                return fmt::format("bound({}, 0, {})", args, d.factor);
            case HalideVerb::vectorize:
                return "vectorize(" + args + ", lanes, TailStrategy::GuardWithIf)";
            case HalideVerb::unroll:
                return "unroll(" + args + ")";
            case HalideVerb::parallel:
                return "parallel(" + args + ")";
        }
        return "";
    }

    [[nodiscard]] int64_t value_of(const std::string& parameter) const {
        for (const HalideParameter& p : program_.parameters) {
            if (p.name == parameter) return p.value;
        }
        return 0;
    }

    /// Neighbours of one stage become one chain of calls.
    void chains(int depth, const std::vector<HalideDirective>& directives) {
        for (size_t n = 0; n < directives.size();) {
            const HalideDirective& first = directives[n];
            std::string head = func(first.func).identifier;
            if (first.stage >= 0)
                head += first.stage == 0 ? ".update()" : fmt::format(".update({})", first.stage);
            std::vector<std::string> calls;
            for (; n < directives.size() && directives[n].func == first.func &&
                   directives[n].stage == first.stage;
                 ++n)
                calls.push_back(method(directives[n]));
            const std::string line = fmt::format("{}.{};", head, fmt::join(calls, "."));
            if (line.size() + 4 * static_cast<size_t>(depth) <= 100) {
                out(depth, line);
                continue;
            }
            out(depth, head);
            for (size_t c = 0; c < calls.size(); ++c)
                statement(depth + 1, "." + calls[c] + (c + 1 == calls.size() ? ";" : ""));
        }
    }

    void schedule() {
        out(1, "void schedule() {");
        for (const HalideInput& input : program_.inputs)
            out(2, fmt::format("dense({}, {{{}}});", input.param.name(),
                               fmt::join(input.extents, ", ")));
        out(2, fmt::format("dense({}, {{{}}});", program_.output().identifier,
                           fmt::join(program_.output_extents, ", ")));
        out(0, "");
        chains(2, program_.directives);
        std::vector<HalideDirective> vectors, threads;
        for (const HalideDirective& d : program_.fast_directives)
            (d.verb == HalideVerb::parallel ? threads : vectors).push_back(d);
        if (!vectors.empty()) {
            out(0, "");
            out(2, "if (lanes > 0) {");
            chains(3, vectors);
            out(2, "}");
        }
        if (!threads.empty()) {
            out(2, "if (threads) {");
            chains(3, threads);
            out(2, "}");
        }
        out(1, "}");
    }

    void members() {
        std::set<std::string> vars, reductions;
        for (const HalideFunc& f : program_.funcs) {
            for (const Halide::Var& arg : f.args) vars.insert(arg.name());
        }
        for (const auto* directives : {&program_.directives, &program_.fast_directives}) {
            for (const HalideDirective& d : *directives) {
                for (const std::string& v : d.vars) {
                    if (v.find('.') == std::string::npos)
                        (is_reduction(v) ? reductions : vars).insert(v);
                }
            }
        }
        declare("Var", vars);
        declare("RVar", reductions);
        std::vector<std::string> funcs;
        for (const HalideFunc& f : program_.funcs) {
            if (&f != &program_.output()) funcs.push_back(f.identifier);
        }
        declare("Func", funcs);
        for (const HalideFunc& f : program_.funcs) {
            if (f.reduction.empty()) continue;
            std::vector<std::string> ranges;
            for (const int64_t extent : f.reduction)
                ranges.push_back("0, " + std::to_string(extent));
            out(1, fmt::format("RDom {}{{{}}};", f.domain(), fmt::join(ranges, ", ")));
        }
    }

    template <class Names>
    void declare(const std::string& type, const Names& names) {
        if (names.empty()) return;
        std::vector<std::string> declared;
        for (const std::string& name : names)
            declared.push_back(fmt::format("{0}{{\"{0}\"}}", name));
        statement(1, fmt::format("{} {};", type, fmt::join(declared, ", ")));
    }

    const HalideProgram& program_;
    const std::string& name_;
    const std::vector<std::string>& comment_;
    ExprText expr_;
    std::string text_;
};

}  // namespace

std::string halide_identifier(const std::string& name) {
    std::string identifier;
    for (const char c : name) {
        const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0;
        if (fits || (!identifier.empty() && identifier.back() != '_')) identifier += fits ? c : '_';
    }
    while (!identifier.empty() && identifier.back() == '_') identifier.pop_back();
    const bool begins =
        !identifier.empty() && std::isdigit(static_cast<unsigned char>(identifier.front())) == 0;
    return begins ? identifier : "n" + identifier;
}

std::string halide_generator_file(const std::vector<HalideGenerator>& generators,
                                  const std::vector<std::string>& comment) {
    std::string text;
    for (const std::string& line : comment) text += line.empty() ? "//\n" : "// " + line + "\n";
    text += R"(#include <Halide.h>

#include <vector>

using namespace Halide;

namespace {

/// Static bounds, without gaps between rows or planes.
template <class Port>
void dense(Port& port, const std::vector<int>& extents) {
    int stride = 1;
    for (size_t d = 0; d < extents.size(); stride *= extents[d++])
        port.dim(static_cast<int>(d)).set_bounds(0, extents[d]).set_stride(stride);
}

)";
    std::string classes;
    for (const HalideGenerator& generator : generators)
        classes += "\n" + Printer(generator).print();
    if (classes.find("within(") != std::string::npos) {
        text +=
            R"(/// Whether a coordinate is one of `extent`. Comparisons would put an edge into Halide's bounds
/// of what stands under the condition, and Halide slides windows along bounds without an edge.
Expr within(const Expr& coordinate, int extent) { return coordinate / extent == 0; }

)";
    }
    if (classes.find("lazily(") != std::string::npos) {
        text +=
            R"(/// A select that evaluates only the chosen side: the other one reads what it should not.
Expr lazily(Expr condition, Expr then, Expr otherwise) {
    using namespace Halide::Internal;
    return Call::make(then.type(), Call::if_then_else, {condition, then, otherwise},
                      Call::PureIntrinsic);
}

)";
    }
    text += "}  // namespace\n";
    return text + classes;
}

}  // namespace laminate
