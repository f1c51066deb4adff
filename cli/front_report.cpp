#include "cli/front_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "cli/output.h"

namespace laminate::cli {

namespace {

std::string file_of(size_t n) { return fmt::format("{:04}.json", n); }

}  // namespace

std::vector<size_t> evenly(size_t count, size_t most) {
    const size_t wanted = std::min(count, most);
    std::vector<size_t> positions;
    for (size_t n = 0; n < wanted; ++n) positions.push_back(wanted == 1 ? 0 : n * (count - 1) / (wanted - 1));
    return positions;
}

std::string front_table(const Front& front, size_t most) {
    Table table({{"file"},
                 {"accesses", Align::right},
                 {"memory", Align::right},
                 {"MACs", Align::right},
                 {"groups", Align::right}});
    for (const size_t n : evenly(front.points.size(), most)) {
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

std::string front_file(const std::string& path) {
    return std::filesystem::is_directory(path) ? (std::filesystem::path(path) / "front.json").string() : path;
}

nlohmann::ordered_json read_front(const std::string& file) {
    nlohmann::ordered_json front = nlohmann::ordered_json::parse(read_file(file), nullptr, false);
    if (!front.is_object() || front.value("schema", "") != "laminate.front" || !front.contains("points")) {
        throw InputError(file + ": is no front; expected JSON with \"schema\": \"laminate.front\" and \"points\"");
    }
    return front;
}

void check_front(const std::string& file, const nlohmann::ordered_json& front, const Network& network) {
    if (front.value("network_hash", "") == network_hash(network)) return;
    throw InputError(fmt::format("{}: is for network {} ({}), found {} ({})", file, front.value("network", "?"),
                                 front.value("network_hash", "?"), network.name, network_hash(network)));
}

}  // namespace laminate::cli
