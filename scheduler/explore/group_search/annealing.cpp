#include "scheduler/explore/group_search/annealing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/rng.h"
#include "base/units.h"
#include "scheduler/counts/two_level/two_level.h"

namespace laminate::search {

namespace {

/// Temperatures of the logarithm of accesses: at first twice as many are often taken, at last a
/// third of a percent.
constexpr double first_temperature = 0.5;
constexpr double last_temperature = 0.003;
/// A state that needs e times the memory counts as e^3 times the accesses.
constexpr double penalty = 3;
/// Runs are for memories that differ by a twentieth at least.
constexpr double apart = 1.05;

class Walk {
public:
    Walk(const std::vector<LayerProblem>& problems, const GroupSearchOptions& options,
         const std::vector<Cost>& known)
        : problems_(problems),
          options_(options),
          layers_(static_cast<int>(problems.size())),
          found_(options.macs_is_axis),
          reached_(false) {
        for (const Cost& cost : known) {
            found_.offer(cost, {});
            reached_.offer(cost, {});
        }
    }

    /// The memory of `open` at which known costs lie farthest above the bound, of those that no run
    /// was for. The bound of each step holds up to the next one.
    [[nodiscard]] std::optional<double> worst_memory(const std::vector<Cost>& open) const {
        std::optional<double> worst;
        double most = 1;
        for (size_t n = 0; n < open.size(); ++n) {
            const double memory =
                n + 1 < open.size() ? open[n + 1].memory - 1 : open[n].memory * apart;
            if (options_.memory && memory > *options_.memory) break;
            const bool is_done = std::any_of(done_.begin(), done_.end(), [&](double other) {
                return std::max(memory, other) < apart * std::min(memory, other);
            });
            const double ratio = reached_.most_accesses(memory, 0) / open[n].accesses;
            if (is_done || !(ratio > most)) continue;
            most = ratio;
            worst = memory;
        }
        return worst;
    }

    void run(double memory, int64_t states) {
        done_.push_back(memory);
        std::optional<GroupChoice> at = start(memory);
        std::optional<double> here = at ? offer(*at, memory) : std::nullopt;
        if (!here) return;
        for (int64_t n = 0; n < states; ++n) {
            if (options_.stop != nullptr && options_.stop->load()) return;
            const double done = static_cast<double>(n) / static_cast<double>(states);
            const double temperature =
                first_temperature * std::pow(last_temperature / first_temperature, done);
            GroupChoice next = *at;
            if (!move(next)) continue;
            const std::optional<double> there = offer(next, memory);
            if (!there) continue;
            if (*there > *here && random() >= std::exp((*here - *there) / temperature)) continue;
            at = std::move(next);
            here = there;
        }
    }

    [[nodiscard]] std::vector<GroupSearch::Point> points() const {
        std::vector<GroupSearch::Point> points;
        for (size_t n = 0; n < found_.size(); ++n) {
            if (!found_.items()[n].structures.empty())
                points.push_back({found_.costs()[n], found_.items()[n]});
        }
        return points;
    }

private:
    [[nodiscard]] double random() { return static_cast<double>(rng_.below(1 << 30)) / (1 << 30); }
    template <class Value>
    [[nodiscard]] const Value& any_of(const std::vector<Value>& values) {
        return values[static_cast<size_t>(rng_.below(static_cast<int64_t>(values.size())))];
    }

    /// The structures of a layer, given those of the later ones.
    const std::vector<LayerStructure>& structures(const GroupChoice& choice, int k) {
        LayerContext context;
        context.is_first = k == 0;
        context.is_last = k + 1 == layers_;
        if (!context.is_last) context.scope = choice.structures[k + 1].scope;
        const auto [known, is_new] = structures_.try_emplace({k, context});
        if (is_new)
            known->second =
                layer_structures(problems_[static_cast<size_t>(k)], context, options_.structures);
        return known->second;
    }

    /// The best schedule found within `memory`, or a random one.
    [[nodiscard]] std::optional<GroupChoice> start(double memory) {
        std::optional<size_t> best;
        for (size_t n = 0; n < found_.size(); ++n) {
            if (found_.costs()[n].memory > memory || found_.items()[n].structures.empty()) continue;
            if (!best || found_.costs()[n].accesses < found_.costs()[*best].accesses) best = n;
        }
        if (best) return found_.items()[*best];
        GroupChoice choice;
        for (const LayerProblem& problem : problems_) {
            choice.tiles.push_back(problem.extent);
            choice.structures.push_back({});
        }
        if (!change_structure(choice, layers_ - 1)) return std::nullopt;
        return choice;
    }

    /// Draws another structure for layer k. Earlier layers keep theirs where these still exist.
    [[nodiscard]] bool change_structure(GroupChoice& choice, int k) {
        for (int j = k; j >= 0; --j) {
            const std::vector<LayerStructure>& all = structures(choice, j);
            if (all.empty()) return false;
            const auto same = std::find_if(all.begin(), all.end(), [&](const LayerStructure& s) {
                return say_the_same(s, choice.structures[j]);
            });
            choice.structures[j] = j < k && same != all.end() ? *same : any_of(all);
        }
        return true;
    }

    void change_tile(GroupChoice& choice) {
        const int k = static_cast<int>(rng_.below(layers_));
        const Dim d = static_cast<Dim>(rng_.below(4));
        const int64_t extent = problems_[static_cast<size_t>(k)][d];
        int64_t& tile = choice.tiles[k][d];
        switch (rng_.below(6)) {
            case 0:
                tile *= 2;
                break;
            case 1:
                tile /= 2;
                break;
            case 2:
                ++tile;
                break;
            case 3:
                --tile;
                break;
            case 4:
                tile = extent;
                break;
            default:  // as often below as above the square root
                tile = std::llround(std::pow(static_cast<double>(extent), random()));
        }
        tile = std::clamp<int64_t>(tile, 1, extent);
    }

    [[nodiscard]] bool move(GroupChoice& choice) {
        for (int64_t moves = rng_.between(1, 3); moves > 0; --moves) {
            if (!rng_.chance(1, 3)) {
                change_tile(choice);
            } else if (!change_structure(choice, static_cast<int>(rng_.below(layers_)))) {
                return false;
            }
        }
        return true;
    }

    /// Adds the schedule to what was found, and returns how it does within `memory`; nullopt if it
    /// counts beyond 64 bits or does more MACs than it may.
    std::optional<double> offer(GroupChoice& choice, double memory) {
        for (int k = 0; k < layers_; ++k) {
            const LayerProblem& problem = problems_[static_cast<size_t>(k)];
            if (k + 1 < layers_) choice.tiles[k][Dim::i] = problem[Dim::i];
            if (choice.structures[k].whole_calls) choice.tiles[k] = problem.extent;
        }
        Cost cost;
        try {
            const GroupCounts counts =
                two_level_counts(problems_, group_schedule(problems_, choice), &cache_);
            const Elements held = options_.live ? counts.live_total : counts.sum_total;
            cost = {static_cast<double>(counts.accesses().value()),
                    static_cast<double>(held.value()), static_cast<double>(counts.macs().value())};
        } catch (const std::overflow_error&) {
            return std::nullopt;
        }
        if (!options_.recompute && cost.macs > least_macs(problems_)) return std::nullopt;
        if (!options_.memory || cost.memory <= *options_.memory) {
            found_.offer(cost, choice);
            reached_.offer(cost, {});
        }
        return std::log(cost.accesses) + penalty * std::max(0.0, std::log(cost.memory / memory));
    }

    const std::vector<LayerProblem>& problems_;
    const GroupSearchOptions& options_;
    int layers_;
    Rng rng_{1};
    TwoLevelCache cache_;
    std::map<std::pair<int, LayerContext>, std::vector<LayerStructure>> structures_;
    Archive<GroupChoice> found_;  ///< known costs have no structures
    Archive<Nothing> reached_;    ///< the same on two axes
    std::vector<double> done_;    ///< memories of the runs
};

}  // namespace

std::vector<GroupSearch::Point> annealed(const std::vector<LayerProblem>& problems,
                                         const GroupSearchOptions& options,
                                         const std::vector<Cost>& known, std::vector<Cost> open,
                                         const Annealing& annealing) {
    std::sort(open.begin(), open.end(),
              [](const Cost& a, const Cost& b) { return a.memory < b.memory; });
    Walk walk(problems, options, known);
    for (int64_t n = 0; n < annealing.runs; ++n) {
        const std::optional<double> memory = walk.worst_memory(open);
        if (!memory) break;
        walk.run(*memory, annealing.states_per_run);
    }
    return walk.points();
}

}  // namespace laminate::search
