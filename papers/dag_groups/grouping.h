// The best cut of an operator graph into groups (Optimus, Algorithms 1 and 3), exactly.
//
// Off-line: of all partitions whose quotient graph has no cycle, one with the least MemoryCost,
// then the fewest groups. (The paper asks each group to be convex, which is not enough:
// docs/optimus.md.) States are order ideals, search/order_ideals.h: best(T) = min over G of best(T
// - G) + MemoryCost(G), with G the group that runs last; G grows backwards from the last operators
// of T. Left out are only groups that provably do not fit, with everything larger that ends alike,
// and groups that cannot be better than what is known because their maps and one pass of their
// weights already cost too much.
//
// On-line: the same with three more reasons to refuse a group: an operator has some but not all of
// its readers in it; an operator neither feeds, nor is fed by, nor shares an input with another one
// of it; it is larger than a limit looked up in a table of the network.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"
#include "papers/dag_groups/group_cost.h"

namespace laminate::dag_groups {

struct GroupingOptions {
    Reading reading = Reading::batch_as_tile;
    int64_t images = 4;          ///< B; Optimus evaluates with 4
    int64_t buffer_entries = 0;  ///< 0: of the machine and the reading
    bool online = false;
    /// On-line: operators in a group at most, if the table was looked up before
    /// (online_size_limit); none: it is made by the search.
    std::optional<int64_t> size_limit = {};
    /// Groups that a schedule of ours can execute (scheduler/schedule/schedule.h): one operator
    /// writes what leaves, the others feed the group alone and directly.
    bool one_sink = false;
    /// Another cost of a group, in entries of all images; none: it has none. The less of both
    /// counts (only_other: it alone). Asked for groups of at most `other_operators`.
    std::function<std::optional<int64_t>(const std::vector<int>& operators)> other = {};
    bool only_other = false;
    size_t other_operators = 8;
    /// No schedule of a group moves fewer entries of all images. With it groups of more than
    /// `other_operators` have a part in the bound, where they cost no more than this; without it
    /// they are no part of the space.
    std::function<std::optional<int64_t>(const std::vector<int>& operators)> other_least = {};
    /// States of the search; a graph that has more is cut along one order of its operators, its own
    /// or one in depth, and the answer is bounded from below instead.
    size_t most_ideals = 20'000;
    const std::atomic<bool>* stop = nullptr;  ///< set it to get the cut along one order
};

struct Group {
    std::vector<int> operators;     ///< ascending
    std::optional<GroupCost> cost;  ///< of the model; none where the tile does not fit, so that the
                                    ///< other cost alone counted
    std::optional<int64_t> other_entries;  ///< GroupingOptions::other, where it was asked for
    int64_t entries = 0;
};

struct Grouping {
    std::vector<Group> groups;        ///< in an order in which they can be executed
    int64_t entries = 0;              ///< MemoryCost of all together
    int64_t lower_bound_entries = 0;  ///< no grouping of the space costs less
    bool is_exact = true;             ///< the bound is reached
    bool is_complete = true;  ///< all groupings of the space were searched; false: those along one
                              ///< order of the operators
    int64_t groups_costed = 0;  ///< whose tile was looked for
    int64_t groups_visited =
        0;  ///< that were looked at, the same one once for each state that it ends
    int64_t ideals = 0;
    std::optional<int64_t>
        size_limit;  ///< on-line: operators in a group at most; none: too many ideals for the table
    [[nodiscard]] double gap() const {
        return static_cast<double>(entries) / static_cast<double>(lower_bound_entries) - 1;
    }
};

/// No grouping fits in the buffer. what() names the buffer and, where there is one, an operator
/// that does not fit alone.
class NoGrouping : public InputError {
public:
    using InputError::InputError;
};

/// Throws NoGrouping. An operator that is too large alone may still fit in a group: there other
/// rows of its map are asked for.
[[nodiscard]] Grouping best_grouping(const OperatorGraph& graph, const GroupMachine& machine,
                                     const GroupingOptions& options = {});

/// The smallest buffer in which there is a grouping by Eq. 3; the sizes in the options count, their
/// other costs do not.
[[nodiscard]] int64_t least_buffer_entries(const OperatorGraph& graph, const GroupMachine& machine,
                                           const GroupingOptions& options = {});

/// Every operator a group of its own. None: one of them does not fit alone.
[[nodiscard]] std::optional<Grouping> single_operators(const OperatorGraph& graph,
                                                       const GroupMachine& machine,
                                                       const GroupingOptions& options = {});

/// Convex sets of operators: the paper's number of groups (171 of VGG16). None where there are too
/// many to count.
[[nodiscard]] std::optional<int64_t> convex_groups(const OperatorGraph& graph);

/// memo[n - 1] = the fewest entries of maps for a tile of a quarter of the height and the width,
/// over all convex groups of n operators (Algorithm 3); up to the first one above the buffer, at
/// most `longest`. Empty when the graph has too many ideals.
[[nodiscard]] std::vector<int64_t> quarter_tile_table(const OperatorGraph& graph,
                                                      const GroupMachine& machine,
                                                      const GroupingOptions& options,
                                                      int64_t longest = 10);

/// The size limit that the table gives. None: there is no table.
[[nodiscard]] std::optional<int64_t> online_size_limit(const OperatorGraph& graph,
                                                       const GroupMachine& machine,
                                                       const GroupingOptions& options);

}  // namespace laminate::dag_groups
