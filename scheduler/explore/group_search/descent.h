// Branch and bound over the tiles of one choice of structures. Sets of options are halved axis by
// axis down to single combinations, and a set whose bound is beaten is dropped whole.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/explore/group_search/cost_plan.h"
#include "scheduler/explore/group_search/group_space.h"
#include "scheduler/explore/group_search/incumbents.h"
#include "scheduler/explore/group_search/search_options.h"

namespace laminate::search {

class Descent {
public:
    static constexpr size_t max_terms = padded_terms(Terms(CostPlan::most_layers).count());

    /// All arguments outlive the descent.
    Descent(const GroupSpace& space, const GroupSearchOptions& options, Incumbents& incumbents,
            SearchWork& work)
        : space_(space), options_(options), incumbents_(incumbents), work_(work) {}

    /// Starts from all options of the `axes`: rows, columns, then the channels of A_n, A_{n-1}, ...
    /// `coefficients` are by term, padded. `plan` must outlive the descent. Returns false if some
    /// axis has no options.
    bool start(const std::vector<AxisTree*>& axes, const std::vector<double>& coefficients,
               const CostPlan& plan);

    /// Offers the combinations that matter as incumbents. Every layer of `choice` is chosen.
    void search(const PartialChoice& choice);
    /// Marks the options of rows and columns that occur in combinations that matter. Returns
    /// whether there are any.
    bool mark();
    /// Offers bounds of all combinations to `open`, after halving axes up to `depth` times.
    void note_open(int depth, Archive<Nothing>& open);

private:
    [[nodiscard]] Cost bound() const;
    [[nodiscard]] bool is_marked() const {
        return axes_[0]->node(at_[0]).unmarked == 0 && axes_[1]->node(at_[1]).unmarked == 0;
    }
    [[nodiscard]] bool is_small() const;
    [[nodiscard]] size_t widest_axis() const;
    void descend();
    void take(const Cost& cost);
    [[nodiscard]] GroupChoice taken() const;
    void scan();
    void scan_from(size_t depth, double* product);
    void scan_row(size_t axis, const double* product);

    const GroupSpace& space_;
    const GroupSearchOptions& options_;
    Incumbents& incumbents_;
    SearchWork& work_;
    const PartialChoice* choice_ = nullptr;  ///< complete; null while marking
    std::vector<AxisTree*> axes_;
    std::vector<double> coefficients_;
    const CostPlan* plan_ = nullptr;
    std::vector<uint32_t> at_;                           ///< by axis: node of its tree
    bool any_ = false;                                   ///< whether some combination matters
    std::vector<std::optional<CostPlan::Row>> rows_of_;  ///< by axis, made when first used
    std::vector<size_t> grid_axes_;                      ///< axes with several options left
    std::vector<double> grid_products_;
};

}  // namespace laminate::search
