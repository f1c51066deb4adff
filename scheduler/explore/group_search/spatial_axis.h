// Rows or columns of a fused group: the combinations of tiles of its layers that can matter.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "scheduler/explore/group_search/axis_options.h"
#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// What a structure asks of one spatial axis of its layer.
struct SpatialUse {
    Kind kind = Kind::below;
    enum class Weights : uint8_t {
        per_coordinate,
        per_tile,
        per_scope,
        once
    } weights = Weights::once;
    int fold = 0;
    bool output_holds = false;
    bool whole_calls = false;
    bool disjoint = false;
    friend auto operator<=>(const SpatialUse&, const SpatialUse&) = default;
};

[[nodiscard]] SpatialUse spatial_use(const LayerStructure& structure, size_t axis);

/// Where the weights of all layers are, as a number, for keys. Two bits a layer.
using Residences = uint64_t;

/// Spatial axes of a chain: options for each sequence of uses, from the last layer on.
class SpatialAxis {
public:
    /// Tile combinations for a sequence of uses; the layers before them build on those that were
    /// marked. Made when first asked for.
    struct List {
        const List* before = nullptr;  ///< one use less
        SpatialUse use;
        int layer = 0;  ///< of `use`
        bool is_made = false;
        std::vector<Option> options;
        std::vector<char> is_marked;
        bool is_cut = false;  ///< lacks options, and always will
        std::map<SpatialUse, std::unique_ptr<List>> longer;
        std::map<Residences, std::unique_ptr<AxisTree>>
            trees;  ///< by where the weights of the layers before are
    };

    /// `steps` counts the work, in evaluations of a bound, and a list is left half done beyond
    /// `most_steps`: List::is_cut. What would not fit in memory counts as too much work.
    SpatialAxis(const std::vector<LayerProblem>& problems, size_t axis, Tiles tiles, int64_t& steps,
                int64_t most_steps);

    /// The sequence without uses.
    [[nodiscard]] List& nothing() { return nothing_; }

    [[nodiscard]] static List& longer(List& list, const SpatialUse& use);

    /// The layers of the list; before them the least that is possible.
    AxisTree& tree(List& list, const std::vector<Residence>& residence, Residences key);

private:
    void make(List& list);
    void check_memory(size_t more_options);
    void extend(const Option& before, const SpatialUse& use, int k, std::vector<Option>& options);

    Terms terms_;
    Tiles tiles_;
    AxisPatterns patterns_;
    List nothing_;
    int64_t& steps_;
    int64_t most_steps_;
    static constexpr int64_t steps_of_a_tile = 5;  // as measured: some microseconds
    static constexpr size_t least_untidied = 1 << 16;
    static constexpr size_t most_bytes = size_t{1} << 29;
    size_t stored_options_ = 0;
};

}  // namespace laminate::search
