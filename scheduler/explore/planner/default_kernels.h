// The kernel half of a schedule by rule: what a nest is computed by unless the schedule says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/caches.h"
#include "base/units.h"
#include "nets/network/network.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct KernelOptions {
    /// Minimal filtering where it pays; sums then differ by rounding. False: sums by definition.
    bool winograd = true;
    /// NaN, infinities and values of any magnitude become what the operators make of them, and
    /// nothing else (docs/reliability.md): no minimal filtering, and checked on such values.
    bool strict = false;
    /// Limit on a thread's scratch block. Kernels that would need more are not chosen, and pixels
    /// whose panel would are read in place.
    std::optional<Bytes> scratch{};
    /// The most rows of a tile of minimal filtering: 2, 4 or 6. Higher tiles multiply less and round
    /// worse (docs/reliability.md). With tiles of two rows windows of a picture agree bit for bit,
    /// whatever schedules their sizes get.
    int64_t tile_rows = 6;
    /// The fewest of winograd_map. Tiles of 6 x 6 pay on some processors and layers alone, so only those
    /// who compare times ask for 6 (Pricing).
    int64_t fewest_tile_rows = 2;
    /// Minimal filtering over lines by lanes of tiles alone: winograd_rows, not winograd_channels.
    bool tiles_as_lanes = false;
    /// Of a core. Decides how many blocks of weights code transforms together where a group has many
    /// (docs/decisions.md, "Many weights").
    Bytes second_level_cache = usual_second_level_cache;
    /// Transformed weights of a group that are constants even so, where that cache holds those of each layer.
    Bytes constant_weights{0};
    /// Only kernels with code of any size (scheduler/schedule/open_group.h): none that takes whole
    /// maps, or whose sizes follow from the width of the picture.
    bool any_size = false;

    [[nodiscard]] bool filters() const { return winograd && !strict; }
};

/// The kernel of a kind for a processor: with its registers and lanes, its other sizes 0.
[[nodiscard]] Kernel kernel_for(KernelKind kind, const VectorUnit& unit);

/// The group with a kernel for every nest; a group that has kernels stays as it is. Throws
/// InputError if it has minimal filtering although the options want none. The rules, in
/// this order, each if it pays (kernels/kernel.h), the dataflow allows it and its scratch fits: a
/// map kernel for a group of one layer, or of a layer and an Add; `columns` for a chain; Winograd's
/// filtering and register tiles over line buffers. `loops`: the group's, if known.
[[nodiscard]] GroupSchedule with_default_kernels(const std::vector<LayerProblem>& problems,
                                                 GroupSchedule group, const VectorUnit& unit,
                                                 const KernelOptions& options = {},
                                                 GroupLoops* loops = nullptr);
[[nodiscard]] Schedule with_default_kernels(const Network& network, const Schedule& schedule,
                                            const VectorUnit& unit,
                                            const KernelOptions& options = {});

}  // namespace laminate
