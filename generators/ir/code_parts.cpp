#include "generators/ir/code_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "generators/ir/alike_bodies.h"
#include "generators/ir/arrays.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

constexpr const char* mark = "kernel ";

/// Loads and stores below which a kernel stays where it is.
constexpr size_t least_length = 64;

/// Loads and stores of the functions that share an object file.
constexpr size_t most_length = 2048;

/// Names that a statement takes from outside: scalars by type, and arrays, whose type is Handle.
/// Every name in a group's code is bound once.
class OutsideNames : public IRGraphVisitor {
public:
    static std::map<std::string, Halide::Type> of(const Stmt& body) {
        OutsideNames names;
        body.accept(&names);
        for (const std::string& name : names.inside_) names.used_.erase(name);
        return std::move(names.used_);
    }

private:
    using IRGraphVisitor::visit;
    void visit(const Variable* variable) override {
        used_.emplace(variable->name, variable->type);
    }
    void visit(const Load* load) override {
        used_.emplace(load->name, Halide::type_of<float*>());
        IRGraphVisitor::visit(load);
    }
    void visit(const Store* store) override {
        used_.emplace(store->name, Halide::type_of<float*>());
        IRGraphVisitor::visit(store);
    }
    void visit(const Let* let) override {
        inside_.insert(let->name);
        IRGraphVisitor::visit(let);
    }
    void visit(const LetStmt* let) override {
        inside_.insert(let->name);
        IRGraphVisitor::visit(let);
    }
    void visit(const For* loop) override {
        inside_.insert(loop->name);
        IRGraphVisitor::visit(loop);
    }
    void visit(const Allocate* allocation) override {
        inside_.insert(allocation->name);
        IRGraphVisitor::visit(allocation);
    }

    std::map<std::string, Halide::Type> used_;
    std::set<std::string> inside_;
};

/// Collects the names in an expression, and which kinds of operations it has.
class Ingredients : public IRVisitor {
public:
    explicit Ingredients(const Expr& e) { e.accept(this); }
    std::set<std::string> names;
    bool has_choices = false;  ///< minima, quotients and the like
    bool is_computed_inside = false;

private:
    using IRVisitor::visit;
    void visit(const Variable* variable) override { names.insert(variable->name); }
    void visit(const Load*) override { is_computed_inside = true; }
    void visit(const Call*) override { is_computed_inside = true; }
    void visit(const Let*) override { is_computed_inside = true; }
    void visit(const Min* op) override { choose(op); }
    void visit(const Max* op) override { choose(op); }
    void visit(const Select* op) override { choose(op); }
    void visit(const Div* op) override { choose(op); }
    void visit(const Mod* op) override { choose(op); }
    template <class Op>
    void choose(const Op* op) {
        has_choices = true;
        IRVisitor::visit(op);
    }
};

/// Replaces what a kernel computes of its surroundings alone by names, the largest such integers.
class Hoisting : public IRMutator {
public:
    Hoisting(const std::map<std::string, Halide::Type>& outside, const std::string& prefix)
        : outside_(outside), prefix_(prefix) {}

    using IRMutator::mutate;
    Expr mutate(const Expr& e) override {
        if (e.type() != Halide::Int(32) || !is_worth_a_name(e)) return IRMutator::mutate(e);
        const auto known = names_.find(e);
        if (known != names_.end()) return Variable::make(e.type(), known->second);
        const std::string name = prefix_ + std::to_string(names_.size());
        names_.emplace(e, name);
        values.emplace_back(name, e);
        return Variable::make(e.type(), name);
    }

    std::vector<std::pair<std::string, Expr>> values;

private:
    /// More than a sum or product of one name and constants, and of nothing inside. Of x + 1 and
    /// x + 2 it is x that gets a name.
    [[nodiscard]] bool is_worth_a_name(const Expr& e) const {
        if (const auto* sum = e.as<Add>(); sum != nullptr && is_const(sum->b)) return false;
        const Ingredients made_of(e);
        if (made_of.is_computed_inside) return false;
        for (const std::string& name : made_of.names) {
            if (outside_.count(name) == 0) return false;
        }
        return made_of.names.size() > 1 || (!made_of.names.empty() && made_of.has_choices);
    }

    const std::map<std::string, Halide::Type>& outside_;
    std::string prefix_;
    std::map<Expr, std::string, IRDeepCompare> names_;
};

/// Makes functions of kernels.
class Parting : public IRMutator {
public:
    explicit Parting(std::string symbol) : symbol_(std::move(symbol)) {}

    std::vector<CodePart> parts;

private:
    using IRMutator::visit;
    Stmt visit(const Allocate* allocation) override {
        // What the compiler keeps in registers stays in the function that has it.
        if (allocation->type != Halide::Int(32)) local_.insert(allocation->name);
        return IRMutator::visit(allocation);
    }
    Stmt visit(const ProducerConsumer* op) override {
        if (op->name.rfind(mark, 0) != 0) return IRMutator::visit(op);
        const size_t parts_before = parts.size();
        const Stmt body = mutate(op->body);
        const size_t length = length_of(body);
        // Such a kernel is short, but full of the minima and remainders that it gives the others.
        const bool calls_kernels = parts.size() > parts_before;
        const std::map<std::string, Halide::Type> outside = OutsideNames::of(body);
        if ((length < least_length && !calls_kernels) || !can_be_passed(outside)) return body;
        const std::string symbol = symbol_ + "_kernel" + std::to_string(parts.size());
        Hoisting hoisting(outside, symbol + ".");
        CodePart part{symbol, {}, hoisting.mutate(body), length};
        std::vector<Expr> values;
        for (const auto& [name, type] : OutsideNames::of(part.body)) {
            const Expr outside_value = Variable::make(type, name);
            if (type.is_bool()) {  // given as an integer
                const Expr given = Variable::make(Halide::Int(32), name + ".given");
                part.body = LetStmt::make(name, given != 0, part.body);
                part.arguments.push_back(scalar_argument(name + ".given", given.type()));
                values.push_back(Halide::cast(given.type(), outside_value));
            } else {
                part.arguments.push_back(scalar_argument(name, type));
                values.push_back(outside_value);
            }
        }
        parts.push_back(std::move(part));
        Stmt call = Evaluate::make(
            Call::make(Halide::Int(32), symbol, values, Call::Extern));
        for (const auto& [name, value] : hoisting.values) call = LetStmt::make(name, value, call);
        return call;
    }

    [[nodiscard]] bool can_be_passed(const std::map<std::string, Halide::Type>& outside) const {
        for (const auto& [name, type] : outside) {
            if (local_.count(name) != 0) return false;
            if (type != Halide::Int(32) && type != Halide::Float(32) && !type.is_handle() && !type.is_bool())
                return false;
        }
        return true;
    }

    std::string symbol_;
    std::set<std::string> local_;
};

/// Calls of one kernel that become calls of another.
struct Redirection {
    std::string symbol;             ///< of the other
    std::vector<size_t> arguments;  ///< indices of the call's arguments in the order of the other's
    std::vector<int64_t> numbers;   ///< the other's last arguments
};

class Redirecting : public IRMutator {
public:
    explicit Redirecting(const std::map<std::string, Redirection>& calls) : calls_(calls) {}

private:
    using IRMutator::visit;
    Expr visit(const Call* call) override {
        const auto found = calls_.find(call->name);
        if (found == calls_.end()) return IRMutator::visit(call);
        std::vector<Expr> arguments;
        for (const size_t n : found->second.arguments) arguments.push_back(call->args[n]);
        for (const int64_t number : found->second.numbers) arguments.push_back(ir::size(number));
        return Call::make(call->type, found->second.symbol, arguments, call->call_type);
    }

    const std::map<std::string, Redirection>& calls_;
};

/// The indices of `other`'s arguments in the order of `part`'s. `names`: AlikeBodies::names of each.
std::vector<size_t> arguments_in_place(const CodePart& part, const std::vector<std::string>& names,
                                       const CodePart& other, const std::vector<std::string>& other_names) {
    std::vector<size_t> places;
    for (const LoweredArgument& argument : part.arguments) {
        const auto at = std::ranges::find(names, argument.name) - names.begin();
        const auto found = std::ranges::find(other.arguments, other_names[static_cast<size_t>(at)],
                                             &LoweredArgument::name);
        places.push_back(static_cast<size_t>(found - other.arguments.begin()));
    }
    return places;
}

/// Leaves of kernels that are alike the first, which is given the numbers, and lets all calls go there: the layers
/// of a long chain are compiled once. The group's own function is the first of `parts`.
void share_kernels(std::vector<CodePart>& parts) {
    std::vector<Stmt> bodies;
    for (size_t n = 1; n < parts.size(); ++n) bodies.push_back(parts[n].body);
    std::map<std::string, Redirection> calls;
    for (const AlikeBodies& alike : alike_bodies(bodies, {}, parts.front().symbol + ".number")) {
        CodePart& first = parts[1 + alike.members.front()];
        for (size_t m = 0; m < alike.members.size(); ++m) {
            const CodePart& member = parts[1 + alike.members[m]];
            calls[member.symbol] = {first.symbol,
                                    arguments_in_place(first, alike.names.front(), member, alike.names[m]),
                                    alike.numbers[m]};
        }
        first.body = alike.body;
        for (const std::string& name : alike.number_names)
            first.arguments.push_back(scalar_argument(name, Halide::Int(32)));
    }
    std::erase_if(parts, [&](const CodePart& part) {
        const auto call = calls.find(part.symbol);
        return call != calls.end() && call->second.symbol != part.symbol;
    });
    Redirecting redirecting(calls);
    for (CodePart& part : parts) part.body = redirecting.mutate(part.body);
}

}  // namespace

Stmt as_kernel(const std::string& name, const Stmt& body) {
    return body.defined() ? ProducerConsumer::make_produce(mark + name, body) : body;
}

LoweredArgument scalar_argument(const std::string& name, Halide::Type type) {
    return {name, Halide::Argument::InputScalar, type, 0, Halide::ArgumentEstimates{}};
}

std::vector<LoweredArgument> group_arguments() {
    return {scalar_argument(argument::inputs, Halide::Handle()),
            scalar_argument(argument::outputs, Halide::Handle()),
            scalar_argument(argument::constants, Halide::type_of<float*>()),
            scalar_argument(argument::scratch, Halide::type_of<float*>()),
            scalar_argument(argument::strip_begin, Halide::Int(32)),
            scalar_argument(argument::strip_end, Halide::Int(32))};
}

std::vector<CodePart> code_parts(const Stmt& body, const std::string& symbol) {
    Parting parting(symbol);
    const Stmt rest = parting.mutate(body);
    std::vector<CodePart> all{{symbol, group_arguments(), rest, length_of(rest)}};
    for (CodePart& part : parting.parts) all.push_back(std::move(part));
    share_kernels(all);
    return all;
}

std::vector<std::vector<CodePart>> object_parts(std::vector<CodePart> parts) {
    // The group's own function is called by none, so the kernels that are made last go with it.
    std::vector<std::vector<CodePart>> files{{std::move(parts.front())}};
    size_t length = files.front().front().length;
    while (parts.size() > 1) {
        CodePart& part = parts.back();
        length += part.length;
        if (length > most_length) {
            files.emplace_back();
            length = part.length;
        }
        files.back().push_back(std::move(part));
        parts.pop_back();
    }
    std::reverse(files.begin() + 1, files.end());
    return files;
}

size_t length_of(const Stmt& body) {
    class Counter : public IRGraphVisitor {
    public:
        size_t count = 0;

    private:
        using IRGraphVisitor::visit;
        void visit(const Load* load) override {
            ++count;
            IRGraphVisitor::visit(load);
        }
        void visit(const Store* store) override {
            ++count;
            IRGraphVisitor::visit(store);
        }
    } counter;
    body.accept(&counter);
    return counter.count;
}

}  // namespace laminate
