// explore --model patch-fusion: the front of peak memory and MACs of a network fused by patches,
// for microcontrollers (msf-CNN).
#include <fmt/core.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "answers/checks.h"
#include "answers/json_text.h"
#include "base/cpu_time.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "papers/patch_fusion/patch_front.h"
#include "papers/verbs.h"

namespace laminate::cli {

namespace {

using namespace patch_fusion;

struct PatchFusionExploreOptions {
    std::string peak;
    std::optional<double> overhead;
};

double overhead_of(const PatchGraph& graph, const PatchPoint& point) {
    return graph.macs() > 0
               ? static_cast<double>(point.macs) / static_cast<double>(graph.macs())
               : 1;
}

std::string layers_text(const PatchGraph& graph, int first, int last) {
    return first == last
               ? graph.layer(first).name
               : fmt::format("{} .. {}", graph.layer(first).name, graph.layer(last).name);
}

nlohmann::ordered_json point_json(const PatchGraph& graph, const PatchPoint& point) {
    auto blocks = nlohmann::ordered_json::array();
    for (const PatchBlock& block : point.blocks) {
        auto segments = nlohmann::ordered_json::array();
        for (const Segment& segment : block.segments)
            segments.push_back({{"first_layer", graph.layer(segment.first).name},
                                {"last_layer", graph.layer(segment.last).name},
                                {"layers", segment.last - segment.first + 1},
                                {"strip_rows", segment.rows}});
        blocks.push_back(
            {{"peak_bytes", block.bytes}, {"macs", block.macs}, {"segments", segments}});
    }
    return {{"peak_bytes", point.bytes},
            {"macs", point.macs},
            {"overhead", overhead_of(graph, point)},
            {"blocks", blocks}};
}

/// The points within the limits; of one limit the best point alone.
std::vector<PatchPoint> wanted_points(const PatchGraph& graph, const PatchFront& front,
                                      const PatchFusionExploreOptions& options) {
    if (options.peak.empty() && !options.overhead) return front.points;
    const int64_t peak = options.peak.empty() ? std::numeric_limits<int64_t>::max()
                                              : parse_bytes("--peak", options.peak);
    std::vector<PatchPoint> within;
    for (const PatchPoint& point : front.points) {
        if (point.bytes > peak) continue;
        if (options.overhead && overhead_of(graph, point) > *options.overhead) continue;
        within.push_back(point);
    }
    if (within.empty()) {
        const PatchPoint& least = front.points.front();
        throw InfeasibleError(fmt::format(
            "--peak, --overhead: no schedule; the smallest budget that works is {} bytes, at "
            "{:.3f} times the MACs",
            least.bytes, overhead_of(graph, least)));
    }
    return {options.overhead ? within.front() : within.back()};
}

void print(const PatchGraph& graph, const std::vector<PatchPoint>& points, const Output& output) {
    Table table({{"peak bytes", Align::right},
                 {"MACs", Align::right},
                 {"overhead", Align::right},
                 {"blocks", Align::right}});
    constexpr size_t most_rows = 24;
    const size_t rows = std::min(points.size(), most_rows);
    for (size_t n = 0; n < rows; ++n) {
        const PatchPoint& point = points[rows == 1 ? 0 : n * (points.size() - 1) / (rows - 1)];
        table.add({grouped(point.bytes), grouped(point.macs),
                   fmt::format("{:.4f}", overhead_of(graph, point)),
                   std::to_string(point.blocks.size())});
    }
    output.print(table.text());
    if (points.size() > rows)
        output.print(fmt::format("{} of {} points; --json has all", rows, points.size()));
    if (points.size() != 1) return;
    Table blocks({{"layers"}, {"rows of a strip", Align::right}, {"peak bytes", Align::right}});
    for (const PatchBlock& block : points.front().blocks) {
        for (const Segment& segment : block.segments)
            blocks.add({layers_text(graph, segment.first, segment.last),
                        std::to_string(segment.rows),
                        segment == block.segments.back() ? grouped(block.bytes) : "ring"});
    }
    output.print(blocks.text());
}

Exit run(const PatchFusionExploreOptions& options, const ModelRequest& request,
         const Output& output) {
    if (!request.machine.empty())
        throw UsageError("--machine: patch-fusion counts bytes and MACs alone, on no machine");
    const Network network = request.network.open();
    const PatchGraph graph = patch_graph(network);
    const double begin = thread_milliseconds();
    const PatchFront front = patch_front(graph, request.stop);
    const double cpu_ms = thread_milliseconds() - begin;
    if (!front.is_complete) output.note("interrupted: blocks of one segment and some of several");
    const std::vector<PatchPoint> points = wanted_points(graph, front, options);
    auto listed = nlohmann::ordered_json::array();
    for (const PatchPoint& point : points) listed.push_back(point_json(graph, point));
    const nlohmann::ordered_json answer{{"schema", "laminate.patch_fusion"},
                                        {"version", 1},
                                        {"network", network.name},
                                        {"network_given", request.network.to_json()},
                                        {"macs_once", graph.macs()},
                                        {"complete", front.is_complete},
                                        {"front_points", front.points.size()},
                                        {"search_cpu_ms", cpu_ms},
                                        {"points", listed}};
    if (!request.directory.empty()) {
        NewDirectory files(
            request.directory,
            [](const auto& place) {
                return answer_files(place, "patches.json", "laminate.patch_fusion");
            },
            "laminate explore --model patch-fusion");
        write_file_atomically(files.aside() / "patches.json", json_text(answer));
        files.publish();
    }
    print(graph, points, output);
    output.json(answer);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<PatchFusionExploreOptions>();
    app.add_option("--peak", options->peak,
                   "The schedule with the fewest MACs within so many bytes, e.g. 16KiB")
        ->type_name("SIZE");
    app.add_option("--overhead", options->overhead,
                   "The schedule with the least memory at so many times the network's MACs, e.g. "
                   "1.3")
        ->check(CLI::Range(1.0, 1e9));
    return [options](const ModelRequest& request, const Output& output) {
        return run(*options, request, output);
    };
}

}  // namespace

CostModel explore_patch_fusion() {
    return {"patch-fusion",
            "the front of peak bytes and recomputed MACs of a network fused by patches (msf-CNN)",
            declare};
}

}  // namespace laminate::cli
