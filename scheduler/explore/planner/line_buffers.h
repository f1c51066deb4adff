// The family of schedules that the fast generators execute: strips of output rows that threads may
// take independently, inside them a few output rows at a time; every intermediate rotates in a line
// buffer, stored for the strip and computed at its consumer's row loop; weights resident. In a
// group of one layer the same form without intermediates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/caches.h"
#include "base/units.h"
#include "nets/network/network.h"
#include "scheduler/explore/front.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct LineBufferSizes {
    int64_t rows = 4;  ///< T_y of the sink: output rows per iteration; clamped to 1 .. D_y
    int64_t strip_rows =
        0;  ///< output rows per strip, 0: no row strips; halos between strips are computed twice
    int64_t strip_columns =
        0;  ///< output columns per strip, 0: full width; narrower lines, halos computed twice
};

/// {conv1: ...; X conv2.ys/yo; W root/root; Y conv2.ys/conv2.yo & conv2: ys || zo yo xo io | zi yi
/// xi ii n m; ...; Y xi/xi} Buffers are stored at the innermost strip loop, without strips at the
/// root. `segment`: consecutive layers of one chain, perhaps with an Add of the last one's output
/// behind it.
[[nodiscard]] GroupSchedule line_buffer_group(const Network& network,
                                              const std::vector<LayerId>& segment,
                                              const LineBufferSizes& sizes = {});

/// A convolution or a dense layer whose map is so small that its rows are short and its tensors
/// stay in a core's caches, a 1x1 or depthwise one of 16 channels, or one that reads_few(), also up
/// to 128 x 128: worth computing by itself, from its whole input (generators/kernels/whole_map.h),
/// rather than row by row in a longer group.
[[nodiscard]] bool suits_whole_map(const LayerProblem& problem);
/// A strided convolution whose outputs read few elements each, all channels and taps together: a
/// network's first layer.
[[nodiscard]] bool reads_few(const LayerProblem& problem);
/// A 3x3 convolution to be computed by itself, from its whole input by minimal filtering
/// (generators/kernels/winograd_map.h).
[[nodiscard]] bool suits_winograd_map(const LayerProblem& problem);
/// An Add of the output of the layer before it and of tensors that this one does not read: layers
/// that are computed from their whole input add while they store (generators/ir/layer_output.h).
[[nodiscard]] bool ends_in_add(const std::vector<LayerProblem>& problems);
/// No window: an output pixel reads the input pixel in its place.
[[nodiscard]] bool is_pointwise(const LayerProblem& problem);

/// What whole rows for Winograd may take where nobody says. Beyond the second-level cache they come
/// from the third, which costs nothing that was measured; tensors between the layers of a large
/// picture, from memory, do.
[[nodiscard]] inline Bytes most_winograd_memory(Bytes second_level_cache) {
    constexpr Bytes measured{2 << 20};
    return std::max(Bytes(2 * second_level_cache.value()), measured);
}

struct LineBufferOptions {
    /// Internal memory of one thread: to_bytes(live_total) of each group stays within it. Without a
    /// budget a group may grow while its live memory stays below twice a core's second-level cache,
    /// one with layers for Winograd below most_winograd_memory(), a chain filtered by tiles of
    /// columns also while its own stays below most_column_tiles_memory() (column_chain.h); single
    /// layers are free.
    std::optional<Bytes> memory;
    int threads = 1;  ///< each group gets at least two strips per thread where that recomputes less
                      ///< than 3 % of the MACs
    bool winograd = true;  ///< layers that suits_winograd_map() are groups of their own; false
                           ///< where they will be computed by the definition
    Bytes second_level_cache = usual_second_level_cache;  ///< of a core
};

/// The partition of every chain with the fewest accesses, then the fewest groups, within the
/// budget; MACs of a group at most a quarter (without a budget 5 %) above those without
/// recomputation. Without a budget, layers that suits_whole_map() or suits_winograd_map() are
/// groups of their own, each with the Add that alone reads its output, if there is one
/// (ends_in_add).
[[nodiscard]] std::variant<Schedule, Infeasible> line_buffer_schedule(
    const Network& network, const LineBufferOptions& options = {});

/// Every layer a group of its own, in the same form: what fusion is compared with.
[[nodiscard]] Schedule layer_by_layer_schedule(const Network& network, int threads = 1,
                                               bool winograd = true);

}  // namespace laminate
