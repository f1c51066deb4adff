#include "generators/kernels/map_events.h"

#include <vector>

#include "generators/ir/arrays.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// Nothing but the loops and their events.
class MapEvents final : public GroupLowering {
public:
    MapEvents(const Network& network, const GroupSchedule& group, Events events)
        : GroupLowering(network, group, events),
          group_(group),
          problems_(group_problems(network, group)),
          events_(events) {}

    void add_to(GroupCode& code) {
        const Expr is_first = Variable::make(Halide::Int(32), argument::strip_begin) == 0;
        const Stmt asked = lower();
        const Stmt events = events_ == Events::all ? Block::make(asked, done_by_map()) : asked;
        code.body = Block::make(IfThenElse::make(is_first, simplify(events)), code.body);
    }

protected:
    // What the kernel takes in one go is told in one event, as line buffers would.
    bool is_placed(Level level) const override { return is_placed_outside_kernels(level); }
    Stmt allocate_input(int, Stmt body) override { return body; }
    Stmt allocate_weights(int, Stmt body) override { return body; }
    Stmt allocate_output(int, Stmt body) override { return body; }
    Stmt copy_input(int, const Box&) override { return {}; }
    Stmt copy_weights(int, const Interval&, const Interval&) override { return {}; }
    Stmt begin_call(int, const Box&) override { return {}; }
    Stmt end_call(int, const Box&) override { return {}; }
    Stmt begin_output(const Box&) override { return {}; }
    Stmt end_output(const Box&) override { return {}; }
    Stmt innermost(int, int) override { return {}; }
    bool reads_by_boxes() const override { return false; }

private:
    /// All arrays whole, weights filled up.
    Stmt done_by_map() const {
        std::vector<Stmt> events;
        for (int t = 0; t < static_cast<int>(array_of_output()); ++t) {
            const auto [channels, rows, columns] = tensor_extents(t);
            events.push_back(event(EventKind::read, static_cast<size_t>(t),
                                   {all(channels), all(rows), all(columns)}));
        }
        for (int k = 0; k <= sink(); ++k) {
            const LayerProblem& p = problem(k);
            if (p.has_weights()) {
                const int64_t together =
                    map_nest_done(group_, problems_, static_cast<size_t>(k)).channels_together;
                const int64_t outputs = round_up(p[Dim::z], together);
                events.push_back(
                    event(EventKind::read, array_of_weights(k),
                          {all(outputs), all(p[Dim::i]), all(p.y().kernel * p.x().kernel)}));
            }
            events.push_back(event(EventKind::store, array_of_nest(k),
                                   {all(p[Dim::z]), all(p[Dim::y]), all(p[Dim::x])}));
        }
        return ir::sequence(events);
    }
    static Interval all(int64_t extent) { return {0, ir::size(extent)}; }

    const GroupSchedule& group_;
    std::vector<LayerProblem> problems_;
    Events events_;
};

}  // namespace

GroupCode with_map_events(GroupCode code, const Network& network, const GroupSchedule& group,
                          Events events) {
    if (events != Events::none) MapEvents(network, group, events).add_to(code);
    return code;
}

}  // namespace laminate
