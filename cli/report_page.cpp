#include "cli/report_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
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
    std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
    for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) text.replace(at, 1, "\\u003c");
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
    Json steps = Json::array();
    for (const MemoryRun& run : timeline.runs) steps.push_back({run.phase, run.times});
    return {{"layers", std::move(layers)},
            {"accesses", counts.accesses().value()},
            {"least", least},
            {"macs", counts.macs().value()},
            {"live", counts.live_total.value()},
            {"traffic", std::move(traffic)},
            {"phases", std::move(phases)},
            {"steps", std::move(steps)},
            {"unfolded", timeline.unfolded_loops},
            {"nest", loop_nest_text(network, group)}};
}

/// The inside of points. They share most of their groups, and the order of their layers: each is in the page once.
class Details {
public:
    Details(const Network& network, const Json& front, const std::vector<size_t>& points, int threads)
        : network_(network), front_(front) {
        for (const size_t n : points) find_groups(n);
        count_groups(threads);
        for (std::vector<size_t>& of_point : groups_of_) {
            const size_t graph = graph_of(of_point);
            details.push_back({{"groups", std::move(of_point)}, {"graph", graph}});
        }
    }

    Json details = Json::array();  ///< {"groups":[PLACE...],"graph":PLACE} by point
    Json graphs = Json::array();
    std::vector<std::string> groups;  ///< report_group() for a script

private:
    void find_groups(size_t n) {
        std::vector<size_t>& places = groups_of_.emplace_back();
        for (const Json& index : front_.at("points").at(n).at("schedule")) {
            const auto& text = front_.at("group_schedules").at(index.get<size_t>()).get_ref<const std::string&>();
            const auto [place, is_new] = place_of_.try_emplace(text, texts_.size());
            if (is_new) texts_.push_back(&text);
            places.push_back(place->second);
        }
    }

    /// Each thread goes through neighbours with what it remembers of their axes. Of several faults the first is told.
    void count_groups(int threads) {
        schedules_.resize(texts_.size());
        groups.resize(texts_.size());
        const auto parts = static_cast<size_t>(std::max(threads, 1));
        std::vector<std::exception_ptr> faults(parts);
        in_parallel(parts, threads, [&](size_t part) {
            TwoLevelCache cache;
            try {
                for (size_t n = part * texts_.size() / parts; n < (part + 1) * texts_.size() / parts; ++n) {
                    schedules_[n] = parse_group(network_, *texts_[n]);
                    groups[n] = for_script(group_json(network_, schedules_[n], cache));
                }
            } catch (...) {
                faults[part] = std::current_exception();
            }
        });
        for (const std::exception_ptr& fault : faults) {
            if (fault) std::rethrow_exception(fault);
        }
    }

    size_t graph_of(const std::vector<size_t>& places) {
        std::string cut;  // which layers are in a group, all that a graph depends on
        for (const size_t place : places) {
            for (const Nest& nest : schedules_[place].nests) cut += nest.layer + " ";
            cut += "|";
        }
        const auto [graph, is_new] = graph_of_cut_.try_emplace(cut);
        if (!is_new) return graph->second;
        std::vector<GroupSchedule> all;
        for (const size_t place : places) all.push_back(schedules_[place]);
        Json made = graph_json(network_, Schedule(network_, std::move(all)));
        const auto [rows, is_other] = graph_of_rows_.try_emplace(made["rows"].dump(), graphs.size());
        if (is_other) graphs.push_back(std::move(made));
        return graph->second = rows->second;
    }

    const Network& network_;
    const Json& front_;
    std::vector<std::vector<size_t>> groups_of_;  ///< by point
    std::map<std::string_view, size_t> place_of_;
    std::vector<const std::string*> texts_;  ///< by place
    std::vector<GroupSchedule> schedules_;   ///< by place
    std::map<std::string, size_t> graph_of_cut_;
    std::map<std::string, size_t> graph_of_rows_;
};

/// All that the page shows, for its script.
std::string page_data(const Network& network, const Json& front, const std::vector<Measurement>& measurements,
                      int threads) {
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
    const std::vector<size_t> shown = evenly(given.size(), report_details);
    Details inside(network, front, shown, threads);
    for (size_t n = 0; n < shown.size(); ++n) points[shown[n]]["detail"] = n;
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
    data["details"] = std::move(inside.details);
    data["graphs"] = std::move(inside.graphs);
    std::string text = for_script(data);
    text.back() = ',';
    text += "\"groups\":[";
    for (const std::string& group : inside.groups) text += group + ",";
    if (!inside.groups.empty()) text.pop_back();
    return text + "]}";
}

}  // namespace

Json report_group(const Network& network, const GroupSchedule& group) {
    TwoLevelCache cache;
    return group_json(network, group, cache);
}

std::string report_page(const Network& network, const Json& front, const std::vector<Measurement>& measurements,
                        int threads) {
    try {
        return filled(report_html, {{"TITLE", escaped(network.name) + ": schedules"},
                                    {"STYLE", report_css},
                                    {"DATA", page_data(network, front, measurements, threads)},
                                    {"SCRIPT", report_script}});
    } catch (const nlohmann::json::exception& error) {
        throw InputError(std::string("front: ") + error.what());
    }
}

}  // namespace laminate::cli
