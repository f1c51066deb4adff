#include "scheduler/explore/planner/picture_windows.h"

#include <algorithm>
#include <set>
#include <variant>
#include <vector>

#include "nets/network/reach.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/kernels/columns.h"

namespace laminate {

namespace {

/// MACs that a core does while one element moves to or from external memory: about 50 GMAC/s
/// against about 5 GB/s of the shared bandwidth.
constexpr double macs_per_access = 40;
/// Fixed cost of a window: two starts of the threads, and file access.
constexpr double macs_per_window = 5e6;
/// Smaller windows are not worth a call.
constexpr int64_t least_extent = 64;

/// Candidate numbers of windows along one axis, ascending, each about a quarter above the last.
std::vector<int64_t> counts_of_windows(int64_t picture) {
    std::vector<int64_t> counts{1};
    while (picture / counts.back() > least_extent)
        counts.push_back(counts.back() + std::max<int64_t>(1, counts.back() / 4));
    return counts;
}

/// Peak bytes of the tensors that live between the groups of a schedule.
int64_t bytes_between_groups(const Network& network, const Schedule& schedule) {
    // A group's step is the position of its last layer.
    std::vector<LayerId> step_of(network.layers.size());
    for (LayerId id = 0; id < std::ssize(network.layers); ++id)
        step_of[static_cast<size_t>(id)] = id;
    for (const GroupSchedule& group : schedule.groups()) {
        const LayerId last = network.find_layer(group.nests.back().layer);
        for (const Nest& nest : group.nests)
            step_of[static_cast<size_t>(network.find_layer(nest.layer))] = last;
    }
    std::vector<int64_t> live(network.layers.size(), 0);
    for (TensorId id = 0; id < std::ssize(network.tensors); ++id) {
        const LayerId producer = network.producer(id);
        if (producer < 0 || network.is_output(id)) continue;
        const LayerId begin = step_of[static_cast<size_t>(producer)];
        LayerId end = begin;
        for (const LayerId reader : network.consumers(id))
            end = std::max(end, step_of[static_cast<size_t>(reader)]);
        if (end == begin) continue;
        for (LayerId at = begin; at <= end; ++at)
            live[static_cast<size_t>(at)] +=
                element_count(network.tensor(id).dims) * bytes_per_element;
    }
    return *std::max_element(live.begin(), live.end());
}

/// Cost of windows of one width, derived from a window of moderate height.
struct ColumnCost {
    double per_row = 0;         ///< MACs, and accesses priced in MACs, per input row
    int64_t bytes_per_row = 0;  ///< input, output and tensors between groups
    int64_t thread_bytes = 0;
};

std::optional<ColumnCost> column_cost(const Network& network, const LineBufferOptions& options) {
    const auto found = line_buffer_schedule(network, options);
    const auto* schedule = std::get_if<Schedule>(&found);
    if (schedule == nullptr) return {};
    ColumnCost cost;
    double work = 0;
    for (const GroupSchedule& group : schedule->groups()) {
        const GroupCounts counts = two_level_counts(network, group);
        work += static_cast<double>(counts.macs().value()) +
                macs_per_access * static_cast<double>(counts.accesses().value());
        cost.thread_bytes = std::max(cost.thread_bytes, to_bytes(counts.live_total).value());
    }
    const int64_t rows = network.tensor(network.inputs[0]).dims[2];
    int64_t bytes = bytes_between_groups(network, *schedule);
    for (const TensorId id : {network.inputs[0], network.outputs[0]})
        bytes += element_count(network.tensor(id).dims) * bytes_per_element;
    cost.per_row = work / static_cast<double>(rows);
    cost.bytes_per_row = ceil_div(bytes, rows);
    return cost;
}

}  // namespace

std::optional<WindowChoice> choose_window(const WindowDemand& demand) {
    // More than the planner takes without a budget.
    const Bytes ample{2 * std::max(most_winograd_memory(demand.second_level_cache),
                                   most_column_tiles_memory(demand.second_level_cache))
                              .value()};
    std::optional<Bytes> thread_memory;
    if (const Bytes share{demand.memory.value() / 2 / demand.threads}; share < ample)
        thread_memory = share;
    const LineBufferOptions options{.memory = thread_memory,
                                    .threads = demand.threads,
                                    .second_level_cache = demand.second_level_cache};

    std::optional<WindowChoice> best;
    double best_cost = 0;
    std::set<int64_t> widths;
    for (const int64_t columns : counts_of_windows(demand.width)) {
        const int64_t width = window_for(demand.reach.x, demand.width, columns);
        if (!widths.insert(width).second) continue;
        // All rows cost the same, so one probe height is enough.
        constexpr int64_t probe_extent = 256;
        const int64_t probe =
            window_for(demand.reach.y, demand.height, ceil_div(demand.height, probe_extent));
        constexpr int64_t widest = 8192;
        if (demand.whole_rows ? columns > 1 : width > widest) continue;
        const std::optional<ColumnCost> cost =
            column_cost(demand.network_of(probe, width), options);
        if (!cost) continue;
        for (const int64_t rows : counts_of_windows(demand.height)) {
            const int64_t height = window_for(demand.reach.y, demand.height, rows);
            const int64_t bytes =
                cost->bytes_per_row * height + demand.threads * cost->thread_bytes;
            if (Bytes(bytes) > demand.memory) continue;
            const double total = static_cast<double>(rows * columns) *
                                 (cost->per_row * static_cast<double>(height) + macs_per_window);
            if (best && total >= best_cost) continue;
            best = WindowChoice{height, width, rows, columns, Bytes(bytes), thread_memory};
            best_cost = total;
        }
    }
    return best;
}

}  // namespace laminate
