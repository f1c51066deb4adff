// Where a network's time goes: groups_bench NET... [--rounds N] [--threads N] [--memory BYTES]
// [--schedule FILE] [--speed FILE] [--peak GFLOPS] [--cache KIB] [--json FILE]
//
// Every step of the fastest schedule, or of the one of a file, in its turn, in an arena as a session
// lays it out, by the thread's own clock; each keeps its least time over the rounds. With --threads
// the schedule is the fastest for so many, one thread runs it part by part, and `share` is the
// longest share when threads take the parts in order; then a session of so many threads runs the
// network, and `wall` is a step's least time in it, by the clock on the wall, `at once` that of the
// whole: what is beyond the shares is waiting, waking and what moves between cores. Only an idle
// machine tells. `predicted` is what the model of time expects of the longest share, 0 for groups
// that the schedule does not name.
// --memory: the fastest within so much. --cache: chosen as if a core's second-level cache had so
// many KiB. `lost`: milliseconds beyond what the operations of the definition would take at nine
// tenths of the peak (2 x 512 bits of multiply-add at 2.4 GHz unless given). `of peak`: of the
// multiplications that the kernels execute, padding of tiles included; `GB/s`: of external tensors
// and weights, as if each came once.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/aligned.h"
#include "base/caches.h"
#include "base/cpu_time.h"
#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "generators/compile/compile.h"
#include "generators/kernels/group_kernels.h"
#include "nets/network/dense_images.h"
#include "nets/open.h"
#include "nets/operators/reference_operators.h"
#include "runtime/session.h"
#include "runtime/tensor_placement.h"
#include "scheduler/counts/group_figures.h"
#include "scheduler/explore/timed/timed_front.h"

namespace laminate {
namespace {

struct Options {
    std::vector<std::string> networks;
    int64_t rounds = 5;
    int threads = 1;
    double peak_gflops = 153.6;
    Bytes cache = second_level_cache();
    std::optional<Bytes> memory;
    std::string schedule, speed, json;
};

CpuSpeed cpu_speed(const Options& options) {
    return options.speed.empty()
               ? usual_cpu_speed(vector_unit(Halide::get_host_target()))
               : open_cpu_speed(options.speed);
}

Schedule schedule_of(const Network& network, const Options& options) {
    if (!options.schedule.empty()) return load_schedule(network, options.schedule);
    TimedOptions timed;
    timed.unit = vector_unit(Halide::get_host_target());
    timed.speed = cpu_speed(options);
    timed.threads = options.threads;
    timed.second_level_cache = options.cache;
    timed.memory = options.memory;
    const auto found = fastest_schedule(network, timed);
    if (const auto* none = std::get_if<Infeasible>(&found))
        throw InputError(fmt::format("--memory: found {}, expected {} or more",
                                     options.memory->value(), to_bytes(none->demand).value()));
    return std::get<Schedule>(found);
}

struct Measured {
    double milliseconds = HUGE_VAL;
    double longest_share = HUGE_VAL;
    double wall = HUGE_VAL;
};

/// A network whose steps run one at a time.
class Steps {
public:
    Steps(const Network& network, const Schedule& schedule, int threads)
        : threads_(threads),
          compiled_(network, schedule, unchecked()),
          manifest_(compiled_.manifest()),
          placement_(place_tensors(manifest_)),
          arena_(static_cast<size_t>(placement_.arena_bytes / bytes_per_element)),
          scratch_(most_scratch_elements(manifest_)) {
        for (const TensorId id : manifest_.inputs)
            inputs_.emplace_back(static_cast<size_t>(element_count(tensor(id).dims)));
        for (const TensorId id : manifest_.outputs)
            outputs_.emplace_back(static_cast<size_t>(element_count(tensor(id).dims)));
        Rng rng(1);
        for (const TensorId id : manifest_.inputs) {
            for (int64_t n = 0; n < element_count(tensor(id).dims); ++n)
                array(id)[n] = static_cast<float>(rng.below(2001) - 1000) / 1000.0F;
        }
        for (const Step& step : manifest_.steps) {
            const auto* layer = std::get_if<LayerStep>(&step);
            const auto& descriptor = compiled_.descriptor();
            layers_.push_back(layer
                                  ? restored_layer(*layer, descriptor.constants,
                                                   static_cast<int64_t>(descriptor.constant_count))
                                  : Layer{});
        }
    }

    [[nodiscard]] const Manifest& manifest() const { return manifest_; }

    void run(size_t number, Measured& least) {
        if (const auto* group = std::get_if<GroupStep>(&manifest_.steps[number])) {
            run(*group, least);
            return;
        }
        const double start = thread_milliseconds();
        run_layer(layers_[number]);
        least.milliseconds = std::min(least.milliseconds, thread_milliseconds() - start);
        least.longest_share = least.milliseconds;
    }

    /// Milliseconds of a session's whole run by all threads, in which each step's `wall` is measured too.
    [[nodiscard]] double run_at_once(std::vector<Measured>& least) {
        if (!session_)
            session_ = Session::open(&compiled_.descriptor(), {.threads = threads_, .times_steps = true});
        std::vector<const float*> inputs;
        std::vector<float*> outputs;
        for (const AlignedFloats& array : inputs_) inputs.push_back(array.data());
        for (AlignedFloats& array : outputs_) outputs.push_back(array.data());
        session_->run(inputs, outputs);
        double sum = 0;
        for (const StepTime& time : session_->step_times()) {
            const double wall = time.work_ms.front() + time.waiting_ms.front();
            least[time.step].wall = std::min(least[time.step].wall, wall);
            sum += wall;
        }
        return sum;
    }

private:
    static size_t most_scratch_elements(const Manifest& manifest) {
        int64_t bytes = 0;
        for (const Step& step : manifest.steps) {
            if (const auto* group = std::get_if<GroupStep>(&step))
                bytes = std::max(bytes, group->scratch_bytes);
        }
        return static_cast<size_t>(bytes / bytes_per_element);
    }
    static CompileOptions unchecked() {
        CompileOptions options;
        options.checker = [](const Network&, const GroupSchedule&, const GroupCode&,
                             laminate_group_function,
                             const CheckOptions&) { return std::string(); };
        return options;
    }
    [[nodiscard]] const Tensor& tensor(TensorId id) const {
        return manifest_.tensors[static_cast<size_t>(id)];
    }
    [[nodiscard]] float* array(TensorId id) {
        const Place& place = placement_.places[static_cast<size_t>(id)];
        if (place.in == Place::In::arena) return arena_.data() + place.at / bytes_per_element;
        if (place.in == Place::In::constants) {
            return const_cast<float*>(compiled_.descriptor().constants) +
                   place.at / bytes_per_element;
        }
        auto& arrays = place.in == Place::In::input ? inputs_ : outputs_;
        return arrays[static_cast<size_t>(place.at)].data() +
               place.offset_bytes / bytes_per_element;
    }

    void run_layer(const Layer& layer) {
        const bool is_there = placement_.places[layer.output].in == Place::In::constants;
        if (is_there) return;
        std::vector<std::vector<int64_t>> dims;
        std::vector<const float*> inputs;
        for (const TensorId id : layer.inputs) {
            dims.push_back(tensor(id).dims);
            inputs.push_back(array(id));
        }
        run_reference_layer(layer, dims, inputs, tensor(layer.output).dims, array(layer.output), 1);
    }
    /// Of a group, with pointers bound.
    struct Call {
        laminate_group_function function = nullptr;
        std::vector<const float*> in;
        std::vector<float*> out;
        const float* constants = nullptr;
        int operator()(float* scratch, int32_t begin, int32_t end) const {
            return function(in.data(), out.data(), constants, scratch, begin, end);
        }
    };
    [[nodiscard]] Call call_of(const GroupStep& group) {
        const auto& descriptor = compiled_.descriptor();
        Call call{descriptor.groups[group.group],
                  {},
                  {},
                  descriptor.constants + group.constants_offset_elements};
        for (const TensorId id : group.inputs) call.in.push_back(array(id));
        for (const TensorId id : group.outputs) call.out.push_back(array(id));
        return call;
    }
    void run(const GroupStep& group, Measured& least) {
        const Call bound = call_of(group);
        const auto call = [&](int32_t begin, int32_t end) {
            const double start = thread_milliseconds();
            if (bound(scratch_.data(), begin, end) != 0) throw std::logic_error(group.name + " failed");
            return thread_milliseconds() - start;
        };
        std::vector<double> shares(static_cast<size_t>(threads_), 0.0);
        // Each image of the batch is computed from the first one's arrays.
        const int64_t images = tensor(group.inputs.front()).dims.front();
        for (int64_t image = 0; image < images; ++image) {
            for (int32_t thread = 0; thread < threads_; ++thread) {
                const int32_t end = group.strips * (thread + 1) / threads_;
                for (int32_t begin = group.strips * thread / threads_; begin < end;) {
                    const int32_t next =
                        threads_ == 1 ? end
                                      : std::min(end, (begin / group.strips_together + 1) *
                                                          group.strips_together);
                    *std::min_element(shares.begin(), shares.end()) += call(begin, next);
                    begin = next;
                }
            }
        }
        double sum = 0;
        for (const double share : shares) sum += share;
        least.milliseconds = std::min(least.milliseconds, sum);
        least.longest_share =
            std::min(least.longest_share, *std::max_element(shares.begin(), shares.end()));
    }

    int threads_;
    JitNetwork compiled_;
    const Manifest& manifest_;
    TensorPlaces placement_;
    AlignedFloats arena_;
    std::vector<AlignedFloats> inputs_, outputs_;
    AlignedFloats scratch_;
    std::vector<Layer> layers_;
    std::optional<Session> session_;
};

constexpr std::string_view heading =
    "       ms    share predicted     wall  GFLOP/s  lost ms  of peak   GB/s  layers (kernels)";

nlohmann::ordered_json bench(const std::string& spec, const Options& options) {
    const Network network = with_dense_images_together(open_network(spec));
    const Schedule schedule = schedule_of(network, options);
    std::map<std::string, std::pair<double, GroupFigures>> expected;  ///< by a group's last layer
    const std::vector<double> predicted =
        predicted_group_milliseconds(network, schedule, cpu_speed(options), options.threads);
    for (size_t g = 0; g < predicted.size(); ++g) {
        const GroupSchedule& group = schedule.groups()[g];
        expected[group.nests.back().layer] = {predicted[g], group_figures(network, group)};
    }
    Steps steps(network, schedule, options.threads);
    const size_t count = steps.manifest().steps.size();
    std::vector<Measured> least(count);
    for (int64_t round = 0; round <= options.rounds; ++round) {
        for (size_t s = 0; s < count; ++s) steps.run(s, least[s]);
        if (round == 0) least.assign(count, {});  // pages are touched
    }
    double at_once = HUGE_VAL;
    for (int64_t round = 0; options.threads > 1 && round < options.rounds; ++round)
        at_once = std::min(at_once, steps.run_at_once(least));
    fmt::print("{}, {} thread{}\n", spec, options.threads, options.threads == 1 ? "" : "s");
    fmt::print("{}\n", heading);
    auto entries = nlohmann::ordered_json::array();
    double sum = 0, shares = 0, walls = 0, all_operations = 0, all_predicted = 0;
    for (size_t s = 0; s < count; ++s) {
        const Step& step = steps.manifest().steps[s];
        const auto* group = std::get_if<GroupStep>(&step);
        double share_expected = 0, operations = 0, multiplications = 0, bytes = 0;
        std::string layers = group ? "" : name_of(step) + " (reference operator)";
        if (group) {
            for (const std::string& name : group->layers)
                layers += (layers.empty() ? "" : " ") + name;
            const auto found = expected.find(group->layers.back());
            if (found != expected.end()) {
                const auto& [share, figures] = found->second;
                share_expected = share;
                operations = 2e-6 * static_cast<double>(figures.macs.value());
                multiplications = static_cast<double>(figures.multiplications.value());
                bytes = static_cast<double>(figures.bytes.value());
                layers += " (" + figures.kernels + ")";
            }
        }
        const double of_peak = 2e-4 * multiplications / options.peak_gflops;
        const double lost = least[s].milliseconds - operations / (0.9 * options.peak_gflops);
        if (options.threads == 1) least[s].wall = least[s].milliseconds;
        if (!std::isfinite(least[s].wall)) least[s].wall = 0;  // a session has nothing to do
        fmt::print("{:>9.3f}{:>9.3f}{:>10.3f}{:>9.3f}{:>9.1f}{:>9.3f}{:>8.0f}%{:>7.1f}  {}\n",
                   least[s].milliseconds, least[s].longest_share, share_expected, least[s].wall,
                   operations / least[s].milliseconds, lost, of_peak / least[s].milliseconds,
                   1e-6 * bytes / least[s].milliseconds, layers);
        entries.push_back({{"layers", layers},
                           {"ms", least[s].milliseconds},
                           {"longest_share_ms", least[s].longest_share},
                           {"predicted_share_ms", share_expected},
                           {"wall_ms", least[s].wall},
                           {"multiplications", multiplications},
                           {"bytes", bytes},
                           {"operations", operations * 1e6}});
        sum += least[s].milliseconds;
        shares += least[s].longest_share;
        walls += least[s].wall;
        all_operations += operations;
        all_predicted += share_expected;
    }
    fmt::print("{:>9.3f}{:>9.3f}{:>10.3f}{:>9.3f}{:>9.1f}{:>9.3f}  all\n", sum, shares,
               all_predicted, walls, all_operations / sum,
               sum - all_operations / (0.9 * options.peak_gflops));
    if (options.threads > 1) fmt::print("{:>37.3f}  at once\n", at_once);
    fmt::print("\n");
    std::fflush(stdout);
    nlohmann::ordered_json answer{{"network", spec},
                                  {"threads", options.threads},
                                  {"ms", sum},
                                  {"longest_share_ms", shares},
                                  {"wall_ms", walls}};
    if (options.threads > 1) answer["at_once_ms"] = at_once;
    answer["steps"] = entries;
    return answer;
}

Options options_of(int argc, char** argv) {
    Options options;
    for (int n = 1; n < argc; ++n) {
        const std::string name = argv[n];
        if (!name.starts_with("--")) {
            options.networks.push_back(name);
            continue;
        }
        if (n + 1 == argc) throw InputError(name + ": expected a value");
        const std::string value = argv[++n];
        const auto number = [&](double low, double high) {
            char* end = nullptr;
            const double found = std::strtod(value.c_str(), &end);
            if (value.empty() || *end != '\0' || !(found >= low && found <= high))
                throw InputError(
                    fmt::format("{}: found {}, expected {} to {}", name, value, low, high));
            return found;
        };
        if (name == "--rounds") {
            options.rounds = static_cast<int64_t>(number(1, 100000));
        } else if (name == "--threads") {
            options.threads = static_cast<int>(number(1, 1024));
        } else if (name == "--peak") {
            options.peak_gflops = number(1, 1e6);
        } else if (name == "--cache") {
            options.cache = Bytes(static_cast<int64_t>(number(1, 1 << 20)) << 10);
        } else if (name == "--memory") {
            options.memory = Bytes(static_cast<int64_t>(number(1, 1e15)));
        } else if (name == "--schedule") {
            options.schedule = value;
        } else if (name == "--speed") {
            options.speed = value;
        } else if (name == "--json") {
            options.json = value;
        } else {
            throw InputError(fmt::format(
                "found {}, expected --rounds, --threads, --memory, --schedule, --speed, --peak, "
                "--cache or --json",
                name));
        }
    }
    if (options.networks.empty())
        throw InputError("found no network, expected zoo:NAME or FILE.onnx");
    return options;
}

}  // namespace
}  // namespace laminate

int main(int argc, char** argv) {
    try {
        const laminate::Options options = laminate::options_of(argc, argv);
        auto networks = nlohmann::ordered_json::array();
        for (const std::string& spec : options.networks)
            networks.push_back(laminate::bench(spec, options));
        if (!options.json.empty()) {
            laminate::write_file_atomically(
                options.json,
                nlohmann::ordered_json{
                    {"schema", "laminate.groups_bench"}, {"version", 1}, {"networks", networks}}
                        .dump(2) +
                    "\n");
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "groups_bench: {}\n", error.what());
        return 1;
    }
}
