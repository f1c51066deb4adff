// The planner's choice against alternatives: choice_bench [--chains N] [--alternatives N] [--rounds N] [--seed N] [--json FILE]
//
// For each of twenty chains the groups that line_buffer_schedule() chooses without a budget, and random ones: any division into groups, any of a few rows per
// step, whole rows or strips of columns. All are compiled, run in turn on one thread, and timed by the thread's own clock, so that other work on the machine
// counts little; each keeps its least time over the rounds. Results are compared before that.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/aligned.h"
#include "base/cpu_time.h"
#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "generators/executable.h"
#include "generators/optimised.h"
#include "nets/open.h"
#include "scheduler/line_buffers.h"

namespace laminate {
namespace {

struct ChainName {
    const char* network;
    size_t number;  ///< among the network's chains of two layers or more
};

/// Super-resolution, stereo and demosaicing networks, classifiers' first and last blocks, wide maps and narrow ones.
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
            throw InputError(fmt::format("{}: has {} chains of two layers or more", name.network, long_ones.size()));
        layers_ = long_ones[name.number];
    }

    [[nodiscard]] const std::vector<LayerId>& layers() const { return layers_; }
    [[nodiscard]] std::string text() const {
        return network_.layer(layers_.front()).name + " .. " + network_.layer(layers_.back()).name;
    }

    [[nodiscard]] Plan chosen() const {
        const auto answer = line_buffer_schedule(network_);
        const Schedule& schedule = std::get<Schedule>(answer);
        Plan plan;
        for (const GroupSchedule& group : schedule.groups()) {
            if (std::find(layers_.begin(), layers_.end(), network_.find_layer(group.nests.front().layer)) !=
                layers_.end())
                plan.push_back(group);
        }
        return plan;
    }

    [[nodiscard]] Plan random(Rng& rng) const {
        Plan plan;
        const int64_t longest = rng.between(1, std::min<int64_t>(8, std::ssize(layers_)));
        for (size_t begin = 0; begin < layers_.size();) {
            const auto left = static_cast<int64_t>(layers_.size() - begin);
            const auto length = static_cast<std::ptrdiff_t>(rng.between(1, std::min(left, longest)));
            const auto first = layers_.begin() + static_cast<std::ptrdiff_t>(begin);
            const std::vector<LayerId> segment(first, first + length);
            const LayerProblem sink = layer_problem(network_, segment.back());
            LineBufferSizes sizes;
            constexpr int64_t rows[] = {1, 2, 4, 8, 1 << 20};
            sizes.rows = std::min(rows[rng.below(5)], sink[Dim::y]);
            const int64_t columns = sink[Dim::x] >> rng.below(3);
            if (columns >= 32 && columns < sink[Dim::x]) sizes.strip_columns = (columns + 15) / 16 * 16;
            plan.push_back(line_buffer_group(network_, segment, sizes));
            begin += static_cast<size_t>(length);
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
            compiled.code = optimised_code(network_, group, vector_unit(Halide::get_host_target()));
            constexpr int64_t most_bytes = 64 << 20;
            if (compiled.code.scratch_bytes > most_bytes) return false;
            compiled.jit = std::make_unique<JitGroup>(compiled.code.body, false);
            compiled.constants = std::make_unique<AlignedFloats>(compiled.code.constants);
            if (!scratch_ || scratch_->size() * sizeof(float) < static_cast<size_t>(compiled.code.scratch_bytes)) {
                scratch_ =
                    std::make_unique<AlignedFloats>(static_cast<size_t>(compiled.code.scratch_bytes) / sizeof(float));
            }
        }
        return true;
    }

    double run(const Plan& plan) {
        std::vector<std::pair<const Compiled*, std::pair<const float*, float*>>> steps;
        for (const GroupSchedule& group : plan) {
            const Layer& first = network_.layer(network_.find_layer(group.nests.front().layer));
            const Layer& last = network_.layer(network_.find_layer(group.nests.back().layer));
            steps.push_back({&compiled_.at(to_text(group)), {array(first.inputs.front()), array(last.output)}});
        }
        const double start = thread_milliseconds();
        for (auto& [compiled, arrays] : steps) {
            auto& [in, out] = arrays;
            const int code =
                compiled->jit->function()(&in, &out, compiled->constants->data(), scratch_ ? scratch_->data() : nullptr,
                                          0, static_cast<int32_t>(compiled->code.strips));
            if (code != 0) throw std::logic_error("a group failed");
        }
        return thread_milliseconds() - start;
    }

    [[nodiscard]] std::vector<float> result() {
        const TensorId id = network_.layer(layers_.back()).output;
        const float* values = array(id);
        return {values, values + element_count(network_.tensor(id).dims)};
    }

private:
    /// An input is random, the others are computed.
    float* array(TensorId id) {
        std::unique_ptr<AlignedFloats>& values = arrays_[id];
        if (!values) {
            values = std::make_unique<AlignedFloats>(static_cast<size_t>(element_count(network_.tensor(id).dims)));
            Rng rng(1);
            for (size_t n = 0; n < values->size(); ++n)
                values->data()[n] = static_cast<float>(rng.below(2001) - 1000) / 1000.0F;
        }
        return values->data();
    }

    Network network_;
    std::vector<LayerId> layers_;
    std::map<std::string, Compiled> compiled_;
    std::map<TensorId, std::unique_ptr<AlignedFloats>> arrays_;
    std::unique_ptr<AlignedFloats> scratch_;
};

bool agree(const std::vector<float>& a, const std::vector<float>& b) {
    const auto [low, high] = std::minmax_element(a.begin(), a.end());
    const float allowed = 1e-4F * std::max({*high - *low, std::abs(*high), 1e-30F});
    for (size_t n = 0; n < a.size(); ++n) {
        if (!(std::abs(a[n] - b[n]) <= allowed)) return false;
    }
    return true;
}

int bench(int64_t count, int64_t alternatives, int64_t rounds, uint64_t seed, const std::string& json) {
    fmt::print("{:36}{:40}{:>7}{:>9}{:>9}{:>9}{:>8}\n", "network", "chain", "groups", "ms", "best ms", "of", "ratio");
    int64_t good = 0;
    auto entries = nlohmann::ordered_json::array();
    for (int64_t c = 0; c < count; ++c) {
        Chain chain(chains[c]);
        std::vector<Plan> plans{chain.chosen()};
        if (!chain.prepare(plans.front())) throw std::logic_error("the planner's choice needs too much scratch");
        (void)chain.run(plans.front());
        const std::vector<float> expected = chain.result();
        std::set<std::string> known{Chain::text_of(plans.front())};
        Rng rng(seed + static_cast<uint64_t>(c));
        for (int64_t tries = 0; std::ssize(plans) <= alternatives && tries < 20 * alternatives; ++tries) {
            const Plan plan = chain.random(rng);
            if (!known.insert(Chain::text_of(plan)).second || !chain.prepare(plan)) continue;
            (void)chain.run(plan);
            if (!agree(expected, chain.result())) throw std::logic_error("results differ:\n" + Chain::text_of(plan));
            plans.push_back(plan);
        }
        std::vector<double> least(plans.size(), HUGE_VAL);
        for (int64_t round = 0; round < rounds; ++round) {
            for (size_t p = 0; p < plans.size(); ++p) least[p] = std::min(least[p], chain.run(plans[p]));
        }
        const size_t best = static_cast<size_t>(std::min_element(least.begin(), least.end()) - least.begin());
        const double ratio = least.front() / least[best];
        constexpr double within = 1.1;
        if (ratio <= within) ++good;
        fmt::print("{:36}{:40}{:>7}{:>9.3f}{:>9.3f}{:>9}{:>8.3f}\n", chains[c].network, chain.text(),
                   plans.front().size(), least.front(), least[best], plans.size() - 1, ratio);
        std::fflush(stdout);
        entries.push_back({{"network", chains[c].network},
                           {"chain", chain.text()},
                           {"chosen_ms", least.front()},
                           {"best_ms", least[best]},
                           {"alternatives", plans.size() - 1},
                           {"chosen", Chain::text_of(plans.front())},
                           {"best", Chain::text_of(plans[best])}});
    }
    fmt::print("within 10 % of the best: {} of {}\n", good, count);
    if (!json.empty()) {
        const nlohmann::ordered_json answer{{"schema", "laminate.choice_bench"},
                                            {"version", 1},
                                            {"rounds", rounds},
                                            {"seed", seed},
                                            {"chains", entries}};
        write_file_atomically(json, answer.dump(2) + "\n");
    }
    return 0;
}

}  // namespace
}  // namespace laminate

int main(int argc, char** argv) {
    int64_t count = std::ssize(laminate::chains), alternatives = 50, rounds = 7;
    uint64_t seed = 1;
    std::string json;
    try {
        for (int n = 1; n < argc; n += 2) {
            const std::string_view name = argv[n];
            if (n + 1 == argc) throw laminate::InputError(fmt::format("{}: expected a value", name));
            const std::string value = argv[n + 1];
            const auto number = [&](int64_t low, int64_t high) {
                char* end = nullptr;
                const int64_t found = std::strtoll(value.c_str(), &end, 10);
                if (value.empty() || *end != '\0' || found < low || found > high)
                    throw laminate::InputError(fmt::format("{}: found {}, expected {} to {}", name, value, low, high));
                return found;
            };
            if (name == "--chains") {
                count = number(1, std::ssize(laminate::chains));
            } else if (name == "--alternatives") {
                alternatives = number(1, 1000);
            } else if (name == "--rounds") {
                rounds = number(1, 1000);
            } else if (name == "--seed") {
                seed = static_cast<uint64_t>(number(0, 1 << 30));
            } else if (name == "--json") {
                json = value;
            } else {
                throw laminate::InputError(
                    fmt::format("found {}, expected --chains, --alternatives, --rounds, --seed or --json", name));
            }
        }
        return laminate::bench(count, alternatives, rounds, seed, json);
    } catch (const std::exception& error) {
        fmt::print(stderr, "choice_bench: {}\n", error.what());
        return 1;
    }
}
