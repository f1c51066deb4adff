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

struct Question {
    Machine machine;
    Network network;
    depth_first::Fidelity fidelity;
    Strategy strategy;  ///< without its overlap, whose maps the model knows
    bool searches_overlap = false;
};

struct Answer {
    Strategy strategy;
    DepthFirstCost cost;
    std::optional<depth_first::OverlapSearch> search;
};

Question question_of(const DepthFirstCostOptions& options, const ModelRequest& request) {
    if (options.tile.empty()) throw UsageError("--tile is required with --model depth-first");
    if (request.machine.empty()) throw UsageError("--machine is required with --model depth-first");
    Strategy strategy;
    strategy.tile = parse_tile(options.tile);
    strategy.stacks = depth_first::parse_stacks(options.stacks);
    strategy.mappings = depth_first::parse_objective(options.objective);
    const depth_first::Fidelity fidelity = options.fidelity.get();
    Machine machine = open_machine(request.machine);
    return {std::move(machine), request.network.open(), fidelity, std::move(strategy),
            options.overlap == std::vector<std::string>{"search"}};
}

Answer solve(const Question& q, const std::vector<std::string>& overlap, const DepthFirst& model) {
    try {
        Answer answer{q.strategy, {}, {}};
        if (q.searches_overlap) {
            answer.search = depth_first::search_overlaps(model, q.strategy, q.strategy.mappings);
            answer.strategy = answer.search->strategy;
        } else {
            set_overlaps(answer.strategy, overlap, model.workload());
        }
        answer.cost = model.cost(answer.strategy, false);
        return answer;
    } catch (const depth_first::InfeasibleMapping& error) {
        throw InfeasibleError(error.what());
    }
}

nlohmann::ordered_json answer_json(const Question& q, const Answer& answer, const DepthFirst& model,
                                   const DepthFirstFidelity& fidelity) {
    nlohmann::ordered_json json = fidelity.head("laminate.cost", q.network, q.machine);
    if (const auto& search = answer.search)
        json["overlap_search"] = {{"compared", search->compared},
                                  {"complete", search->is_complete},
                                  {"value", search->value},
                                  {"bound", search->bound}};
    json.update(depth_first_json(model, answer.strategy, answer.cost));
    return json;
}

/// The modes found, as --overlap takes them, and how far they may be from the best.
std::string search_text(const depth_first::OverlapSearch& search) {
    std::string modes;
    for (const auto& [map, overlap] : search.strategy.of_maps)
        modes +=
            fmt::format("{}{}={}", modes.empty() ? "" : ",", map, depth_first::to_string(overlap));
    return fmt::format(
        "overlap: {}\n{}", modes,
        search.is_complete
            ? fmt::format("the best of all {} choices", search.compared)
            : fmt::format("the best of {} choices compared, not of all; at most {:.3g} times the "
                          "cost of multiplications, weights and outputs, which every choice pays",
                          search.compared, search.value / search.bound));
}

void write_schedule(const Question& q, const Answer& answer, const DepthFirst& model,
                    const NetworkArgument& given, NewDirectory& files) {
    FoundSchedules schedules(q.network, model);
    if (schedules.add("best", answer.strategy).is_null())
        throw InputError("no schedule: " + schedules.refusal());
    write_front(files.aside(), q.network, schedules.front(given, "report.html"));
    files.publish();
}

Exit run(const DepthFirstCostOptions& options, const ModelRequest& request, const Output& output) {
    const Question q = question_of(options, request);
    std::optional<NewDirectory> files;
    if (!options.directory.empty())
        files.emplace(
            options.directory,
            [](const auto& place) { return answer_files(place, "front.json", "laminate.front"); },
            "laminate cost");
    const DepthFirst model(q.machine, q.network, q.fidelity);
    const Answer answer = solve(q, options.overlap, model);
    output.print(depth_first_text(model, answer.cost));
    if (answer.search) output.print(search_text(*answer.search));
    if (files) {
        write_schedule(q, answer, model, request.network, *files);
        output.print(fmt::format("in {}: front.json, for --schedule {}, and report.html",
                                 options.directory, options.directory));
    }
    output.json(answer_json(q, answer, model, options.fidelity));
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<DepthFirstCostOptions>();
    app.add_option("--tile", options->tile, "Columns x rows of each stack's output")
        ->type_name("WxH");
    app.add_option("--overlap", options->overlap,
                   "What tiles keep for their neighbours: recompute, h-cached, v-cached or "
                   "fully-cached; LAYER=MODE,... for the maps of single layers; search: the best "
                   "mode of each map")
        ->delimiter(',')
        ->default_str("fully-cached");
    app.add_option("--stacks", options->stacks,
                   "Layers executed together: weights-fit, single-layer or all")
        ->capture_default_str();
    app.add_option(
           "--objective", options->objective,
           "What the mapping of each layer minimises: energy, latency or edp (their product)")
        ->capture_default_str();
    app.add_option("-o,--output", options->directory,
                   "Directory for the schedule, which --schedule reads, and its page")
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
