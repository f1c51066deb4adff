#include "generators/kernels/map_events.h"

#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// Nothing but the loops and their events.
class MapEvents final : public GroupLowering {
public:
    MapEvents(const Network& network, const GroupSchedule& group)
        : GroupLowering(network, group, Events::marked) {}

    void add_to(GroupCode& code) {
        const Expr is_first = Variable::make(Halide::Int(32), argument::strip_begin) == 0;
        code.body = Block::make(IfThenElse::make(is_first, simplify(lower())), code.body);
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
};

}  // namespace

GroupCode with_map_events(GroupCode code, const Network& network, const GroupSchedule& group,
                          Events events) {
    if (events == Events::marked) MapEvents(network, group).add_to(code);
    return code;
}

}  // namespace laminate
