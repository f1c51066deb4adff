#include "cli/depth_first_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/output.h"

namespace laminate::cli {

namespace {

using depth_first::DepthFirst;
using depth_first::DepthFirstCost;
using depth_first::WordCounts;

double energy_of(const Memory& memory, const WordCounts& words) {
    return memory.read.word_pj * words.reads() + memory.write.word_pj * words.writes();
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
    options.add_flag("--as-published", as_published, "The paper's public artifact to the letter, with its quirks (docs/defines.md)");
    options.add_option("--quirk", quirks, "One of the artifact's quirks alone (docs/defines.md)")->delimiter(',')->type_name("NAME");
    options.add_option("--lpf-limit", lpf_limit,
                       "Map layers by orders of at most N merged prime factors, as LOMA does; 0: all factors and allocations, exactly")
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

depth_first::TileSize parse_tile(const std::string& text) {
    depth_first::TileSize tile;
    const size_t cross = text.find('x');
    const auto number = [&](size_t begin, size_t end, int64_t& value) {
        const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
        return error == std::errc() && stop == text.data() + end && value >= 1;
    };
    if (cross == std::string::npos || !number(0, cross, tile.x) || !number(cross + 1, text.size(), tile.y))
        throw UsageError(fmt::format("tile: found \"{}\", expected COLUMNSxROWS as in 60x72", text));
    return tile;
}

std::string depth_first_text(const DepthFirst& model, const DepthFirstCost& cost) {
    Table table({{"memory"}, {"I uJ", Align::right}, {"W uJ", Align::right}, {"O uJ", Align::right}, {"copies uJ", Align::right},
                 {"sum uJ", Align::right}});
    const auto micro = [](double pj) { return fmt::format("{:.2f}", pj / 1e6); };
    const std::vector<Memory>& memories = model.machine().memories;
    for (size_t m = 0; m < memories.size(); ++m) {
        std::vector<std::string> cells{memories[m].name};
        double sum = 0;
        for (const Operand operand : all_operands) {
            const double energy = energy_of(memories[m], cost.words[m][static_cast<size_t>(operand)]);
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
        stacks += stack.size() == 1 ? layers[stack.front()].name : layers[stack.front()].name + ".." + layers[stack.back()].name;
    }
    return table.text() + fmt::format("{:.4f} mJ, {} cycles, {} MACs, {} kinds of tiles\n{} stack{}: {}", cost.energy_pj / 1e9,
                                      grouped(cost.latency_cycles), grouped(cost.macs), cost.tile_kinds, cost.stacks.size(),
                                      cost.stacks.size() == 1 ? "" : "s", stacks);
}

nlohmann::ordered_json depth_first_json(const DepthFirst& model, const depth_first::Strategy& strategy, const DepthFirstCost& cost) {
    auto memories = nlohmann::ordered_json::array();
    for (size_t m = 0; m < cost.words.size(); ++m) {
        const Memory& memory = model.machine().memories[m];
        nlohmann::ordered_json entry{{"memory", memory.name}};
        for (const Operand operand : all_operands) {
            if (memory.serves(operand)) entry[to_string(operand)] = words_json(memory, cost.words[m][static_cast<size_t>(operand)]);
        }
        entry["copies"] = words_json(memory, cost.copy_words[m]);
        memories.push_back(std::move(entry));
    }
    auto stacks = nlohmann::ordered_json::array();
    for (const std::vector<size_t>& stack : cost.stacks) {
        auto names = nlohmann::ordered_json::array();
        for (const size_t layer : stack) names.push_back(model.workload().layers[layer].name);
        stacks.push_back(std::move(names));
    }
    return {{"tile_columns", strategy.tile.x},
            {"tile_rows", strategy.tile.y},
            {"overlap", depth_first::to_string(strategy.overlap)},
            {"stack_rule", depth_first::to_string(strategy.stacks)},
            {"energy_pj", cost.energy_pj},
            {"mac_energy_pj", cost.mac_pj},
            {"copy_energy_pj", cost.copy_pj},
            {"latency_cycles", cost.latency_cycles},
            {"macs", cost.macs},
            {"tile_kinds", cost.tile_kinds},
            {"stacks", stacks},
            {"memories", memories}};
}

namespace {

using depth_first::Overlap;
using depth_first::Sweep;
using depth_first::SweepPoint;

nlohmann::ordered_json point_json(const SweepPoint& point) {
    nlohmann::ordered_json json{{"overlap", depth_first::to_string(point.strategy.overlap)},
                                {"tile_columns", point.strategy.tile.x},
                                {"tile_rows", point.strategy.tile.y},
                                {"stack_rule", depth_first::to_string(point.strategy.stacks)},
                                {"fits", point.fits}};
    if (point.fits) {
        json["energy_pj"] = point.energy_pj;
        json["latency_cycles"] = point.latency_cycles;
        json["macs"] = point.macs;
    }
    return json;
}

/// Points of one overlap mode as a grid.
struct Grid {
    Overlap overlap;
    std::vector<int64_t> columns, rows;
    [[nodiscard]] const SweepPoint* at(const Sweep& sweep, int64_t x, int64_t y) const {
        for (const SweepPoint& point : sweep.points) {
            if (point.strategy.overlap == overlap && point.strategy.tile == depth_first::TileSize{x, y}) return &point;
        }
        return nullptr;
    }
};

std::vector<Grid> grids(const Sweep& sweep) {
    std::vector<Grid> result;
    const auto note = [](std::vector<int64_t>& sizes, int64_t size) {
        if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
    };
    for (const SweepPoint& point : sweep.points) {
        if (result.empty() || result.back().overlap != point.strategy.overlap) result.push_back({point.strategy.overlap, {}, {}});
        note(result.back().columns, point.strategy.tile.x);
        note(result.back().rows, point.strategy.tile.y);
    }
    return result;
}

std::string tile_text(const SweepPoint& point) {
    return fmt::format("{}x{} {}", point.strategy.tile.x, point.strategy.tile.y, depth_first::to_string(point.strategy.overlap));
}

}  // namespace

std::string sweep_text(const DepthFirst&, const Sweep& sweep) {
    std::string text;
    for (const Grid& grid : grids(sweep)) {
        std::vector<Table::Column> head{{fmt::format("{}: mJ / Mcycles", depth_first::to_string(grid.overlap)), Align::right}};
        for (const int64_t x : grid.columns) head.push_back({fmt::format("{} wide", x), Align::right});
        Table table(head);
        for (const int64_t y : grid.rows) {
            std::vector<std::string> cells{fmt::format("{} high", y)};
            for (const int64_t x : grid.columns) {
                const SweepPoint* point = grid.at(sweep, x, y);
                cells.push_back(point == nullptr || !point->fits
                                    ? "-"
                                    : fmt::format("{:.3f} / {:.2f}", point->energy_pj / 1e9, static_cast<double>(point->latency_cycles) / 1e6));
            }
            table.add(std::move(cells));
        }
        text += table.text() + "\n";
    }
    Table table({{"execution"}, {"mJ", Align::right}, {"Mcycles", Align::right}, {"tile"}});
    const auto row = [&](const std::string& name, double energy, int64_t latency, const std::string& tile) {
        table.add({name, fmt::format("{:.4f}", energy / 1e9), fmt::format("{:.3f}", static_cast<double>(latency) / 1e6), tile});
    };
    if (sweep.single_layer) row("single layers", sweep.single_layer->energy_pj, sweep.single_layer->latency_cycles, "");
    if (sweep.layer_by_layer) row("layer by layer", sweep.layer_by_layer->energy_pj, sweep.layer_by_layer->latency_cycles, "");
    const SweepPoint& best = sweep.points[*sweep.best];
    row("best point", best.energy_pj, best.latency_cycles, tile_text(best));
    if (sweep.combination) {
        std::string tiles;
        for (const size_t n : sweep.combination->points) tiles += (tiles.empty() ? "" : ", ") + tile_text(sweep.points[n]);
        if (sweep.combination->points.size() > 1)
            row("best per stack", sweep.combination->energy_pj, sweep.combination->latency_cycles, tiles);
    }
    double most = 0, longest = 0, least = std::numeric_limits<double>::infinity(), shortest = least;
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        most = std::max(most, point.energy_pj);
        least = std::min(least, point.energy_pj);
        longest = std::max(longest, static_cast<double>(point.latency_cycles));
        shortest = std::min(shortest, static_cast<double>(point.latency_cycles));
    }
    return text + table.text() + fmt::format("spread {:.1f}x in energy, {:.1f}x in latency", most / least, longest / shortest);
}

nlohmann::ordered_json sweep_json(const DepthFirst& model, const Sweep& sweep) {
    auto points = nlohmann::ordered_json::array();
    for (const SweepPoint& point : sweep.points) points.push_back(point_json(point));
    nlohmann::ordered_json json{{"points", points}, {"best", point_json(sweep.points[*sweep.best])}, {"front", sweep.front}};
    if (sweep.layer_by_layer) json["layer_by_layer"] = point_json(*sweep.layer_by_layer);
    if (sweep.single_layer) json["single_layer"] = point_json(*sweep.single_layer);
    if (sweep.combination) {
        auto stacks = nlohmann::ordered_json::array();
        const auto all = model.stacks(sweep.points[*sweep.best].strategy.stacks);
        for (size_t stack = 0; stack < all.size(); ++stack) {
            nlohmann::ordered_json entry{{"first", model.workload().layers[all[stack].front()].name},
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
    std::string csv = "overlap,tile_columns,tile_rows,energy_pj,latency_cycles,macs\n";
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        csv += fmt::format("{},{},{},{:.17g},{},{}\n", depth_first::to_string(point.strategy.overlap), point.strategy.tile.x,
                           point.strategy.tile.y, point.energy_pj, point.latency_cycles, point.macs);
    }
    return csv;
}

namespace {

/// A table whose cells are coloured by the logarithm of their value, light to dark.
std::string heat_map(const Sweep& sweep, const Grid& grid, const std::string& title, const std::function<double(const SweepPoint&)>& value) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        least = std::min(least, value(point));
        most = std::max(most, value(point));
    }
    std::string html = fmt::format("<figure><figcaption>{}</figcaption><table><tr><th>rows \\ columns</th>", title);
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
            const double share = most > least ? std::log(value(*point) / least) / std::log(most / least) : 0;
            html += fmt::format("<td style=\"background:hsl(210 70% {:.0f}%);color:{}\">{:.3g}</td>", 94 - 64 * share,
                                share > 0.5 ? "#fff" : "#000", value(*point));
        }
        html += "</tr>\n";
    }
    return html + "</table></figure>\n";
}

}  // namespace

std::string sweep_page(const DepthFirst& model, const Sweep& sweep, const std::string& network) {
    std::string html = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0} on {1}</title>\n"
        "<style>body{{font:14px system-ui;margin:2em;max-width:75em}}figure{{display:inline-block;margin:0 2em 2em 0}}"
        "td,th{{padding:.3em .6em;text-align:right}}figcaption{{font-weight:600;margin-bottom:.4em}}"
        ".bar{{height:1.1em;display:inline-block}}</style>\n<h1>{0} on {1}, depth first</h1>\n",
        network, model.machine().name);
    for (const Grid& grid : grids(sweep)) {
        html += fmt::format("<h2>{}</h2>\n", depth_first::to_string(grid.overlap));
        html += heat_map(sweep, grid, "energy, mJ", [](const SweepPoint& point) { return point.energy_pj / 1e9; });
        html += heat_map(sweep, grid, "latency, million cycles", [](const SweepPoint& point) { return static_cast<double>(point.latency_cycles) / 1e6; });
    }
    // Energy of the best point by memory and operand, stacked.
    const SweepPoint& best = sweep.points[*sweep.best];
    const DepthFirstCost cost = model.cost(best.strategy, false);
    html += fmt::format("<h2>Best point {}: {:.4f} mJ by memory and operand</h2>\n<table>\n", tile_text(best), cost.energy_pj / 1e9);
    const std::array<std::pair<const char*, const char*>, 4> parts{{{"I", "#4c78a8"}, {"W", "#f58518"}, {"O", "#54a24b"}, {"copies", "#888"}}};
    for (size_t m = 0; m < cost.words.size(); ++m) {
        const Memory& memory = model.machine().memories[m];
        std::array<double, 4> energies{};
        for (const Operand operand : all_operands)
            energies[static_cast<size_t>(operand)] = energy_of(memory, cost.words[m][static_cast<size_t>(operand)]);
        energies[3] = energy_of(memory, cost.copy_words[m]);
        html += fmt::format("<tr><th>{}</th><td style=\"text-align:left\">", memory.name);
        double sum = 0;
        for (size_t part = 0; part < parts.size(); ++part) {
            sum += energies[part];
            html += fmt::format("<span class=\"bar\" style=\"width:{:.2f}em;background:{}\" title=\"{} {:.4f} mJ\"></span>",
                                40 * energies[part] / cost.energy_pj, parts[part].second, parts[part].first, energies[part] / 1e9);
        }
        html += fmt::format("</td><td>{:.4f} mJ</td></tr>\n", sum / 1e9);
    }
    html += fmt::format("<tr><th>multiply-accumulate</th><td style=\"text-align:left\"><span class=\"bar\" style=\"width:{:.2f}em;background:#b279a2\">"
                        "</span></td><td>{:.4f} mJ</td></tr>\n</table>\n<p>",
                        40 * cost.mac_pj / cost.energy_pj, cost.mac_pj / 1e9);
    for (const auto& [name, colour] : parts) html += fmt::format("<span style=\"color:{}\">&#9632;</span> {} &nbsp; ", colour, name);
    return html + "</p></html>\n";
}

}  // namespace laminate::cli
