#include "scheduler/halide/group_lowering.h"

#include <functional>

namespace laminate {

using namespace Halide::Internal;

namespace {

Expr variable(const std::string& name) { return Variable::make(Halide::Int(32), name); }
Expr non_empty(const Interval<Expr>& interval) { return interval.begin < interval.end; }

Expr noted_trip(const std::string& array, int loop) {
    return Load::make(Halide::Int(32), array, loop, Halide::Buffer<>(), Halide::Parameter(), const_true(), ModulusRemainder());
}

Stmt if_then(const Expr& condition, const Stmt& then) {
    if (!then.defined()) return then;
    return is_const_one(condition) ? then : IfThenElse::make(condition, then);
}

Stmt sequence(const std::vector<Stmt>& parts) {
    Stmt all;
    for (const Stmt& part : parts) {
        if (part.defined()) all = all.defined() ? Block::make(all, part) : part;
    }
    return all.defined() ? all : Evaluate::make(0);
}

}  // namespace

GroupLowering::GroupLowering(const Network& network, const GroupSchedule& group)
    : network_(network), group_(group), problems_(group_problems(network, group)), regions_(group_, problems_) {
    for (int k = 0; k <= sink(); ++k) {
        input_idle_.push_back(idle_loops((k == 0 ? "X" : nest(k - 1).layer) + ".first", k, regions_.input_placement(k),
                                         [&](Level v) { return regions_.indexes_input(k, v); }));
        weights_idle_.push_back(idle_loops(nest(k).layer + ".W.first", k, *nest(k).w, [&](Level v) { return regions_.indexes_weights(k, v); }));
    }
}

Stmt GroupLowering::lower() { return body(Level{}); }

int64_t GroupLowering::strip_count() const {
    const Nest& last = nest(sink());
    if (last.loops.front().band != Band::strip) return 1;
    const Dim d = last.loops.front().dim;
    return ceil_div(problem(sink())[d], last.strip[static_cast<size_t>(d) - 1]);
}

bool GroupLowering::is_placed(Level level) const {
    for (const Nest& n : group_.nests) {
        const auto is_here = [&](const Placement& p) { return p.store == level || p.compute == level; };
        if (is_here(n.y) || (n.w && is_here(*n.w))) return true;
        for (const InputPlacement& x : n.x) {
            if (is_here(x.placement)) return true;
        }
    }
    return false;
}

bool GroupLowering::is_single_trip(Level level) const {
    const Nest& n = nest(level.nest);
    const Loop loop = n.loops[static_cast<size_t>(level.loop)];
    const auto d = static_cast<size_t>(loop.dim);
    const int64_t extent = problem(level.nest)[loop.dim];
    if (loop.band == Band::strip) return n.strip[d - 1] >= extent;
    return loop.band == Band::outer ? n.tile[d] >= extent : std::min(n.tile[d], extent) == 1;
}

Expr GroupLowering::bind(Lets& lets, const std::string& name, const Expr& value) {
    const Expr simple = simplify(value);
    if (is_const(simple) || simple.as<Variable>() != nullptr) return simple;
    const std::string id = unique(name);
    lets.emplace_back(id, simple);
    return Variable::make(simple.type(), id);
}

Interval<Expr> GroupLowering::bind(Lets& lets, const std::string& name, const Interval<Expr>& value) {
    return {bind(lets, name + ".begin", value.begin), bind(lets, name + ".end", value.end)};
}

GroupLowering::IdleLoops GroupLowering::idle_loops(const std::string& name, int user, const Placement& placement,
                                                   const std::function<bool(Level)>& indexed_by) const {
    IdleLoops idle{unique(name), user, placement.store, {}, {}};
    for (const Level& v : regions_.lifetime_loops(user, placement.store, placement.compute)) {
        if (!indexed_by(v) && !is_single_trip(v)) (v.nest == user ? idle.own : idle.around).push_back(v);
    }
    return idle;
}

Expr GroupLowering::is_first_need(const IdleLoops& idle, Level level) const {
    // Only loops around `level` have a trip yet; the others lie ahead in its body.
    const std::vector<Level> entered = regions_.lifetime_loops(idle.user, idle.store, level);
    const auto is_entered = [&](Level v) { return std::find(entered.begin(), entered.end(), v) != entered.end(); };
    Expr first = const_true();
    for (const Level& v : idle.own) {
        if (is_entered(v)) first = first && regions_.trip(v) == 0;
    }
    Expr same = const_true();
    for (size_t n = 0; n < idle.around.size(); ++n) {
        if (is_entered(idle.around[n])) same = same && noted_trip(idle.first_trip, static_cast<int>(n)) == regions_.trip(idle.around[n]);
    }
    if (!is_const_one(same)) first = first && (noted_trip(idle.first_trip, 0) < 0 || same);
    return simplify(first);
}

Stmt GroupLowering::note_first_need(const IdleLoops& idle, const Regions<Expr>& regions, const Stmt& then) {
    std::vector<Stmt> parts;
    for (size_t n = 0; n < idle.around.size(); ++n) {
        parts.push_back(Store::make(idle.first_trip, regions.trip(idle.around[n]), static_cast<int>(n), Halide::Parameter(), const_true(),
                                    ModulusRemainder()));
    }
    parts.push_back(then);
    return sequence(parts);
}

Stmt GroupLowering::with_first_trip(const IdleLoops& idle, const Stmt& body) {
    if (idle.around.empty()) return body;
    const Stmt none = Store::make(idle.first_trip, -1, 0, Halide::Parameter(), const_true(), ModulusRemainder());
    return Allocate::make(idle.first_trip, Halide::Int(32), Halide::MemoryType::Stack, {static_cast<int>(idle.around.size())}, const_true(),
                          Block::make(none, body));
}

Expr GroupLowering::is_called(int k, Level level) const {
    if (k == sink() || level.nest == k) return const_true();
    const int c = k + 1;
    Expr called = is_first_need(input_idle_[static_cast<size_t>(c)], level) && is_called(c, level);
    for (const Dim d : tensor_axes) called = called && non_empty(regions_.new_input(c, d, level));
    return simplify(called);
}

Stmt GroupLowering::body(Level level) {
    Lets lets;
    // Consumers first: what a producer has to bring depends on what its consumer brings in this body.
    std::vector<Box> calls(group_.nests.size());
    std::vector<Expr> called(group_.nests.size());
    for (int k = sink() - 1; k >= 0; --k) {
        if (nest(k).y.compute != level) continue;
        const auto n = static_cast<size_t>(k);
        for (const Dim d : tensor_axes) {
            const std::string name = nest(k).layer + ".new." + "zyx"[static_cast<size_t>(d)];
            calls[n][static_cast<size_t>(d)] = bind(lets, name, regions_.new_input(k + 1, d, level));
            regions_.bind(k + 1, d, level, calls[n][static_cast<size_t>(d)]);
        }
        called[n] = bind(lets, nest(k).layer + ".called", is_called(k, level));
    }

    std::vector<Stmt> parts;
    for (int k = 0; k <= sink(); ++k) {
        if (k == 0 && nest(k).x.front().placement.compute == level) {
            Box box;
            Expr active = is_called(k, level);
            for (const Dim d : tensor_axes) {
                const auto a = static_cast<size_t>(d);
                box[a] = bind(lets, std::string("X.new.") + "zyx"[a], regions_.new_input(k, d, level));
                active = active && non_empty(box[a]);
            }
            const IdleLoops& idle = input_idle_[0];
            parts.push_back(if_then(simplify(active && is_first_need(idle, level)), note_first_need(idle, regions_, copy_input(box))));
        }
        if (nest(k).w->compute == level) {
            const IdleLoops& idle = weights_idle_[static_cast<size_t>(k)];
            const Interval<Expr> z = bind(lets, nest(k).layer + ".W.z", regions_.new_weights(k, Dim::z, level));
            const Interval<Expr> i = bind(lets, nest(k).layer + ".W.i", regions_.new_weights(k, Dim::i, level));
            const Expr runs = is_called(k, level) && is_first_need(idle, level) && non_empty(z) && non_empty(i);
            parts.push_back(if_then(simplify(runs), note_first_need(idle, regions_, copy_weights(k, z, i))));
        }
        if (k != sink() && nest(k).y.compute == level) {
            const IdleLoops& idle = input_idle_[static_cast<size_t>(k) + 1];
            parts.push_back(if_then(called[static_cast<size_t>(k)], note_first_need(idle, regions_, call(k, calls[static_cast<size_t>(k)]))));
        }
    }

    Stmt rest = level.is_root() ? loops(sink(), 0) : loops(level.nest, level.loop + 1);
    if (nest(sink()).y.store == level) {
        Box box;
        for (const Dim d : tensor_axes) box[static_cast<size_t>(d)] = regions_.covered(sink(), d, level.is_root() ? -1 : level.loop);
        rest = sequence({begin_output(box), rest, end_output(box)});
    }
    parts.push_back(rest);

    Stmt all = sequence(parts);
    for (int k = sink(); k >= 0; --k) {
        const auto n = static_cast<size_t>(k);
        if (k != sink() && nest(k).y.store == level) all = with_first_trip(input_idle_[n + 1], all);
        if (nest(k).y.store == level) all = allocate_output(k, all);
        if (nest(k).w->store == level) all = allocate_weights(k, with_first_trip(weights_idle_[n], all));
        if (k == 0 && nest(k).x.front().placement.store == level) all = allocate_input(with_first_trip(input_idle_[n], all));
    }
    // Outermost, because a buffer's place may depend on the region that its lifetime covers.
    for (auto let = lets.rbegin(); let != lets.rend(); ++let) all = LetStmt::make(let->first, let->second, all);
    return all;
}

Stmt GroupLowering::call(int k, const Box& box) {
    for (const Dim d : tensor_axes) regions_.set_call(k, d, box[static_cast<size_t>(d)]);
    return sequence({begin_call(k, box), loops(k, 0), end_call(k, box)});
}

Stmt GroupLowering::loops(int k, int first_loop) {
    const int count = static_cast<int>(nest(k).loops.size());
    bool placed = false;
    for (int l = first_loop; l < count; ++l) placed = placed || is_placed(Level{k, l});
    if (!placed) return innermost(k, first_loop);

    const Loop loop = nest(k).loops[static_cast<size_t>(first_loop)];
    const auto d = static_cast<size_t>(loop.dim);
    const Level level{k, first_loop};
    const auto step = static_cast<int32_t>(loop.band == Band::strip   ? nest(k).strip[d - 1]
                                           : loop.band == Band::outer ? nest(k).tile[d]
                                                                      : 1);
    const Interval<Expr> whole = regions_.covered(k, loop.dim, first_loop - 1);
    const std::string name = unique(nest(k).layer + "." + to_text(loop));
    const Expr index = variable(name);
    const bool is_strip_range = first_loop == 0 && loop.band == Band::strip;
    const Expr first = is_strip_range ? variable(argument::strip_begin) : Expr(0);
    const Expr trips = is_strip_range ? variable(argument::strip_end) - first : (whole.end - whole.begin + (step - 1)) / step;

    Lets lets;
    if (is_single_trip(level) && !is_strip_range) {
        regions_.set_loop(level, Expr(0), whole);
        return body(level);
    }
    const Expr begin = bind(lets, name + ".begin", whole.begin + index * step);
    const Expr end = step == 1 ? begin + 1 : bind(lets, name + ".end", Halide::min(begin + step, whole.end));
    regions_.set_loop(level, index - first, {begin, end});
    Stmt inside = body(level);
    for (auto let = lets.rbegin(); let != lets.rend(); ++let) inside = LetStmt::make(let->first, let->second, inside);
    return For::make(name, first, simplify(trips), ForType::Serial, Halide::Partition::Never, Halide::DeviceAPI::None, inside);
}

Stmt GroupLowering::for_each(const std::string& name, const Interval<Expr>& range, const std::function<Stmt(Expr)>& make) {
    const Expr extent = simplify(range.end - range.begin);
    if (is_const_one(extent)) return make(range.begin);
    const std::string id = unique(name);
    return For::make(id, range.begin, extent, ForType::Serial, Halide::Partition::Never, Halide::DeviceAPI::None, make(variable(id)));
}

}  // namespace laminate
