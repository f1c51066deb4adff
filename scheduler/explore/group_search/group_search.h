// The front of one group: consecutive layers of a chain, searched completely.
//
// A cost is a sum (accesses, MACs) or a nested sum and maximum (memory) of *terms*, and each term a
// product over axes (rows, columns, and the channels between each two layers) of factors that
// depend on that axis' tiles alone. So for given structures of all layers (layer_structures.h):
// - per axis, combinations of tiles that another one beats in every factor are dropped;
// - the smallest factors of a set of combinations, axis by axis, bound every schedule made of them
// from below. A tree halves the set of each axis down
//   to single combinations; sets whose bound is beaten by a point already found are dropped whole.
// The same bound with the layers before the k-th left open (everything kept, windows and weights as
// small as they get) drops structures of the later layers before those of the earlier ones are
// looked at. Nothing else is left out: what `front()` returns is the front of the space unless
// `is_complete()` is false; then `open()` bounds all that was not looked at.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/explore/group_search/axis_options.h"
#include "scheduler/explore/group_search/call_bound.h"
#include "scheduler/explore/group_search/cost_plan.h"
#include "scheduler/explore/group_search/group_choice.h"
#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::search {

struct GroupSearchOptions {
    Tiles tiles = Tiles::divisors;
    StructureLimits structures;
    bool live = true;  ///< memory is the largest live sum, not the sum of all buffers
    bool macs_is_axis = true;
    bool recompute = true;  ///< false: MACs are the least possible
    std::optional<double> memory;
    const CallBound* bound =
        nullptr;  ///< of these layers: what it shows to be beaten by known costs is not looked at
    int64_t most_in_a_grid =
        256;  ///< combinations of tiles that are evaluated without bounding parts of them first
    int64_t max_steps =
        INT64_MAX;  ///< bounds, and rows of schedules, to evaluate before giving up completeness
    const std::atomic<bool>* stop = nullptr;
};

class GroupSearch {
public:
    static constexpr int most_layers = CostPlan::most_layers;

    /// `problems` outlives the search. Of more than one layer: none grouped, transposed kernels
    /// larger than their strides (may_fuse).
    GroupSearch(const std::vector<LayerProblem>& problems, const GroupSearchOptions& options);
    ~GroupSearch();

    /// Costs that are reached otherwise: nothing that they beat is looked for.
    void know(const Cost& cost);
    struct Point {
        Cost cost;
        GroupChoice choice;
    };
    /// Found by another search of these layers: part of the front.
    void know(const Point& point);
    void run();

    /// Without what was only known.
    [[nodiscard]] std::vector<Point> front() const;
    [[nodiscard]] bool is_complete() const;
    /// No schedule that was left out costs less than some of these in every respect.
    [[nodiscard]] const std::vector<Cost>& open() const;
    /// Bounds, and rows of schedules, evaluated; schedules evaluated; schedules that the bounds
    /// stood for (tiles of all structures looked at or dropped).
    struct Work {
        int64_t steps = 0;
        int64_t evaluated = 0;
        double covered = 0;
    };
    [[nodiscard]] Work work() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

[[nodiscard]] bool may_fuse(const LayerProblem& problem);

}  // namespace laminate::search
