#include "generators/lowering/events.h"

#include <vector>

namespace laminate::ir {

using namespace Halide::Internal;
using Halide::Expr;

Stmt event(const Event& event) {
    std::vector<Expr> arguments{Expr(static_cast<int32_t>(event.kind)),
                                Expr(static_cast<int32_t>(event.array))};
    arguments.insert(arguments.end(), event.box.begin(), event.box.end());
    return Evaluate::make(Call::make(Halide::Int(32), event_function, arguments, Call::Extern));
}

std::optional<Event> as_event(const Stmt& statement) {
    const auto* evaluated = statement.as<Evaluate>();
    const auto* call = evaluated == nullptr ? nullptr : evaluated->value.as<Call>();
    if (call == nullptr || call->name != event_function) return std::nullopt;
    Event event;
    event.kind = static_cast<EventKind>(*as_const_int(call->args[0]));
    event.array = static_cast<size_t>(*as_const_int(call->args[1]));
    std::copy(call->args.begin() + 2, call->args.end(), event.box.begin());
    return event;
}

}  // namespace laminate::ir
