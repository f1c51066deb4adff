// The graph of a network in the order in which a schedule runs it, laid out for drawing: a row per
// tensor, so that the layers of a group are rows one below the other and a box around them is a
// rectangle, and lanes from left to right, so that no two tensors that wait for readers share one.
#pragma once

#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

struct GraphRow {
    TensorId tensor = -1;  ///< an input of the network, or the output of the row's layer
    LayerId layer = -1;    ///< -1: an input
    /// Column of its dot; a line goes straight down from it to the row of its last reader, and
    /// nobody else's does meanwhile.
    int lane = 0;
};

/// Inputs first; then layers, each group as one piece where its last layer stands, as compiled
/// networks run it. A reader stands below what it reads.
[[nodiscard]] std::vector<GraphRow> network_graph(const Network& network, const Schedule& schedule);

}  // namespace laminate::cli
