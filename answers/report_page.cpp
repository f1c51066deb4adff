#include "answers/report_page.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answers/front_file.h"
#include "answers/front_report.h"
#include "answers/group_drawings.h"
#include "answers/network_graph.h"
#include "answers/page.h"
#include "answers/version.h"
#include "base/error.h"
#include "base/files.h"
#include "base/units.h"

namespace laminate::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Every @NAME@ of `values` once, from left to right; what is put in is not looked at again.
std::string filled(std::string_view page,
                   const std::map<std::string_view, std::string_view>& values) {
    std::string text;
    while (!page.empty()) {
        const size_t at = page.find('@');
        text += page.substr(0, at);
        if (at == std::string_view::npos) break;
        const size_t end = page.find('@', at + 1);
        text += values.at(page.substr(at + 1, end - at - 1));
        page.remove_prefix(end + 1);
    }
    return text;
}

/// "memory and time together"; a front that does not say its axes is of accesses and memory.
std::string axes_text(const Json& front) {
    std::vector<std::string> axes{"accesses", "memory"};
    if (front.contains("axes"))
        axes = front["axes"].get<std::vector<std::string>>();
    else if (front.value("macs_is_axis", true))
        axes.push_back("macs");
    for (std::string& axis : axes)
        if (axis == "macs") axis = "MACs";
    if (axes.size() == 1) return axes.front();
    const std::string last = axes.back();
    axes.pop_back();
    return fmt::format("{} and {} together", fmt::join(axes, ", "), last);
}

std::string about(const Network& network, const Json& front) {
    const size_t points = front.at("points").size();
    if (const std::string model = front.value("model", "two-level"); model != "two-level") {
        const std::string machine = front.value("machine", "");
        return fmt::format(
            "Network {} ({}), {} schedule{} found by the {} model{}, as the two-level model counts "
            "{}: by whole "
            "elements, to and from the outside. Counts of one image; layers outside of groups run "
            "on their own and "
            "are not counted.",
            network.name, structure_hash(network), points, points == 1 ? "" : "s", model,
            machine.empty() ? "" : " on " + machine, points == 1 ? "it" : "them");
    }
    std::string text = fmt::format("Network {} ({}), ", network.name, structure_hash(network));
    const std::string objective = front.value("objective", "");
    if (!objective.empty())
        text += fmt::format("one schedule, {} in the memory that was allowed",
                            objective == "time" ? "the least time" : "the fewest accesses");
    else
        text += fmt::format("{} schedule{}, none beaten by another in {}", points,
                            points == 1 ? "" : "s", axes_text(front));
    text += "; two-level model";
    for (const char* key : {"space", "tiles"}) {
        if (front.contains(key) && front[key].is_string())
            text += fmt::format(", {} {}", key, front[key].get<std::string>());
    }
    if (front.contains("speed")) {
        const int threads = front.value("threads", 1);
        const std::string speed = front["speed"].get<std::string>();
        text += fmt::format(", time as predicted for {} thread{}{}", threads,
                            threads == 1 ? "" : "s", speed == "usual" ? "" : " by " + speed);
    }
    if (front.value("complete", true)) {
        text += ".";
    } else if (front.contains("gap") && front["gap"].is_number()) {
        const double times = 1 + front["gap"].get<double>();
        text += times < 1.0005
                    ? "; not complete, but at equal memory no schedule of the space moves less."
                    : fmt::format("; not complete: schedules that were not looked at may move less, "
                                  "but at equal memory at most {:.3g} times less.",
                                  times);
    } else {
        text += "; not complete: part of the space was not looked at.";
    }
    return text +
           " Counts of one image; layers outside of groups run on their own and are not counted.";
}

/// {"rows":[layer, or -1 - n for input n],"lanes":[...]}
Json graph_json(const Network& network, const Schedule& schedule) {
    Json rows = Json::array(), lanes = Json::array();
    for (const GraphRow& row : network_graph(network, schedule)) {
        const auto input = std::find(network.inputs.begin(), network.inputs.end(), row.tensor) -
                           network.inputs.begin();
        rows.push_back(row.layer >= 0 ? row.layer : -1 - input);
        lanes.push_back(row.lane);
    }
    return {{"rows", std::move(rows)}, {"lanes", std::move(lanes)}};
}

/// Names and shapes of inputs and layers; a layer names what it reads as graph_json() does.
Json layers_json(const Network& network) {
    std::map<TensorId, int64_t> writer;
    Json inputs = Json::array(), layers = Json::array();
    for (const TensorId id : network.inputs) {
        writer[id] = -1 - std::ssize(inputs);
        inputs.push_back(
            {{"name", network.tensor(id).name}, {"dims", dims_text(network.tensor(id).dims)}});
    }
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        const Layer& layer = network.layer(id);
        writer[layer.output] = id;
        std::set<int64_t> reads;
        for (const TensorId input : layer.inputs) reads.insert(writer.at(input));
        layers.push_back({{"name", layer.name},
                          {"does", operation_text(layer)},
                          {"dims", dims_text(network.tensor(layer.output).dims)},
                          {"macs", layer_macs(network, id)},
                          {"reads", reads},
                          {"is_output", network.is_output(layer.output)}});
    }
    return {{"inputs", std::move(inputs)}, {"layers", std::move(layers)}};
}

/// The inside of points. They share most of their groups, and the order of their layers: each is in
/// the page once.
class Details {
public:
    /// `known`: the groups by place in the front where they are at hand, else nothing.
    Details(const Network& network, const Json& front, const std::vector<GroupSchedule>* known,
            const std::vector<size_t>& points, int threads)
        : network_(network),
          texts_(front.at("group_schedules")),
          known_(known),
          place_of_group_(texts_.size(), none) {
        for (const size_t n : points) {
            std::vector<size_t> places;
            for (const Json& index : front.at("points").at(n).at("schedule"))
                places.push_back(place_of(index.get<size_t>()));
            const size_t graph = graph_of(places);
            details.push_back({{"groups", std::move(places)}, {"graph", graph}});
        }
        groups = group_drawings(network_, groups_, threads);
    }

    Json details = Json::array();  ///< {"groups":[PLACE...],"graph":PLACE} by point
    Json graphs = Json::array();
    std::string groups;  ///< group_drawings()

private:
    static constexpr size_t none = std::numeric_limits<size_t>::max();

    size_t place_of(size_t index) {
        size_t& place = place_of_group_.at(index);
        if (place != none) return place;
        const auto& text = texts_.at(index).get_ref<const std::string&>();
        const auto [entry, is_new] = place_of_text_.try_emplace(text, groups_.size());
        if (is_new)
            groups_.push_back(known_ != nullptr
                                  ? &known_->at(index)
                                  : &parsed_.emplace_back(parse_group(network_, text)));
        return place = entry->second;
    }

    size_t graph_of(const std::vector<size_t>& places) {
        std::string cut;  // which layers are in a group, all that a graph depends on
        for (const size_t place : places) {
            for (const Nest& nest : groups_[place]->nests) cut += nest.layer + " ";
            cut += "|";
        }
        const auto [graph, is_new] = graph_of_cut_.try_emplace(cut);
        if (!is_new) return graph->second;
        std::vector<GroupSchedule> all;
        for (const size_t place : places) all.push_back(*groups_[place]);
        Json made = graph_json(network_, Schedule(network_, std::move(all)));
        const auto [rows, is_other] =
            graph_of_rows_.try_emplace(made["rows"].dump(), graphs.size());
        if (is_other) graphs.push_back(std::move(made));
        return graph->second = rows->second;
    }

    const Network& network_;
    const Json& texts_;
    const std::vector<GroupSchedule>* known_;
    std::deque<GroupSchedule> parsed_;
    std::vector<size_t> place_of_group_;  ///< by index in the front
    std::unordered_map<std::string_view, size_t> place_of_text_;
    std::vector<const GroupSchedule*> groups_;  ///< by place
    std::map<std::string, size_t> graph_of_cut_;
    std::map<std::string, size_t> graph_of_rows_;
};

/// All that the page shows, for its script.
std::string page_data(const Network& network, const Json& front,
                      const std::vector<Measurement>& measurements, int threads,
                      const std::vector<GroupSchedule>* groups) {
    const bool sum = front.value("footprint", "live") == "sum";
    Json data{{"about", about(network, front)},
              {"bytes_per_element", bytes_per_element},
              {"memory_name", sum ? "sum of all buffers" : "memory held at once"},
              {"version", program_version()},
              {"network", layers_json(network)}};
    const Json& given = front.at("points");
    Json points = Json::array();
    for (size_t n = 0; n < given.size(); ++n) {
        const Json& point = given[n];
        const int64_t elements =
            point.at(sum ? "sum_total_elements" : "live_total_elements").get<int64_t>();
        Json entry{{"n", n},
                   {"name", point_name(front, n)},
                   {"accesses", point.at("accesses_elements")},
                   {"bytes", to_bytes(Elements(elements)).value()},
                   {"macs", point.at("macs")},
                   {"groups", point.at("groups")}};
        if (point.value("bound_accesses_elements", int64_t{0}) > 0)
            entry["bound"] = point["bound_accesses_elements"];
        if (point.contains("time_ms")) entry["time_ms"] = point["time_ms"];
        if (point.contains("energy")) {
            data["machine"] = point["energy"].at("machine");
            entry["energy_pj"] = point["energy"].at("total_pj");
        }
        points.push_back(std::move(entry));
    }
    const std::vector<size_t> shown = evenly(given.size(), report_details);
    Details inside(network, front, groups, shown, threads);
    for (size_t n = 0; n < shown.size(); ++n) points[shown[n]]["detail"] = n;
    if (front.contains("layer_by_layer")) {
        const Json& alone = front["layer_by_layer"];
        data["layer_by_layer"] = alone;
        data["layer_by_layer"]["bytes"] =
            to_bytes(
                Elements(alone.at(sum ? "sum_total_elements" : "live_total_elements").get<int64_t>()))
                .value();
        data["layer_by_layer"]["accesses"] = alone.at("accesses_elements");
    }
    for (const char* key : {"headline", "findings", "found_groups"})
        if (front.contains(key)) data[key] = front[key];
    Json bounds = Json::array();
    for (const Json& bound : front.value("bounds", Json::array())) {
        bounds.push_back(
            {{"bytes", to_bytes(Elements(bound.at("memory_elements").get<int64_t>())).value()},
             {"accesses", bound.at("accesses_elements")}});
    }
    data["bounds"] = std::move(bounds);
    if (!measurements.empty()) {
        std::vector<std::string> schedules;
        for (size_t n = 0; n < given.size(); ++n) schedules.push_back(schedule_text(front, n));
        Json measured = measured_json(schedules, measurements);
        for (size_t n = 0; n < given.size(); ++n) points[n].update(measured["points"][n]);
        data["sources"] = std::move(measured["sources"]);
    }
    data["points"] = std::move(points);
    data["details"] = std::move(inside.details);
    data["graphs"] = std::move(inside.graphs);
    std::string text = script_json(data);
    text.back() = ',';
    return text + "\"groups\":" + inside.groups + "}";
}

}  // namespace

std::string script_json(const Json& json) {
    std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
        text.replace(at, 1, "\\u003c");
    return text;
}

std::string report_page(const Network& network, const Json& front,
                        const std::vector<Measurement>& measurements, int threads,
                        const std::vector<GroupSchedule>* groups) {
    try {
        const std::string title = escaped(network.name) + ": schedules";
        const std::string data = page_data(network, front, measurements, threads, groups);
        return filled(
            report_html,
            {{"TITLE", title}, {"STYLE", report_css}, {"DATA", data}, {"SCRIPT", report_script}});
    } catch (const nlohmann::json::exception& error) {
        throw InputError(std::string("front: ") + error.what());
    }
}

std::string page_name(const Json& front) { return front.value("page", "report.html"); }

void write_front(const std::filesystem::path& directory, const Network& network, const Json& front,
                 int threads, const std::vector<GroupSchedule>* groups) {
    write_file_atomically(directory / "front.json", front_text(front));
    write_file_atomically(directory / page_name(front),
                          report_page(network, front, {}, threads, groups));
}

}  // namespace laminate::cli
