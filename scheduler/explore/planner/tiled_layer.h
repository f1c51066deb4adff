// Schedules of one layer that hold only tiles of its weights and input channels, for memories that
// the line buffers of line_buffers.h do not fit into.
#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/front.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Three forms of a layer's nest, with tiles from the layer's extents down to what kernels compute
/// at a time:
///
///   weights stay   {zo yo xo io ...; X zo/yo (rows kept) or xo/xo; W zo/zo; Y xi/xi}
///   pixels stay    {yo xo zo io ...; X xo/xo; W zo/zo; Y xi/xi}
///   sums stay      {zo yo xo io ...; X io/io; W io/io; Y xo/xo}, for dense convolutions
///
/// Several threads share the rows, each with a strip of them.
[[nodiscard]] std::vector<GroupSchedule> tiled_layer_forms(const LayerProblem& problem,
                                                           int threads);

/// The Pareto front of accesses and live memory of these forms, fewest accesses first. `problems`
/// holds one layer.
[[nodiscard]] std::vector<GroupPoint> tiled_layer_points(const std::vector<LayerProblem>& problems,
                                                         int threads, TwoLevelCache& cache);

/// tiled_layer_points() of each shape of a layer, found once. Threads may share them.
class TiledLayers {
public:
    const std::vector<GroupPoint>& points(const std::vector<LayerProblem>& problems, int threads);

private:
    struct Front {
        std::once_flag is_found;
        std::vector<GroupPoint> points;
    };
    std::mutex mutex_;  ///< of the map, not of what is in it
    std::map<std::pair<std::vector<int64_t>, int>, Front> fronts_;
};

}  // namespace laminate
