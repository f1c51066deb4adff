// Options, tables and JSON that `cost` and `explore` share with --model depth-first.
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
    /// What an answer begins with: {"schema":, "version":, "model":, "network":, "structure_hash":,
    /// "machine":, "as_published":, "lpf_limit":}
    [[nodiscard]] nlohmann::ordered_json head(const char* schema, const Network& network,
                                              const Machine& machine) const;
};

/// "60x72": columns, then rows. Throws UsageError.
[[nodiscard]] depth_first::TileSize parse_tile(const std::string& text);
/// Parts of --overlap: one mode for all maps, then or alone "LAYER=mode" for the maps of single
/// layers, or of the network's inputs. Throws UsageError.
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

/// One table of energy and latency per overlap mode, then the best points beside layer by layer and
/// single layers.
[[nodiscard]] std::string sweep_text(const depth_first::DepthFirst& model,
                                     const depth_first::Sweep& sweep);
/// The largest mapping_gap among a sweep's points, single layers and layer by layer included.
[[nodiscard]] double worst_gap(const depth_first::Sweep& sweep);
/// A line that says so; empty where every mapping is proven.
[[nodiscard]] std::string gap_text(double gap);
/// {"points": [...], "best":, "front":, "layer_by_layer":, "single_layer":, "combination":}
[[nodiscard]] nlohmann::ordered_json sweep_json(const depth_first::DepthFirst& model,
                                                const depth_first::Sweep& sweep);
/// The stacks of a cut, each with its tile.
[[nodiscard]] std::string cut_text(const depth_first::DepthFirst& model,
                                   const depth_first::Cut& cut);
/// {"energy_pj":, "latency_cycles":, "on_chip_bits":, "stacks": [{"first":, "last":, "overlap":,
/// "tile_columns":, "tile_rows":, ...}]}
[[nodiscard]] nlohmann::ordered_json cut_json(const depth_first::DepthFirst& model,
                                              const depth_first::Cut& cut);
/// One of a sweep's points.
[[nodiscard]] nlohmann::ordered_json sweep_point_json(const depth_first::SweepPoint& point);
/// "4x72 fully-cached", "4x72 fully-cached conv1=recompute".
[[nodiscard]] std::string strategy_text(const depth_first::Strategy& strategy);
/// mappings,overlap,tile_columns,tile_rows,energy_pj,latency_cycles,on_chip_bits,macs,mapping_gap
[[nodiscard]] std::string sweep_csv(const depth_first::Sweep& sweep);
/// What the page tells beside the sweep.
struct SweepPageNotes {
    std::string network;
    std::string about;               ///< machine, fidelity, program
    std::vector<std::string> nests;  ///< loop nests of the front's points, parallel to
                                     ///< Sweep::front; empty where a point is no schedule
    bool has_schedules = false;      ///< schedules.html lies beside the page
};
/// Summary, front (a point leads to its loop nest), heat maps of energy and latency per overlap
/// mode, the best point's energy by memory and operand: one HTML file that needs nothing else.
[[nodiscard]] std::string sweep_page(const depth_first::DepthFirst& model,
                                     const depth_first::Sweep& sweep, const SweepPageNotes& notes);

}  // namespace laminate::cli
