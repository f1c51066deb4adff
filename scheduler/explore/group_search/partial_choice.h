// A choice in progress. Layers of a group are chosen from the last to the first.
#pragma once

#include <vector>

#include "scheduler/explore/group_search/axis_options.h"
#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/explore/group_search/spatial_axis.h"

namespace laminate::search {

/// Structures of the layers n .. k, and where the weights of all layers live. Layers count from 1.
class PartialChoice {
public:
    /// No layer is chosen yet. `residence` is by layer, from the first.
    explicit PartialChoice(std::vector<Residence> residence)
        : residence_(std::move(residence)), structures_(residence_.size()) {}

    void choose(int k, const LayerStructure& structure) {
        structures_[index(k)] = &structure;
        residence_[index(k)] =
            structure.weights == WeightsLife::resident ? Residence::yes : Residence::no;
    }

    /// The structure of a chosen layer.
    [[nodiscard]] const LayerStructure& structure(int k) const { return *structures_[index(k)]; }
    [[nodiscard]] Residence residence(int k) const { return residence_[index(k)]; }
    [[nodiscard]] bool is_resident(int k) const { return residence(k) == Residence::yes; }
    [[nodiscard]] const std::vector<Residence>& residence() const { return residence_; }
    /// The residence of the layers 1 .. k, as a number.
    [[nodiscard]] Residences residences(int k) const {
        Residences number = 0;
        for (int j = 1; j <= k; ++j) number = number << 2U | static_cast<Residences>(residence(j));
        return number;
    }

private:
    static size_t index(int k) { return static_cast<size_t>(k - 1); }

    std::vector<Residence> residence_;
    std::vector<const LayerStructure*> structures_;  ///< by layer; null before it is chosen
};

}  // namespace laminate::search
