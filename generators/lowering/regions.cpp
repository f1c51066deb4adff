#include "generators/lowering/regions.h"

#include <algorithm>

namespace laminate {

using namespace Halide::Internal;

namespace {

Expr constant(int64_t value) { return static_cast<int32_t>(value); }
Expr where(const Expr& condition, const Expr& value, const Expr& otherwise) {
    if (is_const_one(condition)) return value;
    return Halide::select(condition, value, otherwise);
}
/// `value`, unless nothing was done before.
Expr if_any(const Expr& done, const Expr& value) { return where(done > 0, value, 0); }
Expr clamped(const Expr& value, const Expr& extent) {
    return Halide::min(Halide::max(value, 0), extent);
}

}  // namespace

Expr is_non_empty(const Interval& interval) { return interval.begin < interval.end; }

Regions::Regions(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                 const std::vector<GroupTensor>& tensors, const GroupExtents& extents)
    : group_(group),
      problems_(problems),
      tensors_(tensors),
      extents_(extents),
      output_tensor_(problems.size(), -1),
      calls_(problems.size()),
      loops_(problems.size()) {
    for (size_t t = 0; t < tensors.size(); ++t) {
        placements_.push_back(placement_of(group, tensors[t]));
        if (!tensors[t].is_external())
            output_tensor_[index(tensors[t].producer)] = static_cast<int>(t);
    }
    for (size_t k = 0; k < problems.size(); ++k) {
        paths_.push_back(path(group, static_cast<int>(k)));
        loops_[k].assign(group.nests[k].loops.size(), {0, {0, 0}});
        for (const Dim d : all_dims) calls_[k][d] = {0, extents.out_expression(static_cast<int>(k), d)};
    }
}

void Regions::enter_body(Level level) { bodies_.push_back({level, {}, {}, {}}); }

Stmt Regions::leave_body(Stmt body) {
    const std::vector<Name>& names = bodies_.back().names;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
        if (name->value.defined()) {
            body = LetStmt::make(name->name, name->value, body);
        } else {
            body = Allocate::make(name->name, Halide::Int(32), Halide::MemoryType::Stack, {1},
                                  const_true(), Block::make(name->set_by, body));
        }
    }
    bodies_.pop_back();
    return body;
}

Expr Regions::named(const std::string& name, const Expr& value) {
    const Expr simple = simplify(value);
    if (bodies_.empty() || is_const(simple) || simple.as<Variable>() != nullptr) return simple;
    const std::string id = unique_name(name);
    bodies_.back().names.push_back({id, simple, {}});
    return Variable::make(simple.type(), id);
}

Interval Regions::covered(int k, Dim d, int last) const {
    for (int l = last; l >= 0; --l) {
        if (nest(k).loops[index(l)].dim == d) return loops_[index(k)][index(l)].part;
    }
    return calls_[index(k)][d];
}

bool Regions::is_grouped(int k) const { return problem(k).is_grouped(); }

Interval Regions::produced(int k, Dim d, Level level) {
    if (level.nest == k) return covered(k, d, level.loop);
    if (k == group_.sink()) return calls_[index(k)][d];
    return missing(output_tensor_[index(k)], d, level);
}

Expr Regions::is_called_along(int k, Dim d, Level level) {
    if (level.nest == k || k == group_.sink()) return const_true();
    const int t = output_tensor_[index(k)];
    const GroupTensor& tensor = tensors_[index(t)];
    const Expr called = is_non_empty(missing(t, d, level));
    return tensor.is_shared() ? called
                              : called && is_called_along(tensor.readers.front().nest, d, level);
}

Interval Regions::needed_by(const TensorReader& reader, Dim axis, Level level, bool clipped) {
    const int k = reader.nest;
    const LayerProblem& p = problem(k);
    if (p.repeats(reader.operand, axis)) return {0, 1};
    if (axis != Dim::z) return window(k, axis, produced(k, axis, level), clipped);
    if (p.operation == Operation::concat) {
        const LayerInput& input = p.inputs[index(reader.operand)];
        const Interval z = produced(k, Dim::z, level);
        const Expr first = constant(input.first_output_channel);
        const Expr channels = constant(input.channels);
        return {clamped(z.begin - first, channels), clamped(z.end - first, channels)};
    }
    if (is_grouped(k)) {
        const Interval z = produced(k, Dim::z, level);
        return {z.begin / constant(p[Dim::z] / p.groups) * constant(p[Dim::i]),
                group_end(k, z.end)};
    }
    return level.nest == k ? covered(k, Dim::i, level.loop) : Interval{0, constant(p[Dim::i])};
}

Interval Regions::needed(int t, Dim axis, Level level, bool clipped) {
    const GroupTensor& tensor = tensors_[index(t)];
    const TensorReader& first = tensor.readers.front();
    if (!tensor.is_shared()) return needed_by(first, axis, level, clipped);
    if (axis == Dim::z)
        return {0, constant(problem(first.nest).inputs[index(first.operand)].channels)};
    const Expr end_of_tensor = extents_.read_expression(first, axis);
    Interval hull;
    for (const TensorReader& reader : tensor.readers) {
        const Expr called = is_called_along(reader.nest, axis, level);
        Interval part = needed_by(reader, axis, level, clipped);
        part = {where(called, part.begin, end_of_tensor), where(called, part.end, 0)};
        hull = hull.begin.defined()
                   ? Interval{Halide::min(hull.begin, part.begin), Halide::max(hull.end, part.end)}
                   : part;
    }
    return hull;
}

Interval Regions::missing(int t, Dim axis, Level level) {
    for (const Body& body : bodies_) {
        if (!(body.level == level)) continue;
        if (const auto known = body.missing.find({t, axis}); known != body.missing.end())
            return known->second;
    }
    const GroupTensor& tensor = tensors_[index(t)];
    Interval part = needed(t, axis, level);
    const Level store = placement(t).store;
    Expr present = 0;
    for (const Level& v : lifetime_loops(tensor.readers.front().nest, store, level)) {
        if (indexes(t, axis, v)) present = Halide::max(present, needed_before(t, axis, v, store));
    }
    // A shared tensor has no gaps: once anything is there, it goes on from the frontier.
    part.begin = tensor.is_shared() ? where(present > 0, present, part.begin)
                                    : Halide::max(part.begin, present);
    if (bodies_.empty() || !(bodies_.back().level == level)) return part;
    if (needs_rehearsal(t, axis, level)) {
        part.end = named("needed.end", part.end);
        part.begin = rehearsed_begin(t, axis, level, named("present", present), part.end);
    }
    const std::string name =
        (tensor.is_external() ? "X" + std::to_string(t) : nest(tensor.producer).layer) + ".new." +
        "zyx"[index(axis)];
    part = {named(name + ".begin", part.begin), named(name + ".end", part.end)};
    bodies_.back().missing[{t, axis}] = part;
    return part;
}

Interval Regions::missing_weights(int k, Dim axis, Level level) {
    Interval part = level.nest == k  ? covered(k, axis, level.loop)
                    : axis == Dim::z ? produced(k, Dim::z, level)
                                     : Interval{0, constant(problem(k)[Dim::i])};
    const Level store = nest(k).w->store;
    for (const Level& v : lifetime_loops(k, store, level)) {
        if (v.nest == k ? loop(v).dim == axis : axis == Dim::z && indexes_output(k, Dim::z, v)) {
            part.begin = Halide::max(part.begin, done_before(k, axis, v, store));
        }
    }
    return part;
}

std::vector<Level> Regions::lifetime_loops(int k, Level store, Level level) const {
    std::vector<Level> inside;
    bool started = false;
    for (const Level& v : paths_[index(k)]) {
        if (started) inside.push_back(v);
        if (v == store) started = true;
        if (v == level) break;
    }
    return inside;
}

bool Regions::indexes_output(int k, Dim d, Level v) const {
    if (v.nest == k) return loop(v).dim == d;
    const int t = output_tensor_[index(k)];
    return t >= 0 && indexes(t, d, v);
}

bool Regions::indexes(int t, Dim axis, Level v) const {
    const std::vector<TensorReader>& readers = tensors_[index(t)].readers;
    if (axis != Dim::z) {
        return std::any_of(readers.begin(), readers.end(),
                           [&](const TensorReader& r) { return indexes_output(r.nest, axis, v); });
    }
    if (readers.size() > 1) return false;
    const int k = readers.front().nest;
    return is_grouped(k) ? indexes_output(k, Dim::z, v) : v.nest == k && loop(v).dim == Dim::i;
}

bool Regions::indexes(int t, Level v) const {
    return std::any_of(tensor_axes.begin(), tensor_axes.end(),
                       [&](Dim d) { return indexes(t, d, v); });
}

bool Regions::indexes_weights(int k, Level v) const {
    return indexes_output(k, Dim::z, v) || (v.nest == k && loop(v).dim == Dim::i);
}

bool Regions::skips(int t, Dim axis) const {
    const GroupTensor& tensor = tensors_[index(t)];
    if (tensor.is_shared() || axis == Dim::z) return false;
    const int reader = tensor.readers.front().nest;
    const AxisWindow& w = problem(reader).window[axis == Dim::y ? 0 : 1];
    if (!w.transposed && w.span() < w.stride) return true;
    return output_tensor(reader) >= 0 && skips(output_tensor(reader), axis);
}

bool Regions::needs_rehearsal(int t, Dim axis, Level level) const {
    if (level == placement(t).compute || !skips(t, axis)) return false;
    const int reader = tensors_[index(t)].readers.front().nest;
    if (output_tensor(reader) < 0) return false;
    const Level store = placement(t).store;
    const Level kept = placement(output_tensor(reader)).store;
    // Without recomputation the reader never returns.
    const bool returns =
        kept.nest == store.nest ? kept.loop > store.loop : encloses(group_, reader, store, kept);
    const auto repeats = [&](Level from, Level to) {
        const std::vector<Level> between = lifetime_loops(reader, from, to);
        return std::any_of(between.begin(), between.end(),
                           [&](Level v) { return indexes(t, axis, v); });
    };
    return returns && repeats(store, level) && repeats(level, placement(t).compute);
}

Expr Regions::rehearsed_begin(int t, Dim axis, Level level, const Expr& present, const Expr& none) {
    const auto calls = calls_;
    const auto loops = loops_;
    const std::vector<Level>& levels = paths_[index(tensors_[index(t)].readers.front().nest)];
    const auto position =
        static_cast<size_t>(std::find(levels.begin(), levels.end(), level) - levels.begin());
    const std::string found = unique_name("rehearsed");
    const Stmt nothing =
        Store::make(found, none, 0, Halide::Parameter(), const_true(), ModulusRemainder());
    const Stmt set_by = Block::make(nothing, rehearsal(t, axis, position, found, present, none));
    calls_ = calls;
    loops_ = loops;
    bodies_.back().names.push_back({found, {}, set_by});
    return Load::make(Halide::Int(32), found, 0, Halide::Buffer<>(), Halide::Parameter(),
                      const_true(), ModulusRemainder());
}

Stmt Regions::rehearsal(int t, Dim axis, size_t position, const std::string& found,
                        const Expr& present, const Expr& none) {
    const std::vector<Level>& levels = paths_[index(tensors_[index(t)].readers.front().nest)];
    const Level here = levels[position];
    if (here == placement(t).compute) {
        const Interval need = needed(t, axis, here);
        const Expr before = Load::make(Halide::Int(32), found, 0, Halide::Buffer<>(),
                                       Halide::Parameter(), const_true(), ModulusRemainder());
        const Expr is_first = need.begin < need.end && need.end > present && before == none;
        const Stmt store = Store::make(found, Halide::max(need.begin, present), 0,
                                       Halide::Parameter(), const_true(), ModulusRemainder());
        return IfThenElse::make(simplify(is_first), store);
    }
    const Level next = levels[position + 1];
    Expr is_called = const_true();
    if (next.loop == 0 && next.nest != group_.sink()) {
        const Interval call = missing(output_tensor(next.nest), axis, here);
        is_called = is_called_along(next.nest, axis, here);
        calls_[index(next.nest)][axis] = call;
    }
    const Interval whole = covered(next.nest, axis, next.loop - 1);
    Stmt inside;
    if (loop(next).dim != axis) {
        loops_[index(next.nest)][index(next.loop)] = {
            0, covered(next.nest, loop(next).dim, next.loop - 1)};
        enter_body(next);
        inside = leave_body(rehearsal(t, axis, position + 1, found, present, none));
    } else {
        const Nest& n = nest(next.nest);
        const Loop l = loop(next);
        const Expr step = expression(extents_.step(next.nest, l));
        const std::string name = unique_name("rehearsal." + n.layer + "." + to_text(l));
        const Expr trip = Variable::make(Halide::Int(32), name);
        const Expr begin = simplify(whole.begin + trip * step);
        loops_[index(next.nest)][index(next.loop)] = {
            trip, {begin, simplify(Halide::min(begin + step, whole.end))}};
        enter_body(next);
        inside = leave_body(rehearsal(t, axis, position + 1, found, present, none));
        const Expr trips =
            simplify((whole.end - whole.begin + (step - 1)) / step);
        inside = For::make(name, 0, trips, ForType::Serial, Halide::Partition::Never,
                           Halide::DeviceAPI::None, inside);
    }
    return is_const_one(is_called) ? inside : IfThenElse::make(simplify(is_called), inside);
}

Expr Regions::needed_before(int t, Dim axis, Level v, Level store) {
    Expr end = 0;
    for (const TensorReader& reader : tensors_[index(t)].readers) {
        const int k = reader.nest;
        const LayerProblem& p = problem(k);
        const Dim d = axis == Dim::z && !is_grouped(k) ? Dim::i : axis;
        const Expr done = done_before(k, d, v, store);
        Expr reach = done;
        if (p.repeats(reader.operand, axis)) {
            reach = if_any(done, 1);
        } else if (axis != Dim::z) {
            reach = if_any(done, window_end(k, axis, done, true));
        } else if (p.operation == Operation::concat) {
            const LayerInput& input = p.inputs[index(reader.operand)];
            reach = clamped(done - constant(input.first_output_channel),
                            constant(input.channels));
        } else if (d == Dim::z) {
            reach = if_any(done, group_end(k, done));
        }
        end = is_const_zero(end) ? reach : Halide::max(end, reach);
    }
    return end;
}

Expr Regions::done_before(int k, Dim d, Level v, Level store) {
    if (v.nest == k) {
        if (loop(v).dim != d) return 0;
        const LoopState& state = loops_[index(k)][index(v.loop)];
        return if_any(state.trip, state.part.begin);
    }
    const int t = output_tensor_[index(k)];
    if (d == Dim::i || t < 0 || !indexes(t, d, v)) return 0;
    const std::tuple<int, Dim, Level, Level> key{k, d, v, store};
    if (!bodies_.empty()) {
        if (const auto known = bodies_.back().done.find(key); known != bodies_.back().done.end())
            return known->second;
    }
    Expr end = needed_before(t, d, v, store);
    const std::vector<Level>& levels = paths_[index(tensors_[index(t)].readers.front().nest)];
    const auto position = [&](Level level) {
        return std::find(levels.begin(), levels.end(), level) - levels.begin();
    };
    // An output that is older than this lifetime may have been present from the start: then nothing
    // of it was computed.
    if (position(placement(t).store) < position(store))
        end = where(end > missing(t, d, store).begin, end, 0);
    if (bodies_.empty()) return end;
    return bodies_.back().done[key] = named(nest(k).layer + ".done." + "zyxi"[index(d)], end);
}

Expr Regions::group_end(int k, const Expr& z_end) const {
    const LayerProblem& p = problem(k);
    return ((z_end - 1) / constant(p[Dim::z] / p.groups) + 1) * constant(p[Dim::i]);
}

Interval Regions::window(int k, Dim axis, const Interval& out, bool clipped) const {
    const AxisWindow& w = problem(k).window[axis == Dim::y ? 0 : 1];
    if (w.is_sampled()) {
        const Expr from = (out.begin * constant(w.sampling.numerator) + constant(w.sampling.first)) /
                          constant(w.sampling.denominator);
        const Expr most = extents_.in_expression(k, axis) - constant(1 + w.sampling.whole_end);
        return {Halide::clamp(from, 0, most), window_end(k, axis, out.end, clipped)};
    }
    // Transposed: input q feeds outputs q*S - pad + n*dilation.
    const Expr first = w.transposed ? (out.begin + constant(w.pad_begin - w.span() + w.stride)) /
                                          constant(w.stride)
                                    : out.begin * constant(w.stride) - constant(w.pad_begin);
    return {clipped ? clamped(first, extents_.in_expression(k, axis)) : first,
            window_end(k, axis, out.end, clipped)};
}

Expr Regions::window_end(int k, Dim axis, const Expr& out_end, bool clipped) const {
    const AxisWindow& w = problem(k).window[axis == Dim::y ? 0 : 1];
    const Expr last = out_end - 1;
    if (w.is_sampled()) {
        const Expr at = (last * constant(w.sampling.numerator) + constant(w.sampling.last)) /
                        constant(w.sampling.denominator);
        return Halide::clamp(at, constant(w.sampling.whole_begin),
                             extents_.in_expression(k, axis) - 1) +
               1;
    }
    const Expr end = w.transposed ? (last + constant(w.pad_begin)) / constant(w.stride) + 1
                                  : last * constant(w.stride) + constant(w.span() - w.pad_begin);
    return clipped ? clamped(end, extents_.in_expression(k, axis)) : end;
}

}  // namespace laminate
