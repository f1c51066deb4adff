// Counts the multiplications that generated code executes, by going through its statements with
// numbers for all loop variables. It knows nothing of kernels or layouts.
#pragma once

#include <Halide.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/units.h"
#include "generators/group_code.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

/// Lanes of products of two values, neither of them a constant of the code: sums of products count,
/// transforms by constants do not.
class ExecutedProducts : private Halide::Internal::IRVisitor {
public:
    /// The whole group, strips 0 .. code.strips - 1 in one call.
    [[nodiscard]] static int64_t of(const GroupCode& code) {
        ExecutedProducts counter;
        counter.numbers_[argument::strip_begin] = 0;
        counter.numbers_[argument::strip_end] = code.strips;
        code.body.accept(&counter);
        return counter.products_;
    }

private:
    using Halide::Internal::IRVisitor::visit;

    static bool is_constant(const Halide::Expr& e) {
        if (const auto* all = e.as<Halide::Internal::Broadcast>()) return is_constant(all->value);
        return Halide::Internal::is_const(e);
    }
    void visit(const Halide::Internal::Mul* op) override {
        if (op->type.is_float() && !is_constant(op->a) && !is_constant(op->b))
            products_ += op->type.lanes();
        IRVisitor::visit(op);
    }
    void visit(const Halide::Internal::LetStmt* op) override {
        op->value.accept(this);
        const std::optional<int64_t> value = number(op->value);
        if (value) numbers_[op->name] = *value;
        op->body.accept(this);
        if (value) numbers_.erase(op->name);
    }
    void visit(const Halide::Internal::For* op) override {
        const int64_t begin = number(op->min).value(), extent = number(op->extent).value();
        for (int64_t n = begin; n < begin + extent; ++n) {
            numbers_[op->name] = n;
            op->body.accept(this);
        }
        numbers_.erase(op->name);
    }
    void visit(const Halide::Internal::IfThenElse* op) override {
        if (number(op->condition).value() != 0) {
            op->then_case.accept(this);
        } else if (op->else_case.defined()) {
            op->else_case.accept(this);
        }
    }

    template <class Op, class Combine>
    [[nodiscard]] std::optional<int64_t> both(const Op* op, const Combine& combine) const {
        const std::optional<int64_t> a = number(op->a), b = number(op->b);
        return a && b ? std::optional<int64_t>(combine(*a, *b)) : std::nullopt;
    }
    /// A scalar integer or condition; nothing for floats, vectors and what is in memory.
    [[nodiscard]] std::optional<int64_t> number(const Halide::Expr& e) const {
        using namespace Halide::Internal;
        if (!e.type().is_scalar() || e.type().is_float()) return std::nullopt;
        if (const auto* i = e.as<IntImm>()) return i->value;
        if (const auto* u = e.as<UIntImm>()) return static_cast<int64_t>(u->value);
        if (const auto* v = e.as<Variable>()) {
            const auto known = numbers_.find(v->name);
            return known == numbers_.end() ? std::nullopt : std::optional(known->second);
        }
        const auto when = [&](const auto* op, const auto& combine) { return both(op, combine); };
        if (const auto* op = e.as<Add>()) return when(op, std::plus<int64_t>());
        if (const auto* op = e.as<Sub>()) return when(op, std::minus<int64_t>());
        if (const auto* op = e.as<Mul>()) return when(op, std::multiplies<int64_t>());
        if (const auto* op = e.as<Div>()) return when(op, floor_div);
        if (const auto* op = e.as<Mod>())
            return when(op, [](int64_t a, int64_t b) { return a - floor_div(a, b) * b; });
        if (const auto* op = e.as<Min>())
            return when(op, [](int64_t a, int64_t b) { return std::min(a, b); });
        if (const auto* op = e.as<Max>())
            return when(op, [](int64_t a, int64_t b) { return std::max(a, b); });
        if (const auto* op = e.as<LT>()) return when(op, std::less<int64_t>());
        if (const auto* op = e.as<LE>()) return when(op, std::less_equal<int64_t>());
        if (const auto* op = e.as<GT>()) return when(op, std::greater<int64_t>());
        if (const auto* op = e.as<GE>()) return when(op, std::greater_equal<int64_t>());
        if (const auto* op = e.as<EQ>()) return when(op, std::equal_to<int64_t>());
        if (const auto* op = e.as<NE>()) return when(op, std::not_equal_to<int64_t>());
        if (const auto* op = e.as<And>()) return when(op, std::logical_and<int64_t>());
        if (const auto* op = e.as<Or>()) return when(op, std::logical_or<int64_t>());
        if (const auto* op = e.as<Not>()) {
            const std::optional<int64_t> a = number(op->a);
            return a ? std::optional<int64_t>(*a == 0) : std::nullopt;
        }
        if (const auto* op = e.as<Select>()) {
            const std::optional<int64_t> condition = number(op->condition);
            if (!condition) return std::nullopt;
            return number(*condition != 0 ? op->true_value : op->false_value);
        }
        if (const auto* op = e.as<Cast>()) return number(op->value);
        return std::nullopt;
    }

    std::map<std::string, int64_t> numbers_;
    int64_t products_ = 0;
};

}  // namespace laminate
