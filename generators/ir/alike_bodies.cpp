#include "generators/ir/alike_bodies.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/parallel.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// Replaces every number that may differ between bodies, and every alignment of a load or store, which may
/// follow from such numbers, in the order of the statement.
class Numbers : public IRMutator {
public:
    using Replace = std::function<Expr(int64_t value, const Expr& number)>;
    using Align = std::function<ModulusRemainder(const ModulusRemainder& alignment)>;
    Numbers(Replace replace, Align align) : replace_(std::move(replace)), align_(std::move(align)) {}

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
        if (load->type.is_handle()) return load;
        const Expr index = mutate(load->index), predicate = mutate(load->predicate);
        return Load::make(load->type, load->name, index, load->image, load->param, predicate,
                          align_(load->alignment));
    }
    Stmt visit(const Store* store) override {
        const Expr value = mutate(store->value), index = mutate(store->index);
        return Store::make(store->name, value, index, store->param, mutate(store->predicate),
                           align_(store->alignment));
    }
    Stmt visit(const Allocate* allocation) override {
        return Allocate::make(allocation->name, allocation->type, allocation->memory_type,
                              allocation->extents, allocation->condition, mutate(allocation->body),
                              allocation->new_expr, allocation->free_function,
                              allocation->padding);
    }
    [[nodiscard]] Expr unless_number(const Expr& e) { return is_const(e) ? e : mutate(e); }

    Replace replace_;
    Align align_;
};

/// Names by their first occurrence. Loads and stores have what is known of their alignment in their names
/// (ir::Alignment), since bodies that differ in it are not alike.
class PlainNames : public IRMutator {
public:
    explicit PlainNames(const std::set<std::string>& kept) {
        for (const std::string& name : kept) plain_.emplace(name, name);
    }
    using IRMutator::mutate;

    std::vector<std::string> names;  ///< in the order of their first occurrences

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
    Stmt visit(const ProducerConsumer* op) override {
        return ProducerConsumer::make("", op->is_producer, mutate(op->body));
    }

    const std::string& plain(const std::string& name) {
        const auto [known, is_new] = plain_.try_emplace(name);
        if (is_new) {
            names.push_back(name);
            known->second = "n" + std::to_string(names.size());
        }
        return known->second;
    }
    template <class Access>
    std::string array(const Access* access) {
        const std::string& name = plain(access->name);
        return access->param.defined() ? name + "?" : name;
    }

    std::unordered_map<std::string, std::string> plain_;
};

/// A body's numbers and alignments, its names, and the statement that is left without all these.
struct Outline {
    std::vector<int64_t> values;
    std::vector<ModulusRemainder> alignments;
    std::vector<std::string> names;
    Stmt rest;
};

Outline outline_of(const Stmt& body, const std::set<std::string>& kept) {
    Outline outline;
    Numbers taking(
        [&](int64_t value, const Expr& number) {
            outline.values.push_back(value);
            return make_zero(number.type());
        },
        [&](const ModulusRemainder& alignment) {
            outline.alignments.push_back(alignment);
            return ModulusRemainder();
        });
    PlainNames plain(kept);
    outline.rest = plain.mutate(taking.mutate(body));
    outline.names = std::move(plain.names);
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

/// The numbers of several bodies at one place, divided by what they have in common.
struct Place {
    std::vector<int64_t> quotients;  ///< by body; none where all bodies have the same number
    int64_t factor = 1;
};

/// Returns nothing if a quotient does not fit into 32 bits.
std::optional<Place> place_of(const std::vector<int64_t>& values) {
    if (std::ranges::all_of(values, [&](int64_t v) { return v == values.front(); }))
        return Place{};
    Place place;
    place.factor = std::accumulate(values.begin(), values.end(), int64_t{0},
                                   [](int64_t a, int64_t b) { return std::gcd(a, b); });
    for (const int64_t value : values) {
        const int64_t quotient = value / place.factor;
        if (quotient != static_cast<int32_t>(quotient)) return std::nullopt;
        place.quotients.push_back(quotient);
    }
    return place;
}

/// The first member's body with names and with the alignments that hold for all members. Returns nothing if a
/// number cannot be given by name.
std::optional<AlikeBodies> with_names(const std::vector<size_t>& members, const Stmt& first,
                                      const std::vector<Outline>& outlines, const std::string& prefix) {
    std::vector<Place> places;
    std::map<std::vector<int64_t>, size_t> known;
    for (size_t n = 0; n < outlines[members.front()].values.size(); ++n) {
        std::vector<int64_t> values;
        for (const size_t member : members) values.push_back(outlines[member].values[n]);
        std::optional<Place> place = place_of(values);
        if (!place) return std::nullopt;
        if (!place->quotients.empty()) known.try_emplace(place->quotients, known.size());
        places.push_back(std::move(*place));
    }
    AlikeBodies alike{.members = members,
                      .body = {},
                      .number_names = std::vector<std::string>(known.size()),
                      .numbers = std::vector(members.size(), std::vector<int64_t>(known.size())),
                      .names = {}};
    for (const auto& [quotients, number] : known) {
        alike.number_names[number] = prefix + std::to_string(number);
        for (size_t m = 0; m < members.size(); ++m) alike.numbers[m][number] = quotients[m];
    }
    size_t number_at = 0, alignment_at = 0;
    Numbers naming(
        [&](int64_t, const Expr& number) -> Expr {
            const Place& place = places[number_at++];
            if (place.quotients.empty()) return number;
            const Expr name = Variable::make(Halide::Int(32), alike.number_names[known.at(place.quotients)]);
            return Halide::cast(number.type(), name) * make_const(number.type(), place.factor);
        },
        [&](ModulusRemainder of_all) {
            for (const size_t member : members)
                of_all = ModulusRemainder::unify(of_all, outlines[member].alignments[alignment_at]);
            ++alignment_at;
            return of_all;
        });
    alike.body = naming.mutate(first);
    for (const size_t member : members) alike.names.push_back(outlines[member].names);
    return alike;
}

}  // namespace

std::vector<AlikeBodies> alike_bodies(const std::vector<Stmt>& bodies, const std::set<std::string>& kept,
                                      const std::string& prefix, int threads) {
    std::vector<Counter::Counts> counts(bodies.size());
    in_parallel(bodies.size(), threads, [&](size_t b) { counts[b] = Counter::of(bodies[b]); });
    std::vector<Outline> outlines(bodies.size());
    in_parallel(bodies.size(), threads, [&](size_t b) {
        if (std::ranges::count(counts, counts[b]) > 1) outlines[b] = outline_of(bodies[b], kept);
    });
    std::vector<std::vector<size_t>> sets;
    for (size_t b = 0; b < bodies.size(); ++b) {
        if (!outlines[b].rest.defined()) continue;
        const auto is_like = [&](const std::vector<size_t>& others) {
            const Outline& other = outlines[others.front()];
            return other.values.size() == outlines[b].values.size() &&
                   equal(other.rest, outlines[b].rest);
        };
        const auto found = std::ranges::find_if(sets, is_like);
        if (found == sets.end()) {
            sets.push_back({b});
        } else {
            found->push_back(b);
        }
    }
    std::vector<AlikeBodies> all;
    for (const std::vector<size_t>& members : sets) {
        if (members.size() < 2) continue;
        if (std::optional<AlikeBodies> alike =
                with_names(members, bodies[members.front()], outlines, prefix))
            all.push_back(*std::move(alike));
    }
    return all;
}

}  // namespace laminate
