// explore --model two-level: the Pareto front of schedules under ConvFusion's two-level model.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "answers/checks.h"
#include "answers/energy_report.h"
#include "answers/front_file.h"
#include "answers/front_report.h"
#include "answers/json_text.h"
#include "answers/report_page.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "cli/execution.h"
#include "cli/verbs.h"
#include "scheduler/explore/explore.h"
#include "scheduler/explore/fewest_accesses.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/explore/timed/timed_front.h"

namespace laminate::cli {

namespace {

struct ExploreTwoLevelOptions {
    std::string memory;
    bool no_recompute = false;
    std::string axes;       ///< of the front; empty: accesses and memory, and MACs of up to three layers
    std::string objective;  ///< one schedule only: "accesses" or "time"
    std::string speed;
    [[nodiscard]] bool is_timed() const {
        return objective == "time" || axes.find("time") != std::string::npos;
    }
    std::optional<Space> space;
    std::optional<TileSizes> tiles;
    ExploreOptions explore;
    /// Whether an option names what a search looks at, which with time is not searched otherwise.
    [[nodiscard]] bool names_a_search() const {
        return space || tiles || explore.max_depth || explore.footprint != Footprint::live ||
               no_recompute;
    }
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

/// The axes of --axes. Throws UsageError for a name that is none.
FrontAxes axes_of(const ExploreTwoLevelOptions& options) {
    FrontAxes axes{false, false, false, false};
    std::string name;
    std::istringstream names(options.axes);
    while (std::getline(names, name, ',')) {
        bool* const axis = name == "accesses" ? &axes.accesses
                           : name == "memory" ? &axes.memory
                           : name == "macs"   ? &axes.macs
                           : name == "time"   ? &axes.time
                                              : nullptr;
        if (axis == nullptr)
            throw UsageError(fmt::format(
                "--axes: found {}, expected a list of accesses, memory, macs and time", name));
        *axis = true;
    }
    return axes;
}

nlohmann::ordered_json axes_json(const FrontAxes& axes) {
    auto names = nlohmann::ordered_json::array();
    if (axes.accesses) names.push_back("accesses");
    if (axes.memory) names.push_back("memory");
    if (axes.macs) names.push_back("macs");
    if (axes.time) names.push_back("time");
    return names;
}

std::optional<int64_t> budget_of(const ExploreTwoLevelOptions& options) {
    if (options.memory.empty()) return std::nullopt;
    return parse_bytes("--memory", options.memory);
}

ExploreOptions explore_options(const ExploreTwoLevelOptions& options, const ModelRequest& request,
                               std::optional<int64_t> budget_bytes, StepNotes& notes) {
    ExploreOptions wanted = options.explore;
    wanted.space = options.space.value_or(wanted.space);
    wanted.tiles = options.tiles.value_or(wanted.tiles);
    wanted.threads = request.common.thread_count();
    wanted.recompute = !options.no_recompute;
    if (!options.axes.empty()) wanted.macs_is_axis = axes_of(options).macs;
    if (budget_bytes) wanted.memory = Elements(*budget_bytes / bytes_per_element);
    wanted.stop = request.stop;
    wanted.progress = [&notes](const ExploreProgress& progress) {
        notes.note("searching group", progress.segments_done, progress.segments_total,
                   progress.segment);
    };
    return wanted;
}

/// With time as an axis or objective, the schedules are those that `compile`, `run` and `bench`
/// choose from; if a space is named, also what its search finds.
TimedOptions timed_options(const Network& network, const ExploreTwoLevelOptions& options,
                           const ExploreOptions& wanted, const ModelRequest& request,
                           std::optional<int64_t> budget_bytes) {
    ScheduleArgument argument;
    argument.speed = options.speed;
    TimedOptions timed = argument.timed_options(request.common.thread_count());
    timed.stop = request.stop;
    if (budget_bytes) timed.memory = Bytes(*budget_bytes);
    if (options.names_a_search()) timed.searched = groups_of_steps(explore(network, wanted));
    return timed;
}

[[noreturn]] void refuse_nothing(const Network& network) {
    throw InputError("network " + network.name +
                     ": no layer that a schedule covers; nothing to explore");
}

/// An empty front has a reason: the budget, for which the smallest that works is searched, or an
/// interrupt before the first schedule.
[[noreturn]] void refuse_empty_front(const Network& network, const ExploreTwoLevelOptions& options,
                                     ExploreOptions wanted, const ModelRequest& request,
                                     std::optional<int64_t> budget_bytes) {
    if (wanted.stop->load()) throw std::runtime_error("explore: no schedule was looked at");
    if (!budget_bytes) refuse_nothing(network);
    Elements least = Elements(INT64_MAX);
    if (options.is_timed()) {
        const auto none = fastest_schedule(
            network, timed_options(network, options, wanted, request, budget_bytes));
        if (std::holds_alternative<Schedule>(none)) refuse_nothing(network);
        least = std::get<Infeasible>(none).demand;
    } else {
        wanted.memory.reset();
        for (const FrontPoint& point : explore(network, wanted).points)
            least = std::min(least, memory_of(point.counts, wanted.footprint));
    }
    throw InfeasibleError(fmt::format(
        "{}: no schedule fits in {}; the smallest budget that works is {} bytes ({})", network.name,
        bytes_text(*budget_bytes), to_bytes(least).value(), bytes_text(to_bytes(least).value())));
}

/// Predicted for the layers of the front, each alone, in the same kind of code.
double layer_by_layer_milliseconds(const Network& network, const Front& front,
                                   const ExploreTwoLevelOptions& options, int threads) {
    ScheduleArgument argument;
    argument.speed = options.speed;
    const TimedOptions timed = argument.timed_options(threads);
    const Schedule alone = with_default_kernels(network, layers_alone(network, front), timed.unit,
                                                timed.kernels);
    return predicted_milliseconds(network, alone, timed.speed, threads);
}

nlohmann::ordered_json answer_of(const Network& network, const Front& front,
                                 const FrontNotes& notes, const ExploreTwoLevelOptions& options,
                                 const ExploreOptions& wanted, const ModelRequest& request) {
    nlohmann::ordered_json answer =
        front_json(network, front, notes, front.is_complete && !request.stop->load());
    if (!options.objective.empty()) {
        answer["objective"] = options.objective;
    } else {
        FrontAxes axes =
            options.axes.empty() ? FrontAxes{true, true, false, false} : axes_of(options);
        axes.macs = front.macs_is_axis;
        answer["axes"] = axes_json(axes);
    }
    if (options.is_timed()) {
        answer["space"] = options.names_a_search() ? "timed and " + name_of(space_names, wanted.space)
                                                   : std::string("timed");
        answer["layer_by_layer"]["time_ms"] =
            layer_by_layer_milliseconds(network, front, options, wanted.threads);
        answer["threads"] = wanted.threads;
        answer["speed"] = options.speed.empty() ? "usual" : options.speed;
    } else {
        answer["space"] = name_of(space_names, wanted.space);
    }
    answer["network_given"] = request.network.to_json();
    if (options.is_timed() && !options.names_a_search()) return answer;
    answer["tiles"] = name_of(tile_names, wanted.tiles);
    answer["max_depth"] = wanted.max_depth.value_or(default_max_depth(wanted.space));
    answer["recompute"] = wanted.recompute;
    return answer;
}

/// Throws UsageError for options that do not go together.
void check_options(const ExploreTwoLevelOptions& options) {
    if (!options.is_timed() && !options.speed.empty())
        throw UsageError("--speed: expected with --objective time or time among --axes");
    if (!options.axes.empty() && !axes_of(options).time) {
        const FrontAxes axes = axes_of(options);
        if (!axes.accesses || !axes.memory)
            throw UsageError(
                "--axes: expected accesses,memory or accesses,memory,macs without "
                "time, or any with time");
    }
}

Exit run(const ExploreTwoLevelOptions& options, const ModelRequest& request, const Output& output) {
    if (request.directory.empty()) throw UsageError("--output is required with --model two-level");
    check_options(options);
    std::optional<EnergyTable> machine;
    if (!request.machine.empty()) machine = open_energy_table(request.machine);
    const Network network = to_run(request.network.open());
    NewDirectory files(
        request.directory,
        [](const auto& place) { return answer_files(place, "front.json", "laminate.front"); },
        "laminate explore");
    const std::optional<int64_t> budget_bytes = budget_of(options);
    StepNotes progress(output);
    const ExploreOptions wanted = explore_options(options, request, budget_bytes, progress);
    const bool only_accesses = options.objective == "accesses";
    const Front front = [&] {
        if (!options.is_timed())
            return only_accesses ? search::fewest_accesses(network, wanted)
                                 : explore(network, wanted);
        const TimedOptions timed = timed_options(network, options, wanted, request, budget_bytes);
        return options.objective == "time" ? fastest_front(network, timed)
                                           : timed_front(network, axes_of(options), timed);
    }();
    if (request.stop->load()) output.note("interrupted: the front of what was looked at so far");
    if (front.groups.empty() && !front.points.empty()) refuse_nothing(network);
    if (front.points.empty()) refuse_empty_front(network, options, wanted, request, budget_bytes);

    std::optional<Elements> misses;
    if (machine) misses = register_file_misses(network, *machine, wanted.threads);
    const FrontNotes notes = front_notes(network, front, machine, misses);
    nlohmann::ordered_json answer = answer_of(network, front, notes, options, wanted, request);
    write_front(files.aside(), network, answer, wanted.threads, &front.groups);
    write_file_atomically(files.aside() / "front.csv", front_csv(front, notes));
    files.publish();

    output.print(front_table(front, notes, 20));
    if (!options.is_timed()) output.print(front_gap(front, only_accesses));
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
           "--space", options->space,
           "A space of ConvFusion: baseline, tiling, fusion (resident weights, nothing "
           "computed twice) or fusion-recompute; or dag: groups with forks and joins, every "
           "pool and Add counted. With time, what the search finds joins the "
           "planner's groups")
        ->transform(one_of(space_names))
        ->default_str("fusion-recompute");
    app.add_option("--tiles", options->tiles, "Tile sizes to try: all, divisors or pow2")
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
    app.add_option("--axes", options->axes,
                   "Of the front, a list of accesses, memory, macs and time (default: "
                   "accesses,memory, for up to three layers also macs). With time: schedules with "
                   "kernels, as compile and run choose them; any subset")
        ->type_name("LIST");
    app.add_option(
           "--objective", options->objective,
           "One schedule instead of a front, within --memory: the fewest accesses, found at "
           "once where a bound is reached, or the least time")
        ->check(CLI::IsMember({"accesses", "time"}))
        ->excludes("--axes");
    app.add_option("--speed", options->speed,
                   "Speed of the processor, for time: a name of `laminate machine list` or a file "
                   "of `laminate machine measure -o` (default: avx512, xeon6, zen4 or avx2)")
        ->type_name("FILE");
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
