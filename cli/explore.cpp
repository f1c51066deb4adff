// laminate explore NET -o DIR: the Pareto front of schedules under the two-level model.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "cli/energy_report.h"
#include "cli/front_report.h"
#include "cli/report_page.h"
#include "cli/verbs.h"
#include "scheduler/explore.h"

namespace laminate::cli {

namespace {

struct Options {
    NetworkArgument network;
    std::string directory;
    std::string model = "two-level";
    std::string memory;
    std::string machine;
    bool no_recompute = false;
    int axes = 0;  ///< 0: by the network
    ExploreOptions explore;
};

/// Set by an interrupt; the search then hands over what it has.
std::atomic<bool> interrupted{false};
extern "C" void note_interrupt(int) { interrupted.store(true); }

class InterruptHandler {
public:
    InterruptHandler() : before_(std::signal(SIGINT, note_interrupt)) {}
    ~InterruptHandler() { std::signal(SIGINT, before_); }
    InterruptHandler(const InterruptHandler&) = delete;
    InterruptHandler& operator=(const InterruptHandler&) = delete;

private:
    void (*before_)(int);
};

const std::map<std::string, Space> space_names{{"baseline", Space::baseline},
                                              {"tiling", Space::tiling},
                                              {"fusion", Space::fusion},
                                              {"fusion-recompute", Space::fusion_recompute},
                                              {"dag", Space::dag}};
const std::map<std::string, TileSizes> tile_names{
    {"all", TileSizes::all}, {"divisors", TileSizes::divisors}, {"pow2", TileSizes::powers_of_two}};
const std::map<std::string, Footprint> footprint_names{{"live", Footprint::live}, {"sum", Footprint::sum}};

template <class Value>
std::string name_of(const std::map<std::string, Value>& names, Value value) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& entry) { return entry.second == value; });
    return found->first;
}

bool holds_a_front(const std::filesystem::path& directory) {
    try {
        const auto front = nlohmann::json::parse(read_file(directory / "front.json"), nullptr, false);
        return front.is_object() && front.value("schema", "") == "laminate.front";
    } catch (const InputError&) {
        return false;
    }
}

Exit run_explore(const Options& options, const CommonOptions& common, const Output& output) {
    std::optional<EnergyTable> machine;
    if (!options.machine.empty()) machine = load_energy_table(options.machine);
    const Network network = options.network.open();
    NewDirectory files(options.directory, holds_a_front, "laminate explore");
    ExploreOptions search = options.explore;
    search.threads = common.thread_count();
    search.recompute = !options.no_recompute;
    if (options.axes != 0) search.macs_is_axis = options.axes == 3;
    std::optional<int64_t> budget_bytes;
    if (!options.memory.empty()) {
        budget_bytes = parse_bytes("--memory", options.memory);
        search.memory = Elements(*budget_bytes / bytes_per_element);
    }
    const InterruptHandler handler;
    search.stop = &interrupted;
    auto last_note = std::chrono::steady_clock::now();
    search.progress = [&](const ExploreProgress& progress) {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_note < std::chrono::seconds(2)) return;
        last_note = now;
        output.note(
            fmt::format("{} of {} groups, {}", progress.segments_done, progress.segments_total, progress.segment));
    };
    const Front front = explore(network, search);
    if (interrupted) output.note("interrupted: the front of what was looked at so far");
    if (front.points.empty()) {
        if (interrupted || !budget_bytes) throw std::runtime_error("explore: no schedule was looked at");
        search.memory.reset();
        Elements least = Elements(INT64_MAX);
        for (const FrontPoint& point : explore(network, search).points)
            least = std::min(least, memory_of(point.counts, search.footprint));
        throw InfeasibleError(fmt::format("{}: no schedule fits in {}; the smallest budget that works is {} bytes ({})",
                                          network.name, bytes_text(*budget_bytes), to_bytes(least).value(),
                                          bytes_text(to_bytes(least).value())));
    }

    const std::string hash = network_hash(network);
    for (size_t n = 0; n < front.points.size(); ++n) {
        write_file_atomically(files.aside() / fmt::format("{:04}.json", n),
                              to_json(network, front.points[n].schedule, hash));
    }
    std::optional<Elements> misses;
    if (machine) misses = register_file_misses(network, *machine, search.threads);
    const FrontNotes notes = front_notes(network, front, machine, misses);
    nlohmann::ordered_json answer = front_json(network, front, notes, front.is_complete && !interrupted);
    answer["space"] = name_of(space_names, search.space);
    answer["tiles"] = name_of(tile_names, search.tiles);
    answer["max_depth"] = search.max_depth.value_or(default_max_depth(search.space));
    answer["recompute"] = search.recompute;
    answer["network_given"] = options.network.to_json();
    write_file_atomically(files.aside() / "front.json", answer.dump(2) + "\n");
    write_file_atomically(files.aside() / "front.csv", front_csv(front, notes));
    write_file_atomically(files.aside() / "report.html", report_page(network, answer));
    files.publish();

    output.print(front_table(front, notes, 20));
    output.print(front_gap(front));
    output.print(
        fmt::format("{} schedules; all in {}: front.json, front.csv, report.html, and 0000.json ... for --schedule",
                    front.points.size(), options.directory));
    output.json(answer);
    return Exit::ok;
}

}  // namespace

void add_explore(Program& program) {
    CLI::App* verb =
        program.add_verb("explore", "The best schedules: external accesses against memory against work",
                         "  laminate explore zoo:l2net -o front/\n"
                         "  laminate explore zoo:l3net --space fusion --tiles all --footprint sum -o front/\n"
                         "  laminate explore zoo:resnet18 --space dag --max-depth 6 -o front/\n"
                         "  laminate explore zoo:fsrcnn --memory 64KiB --max-depth 4 --tiles pow2 -o front/\n"
                         "  laminate explore zoo:l3net --machine machines/convfusion-40nm-banked.json -o front/");
    auto options = std::make_shared<Options>();
    options->network.declare(verb);
    verb->add_option("-o,--output", options->directory, "Directory to make; a front that was there before is replaced")
        ->required()
        ->type_name("DIR");
    verb->add_option("--model", options->model, "Cost model")
        ->check(CLI::IsMember({"two-level"}))
        ->capture_default_str();
    verb->add_option("--space", options->explore.space,
                     "ConvFusion's spaces: baseline, tiling, fusion (resident weights, nothing computed twice), fusion-recompute; "
                     "dag: groups with forks and joins, every pool and Add counted")
        ->transform(CLI::CheckedTransformer(space_names))
        ->default_str("fusion-recompute");
    verb->add_option("--tiles", options->explore.tiles, "Tile sizes to look at: all, divisors or pow2")
        ->transform(CLI::CheckedTransformer(tile_names))
        ->default_str("divisors");
    verb->add_option("--max-depth", options->explore.max_depth, "Layers in a group at most (default: all; 8 in space dag)")
        ->check(CLI::PositiveNumber);
    verb->add_option("--footprint", options->explore.footprint,
                     "Memory that is counted: live (largest live sum) or sum (of all buffers of a group, as in the paper)")
        ->transform(CLI::CheckedTransformer(footprint_names))
        ->default_str("live");
    verb->add_option("--axes", options->axes, "3: MACs are an axis of the front; 2: they decide between equals (default: 3 for short chains)")
        ->check(CLI::IsMember({2, 3}));
    verb->add_flag("--no-recompute", options->no_recompute, "No element of an intermediate tensor is computed twice");
    verb->add_option("--memory", options->memory, "Only schedules that hold no more at once, e.g. 64KiB")
        ->type_name("SIZE");
    verb->add_option("--machine", options->machine, "Machine file (machines/README.md): energy of every point, and the least")
        ->type_name("FILE");
    program.on(verb,
               [options, &program](const Output& output) { return run_explore(*options, program.common(), output); });
}

}  // namespace laminate::cli
