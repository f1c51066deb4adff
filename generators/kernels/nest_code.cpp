#include "generators/kernels/nest_code.h"

#include "generators/ir/activations.h"
#include "generators/ir/packing.h"
#include "generators/kernels/ir_names.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

Expr RowRing::kept_row(const Expr& row) const {
    return expression(size.offset) + row % Expr(static_cast<int32_t>(at.parts->kept)) * row_elements();
}

Expr RowRing::row_begin(const Expr& row) const {
    if (!step) return (size.rotates ? row % rows() : row) * row_elements();
    // Windows that reach over what came in read a row of it and do not use it.
    const Expr incoming =
        step->block + Halide::clamp(row - step->first, 0, step->last) * row_elements();
    return at.parts->kept == 0 ? incoming
                               : Halide::select(row < step->first, kept_row(row), incoming);
}

Expr NestCode::output_index(const Expr& z, const Expr& y, const Expr& x) const {
    if (!is_sink()) return output->index(z, y, x);
    return (z * out(Dim::y) + y) * out(Dim::x) + x;
}

bool NestCode::has_all_inputs(const Ranges& range) const { return is_whole(range[3], p[Dim::i]); }

ParameterNames NestCode::parameters(int64_t block, bool aligned) const {
    const std::string prefix = unique_name(p.name);
    ParameterNames names;
    names.block = aligned ? block : 1;
    // A block may begin at any channel, so the last one runs over the last channel.
    const int64_t behind = aligned ? 0 : block - 1;
    const auto append = [&](const char* name, Packing::Source source, int64_t zeros) {
        return constants.append(
            prefix + name,
            {.layer = nest, .source = source, .block = names.block, .behind = zeros}, layer, p);
    };
    names.weights = append(".packed", Packing::Source::weights,
                           behind * p[Dim::i] * p.y().kernel * p.x().kernel);
    names.bias = append(".bias", Packing::Source::bias, behind);
    names.slope = append(".slope", Packing::Source::slope, behind);
    return names;
}

Expr NestCode::weight_index(const ParameterNames& names, const Expr& z_block, const Expr& n,
                            const Expr& i, const Expr& m) const {
    const Expr row = (z_block * size(p.y().kernel) + n) * size(p[Dim::i]) + i;
    return (row * size(p.x().kernel) + m) * size(names.block);
}

Expr NestCode::first_channel(const Expr& z) const {
    if (p.groups == 1) return 0;
    return z / size(p[Dim::z] / p.groups) * size(p[Dim::i]);
}

Stmt NestCode::with_row_starts(const Expr& first, int64_t count,
                               const std::function<Stmt(const RowStarts&)>& make) const {
    RowStarts starts(p.name + ".row_starts");
    constexpr int64_t most_in_sequence = 32;
    if (count > most_in_sequence) {
        const auto start = [&](const Expr& n) { return input().row_index(first + n); };
        return starts.around(count, start, make(starts));
    }
    for (int64_t n = 0; n < count; ++n) (void)starts(input().row_index(first + size(n)));
    return starts.around(make(starts));
}

Expr NestCode::starting_sum(const Ranges& range, const ParameterNames& names, const Expr& z,
                            const Expr& at, const Expr& predicate, const Expr& exists) const {
    const int64_t lanes = at.type().lanes();
    const Expr bias = per_channel(names.bias, z, lanes);
    if (has_all_inputs(range)) return bias;
    const Expr before = Load::make(
        Halide::Float(32, static_cast<int>(lanes)), output_array(), at, Halide::Buffer<>(),
        Halide::Parameter(Halide::Float(32), true, 1, "partial"),
        predicate.defined() ? predicate : const_true(static_cast<int>(lanes)), ModulusRemainder());
    return ir::choose(simplify(range[3].begin > 0 && exists), before, bias);
}

Expr NestCode::finished(const Ranges& range, const ParameterNames& names, const Expr& z,
                        const Expr& sum) const {
    const int64_t lanes = sum.type().lanes();
    const Expr slope =
        names.slope.empty() ? broadcast(Expr(0.0F), lanes) : per_channel(names.slope, z, lanes);
    const Expr value = ir::activate(layer.activation, sum, slope);
    if (has_all_inputs(range)) return value;
    return Halide::select(range[3].end >= size(p[Dim::i]), value, sum);
}

bool is_whole(const Interval& range, int64_t extent) {
    return is_const(range.begin, 0) && is_const(range.end, extent);
}

bool has_whole_blocks(const Interval& range, int64_t block, int64_t extent) {
    const auto is_multiple = [&](const Expr& e) { return is_const_zero(simplify(e % size(block))); };
    if (block == 1) return true;
    if (!is_multiple(range.begin)) return false;
    const Expr end = simplify(range.end);
    if (is_multiple(end) || is_const(end, extent)) return true;
    const auto* least = end.as<Min>();
    return least != nullptr && ((is_multiple(least->a) && is_const(least->b, extent)) ||
                                (is_multiple(least->b) && is_const(least->a, extent)));
}

Stmt let(const std::string& name, const Expr& value, const std::function<Stmt(Expr)>& make) {
    const Expr simple = simplify(value);
    if (is_const(simple) || simple.as<Variable>()) return make(simple);
    const std::string id = unique_name(name);
    return LetStmt::make(id, simple, make(Variable::make(simple.type(), id)));
}

Stmt over_channel_blocks(const LayerProblem& p, const Interval& all, int64_t channels, bool aligned,
                         const std::function<Stmt(Expr)>& make) {
    if (aligned) {
        const Interval blocks{simplify(all.begin / size(channels)),
                              simplify((all.end + size(channels - 1)) / size(channels))};
        return GroupLowering::for_each(p.name + ".z", blocks, make);
    }
    const Expr count = simplify((all.end - all.begin + size(channels - 1)) / size(channels));
    return GroupLowering::for_each(p.name + ".z", {0, count}, [&](const Expr& block) {
        return make(simplify(all.begin + block * size(channels)));
    });
}

Stmt for_taps(const std::string& name, int64_t count, int64_t together,
              const std::function<Stmt(Expr)>& make) {
    const auto in_sequence = [&](const Expr& first, int64_t taps) {
        std::vector<Stmt> all;
        for (int64_t tap = 0; tap < taps; ++tap) all.push_back(make(simplify(first + size(tap))));
        return ir::sequence(all);
    };
    if (count <= together) return in_sequence(0, count);
    const Stmt whole = GroupLowering::for_each(
        name, {0, size(count / together)},
        [&](const Expr& trip) { return in_sequence(trip * size(together), together); });
    const int64_t rest = count % together;
    return rest == 0 ? whole : ir::sequence({whole, in_sequence(size(count - rest), rest)});
}

Expr per_channel(const std::string& array, const Expr& channel, int64_t lanes) {
    const Expr value = ir::load(array, channel);
    return channel.type().is_scalar() ? broadcast(value, lanes) : value;
}

}  // namespace laminate
