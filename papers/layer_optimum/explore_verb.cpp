// explore --model layer-optimum: for every layer the order, blocks and bank division with the
// fewest DRAM accesses (CNNFlow).
#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "answers/checks.h"
#include "answers/curve_page.h"
#include "answers/front_report.h"
#include "answers/json_text.h"
#include "answers/report_page.h"
#include "base/cpu_time.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "base/parallel.h"
#include "papers/layer_optimum/dram_sram_front.h"
#include "papers/layer_optimum/fused_groups.h"
#include "papers/layer_optimum/layer_machine.h"
#include "papers/layer_optimum/optimum.h"
#include "papers/layer_optimum/optimum_schedules.h"
#include "papers/verbs.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/machine/machine.h"

namespace laminate::cli {

namespace {

constexpr int64_t million = 1'000'000;

struct LayerOptimumExploreOptions {
    std::string evaluator = "eq7";
    std::string memory;
    int64_t banks = 0;  ///< 0: the machine's
    bool as_published = false;
    bool front = false;
    std::optional<double> sram_factor;  ///< none: sram_factor_if_not_given
    std::optional<double> weight;
    bool curve = false;
    std::optional<int64_t> effort;
    bool fuse = false;
    std::optional<int64_t> group_layers;

    [[nodiscard]] StreamLimits limits() const {
        StreamLimits limits;
        if (effort) limits = {.longest = *effort * million};
        return limits;
    }
    [[nodiscard]] bool wants_front() const { return front || weight; }
    [[nodiscard]] int64_t max_layers() const {
        return group_layers.value_or(FusionOptions{}.max_layers);
    }
};

constexpr double sram_factor_if_not_given = 20;

/// What changes nothing without another option is refused.
void check_together(const LayerOptimumExploreOptions& options, SpillEvaluator evaluator) {
    if (options.fuse && options.as_published)
        throw UsageError(
            "--fuse: not with --grouped-as-one, which changes what the layers compute");
    if (options.group_layers && !options.fuse)
        throw UsageError("--group-layers: the size of fused groups, expected with --fuse");
    if (options.sram_factor && !options.wants_front())
        throw UsageError(
            "--sram-factor: where the front ends, expected with --dram-sram-front or --weight");
    if (options.effort && evaluator != SpillEvaluator::belady)
        throw UsageError(
            "--effort: how long streams are gone through, expected with --evaluator belady");
}

/// Fewest DRAM accesses in a buffer of a size; nothing where it is too small.
struct CurvePoint {
    int64_t buffer_bytes = 0;
    std::optional<LayerOptimum> optimum;
};

struct LayerAnswer {
    std::string name;
    bool is_solved = false;  ///< false: interrupted before
    LayerKind kind = LayerKind::conv;
    ConvolutionProblem problem;
    LayerOptimum optimum;
    std::optional<DividedBanks>
        by_other;  ///< the same order under the other evaluator, where its stream is not too long
    DramSramFront front;
    int64_t front_sram_words = 0;  ///< where the front ends
    std::vector<CurvePoint> curve;
    double seconds = 0;
    double cpu_seconds = 0;
};

SpillEvaluator other(SpillEvaluator evaluator) {
    return evaluator == SpillEvaluator::eq7 ? SpillEvaluator::belady : SpillEvaluator::eq7;
}

nlohmann::ordered_json per_operand(const PerOperand& values) {
    return {{"input", values[0]}, {"weights", values[1]}, {"output", values[2]}};
}

nlohmann::ordered_json point_json(const DramSramPoint& point, const ConvolutionProblem& problem,
                                  int64_t word_bytes) {
    nlohmann::ordered_json json{{"dram_bytes", point.dram_words * word_bytes},
                                {"sram_bytes", point.sram_words * word_bytes},
                                {"schedule", to_text(point.order)},
                                {"banks", per_operand(point.division.banks)}};
    if (point.registers) {
        nlohmann::ordered_json lanes;
        for (size_t l = 0; l < convolution_loops; ++l)
            if (point.registers->lanes[l] > 1)
                lanes[std::string(1, to_char(static_cast<ConvolutionLoop>(l)))] =
                    point.registers->lanes[l];
        json["pe_order"] = to_text(point.registers->order);
        json["pe_lanes"] = lanes;
        json["register_words"] = per_operand(point.registers->words);
        json["sram_extra_bytes"] =
            (point.sram_words - sram_words(problem, point.order)) * word_bytes;
    }
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

/// Powers of two from 1 KiB to 4 MiB, divided into the machine's number of banks; cut short by
/// `stop`.
std::vector<CurvePoint> dram_curve(const ConvolutionProblem& problem, const LayerMachine& machine,
                                   SpillEvaluator evaluator, const StreamLimits& limits,
                                   const std::atomic<bool>& stop) {
    std::vector<CurvePoint> curve;
    for (int64_t bytes = 1 << 10; bytes <= 4 << 20 && !stop.load(); bytes *= 2) {
        CurvePoint& point = curve.emplace_back(CurvePoint{bytes, {}});
        const BankedBuffer buffer{machine.buffer.banks,
                                  bytes * 8 / machine.word_bits / machine.buffer.banks};
        if (buffer.bank_words < 1) continue;
        auto found = layer_optimum(problem, buffer, evaluator, limits);
        if (auto* optimum = std::get_if<LayerOptimum>(&found)) point.optimum = std::move(*optimum);
    }
    return curve;
}

std::string curves_csv(const std::vector<LayerAnswer>& answers, int64_t word_bytes) {
    std::string csv = "layer,buffer_bytes,dram_bytes,io_lower_bound_bytes,schedule\n";
    for (const LayerAnswer& answer : answers) {
        for (const CurvePoint& point : answer.curve) {
            csv += fmt::format(
                "{},{},{},{},{}\n", answer.name, point.buffer_bytes,
                point.optimum ? std::to_string(point.optimum->dram_words * word_bytes) : "",
                io_lower_bound_words(answer.problem, point.buffer_bytes / word_bytes) * word_bytes,
                point.optimum ? to_text(point.optimum->order) : "");
        }
    }
    return csv;
}

std::vector<LayerCurve> page_curves(const std::vector<LayerAnswer>& answers, int64_t word_bytes) {
    std::vector<LayerCurve> curves;
    for (const LayerAnswer& answer : answers) {
        LayerCurve& curve =
            curves.emplace_back(LayerCurve{answer.name, to_text(answer.problem), {}});
        for (const CurvePoint& point : answer.curve) {
            std::optional<int64_t> dram;
            if (point.optimum) dram = point.optimum->dram_words * word_bytes;
            curve.points.push_back(
                {point.buffer_bytes, dram,
                 io_lower_bound_words(answer.problem, point.buffer_bytes / word_bytes) *
                     word_bytes});
        }
    }
    return curves;
}

nlohmann::ordered_json layer_json(const LayerAnswer& answer, SpillEvaluator evaluator,
                                  const LayerMachine& machine,
                                  const std::optional<double>& weight) {
    const int64_t word_bytes = machine.word_bits / 8;
    const LayerOptimum& o = answer.optimum;
    const LoopExtents blocks = block_extents(answer.problem, o.order);
    nlohmann::ordered_json block_json;
    std::string order;
    for (size_t l = 0; l < convolution_loops; ++l)
        block_json[std::string(1, to_char(static_cast<ConvolutionLoop>(l)))] = blocks[l];
    for (const BlockLoop& l : o.order) order += to_char(l.loop);
    const int64_t bound =
        io_lower_bound_words(answer.problem, machine.buffer.banks * machine.buffer.bank_words);
    nlohmann::ordered_json json{
        {"name", answer.name},
        {"kind", to_string(answer.kind)},
        {"loops", to_text(answer.problem)},
        {"order", order},
        {"blocks", block_json},
        {"schedule", to_text(o.order)},
        {"banks", per_operand(o.division.banks)},
        {"spilled_words", per_operand(o.division.spills)},
        {"compulsory_bytes", compulsory_words(answer.problem) * word_bytes},
        {"dram_bytes", o.dram_words * word_bytes},
        {"sram_bytes", sram_words(answer.problem, o.order) * word_bytes},
        {"evaluator", to_string(evaluator)},
        {"is_proven", o.lower_bound_words == o.dram_words},
        {"dram_lower_bound_bytes", o.lower_bound_words * word_bytes},
    };
    if (answer.by_other)
        json[fmt::format("dram_by_{}_bytes", to_string(other(evaluator)))] =
            (compulsory_words(answer.problem) + answer.by_other->extra_words()) * word_bytes;
    json["io_lower_bound_bytes"] = bound * word_bytes;
    json["dram_over_io_bound"] = static_cast<double>(o.dram_words) / static_cast<double>(bound);
    json["nodes"] = o.nodes;
    if (!answer.front.points.empty() || !answer.front.is_complete) {
        auto points = nlohmann::ordered_json::array();
        for (const DramSramPoint& point : answer.front.points)
            points.push_back(point_json(point, answer.problem, word_bytes));
        json["front"] = points;
        json["front_nodes"] = answer.front.nodes;
        json["front_complete"] = answer.front.is_complete;
        json["front_ends_at_sram_bytes"] = answer.front_sram_words * word_bytes;
        if (weight && !answer.front.points.empty()) {
            const DramSramPoint& chosen = choose(answer.front, *weight);
            json["chosen"] = point_json(chosen, answer.problem, word_bytes);
            // Beyond the end of the front: no fewer DRAM accesses than the layer's fewest, more
            // SRAM accesses than the end.
            json["chosen"]["is_proven"] =
                answer.front.is_complete &&
                static_cast<double>(chosen.dram_words) +
                        *weight * static_cast<double>(chosen.sram_words) <=
                    static_cast<double>(o.lower_bound_words) +
                        *weight * static_cast<double>(answer.front_sram_words);
        }
    }
    if (!answer.curve.empty()) {
        auto points = nlohmann::ordered_json::array();
        for (const CurvePoint& point : answer.curve)
            points.push_back(curve_json(point, answer.problem, word_bytes));
        json["curve"] = points;
    }
    json["seconds"] = answer.seconds;
    json["cpu_seconds"] = answer.cpu_seconds;
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

nlohmann::ordered_json fused_json(const Network& network, const FusedOptimum& fused,
                                  int64_t max_layers, int64_t word_bytes, double seconds) {
    auto groups = nlohmann::ordered_json::array();
    for (const OptimumGroup& group : fused.groups) {
        auto layers = nlohmann::ordered_json::array();
        for (const LayerId id : group.layers) layers.push_back(network.layer(id).name);
        groups.push_back({{"layers", layers},
                          {"means", to_string(group.means)},
                          {"dram_bytes", group.dram_words * word_bytes},
                          {"dram_lower_bound_bytes", group.lower_bound_words * word_bytes},
                          {"banks", group.banks},
                          {"schedule", schedule_text(group)}});
    }
    return {{"max_layers", max_layers},
            {"complete", fused.is_complete},
            {"dram_bytes", fused.dram_words * word_bytes},
            {"layer_by_layer_bytes", fused.layer_by_layer_words * word_bytes},
            {"dram_lower_bound_bytes", fused.lower_bound_words * word_bytes},
            {"groups_looked_at", fused.groups_looked_at},
            {"shapes", fused.shapes},
            {"seconds", seconds},
            {"groups", groups}};
}

std::string mebibytes(int64_t bytes) {
    return fmt::format("{:.4f}", static_cast<double>(bytes) / (1 << 20));
}

void print_fused(const Network& network, const FusedOptimum& fused, int64_t word_bytes,
                 const Output& output) {
    Table table({{"layers"},
                 {"how"},
                 {"DRAM MiB", Align::right},
                 {"at least", Align::right},
                 {"banks", Align::right},
                 {"order and blocks"}});
    for (const OptimumGroup& group : fused.groups) {
        table.add({names(network, group.layers, " "), to_string(group.means),
                   mebibytes(group.dram_words * word_bytes),
                   mebibytes(group.lower_bound_words * word_bytes),
                   group.banks > 0 ? std::to_string(group.banks) : "",
                   group.optimum ? to_text(group.optimum->order) : ""});
    }
    output.print(table.text());
    output.print(
        fmt::format("fused: {} groups, {} MiB; layer by layer {} MiB ({:.1f} % less); no cut into "
                    "groups this large "
                    "has less than {} MiB",
                    fused.groups.size(), mebibytes(fused.dram_words * word_bytes),
                    mebibytes(fused.layer_by_layer_words * word_bytes),
                    100 * (1 - static_cast<double>(fused.dram_words) /
                                   static_cast<double>(fused.layer_by_layer_words)),
                    mebibytes(fused.lower_bound_words * word_bytes)));
}

nlohmann::ordered_json schedule_json(const Network& network, const OptimumSchedule& made) {
    auto groups = nlohmann::ordered_json::array();
    for (const WrittenGroup& group : made.groups) {
        auto layers = nlohmann::ordered_json::array();
        for (const LayerId id : group.layers) layers.push_back(network.layer(id).name);
        groups.push_back({{"layers", layers},
                          {"written_as", to_string(group.means)},
                          {"accesses_elements_per_image", group.counts.accesses().value()},
                          {"banks", group.banks}});
    }
    const NetworkCounts counts = two_level_counts(network, made.schedule);
    return {{"file", "front.json"},
            {"accesses_elements_per_image", counts.accesses.value()},
            {"live_elements", counts.live_total.value()},
            {"groups", groups}};
}

/// One line, and one more for each kind of group that is not written as it was found.
void print_schedule(const Network& network, const OptimumSchedule& made,
                    const std::string& directory, const Output& output) {
    const NetworkCounts counts = two_level_counts(network, made.schedule);
    output.print(
        fmt::format("schedule: {} groups, {} accesses per image in managed buffers, padding not "
                    "counted; all in {}: "
                    "layers.json, report.html and front.json, for --schedule {}",
                    made.groups.size(), grouped(counts.accesses.value()), directory, directory));
    const auto say = [&](WrittenAs means, const std::string& what) {
        std::vector<std::string> of;
        for (const WrittenGroup& group : made.groups)
            if (group.means == means) of.push_back(names(network, group.layers, "+"));
        if (!of.empty()) output.print(fmt::format("  {}: {}", what, fmt::join(of, ", ")));
    };
    say(WrittenAs::other,
        "a schedule cannot say their order or has no room for it, the best other one instead");
    say(WrittenAs::apart, "no schedule of their group moves less than each layer alone");
    say(WrittenAs::too_large, "no schedule fits in the buffer, the smallest one");
}

Exit run(const LayerOptimumExploreOptions& options, const ModelRequest& request,
         const Output& output) {
    const SpillEvaluator evaluator = parse_spill_evaluator(options.evaluator);
    check_together(options, evaluator);
    LayerMachine machine =
        layer_machine(open_machine(request.machine.empty() ? "cnnflow_eyeriss" : request.machine));
    if (machine.word_bits % 8 != 0)
        throw InputError(fmt::format("words of {} bits, expected whole bytes", machine.word_bits));
    const int64_t word_bytes = machine.word_bits / 8;
    if (!options.memory.empty() || options.banks > 0) {
        const int64_t buffer_bytes =
            options.memory.empty() ? machine.buffer.banks * machine.buffer.bank_words * word_bytes
                                   : parse_bytes("--buffer", options.memory);
        if (options.banks > 0) machine.buffer.banks = options.banks;
        machine.buffer.bank_words = buffer_bytes / word_bytes / machine.buffer.banks;
        if (machine.buffer.bank_words < 1) {
            throw InfeasibleError(fmt::format(
                "--buffer {}: less than a word for each of {} banks; the smallest budget that "
                "works is {} bytes",
                options.memory, machine.buffer.banks, machine.buffer.banks * word_bytes));
        }
    }
    const Network network = request.network.open();
    std::vector<LayerAnswer> answers;
    std::vector<std::string> left_out;  // loops over weights, but some output reads padding alone
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) {
        if (!must_be_scheduled(network, id)) {
            const LayerKind kind = network.layer(id).kind;
            if (kind == LayerKind::conv || kind == LayerKind::conv_transpose ||
                kind == LayerKind::gemm)
                left_out.push_back(network.layer(id).name);
            continue;
        }
        LayerAnswer answer;
        answer.name = network.layer(id).name;
        answer.kind = network.layer(id).kind;
        answer.problem = convolution_problem(network, id);
        if (options.as_published) answer.problem = with_groups_as_published(answer.problem);
        answers.push_back(std::move(answer));
    }
    if (answers.empty()) {
        std::set<std::string> kinds;
        for (const Layer& layer : network.layers) kinds.insert(to_string(layer.kind));
        throw InputError(
            fmt::format("{}: no layer with loops over weights that a schedule covers; expected a "
                        "convolution, a "
                        "transposed convolution or a Gemm, found {}",
                        network.name, fmt::join(kinds, ", ")));
    }

    // Layers of one shape are solved once.
    std::vector<size_t> firsts;
    std::map<std::string, size_t> first_of;
    for (size_t n = 0; n < answers.size(); ++n)
        if (first_of.emplace(to_text(answers[n].problem), n).second) firsts.push_back(n);
    std::mutex mutex;
    size_t done = 0;
    in_parallel(firsts.size(), request.common.thread_count(), [&](size_t index) {
        LayerAnswer& answer = answers[firsts[index]];
        if (request.stop->load()) return;
        const auto begin = std::chrono::steady_clock::now();
        const double cpu_begin = thread_milliseconds();
        auto found = layer_optimum(answer.problem, machine.buffer, evaluator, options.limits());
        if (const auto* small = std::get_if<BufferTooSmall>(&found)) {
            throw InfeasibleError(
                fmt::format("{}: {} banks; the smallest budget that works is {} banks", answer.name,
                            machine.buffer.banks, small->banks_needed));
        }
        answer.optimum = std::get<LayerOptimum>(std::move(found));
        answer.cpu_seconds = (thread_milliseconds() - cpu_begin) / 1000;
        answer.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        answer.by_other =
            divide_banks(answer.problem, answer.optimum.order, machine.buffer, other(evaluator));
        if (options.wants_front()) {
            answer.front_sram_words =
                static_cast<int64_t>(options.sram_factor.value_or(sram_factor_if_not_given) *
                                     static_cast<double>(sram_words(answer.problem, {})));
            answer.front = dram_sram_front(answer.problem, machine.buffer, machine.registers,
                                           answer.front_sram_words, request.stop);
        }
        if (options.curve)
            answer.curve =
                dram_curve(answer.problem, machine, evaluator, options.limits(), *request.stop);
        if (options.curve && request.stop->load()) return;
        answer.is_solved = true;
        const std::lock_guard lock(mutex);
        output.note(fmt::format("{} of {} shapes, {}", ++done, firsts.size(), answer.name));
    });
    for (LayerAnswer& answer : answers) {
        const LayerAnswer& first = answers[first_of.at(to_text(answer.problem))];
        if (&first == &answer) continue;
        answer.is_solved = first.is_solved;
        answer.optimum = first.optimum;
        answer.by_other = first.by_other;
        answer.front = first.front;
        answer.front_sram_words = first.front_sram_words;
        answer.curve = first.curve;
    }
    std::vector<std::string> unsolved;
    for (const LayerAnswer& answer : answers) {
        if (!answer.is_solved) unsolved.push_back(answer.name);
    }
    if (unsolved.size() == answers.size())
        throw std::runtime_error("explore: interrupted before any layer was solved");
    if (!unsolved.empty()) {
        std::erase_if(answers, [](const LayerAnswer& answer) { return !answer.is_solved; });
        output.note(fmt::format("interrupted: the layers solved so far; not {}",
                                fmt::join(unsolved, ", ")));
    }
    std::vector<std::string> parts_of_fronts;
    for (const LayerAnswer& answer : answers) {
        if (!answer.front.is_complete) parts_of_fronts.push_back(answer.name);
    }
    if (!parts_of_fronts.empty()) {
        output.note(fmt::format("interrupted: the points found so far of the front of {}",
                                fmt::join(parts_of_fronts, ", ")));
    }

    FusionOptions fusion;
    fusion.evaluator = evaluator;
    fusion.limits = options.limits();
    fusion.max_layers = options.max_layers();
    fusion.threads = request.common.thread_count();
    fusion.stop = request.stop;
    for (const LayerAnswer& answer : answers)
        fusion.known.emplace(to_text(answer.problem), answer.optimum);
    std::optional<FusedOptimum> fused;
    double fused_seconds = 0;
    if (options.fuse && unsolved.empty()) {
        fusion.progress = [&](int64_t looked_at, int64_t shapes, const std::string& group) {
            output.note(
                fmt::format("{} of {} groups of different shape, {}", looked_at, shapes, group));
        };
        const auto begin = std::chrono::steady_clock::now();
        fused = fused_optimum(network, machine.buffer, fusion);
        fused_seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (!fused->is_complete)
            output.note("interrupted: the best cut into the groups looked at so far");
    }

    Table table({{"layer"},
                 {"order and blocks"},
                 {"banks I/W/O", Align::right},
                 {"DRAM MiB", Align::right},
                 {"once MiB", Align::right},
                 {"SRAM MiB", Align::right},
                 {"over I/O bound", Align::right},
                 {"proven"},
                 {"nodes", Align::right},
                 {"s", Align::right}});
    auto layers = nlohmann::ordered_json::array();
    std::map<std::string, std::array<int64_t, 3>> totals;  // by kind: DRAM, once, SRAM
    for (const LayerAnswer& answer : answers) {
        const nlohmann::ordered_json json = layer_json(answer, evaluator, machine, options.weight);
        const LayerOptimum& o = answer.optimum;
        const PerOperand& banks = o.division.banks;
        table.add({answer.name, to_text(o.order),
                   fmt::format("{}/{}/{}", banks[0], banks[1], banks[2]),
                   mebibytes(json["dram_bytes"]), mebibytes(json["compulsory_bytes"]),
                   mebibytes(json["sram_bytes"]),
                   fmt::format("{:.3f}", json["dram_over_io_bound"].get<double>()),
                   json["is_proven"] ? "yes" : "bound", grouped(o.nodes),
                   fmt::format("{:.2f}", answer.seconds)});
        auto& total = totals[to_string(answer.kind)];
        total[0] += json["dram_bytes"].get<int64_t>();
        total[1] += json["compulsory_bytes"].get<int64_t>();
        total[2] += json["sram_bytes"].get<int64_t>();
        layers.push_back(json);
    }
    nlohmann::ordered_json total_json;
    for (const auto& [kind, sums] : totals) {
        table.add_rule();
        table.add({"all " + kind, "", "", mebibytes(sums[0]), mebibytes(sums[1]),
                   mebibytes(sums[2]), "", "", "", ""});
        total_json[kind] = {
            {"dram_bytes", sums[0]}, {"compulsory_bytes", sums[1]}, {"sram_bytes", sums[2]}};
    }
    nlohmann::ordered_json answer{
        {"schema", "laminate.layer_optimum"},
        {"version", 1},
        {"network", network.name},
        {"network_given", request.network.to_json()},
        {"machine", request.machine.empty() ? "cnnflow_eyeriss" : request.machine},
        {"buffer",
         {{"banks", machine.buffer.banks},
          {"bank_words", machine.buffer.bank_words},
          {"word_bytes", word_bytes}}},
        {"evaluator", to_string(evaluator)},
        {"as_published", options.as_published},
        {"complete", unsolved.empty() && parts_of_fronts.empty() && (!fused || fused->is_complete)},
        {"unsolved_layers", unsolved},
        {"left_out_layers", left_out},
        {"layers", layers},
        {"totals", total_json},
    };
    if (fused)
        answer["fused"] =
            fused_json(network, *fused, options.max_layers(), word_bytes, fused_seconds);
    std::optional<OptimumSchedule> schedule;
    if (!request.directory.empty()) {
        if (options.as_published) {
            output.note("no schedule: --grouped-as-one changes what the layers compute");
        } else if (!unsolved.empty()) {
            output.note("no schedule: interrupted before every layer was solved");
        } else {
            // A cut into groups is one with the fewest DRAM accesses; layers alone follow the
            // weight.
            if (!fused && options.weight) {
                for (const LayerAnswer& layer : answers) {
                    if (layer.front.points.empty()) continue;
                    const DramSramPoint& chosen = choose(layer.front, *options.weight);
                    LayerOptimum& known = fusion.known.at(to_text(layer.problem));
                    known.order = chosen.order;
                    known.division = chosen.division;
                    known.dram_words = chosen.dram_words;
                }
            }
            schedule = optimum_schedule(
                network, fused ? fused->groups : layers_alone(network, machine.buffer, fusion),
                machine.buffer, fusion);
            answer["schedule"] = schedule_json(network, *schedule);
            answer["schedule"]["orders"] = fused            ? "fused"
                                           : options.weight ? "chosen"
                                                            : "fewest DRAM accesses";
        }
        NewDirectory files(
            request.directory,
            [](const auto& place) {
                return answer_files(place, "layers.json", "laminate.layer_optimum");
            },
            "laminate explore --model layer-optimum");
        write_file_atomically(files.aside() / "layers.json", json_text(answer));
        if (schedule)
            write_front(
                files.aside(), network,
                found_front(network, {schedule->schedule}, "layer-optimum", request.network));
        if (options.curve) {
            write_file_atomically(files.aside() / "curves.csv", curves_csv(answers, word_bytes));
            write_file_atomically(files.aside() / "curves.html",
                                  curve_page(network.name + ": DRAM accesses by buffer",
                                             page_curves(answers, word_bytes)));
        }
        files.publish();
    }
    output.print(table.text());
    if (!left_out.empty()) {
        output.print(fmt::format("left out, no schedule covers their windows (docs/cnnflow.md): {}",
                                 fmt::join(left_out, ", ")));
    }
    for (const LayerAnswer& layer : answers) {
        if (layer.front.points.empty()) continue;
        output.print(fmt::format("{}: {} points of DRAM and SRAM accesses, MiB", layer.name,
                                 layer.front.points.size()));
        Table front({{"DRAM", Align::right},
                     {"SRAM", Align::right},
                     {"order and blocks"},
                     {"within a PE"}});
        const DramSramPoint* chosen =
            options.weight ? &choose(layer.front, *options.weight) : nullptr;
        for (const DramSramPoint& point : layer.front.points) {
            if (chosen != nullptr && chosen != &point) continue;
            front.add({mebibytes(point.dram_words * word_bytes),
                       mebibytes(point.sram_words * word_bytes), to_text(point.order),
                       point.registers ? to_text(point.registers->order) : ""});
        }
        output.print(front.text());
    }
    if (fused) print_fused(network, *fused, word_bytes, output);
    if (schedule) print_schedule(network, *schedule, request.directory, output);
    output.json(answer);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<LayerOptimumExploreOptions>();
    app.add_option("--evaluator", options->evaluator,
                   "How spills are counted: eq7 (CNNFlow's formula, corrected) or belady (Belady's "
                   "replacement on the "
                   "real stream)")
        ->check(CLI::IsMember({"eq7", "belady"}))
        ->capture_default_str();
    app.add_option("--buffer", options->memory,
                   "Size of the buffer instead of the machine's, e.g. 64KiB")
        ->type_name("SIZE");
    app.add_option("--banks", options->banks, "Banks of the buffer instead of the machine's")
        ->check(CLI::Range(3, 4096));
    app.add_flag("--dram-sram-front", options->front,
                 "Problem 0 as well: all best pairs of DRAM and SRAM accesses that the machine's "
                 "registers allow");
    app.add_option("--weight", options->weight,
                   "Of that front, the point of least DRAM + WEIGHT * SRAM accesses")
        ->check(not_negative());
    app.add_option("--sram-factor", options->sram_factor,
                   "The front ends at so many times the least SRAM accesses")
        ->check(CLI::Range(1.0, 1e6))
        ->default_str("20");
    app.add_option(
           "--effort", options->effort,
           "belady: goes through streams of so many million uses, eight times that in one layer")
        ->check(CLI::Range(1, 1000))
        ->default_str(std::to_string(StreamLimits{}.longest / million));
    app.add_flag("--curve", options->curve,
                 "DRAM accesses for buffers of 1 KiB to 4 MiB as well; with -o also curves.csv and "
                 "curves.html");
    app.add_flag("--fuse", options->fuse,
                 "The cut into groups with the fewest DRAM accesses as well, layers alone or "
                 "fused; never worse than "
                 "layer by layer");
    app.add_option("--group-layers", options->group_layers, "Layers in such a group at most")
        ->check(CLI::Range(1, 64))
        ->default_str(std::to_string(FusionOptions{}.max_layers));
    app.add_flag("--grouped-as-one", options->as_published,
                 "Grouped layers as one convolution with the input channels of one group, as in "
                 "CNNFlow's tables");
    return [options](const ModelRequest& request, const Output& output) {
        return run(*options, request, output);
    };
}

}  // namespace

CostModel explore_layer_optimum() {
    return {
        "layer-optimum",
        "the proven fewest DRAM accesses of each layer, banks divided among its tensors (CNNFlow)",
        declare};
}

}  // namespace laminate::cli
