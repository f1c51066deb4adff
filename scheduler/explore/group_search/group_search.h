// The complete front of one group of consecutive layers of a chain.
//
// A cost is a sum (accesses, MACs) or a nested sum and maximum (memory) of *terms*. Each term is a
// product over axes (rows, columns, and the channels between each two layers) of factors that
// depend only on that axis' tiles. So for given structures of all layers (layer_structures.h):
// - Per axis, combinations of tiles that another one beats in every factor are dropped.
// - The smallest factors of a set of combinations, axis by axis, bound every schedule made of them
//   from below. A tree halves the set of each axis down to single combinations, and sets whose
//   bound is beaten by a known point are dropped whole.
// The same bound, with the layers before layer k left open (everything kept, windows and weights as
// small as possible), drops structures of later layers before those of earlier layers are
// considered. Nothing else is left out: `front()` is the front of the space unless `is_complete()`
// is false, and then `open()` bounds everything that was not searched.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/explore/group_search/cost_plan.h"
#include "scheduler/explore/group_search/group_choice.h"
#include "scheduler/explore/group_search/search_options.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::search {

class GroupSearch {
public:
    static constexpr int most_layers = CostPlan::most_layers;

    /// `problems` outlives the search. If there are several layers, none is grouped and transposed
    /// kernels are larger than their strides (may_fuse).
    GroupSearch(const std::vector<LayerProblem>& problems, const GroupSearchOptions& options);
    ~GroupSearch();

    /// A cost that is reached elsewhere. The search skips everything that it beats.
    void know(const Cost& cost);
    struct Point {
        Cost cost;
        GroupChoice choice;
    };
    /// A point that another search of these layers found. It is part of the front.
    void know(const Point& point);
    void run();

    /// The points found or known, without costs that were only known.
    [[nodiscard]] std::vector<Point> front() const;
    [[nodiscard]] bool is_complete() const;
    /// Every schedule that was left out costs at least as much as one of these.
    [[nodiscard]] const std::vector<Cost>& open() const;
    using Work = SearchWork;
    [[nodiscard]] Work work() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

[[nodiscard]] bool may_fuse(const LayerProblem& problem);

}  // namespace laminate::search
