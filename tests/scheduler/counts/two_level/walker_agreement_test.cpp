// Two witnesses on random networks and random schedules: the closed form and the walker, which
// share the schedule and nothing else.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "instrumentation/walker.h"
#include "nets/random/random_network.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/dag/dag_groups.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

constexpr RandomOptions small{Macs(300'000), INT64_MAX};

/// Compares model and walker on some schedules of each of many networks, and shows the first
/// schedule that differs.
struct Sweep {
    std::atomic<int64_t> schedules = 0;
    std::atomic<int64_t> groups = 0;
    std::atomic<int64_t> shared = 0;  ///< groups with a tensor that several of its layers read
    std::mutex mutex;
    int64_t differences = 0;
    std::string first;

    void run(Network (*network_of)(uint64_t), uint64_t begin, uint64_t end, uint64_t schedules_each,
             int threads) {
        in_parallel(end - begin, threads, [&](size_t n) {
            const uint64_t seed = begin + n;
            const Network network = network_of(seed);
            for (uint64_t k = 0; k < schedules_each; ++k) {
                const Schedule schedule = random_schedule(network, 1000 * seed + k, small);
                ++schedules;
                for (const GroupSchedule& group : schedule.groups()) compare(network, group, seed);
            }
        });
    }

    /// The largest groups of every sink, with four layers or more, some schedules of each.
    void run_large_groups(uint64_t begin, uint64_t end, uint64_t schedules_each, int threads) {
        in_parallel(end - begin, threads, [&](size_t n) {
            const uint64_t seed = begin + n;
            const Network network = random_network(seed);
            Rng rng(seed);
            for (LayerId sink = 0; sink < static_cast<LayerId>(network.layers.size()); ++sink) {
                if (!is_schedulable(network, sink)) continue;
                const std::vector<std::vector<LayerId>> all =
                    groups_ending_at(network, sink, INT64_MAX);
                size_t largest = 4;
                for (const std::vector<LayerId>& layers : all)
                    largest = std::max(largest, layers.size());
                for (const std::vector<LayerId>& layers : all) {
                    for (uint64_t k = 0; layers.size() == largest && k < schedules_each; ++k) {
                        const GroupSchedule group = random_group(network, layers, rng, small);
                        check_group(network, group);
                        compare(network, group, seed);
                    }
                }
            }
        });
    }

private:
    void compare(const Network& network, const GroupSchedule& group, uint64_t network_seed) {
        ++groups;
        const std::vector<GroupTensor> tensors = group_tensors(group_problems(network, group));
        if (std::any_of(tensors.begin(), tensors.end(),
                        [](const GroupTensor& t) { return t.is_shared(); }))
            ++shared;
        const std::string text =
            difference(two_level_counts(network, group), "model", walk(network, group), "walker");
        if (text.empty()) return;
        const std::lock_guard lock(mutex);
        if (differences++ > 0) return;
        first = text + "\nnetwork seed " + std::to_string(network_seed) + ": " + to_text(group);
    }
};

TEST(ModelAgainstWalker, RandomChains) {
    Sweep sweep;
    sweep.run(random_chain, 1, 1001, 2, 2);
    EXPECT_EQ(sweep.differences, 0) << sweep.first;
    EXPECT_GT(sweep.groups, 2500);
}

/// A chain of few columns but many rows, most of which do what the rows before did. One layer of
/// `transposed_in` is transposed.
template <int64_t transposed_in>
Network tall_chain(uint64_t seed) {
    for (Rng rng(seed);;) {
        std::vector<LayerSpec> specs;
        for (int64_t k = rng.between(1, 4); k > 0; --k) {
            LayerSpec spec;
            spec.window = square_window(rng.between(1, 4), rng.between(1, 2), rng.between(0, 1),
                                        rng.between(1, 2));
            if (rng.chance(1, transposed_in)) {
                spec.kind = LayerKind::conv_transpose;
                spec.window = square_window(rng.between(2, 5), rng.between(2, 3));
            }
            specs.push_back(spec);
        }
        try {
            Network network = chain(1, rng.between(60, 200), rng.between(6, 9), specs);
            if (schedulable_chains(network).size() == 1) return network;
        } catch (const InputError&) {  // an output without extent: draw again
        }
    }
}

TEST(ModelAgainstWalker, TallChains) {
    Sweep sweep;
    sweep.run(tall_chain<8>, 1, test::samples<uint64_t>(600), 2, 2);
    sweep.run(tall_chain<2>, 1, test::samples<uint64_t>(300), 2, 2);
    EXPECT_EQ(sweep.differences, 0) << sweep.first;
    EXPECT_GT(sweep.groups, test::samples<int64_t>(1800));
}

/// Of networks of seeds 1 to `last`; at least so many groups, and tensors that several layers share.
void expect_agreement(Network (*network_of)(uint64_t), uint64_t last, int64_t groups,
                      int64_t shared) {
    Sweep sweep;
    sweep.run(network_of, 1, last + 1, 2, 2);
    EXPECT_EQ(sweep.differences, 0) << sweep.first;
    EXPECT_GT(sweep.groups, groups);
    EXPECT_GT(sweep.shared, shared);
}

TEST(ModelAgainstWalker, RandomNetworksOfAllKinds) {
    expect_agreement(random_network, 1500, 6000, 300);
}

TEST(ModelAgainstWalker, RandomNetworksForPictures) {
    expect_agreement(random_picture_network, 500, 2000, 200);
}

/// `make test-long`: more than 10^6 schedules.
TEST(ModelAgainstWalkerLong, AMillionSchedules) {
    Sweep sweep;
    const int threads = static_cast<int>(std::thread::hardware_concurrency());
    sweep.run(random_network, 100'000, 350'000, 3, threads);
    sweep.run(random_chain, 100'000, 200'000, 3, threads);
    sweep.run(random_picture_network, 100'000, 150'000, 3, threads);
    EXPECT_EQ(sweep.differences, 0) << sweep.first;
    EXPECT_GE(sweep.schedules, 1'000'000);
    EXPECT_GT(sweep.shared, 50'000);
}

TEST(ModelAgainstWalkerLong, LargestGroups) {
    Sweep sweep;
    sweep.run_large_groups(1, 5001, 8, static_cast<int>(std::thread::hardware_concurrency()));
    EXPECT_EQ(sweep.differences, 0) << sweep.first;
    EXPECT_GT(sweep.groups, 20'000);
    EXPECT_GT(sweep.shared, 10'000);
}

TEST(ModelAgainstWalker, L2NetAndL3Net) {
    for (const Network& network : {l2net(), l3net()}) {
        for (uint64_t seed = 1; seed <= 150; ++seed) {
            const Schedule schedule = random_schedule(network, seed, {Macs(2'000'000), INT64_MAX});
            for (const GroupSchedule& group : schedule.groups()) {
                EXPECT_EQ(difference(two_level_counts(network, group), "model",
                                     walk(network, group), "walker"),
                          "")
                    << "schedule seed " << seed << ": " << to_text(group);
            }
        }
    }
}

/// Every order of the inner loops with every pair of levels of X and every level of Y, on a tiny
/// layer.
TEST(ModelAgainstWalker, EveryInnerOrderAndLevelOfASmallLayer) {
    const Network network = chain(2, 5, 4, {{3, square_window(3, 1, 1)}});
    std::vector<Loop> inner{
        {Dim::z, Band::inner}, {Dim::y, Band::inner}, {Dim::x, Band::inner}, {Dim::i, Band::inner}};
    std::sort(inner.begin(), inner.end());
    do {
        GroupSchedule group;
        Nest nest;
        nest.layer = "conv1";
        for (const Dim d : {Dim::y, Dim::i, Dim::z, Dim::x}) nest.loops.push_back({d, Band::outer});
        nest.loops.insert(nest.loops.end(), inner.begin(), inner.end());
        nest.tile = {2, 3, 3, 1};
        group.nests = {nest};
        const std::vector<Level> levels = path(group, 0);
        for (size_t store = 0; store < levels.size(); ++store) {
            for (size_t compute = store; compute < levels.size(); ++compute) {
                Nest& n = group.nests[0];
                n.x = {{0, {levels[store], levels[compute]}}};
                n.w = Placement{levels[levels.size() - 1 - compute],
                                levels[levels.size() - 1 - store]};
                n.y = {levels[compute], levels[compute]};
                ASSERT_EQ(difference(two_level_counts(network, group), "model",
                                     walk(network, group), "walker"),
                          "")
                    << to_text(group);
            }
        }
    } while (std::next_permutation(inner.begin(), inner.end()));
}

// A model that is wrong in one term must not pass. Each corruption changes one number of the
// layer's problem behind the model's back.
class CorruptedModel : public testing::TestWithParam<int> {};

TEST_P(CorruptedModel, IsCaught) {
    const Network network =
        chain(2, 9, 9, {{3, square_window(3, 1, 1)}, {4, square_window(3, 2, 1)}});
    std::vector<LayerProblem> problems{layer_problem(network, 0), layer_problem(network, 1)};
    LayerProblem& p = problems[0];
    switch (GetParam()) {
        case 0:
            p.window[0].kernel -= 1;
            break;
        case 1:
            p.window[0].pad_begin -= 1;
            break;
        case 2:
            p.window[0].stride += 1;
            break;
        case 3:
            p.window[1].dilation += 1;
            break;
        case 4:
            p.window[0].in -= 1;
            break;
        case 5:
            p.extent[Dim::i] += 1;
            break;
        case 6:
            problems[1].extent[Dim::z] -= 1;
            break;
        default:
            break;
    }
    const GroupSchedule group =
        parse_group(network,
                    "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y9 x9 i2; X conv2.yo/conv2.xo; "
                    "W root/root; Y "
                    "conv2.yo/conv2.xo & "
                    "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y2 x2 i3; W io/io; Y xi/xi}");
    const std::string text =
        difference(two_level_counts(problems, group), "model", walk(network, group), "walker");
    if (GetParam() == 7)
        EXPECT_EQ(text, "");
    else
        EXPECT_NE(text, "");
}

INSTANTIATE_TEST_SUITE_P(Terms, CorruptedModel, testing::Range(0, 8));

class CorruptedJoin : public testing::TestWithParam<int> {};

TEST_P(CorruptedJoin, IsCaught) {
    // A stem of 3 channels, from it a convolution of 2 and a pooling of 3 channels, joined in tiles
    // of two channels and two rows.
    Network network = empty_network(2, 6, 6);
    const TensorId stem = append(network, "stem", 0, {3, square_window(1)});
    const TensorId a = append(network, "a", stem, {2, square_window(1)});
    const TensorId p =
        append(network, "p",
               {.kind = LayerKind::max_pool, .inputs = {stem}, .window = square_window(3, 1, 1)});
    append(network, "cat", {.kind = LayerKind::concat, .inputs = {a, p}, .axis = 1});
    check(network);
    const GroupSchedule group = parse_group(
        network,
        "{stem: zo yo xo io | zi yi xi ii n m; tile z3 y6 x6 i2; X cat.yo/cat.yo; W root/root; Y "
        "cat.zo/cat.yo & "
        "a: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i3; W cat.zo/cat.zo; Y cat.yo/cat.yo & "
        "p: zo yo xo io | zi yi xi ii n m; tile z3 y6 x6 i1; Y cat.yo/cat.yo & "
        "cat: zo yo xo io | zi yi xi ii n m; tile z2 y2 x6 i1; Y yo/yo}");
    std::vector<LayerProblem> problems = group_problems(network, group);
    LayerProblem& pool = problems[2];
    std::vector<LayerInput>& operands = problems[3].inputs;
    switch (GetParam()) {
        case 0:
            operands[1].first_output_channel -= 1;
            break;
        case 1:
            operands[0].channels -= 1;
            break;
        case 2:
            operands[1].channels -= 1;
            break;
        case 3:
            pool.window[0].pad_begin = 0;  // the hull of the two branches one row shorter
            break;
        case 4:
            problems[1].window[0].pad_begin = 2;  // one row longer at the other end
            break;
        case 5:
            pool.operation = Operation::multiply_accumulate;  // MACs where there are none; weights
                                                              // need a placement
            break;
        default:
            break;
    }
    GroupSchedule placed = group;
    if (pool.has_weights()) placed.nests[2].w = Placement{};
    const std::string text =
        difference(two_level_counts(problems, placed), "model", walk(network, group), "walker");
    if (GetParam() == 6)
        EXPECT_EQ(text, "");
    else
        EXPECT_NE(text, "");
}

INSTANTIATE_TEST_SUITE_P(Terms, CorruptedJoin, testing::Range(0, 7));

}  // namespace
}  // namespace laminate
