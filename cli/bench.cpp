// laminate bench NET: times the fused network and the same network layer by layer in one run, after
// comparing their results; with --front every schedule of a front so.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/checks.h"
#include "answers/counts_report.h"
#include "answers/front_file.h"
#include "answers/front_report.h"
#include "answers/network_argument.h"
#include "answers/version.h"
#include "base/error.h"
#include "base/percentile.h"
#include "cli/execution.h"
#include "cli/machine_speed.h"
#include "cli/resident_memory.h"
#include "cli/step_report.h"
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
    CacheArgument cache;
    std::string front;
    int64_t points = 0;  ///< of the front; 0: all
    double seconds = 2;
    int64_t reference_macs = 2'000'000'000;
    bool steps = false;
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
    std::optional<StepReport> steps{};  ///< if its session times them
};

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
    if (variant.steps) json["steps"] = variant.steps->json();
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
    if (variant.steps) variant.steps->add(variant.execution->session().step_times());
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
    if (options.schedule.is_given() || !options.front.empty())
        throw UsageError(
            "a compiled directory carries its own schedule; --schedule, --front and --memory want "
            "the network");
    // The arrays come first, so that the measured peak excludes them.
    std::unique_ptr<Arrays> arrays;
    {
        Session shapes = Session::open(std::filesystem::path(options.network.spec), {1});
        arrays = std::make_unique<Arrays>(shapes, common.seed);
    }
    const PeakWatch watch;
    Variant variant{"compiled",
                    std::make_unique<Execution>(options.network.spec, common, options.steps),
                    {}};
    if (options.steps) variant.steps.emplace(variant.execution->session().manifest());
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
    if (variant.steps) output.print(variant.steps->table());
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

Variant variant_of(const std::string& name, const Network& network,
                   const ScheduleArgument& argument, const std::shared_ptr<DiskCache>& cache,
                   const CommonOptions& common, const Output& output) {
    double planning = 0;
    Schedule schedule = timed(planning, [&] {
        return argument.choose(network, {.threads = common.thread_count(), .cache = cache});
    });
    Variant variant{name,
                    std::make_unique<Execution>(network, std::move(schedule), argument.kernels(),
                                                cache, common, output),
                    {}};
    variant.execution->times().planning = planning;
    output.detail(variant.execution->times().text());
    return variant;
}

Race race_of(const Network& network, const ScheduleArgument& argument,
             const std::shared_ptr<DiskCache>& cache, const CommonOptions& common,
             const Output& output) {
    Race race;
    race.variants.push_back(variant_of("fused", network, argument, cache, common, output));
    try {
        ScheduleArgument by_layer = argument;
        by_layer.schedule.clear();
        by_layer.memory.clear();
        by_layer.layer_by_layer = true;
        race.variants.push_back(
            variant_of("layer by layer", network, by_layer, cache, common, output));
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
void measure_memory(Race& race, Arrays& arrays, const CommonOptions& common, bool times_steps) {
    for (Variant& variant : race.variants) {
        variant.arena = variant.execution->session().arena();
        variant.execution->close_session();
        const PeakWatch watch;
        variant.execution->open_session(common, times_steps);
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

/// What a race found of one contestant.
struct Figures {
    Times times{};
    double predicted_ms = 0, gflops = 0;
    Counted count;
};

struct Outcome {
    Agreement agreement;
    double peak_gflops = 0;        ///< of the machine, measured between the runs
    std::vector<Figures> figures;  ///< of each variant; empty when results differ: none was timed

    [[nodiscard]] bool counts_agree() const {
        return std::ranges::all_of(figures, [](const Figures& f) { return f.count.is_equal(); });
    }
    [[nodiscard]] bool is_right() const { return agreement.is_correct() && counts_agree(); }
};

/// All races of one network share it, the options and the MACs.
struct Course {
    const Network& network;
    const BenchOptions& options;
    const CommonOptions& common;
    TimedOptions timed;
    Macs macs;  ///< of all layers

    Course(const Network& net, const BenchOptions& given, const CommonOptions& shared)
        : network(net),
          options(given),
          common(shared),
          timed(given.schedule.timed_options(shared.thread_count())) {
        for (LayerId id = 0; id < std::ssize(net.layers); ++id) macs += Macs(layer_macs(net, id));
    }
};

/// Compares the results, then measures memory and times.
Outcome outcome_of(const Course& course, Race& race) {
    const int threads = course.common.thread_count();
    Outcome outcome;
    Arrays arrays(race.variants[0].execution->session(), course.common.seed);
    outcome.agreement = agreement_of(race, arrays, course.network,
                                     course.macs.value() <= course.options.reference_macs);
    if (!outcome.agreement.is_correct()) return outcome;
    measure_memory(race, arrays, course.common, course.options.steps);
    for (Variant& variant : race.variants) {
        if (course.options.steps)
            variant.steps.emplace(variant.execution->session().manifest(), course.network,
                                  variant.execution->schedule_of_code(), course.timed.speed, threads);
    }
    outcome.peak_gflops = time_in_turns(race, arrays, course.options.seconds, threads);
    for (const Variant& variant : race.variants) {
        Figures figures;
        figures.times = summary(variant.times_ms);
        figures.predicted_ms = predicted_milliseconds(
            course.network, *variant.execution->schedule(), course.timed.speed, threads);
        figures.gflops =
            2e-6 * static_cast<double>(course.macs.value()) / figures.times.median_ms;
        figures.count = counted(course.network, variant.execution->schedule_of_code());
        outcome.figures.push_back(std::move(figures));
    }
    return outcome;
}

Json opening_json(const Course& course) {
    return {{"schema", "laminate.bench"},
            {"version", 1},
            {"network", course.network.name},
            {"network_hash", network_hash(course.network)},
            {"structure_hash", structure_hash(course.network)},
            {"made_by", made_by()},
            {"threads", course.common.thread_count()},
            {"macs", course.macs.value()}};
}

Json variant_json(const Variant& variant, const Figures& figures, double peak) {
    const Schedule& schedule = *variant.execution->schedule();
    Json json = times_json(variant);
    json["gflops"] = figures.gflops;
    json["of_peak"] = figures.gflops / peak;
    json["groups"] = schedule.groups().size();
    json["predicted"] = counted_json(figures.count.predicted);
    json["measured"] = counted_json(figures.count.measured);
    json["deployed"] = done_json(figures.count.deployed);
    json["schedule"] = to_text(schedule);
    json["predicted_ms"] = figures.predicted_ms;
    json["cpu_seconds"] = variant.execution->times().json();
    return json;
}

/// `given`: the schedule as it came, if one did; the one that ran has kernels and groups for layers
/// that a front leaves out.
Json race_json(const Race& race, const Outcome& outcome, const std::string& given) {
    const Agreement& agreement = outcome.agreement;
    Json json{{"correct", agreement.is_correct()}};
    if (race.has_both()) json["difference_of_range"] = agreement.between;
    if (!race.has_both()) json["left_out"] = race.left_out;
    if (agreement.to_reference) json["difference_to_reference_of_range"] = *agreement.to_reference;
    if (outcome.figures.empty()) return json;
    json["fused"] = variant_json(race.variants[0], outcome.figures[0], outcome.peak_gflops);
    if (!given.empty()) json["fused"]["schedule_given"] = given;
    if (race.has_both()) {
        json["layer_by_layer"] =
            variant_json(race.variants[1], outcome.figures[1], outcome.peak_gflops);
        json["speedup"] = outcome.figures[1].times.median_ms / outcome.figures[0].times.median_ms;
    }
    json["peak_gflops"] = outcome.peak_gflops;
    json["counts_equal"] = outcome.counts_agree();
    return json;
}

/// What crosses between memory and the code of all groups.
struct Crossing {
    int64_t inputs = 0, weights = 0, partial_sums = 0, outputs = 0;

    explicit Crossing(const std::vector<DoneCounts>& groups) {
        for (const DoneCounts& group : groups) {
            inputs += group.input_reads().scheduled.value();
            weights += group.weight_reads().scheduled.value();
            partial_sums += group.output_reads.scheduled.value();
            outputs += group.output_writes.scheduled.value();
        }
    }
    [[nodiscard]] int64_t sum() const { return inputs + weights + partial_sums + outputs; }
};

/// Why fusing moves more elements than not fusing, or an empty text if it does not.
std::string why_more_moves(const Crossing& fused, const Crossing& by_layer) {
    if (fused.sum() <= by_layer.sum()) return "";
    const std::array<std::pair<int64_t, std::string>, 4> reasons{{
        {fused.weights - by_layer.weights,
         "reads of W: every strip or tile reads the weights of its layers again"},
        {fused.inputs - by_layer.inputs,
         "reads of X: tiles share rows and columns at their edges, and read them again for other maps"},
        {fused.partial_sums - by_layer.partial_sums,
         "reads of Y: sums that do not fit go to memory and come back"},
        {fused.outputs - by_layer.outputs,
         "writes of Y: sums that do not fit are written more than once"},
    }};
    const auto& [more, reason] = *std::ranges::max_element(reasons);
    return fmt::format("fused moves {} elements and layer by layer {}; most of it, {}, are {}",
                       grouped(fused.sum()), grouped(by_layer.sum()), grouped(more), reason);
}

/// The tables of speed and counts.
void print_race(const Race& race, const Outcome& outcome, int threads, const Output& output) {
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
    const double peak = outcome.peak_gflops;
    std::string counts;
    for (size_t n = 0; n < race.variants.size(); ++n) {
        const Variant& variant = race.variants[n];
        const auto& [times, predicted, gflops, count] = outcome.figures[n];
        speed.add({variant.name, std::to_string(variant.execution->schedule()->groups().size()),
                   fmt::format("{:.3f}", predicted), fmt::format("{:.3f}", times.median_ms),
                   fmt::format("{:.3f}", times.min_ms), fmt::format("{:.1f} %", 100 * times.spread),
                   fmt::format("{:.1f}", gflops), fmt::format("{:.0f} %", 100 * gflops / peak),
                   bytes_text(variant.arena.total_bytes), rss_text(variant.peak_rss_bytes)});
        counts += fmt::format("{}{}: {} held at once\n{}", counts.empty() ? "" : "\n", variant.name,
                              bytes_text(to_bytes(count.predicted.live_total).value()),
                              done_table(count.predicted_done, count.deployed));
    }
    std::string comparison;
    if (race.has_both())
        comparison =
            fmt::format("fused is {:.2f}× as fast; ", outcome.figures[1].times.median_ms /
                                                          outcome.figures[0].times.median_ms);
    output.print(speed.text());
    output.print(
        fmt::format("{}peak of {} thread{} {:.0f} GFLOP/s, measured between the runs; memory is "
                    "beyond input and output\n",
                    comparison, threads, threads == 1 ? "" : "s", peak));
    for (const Variant& variant : race.variants) {
        if (variant.steps) output.print(fmt::format("{}:\n{}", variant.name, variant.steps->table(peak)));
    }
    output.print(counts);
    if (race.has_both()) {
        const std::string why = why_more_moves(Crossing(outcome.figures[0].count.predicted_done),
                                               Crossing(outcome.figures[1].count.predicted_done));
        if (!why.empty()) output.print(why);
    }
    if (!outcome.counts_agree()) output.print("counts of the model and of the code differ");
}

std::string headline(const Course& course) {
    const int threads = course.common.thread_count();
    return fmt::format("{}, {:.3f} GFLOP, {} thread{}", course.network.name,
                       2e-9 * static_cast<double>(course.macs.value()), threads,
                       threads == 1 ? "" : "s");
}

std::string wrong_results() {
    return fmt::format("the results differ by more than {:.0e} of the range; nothing was timed",
                       allowed_difference);
}

Exit bench_network(const Course& course, const Output& output) {
    const ScheduleArgument& argument = course.options.schedule;
    const std::shared_ptr<DiskCache> cache = course.options.cache.open(output);
    Race race = race_of(course.network, argument, cache, course.common, output);
    const Outcome outcome = outcome_of(course, race);
    output.print(
        fmt::format("{}; {}", headline(course), agreement_text(race, outcome.agreement)));
    if (outcome.figures.empty())
        output.print(wrong_results());
    else
        print_race(race, outcome, course.common.thread_count(), output);
    const std::string given =
        argument.schedule.empty() ? ""
                                  : to_text(read_schedule(course.network, argument.schedule));
    Json answer = opening_json(course);
    answer.update(race_json(race, outcome, given));
    output.json(answer);
    return outcome.is_right() ? Exit::ok : Exit::comparison_failed;
}

/// The cells of one point of a front.
std::vector<std::string> front_row(size_t point, const Race& race, const Outcome& outcome) {
    const std::string name = fmt::format("#{}", point);
    if (outcome.figures.empty()) return {name, "", "", "", "", "", "", "", "", wrong_results()};
    const auto& [times, predicted, gflops, count] = outcome.figures[0];
    return {name,
            bytes_text(to_bytes(count.predicted.live_total).value()),
            fmt::format("{:.3f}", predicted),
            fmt::format("{:.3f}", times.median_ms),
            fmt::format("{:+.0f} %", 100 * (times.median_ms / predicted - 1)),
            fmt::format("{:.1f} %", 100 * times.spread),
            race.has_both() ? fmt::format("{:.3f}", outcome.figures[1].times.median_ms) : "",
            fmt::format("{:.1f}", gflops),
            bytes_text(race.variants[0].arena.total_bytes),
            outcome.counts_agree() ? "equal" : "DIFFERENT"};
}

/// Every schedule of a front against layer by layer, one after another.
Exit bench_front(const Course& course, const Output& output) {
    const FrontSchedules front =
        front_schedules(course.network, course.options.front, course.options.points);
    Table table({{"schedule"},
                 {"memory", Align::right},
                 {"predicted ms", Align::right},
                 {"median ms", Align::right},
                 {"off by", Align::right},
                 {"spread", Align::right},
                 {"layer by layer ms", Align::right},
                 {"GFLOP/s", Align::right},
                 {"arena", Align::right},
                 {"counts"}});
    Json entries = Json::array();
    const std::shared_ptr<DiskCache> cache = course.options.cache.open(output);
    std::optional<Race> race;  // layer by layer is compiled once
    bool all_right = true;
    size_t close = 0;
    StepNotes notes(output);
    for (size_t n = 0; n < front.points.size(); ++n) {
        notes.note("timing schedule", static_cast<int64_t>(n), std::ssize(front.points));
        ScheduleArgument argument = course.options.schedule;
        argument.schedule = to_text(front.schedules[n]);
        if (race)
            race->variants[0] = variant_of("fused", course.network, argument, cache,
                                           course.common, output);
        else
            race = race_of(course.network, argument, cache, course.common, output);
        for (Variant& variant : race->variants) variant.times_ms.clear();
        const Outcome outcome = outcome_of(course, *race);
        all_right = all_right && outcome.is_right();
        table.add(front_row(front.points[n], *race, outcome));
        if (!outcome.figures.empty()) {
            const Figures& fused = outcome.figures[0];
            close += std::abs(fused.times.median_ms / fused.predicted_ms - 1) <= 0.2 ? 1 : 0;
        }
        entries.push_back(race_json(*race, outcome, argument.schedule));
    }
    output.print(headline(course));
    output.print(table.text());
    output.print(fmt::format("{} of {} schedules within 20 % of the predicted time{}", close,
                             front.points.size(),
                             race && !race->has_both() ? "; " + race->left_out : ""));
    Json answer = opening_json(course);
    answer["points"] = front.points;
    answer["schedules"] = std::move(entries);
    output.json(answer);
    return all_right ? Exit::ok : Exit::comparison_failed;
}

}  // namespace

void add_bench(Program& program) {
    CLI::App* verb = program.add_verb(
        "bench", "Fused against layer by layer: time, memory, predicted and measured counts",
        "  laminate bench \"zoo:fsrcnn?height=540&width=960\" --threads 2\n"
        "  laminate bench zoo:resnet18 --memory 1MiB --seconds 5 --json -\n"
        "  laminate bench zoo:l3net --front front/ --seconds 0.2 --json front/timed.json\n"
        "  laminate bench zoo:mobilenetv2 --steps\n"
        "  laminate bench compiled/");
    auto options = std::make_shared<BenchOptions>();
    options->network.declare(verb, true);
    options->schedule.declare(verb, false);
    options->cache.declare(verb);
    auto* front = verb->add_option("--front", options->front,
                                   "Every schedule of a front written by `explore`; with --json "
                                   "into its directory, `report` shows the times")
                      ->excludes(verb->get_option("--schedule"))
                      ->excludes(verb->get_option("--memory"));
    verb->add_option("--points", options->points,
                     "Only this many schedules of --front, evenly spread, including the first and "
                     "the last")
        ->needs(front)
        ->check(positive());
    verb->add_option("--seconds", options->seconds, "Duration of the timed runs of each variant")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_option("--reference-macs", options->reference_macs,
                     "Networks with more MACs are not compared with the reference operators as a "
                     "whole")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_flag("--steps", options->steps,
                   "Also the time of every step as it runs among the others, how much of it threads wait for "
                   "each other, and how near it comes to the machine's peak")
        ->excludes(front);
    program.on(verb, [options, &program](const Output& output) {
        if (is_compiled_directory(options->network))
            return bench_directory(*options, program.common(), output);
        const Network network =
            to_run(options->network.open(),
                   options->front.empty() ? options->schedule.schedule : options->front);
        const Course course(network, *options, program.common());
        return options->front.empty() ? bench_network(course, output)
                                      : bench_front(course, output);
    });
}

}  // namespace laminate::cli
