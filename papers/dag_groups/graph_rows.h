// An operator graph in rows, without names: what searches over groups read in their inner loops,
// close together.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "papers/dag_groups/operator_graph.h"

namespace laminate::dag_groups {

class GraphRows {
public:
    /// `lanes_channels`: T_c of the machine.
    GraphRows(const OperatorGraph& graph, int64_t lanes_channels) {
        maps_.reserve(graph.maps.size());
        for (const Map& map : graph.maps) {
            maps_.push_back({.channels = map.channels,
                             .lanes = std::min(lanes_channels, map.channels),
                             .size = map.size(),
                             .readers = static_cast<int>(map.readers.size()),
                             .leaves_always = map.is_output || map.readers.empty()});
        }
        first_input_.reserve(graph.operators.size() + 1);
        weights_.reserve(graph.operators.size());
        inputs_.reserve(2 * graph.operators.size());
        for (const Operator& op : graph.operators) {
            first_input_.push_back(inputs_.size());
            for (const OperatorInput& input : op.inputs)
                inputs_.push_back({input.map, input.reach});
            weights_.push_back(op.weights);
        }
        first_input_.push_back(inputs_.size());
    }

    struct MapRow {
        int64_t channels;
        int64_t lanes;  ///< t_c of a stream
        PerAxis<int64_t> size;
        int readers;
        bool leaves_always;  ///< it is an output of the network, or nothing reads it
        [[nodiscard]] int64_t elements() const {
            return channels * size[MapAxis::y] * size[MapAxis::x];
        }  ///< of one image
    };
    struct InputRow {
        int map;
        PerAxis<Reach> reach;
    };

    [[nodiscard]] int size() const { return static_cast<int>(weights_.size()); }  ///< operators
    [[nodiscard]] size_t map_count() const { return maps_.size(); }
    [[nodiscard]] const MapRow& map(size_t m) const { return maps_[m]; }
    [[nodiscard]] std::span<const InputRow> inputs(int op) const {
        const auto n = static_cast<size_t>(op);
        return {inputs_.data() + first_input_[n], first_input_[n + 1] - first_input_[n]};
    }
    [[nodiscard]] size_t input_count() const { return inputs_.size(); }  ///< of all operators
    [[nodiscard]] int64_t weights(int op) const { return weights_[static_cast<size_t>(op)]; }

private:
    std::vector<MapRow> maps_;
    std::vector<InputRow> inputs_;
    std::vector<size_t> first_input_;  ///< by operator, one more than operators
    std::vector<int64_t> weights_;     ///< by operator
};

}  // namespace laminate::dag_groups
