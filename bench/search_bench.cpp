// The complete search (docs/search.md): how many bounds and schedules it evaluates per second, and
// how many it covers by them. One thread. And the search of Optimus (docs/optimus.md), off-line and
// on-line with its table made beforehand, as in the paper.
// `..._grids`: every combination of tiles of every structure evaluated, row by row, and compared
// with what was found; only structures are bounded.
#include <benchmark/benchmark.h>

#include <vector>

#include "nets/zoo/zoo.h"
#include "papers/dag_groups/grouping.h"
#include "scheduler/explore/group_search/group_search.h"
#include "scheduler/machine/machine.h"

namespace laminate {
namespace {

std::vector<search::Cost> front_of(const std::vector<LayerProblem>& problems,
                                   const search::GroupSearchOptions& options,
                                   search::GroupSearch::Work& work) {
    search::GroupSearch search(problems, options);
    search.run();
    work = search.work();
    std::vector<search::Cost> costs;
    for (const auto& point : search.front()) costs.push_back(point.cost);
    return costs;
}

const int64_t usual = search::GroupSearchOptions().most_in_a_grid;

/// The first `layers` layers of the network's first chain as one group, all integer tiles, accesses
/// against live memory. Sets of more than `most_in_a_grid` combinations of tiles are bounded and
/// halved, smaller ones evaluated.
void group_search(benchmark::State& state, const char* name, size_t layers,
                  int64_t most_in_a_grid) {
    const Network network = zoo_network(name);
    std::vector<LayerProblem> problems;
    const std::vector<LayerId> chain = schedulable_chains(network).front();
    for (size_t k = 0; k < layers; ++k) problems.push_back(layer_problem(network, chain.at(k)));
    search::GroupSearch::Work work;
    search::GroupSearchOptions options;
    options.tiles = search::Tiles::all;
    options.macs_is_axis = false;
    const std::vector<search::Cost> expected = front_of(problems, options, work);
    options.most_in_a_grid = most_in_a_grid;
    if (front_of(problems, options, work) != expected)
        return state.SkipWithError("the front depends on the size of the grids");
    double steps = 0;
    double evaluated = 0;
    double covered = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(front_of(problems, options, work));
        steps += static_cast<double>(work.steps);
        evaluated += static_cast<double>(work.evaluated);
        covered += work.covered;
    }
    state.counters["bounds/s"] = benchmark::Counter(steps, benchmark::Counter::kIsRate);
    state.counters["evaluated/s"] = benchmark::Counter(evaluated, benchmark::Counter::kIsRate);
    state.counters["covered/s"] = benchmark::Counter(covered, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(group_search, l2net_layer, "l2net", 1, usual)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(group_search, vgg16_layer, "vgg16", 1, usual)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(group_search, l2net_layer_grids, "l2net", 1, INT64_MAX)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(group_search, vgg16_layer_grids, "vgg16", 1, INT64_MAX)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(group_search, l2net_pair, "l2net", 2, usual)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(group_search, l2net_pair_grids, "l2net", 2, INT64_MAX)
    ->Unit(benchmark::kMillisecond);

void grouping(benchmark::State& state, const char* name, bool online) {
    using namespace dag_groups;
    const OperatorGraph graph = operator_graph(zoo_network(name));
    const GroupMachine machine = group_machine(open_machine("optimus_base"));
    GroupingOptions options;
    if (online) {
        options.size_limit = online_size_limit(graph, machine, options);
        options.online = true;
    }
    int64_t costed = 0;
    for (auto _ : state) {
        const Grouping found = best_grouping(graph, machine, options);
        costed = found.groups_costed;
        benchmark::DoNotOptimize(found.entries);
    }
    state.counters["groups costed"] = static_cast<double>(costed);
}
#define LAMINATE_GROUPING_BENCHMARK(net)                                                    \
    BENCHMARK_CAPTURE(grouping, net##_offline, #net, false)->Unit(benchmark::kMicrosecond); \
    BENCHMARK_CAPTURE(grouping, net##_online, #net, true)->Unit(benchmark::kMicrosecond)
LAMINATE_GROUPING_BENCHMARK(vgg16);
LAMINATE_GROUPING_BENCHMARK(squeezenet);
LAMINATE_GROUPING_BENCHMARK(resnet50);
LAMINATE_GROUPING_BENCHMARK(resnet152);
LAMINATE_GROUPING_BENCHMARK(googlenet);
LAMINATE_GROUPING_BENCHMARK(resnet1202);

}  // namespace
}  // namespace laminate
