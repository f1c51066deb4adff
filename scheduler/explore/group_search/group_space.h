// The space of one group: the structures of each layer, the axes along which their tiles lie, and
// the coefficients and the plan that turn factors into costs.
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

/// The structures of a layer in its context. Many of them ask the same of an axis or of the memory;
/// equal demands have equal numbers.
struct StructureSet {
    struct Uses {
        std::array<size_t, 2> spatial{};
        size_t output_channels = 0;
        size_t input_channels = 0;
        size_t plan = 0;
    };
    std::vector<LayerStructure> all;
    std::vector<Uses> uses;  ///< by structure
    Uses count;              ///< of different numbers

    explicit StructureSet(std::vector<LayerStructure> structures);
};

/// Layers count from 1, tensors from 0: layer k reads A_{k-1} and writes A_k.
class GroupSpace {
public:
    /// `problems` outlives the space. `steps` counts the work of making axes.
    GroupSpace(const std::vector<LayerProblem>& problems, const GroupSearchOptions& options,
               int64_t& steps);

    [[nodiscard]] const Terms& terms() const { return terms_; }
    [[nodiscard]] int layers() const { return terms_.n; }
    [[nodiscard]] const LayerProblem& problem(int k) const {
        return problems_[static_cast<size_t>(k - 1)];
    }
    /// Rows and columns are alike in all layers.
    [[nodiscard]] bool is_square() const { return !columns_; }
    /// MACs of a schedule that recomputes nothing.
    [[nodiscard]] double least_macs() const { return least_macs_; }

    /// The structures of layer k. The layers after it are chosen.
    const StructureSet& structures(int k, const PartialChoice& choice);
    /// 0: rows, 1: columns.
    [[nodiscard]] SpatialAxis& spatial(size_t axis) {
        return axis == 0 || is_square() ? rows_ : *columns_;
    }
    [[nodiscard]] ChannelAxes& channels() { return channels_; }

    /// By term, padded: the coefficients, with the layers before the k-th at their least.
    [[nodiscard]] std::vector<double> coefficients(int k, const PartialChoice& choice) const;
    /// Which buffers live together, with the layers n .. k chosen.
    [[nodiscard]] CostPlan plan(int k, const PartialChoice& choice) const;

private:
    [[nodiscard]] bool may_be_apart(int k, size_t axis, const PartialChoice& choice) const;

    const std::vector<LayerProblem>& problems_;
    GroupSearchOptions options_;
    Terms terms_;
    SpatialAxis rows_;
    std::optional<SpatialAxis> columns_;  ///< unless they are as the rows
    ChannelAxes channels_;
    std::vector<double> coefficients_;  ///< by term, padded
    double least_macs_ = 0;
    std::map<std::pair<int, LayerContext>, StructureSet> structures_;
};

}  // namespace laminate::search
