// Groups that are DAGs, as generated code: forks and joins, pooling, several inputs. Counts by
// hand, then all three witnesses and the reference operators on random schedules.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

#include "base/parallel.h"
#include "generators/compile/check_group.h"
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "instrumentation/measure.h"
#include "instrumentation/walker.h"
#include "nets/random/random_network.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/instrumentation/join_networks.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

/// Empty if model, walker and code count the same and the code computes the right result.
std::string disagreement(const Network& network, const GroupSchedule& group, uint64_t seed) {
    const GroupCounts model = two_level_counts(network, group);
    const CheckedMeasurement code = measure_and_check(network, group, seed);
    std::string text = difference(model, "model", code.counts, "measured");
    text += difference(model, "model", walk(network, group), "walker");
    text += code.wrong_result;
    return text.empty() ? ""
                        : network.name + ", seed " + std::to_string(seed) + ": " + text + "\n" +
                              to_text(group);
}

TEST(Joins, ResidualByHand) {
    const Network network = small_residual();
    const GroupSchedule group =
        parse_group(network,
                    "{conv1: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i2; X root/add2.yo; W "
                    "root/root; Y add2.yo/add2.yo & "
                    "add2: zo yo xo io | zi yi xi ii n m; tile z2 y2 x6 i1; Y yo/yo}");
    const GroupCounts counts = measure(network, group);
    EXPECT_EQ(counts.inputs.at(0).reads, Elements(2 * 6 * 6));  // once for both readers
    EXPECT_EQ(counts.inputs.at(0).buffer,
              Elements(2 * 4 * 6));  // rows 1 to 4 for rows 2 and 3 of conv1
    EXPECT_EQ(counts.layers.at(0).macs, Macs(2 * 6 * 6 * 2 * 9));
    EXPECT_EQ(counts.layers.at(1).macs, Macs(0));
    EXPECT_EQ(counts.layers.at(0).output_buffer, Elements(2 * 2 * 6));
    EXPECT_EQ(counts.output_writes, Elements(2 * 6 * 6));
    EXPECT_EQ(counts.live_total, Elements(48 + 2 * 2 * 9 + 24 + 24));
    EXPECT_EQ(disagreement(network, group, 1), "");
}

TEST(Joins, ConcatCallsOnlyTheBranchThatATileTouches) {
    const Network network = small_concat();
    // Channels 0-1 are conv1's, 2-4 conv2's: tiles [0,2), [2,4), [4,5).
    const GroupSchedule group =
        parse_group(network,
                    "{conv1: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i2; X root/concat3.zo; W "
                    "root/root; Y "
                    "concat3.zo/concat3.zo & "
                    "conv2: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i2; W "
                    "concat3.zo/concat3.zo; Y concat3.zo/concat3.zo & "
                    "concat3: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i1; Y zo/zo}");
    const GroupCounts counts = measure(network, group);
    EXPECT_EQ(counts.layers.at(0).macs, Macs(2 * 16 * 2));  // conv1 in the first tile only
    EXPECT_EQ(counts.layers.at(1).macs,
              Macs(3 * 16 * 2 * 9));  // conv2 in the other two, two channels and one
    EXPECT_EQ(counts.layers.at(1).weight_reads, Elements(3 * 2 * 9));
    EXPECT_EQ(counts.layers.at(1).weight_buffer, Elements(2 * 2 * 9));
    EXPECT_EQ(counts.layers.at(1).output_buffer, Elements(2 * 16));
    EXPECT_EQ(counts.inputs.at(0).reads, Elements(2 * 16));
    EXPECT_EQ(disagreement(network, group, 1), "");
}

/// conv2 takes every second column, so conv1 skips the others, also when conv3 has conv2 computed
/// again.
TEST(Joins, ColumnsThatAStrideSkipsAreNotBroughtIn) {
    JoinBuilder b;
    b.conv(b.conv(b.conv(b.input(1, 1, 9), 1, 3), 1, 1, 2), 1, 3);
    const Network network = b.finish("skips");
    const GroupSchedule group = parse_group(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x9 i1; X conv3.xi/conv3.xi; W "
        "root/root; Y root/conv2.xi & "
        "conv2: zo yo xo io | zi yi xi ii n m; tile z1 y1 x5 i1; W root/root; Y conv3.xi/conv3.xi "
        "& "
        "conv3: zo yo xo io | zi yi xi ii n m; tile z1 y1 x5 i1; W root/root; Y root/root}");
    const GroupCounts counts = measure(network, group);
    // Columns of conv3 one by one: conv2 computes 0-1, 0-2, 1-3, 2-4, 3-4; conv1 what is new of 0,
    // 2, 4, 6, 8: 0 and 2, then 4, 6, 8, nothing. X: [0,4), [3,6), [5,8), [7,9).
    EXPECT_EQ(counts.layers.at(1).macs, Macs(2 + 3 + 3 + 3 + 2));
    EXPECT_EQ(counts.layers.at(0).macs, Macs(5 * 9));
    EXPECT_EQ(counts.inputs.at(0).reads, Elements(4 + 3 + 3 + 2));
    EXPECT_EQ(counts.inputs.at(0).buffer, Elements(4));
    EXPECT_EQ(disagreement(network, group, 1), "");
}

TEST(Joins, EveryShapeUnderRandomSchedules) {
    for (const Network& network : join_networks()) {
        for (uint64_t seed = 1; seed <= test::samples<uint64_t>(3); ++seed) {
            Rng rng(seed);
            RandomOptions options;
            options.max_macs = Macs(2'000'000);
            const GroupSchedule group = random_group(network, all_layers(network), rng, options);
            EXPECT_EQ(disagreement(network, group, seed), "");
        }
    }
}

/// The optimised code has other kernels and the same results.
TEST(Joins, OptimisedCodeComputesTheSame) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    for (const Network& network : join_networks()) {
        for (uint64_t seed = 11; seed < 11 + test::samples<uint64_t>(2); ++seed) {
            Rng rng(seed);
            const GroupSchedule group = random_group(network, all_layers(network), rng);
            const GroupCode code = default_code(network, group, unit);
            const JitGroup jit(code.body, false);
            EXPECT_EQ(wrong_result(network, group, code, jit.function()), "")
                << network.name << ", seed " << seed << ": " << to_text(group);
        }
    }
}

/// Random networks of all kinds; returns how many groups of which size were seen.
std::map<size_t, int> sweep(
    Network (*network_of)(uint64_t), uint64_t first, uint64_t count,
    const std::function<std::string(const Network&, const GroupSchedule&, uint64_t)>& check) {
    std::map<size_t, int> groups;
    std::mutex mutex;
    in_parallel(count, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())),
                [&](size_t n) {
                    const uint64_t seed = first + n;
                    const Network network = network_of(seed);
                    RandomOptions options;
                    options.max_macs = Macs(3'000'000);
                    const Schedule schedule = random_schedule(network, 3 * seed + 1, options);
                    for (const GroupSchedule& group : schedule.groups()) {
                        const std::string found = check(network, group, seed);
                        const std::lock_guard lock(mutex);
                        EXPECT_EQ(found, "");
                        ++groups[group.nests.size()];
                    }
                });
    return groups;
}

TEST(Joins, RandomNetworks) {
    EXPECT_GE(sweep(random_network, 1, 12, disagreement).size(), 2U);
    EXPECT_GE(sweep(random_picture_network, 1, 12, disagreement).size(), 2U);
}

/// `make test-long`: compiles, counts and compares more than two thousand schedules, a hundred per
/// part.
class JoinsLong : public testing::TestWithParam<uint64_t> {};

TEST_P(JoinsLong, AHundredSchedules) {
    const auto network_of = GetParam() % 4 == 3 ? random_picture_network : random_network;
    const std::map<size_t, int> groups =
        sweep(network_of, 1 + 100 * GetParam(), 100, disagreement);
    int joined = 0;
    for (const auto& [layers, count] : groups) joined += layers > 1 ? count : 0;
    EXPECT_GT(joined, 50);
}
INSTANTIATE_TEST_SUITE_P(Parts, JoinsLong, testing::Range<uint64_t>(0, 20));

/// Compares the results of six hundred schedules in optimised code.
class OptimisedJoinsLong : public testing::TestWithParam<uint64_t> {};

TEST_P(OptimisedJoinsLong, AHundredSchedules) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    const auto wrong_of = [&](const Network& network, const GroupSchedule& group, uint64_t seed) {
        const GroupCode code = default_code(network, group, unit);
        const JitGroup jit(code.body, false);
        const std::string wrong = wrong_result(network, group, code, jit.function());
        return wrong.empty()
                   ? ""
                   : "seed " + std::to_string(seed) + ": " + wrong + "\n" + to_text(group);
    };
    const auto network_of = GetParam() % 3 == 2 ? random_picture_network : random_network;
    EXPECT_GT(sweep(network_of, 5001 + 100 * GetParam(), 100, wrong_of).size(), 3U);
}
INSTANTIATE_TEST_SUITE_P(Parts, OptimisedJoinsLong, testing::Range<uint64_t>(0, 6));

}  // namespace
}  // namespace laminate
