#include "generators/ir/arrays.h"

#include "generators/ir/activations.h"
#include "generators/ir/code_parts.h"

#include <algorithm>

namespace laminate::ir {

using namespace Halide::Internal;
using Halide::Parameter;

namespace {

/// A parameter marks an array as somebody else's, which makes the code generator assume element
/// alignment only.
const Parameter& foreign() {
    static const Parameter parameter(Halide::Float(32), true, 1, "foreign");
    return parameter;
}

class WithoutNegativeIndices : public IRMutator {
    using IRMutator::visit;

    /// Lanes of constant indices below zero, which come first.
    static int negative_lanes(const Expr& index) {
        const auto* ramp = index.as<Ramp>();
        if (ramp == nullptr || !is_const_one(ramp->stride)) return 0;
        const auto base = as_const_int(ramp->base);
        return !base || *base >= 0 ? 0 : static_cast<int>(std::min<int64_t>(-*base, ramp->lanes));
    }
    static Expr behind(const Expr& vector, int lanes) {
        const int rest = vector.type().lanes() - lanes;
        if (is_const_one(vector)) return const_true(rest);
        return rest == 1 ? Shuffle::make_extract_element(vector, lanes)
                         : Shuffle::make_slice(vector, lanes, 1, rest);
    }

    Expr visit(const Load* load) override {
        const int lanes = negative_lanes(load->index);
        const int rest = load->type.lanes() - lanes;
        if (lanes == 0) return IRMutator::visit(load);
        const Expr zeros = make_zero(load->type.with_lanes(lanes));
        if (rest == 0) return zeros;
        return Shuffle::make_concat(
            {zeros, Load::make(load->type.with_lanes(rest), load->name, lanes_from(0, rest),
                               load->image, load->param, behind(load->predicate, lanes),
                               ModulusRemainder())});
    }
    Stmt visit(const Store* store) override {
        const int lanes = negative_lanes(store->index);
        const int rest = store->index.type().lanes() - lanes;
        if (lanes == 0) return IRMutator::visit(store);
        if (rest == 0) return Evaluate::make(0);
        return Store::make(store->name, behind(mutate(store->value), lanes), lanes_from(0, rest),
                           store->param, behind(store->predicate, lanes), ModulusRemainder());
    }
};

}  // namespace

Stmt without_negative_indices(const Stmt& body) { return WithoutNegativeIndices().mutate(body); }

Expr load(const std::string& array, const Expr& index, Alignment alignment, const Expr& predicate) {
    const int lanes = index.type().lanes();
    return Load::make(Halide::Float(32, lanes), array, index, Halide::Buffer<>(),
                      alignment == Alignment::element ? foreign() : Parameter(),
                      predicate.defined() ? predicate : const_true(lanes), ModulusRemainder());
}

Stmt store(const std::string& array, const Expr& value, const Expr& index, Alignment alignment,
           const Expr& predicate) {
    return Store::make(
        array, value, index, alignment == Alignment::element ? foreign() : Parameter(),
        predicate.defined() ? predicate : const_true(index.type().lanes()), ModulusRemainder());
}

// Halide's own intrinsic asks for lines without temporal locality, and Intel's processors keep these out of
// the second-level cache. LLVM's intrinsic, which Halide's runtime declares, takes address, purpose (0,
// to read), locality (3, into all caches) and kind (1, data).
Stmt prefetch(const std::string& array, const Expr& index) {
    const Expr base = Variable::make(Halide::type_of<float*>(), array);
    const Expr address = Halide::reinterpret<uint64_t>(base) +
                         Halide::reinterpret<uint64_t>(Halide::cast<int64_t>(index) *
                                                       Expr(int64_t{sizeof(float)}));
    return Evaluate::make(
        Call::make(Halide::Int(32), prefetch_function,
                   {Halide::reinterpret(Halide::Handle(), address), 0, 3, 1}, Call::Extern));
}

Expr choose(const Expr& condition, const Expr& then, const Expr& otherwise) {
    if (is_const_one(condition)) return then;
    return Call::make(then.type(), Call::if_then_else, {condition, then, otherwise},
                      Call::PureIntrinsic);
}

Expr lanes_from(const Expr& first, int64_t lanes, int64_t stride) {
    return lanes_from(first, lanes, size(stride));
}

Expr lanes_from(const Expr& first, int64_t lanes, const Expr& stride) {
    return lanes == 1 ? first : Ramp::make(first, stride, static_cast<int>(lanes));
}

// Left to Halide, overlapping strided loads become shuffles over which LLVM sits for minutes
// (depthwise layers of stride 2).
Expr strided_load(const std::string& array, const Expr& first, int64_t lanes, int64_t stride) {
    if (lanes == 1 || stride == 1 || stride > 4)
        return load(array, lanes_from(first, lanes, stride), Alignment::element);
    const Expr wide = load(array, lanes_from(first, lanes * stride), Alignment::element);
    return Shuffle::make_slice(wide, 0, static_cast<int>(stride), static_cast<int>(lanes));
}

Expr broadcast(const Expr& e, int64_t lanes) {
    return lanes == 1 ? e : Broadcast::make(e, static_cast<int>(lanes));
}

Stmt guarded(const Expr& condition, const Stmt& body) {
    const Expr simple = simplify(condition);
    return is_const_one(simple) ? body : IfThenElse::make(simple, body);
}

Stmt with_values(const std::string& name, const std::vector<Expr>& values,
                 const std::function<Stmt(const std::vector<Expr>&)>& make) {
    std::vector<Expr> names;
    for (const Expr& value : values)
        names.push_back(Variable::make(value.type(), unique_name(name)));
    Stmt body = make(names);
    for (size_t n = values.size(); n-- > 0;)
        body = LetStmt::make(names[n].as<Variable>()->name, values[n], body);
    return body;
}

Stmt with_pairs(const std::string& name, const std::vector<Expr>& left, const std::vector<Expr>& right,
                const std::function<Stmt(size_t left_number, size_t right_number,
                                         const Expr& of_left, const Expr& of_right)>& make) {
    const bool left_first = left.size() <= right.size();
    const std::vector<Expr>& others = left_first ? right : left;
    return with_values(name, left_first ? left : right, [&](const std::vector<Expr>& bound) {
        std::vector<Stmt> all;
        for (size_t o = 0; o < others.size(); ++o) {
            all.push_back(with_values(name, {others[o]}, [&](const std::vector<Expr>& other) {
                std::vector<Stmt> pairs;
                for (size_t b = 0; b < bound.size(); ++b)
                    pairs.push_back(left_first ? make(b, o, bound[b], other.front())
                                               : make(o, b, other.front(), bound[b]));
                return sequence(pairs);
            }));
        }
        return sequence(all);
    });
}

Expr Values::operator()(const Expr& value) {
    lets_.emplace_back(unique_name(prefix_), value);
    return Variable::make(value.type(), lets_.back().first);
}

Stmt Values::around(Stmt body) const {
    for (auto let = lets_.rbegin(); let != lets_.rend(); ++let)
        body = LetStmt::make(let->first, let->second, body);
    return body;
}

Integers::Integers(const std::string& prefix) : name_(unique_name(prefix)) {}

Expr Integers::of(const Expr& n) const {
    return Load::make(Halide::Int(32), name_, n, Halide::Buffer<>(), Parameter(), const_true(),
                      ModulusRemainder());
}

Stmt Integers::set(const Expr& n, const Expr& value) const {
    return Store::make(name_, value, n, Parameter(), const_true(), ModulusRemainder());
}

Expr Integers::operator()(const Expr& value) {
    values_.push_back(simplify(value));
    return of(size(std::ssize(values_) - 1));
}

Stmt Integers::around(const Stmt& body) const {
    if (values_.empty()) return body;
    std::vector<Stmt> parts;
    for (int64_t n = 0; n < std::ssize(values_); ++n)
        parts.push_back(set(size(n), values_[static_cast<size_t>(n)]));
    parts.push_back(as_kernel(name_, body));
    return allocated(std::ssize(values_), sequence(parts));
}

Stmt Integers::around(int64_t count, const std::function<Expr(const Expr&)>& value,
                      const Stmt& body) const {
    const std::string n = unique_name(name_ + ".n");
    const Expr at = Variable::make(Halide::Int(32), n);
    const Stmt found = For::make(n, 0, size(count), ForType::Serial, Halide::Partition::Never,
                                 Halide::DeviceAPI::None, set(at, simplify(value(at))));
    return allocated(count, sequence({found, as_kernel(name_, body)}));
}

Stmt Integers::allocated(int64_t count, const Stmt& body) const {
    return Allocate::make(name_, Halide::Int(32), Halide::MemoryType::Stack, {size(count)},
                          const_true(), body);
}

namespace {

/// How many channels an iteration of the loop over them takes: chains of a dozen channels are
/// faster with several (docs/performance.md), and the order of the sums stays.
int64_t channels_at_once(const Expr& channels, const SumShape& shape) {
    const auto known = as_const_int(channels);
    if (!known) return 1;
    // LLVM loads early for the next channels. Where sums and vectors leave one register of 16, that puts sums
    // on the stack (docs/performance.md, "Full tiles").
    constexpr int64_t registers = 16;
    const bool is_full = shape.lanes < elements_of_line &&
                         shape.vectors * shape.scalars + shape.vectors + 1 >= registers;
    for (const int64_t several : {4, 3, 2}) {
        if (*known % several == 0 && (several == 2 || !is_full)) return several;
    }
    return 1;
}

}  // namespace

Stmt sums_of_products(
    const std::string& name, const SumShape& shape, const std::vector<SumTerm>& terms,
    const std::function<Stmt(int64_t vector, int64_t scalar, const Expr& sum)>& store,
    const std::function<Expr(int64_t vector, int64_t scalar)>& start) {
    const auto& [lanes, vectors, scalars] = shape;
    const Accumulators sums{unique_name(name + ".sum"), lanes};
    std::vector<Stmt> parts;
    for (int64_t n = 0; n < vectors * scalars; ++n)
        parts.push_back(
            sums.set(n, start ? start(n % vectors, n / vectors) : broadcast(Expr(0.0F), lanes)));
    for (const SumTerm& term : terms) {
        const std::string channel = unique_name(name + ".i");
        const int64_t several = channels_at_once(term.channels, shape);
        std::vector<Stmt> of_channels;
        const Expr first = simplify(Variable::make(Halide::Int(32), channel) * size(several));
        if (term.ahead) of_channels.push_back(term.ahead(first, several));
        for (int64_t c = 0; c < several; ++c) {
            const Expr i = simplify(first + size(c));
            Values shared(name + ".vector");
            std::vector<Expr> loaded;
            for (int64_t v = 0; v < vectors; ++v) loaded.push_back(shared(term.vector_at(i, v)));
            std::vector<Stmt> uses;
            for (int64_t n = 0; n < scalars; ++n) {
                Values one(name + ".scalar");
                const Expr scalar = broadcast(one(term.scalar_at(i, n)), lanes);
                std::vector<Stmt> of_scalar;
                for (int64_t v = 0; v < vectors; ++v) {
                    const int64_t at = n * vectors + v;
                    of_scalar.push_back(
                        sums.set(at, sums.get(at) + loaded[static_cast<size_t>(v)] * scalar));
                }
                uses.push_back(one.around(sequence(of_scalar)));
            }
            of_channels.push_back(shared.around(sequence(uses)));
        }
        const Stmt loop =
            For::make(channel, 0, simplify(term.channels / size(several)), ForType::Serial,
                      Halide::Partition::Never, Halide::DeviceAPI::None, sequence(of_channels));
        parts.push_back(guarded(term.runs, loop));
    }
    for (int64_t n = 0; n < scalars; ++n) {
        for (int64_t v = 0; v < vectors; ++v)
            parts.push_back(store(v, n, sums.get(n * vectors + v)));
    }
    return sums.around(vectors * scalars, sequence(parts));
}

Stmt Accumulators::around(int64_t count, const Stmt& body) const {
    // Halide gives the place of an array that is done with to the next one of the same type, and
    // LLVM would keep half a vector in a whole one: so a single vector is of its own type.
    const Halide::Type type = Halide::Float(32, count == 1 ? static_cast<int>(lanes) : 1);
    return Allocate::make(name, type, Halide::MemoryType::Register,
                          {size(count == 1 ? 1 : count * lanes)}, const_true(), body);
}

Stmt sequence(const std::vector<Stmt>& parts) {
    Stmt all;
    for (const Stmt& part : parts) {
        if (part.defined()) all = all.defined() ? Block::make(all, part) : part;
    }
    return all.defined() ? all : Evaluate::make(0);
}

namespace {

Stmt with_address(const std::string& name, const std::string& block, const Expr& offset_bytes,
                  const Stmt& body) {
    const Expr base =
        Halide::reinterpret<uint64_t>(Variable::make(Halide::type_of<float*>(), block));
    return LetStmt::make(name, Halide::reinterpret(Halide::type_of<float*>(), base + offset_bytes),
                         body);
}

}  // namespace

Stmt with_array(const std::string& name, const std::string& array, int64_t offset,
                const Stmt& body) {
    return with_address(name, array, make_const(Halide::UInt(64), offset * 4), body);
}

Stmt with_array(const std::string& name, const std::string& array, const Expr& offset,
                const Stmt& body) {
    const Expr bytes = simplify(Halide::cast<uint64_t>(offset) * make_const(Halide::UInt(64), 4));
    return with_address(name, array, bytes, body);
}

Stmt with_pointer(const std::string& name, const std::string& pointers, int index,
                  const Stmt& body) {
    const Expr pointer = Load::make(Halide::type_of<float*>(), pointers, index, Halide::Buffer<>(),
                                    Parameter(), const_true(), ModulusRemainder());
    return LetStmt::make(name, pointer, body);
}

namespace {

/// NaN where either is NaN. Both are loaded: LLVM takes results of arithmetic for numbers.
Expr smaller_or_larger(Operation operation, const Expr& a, const Expr& b) {
    const Expr is_first = operation == Operation::minimum ? a < b : a > b;
    return Halide::strict_float(Halide::select(is_first || a != a, a, b));
}

}  // namespace

Expr combined(Operation operation, const Expr& value, const Expr& operand) {
    switch (operation) {
        case Operation::subtract:
            return value - operand;
        case Operation::multiply:
            return Halide::strict_float(value * operand);  // not joined with a sum behind it
        case Operation::divide:
            return value / operand;
        case Operation::minimum:
        case Operation::maximum:
            return smaller_or_larger(operation, value, operand);
        case Operation::power:
            return power(value, operand);
        case Operation::prelu:
            return Halide::strict_float(
                Halide::select(value < make_zero(value.type()), value * operand, value));
        case Operation::smallest_channel:
            return smaller_or_larger(Operation::minimum, value, operand);
        case Operation::largest_channel:
            return largest({value, operand});
        default:
            return value + operand;
    }
}

bool reaches_padding(const AxisWindow& w) {
    return w.pad_begin > 0 || (w.out - 1) * w.stride + w.span() - 1 - w.pad_begin >= w.in;
}

Expr averaged_elements(const Layer& layer, const LayerProblem& problem, const Expr& y,
                       const Expr& x) {
    const auto axis = [](const AxisWindow& w) {
        return AveragedAxis{reaches_padding(w), size(w.in)};
    };
    return averaged_elements(layer, problem, y, x, {axis(problem.y()), axis(problem.x())});
}

Expr averaged_elements(const Layer& layer, const LayerProblem& problem, const Expr& y,
                       const Expr& x, const std::array<AveragedAxis, 2>& axes) {
    const auto taps_inside = [&](const AxisWindow& w, const AveragedAxis& axis,
                                 const Expr& out) -> Expr {
        if (layer.count_include_pad || !axis.reaches_padding) return size(w.kernel);
        const Expr first =
            size(w.pad_begin) -
            out * size(w.stride);  // padding before the picture that this window covers
        const Expr begin = Halide::max(0, (first + size(w.dilation - 1)) / size(w.dilation));
        const Expr end =
            Halide::min(size(w.kernel), (first + (axis.in - 1)) / size(w.dilation) + 1);
        return end - begin;
    };
    return simplify(taps_inside(problem.y(), axes[0], y) * taps_inside(problem.x(), axes[1], x));
}

}  // namespace laminate::ir
