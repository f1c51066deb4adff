#include "generators/lowering/extents.h"

#include <array>
#include <string>

#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/window.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

std::string name_of(SizeVariable variable) { return std::string("size.") + to_string(variable); }

Expr number(int64_t value) { return static_cast<int32_t>(value); }

Expr expression_of(const SizeFormula::Atom& atom) {
    using Kind = SizeFormula::Atom::Kind;
    switch (atom.kind) {
        case Kind::variable:
            return Variable::make(Halide::Int(32), name_of(atom.variable));
        case Kind::quotient:
            return expression(atom.a) / number(atom.divisor);
        case Kind::least:
            return Halide::min(expression(atom.a), expression(atom.b));
        case Kind::most:
            return Halide::max(expression(atom.a), expression(atom.b));
        case Kind::product:
            return expression(atom.a) * expression(atom.b);
    }
    return {};
}

}  // namespace

Expr expression(const SizeFormula& formula) {
    Expr sum;
    for (const SizeFormula::Term& term : formula.terms()) {
        const Expr atom = expression_of(*term.atom);
        const Expr value = term.factor == 1 ? atom : atom * number(term.factor);
        sum = sum.defined() ? sum + value : value;
    }
    if (!sum.defined()) return number(formula.constant());
    return formula.constant() == 0 ? sum : sum + number(formula.constant());
}

Stmt with_sizes(int index, const Stmt& body) {
    Stmt all = body;
    for (int n = 0; n < size_variables; ++n) {
        const Expr value = Load::make(Halide::Int(32), argument::sizes, n, Halide::Buffer<>(),
                                      Halide::Parameter(), const_true(), ModulusRemainder());
        all = LetStmt::make(name_of(static_cast<SizeVariable>(n)), value, all);
    }
    const Expr sizes =
        Load::make(Halide::type_of<int32_t*>(), argument::inputs, index, Halide::Buffer<>(),
                   Halide::Parameter(), const_true(), ModulusRemainder());
    return LetStmt::make(argument::sizes, sizes, all);
}

GroupExtents::GroupExtents(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                           const TensorSizes* open)
    : group_(group), problems_(problems), open_(open) {}

SizeValues GroupExtents::reference() const {
    SizeValues size = open_ == nullptr ? SizeValues{} : open_->reference();
    const Nest& sink = group_.nests.back();
    size.strip_rows = sink.strip[0];
    size.strip_columns = sink.strip[1];
    return size;
}

SizeFormula GroupExtents::out(int nest, Dim d) const {
    const LayerProblem& p = problem(nest);
    return is_open(d) ? open_->extent(p.output, d) : SizeFormula(p[d]);
}

SizeFormula GroupExtents::in(int nest, Dim d) const {
    const LayerProblem& p = problem(nest);
    const bool is_pixel = p.inputs.front().is_pixel;
    return is_open(d) ? open_->extent(p.inputs[is_pixel ? 1 : 0].tensor, d)
                      : SizeFormula((d == Dim::y ? p.y() : p.x()).in);
}

SizeFormula GroupExtents::read(const TensorReader& reader, Dim d) const {
    return problem(reader.nest).repeats(reader.operand, d) ? SizeFormula(1) : in(reader.nest, d);
}

SizeFormula GroupExtents::step(int nest, Loop loop) const {
    const Nest& of = group_.nest(nest);
    if (!is_open(loop.dim)) return of.step(loop);
    if (loop.band == Band::strip)
        return loop.dim == Dim::y ? SizeVariable::strip_rows : SizeVariable::strip_columns;
    // A tile of the whole dimension is of the whole at every size.
    if (loop.band == Band::outer && of[loop.dim] == problem(nest)[loop.dim])
        return out(nest, loop.dim);
    return of.step(loop);
}

bool GroupExtents::is_single_trip(int nest, Loop loop) const {
    const Nest& of = group_.nest(nest);
    const int64_t extent = problem(nest)[loop.dim];
    if (!is_open(loop.dim) || out(nest, loop.dim).is_constant()) {
        if (loop.band != Band::inner) return of.step(loop) >= extent;
        return std::min(of[loop.dim], extent) == 1;
    }
    if (loop.band == Band::inner) return of[loop.dim] == 1;
    return loop.band == Band::outer && of[loop.dim] == extent;
}

bool GroupExtents::reaches_padding(int nest, Dim d) const {
    const AxisWindow& w = d == Dim::y ? problem(nest).y() : problem(nest).x();
    if (w.is_sampled()) return false;
    if (w.pad_begin > 0) return true;
    // What the last window reads beyond the last element.
    const SizeFormula beyond =
        (out(nest, d) - 1) * w.stride + (w.span() - w.pad_begin) - in(nest, d);
    return !beyond.is_constant() || beyond.constant() > 0;
}

}  // namespace laminate
