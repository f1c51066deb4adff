// Small random operator graphs: any DAG, odd sizes, weights, strides, several readers.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "papers/dag_groups/operator_graph.h"

namespace laminate::dag_groups {

/// A graph of `size` operators; some maps leave though they are read. `reads(from, to)` says
/// whether operator `to` reads the map of `from` < `to`; an operator that reads none reads the
/// network's input. Without `reads`, at random among the four before.
inline OperatorGraph random_graph(uint64_t seed, int size,
                                  const std::function<bool(int from, int to)>& reads = {}) {
    Rng rng(seed);
    const auto pick = [&](int64_t low, int64_t high) {
        return low + static_cast<int64_t>(rng.next() % static_cast<uint64_t>(high - low + 1));
    };
    OperatorGraph graph;
    graph.maps.resize(static_cast<size_t>(size) + 1);
    graph.maps.back() = {pick(1, 8), pick(8, 24), pick(8, 24), {}, false};
    for (int op = 0; op < size; ++op) {
        Operator o;
        o.name = "op" + std::to_string(op);
        std::vector<int> sources;
        for (int from = 0; from < op; ++from) {
            if (reads ? reads(from, op) : pick(0, 9) < 4 && from + 5 > op) sources.push_back(from);
        }
        if (sources.empty()) sources.push_back(size);
        Map& own = graph.maps[static_cast<size_t>(op)];
        own.channels = pick(1, 40);
        own.height = pick(4, 20);
        own.width = pick(4, 20);
        own.is_output = pick(0, 19) == 0;
        for (const int from : sources) {
            OperatorInput input{from, {}, true};
            for (Reach& reach : input.reach) reach = {pick(1, 4), pick(1, 2), 1};
            o.inputs.push_back(input);
            graph.maps[static_cast<size_t>(from)].readers.push_back(op);
        }
        o.weights = pick(0, 3) == 0 ? 0 : pick(1, 4000);
        graph.operators.push_back(o);
    }
    return graph;
}

}  // namespace laminate::dag_groups
