// Lays out the graph of a network for drawing, in the order in which a schedule runs it. Each
// tensor has a row, so the layers of a group are neighbouring rows and a box around them is a
// rectangle. Lanes run from left to right; no two tensors that wait for readers share one.
#pragma once

#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

struct GraphRow {
    TensorId tensor = -1;  ///< an input of the network, or the output of the row's layer
    LayerId layer = -1;    ///< -1: an input
    /// Column of its dot. The line from the dot to the row of the last reader goes straight down,
    /// and no other line uses the lane on that way.
    int lane = 0;
};

/// Inputs first, then layers. A group stands in one piece where its last layer is, as compiled
/// networks run it. A reader stands below what it reads.
[[nodiscard]] std::vector<GraphRow> network_graph(const Network& network, const Schedule& schedule);

}  // namespace laminate::cli
