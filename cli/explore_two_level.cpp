// explore --model two-level: the Pareto front of schedules under ConvFusion's two-level model.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/checks.h"
#include "answers/energy_report.h"
#include "answers/front_report.h"
#include "answers/json_text.h"
#include "answers/report_page.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "cli/verbs.h"
#include "scheduler/explore/explore.h"
#include "scheduler/explore/fewest_accesses.h"

namespace laminate::cli {

namespace {

struct ExploreTwoLevelOptions {
    std::string memory;
    bool no_recompute = false;
    int axes = 0;  ///< 0: decided by the network
    ExploreOptions explore;
};

const std::map<std::string, Space> space_names{{"baseline", Space::baseline},
                                               {"tiling", Space::tiling},
                                               {"fusion", Space::fusion},
                                               {"fusion-recompute", Space::fusion_recompute},
                                               {"dag", Space::dag}};
const std::map<std::string, TileSizes> tile_names{
    {"all", TileSizes::all}, {"divisors", TileSizes::divisors}, {"pow2", TileSizes::powers_of_two}};
const std::map<std::string, Footprint> footprint_names{{"live", Footprint::live},
                                                       {"sum", Footprint::sum}};

template <class Value>
std::string name_of(const std::map<std::string, Value>& names, Value value) {
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const auto& entry) { return entry.second == value; });
    return found->first;
}

std::optional<int64_t> budget_of(const ExploreTwoLevelOptions& options) {
    if (options.memory.empty()) return std::nullopt;
    return parse_bytes("--memory", options.memory);
}

ExploreOptions explore_options(const ExploreTwoLevelOptions& options, const ModelRequest& request,
                               std::optional<int64_t> budget_bytes, OccasionalNotes& notes) {
    ExploreOptions wanted = options.explore;
    wanted.threads = request.common.thread_count();
    wanted.recompute = !options.no_recompute;
    if (options.axes >= 2) wanted.macs_is_axis = options.axes == 3;
    if (budget_bytes) wanted.memory = Elements(*budget_bytes / bytes_per_element);
    wanted.stop = request.stop;
    wanted.progress = [&notes](const ExploreProgress& progress) {
        notes.note([&] {
            return fmt::format("{} of {} groups, {}", progress.segments_done,
                               progress.segments_total, progress.segment);
        });
    };
    return wanted;
}

/// An empty front has a reason: the budget, for which the smallest that works is searched, or an
/// interrupt before the first schedule.
[[noreturn]] void refuse_empty_front(const Network& network, ExploreOptions wanted,
                                     std::optional<int64_t> budget_bytes) {
    if (wanted.stop->load() || !budget_bytes)
        throw std::runtime_error("explore: no schedule was looked at");
    wanted.memory.reset();
    Elements least = Elements(INT64_MAX);
    for (const FrontPoint& point : explore(network, wanted).points)
        least = std::min(least, memory_of(point.counts, wanted.footprint));
    throw InfeasibleError(fmt::format(
        "{}: no schedule fits in {}; the smallest budget that works is {} bytes ({})", network.name,
        bytes_text(*budget_bytes), to_bytes(least).value(), bytes_text(to_bytes(least).value())));
}

nlohmann::ordered_json answer_of(const Network& network, const Front& front,
                                 const FrontNotes& notes, const ExploreOptions& wanted,
                                 bool only_accesses, const ModelRequest& request) {
    nlohmann::ordered_json answer =
        front_json(network, front, notes, front.is_complete && !request.stop->load());
    answer["space"] = name_of(space_names, wanted.space);
    answer["axes"] = only_accesses ? 1 : front.macs_is_axis ? 3 : 2;
    answer["tiles"] = name_of(tile_names, wanted.tiles);
    answer["max_depth"] = wanted.max_depth.value_or(default_max_depth(wanted.space));
    answer["recompute"] = wanted.recompute;
    answer["network_given"] = request.network.to_json();
    return answer;
}

Exit run(const ExploreTwoLevelOptions& options, const ModelRequest& request, const Output& output) {
    if (request.directory.empty()) throw UsageError("--output is required with --model two-level");
    std::optional<EnergyTable> machine;
    if (!request.machine.empty()) machine = open_energy_table(request.machine);
    const Network network = request.network.open();
    NewDirectory files(
        request.directory,
        [](const auto& place) { return answer_files(place, "front.json", "laminate.front"); },
        "laminate explore");
    const std::optional<int64_t> budget_bytes = budget_of(options);
    OccasionalNotes progress(output);
    const ExploreOptions wanted = explore_options(options, request, budget_bytes, progress);
    const bool only_accesses = options.axes == 1;
    const Front front =
        only_accesses ? search::fewest_accesses(network, wanted) : explore(network, wanted);
    if (request.stop->load()) output.note("interrupted: the front of what was looked at so far");
    if (front.points.empty()) refuse_empty_front(network, wanted, budget_bytes);

    std::optional<Elements> misses;
    if (machine) misses = register_file_misses(network, *machine, wanted.threads);
    const FrontNotes notes = front_notes(network, front, machine, misses);
    nlohmann::ordered_json answer =
        answer_of(network, front, notes, wanted, only_accesses, request);
    write_front(files.aside(), network, answer, wanted.threads, &front.groups);
    write_file_atomically(files.aside() / "front.csv", front_csv(front, notes));
    files.publish();

    output.print(front_table(front, notes, 20));
    output.print(front_gap(front, only_accesses));
    output.print(fmt::format(
        "{} schedule{} in {}: front.json, front.csv, report.html; --schedule {}#0 ... takes one",
        front.points.size(), front.points.size() == 1 ? "" : "s; all", request.directory,
        request.directory));
    output.json(answer);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<ExploreTwoLevelOptions>();
    app.add_option(
           "--space", options->explore.space,
           "A space of ConvFusion: baseline, tiling, fusion (resident weights, nothing "
           "computed twice) or fusion-recompute; or dag: groups with forks and joins, every "
           "pool and Add counted")
        ->transform(one_of(space_names))
        ->default_str("fusion-recompute");
    app.add_option("--tiles", options->explore.tiles, "Tile sizes to try: all, divisors or pow2")
        ->transform(one_of(tile_names))
        ->default_str("divisors");
    app.add_option("--max-depth", options->explore.max_depth,
                   "Most layers in a group (default: all; 8 in space dag)")
        ->check(positive());
    app.add_option("--footprint", options->explore.footprint,
                   "How memory is counted: live (the largest sum of live buffers) or sum (of all "
                   "buffers of a group, as in the paper)")
        ->transform(one_of(footprint_names))
        ->default_str("live");
    app.add_option(
           "--axes", options->axes,
           "3: MACs are an axis of the front; 2: MACs decide between equals (default: 3 for "
           "short chains); 1: one schedule with the fewest accesses that --memory allows, "
           "found at once where a bound is reached")
        ->check(CLI::IsMember({1, 2, 3}));
    app.add_flag("--no-recompute", options->no_recompute,
                 "Compute nothing twice: no more MACs than layer by layer");
    app.add_option("--memory", options->memory,
                   "Only schedules that hold at most this much at once, e.g. 64KiB")
        ->type_name("SIZE");
    return [options](const ModelRequest& request, const Output& output) {
        return run(*options, request, output);
    };
}

}  // namespace

CostModel explore_two_level() {
    return {"two-level",
            "external accesses, memory and work of any schedule (ConvFusion); writes a front",
            declare};
}

}  // namespace laminate::cli
