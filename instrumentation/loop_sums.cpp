#include "instrumentation/loop_sums.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "generators/compile/executable.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

// ---- values

/// constant + sum of coefficient * variable. A variable counts the iterations of a loop under way
/// from the one that is being run, so it is 0 now and `constant` is the value of the moment.
struct Affine {
    struct Term {
        int32_t variable = 0;  ///< depth of its loop: inner loops have larger ones
        int64_t coefficient = 0;
        friend bool operator==(const Term&, const Term&) = default;
        friend auto operator<=>(const Term&, const Term&) = default;
    };
    static constexpr int most_terms = 10;

    int64_t constant = 0;
    int size = 0;
    std::array<Term, most_terms> terms;  ///< by variable, ascending

    Affine(int64_t value = 0) : constant(value) {}  // NOLINT: a number is a value
    Affine(const Affine& other) : constant(other.constant), size(other.size) {
        std::copy_n(other.terms.begin(), size, terms.begin());
    }
    Affine& operator=(const Affine& other) {
        constant = other.constant;
        size = other.size;
        std::copy_n(other.terms.begin(), size, terms.begin());
        return *this;
    }
    [[nodiscard]] bool is_constant() const { return size == 0; }
    [[nodiscard]] const Term& innermost() const { return terms[static_cast<size_t>(size - 1)]; }
    [[nodiscard]] bool same_terms(const Affine& other) const {
        return size == other.size &&
               std::equal(terms.begin(), terms.begin() + size, other.terms.begin());
    }
    friend bool operator==(const Affine& a, const Affine& b) {
        return a.constant == b.constant && a.same_terms(b);
    }

    /// this += factor * other; false when there is no room for the terms.
    [[nodiscard]] bool add(const Affine& other, int64_t factor) {
        if (other.size == 0) {
            constant += factor * other.constant;
            return true;
        }
        Affine sum(constant + factor * other.constant);
        int i = 0, j = 0;
        while (i < size || j < other.size) {
            Term term;
            const bool left =
                i < size && (j == other.size || terms[static_cast<size_t>(i)].variable <=
                                                    other.terms[static_cast<size_t>(j)].variable);
            const bool right =
                j < other.size && (i == size || other.terms[static_cast<size_t>(j)].variable <=
                                                    terms[static_cast<size_t>(i)].variable);
            if (left) term = terms[static_cast<size_t>(i++)];
            if (right) {
                const Term& t = other.terms[static_cast<size_t>(j++)];
                term = {t.variable, term.coefficient + factor * t.coefficient};
            }
            if (term.coefficient == 0) continue;
            if (sum.size == most_terms) return false;
            sum.terms[static_cast<size_t>(sum.size++)] = term;
        }
        *this = sum;
        return true;
    }
    void scale(int64_t factor) {
        constant *= factor;
        if (factor == 0) size = 0;
        for (int n = 0; n < size; ++n) terms[static_cast<size_t>(n)].coefficient *= factor;
    }
};

// ---- program

enum class Op {
    constant,
    value,    ///< `slot`: a name
    data,     ///< element a of control array `slot`
    counter,  ///< counter `slot`
    add,
    subtract,
    multiply,
    divide,
    modulo,
    minimum,
    maximum,
    equal,
    less,
    negate,  ///< of a condition
    both,
    either,
    choose,  ///< a ? b : c
    let,     ///< name `slot` is a in b
};

struct ExprNode {
    Op op = Op::constant;
    int64_t constant = 0;
    int slot = 0;
    int a = -1, b = -1, c = -1;
};

enum class Kind { nothing, sequence, let, loop, branch, array, set_data, increment, set_counter };

struct StmtNode {
    Kind kind = Kind::nothing;
    int slot = 0;  ///< name, array or counter
    int first = -1,
        second = -1;            ///< expressions: value; loop: min and extent; data: index and value
    int body = -1, other = -1;  ///< statements
    int64_t elements = 0;       ///< of an array
    bool is_eager = false;      ///< let: its value depends on memory, so it is needed as it is now
    std::vector<int> counters;  ///< loop: that its body increments
    std::vector<int> outer_arrays;  ///< loop: that its body changes and that outlive it
    int64_t period = 1;             ///< loop: iterations after which quotients repeat
};

struct Program {
    std::vector<ExprNode> exprs;
    std::vector<StmtNode> stmts;
    int root = -1;
    int names = 0;
    int arrays = 0;
    int strip_begin = -1;
    int strip_end = -1;
    std::set<int> observed_counters;  ///< that values are made of
};

[[noreturn]] void unknown(const char* what) {
    throw std::logic_error(std::string("counting statement: ") + what +
                           " that loop sums do not know");
}

/// Names become numbers.
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

    int make(ExprNode node) {
        program_.exprs.push_back(node);
        return static_cast<int>(program_.exprs.size()) - 1;
    }
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

    int translate(const Expr& e) {
        if (e.type().lanes() != 1 || !(e.type().is_int_or_uint() || e.type().is_bool()))
            unknown("a type");
        if (const auto* i = e.as<IntImm>()) return constant(i->value);
        if (const auto* u = e.as<UIntImm>()) return constant(static_cast<int64_t>(u->value));
        if (const auto* v = e.as<Variable>()) {
            const auto known = names_.find(v->name);
            if (known == names_.end() || known->second.empty()) unknown("a name");
            return make({Op::value, 0, known->second.back(), -1, -1, -1});
        }
        if (const auto* cast = e.as<Cast>())
            return translate(cast->value);  // integers here are far from their limits
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

    int make(StmtNode node) {
        program_.stmts.push_back(std::move(node));
        return static_cast<int>(program_.stmts.size()) - 1;
    }

    int translate(const Stmt& s) {
        StmtNode node;
        if (const auto* let = s.as<LetStmt>()) {
            if (let->value.type().is_handle())
                return translate(let->body);  // addresses: nothing is loaded or stored there
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
        } else if (!s.as<Evaluate>()) {
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
            // A maximum of what was there and of something else: the same however often it is
            // repeated.
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

// ---- execution

class Execution {
public:
    Execution(Program program, size_t counters, int64_t strips, LoopSteps steps)
        : program_(std::move(program)),
          steps_(steps),
          names_(static_cast<size_t>(program_.names)),
          arrays_(static_cast<size_t>(program_.arrays)) {
        result_.counters.assign(counters, 0);
        set(program_.strip_begin, 0);
        set(program_.strip_end, strips);
    }

    SummedCounters run() && {
        execute(program_.root);
        return std::move(result_);
    }

private:
    struct Name {
        bool is_known = false;
        int value = -1;  ///< expression, while not known
        Affine known;
    };

    template <class I>
    static size_t at(I i) {
        return static_cast<size_t>(i);
    }
    void set(int name, const Affine& value) {
        names_[at(name)].is_known = true;
        names_[at(name)].known = value;
    }

    // Conditions.

    /// Everything is as it is while a >= 0, which it is now.
    void hold(const Affine& a) {
        if (!a.is_constant()) conditions_.push_back(a);
    }
    /// ... while a is what it is now.
    void pin(Affine& a) {
        if (a.is_constant()) return;
        Affine zero = a;
        zero.constant = 0;
        hold(zero);
        zero.scale(-1);
        hold(zero);
        a.size = 0;
    }
    /// ... while each variable of a is where it is now, for what takes more terms than there is
    /// room for.
    void pin_variables(Affine& a) {
        for (int n = 0; n < a.size; ++n) {
            Affine variable;
            variable.size = 1;
            variable.terms[0] = {a.terms[at(n)].variable, -1};
            hold(variable);
        }
        a.size = 0;
    }
    Affine sum(const Affine& a, const Affine& b, int64_t factor) {
        Affine result = a;
        if (result.add(b, factor)) return result;
        Affine pinned = b;
        pin_variables(pinned);
        result.constant += factor * pinned.constant;
        return result;
    }

    /// Whether difference >= 0, from here on. Where it is 0 now, either answer may serve: the one
    /// that lasts longer.
    bool is_at_least_zero(const Affine& difference, bool either_at_zero) {
        bool yes = difference.constant >= 0;
        if (either_at_zero && difference.constant == 0 && !difference.is_constant())
            yes = difference.innermost().coefficient > 0;
        Affine condition = difference;
        if (!yes) {
            condition.scale(-1);
            if (!either_at_zero) condition.constant -= 1;
        }
        hold(condition);
        return yes;
    }

    Affine quotient(Affine a, int64_t divisor) {
        if (divisor < 0) unknown("a negative divisor");
        if (divisor == 0) return 0;
        const auto floor = [&](int64_t value) {
            return value >= 0 ? value / divisor : -((divisor - 1 - value) / divisor);
        };
        Affine whole, rest(a.constant);
        for (int n = 0; n < a.size; ++n) {
            const Affine::Term& term = a.terms[at(n)];
            if (term.coefficient % divisor == 0) {
                whole.terms[at(whole.size++)] = {term.variable, term.coefficient / divisor};
            } else {
                rest.terms[at(rest.size++)] = term;
                // After that many iterations the remainder is the same again.
                int64_t& period = period_of_[at(term.variable)];
                const int64_t longer =
                    std::lcm(period, divisor / std::gcd(term.coefficient, divisor));
                if (longer <= longest_period) period = longer;
            }
        }
        whole.constant = floor(rest.constant);
        if (!rest.is_constant()) {
            rest.constant -= whole.constant * divisor;
            hold(rest);
            rest.scale(-1);
            rest.constant += divisor - 1;
            hold(rest);
        }
        return whole;
    }

    // Expressions.

    bool is_true(int expression) { return evaluate(expression).constant != 0; }

    Affine& cell(int array, int index) {
        Affine place = evaluate(index);
        pin(place);
        return arrays_[at(array)].at(at(place.constant));
    }

    Affine evaluate(int expression) {
        const ExprNode& e = program_.exprs[at(expression)];
        switch (e.op) {
            case Op::constant:
                return e.constant;
            case Op::value: {
                Name& name = names_[at(e.slot)];
                if (!name.is_known) set(e.slot, evaluate(name.value));
                return name.known;
            }
            case Op::data:
                return cell(e.slot, e.a);
            case Op::counter:
                return result_.counters.at(at(e.slot));
            case Op::add:
                return sum(evaluate(e.a), evaluate(e.b), 1);
            case Op::subtract:
                return sum(evaluate(e.a), evaluate(e.b), -1);
            case Op::multiply: {
                Affine a = evaluate(e.a), b = evaluate(e.b);
                if (!a.is_constant() && !b.is_constant()) pin(b);
                if (b.is_constant()) std::swap(a, b);
                b.scale(a.constant);
                return b;
            }
            case Op::divide:
            case Op::modulo: {
                const Affine a = evaluate(e.a);
                Affine b = evaluate(e.b);
                pin(b);
                const Affine q = quotient(a, b.constant);
                return e.op == Op::divide ? q
                       : b.constant == 0  ? Affine(0)
                                          : sum(a, q, -b.constant);
            }
            case Op::minimum:
            case Op::maximum: {
                const Affine a = evaluate(e.a), b = evaluate(e.b);
                const bool second_is_larger = is_at_least_zero(sum(b, a, -1), true);
                return second_is_larger == (e.op == Op::maximum) ? b : a;
            }
            case Op::equal: {
                Affine difference = sum(evaluate(e.a), evaluate(e.b), -1);
                if (difference.constant == 0) {
                    pin(difference);
                    return 1;
                }
                if (difference.constant < 0) difference.scale(-1);
                difference.constant -= 1;
                hold(difference);
                return 0;
            }
            case Op::less:
                return !is_at_least_zero(sum(evaluate(e.a), evaluate(e.b), -1), false);
            case Op::negate:
                return !is_true(e.a);
            case Op::both:
                return is_true(e.a) && is_true(e.b);
            case Op::either:
                return is_true(e.a) || is_true(e.b);
            case Op::choose:
                return evaluate(is_true(e.a) ? e.b : e.c);
            case Op::let:
                set(e.slot, evaluate(e.a));
                return evaluate(e.b);
        }
        return 0;
    }

    // Statements.

    void execute(int statement) {
        if (statement < 0) return;
        StmtNode& s = program_.stmts[at(statement)];
        switch (s.kind) {
            case Kind::nothing:
                return;
            case Kind::sequence:
                execute(s.body);
                execute(s.other);
                return;
            case Kind::let:
                if (s.is_eager) {
                    set(s.slot, evaluate(s.first));
                } else {
                    names_[at(s.slot)].is_known = false;
                    names_[at(s.slot)].value = s.first;
                }
                execute(s.body);
                return;
            case Kind::loop:
                loop(s);
                return;
            case Kind::branch:
                execute(is_true(s.first) ? s.body : s.other);
                return;
            case Kind::array:
                arrays_[at(s.slot)].assign(at(s.elements), 0);
                execute(s.body);
                return;
            case Kind::set_data: {
                const Affine value = evaluate(s.second);
                cell(s.slot, s.first) = value;
                return;
            }
            case Kind::increment: {
                Affine n = evaluate(s.first);
                pin(n);
                result_.counters.at(at(s.slot)) += n.constant;
                return;
            }
            case Kind::set_counter: {
                Affine value = evaluate(s.first);
                pin(value);
                int64_t& counter = result_.counters.at(at(s.slot));
                counter = std::max(counter, value.constant);
                return;
            }
        }
    }

    void loop(StmtNode& s) {
        Affine extent = evaluate(s.second);
        if (extent.constant <= 0) {
            extent.scale(-1);
            hold(extent);
            return;
        }
        pin(extent);
        const int64_t trips = extent.constant;
        const Affine min = evaluate(s.first);
        for (int64_t trip = 0; trip < trips;) {
            int64_t period = std::min(s.period, trips - trip);
            int64_t rounds = (trips - trip) / period;
            if (steps_ == LoopSteps::every_iteration) period = rounds = 1;
            trip += period * run_of_rounds(s, min, trip, period, rounds);
        }
    }

    /// Runs `period` iterations from `trip` on, and counts as many of `rounds` such rounds as do
    /// the same; returns how many.
    int64_t run_of_rounds(StmtNode& s, const Affine& min, int64_t trip, int64_t period,
                          int64_t rounds) {
        const int32_t variable = depth_;
        const bool is_tracked = rounds > 1;
        std::vector<int64_t> counters_before;
        std::vector<std::vector<Affine>> data_before;
        const size_t conditions_before = conditions_.size();
        if (is_tracked) {
            ++depth_;
            period_of_.push_back(1);
            for (const int id : s.counters) counters_before.push_back(result_.counters.at(at(id)));
            for (const int array : s.outer_arrays) data_before.push_back(arrays_[at(array)]);
        }
        for (int64_t n = 0; n < period; ++n) {
            Affine index = min;
            index.constant += trip + n;
            if (is_tracked) {
                Affine rounds_on;
                rounds_on.size = 1;
                rounds_on.terms[0] = {variable, period};
                index = sum(index, rounds_on, 1);
            }
            set(s.slot, index);
            execute(s.body);
            ++result_.bodies;
        }
        if (!is_tracked) return 1;
        --depth_;
        if (const int64_t longer = std::lcm(s.period, period * period_of_.back());
            longer <= longest_period)
            s.period = longer;
        period_of_.pop_back();

        int64_t same = rounds - 1;  // further rounds
        for (size_t n = 0; n < s.outer_arrays.size(); ++n) {
            if (arrays_[at(s.outer_arrays[n])] != data_before[n]) same = 0;
        }
        for (size_t n = 0; n < s.counters.size(); ++n) {
            if (program_.observed_counters.contains(s.counters[n]) &&
                result_.counters[at(s.counters[n])] != counters_before[n])
                same = 0;
        }
        for (size_t n = conditions_before; n < conditions_.size(); ++n) {
            const Affine& a = conditions_[n];
            if (a.size > 0 && a.innermost().variable == variable && a.innermost().coefficient < 0) {
                same = std::min(same, a.constant / -a.innermost().coefficient);
            }
        }
        for (size_t n = 0; n < s.counters.size(); ++n) {
            int64_t& counter = result_.counters[at(s.counters[n])];
            counter += (counter - counters_before[n]) * same;
        }
        // The variable goes: a condition must hold in every round counted, so where it is closest
        // to failing.
        size_t kept = conditions_before;
        for (size_t n = conditions_before; n < conditions_.size(); ++n) {
            Affine a = conditions_[n];
            if (a.innermost().variable == variable) {
                if (a.innermost().coefficient < 0) a.constant += a.innermost().coefficient * same;
                --a.size;
            }
            if (a.size > 0) conditions_[kept++] = a;
        }
        conditions_.resize(kept);
        if (kept > conditions_before + 16) keep_tightest(conditions_before);
        // Data that changed were changed by one round only, in which the variable was 0.
        for (const int array : s.outer_arrays) {
            for (Affine& value : arrays_[at(array)]) {
                if (value.size > 0 && value.innermost().variable == variable) --value.size;
            }
        }
        return same + 1;
    }

    /// Of conditions with the same terms the one with the smallest constant.
    void keep_tightest(size_t from) {
        const auto begin = conditions_.begin() + static_cast<std::ptrdiff_t>(from);
        const auto compare = [](const Affine& a, const Affine& b) {
            const auto a_end = a.terms.begin() + a.size, b_end = b.terms.begin() + b.size;
            if (a.same_terms(b)) return a.constant < b.constant;
            return std::lexicographical_compare(a.terms.begin(), a_end, b.terms.begin(), b_end);
        };
        std::sort(begin, conditions_.end(), compare);
        const auto same = [](const Affine& a, const Affine& b) { return a.same_terms(b); };
        conditions_.erase(std::unique(begin, conditions_.end(), same), conditions_.end());
    }

    static constexpr int64_t longest_period = 64;

    Program program_;
    LoopSteps steps_;
    SummedCounters result_;
    std::vector<Name> names_;
    std::vector<std::vector<Affine>> arrays_;
    std::vector<Affine> conditions_;
    std::vector<int64_t> period_of_;  ///< by variable: rounds after which the quotients seen repeat
    int32_t depth_ = 0;
};

}  // namespace

SummedCounters summed_counters(const Stmt& statement, size_t counters, int64_t strips,
                               LoopSteps steps) {
    return Execution(Translator(statement).take(), counters, strips, steps).run();
}

}  // namespace laminate
