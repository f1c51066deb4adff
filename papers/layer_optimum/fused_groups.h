// The cut of a network into groups with the fewest DRAM accesses when every layer may also run
// alone at its optimum: CNNFlow's engine carried over to fusion. Beyond the paper, which takes
// layer by layer; counted as the paper counts, so that the sums compare: padding is data, the whole
// batch, a bank serves one tensor.
//
// A group has one layer whose output leaves (search/dag_groups.h); what lies between its layers
// stays on chip. What it costs, the least of:
// - a layer with weights alone: layer_optimum(), exactly;
// - a layer without weights alone: every input and the output once;
// - *finished blocks*: a convolution followed by activations and by pools of windows side by side
// (no window reaches into another one's, no padding). Outputs of a
//   block that stay until they are finished can be pooled before they leave, so this is the layer
//   optimum over orders that spill no output, with blocks of whole windows, and the last output in
//   place of the convolution's. Exact among such orders;
// - *schedule*: one of the project's fused schedules (families of search/dag_groups.h; of short
// chains of convolutions also the search of explore.h with tiles that
//   divide), each of its buffers in banks of its own. Images pass one after the other; weights that
//   are held whole come once. Not all that could be: a group's lower bound is what it has to move
//   anyway, its inputs, its weights and its output once.
// The cut is the best of all covers of the network by groups of at most so many layers, exactly;
// with every layer alone among them, so it is never worse.
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
    int64_t lower_bound_words = 0;  ///< of whatever means
    int64_t banks = 0;              ///< 0 where nothing has to stay (once)
    std::optional<LayerOptimum>
        optimum;  ///< of the layer with weights: layer_optimum, finished_blocks
    std::optional<GroupSchedule> schedule;  ///< schedule
};

struct FusedOptimum {
    std::vector<OptimumGroup> groups;  ///< in an order in which they can be executed
    int64_t dram_words = 0;
    int64_t layer_by_layer_words = 0;  ///< every layer alone
    int64_t lower_bound_words =
        0;  ///< no cut into groups of at most so many layers has less, however they run
    int64_t groups_looked_at = 0;
    int64_t shapes = 0;       ///< of them different
    bool is_complete = true;  ///< false: stopped; groups that were not looked at are missing, and
                              ///< the bound holds anyway
};

struct FusionOptions {
    SpillEvaluator evaluator = SpillEvaluator::eq7;
    StreamLimits limits;
    std::map<std::string, LayerOptimum> known =
        {};  ///< of layers alone, by to_text() of their problems: not searched again
    int64_t max_layers = 4;  ///< of a group
    int threads = 1;
    std::function<void(int64_t done, int64_t shapes, const std::string& group)> progress =
        {};  ///< called from one thread at a time
    const std::atomic<bool>* stop = nullptr;
};

/// Layers that no schedule covers (softmax, flatten) are in no group and not counted. Throws
/// InputError for a network without others and for less than three banks.
[[nodiscard]] FusedOptimum fused_optimum(const Network& network, const BankedBuffer& buffer,
                                         const FusionOptions& options = {});

/// One group by itself; nothing where it does not fit or no means covers it, which is never so of
/// one layer.
[[nodiscard]] std::optional<OptimumGroup> optimum_group(const Network& network,
                                                        const std::vector<LayerId>& layers,
                                                        const BankedBuffer& buffer,
                                                        const FusionOptions& options = {});

/// As a schedule of those searched for groups: the one of fewest words that fits; nothing where
/// none does, or where two layers share an input that they pad differently. Its lower bound is left
/// out.
[[nodiscard]] std::optional<OptimumGroup> searched_schedule(const Network& network,
                                                            const std::vector<LayerId>& layers,
                                                            const BankedBuffer& buffer,
                                                            const FusionOptions& options = {});

/// What a group has to move whatever it does, once: of its inputs the words that its output depends
/// on, padding included, its weights and its output.
[[nodiscard]] int64_t compulsory_words(const Network& network, const std::vector<LayerId>& layers);

}  // namespace laminate
