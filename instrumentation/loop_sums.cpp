#include "instrumentation/loop_sums.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "base/indexed.h"
#include "instrumentation/affine.h"
#include "instrumentation/count_program.h"

namespace laminate {

namespace counting {
namespace {

/// `Value` is Affine to sum loops up, or Number to execute every iteration.
template <class Value>
class Execution {
public:
    using Tell = std::function<void(const std::vector<Value>&)>;

    Execution(Program program, size_t counters, int64_t strips, Tell tell = {},
              RoundsListener* rounds = nullptr)
        : program_(std::move(program)),
          tell_(std::move(tell)),
          rounds_(rounds),
          names_(program_.names),
          arrays_(program_.arrays) {
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
        int value = -1;  ///< expression, until its value is known
        Value known;
    };
    static constexpr bool sums_loops = std::is_same_v<Value, Affine>;

    [[nodiscard]] int64_t& counter(int id) { return result_.counters.at(static_cast<size_t>(id)); }
    void set(int name, const Value& value) {
        names_[name].is_known = true;
        names_[name].known = value;
    }

    // Conditions.

    /// Nothing changes while a >= 0, which holds now.
    void hold(const Value& a) {
        if (!a.is_constant()) conditions_.push_back(a);
    }
    /// Nothing changes while a keeps its present value.
    void pin(Value& a) {
        if (a.is_constant()) return;
        Value zero = a;
        zero.constant = 0;
        hold(zero);
        zero.scale(-1);
        hold(zero);
        a = a.constant;
    }
    /// Nothing changes while each variable of a keeps its present value. For sums with more terms
    /// than there is room for.
    void pin_variables(Affine& a) {
        for (size_t n = 0; n < a.size; ++n) {
            Affine variable;
            variable.size = 1;
            variable.terms[0] = {a.terms[n].variable, -1};
            hold(variable);
        }
        a.size = 0;
    }
    Value sum(const Value& a, const Value& b, int64_t factor) {
        Value result = a;
        if constexpr (sums_loops) {
            if (result.add(b, factor)) return result;
            Affine pinned = b;
            pin_variables(pinned);
        }
        result.constant += factor * b.constant;
        return result;
    }

    /// Whether difference >= 0, as a condition from here on. If it is 0 now and either answer will
    /// do, the one that holds longer.
    bool is_at_least_zero(const Value& difference, bool either_at_zero) {
        bool yes = difference.constant >= 0;
        if constexpr (sums_loops) {
            if (either_at_zero && difference.constant == 0 && !difference.is_constant())
                yes = difference.innermost().coefficient > 0;
        }
        Value condition = difference;
        if (!yes) {
            condition.scale(-1);
            if (!either_at_zero) condition.constant -= 1;
        }
        hold(condition);
        return yes;
    }

    Value quotient(const Value& a, int64_t divisor) {
        if (divisor < 0)
            throw std::logic_error(
                "counting statement: a negative divisor that loop sums do not know");
        if (divisor == 0) return 0;
        const auto floor = [&](int64_t value) {
            return value >= 0 ? value / divisor : -((divisor - 1 - value) / divisor);
        };
        if constexpr (!sums_loops) return floor(a.constant);
        Value whole, rest(a.constant);
        split_terms(a, divisor, whole, rest);
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
    /// Terms that the divisor divides become terms of the quotient.
    void split_terms(const Affine& a, int64_t divisor, Affine& whole, Affine& rest) {
        for (size_t n = 0; n < a.size; ++n) {
            const Affine::Term& term = a.terms[n];
            if (term.coefficient % divisor == 0) {
                whole.terms[whole.size++] = {term.variable, term.coefficient / divisor};
            } else {
                rest.terms[rest.size++] = term;
                // After this many iterations the remainder repeats.
                int64_t& period = period_of_[term.variable];
                const int64_t longer =
                    std::lcm(period, divisor / std::gcd(term.coefficient, divisor));
                if (longer <= longest_period) period = longer;
            }
        }
    }
    static void split_terms(const Number&, int64_t, Number&, Number&) {}

    // Expressions.

    bool is_true(int expression) { return evaluate(expression).constant != 0; }

    Value& cell(int array, int index) {
        Value place = evaluate(index);
        pin(place);
        return arrays_[array].at(static_cast<size_t>(place.constant));
    }

    Value evaluate(int expression) {
        const ExprNode& e = program_.exprs[expression];
        switch (e.op) {
            case Op::constant:
                return e.constant;
            case Op::value: {
                Name& name = names_[e.slot];
                if (!name.is_known) set(e.slot, evaluate(name.value));
                return name.known;
            }
            case Op::data:
                return cell(e.slot, e.a);
            case Op::counter:
                return counter(e.slot);
            case Op::add:
                return sum(evaluate(e.a), evaluate(e.b), 1);
            case Op::subtract:
                return sum(evaluate(e.a), evaluate(e.b), -1);
            case Op::multiply: {
                Value a = evaluate(e.a), b = evaluate(e.b);
                if (!a.is_constant() && !b.is_constant()) pin(b);
                if (b.is_constant()) std::swap(a, b);
                b.scale(a.constant);
                return b;
            }
            case Op::divide:
            case Op::modulo: {
                const Value a = evaluate(e.a);
                Value b = evaluate(e.b);
                pin(b);
                const Value q = quotient(a, b.constant);
                return e.op == Op::divide ? q
                       : b.constant == 0  ? Value(0)
                                          : sum(a, q, -b.constant);
            }
            case Op::minimum:
            case Op::maximum: {
                const Value a = evaluate(e.a), b = evaluate(e.b);
                const bool second_is_larger = is_at_least_zero(sum(b, a, -1), true);
                return second_is_larger == (e.op == Op::maximum) ? b : a;
            }
            case Op::equal: {
                Value difference = sum(evaluate(e.a), evaluate(e.b), -1);
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
        StmtNode& s = program_.stmts[statement];
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
                    names_[s.slot].is_known = false;
                    names_[s.slot].value = s.first;
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
                arrays_[s.slot].assign(static_cast<size_t>(s.elements), 0);
                execute(s.body);
                return;
            case Kind::set_data: {
                const Value value = evaluate(s.second);
                cell(s.slot, s.first) = value;
                return;
            }
            case Kind::increment: {
                Value n = evaluate(s.first);
                pin(n);
                counter(s.slot) += n.constant;
                return;
            }
            case Kind::set_counter: {
                Value value = evaluate(s.first);
                pin(value);
                int64_t& largest = counter(s.slot);
                largest = std::max(largest, value.constant);
                return;
            }
            case Kind::call: {
                told_.clear();
                for (const int argument : s.arguments) told_.push_back(evaluate(argument));
                tell_(told_);
                return;
            }
        }
    }

    void loop(StmtNode& s) {
        Value extent = evaluate(s.second);
        if (extent.constant <= 0) {
            extent.scale(-1);
            hold(extent);
            return;
        }
        pin(extent);
        const int64_t trips = extent.constant;
        const Value min = evaluate(s.first);
        if constexpr (sums_loops) {
            for (int64_t trip = 0; trip < trips;) {
                const int64_t period = std::min(s.period, trips - trip);
                trip += period * run_of_rounds(s, min, trip, period, (trips - trip) / period);
            }
        } else {
            for (int64_t trip = 0; trip < trips; ++trip) run(s, min.constant + trip);
        }
    }
    void run(const StmtNode& loop, const Value& index) {
        set(loop.slot, index);
        execute(loop.body);
        ++result_.bodies;
    }

    /// Runs `period` iterations from `trip` on, which are one round. Counts as many of `rounds`
    /// rounds as do the same, and returns how many.
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
            if (rounds_ != nullptr) rounds_->begin_rounds(variable);
            for (const int id : s.counters) counters_before.push_back(counter(id));
            for (const int array : s.outer_arrays) data_before.push_back(arrays_[array]);
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
            run(s, index);
        }
        if (!is_tracked) return 1;
        --depth_;
        if (const int64_t longer = std::lcm(s.period, period * period_of_.back());
            longer <= longest_period)
            s.period = longer;
        period_of_.pop_back();

        int64_t same = rounds - 1;  // further rounds that do the same
        for (size_t n = 0; n < s.outer_arrays.size(); ++n) {
            if (arrays_[s.outer_arrays[n]] != data_before[n]) same = 0;
        }
        for (size_t n = 0; n < s.counters.size(); ++n) {
            if (program_.observed_counters.contains(s.counters[n]) &&
                counter(s.counters[n]) != counters_before[n])
                same = 0;
        }
        for (size_t n = conditions_before; n < conditions_.size(); ++n) {
            const Affine& a = conditions_[n];
            if (a.size > 0 && a.innermost().variable == variable && a.innermost().coefficient < 0) {
                same = std::min(same, a.constant / -a.innermost().coefficient);
            }
        }
        for (size_t n = 0; n < s.counters.size(); ++n) {
            int64_t& count = counter(s.counters[n]);
            count += (count - counters_before[n]) * same;
        }
        // The variable goes out of scope. A condition must hold in every round counted, so take it
        // where it is closest to failing.
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
        // Data that changed was changed in one round only, in which the variable was 0.
        for (const int array : s.outer_arrays) {
            for (Affine& value : arrays_[array]) {
                if (value.size > 0 && value.innermost().variable == variable) --value.size;
            }
        }
        if (rounds_ != nullptr) rounds_->end_rounds(same + 1);
        return same + 1;
    }

    /// Keeps, of conditions with the same terms, the one with the smallest constant.
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
    Tell tell_;
    RoundsListener* rounds_;
    std::vector<Value> told_;  ///< kept for its memory
    SummedCounters result_;
    IndexVector<Name, int> names_;
    IndexVector<std::vector<Value>, int> arrays_;
    std::vector<Value> conditions_;
    /// Rounds after which all quotients of a variable repeat.
    IndexVector<int64_t, int32_t> period_of_;
    int32_t depth_ = 0;
};

}  // namespace
}  // namespace counting

SummedCounters summed_counters(const Halide::Internal::Stmt& statement, size_t counters,
                               int64_t strips, LoopSteps steps) {
    counting::Program program = counting::count_program(statement);
    if (steps == LoopSteps::every_iteration) {
        using Plain = counting::Execution<counting::Number>;
        return Plain(std::move(program), counters, strips).run();
    }
    return counting::Execution<counting::Affine>(std::move(program), counters, strips).run();
}

void step_through(const Halide::Internal::Stmt& statement, int64_t strips,
                  const std::function<void(const std::vector<int64_t>& arguments)>& tell) {
    std::vector<int64_t> numbers;
    const auto tell_numbers = [&](const std::vector<counting::Number>& arguments) {
        numbers.clear();
        for (const counting::Number& argument : arguments) numbers.push_back(argument.constant);
        tell(numbers);
    };
    using Plain = counting::Execution<counting::Number>;
    (void)Plain(counting::count_program(statement), 0, strips, tell_numbers).run();
}

void step_in_rounds(const Halide::Internal::Stmt& statement, int64_t strips,
                    RoundsListener& listener) {
    const auto tell = [&](const std::vector<counting::Affine>& arguments) {
        listener.tell(arguments);
    };
    using InRounds = counting::Execution<counting::Affine>;
    (void)InRounds(counting::count_program(statement), 0, strips, tell, &listener).run();
}

}  // namespace laminate
