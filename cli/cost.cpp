// laminate cost NET --schedule F: the two-level model's counts; laminate show F: the schedule as a loop nest.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "cli/counts_report.h"
#include "cli/verbs.h"
#include "nets/zoo.h"
#include "scheduler/models/two_level/two_level.h"

namespace laminate::cli {

namespace {

Exit cost(const Network& network, const Schedule& schedule, const Output& output) {
    std::vector<GroupCounts> groups;
    for (const GroupSchedule& group : schedule.groups()) groups.push_back(two_level_counts(network, group));
    const NetworkCounts sums = total(groups);
    output.print(counts_table(groups));
    output.print(fmt::format("external accesses {}, {} MACs, footprint {} elements = {} (in elements of one image)",
                             grouped(sums.accesses.value()), grouped(sums.macs.value()), grouped(sums.live_total.value()),
                             bytes_text(to_bytes(sums.live_total).value())));
    output.json({{"schema", "laminate.cost"},
                 {"version", 1},
                 {"model", "two-level"},
                 {"network", network.name},
                 {"network_hash", network_hash(network)},
                 {"schedule", to_text(schedule)},
                 {"accesses_elements", sums.accesses.value()},
                 {"macs", sums.macs.value()},
                 {"live_total_elements", sums.live_total.value()},
                 {"sum_total_elements", sums.sum_total.value()},
                 {"counts", counts_json(groups)}});
    return Exit::ok;
}

/// The network that a schedule file names, when it is one of the zoo's at its default size.
Network network_of_schedule_file(const std::string& path) {
    const auto refuse = [&](const std::string& found) {
        return InputError(path + ": " + found + "; give the network with --net");
    };
    const nlohmann::json file = nlohmann::json::parse(read_file(path), nullptr, false);
    if (!file.is_object() || !file.contains("network") || !file["network"].is_string()) {
        throw refuse("names no network");
    }
    const auto name = file["network"].get<std::string>();
    try {
        return zoo_network(name);
    } catch (const InputError&) {
        throw refuse("is for network \"" + name + "\", which is not in the zoo");
    }
}

}  // namespace

Schedule read_schedule(const Network& network, const std::string& argument) {
    std::error_code too_long_for_a_path;
    const bool is_text = argument.starts_with('{') && !std::filesystem::exists(argument, too_long_for_a_path);
    return is_text ? parse_schedule(network, argument) : load_schedule(network, argument);
}

void add_cost(Program& program) {
    CLI::App* verb = program.add_verb("cost", "What the two-level model counts for one schedule",
                                      "  laminate cost zoo:l2net --schedule front/0003.json\n"
                                      "  laminate cost zoo:l2net --schedule '{conv1: zo yo ...}'");
    auto argument = std::make_shared<NetworkArgument>();
    auto schedule = std::make_shared<std::string>();
    argument->declare(verb);
    verb->add_option("--schedule", *schedule, "Schedule file (JSON or text), or the text itself")->required();
    program.on(verb, [argument, schedule](const Output& output) {
        const Network network = argument->open();
        return cost(network, read_schedule(network, *schedule), output);
    });
}

void add_show(Program& program) {
    CLI::App* verb = program.add_verb("show", "A schedule as the loop nest a person would write",
                                      "  laminate show front/0003.json\n"
                                      "  laminate show schedule.json --net net.onnx --height 540 --width 960");
    struct Options {
        std::string file;
        NetworkArgument network;
    };
    auto options = std::make_shared<Options>();
    verb->add_option("F", options->file, "Schedule file (JSON or text), or the text itself")->required();
    options->network.declare_option(verb);
    program.on(verb, [options](const Output& output) {
        const Network network =
            options->network.spec.empty() ? network_of_schedule_file(options->file) : options->network.open();
        const Schedule schedule = read_schedule(network, options->file);
        const std::string text = loop_nest_text(network, schedule);
        output.print(text);
        output.json({{"schema", "laminate.show"},
                     {"version", 1},
                     {"network", network.name},
                     {"schedule", to_text(schedule)},
                     {"loop_nest", text}});
        return Exit::ok;
    });
}

}  // namespace laminate::cli
