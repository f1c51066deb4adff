#include "instrumentation/asked_lines.h"

#include <Halide.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "base/aligned.h"
#include "base/units.h"
#include "generators/compile/executable.h"
#include "generators/ir/arrays.h"
#include "instrumentation/counter_access.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// Puts two counters in the place of each request: how often it is made, and how often outside. The
/// counters array begins with the first byte of each array and the one behind its last.
class CountedRequests final : public IRMutator {
public:
    explicit CountedRequests(size_t arrays) : arrays_(static_cast<int32_t>(arrays)) {}

    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

private:
    using IRMutator::visit;

    Stmt visit(const Evaluate* evaluate) override {
        const auto* call = evaluate->value.as<Call>();
        if (call == nullptr || call->name != ir::prefetch_function) return evaluate;
        const Expr address = Halide::reinterpret<int64_t>(call->args.front());
        const std::string name = unique_name("asked");
        const Expr line = Variable::make(Halide::Int(64), name);
        Expr is_outside = const_true();
        for (int32_t a = 0; a < arrays_; ++a)
            is_outside = is_outside && (line < counter_at(2 * a) || line >= counter_at(2 * a + 1));
        const auto at = static_cast<int32_t>(2 * (static_cast<size_t>(arrays_) + names_.size()));
        names_.push_back(array_of(call->args.front()));
        const Stmt one_more = set_counter(at, counter_at(at) + make_const(Halide::Int(64), 1));
        const Stmt outside =
            set_counter(at + 1, counter_at(at + 1) + Halide::cast<int64_t>(is_outside));
        return LetStmt::make(name, address, Block::make(one_more, outside));
    }

    static std::string array_of(const Expr& address) {
        class Pointers final : public IRVisitor {
        public:
            std::string name;

        private:
            using IRVisitor::visit;
            void visit(const Variable* variable) override {
                if (variable->type.is_handle()) name = variable->name;
            }
        } pointers;
        address.accept(&pointers);
        return pointers.name;
    }

    int32_t arrays_;
    std::vector<std::string> names_;  ///< of the array that each place in the code asks for
};

/// The arrays of a call in the order in which they lie; behind the first input lie the others.
enum class Role { constants, scratch, output, first_input };

/// Arrays of zeros so far apart that what lies behind one is in no other.
class ApartArrays {
public:
    explicit ApartArrays(const std::vector<int64_t>& elements) : ends_{0} {
        for (const int64_t n : elements) {
            begins_.push_back(round_up(ends_.back() + gap, ir::elements_of_line));
            ends_.push_back(begins_.back() + n);
        }
        memory_.emplace(static_cast<size_t>(ends_.back() + gap));
    }
    [[nodiscard]] float* begin(size_t array) { return memory_->data() + begins_[array]; }
    [[nodiscard]] float* end(size_t array) { return memory_->data() + ends_[array + 1]; }

private:
    static constexpr int64_t gap = 1 << 20;  ///< elements

    std::vector<int64_t> begins_, ends_;
    std::optional<AlignedFloats> memory_;
};

}  // namespace

std::map<std::string, AskedLines> asked_lines(const GroupCode& code,
                                              const std::vector<int64_t>& input_elements,
                                              int64_t output_elements) {
    std::vector<int64_t> elements{std::ssize(code.constants),
                                  code.scratch_bytes / static_cast<int64_t>(sizeof(float)),
                                  output_elements};
    elements.insert(elements.end(), input_elements.begin(), input_elements.end());
    ApartArrays arrays(elements);
    const auto of = [&](Role role) { return arrays.begin(static_cast<size_t>(role)); };
    std::copy(code.constants.begin(), code.constants.end(), of(Role::constants));
    std::vector<const float*> inputs;
    for (size_t n = 0; n < input_elements.size(); ++n)
        inputs.push_back(arrays.begin(static_cast<size_t>(Role::first_input) + n));
    float* output = of(Role::output);

    std::vector<int64_t> counters;
    for (size_t n = 0; n < elements.size(); ++n) {
        counters.push_back(reinterpret_cast<intptr_t>(arrays.begin(n)));
        counters.push_back(reinterpret_cast<intptr_t>(arrays.end(n)));
    }
    const size_t first = counters.size();
    CountedRequests counted(elements.size());
    const JitGroup jit(counted.mutate(code.body), true);
    counters.resize(first + 2 * counted.names().size());
    if (jit.counted_function()(inputs.data(), &output, of(Role::constants), of(Role::scratch), 0,
                               static_cast<int32_t>(code.strips), counters.data()) != 0)
        throw std::logic_error("asked lines: the code failed");
    std::map<std::string, AskedLines> lines;
    for (size_t n = 0; n < counted.names().size(); ++n) {
        AskedLines& of_array = lines[counted.names()[n]];
        of_array.all += counters[first + 2 * n];
        of_array.outside += counters[first + 2 * n + 1];
    }
    return lines;
}

}  // namespace laminate
