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
#include "answers/front_report.h"
#include "answers/network_argument.h"
#include "answers/version.h"
#include "base/error.h"
#include "base/parallel.h"
#include "cli/halide.h"
#include "cli/verbs.h"
#include "instrumentation/measure.h"
#include "instrumentation/walker.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"

namespace laminate::cli {

namespace {

struct ValidateOptions {
    NetworkArgument network;
    std::string schedule;
    std::string front;
    int64_t points = 0;
    int64_t random = 0;
    int64_t walker_macs = 500'000'000;
    int64_t execute_macs = 100'000'000;
    bool halide = false;
};

/// What is validated. `points`: of a front, the numbers of the schedules taken; empty otherwise.
struct Candidates {
    std::vector<Schedule> schedules;
    std::vector<size_t> points;
    size_t front_size = 0;
};

/// The schedules of a front.json, or of the front.json in a directory; `most` of them evenly, 0 for
/// all.
Candidates load_front(const Network& network, const std::string& path, int64_t most) {
    const std::string file = front_file(path);
    const nlohmann::ordered_json front = read_front(file);
    check_front(file, front, network);
    Candidates candidates;
    const auto& points = front["points"];
    candidates.front_size = points.size();
    for (const size_t n :
         evenly(points.size(), most == 0 ? points.size() : static_cast<size_t>(most))) {
        candidates.schedules.push_back(parse_schedule(network, schedule_text(front, n)));
        candidates.points.push_back(n);
    }
    return candidates;
}

/// Enough groups for threads, few enough that a difference shows soon.
constexpr size_t schedules_at_once = 32;

/// What the witnesses say of one group.
struct GroupVerdict {
    GroupCounts model;
    std::optional<GroupCounts> walker;  ///< none: too large to step through
    GroupCounts measured;
    bool is_executed = false;  ///< computed as well, and its result compared
    std::optional<HalideVerdict> halide;
    std::string difference;  ///< empty: equal
};

struct Verdict {
    std::vector<Witness> witnesses;
    std::string difference;  ///< empty: equal
};

void join(std::string& all, const std::string& text) {
    if (!text.empty()) all += (all.empty() ? "" : "; ") + text;
}

/// Judges groups, each one once: the schedules of a front share most of theirs.
class Judge {
public:
    Judge(const Network& network, const ValidateOptions& options, int threads, const Output& output)
        : network_(network), options_(options), threads_(threads), notes_(output) {}

    /// Judges what is new in schedules together: where each is one or two groups, threads would
    /// have nothing to share. Schedule n has the data of seed + n; a group has those of the first
    /// schedule it is in. `what` begins the lines of progress.
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
            notes_.note(
                [&] { return fmt::format("{}: {} of {} groups", what, done, fresh.size()); });
        });
    }

    /// Of a schedule whose groups are all judged.
    [[nodiscard]] Verdict compare(const Schedule& schedule) const {
        Witness model{"model", {}}, walker{"walker", {}}, measured{"measured", {}};
        Verdict verdict;
        for (const GroupSchedule& group : schedule.groups()) {
            const GroupVerdict& one = groups_.at(to_text(group));
            model.groups.push_back(one.model);
            measured.groups.push_back(one.measured);
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

    /// Distinct groups seen, and those of them whose code computed its result.
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
        if (verdict.model.macs() <= Macs(options_.walker_macs)) {
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
    OccasionalNotes notes_;
};

Exit validate(const Network& network, const Candidates& candidates, const ValidateOptions& options,
              const Output& output, const CommonOptions& common) {
    const std::vector<Schedule>& schedules = candidates.schedules;
    auto entries = nlohmann::ordered_json::array();
    size_t equal = 0;
    size_t walked = 0;
    Judge judge(network, options, common.thread_count(), output);
    for (size_t n = 0; n < schedules.size(); ++n) {
        if (n % schedules_at_once == 0) {
            const auto some =
                std::span(schedules).subspan(n, std::min(schedules_at_once, schedules.size() - n));
            judge.judge_new(some, common.seed + n,
                            fmt::format("schedules {} to {} of {}, {} equal", n + 1,
                                        n + some.size(), schedules.size(), equal));
        }
        const Verdict verdict = judge.compare(schedules[n]);
        const bool same = verdict.difference.empty();
        equal += same ? 1 : 0;
        walked += verdict.witnesses.size() == 3 ? 1 : 0;
        if (output.wants_json()) {
            nlohmann::ordered_json entry{{"schedule", to_text(schedules[n])}};
            for (const Witness& witness : verdict.witnesses)
                entry[witness.name] = counts_json(witness.groups);
            entry["equal"] = same;
            if (!same) entry["difference"] = verdict.difference;
            entries.push_back(std::move(entry));
        }
        if (!same || schedules.size() == 1) {
            output.print(
                fmt::format("{}\n{}", to_text(schedules[n]), side_by_side(verdict.witnesses)));
        }
        if (!same) output.print("difference: " + verdict.difference);
    }
    output.print(fmt::format("{}: {} of {} schedules equal; model = {}generated code on {}",
                             network.name, equal, schedules.size(),
                             walked == schedules.size() ? "walker = " : "", schedules.size()));
    if (walked < schedules.size()) {
        output.print(
            fmt::format("the walker stepped through {} of them; the others have more than "
                        "--walker-macs {} MACs in a group",
                        walked, options.walker_macs));
    }
    if (judge.executed() < judge.groups()) {
        output.print(
            fmt::format("{} of {} different groups executed and their results compared; the others "
                        "have more than "
                        "--execute-macs {} MACs and were counted",
                        judge.executed(), judge.groups(), options.execute_macs));
    } else {
        output.print(fmt::format("all {} different groups executed and their results compared",
                                 judge.groups()));
    }
    if (options.halide) output.print(judge.halide().text());
    if (candidates.points.size() < candidates.front_size) {
        output.print(fmt::format("points {} of the front's {}", fmt::join(candidates.points, " "),
                                 candidates.front_size));
    }
    nlohmann::ordered_json answer{{"schema", "laminate.validate"},
                                  {"version", 1},
                                  {"network", network.name},
                                  {"structure_hash", structure_hash(network)},
                                  {"made_by", made_by()},
                                  {"total", schedules.size()},
                                  {"equal", equal},
                                  {"walked", walked},
                                  {"groups", judge.groups()},
                                  {"executed_groups", judge.executed()},
                                  {"points", candidates.points}};
    if (options.halide) answer["halide"] = judge.halide().json();
    answer["schedules"] = std::move(entries);
    output.json(answer);
    return equal == schedules.size() ? Exit::ok : Exit::comparison_failed;
}

}  // namespace

void add_validate(Program& program) {
    CLI::App* verb =
        program.add_verb("validate", "Model, walker and generated code must count the same",
                         "  laminate validate zoo:l2net --random 300 --seed 7\n"
                         "  laminate validate zoo:l2net --schedule '{conv1: zo yo ...}'\n"
                         "  laminate validate zoo:l3net --front front/\n"
                         "  laminate validate zoo:vgg16 --front front/ --points 10");
    auto options = std::make_shared<ValidateOptions>();
    options->network.declare(verb);
    auto* one = verb->add_option("--schedule", options->schedule, schedule_help);
    auto* front = verb->add_option("--front", options->front,
                                   "Every schedule of a front that `explore` wrote");
    auto* random =
        verb->add_option("--random", options->random, "This many random legal schedules of --seed")
            ->check(positive());
    verb->add_option("--points", options->points,
                     "Of --front, this many schedules evenly, the first and the last among them")
        ->needs(front)
        ->check(positive());
    one->excludes(front)->excludes(random);
    front->excludes(random);
    verb->add_option("--walker-macs", options->walker_macs,
                     "Groups with more MACs are not stepped through by the walker")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_option("--execute-macs", options->execute_macs,
                     "Groups with more MACs are counted with their loops but without their "
                     "arithmetic, so results are "
                     "not compared")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_flag("--halide", options->halide,
                   "A further witness: the schedules that Halide's own inference executes exactly, "
                   "as Funcs and directives; the others by reason");
    program.on(verb, [options, &program](const Output& output) {
        const Network network = options->network.open();
        Candidates candidates;
        if (!options->schedule.empty()) {
            candidates.schedules.push_back(read_schedule(network, options->schedule));
        } else if (!options->front.empty()) {
            candidates = load_front(network, options->front, options->points);
        } else if (options->random > 0) {
            // Schedule n of a seed is the same whatever --random says.
            for (int64_t n = 0; n < options->random; ++n) {
                candidates.schedules.push_back(random_schedule(
                    network, program.common().seed * 1'000'003 + static_cast<uint64_t>(n)));
            }
        } else {
            throw UsageError("validate: expected --schedule F, --front DIR or --random N");
        }
        return validate(network, candidates, *options, output, program.common());
    });
}

}  // namespace laminate::cli
