// explore --model depth-first: tile sizes x overlap modes of DeFiNES on a machine of many memories.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "cli/cost_models.h"
#include "cli/depth_first_report.h"
#include "scheduler/models/depth_first/sweep.h"

namespace laminate::cli {

namespace {

using depth_first::DepthFirst;
using depth_first::Overlap;
using depth_first::Sweep;
using depth_first::SweepPoint;

struct Options {
    depth_first::SweepOptions sweep;
    std::vector<std::string> overlaps;
    std::string stacks = "weights-fit";
    std::string objective = "energy";
    DepthFirstFidelity fidelity;
};

Exit run(const Options& options, const ModelRequest& request, const Output& output) {
    if (request.machine.empty()) throw UsageError("--machine is required with --model depth-first");
    depth_first::SweepOptions search = options.sweep;
    if (!options.overlaps.empty()) search.overlaps.clear();
    for (const std::string& overlap : options.overlaps) search.overlaps.push_back(depth_first::parse_overlap(overlap));
    search.stacks = depth_first::parse_stacks(options.stacks);
    search.objective = depth_first::parse_objective(options.objective);
    search.threads = request.common.thread_count();
    search.stop = request.stop;
    OccasionalNotes notes(output);
    search.progress = [&](size_t done, size_t total) { notes.note([&] { return fmt::format("{} of {} points", done, total); }); };
    const Machine machine = open_machine(request.machine);
    const Network network = request.network.open();
    std::optional<NewDirectory> files;
    if (!request.directory.empty()) files.emplace(request.directory, [](const auto& place) { return holds_answer(place, "sweep.json", "laminate.depth_first_sweep"); }, "laminate explore");
    const auto begin = std::chrono::steady_clock::now();
    const DepthFirst model(machine, network, options.fidelity.get());
    const Sweep found = depth_first::sweep(model, search);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!found.complete) output.note("interrupted: the points that were looked at so far");
    if (!found.best) throw InfeasibleError(fmt::format("{}: no tile fits the memories of machine {}", network.name, machine.name));

    nlohmann::ordered_json answer{{"schema", "laminate.depth_first_sweep"},
                                  {"version", 1},
                                  {"model", "depth-first"},
                                  {"network", network.name},
                                  {"network_hash", network_hash(network)},
                                  {"machine", machine.name},
                                  {"as_published", options.fidelity.as_published},
                                  {"lpf_limit", options.fidelity.lpf_limit},
                                  {"objective", depth_first::to_string(search.objective)},
                                  {"complete", found.complete},
                                  {"seconds", seconds}};
    answer.update(sweep_json(model, found));
    if (files) {
        write_file_atomically(files->aside() / "sweep.json", answer.dump(2) + "\n");
        write_file_atomically(files->aside() / "sweep.csv", sweep_csv(found));
        write_file_atomically(files->aside() / "report.html", sweep_page(model, found, network.name));
        files->publish();
    }
    output.print(sweep_text(model, found));
    output.print(fmt::format("{} points in {:.2f} s{}", found.points.size(), seconds,
                             files ? fmt::format("; all in {}: sweep.json, sweep.csv, report.html", request.directory) : ""));
    output.json(answer);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<Options>();
    app.add_option("--columns", options->sweep.columns, "Widths of tiles; wider than the map: the map")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--rows", options->sweep.rows, "Heights of tiles")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--overlap", options->overlaps, "Only these overlap modes: recompute, h-cached, fully-cached (default: all)")->delimiter(',');
    app.add_option("--stacks", options->stacks, "Layers executed together: weights-fit, single-layer or all")->capture_default_str();
    app.add_option("--objective", options->objective, "What the best point has least of: energy, latency or edp")->capture_default_str();
    options->fidelity.declare(app);
    return [options](const ModelRequest& request, const Output& output) { return run(*options, request, output); };
}

}  // namespace

CostModel explore_depth_first() {
    return {"depth-first", "tile sizes and overlap modes on a machine of many memories (DeFiNES); -o writes heat maps", declare};
}

}  // namespace laminate::cli
