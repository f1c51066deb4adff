// The space of one group: the structures of each layer, the axes of their tiles, and the
// coefficients and the plan that turn factors into costs.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/explore/group_search/channel_axes.h"
#include "scheduler/explore/group_search/cost_plan.h"
#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/explore/group_search/partial_choice.h"
#include "scheduler/explore/group_search/search_options.h"
#include "scheduler/explore/group_search/spatial_axis.h"

namespace laminate::search {

/// The structures of a layer in its context. Many of them use an axis or the memory in the same
/// way; equal uses have equal numbers.
struct StructureSet {
    struct Uses {
        std::array<size_t, 2> spatial{};
        size_t output_channels = 0;
        size_t input_channels = 0;
        size_t plan = 0;
    };
    std::vector<LayerStructure> all;
    std::vector<Uses> uses;  ///< by structure
    Uses count;              ///< how many different numbers there are

    explicit StructureSet(std::vector<LayerStructure> structures);
};

/// Layers count from 1, tensors from 0: layer k reads A_{k-1} and writes A_k.
class GroupSpace {
public:
    /// `problems` outlives the space. `steps` is increased by the work of making axes.
    GroupSpace(const std::vector<LayerProblem>& problems, const GroupSearchOptions& options,
               int64_t& steps);

    [[nodiscard]] const Terms& terms() const { return terms_; }
    [[nodiscard]] int layers() const { return terms_.n; }
    [[nodiscard]] const LayerProblem& problem(int k) const {
        return problems_[static_cast<size_t>(k - 1)];
    }
    /// Whether rows and columns are alike in all layers.
    [[nodiscard]] bool is_square() const { return !columns_; }
    /// MACs of a schedule that recomputes nothing.
    [[nodiscard]] double least_macs() const { return least_macs_; }

    /// The structures of layer k. The layers after it have been chosen.
    const StructureSet& structures(int k, const PartialChoice& choice);
    /// 0: rows, 1: columns.
    [[nodiscard]] SpatialAxis& spatial(size_t axis) {
        return axis == 0 || is_square() ? rows_ : *columns_;
    }
    /// Every wanted choice for the layers n .. k is known. Forgets what no extension of them needs.
    void finish(int k) {
        rows_.finish(k);
        if (columns_) columns_->finish(k);
    }
    [[nodiscard]] ChannelAxes& channels() { return channels_; }

    /// The coefficients by term, padded, with the layers before layer k at their least.
    [[nodiscard]] std::vector<double> coefficients(int k, const PartialChoice& choice) const;
    /// Which buffers live together, if the layers n .. k are chosen.
    [[nodiscard]] CostPlan plan(int k, const PartialChoice& choice) const;

private:
    [[nodiscard]] bool may_be_apart(int k, size_t axis, const PartialChoice& choice) const;

    const std::vector<LayerProblem>& problems_;
    GroupSearchOptions options_;
    Terms terms_;
    SpatialAxis rows_;
    std::optional<SpatialAxis> columns_;  ///< nullopt if they are like the rows
    ChannelAxes channels_;
    std::vector<double> coefficients_;  ///< by term, padded
    double least_macs_ = 0;
    std::map<std::pair<int, LayerContext>, StructureSet> structures_;
};

}  // namespace laminate::search
