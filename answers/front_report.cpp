#include "answers/front_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "answers/energy_report.h"
#include "answers/front_file.h"
#include "answers/output.h"
#include "answers/program.h"
#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/line_buffers.h"

namespace laminate::cli {

namespace {

/// The shape of all groups together. It depends on layers alone, and most groups have the same
/// ones.
GroupShape group_shape(const Network& network, const Front& front) {
    std::set<std::vector<std::string_view>> known;
    for (const GroupSchedule& group : front.groups) {
        std::vector<std::string_view> layers;
        for (const Nest& nest : group.nests) layers.push_back(nest.layer);
        if (known.insert(std::move(layers)).second &&
            group_shape(network, group) == GroupShape::dag)
            return GroupShape::dag;
    }
    return GroupShape::chain;
}

/// JSON on one line. Names may hold any bytes, as in json_text.h.
std::string dumped(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

size_t FrontNotes::least_energy() const {
    const auto cheaper = [](const Energy& a, const Energy& b) {
        return a.total_pj() < b.total_pj();
    };
    return static_cast<size_t>(std::min_element(energies.begin(), energies.end(), cheaper) -
                               energies.begin());
}

FrontNotes front_notes(const Network& network, const Front& front,
                       const std::optional<EnergyTable>& machine, std::optional<Elements> misses) {
    FrontNotes notes;
    notes.machine = machine;
    const NetworkBound bound(network, group_shape(network, front));
    for (const FrontPoint& point : front.points)
        notes.bounds.push_back(bound.certificate(point.counts));
    if (!machine) return notes;
    TwoLevelCache cache;
    std::vector<GroupCounts> counted;
    for (const GroupSchedule& group : front.groups)
        counted.push_back(two_level_counts(network, group, &cache));
    for (const FrontPoint& point : front.points) {
        std::vector<GroupCounts> groups;
        for (const uint32_t group : point.groups) groups.push_back(counted[group]);
        EnergyCounts counts = energy_counts(groups, memory_of(point.counts, front.footprint));
        counts.register_file_misses = misses;
        notes.energies.push_back(energy(*machine, counts));
    }
    return notes;
}

std::string front_table(const Front& front, const FrontNotes& notes, size_t most) {
    std::vector<Table::Column> columns{{"schedule"},
                                       {"accesses", Align::right},
                                       {"/ bound", Align::right},
                                       {"memory", Align::right},
                                       {"MACs", Align::right},
                                       {"groups", Align::right}};
    const bool is_timed = front.points.front().milliseconds.has_value();
    if (is_timed) columns.push_back({"time ms", Align::right});
    if (notes.machine) columns.push_back({"energy uJ", Align::right});
    Table table(std::move(columns));
    for (const size_t n : evenly(front.points.size(), most)) {
        const FrontPoint& point = front.points[n];
        std::vector<std::string> cells{
            fmt::format("#{}", n),
            grouped(point.counts.accesses.value()),
            fmt::format("{:.2f}", notes.bounds[n].achieved_over_bound),
            bytes_text(to_bytes(memory_of(point.counts, front.footprint)).value()),
            grouped(point.counts.macs.value()),
            std::to_string(point.groups.size())};
        if (is_timed) cells.push_back(fmt::format("{:.3f}", *point.milliseconds));
        if (notes.machine)
            cells.push_back(fmt::format("{:.2f}", notes.energies[n].total_pj() / 1e6));
        table.add(std::move(cells));
    }
    std::string text = table.text();
    if (notes.machine) {
        const size_t least = notes.least_energy();
        text +=
            fmt::format("least energy on {}: #{}, {:.2f} uJ with {} elements of memory\n",
                        notes.machine->name, least, notes.energies[least].total_pj() / 1e6,
                        grouped(memory_of(front.points[least].counts, front.footprint).value()));
        const bool recomputes =
            std::any_of(front.points.begin(), front.points.end(), [&](const FrontPoint& point) {
                return point.counts.macs != front.points.front().counts.macs;
            });
        if (recomputes && !front.macs_is_axis)
            text +=
                "MACs are no axis of this front: less recomputation may need less energy; see "
                "--axes accesses,memory,macs, --no-recompute\n";
    }
    return text;
}

std::string front_gap(const Front& front, bool only_accesses) {
    if (front.is_complete)
        return only_accesses ? "complete: no schedule of this space that fits moves less"
                             : "complete: no schedule of this space is better";
    if (!std::isfinite(front.gap))
        return "not complete: part of the space was not looked at, and nothing bounds it";
    if (only_accesses)
        return fmt::format(
            "not complete: no schedule of this space that fits moves less than 1/{:.3f} of this",
            1 + front.gap);
    return fmt::format(
        "not complete: at no memory does a schedule of this space move less than 1/{:.3f} of what "
        "the front moves",
        1 + front.gap);
}

nlohmann::ordered_json front_json(const Network& network, const Front& front,
                                  const FrontNotes& notes, bool is_complete) {
    auto points = nlohmann::ordered_json::array();
    for (size_t n = 0; n < front.points.size(); ++n) {
        const FrontPoint& point = front.points[n];
        nlohmann::ordered_json entry{{"accesses_elements", point.counts.accesses.value()},
                                     {"bound_accesses_elements", notes.bounds[n].bound.value()},
                                     {"achieved_over_bound", notes.bounds[n].achieved_over_bound},
                                     {"live_total_elements", point.counts.live_total.value()},
                                     {"live_bytes", to_bytes(point.counts.live_total).value()},
                                     {"sum_total_elements", point.counts.sum_total.value()},
                                     {"macs", point.counts.macs.value()},
                                     {"groups", point.groups.size()}};
        if (point.milliseconds) {
            entry["time_ms"] = *point.milliseconds;
            entry["scratch_bytes"] = point.scratch->value();
        }
        if (notes.machine) entry["energy"] = energy_json(*notes.machine, notes.energies[n]);
        entry["schedule"] = point.groups;
        points.push_back(std::move(entry));
    }
    auto bounds = nlohmann::ordered_json::array();
    for (const FrontBound& bound : front.bounds)
        bounds.push_back({{"memory_elements", bound.memory.value()},
                          {"accesses_elements", bound.accesses.value()}});
    nlohmann::ordered_json answer{
        {"schema", "laminate.front"},
        {"version", front_version},
        {"model", "two-level"},
        {"network", network.name},
        {"structure_hash", structure_hash(network)},
        {"footprint", front.footprint == Footprint::live ? "live" : "sum"},
        {"complete", is_complete},
        {"gap",
         std::isfinite(front.gap) ? nlohmann::ordered_json(front.gap) : nlohmann::ordered_json()},
        {"bounds", bounds},
        {"macs_is_axis", front.macs_is_axis}};
    if (!front.points.empty()) {
        const Schedule alone = layers_alone(network, front);
        const NetworkCounts counts = two_level_counts(network, alone);
        answer["layer_by_layer"] = {{"accesses_elements", counts.accesses.value()},
                                    {"live_total_elements", counts.live_total.value()},
                                    {"sum_total_elements", counts.sum_total.value()},
                                    {"macs", counts.macs.value()},
                                    {"groups", alone.groups().size()}};
    }
    auto texts = nlohmann::ordered_json::array();
    for (const GroupSchedule& group : front.groups) texts.push_back(to_text(group));
    answer["points"] = std::move(points);
    answer["group_schedules"] = std::move(texts);
    if (notes.machine) name_point(answer, notes.least_energy(), "least-energy");
    return answer;
}

nlohmann::ordered_json found_front(const Network& network, const std::vector<Schedule>& schedules,
                                   const std::string& model, const NetworkArgument& given) {
    const Front front = front_of(network, schedules);
    nlohmann::ordered_json json =
        front_json(network, front, front_notes(network, front, std::nullopt, std::nullopt), false);
    json["model"] = model;
    json["network_given"] = given.to_json();
    return json;
}

nlohmann::ordered_json finding_json(const std::string& title, const std::string& text,
                                    const Table& table) {
    nlohmann::ordered_json finding{{"title", title}, {"text", text}};
    finding.update(table.json());
    return finding;
}

Schedule layers_alone(const Network& network, const Front& front) {
    std::set<std::string_view> covered;
    for (const uint32_t group : front.points.front().groups)
        for (const Nest& nest : front.groups[group].nests) covered.insert(nest.layer);
    std::vector<GroupSchedule> groups;
    const Schedule all = with_layers_alone(network, layer_by_layer_schedule(network));
    for (const GroupSchedule& group : all.groups())
        if (covered.erase(group.nests.front().layer) > 0) groups.push_back(group);
    // Small pools, which code is not generated for.
    for (const std::string_view layer : covered)
        groups.push_back(line_buffer_group(network, {network.find_layer(std::string(layer))}));
    return {network, std::move(groups)};
}

std::string front_text(const nlohmann::ordered_json& front) {
    std::string text;
    for (const auto& [key, value] : front.items()) {
        text += fmt::format("{}\n  {}: ", text.empty() ? "{" : ",", nlohmann::json(key).dump());
        if (!value.is_array() || value.empty()) {
            text += dumped(value);
            continue;
        }
        const char* before = "[";
        for (const nlohmann::ordered_json& entry : value) {
            text += before;
            text += "\n    ";
            text += dumped(entry);
            before = ",";
        }
        text += "\n  ]";
    }
    return text + "\n}\n";
}

void name_point(nlohmann::ordered_json& front, size_t n, const std::string& name) {
    front["points"].at(n)["names"].push_back(name);
}

std::string front_csv(const Front& front, const FrontNotes& notes) {
    std::string text =
        "schedule,accesses_elements,bound_accesses_elements,achieved_over_bound,live_bytes,macs,"
        "groups";
    const bool is_timed = !front.points.empty() && front.points.front().milliseconds;
    text += is_timed ? ",time_ms" : "";
    text += notes.machine ? ",total_pj\n" : "\n";
    for (size_t n = 0; n < front.points.size(); ++n) {
        const FrontPoint& point = front.points[n];
        text += fmt::format("#{},{},{},{},{},{},{}{}", n, point.counts.accesses.value(),
                            notes.bounds[n].bound.value(), notes.bounds[n].achieved_over_bound,
                            to_bytes(point.counts.live_total).value(), point.counts.macs.value(),
                            point.groups.size(),
                            is_timed ? fmt::format(",{}", *point.milliseconds) : "");
        text += notes.machine ? fmt::format(",{}\n", notes.energies[n].total_pj()) : "\n";
    }
    return text;
}

}  // namespace laminate::cli
