// laminate validate NET: model, walker and generated code side by side, for one schedule, a front,
// or random ones.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "answers/checks.h"
#include "answers/counts_report.h"
#include "answers/front_file.h"
#include "answers/network_argument.h"
#include "answers/version.h"
#include "base/error.h"
#include "base/parallel.h"
#include "cli/halide.h"
#include "cli/verbs.h"
#include "generators/kernels/group_kernels.h"
#include "instrumentation/deployed.h"
#include "instrumentation/measure.h"
#include "instrumentation/walker.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"
#include "scheduler/schedule/buffer_shapes.h"

namespace laminate::cli {

namespace {

struct ValidateOptions {
    NetworkArgument network;
    std::string schedule;
    std::string front;
    int64_t points = 0;
    int64_t random = 0;
    int64_t walker_calls = 5'000'000;
    int64_t execute_macs = 100'000'000;
    bool halide = false;
};

/// Enough to keep all threads busy, few enough that a difference shows soon.
constexpr size_t schedules_at_once = 32;

/// The counts of one group by each witness.
struct GroupVerdict {
    GroupCounts model;
    std::optional<GroupCounts> walker;  ///< none when the group is too large to step through
    GroupCounts measured;
    DoneCounts predicted;      ///< what its kernels do, by closed forms
    DoneCounts deployed;       ///< the same, counted on the code that runs
    bool is_executed = false;  ///< whether its result was computed and compared as well
    std::optional<HalideVerdict> halide;
    std::string difference;  ///< empty: equal
};

struct Verdict {
    std::vector<Witness> witnesses;
    std::vector<DoneCounts> predicted, deployed;  ///< by group
    std::string difference;                       ///< empty: equal
};

void join(std::string& all, const std::string& text) {
    if (!text.empty()) all += (all.empty() ? "" : "; ") + text;
}

/// Judges each distinct group once: the schedules of a front share most of their groups.
class Judge {
public:
    Judge(const Network& network, const ValidateOptions& options, int threads, const Output& output)
        : network_(network), options_(options), threads_(threads), notes_(output) {}

    /// Judges the new groups of all these schedules together, because one schedule alone may not
    /// have enough groups for the threads. A group takes the data of seed + n for the first
    /// schedule n that it is in. `what` begins the lines of progress.
    void judge_new(std::span<const Schedule> schedules, uint64_t seed, const std::string& what) {
        struct Fresh {
            const GroupSchedule* group;
            uint64_t seed;
            GroupVerdict* verdict;
        };
        std::vector<Fresh> fresh;
        for (size_t n = 0; n < schedules.size(); ++n) {
            for (const GroupSchedule& group : schedules[n].groups()) {
                const auto [known, is_new] = groups_.try_emplace(to_text(group));
                if (is_new) fresh.push_back({&group, seed + n, &known->second});
            }
        }
        std::mutex mutex;
        size_t done = 0;
        in_parallel(fresh.size(), threads_, [&](size_t n) {
            *fresh[n].verdict = judge(*fresh[n].group, fresh[n].seed);
            const std::lock_guard lock(mutex);
            ++done;
            notes_.note(what, static_cast<int64_t>(done), std::ssize(fresh));
        });
    }

    /// The verdict on a schedule whose groups are all judged.
    [[nodiscard]] Verdict compare(const Schedule& schedule) const {
        Witness model{"model", {}}, walker{"walker", {}}, measured{"measured", {}};
        Verdict verdict;
        for (const GroupSchedule& group : schedule.groups()) {
            const GroupVerdict& one = groups_.at(to_text(group));
            model.groups.push_back(one.model);
            measured.groups.push_back(one.measured);
            verdict.predicted.push_back(one.predicted);
            verdict.deployed.push_back(one.deployed);
            if (one.walker) walker.groups.push_back(*one.walker);
            join(verdict.difference, one.difference);
        }
        const bool walked = walker.groups.size() == schedule.groups().size();
        verdict.witnesses.push_back(std::move(model));
        if (walked) verdict.witnesses.push_back(std::move(walker));
        verdict.witnesses.push_back(std::move(measured));
        return verdict;
    }

    [[nodiscard]] HalideSummary halide() const {
        HalideSummary summary;
        for (const auto& [text, verdict] : groups_) summary.add(*verdict.halide, verdict.model);
        return summary;
    }

    /// The number of distinct groups, and of those whose code computed its result.
    [[nodiscard]] size_t groups() const { return groups_.size(); }
    [[nodiscard]] size_t executed() const {
        return static_cast<size_t>(std::count_if(
            groups_.begin(), groups_.end(), [](const auto& g) { return g.second.is_executed; }));
    }

private:
    GroupVerdict judge(const GroupSchedule& group, uint64_t seed) const {
        GroupVerdict verdict;
        verdict.model = two_level_counts(network_, group);
        const bool executed = verdict.model.macs() <= Macs(options_.execute_macs);
        const CheckedMeasurement measurement =
            executed ? measure_and_check(network_, group, seed)
                     : CheckedMeasurement{measure(network_, group), ""};
        verdict.measured = measurement.counts;
        verdict.is_executed = executed;
        join(verdict.difference, difference(verdict.model, "model", verdict.measured, "measured"));
        join(verdict.difference, measurement.wrong_result);
        verdict.predicted = done_counts(group, group_problems(network_, group));
        verdict.deployed = deployed_counts(network_, group, verdict.predicted);
        join(verdict.difference,
             difference(verdict.predicted, "predicted", verdict.deployed, "deployed"));
        if (kernel_calls(asked_boxes(group, group_problems(network_, group))) <=
            options_.walker_calls) {
            verdict.walker = walk(network_, group);
            join(verdict.difference, difference(verdict.model, "model", *verdict.walker, "walker"));
        }
        if (options_.halide) {
            verdict.halide = halide_verdict(network_, group, verdict.model, seed,
                                            executed ? CountMode::execute : CountMode::count_only);
            if (verdict.halide->is_inside()) {
                join(verdict.difference, verdict.halide->failure);
                join(verdict.difference, verdict.halide->difference);
            }
        }
        return verdict;
    }

    const Network& network_;
    const ValidateOptions& options_;
    int threads_;
    std::map<std::string, GroupVerdict> groups_;
    StepNotes notes_;
};

struct Totals {
    size_t schedules = 0, equal = 0, walked = 0;
    size_t groups = 0, executed_groups = 0;
    std::optional<HalideSummary> halide;  ///< with --halide
};

/// `given` is the schedule as it came, `schedule` the same with a kernel for every nest.
nlohmann::ordered_json json_of(const Schedule& given, const Schedule& schedule,
                               const Verdict& verdict) {
    nlohmann::ordered_json entry{{"schedule", to_text(given)}, {"with_kernels", to_text(schedule)}};
    for (const Witness& witness : verdict.witnesses)
        entry[witness.name] = counts_json(witness.groups);
    entry["deployed"] = done_json(verdict.deployed);
    entry["equal"] = verdict.difference.empty();
    if (!verdict.difference.empty()) entry["difference"] = verdict.difference;
    return entry;
}

/// Judges every schedule, prints those that differ (or the only one) and adds each to `entries`
/// when JSON is wanted.
Totals judge_all(const Network& network, const std::vector<Schedule>& given,
                 const std::vector<Schedule>& schedules, const ValidateOptions& options,
                 const CommonOptions& common, const Output& output,
                 nlohmann::ordered_json& entries) {
    Totals totals;
    totals.schedules = schedules.size();
    Judge judge(network, options, common.thread_count(), output);
    for (size_t n = 0; n < schedules.size(); ++n) {
        if (n % schedules_at_once == 0) {
            const auto some =
                std::span(schedules).subspan(n, std::min(schedules_at_once, schedules.size() - n));
            judge.judge_new(some, common.seed + n,
                            fmt::format("schedules {} to {} of {}: counting group", n + 1,
                                        n + some.size(), schedules.size()));
        }
        const Verdict verdict = judge.compare(schedules[n]);
        const bool is_equal = verdict.difference.empty();
        totals.equal += is_equal ? 1 : 0;
        totals.walked += verdict.witnesses.size() == 3 ? 1 : 0;
        if (output.wants_json()) entries.push_back(json_of(given[n], schedules[n], verdict));
        if (!is_equal || schedules.size() == 1) {
            output.print(fmt::format(
                "{}\n{}\n{}\n{}", to_text(schedules[n]), side_by_side(verdict.witnesses),
                done_table(verdict.predicted, verdict.deployed), done_by_layer(verdict.deployed)));
        }
        if (!is_equal) output.print("difference: " + verdict.difference);
    }
    totals.groups = judge.groups();
    totals.executed_groups = judge.executed();
    if (options.halide) totals.halide = judge.halide();
    return totals;
}

void print(const Network& network, const Totals& totals, const ValidateOptions& options,
           const Output& output) {
    output.print(
        fmt::format("{}: {} of {} schedules equal; model = {}generated code = code that runs on {}",
                    network.name, totals.equal, totals.schedules,
                    totals.walked == totals.schedules ? "walker = " : "", totals.schedules));
    if (totals.walked < totals.schedules) {
        output.print(
            fmt::format("the walker stepped through {} of them; the others call kernels more often "
                        "than --walker-calls {} in a group",
                        totals.walked, options.walker_calls));
    }
    if (totals.executed_groups < totals.groups) {
        output.print(
            fmt::format("{} of {} different groups executed and their results compared; the others "
                        "have more than --execute-macs {} MACs and were counted",
                        totals.executed_groups, totals.groups, options.execute_macs));
    } else {
        output.print(fmt::format("all {} different groups executed and their results compared",
                                 totals.groups));
    }
}

/// Kernels that a schedule leaves open are those that it would run with here.
std::vector<Schedule> with_kernels(const Network& network, std::vector<Schedule> schedules) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    for (Schedule& schedule : schedules) schedule = with_default_kernels(network, schedule, unit);
    return schedules;
}

Exit validate(const Network& network, const FrontSchedules& candidates, const ValidateOptions& options,
              const Output& output, const CommonOptions& common) {
    auto entries = nlohmann::ordered_json::array();
    const Totals totals =
        judge_all(network, candidates.schedules, with_kernels(network, candidates.schedules),
                  options, common, output, entries);
    print(network, totals, options, output);
    if (totals.halide) output.print(totals.halide->text());
    if (candidates.points.size() < candidates.front_size) {
        output.print(fmt::format("points {} of the front's {}", fmt::join(candidates.points, " "),
                                 candidates.front_size));
    }
    nlohmann::ordered_json answer{
        {"schema", "laminate.validate"}, {"version", 2},
        {"network", network.name},       {"structure_hash", structure_hash(network)},
        {"made_by", made_by()},          {"total", totals.schedules},
        {"equal", totals.equal},         {"walked", totals.walked},
        {"groups", totals.groups},       {"executed_groups", totals.executed_groups},
        {"points", candidates.points}};
    if (totals.halide) answer["halide"] = totals.halide->json();
    answer["schedules"] = std::move(entries);
    output.json(answer);
    return totals.equal == totals.schedules ? Exit::ok : Exit::comparison_failed;
}

/// Both halves at random.
Schedule random_schedule_and_kernels(const Network& network, uint64_t seed) {
    std::vector<GroupSchedule> groups =
        random_schedule(network, seed, {.whole_map_layers = 3}).groups();
    Rng rng(seed);
    for (GroupSchedule& group : groups) {
        const std::vector<LayerProblem> problems = group_problems(network, group);
        group = random_kernels(problems, std::move(group), rng);
    }
    return {network, std::move(groups)};
}

/// The schedules to validate; those of no front have no points.
FrontSchedules candidates_of(const Network& network, const ValidateOptions& options, uint64_t seed) {
    if (!options.front.empty()) return front_schedules(network, options.front, options.points);
    FrontSchedules candidates;
    if (!options.schedule.empty()) {
        candidates.schedules.push_back(read_schedule(network, options.schedule));
    } else if (options.random > 0) {
        // Schedule n of a seed is the same whatever --random says.
        for (int64_t n = 0; n < options.random; ++n) {
            candidates.schedules.push_back(
                random_schedule_and_kernels(network, seed * 1'000'003 + static_cast<uint64_t>(n)));
        }
    } else {
        throw UsageError("validate: expected --schedule F, --front DIR or --random N");
    }
    return candidates;
}

}  // namespace

void add_validate(Program& program) {
    CLI::App* verb = program.add_verb(
        "validate", "Model, walker, generated code and the code that runs must count the same",
        "  laminate validate zoo:l2net --random 300 --seed 7\n"
        "  laminate validate zoo:l2net --schedule '{conv1: zo yo ...}'\n"
        "  laminate validate zoo:l3net --front front/\n"
        "  laminate validate zoo:vgg16 --front front/ --points 10");
    auto options = std::make_shared<ValidateOptions>();
    options->network.declare(verb);
    auto* one = verb->add_option("--schedule", options->schedule, schedule_help);
    auto* front = verb->add_option("--front", options->front,
                                   "Every schedule of a front written by `explore`");
    auto* random =
        verb->add_option("--random", options->random, "This many random legal schedules, by --seed")
            ->check(positive());
    verb->add_option("--points", options->points,
                     "Validate only this many schedules of --front, evenly spread, including the "
                     "first and the last")
        ->needs(front)
        ->check(positive());
    one->excludes(front)->excludes(random);
    front->excludes(random);
    verb->add_option("--walker-calls", options->walker_calls,
                     "The walker does not step through groups that call kernels more often")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_option(
            "--execute-macs", options->execute_macs,
            "Groups with more MACs are counted by their loops alone, without arithmetic, so "
            "their results are not compared")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_flag("--halide", options->halide,
                   "A further witness: the schedules that Halide's own inference executes exactly, "
                   "as Funcs and directives; the others by reason");
    program.on(verb, [options, &program](const Output& output) {
        const Network network =
            to_run(options->network.open(),
                   options->front.empty() ? options->schedule : options->front);
        const CommonOptions& common = program.common();
        return validate(network, candidates_of(network, *options, common.seed), *options, output,
                        common);
    });
}

}  // namespace laminate::cli
