// The complete search (docs/search.md): how many bounds and schedules it evaluates per second, and how many it covers by them. One thread.
#include <benchmark/benchmark.h>

#include <vector>

#include "nets/zoo.h"
#include "scheduler/search/group_search.h"

namespace laminate {
namespace {

/// The first `layers` layers of the network's first chain as one group, all integer tiles, accesses against live memory.
void group_search(benchmark::State& state, const char* name, size_t layers) {
    const Network network = zoo_network(name);
    std::vector<LayerProblem> problems;
    const std::vector<LayerId> chain = schedulable_chains(network).front();
    for (size_t k = 0; k < layers; ++k) problems.push_back(layer_problem(network, chain.at(k)));
    search::GroupSearchOptions options;
    options.tiles = search::Tiles::all;
    options.macs_is_axis = false;
    double steps = 0;
    double evaluated = 0;
    double covered = 0;
    for (auto _ : state) {
        search::GroupSearch search(problems, options);
        search.run();
        const search::GroupSearch::Work work = search.work();
        steps += static_cast<double>(work.steps);
        evaluated += static_cast<double>(work.evaluated);
        covered += work.covered;
    }
    state.counters["bounds/s"] = benchmark::Counter(steps, benchmark::Counter::kIsRate);
    state.counters["evaluated/s"] = benchmark::Counter(evaluated, benchmark::Counter::kIsRate);
    state.counters["covered/s"] = benchmark::Counter(covered, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(group_search, l2net_layer, "l2net", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(group_search, vgg16_layer, "vgg16", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(group_search, l2net_pair, "l2net", 2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace laminate
