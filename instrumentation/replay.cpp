#include "instrumentation/replay.h"

#include <map>
#include <utility>

#include "generators/ir/arrays.h"
#include "instrumentation/count_program.h"
#include "instrumentation/loop_sums.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// First argument of a call: what it tells of.
constexpr int32_t tells_of_event = 0, tells_of_access = 1;
/// The argument after the array says what kind of access a call tells of.
constexpr int32_t is_load = 0, is_store = 1, is_store_at_border = 2;

Stmt call(int32_t what, std::vector<Expr> arguments) {
    arguments.insert(arguments.begin(), Expr(what));
    return Evaluate::make(
        Call::make(Halide::Int(32), counting::call_function, arguments, Call::Extern));
}

Stmt if_then(const Expr& condition, const Stmt& then) {
    const Expr simple = simplify(condition);
    if (!then.defined() || is_const_zero(simple)) return {};
    return is_const_one(simple) ? then : IfThenElse::make(simple, then);
}

Stmt in_order(const Stmt& first, const Stmt& rest) {
    if (!first.defined()) return rest;
    return rest.defined() ? Block::make(first, rest) : first;
}

/// Whether a statement tells of anything, or changes an array that outlives it.
bool matters(const Stmt& s) {
    class Visitor : public IRVisitor {
    public:
        using IRVisitor::visit;
        void visit(const Allocate* allocation) override {
            inside.insert(allocation->name);
            IRVisitor::visit(allocation);
        }
        void visit(const Evaluate*) override { found = true; }
        void visit(const Store* store) override { found = found || inside.count(store->name) == 0; }
        std::set<std::string> inside;
        bool found = false;
    } visitor;
    s.accept(&visitor);
    return visitor.found;
}

/// Leaves of code what steers it and what is told of. Undefined statements do nothing.
class Reducer {
public:
    explicit Reducer(const Watch& watch) : watch_(watch) {
        for (size_t n = 0; n < watch.accesses.size(); ++n) arrays_[watch.accesses[n]] = n;
    }

    Stmt reduced(const Stmt& s) {
        if (const std::optional<ir::Event> event = ir::as_event(s)) return told(*event);
        if (const auto* store = s.as<Store>()) return reduced(*store, s);
        if (const auto* let = s.as<LetStmt>()) return reduced(*let);
        if (const auto* block = s.as<Block>())
            return in_order(reduced(block->first), reduced(block->rest));
        if (const auto* produce = s.as<ProducerConsumer>()) {
            ++kernels_around_;
            const Stmt body = reduced(produce->body);
            --kernels_around_;
            return body;
        }
        if (const auto* loop = s.as<For>()) {
            const Stmt body = reduced(loop->body);
            if (!body.defined()) return {};
            return For::make(loop->name, loop->min, loop->extent, loop->for_type,
                             loop->partition_policy, loop->device_api, body);
        }
        if (const auto* branch = s.as<IfThenElse>()) {
            const Stmt then = reduced(branch->then_case);
            const Stmt otherwise =
                branch->else_case.defined() ? reduced(branch->else_case) : Stmt();
            if (!otherwise.defined()) return if_then(branch->condition, then);
            return then.defined() ? IfThenElse::make(branch->condition, then, otherwise)
                                  : if_then(!branch->condition, otherwise);
        }
        if (const auto* allocation = s.as<Allocate>()) {
            const Stmt body = reduced(allocation->body);
            if (!body.defined() || allocation->type.is_float()) return body;
            const Stmt all =
                Allocate::make(allocation->name, allocation->type, allocation->memory_type,
                               allocation->extents, allocation->condition, body);
            return matters(all) ? all : Stmt();
        }
        return {};
    }

private:
    [[nodiscard]] Stmt told(const ir::Event& event) const {
        if (watch_.events.count(event.kind) == 0) return {};
        std::vector<Expr> arguments{Expr(static_cast<int32_t>(event.kind)),
                                    Expr(static_cast<int32_t>(event.array))};
        arguments.insert(arguments.end(), event.box.begin(), event.box.begin() + 6);
        return call(tells_of_event, arguments);
    }

    Stmt reduced(const Store& store, const Stmt& itself) {
        if (!store.value.type().is_float()) return itself;  // steers the code
        const Stmt loads = loads_of(store.value);
        const auto known = arrays_.find(store.name);
        const auto* moved = store.value.as<Load>();
        const bool is_move = moved != nullptr && moved->name == store.name;
        if (known == arrays_.end() || is_move) return loads;
        const bool is_at_border = kernels_around_ == 0 && is_const_zero(store.value);
        const int32_t kind = is_at_border ? is_store_at_border : is_store;
        return in_order(loads, lanes(known->second, kind, store.index, store.predicate));
    }

    Stmt reduced(const LetStmt& let) {
        const Halide::Type type = let.value.type();
        if (type.is_handle()) return reduced(let.body);
        if (type.is_float()) return in_order(loads_of(let.value), reduced(let.body));
        if (!type.is_scalar()) return reduced(substitute(let.name, let.value, let.body));
        const Stmt body = reduced(let.body);
        if (!body.defined() || !stmt_uses_var(body, let.name)) return body;
        return LetStmt::make(let.name, let.value, body);
    }

    /// Of arrays in question, in an expression.
    Stmt loads_of(const Expr& e) {
        if (arrays_.empty()) return {};
        class Visitor : public IRVisitor {
        public:
            explicit Visitor(Reducer& reducer) : reducer_(reducer) {}
            using IRVisitor::visit;
            void visit(const Load* load) override {
                const auto known = reducer_.arrays_.find(load->name);
                if (known == reducer_.arrays_.end() ||
                    reducer_.watch_.stores_alone.contains(load->name))
                    return;
                found = in_order(
                    found, reducer_.lanes(known->second, is_load, load->index, load->predicate));
            }
            void visit(const Let* let) override {
                let->value.accept(this);
                // No index depends on a float.
                if (let->value.type().is_float())
                    let->body.accept(this);
                else
                    substitute(let->name, let->value, let->body).accept(this);
            }
            void visit(const Call* call) override {
                if (!call->is_intrinsic(Call::if_then_else)) return IRVisitor::visit(call);
                found = in_order(found, if_then(call->args[0], reducer_.loads_of(call->args[1])));
                if (call->args.size() > 2)
                    found =
                        in_order(found, if_then(!call->args[0], reducer_.loads_of(call->args[2])));
            }
            Stmt found;

        private:
            Reducer& reducer_;
        } visitor(*this);
        e.accept(&visitor);
        return visitor.found;
    }

    static Stmt lanes(size_t array, int32_t kind, const Expr& index, const Expr& predicate) {
        const int count = index.type().lanes();
        const auto told = [&](const Expr& first, const Expr& stride, int of) {
            return call(tells_of_access,
                        {Expr(static_cast<int32_t>(array)), Expr(kind), first, stride, Expr(of)});
        };
        const Expr simple = simplify(index);
        const auto* ramp = simple.as<Ramp>();
        if (is_const_one(predicate)) {
            if (count == 1) return told(simple, 0, 1);
            if (ramp != nullptr && ramp->base.type().is_scalar())
                return told(ramp->base, ramp->stride, count);
        }
        Stmt all;
        for (int lane = 0; lane < count; ++lane) {
            const Expr at = simplify(count == 1 ? simple : extract_lane(simple, lane));
            const Expr wanted = count == 1 ? predicate : extract_lane(predicate, lane);
            all = in_order(all, if_then(wanted, told(at, 0, 1)));
        }
        return all;
    }

    const Watch& watch_;
    std::map<std::string, size_t> arrays_;
    int kernels_around_ = 0;
};

}  // namespace

void replay_in_rounds(const GroupCode& code, const std::set<EventKind>& events,
                      EventRounds& listener) {
    class Calls : public RoundsListener {
    public:
        explicit Calls(EventRounds& to) : to_(to) {}
        void begin_rounds(int32_t variable) override { to_.begin_rounds(variable); }
        void end_rounds(int64_t rounds) override { to_.end_rounds(rounds); }
        void tell(const std::vector<counting::Affine>& told) override {
            std::array<counting::Affine, 6> box;
            std::copy(told.begin() + 3, told.end(), box.begin());
            to_.happened(static_cast<EventKind>(told[1].constant),
                         static_cast<size_t>(told[2].constant), box);
        }

    private:
        EventRounds& to_;
    } calls(listener);
    const Watch watch{events};
    const Stmt reduced = Reducer(watch).reduced(code.body);
    if (reduced.defined()) step_in_rounds(reduced, code.strips, calls);
}

void replay(const GroupCode& code, const Watch& watch, const Listener& listener) {
    const Stmt reduced = Reducer(watch).reduced(code.body);
    if (!reduced.defined()) return;
    step_through(reduced, code.strips, [&](const std::vector<int64_t>& told) {
        if (told[0] == tells_of_event) {
            HappenedEvent event{static_cast<EventKind>(told[1]), static_cast<size_t>(told[2]), {}};
            std::copy(told.begin() + 3, told.end(), event.box.begin());
            listener.event(event);
        } else {
            listener.access({static_cast<size_t>(told[1]), told[2] != is_load,
                             told[2] == is_store_at_border, told[3], told[4], told[5]});
        }
    });
}

}  // namespace laminate
