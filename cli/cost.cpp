// laminate cost NET: a cost model's numbers for one schedule.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/counts_report.h"
#include "answers/energy_report.h"
#include "answers/front_file.h"
#include "answers/front_report.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "cli/verbs.h"
#include "nets/zoo/zoo.h"
#include "papers/verbs.h"
#include "scheduler/counts/bounds.h"
#include "scheduler/counts/two_level/two_level.h"

namespace laminate::cli {

namespace {

Exit cost(const Network& network, const Schedule& schedule,
          const std::optional<EnergyTable>& machine, int threads, const Output& output) {
    std::vector<GroupCounts> groups;
    for (const GroupSchedule& group : schedule.groups())
        groups.push_back(two_level_counts(network, group));
    const NetworkCounts sums = total(groups);
    output.print(counts_table(groups));
    output.print(fmt::format(
        "external accesses {}, {} MACs, footprint {} elements = {} (in elements of one image)",
        grouped(sums.accesses.value()), grouped(sums.macs.value()),
        grouped(sums.live_total.value()), bytes_text(to_bytes(sums.live_total).value())));
    const Certificate bound = certificate(network, sums, group_shape(network, schedule));
    output.print(fmt::format(
        "no schedule in this memory has fewer than {} external accesses: {:.3f} times the bound",
        grouped(bound.bound.value()), bound.achieved_over_bound));
    nlohmann::ordered_json answer{{"schema", "laminate.cost"},
                                  {"version", 1},
                                  {"model", "two-level"},
                                  {"network", network.name},
                                  {"structure_hash", structure_hash(network)},
                                  {"schedule", to_text(schedule)},
                                  {"accesses_elements", sums.accesses.value()},
                                  {"bound_accesses_elements", bound.bound.value()},
                                  {"achieved_over_bound", bound.achieved_over_bound},
                                  {"macs", sums.macs.value()},
                                  {"live_total_elements", sums.live_total.value()},
                                  {"sum_total_elements", sums.sum_total.value()},
                                  {"counts", counts_json(groups)}};
    if (machine) {
        EnergyCounts counts = energy_counts(groups, sums.live_total);
        counts.register_file_misses = register_file_misses(network, *machine, threads);
        const Energy parts = energy(*machine, counts);
        output.print(fmt::format("on machine {}, for one image:", machine->name));
        output.print(energy_text(parts));
        answer["energy"] = energy_json(*machine, parts);
    }
    output.json(answer);
    return Exit::ok;
}

RunModel declare_two_level(CLI::App& app) {
    auto schedule = std::make_shared<std::string>();
    app.add_option("--schedule", *schedule, schedule_help);
    return [schedule](const ModelRequest& request, const Output& output) {
        if (schedule->empty()) throw UsageError("--schedule is required with --model two-level");
        std::optional<EnergyTable> table;
        if (!request.machine.empty()) table = open_energy_table(request.machine);
        const Network network = to_run(request.network.open(), *schedule);
        return cost(network, read_schedule(network, *schedule), table,
                    request.common.thread_count(), output);
    };
}

}  // namespace

Schedule read_schedule(const Network& network, const std::string& argument) {
    std::error_code too_long_for_a_path;
    const bool is_text =
        argument.starts_with('{') && !std::filesystem::exists(argument, too_long_for_a_path);
    if (is_text) return parse_schedule(network, argument);
    const std::optional<FrontReference> reference = front_reference(argument);
    if (!reference) return load_schedule(network, argument);
    const nlohmann::ordered_json front = read_front(reference->file);
    check_front(reference->file, front, network);
    const size_t point = point_of(*reference, front);
    try {
        return parse_schedule(network, schedule_text(front, point));
    } catch (const InputError& error) {
        throw InputError(reference->file + ": " + error.what());
    }
}

CostModel cost_two_level() {
    return {"two-level", "external accesses, memory, work and energy of a schedule (ConvFusion)",
            declare_two_level};
}

void add_cost(Program& program) {
    CLI::App* verb = program.add_verb(
        "cost", "What a cost model counts for one schedule",
        "  laminate cost zoo:l2net --schedule front#3\n"
        "  laminate cost zoo:l2net --schedule '{conv1: zo yo ...}'\n"
        "  laminate cost zoo:l2net --schedule front#3 --machine machines/convfusion-40nm.json\n"
        "  laminate cost zoo:fsrcnn-defines --model depth-first --machine meta_proto_df --tile "
        "60x72");
    program.on(verb,
               declare_models(program, verb, {cost_two_level(), cost_depth_first()}, false).run);
}

}  // namespace laminate::cli
