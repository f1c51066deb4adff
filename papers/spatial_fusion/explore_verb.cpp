// explore --model spatial-fusion: stacks of layers without recomputation on an array of PEs
// (HW-Flow-Fusion). -o writes them as a schedule.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "answers/checks.h"
#include "answers/front_report.h"
#include "answers/json_text.h"
#include "answers/report_page.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "papers/spatial_fusion/fusion_cost.h"
#include "papers/spatial_fusion/fusion_schedule.h"
#include "papers/verbs.h"
#include "scheduler/counts/two_level/two_level.h"

namespace laminate::cli {

namespace {

using namespace spatial_fusion;

struct SpatialFusionExploreOptions {
    FusionOptions search;
    std::optional<int64_t> element_bits;
    std::optional<int64_t> burst_bytes;
    std::string on_chip;
    std::vector<std::string> baseline;
};

const std::map<std::string, Reading> reading_names{{"exact", Reading::exact},
                                                   {"paper", Reading::paper}};
const std::map<std::string, Growth> growth_names{{"optimal", Growth::optimal},
                                                 {"paper", Growth::paper}};
const std::map<std::string, ReuseModel> reuse_names{{"own", ReuseModel::own},
                                                    {"alwani", ReuseModel::alwani}};
const std::map<std::string, TileSizes> tile_names{
    {"all", TileSizes::all}, {"divisors", TileSizes::divisors}, {"pow2", TileSizes::powers_of_two}};

/// A baseline given by the user: for each layer the rows of a tile of whole rows and all channels,
/// which moves Eq. 2 as printed. Pools may be left out; they have one tile.
class GivenBaseline {
public:
    GivenBaseline(const Network& network, const std::vector<std::string>& entries)
        : network_(network) {
        for (const std::string& entry : entries) {
            const size_t equals = entry.find('=');
            const std::string name = entry.substr(0, equals);
            const std::string rows = equals == std::string::npos ? "" : entry.substr(equals + 1);
            const LayerId id = network.find_layer(name);
            if (id < 0 || rows.empty() || rows.size() > 9 ||
                rows.find_first_not_of("0123456789") != std::string::npos || std::stoll(rows) < 1)
                throw UsageError(fmt::format(
                    "--baseline-rows {}: found {}, expected LAYER=ROWS with a layer of {} and one "
                    "row or more",
                    entry, id < 0 ? "no such layer" : "no number of rows", network.name));
            rows_[id] = std::stoll(rows);
        }
    }
    [[nodiscard]] bool is_given() const { return !rows_.empty(); }
    /// nullopt if a layer with weights has no entry.
    [[nodiscard]] std::optional<int64_t> volume(const std::vector<LayerId>& layers) const {
        int64_t sum = 0;
        for (const LayerId id : layers) {
            const LayerProblem layer = layer_problem(network_, id);
            const auto rows = rows_.find(id);
            if (!can_be_stacked(layer) || (rows == rows_.end() && layer.has_weights())) return {};
            const int64_t tile_rows =
                rows == rows_.end() ? layer[Dim::y] : std::min(rows->second, layer[Dim::y]);
            sum += single_layer_volume(
                layer, {layer[Dim::x], tile_rows, layer[Dim::z], layer.inputs.front().channels},
                Reading::paper);
        }
        return sum;
    }

private:
    const Network& network_;
    std::map<LayerId, int64_t> rows_;
};

/// One stack of the plan and its costs, as a stack and with its layers apart.
struct Entry {
    const PlannedStack* stack = nullptr;
    std::vector<std::string> names;
    StackCost cost;
    std::vector<StackCost> singles;
    std::optional<int64_t> baseline_bytes;
    std::optional<GroupCounts> counted;  ///< of its group in the schedule, closed form
};

/// Sums over layers apart or over stacks.
struct Sum {
    int64_t volume_bytes = 0;
    std::optional<Latency> latency = Latency{};
    std::optional<double> energy_pj = 0.0;
    void add(const StackCost& cost) {
        volume_bytes += cost.volume_bytes;
        const auto more = cost.temporal_latency();
        if (latency && more) {
            latency->compute_cycles += more->compute_cycles;
            latency->communication_cycles += more->communication_cycles;
        } else {
            latency.reset();
        }
        if (energy_pj && cost.energy_pj) {
            *energy_pj += *cost.energy_pj;
        } else {
            energy_pj.reset();
        }
    }
};

/// The plan with its prices.
struct Priced {
    std::vector<Entry> entries;
    Sum together;
    Sum apart;
    Sum fused_together;  ///< of stacks of two layers or more
    Sum fused_apart;
    int64_t fused_baseline_bytes = 0;
    bool has_baseline = false;  ///< one was given for every fused layer
};

nlohmann::ordered_json latency_json(const std::optional<Latency>& latency) {
    if (!latency) return nullptr;
    return {{"compute_cycles", latency->compute_cycles},
            {"communication_cycles", latency->communication_cycles},
            {"total_cycles", latency->total_cycles()}};
}

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json sum_json(const Sum& sum) {
    return {{"volume_bytes", sum.volume_bytes},
            {"latency", latency_json(sum.latency)},
            {"energy_pj", or_null(sum.energy_pj)}};
}

nlohmann::ordered_json mapping_json(const std::string& layer, const RowStationary& mapping) {
    return {{"layer", layer},
            {"in_channels", mapping.in_channels},
            {"out_channels", mapping.out_channels},
            {"out_rows", mapping.out_rows},
            {"cycles", mapping.cycles}};
}

nlohmann::ordered_json temporal_json(const Entry& entry) {
    if (!entry.cost.temporal) return nullptr;
    nlohmann::ordered_json json = latency_json(entry.cost.temporal_latency());
    json["register_bytes_per_layer"] = entry.cost.temporal->register_bytes;
    if (const auto& sections = entry.cost.temporal->register_sections)
        json["register_bytes_of"] = {{"weights", (*sections)[Operand::weight]},
                                     {"inputs", (*sections)[Operand::input]},
                                     {"partial_sums", (*sections)[Operand::output]}};
    auto layers = nlohmann::ordered_json::array();
    for (size_t l = 0; l < entry.cost.temporal->layers.size(); ++l)
        layers.push_back(mapping_json(entry.names[l], entry.cost.temporal->layers[l]));
    json["layers"] = layers;
    return json;
}

nlohmann::ordered_json spatial_json(const Entry& entry,
                                    const std::optional<SpatialPartition>& partition) {
    if (!partition) return nullptr;
    nlohmann::ordered_json json =
        latency_json(Latency{partition->cycles, entry.cost.communication_cycles});
    json["is_proven"] = partition->is_proven();
    json["least_compute_cycles"] = partition->least_cycles;
    auto layers = nlohmann::ordered_json::array();
    for (size_t l = 0; l < partition->layers.size(); ++l) {
        const SubArray& array = partition->layers[l];
        nlohmann::ordered_json layer = mapping_json(entry.names[l], array.mapping);
        layer["array"] = {{"columns", array.columns},
                          {"rows", array.rows},
                          {"first_column", array.first_column},
                          {"first_row", array.first_row}};
        layers.push_back(layer);
    }
    json["layers"] = layers;
    return json;
}

/// The number of different tiles, or 0 if an axis has more than three classes of tiles.
int64_t different_tiles(const Stack& stack, const Tile& tile) {
    try {
        return tile_classes(stack, 0, tile.y).front().different() *
               tile_classes(stack, 1, tile.x).front().different();
    } catch (const InputError&) {
        return 0;
    }
}

nlohmann::ordered_json entry_json(const Network& network, const Entry& entry) {
    const PlannedStack& stack = *entry.stack;
    Sum apart;
    for (const StackCost& single : entry.singles) apart.add(single);
    nlohmann::ordered_json json{{"layers", entry.names},
                                {"kind", stack.is_join      ? "join"
                                         : stack.is_fused() ? "stack"
                                                            : "single"},
                                {"keeps_halos", stack.keeps_halos},
                                {"tile",
                                 {{"columns", stack.tile.x},
                                  {"rows", stack.tile.y},
                                  {"out_channels", stack.tile.out_channels},
                                  {"in_channels", stack.tile.in_channels}}},
                                {"volume_elements", stack.volume},
                                {"volume_bytes", entry.cost.volume_bytes},
                                {"footprint_bytes", entry.cost.footprint_bytes},
                                {"exact_footprint_bytes", entry.cost.exact_footprint_bytes},
                                {"operations", stack.operations},
                                {"ctc", entry.cost.ctc},
                                {"energy_pj", or_null(entry.cost.energy_pj)},
                                {"temporal", temporal_json(entry)}};
    if (stack.is_fused()) {
        const int64_t classes = different_tiles(layer_problems(network, stack.layers), stack.tile);
        json["tile_classes"] =
            classes > 0 ? nlohmann::ordered_json(classes) : nlohmann::ordered_json();
        json["spatial_serial"] = spatial_json(entry, entry.cost.serial);
        json["spatial_parallel"] = spatial_json(entry, entry.cost.parallel);
    }
    json["layers_apart"] = sum_json(apart);
    if (entry.cost.burst_volume_bytes) json["burst_volume_bytes"] = *entry.cost.burst_volume_bytes;
    if (entry.baseline_bytes) json["baseline_bytes"] = *entry.baseline_bytes;
    if (entry.counted) {
        json["counted"] = {{"accesses_elements", entry.counted->accesses().value()},
                           {"macs", entry.counted->macs().value()},
                           {"live_total_elements", entry.counted->live_total.value()}};
    }
    return json;
}

double ratio(int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
}

std::string latency_text(const std::optional<Latency>& latency) {
    return latency ? fmt::format("{} + {}", grouped(latency->compute_cycles),
                                 grouped(static_cast<int64_t>(latency->communication_cycles + 0.5)))
                   : "-";
}

std::string layers_text(const Entry& entry) {
    return entry.names.size() == 1 ? entry.names.front()
                                   : fmt::format("{} .. {} ({})", entry.names.front(),
                                                 entry.names.back(), entry.names.size());
}

Table stacks_table(const Priced& priced) {
    Table table({{"layers"},
                 {"tile x y z i"},
                 {"moved KiB", Align::right},
                 {"apart KiB", Align::right},
                 {"ratio", Align::right},
                 {"on chip KiB", Align::right},
                 {"CTC", Align::right},
                 {"compute + communication", Align::right},
                 {"spatial serial", Align::right},
                 {"energy uJ", Align::right}});
    const auto kib = [](int64_t bytes) {
        return fmt::format("{:.1f}", static_cast<double>(bytes) / 1024);
    };
    const auto energy = [](const std::optional<double>& pj) {
        return pj ? fmt::format("{:.1f}", *pj / 1e6) : std::string("-");
    };
    for (const Entry& entry : priced.entries) {
        int64_t alone = 0;
        for (const StackCost& single : entry.singles) alone += single.volume_bytes;
        const Tile& tile = entry.stack->tile;
        table.add({layers_text(entry),
                   entry.stack->is_join ? ""
                                        : fmt::format("{} {} {} {}", tile.x, tile.y,
                                                      tile.out_channels, tile.in_channels),
                   kib(entry.cost.volume_bytes), kib(alone),
                   fmt::format("{:.3f}", ratio(entry.cost.volume_bytes, alone)),
                   kib(entry.cost.footprint_bytes), fmt::format("{:.3f}", entry.cost.ctc),
                   latency_text(entry.cost.temporal_latency()),
                   entry.cost.serial ? grouped(entry.cost.serial->cycles) +
                                           (entry.cost.serial->is_proven() ? "" : " (bound)")
                                     : "",
                   energy(entry.cost.energy_pj)});
    }
    table.add_rule();
    table.add(
        {"all", "", kib(priced.together.volume_bytes), kib(priced.apart.volume_bytes),
         fmt::format("{:.3f}", ratio(priced.together.volume_bytes, priced.apart.volume_bytes)), "",
         "", latency_text(priced.together.latency), "", energy(priced.together.energy_pj)});
    return table;
}

Priced price(const Network& network, const FusionPlan& plan, const ArrayMachine& machine,
             const Communication& communication, const GivenBaseline& baseline,
             const std::optional<Schedule>& schedule) {
    std::map<LayerId, StackCost> alone;
    for (const PlannedStack& single : plan.singles)
        alone.emplace(single.layers.front(), stack_cost(network, single, machine, communication));
    TwoLevelCache cache;
    Priced priced;
    priced.has_baseline = baseline.is_given();
    for (size_t n = 0; n < plan.stacks.size(); ++n) {
        const PlannedStack& stack = plan.stacks[n];
        Entry entry{&stack, {}, stack_cost(network, stack, machine, communication), {}, {}, {}};
        for (const LayerId id : stack.layers) {
            entry.names.push_back(network.layer(id).name);
            entry.singles.push_back(alone.at(id));
            priced.apart.add(alone.at(id));
            if (stack.is_fused()) priced.fused_apart.add(alone.at(id));
        }
        priced.together.add(entry.cost);
        if (baseline.is_given()) {
            if (const auto volume = baseline.volume(stack.layers))
                entry.baseline_bytes = *volume * machine.element_bytes();
        }
        if (stack.is_fused()) {
            priced.fused_together.add(entry.cost);
            priced.fused_baseline_bytes += entry.baseline_bytes.value_or(0);
            priced.has_baseline = priced.has_baseline && entry.baseline_bytes;
        }
        if (schedule) entry.counted = two_level_counts(network, schedule->groups()[n], &cache);
        priced.entries.push_back(std::move(entry));
    }
    return priced;
}

nlohmann::ordered_json totals_json(const Priced& priced) {
    nlohmann::ordered_json json{
        {"all_layers", {{"stacks", sum_json(priced.together)}, {"apart", sum_json(priced.apart)}}},
        {"fused_layers",
         {{"stacks", sum_json(priced.fused_together)}, {"apart", sum_json(priced.fused_apart)}}}};
    if (priced.has_baseline) json["fused_layers"]["baseline_bytes"] = priced.fused_baseline_bytes;
    return json;
}

struct Question {
    std::string machine_name;
    ArrayMachine machine;
    Network network;
    FusionOptions search;
};

struct Answer {
    FusionPlan plan;
    double search_ms = 0;
    std::optional<Schedule> schedule;  ///< if it is to be written
    Priced priced;
};

Question question_of(const SpatialFusionExploreOptions& options, const ModelRequest& request) {
    const std::string machine_name = request.machine.empty() ? "hwff_1" : request.machine;
    ArrayMachine machine = array_machine(open_machine(machine_name), options.element_bits);
    if (!options.on_chip.empty()) machine.on_chip_bytes = parse_bytes("--on-chip", options.on_chip);
    FusionOptions search = options.search;
    search.capacity = machine.capacity();
    search.stop = request.stop;
    return {machine_name, std::move(machine), request.network.open(), std::move(search)};
}

/// The plan and the time of its search. Throws InfeasibleError if some layer does not fit.
std::pair<FusionPlan, double> timed_plan(const Question& q) {
    const auto begin = std::chrono::steady_clock::now();
    auto found = plan_fusion(q.network, q.search);
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (const auto* infeasible = std::get_if<Infeasible>(&found)) {
        throw InfeasibleError(fmt::format(
            "{}: a layer does not fit in {} bytes; the smallest budget that works is {} bytes",
            q.network.name, q.machine.on_chip_bytes,
            infeasible->demand.value() * q.machine.element_bytes()));
    }
    return {std::get<FusionPlan>(std::move(found)), ms};
}

nlohmann::ordered_json answer_json(const Question& q, const Answer& answer,
                                   const std::optional<int64_t>& burst_bytes,
                                   const NetworkArgument& given) {
    auto stacks = nlohmann::ordered_json::array();
    for (const Entry& entry : answer.priced.entries) stacks.push_back(entry_json(q.network, entry));
    const auto tiles = std::ranges::find(tile_names, q.search.tiles,
                                         &std::pair<const std::string, TileSizes>::second);
    nlohmann::ordered_json json{{"schema", "laminate.spatial_fusion"},
                                {"version", 1},
                                {"model", "spatial-fusion"},
                                {"network", q.network.name},
                                {"network_given", given.to_json()},
                                {"machine", q.machine_name},
                                {"element_bits", q.machine.element_bits},
                                {"on_chip_bytes", q.machine.on_chip_bytes},
                                {"burst_bytes", or_null(burst_bytes)},
                                {"count", spatial_fusion::to_string(q.search.reading)},
                                {"search", spatial_fusion::to_string(q.search.growth)},
                                {"stack_tiles", tiles->first},
                                {"full_rows", q.search.full_rows},
                                {"reuse", spatial_fusion::to_string(q.search.reuse)},
                                {"max_layers", q.search.max_layers},
                                {"complete", answer.plan.is_complete},
                                {"search_ms", answer.search_ms},
                                {"stacks", std::move(stacks)},
                                {"totals", totals_json(answer.priced)}};
    if (answer.schedule) json["structure_hash"] = structure_hash(q.network);
    return json;
}

/// Notes how many stacks need more memory as a schedule than as planned, and than there is.
void note_large_schedules(const Question& q, const Priced& priced, const Output& output) {
    const auto too_large = std::ranges::count_if(priced.entries, [&](const Entry& entry) {
        return entry.counted->live_total.value() * q.machine.element_bytes() >
               q.machine.on_chip_bytes;
    });
    if (too_large > 0)
        output.note(
            fmt::format("{} of {} stacks hold more than the machine's {} as a schedule, whose "
                        "buffers are boxes",
                        too_large, priced.entries.size(), bytes_text(q.machine.on_chip_bytes)));
}

void write_files(const Question& q, const Answer& answer, const NetworkArgument& given,
                 const nlohmann::ordered_json& json, NewDirectory& files) {
    const Priced& priced = answer.priced;
    nlohmann::ordered_json front =
        found_front(q.network, {*answer.schedule}, "spatial-fusion", given);
    front["headline"] = fmt::format(
        "{} stacks move {:.1f} % less than their layers apart{}", priced.entries.size(),
        100 * (1 - ratio(priced.together.volume_bytes, priced.apart.volume_bytes)),
        priced.fused_apart.volume_bytes > 0
            ? fmt::format("; the fused layers alone {:.1f} % less",
                          100 * (1 - ratio(priced.fused_together.volume_bytes,
                                           priced.fused_apart.volume_bytes)))
            : "");
    front["findings"] = {finding_json(
        "Stacks", fmt::format("Of HW-Flow-Fusion's search on {}: each stack with its tile, what it "
                              "moves, and what its layers move apart.",
                              q.machine_name),
        stacks_table(priced))};
    write_front(files.aside(), q.network, front);
    write_file_atomically(files.aside() / "stacks.json", json_text(json));
    files.publish();
}

/// `directory`: where the files are; empty if none were asked for.
void print_answer(const Answer& answer, const std::string& directory, const Output& output) {
    const Priced& priced = answer.priced;
    output.print(stacks_table(priced).text());
    if (priced.fused_apart.volume_bytes > 0) {
        const int64_t fused = priced.fused_together.volume_bytes;
        output.print(fmt::format("fused layers: {:.1f} % of what they move apart{}",
                                 100 * ratio(fused, priced.fused_apart.volume_bytes),
                                 priced.has_baseline
                                     ? fmt::format(", {:.1f} % of the baseline given",
                                                   100 * ratio(fused, priced.fused_baseline_bytes))
                                     : ""));
    }
    const std::string files =
        directory.empty()
            ? ""
            : fmt::format("; all in {}: stacks.json, report.html and front.json, for --schedule {}",
                          directory, directory);
    output.print(
        fmt::format("{} stacks in {:.1f} ms{}", priced.entries.size(), answer.search_ms, files));
}

Exit run(const SpatialFusionExploreOptions& options, const ModelRequest& request,
         const Output& output) {
    Question q = question_of(options, request);
    const GivenBaseline baseline(q.network, options.baseline);
    OccasionalNotes notes(output);
    q.search.progress = [&](const std::string& line) { notes.note([&] { return line; }); };
    std::optional<NewDirectory> files;
    if (!request.directory.empty()) {
        files.emplace(
            request.directory,
            [](const auto& place) {
                return answer_files(place, "stacks.json", "laminate.spatial_fusion");
            },
            "laminate explore --model spatial-fusion");
    }
    Answer answer;
    std::tie(answer.plan, answer.search_ms) = timed_plan(q);
    if (!answer.plan.is_complete)
        output.note("interrupted: layers that were not reached are not fused");
    if (answer.plan.stacks.empty())
        throw InputError(q.network.name + ": no layer that can be scheduled");
    if (files) answer.schedule = fusion_schedule(q.network, answer.plan);
    answer.priced = price(q.network, answer.plan, q.machine,
                          {q.search.reading, options.burst_bytes}, baseline, answer.schedule);
    const nlohmann::ordered_json json =
        answer_json(q, answer, options.burst_bytes, request.network);
    if (files) {
        note_large_schedules(q, answer.priced, output);
        write_files(q, answer, request.network, json, *files);
    }
    print_answer(answer, request.directory, output);
    output.json(json);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<SpatialFusionExploreOptions>();
    FusionOptions& search = options->search;
    app.add_option("--count", search.reading,
                   "How to count volumes: exact (real pixels once, weights again where they do not "
                   "stay) or paper (Eq. 2 and 6 as printed)")
        ->transform(one_of(reading_names))
        ->default_str("exact");
    app.add_option("--search", search.growth,
                   "Stacks: optimal (the best cut of every chain) or paper (grown from the front "
                   "of a chain)")
        ->transform(one_of(growth_names))
        ->default_str("optimal");
    app.add_option("--stack-tiles", search.tiles, "Tile sizes to try: all, divisors or pow2")
        ->transform(one_of(tile_names))
        ->default_str("all");
    app.add_flag("--full-rows", search.full_rows, "Tiles as wide as the map: line buffers");
    app.add_option("--reuse", search.reuse,
                   "What is kept between tiles: own (Eq. 8) or alwani (Eq. 9)")
        ->transform(one_of(reuse_names))
        ->default_str("own");
    app.add_option("--max-layers", search.max_layers,
                   "The most layers of a stack (default: any number)")
        ->check(positive());
    app.add_option("--element-bits", options->element_bits,
                   "Width of all elements instead of the machine's")
        ->check(CLI::IsMember({8, 16, 32}));
    app.add_option("--burst-bytes", options->burst_bytes,
                   "External memory moves whole bursts of this length; CTC and communication count "
                   "them (the paper's memory: 8)")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("--on-chip", options->on_chip,
                   "On-chip memory instead of the machine's, e.g. 64KiB")
        ->type_name("SIZE");
    app.add_option("--baseline-rows", options->baseline,
                   "A baseline to compare with as well: rows of the tiles of single layers, which "
                   "are whole rows wide; pools may be left out")
        ->delimiter(',')
        ->type_name("LAYER=ROWS");
    return [options](const ModelRequest& request, const Output& output) {
        return run(*options, request, output);
    };
}

}  // namespace

CostModel explore_spatial_fusion() {
    return {"spatial-fusion",
            "stacks of layers without recomputation, tile classes, an array divided among layers "
            "(HW-Flow-Fusion)",
            declare};
}

}  // namespace laminate::cli
