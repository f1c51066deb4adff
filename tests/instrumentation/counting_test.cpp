// Two routes that count what generated code does, against hand arithmetic, the model and each
// other.
#include <gtest/gtest.h>

#include "base/aligned.h"
#include "generators/compile/executable.h"
#include "generators/compile/group_reference.h"
#include "generators/instrumented.h"
#include "instrumentation/count_pass.h"
#include "instrumentation/measure.h"
#include "instrumentation/trace_route.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

GroupCounts run_counted(const GroupCode& code, const GroupSchedule& group, CountMode mode,
                        const std::vector<std::vector<float>>& inputs, std::vector<float>& output) {
    const JitGroup jit(with_counters(code, mode), true);
    const AlignedFloats constants(code.constants);
    std::vector<int64_t> counters(CounterLayout{code.arrays.size()}.size());
    std::vector<const float*> in;
    for (const std::vector<float>& input : inputs) in.push_back(input.data());
    float* out = output.data();
    EXPECT_EQ(jit.counted_function()(in.data(), &out, constants.data(), nullptr, 0,
                                     static_cast<int32_t>(code.strips), counters.data()),
              0);
    return counts_of(code, group, counters);
}

TEST(Counting, L2NetFirstLayerByHand) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = parse_group(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i3; X io/io; W io/io; Y xi/xi}");
    const GroupCounts counts = measure(network, group);
    EXPECT_EQ(counts.macs(), Macs(18 * 18 * 4 * 3 * 9));
    EXPECT_EQ(counts.input_reads(),
              Elements(2 * 9 * 8 * 8 * 3));  // 2 z tiles x 9 spatial tiles of 8 x 8 x 3
    EXPECT_EQ(counts.weight_reads(), Elements(18 * 2 * 3 * 9));  // 18 tiles of 2 x 3 kernels
    EXPECT_EQ(counts.output_writes, Elements(18 * 18 * 4));
    EXPECT_EQ(counts.output_reads, Elements(0));
    EXPECT_EQ(counts.live_total, Elements(8 * 8 * 3 + 2 * 3 * 9 + 1));
}

TEST(Counting, PartialSumsThatLeaveAreReadAndWrittenAgain) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = parse_group(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y5 x7 i2; X io/io; W io/io; Y xi/xi}");
    const GroupCounts counts = measure(network, group);
    EXPECT_EQ(counts.output_writes, Elements(2 * 18 * 18 * 4));  // T_i = 2 of 3: two visits
    EXPECT_EQ(counts.output_reads, Elements(18 * 18 * 4));
}

TEST(Counting, ChainsOfTwentyLayersEnd) {
    // Each layer's rows are computed at the row loop of the next one, so bounds nest twenty deep.
    // Written out, they never ended.
    const Network network = zoo_network("dmcnn-vd", {.height = 12, .width = 16});
    std::string text = "{conv1: zo yo xo io | yi xi zi ii n m; tile z64 y12 x16 i3; X root/ii";
    for (int k = 2; k <= 20; ++k) {
        const std::string layer = "conv" + std::to_string(k);
        text += "; W root/root; Y conv20.xs/" + layer + ".yi & " + layer + ": ";
        text += k < 20 ? "zo yo xo io | yi xi zi ii n m; tile z64 y12 x16 i64"
                       : "xs || zo yo xo io | yi xi zi ii n m; strip x1; tile z3 y12 x16 i64";
    }
    const GroupSchedule group = parse_group(network, text + "; W root/root; Y zi/zi}");
    const GroupCounts measured = measure(network, group);
    EXPECT_EQ(difference(two_level_counts(network, group), "model", measured, "measured"), "");
    EXPECT_GT(measured.macs(), Macs(64 * 64 * 9 * 12 * 16 * 18));  // columns are computed again
}

TEST(Counting, BothRoutesBothModesAndTheModelAgree) {
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(25); ++seed) {
        const Network network = random_chain(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const std::vector<LayerProblem> problems = group_problems(network, group);
            const std::vector<std::vector<float>> inputs =
                random_group_inputs(network, problems, seed);
            std::vector<float> output(
                static_cast<size_t>(problems.back().output_elements().value()));
            std::vector<float> traced_output(output.size());
            const GroupCode code = instrumented_code(network, group);
            const GroupCounts executed =
                run_counted(code, group, CountMode::execute, inputs, output);
            const GroupCounts counted =
                run_counted(code, group, CountMode::count_only, inputs, traced_output);
            const GroupCounts traced = traced_counts(code, group, inputs, traced_output);
            EXPECT_EQ(difference(executed, "executed", counted, "count-only"), "")
                << seed << ": " << to_text(group);
            EXPECT_EQ(difference(executed, "counted", traced, "traced"), "")
                << seed << ": " << to_text(group);
            EXPECT_EQ(difference(two_level_counts(network, group), "model", executed, "counted"),
                      "")
                << seed << ": " << to_text(group);
            EXPECT_EQ(output, traced_output)
                << "events change the result, " << seed << ": " << to_text(group);
        }
    }
}

TEST(Counting, ResultsAreCheckedToo) {
    for (uint64_t seed = 31; seed < 31 + test::samples<uint64_t>(15); ++seed) {
        const Network network = random_chain(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            EXPECT_EQ(measure_and_check(network, group, seed).wrong_result, "")
                << seed << ": " << to_text(group);
        }
    }
}

/// The counters belong to the code, not to the schedule, so code of another schedule is detected.
TEST(Counting, CodeThatDoesSomethingElseIsCaught) {
    const Network network = zoo_network("l2net");
    const GroupSchedule wanted = parse_group(network,
                                             "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y6 "
                                             "x18 i3; X root/yo; W root/root; Y xi/xi}");
    const GroupSchedule emitted = parse_group(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y6 x18 i3; X yo/yo; W root/root; Y xi/xi}");
    const GroupCode code = instrumented_code(network, emitted);
    const std::vector<std::vector<float>> inputs{std::vector<float>(20 * 20 * 3, 1.0F)};
    std::vector<float> output(18 * 18 * 4);
    const GroupCounts counts = run_counted(code, wanted, CountMode::execute, inputs, output);
    // Three tiles of 6 + 2 rows instead of 20 rows once.
    EXPECT_EQ(difference(two_level_counts(network, wanted), "model", counts, "measured"),
              "X reads: model 1200, measured 1440");
}

}  // namespace
}  // namespace laminate
