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

namespace {

using depth_first::DepthFirst;
using depth_first::DepthFirstCost;
using depth_first::WordCounts;

double energy_of(const Memory& memory, const WordCounts& words) {
    return memory.read.word_pj * words.reads() + memory.write.word_pj * words.writes();
}

/// {"conv1": "recompute", ...}: maps of which tiles keep something else than the others.
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
        "The paper's public artifact to the letter, with its quirks (docs/defines.md)");
    options.add_option("--quirk", quirks, "One of the artifact's quirks alone (docs/defines.md)")
        ->delimiter(',')
        ->type_name("NAME");
    options
        .add_option("--lpf-limit", lpf_limit,
                    "Map layers by orders of at most N merged prime factors, as LOMA does; 0: all "
                    "factors and "
                    "allocations, exactly")
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
            const double energy =
                energy_of(memories[m], cost.words[m][static_cast<size_t>(operand)]);
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
        const auto& layers = model.workload().layers;
        stacks += stacks.empty() ? "" : ", ";
        stacks += stack.size() == 1 ? layers[stack.front()].name
                                    : layers[stack.front()].name + ".." + layers[stack.back()].name;
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
                entry[to_string(operand)] =
                    words_json(memory, cost.words[m][static_cast<size_t>(operand)]);
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

namespace {

using depth_first::Overlap;
using depth_first::Sweep;
using depth_first::SweepPoint;

}  // namespace

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

namespace {

/// " (mapped for latency)"; nothing for energy, for which layers are mapped by default.
std::string mapped_for(depth_first::Objective objective) {
    return objective == depth_first::Objective::energy
               ? ""
               : fmt::format(" (mapped for {})", depth_first::to_string(objective));
}

/// Points of one overlap mode, mapped for one objective, as a grid.
struct Grid {
    Overlap overlap;
    depth_first::Objective mappings;
    std::vector<int64_t> columns, rows;
    [[nodiscard]] const SweepPoint* at(const Sweep& sweep, int64_t x, int64_t y) const {
        for (const SweepPoint& point : sweep.points) {
            if (holds(point.strategy) && point.strategy.tile == depth_first::TileSize{x, y})
                return &point;
        }
        return nullptr;
    }
    [[nodiscard]] bool holds(const depth_first::Strategy& strategy) const {
        return strategy.overlap == overlap && strategy.mappings == mappings;
    }
    [[nodiscard]] std::string name() const {
        return depth_first::to_string(overlap) + mapped_for(mappings);
    }
};

std::vector<Grid> grids(const Sweep& sweep) {
    std::vector<Grid> result;
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

}  // namespace

std::string strategy_text(const depth_first::Strategy& strategy) {
    std::string text = fmt::format("{}x{} {}", strategy.tile.x, strategy.tile.y,
                                   depth_first::to_string(strategy.overlap));
    for (const auto& [map, overlap] : strategy.of_maps)
        text += fmt::format(" {}={}", map, depth_first::to_string(overlap));
    return text + mapped_for(strategy.mappings);
}

std::string gap_text(double gap) {
    return gap > 0 ? fmt::format(
                         "not every mapping is proven the best: one may be up to {:.2g} % above it",
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

std::string sweep_text(const DepthFirst&, const Sweep& sweep) {
    std::string text;
    for (const Grid& grid : grids(sweep)) {
        std::vector<Table::Column> head{
            {fmt::format("{}: mJ / Mcycles", grid.name()), Align::right}};
        for (const int64_t x : grid.columns)
            head.push_back({fmt::format("{} wide", x), Align::right});
        Table table(head);
        for (const int64_t y : grid.rows) {
            std::vector<std::string> cells{fmt::format("{} high", y)};
            for (const int64_t x : grid.columns) {
                const SweepPoint* point = grid.at(sweep, x, y);
                cells.push_back(
                    point == nullptr || !point->fits
                        ? "-"
                        : fmt::format("{:.3f} / {:.2f}", point->energy_pj / 1e9,
                                      static_cast<double>(point->latency_cycles) / 1e6));
            }
            table.add(std::move(cells));
        }
        text += table.text() + "\n";
    }
    Table table({{"execution"}, {"mJ", Align::right}, {"Mcycles", Align::right}, {"tile"}});
    const auto row = [&](const std::string& name, double energy, int64_t latency,
                         const std::string& tile) {
        table.add({name, fmt::format("{:.4f}", energy / 1e9),
                   fmt::format("{:.3f}", static_cast<double>(latency) / 1e6), tile});
    };
    if (sweep.single_layer)
        row("single layers", sweep.single_layer->energy_pj, sweep.single_layer->latency_cycles, "");
    if (sweep.layer_by_layer)
        row("layer by layer", sweep.layer_by_layer->energy_pj, sweep.layer_by_layer->latency_cycles,
            "");
    const SweepPoint& best = sweep.points[*sweep.best];
    row("best point", best.energy_pj, best.latency_cycles, strategy_text(best.strategy));
    if (sweep.combination) {
        std::string tiles;
        for (const size_t n : sweep.combination->points)
            tiles += (tiles.empty() ? "" : ", ") + strategy_text(sweep.points[n].strategy);
        if (sweep.combination->points.size() > 1)
            row("best per stack", sweep.combination->energy_pj, sweep.combination->latency_cycles,
                tiles);
    }
    double most = 0, longest = 0, least = std::numeric_limits<double>::infinity(), shortest = least;
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        most = std::max(most, point.energy_pj);
        least = std::min(least, point.energy_pj);
        longest = std::max(longest, static_cast<double>(point.latency_cycles));
        shortest = std::min(shortest, static_cast<double>(point.latency_cycles));
    }
    Table front({{"front"},
                 {"mJ", Align::right},
                 {"Mcycles", Align::right},
                 {"on-chip memory", Align::right}});
    constexpr size_t most_rows = 12;
    for (size_t n = 0; n < std::min(most_rows, sweep.front.size()); ++n) {
        const SweepPoint& point = sweep.points[sweep.front[n]];
        front.add({strategy_text(point.strategy), fmt::format("{:.4f}", point.energy_pj / 1e9),
                   fmt::format("{:.3f}", static_cast<double>(point.latency_cycles) / 1e6),
                   bytes_text(point.on_chip_bits / 8)});
    }
    return text + table.text() + "\n" + front.text() +
           (sweep.front.size() > most_rows
                ? fmt::format("and {} more\n", sweep.front.size() - most_rows)
                : "") +
           fmt::format("spread {:.1f}x in energy, {:.1f}x in latency\n", most / least,
                       longest / shortest) +
           gap_text(worst_gap(sweep));
}

std::string cut_text(const DepthFirst& model, const depth_first::Cut& cut) {
    Table table({{"best cut: stack"},
                 {"tile"},
                 {"mJ", Align::right},
                 {"Mcycles", Align::right},
                 {"on-chip memory", Align::right}});
    const auto& layers = model.workload().layers;
    const auto row = [&](const std::string& name, const std::string& tile, double energy,
                         int64_t latency, int64_t bits) {
        table.add({name, tile, fmt::format("{:.4f}", energy / 1e9),
                   fmt::format("{:.3f}", static_cast<double>(latency) / 1e6),
                   bytes_text(bits / 8)});
    };
    for (const depth_first::ChosenStack& stack : cut.stacks) {
        const std::string first = layers[stack.layers.front()].name;
        row(stack.layers.size() == 1 ? first : first + ".." + layers[stack.layers.back()].name,
            strategy_text(stack.strategy), stack.cost.energy_pj, stack.cost.latency_cycles,
            stack.cost.on_chip_bits);
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

namespace {

/// A table whose cells are coloured by the logarithm of their value, light to dark.
std::string heat_map(const Sweep& sweep, const Grid& grid, const std::string& title,
                     const std::function<double(const SweepPoint&)>& value) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        least = std::min(least, value(point));
        most = std::max(most, value(point));
    }
    std::string html = fmt::format(
        "<figure><figcaption>{}</figcaption><table><tr><th>rows \\ columns</th>", title);
    for (const int64_t x : grid.columns) html += fmt::format("<th>{}</th>", x);
    html += "</tr>\n";
    for (const int64_t y : grid.rows) {
        html += fmt::format("<tr><th>{}</th>", y);
        for (const int64_t x : grid.columns) {
            const SweepPoint* point = grid.at(sweep, x, y);
            if (point == nullptr || !point->fits) {
                html += "<td>-</td>";
                continue;
            }
            const double share =
                most > least ? std::log(value(*point) / least) / std::log(most / least) : 0;
            html +=
                fmt::format("<td style=\"background:hsl(210 70% {:.0f}%);color:{}\">{:.3g}</td>",
                            94 - 64 * share, share > 0.5 ? "#fff" : "#000", value(*point));
        }
        html += "</tr>\n";
    }
    return html + "</table></figure>\n";
}

/// Energy against latency, logarithmic; points of the front lead to their numbers.
std::string front_chart(const Sweep& sweep) {
    constexpr double width = 640, height = 380, left = 90, bottom = 40, margin = 14;
    struct Scale {
        double low = std::numeric_limits<double>::infinity(), high = 0;
        void note(double value) {
            low = std::min(low, value);
            high = std::max(high, value);
        }
        [[nodiscard]] double share(double value) const {
            return high > low ? std::log(value / low) / std::log(high / low) : 0.5;
        }
    } energy, latency;
    const auto mcycles = [](const SweepPoint& point) {
        return static_cast<double>(point.latency_cycles) / 1e6;
    };
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        energy.note(point.energy_pj / 1e9);
        latency.note(mcycles(point));
    }
    const auto x = [&](double mj) { return left + energy.share(mj) * (width - left - margin); };
    const auto y = [&](double value) {
        return height - bottom - latency.share(value) * (height - bottom - margin);
    };
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
        "aria-label=\"energy against latency\">"
        "<path class=\"axis\" d=\"M{2} {3}V{4}H{5}\"/>",
        width, height, left, margin / 2, height - bottom + 6, width - margin / 2);
    for (const double share : {0.0, 0.5, 1.0}) {
        const double mj = energy.low * std::pow(energy.high / energy.low, share),
                     cycles = latency.low * std::pow(latency.high / latency.low, share);
        svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{:.3g}</text>",
                           x(mj), height - bottom + 20, share > 0.9 ? "end" : "middle", mj);
        svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{:.3g}</text>",
                           left - 6, y(cycles) + 4, cycles);
    }
    svg += fmt::format(
        "<text class=\"label\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">energy, mJ</text>",
        (left + width) / 2, height - 4);
    svg += fmt::format(
        "<text class=\"label\" x=\"14\" y=\"{0:.0f}\" text-anchor=\"middle\" "
        "transform=\"rotate(-90 14 "
        "{0:.0f})\">latency, million cycles</text>",
        height / 2 - 20);
    const auto title = [&](const SweepPoint& point) {
        return fmt::format("<title>{}: {:.4g} mJ, {:.4g} million cycles, {} on chip</title>",
                           strategy_text(point.strategy), point.energy_pj / 1e9, mcycles(point),
                           bytes_text(point.on_chip_bits / 8));
    };
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        svg +=
            fmt::format("<circle class=\"beaten\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\">{}</circle>",
                        x(point.energy_pj / 1e9), y(mcycles(point)), title(point));
    }
    for (size_t n = 0; n < sweep.front.size(); ++n) {
        const SweepPoint& point = sweep.points[sweep.front[n]];
        svg += fmt::format(
            "<a href=\"#point-{}\"><circle class=\"on-front\" cx=\"{:.1f}\" cy=\"{:.1f}\" "
            "r=\"6\">{}</circle></a>",
            n, x(point.energy_pj / 1e9), y(mcycles(point)), title(point));
    }
    return svg + "</svg>\n";
}

/// Energy of a point by memory and operand, stacked.
std::string energy_bars(const DepthFirst& model, const DepthFirstCost& cost) {
    constexpr std::array<std::pair<const char*, const char*>, 4> parts{
        {{"I", "i"}, {"W", "w"}, {"O", "o"}, {"copies", "copies"}}};
    struct Row {
        std::string name;
        std::array<double, 4> mj{};
        double mac_mj = 0;
        [[nodiscard]] double sum() const { return mj[0] + mj[1] + mj[2] + mj[3] + mac_mj; }
    };
    std::vector<Row> rows;
    double largest = 0;
    for (size_t m = 0; m < cost.words.size(); ++m) {
        const Memory& memory = model.machine().memories[m];
        Row row{memory.name};
        for (const Operand operand : all_operands)
            row.mj[static_cast<size_t>(operand)] =
                energy_of(memory, cost.words[m][static_cast<size_t>(operand)]) / 1e9;
        row.mj[3] = energy_of(memory, cost.copy_words[m]) / 1e9;
        rows.push_back(row);
    }
    rows.push_back({"multiply-accumulate", {}, cost.mac_pj / 1e9});
    for (const Row& row : rows) largest = std::max(largest, row.sum());
    std::string html = "<p>";
    for (const auto& [name, style] : parts)
        html += fmt::format("<span class=\"key\"><i class=\"{}\"></i>{}</span>", style, name);
    html += "</p>\n<figure><table><tr><th>mJ</th><th></th>";
    for (const auto& [name, style] : parts) html += fmt::format("<th>{}</th>", name);
    html += "<th>sum</th></tr>\n";
    for (const Row& row : rows) {
        html += fmt::format("<tr><th>{}</th><td><div class=\"bar\">", escaped(row.name));
        const auto piece = [&](const char* style, const char* name, double mj) {
            if (mj > 0)
                html += fmt::format(
                    "<i class=\"{}\" style=\"width:{:.2f}%\" title=\"{} {:.4g} mJ\"></i>", style,
                    100 * mj / largest, name, mj);
        };
        for (size_t part = 0; part < parts.size(); ++part)
            piece(parts[part].second, parts[part].first, row.mj[part]);
        piece("mac", "multiply-accumulate", row.mac_mj);
        html += "</div></td>";
        for (const double mj : row.mj)
            html += mj > 0 ? fmt::format("<td>{:.4g}</td>", mj) : "<td></td>";
        html += fmt::format("<td>{:.4g}</td></tr>\n", row.sum());
    }
    return html + "</table></figure>\n";
}

}  // namespace

std::string sweep_page(const DepthFirst& model, const Sweep& sweep, const SweepPageNotes& notes) {
    const SweepPoint& best = sweep.points[*sweep.best];
    const auto millions = [](int64_t cycles) {
        return fmt::format("{:.4g} million", static_cast<double>(cycles) / 1e6);
    };
    std::vector<Card> cards{{"best tile", strategy_text(best.strategy)},
                            {"energy", fmt::format("{:.4g} mJ", best.energy_pj / 1e9)},
                            {"latency, cycles", millions(best.latency_cycles)},
                            {"would fit on chip in", bytes_text(best.on_chip_bits / 8)}};
    if (sweep.layer_by_layer)
        cards.push_back(
            {"layer by layer: energy",
             fmt::format("{:.2f} x", sweep.layer_by_layer->energy_pj / best.energy_pj)});
    if (sweep.single_layer)
        cards.push_back({"single layers: energy",
                         fmt::format("{:.2f} x", sweep.single_layer->energy_pj / best.energy_pj)});
    std::string body = cards_html(cards);
    body +=
        "<section>\n<h2>Energy, latency and on-chip memory</h2>\n<p class=\"hint\">Filled: no "
        "other tile has less of "
        "one and no more of the others. Point at a dot for its "
        "numbers, follow it to its loop nest.</p>\n<figure>" +
        front_chart(sweep) + "</figure>\n";
    for (size_t n = 0; n < sweep.front.size(); ++n) {
        const SweepPoint& point = sweep.points[sweep.front[n]];
        body += fmt::format(
            "<details id=\"point-{}\"><summary>{}: {:.4g} mJ, {} cycles, {} on chip</summary>\n", n,
            strategy_text(point.strategy), point.energy_pj / 1e9, millions(point.latency_cycles),
            bytes_text(point.on_chip_bits / 8));
        body += n < notes.nests.size() && !notes.nests[n].empty()
                    ? "<pre>" + escaped(notes.nests[n]) + "</pre>"
                    : "<p>No schedule of this program.</p>";
        body += "</details>\n";
    }
    if (notes.has_schedules)
        body +=
            "<p><a href=\"schedules.html\">The schedules of these points</a>: memory over time, "
            "traffic per tensor and "
            "layer.</p>\n";
    body += "</section>\n";
    for (const Grid& grid : grids(sweep)) {
        body += fmt::format("<section>\n<h2>{}</h2>\n<div class=\"row\">\n", grid.name());
        body += heat_map(sweep, grid, "energy, mJ",
                         [](const SweepPoint& point) { return point.energy_pj / 1e9; });
        body += heat_map(sweep, grid, "latency, million cycles", [](const SweepPoint& point) {
            return static_cast<double>(point.latency_cycles) / 1e6;
        });
        body += "</div>\n</section>\n";
    }
    body += fmt::format("<section>\n<h2>Best point by memory and operand</h2>\n{}</section>\n",
                        energy_bars(model, model.cost(best.strategy, false)));
    return plain_page(fmt::format("{} on {}, depth first", notes.network, model.machine().name),
                      notes.about, body);
}

}  // namespace laminate::cli
