// Loads, stores and names in Halide IR, the same for every kind of code.
#pragma once

#include <Halide.h>

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate::ir {

using Halide::Expr;
using Halide::Internal::Stmt;

/// Loads of arrays that others own: their alignment is that of an element.
enum class Alignment { element, vector };

/// Lanes that the predicate leaves out are not read.
[[nodiscard]] Expr load(const std::string& array, const Expr& index,
                        Alignment alignment = Alignment::vector, const Expr& predicate = Expr());
[[nodiscard]] Stmt store(const std::string& array, const Expr& value, const Expr& index,
                         Alignment alignment = Alignment::vector, const Expr& predicate = Expr());
/// The statement without lanes of constant indices below zero, at which Halide's code generator
/// stops: a vector that begins before the first column of an array's first row. Loads have zeros
/// there, and stores leave these lanes out, as their predicate does.
[[nodiscard]] Stmt without_negative_indices(const Stmt& body);
inline constexpr int64_t elements_of_line = 16;  ///< of the caches of usual processors
/// LLVM's function that asks for a line; its first argument is the address.
inline constexpr const char* prefetch_function = "llvm.prefetch.p0";
/// Asks for the line of an element before it is needed. The element need not exist, but the processor walks
/// the page tables for each request to a page never touched, so code must not make many of them.
[[nodiscard]] Stmt prefetch(const std::string& array, const Expr& index);
/// Evaluates only the chosen side, unlike select.
[[nodiscard]] Expr choose(const Expr& condition, const Expr& then, const Expr& otherwise);
[[nodiscard]] Stmt sequence(const std::vector<Stmt>& parts);
/// Within `body`, `name` is the array that starts `offset` elements into `array`; a multiple of 16.
[[nodiscard]] Stmt with_array(const std::string& name, const std::string& array, int64_t offset,
                              const Stmt& body);
[[nodiscard]] Stmt with_array(const std::string& name, const std::string& array,
                              const Expr& offset, const Stmt& body);
/// Within `body`, `name` is element `index` of an array of pointers.
[[nodiscard]] Stmt with_pointer(const std::string& name, const std::string& pointers, int index,
                                const Stmt& body);

[[nodiscard]] inline Expr size(int64_t extent) { return static_cast<int32_t>(extent); }
/// Indices first, first + stride, ...
[[nodiscard]] Expr lanes_from(const Expr& first, int64_t lanes, int64_t stride = 1);
[[nodiscard]] Expr lanes_from(const Expr& first, int64_t lanes, const Expr& stride);
/// Every stride-th element from `first` on, by one wide load and a selection: reads up to lanes *
/// stride elements.
[[nodiscard]] Expr strided_load(const std::string& array, const Expr& first, int64_t lanes,
                                int64_t stride);
[[nodiscard]] Expr broadcast(const Expr& e, int64_t lanes);
/// The statement without the test where the condition is known to hold.
[[nodiscard]] Stmt guarded(const Expr& condition, const Stmt& body);

/// Binds values for what `make` does with their names. A kernel binds the vectors that all products
/// of a step share first and the others one after the other: the compiler keeps that order, and
/// with it the number of registers.
[[nodiscard]] Stmt with_values(const std::string& name, const std::vector<Expr>& values,
                               const std::function<Stmt(const std::vector<Expr>&)>& make);

/// What `make` makes of each pair of values of two lists, given their numbers. The shorter list is
/// bound first.
[[nodiscard]] Stmt with_pairs(
    const std::string& name, const std::vector<Expr>& left, const std::vector<Expr>& right,
    const std::function<Stmt(size_t left_number, size_t right_number, const Expr& of_left,
                             const Expr& of_right)>& make);

/// Names every value, so that sums of sums stay small expressions.
class Values {
public:
    explicit Values(std::string prefix) : prefix_(std::move(prefix)) {}
    [[nodiscard]] Expr operator()(const Expr& value);
    [[nodiscard]] Stmt around(Stmt body) const;

private:
    std::string prefix_;
    std::vector<std::pair<std::string, Expr>> lets_;
};

/// Integers that a kernel's loops use, found once outside of them: where rows begin. In memory that
/// the compiler dissolves: the simplifier would put a name's remainder back into every use, and
/// LLVM takes half a minute over those in the guarded blocks of a strided depthwise kernel.
class Integers {
public:
    explicit Integers(const std::string& prefix);
    /// The value, noted; to be used within around() only.
    [[nodiscard]] Expr operator()(const Expr& value);
    [[nodiscard]] Expr of(const Expr& n) const;
    [[nodiscard]] Stmt around(const Stmt& body) const;
    /// The same where code finds values number 0 .. count - 1 in a loop: value(n).
    [[nodiscard]] Stmt around(int64_t count, const std::function<Expr(const Expr&)>& value,
                              const Stmt& body) const;

private:
    [[nodiscard]] Stmt set(const Expr& n, const Expr& value) const;
    [[nodiscard]] Stmt allocated(int64_t count, const Stmt& body) const;

    std::string name_;
    std::vector<Expr> values_;
};

/// Vectors kept in registers: a constant-sized array that the compiler dissolves. One that a loop
/// indexes stays on the stack.
struct Accumulators {
    std::string name;
    int64_t lanes;
    [[nodiscard]] Expr index(const Expr& n) const { return lanes_from(n * size(lanes), lanes); }
    [[nodiscard]] Expr index(int64_t n) const { return index(size(n)); }
    [[nodiscard]] Expr get(int64_t n) const { return load(name, index(n)); }
    [[nodiscard]] Stmt set(int64_t n, const Expr& value) const {
        return store(name, value, index(n));
    }
    [[nodiscard]] Stmt around(int64_t count, const Stmt& body) const;
};

/// Sums of products in registers. For each of the terms, one after the other, a loop over its
/// channels i: `vectors` vectors are loaded once, and each of `scalars` scalars multiplies them
/// all.
struct SumTerm {
    Expr runs;  ///< left out where this is false
    Expr channels;
    std::function<Expr(const Expr& i, int64_t vector)> vector_at;
    std::function<Expr(const Expr& i, int64_t scalar)> scalar_at;
    /// What code asks the caches for while it computes `count` channels from number `first` on, if anything.
    std::function<Stmt(const Expr& first, int64_t count)> ahead{};
};
struct SumShape {
    int64_t lanes = 1;
    int64_t vectors = 1;
    int64_t scalars = 1;
};
/// `store` is what becomes of the sum of a vector and a scalar, `start` what it begins with; zero
/// unless given.
[[nodiscard]] Stmt sums_of_products(
    const std::string& name, const SumShape& shape, const std::vector<SumTerm>& terms,
    const std::function<Stmt(int64_t vector, int64_t scalar, const Expr& sum)>& store,
    const std::function<Expr(int64_t vector, int64_t scalar)>& start = {});

/// What an elementwise operation makes of an element and the next operand's, or a reduction of
/// channels of an element and the extreme of those before.
[[nodiscard]] Expr combined(Operation operation, const Expr& value, const Expr& operand);

/// Whether any output's window reaches over the edge of the input.
[[nodiscard]] bool reaches_padding(const AxisWindow& window);
/// An axis of averages: whether windows reach over the edge of the input, and how long that is.
struct AveragedAxis {
    bool reaches_padding = false;
    Expr in;
};
/// How many elements the average at an output position divides by; a constant where no padding
/// matters. `axes`: y, x.
[[nodiscard]] Expr averaged_elements(const Layer& layer, const LayerProblem& problem, const Expr& y,
                                     const Expr& x, const std::array<AveragedAxis, 2>& axes);
[[nodiscard]] Expr averaged_elements(const Layer& layer, const LayerProblem& problem, const Expr& y,
                                     const Expr& x);

}  // namespace laminate::ir
