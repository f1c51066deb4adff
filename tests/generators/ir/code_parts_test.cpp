// Kernels as functions of their own: what they are given, and what stays where it is.
#include "generators/ir/code_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "generators/compile/executable.h"
#include "generators/ir/arrays.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {
namespace {

using namespace Halide::Internal;
using Halide::Expr;

Expr named(const std::string& name) { return Variable::make(Halide::Int(32), name); }

/// s[n] = c[at + n] + n for as many n as asked.
Stmt copies(int count, const Expr& at) {
    std::vector<Stmt> all;
    for (int n = 0; n < count; ++n) {
        all.push_back(ir::store("s", ir::load("c", at + n, ir::Alignment::element) + float(n), n,
                                ir::Alignment::element));
    }
    return ir::sequence(all);
}

/// The group runs a kernel for each strip, and finds the first element by a remainder.
Stmt group(int count, const std::function<Stmt(Stmt)>& around = [](Stmt s) { return s; }) {
    const Expr at = (named("strip") * 3 + 5) % 4;
    const Stmt kernel = around(as_kernel("copy", copies(count, at)));
    const Stmt loop = For::make("strip", named(argument::strip_begin),
                                named(argument::strip_end) - named(argument::strip_begin),
                                ForType::Serial, Halide::Partition::Never,
                                Halide::DeviceAPI::None, kernel);
    return ir::with_array("s", argument::scratch, 0,
                          ir::with_array("c", argument::constants, 0, loop));
}

std::vector<std::string> names_of(const CodePart& part) {
    std::vector<std::string> names;
    for (const LoweredArgument& argument : part.arguments) names.push_back(argument.name);
    return names;
}

TEST(CodeParts, AKernelIsGivenArraysAndNumbersFoundOutside) {
    const std::vector<CodePart> parts = code_parts(group(100), "g");
    ASSERT_EQ(parts.size(), 2U);
    EXPECT_EQ(parts[0].symbol, "g");
    EXPECT_EQ(parts[0].arguments.size(), 6U);
    EXPECT_EQ(parts[0].length, 0U);
    EXPECT_EQ(parts[1].symbol, "g_kernel0");
    EXPECT_EQ(parts[1].length, 200U);
    // The remainder is found once, outside.
    EXPECT_EQ(names_of(parts[1]), (std::vector<std::string>{"c", "g_kernel0.0", "s"}));
}

TEST(CodeParts, ShortKernelsAndThoseWithRegistersOutsideStay) {
    EXPECT_EQ(code_parts(group(10), "g").size(), 1U);
    const auto in_registers = [](const Stmt& kernel) {
        return Allocate::make("s", Halide::Float(32), Halide::MemoryType::Register, {100},
                              const_true(), kernel);
    };
    EXPECT_EQ(code_parts(group(100, in_registers), "g").size(), 1U);
}

TEST(CodeParts, AKernelWithinAKernelIsAFunctionOfItsOwn) {
    const auto around = [](const Stmt& kernel) {
        return as_kernel("outer", ir::sequence({kernel, copies(50, named("strip"))}));
    };
    const std::vector<CodePart> parts = code_parts(group(100, around), "g");
    ASSERT_EQ(parts.size(), 3U);
    EXPECT_EQ(parts[1].length, 200U);
    EXPECT_EQ(parts[2].length, 100U);
}

/// A kernel with names of its own: to[n] = from[n] + n + 1 for the rows that `is_there` tells of, else n.
Stmt kernel_of_rows(const std::string& name, const std::string& from, const std::string& to, int columns,
                    const Expr& is_there) {
    const Expr row = named(name + ".row");
    std::vector<Stmt> all;
    for (int n = 0; n < 64; ++n) {
        const Expr value = Halide::select(is_there, ir::load(from, row * columns + n) + 1.0F, 0.0F);
        all.push_back(ir::store(to, value + static_cast<float>(n), row * columns + n));
    }
    return as_kernel(name, For::make(name + ".row", 0, named(argument::strip_end), ForType::Serial,
                                     Halide::Partition::Never, Halide::DeviceAPI::None,
                                     ir::sequence(all)));
}

/// Two layers: they have other arrays, other rows, and conditions that are found outside.
TEST(CodeParts, KernelsThatDifferInNumbersAndNamesAreOneFunction) {
    const auto layers = [](int second_columns) {
        const auto with_condition = [&](const std::string& name, const Expr& holds, const std::string& from,
                                        const std::string& to, int columns) {
            const Expr condition = Variable::make(Halide::Bool(), name + ".holds");
            return LetStmt::make(name + ".holds", holds,
                                 kernel_of_rows(name, from, to, columns, condition));
        };
        const Expr begin = named(argument::strip_begin);
        // The second layer reads the array that the first one writes, and the other way round.
        const Stmt both = Block::make(with_condition("first", begin < 5, "a", "b", 64),
                                      with_condition("second", begin < 0, "b", "a", second_columns));
        return ir::with_array("a", argument::constants, 0, ir::with_array("b", argument::scratch, 16, both));
    };
    const std::vector<CodePart> parts = code_parts(layers(80), "g");
    ASSERT_EQ(parts.size(), 2U);
    EXPECT_EQ(names_of(parts[1]), (std::vector<std::string>{"a", "b", "first.holds.given", argument::strip_end,
                                                            "g.number0"}));
    EXPECT_EQ(code_parts(layers(64), "g")[1].arguments.size(), 4U);

    const JitGroup jit(layers(80));
    std::vector<float> a(256, 2.0F), b(256, -1.0F);
    ASSERT_EQ(jit.function()(nullptr, nullptr, a.data(), b.data(), 0, 2), 0);
    for (size_t n = 0; n < 128; ++n)
        EXPECT_EQ(b[16 + n], 3 + static_cast<float>(n % 64)) << n;
    for (size_t n = 0; n < 160; ++n)
        EXPECT_EQ(a[n], n % 80 < 64 ? static_cast<float>(n % 80) : 2.0F) << n;
}

TEST(CodeParts, ShortOnesShareAFileAndTheGroupsOwnIsLoadedLast) {
    CodePart own{"g", {}, {}, 10}, inner{"inner", {}, {}, 2000}, middle{"middle", {}, {}, 500},
        outer{"outer", {}, {}, 100};
    std::vector<std::vector<std::string>> names;
    for (const std::vector<CodePart>& file : object_parts({own, inner, middle, outer})) {
        names.emplace_back();
        for (const CodePart& part : file) names.back().push_back(part.symbol);
    }
    EXPECT_EQ(names, (std::vector<std::vector<std::string>>{{"g", "outer", "middle"}, {"inner"}}));
}

/// An inner kernel in a file before that of the outer one, which is in that of the group.
TEST(CodeParts, KernelsFindEachOtherAcrossFiles) {
    constexpr int count = 3000;
    const auto around = [](const Stmt& kernel) {
        return as_kernel("outer", ir::sequence({kernel, copies(50, named("strip"))}));
    };
    const JitGroup jit(group(count, around));
    EXPECT_EQ(jit.objects().size(), loads_objects ? 2U : 0U);
    std::vector<float> in(count + 3, 1.0F), out(count, -1.0F);
    ASSERT_EQ(jit.function()(nullptr, nullptr, in.data(), out.data(), 0, 1), 0);
    for (size_t n = 0; n < out.size(); ++n) EXPECT_EQ(out[n], 1 + static_cast<float>(n)) << n;
}

TEST(CodeParts, CodeInPartsComputesTheSame) {
    const JitGroup jit(group(100));
    EXPECT_EQ(jit.objects().size(), loads_objects ? 1U : 0U);
    std::vector<float> in(112), out(112, -1.0F);
    for (size_t n = 0; n < in.size(); ++n) in[n] = static_cast<float>(n * n);
    ASSERT_EQ(jit.function()(nullptr, nullptr, in.data(), out.data(), 2, 3), 0);
    // Strip 2 begins at element (2 * 3 + 5) % 4.
    for (size_t n = 0; n < 100; ++n) EXPECT_EQ(out[n], in[n + 3] + static_cast<float>(n)) << n;
    EXPECT_EQ(out[100], -1);
}

}  // namespace
}  // namespace laminate
