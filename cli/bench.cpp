// laminate bench NET: times the fused network and the same network layer by layer in one run, after
// comparing their results.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/checks.h"
#include "answers/counts_report.h"
#include "answers/network_argument.h"
#include "answers/version.h"
#include "base/error.h"
#include "cli/execution.h"
#include "cli/machine_speed.h"
#include "cli/resident_memory.h"
#include "cli/tensor_files.h"
#include "cli/verbs.h"
#include "instrumentation/deployed.h"
#include "instrumentation/measure.h"
#include "nets/operators/reference_operators.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_schedule.h"

namespace laminate::cli {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct BenchOptions {
    NetworkArgument network;
    ScheduleArgument schedule;
    double seconds = 2;
    int64_t reference_macs = 2'000'000'000;
};

double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Inputs and outputs of one session, with all pages touched.
struct Arrays {
    std::vector<std::vector<float>> in, out;

    Arrays(const Session& session, uint64_t seed) {
        Rng rng(seed);
        for (const Tensor& tensor : session.inputs()) in.push_back(random_elements(tensor, rng));
        for (const Tensor& tensor : session.outputs())
            out.emplace_back(static_cast<size_t>(element_count(tensor.dims)), 0.0F);
    }
    void run(Session& session) {
        std::vector<const float*> inputs;
        std::vector<float*> outputs;
        for (const auto& array : in) inputs.push_back(array.data());
        for (auto& array : out) outputs.push_back(array.data());
        session.run(inputs, outputs);
    }
};

/// One contestant.
struct Variant {
    std::string name;
    std::unique_ptr<Execution> execution;
    std::vector<double> times_ms;
    std::optional<int64_t> peak_rss_bytes{};
    ArenaUse arena{};
};

/// A percentile of sorted values.
double at_percent(const std::vector<double>& sorted, size_t percent) {
    return sorted[(sorted.size() - 1) * percent / 100];
}

struct Times {
    double median_ms, min_ms, spread;
};

Times summary(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const double median = at_percent(times, 50);
    return {median, times.front(), (at_percent(times, 90) - at_percent(times, 10)) / median};
}

Json times_json(const Variant& variant) {
    const Times times = summary(variant.times_ms);
    Json json{{"runs", variant.times_ms.size()},
              {"median_ms", times.median_ms},
              {"min_ms", times.min_ms},
              {"spread", times.spread}};
    json["arena_bytes"] = variant.arena.total_bytes;
    json["scratch_bytes_per_thread"] = variant.arena.scratch_per_thread_bytes;
    json["peak_rss_bytes"] = variant.peak_rss_bytes ? Json(*variant.peak_rss_bytes) : Json(nullptr);
    json["times_ms"] = variant.times_ms;
    return json;
}

/// Runs without timing, which touch pages and start threads.
void warm_up(Variant& variant, Arrays& arrays) {
    for (int n = 0; n < 2; ++n) arrays.run(variant.execution->session());
}

void time_once(Variant& variant, Arrays& arrays) {
    const auto start = Clock::now();
    arrays.run(variant.execution->session());
    variant.times_ms.push_back(milliseconds_since(start));
}

/// Largest difference relative to the range of `expected`; infinite when an element is not finite.
double relative_difference(const std::vector<std::vector<float>>& found,
                           const std::vector<std::vector<float>>& expected) {
    double worst = 0;
    for (size_t k = 0; k < expected.size(); ++k) {
        const auto [low, high] = std::minmax_element(expected[k].begin(), expected[k].end());
        const double range = std::max(
            {static_cast<double>(*high) - *low, static_cast<double>(std::abs(*high)), 1e-30});
        for (size_t n = 0; n < expected[k].size(); ++n) {
            const double error =
                std::abs(static_cast<double>(found[k][n]) - expected[k][n]) / range;
            if (!std::isfinite(error)) return HUGE_VAL;
            worst = std::max(worst, error);
        }
    }
    return worst;
}

constexpr double allowed_difference = 1e-4;

std::string rss_text(const std::optional<int64_t>& bytes) {
    return bytes ? bytes_text(*bytes) : "not known";
}

Exit bench_directory(const BenchOptions& options, const CommonOptions& common,
                     const Output& output) {
    if (options.schedule.is_given())
        throw UsageError(
            "a compiled directory carries its own schedule; --schedule and --memory want the "
            "network");
    // The arrays come first, so that the measured peak excludes them.
    std::unique_ptr<Arrays> arrays;
    {
        Session shapes = Session::open(std::filesystem::path(options.network.spec), {1});
        arrays = std::make_unique<Arrays>(shapes, common.seed);
    }
    const PeakWatch watch;
    Variant variant{"compiled", std::make_unique<Execution>(options.network.spec, common), {}};
    warm_up(variant, *arrays);
    const auto start = Clock::now();
    while (variant.times_ms.size() < 3 || milliseconds_since(start) < options.seconds * 1e3)
        time_once(variant, *arrays);
    variant.peak_rss_bytes = watch.growth_bytes();
    variant.arena = variant.execution->session().arena();
    const Times times = summary(variant.times_ms);
    const Manifest& manifest = variant.execution->session().manifest();
    output.print(
        fmt::format("{}, {} thread{}: median {:.3f} ms, min {:.3f} ms, spread {:.1f} %, {} runs; "
                    "{}; peak memory beyond input and output {}",
                    manifest.network, variant.arena.threads, variant.arena.threads == 1 ? "" : "s",
                    times.median_ms, times.min_ms, 100 * times.spread, variant.times_ms.size(),
                    arena_text(variant.arena), rss_text(variant.peak_rss_bytes)));
    output.json({{"schema", "laminate.bench"},
                 {"version", 1},
                 {"network", manifest.network},
                 {"network_hash", manifest.network_hash},
                 {"made_by", made_by()},
                 {"target", manifest.target},
                 {"threads", variant.arena.threads},
                 {"compiled", times_json(variant)}});
    return Exit::ok;
}

/// What a schedule moves and holds and what its code does, as the model predicts and as counted on
/// instrumented code and on the code that runs.
struct Counted {
    NetworkCounts predicted, measured;
    std::vector<DoneCounts> predicted_done, deployed;
    [[nodiscard]] bool is_equal() const {
        return predicted == measured && predicted_done == deployed;
    }
};

Counted counted(const Network& network, const Schedule& schedule) {
    Counted count;
    std::vector<GroupCounts> predicted, measured;
    for (const GroupSchedule& group : schedule.groups()) {
        predicted.push_back(two_level_counts(network, group));
        measured.push_back(measure(network, group));
        const DoneCounts done = done_counts(group, group_problems(network, group));
        count.deployed.push_back(deployed_counts(network, group, done));
        count.predicted_done.push_back(done);
    }
    count.predicted = total(predicted);
    count.measured = total(measured);
    return count;
}

Json counted_json(const NetworkCounts& counts) {
    return {{"accesses_elements", counts.accesses.value()},
            {"macs", counts.macs.value()},
            {"live_bytes", to_bytes(counts.live_total).value()}};
}

/// The contestants: the fused network and, if it fits, the network layer by layer.
struct Race {
    std::vector<Variant> variants;
    std::string left_out;  ///< why there is only one; empty when there are two

    bool has_both() const { return left_out.empty(); }
};

Race race_of(const Network& network, const BenchOptions& options, const CommonOptions& common,
             const Output& output) {
    const int threads = common.thread_count();
    const KernelOptions kernels = options.schedule.kernels();
    Race race;
    race.variants.push_back(
        {"fused",
         std::make_unique<Execution>(network, options.schedule.choose(network, threads), kernels,
                                     common, output),
         {}});
    try {
        ScheduleArgument argument = options.schedule;
        argument.schedule.clear();
        argument.memory.clear();
        argument.layer_by_layer = true;
        Schedule layers = argument.choose(network, threads);
        race.variants.push_back(
            {"layer by layer",
             std::make_unique<Execution>(network, std::move(layers), kernels, common, output),
             {}});
    } catch (const InfeasibleError& too_large) {  // which is what fusing is for
        race.left_out = fmt::format("layer by layer is left out: {}", too_large.what());
    }
    return race;
}

/// Differences of the results, relative to their range.
struct Agreement {
    double between = 0;                  ///< between the two variants
    std::optional<double> to_reference;  ///< none for networks that are too large for it

    bool is_correct() const {
        return between <= allowed_difference && to_reference.value_or(0) <= allowed_difference;
    }
};

Agreement agreement_of(Race& race, Arrays& arrays, const Network& network, bool with_reference) {
    Agreement found;
    arrays.run(race.variants[0].execution->session());
    if (with_reference)
        found.to_reference =
            relative_difference(arrays.out, run_reference_network(network, arrays.in));
    if (race.has_both()) {
        const std::vector<std::vector<float>> fused = arrays.out;
        arrays.run(race.variants[1].execution->session());
        found.between = relative_difference(fused, arrays.out);
    }
    return found;
}

std::string agreement_text(const Race& race, const Agreement& agreement) {
    return fmt::format(
        "{}, {}",
        race.has_both() ? fmt::format("fused and layer by layer differ by {:.1e} of the range",
                                      agreement.between)
                        : race.left_out,
        agreement.to_reference
            ? fmt::format("fused and reference operators by {:.1e}", *agreement.to_reference)
            : "too large for the reference operators (every group was checked against "
              "them in part)");
}

/// Measures the memory of each variant in a session of its own.
void measure_memory(Race& race, Arrays& arrays, const CommonOptions& common) {
    for (Variant& variant : race.variants) {
        variant.arena = variant.execution->session().arena();
        variant.execution->close_session();
        const PeakWatch watch;
        variant.execution->open_session(common);
        warm_up(variant, arrays);
        variant.peak_rss_bytes = watch.growth_bytes();
    }
}

/// Times the variants in turns, so that drift of the machine affects both alike. Returns the peak
/// of the machine in GFLOP/s, measured between the runs.
double time_in_turns(Race& race, Arrays& arrays, double seconds, int threads) {
    double peak = peak_gflops(threads);
    auto last_peak = Clock::now();
    double used_ms = 0;
    while (race.variants[0].times_ms.size() < 3 ||
           used_ms < 1e3 * seconds * static_cast<double>(race.variants.size())) {
        for (Variant& variant : race.variants) {
            time_once(variant, arrays);
            used_ms += variant.times_ms.back();
        }
        if (milliseconds_since(last_peak) > 200) {
            peak = std::max(peak, peak_gflops(threads));
            last_peak = Clock::now();
        }
    }
    return peak;
}

Json opening_json(const Network& network, const Race& race, const Agreement& agreement, Macs macs,
                  int threads) {
    Json answer{{"schema", "laminate.bench"},
                {"version", 1},
                {"network", network.name},
                {"network_hash", network_hash(network)},
                {"structure_hash", structure_hash(network)},
                {"made_by", made_by()},
                {"threads", threads},
                {"macs", macs.value()},
                {"correct", agreement.is_correct()}};
    if (race.has_both()) answer["difference_of_range"] = agreement.between;
    if (!race.has_both()) answer["left_out"] = race.left_out;
    if (agreement.to_reference)
        answer["difference_to_reference_of_range"] = *agreement.to_reference;
    return answer;
}

Json variant_json(const Variant& variant, const Counted& count, double gflops, double peak) {
    const Schedule& schedule = *variant.execution->schedule();
    Json json = times_json(variant);
    json["gflops"] = gflops;
    json["of_peak"] = gflops / peak;
    json["groups"] = schedule.groups().size();
    json["predicted"] = counted_json(count.predicted);
    json["measured"] = counted_json(count.measured);
    json["deployed"] = done_json(count.deployed);
    json["schedule"] = to_text(schedule);
    return json;
}

/// Prints the tables of speed and counts and completes `answer`. Returns whether all counts are
/// equal.
bool report_race(const Network& network, const Race& race, const TimedOptions& timed, Macs macs,
                 double peak, int threads, const Output& output, Json& answer) {
    Table speed({{""},
                 {"groups", Align::right},
                 {"predicted ms", Align::right},
                 {"median ms", Align::right},
                 {"min ms", Align::right},
                 {"spread", Align::right},
                 {"GFLOP/s", Align::right},
                 {"of peak", Align::right},
                 {"arena", Align::right},
                 {"peak memory", Align::right}});
    std::string counts;
    bool counts_agree = true;
    for (const Variant& variant : race.variants) {
        const Schedule& schedule = *variant.execution->schedule();
        const Times times = summary(variant.times_ms);
        const double gflops = 2e-6 * static_cast<double>(macs.value()) / times.median_ms;
        const Counted count = counted(network, variant.execution->schedule_of_code());
        counts_agree = counts_agree && count.is_equal();
        const double predicted = predicted_milliseconds(network, schedule, timed.speed, threads);
        speed.add({variant.name, std::to_string(schedule.groups().size()),
                   fmt::format("{:.3f}", predicted), fmt::format("{:.3f}", times.median_ms),
                   fmt::format("{:.3f}", times.min_ms), fmt::format("{:.1f} %", 100 * times.spread),
                   fmt::format("{:.1f}", gflops), fmt::format("{:.0f} %", 100 * gflops / peak),
                   bytes_text(variant.arena.total_bytes), rss_text(variant.peak_rss_bytes)});
        counts += fmt::format("{}{}: {} held at once\n{}", counts.empty() ? "" : "\n", variant.name,
                              bytes_text(to_bytes(count.predicted.live_total).value()),
                              done_table(count.predicted_done, count.deployed));
        answer[variant.name == "fused" ? "fused" : "layer_by_layer"] =
            variant_json(variant, count, gflops, peak);
        answer[variant.name == "fused" ? "fused" : "layer_by_layer"]["predicted_ms"] = predicted;
    }
    std::string comparison;
    if (race.has_both()) {
        const double speedup = summary(race.variants[1].times_ms).median_ms /
                               summary(race.variants[0].times_ms).median_ms;
        answer["speedup"] = speedup;
        comparison = fmt::format("fused is {:.2f}× as fast; ", speedup);
    }
    answer["peak_gflops"] = peak;
    answer["counts_equal"] = counts_agree;
    output.print(speed.text());
    output.print(
        fmt::format("{}peak of {} thread{} {:.0f} GFLOP/s, measured between the runs; memory is "
                    "beyond input and output\n",
                    comparison, threads, threads == 1 ? "" : "s", peak));
    output.print(counts);
    return counts_agree;
}

Exit bench_network(const BenchOptions& options, const CommonOptions& common, const Output& output) {
    const Network network = options.network.open();
    const int threads = common.thread_count();
    Race race = race_of(network, options, common, output);
    Arrays arrays(race.variants[0].execution->session(), common.seed);
    Macs macs;
    for (LayerId id = 0; id < std::ssize(network.layers); ++id)
        macs += Macs(layer_macs(network, id));

    // Correct first.
    const Agreement agreement =
        agreement_of(race, arrays, network, macs.value() <= options.reference_macs);
    output.print(fmt::format("{}, {:.3f} GFLOP, {} thread{}; {}", network.name,
                             2e-9 * static_cast<double>(macs.value()), threads,
                             threads == 1 ? "" : "s", agreement_text(race, agreement)));
    Json answer = opening_json(network, race, agreement, macs, threads);
    if (!agreement.is_correct()) {
        output.print(
            fmt::format("the results differ by more than {:.0e} of the range; nothing was timed",
                        allowed_difference));
        output.json(answer);
        return Exit::comparison_failed;
    }
    measure_memory(race, arrays, common);
    const double peak = time_in_turns(race, arrays, options.seconds, threads);
    const bool counts_agree = report_race(network, race, options.schedule.timed_options(threads),
                                          macs, peak, threads, output, answer);
    if (!counts_agree) output.print("counts of the model and of the code differ");
    // The one that ran has kernels and groups for layers that a front leaves out.
    if (!options.schedule.schedule.empty())
        answer["fused"]["schedule_given"] =
            to_text(read_schedule(network, options.schedule.schedule));
    output.json(answer);
    return counts_agree ? Exit::ok : Exit::comparison_failed;
}

}  // namespace

void add_bench(Program& program) {
    CLI::App* verb = program.add_verb(
        "bench", "Fused against layer by layer: time, memory, predicted and measured counts",
        "  laminate bench \"zoo:fsrcnn?height=540&width=960\" --threads 2\n"
        "  laminate bench zoo:resnet18 --memory 1MiB --seconds 5 --json -\n"
        "  laminate bench compiled/");
    auto options = std::make_shared<BenchOptions>();
    options->network.declare(verb, true);
    options->schedule.declare(verb, false);
    verb->add_option("--seconds", options->seconds, "Duration of the timed runs of each variant")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_option("--reference-macs", options->reference_macs,
                     "Networks with more MACs are not compared with the reference operators as a "
                     "whole")
        ->check(not_negative())
        ->capture_default_str();
    program.on(verb, [options, &program](const Output& output) {
        if (is_compiled_directory(options->network))
            return bench_directory(*options, program.common(), output);
        return bench_network(*options, program.common(), output);
    });
}

}  // namespace laminate::cli
