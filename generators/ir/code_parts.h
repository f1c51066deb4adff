// A group's code as functions of its own for each kernel, called by the code of the loops around
// them. LLVM then works on several threads, and on numbers in place of the bounds that a kernel's
// arguments stand for: it takes seconds over one unrolled kernel among the minima, maxima and
// quotients of strips and rotating rows.
#pragma once

#include <Halide.h>

#include <cstddef>
#include <string>
#include <vector>

namespace laminate {

/// Marks a statement as a kernel, which may become a function. Nothing else sees the mark.
[[nodiscard]] Halide::Internal::Stmt as_kernel(const std::string& name,
                                               const Halide::Internal::Stmt& body);

/// The arguments of a laminate_group_function (group_lowering.h has their names).
[[nodiscard]] std::vector<Halide::Internal::LoweredArgument> group_arguments();
/// A number or pointer that a function is given.
[[nodiscard]] Halide::Internal::LoweredArgument scalar_argument(const std::string& name,
                                                                Halide::Type type);

struct CodePart {
    std::string symbol;
    std::vector<Halide::Internal::LoweredArgument> arguments;
    Halide::Internal::Stmt body;
    size_t length = 0;  ///< length_of(body)
};

/// The group's own function, called `symbol`, and one for each kernel that is worth a call, whose
/// symbols begin with `symbol` too: a kernel stands before those that call it. Kernels that are alike
/// (alike_bodies.h) share one function, which is given the numbers.
[[nodiscard]] std::vector<CodePart> code_parts(const Halide::Internal::Stmt& body,
                                               const std::string& symbol);

/// The parts in the order of code_parts(), those next to each other together: an object file takes
/// Halide 9 ms beyond its functions. Long parts have one of their own, so that threads share them.
/// The first file is the last to be loaded, the others as they come.
[[nodiscard]] std::vector<std::vector<CodePart>> object_parts(std::vector<CodePart> parts);

/// The number of loads and stores in a statement, to which the time of LLVM is about proportional.
[[nodiscard]] size_t length_of(const Halide::Internal::Stmt& body);

}  // namespace laminate
