// The rows or columns of a fused group: the combinations of its layers' tiles that can matter.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/indexed.h"
#include "scheduler/explore/group_search/axis_tree.h"
#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// How a structure uses one spatial axis of its layer.
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

/// Where the weights of all layers live, as a number for keys with two bits per layer.
using Residences = uint64_t;

/// A spatial axis of a chain: options for each sequence of uses, from the last layer on.
class SpatialAxis {
public:
    /// Tile combinations for a sequence of uses, made when first used. Longer sequences build on
    /// the marked ones.
    struct List {
        const List* before = nullptr;  ///< the sequence without `use`
        SpatialUse use;
        int layer = 0;  ///< the layer of `use`
        bool is_made = false;
        Options options;
        std::vector<char> is_marked;
        bool is_cut = false;  ///< lacks options for good
        std::map<SpatialUse, std::unique_ptr<List>> longer;
        /// By the residence of the weights of the layers before.
        std::map<Residences, std::unique_ptr<AxisTree>> trees;
    };

    /// `steps` counts the work in evaluations of a bound. Beyond `most_steps`, lists are cut
    /// (List::is_cut). Running out of memory counts as too much work.
    SpatialAxis(const std::vector<LayerProblem>& problems, size_t axis, Tiles tiles, int64_t& steps,
                int64_t most_steps);

    /// The sequence without uses.
    [[nodiscard]] List& nothing() { return nothing_; }

    [[nodiscard]] List& longer(List& list, const SpatialUse& use);

    /// Forgets what no extension of the lists of layer k needs: the options that are not marked,
    /// trees, and the lists of later layers.
    void finish(int k);

    /// The options of the list's layers, with the layers before at their least.
    AxisTree& tree(List& list, const std::vector<Residence>& residence, Residences key);

private:
    /// What a tile of a layer adds to an option of the layers after it.
    struct TileOfLayer {
        int64_t tile;
        AxisPatterns::Id pattern;
        double weights, held, brought, output;
    };

    void make(List& list);
    /// Cuts all lists that are made from now on if there is no room for `more` bytes.
    void check_memory(size_t more);
    /// The terms that the layers n .. k decide along the axis: of each kind those of layer k first.
    [[nodiscard]] std::vector<size_t> decided(int k) const;
    /// Adds option n of the list before with each tile of the list's layer that matters.
    void extend(const List& before, size_t n, List& list);
    /// Sets `last_` to the tiles of layer k that matter where it is called like this.
    void find_tiles(AxisPatterns::Id calls, const SpatialUse& use, int k);

    Terms terms_;
    Tiles tiles_;
    AxisPatterns patterns_;
    List nothing_;
    int64_t& steps_;
    int64_t most_steps_;
    static constexpr int64_t steps_of_a_tile = 5;  // measured: some microseconds
    static constexpr size_t least_untidied = 1 << 16;
    static constexpr int layers_of_a_pair = 2;
    /// Two threads that search both axes of a group each thus stay within a GiB.
    static constexpr size_t most_bytes = size_t{7} << 25;
    size_t stored_ = 0;                           ///< bytes of options and trees
    IndexVector<std::vector<List*>, int> lists_;  ///< by layer
    struct {
        const List* list = nullptr;
        AxisPatterns::Id calls = 0;
        int64_t steps = 0;  ///< that finding them takes
        std::vector<TileOfLayer> tiles;
    } last_;  ///< tiles for the options that extend() saw last
};

}  // namespace laminate::search
