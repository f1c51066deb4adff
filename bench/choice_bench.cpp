// The choice of `compile`, `run` and `bench` against alternatives:
//   choice_bench [--first N] [--chains N] [--alternatives N] [--rounds N] [--finals N] [--seed N]
//   [--json FILE]
//
// For each of twenty chains (or `chains` of them from `first` on) the groups that
// fastest_schedule() chooses without a budget for this machine, and random ones: any division
// into groups, any of a few rows per step, whole rows or strips of columns; where the planner gives
// the chain's last group the Add behind it, the Add with the last layer or by itself. All are
// compiled, run in turn on one thread, and timed by the thread's own clock, so that other work on
// the machine counts little; each keeps its least time over the rounds. Then the planner's and the
// four best of the others run again, `finals` times in turn: those times are compared. Results are
// compared before that.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
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
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "nets/open.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/timed/timed_front.h"
#include "scheduler/schedule/kernel_legality.h"

namespace laminate {
namespace {

struct ChainName {
    const char* network;
    size_t number;  ///< among the network's chains of two layers or more
};

/// Super-resolution, stereo and demosaicing networks, classifiers' first and last blocks, wide maps
/// and narrow ones.
constexpr ChainName chains[] = {
    {"zoo:fsrcnn?height=135&width=240", 0},
    {"zoo:fsrcnn?height=270&width=480", 0},
    {"zoo:fsrcnn-x2?height=135&width=240", 0},
    {"zoo:mc-cnn?height=135&width=240", 0},
    {"zoo:mc-cnn-64?height=120&width=200", 0},
    {"zoo:dmcnn-vd?height=60&width=90", 0},
    {"zoo:l3net-wide", 0},
    {"zoo:vgg16", 1},
    {"zoo:vgg16", 2},
    {"zoo:resnet18", 0},
    {"zoo:resnet18", 3},
    {"zoo:resnet50", 0},
    {"zoo:resnet50", 9},
    {"zoo:mobilenetv2", 0},
    {"zoo:mobilenetv2", 1},
    {"zoo:mobilenetv2", 6},
    {"zoo:mobilenetv1?height=96&width=96", 0},
    {"zoo:inceptionv3", 0},
    {"zoo:inceptionv3", 1},
    {"zoo:inceptionv3", 20},
};

using Plan = std::vector<GroupSchedule>;

struct Compiled {
    GroupCode code;
    std::unique_ptr<JitGroup> jit;
    std::unique_ptr<AlignedFloats> constants;
};

class Chain {
public:
    explicit Chain(const ChainName& name) : network_(open_network(name.network)) {
        std::vector<std::vector<LayerId>> long_ones;
        for (std::vector<LayerId>& chain : schedulable_chains(network_)) {
            if (chain.size() > 1) long_ones.push_back(std::move(chain));
        }
        if (name.number >= long_ones.size())
            throw InputError(fmt::format("{}: has {} chains of two layers or more", name.network,
                                         long_ones.size()));
        layers_ = long_ones[name.number];
        options_.unit = vector_unit(Halide::get_host_target());
        options_.speed = usual_cpu_speed(options_.unit);
        options_.second_level_cache = second_level_cache();
        const auto answer = fastest_schedule(network_, options_);
        for (const GroupSchedule& group : std::get<Schedule>(answer).groups()) {
            if (std::find(layers_.begin(), layers_.end(),
                          network_.find_layer(group.nests.front().layer)) == layers_.end())
                continue;
            chosen_.push_back(group);
            const LayerId last = network_.find_layer(group.nests.back().layer);
            if (std::find(layers_.begin(), layers_.end(), last) == layers_.end()) add_ = last;
        }
        int64_t most = 0;
        for (const LayerId id : layers_)
            most = std::max(most, element_count(network_.tensor(network_.layer(id).output).dims));
        for (int place = 0; place < 2; ++place) passed_.emplace_back(static_cast<size_t>(most));
    }

    [[nodiscard]] const std::vector<LayerId>& layers() const { return layers_; }
    [[nodiscard]] std::string text() const {
        return network_.layer(layers_.front()).name + " .. " + network_.layer(layers_.back()).name;
    }

    [[nodiscard]] const Plan& chosen() const { return chosen_; }

    /// Milliseconds that the model expects, with the kernels that prepare() gives the groups.
    [[nodiscard]] double predicted(const Plan& plan) const {
        double sum = 0;
        for (const GroupSchedule& group : plan) {
            const std::vector<LayerProblem> problems = group_problems(network_, group);
            sum += predicted_milliseconds(with_default_kernels(problems, group, options_.unit),
                                          problems, options_.speed, 1);
        }
        return sum;
    }

    [[nodiscard]] Plan random(Rng& rng) const {
        Plan plan;
        const int64_t longest = rng.between(1, std::min<int64_t>(8, std::ssize(layers_)));
        for (size_t begin = 0; begin < layers_.size();) {
            const auto left = static_cast<int64_t>(layers_.size() - begin);
            const auto length =
                static_cast<std::ptrdiff_t>(rng.between(1, std::min(left, longest)));
            const auto first = layers_.begin() + static_cast<std::ptrdiff_t>(begin);
            std::vector<LayerId> segment(first, first + length);
            begin += static_cast<size_t>(length);
            // Only layers by themselves add while they store.
            const bool with_add =
                begin == layers_.size() && length == 1 && add_ && rng.below(2) == 0;
            if (with_add) {
                segment.push_back(*add_);
                if (!ends_in_add(layer_problems(network_, segment))) segment.pop_back();
            }
            const LayerProblem sink = layer_problem(network_, segment.back());
            LineBufferSizes sizes;
            constexpr int64_t rows[] = {1, 2, 4, 8, 1 << 20};
            sizes.rows = std::min(rows[rng.below(5)], sink[Dim::y]);
            const int64_t columns = sink[Dim::x] >> rng.below(3);
            if (columns >= 32 && columns < sink[Dim::x])
                sizes.strip_columns = (columns + 15) / 16 * 16;
            plan.push_back(line_buffer_group(network_, segment, sizes));
            if (begin == layers_.size() && add_ && segment.back() != *add_)
                plan.push_back(line_buffer_group(network_, {*add_}));
        }
        return plan;
    }

    static std::string text_of(const Plan& plan) {
        std::string text;
        for (const GroupSchedule& group : plan) text += to_text(group) + "\n";
        return text;
    }

    /// Compiles what is new; false when a group's scratch is beyond reason.
    bool prepare(const Plan& plan) {
        for (const GroupSchedule& group : plan) {
            Compiled& compiled = compiled_[to_text(group)];
            if (compiled.jit) continue;
            compiled.code = default_code(network_, group, vector_unit(Halide::get_host_target()));
            constexpr int64_t most_bytes = 64 << 20;
            if (compiled.code.scratch_bytes > most_bytes) return false;
            compiled.jit = std::make_unique<JitGroup>(compiled.code.body, false);
            compiled.constants = std::make_unique<AlignedFloats>(compiled.code.constants);
            if (!scratch_ || scratch_->size() * sizeof(float) <
                                 static_cast<size_t>(compiled.code.scratch_bytes)) {
                scratch_ = std::make_unique<AlignedFloats>(
                    static_cast<size_t>(compiled.code.scratch_bytes) / sizeof(float));
            }
        }
        return true;
    }

    double run(const Plan& plan) {
        struct Step {
            const Compiled* compiled;
            std::vector<const float*> inputs;
            float* output;
        };
        std::vector<Step> steps;
        // As in a session's arena, what one group leaves for the next lies in one of two places in
        // turn.
        std::map<TensorId, float*> passed;
        for (const GroupSchedule& group : plan) {
            const Compiled& compiled = compiled_.at(to_text(group));
            std::vector<const float*> inputs;
            for (const std::string& name : compiled.code.inputs) {
                const TensorId id = tensor(name);
                const auto found = passed.find(id);
                inputs.push_back(found == passed.end() ? array(id) : found->second);
            }
            const TensorId made =
                network_.layer(network_.find_layer(group.nests.back().layer)).output;
            float* output =
                made == result_tensor() ? array(made) : passed_[steps.size() % 2].data();
            passed[made] = output;
            steps.push_back({&compiled, std::move(inputs), output});
        }
        const double start = thread_milliseconds();
        for (Step& step : steps) {
            const int code = step.compiled->jit->function()(
                step.inputs.data(), &step.output, step.compiled->constants->data(),
                scratch_ ? scratch_->data() : nullptr, 0,
                static_cast<int32_t>(step.compiled->code.strips));
            if (code != 0) throw std::logic_error("a group failed");
        }
        return thread_milliseconds() - start;
    }

    [[nodiscard]] std::vector<float> result() {
        const TensorId id = result_tensor();
        const float* values = array(id);
        return {values, values + element_count(network_.tensor(id).dims)};
    }

private:
    [[nodiscard]] TensorId result_tensor() const {
        return network_.layer(add_.value_or(layers_.back())).output;
    }
    [[nodiscard]] TensorId tensor(const std::string& name) const {
        for (TensorId id = 0; id < std::ssize(network_.tensors); ++id) {
            if (network_.tensor(id).name == name) return id;
        }
        throw std::logic_error("no tensor " + name);
    }
    /// An input is random, the others are computed.
    float* array(TensorId id) {
        std::unique_ptr<AlignedFloats>& values = arrays_[id];
        if (!values) {
            values = std::make_unique<AlignedFloats>(
                static_cast<size_t>(element_count(network_.tensor(id).dims)));
            Rng rng(1);
            for (size_t n = 0; n < values->size(); ++n)
                values->data()[n] = static_cast<float>(rng.below(2001) - 1000) / 1000.0F;
        }
        return values->data();
    }

    Network network_;
    TimedOptions options_;
    std::vector<LayerId> layers_;
    std::optional<LayerId> add_;  ///< behind the last layer, where the planner's groups contain it
    Plan chosen_;
    std::map<std::string, Compiled> compiled_;
    std::map<TensorId, std::unique_ptr<AlignedFloats>> arrays_;
    std::unique_ptr<AlignedFloats> scratch_;
    std::vector<AlignedFloats> passed_;  ///< two
};

bool agree(const std::vector<float>& a, const std::vector<float>& b) {
    const auto [low, high] = std::minmax_element(a.begin(), a.end());
    const float allowed = 1e-4F * std::max({*high - *low, std::abs(*high), 1e-30F});
    for (size_t n = 0; n < a.size(); ++n) {
        if (!(std::abs(a[n] - b[n]) <= allowed)) return false;
    }
    return true;
}

int bench(int64_t first, int64_t count, int64_t alternatives, int64_t rounds, int64_t finals,
          uint64_t seed, const std::string& json) {
    fmt::print("{:36}{:40}{:>7}{:>9}{:>9}{:>9}{:>8}\n", "network", "chain", "groups", "ms",
               "best ms", "of", "ratio");
    int64_t good = 0;
    auto entries = nlohmann::ordered_json::array();
    for (int64_t c = first; c < first + count; ++c) {
        Chain chain(chains[c]);
        std::vector<Plan> plans{chain.chosen()};
        if (!chain.prepare(plans.front()))
            throw std::logic_error("the planner's choice needs too much scratch");
        (void)chain.run(plans.front());
        const std::vector<float> expected = chain.result();
        std::set<std::string> known{Chain::text_of(plans.front())};
        Rng rng(seed + static_cast<uint64_t>(c));
        for (int64_t tries = 0; std::ssize(plans) <= alternatives && tries < 20 * alternatives;
             ++tries) {
            const Plan plan = chain.random(rng);
            if (!known.insert(Chain::text_of(plan)).second || !chain.prepare(plan)) continue;
            (void)chain.run(plan);
            if (!agree(expected, chain.result()))
                throw std::logic_error("results differ:\n" + Chain::text_of(plan));
            plans.push_back(plan);
        }
        std::vector<double> least(plans.size(), HUGE_VAL);
        std::vector<size_t> racing(plans.size());
        std::iota(racing.begin(), racing.end(), 0);
        const auto race = [&](int64_t times) {
            for (int64_t round = 0; round < times; ++round) {
                for (const size_t p : racing) least[p] = std::min(least[p], chain.run(plans[p]));
            }
        };
        race(rounds);
        // The least of all times of many is less than that of one plan even where all are alike:
        // those ahead and the planner's run on, in turn.
        std::sort(racing.begin() + 1, racing.end(),
                  [&](size_t a, size_t b) { return least[a] < least[b]; });
        constexpr size_t finalists = 4;
        racing.resize(std::min(racing.size(), finalists + 1));
        least.assign(plans.size(), HUGE_VAL);
        race(finals);
        const size_t best =
            static_cast<size_t>(std::min_element(least.begin(), least.end()) - least.begin());
        const double ratio = least.front() / least[best];
        constexpr double within = 1.1;
        if (ratio <= within) ++good;
        fmt::print("{:36}{:40}{:>7}{:>9.3f}{:>9.3f}{:>9}{:>8.3f}\n", chains[c].network,
                   chain.text(), plans.front().size(), least.front(), least[best], plans.size() - 1,
                   ratio);
        std::fflush(stdout);
        entries.push_back({{"network", chains[c].network},
                           {"chain", chain.text()},
                           {"chosen_ms", least.front()},
                           {"best_ms", least[best]},
                           {"chosen_predicted_ms", chain.predicted(plans.front())},
                           {"best_predicted_ms", chain.predicted(plans[best])},
                           {"alternatives", plans.size() - 1},
                           {"chosen", Chain::text_of(plans.front())},
                           {"best", Chain::text_of(plans[best])}});
        if (!json.empty()) {
            const nlohmann::ordered_json answer{{"schema", "laminate.choice_bench"},
                                                {"version", 1},
                                                {"rounds", rounds},
                                                {"seed", seed},
                                                {"chains", entries}};
            write_file_atomically(json, answer.dump(2) + "\n");
        }
    }
    fmt::print("within 10 % of the best: {} of {}\n", good, count);
    return 0;
}

}  // namespace
}  // namespace laminate

int main(int argc, char** argv) {
    int64_t first = 0, count = std::ssize(laminate::chains), alternatives = 50, rounds = 5,
            finals = 30;
    uint64_t seed = 1;
    std::string json;
    try {
        for (int n = 1; n < argc; n += 2) {
            const std::string_view name = argv[n];
            if (n + 1 == argc)
                throw laminate::InputError(fmt::format("{}: expected a value", name));
            const std::string value = argv[n + 1];
            const auto number = [&](int64_t low, int64_t high) {
                char* end = nullptr;
                const int64_t found = std::strtoll(value.c_str(), &end, 10);
                if (value.empty() || *end != '\0' || found < low || found > high)
                    throw laminate::InputError(
                        fmt::format("{}: found {}, expected {} to {}", name, value, low, high));
                return found;
            };
            if (name == "--first") {
                first = number(0, std::ssize(laminate::chains) - 1);
            } else if (name == "--chains") {
                count = number(1, std::ssize(laminate::chains));
            } else if (name == "--alternatives") {
                alternatives = number(1, 1000);
            } else if (name == "--rounds") {
                rounds = number(1, 1000);
            } else if (name == "--finals") {
                finals = number(1, 1000);
            } else if (name == "--seed") {
                seed = static_cast<uint64_t>(number(0, 1 << 30));
            } else if (name == "--json") {
                json = value;
            } else {
                throw laminate::InputError(
                    fmt::format("found {}, expected --first, --chains, --alternatives, --rounds, "
                                "--finals, --seed or --json",
                                name));
            }
        }
        count = std::min<int64_t>(count, std::ssize(laminate::chains) - first);
        return laminate::bench(first, count, alternatives, rounds, finals, seed, json);
    } catch (const std::exception& error) {
        fmt::print(stderr, "choice_bench: {}\n", error.what());
        return 1;
    }
}
