// explore --model depth-first: tile sizes x overlap modes of DeFiNES on a machine of many memories.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "answers/checks.h"
#include "answers/front_report.h"
#include "answers/json_text.h"
#include "answers/report_page.h"
#include "answers/version.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "papers/depth_first/report.h"
#include "papers/depth_first/schedule_files.h"
#include "papers/depth_first/sweep.h"
#include "papers/verbs.h"

namespace laminate::cli {

namespace {

using depth_first::DepthFirst;
using depth_first::Overlap;
using depth_first::Sweep;
using depth_first::SweepPoint;

struct DepthFirstExploreOptions {
    depth_first::SweepOptions sweep;
    std::vector<std::string> overlaps;
    std::string stacks = "weights-fit";
    std::string objective = "energy";
    std::vector<std::string> mappings;
    bool search_stacks = false;
    DepthFirstFidelity fidelity;
};

nlohmann::ordered_json schedules_json(const DepthFirst& model, const Sweep& found,
                                      const std::optional<depth_first::Cut>& cut,
                                      FoundSchedules& schedules) {
    nlohmann::ordered_json json;
    const SweepPoint& best = found.points[*found.best];
    json["best"] = schedules.add("best", best.strategy);
    if (found.combination && found.combination->points.size() > 1) {
        std::vector<depth_first::ScheduledStack> stacks;
        const auto all = model.stacks(best.strategy.stacks);
        for (size_t n = 0; n < all.size(); ++n) {
            stacks.push_back({all[n], found.points[found.combination->points[n]].strategy});
        }
        json["best_per_stack"] = schedules.add("best-per-stack", stacks);
    }
    if (cut) {
        std::vector<depth_first::ScheduledStack> stacks;
        for (const depth_first::ChosenStack& stack : cut->stacks)
            stacks.push_back({stack.layers, stack.strategy});
        json["best_cut"] = schedules.add("best-cut", stacks);
    }
    auto front = nlohmann::ordered_json::array();
    for (size_t n = 0; n < found.front.size(); ++n)
        front.push_back(
            schedules.add(fmt::format("front-{}", n), found.points[found.front[n]].strategy));
    json["front"] = std::move(front);
    return json;
}

Exit run(const DepthFirstExploreOptions& options, const ModelRequest& request,
         const Output& output) {
    if (request.machine.empty()) throw UsageError("--machine is required with --model depth-first");
    depth_first::SweepOptions search = options.sweep;
    if (!options.overlaps.empty()) search.overlaps.clear();
    for (const std::string& overlap : options.overlaps)
        search.overlaps.push_back(depth_first::parse_overlap(overlap));
    search.stacks = depth_first::parse_stacks(options.stacks);
    search.objective = depth_first::parse_objective(options.objective);
    for (const std::string& mappings : options.mappings)
        search.mappings.push_back(depth_first::parse_objective(mappings));
    search.threads = request.common.thread_count();
    search.stop = request.stop;
    OccasionalNotes notes(output);
    search.progress = [&](size_t done, size_t total) {
        notes.note([&] { return fmt::format("{} of {} points", done, total); });
    };
    const Machine machine = open_machine(request.machine);
    const Network network = request.network.open();
    std::optional<NewDirectory> files;
    if (!request.directory.empty())
        files.emplace(
            request.directory,
            [](const auto& place) {
                return answer_files(place, "sweep.json", "laminate.depth_first_sweep");
            },
            "laminate explore");
    const auto begin = std::chrono::steady_clock::now();
    const DepthFirst model(machine, network, options.fidelity.get());
    const Sweep found = depth_first::sweep(model, search);
    std::optional<depth_first::Cut> cut;
    if (options.search_stacks && found.complete) {
        cut = depth_first::best_cut(model, search);
        if (!cut) output.note("stopped: cuts of the network into stacks were not compared");
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!found.complete) output.note("interrupted: the points that were looked at so far");
    if (!found.best)
        throw InfeasibleError(
            fmt::format("{}: no tile fits the memories of machine {}", network.name, machine.name));

    nlohmann::ordered_json answer =
        options.fidelity.head("laminate.depth_first_sweep", network, machine);
    answer["objective"] = depth_first::to_string(search.objective);
    answer["complete"] = found.complete;
    answer["seconds"] = seconds;
    answer.update(sweep_json(model, found));
    if (cut) answer["best_cut"] = cut_json(model, *cut);
    FoundSchedules schedules(network, model);
    answer["schedules"] = schedules_json(model, found, cut, schedules);
    answer["network_given"] = request.network.to_json();
    if (files) {
        write_file_atomically(files->aside() / "sweep.json", json_text(answer));
        write_file_atomically(files->aside() / "sweep.csv", sweep_csv(found));
        SweepPageNotes page{
            .network = network.name,
            .about = fmt::format(
                "Machine: {}. Model: DeFiNES, {}; {}. laminate {}.", machine.about,
                options.fidelity.as_published ? "as published" : "quirks mended",
                options.fidelity.lpf_limit > 0
                    ? fmt::format("orders of at most {} merged factors", options.fidelity.lpf_limit)
                    : "exact mapping of every tile",
                program_version()),
            .nests = schedules.nests(answer["schedules"]["front"]),
            .has_schedules = !schedules.empty()};
        if (page.has_schedules) {
            const nlohmann::ordered_json front = schedules.front(request.network, "schedules.html");
            write_front(files->aside(), network, front);
        }
        write_file_atomically(files->aside() / "report.html", sweep_page(model, found, page));
        files->publish();
    }
    output.print(sweep_text(model, found));
    if (cut) output.print(cut_text(model, *cut));
    if (files && !schedules.refusal().empty())
        output.note("no schedule for some: " + schedules.refusal());
    output.print(fmt::format(
        "{} points in {:.2f} s{}", found.points.size(), seconds,
        files ? fmt::format(
                    "; all in {}: sweep.json, sweep.csv, report.html{}", request.directory,
                    schedules.empty()
                        ? ""
                        : fmt::format(", schedules.html, front.json; --schedule {}#best takes one",
                                      request.directory))
              : ""));
    output.json(answer);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<DepthFirstExploreOptions>();
    app.add_option("--columns", options->sweep.columns,
                   "Widths of tiles; wider than the map: the map")
        ->delimiter(',')
        ->check(positive());
    app.add_option("--rows", options->sweep.rows, "Heights of tiles")
        ->delimiter(',')
        ->check(positive());
    app.add_option("--overlap", options->overlaps,
                   "Only these overlap modes: recompute, h-cached, fully-cached, v-cached "
                   "(default: the paper's, which "
                   "are the first three)")
        ->delimiter(',');
    app.add_option("--stacks", options->stacks,
                   "Layers executed together: weights-fit, single-layer or all")
        ->capture_default_str();
    app.add_flag("--search-stacks", options->search_stacks,
                 "Also compare all cuts of the network into stacks, each with the tile and overlap "
                 "that are best for it");
    app.add_option("--objective", options->objective,
                   "What the best point, and the mapping of each layer, has least of: energy, "
                   "latency or edp (their product)")
        ->capture_default_str();
    app.add_option("--mappings", options->mappings,
                   "Each tile with layers mapped for each of these: energy, latency, edp (default: "
                   "for the objective)")
        ->delimiter(',');
    options->fidelity.declare(app);
    return [options](const ModelRequest& request, const Output& output) {
        return run(*options, request, output);
    };
}

}  // namespace

CostModel explore_depth_first() {
    return {
        "depth-first",
        "tile sizes and overlap modes on a machine of many memories (DeFiNES); -o writes heat maps",
        declare};
}

}  // namespace laminate::cli
