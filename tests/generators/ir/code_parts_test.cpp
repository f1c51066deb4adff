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
