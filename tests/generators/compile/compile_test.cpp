// Networks compiled into this process: whatever the schedule, the result is that of the reference
// operators.
#include "generators/compile/compile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "generators/compile/executable.h"
#include "nets/operators/reference_operators.h"
#include "nets/zoo/zoo.h"
#include "runtime/cpu.h"
#include "runtime/session.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

std::vector<float> small_integers(int64_t count, uint64_t seed) {
    Rng rng(seed);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(rng.between(-3, 3));
    return values;
}

std::vector<float> run(const JitNetwork& compiled, const std::vector<float>& input, int threads) {
    Session session = Session::open(&compiled.descriptor(), {threads});
    std::vector<float> output(static_cast<size_t>(element_count(session.outputs()[0].dims)));
    session.run({input.data()}, {output.data()});
    return output;
}

int64_t input_elements(const Network& network) {
    return element_count(network.tensor(network.inputs[0]).dims);
}

/// The compiler's CPU seconds for a layer of `stride` beside padding.
double seconds_to_compile_depthwise(int64_t stride) {
    const Network network = chain(22, 56, 56, {{22, square_window(5, stride, 2), 22}});
    CompileTimes times;
    CompileOptions options;
    options.times = &times;
    const JitNetwork compiled(network, layer_by_layer_schedule(network), options);
    return times.groups.front().llvm;
}

/// LLVM once took two hundred times as long.
TEST(JitNetwork, StridedRowsCompileAsQuicklyAsOthers) {
    EXPECT_LT(seconds_to_compile_depthwise(2), 10 * seconds_to_compile_depthwise(1));
}

TEST(JitNetwork, ItTellsOfEveryGroupBeforeEachOfItsSteps) {
    const Network network =
        chain(2, 6, 7, {{3, square_window(3)}, {4, square_window(1)}, {1, square_window(3)}});
    std::map<std::string, std::vector<size_t>> told;
    std::map<std::string, size_t> totals;
    CompileOptions options;
    options.threads = 1;
    options.progress = [&](const std::string& what, size_t done, size_t total) {
        told[what].push_back(done);
        totals[what] = total;
    };
    const JitNetwork compiled(network, layer_by_layer_schedule(network), options);
    EXPECT_EQ(totals["lowering group"], 3U);
    EXPECT_EQ(totals["checking group"], 3U);
    for (const auto& [what, done] : told) {
        ASSERT_EQ(done.size(), totals[what]) << what;
        for (size_t n = 0; n < done.size(); ++n) EXPECT_EQ(done[n], n) << what;
    }
}

/// Small integers in, small integer weights: sums are exact, so equal means equal.
TEST(JitNetwork, RandomNetworksUnderRandomSchedulesAreExact) {
    for (uint64_t seed = 1; seed <= 25; ++seed) {
        const Network network = random_chain(seed);
        if (network.inputs.size() != 1) continue;
        const std::vector<float> input = small_integers(input_elements(network), seed);
        const std::vector<float> expected = run_reference_network(network, {input})[0];
        std::vector<std::string> notes;
        CompileOptions options;
        options.note = [&](const std::string& line) { notes.push_back(line); };
        const Schedule schedule = random_schedule(network, seed);
        const JitNetwork compiled(network, schedule, options);
        EXPECT_EQ(run(compiled, input, 2), expected) << "seed " << seed << "\n"
                                                     << to_text(schedule);
        EXPECT_TRUE(notes.empty()) << "seed " << seed << ": " << notes.front() << "\n"
                                   << to_text(schedule);
    }
}

/// Forks, joins, pooling: groups with several inputs, layers outside of groups, several outputs.
TEST(JitNetwork, RandomNetworksOfAllKindsUnderRandomSchedules) {
    int several_inputs = 0;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        const Network network = random_network(seed);
        std::vector<std::vector<float>> inputs;
        std::vector<const float*> in;
        for (const TensorId id : network.inputs)
            inputs.push_back(small_integers(element_count(network.tensor(id).dims), seed));
        for (const std::vector<float>& input : inputs) in.push_back(input.data());
        const std::vector<std::vector<float>> expected = run_reference_network(network, inputs);
        std::vector<std::string> notes;
        CompileOptions options;
        options.note = [&](const std::string& line) { notes.push_back(line); };
        const Schedule schedule = random_schedule(network, seed);
        const JitNetwork compiled(network, schedule, options);
        EXPECT_TRUE(notes.empty()) << "seed " << seed << ": " << notes.front() << "\n"
                                   << to_text(schedule);
        for (const Step& step : compiled.manifest().steps)
            several_inputs +=
                std::holds_alternative<GroupStep>(step) && inputs_of(step).size() > 1 ? 1 : 0;
        std::vector<std::vector<float>> outputs;
        std::vector<float*> out;
        for (const std::vector<float>& values : expected) outputs.emplace_back(values.size());
        for (std::vector<float>& output : outputs) out.push_back(output.data());
        Session session = Session::open(&compiled.descriptor(), {2});
        session.run(in, out);
        EXPECT_EQ(outputs, expected) << "seed " << seed << "\n" << to_text(schedule);
    }
    EXPECT_GT(several_inputs, 0);
}

/// Every kind of kernel: strided 3x3, 1x1 and depthwise, Winograd's, a transposed convolution and
/// pooling.
Network all_kernels() {
    Network network = empty_network(3, 24, 40);
    TensorId last =
        append(network, "strided", 0, {.channels = 12, .window = square_window(3, 2, 1)});
    last = append(network, "depthwise", last,
                  {.channels = 12, .window = square_window(3, 1, 1), .groups = 12});
    last = append(network, "wide", last, {.channels = 32, .window = square_window(1)});
    last = append(network, "filtered", last, {.channels = 32, .window = square_window(3, 1, 1)});
    last =
        append(network, "pooled",
               Layer{.kind = LayerKind::max_pool, .inputs = {last}, .window = square_window(2, 2)});
    append(network, "larger", last,
           {.channels = 2, .window = square_window(4, 2, 1), .kind = LayerKind::conv_transpose});
    Rng rng(2);
    for (Layer& layer : network.layers) {
        if (!layer.weights) continue;
        layer.weights = std::make_shared<const Constant>(
            Constant{layer.weights->dims, small_integers(element_count(layer.weights->dims),
                                                         static_cast<uint64_t>(rng.below(100)))});
        layer.activation.kind = ActivationKind::relu;
    }
    check(network);
    return network;
}

TEST(CompileNetwork, CodeForAProcessorWithoutAvx512RunsHere) {
    if (!cpu_has("avx2") || !cpu_has("fma")) GTEST_SKIP() << "this processor has no AVX2";
    const Network network = all_kernels();
    const std::filesystem::path directory =
        std::filesystem::path(testing::TempDir()) / ("laminate_avx2_" + std::to_string(getpid()));
    CompileOptions options;
    options.target = "x86-64-linux-avx2-fma";
    options.note = [](const std::string& line) { ADD_FAILURE() << line; };
    const Manifest manifest = compile_network(
        network, std::get<Schedule>(line_buffer_schedule(network)), options, directory);
    EXPECT_EQ(std::count(manifest.cpu_features.begin(), manifest.cpu_features.end(), "avx512f"), 0);
    const std::vector<float> input = small_integers(input_elements(network), 4);
    const std::vector<float> expected = run_reference_network(network, {input})[0];
    std::vector<float> found(expected.size());
    {
        Session session = Session::open(directory, {2});
        session.run({input.data()}, {found.data()});
    }
    std::filesystem::remove_all(directory);
    const float largest = *std::max_element(expected.begin(), expected.end());
    ASSERT_GT(largest, 0);
    for (size_t n = 0; n < expected.size(); ++n)
        ASSERT_NEAR(found[n], expected[n], 1e-5F * largest) << "element " << n;
}

/// The bytes of an object file with a function for each layer: group0, group1, ...
std::string object_of_layers(const Network& network, const std::string& target) {
    const Schedule schedule = layer_by_layer_schedule(network);
    std::vector<NamedBody> bodies;
    for (const GroupSchedule& group : schedule.groups())
        bodies.push_back({"group" + std::to_string(bodies.size()),
                          default_code(network, group, vector_unit(code_target(target))).body});
    const std::filesystem::path file = std::filesystem::path(testing::TempDir()) /
                                       ("laminate_" + std::to_string(getpid()) + ".o");
    write_object(bodies, "groups", code_target(target), file.string());
    std::string bytes = read_file(file);
    std::filesystem::remove(file);
    return bytes;
}

/// No compiler for the other processor is needed for that much.
TEST(WriteObject, ForAnotherKindOfProcessor) {
    const Network network = all_kernels();
    for (const auto& [target, machine] :
         {std::pair{"arm-64-linux", 183},
          {"x86-64-linux-avx2-fma", 62}}) {  // EM_AARCH64, EM_X86_64
        const std::string bytes = object_of_layers(network, target);
        ASSERT_GT(bytes.size(), 64U) << target;
        EXPECT_EQ(bytes.substr(1, 3), "ELF") << target;
        EXPECT_EQ(static_cast<unsigned char>(bytes[18]), machine) << target;  // e_machine
        EXPECT_NE(bytes.find("group4"), std::string::npos) << target;
    }
}

/// A depthwise layer has more weights than registers, and no array that would align its stack.
TEST(WriteObject, StacksBeginAtWholeVectors) {
    const Network network = chain(16, 20, 20, {{16, square_window(5, 2, 2), 16}});
    const std::string_view and_rsp = "\x48\x83\xe4";  // and $-N, %rsp: these and the byte -N
    for (const auto& [target, bytes_of_vector] :
         {std::pair{"x86-64-linux-avx2-fma", 32},
          {"x86-64-linux-avx2-fma-f16c-avx512-avx512_skylake", 64}}) {
        const std::string bytes = object_of_layers(network, target);
        EXPECT_NE(bytes.find(std::string(and_rsp) + static_cast<char>(-bytes_of_vector)), std::string::npos)
            << target;
    }
}

TEST(JitNetwork, StripsMayBeSharedOutAmongAnyNumberOfThreads) {
    const Network network = zoo_network("l3net");
    const std::vector<LayerId> chain = schedulable_chains(network).front();
    const Schedule schedule(network, {line_buffer_group(network, chain, {2, 3, 0})});
    const JitNetwork compiled(network, schedule);
    EXPECT_GT(std::get<GroupStep>(compiled.manifest().steps.front()).strips, 3);
    const std::vector<float> input = small_integers(input_elements(network), 5);
    const std::vector<float> alone = run(compiled, input, 1);
    for (const int threads : {2, 3, 7})
        EXPECT_EQ(run(compiled, input, threads), alone) << threads << " threads";
}

TEST(JitNetwork, GroupsOfEqualShapeShareTheirCodeAndKeepTheirWeights) {
    ZooOptions small;
    small.height = small.width = 32;
    const Network network = zoo_network("resnet18", small);
    CompileTimes times;
    CompileOptions options;
    options.times = &times;
    const JitNetwork compiled(network, layer_by_layer_schedule(network), options);
    size_t groups = 0;
    for (const Step& step : compiled.manifest().steps)
        groups += std::holds_alternative<GroupStep>(step) ? 1 : 0;
    // 20 convolutions, one dense layer, and the pooling and eight additions that no group of the
    // schedule has.
    EXPECT_EQ(groups, 30U);
    // Stem, pooling and dense layer; convolutions with and without an activation in stage 1; in
    // stages 2 to 4 also the strided first one and the shortcut; the addition of each stage: 3 + 2
    // + 3 * 4 + 4 shapes. Which of them differ in numbers alone depends on the processor's vectors.
    EXPECT_EQ(std::ranges::count(times.groups, false, &GroupTimes::is_equal), 21);
    EXPECT_LT(compiled.descriptor().group_count, 21U);
    EXPECT_GT(compiled.descriptor().group_count, 12U);
    const std::vector<float> input = small_integers(input_elements(network), 3);
    const std::vector<float> found = run(compiled, input, 2);
    const std::vector<float> expected = run_reference_network(network, {input})[0];
    const float largest = *std::max_element(expected.begin(), expected.end());
    for (size_t n = 0; n < expected.size(); ++n)
        ASSERT_NEAR(found[n], expected[n], 1e-4F * largest) << "class " << n;
}

/// Code for slopes up to 1 is max(x, slope x), which is wrong for others: groups that are else
/// alike do not share it.
TEST(JitNetwork, GroupsWithOtherSlopesHaveOtherCode) {
    Network network = chain(
        3, 12, 19, std::vector<LayerSpec>(4, {.channels = 3, .window = square_window(3, 1, 1)}));
    const std::vector<float> slopes{0.25F, 1.5F, 0.5F, 1.00005F};
    for (size_t n = 0; n < slopes.size(); ++n) {
        network.layers[n].activation = {.kind = ActivationKind::prelu,
                                        .slope = std::make_shared<const Constant>(
                                            Constant{{3}, std::vector<float>(3, slopes[n])})};
    }
    CompileOptions options;
    options.note = [](const std::string& line) { ADD_FAILURE() << line; };
    const JitNetwork compiled(network, layer_by_layer_schedule(network), options);
    EXPECT_EQ(compiled.manifest().steps.size(), slopes.size());
    EXPECT_EQ(compiled.descriptor().group_count, 2U);
}

/// A bottleneck and a basic block, the first with a shortcut of its own; the last operand of the
/// second is the first's result.
Network residual_blocks() {
    Network network = empty_network(24, 15, 15);
    const auto sum = [&](const std::string& name, TensorId a, TensorId b) {
        return append(network, name,
                      Layer{.kind = LayerKind::add,
                            .inputs = {a, b},
                            .activation = {.kind = ActivationKind::relu}});
    };
    TensorId main = append(network, "conv1", 0, {.channels = 32, .window = square_window(1)});
    main = append(network, "conv2", main, {.channels = 32, .window = square_window(3, 2, 1)});
    main = append(network, "conv3", main, {.channels = 48, .window = square_window(1)});
    const TensorId shortcut =
        append(network, "shortcut", 0, {.channels = 48, .window = square_window(1, 2)});
    const TensorId first = sum("add1", shortcut, main);
    main = append(network, "conv4", first, {.channels = 40, .window = square_window(3, 1, 1)});
    main = append(network, "conv5", main, {.channels = 48, .window = square_window(3, 1, 1)});
    sum("add2", main, first);
    Rng rng(3);
    for (Layer& layer : network.layers) {
        if (!layer.weights) continue;
        layer.weights = std::make_shared<const Constant>(
            Constant{layer.weights->dims, small_integers(element_count(layer.weights->dims),
                                                         static_cast<uint64_t>(rng.below(100)))});
    }
    check(network);
    return network;
}

/// The number of steps, all of them compiled groups without a remark; the result is right with any
/// number of threads.
size_t steps_of_right_groups(const Network& network, const Schedule& schedule) {
    CompileOptions options;
    options.note = [](const std::string& line) { ADD_FAILURE() << line; };
    const JitNetwork compiled(network, schedule, options);
    for (const Step& step : compiled.manifest().steps)
        EXPECT_TRUE(std::holds_alternative<GroupStep>(step));
    const std::vector<float> input = small_integers(input_elements(network), 5);
    const std::vector<float> expected = run_reference_network(network, {input})[0];
    const std::vector<float> alone = run(compiled, input, 1);
    for (const int threads : {2, 3})
        EXPECT_EQ(run(compiled, input, threads), alone) << threads << " threads";
    const float largest = *std::max_element(expected.begin(), expected.end());
    EXPECT_GT(largest, 0);
    float error = 0;
    for (size_t n = 0; n < expected.size(); ++n)
        error = std::max(error, std::abs(alone[n] - expected[n]));
    EXPECT_LE(error, 1e-5F * largest);
    return compiled.manifest().steps.size();
}

TEST(JitNetwork, AddsOfResidualBlocksHaveNoStepOfTheirOwn) {
    const Network network = residual_blocks();
    EXPECT_EQ(steps_of_right_groups(network, std::get<Schedule>(line_buffer_schedule(network))),
              6U);
}

TEST(JitNetwork, AddsWithinABudgetAreGeneratedToo) {
    const Network network = residual_blocks();
    const auto steps = [&](Bytes memory) {
        LineBufferOptions options;
        options.memory = memory;
        const auto found = line_buffer_schedule(network, options);
        const auto* schedule = std::get_if<Schedule>(&found);
        return schedule ? steps_of_right_groups(network, *schedule) : 0U;
    };
    // All of a block and its Add in one group, and the shortcut.
    EXPECT_EQ(steps(Bytes(1 << 20)), 3U);
    // A budget that holds each layer and no more: eight steps, or fewer where an Add fits with the
    // layer before it.
    LineBufferOptions tight;
    tight.memory = Bytes(1);
    const Elements least = std::get<Infeasible>(line_buffer_schedule(network, tight)).demand;
    const size_t found = steps(to_bytes(least));
    EXPECT_GE(found, 4U);
    EXPECT_LE(found, 8U);
    // No group of the schedule has them.
    EXPECT_EQ(steps_of_right_groups(network, layer_by_layer_schedule(network)), 8U);
}

TEST(JitNetwork, AGroupThatFailsItsCheckIsCutAndALayerThatFailsAloneIsRunByTheReferenceOperators) {
    const Network network = zoo_network("l3net");
    const std::vector<LayerId> chain = schedulable_chains(network).front();
    ASSERT_EQ(chain.size(), 3U);
    const std::string second = network.layer(chain[1]).name;
    std::vector<std::string> notes;
    CompileOptions options;
    options.note = [&](const std::string& line) { notes.push_back(line); };
    options.checker = [&](const Network&, const GroupSchedule& group, const GroupCode&,
                          laminate_group_function, const CheckOptions&) {
        return std::string(group.nests.size() > 1 || group.nests.front().layer == second ? "made up"
                                                                                         : "");
    };
    const JitNetwork compiled(network, Schedule(network, {line_buffer_group(network, chain)}),
                              options);
    ASSERT_EQ(notes.size(), 2U);
    EXPECT_NE(
        notes[0].find(" computes a wrong result (made up); its layers are compiled one by one"),
        std::string::npos)
        << notes[0];
    EXPECT_EQ(notes[1], "group " + second +
                            " computes a wrong result (made up); the reference operators run it");
    const std::string whole = network.layer(chain[0]).name + " .. " + network.layer(chain[2]).name;
    EXPECT_EQ(compiled.manifest().replaced_groups, (std::vector<std::string>{whole, second}));
    EXPECT_EQ(parse_manifest(to_json(compiled.manifest()), "again").replaced_groups,
              compiled.manifest().replaced_groups);
    const auto& steps = compiled.manifest().steps;
    ASSERT_EQ(steps.size(), 3U);
    EXPECT_TRUE(std::holds_alternative<GroupStep>(steps[0]));
    EXPECT_TRUE(std::holds_alternative<LayerStep>(steps[1]));
    EXPECT_TRUE(std::holds_alternative<GroupStep>(steps[2]));

    const std::vector<float> input = small_integers(input_elements(network), 4);
    const std::vector<float> found = run(compiled, input, 1);
    const std::vector<float> expected = run_reference_network(network, {input})[0];
    for (size_t n = 0; n < expected.size(); ++n)
        ASSERT_NEAR(found[n], expected[n], 1e-4F * (1 + std::abs(expected[n]))) << "element " << n;
}

/// fsrcnn's four layers map1 to map4 have the same shape, and so the same code.
TEST(JitNetwork, OfEqualGroupsTheFirstIsCheckedInFullAndAllAreChecked) {
    const Network network = zoo_network("fsrcnn", {.height = 24, .width = 40});
    std::mutex mutex;
    std::map<std::string, int64_t> reference_macs;
    CompileOptions options;
    options.checker = [&](const Network&, const GroupSchedule& group, const GroupCode&,
                          laminate_group_function, const CheckOptions& check) {
        const std::lock_guard lock(mutex);
        reference_macs[group.nests.front().layer] = check.reference_macs.value();
        return std::string();
    };
    const JitNetwork compiled(network, layer_by_layer_schedule(network), options);
    EXPECT_EQ(reference_macs.size(), network.layers.size());
    const int64_t all = CheckOptions{}.reference_macs.value();
    EXPECT_EQ(reference_macs.at("map1"), all);
    for (const char* equal : {"map2", "map3", "map4"})
        EXPECT_EQ(reference_macs.at(equal), all / 8) << equal;
    EXPECT_EQ(reference_macs.at("expand"), all);
}

// Issue 26, 2.
TEST(JitNetwork, StrictCodeIsCheckedOnSpecials) {
    const Network network = zoo_network("l3net");
    for (const bool strict : {false, true}) {
        std::atomic<int> checks = 0, with_specials = 0;
        CompileOptions options;
        options.kernels.strict = strict;
        options.checker = [&](const Network&, const GroupSchedule&, const GroupCode&,
                              laminate_group_function, const CheckOptions& check) {
            ++checks;
            with_specials += check.specials ? 1 : 0;
            return std::string();
        };
        const JitNetwork compiled(network, layer_by_layer_schedule(network), options);
        EXPECT_GT(checks, 0);
        EXPECT_EQ(with_specials, strict ? checks.load() : 0);
        EXPECT_EQ(compiled.manifest().strict, strict);
    }
}

TEST(JitNetwork, AnErrorInOneThreadOfTheCompilerReachesTheCaller) {
    const Network network = zoo_network("l3net");
    CompileOptions options;
    options.threads = 3;
    options.checker = [](const Network&, const GroupSchedule&, const GroupCode&,
                         laminate_group_function,
                         const CheckOptions&) -> std::string { throw InputError("made up"); };
    EXPECT_THROW(JitNetwork(network, layer_by_layer_schedule(network), options), InputError);
}

}  // namespace
}  // namespace laminate
