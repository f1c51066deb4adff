#include "instrumentation/count_pass.h"

#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "generators/ir/arrays.h"
#include "generators/lowering/events.h"
#include "instrumentation/counter_access.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

Expr i64(const Expr& e) { return Halide::cast<int64_t>(e); }
Expr i64(int64_t value) { return make_const(Halide::Int(64), value); }

/// A sum of counts. An unrolled kernel adds few different ones very often, so they are simplified
/// together at the end.
class Sum {
public:
    Sum() = default;
    explicit Sum(const Expr& n) { add(n, 1); }
    void add(const Expr& n, int64_t times) {
        if (const std::optional<int64_t> constant = as_const_int(n)) {
            constant_ += *constant * times;
            return;
        }
        for (Term& term : terms_) {
            if (!equal(term.n, n)) continue;
            term.times += times;
            return;
        }
        terms_.push_back({n, times});
    }
    void add(const Sum& other) {
        constant_ += other.constant_;
        for (const Term& term : other.terms_) add(term.n, term.times);
    }
    [[nodiscard]] Expr total() const {
        Expr sum = i64(constant_);
        for (const Term& term : terms_) sum = simplify(sum + term.n * i64(term.times));
        return sum;
    }

private:
    struct Term {
        Expr n;
        int64_t times = 0;
    };
    int64_t constant_ = 0;
    std::vector<Term> terms_;
};

/// Increments by counter.
using Increments = std::map<size_t, Sum>;

/// A count of more nodes is left to the statements inside. In a deep chain each bound contains the
/// one before several times, so writing out the bounds of twenty layers would never end. With a
/// limit of 300 nodes DMCNN-VD's twenty layers in one group take 1.1 s, with 2000 nodes 2.3 s
/// (2026-11-23).
constexpr size_t largest_count = 300;

/// Whether an expression has more nodes than `largest_count`, counting shared parts as often as
/// they occur.
bool is_too_large(const Expr& e) {
    class Nodes : public IRMutator {  // an IRVisitor has no function that every node passes
    public:
        using IRMutator::mutate;
        Expr mutate(const Expr& e) override {
            return ++seen > largest_count ? e : IRMutator::mutate(e);
        }
        size_t seen = 0;
    } nodes;
    nodes.mutate(e);
    return nodes.seen > largest_count;
}

/// The arrays of integers that steer the code: those that a condition, the bounds of a loop or an
/// event's box depend on. Others hold indices, which no count depends on.
class SteeringArrays : public IRVisitor {
public:
    static std::set<std::string> of(const Stmt& body) {
        SteeringArrays visitor;
        body.accept(&visitor);
        return visitor.closed();
    }

private:
    using IRVisitor::visit;
    void visit(const LetStmt* let) override {
        values_[let->name] = let->value;
        let->body.accept(this);
    }
    void visit(const For* loop) override {
        deciding_.push_back(loop->min);
        deciding_.push_back(loop->extent);
        loop->body.accept(this);
    }
    void visit(const IfThenElse* branch) override {
        deciding_.push_back(branch->condition);
        branch->then_case.accept(this);
        if (branch->else_case.defined()) branch->else_case.accept(this);
    }
    void visit(const Store* store) override {
        deciding_.push_back(store->predicate);
        if (!store->value.type().is_float()) stored_[store->name].push_back(store->value);
    }

    void visit(const Evaluate* evaluate) override {
        if (const std::optional<ir::Event> event = ir::as_event(evaluate))
            deciding_.insert(deciding_.end(), event->box.begin(), event->box.end());
    }

    /// Loads in the deciding expressions, in what their names stand for, and in what was stored in
    /// the arrays loaded.
    std::set<std::string> closed() {
        class Names : public IRVisitor {
        public:
            using IRVisitor::visit;
            void visit(const Variable* variable) override { variables.push_back(variable->name); }
            void visit(const Load* load) override {
                loads.push_back(load->name);
                IRVisitor::visit(load);
            }
            std::vector<std::string> variables, loads;
        };
        std::set<std::string> seen, arrays;
        while (!deciding_.empty()) {
            Names names;
            deciding_.back().accept(&names);
            deciding_.pop_back();
            for (const std::string& name : names.variables) {
                const auto value = values_.find(name);
                if (value != values_.end() && seen.insert(name).second)
                    deciding_.push_back(value->second);
            }
            for (const std::string& name : names.loads) {
                if (!arrays.insert(name).second) continue;
                for (const Expr& value : stored_[name]) deciding_.push_back(value);
            }
        }
        return arrays;
    }

    std::vector<Expr> deciding_;
    std::map<std::string, Expr> values_;
    std::map<std::string, std::vector<Expr>> stored_;
};

class Counter {
public:
    Counter(const GroupCode& code, CountMode mode, const ArrayNames& names)
        : mode_(mode),
          layout_{code.arrays.size()},
          arrays_(names),
          steering_(SteeringArrays::of(code.body)) {
        for (size_t a = 0; a < code.arrays.size(); ++a) {
            if (!code.arrays[a].name.empty()) arrays_[code.arrays[a].name] = a;
            roles_.push_back(code.arrays[a].role);
        }
    }

    /// Adds counters to a statement.
    Stmt counted(const Stmt& s) {
        if (const std::optional<Increments> increments = constant_counts(s)) {
            const Stmt update = updates(*increments);
            if (mode_ == CountMode::count_only) return update;
            return ir::sequence({update, without_events(s)});
        }
        if (s.as<Store>()) return s;  // control data, kept in either mode
        if (const auto* let = s.as<LetStmt>()) {
            Increments read;
            count_loads(let->value, const_true(), read);
            return ir::sequence(
                {updates(read), LetStmt::make(let->name, let->value, counted(let->body))});
        }
        if (const auto* block = s.as<Block>())
            return ir::sequence({counted(block->first), counted(block->rest)});
        if (const auto* produce = s.as<ProducerConsumer>()) {
            return ProducerConsumer::make(produce->name, produce->is_producer,
                                          counted(produce->body));
        }
        if (const auto* loop = s.as<For>()) {
            return For::make(loop->name, loop->min, loop->extent, loop->for_type,
                             loop->partition_policy, loop->device_api, counted(loop->body));
        }
        if (const auto* branch = s.as<IfThenElse>()) {
            return IfThenElse::make(
                branch->condition, counted(branch->then_case),
                branch->else_case.defined() ? counted(branch->else_case) : Stmt());
        }
        const auto* allocation = s.as<Allocate>();
        if (allocation == nullptr)
            throw std::logic_error("statement that the counting pass does not know");
        return counted_allocation(*allocation);
    }

private:
    /// Events are counted, so nobody need be told.
    static Stmt without_events(const Stmt& s) {
        class Remover : public IRMutator {
        public:
            using IRMutator::visit;
            Stmt visit(const Evaluate* evaluate) override {
                return ir::as_event(evaluate) ? Evaluate::make(0) : evaluate;
            }
        } remover;
        return remover.mutate(s);
    }

    /// Counts of one execution of s as expressions of outer variables. nullopt if they depend on a
    /// loop inside, if s allocates, or if they are too large.
    std::optional<Increments> constant_counts(const Stmt& s) {
        if (const auto* store = s.as<Store>()) {
            if (!is_control(store->value.type())) return store_counts(*store);
            if (steering_.count(store->name) > 0) return std::nullopt;
            return Increments{};
        }
        if (const auto* let = s.as<LetStmt>()) {
            std::optional<Increments> counts = constant_counts(let->body);
            if (!counts) return std::nullopt;
            for (auto& [counter, sum] : *counts) {
                Expr n = sum.total();
                if (!expr_uses_var(n, let->name)) continue;
                if (has_load(let->value)) return std::nullopt;
                n = substitute(let->name, let->value, n);
                if (is_too_large(n)) return std::nullopt;
                sum = Sum(simplify(n));
            }
            count_loads(let->value, const_true(), *counts);
            return counts;
        }
        if (const auto* block = s.as<Block>()) {
            std::optional<Increments> first = constant_counts(block->first);
            const std::optional<Increments> rest =
                first ? constant_counts(block->rest) : std::nullopt;
            if (!rest) return std::nullopt;
            for (const auto& [counter, n] : *rest) (*first)[counter].add(n);
            return first;
        }
        if (const auto* loop = s.as<For>()) {
            std::optional<Increments> counts = constant_counts(loop->body);
            if (!counts) return std::nullopt;
            for (auto& [counter, sum] : *counts) {
                const Expr n = sum.total();
                if (expr_uses_var(n, loop->name)) return std::nullopt;
                sum = Sum(simplify(n * i64(Halide::max(loop->extent, 0))));
            }
            return counts;
        }
        if (const auto* branch = s.as<IfThenElse>()) {
            std::optional<Increments> counts = constant_counts(branch->then_case);
            if (!counts || has_load(branch->condition)) return std::nullopt;
            for (auto& [counter, n] : *counts)
                n = Sum(simplify(Halide::select(branch->condition, n.total(), i64(0))));
            if (branch->else_case.defined()) {
                const std::optional<Increments> other = constant_counts(branch->else_case);
                if (!other) return std::nullopt;
                for (const auto& [counter, n] : *other) {
                    Sum& sum = (*counts)[counter];
                    sum.add(Sum(simplify(Halide::select(branch->condition, i64(0), n.total()))));
                }
            }
            return counts;
        }
        if (const auto* allocation = s.as<Allocate>()) {
            if (is_buffer(allocation->name) || steering_.count(allocation->name) > 0)
                return std::nullopt;
            return constant_counts(allocation->body);
        }
        if (const auto* produce = s.as<ProducerConsumer>()) return constant_counts(produce->body);
        if (const std::optional<ir::Event> event = ir::as_event(s)) return event_counts(*event);
        if (s.as<Evaluate>() || s.as<AssertStmt>() || s.as<Free>()) return Increments{};
        return std::nullopt;
    }

    [[nodiscard]] Increments event_counts(const ir::Event& event) const {
        Expr elements = i64(1);
        for (size_t d = 0; d < 3; ++d)
            elements = elements * i64(event.box[2 * d + 1] - event.box[2 * d]);
        return {{layout_.event(event.array, event.kind), Sum(simplify(elements))}};
    }

    Increments store_counts(const Store& store) {
        Increments counts;
        const Expr lanes = i64(store.value.type().lanes());
        const Expr executed = is_const_one(store.predicate) ? lanes : lanes_set(store.predicate);
        count_loads(store.value, const_true(), counts);
        const auto it = arrays_.find(store.name);
        if (it == arrays_.end()) return counts;
        const ArrayRole role = roles_[it->second];
        if (role == ArrayRole::external_output) counts[layout_.stores(it->second)].add(executed, 1);
        // A multiply-accumulate: array[i] = array[i] + a * b.
        const auto* sum = store.value.as<Add>();
        if ((role == ArrayRole::output_buffer || role == ArrayRole::sums) && sum &&
            ((is_load_of(sum->a, store) && sum->b.as<Mul>()) ||
             (is_load_of(sum->b, store) && sum->a.as<Mul>()))) {
            counts[layout_.macs(it->second)].add(executed, 1);
        }
        return counts;
    }

    /// An array whose allocation is counted.
    [[nodiscard]] bool is_buffer(const std::string& array) const {
        const auto it = arrays_.find(array);
        return it != arrays_.end() && roles_[it->second] != ArrayRole::sums;
    }
    static bool is_external(ArrayRole role) {
        return role == ArrayRole::external_input || role == ArrayRole::external_weights ||
               role == ArrayRole::external_output;
    }

    static bool is_load_of(const Expr& e, const Store& store) {
        const auto* load = e.as<Load>();
        return load && load->name == store.name && equal(load->index, store.index);
    }

    /// The number of set lanes of a predicate such as `ramp < broadcast`.
    Expr lanes_set(const Expr& predicate) {
        Expr& known = lanes_set_[predicate];
        if (known.defined()) return known;
        Expr sum = i64(0);
        for (int lane = 0; lane < predicate.type().lanes(); ++lane) {
            sum = sum + i64(Halide::select(extract_lane(predicate, lane), 1, 0));
        }
        known = simplify(sum);
        return known;
    }

    /// Adds the loads of external arrays in an expression. Branches of if_then_else count under
    /// their condition.
    void count_loads(const Expr& e, const Expr& condition, Increments& counts) {
        class Visitor : public IRVisitor {
        public:
            Visitor(Counter& counter, Expr condition, Increments& counts)
                : counter_(counter), condition_(std::move(condition)), counts_(counts) {}
            using IRVisitor::visit;
            void visit(const Load* load) override {
                IRVisitor::visit(load);
                const auto it = counter_.arrays_.find(load->name);
                if (it == counter_.arrays_.end() || !is_external(counter_.roles_[it->second]))
                    return;
                const Expr lanes = is_const_one(load->predicate)
                                       ? i64(load->type.lanes())
                                       : counter_.lanes_set(load->predicate);
                counts_[counter_.layout_.loads(it->second)].add(
                    simplify(Halide::select(condition_, lanes, i64(0))), 1);
            }
            void visit(const Call* call) override {
                if (!call->is_intrinsic(Call::if_then_else)) return IRVisitor::visit(call);
                call->args[0].accept(this);
                counter_.count_loads(call->args[1], condition_ && call->args[0], counts_);
                if (call->args.size() > 2)
                    counter_.count_loads(call->args[2], condition_ && !call->args[0], counts_);
            }

        private:
            Counter& counter_;
            Expr condition_;
            Increments& counts_;
        } visitor(*this, condition, counts);
        e.accept(&visitor);
    }

    /// Whether an expression reads memory, which may change while the statement runs.
    static bool has_load(const Expr& e) {
        class Visitor : public IRVisitor {
        public:
            using IRVisitor::visit;
            void visit(const Load*) override { found = true; }
            bool found = false;
        } visitor;
        e.accept(&visitor);
        return visitor.found;
    }

    /// Data is floating point; integers in memory control the code.
    static bool is_control(const Halide::Type& type) { return !type.is_float(); }

    Stmt counted_allocation(const Allocate& allocation) {
        Stmt body = counted(allocation.body);
        const auto it = arrays_.find(allocation.name);
        if (is_buffer(allocation.name)) {
            Expr elements = i64(1);
            for (const Expr& extent : allocation.extents) elements = elements * i64(extent);
            elements = simplify(elements);
            const Expr peak = counter(layout_.peak(it->second));
            body =
                ir::sequence({update(layout_.live(), counter(layout_.live()) + elements),
                              update(layout_.live_peak(), Halide::max(counter(layout_.live_peak()),
                                                                      counter(layout_.live()))),
                              update(layout_.peak(it->second), Halide::max(peak, elements)), body,
                              update(layout_.live(), counter(layout_.live()) - elements)});
        }
        if (mode_ == CountMode::count_only && !is_control(allocation.type)) return body;
        return Allocate::make(allocation.name, allocation.type, allocation.memory_type,
                              allocation.extents, allocation.condition, body, allocation.new_expr,
                              allocation.free_function);
    }

    static Expr counter(size_t id) { return counter_at(static_cast<int32_t>(id)); }
    static Stmt update(size_t id, const Expr& value) {
        return set_counter(static_cast<int32_t>(id), value);
    }
    static Stmt updates(const Increments& increments) {
        std::vector<Stmt> all;
        for (const auto& [id, sum] : increments) {
            const Expr n = sum.total();
            if (!is_const_zero(n)) all.push_back(update(id, counter(id) + n));
        }
        return ir::sequence(all);
    }

    CountMode mode_;
    CounterLayout layout_;
    std::map<std::string, size_t> arrays_;
    std::vector<ArrayRole> roles_;
    std::set<std::string> steering_;
    std::map<Expr, Expr, IRDeepCompare> lanes_set_;  ///< by predicate
};

}  // namespace

Stmt with_counters(const GroupCode& code, CountMode mode, const ArrayNames& names) {
    return Counter(code, mode, names).counted(code.body);
}

GroupCounts counts_of(const GroupCode& code, const GroupSchedule& group,
                      const std::vector<int64_t>& counters) {
    const CounterLayout layout{code.arrays.size()};
    GroupCounts counts;
    for (const Nest& nest : group.nests) counts.layers.push_back({nest.layer, {}, {}, {}, {}});
    for (const std::string& tensor : code.inputs) counts.inputs.push_back({tensor, {}, {}});
    for (size_t a = 0; a < code.arrays.size(); ++a) {
        const auto index = static_cast<size_t>(code.arrays[a].index);
        const bool is_input = code.arrays[a].role == ArrayRole::external_input ||
                              code.arrays[a].role == ArrayRole::input_buffer;
        LayerCounts& layer = counts.layers.at(is_input ? 0 : index);
        const Elements loads(counters.at(layout.loads(a)));
        const Elements stores(counters.at(layout.stores(a)));
        const Elements peak(counters.at(layout.peak(a)));
        switch (code.arrays[a].role) {
            case ArrayRole::external_input:
                counts.inputs.at(index).reads += loads;
                break;
            case ArrayRole::external_weights:
                layer.weight_reads += loads;
                break;
            case ArrayRole::external_output:
                counts.output_reads += loads;
                counts.output_writes += stores;
                break;
            case ArrayRole::input_buffer:
                counts.inputs.at(index).buffer = peak;
                counts.sum_total += peak;
                break;
            case ArrayRole::weights_buffer:
                layer.weight_buffer = peak;
                counts.sum_total += peak;
                break;
            case ArrayRole::output_buffer:
                layer.macs += Macs(counters.at(layout.macs(a)));
                layer.output_buffer = peak;
                counts.sum_total += peak;
                break;
            case ArrayRole::sums:
                layer.macs += Macs(counters.at(layout.macs(a)));
                break;
        }
    }
    counts.live_total = Elements(counters.at(layout.live_peak()));
    return counts;
}

}  // namespace laminate
