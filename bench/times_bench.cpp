// Predicted against measured time:
//   times_bench [--speed FILE] [--threads N] [--points N] [--rounds N] [--json FILE] NETWORK...
//
// For each network, points drawn evenly from its front of accesses, memory and time are compiled
// and run in a session, in turn, twice each, of which the second is timed; a point's time is its
// median over the rounds. Its rate is the multiplications done per millisecond as part of what the
// network's fastest point does. With --rounds 0 nothing is run, and rates are those of predicted
// times.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "base/aligned.h"
#include "base/caches.h"
#include "base/cpu_time.h"
#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "generators/compile/compile.h"
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "nets/network/dense_images.h"
#include "nets/open.h"
#include "runtime/session.h"
#include "scheduler/counts/done.h"
#include "scheduler/explore/timed/timed_front.h"

namespace laminate {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string speed, json;
    int threads = 2;
    int64_t points = 10, rounds = 9;
    std::vector<std::string> networks;
};

TimedOptions timed_options(const Options& options) {
    TimedOptions timed;
    timed.unit = vector_unit(Halide::get_host_target());
    timed.speed =
        options.speed.empty() ? usual_cpu_speed(timed.unit) : open_cpu_speed(options.speed);
    timed.threads = options.threads;
    timed.second_level_cache = second_level_cache();
    return timed;
}

std::vector<float> random_floats(int64_t count, Rng& rng) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(rng.below(2001) - 1000) / 1000.0F;
    return values;
}

/// One point of a front, ready to run.
class Runner {
public:
    Runner(const Network& network, const Schedule& schedule, int threads)
        : compiled_(std::make_unique<JitNetwork>(network, schedule)),
          session_(Session::open(&compiled_->descriptor(), {threads})),
          is_alone_(threads == 1) {
        Rng rng(1);
        for (const Tensor& tensor : session_.inputs())
            inputs_.push_back(random_floats(element_count(tensor.dims), rng));
        for (const Tensor& tensor : session_.outputs())
            outputs_.push_back(random_floats(element_count(tensor.dims), rng));
    }
    double milliseconds() {
        std::vector<const float*> in;
        std::vector<float*> out;
        for (const auto& array : inputs_) in.push_back(array.data());
        for (auto& array : outputs_) out.push_back(array.data());
        const auto start = std::chrono::steady_clock::now();
        const double own_start = thread_milliseconds();
        session_.run(in, out);
        const double own = thread_milliseconds() - own_start;
        const std::chrono::duration<double, std::milli> all =
            std::chrono::steady_clock::now() - start;
        return is_alone_ ? own : all.count();
    }

private:
    std::unique_ptr<JitNetwork> compiled_;
    Session session_;
    bool is_alone_;  ///< then the thread's own clock counts, which other programs do not change
    std::vector<std::vector<float>> inputs_, outputs_;
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Tally {
    int64_t points = 0, within = 0, at_speed = 0;
};

double multiplications_done(const Network& network, const Schedule& schedule) {
    double sum = 0;
    for (const GroupSchedule& group : schedule.groups())
        sum += static_cast<double>(done_counts(group, group_problems(network, group)).done().value());
    return sum;
}

void points_of(const std::string& spec, const Options& options, Tally& tally, Json& entries) {
    const Network network = with_dense_images_together(open_network(spec));
    const Front front = timed_front(network, {}, timed_options(options));
    std::vector<const FrontPoint*> points;
    const auto count = std::min<int64_t>(options.points, std::ssize(front.points));
    for (int64_t n = 0; n < count; ++n) {
        const int64_t at = count == 1 ? 0 : n * (std::ssize(front.points) - 1) / (count - 1);
        points.push_back(&front.points[static_cast<size_t>(at)]);
    }
    std::vector<std::unique_ptr<Runner>> runners;
    std::vector<double> multiplications;
    std::vector<std::string> schedules;
    for (const FrontPoint* point : points) {
        const Schedule schedule = schedule_of(network, front, *point);
        multiplications.push_back(multiplications_done(network, schedule));
        schedules.push_back(to_text(schedule));
        if (options.rounds > 0)
            runners.push_back(std::make_unique<Runner>(network, schedule, options.threads));
    }
    std::vector<std::vector<double>> times(points.size());
    for (int64_t round = -1; round < options.rounds; ++round) {
        for (size_t n = 0; n < runners.size(); ++n) {
            // The point before has taken the caches; a picture after another finds its own in them.
            (void)runners[n]->milliseconds();
            const double took = runners[n]->milliseconds();
            if (round >= 0) times[n].push_back(took);
        }
    }
    for (size_t n = 0; n < points.size(); ++n) {
        if (options.rounds == 0) times[n].push_back(*points[n]->milliseconds);
    }
    const auto fastest = std::ranges::min_element(times, {}, median) - times.begin();
    const auto rate = [&](size_t n) { return multiplications[n] / median(times[n]); };
    for (size_t n = 0; n < points.size(); ++n) {
        const double measured = median(times[n]), predicted = *points[n]->milliseconds;
        const double ratio = predicted / measured;
        const double relative_rate = rate(n) / rate(static_cast<size_t>(fastest));
        constexpr double allowed = 0.2, least_rate = 0.6;
        ++tally.points;
        tally.within += std::abs(ratio - 1) <= allowed ? 1 : 0;
        tally.at_speed += relative_rate >= least_rate ? 1 : 0;
        fmt::print("{:36}{:>12}{:>12}{:>10.3f}{:>10.3f}{:>8.2f}{:>8.2f}\n", spec,
                   points[n]->counts.accesses.value(),
                   to_bytes(points[n]->counts.live_total).value(), predicted, measured, ratio,
                   relative_rate);
        std::fflush(stdout);
        entries.push_back({{"network", spec},
                           {"schedule", schedules[n]},
                           {"accesses_elements", points[n]->counts.accesses.value()},
                           {"live_bytes", to_bytes(points[n]->counts.live_total).value()},
                           {"scratch_bytes", points[n]->scratch->value()},
                           {"multiplications", multiplications[n]},
                           {"predicted_ms", predicted},
                           {"measured_ms", measured},
                           {"least_ms", *std::min_element(times[n].begin(), times[n].end())}});
    }
}

int bench(const Options& options) {
    fmt::print("{:36}{:>12}{:>12}{:>10}{:>10}{:>8}{:>8}\n", "network", "accesses", "live bytes",
               "predicted", "measured", "ratio", "rate");
    Tally tally;
    auto entries = Json::array();
    for (const std::string& spec : options.networks) points_of(spec, options, tally, entries);
    fmt::print("within 20 %: {} of {}; at 60 % of the fastest point's rate: {}\n", tally.within,
               tally.points, tally.at_speed);
    if (!options.json.empty()) {
        const Json answer{{"schema", "laminate.times_bench"},
                          {"version", 1},
                          {"threads", options.threads},
                          {"points", entries}};
        write_file_atomically(options.json, answer.dump(2) + "\n");
    }
    return 0;
}

}  // namespace
}  // namespace laminate

int main(int argc, char** argv) {
    laminate::Options options;
    for (int n = 1; n < argc; ++n) {
        const std::string argument = argv[n];
        const auto value = [&] { return std::string(n + 1 < argc ? argv[++n] : ""); };
        if (argument == "--speed")
            options.speed = value();
        else if (argument == "--json")
            options.json = value();
        else if (argument == "--threads")
            options.threads = std::atoi(value().c_str());
        else if (argument == "--points")
            options.points = std::atoll(value().c_str());
        else if (argument == "--rounds")
            options.rounds = std::atoll(value().c_str());
        else
            options.networks.push_back(argument);
    }
    try {
        return laminate::bench(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "times_bench: {}\n", error.what());
        return 1;
    }
}
