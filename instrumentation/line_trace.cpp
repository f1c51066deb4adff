#include "instrumentation/line_trace.h"

#include <Halide.h>

#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "generators/compile/executable.h"
#include "instrumentation/counter_access.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// Records the first and last address of every load and store in the counters array, whose element
/// 0 is the number of elements in use, itself included.
class NotedAddresses final : public IRMutator {
public:
    using IRMutator::mutate;

    Stmt visit(const LetStmt* let) override {
        const bool is_pointer = let->value.type().is_handle();
        if (is_pointer) pointers_.insert(let->name);
        Stmt body = mutate(let->body);
        if (is_pointer) return LetStmt::make(let->name, let->value, body);
        return with_loads({let->value}, LetStmt::make(let->name, let->value, body));
    }
    Stmt visit(const Store* store) override {
        Stmt noted = with_loads({store->value, store->index}, store);
        return pointers_.count(store->name) == 0
                   ? noted
                   : Block::make(note(store->name, store->index), noted);
    }

private:
    /// Records the addresses of the first and last element that an index covers.
    static Stmt note(const std::string& array, const Expr& index) {
        const Ramp* ramp = index.as<Ramp>();
        if (ramp == nullptr && !index.type().is_scalar())
            throw std::logic_error("line trace: neither one element nor a run of them");
        const Expr first = ramp != nullptr ? ramp->base : index;
        const Expr last = ramp != nullptr ? ramp->base + ramp->stride * (ramp->lanes - 1) : index;
        const Expr base =
            Halide::reinterpret<int64_t>(Variable::make(Halide::type_of<float*>(), array));
        const auto address = [&](const Expr& element) {
            return base + Halide::cast<int64_t>(element) * 4;
        };
        const std::string used = unique_name("noted");
        const Expr next = Variable::make(Halide::Int(32), used);
        return LetStmt::make(used, Halide::cast<int32_t>(counter_at(0)),
                             Block::make({set_counter(next, address(first)),
                                          set_counter(next + 1, address(last)),
                                          set_counter(0, Halide::cast<int64_t>(next) + 2)}));
    }

    Stmt with_loads(const std::vector<Expr>& expressions, const Stmt& then) const {
        class Loads final : public IRVisitor {
        public:
            using IRVisitor::visit;
            void visit(const Load* load) override {
                found.push_back(load);
                IRVisitor::visit(load);
            }
            std::vector<const Load*> found;
        } loads;
        for (const Expr& expression : expressions) expression.accept(&loads);
        Stmt all = then;
        for (size_t n = loads.found.size(); n-- > 0;) {
            if (pointers_.count(loads.found[n]->name) > 0)
                all = Block::make(note(loads.found[n]->name, loads.found[n]->index), all);
        }
        return all;
    }

    std::set<std::string> pointers_;  ///< arrays in memory; others are registers
};

/// Numbers lines from 0 on, in the order of first appearance.
std::vector<int32_t> numbered(const std::vector<int64_t>& lines, int64_t& distinct) {
    std::unordered_map<int64_t, int32_t> numbers;
    std::vector<int32_t> all;
    all.reserve(lines.size());
    for (const int64_t line : lines)
        all.push_back(numbers.emplace(line, static_cast<int32_t>(numbers.size())).first->second);
    distinct = static_cast<int64_t>(numbers.size());
    return all;
}

}  // namespace

void LineTrace::run(const GroupCode& code, const std::vector<const float*>& inputs, float* output,
                    const float* constants, void* scratch) {
    const JitGroup jit(NotedAddresses().mutate(code.body), true);
    // One strip at a time, so that its records fit.
    constexpr size_t room = 1 << 25;
    std::vector<int64_t> noted(room);
    for (int32_t strip = 0; strip < code.strips; ++strip) {
        noted[0] = 1;
        if (jit.counted_function()(inputs.data(), &output, constants, scratch, strip, strip + 1,
                                   noted.data()) != 0)
            throw std::logic_error("line trace: the code failed");
        const auto used = static_cast<size_t>(noted[0]);
        if (used > room) throw std::logic_error("line trace: the group is too large");
        for (size_t n = 1; n < used; n += 2) {
            for (int64_t line = noted[n] / cache_line_bytes;
                 line <= noted[n + 1] / cache_line_bytes; ++line) {
                if (lines_.empty() || lines_.back() != line) lines_.push_back(line);
            }
        }
    }
}

int64_t LineTrace::distinct() const {
    int64_t count = 0;
    (void)numbered(lines_, count);
    return count;
}

int64_t LineTrace::misses(int64_t bytes) const {
    int64_t count = 0;
    BlockStream stream;
    for (const int32_t line : numbered(lines_, count)) stream.push_back({line});
    return count +
           replayed_spills(stream, bytes / cache_line_bytes, Replacement::least_recently_used);
}

}  // namespace laminate
