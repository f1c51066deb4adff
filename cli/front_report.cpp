#include "cli/front_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/output.h"

namespace laminate::cli {

namespace {

std::string file_of(size_t n) { return fmt::format("{:04}.json", n); }

std::string escaped(const std::string& text) {
    std::string html;
    for (const char c : text) {
        switch (c) {
            case '&':
                html += "&amp;";
                break;
            case '<':
                html += "&lt;";
                break;
            case '>':
                html += "&gt;";
                break;
            case '"':
                html += "&quot;";
                break;
            default:
                html += c;
        }
    }
    return html;
}

/// Values on a logarithmic axis between two ends of the drawing.
class LogAxis {
public:
    LogAxis(double low, double high, double from, double to)
        : low_(std::log(low)), span_(std::max(1e-9, std::log(high) - low_)), from_(from), to_(to) {}
    [[nodiscard]] double operator()(double value) const {
        return from_ + (std::log(value) - low_) / span_ * (to_ - from_);
    }

private:
    double low_, span_, from_, to_;
};

std::string drawing(const Front& front) {
    const auto accesses = [](const FrontPoint& p) {
        return static_cast<double>(std::max<int64_t>(1, p.counts.accesses.value()));
    };
    const auto bytes = [](const FrontPoint& p) {
        return static_cast<double>(std::max<int64_t>(1, to_bytes(p.counts.live_total).value()));
    };
    double fewest = HUGE_VAL, most = 1, smallest = HUGE_VAL, largest = 1;
    for (const FrontPoint& point : front.points) {
        fewest = std::min(fewest, accesses(point));
        most = std::max(most, accesses(point));
        smallest = std::min(smallest, bytes(point));
        largest = std::max(largest, bytes(point));
    }
    constexpr double width = 720, height = 360, margin = 60;
    const LogAxis x(smallest, largest, margin, width - margin), y(fewest, most, height - margin, margin);
    std::string svg =
        fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n", width, height);
    svg += fmt::format("<path d=\"M{0} {0} V{1} H{2}\" fill=\"none\" stroke=\"#888\"/>\n", margin, height - margin,
                       width - margin);
    for (size_t n = 0; n < front.points.size(); ++n) {
        const FrontPoint& point = front.points[n];
        svg += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {} accesses, {}, {} MACs</title></circle>\n",
            x(bytes(point)), y(accesses(point)), file_of(n), grouped(point.counts.accesses.value()),
            bytes_text(to_bytes(point.counts.live_total).value()), grouped(point.counts.macs.value()));
    }
    const auto label = [&](double at_x, double at_y, const char* anchor, const std::string& text) {
        svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", at_x, at_y, anchor, text);
    };
    label(margin, height - margin + 18, "start", bytes_text(static_cast<int64_t>(smallest)));
    label(width - margin, height - margin + 18, "end", bytes_text(static_cast<int64_t>(largest)));
    label(width / 2, height - margin + 36, "middle", "memory held at once (logarithmic)");
    label(margin, margin - 8, "start",
          grouped(static_cast<int64_t>(most)) + " external accesses (elements, logarithmic)");
    label(margin + 6, height - margin - 6, "start", grouped(static_cast<int64_t>(fewest)));
    return svg + "</svg>\n";
}

}  // namespace

std::string front_table(const Front& front, size_t most) {
    Table table({{"file"},
                 {"accesses", Align::right},
                 {"memory", Align::right},
                 {"MACs", Align::right},
                 {"groups", Align::right}});
    const size_t count = front.points.size(), rows = std::min(count, most);
    for (size_t row = 0; row < rows; ++row) {
        const size_t n = rows == 1 ? 0 : row * (count - 1) / (rows - 1);
        const FrontPoint& point = front.points[n];
        table.add({file_of(n), grouped(point.counts.accesses.value()),
                   bytes_text(to_bytes(point.counts.live_total).value()), grouped(point.counts.macs.value()),
                   std::to_string(point.schedule.groups().size())});
    }
    return table.text();
}

nlohmann::ordered_json front_json(const Network& network, const Front& front, bool is_complete) {
    auto points = nlohmann::ordered_json::array();
    for (size_t n = 0; n < front.points.size(); ++n) {
        const FrontPoint& point = front.points[n];
        points.push_back({{"file", file_of(n)},
                          {"accesses_elements", point.counts.accesses.value()},
                          {"live_total_elements", point.counts.live_total.value()},
                          {"live_bytes", to_bytes(point.counts.live_total).value()},
                          {"macs", point.counts.macs.value()},
                          {"groups", point.schedule.groups().size()},
                          {"schedule", to_text(point.schedule)}});
    }
    return {{"schema", "laminate.front"},
            {"version", 1},
            {"model", "two-level"},
            {"network", network.name},
            {"network_hash", network_hash(network)},
            {"complete", is_complete},
            {"macs_is_axis", front.macs_is_axis},
            {"points", points}};
}

std::string front_csv(const Front& front) {
    std::string text = "file,accesses_elements,live_bytes,macs,groups,schedule\n";
    for (size_t n = 0; n < front.points.size(); ++n) {
        const FrontPoint& point = front.points[n];
        text += fmt::format("{},{},{},{},{},\"{}\"\n", file_of(n), point.counts.accesses.value(),
                            to_bytes(point.counts.live_total).value(), point.counts.macs.value(),
                            point.schedule.groups().size(), to_text(point.schedule));
    }
    return text;
}

std::string front_html(const Network& network, const Front& front) {
    std::string rows;
    for (size_t n = 0; n < front.points.size(); ++n) {
        const FrontPoint& point = front.points[n];
        rows += fmt::format(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td><details><summary>{} "
            "groups</summary><pre>{}</pre></details></td></tr>\n",
            file_of(n), grouped(point.counts.accesses.value()), bytes_text(to_bytes(point.counts.live_total).value()),
            grouped(point.counts.macs.value()), point.schedule.groups().size(),
            escaped(loop_nest_text(network, point.schedule)));
    }
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}: "
        "schedules</title>\n<style>body{{font:14px sans-serif;margin:2em}}"
        "td,th{{padding:2px "
        "12px;text-align:right;vertical-align:top}}pre{{text-align:left}}circle{{fill:#06c}}text{{font-size:12px}}</"
        "style></head>\n"
        "<body><h1>{0}</h1><p>{1} schedules, none beaten by another{2}. Two-level model; network {3}.</p>\n{4}"
        "<table><tr><th>file</th><th>external accesses</th><th>memory held at once</th><th>MACs</th><th>loop "
        "nest</th></tr>\n{5}</table></body></html>\n",
        escaped(network.name), front.points.size(),
        front.macs_is_axis ? " in accesses, memory and MACs together" : " in accesses and memory together",
        network_hash(network), drawing(front), rows);
}

}  // namespace laminate::cli
