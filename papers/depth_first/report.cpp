#include "papers/depth_first/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "answers/output.h"
#include "answers/page.h"
#include "base/error.h"

namespace laminate::cli {

using depth_first::DepthFirst;
using depth_first::DepthFirstCost;
using depth_first::Sweep;
using depth_first::SweepPoint;
using depth_first::WordCounts;

double energy_of(const Memory& memory, const WordCounts& words) {
    return memory.read.word_pj * words.reads() + memory.write.word_pj * words.writes();
}

namespace {

/// " (mapped for latency)". Empty for energy, the default objective of mappings.
std::string mapped_for(depth_first::Objective objective) {
    return objective == depth_first::Objective::energy
               ? ""
               : fmt::format(" (mapped for {})", depth_first::to_string(objective));
}

/// "conv1" or "conv1..conv3".
std::string stack_name(const DepthFirst& model, const std::vector<size_t>& layers) {
    const std::string& first = model.workload().layers[layers.front()].name;
    if (layers.size() == 1) return first;
    return first + ".." + model.workload().layers[layers.back()].name;
}

/// {"conv1": "recompute", ...}: the maps with an overlap mode of their own.
nlohmann::ordered_json overlaps_json(const depth_first::Strategy& strategy) {
    auto json = nlohmann::ordered_json::object();
    for (const auto& [map, overlap] : strategy.of_maps) json[map] = depth_first::to_string(overlap);
    return json;
}

nlohmann::ordered_json words_json(const Memory& memory, const WordCounts& words) {
    return {{"reads_words", words.reads()},
            {"writes_words", words.writes()},
            {"read_to_lower_words", words.read_to_lower},
            {"write_from_lower_words", words.write_from_lower},
            {"read_to_higher_words", words.read_to_higher},
            {"write_from_higher_words", words.write_from_higher},
            {"energy_pj", energy_of(memory, words)}};
}

}  // namespace

void DepthFirstFidelity::declare(CLI::App& options) {
    options.add_flag(
        "--as-published", as_published,
        "Follow the paper's public artifact to the letter, with its quirks (docs/defines.md)");
    options.add_option("--quirk", quirks, "Follow single quirks of the artifact (docs/defines.md)")
        ->delimiter(',')
        ->type_name("NAME");
    options
        .add_option(
            "--lpf-limit", lpf_limit,
            "Map layers by orders of at most N merged prime factors, as LOMA does; 0: by all "
            "orders and allocations, exactly")
        ->type_name("N")
        ->capture_default_str();
}

depth_first::Fidelity DepthFirstFidelity::get() const {
    depth_first::Fidelity fidelity;
    if (as_published) fidelity.quirks = depth_first::Quirks::as_published();
    for (const std::string& quirk : quirks) depth_first::add_quirk(fidelity.quirks, quirk);
    fidelity.loop_limit = lpf_limit;
    return fidelity;
}

nlohmann::ordered_json DepthFirstFidelity::head(const char* schema, const Network& network,
                                                const Machine& machine) const {
    return {{"schema", schema},
            {"version", 1},
            {"model", "depth-first"},
            {"network", network.name},
            {"structure_hash", structure_hash(network)},
            {"machine", machine.name},
            {"as_published", as_published},
            {"lpf_limit", lpf_limit}};
}

depth_first::TileSize parse_tile(const std::string& text) {
    depth_first::TileSize tile;
    const size_t cross = text.find('x');
    const auto number = [&](size_t begin, size_t end, int64_t& value) {
        const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
        return error == std::errc() && stop == text.data() + end && value >= 1;
    };
    if (cross == std::string::npos || !number(0, cross, tile.x) ||
        !number(cross + 1, text.size(), tile.y))
        throw UsageError(
            fmt::format("tile: found \"{}\", expected COLUMNSxROWS as in 60x72", text));
    return tile;
}

void set_overlaps(depth_first::Strategy& strategy, const std::vector<std::string>& parts,
                  const depth_first::Workload& workload) {
    for (size_t n = 0; n < parts.size(); ++n) {
        const size_t equals = parts[n].rfind('=');
        if (equals == std::string::npos) {
            if (n > 0)
                throw UsageError(
                    fmt::format("overlap: found \"{}\" after \"{}\", expected LAYER=MODE; one mode "
                                "for all others comes first",
                                parts[n], parts[0]));
            strategy.overlap = depth_first::parse_overlap(parts[n]);
            continue;
        }
        const std::string map = parts[n].substr(0, equals);
        if (std::ranges::find(workload.layers, map, &depth_first::WorkloadLayer::name) ==
            workload.layers.end()) {
            std::string names;
            for (const depth_first::WorkloadLayer& layer : workload.layers)
                names += (names.empty() ? "" : ", ") + layer.name;
            throw InputError(fmt::format("overlap: found \"{}\", expected one of {}", map, names));
        }
        strategy.of_maps[map] = depth_first::parse_overlap(parts[n].substr(equals + 1));
    }
}

std::string depth_first_text(const DepthFirst& model, const DepthFirstCost& cost) {
    Table table({{"memory"},
                 {"I uJ", Align::right},
                 {"W uJ", Align::right},
                 {"O uJ", Align::right},
                 {"copies uJ", Align::right},
                 {"sum uJ", Align::right}});
    const auto micro = [](double pj) { return fmt::format("{:.2f}", pj / 1e6); };
    const std::vector<Memory>& memories = model.machine().memories;
    for (size_t m = 0; m < memories.size(); ++m) {
        std::vector<std::string> cells{memories[m].name};
        double sum = 0;
        for (const Operand operand : all_operands) {
            const double energy = energy_of(memories[m], cost.words[m][operand]);
            sum += energy;
            cells.push_back(memories[m].serves(operand) ? micro(energy) : "");
        }
        const double copies = energy_of(memories[m], cost.copy_words[m]);
        cells.push_back(micro(copies));
        cells.push_back(micro(sum + copies));
        table.add(std::move(cells));
    }
    table.add({"multiply-accumulate", "", "", "", "", micro(cost.mac_pj)});
    table.add_rule();
    table.add({"total", "", "", "", micro(cost.copy_pj), micro(cost.energy_pj)});
    std::string stacks;
    for (const std::vector<size_t>& stack : cost.stacks) {
        stacks += (stacks.empty() ? "" : ", ") + stack_name(model, stack);
    }
    return table.text() +
           fmt::format("{:.4f} mJ, {} cycles, {} MACs, {} kinds of tiles\n{} stack{}: {}\n",
                       cost.energy_pj / 1e9, grouped(cost.latency_cycles), grouped(cost.macs),
                       cost.tile_kinds, cost.stacks.size(), cost.stacks.size() == 1 ? "" : "s",
                       stacks) +
           gap_text(cost.mapping_gap);
}

nlohmann::ordered_json depth_first_json(const DepthFirst& model,
                                        const depth_first::Strategy& strategy,
                                        const DepthFirstCost& cost) {
    auto memories = nlohmann::ordered_json::array();
    for (size_t m = 0; m < cost.words.size(); ++m) {
        const Memory& memory = model.machine().memories[m];
        nlohmann::ordered_json entry{{"memory", memory.name}};
        for (const Operand operand : all_operands) {
            if (memory.serves(operand))
                entry[to_string(operand)] = words_json(memory, cost.words[m][operand]);
        }
        entry["copies"] = words_json(memory, cost.copy_words[m]);
        memories.push_back(std::move(entry));
    }
    auto stacks = nlohmann::ordered_json::array(), stack_costs = nlohmann::ordered_json::array();
    for (size_t n = 0; n < cost.stacks.size(); ++n) {
        auto names = nlohmann::ordered_json::array();
        for (const size_t layer : cost.stacks[n])
            names.push_back(model.workload().layers[layer].name);
        stacks.push_back(std::move(names));
        const depth_first::StackCost& stack = cost.stack_costs[n];
        stack_costs.push_back({{"energy_pj", stack.energy_pj},
                               {"latency_cycles", stack.latency_cycles},
                               {"on_chip_bits", stack.on_chip_bits}});
    }
    return {{"tile_columns", strategy.tile.x},
            {"tile_rows", strategy.tile.y},
            {"overlap", depth_first::to_string(strategy.overlap)},
            {"overlap_of_maps", overlaps_json(strategy)},
            {"stack_rule", depth_first::to_string(strategy.stacks)},
            {"mappings", depth_first::to_string(strategy.mappings)},
            {"mapping_gap", cost.mapping_gap},
            {"energy_pj", cost.energy_pj},
            {"mac_energy_pj", cost.mac_pj},
            {"copy_energy_pj", cost.copy_pj},
            {"latency_cycles", cost.latency_cycles},
            {"on_chip_bits", cost.on_chip_bits},
            {"macs", cost.macs},
            {"tile_kinds", cost.tile_kinds},
            {"stacks", stacks},
            {"stack_costs", stack_costs},
            {"memories", memories}};
}

nlohmann::ordered_json sweep_point_json(const SweepPoint& point) {
    nlohmann::ordered_json json{{"overlap", depth_first::to_string(point.strategy.overlap)},
                                {"tile_columns", point.strategy.tile.x},
                                {"tile_rows", point.strategy.tile.y},
                                {"stack_rule", depth_first::to_string(point.strategy.stacks)},
                                {"mappings", depth_first::to_string(point.strategy.mappings)},
                                {"fits", point.fits}};
    if (!point.strategy.of_maps.empty()) json["overlap_of_maps"] = overlaps_json(point.strategy);
    if (point.fits) {
        json["energy_pj"] = point.energy_pj;
        json["latency_cycles"] = point.latency_cycles;
        json["on_chip_bits"] = point.on_chip_bits;
        json["macs"] = point.macs;
        json["mapping_gap"] = point.mapping_gap;
    }
    return json;
}

std::vector<SweepGrid> grids(const Sweep& sweep) {
    std::vector<SweepGrid> result;
    const auto note = [](std::vector<int64_t>& sizes, int64_t size) {
        if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
    };
    for (const SweepPoint& point : sweep.points) {
        if (result.empty() || !result.back().holds(point.strategy))
            result.push_back({point.strategy.overlap, point.strategy.mappings, {}, {}});
        note(result.back().columns, point.strategy.tile.x);
        note(result.back().rows, point.strategy.tile.y);
    }
    return result;
}

const SweepPoint* SweepGrid::at(const Sweep& sweep, int64_t x, int64_t y) const {
    for (const SweepPoint& point : sweep.points) {
        if (holds(point.strategy) && point.strategy.tile == depth_first::TileSize{x, y})
            return &point;
    }
    return nullptr;
}

std::string SweepGrid::name() const {
    return depth_first::to_string(overlap) + mapped_for(mappings);
}

std::string strategy_text(const depth_first::Strategy& strategy) {
    std::string text = fmt::format("{}x{} {}", strategy.tile.x, strategy.tile.y,
                                   depth_first::to_string(strategy.overlap));
    for (const auto& [map, overlap] : strategy.of_maps)
        text += fmt::format(" {}={}", map, depth_first::to_string(overlap));
    return text + mapped_for(strategy.mappings);
}

std::string gap_text(double gap) {
    return gap > 0
               ? fmt::format(
                     "not every mapping is proven best: one may be up to {:.2g} % above the best",
                     100 * gap)
               : "";
}

double worst_gap(const Sweep& sweep) {
    double gap = 0;
    const auto see = [&](const SweepPoint& point) { gap = std::max(gap, point.mapping_gap); };
    for (const SweepPoint& point : sweep.points) see(point);
    if (sweep.single_layer) see(*sweep.single_layer);
    if (sweep.layer_by_layer) see(*sweep.layer_by_layer);
    return gap;
}

namespace {

double mj(double energy_pj) { return energy_pj / 1e9; }
double mcycles(int64_t cycles) { return static_cast<double>(cycles) / 1e6; }

/// Energy and latency by width and height of the tile.
std::string grid_text(const Sweep& sweep, const SweepGrid& grid) {
    std::vector<Table::Column> head{{fmt::format("{}: mJ / Mcycles", grid.name()), Align::right}};
    for (const int64_t x : grid.columns) head.push_back({fmt::format("{} wide", x), Align::right});
    Table table(head);
    for (const int64_t y : grid.rows) {
        std::vector<std::string> cells{fmt::format("{} high", y)};
        for (const int64_t x : grid.columns) {
            const SweepPoint* point = grid.at(sweep, x, y);
            cells.push_back(point == nullptr || !point->fits
                                ? "-"
                                : fmt::format("{:.3f} / {:.2f}", mj(point->energy_pj),
                                              mcycles(point->latency_cycles)));
        }
        table.add(std::move(cells));
    }
    return table.text();
}

/// The best point and the best per stack beside layer by layer and single layers.
std::string executions_text(const Sweep& sweep) {
    Table table({{"execution"}, {"mJ", Align::right}, {"Mcycles", Align::right}, {"tile"}});
    const auto row = [&](const std::string& name, const auto& cost, const std::string& tile) {
        table.add({name, fmt::format("{:.4f}", mj(cost.energy_pj)),
                   fmt::format("{:.3f}", mcycles(cost.latency_cycles)), tile});
    };
    if (sweep.single_layer) row("single layers", *sweep.single_layer, "");
    if (sweep.layer_by_layer) row("layer by layer", *sweep.layer_by_layer, "");
    const SweepPoint& best = sweep.points[*sweep.best];
    row("best point", best, strategy_text(best.strategy));
    if (sweep.combination && sweep.combination->points.size() > 1) {
        std::string tiles;
        for (const size_t n : sweep.combination->points)
            tiles += (tiles.empty() ? "" : ", ") + strategy_text(sweep.points[n].strategy);
        row("best per stack", *sweep.combination, tiles);
    }
    return table.text();
}

std::string front_text(const Sweep& sweep) {
    Table front({{"front"},
                 {"mJ", Align::right},
                 {"Mcycles", Align::right},
                 {"on-chip memory", Align::right}});
    constexpr size_t most_rows = 12;
    for (size_t n = 0; n < std::min(most_rows, sweep.front.size()); ++n) {
        const SweepPoint& point = sweep.points[sweep.front[n]];
        front.add({strategy_text(point.strategy), fmt::format("{:.4f}", mj(point.energy_pj)),
                   fmt::format("{:.3f}", mcycles(point.latency_cycles)),
                   bytes_text(point.on_chip_bits / 8)});
    }
    return front.text() + (sweep.front.size() > most_rows
                               ? fmt::format("and {} more\n", sweep.front.size() - most_rows)
                               : "");
}

/// Largest over least energy and latency of the points.
std::string spread_text(const Sweep& sweep) {
    double most = 0, longest = 0, least = std::numeric_limits<double>::infinity(), shortest = least;
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        most = std::max(most, point.energy_pj);
        least = std::min(least, point.energy_pj);
        longest = std::max(longest, static_cast<double>(point.latency_cycles));
        shortest = std::min(shortest, static_cast<double>(point.latency_cycles));
    }
    return fmt::format("spread {:.1f}x in energy, {:.1f}x in latency\n", most / least,
                       longest / shortest);
}

}  // namespace

std::string sweep_text(const Sweep& sweep) {
    std::string text;
    for (const SweepGrid& grid : grids(sweep)) text += grid_text(sweep, grid) + "\n";
    return text + executions_text(sweep) + "\n" + front_text(sweep) + spread_text(sweep) +
           gap_text(worst_gap(sweep));
}

std::string cut_text(const DepthFirst& model, const depth_first::Cut& cut) {
    Table table({{"best cut: stack"},
                 {"tile"},
                 {"mJ", Align::right},
                 {"Mcycles", Align::right},
                 {"on-chip memory", Align::right}});
    const auto row = [&](const std::string& name, const std::string& tile, double energy,
                         int64_t latency, int64_t bits) {
        table.add({name, tile, fmt::format("{:.4f}", energy / 1e9),
                   fmt::format("{:.3f}", static_cast<double>(latency) / 1e6),
                   bytes_text(bits / 8)});
    };
    for (const depth_first::ChosenStack& stack : cut.stacks) {
        row(stack_name(model, stack.layers), strategy_text(stack.strategy), stack.cost.energy_pj,
            stack.cost.latency_cycles, stack.cost.on_chip_bits);
    }
    table.add_rule();
    row("network", "", cut.energy_pj, cut.latency_cycles, cut.on_chip_bits);
    return table.text();
}

nlohmann::ordered_json cut_json(const DepthFirst& model, const depth_first::Cut& cut) {
    auto stacks = nlohmann::ordered_json::array();
    for (const depth_first::ChosenStack& stack : cut.stacks) {
        stacks.push_back({{"first", model.workload().layers[stack.layers.front()].name},
                          {"last", model.workload().layers[stack.layers.back()].name},
                          {"overlap", depth_first::to_string(stack.strategy.overlap)},
                          {"overlap_of_maps", overlaps_json(stack.strategy)},
                          {"tile_columns", stack.strategy.tile.x},
                          {"tile_rows", stack.strategy.tile.y},
                          {"energy_pj", stack.cost.energy_pj},
                          {"latency_cycles", stack.cost.latency_cycles},
                          {"on_chip_bits", stack.cost.on_chip_bits}});
    }
    return {{"energy_pj", cut.energy_pj},
            {"latency_cycles", cut.latency_cycles},
            {"on_chip_bits", cut.on_chip_bits},
            {"stacks", stacks}};
}

nlohmann::ordered_json sweep_json(const DepthFirst& model, const Sweep& sweep) {
    auto points = nlohmann::ordered_json::array();
    for (const SweepPoint& point : sweep.points) points.push_back(sweep_point_json(point));
    nlohmann::ordered_json json{{"points", points},
                                {"best", sweep_point_json(sweep.points[*sweep.best])},
                                {"front", sweep.front}};
    if (sweep.layer_by_layer) json["layer_by_layer"] = sweep_point_json(*sweep.layer_by_layer);
    if (sweep.single_layer) json["single_layer"] = sweep_point_json(*sweep.single_layer);
    if (sweep.combination) {
        auto stacks = nlohmann::ordered_json::array();
        const auto all = model.stacks(sweep.points[*sweep.best].strategy.stacks);
        for (size_t stack = 0; stack < all.size(); ++stack) {
            nlohmann::ordered_json entry{
                {"first", model.workload().layers[all[stack].front()].name},
                {"last", model.workload().layers[all[stack].back()].name}};
            const SweepPoint& point = sweep.points[sweep.combination->points[stack]];
            entry["overlap"] = depth_first::to_string(point.strategy.overlap);
            entry["tile_columns"] = point.strategy.tile.x;
            entry["tile_rows"] = point.strategy.tile.y;
            entry["energy_pj"] = point.stacks[stack].energy_pj;
            entry["latency_cycles"] = point.stacks[stack].latency_cycles;
            stacks.push_back(std::move(entry));
        }
        json["combination"] = {{"energy_pj", sweep.combination->energy_pj},
                               {"latency_cycles", sweep.combination->latency_cycles},
                               {"stacks", stacks}};
    }
    return json;
}

std::string sweep_csv(const Sweep& sweep) {
    std::string csv =
        "mappings,overlap,tile_columns,tile_rows,energy_pj,latency_cycles,on_chip_bits,macs,"
        "mapping_gap\n";
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        csv += fmt::format("{},{},{},{},{:.17g},{},{},{},{:.17g}\n",
                           depth_first::to_string(point.strategy.mappings),
                           depth_first::to_string(point.strategy.overlap), point.strategy.tile.x,
                           point.strategy.tile.y, point.energy_pj, point.latency_cycles,
                           point.on_chip_bits, point.macs, point.mapping_gap);
    }
    return csv;
}

}  // namespace laminate::cli
