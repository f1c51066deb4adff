#include "instrumentation/count_program.h"

#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "generators/compile/executable.h"
#include "generators/lowering/group_lowering.h"

namespace laminate::counting {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

[[noreturn]] void unknown(const char* what) {
    throw std::logic_error(std::string("counting statement: ") + what +
                           " that loop sums do not know");
}

/// Replaces names by numbers.
class Translator {
public:
    explicit Translator(const Stmt& statement) {
        program_.strip_begin = bind(argument::strip_begin);
        program_.strip_end = bind(argument::strip_end);
        program_.root = translate(statement);
    }
    Program take() && { return std::move(program_); }

private:
    int bind(const std::string& name) {
        names_[name].push_back(program_.names);
        return program_.names++;
    }
    void unbind(const std::string& name) { names_[name].pop_back(); }

    int make(ExprNode node) { return program_.exprs.push_back(node); }
    int constant(int64_t value) { return make({Op::constant, value, 0, -1, -1, -1}); }
    template <class Binary>
    int binary(Op op, const Binary* e) {
        const int a = translate(e->a), b = translate(e->b);
        return make({op, 0, 0, a, b, -1});
    }
    template <class Binary>
    int reversed(Op op, const Binary* e) {
        const int a = translate(e->a), b = translate(e->b);
        return make({op, 0, 0, b, a, -1});
    }
    int negation(int of) { return make({Op::negate, 0, 0, of, -1, -1}); }

    static bool is_count(const Halide::Type& type) {
        return type.lanes() == 1 && (type.is_int_or_uint() || type.is_bool());
    }
    int translate(const Expr& e) {
        if (!is_count(e.type())) unknown("a type");
        if (const auto* i = e.as<IntImm>()) return constant(i->value);
        if (const auto* u = e.as<UIntImm>()) return constant(static_cast<int64_t>(u->value));
        if (const auto* v = e.as<Variable>()) {
            const auto known = names_.find(v->name);
            if (known == names_.end() || known->second.empty()) unknown("a name");
            return make({Op::value, 0, known->second.back(), -1, -1, -1});
        }
        // Integers here are far from their limits.
        if (const auto* cast = e.as<Cast>()) return translate(cast->value);
        if (const auto* x = e.as<Add>()) return binary(Op::add, x);
        if (const auto* x = e.as<Sub>()) return binary(Op::subtract, x);
        if (const auto* x = e.as<Mul>()) return binary(Op::multiply, x);
        if (const auto* x = e.as<Div>()) return binary(Op::divide, x);
        if (const auto* x = e.as<Mod>()) return binary(Op::modulo, x);
        if (const auto* x = e.as<Min>()) return binary(Op::minimum, x);
        if (const auto* x = e.as<Max>()) return binary(Op::maximum, x);
        if (const auto* x = e.as<EQ>()) return binary(Op::equal, x);
        if (const auto* x = e.as<NE>()) return negation(binary(Op::equal, x));
        if (const auto* x = e.as<LT>()) return binary(Op::less, x);
        if (const auto* x = e.as<GT>()) return reversed(Op::less, x);
        if (const auto* x = e.as<LE>()) return negation(reversed(Op::less, x));
        if (const auto* x = e.as<GE>()) return negation(binary(Op::less, x));
        if (const auto* x = e.as<And>()) return binary(Op::both, x);
        if (const auto* x = e.as<Or>()) return binary(Op::either, x);
        if (const auto* x = e.as<Not>()) return negation(translate(x->a));
        if (const auto* x = e.as<Select>())
            return choice(x->condition, x->true_value, x->false_value);
        if (const auto* let = e.as<Let>()) {
            const int value = translate(let->value);
            const int slot = bind(let->name);
            const int body = translate(let->body);
            unbind(let->name);
            return make({Op::let, 0, slot, value, body, -1});
        }
        if (const auto* load = e.as<Load>()) return translate(*load);
        if (const auto* call = e.as<Call>()) {
            if (call->is_intrinsic(Call::if_then_else) && call->args.size() == 3)
                return choice(call->args[0], call->args[1], call->args[2]);
            if (call->is_intrinsic(Call::likely) || call->is_intrinsic(Call::likely_if_innermost))
                return translate(call->args[0]);
        }
        unknown("an expression");
    }
    int choice(const Expr& condition, const Expr& then, const Expr& otherwise) {
        const int a = translate(condition), b = translate(then), c = translate(otherwise);
        return make({Op::choose, 0, 0, a, b, c});
    }
    int translate(const Load& load) {
        reads_memory_ = true;
        if (load.name == counters_argument) {
            const int id = counter(load.index);
            program_.observed_counters.insert(id);
            return make({Op::counter, 0, id, -1, -1, -1});
        }
        const int index = translate(load.index);
        return make({Op::data, 0, array(load.name), index, -1, -1});
    }
    static int counter(const Expr& index) {
        const std::optional<int64_t> id = as_const_int(index);
        if (!id) unknown("a counter");
        return static_cast<int>(*id);
    }
    int array(const std::string& name) const {
        const auto known = arrays_.find(name);
        if (known == arrays_.end()) unknown("an array");
        return known->second;
    }

    int make(StmtNode node) { return program_.stmts.push_back(std::move(node)); }

    int translate(const Stmt& s) {
        StmtNode node;
        if (const auto* let = s.as<LetStmt>()) {
            // Addresses and data: this computes nothing, and a count of them is an unknown name.
            if (!is_count(let->value.type())) return translate(let->body);
            node.kind = Kind::let;
            reads_memory_ = false;
            node.first = translate(let->value);
            node.is_eager = reads_memory_;
            node.slot = bind(let->name);
            node.body = translate(let->body);
            unbind(let->name);
        } else if (const auto* block = s.as<Block>()) {
            node.kind = Kind::sequence;
            node.body = translate(block->first);
            node.other = translate(block->rest);
        } else if (const auto* kernel = s.as<ProducerConsumer>()) {
            return translate(kernel->body);
        } else if (const auto* loop = s.as<For>()) {
            return translate_loop(*loop);
        } else if (const auto* branch = s.as<IfThenElse>()) {
            node.kind = Kind::branch;
            node.first = translate(branch->condition);
            node.body = translate(branch->then_case);
            if (branch->else_case.defined()) node.other = translate(branch->else_case);
        } else if (const auto* allocation = s.as<Allocate>()) {
            const std::optional<int64_t> elements =
                as_const_int(allocation->extents.size() == 1 ? allocation->extents[0] : Expr());
            if (!elements) unknown("an allocation");
            node.kind = Kind::array;
            node.slot = arrays_[allocation->name] = program_.arrays++;
            node.elements = *elements;
            node.body = translate(allocation->body);
        } else if (const auto* store = s.as<Store>()) {
            return translate(*store);
        } else if (const auto* evaluate = s.as<Evaluate>()) {
            if (const auto* call = evaluate->value.as<Call>();
                call != nullptr && call->name == call_function) {
                node.kind = Kind::call;
                for (const Expr& argument : call->args)
                    node.arguments.push_back(translate(argument));
            }
        } else {
            unknown("a statement");
        }
        return make(node);
    }

    int translate_loop(const For& loop) {
        StmtNode node;
        node.kind = Kind::loop;
        node.first = translate(loop.min);
        node.second = translate(loop.extent);
        node.slot = bind(loop.name);
        const int arrays_before = program_.arrays;
        std::set<int> counters, arrays;
        counters.swap(incremented_);
        arrays.swap(changed_);
        node.body = translate(loop.body);
        unbind(loop.name);
        node.counters.assign(incremented_.begin(), incremented_.end());
        for (const int array : changed_) {
            if (array < arrays_before) node.outer_arrays.push_back(array);
        }
        incremented_.merge(counters);
        changed_.merge(arrays);
        return make(node);
    }

    int translate(const Store& store) {
        StmtNode node;
        if (store.name != counters_argument) {
            node.kind = Kind::set_data;
            node.slot = array(store.name);
            node.first = translate(store.index);
            node.second = translate(store.value);
            changed_.insert(node.slot);
            return make(node);
        }
        node.slot = counter(store.index);
        const auto is_itself = [&](const Expr& e) {
            const auto* load = e.as<Load>();
            return load != nullptr && load->name == counters_argument &&
                   counter(load->index) == node.slot;
        };
        const auto* sum = store.value.as<Add>();
        const auto* rest = store.value.as<Sub>();
        if ((sum != nullptr && is_itself(sum->a)) || (rest != nullptr && is_itself(rest->a))) {
            node.kind = Kind::increment;
            reads_memory_ = false;
            node.first = sum != nullptr
                             ? translate(sum->b)
                             : make({Op::subtract, 0, 0, constant(0), translate(rest->b), -1});
            incremented_.insert(node.slot);
        } else {
            // A maximum of the counter and something else. Repeating it changes nothing.
            const auto* largest = store.value.as<Max>();
            if (largest == nullptr || !(is_itself(largest->a) || is_itself(largest->b)))
                unknown("an update of a counter");
            node.kind = Kind::set_counter;
            node.first = translate(is_itself(largest->a) ? largest->b : largest->a);
        }
        return make(node);
    }

    Program program_;
    std::map<std::string, std::vector<int>> names_;
    std::map<std::string, int> arrays_;
    std::set<int> incremented_;
    std::set<int> changed_;
    bool reads_memory_ = false;
};

}  // namespace

Program count_program(const Stmt& statement) { return Translator(statement).take(); }

}  // namespace laminate::counting
