#include "papers/depth_first/sweep_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "answers/chart.h"
#include "answers/output.h"
#include "answers/page.h"
#include "papers/depth_first/report.h"

namespace laminate::cli {

using depth_first::DepthFirst;
using depth_first::DepthFirstCost;
using depth_first::Sweep;
using depth_first::SweepPoint;

namespace {

/// Units in which the best point's numbers are neither tiny nor huge.
struct Units {
    double picojoules, cycles;
    const char* energy;
    const char* latency;
    explicit Units(const SweepPoint& best)
        : picojoules(best.energy_pj >= 1e8 ? 1e9 : best.energy_pj >= 1e5 ? 1e6 : 1e3),
          cycles(best.latency_cycles >= 100'000 ? 1e6 : 1),
          energy(best.energy_pj >= 1e8 ? "mJ" : best.energy_pj >= 1e5 ? "µJ" : "nJ"),
          latency(best.latency_cycles >= 100'000 ? "million cycles" : "cycles") {}
    [[nodiscard]] double energy_of(double pj) const { return pj / picojoules; }
    [[nodiscard]] double latency_of(int64_t number) const {
        return static_cast<double>(number) / cycles;
    }
    [[nodiscard]] std::string energy_text(double pj) const {
        return short_number(energy_of(pj)) + " " + energy;
    }
    [[nodiscard]] std::string latency_text(int64_t number) const {
        return short_number(latency_of(number)) + " " + latency;
    }
    /// "4x72 fully-cached: 1.81 mJ, 19.6 million cycles, 282.2 KiB on chip".
    [[nodiscard]] std::string text(const SweepPoint& point) const {
        return fmt::format("{}: {}, {}, {} on chip", strategy_text(point.strategy),
                           energy_text(point.energy_pj), latency_text(point.latency_cycles),
                           bytes_text(point.on_chip_bits / 8));
    }
};

/// One quantity of every point: a table by rows and columns of the tile for each overlap mode, its
/// cells coloured by the logarithm of their value, light to dark, on one scale for all tables.
std::string heat_maps(const Sweep& sweep, const std::string& title, const std::string& unit,
                      const std::function<double(const SweepPoint&)>& value) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        least = std::min(least, value(point));
        most = std::max(most, value(point));
    }
    const auto map = [&](const SweepGrid& grid) {
        std::string html = fmt::format(
            "<figure class=\"map\"><figcaption>{}</figcaption><table><tr><th></th>",
            escaped(grid.name()));
        for (const int64_t x : grid.columns) html += fmt::format("<th>{} wide</th>", x);
        html += "</tr>\n";
        for (const int64_t y : grid.rows) {
            html += fmt::format("<tr><th>{} high</th>", y);
            for (const int64_t x : grid.columns) {
                const SweepPoint* point = grid.at(sweep, x, y);
                if (point == nullptr || !point->fits) {
                    html += "<td title=\"does not fit\">-</td>";
                    continue;
                }
                const double share =
                    most > least ? std::log(value(*point) / least) / std::log(most / least) : 0;
                html += fmt::format(
                    "<td{} style=\"background:hsl(210 70% {:.0f}%);color:{}\">{}</td>",
                    value(*point) == least ? " class=\"best\"" : "", 94 - 64 * share,
                    share > 0.7 ? "#fff" : "#000", short_number(value(*point)));
            }
            html += "</tr>\n";
        }
        return html + "</table></figure>\n";
    };
    std::string html = fmt::format(
        "<section>\n<h2>{0}, {1}</h2>\n<p class=\"scale\"><span>{2} {1}</span><i></i><span>{3} "
        "{1}</span></p>\n<div class=\"row maps\">\n",
        title, unit, short_number(least), short_number(most));
    for (const SweepGrid& grid : grids(sweep)) html += map(grid);
    return html + "</div>\n</section>\n";
}

/// A chart of energy against latency with logarithmic axes. Points of the front link to their
/// numbers.
std::string front_chart(const Sweep& sweep, const Units& units) {
    constexpr ChartFrame frame{.width = 620, .height = 400};
    std::vector<double> energies, latencies;
    for (const SweepPoint& point : sweep.points) {
        if (!point.fits) continue;
        energies.push_back(units.energy_of(point.energy_pj));
        latencies.push_back(units.latency_of(point.latency_cycles));
    }
    const LogAxis x = frame.across(energies), y = frame.up(latencies);
    const auto dot = [&](const SweepPoint& point, const char* style, int radius) {
        return fmt::format(
            "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}</title></circle>",
            style, x.at(units.energy_of(point.energy_pj)),
            y.at(units.latency_of(point.latency_cycles)), radius, escaped(units.text(point)));
    };
    std::string dots;
    for (const SweepPoint& point : sweep.points)
        if (point.fits) dots += dot(point, "beaten", 3);
    for (size_t n = 0; n < sweep.front.size(); ++n)
        dots += fmt::format("<a href=\"#point-{}\" aria-label=\"{}\">{}</a>", n,
                            escaped(units.text(sweep.points[sweep.front[n]])),
                            dot(sweep.points[sweep.front[n]], "on-front", 6));
    return frame.svg("energy against latency",
                     {x, 10, short_number, fmt::format("energy, {}", units.energy)},
                     {y, 10, short_number, fmt::format("latency, {}", units.latency)}, dots);
}

/// A table with stacked bars of a point's energy by memory and operand.
std::string energy_bars(const DepthFirst& model, const DepthFirstCost& cost, const Units& units) {
    constexpr std::array<std::pair<const char*, const char*>, 4> parts{
        {{"I", "i"}, {"W", "w"}, {"O", "o"}, {"copies", "copies"}}};
    struct Row {
        std::string name;
        std::array<double, 4> pj{};  ///< parallel to `parts`
        double mac_pj = 0;
        [[nodiscard]] double sum() const { return pj[0] + pj[1] + pj[2] + pj[3] + mac_pj; }
    };
    std::vector<Row> rows;
    double largest = 0;
    for (size_t m = 0; m < cost.words.size(); ++m) {
        const Memory& memory = model.machine().memories[m];
        const auto pj = [&](const depth_first::WordCounts& words) {
            return energy_of(memory, words);
        };
        const auto& words = cost.words[m];
        rows.push_back({memory.name,
                        {pj(words[Operand::input]), pj(words[Operand::weight]),
                         pj(words[Operand::output]), pj(cost.copy_words[m])}});
    }
    rows.push_back({"multiply-accumulate", {}, cost.mac_pj});
    for (const Row& row : rows) largest = std::max(largest, row.sum());
    std::string html = "<p>";
    for (const auto& [name, style] : parts)
        html += fmt::format("<span class=\"key\"><i class=\"{}\"></i>{}</span>", style, name);
    html += fmt::format("</p>\n<figure><table class=\"wide\"><tr><th>{}</th><th></th>", units.energy);
    for (const auto& [name, style] : parts) html += fmt::format("<th>{}</th>", name);
    html += "<th>sum</th></tr>\n";
    for (const Row& row : rows) {
        html += fmt::format("<tr><th>{}</th><td><div class=\"bar\">", escaped(row.name));
        const auto piece = [&](const char* style, const char* name, double pj) {
            if (pj > 0)
                html += fmt::format(
                    "<i class=\"{}\" style=\"width:{:.2f}%\" title=\"{} {}\"></i>", style,
                    100 * pj / largest, name, units.energy_text(pj));
        };
        for (size_t part = 0; part < parts.size(); ++part)
            piece(parts[part].second, parts[part].first, row.pj[part]);
        piece("mac", "multiply-accumulate", row.mac_pj);
        html += "</div></td>";
        for (const double pj : row.pj)
            html += pj > 0 ? fmt::format("<td>{}</td>", short_number(units.energy_of(pj)))
                           : "<td></td>";
        html += fmt::format("<td>{}</td></tr>\n", short_number(units.energy_of(row.sum())));
    }
    return html + "</table></figure>\n";
}

/// "Tile 4x72 fully-cached takes 1.81 mJ and 19.6 million cycles: 10.5 times less energy than layer
/// by layer, 1.49 times as fast."
std::string headline(const Sweep& sweep, const Units& units) {
    const SweepPoint& best = sweep.points[*sweep.best];
    std::string text = fmt::format("Tile {} takes {} and {}", strategy_text(best.strategy),
                                   units.energy_text(best.energy_pj),
                                   units.latency_text(best.latency_cycles));
    if (!sweep.layer_by_layer) return text + ".";
    const auto compared = [](double other, double own, const char* less, const char* more) {
        return other >= own ? short_number(other / own) + less : short_number(own / other) + more;
    };
    return text + fmt::format(": {} than layer by layer, {}.",
                              compared(sweep.layer_by_layer->energy_pj, best.energy_pj,
                                       " times less energy", " times more energy"),
                              compared(static_cast<double>(sweep.layer_by_layer->latency_cycles),
                                       static_cast<double>(best.latency_cycles), " times as fast",
                                       " times slower"));
}

/// The points of the front: a chart, and beside it their loop nests.
std::string front_section(const Sweep& sweep, const Units& units, const SweepPageNotes& notes) {
    std::string html =
        "<section>\n<h2>Energy, latency and on-chip memory</h2>\n<p class=\"hint\">Filled dots: no "
        "other tile has less of one and no more of the others. Point at a dot for its numbers; "
        "follow it to its loop nest.</p>\n<div class=\"row\"><figure>" +
        front_chart(sweep, units) + "</figure>\n<div class=\"list\">\n";
    for (size_t n = 0; n < sweep.front.size(); ++n) {
        html += fmt::format("<details id=\"point-{}\"><summary>{}</summary>\n", n,
                            escaped(units.text(sweep.points[sweep.front[n]])));
        html += n < notes.nests.size() && !notes.nests[n].empty()
                    ? "<pre tabindex=\"0\">" + escaped(notes.nests[n]) + "</pre>"
                    : "<p>This point has no schedule.</p>";
        html += "</details>\n";
    }
    if (notes.has_schedules)
        html +=
            "<p><a href=\"schedules.html\">The schedules of these points</a>: memory over time, "
            "traffic per tensor and layer.</p>\n";
    return html + "</div></div>\n</section>\n";
}

}  // namespace

std::string sweep_page(const DepthFirst& model, const Sweep& sweep, const SweepPageNotes& notes) {
    const SweepPoint& best = sweep.points[*sweep.best];
    const Units units(best);
    std::vector<Card> cards{{"best tile", strategy_text(best.strategy)},
                            {"energy", units.energy_text(best.energy_pj)},
                            {"latency", units.latency_text(best.latency_cycles)},
                            {"would fit on chip in", bytes_text(best.on_chip_bits / 8)}};
    const auto times = [&](const SweepPoint& other) {
        return fmt::format("{} × this", short_number(other.energy_pj / best.energy_pj));
    };
    if (sweep.layer_by_layer)
        cards.push_back({"energy layer by layer", times(*sweep.layer_by_layer)});
    if (sweep.single_layer)
        cards.push_back({"energy of single layers", times(*sweep.single_layer)});
    std::string body = fmt::format("<p class=\"headline\">{}</p>\n{}", escaped(headline(sweep, units)),
                                   cards_html(cards));
    const depth_first::TileSize& tile = best.strategy.tile;
    body += fmt::format(
        "<p class=\"hint\">A tile {0}x{1} is {0} columns wide, which is across in the maps below, "
        "and {1} rows high, which is down. The outlined tile is the best of all maps.</p>\n",
        tile.x, tile.y);
    body += heat_maps(sweep, "Energy", units.energy,
                      [&](const SweepPoint& point) { return units.energy_of(point.energy_pj); });
    body += heat_maps(sweep, "Latency", units.latency, [&](const SweepPoint& point) {
        return units.latency_of(point.latency_cycles);
    });
    body += front_section(sweep, units, notes);
    body += fmt::format("<section>\n<h2>Best point by memory and operand</h2>\n{}</section>\n",
                        energy_bars(model, model.cost(best.strategy, false), units));
    return plain_page(fmt::format("{} on {}, depth first", notes.network, model.machine().name),
                      notes.about, body);
}

}  // namespace laminate::cli
