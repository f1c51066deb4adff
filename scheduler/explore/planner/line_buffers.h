// The line-buffer family of schedules, which the fast generators execute. Threads take strips of
// output rows independently; inside a strip a few output rows are computed at a time. Every
// intermediate rotates in a line buffer, stored for the strip and computed at its consumer's row
// loop. Weights stay resident. A group of one layer has the same form without intermediates.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "base/caches.h"
#include "base/units.h"
#include "nets/network/network.h"
#include "scheduler/explore/front.h"
#include "scheduler/explore/planner/tiled_layer.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct LineBufferSizes {
    int64_t rows = 4;  ///< T_y of the sink: output rows per iteration; clamped to 1 .. D_y
    /// Output rows per strip; 0 means no row strips. Halos between strips are computed twice.
    int64_t strip_rows = 0;
    /// Output columns per strip; 0 means full width. Strips shorten the lines and compute halos
    /// twice.
    int64_t strip_columns = 0;
    /// Rows that layers for Winograd compute at a time wherever they are in the group, for tiles of
    /// two, four or six rows; the more, the higher are line buffers.
    int64_t tile_rows = 2;
};

///   {conv1: ...; X conv2.ys/yo; W root/root; Y conv2.ys/conv2.yo &
///    conv2: ys || zo yo xo io | zi yi xi ii n m; ...; Y xi/xi}
/// Buffers are stored at the innermost strip loop, or at the root without strips. `segment` holds
/// layers of which only the last one's output is read by others, producers first.
[[nodiscard]] GroupSchedule line_buffer_group(const Network& network,
                                              const std::vector<LayerId>& segment,
                                              const LineBufferSizes& sizes = {});

/// Rows of the busiest thread when threads take strips in order as they become free.
[[nodiscard]] int64_t longest_share(int64_t extent, int64_t strip_rows, int threads);

/// Limit on the live memory of whole rows for Winograd without a budget. Rows beyond the
/// second-level cache come from the third, at no measurable cost. Splitting the group would bring
/// tensors of a large picture from memory, which does cost time.
[[nodiscard]] inline Bytes most_winograd_memory(Bytes second_level_cache) {
    constexpr Bytes measured{2 << 20};
    return std::max(Bytes(2 * second_level_cache.value()), measured);
}

/// Counts of the groups that line_buffer_group() makes, found once for layers of a shape. Threads may share
/// this object.
class LineBufferCounts {
public:
    struct Counts {
        Elements accesses;
        Elements live;
        Macs macs;
    };
    /// `cache` is the calling thread's own. The reference is valid as long as this object lives.
    [[nodiscard]] const Counts& of(const std::vector<LayerProblem>& problems, const LineBufferSizes& sizes,
                                   TwoLevelCache& cache);

private:
    struct Group {
        std::once_flag is_counted;
        Counts counts;
    };
    std::mutex mutex_;  ///< guards the maps; each group's flag guards its counts
    /// The outer key is shape_key(), the inner one all members of LineBufferSizes.
    std::map<std::vector<int64_t>, std::map<std::array<int64_t, 4>, Group>> groups_;
};

/// Results that plans of one network share, whatever their options are.
struct SharedByPlans {
    TiledLayers tiled_layers;
    LineBufferCounts counts;
};

struct LineBufferOptions {
    /// Budget of one thread's internal memory: to_bytes(live_total) of each group stays within it.
    /// Without a budget, a group may grow while its live memory stays below twice a core's
    /// second-level cache, or below most_winograd_memory() if it has layers for Winograd. A chain
    /// filtered by tiles of columns may also grow while column_tiles_memory() stays below
    /// most_column_tiles_memory() (scheduler/schedule/kernels/columns.h). Single layers have no
    /// limit.
    std::optional<Bytes> memory = std::nullopt;
    /// Each group gets at least two strips per thread where that recomputes less than 3 % of the
    /// MACs.
    int threads = 1;
    /// Whether layers for which the kernel winograd_map pays are groups of their own. False if they
    /// will be computed by the definition.
    bool winograd = true;
    bool wide_maps = false;  ///< also wide maps (is_wide_map), for tiles of 6 x 6
    int64_t tile_rows = 2;  ///< LineBufferSizes::tile_rows of all groups
    /// Without a budget, too, lines for Winograd may be strips of columns if the weights of each layer
    /// take no more than this once transformed for such tiles. A step reads them several times.
    Bytes weights_of_strips{0};
    Bytes second_level_cache = usual_second_level_cache;  ///< of a core
    VectorUnit unit{8, 12};  ///< of the processor, which says how some kernels divide their work
    /// Whether groups may hold what joins convolutions to other layers (runs.h); false: chains of
    /// layers with weights alone.
    bool joins = true;
    SharedByPlans* shared = nullptr;  ///< null if there is one plan
};

/// Partitions every run (runs.h) with the fewest accesses, then the fewest groups, within the budget.
/// Recomputation adds at most a quarter to the MACs of a group, or 5 % without a budget. Without a
/// budget, layers for which a map kernel pays are groups of their
/// own, together with an Add that is the only reader of their output (ends_in_add).
[[nodiscard]] std::variant<Schedule, Infeasible> line_buffer_schedule(
    const Network& network, const LineBufferOptions& options = {});

/// The schedule with groups for the layers outside its groups that code is generated for:
/// elementwise layers, pooling into rows of four columns or more, and layers of runs (runs.h) but Concat.
/// They have strips for so many threads, unless these share a kernel of the whole map.
[[nodiscard]] Schedule with_layers_alone(const Network& network, const Schedule& schedule,
                                         int threads = 1);

/// Every layer as a group of its own, in the same form. Fusion is compared with this schedule.
[[nodiscard]] Schedule layer_by_layer_schedule(const Network& network, int threads = 1,
                                               bool winograd = true);

}  // namespace laminate
