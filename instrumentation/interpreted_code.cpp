#include "instrumentation/interpreted_code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "generators/compile/executable.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

namespace interpreting {
namespace {

using namespace Halide::Internal;
using Halide::Expr;

enum class Op {
    // Memory: c is the address, b the number of an element.
    load_float,
    load_int,
    load_word,
    store_float,
    store_int,
    store_word,
    allocate,  ///< to: address; b: elements; c: their bytes; body: where it lives
    // Control.
    loop,    ///< to: index; a: first; b: trips; body
    branch,  ///< a: condition; body, other: regions
    copy,
    // Whole numbers and conditions.
    add,
    subtract,
    multiply,
    divide,
    modulo,
    minimum,
    maximum,
    equal,
    less,
    at_most,
    both,
    either,
    negate,
    shift_left,
    shift_right,
    bits_and,
    bits_or,
    choose,
    // Floats.
    float_add,
    float_subtract,
    float_multiply,
    float_divide,
    float_minimum,
    float_maximum,
    float_equal,
    float_less,
    float_at_most,
    float_absolute,
    float_floor,
    float_ceil,
    float_round,
    float_root,
    // Between both.
    to_float,
    to_int,
    bits_of_float,
    float_of_bits,
};

struct Instruction {
    Op op = Op::copy;
    int to = -1;
    int a = -1, b = -1, c = -1;
    int body = -1, other = -1;  ///< regions
};

/// A value: `i` of whole numbers, conditions and addresses, `f` of floats.
union Value {
    int64_t i;
    float f;
};

/// Halide's quotient rounds down for positive divisors, and is 0 for a divisor of 0.
int64_t quotient(int64_t a, int64_t b) {
    if (b == 0) return 0;
    const int64_t q = a / b, rest = a % b;
    return rest >= 0 ? q : b > 0 ? q - 1 : q + 1;
}

/// What the translation makes.
struct Program {
    std::vector<std::vector<Instruction>> regions;  ///< the first is the whole program
    std::vector<Value> values;                      ///< constants have theirs
    std::map<std::string, int> arguments;           ///< values by name
};

/// Thrown where the statement has what instrumented code does not have; caught in of().
struct Unknown {};

class Translation {
public:
    explicit Translation(const Stmt& body) {
        open();
        for (const char* name : {argument::inputs, argument::outputs, argument::constants,
                                 argument::strip_begin, argument::strip_end, counters_argument}) {
            program_.arguments[name] = new_value(0);
            bind(name, program_.arguments[name]);
        }
        execute(body);
        close();
    }
    Program take() && { return std::move(program_); }

private:
    /// A region that instructions are being added to. Those around it are open too.
    struct Open {
        int number = 0;
        std::vector<Instruction> code;
        std::map<std::tuple<Op, int, int, int>, int> known;
    };

    int new_value(int depth) {
        program_.values.push_back({0});
        depths_.push_back(depth);
        return static_cast<int>(program_.values.size()) - 1;
    }
    [[nodiscard]] int depth() const { return static_cast<int>(open_.size()) - 1; }
    void open() {
        open_.push_back({static_cast<int>(program_.regions.size()), {}, {}});
        program_.regions.emplace_back();
    }
    int close() {
        const int number = open_.back().number;
        program_.regions[static_cast<size_t>(number)] = std::move(open_.back().code);
        open_.pop_back();
        return number;
    }
    int region(const Stmt& body) {
        open();
        execute(body);
        return close();
    }
    void add(const Instruction& instruction) { open_.back().code.push_back(instruction); }

    void bind(const std::string& name, int value) { names_[name].push_back(value); }
    void unbind(const std::string& name) { names_[name].pop_back(); }
    [[nodiscard]] int named(const std::string& name) const {
        const auto found = names_.find(name);
        if (found == names_.end() || found->second.empty()) throw Unknown{};
        return found->second.back();
    }

    int constant(Value value) {
        const auto [known, is_new] = constants_.try_emplace(std::bit_cast<int64_t>(value), 0);
        if (is_new) {
            known->second = new_value(0);
            program_.values.back() = value;
        }
        return known->second;
    }
    int whole(int64_t value) { return constant({.i = value}); }
    int real(float value) {
        Value zeroed{.i = 0};
        zeroed.f = value;
        return constant(zeroed);
    }

    /// A value that depends on others alone: computed in the outermost region that knows them all.
    int pure(Op op, int a, int b = -1, int c = -1) {
        int outermost = 0;
        for (const int value : {a, b, c}) {
            if (value >= 0) outermost = std::max(outermost, depths_[static_cast<size_t>(value)]);
        }
        Open& where = open_[static_cast<size_t>(outermost)];
        const auto [known, is_new] = where.known.try_emplace({op, a, b, c}, 0);
        if (is_new) {
            known->second = new_value(outermost);
            where.code.push_back({op, known->second, a, b, c});
        }
        return known->second;
    }

    static void check(const Halide::Type& type) {
        const bool is_known = type.is_handle() || type.is_bool() || type == Halide::Int(32) ||
                              type == Halide::Int(64) || type == Halide::UInt(64) ||
                              type == Halide::Float(32);
        if (!is_known || type.lanes() != 1) throw Unknown{};
    }
    static Op of_type(const Halide::Type& type, Op on_whole, Op on_float) {
        return type.is_float() ? on_float : on_whole;
    }
    template <class Node>
    int binary(const Node* e, Op on_whole, Op on_float) {
        const int a = value(e->a), b = value(e->b);
        return pure(of_type(e->a.type(), on_whole, on_float), a, b);
    }
    template <class Node>
    int reversed(const Node* e, Op on_whole, Op on_float) {
        const int a = value(e->a), b = value(e->b);
        return pure(of_type(e->a.type(), on_whole, on_float), b, a);
    }
    template <class Node>
    int only_whole(const Node* e, Op op) {
        if (e->type.is_float()) throw Unknown{};
        const int a = value(e->a), b = value(e->b);
        return pure(op, a, b);
    }

    int value(const Expr& e) {
        check(e.type());
        if (const auto* x = e.as<IntImm>()) return whole(x->value);
        if (const auto* x = e.as<UIntImm>()) return whole(static_cast<int64_t>(x->value));
        if (const auto* x = e.as<FloatImm>()) return real(static_cast<float>(x->value));
        if (const auto* x = e.as<Variable>()) return named(x->name);
        if (const auto* x = e.as<Add>()) return binary(x, Op::add, Op::float_add);
        if (const auto* x = e.as<Sub>()) return binary(x, Op::subtract, Op::float_subtract);
        if (const auto* x = e.as<Mul>()) return binary(x, Op::multiply, Op::float_multiply);
        if (const auto* x = e.as<Div>()) return binary(x, Op::divide, Op::float_divide);
        if (const auto* x = e.as<Mod>()) return only_whole(x, Op::modulo);
        if (const auto* x = e.as<Min>()) return binary(x, Op::minimum, Op::float_minimum);
        if (const auto* x = e.as<Max>()) return binary(x, Op::maximum, Op::float_maximum);
        if (const auto* x = e.as<EQ>()) return binary(x, Op::equal, Op::float_equal);
        if (const auto* x = e.as<NE>())
            return pure(Op::negate, binary(x, Op::equal, Op::float_equal));
        if (const auto* x = e.as<LT>()) return binary(x, Op::less, Op::float_less);
        if (const auto* x = e.as<LE>()) return binary(x, Op::at_most, Op::float_at_most);
        if (const auto* x = e.as<GT>()) return reversed(x, Op::less, Op::float_less);
        if (const auto* x = e.as<GE>()) return reversed(x, Op::at_most, Op::float_at_most);
        if (const auto* x = e.as<And>()) return only_whole(x, Op::both);
        if (const auto* x = e.as<Or>()) return only_whole(x, Op::either);
        if (const auto* x = e.as<Not>()) return pure(Op::negate, value(x->a));
        if (const auto* x = e.as<Select>()) {
            const int condition = value(x->condition), then = value(x->true_value);
            return pure(Op::choose, condition, then, value(x->false_value));
        }
        if (const auto* x = e.as<Cast>()) {
            const bool from = x->value.type().is_float(), to = x->type.is_float();
            const int of = value(x->value);
            return from == to ? of : pure(to ? Op::to_float : Op::to_int, of);
        }
        if (const auto* x = e.as<Reinterpret>()) {
            const bool from = x->value.type().is_float(), to = x->type.is_float();
            const int of = value(x->value);
            return from == to ? of : pure(to ? Op::float_of_bits : Op::bits_of_float, of);
        }
        if (const auto* x = e.as<Let>()) {
            bind(x->name, value(x->value));
            const int result = value(x->body);
            unbind(x->name);
            return result;
        }
        if (const auto* x = e.as<Load>()) return loaded(*x);
        if (const auto* x = e.as<Call>()) return called(*x);
        throw Unknown{};
    }

    int loaded(const Load& load) {
        if (!is_const_one(load.predicate)) throw Unknown{};
        const int base = named(load.name), index = value(load.index), to = new_value(depth());
        const Op op = load.type.is_float()         ? Op::load_float
                      : load.type.bytes() == 8     ? Op::load_word
                      : load.type == Halide::Int(32) ? Op::load_int
                                                   : throw Unknown{};
        add({op, to, -1, index, base});
        return to;
    }

    int called(const Call& call) {
        const auto is = [&](Call::IntrinsicOp op) { return call.is_intrinsic(op); };
        if (is(Call::if_then_else) && call.args.size() == 3) return chosen(call);
        std::vector<int> of;
        for (const Expr& argument : call.args) of.push_back(value(argument));
        if (is(Call::likely) || is(Call::likely_if_innermost)) return of[0];
        if (of.size() == 1) {
            const bool is_float = call.args[0].type().is_float();
            if (is(Call::abs) && is_float) return pure(Op::float_absolute, of[0]);
            const std::pair<const char*, Op> functions[]{{"floor_f32", Op::float_floor},
                                                         {"ceil_f32", Op::float_ceil},
                                                         {"round_f32", Op::float_round},
                                                         {"sqrt_f32", Op::float_root}};
            for (const auto& [name, op] : functions) {
                if (call.name == name) return pure(op, of[0]);
            }
            if (is(Call::round)) return pure(Op::float_round, of[0]);
        }
        if (of.size() == 2) {
            const std::pair<Call::IntrinsicOp, Op> operations[]{
                {Call::shift_left, Op::shift_left},
                {Call::shift_right, Op::shift_right},
                {Call::bitwise_and, Op::bits_and},
                {Call::bitwise_or, Op::bits_or},
                {Call::strict_add, Op::float_add},
                {Call::strict_sub, Op::float_subtract},
                {Call::strict_mul, Op::float_multiply},
                {Call::strict_div, Op::float_divide},
                {Call::strict_min, Op::float_minimum},
                {Call::strict_max, Op::float_maximum},
                {Call::strict_eq, Op::float_equal},
                {Call::strict_lt, Op::float_less},
                {Call::strict_le, Op::float_at_most}};
            for (const auto& [intrinsic, op] : operations) {
                if (is(intrinsic)) return pure(op, of[0], of[1]);
            }
        }
        throw Unknown{};
    }

    /// Only the chosen side is computed, since the other may load what is not there.
    int chosen(const Call& call) {
        const int condition = value(call.args[0]), to = new_value(depth());
        const auto side = [&](const Expr& e) {
            open();
            add({Op::copy, to, value(e)});
            return close();
        };
        const int then = side(call.args[1]), otherwise = side(call.args[2]);
        add({Op::branch, -1, condition, -1, -1, then, otherwise});
        return to;
    }

    void execute(const Stmt& s) {
        if (const auto* let = s.as<LetStmt>()) {
            bind(let->name, value(let->value));
            execute(let->body);
            unbind(let->name);
        } else if (const auto* block = s.as<Block>()) {
            execute(block->first);
            execute(block->rest);
        } else if (const auto* produce = s.as<ProducerConsumer>()) {
            execute(produce->body);
        } else if (const auto* loop = s.as<For>()) {
            const int first = value(loop->min), trips = value(loop->extent);
            open();
            const int index = new_value(depth());
            bind(loop->name, index);
            execute(loop->body);
            unbind(loop->name);
            const int body = close();
            add({Op::loop, index, first, trips, -1, body});
        } else if (const auto* branch = s.as<IfThenElse>()) {
            const int condition = value(branch->condition), then = region(branch->then_case);
            const int other = branch->else_case.defined() ? region(branch->else_case) : -1;
            add({Op::branch, -1, condition, -1, -1, then, other});
        } else if (const auto* allocation = s.as<Allocate>()) {
            allocate(*allocation);
        } else if (const auto* store = s.as<Store>()) {
            if (!is_const_one(store->predicate)) throw Unknown{};
            check(store->value.type());
            const int stored = value(store->value), index = value(store->index);
            const Halide::Type type = store->value.type();
            const Op op = type.is_float()     ? Op::store_float
                          : type.bytes() == 8 ? Op::store_word
                          : type == Halide::Int(32) ? Op::store_int
                                              : throw Unknown{};
            add({op, -1, stored, index, named(store->name)});
        } else if (const auto* evaluated = s.as<Evaluate>()) {
            // A call could do more than have a value.
            if (!is_const(evaluated->value)) throw Unknown{};
        } else if (!s.as<Free>()) {
            throw Unknown{};
        }
    }

    void allocate(const Allocate& allocation) {
        check(allocation.type);
        if (!is_const_one(allocation.condition) || allocation.new_expr.defined()) throw Unknown{};
        int elements = whole(1);
        for (const Expr& extent : allocation.extents)
            elements = pure(Op::multiply, elements, value(extent));
        open();
        const int address = new_value(depth());
        bind(allocation.name, address);
        execute(allocation.body);
        unbind(allocation.name);
        const int body = close();
        add({Op::allocate, address, -1, elements, whole(allocation.type.bytes()), body});
    }

    Program program_;
    std::vector<Open> open_;
    std::vector<int> depths_;  ///< of the region that computes a value, by value
    std::map<int64_t, int> constants_;
    std::map<std::string, std::vector<int>> names_;
};

class Execution {
public:
    Execution(const Program& program, int64_t limit)
        : regions_(program.regions), values_(program.values), left_(limit) {}

    void set(int value, int64_t number) { values_[static_cast<size_t>(value)].i = number; }
    template <class T>
    void set(int value, T* address) {
        set(value, std::bit_cast<int64_t>(address));
    }

    /// False as soon as the limit is reached.
    bool run(int region) {
        const std::vector<Instruction>& code = regions_[static_cast<size_t>(region)];
        left_ -= std::ssize(code);
        if (left_ < 0) return false;
        for (const Instruction& s : code) {
            switch (s.op) {
                case Op::load_float: of(s.to).f = *element<float>(s); break;
                case Op::load_int: of(s.to).i = *element<int32_t>(s); break;
                case Op::load_word: of(s.to).i = *element<int64_t>(s); break;
                case Op::store_float: *element<float>(s) = f(s.a); break;
                case Op::store_int: *element<int32_t>(s) = static_cast<int32_t>(i(s.a)); break;
                case Op::store_word: *element<int64_t>(s) = i(s.a); break;
                case Op::allocate:
                    if (!with_memory(s)) return false;
                    break;
                case Op::loop: {
                    const int64_t first = i(s.a), end = first + i(s.b);
                    for (int64_t index = first; index < end; ++index) {
                        of(s.to).i = index;
                        if (!run(s.body)) return false;
                    }
                    break;
                }
                case Op::branch: {
                    const int taken = i(s.a) != 0 ? s.body : s.other;
                    if (taken >= 0 && !run(taken)) return false;
                    break;
                }
                case Op::copy: of(s.to) = of(s.a); break;
                case Op::add: of(s.to).i = i(s.a) + i(s.b); break;
                case Op::subtract: of(s.to).i = i(s.a) - i(s.b); break;
                case Op::multiply: of(s.to).i = i(s.a) * i(s.b); break;
                case Op::divide: of(s.to).i = quotient(i(s.a), i(s.b)); break;
                case Op::modulo:
                    of(s.to).i =
                        i(s.b) == 0 ? 0 : i(s.a) - quotient(i(s.a), i(s.b)) * i(s.b);
                    break;
                case Op::minimum: of(s.to).i = std::min(i(s.a), i(s.b)); break;
                case Op::maximum: of(s.to).i = std::max(i(s.a), i(s.b)); break;
                case Op::equal: of(s.to).i = i(s.a) == i(s.b); break;
                case Op::less: of(s.to).i = i(s.a) < i(s.b); break;
                case Op::at_most: of(s.to).i = i(s.a) <= i(s.b); break;
                case Op::both: of(s.to).i = i(s.a) & i(s.b); break;
                case Op::either: of(s.to).i = i(s.a) | i(s.b); break;
                case Op::negate: of(s.to).i = i(s.a) == 0; break;
                case Op::shift_left:
                    of(s.to).i = static_cast<int32_t>(static_cast<uint32_t>(i(s.a)) << i(s.b));
                    break;
                case Op::shift_right: of(s.to).i = i(s.a) >> i(s.b); break;
                case Op::bits_and: of(s.to).i = i(s.a) & i(s.b); break;
                case Op::bits_or: of(s.to).i = i(s.a) | i(s.b); break;
                case Op::choose: of(s.to) = i(s.a) != 0 ? of(s.b) : of(s.c); break;
                case Op::float_add: of(s.to).f = f(s.a) + f(s.b); break;
                case Op::float_subtract: of(s.to).f = f(s.a) - f(s.b); break;
                case Op::float_multiply: of(s.to).f = f(s.a) * f(s.b); break;
                case Op::float_divide: of(s.to).f = f(s.a) / f(s.b); break;
                // The second operand is taken where either is NaN, as x86 does.
                case Op::float_minimum: of(s.to).f = f(s.a) < f(s.b) ? f(s.a) : f(s.b); break;
                case Op::float_maximum: of(s.to).f = f(s.a) > f(s.b) ? f(s.a) : f(s.b); break;
                case Op::float_equal: of(s.to).i = f(s.a) == f(s.b); break;
                case Op::float_less: of(s.to).i = f(s.a) < f(s.b); break;
                case Op::float_at_most: of(s.to).i = f(s.a) <= f(s.b); break;
                case Op::float_absolute: of(s.to).f = std::abs(f(s.a)); break;
                case Op::float_floor: of(s.to).f = std::floor(f(s.a)); break;
                case Op::float_ceil: of(s.to).f = std::ceil(f(s.a)); break;
                case Op::float_round: of(s.to).f = std::nearbyint(f(s.a)); break;
                case Op::float_root: of(s.to).f = std::sqrt(f(s.a)); break;
                case Op::to_float: of(s.to).f = static_cast<float>(i(s.a)); break;
                case Op::to_int: of(s.to).i = static_cast<int32_t>(f(s.a)); break;
                case Op::bits_of_float: of(s.to).i = std::bit_cast<int32_t>(f(s.a)); break;
                case Op::float_of_bits:
                    of(s.to).f = std::bit_cast<float>(static_cast<uint32_t>(i(s.a)));
                    break;
            }
        }
        return true;
    }

private:
    [[nodiscard]] Value& of(int value) { return values_[static_cast<size_t>(value)]; }
    [[nodiscard]] int64_t i(int value) { return of(value).i; }
    [[nodiscard]] float f(int value) { return of(value).f; }
    template <class T>
    [[nodiscard]] T* element(const Instruction& s) {
        return std::bit_cast<T*>(i(s.c)) + i(s.b);
    }
    bool with_memory(const Instruction& s) {
        const int64_t bytes = std::max<int64_t>(i(s.b), 0) * i(s.c);
        std::vector<std::byte> memory(static_cast<size_t>(bytes) + sizeof(int64_t));
        set(s.to, memory.data());
        return run(s.body);
    }

    const std::vector<std::vector<Instruction>>& regions_;
    std::vector<Value> values_;
    int64_t left_;  ///< instructions until the limit
};

class Interpreted final : public InterpretedCode {
public:
    explicit Interpreted(Program program) : program_(std::move(program)) {}

    [[nodiscard]] bool run(const Arguments& arguments, int64_t limit) const override {
        Execution execution(program_, limit);
        execution.set(argument(argument::inputs), arguments.inputs);
        execution.set(argument(argument::outputs), arguments.outputs);
        execution.set(argument(argument::constants), arguments.constants);
        execution.set(argument(counters_argument), arguments.counters);
        execution.set(argument(argument::strip_begin), int64_t{0});
        execution.set(argument(argument::strip_end), arguments.strips);
        return execution.run(0);
    }

private:
    [[nodiscard]] int argument(const char* name) const { return program_.arguments.at(name); }

    Program program_;
};

}  // namespace
}  // namespace interpreting

std::unique_ptr<const InterpretedCode> InterpretedCode::of(
    const Halide::Internal::Stmt& body) {
    try {
        return std::make_unique<const interpreting::Interpreted>(
            interpreting::Translation(body).take());
    } catch (const interpreting::Unknown&) {
        return nullptr;
    }
}

}  // namespace laminate
