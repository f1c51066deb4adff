// Bodies that differ in numbers and in their choice of names alone: the extents of loops, the strides and
// offsets of arrays, paddings. One body then serves all, if it is given the numbers.
#pragma once

#include <Halide.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace laminate {

struct AlikeBodies {
    std::vector<size_t> members;  ///< two or more, in ascending order
    /// The first member's, with names (Int(32)) for the numbers in which the members differ.
    Halide::Internal::Stmt body;
    std::vector<std::string> number_names;
    /// The first index is that of a member, the second one that of a name. Each number fits into 32 bits.
    std::vector<std::vector<int64_t>> numbers;
    /// Each member's names in the order in which they first occur: those at one place mean the same.
    std::vector<std::vector<std::string>> names;
};

/// All sets of two or more bodies that are alike. Names in `kept` mean the same in all bodies. Names for numbers
/// begin with `prefix`, which no other name may do. Numbers stay in the code where LLVM makes better code of them:
/// divisors, steps between lanes, extents of arrays in registers. Bodies that differ in these are not alike.
[[nodiscard]] std::vector<AlikeBodies> alike_bodies(const std::vector<Halide::Internal::Stmt>& bodies,
                                                    const std::set<std::string>& kept,
                                                    const std::string& prefix, int threads = 1);

}  // namespace laminate
