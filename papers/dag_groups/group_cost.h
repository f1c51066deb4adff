// What one group of operators costs: off-chip traffic with the best tile that fits (Optimus, Eq. 3
// and 4), maps held in streams (Algorithm 2).
//
// Rows and columns needed of a map for an output tile t at the group's sinks (operators that no
// other of the group reads), per axis, going backwards:
//     R(sink) = t;   R(map) = max over its readers c inside the group of Reach::inputs(R(c))
// With several sinks the largest has t, sink s has ceil(O(s) t / max O); no sink less than the
// array's lanes along the axis, or its extent. Buffer: the sum over all maps of the group, inputs
// from outside included, of t_c R_h R_w (Eq. 4). A map that streams (phi = 1) holds t_c = min(T_c,
// C) channels, another (phi = 0) all C; who reads a streaming map does not stream, because it sums
// over all channels (Algorithm 2). Cost: input maps from outside and maps needed outside once per
// image, and the weights once per tile:
//     MemoryCost = B (|inputs| + |outputs|) + passes * |weights| (Eq. 3)
// Units: entries, that is elements. Halos that tiles read twice are free, as in Eq. 3.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "papers/dag_groups/graph_rows.h"
#include "papers/dag_groups/operator_graph.h"
#include "scheduler/machine/machine.h"

namespace laminate::dag_groups {

/// What the model needs of a machine.
struct GroupMachine {
    int64_t buffer_bytes = 0;                    ///< on chip, for maps
    std::optional<int64_t> weight_buffer_bytes;  ///< none: weights share the buffer of the maps
    int64_t entry_bytes = 2;
    int64_t lanes_height = 1;    ///< T_h
    int64_t lanes_width = 1;     ///< T_w
    int64_t lanes_channels = 1;  ///< T_c
};

/// The buffer: what lies directly below the highest memory, of inputs and outputs together where
/// they have memories of their own. Lanes: the axes OY, OX and K of the array. Throws InputError
/// for elements of different widths.
[[nodiscard]] GroupMachine group_machine(const Machine& machine);

/// The paper leaves its tile and its batch open: docs/optimus.md. Each reading is the one before
/// with something changed.
enum class Reading {
    literal,  ///< L: Eq. 3 and 4 as printed; full width, streams by the greedy of Algorithm 2
    /// R: width searched too, maps clipped to their size, streams by the exact optimum, weights
    /// that fit in the buffer loaded once
    refined,
    /// Q: and several images may share the buffer; the weights pass once for each such set.
    /// Capacity: one entry for each byte
    batch_as_tile,
};

struct GroupRules {
    bool searches_width = true;
    bool clips_maps = true;
    bool exact_streams = true;
    bool weights_may_stay = true;
    bool batch_is_tile = true;
    int64_t images = 4;  ///< B
    int64_t buffer_entries = 0;
    std::optional<int64_t> weight_buffer_entries;  ///< none: weights that stay share the buffer
};
/// `buffer_entries`: 0 as the reading has it.
[[nodiscard]] GroupRules rules_of(Reading reading, const GroupMachine& machine, int64_t images,
                                  int64_t buffer_entries = 0);

struct GroupCost {
    int64_t input_entries = 0;   ///< of all images
    int64_t output_entries = 0;  ///< of all images
    int64_t weight_entries = 0;  ///< |weights|
    int64_t passes = 1;          ///< times that the weights are loaded
    int64_t tile_height = 0;     ///< of the largest sink
    int64_t tile_width = 0;
    int64_t tile_images = 1;
    int64_t buffer_entries = 0;  ///< of the maps of a tile
    [[nodiscard]] int64_t entries() const {
        return input_entries + output_entries + passes * weight_entries;
    }
    friend bool operator==(const GroupCost&, const GroupCost&) = default;
};

/// Costs groups of one graph. Keeps scratch memory: one object per thread.
class GroupEvaluator {
public:
    GroupEvaluator(const OperatorGraph& graph, const GroupMachine& machine,
                   const GroupRules& rules);

    /// Of different operators, in any order; a set of operators of an acyclic partition. None: no
    /// tile fits.
    [[nodiscard]] std::optional<GroupCost> cost(std::span<const int> operators);

    /// Entries of the maps of the least tile: what the buffer must hold at least.
    [[nodiscard]] int64_t least_entries(std::span<const int> operators);

    /// Entries for a tile of a quarter of the height and of the width, rounded up (the table of
    /// Algorithm 3).
    [[nodiscard]] int64_t quarter_tile_entries(std::span<const int> operators);

    /// phi of what the last call looked at: maps, in no special order, and whether they stream.
    struct Stream {
        int map;
        bool streams;
    };
    [[nodiscard]] std::vector<Stream> streams() const;

private:
    struct Node {
        int map;
        int readers;  ///< inside the group
        bool streams;
    };
    struct Edge {
        int reader;  ///< node
        int input;   ///< node
        const PerAxis<Reach>* reach;
    };

    struct StreamScratch {
        struct State {
            uint64_t chosen;  ///< slots of waiting nodes that stream
            int64_t saved;
            int before;  ///< state of the node before
            bool takes;
        };
        std::vector<State> states;
        std::vector<int> first_state;  ///< by position in `order`
        std::vector<int> order, position, last_reader;
        std::vector<uint64_t> conflicts;  ///< by node: slots of its readers that stream or may
        std::vector<uint64_t> gone;       ///< by position: slots of which nobody waits any more
    };

    void collect(std::span<const int> operators);
    [[nodiscard]] const GraphRows::MapRow& row(const Node& node) const {
        return rows_.map(static_cast<size_t>(node.map));
    }
    [[nodiscard]] bool is_sink(size_t node) const {
        return node < inside_ && nodes_[node].readers == 0;
    }
    /// R of every node for the largest sink's tile t; `floors`: no sink below its least tile.
    void extents(MapAxis axis, int64_t tile, bool floors, std::vector<int64_t>& result) const;
    [[nodiscard]] int64_t least_tile(MapAxis axis, int64_t size) const;
    [[nodiscard]] int64_t entries(const std::vector<int64_t>& height,
                                  const std::vector<int64_t>& width) const;
    void choose_streams();
    void choose_streams_greedily();
    void choose_streams_exactly();
    void put_in_order();
    void search_tile(GroupCost& cost, int64_t buffer_entries);

    GroupMachine machine_;
    GroupRules rules_;
    GraphRows rows_;
    std::vector<Node> nodes_;  ///< readers before what they read
    std::vector<Edge> edges_;  ///< by reader, in order of nodes
    PerAxis<int64_t> largest_{1, 1};
    std::vector<int> node_of_map_;  ///< -1: not in the group
    size_t inside_ = 0;             ///< operators: the first nodes
    std::vector<int> sorted_;
    std::vector<int64_t> height_, width_, area_;
    std::vector<int64_t> held_;                  ///< channels in the buffer, by node
    std::vector<std::vector<int64_t>> heights_;  ///< extents by tile height, of those looked at
    std::vector<int> has_height_;  ///< by tile height: the last search_tile() that looked at it
    int searches_ = 0;
    StreamScratch scratch_;
};

}  // namespace laminate::dag_groups
