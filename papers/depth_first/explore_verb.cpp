// explore --model depth-first: tile sizes x overlap modes of DeFiNES on a machine of many memories.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

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
#include "papers/depth_first/sweep_page.h"
#include "papers/verbs.h"

namespace laminate::cli {

namespace {

using depth_first::DepthFirst;
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

struct Question {
    Machine machine;
    Network network;
    depth_first::SweepOptions search;
};

struct Answer {
    Sweep sweep;
    std::optional<depth_first::Cut> cut;
    double seconds = 0;
};

depth_first::SweepOptions search_options(const DepthFirstExploreOptions& options,
                                         const ModelRequest& request) {
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
    return search;
}

Question question_of(const DepthFirstExploreOptions& options, const ModelRequest& request) {
    if (request.machine.empty()) throw UsageError("--machine is required with --model depth-first");
    depth_first::SweepOptions search = search_options(options, request);
    Machine machine = open_machine(request.machine);
    return {std::move(machine), request.network.open(), std::move(search)};
}

/// The sweep and, if `searches_stacks` and nobody interrupted it, the best cut.
Answer solve(const Question& q, const DepthFirst& model, bool searches_stacks,
             std::chrono::steady_clock::time_point begin) {
    Answer answer{depth_first::sweep(model, q.search), {}, 0};
    if (searches_stacks && answer.sweep.complete)
        answer.cut = depth_first::best_cut(model, q.search);
    answer.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return answer;
}

/// The schedules of the best points, added to `schedules`.
nlohmann::ordered_json schedules_json(const DepthFirst& model, const Answer& answer,
                                      FoundSchedules& schedules) {
    const Sweep& found = answer.sweep;
    const SweepPoint& best = found.points[*found.best];
    nlohmann::ordered_json json{{"best", schedules.add("best", best.strategy)}};
    if (found.combination && found.combination->points.size() > 1) {
        std::vector<depth_first::ScheduledStack> stacks;
        const auto all = model.stacks(best.strategy.stacks);
        for (size_t n = 0; n < all.size(); ++n)
            stacks.push_back({all[n], found.points[found.combination->points[n]].strategy});
        json["best_per_stack"] = schedules.add("best-per-stack", stacks);
    }
    if (answer.cut) {
        std::vector<depth_first::ScheduledStack> stacks;
        for (const depth_first::ChosenStack& stack : answer.cut->stacks)
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

nlohmann::ordered_json answer_json(const Question& q, const Answer& answer, const DepthFirst& model,
                                   const DepthFirstFidelity& fidelity, const NetworkArgument& given,
                                   FoundSchedules& schedules) {
    nlohmann::ordered_json json = fidelity.head("laminate.depth_first_sweep", q.network, q.machine);
    json["objective"] = depth_first::to_string(q.search.objective);
    json["complete"] = answer.sweep.complete;
    json["seconds"] = answer.seconds;
    json.update(sweep_json(model, answer.sweep));
    if (answer.cut) json["best_cut"] = cut_json(model, *answer.cut);
    json["schedules"] = schedules_json(model, answer, schedules);
    json["network_given"] = given.to_json();
    return json;
}

std::string about_text(const Question& q, const DepthFirstFidelity& fidelity) {
    return fmt::format("Machine: {}. Model: DeFiNES, {}; {}. laminate {}.", q.machine.about,
                       fidelity.as_published ? "as published" : "quirks mended",
                       fidelity.lpf_limit > 0
                           ? fmt::format("orders of at most {} merged factors", fidelity.lpf_limit)
                           : "exact mapping of every tile",
                       program_version());
}

void write_files(const Question& q, const Answer& answer, const DepthFirst& model,
                 const std::string& about, const NetworkArgument& given,
                 const FoundSchedules& schedules, const nlohmann::ordered_json& json,
                 NewDirectory& files) {
    write_file_atomically(files.aside() / "sweep.json", json_text(json));
    write_file_atomically(files.aside() / "sweep.csv", sweep_csv(answer.sweep));
    if (!schedules.empty())
        write_front(files.aside(), q.network, schedules.front(given, "schedules.html"));
    const SweepPageNotes notes{.network = q.network.name,
                               .about = about,
                               .nests = schedules.nests(json["schedules"]["front"]),
                               .has_schedules = !schedules.empty()};
    write_file_atomically(files.aside() / "report.html", sweep_page(model, answer.sweep, notes));
    files.publish();
}

/// `directory`: where the files are; empty if none were asked for.
void print_answer(const Answer& answer, const DepthFirst& model, const FoundSchedules& schedules,
                  const std::string& directory, const Output& output) {
    output.print(sweep_text(answer.sweep));
    if (answer.cut) output.print(cut_text(model, *answer.cut));
    std::string files;
    if (!directory.empty()) {
        if (!schedules.refusal().empty())
            output.note("no schedule for some: " + schedules.refusal());
        files = fmt::format("; all in {}: sweep.json, sweep.csv, report.html", directory);
        if (!schedules.empty())
            files += fmt::format(", schedules.html, front.json; --schedule {}#best takes one",
                                 directory);
    }
    output.print(
        fmt::format("{} points in {:.2f} s{}", answer.sweep.points.size(), answer.seconds, files));
}

Exit run(const DepthFirstExploreOptions& options, const ModelRequest& request,
         const Output& output) {
    Question q = question_of(options, request);
    OccasionalNotes notes(output);
    q.search.progress = [&](size_t done, size_t total) {
        notes.note([&] { return fmt::format("{} of {} points", done, total); });
    };
    std::optional<NewDirectory> files;
    if (!request.directory.empty())
        files.emplace(
            request.directory,
            [](const auto& place) {
                return answer_files(place, "sweep.json", "laminate.depth_first_sweep");
            },
            "laminate explore");
    const auto begin = std::chrono::steady_clock::now();
    const DepthFirst model(q.machine, q.network, options.fidelity.get());
    const Answer answer = solve(q, model, options.search_stacks, begin);
    if (!answer.sweep.complete) output.note("interrupted: the points evaluated so far");
    if (options.search_stacks && !answer.cut)
        output.note(request.stop->load()
                        ? "interrupted: cuts of the network into stacks were not compared"
                        : "no cut of the network into stacks fits");
    if (!answer.sweep.best)
        throw InfeasibleError(fmt::format("{}: no tile fits the memories of machine {}",
                                          q.network.name, q.machine.name));
    FoundSchedules schedules(q.network, model);
    const nlohmann::ordered_json json =
        answer_json(q, answer, model, options.fidelity, request.network, schedules);
    if (files)
        write_files(q, answer, model, about_text(q, options.fidelity), request.network, schedules,
                    json, *files);
    print_answer(answer, model, schedules, request.directory, output);
    output.json(json);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<DepthFirstExploreOptions>();
    app.add_option("--columns", options->sweep.columns,
                   "Widths of tiles; a width beyond the map is the map's")
        ->delimiter(',')
        ->check(positive());
    app.add_option("--rows", options->sweep.rows, "Heights of tiles")
        ->delimiter(',')
        ->check(positive());
    app.add_option("--overlap", options->overlaps,
                   "Only these overlap modes: recompute, h-cached, fully-cached, v-cached "
                   "(default: the paper's, which are the first three)")
        ->delimiter(',');
    app.add_option("--stacks", options->stacks,
                   "Layers executed together: weights-fit, single-layer or all")
        ->capture_default_str();
    app.add_flag(
        "--search-stacks", options->search_stacks,
        "Also compare all cuts of the network into stacks, each stack with its best tile and "
        "overlap");
    app.add_option("--objective", options->objective,
                   "What the best point and the mapping of each layer minimise: energy, latency or "
                   "edp (their product)")
        ->capture_default_str();
    app.add_option("--mappings", options->mappings,
                   "Map the layers of each tile for each of these objectives: energy, latency, edp "
                   "(default: --objective)")
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
