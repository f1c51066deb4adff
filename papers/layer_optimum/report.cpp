#include "papers/layer_optimum/report.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "answers/front_report.h"
#include "scheduler/counts/two_level/two_level.h"

namespace laminate::cli {

namespace {

nlohmann::ordered_json per_operand(const PerOperand& values) {
    return {{"input", values[0]}, {"weights", values[1]}, {"output", values[2]}};
}

/// A proof holds for the counts of one evaluator: its name, or null without a proof.
nlohmann::ordered_json proven_under(bool is_proven, SpillEvaluator evaluator) {
    return is_proven ? nlohmann::ordered_json(to_string(evaluator)) : nlohmann::ordered_json();
}

std::string loop_name(ConvolutionLoop loop) { return {to_char(loop)}; }

nlohmann::ordered_json point_json(const DramSramPoint& point, const ConvolutionProblem& problem,
                                  int64_t word_bytes) {
    nlohmann::ordered_json json{{"dram_bytes", point.dram_words * word_bytes},
                                {"sram_bytes", point.sram_words * word_bytes},
                                {"schedule", to_text(point.order)},
                                {"banks", per_operand(point.division.banks)}};
    if (!point.registers) return json;
    nlohmann::ordered_json lanes;
    for (const ConvolutionLoop loop : convolution_loops)
        if (point.registers->lanes[loop] > 1) lanes[loop_name(loop)] = point.registers->lanes[loop];
    json["pe_order"] = to_text(point.registers->order);
    json["pe_lanes"] = lanes;
    json["register_words"] = per_operand(point.registers->words);
    json["sram_extra_bytes"] = (point.sram_words - sram_words(problem, point.order)) * word_bytes;
    return json;
}

nlohmann::ordered_json curve_json(const CurvePoint& point, const ConvolutionProblem& problem,
                                  int64_t word_bytes) {
    nlohmann::ordered_json json{{"buffer_bytes", point.buffer_bytes}};
    if (point.optimum) {
        json["dram_bytes"] = point.optimum->dram_words * word_bytes;
        json["dram_lower_bound_bytes"] = point.optimum->lower_bound_words * word_bytes;
        json["schedule"] = to_text(point.optimum->order);
    }
    json["io_lower_bound_bytes"] =
        io_lower_bound_words(problem, point.buffer_bytes / word_bytes) * word_bytes;
    return json;
}

/// The front of a layer and the point of it that the weight picks.
void add_front(nlohmann::ordered_json& json, const SolvedLayer& layer, int64_t word_bytes,
               const std::optional<double>& weight) {
    if (layer.front.points.empty() && layer.front.is_complete) return;
    auto points = nlohmann::ordered_json::array();
    for (const DramSramPoint& point : layer.front.points)
        points.push_back(point_json(point, layer.problem, word_bytes));
    json["front"] = points;
    json["front_nodes"] = layer.front.nodes;
    json["front_complete"] = layer.front.is_complete;
    json["front_ends_at_sram_bytes"] = layer.front_sram_words * word_bytes;
    if (!weight || layer.front.points.empty()) return;
    const DramSramPoint& chosen = choose(layer.front, *weight);
    json["chosen"] = point_json(chosen, layer.problem, word_bytes);
    json["chosen"]["proven_under"] =
        proven_under(layer.is_proven(chosen, *weight), SpillEvaluator::eq7);
}

nlohmann::ordered_json layer_json(const SolvedLayer& layer, const LayerOptimumAnswer& answer) {
    const int64_t word_bytes = answer.word_bytes();
    const BankedBuffer& buffer = answer.machine.buffer;
    const LayerOptimum& o = layer.optimum;
    const LoopExtents blocks = block_extents(layer.problem, o.order);
    nlohmann::ordered_json block_json;
    std::string order;
    for (const ConvolutionLoop loop : convolution_loops) block_json[loop_name(loop)] = blocks[loop];
    for (const BlockLoop& l : o.order) order += to_char(l.loop);
    const int64_t bound = io_lower_bound_words(layer.problem, buffer.banks * buffer.bank_words);
    nlohmann::ordered_json json{
        {"name", layer.name},
        {"kind", to_string(layer.kind)},
        {"loops", to_text(layer.problem)},
        {"order", order},
        {"blocks", block_json},
        {"schedule", to_text(o.order)},
        {"banks", per_operand(o.division.banks)},
        {"spilled_words", per_operand(o.division.spills)},
        {"compulsory_bytes", compulsory_words(layer.problem) * word_bytes},
        {"dram_bytes", o.dram_words * word_bytes},
        {"sram_bytes", layer.sram_words() * word_bytes},
        {"evaluator", to_string(answer.evaluator)},
        {"proven_under", proven_under(o.is_proven(), answer.evaluator)},
        {"dram_lower_bound_bytes", o.lower_bound_words * word_bytes},
    };
    if (layer.by_other)
        json[fmt::format("dram_by_{}_bytes", to_string(other(answer.evaluator)))] =
            (compulsory_words(layer.problem) + layer.by_other->extra_words()) * word_bytes;
    json["io_lower_bound_bytes"] = bound * word_bytes;
    json["dram_over_io_bound"] = static_cast<double>(o.dram_words) / static_cast<double>(bound);
    json["nodes"] = o.nodes;
    add_front(json, layer, word_bytes, answer.weight);
    if (!layer.curve.empty()) {
        auto points = nlohmann::ordered_json::array();
        for (const CurvePoint& point : layer.curve)
            points.push_back(curve_json(point, layer.problem, word_bytes));
        json["curve"] = points;
    }
    json["seconds"] = layer.seconds;
    json["cpu_seconds"] = layer.cpu_seconds;
    return json;
}

std::string names(const Network& network, const std::vector<LayerId>& layers,
                  const std::string& between) {
    std::string text;
    for (const LayerId id : layers) text += (text.empty() ? "" : between) + network.layer(id).name;
    return text;
}

std::string schedule_text(const OptimumGroup& group) {
    if (group.schedule) return to_text(*group.schedule);
    return group.optimum ? to_text(group.optimum->order) : "";
}

nlohmann::ordered_json names_json(const Network& network, const std::vector<LayerId>& layers) {
    auto json = nlohmann::ordered_json::array();
    for (const LayerId id : layers) json.push_back(network.layer(id).name);
    return json;
}

nlohmann::ordered_json fused_json(const LayerOptimumAnswer& answer) {
    const FusedOptimum& fused = *answer.fused;
    const int64_t word_bytes = answer.word_bytes();
    auto groups = nlohmann::ordered_json::array();
    for (const OptimumGroup& group : fused.groups) {
        groups.push_back({{"layers", names_json(answer.network, group.layers)},
                          {"means", to_string(group.means)},
                          {"dram_bytes", group.dram_words * word_bytes},
                          {"dram_lower_bound_bytes", group.lower_bound_words * word_bytes},
                          {"banks", group.banks},
                          {"schedule", schedule_text(group)}});
    }
    return {{"max_layers", answer.max_group_layers},
            {"complete", fused.is_complete},
            {"dram_bytes", fused.dram_words * word_bytes},
            {"layer_by_layer_bytes", fused.layer_by_layer_words * word_bytes},
            {"dram_lower_bound_bytes", fused.lower_bound_words * word_bytes},
            {"groups_looked_at", fused.groups_looked_at},
            {"shapes", fused.shapes},
            {"seconds", answer.fused_seconds},
            {"groups", groups}};
}

nlohmann::ordered_json schedule_json(const LayerOptimumAnswer& answer) {
    auto groups = nlohmann::ordered_json::array();
    for (const WrittenGroup& group : answer.schedule->groups) {
        groups.push_back({{"layers", names_json(answer.network, group.layers)},
                          {"written_as", to_string(group.means)},
                          {"accesses_elements_per_image", group.counts.accesses().value()},
                          {"banks", group.banks}});
    }
    const NetworkCounts counts = two_level_counts(answer.network, answer.schedule->schedule);
    return {{"file", "front.json"},
            {"accesses_elements_per_image", counts.accesses.value()},
            {"live_elements", counts.live_total.value()},
            {"groups", groups},
            {"orders", answer.fused    ? "fused"
                       : answer.weight ? "chosen"
                                       : "fewest DRAM accesses"}};
}

std::string mebibytes(int64_t bytes) {
    return fmt::format("{:.4f}", static_cast<double>(bytes) / (1 << 20));
}

Table layer_table(const LayerOptimumAnswer& answer) {
    const int64_t word_bytes = answer.word_bytes();
    Table table({{"layer"},
                 {"order and blocks"},
                 {"banks I/W/O", Align::right},
                 {"DRAM MiB", Align::right},
                 {"once MiB", Align::right},
                 {"SRAM MiB", Align::right},
                 {"over I/O bound", Align::right},
                 {"proven under"},
                 {"nodes", Align::right},
                 {"s", Align::right}});
    const BankedBuffer& buffer = answer.machine.buffer;
    for (const SolvedLayer& layer : answer.optima.layers) {
        const LayerOptimum& o = layer.optimum;
        const PerOperand& banks = o.division.banks;
        const int64_t bound = io_lower_bound_words(layer.problem, buffer.banks * buffer.bank_words);
        table.add(
            {layer.name, to_text(o.order), fmt::format("{}/{}/{}", banks[0], banks[1], banks[2]),
             mebibytes(o.dram_words * word_bytes),
             mebibytes(compulsory_words(layer.problem) * word_bytes),
             mebibytes(layer.sram_words() * word_bytes),
             fmt::format("{:.3f}", static_cast<double>(o.dram_words) / static_cast<double>(bound)),
             o.is_proven() ? to_string(answer.evaluator) : "bound", grouped(o.nodes),
             fmt::format("{:.2f}", layer.seconds)});
    }
    for (const auto& [kind, total] : answer.optima.totals()) {
        table.add_rule();
        table.add({"all " + kind, "", "", mebibytes(total.dram * word_bytes),
                   mebibytes(total.compulsory * word_bytes), mebibytes(total.sram * word_bytes), "",
                   "", "", ""});
    }
    return table;
}

/// Names the layers whose order moves more words through a real memory than the formula counts.
void print_what_the_formula_misses(const LayerOptimumAnswer& answer, const Output& output) {
    std::vector<std::string> missed;
    for (const SolvedLayer& layer : answer.optima.layers) {
        if (!layer.by_other) continue;
        const int64_t belady = compulsory_words(layer.problem) + layer.by_other->extra_words();
        if (belady > layer.optimum.dram_words)
            missed.push_back(
                fmt::format("{} ({} bytes)", layer.name, grouped(belady * answer.word_bytes())));
    }
    if (!missed.empty())
        output.print(
            fmt::format("eq7 counts less than Belady's replacement moves with the same "
                        "order, whose blocks have gaps: {}",
                        fmt::join(missed, ", ")));
}

/// All points of the front, or the one that the weight picks.
void print_front(const SolvedLayer& layer, const LayerOptimumAnswer& answer, const Output& output) {
    output.print(fmt::format("{}: {} points of DRAM and SRAM accesses, MiB", layer.name,
                             layer.front.points.size()));
    Table table(
        {{"DRAM", Align::right}, {"SRAM", Align::right}, {"order and blocks"}, {"within a PE"}});
    const DramSramPoint* chosen = answer.weight ? &choose(layer.front, *answer.weight) : nullptr;
    for (const DramSramPoint& point : layer.front.points) {
        if (chosen != nullptr && chosen != &point) continue;
        table.add({mebibytes(point.dram_words * answer.word_bytes()),
                   mebibytes(point.sram_words * answer.word_bytes()), to_text(point.order),
                   point.registers ? to_text(point.registers->order) : ""});
    }
    output.print(table.text());
}

Table fused_table(const LayerOptimumAnswer& answer) {
    const FusedOptimum& fused = *answer.fused;
    const int64_t word_bytes = answer.word_bytes();
    Table table({{"layers"},
                 {"how"},
                 {"DRAM MiB", Align::right},
                 {"at least", Align::right},
                 {"banks", Align::right},
                 {"order and blocks"}});
    for (const OptimumGroup& group : fused.groups) {
        table.add({names(answer.network, group.layers, " "), to_string(group.means),
                   mebibytes(group.dram_words * word_bytes),
                   mebibytes(group.lower_bound_words * word_bytes),
                   group.banks > 0 ? std::to_string(group.banks) : "",
                   group.optimum ? to_text(group.optimum->order) : ""});
    }
    return table;
}

std::string fused_text(const LayerOptimumAnswer& answer) {
    const FusedOptimum& fused = *answer.fused;
    const int64_t word_bytes = answer.word_bytes();
    return fmt::format(
        "fused: {} groups, {} MiB; layer by layer {} MiB ({:.1f} % less); no cut into groups this "
        "large has less than {} MiB",
        fused.groups.size(), mebibytes(fused.dram_words * word_bytes),
        mebibytes(fused.layer_by_layer_words * word_bytes),
        100 * (1 - static_cast<double>(fused.dram_words) /
                       static_cast<double>(fused.layer_by_layer_words)),
        mebibytes(fused.lower_bound_words * word_bytes));
}

/// Traffic of all layers, each alone, and for how many of them it is proven least.
std::string layers_text(const LayerOptimumAnswer& answer) {
    LayerTraffic all;
    int64_t proven = 0;
    for (const auto& [kind, total] : answer.optima.totals()) {
        all.dram += total.dram;
        all.compulsory += total.compulsory;
    }
    for (const SolvedLayer& layer : answer.optima.layers) proven += layer.optimum.is_proven();
    return fmt::format(
        "layer by layer: {} MiB of DRAM accesses, {:.1f} % more than every tensor once; proven the "
        "fewest under {} for {} of {} layers",
        mebibytes(all.dram * answer.word_bytes()),
        100 * (static_cast<double>(all.dram) / static_cast<double>(all.compulsory) - 1),
        to_string(answer.evaluator), proven, answer.optima.layers.size());
}

/// One line, and one more for each kind of group that is not written as it was found.
void print_schedule(const LayerOptimumAnswer& answer, const Output& output) {
    const OptimumSchedule& made = *answer.schedule;
    const std::string& directory = answer.directory;
    const NetworkCounts counts = two_level_counts(answer.network, made.schedule);
    output.print(
        fmt::format("schedule: {} groups, {} accesses per image in managed buffers, padding not "
                    "counted; all in {}: "
                    "layers.json, report.html and front.json, for --schedule {}",
                    made.groups.size(), grouped(counts.accesses.value()), directory, directory));
    const auto say = [&](WrittenAs means, const std::string& what) {
        std::vector<std::string> of;
        for (const WrittenGroup& group : made.groups)
            if (group.means == means) of.push_back(names(answer.network, group.layers, "+"));
        if (!of.empty()) output.print(fmt::format("  {}: {}", what, fmt::join(of, ", ")));
    };
    say(WrittenAs::other,
        "a schedule cannot say their order or has no room for it, the best other one instead");
    say(WrittenAs::apart, "no schedule of their group moves less than each layer alone");
    say(WrittenAs::too_large, "no schedule fits in the buffer, the smallest one");
}

}  // namespace

bool LayerOptimumAnswer::is_complete() const {
    return optima.unsolved.empty() && optima.unfinished_fronts().empty() &&
           (!fused || fused->is_complete);
}

std::string curves_csv(const LayerOptimumAnswer& answer) {
    const int64_t word_bytes = answer.word_bytes();
    std::string csv = "layer,buffer_bytes,dram_bytes,io_lower_bound_bytes,schedule\n";
    for (const SolvedLayer& layer : answer.optima.layers) {
        for (const CurvePoint& point : layer.curve) {
            csv += fmt::format(
                "{},{},{},{},{}\n", layer.name, point.buffer_bytes,
                point.optimum ? std::to_string(point.optimum->dram_words * word_bytes) : "",
                io_lower_bound_words(layer.problem, point.buffer_bytes / word_bytes) * word_bytes,
                point.optimum ? to_text(point.optimum->order) : "");
        }
    }
    return csv;
}

std::vector<LayerCurve> page_curves(const LayerOptimumAnswer& answer) {
    const int64_t word_bytes = answer.word_bytes();
    std::vector<LayerCurve> curves;
    for (const SolvedLayer& layer : answer.optima.layers) {
        LayerCurve& curve = curves.emplace_back(LayerCurve{layer.name, to_text(layer.problem), {}});
        for (const CurvePoint& point : layer.curve) {
            std::optional<int64_t> dram;
            if (point.optimum) dram = point.optimum->dram_words * word_bytes;
            curve.points.push_back(
                {point.buffer_bytes, dram,
                 io_lower_bound_words(layer.problem, point.buffer_bytes / word_bytes) *
                     word_bytes});
        }
    }
    return curves;
}

nlohmann::ordered_json to_json(const LayerOptimumAnswer& answer,
                               const nlohmann::ordered_json& network_given) {
    const int64_t word_bytes = answer.word_bytes();
    auto layers = nlohmann::ordered_json::array();
    for (const SolvedLayer& layer : answer.optima.layers)
        layers.push_back(layer_json(layer, answer));
    nlohmann::ordered_json totals;
    for (const auto& [kind, total] : answer.optima.totals()) {
        totals[kind] = {{"dram_bytes", total.dram * word_bytes},
                        {"compulsory_bytes", total.compulsory * word_bytes},
                        {"sram_bytes", total.sram * word_bytes}};
    }
    nlohmann::ordered_json json{
        {"schema", "laminate.layer_optimum"},
        {"version", 2},
        {"network", answer.network.name},
        {"network_given", network_given},
        {"machine", answer.machine_name},
        {"buffer",
         {{"banks", answer.machine.buffer.banks},
          {"bank_words", answer.machine.buffer.bank_words},
          {"word_bytes", word_bytes}}},
        {"evaluator", to_string(answer.evaluator)},
        {"as_published", answer.grouped_as_one},
        {"complete", answer.is_complete()},
        {"unsolved_layers", answer.optima.unsolved},
        {"left_out_layers", answer.optima.left_out},
        {"layers", layers},
        {"totals", totals},
    };
    if (answer.fused) json["fused"] = fused_json(answer);
    if (answer.schedule) json["schedule"] = schedule_json(answer);
    return json;
}

nlohmann::ordered_json findings_json(const LayerOptimumAnswer& answer) {
    auto findings = nlohmann::ordered_json::array();
    if (answer.fused)
        findings.push_back(finding_json(
            "Groups with the fewest DRAM accesses",
            "Of CNNFlow's search: what each group moves to and from DRAM, how that is known, the least "
            "that any way moves, and the banks that it takes.",
            fused_table(answer)));
    findings.push_back(finding_json(
        "Each layer alone",
        fmt::format("The order of loops and sizes of blocks with the fewest DRAM accesses in {} "
                    "banks of {} words, divided among inputs, weights and outputs (I/W/O); and "
                    "whether no other order has fewer.",
                    answer.machine.buffer.banks, answer.machine.buffer.bank_words),
        layer_table(answer)));
    return {{"headline", answer.fused                   ? fused_text(answer)
                          : answer.optima.layers.empty() ? "no layer that is a convolution"
                                                         : layers_text(answer)},
            {"findings", std::move(findings)}};
}

void print(const LayerOptimumAnswer& answer, const Output& output) {
    output.print(layer_table(answer).text());
    if (!answer.optima.left_out.empty()) {
        output.print(fmt::format("left out, no schedule covers their windows (docs/cnnflow.md): {}",
                                 fmt::join(answer.optima.left_out, ", ")));
    }
    if (answer.evaluator == SpillEvaluator::eq7) print_what_the_formula_misses(answer, output);
    for (const SolvedLayer& layer : answer.optima.layers)
        if (!layer.front.points.empty()) print_front(layer, answer, output);
    if (answer.fused) {
        output.print(fused_table(answer).text());
        output.print(fused_text(answer));
    }
    if (answer.schedule) print_schedule(answer, output);
}

}  // namespace laminate::cli
