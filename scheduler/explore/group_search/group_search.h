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
    using Work = SearchWork;
    [[nodiscard]] Work work() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

[[nodiscard]] bool may_fuse(const LayerProblem& problem);

}  // namespace laminate::search
