// Loads and stores of the code that runs, one by one, against the events that it is made with and
// the closed forms of what it does.
#include "instrumentation/touched.h"

#include <Halide.h>
#include <gtest/gtest.h>

#include <set>

#include "generators/lowering/events.h"
#include "nets/network/picture_views.h"
#include "nets/random/random_network.h"
#include "scheduler/counts/done.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"
#include "scheduler/schedule/kernels/line_plan.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

/// Every line says one thing that is wrong.
std::vector<std::string> disagreements(const DoneCounts& model, const TouchedCounts& touched) {
    std::vector<std::string> wrong = touched.wrong;
    const auto compare = [&](const std::string& what, Elements of_model, Elements of_code) {
        if (of_model != of_code)
            wrong.push_back(what + ": model " + std::to_string(of_model.value()) + ", touched " +
                            std::to_string(of_code.value()));
    };
    for (size_t t = 0; t < model.inputs.size(); ++t)
        compare("reads of " + model.inputs[t].tensor, model.inputs[t].reads.done,
                touched.inputs[t]);
    for (size_t k = 0; k < model.nests.size(); ++k)
        compare("weights of " + model.nests[k].layer, model.nests[k].weights.done,
                touched.weights[k]);
    return wrong;
}

void expect_true_events(const Network& network, const GroupSchedule& group,
                        const std::string& what) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const TouchedCounts touched = touched_counts(traced_group(network, group), group, problems);
    for (const std::string& wrong : disagreements(done_counts(group, problems), touched))
        ADD_FAILURE() << what << ": " << wrong << "\n" << to_text(group);
}

template <class MakeNetwork>
void expect_true_events_at_random(const MakeNetwork& make, uint64_t first, uint64_t seeds) {
    for (uint64_t seed = first; seed < first + seeds && !testing::Test::HasFailure(); ++seed) {
        const Network network = make(seed);
        const Schedule schedule = random_schedule(network, seed);
        Rng rng(seed);
        for (const GroupSchedule& group : schedule.groups())
            expect_true_events(network, random_kernels(group_problems(network, group), group, rng),
                               "seed " + std::to_string(seed));
    }
}

TEST(Touched, RandomKernelsUnderRandomSchedules) {
    expect_true_events_at_random(random_chain, 1, test::samples<uint64_t>(30));
}

TEST(Touched, RandomGraphs) {
    expect_true_events_at_random(random_network, 1, test::samples<uint64_t>(15));
    expect_true_events_at_random(random_picture_network, 1, test::samples<uint64_t>(15));
}

TEST(TouchedLong, RandomChainsAndGraphs) {
    expect_true_events_at_random(random_chain, 1000, test::samples<uint64_t>(3000));
    expect_true_events_at_random(random_network, 1000, test::samples<uint64_t>(1500));
    expect_true_events_at_random(random_picture_network, 1000, test::samples<uint64_t>(1000));
}

/// Two branches of an input, added.
Network branches() {
    Network network = empty_network(6, 9, 9);
    const TensorId conv1 = append(network, "conv1", 0, {5, square_window(3, 1, 1)});
    const TensorId conv2 = append(network, "conv2", 0, {5, square_window(1)});
    append(network, "add3", {.kind = LayerKind::add, .inputs = {conv1, conv2}});
    return network;
}

/// The rings of eight layers lie in one array (generators/kernels/line_buffers.h).
TEST(Touched, LongChains) {
    const Network network =
        chain(3, 13, 12, std::vector<LayerSpec>(8, {3, square_window(3, 1, 1)}));
    GroupSchedule group = line_buffer_group(network, all_layers(network), {4, 0, 0});
    for (Nest& nest : group.nests) {
        nest.tile[Dim::y] = 4;
        nest.kernel = {KernelKind::rows, {}};
        for (const KernelSize size : {KernelSize::channels, KernelSize::rows, KernelSize::columns})
            nest.kernel.size[size] = 1;
        nest.kernel.size[KernelSize::lanes] = 4;
    }
    const std::vector<LayerProblem> problems = group_problems(network, group);
    EXPECT_TRUE(line_plan(group, problems).rings.back().parts.has_value());
    expect_true_events(network, group, "long chain");
}

/// 14 columns and one on each side make 16, a whole vector. The zeros that the convolution reads
/// behind them are none of the 3 * 4 * 16 outputs of a step of four rows.
TEST(Touched, ZerosBehindAPadAreNotItsOutputs) {
    Network network = empty_network(3, 8, 14);
    const Padding padding{Padding::Mode::constant, {0, 1}, {0, 1}, 0.5F};
    const TensorId pad = append(network, "pad1",
                                {.kind = LayerKind::general,
                                 .inputs = {0},
                                 .general = padded(network.tensor(0).dims, padding)});
    append(network, "conv2", pad, {2, square_window(3, 1, 1)});
    const GroupSchedule group = line_buffer_group(network, {0, 1}, {4, 0, 0});
    const std::vector<LayerProblem> problems = group_problems(network, group);
    Rng rng(1);
    for (int draw = 0; draw < 8; ++draw)
        expect_true_events(network, random_kernels(problems, group, rng), "pad");
}

/// A factor per position has fewer elements than the map that it is added to, so no kernel may take
/// both as one axis of all maps.
TEST(Touched, APlaneIsReadInsideOfIt) {
    Network network = empty_network(6, 5, 3);
    network.tensors.push_back({"plane", {1, 1, 5, 3}});
    network.inputs.push_back(1);
    append(network, "add1",
           {.kind = LayerKind::general,
            .inputs = {0, 1},
            .general = {.kind = GeneralKind::binary, .function = GeneralFunction::add}});
    const GroupSchedule group = line_buffer_group(network, {0}, {4, 0, 0});
    const std::vector<LayerProblem> problems = group_problems(network, group);
    GroupSchedule whole = line_buffer_group(network, {0});
    whole.nests[0].kernel = kernel_for(KernelKind::map_elementwise, VectorUnit{16, 24});
    expect_true_events(network, whole, "plane of whole maps");
    Rng rng(1);
    for (int draw = 0; draw < 8; ++draw)
        expect_true_events(network, random_kernels(problems, group, rng), "plane");
}

Network pooling(LayerKind kind) {
    Network network = empty_network(3, 11, 13);
    append(network, "pool1", {.kind = kind, .inputs = {0}, .window = square_window(3, 2, 1)});
    return network;
}

TEST(Touched, EveryKernelOfTheTable) {
    const LayerSpec same{32, square_window(3, 1, 1)};
    const LayerSpec depthwise{9, square_window(3, 1, 1), 9};
    const LayerSpec strided{9, square_window(3, 2, 1), 9};
    const LayerSpec twice{5, square_window(4, 2, 1), 1, LayerKind::conv_transpose};
    const LayerSpec apart{9, square_window(2, 2), 1, LayerKind::conv_transpose};
    const LayerSpec filtered{4, square_window(3, 1, 1)};
    const LayerSpec enlarged{1, square_window(9, 2, 4), 1, LayerKind::conv_transpose};
    const Network columns =
        chain(1, 9, 66, {{6, square_window(5, 1, 2)}, {4, square_window(1)}, filtered, enlarged});
    const std::vector<std::pair<Network, std::vector<LayerId>>> cases{
        {chain(32, 9, 9, {same}), {0}},
        {chain(8, 6, 6, {{13, square_window(1)}}), {0}},
        {chain(3, 50, 50, {{33, square_window(3, 2, 1)}}), {0}},
        {chain(9, 11, 10, {depthwise}), {0}},
        {chain(9, 11, 11, {strided}), {0}},
        {chain(9, 11, 11, {strided, {13, square_window(1)}}), {0, 1}},
        {chain(5, 11, 11, {{9, square_window(1)}, strided}), {0, 1}},
        {chain(3, 7, 6, {twice}), {0}},
        {chain(3, 5, 18, {apart}), {0}},
        {pooling(LayerKind::max_pool), {0}},
        {pooling(LayerKind::average_pool), {0}},
        {branches(), {1, 2}},
        {branches(), {2}},
        {columns, all_layers(columns)}};
    std::set<KernelKind> seen;
    Rng rng(7);
    for (const auto& [network, segment] : cases) {
        const GroupSchedule group = line_buffer_group(network, segment, {4, 0, 0});
        const std::vector<LayerProblem> problems = group_problems(network, group);
        for (int draw = 0; draw < 24; ++draw) {
            const GroupSchedule drawn = random_kernels(problems, group, rng);
            for (const Nest& nest : drawn.nests) seen.insert(nest.kernel.kind);
            expect_true_events(network, drawn, network.name);
        }
    }
    for (const KernelRow* row : kernel_table()) EXPECT_TRUE(seen.contains(row->kind)) << row->name;
}

/// Two 3x3 convolutions as one group, six rows at a time, weights again for each of these.
struct TwoLayers {
    Network network = chain(3, 20, 20, {{5, square_window(3, 1, 1)}, {4, square_window(3, 1, 1)}});
    GroupSchedule group = with_kernels("rows z2 y2 x1 v16");
    std::vector<LayerProblem> problems = group_problems(network, group);
    TracedGroup traced = traced_group(network, group);

    [[nodiscard]] GroupSchedule with_kernels(const std::string& kernel) const {
        std::string text = to_text(line_buffer_group(network, {0, 1}, {6, 0, 0}));
        const size_t middle = text.find(" & ");
        text.insert(text.size() - 1, "; kernel " + kernel);
        text.insert(middle, "; kernel " + kernel);
        return parse_group(network, text);
    }
    [[nodiscard]] std::vector<std::string> wrong() const {
        return disagreements(done_counts(group, problems), touched_counts(traced, group, problems));
    }
    /// Changes the events of a kind and role: the box's bound number `bound` by `by`.
    void change(EventKind kind, ArrayRole role, size_t bound, int by) {
        class Mutator : public Halide::Internal::IRMutator {
        public:
            Mutator(const GroupCode& code, EventKind kind, ArrayRole role, size_t bound, int by)
                : code_(code), kind_(kind), role_(role), bound_(bound), by_(by) {}
            using IRMutator::visit;
            Halide::Internal::Stmt visit(const Halide::Internal::Evaluate* evaluate) override {
                std::optional<ir::Event> event = ir::as_event(evaluate);
                if (!event || event->kind != kind_ || code_.arrays[event->array].role != role_)
                    return evaluate;
                event->box[bound_] = event->box[bound_] + by_;
                return ir::event(*event);
            }

        private:
            const GroupCode& code_;
            EventKind kind_;
            ArrayRole role_;
            size_t bound_;
            int by_;
        };
        traced.code.body = Mutator(traced.code, kind, role, bound, by).mutate(traced.code.body);
    }
};

TEST(Touched, ATrueGroupHasNothingWrong) { EXPECT_TRUE(TwoLayers().wrong().empty()); }

TEST(Touched, AWrongEventIsCaught) {
    struct Case {
        EventKind kind;
        ArrayRole role;
        size_t bound;
        int by;
        const char* message;
    };
    const Case cases[] = {
        // One row of X too few, one too many; one output channel of W too few; a stored column and
        // a computed row too few.
        {EventKind::read, ArrayRole::external_input, 3, -1, "is read, not in"},
        {EventKind::read, ArrayRole::external_input, 3, 1, "elements are read of"},
        {EventKind::fetch, ArrayRole::external_weights, 1, -1, "are read and not fetched"},
        {EventKind::fetch, ArrayRole::external_weights, 1, 1, "are fetched and not read"},
        {EventKind::read, ArrayRole::external_weights, 1, -1, "are read, not in"},
        {EventKind::store, ArrayRole::output_buffer, 5, -1, "elements are stored of"},
        {EventKind::compute, ArrayRole::output_buffer, 3, -1, "is touched, not in"}};
    for (const Case& c : cases) {
        TwoLayers layers;
        layers.change(c.kind, c.role, c.bound, c.by);
        std::string all;
        for (const std::string& wrong : layers.wrong()) all += wrong + "\n";
        EXPECT_NE(all.find(c.message), std::string::npos) << c.message << "\n" << all;
    }
}

TEST(Touched, AWrongGranularityIsCaught) {
    const TwoLayers layers;
    const TouchedCounts touched = touched_counts(layers.traced, layers.group, layers.problems);
    // Blocks of two fill five channels up to six, blocks of four to eight.
    const DoneCounts wrong = done_counts(layers.with_kernels("rows z4 y1 x1 v16"), layers.problems);
    const std::vector<std::string> found = disagreements(wrong, touched);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front(), "weights of conv1: model 216, touched 162");
}

}  // namespace
}  // namespace laminate
