// Summed loops against plain stepping, and against compiled code.
#include "instrumentation/loop_sums.h"

#include <gtest/gtest.h>

#include "generators/compile/executable.h"
#include "generators/instrumented.h"
#include "instrumentation/count_pass.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/random_schedule.h"

namespace laminate {
namespace {

using Halide::Expr;
using namespace Halide::Internal;

Expr name(const std::string& text) { return Variable::make(Halide::Int(32), text); }
Expr counter(int id) {
    return Load::make(Halide::Int(64), counters_argument, id, Halide::Buffer<>(),
                      Halide::Parameter(), const_true(), ModulusRemainder());
}
Stmt set(const std::string& array, const Expr& value, int id) {
    return Store::make(array, value, id, Halide::Parameter(), const_true(), ModulusRemainder());
}
Stmt count(int id, const Expr& n) {
    return set(counters_argument, counter(id) + Halide::cast<int64_t>(n), id);
}
Stmt loop(const std::string& variable, const Expr& extent, const Stmt& body) {
    return For::make(variable, 0, extent, ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, body);
}

struct Sums {
    SummedCounters together, stepped;
};
Sums sums(const Stmt& statement, size_t counters) {
    return {summed_counters(statement, counters, 1),
            summed_counters(statement, counters, 1, LoopSteps::every_iteration)};
}

TEST(LoopSums, BodiesThatDoTheSameAreRunOnce) {
    // A window of 3 over 1000 rows, clipped at both ends: 2 + 998 * 3 + 2, three different bodies.
    const Expr y = name("y");
    const Stmt body = count(0, Halide::min(y + 2, 1000) - Halide::max(y - 1, 0));
    const Sums found = sums(loop("y", 1000, body), 1);
    EXPECT_EQ(found.together.counters[0], 2 + 998 * 3 + 2);
    EXPECT_EQ(found.together.bodies, 3);
    EXPECT_EQ(found.stepped.counters[0], 2 + 998 * 3 + 2);
    EXPECT_EQ(found.stepped.bodies, 1000);
}

TEST(LoopSums, AConditionOnTwoLoopsSplitsTheOuterOne) {
    // Rows 8 * a + b below 21: all of tiles 0 and 1, five of tile 2.
    const Stmt body = IfThenElse::make(name("a") * 8 + name("b") < 21, count(0, 1), count(1, 10));
    const Sums found = sums(loop("a", 5, loop("b", 8, body)), 2);
    EXPECT_EQ(found.together.counters, (std::vector<int64_t>{21, 190}));
    EXPECT_EQ(found.together.bodies,
              (1 + 1) + (1 + 2) + (1 + 1));  // tiles 0-1, tile 2 in two parts, tiles 3-4
    EXPECT_EQ(found.stepped.counters, found.together.counters);
}

TEST(LoopSums, QuotientsRepeatAfterTheirDivisor) {
    // Taps of a transposed convolution of stride 2 with 3 taps: 2 on even rows, 1 on odd ones; two
    // rows make a round after the first.
    const Expr y = name("y");
    const Sums found = sums(loop("y", 1001, count(0, (3 - y % 2 + 1) / 2)), 1);
    EXPECT_EQ(found.together.counters[0], 501 * 2 + 500);
    EXPECT_LE(found.together.bodies, 4);
    EXPECT_EQ(found.stepped.counters, found.together.counters);
}

TEST(LoopSums, WhatABodyLeavesInMemoryIsSeenByTheNext) {
    // first_trip: the first trip at or after 5 counts 100, every later one 1.
    const Expr x = name("x");
    const Expr noted = Load::make(Halide::Int(32), "first_trip", 0, Halide::Buffer<>(),
                                  Halide::Parameter(), const_true(), ModulusRemainder());
    const Stmt first = Block::make(count(0, 100), set("first_trip", x, 0));
    const Stmt body = IfThenElse::make(
        x >= 5, IfThenElse::make(noted < 0, first, IfThenElse::make(noted < x, count(0, 1))));
    const Stmt lifetime =
        Allocate::make("first_trip", Halide::Int(32), Halide::MemoryType::Stack, {1}, const_true(),
                       Block::make(set("first_trip", -1, 0), loop("x", 50, body)));
    const Sums found = sums(loop("y", 7, lifetime), 1);
    EXPECT_EQ(found.together.counters[0], 7 * (100 + 44));
    EXPECT_EQ(found.together.bodies, 1 + 3);  // one y; x 0-4, 5, 6-49
    EXPECT_EQ(found.stepped.counters, found.together.counters);
}

TEST(LoopSums, ACounterThatOthersAreMadeOfMustNotChange) {
    // live grows by 2 in each iteration, its peak with it: nothing may be skipped.
    const Stmt body =
        Block::make(count(0, 2), set(counters_argument, Halide::max(counter(1), counter(0)), 1));
    const Sums found = sums(loop("x", 9, body), 2);
    EXPECT_EQ(found.together.counters, (std::vector<int64_t>{18, 18}));
    EXPECT_EQ(found.together.bodies, 9);
}

TEST(LoopSums, AnIncrementThatGrowsIsNotMultiplied) {
    const Sums found = sums(loop("y", 4, loop("x", 5, count(0, name("y") * name("x") + 1))), 1);
    EXPECT_EQ(found.together.counters[0], 6 * 10 + 20);
    EXPECT_EQ(found.stepped.counters, found.together.counters);
}

/// How the counters differ from those after plain stepping; empty if they do not.
std::string disagreement(const Network& network, const GroupSchedule& group, int64_t* saved) {
    const GroupCode code = instrumented_code(network, group);
    const Stmt statement = with_counters(code, CountMode::count_only);
    const size_t counters = CounterLayout{code.arrays.size()}.size();
    const SummedCounters together = summed_counters(statement, counters, code.strips);
    const SummedCounters stepped =
        summed_counters(statement, counters, code.strips, LoopSteps::every_iteration);
    *saved += stepped.bodies - together.bodies;
    if (together.counters == stepped.counters) return "";
    return network.name + ": " +
           difference(counts_of(code, group, together.counters), "together",
                      counts_of(code, group, stepped.counters), "stepped") +
           "\n" + to_text(group);
}

void sweep(uint64_t first, uint64_t count, Network (*make)(uint64_t)) {
    int64_t saved = 0;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        const Network network = make(seed);
        RandomOptions options;
        options.max_macs = Macs(3'000'000);
        const Schedule schedule = random_schedule(network, seed + 7, options);
        for (const GroupSchedule& group : schedule.groups())
            EXPECT_EQ(disagreement(network, group, &saved), "") << "seed " << seed;
    }
    EXPECT_GT(saved, 0);
}

TEST(LoopSums, RandomChains) { sweep(1, 60, random_chain); }
TEST(LoopSums, RandomNetworks) { sweep(1, 60, random_network); }

/// Four thousand of each, two hundred in a part.
class LoopSumsLong : public testing::TestWithParam<uint64_t> {};
TEST_P(LoopSumsLong, RandomChains) { sweep(10'001 + 200 * GetParam(), 200, random_chain); }
TEST_P(LoopSumsLong, RandomNetworks) { sweep(10'001 + 200 * GetParam(), 200, random_network); }
INSTANTIATE_TEST_SUITE_P(Parts, LoopSumsLong, testing::Range<uint64_t>(0, 20));

}  // namespace
}  // namespace laminate
