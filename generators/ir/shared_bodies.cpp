#include "generators/ir/shared_bodies.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/parallel.h"
#include "base/units.h"
#include "generators/ir/arrays.h"
#include "generators/ir/code_parts.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

constexpr const char* numbers_array = "shared.numbers";
constexpr const char* other_constants = "shared.constants";

/// Replaces every number that may differ between groups, in the order of the statement.
class Numbers : public IRMutator {
public:
    using Replace = std::function<Expr(int64_t value, const Expr& number)>;
    explicit Numbers(Replace replace) : replace_(std::move(replace)) {}

private:
    using IRMutator::visit;
    Expr visit(const IntImm* number) override {
        return number->type == Halide::Int(32) ? replace_(number->value, number) : number;
    }
    Expr visit(const UIntImm* number) override {
        return number->type == Halide::UInt(64)
                   ? replace_(static_cast<int64_t>(number->value), number)
                   : number;
    }
    Expr visit(const Ramp* ramp) override {
        return Ramp::make(mutate(ramp->base), unless_number(ramp->stride), ramp->lanes);
    }
    Expr visit(const Div* quotient) override {
        return Div::make(mutate(quotient->a), unless_number(quotient->b));
    }
    Expr visit(const Mod* remainder) override {
        return Mod::make(mutate(remainder->a), unless_number(remainder->b));
    }
    Expr visit(const Call* call) override {
        std::vector<Expr> arguments;
        for (const Expr& argument : call->args) arguments.push_back(unless_number(argument));
        return Call::make(call->type, call->name, arguments, call->call_type, call->func,
                          call->value_index, call->image, call->param);
    }
    Expr visit(const Load* load) override {
        return load->type.is_handle() ? load : IRMutator::visit(load);
    }
    Stmt visit(const Allocate* allocation) override {
        return Allocate::make(allocation->name, allocation->type, allocation->memory_type,
                              allocation->extents, allocation->condition, mutate(allocation->body),
                              allocation->new_expr, allocation->free_function,
                              allocation->padding);
    }
    [[nodiscard]] Expr unless_number(const Expr& e) { return is_const(e) ? e : mutate(e); }

    Replace replace_;
};

/// Names by their first occurrence; those of the group's arguments stay. Loads and stores have what
/// is known of their alignment in their names (ir::Alignment), since groups that differ in it share
/// no body.
class PlainNames : public IRMutator {
public:
    PlainNames() {
        for (const LoweredArgument& argument : group_arguments())
            names_.emplace(argument.name, argument.name);
    }
    using IRMutator::mutate;

private:
    using IRMutator::visit;
    Expr visit(const Variable* variable) override {
        return Variable::make(variable->type, plain(variable->name));
    }
    Expr visit(const Load* load) override {
        return Load::make(load->type, array(load),
                          mutate(load->index), load->image, load->param, mutate(load->predicate),
                          load->alignment);
    }
    Stmt visit(const Store* store) override {
        return Store::make(array(store), mutate(store->value),
                           mutate(store->index), store->param, mutate(store->predicate),
                           store->alignment);
    }
    Expr visit(const Let* let) override {
        return Let::make(plain(let->name), mutate(let->value), mutate(let->body));
    }
    Stmt visit(const LetStmt* let) override {
        return LetStmt::make(plain(let->name), mutate(let->value), mutate(let->body));
    }
    Stmt visit(const For* loop) override {
        return For::make(plain(loop->name), mutate(loop->min), mutate(loop->extent),
                         loop->for_type, loop->partition_policy, loop->device_api,
                         mutate(loop->body));
    }
    Stmt visit(const Allocate* array) override {
        return Allocate::make(plain(array->name), array->type, array->memory_type, array->extents,
                              array->condition, mutate(array->body), array->new_expr,
                              array->free_function, array->padding);
    }
    Stmt visit(const Free* array) override { return Free::make(plain(array->name)); }
    Stmt visit(const ProducerConsumer* op) override { return as_kernel("", mutate(op->body)); }

    const std::string& plain(const std::string& name) {
        const auto [known, is_new] = names_.try_emplace(name);
        if (is_new) known->second = "n" + std::to_string(names_.size());
        return known->second;
    }
    template <class Access>
    std::string array(const Access* access) {
        const std::string& name = plain(access->name);
        return access->param.defined() ? name + "?" : name;
    }

    std::unordered_map<std::string, std::string> names_;
};

/// A body's numbers, and what is left without them and its choice of names.
struct Outline {
    std::vector<int64_t> values;
    Stmt rest;
};

Outline outline_of(const Stmt& body) {
    Outline outline;
    Numbers taking([&](int64_t value, const Expr& number) {
        outline.values.push_back(value);
        return make_zero(number.type());
    });
    outline.rest = PlainNames().mutate(taking.mutate(body));
    return outline;
}

/// How often a body has what bodies of one outline have equally often: those of other counts need not
/// be compared.
class Counter : public IRVisitor {
public:
    using Counts = std::array<size_t, 5>;
    static Counts of(const Stmt& body) {
        Counter counter;
        body.accept(&counter);
        return counter.counts_;
    }

private:
    using IRVisitor::visit;
    void visit(const IntImm*) override { ++counts_[0]; }
    void visit(const Variable*) override { ++counts_[1]; }
    void visit(const Load* load) override { count(2, load); }
    void visit(const Store* store) override { count(3, store); }
    void visit(const For* loop) override { count(4, loop); }
    template <class Node>
    void count(size_t kind, const Node* node) {
        ++counts_[kind];
        IRVisitor::visit(node);
    }

    Counts counts_{};
};

/// The numbers of several groups at one place of their body, divided by what they have in common.
struct Place {
    std::vector<float> quotients;  ///< by group; none where all groups have the same number
    int64_t factor = 1;
};

/// Nothing if a number is no element of an array of floats.
std::optional<Place> place_of(const std::vector<int64_t>& values) {
    if (std::ranges::all_of(values, [&](int64_t v) { return v == values.front(); }))
        return Place{};
    constexpr int64_t most_exact = 1 << 24;
    Place place;
    place.factor = std::accumulate(values.begin(), values.end(), int64_t{0},
                                   [](int64_t a, int64_t b) { return std::gcd(a, b); });
    for (const int64_t value : values) {
        if (std::abs(value / place.factor) > most_exact) return std::nullopt;
        place.quotients.push_back(static_cast<float>(value / place.factor));
    }
    return place;
}

/// The first group's body with what differs as names, which the numbers in its constants give.
std::optional<SharedBody> shared_by(const std::vector<size_t>& groups,
                                    const std::vector<Stmt>& bodies,
                                    const std::vector<Outline>& outlines) {
    std::vector<Place> places;
    std::map<std::vector<float>, size_t> known;
    for (size_t n = 0; n < outlines[groups.front()].values.size(); ++n) {
        std::vector<int64_t> values;
        for (const size_t group : groups) values.push_back(outlines[group].values[n]);
        std::optional<Place> place = place_of(values);
        if (!place) return std::nullopt;
        if (!place->quotients.empty()) known.try_emplace(place->quotients, known.size());
        places.push_back(std::move(*place));
    }
    const auto name_of = [](size_t number) { return "shared." + std::to_string(number); };
    size_t at = 0;
    Numbers naming([&](int64_t, const Expr& number) -> Expr {
        const Place& place = places[at++];
        if (place.quotients.empty()) return number;
        const Expr name = Variable::make(Halide::Int(32), name_of(known.at(place.quotients)));
        return Halide::cast(number.type(), name) * make_const(number.type(), place.factor);
    });
    Stmt body = naming.mutate(bodies[groups.front()]);
    body = substitute(argument::constants,
                      Variable::make(Halide::type_of<float*>(), other_constants), body);
    constexpr int64_t boundary = 16;
    const int64_t count = round_up(std::ssize(known), boundary);
    body = ir::with_array(other_constants, argument::constants, count, body);
    SharedBody shared{groups, {}, std::vector(groups.size(), std::vector<float>(static_cast<size_t>(count), 0.0F))};
    for (const auto& [quotients, number] : known) {
        const Expr value = Halide::cast<int32_t>(
            ir::load(numbers_array, static_cast<int32_t>(number), ir::Alignment::element));
        body = LetStmt::make(name_of(number), value, body);
        for (size_t g = 0; g < groups.size(); ++g) shared.numbers[g][number] = quotients[g];
    }
    shared.body = ir::with_array(numbers_array, argument::constants, 0, body);
    return shared;
}

}  // namespace

std::vector<SharedBody> shared_bodies(const std::vector<Stmt>& bodies, int threads) {
    std::vector<Counter::Counts> counts(bodies.size());
    in_parallel(bodies.size(), threads, [&](size_t g) { counts[g] = Counter::of(bodies[g]); });
    std::vector<Outline> outlines(bodies.size());
    in_parallel(bodies.size(), threads, [&](size_t g) {
        if (std::ranges::count(counts, counts[g]) > 1) outlines[g] = outline_of(bodies[g]);
    });
    std::vector<std::vector<size_t>> alike;
    for (size_t g = 0; g < bodies.size(); ++g) {
        if (!outlines[g].rest.defined()) continue;
        const auto is_like = [&](const std::vector<size_t>& others) {
            const Outline& other = outlines[others.front()];
            return other.values.size() == outlines[g].values.size() &&
                   equal(other.rest, outlines[g].rest);
        };
        const auto found = std::ranges::find_if(alike, is_like);
        if (found == alike.end()) {
            alike.push_back({g});
        } else {
            found->push_back(g);
        }
    }
    std::vector<SharedBody> all;
    for (const std::vector<size_t>& groups : alike) {
        if (groups.size() < 2) continue;
        if (std::optional<SharedBody> shared = shared_by(groups, bodies, outlines))
            all.push_back(*std::move(shared));
    }
    return all;
}

}  // namespace laminate
