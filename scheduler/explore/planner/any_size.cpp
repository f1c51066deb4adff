#include "scheduler/explore/planner/any_size.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/open_group.h"

namespace laminate {

namespace {

/// The group with rows that no size bounds and strips of rows.
GroupSchedule with_strips(const Network& network, const GroupSchedule& group,
                          const AnySizeOptions& options) {
    std::vector<LayerId> layers;
    for (const Nest& nest : group.nests) layers.push_back(network.find_layer(nest.layer));
    const std::vector<LayerProblem> problems = layer_problems(network, layers);
    const Nest& sink = group.nests.back();
    const int64_t rows = problems.back()[Dim::y];
    // Half of the rows at the planned size; the runtime takes what it needs. Tiles of few rows, as
    // the planner's first choice.
    constexpr int64_t few = 4;
    const int64_t up = problems.back().y().transposed ? problems.back().y().stride : 1;
    const int64_t tile = sink[Dim::y] == rows ? std::min(few * up, rows) : sink[Dim::y];
    const int64_t strip = round_up(ceil_div(rows, 2), round_up(tile, 2));
    const GroupSchedule rows_only = line_buffer_group(network, layers, {tile, strip, 0});
    if (!options.kernels.filters() || !column_chain_pays(problems)) return rows_only;
    // Columns too: as wide as the cache holds, whatever the width of the picture.
    const int64_t unit = strip_unit(rows_only, problems, Dim::x);
    const int64_t columns = problems.back()[Dim::x];
    const int64_t widest = widest_strip(rows_only, problems, options.strips_cache);
    const int64_t parts = std::max<int64_t>(2, ceil_div(columns, widest));
    return line_buffer_group(network, layers,
                             {tile, strip, round_up(ceil_div(columns, parts), unit)});
}

}  // namespace

Schedule any_size_schedule(const Network& network, const TensorSizes& sizes,
                           const AnySizeOptions& options) {
    LineBufferOptions planner;
    planner.winograd = options.kernels.filters();
    planner.second_level_cache = options.second_level_cache;
    KernelOptions any = options.kernels;
    any.any_size = true;
    const Schedule planned = with_layers_alone(
        network, std::get<Schedule>(line_buffer_schedule(network, planner)));
    std::vector<GroupSchedule> groups;
    for (const GroupSchedule& group : planned.groups()) {
        const std::vector<LayerProblem> problems = group_problems(network, group);
        if (!depends_on_size(problems, sizes)) {
            groups.push_back(
                with_default_kernels(problems, group, options.unit, options.kernels));
            continue;
        }
        groups.push_back(with_default_kernels(problems, with_strips(network, group, options),
                                              options.unit, any));
    }
    return {network, std::move(groups)};
}

int64_t widest_strip(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                     Bytes strips_cache) {
    std::vector<int64_t> rows;
    for (const Nest& nest : group.nests) rows.push_back(nest[Dim::y]);
    // Measured of a picture without an end on either side.
    std::vector<LayerProblem> wide = problems;
    constexpr int64_t without_end = int64_t{1} << 20;
    for (LayerProblem& p : wide) p.window[1].in = without_end;
    const Bytes most = most_column_tiles_memory(strips_cache);
    const int64_t unit = strip_unit(group, problems, Dim::x);
    int64_t columns = unit;
    while (columns < without_end && column_tiles_memory(wide, rows, columns + unit) <= most)
        columns += unit;
    return columns;
}

int64_t rows_repeated_per_seam(const GroupSchedule& group,
                               const std::vector<LayerProblem>& problems) {
    const auto macs = [&](int64_t strip) {
        GroupSchedule with = group;
        with.nests.back().strip[0] = strip;
        return two_level_counts(problems, with).macs().value();
    };
    const int64_t rows = problems.back()[Dim::y];
    const int64_t strip = group.nests.back().strip[0], seams = ceil_div(rows, strip) - 1;
    const int64_t once = macs(rows);
    if (seams < 1 || once < 1) return 0;
    return ceil_div(checked_multiply(macs(strip) - once, rows), checked_multiply(once, seams));
}

}  // namespace laminate
