#include "answers/network_graph.h"

#include <gtest/gtest.h>

#include <map>

#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/random_schedule.h"

namespace laminate::cli {
namespace {

/// "conv1 0 | pool 1": rows with their lanes.
std::string text_of(const Network& network, const std::vector<GraphRow>& rows) {
    std::string text;
    for (const GraphRow& row : rows) {
        const std::string name =
            row.layer < 0 ? network.tensor(row.tensor).name : network.layer(row.layer).name;
        text += (text.empty() ? "" : " | ") + name + " " + std::to_string(row.lane);
    }
    return text;
}

/// Layers `name: inputs`, all of one shape and without weights; x is the network's input.
Network diamond() {
    Network network;
    network.name = "diamond";
    const std::vector<int64_t> dims{1, 2, 4, 4};
    for (const char* name : {"x", "a", "b", "c", "y"}) network.tensors.push_back({name, dims});
    network.inputs = {0};
    network.outputs = {4};
    const auto pointwise = [&](const char* name, TensorId from, TensorId to) {
        Layer layer{.name = name, .kind = LayerKind::activation, .inputs = {from}, .output = to};
        layer.activation.kind = ActivationKind::relu;
        network.layers.push_back(layer);
    };
    pointwise("a", 0, 1);
    pointwise("b", 1, 2);
    pointwise("c", 2, 3);
    network.layers.push_back(
        {.name = "join", .kind = LayerKind::add, .inputs = {1, 3}, .output = 4});
    check(network);
    return network;
}

TEST(NetworkGraph, ASkipEdgeKeepsItsLaneWhileTheBranchTakesAnother) {
    const Network network = diamond();
    // a waits for the join in lane 0; b and c have lane 1; the join takes the lane that is free
    // again.
    EXPECT_EQ(text_of(network, network_graph(network, Schedule(network, {}))),
              "x 0 | a 0 | b 1 | c 1 | join 0");
}

// The rules of the header, on random networks under random schedules: no two waiting tensors share
// a lane, readers stand below what they read, and groups stay in one piece.
TEST(NetworkGraph, LanesAndRowsOfRandomNetworks) {
    int forks = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        const Network network = random_network(seed);
        const Schedule schedule = random_schedule(network, seed);
        const std::vector<GraphRow> rows = network_graph(network, schedule);
        ASSERT_EQ(rows.size(), network.inputs.size() + network.layers.size()) << seed;
        std::map<TensorId, size_t> row_of;
        for (size_t at = 0; at < rows.size(); ++at)
            ASSERT_TRUE(row_of.emplace(rows[at].tensor, at).second) << seed;
        std::vector<size_t> last(rows.size());
        for (size_t at = 0; at < rows.size(); ++at) {
            last[at] = at;
            const std::vector<LayerId> readers = network.consumers(rows[at].tensor);
            forks += readers.size() > 1;
            for (const LayerId reader : readers) {
                const size_t below = row_of.at(network.layer(reader).output);
                ASSERT_GT(below, at) << seed;
                last[at] = std::max(last[at], below);
            }
        }
        for (size_t above = 0; above < rows.size(); ++above) {
            for (size_t at = above + 1; at < last[above]; ++at)
                ASSERT_NE(rows[at].lane, rows[above].lane)
                    << "seed " << seed << ": " << text_of(network, rows);
        }
        for (const GroupSchedule& group : schedule.groups()) {
            const size_t first =
                row_of.at(network.layer(network.find_layer(group.nests.front().layer)).output);
            for (size_t k = 0; k < group.nests.size(); ++k)
                ASSERT_EQ(network.layer(rows.at(first + k).layer).name, group.nests[k].layer)
                    << "seed " << seed;
        }
    }
    EXPECT_GT(forks, 20);
}

}  // namespace
}  // namespace laminate::cli
