// cost --model depth-first: one point of DeFiNES' space on a machine of many memories.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "answers/front_file.h"
#include "answers/front_report.h"
#include "answers/report_page.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "papers/depth_first/depth_first.h"
#include "papers/depth_first/overlap_search.h"
#include "papers/depth_first/report.h"
#include "papers/depth_first/schedule_files.h"
#include "papers/verbs.h"

namespace laminate::cli {

namespace {

using depth_first::DepthFirst;
using depth_first::DepthFirstCost;
using depth_first::Strategy;

struct DepthFirstCostOptions {
    std::string tile;
    std::vector<std::string> overlap{"fully-cached"};
    std::string stacks = "weights-fit";
    std::string objective = "energy";
    std::string directory;
    DepthFirstFidelity fidelity;
};

/// "conv1=recompute,...", for --overlap, and how far it is from the best.
std::string search_text(const depth_first::OverlapSearch& search) {
    std::string modes;
    for (const auto& [map, overlap] : search.strategy.of_maps)
        modes +=
            fmt::format("{}{}={}", modes.empty() ? "" : ",", map, depth_first::to_string(overlap));
    return fmt::format(
        "overlap: {}\n{}", modes,
        search.is_complete
            ? fmt::format("the best of all {} choices", search.compared)
            : fmt::format(
                  "the best of {} choices that were compared, not of all; at most {:.3g} times "
                  "what multiplications, weights and outputs cost in any",
                  search.compared, search.value / search.bound));
}

Exit run(const DepthFirstCostOptions& options, const ModelRequest& request, const Output& output) {
    if (options.tile.empty()) throw UsageError("--tile is required with --model depth-first");
    if (request.machine.empty()) throw UsageError("--machine is required with --model depth-first");
    Strategy strategy;
    strategy.tile = parse_tile(options.tile);
    strategy.stacks = depth_first::parse_stacks(options.stacks);
    strategy.mappings = depth_first::parse_objective(options.objective);
    const depth_first::Fidelity fidelity = options.fidelity.get();
    const Machine machine = open_machine(request.machine);
    const Network network = request.network.open();
    std::optional<NewDirectory> files;
    if (!options.directory.empty())
        files.emplace(
            options.directory,
            [](const auto& place) { return answer_files(place, "front.json", "laminate.front"); },
            "laminate cost");
    const DepthFirst model(machine, network, fidelity);
    std::optional<depth_first::OverlapSearch> search;
    DepthFirstCost cost;
    try {
        if (options.overlap == std::vector<std::string>{"search"}) {
            search = depth_first::search_overlaps(model, strategy, strategy.mappings);
            strategy = search->strategy;
        } else {
            set_overlaps(strategy, options.overlap, model.workload());
        }
        cost = model.cost(strategy, false);
    } catch (const depth_first::InfeasibleMapping& error) {
        throw InfeasibleError(error.what());
    }
    output.print(depth_first_text(model, cost));
    if (search) output.print(search_text(*search));
    nlohmann::ordered_json answer = depth_first_json(model, strategy, cost);
    nlohmann::ordered_json full = options.fidelity.head("laminate.cost", network, machine);
    if (search)
        full["overlap_search"] = {{"compared", search->compared},
                                  {"complete", search->is_complete},
                                  {"value", search->value},
                                  {"bound", search->bound}};
    full.update(answer);
    if (files) {
        FoundSchedules schedules(network, model);
        if (schedules.add("best", strategy).is_null())
            throw InputError("no schedule: " + schedules.refusal());
        const nlohmann::ordered_json front = schedules.front(request.network, "report.html");
        write_front(files->aside(), network, front);
        files->publish();
        output.print(fmt::format("in {}: front.json, for --schedule {}, and report.html",
                                 options.directory, options.directory));
    }
    output.json(full);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<DepthFirstCostOptions>();
    app.add_option("--tile", options->tile, "Columns x rows of each stack's output")
        ->type_name("WxH");
    app.add_option("--overlap", options->overlap,
                   "What tiles keep for their neighbours: recompute, h-cached, v-cached or "
                   "fully-cached; of the maps "
                   "of single layers: LAYER=MODE,...; search: the best for each")
        ->delimiter(',')
        ->default_str("fully-cached");
    app.add_option("--stacks", options->stacks,
                   "Layers executed together: weights-fit, single-layer or all")
        ->capture_default_str();
    app.add_option(
           "--objective", options->objective,
           "What the mapping of each layer has least of: energy, latency or edp (their product)")
        ->capture_default_str();
    app.add_option("-o,--output", options->directory,
                   "Directory to write the schedule to, for --schedule, and its page")
        ->type_name("DIR");
    options->fidelity.declare(app);
    return [options](const ModelRequest& request, const Output& output) {
        return run(*options, request, output);
    };
}

}  // namespace

CostModel cost_depth_first() {
    return {"depth-first",
            "energy and latency of depth-first tiles on a machine of many memories (DeFiNES)",
            declare};
}

}  // namespace laminate::cli
