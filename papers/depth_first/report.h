// The options, tables, JSON and CSV of the depth-first model, for `cost`, `explore` and `study`.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "papers/depth_first/depth_first.h"
#include "papers/depth_first/sweep.h"

namespace laminate::cli {

/// --as-published, --quirk and --lpf-limit.
struct DepthFirstFidelity {
    bool as_published = false;
    std::vector<std::string> quirks;
    size_t lpf_limit = 0;

    void declare(CLI::App& options);
    [[nodiscard]] depth_first::Fidelity get() const;
    /// The beginning of an answer: {"schema":, "version":, "model":, "network":, "structure_hash":,
    /// "machine":, "as_published":, "lpf_limit":}
    [[nodiscard]] nlohmann::ordered_json head(const char* schema, const Network& network,
                                              const Machine& machine) const;
};

/// "60x72": columns, then rows. Throws UsageError.
[[nodiscard]] depth_first::TileSize parse_tile(const std::string& text);
/// Applies the parts of --overlap: optionally one mode for all maps, then "LAYER=MODE" for the maps
/// of single layers or network inputs. Throws UsageError or InputError.
void set_overlaps(depth_first::Strategy& strategy, const std::vector<std::string>& parts,
                  const depth_first::Workload& workload);

/// Energy by memory and operand, latency, stacks.
[[nodiscard]] std::string depth_first_text(const depth_first::DepthFirst& model,
                                           const depth_first::DepthFirstCost& cost);

/// {"tile_columns":, "tile_rows":, "overlap":, "stacks":, "energy_pj":, "latency_cycles":, "macs":,
/// ..., "memories": [{"memory":, "I": {...}, ...}]}
[[nodiscard]] nlohmann::ordered_json depth_first_json(const depth_first::DepthFirst& model,
                                                      const depth_first::Strategy& strategy,
                                                      const depth_first::DepthFirstCost& cost);

/// A table of energy and latency for each overlap mode, the best points beside layer by layer and
/// single layers, the front, and the spread.
[[nodiscard]] std::string sweep_text(const depth_first::Sweep& sweep);
/// The largest mapping_gap of a sweep, single layers and layer by layer included.
[[nodiscard]] double worst_gap(const depth_first::Sweep& sweep);
/// A line that states the gap; empty if every mapping is proven best.
[[nodiscard]] std::string gap_text(double gap);
/// {"points": [...], "best":, "front":, "layer_by_layer":, "single_layer":, "combination":}
[[nodiscard]] nlohmann::ordered_json sweep_json(const depth_first::DepthFirst& model,
                                                const depth_first::Sweep& sweep);
/// A table of the stacks of a cut, each with its tile.
[[nodiscard]] std::string cut_text(const depth_first::DepthFirst& model,
                                   const depth_first::Cut& cut);
/// {"energy_pj":, "latency_cycles":, "on_chip_bits":, "stacks": [{"first":, "last":, "overlap":,
/// "tile_columns":, "tile_rows":, ...}]}
[[nodiscard]] nlohmann::ordered_json cut_json(const depth_first::DepthFirst& model,
                                              const depth_first::Cut& cut);
/// {"overlap":, "tile_columns":, "tile_rows":, ..., "fits":, "energy_pj":, ...}
[[nodiscard]] nlohmann::ordered_json sweep_point_json(const depth_first::SweepPoint& point);
/// "4x72 fully-cached", "4x72 fully-cached conv1=recompute".
[[nodiscard]] std::string strategy_text(const depth_first::Strategy& strategy);
/// mappings,overlap,tile_columns,tile_rows,energy_pj,latency_cycles,on_chip_bits,macs,mapping_gap
[[nodiscard]] std::string sweep_csv(const depth_first::Sweep& sweep);
/// The points of one overlap mode, mapped for one objective, as a grid.
struct SweepGrid {
    depth_first::Overlap overlap;
    depth_first::Objective mappings;
    std::vector<int64_t> columns, rows;  ///< of tiles

    /// The point with this tile, or null.
    [[nodiscard]] const depth_first::SweepPoint* at(const depth_first::Sweep& sweep, int64_t x,
                                                    int64_t y) const;
    [[nodiscard]] bool holds(const depth_first::Strategy& strategy) const {
        return strategy.overlap == overlap && strategy.mappings == mappings;
    }
    /// "fully-cached", "fully-cached (mapped for latency)".
    [[nodiscard]] std::string name() const;
};
[[nodiscard]] std::vector<SweepGrid> grids(const depth_first::Sweep& sweep);

/// pJ of these words of a memory.
[[nodiscard]] double energy_of(const Memory& memory, const depth_first::WordCounts& words);

}  // namespace laminate::cli
