#include "papers/depth_first/sweep_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "answers/output.h"
#include "answers/page.h"
#include "papers/depth_first/report.h"

namespace laminate::cli {

using depth_first::DepthFirst;
using depth_first::DepthFirstCost;
using depth_first::Sweep;
using depth_first::SweepPoint;

namespace {

/// A table with cells coloured by the logarithm of their value, light to dark.
std::string heat_map(const Sweep& sweep, const SweepGrid& grid, const std::string& title,
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

/// A chart of energy against latency with logarithmic axes. Points of the front link to their
/// numbers.
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
        "transform=\"rotate(-90 14 {0:.0f})\">latency, million cycles</text>",
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

/// A table with stacked bars of a point's energy by memory and operand.
std::string energy_bars(const DepthFirst& model, const DepthFirstCost& cost) {
    constexpr std::array<std::pair<const char*, const char*>, 4> parts{
        {{"I", "i"}, {"W", "w"}, {"O", "o"}, {"copies", "copies"}}};
    struct Row {
        std::string name;
        std::array<double, 4> mj{};  ///< parallel to `parts`
        double mac_mj = 0;
        [[nodiscard]] double sum() const { return mj[0] + mj[1] + mj[2] + mj[3] + mac_mj; }
    };
    std::vector<Row> rows;
    double largest = 0;
    for (size_t m = 0; m < cost.words.size(); ++m) {
        const Memory& memory = model.machine().memories[m];
        const auto mj = [&](const depth_first::WordCounts& words) {
            return energy_of(memory, words) / 1e9;
        };
        const auto& words = cost.words[m];
        rows.push_back({memory.name,
                        {mj(words[Operand::input]), mj(words[Operand::weight]),
                         mj(words[Operand::output]), mj(cost.copy_words[m])}});
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
        "<section>\n<h2>Energy, latency and on-chip memory</h2>\n<p class=\"hint\">Filled dots: no "
        "other tile has less of one and no more of the others. Point at a dot for its numbers; "
        "follow it to its loop nest.</p>\n<figure>" +
        front_chart(sweep) + "</figure>\n";
    for (size_t n = 0; n < sweep.front.size(); ++n) {
        const SweepPoint& point = sweep.points[sweep.front[n]];
        body += fmt::format(
            "<details id=\"point-{}\"><summary>{}: {:.4g} mJ, {} cycles, {} on chip</summary>\n", n,
            strategy_text(point.strategy), point.energy_pj / 1e9, millions(point.latency_cycles),
            bytes_text(point.on_chip_bits / 8));
        body += n < notes.nests.size() && !notes.nests[n].empty()
                    ? "<pre>" + escaped(notes.nests[n]) + "</pre>"
                    : "<p>This point has no schedule.</p>";
        body += "</details>\n";
    }
    if (notes.has_schedules)
        body +=
            "<p><a href=\"schedules.html\">The schedules of these points</a>: memory over time, "
            "traffic per tensor and layer.</p>\n";
    body += "</section>\n";
    for (const SweepGrid& grid : grids(sweep)) {
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
