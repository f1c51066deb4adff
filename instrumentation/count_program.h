// The count-only statement of generated code (count_pass.h) as a small program with numbers for
// names, which loop_sums.cpp executes.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <set>
#include <vector>

#include "base/indexed.h"

namespace laminate::counting {

enum class Op {
    constant,
    value,    ///< the name `slot`
    data,     ///< element a of the control array `slot`
    counter,  ///< the counter `slot`
    add,
    subtract,
    multiply,
    divide,
    modulo,
    minimum,
    maximum,
    equal,
    less,
    negate,  ///< negates a condition
    both,
    either,
    choose,  ///< a ? b : c
    let,     ///< b, in which the name `slot` is a
};

struct ExprNode {
    Op op = Op::constant;
    int64_t constant = 0;
    int slot = 0;
    int a = -1, b = -1, c = -1;
};

/// An extern call of this name tells its arguments, scalar integers, to whoever runs the program.
inline constexpr const char* call_function = "laminate_tell";

enum class Kind {
    nothing,
    sequence,
    let,
    loop,
    branch,
    array,
    set_data,
    increment,
    set_counter,
    call,
};

struct StmtNode {
    Kind kind = Kind::nothing;
    int slot = 0;  ///< name, array or counter
    /// Expressions. Loop: min and extent; set_data: index and value; else the value.
    int first = -1, second = -1;
    int body = -1, other = -1;   ///< statements
    int64_t elements = 0;        ///< of an array
    bool is_eager = false;       ///< let: evaluated at once, because its value depends on memory
    std::vector<int> arguments;  ///< of a call
    std::vector<int> counters;   ///< loop: counters that its body increments
    /// Loop: arrays that its body changes and that outlive it.
    std::vector<int> outer_arrays;
    int64_t period = 1;  ///< loop: iterations after which quotients repeat
};

struct Program {
    IndexVector<ExprNode, int> exprs;
    IndexVector<StmtNode, int> stmts;
    int root = -1;
    int names = 0;
    int arrays = 0;
    int strip_begin = -1;
    int strip_end = -1;
    std::set<int> observed_counters;  ///< counters that values depend on
};

/// Throws std::logic_error for statements that the counting pass does not make.
[[nodiscard]] Program count_program(const Halide::Internal::Stmt& statement);

}  // namespace laminate::counting
