// Interpreted code against arithmetic by hand, and against the same code compiled.
#include "instrumentation/interpreted_code.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/aligned.h"
#include "generators/compile/executable.h"
#include "generators/compile/group_reference.h"
#include "generators/instrumented.h"
#include "generators/ir/arrays.h"
#include "instrumentation/count_pass.h"
#include "instrumentation/measure.h"
#include "nets/random/random_network.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

using Halide::Expr;
using namespace Halide::Internal;

constexpr int64_t plenty = 1'000'000;

Expr variable(const std::string& text) { return Variable::make(Halide::Int(32), text); }
Stmt repeated(const std::string& index, int trips, const Stmt& body) {
    return For::make(index, 0, trips, ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, body);
}

struct Outcome {
    bool is_known = false;
    bool ended = false;
    std::array<float, 4> output{};
};
/// Runs a statement over X and Y, four floats each.
Outcome run(const Stmt& statement, const std::array<float, 4>& input, int64_t limit = plenty) {
    const Stmt body =
        ir::with_pointer("X", "inputs", 0, ir::with_pointer("Y", "outputs", 0, statement));
    const auto code = InterpretedCode::of(body);
    Outcome found;
    if (code == nullptr) return found;
    found.is_known = true;
    const float* in = input.data();
    float* out = found.output.data();
    found.ended = code->run({&in, &out, nullptr, 1, nullptr}, limit);
    return found;
}

TEST(InterpretedCode, OnlyTheChosenSideIsLoaded) {
    // Elements 0 and 1 are doubled. The other side of 2 and 3 lies far beyond X.
    const Expr x = variable("x");
    const Expr near = ir::load("X", x * (x / 2 * 1'000'000'000 + 1));
    const Expr value = ir::choose(x < 2, near * 2.0F, -1.0F);
    const Outcome found = run(repeated("x", 4, ir::store("Y", value, x)), {3, 4, 5, 6});
    EXPECT_TRUE(found.ended);
    EXPECT_EQ(found.output, (std::array<float, 4>{6, 8, -1, -1}));
}

TEST(InterpretedCode, QuotientsRoundDown) {
    const Expr x = variable("x") - 2;
    const Expr both = Halide::cast<float>(x / 3 * 10 + x % 3);
    const Outcome found = run(repeated("x", 4, ir::store("Y", both, variable("x"))), {});
    // -1 and rest 1, -1 and rest 2, 0 and rest 0, 0 and rest 1.
    EXPECT_EQ(found.output, (std::array<float, 4>{-9, -8, 0, 1}));
}

TEST(InterpretedCode, MemoryKeepsWhatLoopsAroundItStore) {
    // Sums of the first x + 1 inputs, in an array of one element.
    const Expr x = variable("x"), sum = ir::load("sum", 0);
    const Stmt step = ir::sequence(
        {ir::store("sum", sum + ir::load("X", x), 0), ir::store("Y", sum, x)});
    const Stmt body =
        Allocate::make("sum", Halide::Float(32), Halide::MemoryType::Heap, {1}, const_true(),
                       ir::sequence({ir::store("sum", 0.0F, 0), repeated("x", 4, step)}));
    EXPECT_EQ(run(body, {1, 2, 3, 4}).output, (std::array<float, 4>{1, 3, 6, 10}));
}

TEST(InterpretedCode, WhatALoopDoesNotChangeIsComputedOutsideOfIt) {
    // Per trip of y a load, an addition and a store; 40 additions per trip of x.
    Expr at = variable("x");
    for (int n = 0; n < 40; ++n) at = at + variable("x");
    const Stmt inner = repeated("y", 1000, ir::store("Y", ir::load("X", 0) + 1.0F, at % 4));
    const Stmt body = repeated("x", 4, inner);
    EXPECT_TRUE(run(body, {1, 0, 0, 0}, 4 * (1000 * 3 + 100) + 10).ended);
    EXPECT_FALSE(run(body, {1, 0, 0, 0}, 4 * 1000 * 3).ended);
}

/// Each operator on values for which its neighbours in the set (less for at most, floor for ceil, or for
/// and, a shift to the left) give something else.
TEST(InterpretedCode, OperatorsGiveWhatArithmeticGives) {
    const Expr x = variable("x"), in = ir::load("X", x);
    const auto stored = [&](const Expr& value) {
        const Outcome found = run(repeated("x", 4, ir::store("Y", Halide::cast<float>(value), x)),
                                  {-1.5F, 2, 2.25F, 3});
        EXPECT_TRUE(found.is_known) << value;
        return found.output;
    };
    using Four = std::array<float, 4>;
    EXPECT_EQ(stored((x + 5) & 6), (Four{4, 6, 6, 0}));
    EXPECT_EQ(stored((x * 5 - 8) >> Expr(1)), (Four{-4, -2, 1, 3}));
    EXPECT_EQ(stored(Halide::ceil(in)), (Four{-1, 2, 3, 3}));
    EXPECT_EQ(stored(Halide::floor(in)), (Four{-2, 2, 2, 3}));
    EXPECT_EQ(stored(in <= 2.0F), (Four{1, 1, 0, 0}));
    EXPECT_EQ(stored(in < 2.0F), (Four{1, 0, 0, 0}));
}

TEST(InterpretedCode, VectorsAreNotKnown) {
    EXPECT_TRUE(run(ir::store("Y", 1.0F, 0), {}).is_known);
    const Expr vector = Broadcast::make(1.0F, 4);
    EXPECT_FALSE(run(ir::store("Y", vector, Ramp::make(0, 1, 4)), {}).is_known);
}

TEST(InterpretedCode, CountsAndComputesWhatCompiledCodeDoes) {
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(20); ++seed) {
        const Network network = random_picture_network(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const CheckedMeasurement compiled =
                measure_and_check(network, group, seed, RunBy::compiled);
            const CheckedMeasurement interpreted =
                measure_and_check(network, group, seed, RunBy::interpreted);
            const std::string where = std::to_string(seed) + ": " + to_text(group);
            EXPECT_EQ(
                difference(compiled.counts, "compiled", interpreted.counts, "interpreted"), "")
                << where;
            EXPECT_EQ(compiled.wrong_result, "") << where;
            EXPECT_EQ(interpreted.wrong_result, "") << where;
        }
    }
}

/// The outputs of a group's instrumented code.
std::vector<float> computed(const GroupCode& code, const std::vector<std::vector<float>>& inputs,
                            int64_t outputs, RunBy by) {
    const Stmt body = with_counters(code, CountMode::execute);
    const AlignedFloats constants(code.constants);
    std::vector<const float*> in;
    for (const std::vector<float>& values : inputs) in.push_back(values.data());
    std::vector<float> result(static_cast<size_t>(outputs), -1);
    std::vector<int64_t> counters(CounterLayout{code.arrays.size()}.size());
    float* out = result.data();
    if (by == RunBy::interpreted) {
        EXPECT_TRUE(InterpretedCode::of(body)->run(
            {in.data(), &out, constants.data(), code.strips, counters.data()}, INT64_MAX));
        return result;
    }
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float));
    const JitGroup jit(body, true);
    EXPECT_EQ(jit.counted_function()(in.data(), &out, constants.data(), scratch.data(), 0,
                                     static_cast<int32_t>(code.strips), counters.data()),
              0);
    return result;
}

/// Sums of these networks are exact in any order, so there is one right number for each output.
TEST(InterpretedCode, ComputesTheNumbersOfCompiledCode) {
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(20); ++seed) {
        const Network network = random_network(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const std::vector<LayerProblem> problems = group_problems(network, group);
            const std::vector<std::vector<float>> inputs =
                random_group_inputs(network, problems, seed);
            const GroupCode code = instrumented_code(network, group);
            const int64_t outputs = problems.back().output_elements().value();
            EXPECT_EQ(computed(code, inputs, outputs, RunBy::interpreted),
                      computed(code, inputs, outputs, RunBy::compiled))
                << seed << ": " << to_text(group);
        }
    }
}

}  // namespace
}  // namespace laminate
