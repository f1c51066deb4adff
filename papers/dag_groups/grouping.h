// The best cut of an operator graph into groups (Optimus, Algorithms 1 and 3), exactly.
//
// Off-line: among all partitions whose quotient graph has no cycle, one with the least MemoryCost,
// then the fewest groups. (The paper asks that each group be convex, which is not enough:
// docs/optimus.md.) States are order ideals, scheduler/explore/dag/order_ideals.h: best(T) = min
// over G of best(T - G) + MemoryCost(G), where G is the group that runs last. G grows backwards
// from the last operators of T. The search leaves out only groups that provably do not fit, with
// every larger group that ends alike, and groups that cannot be better than the best known one,
// because their maps and one pass of their weights already cost too much.
//
// On-line: three more reasons refuse a group. An operator has some but not all of its readers in
// it. An operator neither feeds, nor is fed by, nor shares an input with another one of it. It is
// larger than a limit looked up in a table of the network.
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
    int64_t buffer_entries = 0;  ///< 0: those of the machine and the reading
    bool online = false;
    /// On-line: the most operators in a group, if the table was looked up before
    /// (online_size_limit). None: the search makes the table.
    std::optional<int64_t> size_limit = {};
    /// Only groups that a schedule of ours can execute (scheduler/schedule/schedule.h): one
    /// operator writes the map that leaves, and the others feed the group alone and directly.
    bool one_sink = false;
    /// Another cost of a group, in entries of all images; none if the group has none. The less of
    /// both counts (with only_other, it alone). Asked for groups of at most `other_operators`.
    std::function<std::optional<int64_t>(const std::vector<int>& operators)> other = {};
    bool only_other = false;
    size_t other_operators = 8;
    /// A lower bound on the entries of all images that any schedule of a group moves. With it,
    /// groups of more than `other_operators` take part in the bound, where they cost no more than
    /// this; without it they are not in the space.
    std::function<std::optional<int64_t>(const std::vector<int>& operators)> other_least = {};
    /// The most states of the search. A graph with more is cut along one order of its operators,
    /// its own or a depth-first one, and the answer is bounded from below instead.
    size_t most_ideals = 20'000;
    const std::atomic<bool>* stop = nullptr;  ///< set it to get the cut along one order early
};

struct Group {
    std::vector<int> operators;  ///< ascending
    /// By the model. None where the tile does not fit, so that only the other cost counted.
    std::optional<GroupCost> cost;
    std::optional<int64_t> other_entries;  ///< GroupingOptions::other, where it was asked
    int64_t entries = 0;
};

struct Grouping {
    std::vector<Group> groups;        ///< in an order in which they can be executed
    int64_t entries = 0;              ///< MemoryCost of all together
    int64_t lower_bound_entries = 0;  ///< no grouping of the space costs less
    bool is_exact = true;             ///< the bound is reached
    /// All groupings of the space were searched; false: those along one order of the operators.
    bool is_complete = true;
    int64_t groups_costed = 0;   ///< whose tile was searched
    int64_t groups_visited = 0;  ///< once for each state that a group ends
    int64_t ideals = 0;
    /// On-line: the most operators in a group; none if the table would have too many ideals.
    std::optional<int64_t> size_limit;
    [[nodiscard]] double gap() const {
        return static_cast<double>(entries) / static_cast<double>(lower_bound_entries) - 1;
    }
};

/// No grouping fits in the buffer. what() names the buffer and an operator that does not fit alone,
/// if there is one.
class NoGrouping : public InputError {
public:
    using InputError::InputError;
};

/// Throws NoGrouping. An operator that is too large alone may still fit in a group, which asks for
/// other rows of its map.
[[nodiscard]] Grouping best_grouping(const OperatorGraph& graph, const GroupMachine& machine,
                                     const GroupingOptions& options = {});

/// The smallest buffer in which there is a grouping by Eq. 3. Uses the sizes in the options, not
/// their other costs.
[[nodiscard]] int64_t least_buffer_entries(const OperatorGraph& graph, const GroupMachine& machine,
                                           const GroupingOptions& options = {});

/// Every operator as a group of its own. None if one of them does not fit alone.
[[nodiscard]] std::optional<Grouping> single_operators(const OperatorGraph& graph,
                                                       const GroupMachine& machine,
                                                       const GroupingOptions& options = {});

/// The number of convex sets of operators, which is the paper's number of groups (171 for VGG16).
/// None where there are too many to count.
[[nodiscard]] std::optional<int64_t> convex_groups(const OperatorGraph& graph);

/// memo[n - 1] = the fewest entries of maps for a tile of a quarter of the height and the width,
/// over all convex groups of n operators (Algorithm 3), up to the first one above the buffer, at
/// most `longest`. Empty when the graph has too many ideals.
[[nodiscard]] std::vector<int64_t> quarter_tile_table(const OperatorGraph& graph,
                                                      const GroupMachine& machine,
                                                      const GroupingOptions& options,
                                                      int64_t longest = 10);

/// The size limit that the table gives; none without a table.
[[nodiscard]] std::optional<int64_t> online_size_limit(const OperatorGraph& graph,
                                                       const GroupMachine& machine,
                                                       const GroupingOptions& options);

}  // namespace laminate::dag_groups
