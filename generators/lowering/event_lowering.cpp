// The events of GroupLowering (generators/lowering/events.h).
#include <algorithm>

#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

Interval whole(int64_t extent) { return {0, static_cast<int32_t>(extent)}; }

}  // namespace

int GroupLowering::inputs() const {
    return static_cast<int>(std::count_if(tensors_.begin(), tensors_.end(),
                                          [](const GroupTensor& t) { return t.is_external(); }));
}

// The order that group_code() gives its arrays: inputs, Y, then for each nest its weights and what
// it computes.
size_t GroupLowering::array_of_output() const { return static_cast<size_t>(inputs()); }
size_t GroupLowering::array_of_weights(int k) const {
    return array_of_output() + 1 + 2 * static_cast<size_t>(k);
}
size_t GroupLowering::array_of_nest(int k) const { return array_of_weights(k) + 1; }

Stmt GroupLowering::before(const Stmt& first, const Stmt& then) {
    if (!first.defined()) return then;
    return then.defined() ? Block::make(first, then) : first;
}

Stmt GroupLowering::event(EventKind kind, size_t array, const Box& box, const Interval& i) const {
    if (events_ == Events::none) return {};
    return ir::event({kind,
                      array,
                      {box[0].begin, box[0].end, box[1].begin, box[1].end, box[2].begin, box[2].end,
                       i.begin, i.end}});
}

Stmt GroupLowering::lifetime(size_t array, const Box& whole, const Stmt& body) const {
    if (events_ == Events::none) return body;
    return Block::make(
        {event(EventKind::lifetime, array, whole), body, event(EventKind::end, array, whole)});
}

Stmt GroupLowering::lifetime_of_input(int t, const Stmt& body) const {
    const auto [channels, rows, columns] = tensor_extents(t);
    return lifetime(static_cast<size_t>(t), {whole(channels), whole(rows), whole(columns)}, body);
}

Stmt GroupLowering::lifetime_of_weights(int k, const Stmt& body) const {
    const LayerProblem& p = problem(k);
    return lifetime(array_of_weights(k),
                    {whole(p[Dim::z]), whole(p[Dim::i]), whole(p.y().kernel * p.x().kernel)}, body);
}

Stmt GroupLowering::lifetime_of_output(int k, const Stmt& body) const {
    const LayerProblem& p = problem(k);
    return lifetime(k == sink() ? array_of_output() : array_of_nest(k),
                    {whole(p[Dim::z]), whole(p[Dim::y]), whole(p[Dim::x])}, body);
}

Stmt GroupLowering::fetch_weights(int k, const Interval& z, const Interval& i) const {
    const LayerProblem& p = problem(k);
    return event(EventKind::fetch, array_of_weights(k), {z, i, whole(p.y().kernel * p.x().kernel)});
}

Stmt GroupLowering::read_back_output(const Box& box, const Interval& i) const {
    const Stmt read = event(EventKind::read_back, array_of_output(), box);
    const Expr continues = simplify(i.begin > 0);
    if (!read.defined() || is_const_zero(continues)) return {};
    return is_const_one(continues) ? read : IfThenElse::make(continues, read);
}

Stmt GroupLowering::fetch_input(int t, const Box& box) const {
    const auto array = static_cast<size_t>(t);
    const Stmt fetch = event(EventKind::fetch, array, box);
    if (events_ != Events::all || !reads_by_boxes()) return fetch;
    return before(fetch, event(EventKind::read, array, read_of_input(t, box)));
}

Stmt GroupLowering::computed(int k, int first_loop) const {
    return event(EventKind::compute, array_of_nest(k), box_of(k, first_loop),
                 covered(k, Dim::i, first_loop - 1));
}

Stmt GroupLowering::done(int k, int first_loop) const {
    if (events_ != Events::all || !reads_by_boxes()) return {};
    const LayerProblem& p = problem(k);
    const Box box = box_of(k, first_loop);
    const Interval i = covered(k, Dim::i, first_loop - 1);
    const Stmt store = event(EventKind::store, array_of_nest(k), stored(k, box, i));
    if (!p.has_weights()) return store;
    return before(event(EventKind::read, array_of_weights(k),
                        {weights_read(k, box[0]), i, whole(p.y().kernel * p.x().kernel)}),
                  store);
}

Box GroupLowering::box_of(int k, int first_loop) const {
    return {covered(k, Dim::z, first_loop - 1), covered(k, Dim::y, first_loop - 1),
            covered(k, Dim::x, first_loop - 1)};
}

}  // namespace laminate
