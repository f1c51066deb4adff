#include "generators/lowering/group_lowering.h"

#include <functional>

namespace laminate {

using namespace Halide::Internal;

namespace {

Expr variable(const std::string& name) { return Variable::make(Halide::Int(32), name); }

Expr noted_trip(const std::string& array, int loop) {
    return Load::make(Halide::Int(32), array, loop, Halide::Buffer<>(), Halide::Parameter(),
                      const_true(), ModulusRemainder());
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

GroupLowering::GroupLowering(const Network& network, const GroupSchedule& group, Events events,
                             const TensorSizes* open)
    : network_(network),
      group_(group),
      problems_(group_problems(network, group)),
      tensors_(group_tensors(problems_)),
      extents_(group_, problems_, open),
      regions_(group_, problems_, tensors_, extents_),
      events_(events) {
    for (const LayerProblem& p : problems_) operand_tensor_.emplace_back(p.inputs.size());
    for (int t = 0; t < std::ssize(tensors_); ++t) {
        const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
        for (const TensorReader& r : tensor.readers)
            operand_tensor_[static_cast<size_t>(r.nest)][static_cast<size_t>(r.operand)] = t;
        const std::string name =
            tensor.is_external() ? "X" + std::to_string(t) : nest(tensor.producer).layer;
        tensor_idle_.push_back(idle_loops(name + ".first", tensor.readers.front().nest,
                                          tensor.is_shared(), regions_.placement(t),
                                          [&](Level v) { return regions_.indexes(t, v); }));
    }
    for (int k = 0; k <= sink(); ++k) {
        const std::string name = nest(k).layer + ".W.first";
        weights_idle_.push_back(!nest(k).w ? IdleLoops{}
                                           : idle_loops(name, k, false, *nest(k).w, [&](Level v) {
                                                 return regions_.indexes_weights(k, v);
                                             }));
    }
}

Stmt GroupLowering::lower() { return body(Level{}); }

int64_t GroupLowering::strip_count() const {
    const Nest& last = nest(sink());
    if (last.loops.front().band != Band::strip) return 1;
    const Dim d = last.loops.front().dim;
    return ceil_div(problem(sink())[d], last.strip[static_cast<size_t>(d) - 1]);
}

bool GroupLowering::is_placed(Level level) const { return group_.is_placed(level); }

bool GroupLowering::is_placed_outside_kernels(Level level) const {
    for (int k = 0; k <= sink(); ++k) {
        const Nest& n = nest(k);
        for (const InputPlacement& x : n.x) {
            if (x.placement.store == level || x.placement.compute == level) return true;
        }
        if (k != sink() && (n.y.store == level || n.y.compute == level)) return true;
    }
    return level.nest == sink() && level.loop == 0 &&
           nest(sink()).loops.front().band == Band::strip;
}

bool GroupLowering::is_single_trip(Level level) const {
    return extents_.is_single_trip(level.nest, group_.loop(level));
}

GroupLowering::IdleLoops GroupLowering::idle_loops(
    const std::string& name, int user, bool is_shared, const Placement& placement,
    const std::function<bool(Level)>& indexed_by) const {
    IdleLoops idle{unique(name), user, placement.store, {}, {}};
    for (const Level& v : regions_.lifetime_loops(user, placement.store, placement.compute)) {
        if (!indexed_by(v) && !is_single_trip(v))
            (v.nest == user && !is_shared ? idle.own : idle.around).push_back(v);
    }
    return idle;
}

Expr GroupLowering::is_first_need(const IdleLoops& idle, Level level) const {
    // Only loops around `level` have a trip yet; the others lie ahead in its body.
    const std::vector<Level> entered = regions_.lifetime_loops(idle.user, idle.store, level);
    const auto is_entered = [&](Level v) {
        return std::find(entered.begin(), entered.end(), v) != entered.end();
    };
    Expr first = const_true();
    for (const Level& v : idle.own) {
        if (is_entered(v)) first = first && regions_.trip(v) == 0;
    }
    Expr same = const_true();
    for (size_t n = 0; n < idle.around.size(); ++n) {
        if (is_entered(idle.around[n]))
            same = same && noted_trip(idle.first_trip, static_cast<int>(n)) ==
                               regions_.trip(idle.around[n]);
    }
    if (!is_const_one(same)) first = first && (noted_trip(idle.first_trip, 0) < 0 || same);
    return simplify(first);
}

Stmt GroupLowering::note_first_need(const IdleLoops& idle, const Regions& regions,
                                    const Stmt& then) {
    std::vector<Stmt> parts;
    for (size_t n = 0; n < idle.around.size(); ++n) {
        parts.push_back(Store::make(idle.first_trip, regions.trip(idle.around[n]),
                                    static_cast<int>(n), Halide::Parameter(), const_true(),
                                    ModulusRemainder()));
    }
    parts.push_back(then);
    return sequence(parts);
}

Stmt GroupLowering::with_first_trip(const IdleLoops& idle, const Stmt& body) {
    if (idle.around.empty()) return body;
    const Stmt none =
        Store::make(idle.first_trip, -1, 0, Halide::Parameter(), const_true(), ModulusRemainder());
    return Allocate::make(idle.first_trip, Halide::Int(32), Halide::MemoryType::Stack,
                          {static_cast<int>(idle.around.size())}, const_true(),
                          Block::make(none, body));
}

Expr GroupLowering::is_called(int k, Level level) {
    if (k == sink() || level.nest == k) return const_true();
    return is_needed(output_tensor(k), level);
}

Expr GroupLowering::is_needed(int t, Level level) {
    const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
    Expr needed = is_first_need(tensor_idle_[static_cast<size_t>(t)], level);
    needed = needed && (tensor.is_shared() ? is_shared_needed_along_channels(tensor, level)
                                           : is_called(tensor.readers.front().nest, level));
    for (const Dim d : tensor_axes) needed = needed && is_non_empty(regions_.missing(t, d, level));
    return simplify(needed);
}

Expr GroupLowering::is_called_along_channels(int k, Level level) {
    if (k == sink() || level.nest == k) return const_true();
    const int t = output_tensor(k);
    const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
    const Expr first = is_first_need(tensor_idle_[static_cast<size_t>(t)], level);
    if (tensor.is_shared())
        return simplify(first && is_shared_needed_along_channels(tensor, level));
    return simplify(first && is_non_empty(regions_.missing(t, Dim::z, level)) &&
                    is_called_along_channels(tensor.readers.front().nest, level));
}

Expr GroupLowering::is_shared_needed_along_channels(const GroupTensor& tensor, Level level) {
    Expr any = const_false();
    for (const TensorReader& reader : tensor.readers) {
        Expr reads = is_called_along_channels(reader.nest, level);
        if (problem(reader.nest).operation == Operation::concat)
            reads = reads && is_non_empty(regions_.needed_by(reader, Dim::z, level));
        any = any || reads;
    }
    return simplify(any);
}

Stmt GroupLowering::body(Level level) {
    regions_.enter_body(level);
    // Consumers first: what a producer has to bring depends on what its consumers bring in this
    // body.
    std::vector<Box> boxes(tensors_.size());
    std::vector<Expr> needed(tensors_.size());
    for (int t = static_cast<int>(tensors_.size()) - 1; t >= 0; --t) {
        if (regions_.placement(t).compute != level) continue;
        const auto n = static_cast<size_t>(t);
        for (const Dim d : tensor_axes)
            boxes[n][static_cast<size_t>(d)] = regions_.missing(t, d, level);
        needed[n] = regions_.named((tensors_[n].is_external() ? "X" + std::to_string(t)
                                                              : nest(tensors_[n].producer).layer) +
                                       ".needed",
                                   is_needed(t, level));
    }

    std::vector<Stmt> parts;
    const auto bring = [&](int t, const Stmt& how) {
        const auto n = static_cast<size_t>(t);
        parts.push_back(if_then(needed[n], note_first_need(tensor_idle_[n], regions_, how)));
    };
    for (int k = 0; k <= sink(); ++k) {
        for (int t = 0; t < std::ssize(tensors_); ++t) {
            const auto n = static_cast<size_t>(t);
            if (tensors_[n].is_external() && tensors_[n].readers.front().nest == k &&
                needed[n].defined())
                bring(t, before(fetch_input(t, boxes[n]), copy_input(t, boxes[n])));
        }
        if (nest(k).w && nest(k).w->compute == level) parts.push_back(bring_weights(k, level));
        if (k != sink() && nest(k).y.compute == level)
            bring(output_tensor(k), call(k, boxes[static_cast<size_t>(output_tensor(k))]));
    }

    const Stmt rest = level.is_root() ? loops(sink(), 0) : loops(level.nest, level.loop + 1);
    parts.push_back(nest(sink()).y.store == level ? with_output(level, rest) : rest);

    Stmt all = sequence(parts);
    for (int k = sink(); k >= 0; --k) {
        const auto n = static_cast<size_t>(k);
        if (k == sink() && nest(k).y.store == level) {
            all = lifetime_of_output(k, all);
            if (!only_events_) all = allocate_output(k, all);
        }
        if (nest(k).w && nest(k).w->store == level) {
            all = lifetime_of_weights(k, with_first_trip(weights_idle_[n], all));
            if (!only_events_) all = allocate_weights(k, all);
        }
    }
    for (int t = static_cast<int>(tensors_.size()) - 1; t >= 0; --t) {
        if (regions_.placement(t).store != level) continue;
        const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
        all = with_first_trip(tensor_idle_[static_cast<size_t>(t)], all);
        all = tensor.is_external()
                  ? allocate_input(t, lifetime_of_input(t, all))
                  : allocate_output(tensor.producer, lifetime_of_output(tensor.producer, all));
    }
    // Outermost, because a buffer's place may depend on the region that its lifetime covers.
    return regions_.leave_body(around_body(level, all));
}

Stmt GroupLowering::kernel(int k, int first_loop) {
    const Stmt code = innermost(k, first_loop);
    if (events_ == Events::none) return code;
    only_events_ = true;
    const Stmt asked = loops(k, first_loop);
    only_events_ = false;
    return sequence({computed(k, first_loop), asked, done(k, first_loop), code});
}

Stmt GroupLowering::bring_weights(int k, Level level) {
    const IdleLoops& idle = weights_idle_[static_cast<size_t>(k)];
    const auto part = [&](Dim d, const char* name) {
        const Interval all = regions_.missing_weights(k, d, level);
        return Interval{regions_.named(nest(k).layer + name + ".begin", all.begin),
                        regions_.named(nest(k).layer + name + ".end", all.end)};
    };
    const Interval z = part(Dim::z, ".W.z");
    const Interval i = part(Dim::i, ".W.i");
    const Expr runs =
        is_called(k, level) && is_first_need(idle, level) && is_non_empty(z) && is_non_empty(i);
    const Stmt copy = only_events_ ? Stmt() : copy_weights(k, z, i);
    return if_then(simplify(runs),
                   note_first_need(idle, regions_, before(fetch_weights(k, z, i), copy)));
}

Stmt GroupLowering::with_output(Level level, const Stmt& loops) {
    const auto part = [&](Dim d) {
        return regions_.covered(sink(), d, level.is_root() ? -1 : level.loop);
    };
    const Box box{part(Dim::z), part(Dim::y), part(Dim::x)};
    const Stmt read_back = read_back_output(box, part(Dim::i));
    const Stmt write = event(EventKind::write, array_of_output(), box);
    if (only_events_) return sequence({read_back, loops, write});
    return sequence({read_back, begin_output(box), loops, end_output(box), write});
}

Stmt GroupLowering::call(int k, const Box& box) {
    for (const Dim d : tensor_axes) regions_.set_call(k, d, box[static_cast<size_t>(d)]);
    return sequence({begin_call(k, box), loops(k, 0), end_call(k, box)});
}

Stmt GroupLowering::loops(int k, int first_loop) {
    const int count = static_cast<int>(nest(k).loops.size());
    bool placed = false;
    for (int l = first_loop; l < count; ++l) {
        const Level level{k, l};
        placed = placed || (only_events_ ? GroupLowering::is_placed(level) : is_placed(level));
    }
    if (!placed && only_events_) return Evaluate::make(0);
    if (!placed) return kernel(k, first_loop);

    const Loop loop = nest(k).loops[static_cast<size_t>(first_loop)];
    const Level level{k, first_loop};
    const Expr step = expression(extents_.step(k, loop));
    const Interval whole = regions_.covered(k, loop.dim, first_loop - 1);
    const std::string name = unique(nest(k).layer + "." + to_text(loop));
    const Expr index = variable(name);
    const bool is_strip_range = first_loop == 0 && loop.band == Band::strip;
    const Expr first = is_strip_range ? variable(argument::strip_begin) : Expr(0);
    const Expr trips = is_strip_range ? variable(argument::strip_end) - first
                                      : (whole.end - whole.begin + (step - 1)) / step;

    if (is_single_trip(level) && !is_strip_range) {
        regions_.set_loop(level, Expr(0), whole);
        return body(level);
    }
    std::vector<std::pair<std::string, Expr>> lets;
    const auto bind = [&](const std::string& what, const Expr& value) {
        const Expr simple = simplify(value);
        if (is_const(simple) || simple.as<Variable>() != nullptr) return simple;
        lets.emplace_back(unique(name + what), simple);
        return variable(lets.back().first);
    };
    const Expr begin = bind(".begin", whole.begin + index * step);
    const Expr end = is_const_one(step) ? begin + 1 : bind(".end", Halide::min(begin + step, whole.end));
    regions_.set_loop(level, index - first, {begin, end});
    Stmt inside = body(level);
    for (auto let = lets.rbegin(); let != lets.rend(); ++let)
        inside = LetStmt::make(let->first, let->second, inside);
    return For::make(name, first, simplify(trips), ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, inside);
}

Stmt GroupLowering::for_each(const std::string& name, const Interval& range,
                             const std::function<Stmt(Expr)>& make) {
    const Expr extent = simplify(range.end - range.begin);
    if (is_const_one(extent)) return make(range.begin);
    const std::string id = unique(name);
    return For::make(id, range.begin, extent, ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, make(variable(id)));
}

}  // namespace laminate
