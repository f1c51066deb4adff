#include "scheduler/explore/random_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

TEST(RandomSchedule, SameSeedSameScheduleOnEveryMachine) {
    EXPECT_EQ(random_schedule(l2net(), 17), random_schedule(l2net(), 17));
    EXPECT_NE(random_schedule(l2net(), 17), random_schedule(l2net(), 18));
    EXPECT_EQ(to_text(random_schedule(l2net(), 3)),
              "{conv1: io yo zo xo | zi ii xi yi n m; tile z2 y9 x6 i3; X xo/yi; W conv2.io/zo; Y "
              "conv2.yo/conv2.xo & "
              "conv2: ys || io yo zo xo | yi xi zi ii n m; strip y14; tile z4 y12 x16 i2; W zo/zi; "
              "Y io/io}");
}

TEST(RandomSchedule, EveryKindOfChoiceOccurs) {
    const Network network = l3net();
    std::map<std::string, int> seen;
    for (uint64_t seed = 0; seed < 600; ++seed) {
        const Schedule schedule = random_schedule(network, seed);
        ++seen["groups " + std::to_string(schedule.groups().size())];
        for (const GroupSchedule& group : schedule.groups()) {
            const std::vector<LayerProblem> problems = group_problems(network, group);
            for (size_t k = 0; k < group.nests.size(); ++k) {
                const Nest& nest = group.nests[k];
                for (const Dim d : all_dims) {
                    const int64_t extent = problems[k][d];
                    if (nest[d] == extent)
                        ++seen["whole extent"];
                    else if (extent % nest[d] == 0)
                        ++seen["divisor"];
                    else
                        ++seen["ragged tile"];
                }
                if (nest[Dim::i] < problems[k][Dim::i]) ++seen["partial sums"];
                for (const Loop& loop : nest.loops) ++seen["loop " + to_text(loop)];
                ++seen["innermost " + to_text(nest.loops.back())];
                const auto levels = [&](const std::string& array, const Placement& p, int user) {
                    const auto kind = [&](Level level) -> std::string {
                        return level.is_root() ? "root" : level.nest == user ? "own" : "around";
                    };
                    ++seen[array + " stored " + kind(p.store)];
                    ++seen[array + " computed " + kind(p.compute)];
                    ++seen[array + (p.store == p.compute ? " at one level" : " rotates")];
                };
                const int user = static_cast<int>(k);
                for (const InputPlacement& x : nest.x) levels("X", x.placement, user);
                if (nest.w) levels("W", *nest.w, user);
                if (user == group.sink())
                    levels("Y", nest.y, user);
                else
                    levels("A", nest.y, user + 1);
            }
        }
    }
    for (const char* kind :
         {"groups 1",        "groups 2",          "groups 3",          "whole extent",
          "divisor",         "ragged tile",       "partial sums",      "loop ys",
          "loop xs",         "innermost zi",      "innermost yi",      "innermost xi",
          "innermost ii",    "X stored root",     "X stored own",      "X stored around",
          "X computed root", "X computed own",    "X computed around", "X at one level",
          "X rotates",       "W stored root",     "W stored own",      "W stored around",
          "W computed own",  "W computed around", "W rotates",         "A stored root",
          "A stored own",    "A stored around",   "A computed own",    "A computed around",
          "A rotates",       "A at one level",    "Y stored root",     "Y stored own"}) {
        EXPECT_GE(seen[kind], 5) << kind;
    }
}

TEST(RandomSchedule, StaysBelowTheBoundOnWork) {
    const Network network = chain(4, 30, 30,
                                  {{8, square_window(3)},
                                   {8, square_window(3)},
                                   {8, square_window(3)},
                                   {8, square_window(3)}});
    const RandomOptions options{Macs(3'000'000), INT64_MAX};
    bool recomputes = false;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        const Schedule schedule = random_schedule(network, seed, options);
        for (const GroupSchedule& group : schedule.groups()) {
            int64_t least = 0;
            for (const LayerProblem& p : group_problems(network, group))
                least += 9 * p[Dim::z] * p[Dim::y] * p[Dim::x] * p[Dim::i];
            const int64_t macs = two_level_counts(network, group).macs().value();
            EXPECT_LE(macs, std::max<int64_t>(3'000'000, 4 * least)) << to_text(group);
            recomputes = recomputes || macs > least;
        }
    }
    EXPECT_TRUE(recomputes);
}

TEST(RandomSchedule, ALongChainIsFinishedToo) {
    const Network network = chain(2, 40, 40, std::vector<LayerSpec>(16, {2, square_window(3)}));
    Rng rng(7);
    const GroupSchedule group =
        random_group(network, all_layers(network), rng, {Macs(1'000'000), INT64_MAX});
    EXPECT_EQ(group.nests.size(), 16u);
}

TEST(RandomSchedule, ForksAndJoinsInsideGroups) {
    std::map<std::string, int> seen;
    for (uint64_t seed = 0; seed < 1200; ++seed) {
        const Network network = random_network(seed);
        const Schedule schedule = random_schedule(network, seed, {Macs(300'000), INT64_MAX});
        std::map<TensorId, size_t> computed_by;  // group
        std::set<LayerId> covered;
        for (size_t g = 0; g < schedule.groups().size(); ++g) {
            const std::vector<LayerProblem> problems =
                group_problems(network, schedule.groups()[g]);
            if (problems.size() > 4) ++seen["five layers and more"];
            for (const LayerProblem& p : problems) {
                computed_by[p.output] = g;
                covered.insert(p.layer);
                if (problems.size() > 1)
                    ++seen["operation " + std::to_string(static_cast<int>(p.operation))];
            }
            for (const GroupTensor& tensor : group_tensors(problems)) {
                if (tensor.is_shared())
                    ++seen[tensor.is_external() ? "shared input" : "shared tensor"];
                if (tensor.is_external() && tensor.readers.front().operand > 0)
                    ++seen["input that is a later operand"];
            }
        }
        // Every group finds its inputs computed.
        for (size_t g = 0; g < schedule.groups().size(); ++g) {
            for (const GroupTensor& tensor :
                 group_tensors(group_problems(network, schedule.groups()[g]))) {
                if (!tensor.is_external() || computed_by.count(tensor.tensor) == 0) continue;
                EXPECT_LT(computed_by[tensor.tensor], g) << seed;
            }
        }
        for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) {
            if (is_schedulable(network, id) && covered.count(id) == 0)
                ++seen["left to the reference operators"];
        }
    }
    for (const Operation operation :
         {Operation::multiply_accumulate, Operation::max_pool, Operation::average_pool,
          Operation::add, Operation::concat, Operation::pointwise}) {
        EXPECT_GE(seen["operation " + std::to_string(static_cast<int>(operation))], 20)
            << static_cast<int>(operation);
    }
    for (const char* kind : {"five layers and more", "shared input", "shared tensor",
                             "input that is a later operand", "left to the reference operators"}) {
        EXPECT_GE(seen[kind], 20) << kind;
    }
}

TEST(RandomSchedule, KernelsAreCalledNoMoreThanWanted) {
    RandomOptions options;
    options.max_calls = 300;
    int64_t most = 0;
    for (uint64_t seed = 0; seed < 100; ++seed) {
        const Network network = l3net();
        const Schedule schedule = random_schedule(network, seed, options);
        for (const GroupSchedule& group : schedule.groups()) {
            const int64_t calls =
                kernel_calls(asked_boxes(group, group_problems(network, group)));
            EXPECT_LE(calls, options.max_calls) << to_text(group);
            most = std::max(most, calls);
        }
    }
    EXPECT_GT(most, options.max_calls / 2);
}

/// Only whole tiles call the kernels of all layers of a group once.
TEST(RandomSchedule, TilesGrowUntilTheLimitHolds) {
    const Network network = l3net();
    std::vector<LayerId> all;
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) all.push_back(id);
    RandomOptions options;
    options.max_calls = std::ssize(all);
    Rng rng(1);
    const GroupSchedule group = random_group(network, all, rng, options);
    EXPECT_EQ(kernel_calls(asked_boxes(group, group_problems(network, group))), options.max_calls);
}

TEST(RandomNetwork, CoversTheSchedulableKindsAndAttributes) {
    std::map<std::string, int> seen;
    for (uint64_t seed = 0; seed < 400; ++seed) {
        const Network network = random_chain(seed);
        EXPECT_EQ(schedulable_chains(network).size(), 1u) << seed;
        for (const Layer& layer : network.layers) {
            ++seen[to_string(layer.kind)];
            if (layer.window.stride[0] > 1) ++seen["stride"];
            if (layer.window.stride[0] >
                (layer.window.kernel[0] - 1) * layer.window.dilation[0] + 1)
                ++seen["gaps"];
            if (layer.window.dilation[1] > 1) ++seen["dilation"];
            if (layer.window.pad_begin[0] != layer.window.pad_end[0]) ++seen["asymmetric padding"];
            if (layer.groups > 1 && layer.weights->dims[1] == 1 && layer.kind == LayerKind::conv)
                ++seen["depthwise"];
            if (layer.groups > 1 && layer.weights->dims[1] > 1 && layer.kind == LayerKind::conv)
                ++seen["groups"];
            for (const float w : layer.weights->values)
                EXPECT_EQ(w, static_cast<float>(static_cast<int>(w)));
        }
    }
    for (const char* kind : {"conv", "conv_transpose", "gemm", "stride", "gaps", "dilation",
                             "asymmetric padding", "depthwise", "groups"}) {
        EXPECT_GE(seen[kind], 10) << kind;
    }
}

}  // namespace
}  // namespace laminate
