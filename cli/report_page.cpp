#include "cli/report_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "cli/front_file.h"
#include "cli/front_report.h"
#include "cli/network_graph.h"
#include "cli/page.h"
#include "cli/version.h"
#include "scheduler/memory_timeline.h"
#include "scheduler/models/two_level/two_level.h"

namespace laminate::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t timeline_steps = 300;  // a group is a few hundred pixels wide

/// JSON inside a script element: nothing in it may look like the end of the element.
std::string for_script(const Json& data) {
    std::string text;
    for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
        if (c == '<')
            text += "\\u003c";
        else
            text += c;
    }
    return text;
}

/// Every @NAME@ of `values` once, from left to right; what is put in is not looked at again.
std::string filled(std::string_view page, const std::map<std::string_view, std::string>& values) {
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

/// Elements of one image.
int64_t image_elements(const Network& network, TensorId id) {
    std::vector<int64_t> dims = network.tensor(id).dims;
    dims.front() = 1;
    return element_count(dims);
}

std::string about(const Network& network, const Json& front) {
    const size_t points = front.at("points").size();
    if (front.value("model", "two-level") == "depth-first") {
        return fmt::format(
            "Network {} ({}), {} schedule{} of a depth-first sweep on {}, as the two-level model counts them: by whole "
            "elements, to and from the outside. Counts "
            "of one image; layers outside of groups run on their own and are not counted.",
            network.name, structure_hash(network), points, points == 1 ? "" : "s", front.value("machine", "a machine"));
    }
    std::string text = fmt::format(
        "Network {} ({}), {} schedule{}, none beaten by another in {}; {} model", network.name, structure_hash(network),
        points, points == 1 ? "" : "s",
        front.value("macs_is_axis", true) ? "accesses, memory and MACs together" : "accesses and memory together",
        front.value("model", "two-level"));
    for (const char* key : {"space", "tiles"}) {
        if (front.contains(key) && front[key].is_string())
            text += fmt::format(", {} {}", key, front[key].get<std::string>());
    }
    if (front.value("complete", true)) {
        text += ".";
    } else if (front.contains("gap") && front["gap"].is_number()) {
        text +=
            fmt::format("; not complete: at no memory does a schedule of the space move less than 1/{:.3f} of this.",
                        1 + front["gap"].get<double>());
    } else {
        text += "; not complete: part of the space was not looked at.";
    }
    return text + " Counts of one image; layers outside of groups run on their own and are not counted.";
}

/// {"rows":[layer, or -1 - n for input n],"lanes":[...]}
Json graph_json(const Network& network, const Schedule& schedule) {
    Json rows = Json::array(), lanes = Json::array();
    for (const GraphRow& row : network_graph(network, schedule)) {
        const auto input = std::find(network.inputs.begin(), network.inputs.end(), row.tensor) - network.inputs.begin();
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
        inputs.push_back({{"name", network.tensor(id).name}, {"dims", dims_text(network.tensor(id).dims)}});
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

/// What is put into a list once, and known by its place there.
class Places {
public:
    /// The place of what `key` stands for; `make` makes it when it is new.
    template <class Make>
    size_t of(const std::string& key, const Make& make) {
        const auto [entry, is_new] = known_.try_emplace(key, list_.size());
        if (is_new) list_.push_back(make());
        return entry->second;
    }
    [[nodiscard]] Json list() && { return std::move(list_); }

private:
    std::map<std::string, size_t> known_;
    Json list_ = Json::array();
};

/// report_group(), which counts with what `cache` remembers.
Json group_json(const Network& network, const GroupSchedule& group, TwoLevelCache& cache) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const GroupCounts counts = two_level_counts(problems, group, &cache);
    const MemoryTimeline timeline = memory_timeline(problems, group, counts, timeline_steps);

    Json layers = Json::array();
    Json traffic = Json::array();
    int64_t least = 0;
    const auto moved = [&](const std::string& name, Elements reads, Elements writes, int64_t elements) {
        traffic.push_back(
            {{"name", name}, {"reads", reads.value()}, {"writes", writes.value()}, {"elements", elements}});
        least += elements;
    };
    size_t input = 0;
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (tensor.is_external())
            moved("X " + tensor.name, counts.inputs.at(input++).reads, {}, image_elements(network, tensor.tensor));
    }
    for (size_t k = 0; k < problems.size(); ++k) {
        layers.push_back(problems[k].name);
        if (problems[k].has_weights())
            moved("W " + problems[k].name, counts.layers[k].weight_reads, {}, problems[k].weight_elements().value());
    }
    moved("Y " + problems.back().name, counts.output_reads, counts.output_writes,
          problems.back().output_elements().value());

    Json phases = Json::array();
    for (const MemoryPhase& phase : timeline.phases) {
        Json buffers = Json::array();
        for (const LiveBuffer& buffer : phase.buffers) buffers.push_back({buffer.name, buffer.elements.value()});
        phases.push_back({{"layer", phase.layer},
                          {"macs", phase.macs.value()},
                          {"live", phase.live.value()},
                          {"buffers", std::move(buffers)}});
    }
    return {{"layers", std::move(layers)},
            {"accesses", counts.accesses().value()},
            {"least", least},
            {"macs", counts.macs().value()},
            {"live", counts.live_total.value()},
            {"traffic", std::move(traffic)},
            {"phases", std::move(phases)},
            {"steps", timeline.steps},
            {"unfolded", timeline.unfolded_loops},
            {"nest", loop_nest_text(network, group)}};
}

/// The inside of points. They share most of their groups, and the order of their layers: each is in the page once.
class Details {
public:
    Details(const Network& network, const Json& front) : network_(network), front_(front) {}

    Places groups, graphs;
    /// {"groups":[PLACE...],"graph":PLACE} of point n.
    Json of(size_t n) {
        Json list = Json::array();
        std::string cut;  // which layers are in a group, all that a graph depends on
        const Json& schedule = front_.at("points").at(n).at("schedule");
        for (const Json& index : schedule) {
            const Known& group = known(index.get<size_t>());
            list.push_back(group.place);
            for (const Nest& nest : group.schedule.nests) cut += nest.layer + " ";
            cut += "|";
        }
        const auto [graph, is_new] = graph_of_.try_emplace(cut);
        if (is_new) {
            std::vector<GroupSchedule> all;
            for (const Json& index : schedule) all.push_back(known(index.get<size_t>()).schedule);
            Json made = graph_json(network_, Schedule(network_, std::move(all)));
            graph->second = graphs.of(made["rows"].dump(), [&] { return made; });
        }
        return {{"groups", std::move(list)}, {"graph", graph->second}};
    }

private:
    struct Known {
        GroupSchedule schedule;
        size_t place;
    };
    const Known& known(size_t index) {
        const auto found = known_.find(index);
        if (found != known_.end()) return found->second;
        const auto text = front_.at("group_schedules").at(index).get<std::string>();
        GroupSchedule schedule = parse_group(network_, text);
        const size_t place = groups.of(text, [&] { return group_json(network_, schedule, cache_); });
        return known_.emplace(index, Known{std::move(schedule), place}).first->second;
    }

    const Network& network_;
    const Json& front_;
    TwoLevelCache cache_;  // groups share most of their axes
    std::map<size_t, Known> known_;
    std::map<std::string, size_t> graph_of_;
};

Json page_data(const Network& network, const Json& front, const std::vector<Measurement>& measurements) {
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
        const int64_t elements = point.at(sum ? "sum_total_elements" : "live_total_elements").get<int64_t>();
        Json entry{{"n", n},
                   {"name", point_name(front, n)},
                   {"accesses", point.at("accesses_elements")},
                   {"bytes", to_bytes(Elements(elements)).value()},
                   {"macs", point.at("macs")},
                   {"groups", point.at("groups")}};
        if (point.value("bound_accesses_elements", int64_t{0}) > 0) entry["bound"] = point["bound_accesses_elements"];
        if (point.contains("energy")) {
            data["machine"] = point["energy"].at("machine");
            entry["energy_pj"] = point["energy"].at("total_pj");
        }
        points.push_back(std::move(entry));
    }
    Details inside(network, front);
    Json details = Json::array();
    for (const size_t n : evenly(given.size(), report_details)) {
        points[n]["detail"] = details.size();
        details.push_back(inside.of(n));
    }
    Json bounds = Json::array();
    for (const Json& bound : front.value("bounds", Json::array())) {
        bounds.push_back({{"bytes", to_bytes(Elements(bound.at("memory_elements").get<int64_t>())).value()},
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
    data["details"] = std::move(details);
    data["groups"] = std::move(inside.groups).list();
    data["graphs"] = std::move(inside.graphs).list();
    return data;
}

}  // namespace

Json report_group(const Network& network, const GroupSchedule& group) {
    TwoLevelCache cache;
    return group_json(network, group, cache);
}

std::string report_page(const Network& network, const Json& front, const std::vector<Measurement>& measurements) {
    try {
        return filled(report_html, {{"TITLE", escaped(network.name) + ": schedules"},
                                    {"STYLE", report_css},
                                    {"DATA", for_script(page_data(network, front, measurements))},
                                    {"SCRIPT", report_script}});
    } catch (const nlohmann::json::exception& error) {
        throw InputError(std::string("front: ") + error.what());
    }
}

}  // namespace laminate::cli
