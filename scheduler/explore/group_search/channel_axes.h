// The channels between the layers of a fused group: for each tensor A_j the tiles of the channels
// that layer j + 1 reads (T_i) and that layer j computes (T_z), with their factors.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "scheduler/explore/group_search/axis_tree.h"
#include "scheduler/explore/group_search/partial_choice.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// How structures use the channels of A_j, which are the i of layer j + 1 and the z of layer j.
struct ChannelUse {
    // Layer j + 1, if it is in the group.
    Kind kind = Kind::below;
    int fold = 0;
    bool input_weights_hold = false;
    bool input_weights_resident = false;
    // Layer j, if it is in the group and its structure is known.
    bool is_known = false;
    bool z_above = false;
    bool output_weights_hold = false;
    WeightsLife weights = WeightsLife::own;
    bool output_holds = false;
    bool whole_calls = false;

    /// Different uses have different keys.
    [[nodiscard]] uint64_t key() const;
};

class ChannelAxes {
public:
    /// `problems`, the layers of the group, outlives the axes.
    ChannelAxes(const std::vector<LayerProblem>& problems, Tiles tiles);

    /// The options of A_j's channels, with the layers n .. k chosen.
    AxisTree& tree(int j, int k, const PartialChoice& choice);

private:
    /// Calls of the layer that computes A_j, along its channels: (extent of a call, number of
    /// calls).
    using Calls = std::vector<std::pair<int64_t, int64_t>>;

    [[nodiscard]] const LayerProblem& problem(int k) const {
        return problems_[static_cast<size_t>(k - 1)];
    }
    [[nodiscard]] ChannelUse use(int j, int k, const PartialChoice& choice) const;
    [[nodiscard]] std::vector<Option> options(int j, const ChannelUse& use,
                                              const PartialChoice& choice) const;
    [[nodiscard]] std::vector<Option> grouped_options(const ChannelUse& use) const;
    [[nodiscard]] Calls add_reader(Option& option, int j, int64_t tile,
                                   const ChannelUse& use) const;
    void add_producers(const Option& reader, int j, const Calls& calls, const ChannelUse& use,
                       const PartialChoice& choice, std::vector<Option>& options) const;
    void repeat_layers_before(Option& option, int j, double times,
                              const PartialChoice& choice) const;

    const std::vector<LayerProblem>& problems_;
    Tiles tiles_;
    Terms terms_;
    /// By j, ChannelUse::key() and the residence of the layers before.
    std::unordered_map<std::array<uint64_t, 3>, std::unique_ptr<AxisTree>, SequenceHash> trees_;
};

}  // namespace laminate::search
