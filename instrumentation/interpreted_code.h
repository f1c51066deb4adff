// Runs generated code of scalars without compiling it. LLVM takes a tenth of a second and more for
// the instrumented code of one layer; small groups run here in less.
//
// The statement becomes lists of instructions over numbered values. An operation on values that a
// loop does not change is computed outside of it, and once for all uses; loads stay where they are.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <memory>

namespace laminate {

class InterpretedCode {
public:
    /// The code of a laminate_group_function with counters (executable.h); null for a statement of
    /// vectors or with an operation that instrumented code does not have.
    [[nodiscard]] static std::unique_ptr<const InterpretedCode> of(
        const Halide::Internal::Stmt& body);
    virtual ~InterpretedCode() = default;
    InterpretedCode(const InterpretedCode&) = delete;
    InterpretedCode& operator=(const InterpretedCode&) = delete;

    /// The arguments of a CountedGroupFunction.
    struct Arguments {
        const float* const* inputs = nullptr;
        float* const* outputs = nullptr;
        const float* constants = nullptr;
        int64_t strips = 0;
        int64_t* counters = nullptr;
    };
    /// Runs all strips. False if that takes more than `limit` instructions: then outputs and
    /// counters hold parts of the results.
    [[nodiscard]] virtual bool run(const Arguments& arguments, int64_t limit) const = 0;

protected:
    InterpretedCode() = default;
};

}  // namespace laminate
