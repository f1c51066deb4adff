// How long the search's inner steps take: one evaluation of the closed form, and a whole
// line-buffer plan.
#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/line_buffers.h"

namespace laminate {
namespace {

Network fsrcnn() {
    ZooOptions size;
    size.height = 540;
    size.width = 960;
    return zoo_network("fsrcnn", size);
}

/// The whole network as one group of line buffers: eight layers, nothing remembered from earlier
/// calls.
void two_level_counts_of_a_fused_group(benchmark::State& state) {
    const Network network = fsrcnn();
    const GroupSchedule group =
        line_buffer_group(network, schedulable_chains(network).front(), {state.range(0), 0, 0});
    for (auto _ : state) benchmark::DoNotOptimize(two_level_counts(network, group));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(two_level_counts_of_a_fused_group)->ArgName("rows")->Arg(1)->Arg(4)->Arg(7);

/// The same when a search asks again and again.
void two_level_counts_with_a_cache(benchmark::State& state) {
    const Network network = fsrcnn();
    const GroupSchedule group =
        line_buffer_group(network, schedulable_chains(network).front(), {4, 0, 0});
    TwoLevelCache cache;
    for (auto _ : state) benchmark::DoNotOptimize(two_level_counts(network, group, &cache));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(two_level_counts_with_a_cache);

void line_buffer_plan(benchmark::State& state, const char* name) {
    const Network network = zoo_network(name);
    for (auto _ : state)
        benchmark::DoNotOptimize(line_buffer_schedule(network, {Bytes(512 << 10), 2}));
}
BENCHMARK_CAPTURE(line_buffer_plan, fsrcnn, "fsrcnn")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(line_buffer_plan, resnet50, "resnet50")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace laminate
