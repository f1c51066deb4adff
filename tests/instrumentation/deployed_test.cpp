// What the code that runs does, counted on its own statements, against the closed forms of the
// kernels (scheduler/counts/done.h).
#include "instrumentation/deployed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "generators/kernels/group_kernels.h"
#include "instrumentation/count_pass.h"
#include "instrumentation/loop_sums.h"
#include "instrumentation/replay.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"
#include "scheduler/schedule/kernels/line_plan.h"
#include "tests/support/chain.h"
#include "tests/support/large_windows.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

constexpr VectorUnit avx512{16, 24};

/// What a memory of two levels sees: elements of each X, of W of each layer, of Y.
using Accesses = std::map<std::string, int64_t>;

Accesses two_level_accesses(const GroupCounts& counts) {
    Accesses accesses;
    for (const InputCounts& x : counts.inputs) accesses["X " + x.tensor] = x.reads.value();
    for (const LayerCounts& layer : counts.layers)
        accesses["W " + layer.layer] = layer.weight_reads.value();
    accesses["Y written"] = counts.output_writes.value();
    accesses["Y read"] = counts.output_reads.value();
    return accesses;
}

/// The same from the events of the code that runs.
Accesses announced_accesses(const Network& network, const GroupSchedule& group) {
    const GroupCode code = group_code(network, group, Events::marked);
    const CounterLayout layout{code.arrays.size()};
    const std::vector<int64_t> counters =
        summed_counters(with_counters(code, CountMode::count_only), layout.size(), code.strips)
            .counters;
    Accesses accesses;
    for (size_t a = 0; a < code.arrays.size(); ++a) {
        const CodeArray& array = code.arrays[a];
        const auto index = static_cast<size_t>(array.index);
        const int64_t fetched = counters[layout.event(a, EventKind::fetch)];
        if (array.role == ArrayRole::external_input) accesses["X " + code.inputs[index]] += fetched;
        if (array.role == ArrayRole::external_weights)
            accesses["W " + group.nests[index].layer] += fetched;
        if (array.role == ArrayRole::external_output) {
            accesses["Y written"] = counters[layout.event(a, EventKind::write)];
            accesses["Y read"] = counters[layout.event(a, EventKind::read_back)];
        }
    }
    return accesses;
}

/// Empty if equal.
std::string difference(const Accesses& model, const Accesses& code) {
    std::string text;
    for (const auto& [what, of_model] : model) {
        if (const int64_t of_code = code.at(what); of_code != of_model)
            text += what + ": model " + std::to_string(of_model) + ", events " +
                    std::to_string(of_code) + "; ";
    }
    return text;
}

void expect_equal(const Network& network, const GroupSchedule& group, const std::string& what) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const DoneCounts model = done_counts(group, problems);
    const DoneCounts code = deployed_counts(network, group, model);
    EXPECT_EQ(difference(model, "model", code, "code"), "") << what << ": " << to_text(group);
    // What is scheduled is what the two-level model counts, and copies are its reads of X.
    const GroupCounts two_level = two_level_counts(network, group);
    for (size_t k = 0; k < problems.size(); ++k)
        EXPECT_EQ(model.nests[k].scheduled, two_level.layers[k].macs) << what << to_text(group);
    EXPECT_EQ(difference(two_level_accesses(two_level), announced_accesses(network, group)), "")
        << what << ": " << to_text(group);
    if (kernel_row(group.nests.front().kernel.kind).scope == KernelScope::nest) {
        EXPECT_EQ(model.input_reads().done, two_level.input_reads()) << what << to_text(group);
    }
}

/// Random networks under random schedules and kernels.
template <class MakeNetwork>
void expect_equal_at_random(const MakeNetwork& make, uint64_t first, uint64_t seeds,
                            const RandomOptions& options = {}) {
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
        const Network network = make(seed);
        const Schedule schedule = random_schedule(network, seed, options);
        Rng rng(seed);
        for (const GroupSchedule& group : schedule.groups()) {
            expect_equal(network, random_kernels(group_problems(network, group), group, rng),
                         "seed " + std::to_string(seed));
        }
        if (testing::Test::HasFailure()) return;
    }
}

TEST(Deployed, RandomKernelsUnderRandomSchedulesDoWhatTheirClosedFormsSay) {
    expect_equal_at_random(random_chain, 1, test::samples<uint64_t>(60));
}

TEST(Deployed, RandomGraphsToo) {
    expect_equal_at_random(random_network, 1, test::samples<uint64_t>(25));
    expect_equal_at_random(random_picture_network, 1, test::samples<uint64_t>(25));
}

/// Random networks have windows of a few taps, whose products are written out.
TEST(Deployed, LoopsOverTheTapsOfLargeWindowsToo) {
    for (const Network& network : layers_of_large_windows()) {
        const GroupSchedule lines = line_buffer_group(network, {0});
        const std::vector<LayerProblem> problems = group_problems(network, lines);
        for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}})
            expect_equal(network, with_default_kernels(problems, lines, unit), "by default");
        for (uint64_t seed = 1; seed <= test::samples<uint64_t>(4); ++seed) {
            Rng rng(seed);
            const Schedule schedule = random_schedule(network, seed);
            expect_equal(network, random_kernels(problems, schedule.groups().front(), rng),
                         "seed " + std::to_string(seed));
        }
        if (HasFailure()) return;
    }
}

TEST(Deployed, RandomGroupsOfWholeMapsToo) {
    const RandomOptions options{.max_depth = 3, .whole_map_layers = 3};
    expect_equal_at_random(random_chain, 1, test::samples<uint64_t>(40), options);
    expect_equal_at_random(random_network, 1, test::samples<uint64_t>(40), options);
    expect_equal_at_random(random_picture_network, 1, test::samples<uint64_t>(25), options);
}

/// Events in order, by what rounds of loops tell of them.
class EventsOneByOne : public EventRounds {
public:
    using Told = std::array<int64_t, 8>;

    static std::vector<Told> of(const GroupCode& code) {
        EventsOneByOne events;
        replay_in_rounds(code, {EventKind::lifetime, EventKind::read}, events);
        return events.told_;
    }
    void begin_rounds(int32_t variable) override { open_.push_back({variable, told_.size()}); }
    /// Adds what the first round has told for each of the others.
    void end_rounds(int64_t rounds) override {
        const auto [variable, first] = open_.back();
        open_.pop_back();
        const size_t last = told_.size();
        for (int64_t round = 1; round < rounds; ++round) {
            for (size_t n = first; n < last; ++n) {
                Told told = told_[n];
                std::map<int32_t, std::array<int64_t, 6>> slopes = slopes_[n];
                for (size_t d = 0; d < 6; ++d) told[2 + d] += round * slopes[variable][d];
                told_.push_back(told);
                slopes_.push_back(std::move(slopes));
            }
        }
    }
    void happened(EventKind kind, size_t array,
                  const std::array<counting::Affine, 6>& box) override {
        Told told{static_cast<int64_t>(kind), static_cast<int64_t>(array)};
        std::map<int32_t, std::array<int64_t, 6>> slopes;
        for (size_t d = 0; d < 6; ++d) {
            told[2 + d] = box[d].constant;
            for (size_t n = 0; n < box[d].size; ++n)
                slopes[box[d].terms[n].variable][d] = box[d].terms[n].coefficient;
        }
        told_.push_back(told);
        slopes_.push_back(std::move(slopes));
    }

private:
    std::vector<std::pair<int32_t, size_t>> open_;  ///< variables and their first events
    std::vector<Told> told_;
    /// By event, what a round of each variable adds to its box.
    std::vector<std::map<int32_t, std::array<int64_t, 6>>> slopes_;
};

template <class MakeNetwork>
void expect_rounds_tell_every_event(const MakeNetwork& make, uint64_t seeds) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const Network network = make(seed);
        RandomOptions options;
        options.max_macs = Macs(300'000);
        Rng rng(seed);
        const Schedule schedule = random_schedule(network, seed, options);
        for (const GroupSchedule& group : schedule.groups()) {
            const GroupSchedule with_kernels =
                random_kernels(group_problems(network, group), group, rng);
            const GroupCode code = group_code(network, with_kernels, Events::all);
            std::vector<EventsOneByOne::Told> stepped;
            const auto happened = [&](const HappenedEvent& event) {
                auto& told = stepped.emplace_back(EventsOneByOne::Told{
                    static_cast<int64_t>(event.kind), static_cast<int64_t>(event.array)});
                std::copy(event.box.begin(), event.box.end(), told.begin() + 2);
            };
            replay(code, {{EventKind::lifetime, EventKind::read}}, {happened, {}});
            ASSERT_TRUE(EventsOneByOne::of(code) == stepped)
                << "seed " << seed << ": " << to_text(with_kernels);
        }
    }
}

TEST(Deployed, RoundsTellTheEventsOfEveryIteration) {
    expect_rounds_tell_every_event(random_chain, test::samples<uint64_t>(60));
    expect_rounds_tell_every_event(random_network, test::samples<uint64_t>(20));
    expect_rounds_tell_every_event(random_picture_network, test::samples<uint64_t>(20));
}

/// Compiled code counts while it computes, and computes what it should.
template <class MakeNetwork>
void expect_executed_at_random(const MakeNetwork& make, uint64_t first, uint64_t seeds) {
    for (uint64_t seed = first; seed < first + seeds && !testing::Test::HasFailure(); ++seed) {
        const Network network = make(seed);
        const Schedule schedule = random_schedule(network, seed);
        Rng rng(seed);
        for (const GroupSchedule& drawn : schedule.groups()) {
            const std::vector<LayerProblem> problems = group_problems(network, drawn);
            const GroupSchedule group = random_kernels(problems, drawn, rng);
            const DoneCounts model = done_counts(group, problems);
            const CheckedDone code = executed_counts(network, group, model, seed);
            EXPECT_EQ(difference(model, "model", code.counts, "executed"), "")
                << "seed " << seed << ": " << to_text(group);
            EXPECT_EQ(code.wrong_result, "") << "seed " << seed << ": " << to_text(group);
        }
    }
}

TEST(Deployed, CompiledCodeCountsTheSameWhileItComputes) {
    expect_executed_at_random(random_chain, 1, test::samples<uint64_t>(6));
    expect_executed_at_random(random_network, 1, test::samples<uint64_t>(2));
    expect_executed_at_random(random_picture_network, 1, test::samples<uint64_t>(2));
}

/// One part of ten, so that several run at once.
class DeployedLong : public testing::TestWithParam<uint64_t> {};

// All parts together more than 100,000 groups.
TEST_P(DeployedLong, RandomChains) {
    expect_equal_at_random(random_chain, 1 + 4'000 * GetParam(), 4'000);
}
TEST_P(DeployedLong, RandomGraphs) {
    expect_equal_at_random(random_network, 1 + 2'000 * GetParam(), 2'000);
    expect_equal_at_random(random_picture_network, 1 + 2'000 * GetParam(), 1'000);
}

// All parts together more than 3,000 groups.
TEST_P(DeployedLong, CompiledCodeCountsTheSameWhileItComputes) {
    expect_executed_at_random(random_chain, 1000 + 150 * GetParam(), test::samples<uint64_t>(150));
    expect_executed_at_random(random_network, 1000 + 60 * GetParam(), test::samples<uint64_t>(60));
}

INSTANTIATE_TEST_SUITE_P(Parts, DeployedLong, testing::Range<uint64_t>(0, 10));

void expect_equal_by_default(const Network& network) {
    const Schedule schedule = with_default_kernels(
        network, std::get<Schedule>(line_buffer_schedule(network, {})), avx512);
    for (const GroupSchedule& group : schedule.groups()) {
        const DoneCounts model = done_counts(group, group_problems(network, group));
        EXPECT_EQ(difference(model, "model", deployed_counts(network, group, model), "code"), "")
            << network.name << ": " << to_text(group);
    }
}

class DeployedZooLong : public testing::TestWithParam<ZooEntry> {};
TEST_P(DeployedZooLong, FullSize) { expect_equal_by_default(zoo_network(GetParam().name)); }
INSTANTIATE_TEST_SUITE_P(Zoo, DeployedZooLong, testing::ValuesIn(zoo_entries()),
                         [](const auto& entry) {
                             std::string name = entry.param.name;
                             std::replace_if(
                                 name.begin(), name.end(),
                                 [](char c) { return c == '-' || c == '.'; }, '_');
                             return name;
                         });

TEST(DeployedPicturesLong, Of960Columns) {
    for (const char* name : {"fsrcnn", "mc-cnn", "dmcnn-vd"})
        expect_equal_by_default(zoo_network(name, {.height = 540, .width = 960}));
}

TEST(Deployed, DefaultKernelsOfTheZoo) {
    for (const Network& network : {zoo_network("fsrcnn", {.height = 48, .width = 200}),
                                   // Its channels move in a ring.
                                   zoo_network("fsrcnn", {.height = 12, .width = 960}),
                                   zoo_network("mc-cnn", {.height = 32, .width = 100}),
                                   zoo_network("l3net"), zoo_network("mobilenetv2")}) {
        const Schedule schedule = with_default_kernels(
            network, std::get<Schedule>(line_buffer_schedule(network, {})), avx512);
        for (const GroupSchedule& group : schedule.groups())
            expect_equal(network, group, network.name);
    }
}

/// Three layers by minimal filtering in two strips of 80 columns and one of ten.
TEST(Deployed, FilteredStripsOfColumns) {
    const LayerSpec same{24, square_window(3, 1, 1)};
    const Network network = chain(24, 11, 170, {same, same, same});
    for (const int64_t strip_rows : {0, 8}) {
        const GroupSchedule lines =
            line_buffer_group(network, {0, 1, 2}, {4, strip_rows, 80, true});
        const std::vector<LayerProblem> problems = group_problems(network, lines);
        const GroupSchedule group = with_default_kernels(problems, lines, avx512);
        for (const Nest& nest : group.nests)
            EXPECT_EQ(nest.kernel.kind, KernelKind::winograd_rows) << to_text(group);
        expect_equal(network, group, "strips");
        if (strip_rows != 0) continue;
        // conv3 at 11 rows: three bands. 20, 20 and 3 tiles of columns, two vectors of 16 together.
        const int64_t tiles = (32 + 32 + 32) * 3;
        EXPECT_EQ(done_counts(group, problems).nests.back().done, Macs(36 * 24 * 24 * tiles))
            << to_text(group);
    }
}

/// Eight layers whose rings have two parts.
TEST(Deployed, LongChains) {
    const Network network =
        chain(24, 21, 70, std::vector<LayerSpec>(8, {24, square_window(3, 1, 1)}));
    for (const int64_t strip_columns : {0, 32}) {
        const GroupSchedule lines = line_buffer_group(network, schedulable_chains(network).front(),
                                                      {4, 0, strip_columns, true});
        const std::vector<LayerProblem> problems = group_problems(network, lines);
        const GroupSchedule group = with_default_kernels(problems, lines, avx512);
        EXPECT_TRUE(line_plan(group, problems).rings.back().parts.has_value()) << to_text(group);
        expect_equal(network, group, "long chain");
    }
}

/// Counted, and counted while it computes what it should.
void expect_executed(const Network& network, const GroupSchedule& group) {
    expect_equal(network, group, network.name);
    const DoneCounts model = done_counts(group, group_problems(network, group));
    const CheckedDone code = executed_counts(network, group, model, 5);
    EXPECT_EQ(difference(model, "model", code.counts, "executed"), "") << to_text(group);
    EXPECT_EQ(code.wrong_result, "") << to_text(group);
}

/// A depthwise layer, the 1x1 layer behind it, and an Add of that one's output.
TEST(Deployed, BandsOfADepthwiseLayer) {
    Network network = empty_network(9, 26, 22);
    append(network, "depthwise", 0, {9, square_window(3, 2, 1), 9});
    const TensorId sum = append(network, "pointwise", network.layers.back().output, {20, square_window(1)});
    const TensorId other = append(network, "other", 0, {20, square_window(1, 2)});
    append(network, "add", {.kind = LayerKind::add, .inputs = {sum, other}});
    for (const std::vector<LayerId>& layers : {std::vector<LayerId>{0, 1}, {0, 1, 3}}) {
        for (const int64_t rows : {3, 4, 13}) {
            GroupSchedule group = line_buffer_group(network, layers, {rows, 0, 0});
            group.nests[0].kernel = kernel_for(KernelKind::map_depthwise, avx512);
            group.nests[1].kernel = kernel_for(KernelKind::map_pixels, avx512);
            if (layers.size() > 2) group.nests[2].kernel = kernel_for(KernelKind::map_sum, avx512);
            expect_executed(network, group);
        }
    }
}

TEST(Deployed, BlocksOfAPointwiseLayer) {
    const Network network =
        chain(9, 12, 14, {{41, square_window(1)}, {41, square_window(3, 2, 1), 41}});
    GroupSchedule group = line_buffer_group(network, {0, 1});
    group.nests[0].kernel = kernel_for(KernelKind::map_channels, avx512);
    group.nests[1].kernel = kernel_for(KernelKind::map_depthwise, avx512);
    expect_executed(network, group);
}

/// The first Add computes what the second one adds to, and neither sum is stored before.
TEST(Deployed, AnAddBeforeAnother) {
    Network network = empty_network(6, 5, 7);
    const TensorId a = append(network, "a", 0, {6, square_window(1)});
    const TensorId sum = append(network, "add1", {.kind = LayerKind::add, .inputs = {0, a}});
    const TensorId b = append(network, "b", 0, {6, square_window(1)});
    append(network, "add2", {.kind = LayerKind::add, .inputs = {sum, b}});
    for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}}) {
        GroupSchedule group = line_buffer_group(network, {1, 3});
        group.nests[0].kernel = kernel_for(KernelKind::map_elementwise, unit);
        group.nests[1].kernel = kernel_for(KernelKind::map_sum, unit);
        expect_executed(network, group);
    }
}

/// Maps of such layers are axes of their own.
TEST(Deployed, OneValueForEachChannelOrPosition) {
    using enum GeneralFunction;
    using Dims = std::vector<int64_t>;
    for (const GeneralFunction function : {add, subtract, multiply, divide, minimum, maximum, prelu}) {
        for (const Dims& dims : {Dims{1, 6, 1, 1}, {1, 1, 5, 7}, {1, 1, 1, 1}, {1, 6, 5, 7}}) {
            Network network = empty_network(6, 5, 7);
            network.tensors.push_back({"other", dims});
            network.inputs.push_back(1);
            append(network, "both",
                   {.kind = LayerKind::general,
                    .inputs = {0, 1},
                    .general = {.kind = GeneralKind::binary, .function = function}});
            for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}}) {
                GroupSchedule group = line_buffer_group(network, {0});
                group.nests[0].kernel = kernel_for(KernelKind::map_elementwise, unit);
                expect_executed(network, group);
            }
        }
    }
}

/// The product is rounded before it is added, as line buffers round it.
TEST(Deployed, AProductBeforeAnAdd) {
    Network network = empty_network(6, 5, 7);
    network.tensors.push_back({"factors", {1, 6, 1, 1}});
    network.inputs.push_back(1);
    const TensorId product =
        append(network, "product",
               {.kind = LayerKind::general,
                .inputs = {0, 1},
                .general = {.kind = GeneralKind::binary, .function = GeneralFunction::multiply}});
    const TensorId b = append(network, "b", 0, {6, square_window(1)});
    append(network, "add", {.kind = LayerKind::add, .inputs = {product, b}});
    GroupSchedule group = line_buffer_group(network, {0, 2});
    group.nests[0].kernel = kernel_for(KernelKind::map_elementwise, avx512);
    group.nests[1].kernel = kernel_for(KernelKind::map_sum, avx512);
    expect_executed(network, group);
}

TEST(Deployed, AnActivationAlone) {
    for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::prelu}) {
        Network network = empty_network(6, 5, 7);
        Layer layer{.kind = LayerKind::activation, .inputs = {0}};
        layer.activation.kind = kind;
        if (kind == ActivationKind::prelu) {
            layer.activation.slope = std::make_shared<const Constant>(
                Constant{{6}, {0.5F, -0.25F, 0.125F, 2, 0, -1}});
        }
        append(network, "activation", std::move(layer));
        for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}}) {
            GroupSchedule group = line_buffer_group(network, {0});
            group.nests[0].kernel = kernel_for(KernelKind::map_elementwise, unit);
            expect_executed(network, group);
        }
    }
}

/// Weights of zeros fill the last block of output channels up; their outputs are not stored.
TEST(Deployed, MinimalFilteringOfAPartOfABlock) {
    for (const int64_t channels : {int64_t{32}, int64_t{40}, int64_t{100}}) {
        const Network network = chain(64, 8, 9, {{.channels = channels, .window = square_window(3, 1, 1)}});
        for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}}) {
            GroupSchedule group = line_buffer_group(network, {0});
            Kernel& kernel = group.nests[0].kernel;
            kernel = {KernelKind::winograd_map, {}};
            kernel.size[KernelSize::pairs] = 1;
            kernel.size[KernelSize::sums] = unit.accumulators;
            kernel.size[KernelSize::lanes] = unit.lanes;
            expect_executed(network, group);
        }
    }
}

/// Blocks of output channels are those of one group each, two or three groups of a thread's in
/// turn.
TEST(Deployed, MinimalFilteringOfGroupsOfChannels) {
    for (const auto& [inputs, outputs, groups] :
         {std::array<int64_t, 3>{64, 96, 2}, {99, 240, 3}}) {
        const Network network =
            chain(inputs, 9, 11,
                  {{.channels = outputs, .window = square_window(3, 1, 1), .groups = groups}});
        for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}}) {
            GroupSchedule group = line_buffer_group(network, {0});
            Kernel& kernel = group.nests[0].kernel;
            kernel = {KernelKind::winograd_map, {}};
            kernel.size[KernelSize::pairs] = 2;
            kernel.size[KernelSize::form] = 1;
            kernel.size[KernelSize::sums] = unit.accumulators;
            kernel.size[KernelSize::lanes] = unit.lanes;
            expect_executed(network, group);
        }
    }
}

/// The last vector of a row begins early, and stores only what the one before it has not. The second layer
/// has channels that do not fill the last block, the third one a panel of several tiles.
TEST(Deployed, TransposedLayersWithoutOverlap) {
    for (const auto& [inputs, rows, columns, outputs] :
         {std::array<int64_t, 4>{40, 9, 21, 34}, {33, 12, 16, 35}, {260, 4, 24, 64}}) {
        const LayerSpec apart{outputs, square_window(2, 2), 1, LayerKind::conv_transpose};
        Network network = empty_network(inputs, rows, columns);
        const TensorId sum = append(network, "layer", 0, apart);
        const TensorId other = append(network, "other", 0, apart);
        append(network, "add", {.kind = LayerKind::add, .inputs = {sum, other}});
        for (const VectorUnit& unit : {VectorUnit{8, 12}, VectorUnit{16, 24}}) {
            for (const std::vector<LayerId>& layers : {std::vector<LayerId>{0}, {0, 2}}) {
                GroupSchedule group = line_buffer_group(network, layers);
                group.nests[0].kernel = kernel_for(KernelKind::map_phases, unit);
                if (layers.size() > 1)
                    group.nests[1].kernel = kernel_for(KernelKind::map_sum, unit);
                const std::vector<LayerProblem> problems = group_problems(network, group);
                EXPECT_EQ(done_counts(group, problems).output_writes.done,
                          problems.front().output_elements());
                expect_executed(network, group);
            }
        }
    }
}

/// The last vector of a chunk begins early, and stores only what the one before it has not.
TEST(Deployed, PanelsOfAFewPixels) {
    constexpr VectorUnit avx2{8, 12};
    for (const auto& [inputs, extent, window] :
         {std::tuple{72, 7, square_window(1)},
          {72, 13, square_window(1, 2)},
          {380, 14, square_window(1)},
          {24, 27, square_window(3, 2, 1)},
          {90, 15, square_window(3, 1, 1)}}) {
        Network network = empty_network(inputs, extent, extent);
        const TensorId sum = append(network, "layer", 0, {136, window});
        const TensorId other = append(network, "other", 0, {136, window});
        append(network, "add", {.kind = LayerKind::add, .inputs = {sum, other}});
        for (const std::vector<LayerId>& layers : {std::vector<LayerId>{0}, {0, 2}}) {
            GroupSchedule group = line_buffer_group(network, layers);
            group.nests[0].kernel = kernel_for(KernelKind::map_channels, avx2);
            if (layers.size() > 1) group.nests[1].kernel = kernel_for(KernelKind::map_sum, avx2);
            const std::vector<LayerProblem> problems = group_problems(network, group);
            ASSERT_TRUE(map_channels_layout(problems.front(), avx2).has_panel);
            EXPECT_EQ(done_counts(group, problems).output_writes.done,
                      problems.front().output_elements());
            expect_executed(network, group);
        }
    }
    const Network network =
        chain(72, 7, 7, {{136, square_window(1)}, {136, square_window(3, 1, 1), 136}});
    GroupSchedule group = line_buffer_group(network, {0, 1});
    group.nests[0].kernel = kernel_for(KernelKind::map_channels, avx2);
    group.nests[1].kernel = kernel_for(KernelKind::map_depthwise, avx2);
    expect_executed(network, group);
}

/// One 3x3 convolution of 6 channels to 5 on 20 x 20 pixels, by line buffers.
struct OneLayer {
    Network network = chain(6, 20, 20, {{.channels = 5, .window = square_window(3, 1, 1)}});
    GroupSchedule group = line_buffer_group(network, {0}, {4, 0, 0});
    std::vector<LayerProblem> problems = group_problems(network, group);

    [[nodiscard]] GroupSchedule with(const std::string& kernel) const {
        std::string text = to_text(group);
        text.insert(text.size() - 1, "; kernel " + kernel);
        return parse_group(network, text);
    }
};

TEST(Deployed, ARegisterTileRoundsChannelsAndColumnsUp) {
    const OneLayer layer;
    const GroupSchedule group = layer.with("rows z2 y2 x1 v16");
    const DoneCounts model = done_counts(group, layer.problems);
    // Taps on padding are scheduled too.
    EXPECT_EQ(model.nests.front().scheduled, Macs(5 * 6 * (20 * 3) * (20 * 3)));
    // Three blocks of two channels; 20 rows find 58 rows of the kernel in the picture; two vectors
    // of 16 columns with three taps each.
    EXPECT_EQ(model.nests.front().done, Macs(6 * 6 * 58 * (2 * 16 * 3)));
    expect_equal(layer.network, group, "rows");
}

TEST(Deployed, WeightsAreKeptWhileAKernelRuns) {
    const OneLayer layer;
    // 5 * 6 * 9 weights; blocks of two channels fill five up to six.
    const DoneCounts resident = done_counts(layer.with("rows z2 y2 x1 v16"), layer.problems);
    EXPECT_EQ(resident.nests.front().weights, (ElementsDone{Elements(270), Elements(324)}));
    // Fetched for each of 20 rows; four rows to a box of the kernel.
    std::string text = to_text(layer.with("rows z2 y2 x1 v16"));
    text.replace(text.find("W root/root"), 11, "W yi/yi");
    const GroupSchedule by_rows = parse_group(layer.network, text);
    EXPECT_EQ(done_counts(by_rows, layer.problems).nests.front().weights,
              (ElementsDone{Elements(20 * 270), Elements(5 * 324)}));
    expect_equal(layer.network, by_rows, "by rows");
}

TEST(Deployed, ATileStoresNothingBehindTheLastPixel) {
    // 18 x 18 pixels are seven tiles of three vectors of 16, with 12 lanes to spare.
    const Network network = chain(16, 35, 35, {{.channels = 64, .window = square_window(1, 2)}});
    const Schedule schedule = with_default_kernels(
        network, std::get<Schedule>(line_buffer_schedule(network, {})), avx512);
    const GroupSchedule& group = schedule.groups().front();
    ASSERT_EQ(group.nests.front().kernel.kind, KernelKind::map_windows);
    EXPECT_EQ(done_counts(group, group_problems(network, group)).output_writes.done,
              Elements(64 * 324));
    expect_equal(network, group, "324 pixels");
}

TEST(Deployed, AWrongGranularityIsCaught) {
    const OneLayer layer;
    const GroupSchedule group = layer.with("rows z2 y2 x1 v16");
    // The closed form of three vectors of columns at a time, against code of one.
    const DoneCounts wrong = done_counts(layer.with("rows z2 y2 x3 v16"), layer.problems);
    const DoneCounts code = deployed_counts(layer.network, group, wrong);
    EXPECT_NE(difference(wrong, "model", code, "code")
                  .find("multiplications done: model 300672, code 200448"),
              std::string::npos);
}

}  // namespace
}  // namespace laminate
