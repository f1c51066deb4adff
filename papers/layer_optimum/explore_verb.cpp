// explore --model layer-optimum: for every layer the order, blocks and bank division with the
// fewest DRAM accesses (CNNFlow).
#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "answers/checks.h"
#include "answers/curve_page.h"
#include "answers/front_report.h"
#include "answers/json_text.h"
#include "answers/report_page.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "papers/layer_optimum/network_optima.h"
#include "papers/layer_optimum/report.h"
#include "papers/verbs.h"
#include "scheduler/machine/machine.h"

namespace laminate::cli {

namespace {

constexpr int64_t million = 1'000'000;

constexpr double sram_factor_if_not_given = 20;

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
    [[nodiscard]] double front_up_to() const {
        return sram_factor.value_or(sram_factor_if_not_given);
    }
    [[nodiscard]] int64_t max_layers() const {
        return group_layers.value_or(FusionOptions{}.max_layers);
    }
};

/// Refuses options that change nothing without another one.
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

/// The machine with the buffer that --buffer and --banks ask for.
LayerMachine machine_of(const LayerOptimumExploreOptions& options, const std::string& name) {
    LayerMachine machine = layer_machine(open_machine(name));
    if (machine.word_bits % 8 != 0)
        throw InputError(fmt::format("words of {} bits, expected whole bytes", machine.word_bits));
    if (options.memory.empty() && options.banks == 0) return machine;
    const int64_t word_bytes = machine.word_bits / 8;
    const int64_t buffer_bytes = options.memory.empty()
                                     ? machine.buffer.banks * machine.buffer.bank_words * word_bytes
                                     : parse_bytes("--buffer", options.memory);
    if (options.banks > 0) machine.buffer.banks = options.banks;
    machine.buffer.bank_words = buffer_bytes / word_bytes / machine.buffer.banks;
    if (machine.buffer.bank_words < 1) {
        throw InfeasibleError(
            fmt::format("--buffer {}: less than a word for each of {} banks; the smallest budget "
                        "that works is {} bytes",
                        options.memory, machine.buffer.banks, machine.buffer.banks * word_bytes));
    }
    return machine;
}

NetworkOptima solved_layers(const LayerOptimumExploreOptions& options, const ModelRequest& request,
                            const LayerOptimumAnswer& answer, const Output& output) {
    NetworkOptimaOptions search;
    search.evaluator = answer.evaluator;
    search.limits = options.limits();
    search.grouped_as_one = options.as_published;
    if (options.wants_front()) search.front_up_to = options.front_up_to();
    search.curve = options.curve;
    search.threads = request.common.thread_count();
    search.stop = request.stop;
    search.progress = [&](size_t done, size_t shapes, const std::string& layer) {
        output.note(fmt::format("{} of {} shapes, {}", done, shapes, layer));
    };
    NetworkOptima optima = network_optima(answer.network, answer.machine, search);
    if (!optima.unsolved.empty())
        output.note(fmt::format("interrupted: the layers solved so far; not {}",
                                fmt::join(optima.unsolved, ", ")));
    if (const std::vector<std::string> unfinished = optima.unfinished_fronts(); !unfinished.empty())
        output.note(fmt::format("interrupted: the points found so far of the front of {}",
                                fmt::join(unfinished, ", ")));
    return optima;
}

FusionOptions fusion_options(const LayerOptimumExploreOptions& options, const ModelRequest& request,
                             const LayerOptimumAnswer& answer) {
    FusionOptions fusion;
    fusion.evaluator = answer.evaluator;
    fusion.limits = options.limits();
    fusion.max_layers = answer.max_group_layers;
    fusion.threads = request.common.thread_count();
    fusion.stop = request.stop;
    fusion.known = answer.optima.by_shape();
    return fusion;
}

void fuse(LayerOptimumAnswer& answer, FusionOptions& fusion, const Output& output) {
    fusion.progress = [&](int64_t looked_at, int64_t shapes, const std::string& group) {
        output.note(
            fmt::format("{} of {} groups of different shape, {}", looked_at, shapes, group));
    };
    const auto begin = std::chrono::steady_clock::now();
    answer.fused = fused_optimum(answer.network, answer.machine.buffer, fusion);
    answer.fused_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!answer.fused->is_complete)
        output.note("interrupted: the best cut into the groups looked at so far");
}

/// The cut into groups with the fewest DRAM accesses, or every layer alone, at the point of its
/// front that the weight picks.
OptimumSchedule schedule_of(const LayerOptimumAnswer& answer, FusionOptions& fusion) {
    if (!answer.fused && answer.weight) {
        for (const SolvedLayer& layer : answer.optima.layers) {
            if (layer.front.points.empty()) continue;
            const DramSramPoint& chosen = choose(layer.front, *answer.weight);
            LayerOptimum& known = fusion.known.at(to_text(layer.problem));
            known.order = chosen.order;
            known.division = chosen.division;
            known.dram_words = chosen.dram_words;
        }
    }
    const BankedBuffer& buffer = answer.machine.buffer;
    return optimum_schedule(
        answer.network,
        answer.fused ? answer.fused->groups : layers_alone(answer.network, buffer, fusion), buffer,
        fusion);
}

void write_files(const LayerOptimumAnswer& answer, const nlohmann::ordered_json& json,
                 const ModelRequest& request, bool with_curves) {
    NewDirectory files(
        request.directory,
        [](const auto& place) {
            return answer_files(place, "layers.json", "laminate.layer_optimum");
        },
        "laminate explore --model layer-optimum");
    write_file_atomically(files.aside() / "layers.json", json_text(json));
    if (answer.schedule) {
        nlohmann::ordered_json front = found_front(answer.network, {answer.schedule->schedule},
                                                   "layer-optimum", request.network);
        front.update(findings_json(answer));
        write_front(files.aside(), answer.network, front);
    }
    if (with_curves) {
        write_file_atomically(files.aside() / "curves.csv", curves_csv(answer));
        write_file_atomically(
            files.aside() / "curves.html",
            curve_page(answer.network.name + ": DRAM accesses by buffer", page_curves(answer)));
    }
    files.publish();
}

Exit run(const LayerOptimumExploreOptions& options, const ModelRequest& request,
         const Output& output) {
    const SpillEvaluator evaluator = parse_spill_evaluator(options.evaluator);
    check_together(options, evaluator);
    const std::string machine_name = request.machine.empty() ? "cnnflow_eyeriss" : request.machine;
    LayerMachine machine = machine_of(options, machine_name);
    const Network network = request.network.open();
    LayerOptimumAnswer answer{.network = network,
                              .machine_name = machine_name,
                              .machine = std::move(machine),
                              .evaluator = evaluator,
                              .grouped_as_one = options.as_published,
                              .weight = options.weight,
                              .optima = {},
                              .max_group_layers = options.max_layers(),
                              .fused = {},
                              .directory = request.directory,
                              .schedule = {}};
    answer.optima = solved_layers(options, request, answer, output);
    const bool all_are_solved = answer.optima.unsolved.empty();
    FusionOptions fusion = fusion_options(options, request, answer);
    if (options.fuse && all_are_solved) fuse(answer, fusion, output);
    if (!request.directory.empty()) {
        if (options.as_published) {
            output.note("no schedule: --grouped-as-one changes what the layers compute");
        } else if (!all_are_solved) {
            output.note("no schedule: interrupted before every layer was solved");
        } else {
            answer.schedule = schedule_of(answer, fusion);
        }
    }
    const nlohmann::ordered_json json = to_json(answer, request.network.to_json());
    if (!request.directory.empty()) write_files(answer, json, request, options.curve);
    print(answer, output);
    output.json(json);
    return Exit::ok;
}

RunModel declare(CLI::App& app) {
    auto options = std::make_shared<LayerOptimumExploreOptions>();
    app.add_option("--evaluator", options->evaluator,
                   "How spills are counted: eq7 (CNNFlow's formula, corrected) or belady (Belady's "
                   "replacement on the real stream)")
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
                 "fused; never worse than layer by layer");
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
