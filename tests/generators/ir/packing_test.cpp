// Constants made again by what is kept with code: the same as those that the code was made with.
#include "generators/ir/packing.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/rng.h"
#include "generators/kernels/group_kernels.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/schedule/kernels/layer_forms.h"

namespace laminate {
namespace {

using Order = Packing::Order;
using Source = Packing::Source;

/// Every order of weights occurs but that of those that code transforms (winograd_test.cpp).
TEST(Packing, EveryGroupPacksItsConstantsAgain) {
    std::set<Order> orders;
    std::set<Source> sources;
    Rng rng(1);
    const auto check_group = [&](const Network& network, const GroupSchedule& group) {
        const GroupCode code = group_code(network, group);
        EXPECT_EQ(packed_block(code.packings, network, group_problems(network, group)),
                  code.constants)
            << network.name << ": " << to_text(group);
        for (const Packing& packing : code.packings) {
            EXPECT_EQ(parse_packing(to_text(packing), "here"), packing);
            sources.insert(packing.source);
            if (packing.source == Source::weights) orders.insert(packing.order);
        }
    };
    const auto check = [&](const Network& network, const Schedule& schedule) {
        for (const GroupSchedule& group : schedule.groups())
            check_group(network, random_kernels(group_problems(network, group), group, rng));
    };
    for (const std::string name : {"fsrcnn", "mc-cnn"}) {
        const Network network = zoo_network(name, {.height = 40, .width = 40});
        for (int n = 0; n < 2; ++n) {
            check(network, layer_by_layer_schedule(network));
            check(network, std::get<Schedule>(line_buffer_schedule(network, {})));
        }
    }
    // Its chain has the kernel columns, whose last layer is transposed.
    const Network chain = zoo_network("fsrcnn", {.height = 40, .width = 40});
    GroupSchedule whole = line_buffer_group(chain, schedulable_chains(chain).front());
    Kernel columns;
    columns.kind = KernelKind::columns;
    columns.size[KernelSize::sums] = 24;
    columns.size[KernelSize::lanes] = 16;
    for (Nest& nest : whole.nests) nest.kernel = columns;
    check_group(chain, whole);
    // It averages over windows that padding cuts short.
    const Network network = zoo_network("inceptionv3", {.height = 96, .width = 96});
    check(network, with_layers_alone(network, layer_by_layer_schedule(network)));
    EXPECT_EQ(orders.size(), 9U);
    EXPECT_EQ(sources.size(), 4U);
}

TEST(Packing, OrdersByInputAndByTap) {
    Layer layer;
    layer.kind = LayerKind::conv;
    layer.weights = std::make_shared<Constant>(Constant{{3, 2, 1, 2}, {1, 2, 3, 4,      //
                                                                       5, 6, 7, 8,      //
                                                                       9, 10, 11, 12}});
    LayerProblem p;
    p.extent = {3, 1, 1, 2};
    p.window[1].kernel = 2;
    // [block][i][m][z in block], two channels a block: input 0 of channels 0 and 1 is 1 2 and 5 6.
    EXPECT_EQ(packed({.order = Order::by_input, .block = 2}, layer, p),
              (std::vector<float>{1, 5, 2, 6, 3, 7, 4, 8, 9, 0, 10, 0, 11, 0, 12, 0}));
    // [block][m][i][z in block]: tap 0 of channels 0 and 1 is 1 5 of input 0 and 3 7 of input 1.
    EXPECT_EQ(packed({.order = Order::by_tap, .block = 2}, layer, p),
              (std::vector<float>{1, 5, 3, 7, 2, 6, 4, 8, 9, 0, 11, 0, 10, 0, 12, 0}));
}

TEST(Packing, ZerosFollowTheLastBlock) {
    Layer layer;
    LayerProblem p;
    p.extent = {3, 1, 1, 1};
    layer.bias = std::make_shared<Constant>(Constant{{3}, {1, 2, 3}});
    EXPECT_EQ(packed({.source = Source::bias, .block = 2, .behind = 1}, layer, p),
              (std::vector<float>{1, 2, 3, 0, 0}));
    // Nothing is packed of the slopes that a layer has not.
    EXPECT_TRUE(packed({.source = Source::slope, .block = 2, .behind = 1}, layer, p).empty());
}

TEST(Packing, WhatIsNoPackingIsRefused) {
    for (const std::string line : {"", "0 0 0 1", "-1 0 0 1 0", "0 4 0 1 0", "0 0 9 1 0", "0 0 0 0 0",
                                   "0 0 0 1 -1", "0 x 0 1 0"}) {
        EXPECT_THROW((void)parse_packing(line, "here"), InputError) << line;
    }
}

}  // namespace
}  // namespace laminate
