// explore --model dag-groups: the operators of a network cut into groups with the least off-chip
// traffic (Optimus).
#include <fmt/core.h>

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "answers/checks.h"
#include "answers/front_report.h"
#include "answers/json_text.h"
#include "answers/report_page.h"
#include "base/cpu_time.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "papers/dag_groups/group_schedules.h"
#include "papers/dag_groups/grouping.h"
#include "papers/verbs.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/machine/machine.h"

namespace laminate::cli {

namespace {

using namespace dag_groups;

enum class GroupCostFrom { optimus, ours, either };

struct DagGroupsExploreOptions {
    std::string reading_name = "Q";
    std::string cost_name = "optimus";
    int64_t images = 0;  ///< 0: 4, or the network's own batch
    int64_t buffer_entries = 0;
    size_t scheduled_operators = GroupingOptions{}.other_operators;
    bool online = false;
    bool merge_adds = false;
    bool pools_apart = false;
};

const std::map<std::string, Reading> reading_names{
    {"L", Reading::literal}, {"R", Reading::refined}, {"Q", Reading::batch_as_tile}};
const std::map<std::string, GroupCostFrom> cost_names{{"optimus", GroupCostFrom::optimus},
                                                      {"ours", GroupCostFrom::ours},
                                                      {"either", GroupCostFrom::either}};

nlohmann::ordered_json group_json(const OperatorGraph& graph, const Group& group,
                                  int64_t entry_bytes) {
    auto operators = nlohmann::ordered_json::array();
    for (const int op : group.operators)
        operators.push_back(graph.operators[static_cast<size_t>(op)].name);
    nlohmann::ordered_json json{{"operators", operators},
                                {"dram_bytes", group.entries * entry_bytes}};
    if (const std::optional<GroupCost>& c = group.cost) {
        json["optimus_dram_bytes"] = c->entries() * entry_bytes;
        json["input_bytes"] = c->input_entries * entry_bytes;
        json["output_bytes"] = c->output_entries * entry_bytes;
        json["weight_bytes"] = c->weight_entries * entry_bytes;
        json["weight_passes"] = c->passes;
        json["tile"] = {
            {"height", c->tile_height}, {"width", c->tile_width}, {"images", c->tile_images}};
        json["buffer_entries"] = c->buffer_entries;
    }
    if (group.other_entries) json["our_dram_bytes"] = *group.other_entries * entry_bytes;
    return json;
}

struct Timed {
    Grouping grouping;
    double ms = 0;
    double cpu_ms = 0;
};

Timed timed_grouping(const OperatorGraph& graph, const GroupMachine& machine,
                     const GroupingOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_begin = thread_milliseconds();
    Timed result{best_grouping(graph, machine, options)};
    result.cpu_ms = thread_milliseconds() - cpu_begin;
    result.ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

nlohmann::ordered_json grouping_json(const OperatorGraph& graph, const Timed& timed,
                                     int64_t entry_bytes) {
    const Grouping& g = timed.grouping;
    auto groups = nlohmann::ordered_json::array();
    for (const Group& group : g.groups) groups.push_back(group_json(graph, group, entry_bytes));
    nlohmann::ordered_json json{
        {"dram_bytes", g.entries * entry_bytes},
        {"dram_lower_bound_bytes", g.lower_bound_entries * entry_bytes},
        {"is_exact", g.is_exact},
        {"is_complete", g.is_complete},
        {"gap", g.gap()},
        {"search_ms", timed.ms},
        {"search_cpu_ms", timed.cpu_ms},
        {"states", g.ideals},
        {"groups_visited", g.groups_visited},
        {"groups_costed", g.groups_costed},
        {"group_count", g.groups.size()},
    };
    if (g.size_limit) json["online_size_limit"] = *g.size_limit;
    json["groups"] = groups;
    return json;
}

std::string mebibytes(int64_t bytes) {
    return fmt::format("{:.4f}", static_cast<double>(bytes) / (1 << 20));
}

std::string operators_text(const OperatorGraph& graph, const Group& group) {
    const auto name = [&](int op) { return graph.operators[static_cast<size_t>(op)].name; };
    if (group.operators.size() == 1) return name(group.operators.front());
    return fmt::format("{} .. {} ({})", name(group.operators.front()), name(group.operators.back()),
                       group.operators.size());
}

/// Entries with every operator alone, by the costs of the search. None if not every one fits alone.
std::optional<int64_t> entries_alone(const OperatorGraph& graph, const GroupMachine& machine,
                                     const GroupingOptions& search) {
    if (!search.only_other) {
        const std::optional<Grouping> alone = single_operators(graph, machine, search);
        return alone ? std::optional(alone->entries) : std::nullopt;
    }
    int64_t sum = 0;
    for (int op = 0; op < graph.size(); ++op) {
        const std::optional<int64_t> entries = search.other({op});
        if (!entries) return std::nullopt;
        sum += *entries;
    }
    return sum;
}

/// What is proven about groupings that cost less.
std::string proof_text(const Grouping& grouping, size_t scheduled_operators) {
    if (grouping.is_exact) return "no grouping of this space costs less";
    const std::string gap = fmt::format("at most {:.1f} % above the least", 100 * grouping.gap());
    if (!grouping.is_complete) return "too many states: cut along one order, " + gap;
    return fmt::format("groups of more than {} operators are bounded, not scheduled: {}",
                       scheduled_operators, gap);
}

/// The groups as a schedule, the only point of a front in `directory`. `findings` are its further
/// keys (front_json()), of groups that may have several outputs.
nlohmann::ordered_json write_schedule(const Network& network, const OperatorGraph& graph,
                                      const Timed& timed, ScheduledGroups& schedules,
                                      Elements memory, int64_t entry_bytes,
                                      const NetworkArgument& given,
                                      const nlohmann::ordered_json& findings,
                                      const std::filesystem::path& directory,
                                      const Output& output) {
    const NetworkSchedule made = network_schedule(network, graph, timed.grouping.groups, schedules);
    nlohmann::ordered_json front = found_front(network, {made.schedule}, "dag-groups", given);
    front.update(findings);
    write_front(directory, network, front);
    const NetworkCounts counts = two_level_counts(network, made.schedule);
    nlohmann::ordered_json json = grouping_json(graph, timed, entry_bytes);
    json["file"] = "front.json";
    json["memory_elements"] = memory.value();
    json["schedule_groups"] = made.schedule.groups().size();
    json["split_groups"] = made.split;
    json["accesses_elements_per_image"] = counts.accesses.value();
    json["live_elements"] = counts.live_total.value();
    output.print(fmt::format(
        "schedule: {} groups of one sink each, {} accesses per image and at most {} elements at "
        "once by our own counts{}",
        made.schedule.groups().size(), grouped(counts.accesses.value()),
        grouped(counts.live_total.value()),
        made.split == 0
            ? ""
            : fmt::format("; {} groups have no schedule in {} elements and run layer by layer",
                          made.split, grouped(memory.value()))));
    if (counts.live_total > memory)
        output.note(fmt::format("some layers need more than {} elements even alone",
                                grouped(memory.value())));
    return json;
}

/// The network as a graph of operators on a machine, and what the search may do.
struct Question {
    std::string machine_name;
    GroupMachine machine;
    Network network;
    OperatorGraph graph;
    GroupingOptions search;
    GroupCostFrom cost_from;
    double online_table_ms = 0;
};

Question question_of(const DagGroupsExploreOptions& options, const ModelRequest& request,
                     const std::string& machine_name, const GroupMachine& machine,
                     Network network) {
    OperatorGraph graph =
        operator_graph(network, {.adds = options.merge_adds, .pools = !options.pools_apart});
    GroupingOptions search;
    search.reading = reading_names.at(options.reading_name);
    const std::vector<int64_t>& dims = network.tensor(network.inputs.front()).dims;
    search.images = options.images > 0 ? options.images : dims.front() > 1 ? dims.front() : 4;
    search.buffer_entries = options.buffer_entries;
    search.online = options.online;
    const double before_table = thread_milliseconds();
    if (search.online) search.size_limit = online_size_limit(graph, machine, search);
    const double table_ms = thread_milliseconds() - before_table;
    search.stop = request.stop;
    return {machine_name,     machine,           std::move(network),
            std::move(graph), std::move(search), cost_names.at(options.cost_name),
            table_ms};
}

/// The best grouping under one choice of costs; InfeasibleError when there is none.
Timed solve(const Question& q, const GroupingOptions& how, int64_t buffer_entries) {
    try {
        return timed_grouping(q.graph, q.machine, how);
    } catch (const NoGrouping& error) {
        if (how.only_other) {
            throw InfeasibleError(
                fmt::format("{}: no schedule of some operator, alone or in a group, fits in {} "
                            "elements; expected more --buffer-entries",
                            q.network.name, buffer_entries));
        }
        throw InfeasibleError(fmt::format("{}: {}; the smallest budget that works is {} entries",
                                          q.network.name, error.what(),
                                          least_buffer_entries(q.graph, q.machine, how)));
    }
}

nlohmann::ordered_json answer_json(const Question& q, const DagGroupsExploreOptions& options,
                                   const ModelRequest& request, int64_t buffer_entries,
                                   const std::optional<int64_t>& examined,
                                   const std::optional<int64_t>& alone, const Timed& timed) {
    using Json = nlohmann::ordered_json;
    auto left_out = Json::array();
    for (const LayerId id : q.graph.left_out) left_out.push_back(q.network.layer(id).name);
    Json answer{
        {"schema", "laminate.dag_groups"},  {"version", 1},
        {"network", q.network.name},        {"network_given", request.network.to_json()},
        {"machine", q.machine_name},        {"reading", options.reading_name},
        {"batch", q.search.images},         {"entry_bytes", q.machine.entry_bytes},
        {"buffer_entries", buffer_entries}, {"online", options.online},
        {"group_cost", options.cost_name},  {"adds", options.merge_adds ? "merged" : "operators"},
        {"operators", q.graph.size()},      {"left_out", left_out},
    };
    answer["groups_examined"] = examined ? Json(*examined) : Json();
    if (options.online) answer["online_table_cpu_ms"] = q.online_table_ms;
    answer["baseline_bytes"] = alone ? Json(*alone * q.machine.entry_bytes) : Json();
    answer["saved"] =
        alone ? Json(1 - static_cast<double>(timed.grouping.entries) / static_cast<double>(*alone))
              : Json();
    answer.update(grouping_json(q.graph, timed, q.machine.entry_bytes));
    return answer;
}

Table groups_table(const Question& q, const Grouping& grouping) {
    Table table({{"operators"},
                 {"DRAM MiB", Align::right},
                 {"in", Align::right},
                 {"out", Align::right},
                 {"weights", Align::right},
                 {"passes", Align::right},
                 {"tile", Align::right},
                 {"buffer", Align::right}});
    const auto megabytes = [&](int64_t entries) {
        return mebibytes(entries * q.machine.entry_bytes);
    };
    for (const Group& group : grouping.groups) {
        std::vector<std::string> row{operators_text(q.graph, group), megabytes(group.entries)};
        if (const std::optional<GroupCost>& c = group.cost) {
            row.insert(row.end(),
                       {megabytes(c->input_entries), megabytes(c->output_entries),
                        megabytes(c->weight_entries), std::to_string(c->passes),
                        fmt::format("{}x{}x{}", c->tile_images, c->tile_height, c->tile_width),
                        grouped(c->buffer_entries)});
        }
        row.resize(8);
        table.add(row);
    }
    return table;
}

/// "resnet18: 31 operators, 14 groups; 52.4748 MiB for 4 images, ... (41.5 % less)".
std::string summary_text(const Question& q, const Grouping& grouping,
                         const std::optional<int64_t>& alone,
                         const nlohmann::ordered_json& answer) {
    return fmt::format("{}: {} operators, {} groups; {} MiB for {} images, {}", q.network.name,
                       q.graph.size(), grouping.groups.size(),
                       mebibytes(grouping.entries * q.machine.entry_bytes), q.search.images,
                       alone ? fmt::format("{} MiB with every operator alone ({:.1f} % less)",
                                           mebibytes(*alone * q.machine.entry_bytes),
                                           100 * answer["saved"].get<double>())
                             : "where not every operator fits alone");
}

/// What the page shows of the search, as front_json() names it.
nlohmann::ordered_json findings_json(const Question& q, const Timed& timed,
                                     const std::string& summary, size_t scheduled_operators) {
    auto groups = nlohmann::ordered_json::array();
    for (const Group& group : timed.grouping.groups) {
        auto& names = groups.emplace_back(nlohmann::ordered_json::array());
        for (const int op : group.operators)
            for (const LayerId id : q.graph.operators[static_cast<size_t>(op)].layers)
                names.push_back(q.network.layer(id).name);
    }
    return {{"headline", summary + "; " + proof_text(timed.grouping, scheduled_operators)},
            {"findings",
             {finding_json(
                 "Groups of least off-chip traffic",
                 fmt::format("Of Optimus' search on {}: what each group moves for all images, its "
                             "passes over the weights, its tile (images x rows x columns) and the "
                             "entries of the buffer that it fills.",
                             q.machine_name),
                 groups_table(q, timed.grouping))}},
            {"found_groups", groups}};
}

void print_answer(const Question& q, const Timed& timed, const std::optional<int64_t>& examined,
                  const std::string& summary, size_t scheduled_operators, const Output& output) {
    output.print(groups_table(q, timed.grouping).text());
    output.print(summary);
    output.print(fmt::format("{} groups in the space, {} costed, {:.2f} ms; {}",
                             examined ? grouped(*examined) : "too many",
                             grouped(timed.grouping.groups_costed), timed.ms,
                             proof_text(timed.grouping, scheduled_operators)));
}

Exit run(const DagGroupsExploreOptions& options, const ModelRequest& request,
         const Output& output) {
    const std::string machine_name = request.machine.empty() ? "optimus_base" : request.machine;
    const GroupMachine machine = group_machine(open_machine(machine_name));
    Network network = request.network.open();
    std::optional<NewDirectory> files;
    if (!request.directory.empty())
        files.emplace(
            request.directory,
            [](const auto& place) {
                return answer_files(place, "groups.json", "laminate.dag_groups");
            },
            "laminate explore --model dag-groups");
    const Question q = question_of(options, request, machine_name, machine, std::move(network));
    const GroupRules rules =
        rules_of(q.search.reading, q.machine, q.search.images, q.search.buffer_entries);
    const Elements memory(rules.buffer_entries);
    ScheduledGroups schedules(q.network, q.graph, memory, TileSizes::all, request.stop);
    OccasionalNotes notes(output);
    int64_t asked = 0;
    GroupingOptions with_ours = q.search;
    with_ours.only_other = q.cost_from == GroupCostFrom::ours;
    with_ours.one_sink = with_ours.only_other;
    with_ours.other_operators = options.scheduled_operators;
    with_ours.other_least = [&](const std::vector<int>& operators) {
        return schedules.least_entries(operators, q.search.images);
    };
    with_ours.other = [&](const std::vector<int>& operators) {
        notes.note([&] {
            return fmt::format("{} groups scheduled, at operator {}", asked,
                               q.graph.operators[static_cast<size_t>(operators.front())].name);
        });
        ++asked;
        return schedules.entries(operators, q.search.images);
    };
    const std::optional<int64_t> alone = entries_alone(q.graph, q.machine, with_ours);
    const Timed timed = solve(q, q.cost_from == GroupCostFrom::optimus ? q.search : with_ours,
                              rules.buffer_entries);
    if (request.stop->load())
        output.note("interrupted: the best cut along one order of the operators");

    const std::optional<int64_t> examined = convex_groups(q.graph);
    nlohmann::ordered_json answer =
        answer_json(q, options, request, rules.buffer_entries, examined, alone, timed);
    const std::string summary = summary_text(q, timed.grouping, alone, answer);
    print_answer(q, timed, examined, summary, options.scheduled_operators, output);
    if (files) {
        Timed executable = timed;
        if (q.cost_from != GroupCostFrom::ours) {
            GroupingOptions one_sink = q.cost_from == GroupCostFrom::either ? with_ours : q.search;
            one_sink.one_sink = true;
            executable = solve(q, one_sink, rules.buffer_entries);
        }
        answer["schedule"] =
            write_schedule(q.network, q.graph, executable, schedules, memory, q.machine.entry_bytes,
                           request.network,
                           findings_json(q, timed, summary, options.scheduled_operators),
                           files->aside(), output);
        write_file_atomically(files->aside() / "groups.json", json_text(answer));
        files->publish();
        output.print(
            fmt::format("all in {}: groups.json, report.html and front.json, for --schedule {}",
                        request.directory, request.directory));
    }
    output.json(answer);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<DagGroupsExploreOptions>();
    app.add_option("--reading", options->reading_name,
                   "Of what the paper leaves open (docs/optimus.md): L as printed; R tile width "
                   "searched, weights that fit loaded once; Q and images share the buffer")
        ->check(CLI::IsMember({"L", "R", "Q"}))
        ->capture_default_str();
    app.add_option("--images", options->images,
                   "Images that are worked on together (default: the network's batch; of one, 4)")
        ->check(positive());
    app.add_option("--buffer-entries", options->buffer_entries,
                   "Elements that the buffer holds, instead of the machine's")
        ->check(positive());
    app.add_option("--schedule-operators", options->scheduled_operators,
                   "With ours or either: schedules are looked for in groups of at most so many "
                   "operators; what larger ones could give is bounded")
        ->check(positive())
        ->capture_default_str();
    app.add_flag("--online", options->online,
                 "The on-line variant: fewer groups are looked at (Optimus, Algorithm 3)");
    app.add_flag("--merge-adds", options->merge_adds,
                 "Additions belong to a convolution that feeds them, instead of being operators "
                 "with maps of their own");
    app.add_flag("--pools-apart", options->pools_apart,
                 "Pools of stride 1 are operators of their own even before a 1x1 convolution");
    app.add_option("--group-cost", options->cost_name,
                   "What a group costs: optimus (its model), ours (the fewest accesses of our own "
                   "schedules, which -o writes), either (the less of both)")
        ->check(CLI::IsMember({"optimus", "ours", "either"}))
        ->capture_default_str();
    return [options](const ModelRequest& request, const Output& output) {
        return run(*options, request, output);
    };
}

}  // namespace

CostModel explore_dag_groups() {
    return {"dag-groups",
            "the cut of a network into groups with the least off-chip traffic, any graph (Optimus)",
            declare};
}

}  // namespace laminate::cli
