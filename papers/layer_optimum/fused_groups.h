// The cut of a network into groups with the fewest DRAM accesses when every layer may also run
// alone at its optimum: CNNFlow's engine carried over to fusion. The paper takes layer by layer;
// this goes beyond it and counts as it does, so that the sums compare: padding is data, the whole
// batch counts, and a bank serves one tensor.
//
// The output of one layer of a group leaves (scheduler/explore/dag/dag_groups.h); the maps between
// its layers stay on chip. A group costs the least of these:
// - a layer with weights alone: layer_optimum(), exactly.
// - a layer without weights alone: every input and the output once.
// - *finished blocks*: a convolution followed by activations and by pools of windows side by side
//   (no window reaches into another one's, no padding). Outputs of a block that stay until they are
//   finished can be pooled before they leave. So this is the layer optimum over orders that spill
//   no output, with blocks of whole windows, and the last output in place of the convolution's.
//   Exact among such orders.
// - *schedule*: one of the project's fused schedules (families of dag_groups.h; for short chains of
//   convolutions also the search of scheduler/explore/explore.h with tiles that divide), with banks
//   of its own for every buffer. Images pass one after the other, and weights that are held whole
//   come once. Other schedules may be better: the lower bound of a group is its inputs, weights and
//   output once.
// The cut is the best of all covers of the network by groups of at most so many layers, exactly.
// Every layer alone is one of these covers, so the cut is never worse.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "papers/layer_optimum/optimum.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

enum class GroupMeans {
    layer_optimum,  ///< one layer with weights
    once,           ///< one layer without
    finished_blocks,
    schedule,
};
[[nodiscard]] const char* to_string(GroupMeans means);

struct OptimumGroup {
    std::vector<LayerId> layers;  ///< ascending; the last one's output leaves
    GroupMeans means = GroupMeans::once;
    int64_t dram_words = 0;
    int64_t lower_bound_words = 0;  ///< for any means
    int64_t banks = 0;              ///< 0 where nothing has to stay (GroupMeans::once)
    /// Of the layer with weights, for layer_optimum and finished_blocks.
    std::optional<LayerOptimum> optimum;
    std::optional<GroupSchedule> schedule;  ///< for GroupMeans::schedule
};

struct FusedOptimum {
    std::vector<OptimumGroup> groups;  ///< in an order in which they can be executed
    int64_t dram_words = 0;
    int64_t layer_by_layer_words = 0;  ///< every layer alone
    /// No cut into groups of at most so many layers has less, however they run.
    int64_t lower_bound_words = 0;
    int64_t groups_looked_at = 0;
    int64_t shapes = 0;  ///< different ones among these groups
    /// False if it was stopped: groups that were not looked at are missing; the bound still holds.
    bool is_complete = true;
};

struct FusionOptions {
    SpillEvaluator evaluator = SpillEvaluator::eq7;
    StreamLimits limits;
    /// Optima of layers alone that need no search, by to_text() of their problems.
    std::map<std::string, LayerOptimum> known = {};
    int64_t max_layers = 4;  ///< of a group
    int threads = 1;
    /// Called from one thread at a time.
    std::function<void(int64_t done, int64_t shapes, const std::string& group)> progress = {};
    const std::atomic<bool>* stop = nullptr;
};

/// Layers that no schedule covers (softmax, flatten) are in no group and not counted. Throws
/// InputError for a network that has no others, and for fewer than three banks.
[[nodiscard]] FusedOptimum fused_optimum(const Network& network, const BankedBuffer& buffer,
                                         const FusionOptions& options = {});

/// The cost of one group, or nothing where it does not fit or no means covers it. A single layer
/// always has one.
[[nodiscard]] std::optional<OptimumGroup> optimum_group(const Network& network,
                                                        const std::vector<LayerId>& layers,
                                                        const BankedBuffer& buffer,
                                                        const FusionOptions& options = {});

/// The schedule with the fewest words, among those searched for groups, that fits. Nothing where
/// none does, or where two layers share an input that they pad differently. Leaves its lower bound
/// out.
[[nodiscard]] std::optional<OptimumGroup> searched_schedule(const Network& network,
                                                            const std::vector<LayerId>& layers,
                                                            const BankedBuffer& buffer,
                                                            const FusionOptions& options = {});

/// The words that a group moves in any way of running it, once: those of its inputs that its output
/// depends on, padding included, its weights and its output.
[[nodiscard]] int64_t compulsory_words(const Network& network, const std::vector<LayerId>& layers);

}  // namespace laminate
