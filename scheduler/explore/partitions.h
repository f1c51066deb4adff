// Partitions of a sequence into segments: for every contiguous run of its layers the best ones
// known, lower bounds on all of them, and what a segment must cost to matter to the sequence.
//
// A segment matters only if some partition of the whole sequence that has it costs less than all
// that are known. What runs before and after it costs at least what bounds of these layers say. So
// within memory M, the segment must move less than
//     limit(M) = (best known partition of the sequence)(M)
//                - (least of the layers before)(M) - (least of the layers after)(M),
// and less than the best known partition of its own layers. A schedule that needs memory m is used
// within some M >= m. If for each of them one of the two beats it, it is left out: either the
// partition that has it is beaten, or what beats the schedule takes its place. The least of layers
// may then be that of their useful schedules alone, because a partition with any other costs no
// less than a known one. Accesses and MACs are one axis in lexicographic order, which sums and
// differences keep.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/explore/group_front.h"
#include "scheduler/explore/pareto.h"

namespace laminate::search {

/// A partial answer: a group, or two answers that follow each other. A bound has neither.
struct Partial {
    const GroupPoint* group = nullptr;
    const NetworkCounts* counts = nullptr;
    const std::vector<LayerId>* layers = nullptr;
    std::shared_ptr<const Partial> first;
    std::shared_ptr<const Partial> second;
};
using Partials = Archive<std::shared_ptr<const Partial>>;
using CostFront = Archive<Nothing>;

/// Adds to `sum` everything of `a` with everything of `b`.
void add_pairs(const Partials& a, const Partials& b, Partials& sum);

/// The single groups of a partial answer.
void collect_groups(const Partial& partial, std::vector<const Partial*>& groups);

class Partitions {
public:
    Partitions(size_t layers, bool macs_is_axis);

    /// Adds the partitions of layers [begin, end) into two parts and more. All shorter runs are
    /// there.
    void combine(size_t begin, size_t end);
    /// Adds a segment from layer `begin` on as one group. `front` and `layers` outlive this object.
    void add(size_t begin, const std::vector<LayerId>& layers, const SegmentFront& front);

    [[nodiscard]] const Partials& best(size_t begin, size_t end) const {
        return best_[begin * (layers_ + 1) + end];
    }
    [[nodiscard]] const Partials& least(size_t begin, size_t end) const {
        return least_[begin * (layers_ + 1) + end];
    }

    /// What is known of a segment before it is searched: costs that its front will have, and costs
    /// below all of its schedules.
    void expect(size_t begin, size_t end, const std::vector<Cost>& known,
                const std::vector<Cost>& least);
    /// Finds what limits() needs, from the segments that were added and the others as expected. On
    /// two axes only.
    void find_limits();
    /// What beats all schedules of the segment [begin, end) that do not matter.
    [[nodiscard]] CostFront limits(size_t begin, size_t end) const;

private:
    /// A segment's known costs, and costs below all of its schedules; limits are made of both.
    struct Costs {
        CostFront known{false};
        CostFront least{false};
    };
    using Run = std::pair<size_t, size_t>;

    [[nodiscard]] Partials& at(std::vector<Partials>& table, size_t begin, size_t end) const {
        return table[begin * (layers_ + 1) + end];
    }

    size_t layers_;
    std::vector<Partials> best_;
    std::vector<Partials> least_;
    std::map<Run, std::pair<Partials, Partials>> segment_fronts_;
    std::map<Run, Costs> costs_;
    CostFront known_{false};         ///< best known partitions of all layers
    std::vector<CostFront> before_;  ///< [k]: least of the layers [0, k)
    std::vector<CostFront> after_;   ///< [k]: least of the layers from k on
};

/// What both beat: the larger cost of the two within each memory.
[[nodiscard]] CostFront weaker(const CostFront& a, const CostFront& b);

}  // namespace laminate::search
