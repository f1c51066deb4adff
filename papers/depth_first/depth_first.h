// Depth-first execution on a machine of many memories: energy and latency. DeFiNES (Mei,
// Goetschalckx, Symons, Verhelst; HPCA 2023), section III, and its public artifact.
//
// The network is cut into stacks; between stacks maps go through the highest memory. A stack's
// output is computed tile by tile; for each tile every layer computes what the tile needs and no
// earlier tile left in a cache. Steps, per distinct kind of tile: back-calculation of what each
// layer computes (tiles.h), the lowest memory that holds each kind of data (levels.h), copies
// between memories (data_copy.h), one mapping per layer (single_layer.h). Layers, copies and tiles
// follow each other; nothing overlaps.
//
//   DepthFirst model(machine, network, fidelity);
//   const DepthFirstCost cost = model.cost({.tile = {60, 72}, .overlap = Overlap::fully_cached});
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "papers/depth_first/data_copy.h"
#include "papers/depth_first/mapper.h"
#include "papers/depth_first/single_layer.h"
#include "papers/depth_first/workload.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// What is kept of the columns and rows that neighbouring tiles share.
enum class Overlap {
    recompute,     ///< nothing
    h_cached,      ///< columns, for the tile to the right; rows are computed again
    fully_cached,  ///< both
    v_cached,  ///< rows, for the tile below, which comes next; columns are computed again. Not in
               ///< the paper: h_cached on the other axis
};
[[nodiscard]] const char* to_string(Overlap overlap);
/// "recompute", "h-cached", "fully-cached", "v-cached". Throws InputError.
[[nodiscard]] Overlap parse_overlap(const std::string& text);

/// Which layers are executed together.
enum class Stacks {
    weights_fit,   ///< as many as have weights that fit the second-highest memory of the weights
    single_layer,  ///< each layer alone
    all,           ///< the whole network
};
[[nodiscard]] const char* to_string(Stacks stacks);
/// "weights-fit", "single-layer", "all". Throws InputError.
[[nodiscard]] Stacks parse_stacks(const std::string& text);

/// Where the artifact does something else than the paper says or than one would want. All false:
/// mended.
struct Quirks {
    bool unpadded =
        false;  ///< sizes are what windows span from the output backwards, without padding
    bool left_over_tiles_first =
        false;  ///< the ragged tile is the leftmost and topmost, not the last
    bool last_cache_level_wins = false;  ///< caches: the level of the tile looked at last, not the
                                         ///< highest of those that share it
    bool column_cache_sized_with_cached_rows = false;  ///< even where rows are computed again
    bool first_cut_is_ignored =
        false;  ///< a cut after the first layer is taken for none: everything is costed twice
    bool published_layers = false;  ///< lanes and indices of single layers as in the artifact's
                                    ///< files (published_layers.h)
    bool no_off_load = false;       ///< latency without the final off-load of each layer
    bool macs_of_poolings_and_additions = false;  ///< cost the energy of multiplications

    [[nodiscard]] static Quirks as_published();
    [[nodiscard]] static Quirks mended() { return {}; }
    /// Whether the multiplications of such a layer cost energy.
    [[nodiscard]] bool counts_macs_of(LayerType type) const;
};
struct QuirkName {
    const char* name;  ///< "left-over-tiles-first"
    bool Quirks::*member;
};
/// In the order of the members.
[[nodiscard]] const std::vector<QuirkName>& quirk_names();
/// Switches one quirk on. Throws InputError listing the names.
void add_quirk(Quirks& quirks, const std::string& name);

struct Fidelity {
    Quirks quirks = Quirks::mended();
    /// Orders of at most so many loops, merged from prime factors (LOMA); 0: all factors and all
    /// allocations, exactly.
    size_t loop_limit = 0;
    [[nodiscard]] static Fidelity as_published(size_t limit) {
        return {Quirks::as_published(), limit};
    }
};

struct TileSize {
    int64_t x = 1;
    int64_t y = 1;
    auto operator<=>(const TileSize&) const = default;
};

struct Strategy {
    TileSize tile;  ///< of each stack's output; larger than the map: the map
    Overlap overlap = Overlap::fully_cached;
    Stacks stacks = Stacks::weights_fit;
    Objective mappings =
        Objective::energy;  ///< what the mapping of each layer in each kind of tile is best in
    /// Maps of which tiles keep something else than `overlap` says, by name of the layer that
    /// writes them or of the network's input. A stack goes row by row or column by column: h_cached
    /// and v_cached do not occur in one. Of a stack's output nothing is kept, whatever it says.
    std::map<std::string, Overlap> of_maps{};

    [[nodiscard]] Overlap overlap_of(const std::string& map) const;
};
/// Whether the tiles of a stack that keeps this of its maps, its output left out, go column by
/// column. Throws InputError where some are h_cached and some v_cached.
[[nodiscard]] bool goes_by_columns(const Workload& workload, const std::vector<size_t>& layers,
                                   const Strategy& strategy);

/// One layer in one kind of tile.
struct LayerTileCost {
    size_t layer = 0;  ///< of the workload
    LayerShape shape;
    int64_t times = 0;
    LayerMapping mapping;
    CopyCost copies{};                               ///< the bundle before it
    std::vector<std::vector<size_t>> hierarchies{};  ///< per role, indices into Machine::memories
};

struct StackCost {
    double energy_pj = 0;
    int64_t latency_cycles = 0;
    /// Memory in which all of a tile would lie at once: its live maps and caches, and the weights
    /// of the stack. Of the largest kind of tile.
    int64_t on_chip_bits = 0;
};

struct DepthFirstCost {
    double energy_pj = 0;
    double mac_pj = 0;
    double copy_pj = 0;
    int64_t latency_cycles = 0;
    int64_t on_chip_bits = 0;  ///< the largest of the stacks
    int64_t macs = 0;
    /// [memory of the machine][role]: words of the layers, second inputs with the inputs.
    std::vector<std::array<WordCounts, 3>> words;
    /// Words of the copies, per memory.
    std::vector<WordCounts> copy_words;
    std::vector<std::vector<size_t>> stacks;  ///< layers of each, in the order of execution
    std::vector<StackCost> stack_costs;       ///< parallel to stacks
    int64_t tile_kinds = 0;
    double mapping_gap =
        0;  ///< the largest LayerMapping::gap; 0: every mapping is proven to be the best
    std::vector<LayerTileCost>
        details;  ///< one per stack, kind of tile and layer; empty where not asked for
};

/// A stack under a strategy.
struct StackChoice {
    std::vector<size_t> layers;
    Strategy strategy;
};

/// One of many that were asked for together.
template <typename Cost>
struct OneOfMany {
    bool is_done = false;      ///< false: stopped before
    std::optional<Cost> cost;  ///< none: it does not fit
};

struct ManyOptions {
    int threads = 1;  ///< the result does not depend on it
    const std::atomic<bool>* stop = nullptr;
    std::function<void(size_t done, size_t total)> progress{};
};

/// No mapping of a layer fits the machine. what() names layer and machine.
class InfeasibleMapping : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A network on a machine. Mappings are remembered between calls of cost(): layers of equal shape
/// with equal hierarchies are mapped once. Calls from several threads are allowed. Keeps references
/// to nothing.
class DepthFirst {
public:
    /// Throws InputError: workload_of(), or a machine with an axis without loop.
    DepthFirst(Machine machine, const Network& network, const Fidelity& fidelity);
    ~DepthFirst();
    DepthFirst(DepthFirst&&) noexcept;

    [[nodiscard]] const Workload& workload() const;
    [[nodiscard]] const Machine& machine() const;
    /// Layers of each stack in the order of execution; by quirk some twice.
    [[nodiscard]] std::vector<std::vector<size_t>> stacks(Stacks rule) const;
    /// Layers between which more than one map is alive, which no cut separates; in the order of
    /// execution, network inputs left out.
    [[nodiscard]] std::vector<std::vector<size_t>> units() const;
    /// Of these layers as one stack; `strategy.stacks` is not looked at. Throws InfeasibleMapping.
    [[nodiscard]] StackCost stack_cost(const std::vector<size_t>& layers,
                                       const Strategy& strategy) const;
    /// Throws InfeasibleMapping. `with_details`: fills DepthFirstCost::details, which takes most of
    /// the time where tiles are many.
    [[nodiscard]] DepthFirstCost cost(const Strategy& strategy, bool with_details = true) const;

    /// cost() without details, and stack_cost(), of many: mappings are made on all threads, each
    /// once.
    [[nodiscard]] std::vector<OneOfMany<DepthFirstCost>> costs(
        const std::vector<Strategy>& strategies, const ManyOptions& options) const;
    [[nodiscard]] std::vector<OneOfMany<StackCost>> stack_costs(
        const std::vector<StackChoice>& choices, const ManyOptions& options) const;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace laminate::depth_first
