#include "instrumentation/asked_lines.h"

#include <Halide.h>

#include <stdexcept>
#include <utility>

#include "base/aligned.h"
#include "generators/compile/executable.h"
#include "generators/ir/arrays.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

Expr counter(const Expr& at) {
    return Load::make(Halide::Int(64), counters_argument, at, Halide::Buffer<>(), Halide::Parameter(),
                      const_true(), ModulusRemainder());
}

Stmt increment(int32_t at, const Expr& by) {
    return Store::make(counters_argument, counter(at) + by, at, Halide::Parameter(), const_true(),
                       ModulusRemainder());
}

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
            is_outside = is_outside && (line < counter(2 * a) || line >= counter(2 * a + 1));
        const auto at = static_cast<int32_t>(2 * (static_cast<size_t>(arrays_) + names_.size()));
        names_.push_back(array_of(call->args.front()));
        return LetStmt::make(name, address,
                             Block::make(increment(at, make_const(Halide::Int(64), 1)),
                                         increment(at + 1, Halide::cast<int64_t>(is_outside))));
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

}  // namespace

std::map<std::string, AskedLines> asked_lines(const GroupCode& code,
                                              const std::vector<int64_t>& input_elements,
                                              int64_t output_elements) {
    const AlignedFloats constants(code.constants);
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float));
    AlignedFloats output(static_cast<size_t>(output_elements));
    std::vector<AlignedFloats> inputs;
    for (const int64_t elements : input_elements) inputs.emplace_back(static_cast<size_t>(elements));

    std::vector<int64_t> counters;
    const auto add = [&](const AlignedFloats& array) {
        counters.push_back(reinterpret_cast<intptr_t>(array.data()));
        counters.push_back(reinterpret_cast<intptr_t>(array.data() + array.size()));
    };
    add(constants);
    add(scratch);
    add(output);
    for (const AlignedFloats& input : inputs) add(input);
    const size_t first = counters.size();

    CountedRequests counted(first / 2);
    const JitGroup jit(counted.mutate(code.body), true);
    counters.resize(first + 2 * counted.names().size());
    std::vector<const float*> in;
    for (const AlignedFloats& input : inputs) in.push_back(input.data());
    float* out = output.data();
    if (jit.counted_function()(in.data(), &out, constants.data(), scratch.data(), 0,
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
