#include "scheduler/explore/timed/cover.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/parallel.h"

namespace laminate::timed {

namespace {

/// The first place that nothing covers, and the covered ones behind it, ascending.
using Covered = std::vector<int>;

/// What is covered once a group at `places` joins; the first of them is the first one uncovered.
Covered with(const Covered& covered, const std::vector<int>& places) {
    Covered behind;
    std::merge(covered.begin() + 1, covered.end(), places.begin() + 1, places.end(),
               std::back_inserter(behind));
    int next = covered.front() + 1;
    auto place = behind.begin();
    for (; place != behind.end() && *place == next; ++place) ++next;
    Covered all{next};
    all.insert(all.end(), place, behind.end());
    return all;
}

/// Elements, 128 MiB of them. Tensors of this size are in no cache, and often they are the memory that a
/// network takes.
constexpr double accesses_worth_a_choice = 32 << 20;
/// Part of a network's time that all of its accesses are worth. SRVGG of 64 channels gives 6 % for 1 GiB
/// (docs/performance.md, "Memory of long chains"); nobody asked for more.
constexpr double time_worth_accesses = 0.15;

double milliseconds_of(const Groups& groups) {
    double sum = 0;
    for (const Priced* priced : groups) sum += priced->milliseconds;
    return sum;
}

double accesses_of(const Groups& groups) {
    double sum = 0;
    for (const Priced* priced : groups) sum += static_cast<double>(priced->accesses.value());
    return sum;
}

bool is_free(const Covered& covered, const std::vector<int>& places) {
    return std::ranges::none_of(places, [&](int place) {
        return std::binary_search(covered.begin() + 1, covered.end(), place);
    });
}

}  // namespace

Cover::Cover(const Part& part, const std::optional<Bytes>& memory)
    : choices_(part.layers.size()), may_be_left_(part.layers.size(), 0) {
    std::unordered_map<std::string, int> places;
    for (const std::string& name : part.layers) places.emplace(name, static_cast<int>(places.size()));
    const auto places_of = [&](const Priced* priced) {
        std::vector<int> own;
        for (const Nest& nest : priced->group.nests) own.push_back(places.at(nest.layer));
        std::ranges::sort(own);
        return own;
    };
    std::set<const Priced*> known;
    const auto add = [&](const Priced* priced) {
        if ((memory && priced->memory() > *memory) || !known.insert(priced).second) return;
        memories_.push_back(priced->live);
        std::vector<int> own = places_of(priced);
        choices_[static_cast<size_t>(own.front())].push_back({priced, std::move(own)});
    };
    for (const Groups& way : part.ways) {
        std::vector<char> is_held(part.layers.size(), 0);
        for (const Priced* priced : way) {
            add(priced);
            for (const int place : places_of(priced)) is_held[static_cast<size_t>(place)] = 1;
        }
        for (size_t n = 0; n < is_held.size(); ++n) {
            if (is_held[n] == 0) may_be_left_[n] = 1;
        }
        const auto fits = [&](const Priced* priced) { return known.contains(priced); };
        if (std::ranges::all_of(way, fits)) ways_.push_back(way);
    }
    for (const Priced* priced : part.others) add(priced);
    std::ranges::sort(memories_);
}

std::pair<int64_t, double> Cover::place_of(const Wish& wish) const {
    return {std::ranges::upper_bound(memories_, wish.memory) - memories_.begin(),
            wish.milliseconds_per_access};
}

const Groups& Cover::cheapest(const Wish& wish) const {
    const auto [known, is_new] = known_.try_emplace(place_of(wish));
    if (is_new) known->second = found(wish);
    return known->second;
}

void Cover::find(const std::vector<Wish>& wishes, int threads) {
    std::vector<std::pair<Wish, Groups*>> open;
    for (const Wish& wish : wishes) {
        if (const auto [known, is_new] = known_.try_emplace(place_of(wish)); is_new)
            open.emplace_back(wish, &known->second);
    }
    in_parallel(open.size(), threads, [&](size_t n) { *open[n].second = found(open[n].first); });
}

Groups Cover::found(const Wish& wish) const {
    Groups best = search(wish, surely_faster);
    if (wish.milliseconds_per_access > 0) return best;
    // The tensors between groups are what accesses and memory are spent on, and a machine whose
    // memory is busy makes their time longer than the model says.
    Groups fastest = search(wish, 1);
    const double time = milliseconds_of(fastest);
    if (2 * accesses_of(fastest) <= accesses_of(best)) best = std::move(fastest);
    const double accesses = accesses_of(best);
    if (accesses < accesses_worth_a_choice) return best;
    Groups fewer = search({wish.memory, time_worth_accesses * time / accesses}, 1);
    if (!fewer.empty() && accesses_of(fewer) + accesses_worth_a_choice <= accesses) return fewer;
    return best;
}

Groups Cover::search(const Wish& wish, double own_share) const {
    const auto incumbent = std::ranges::find_if(ways_, [&](const Groups& way) {
        return std::ranges::all_of(way,
                                   [&](const Priced* priced) { return priced->live <= wish.memory; });
    });
    const std::set<const Priced*> own =
        incumbent == ways_.end() ? std::set<const Priced*>{}
                                 : std::set<const Priced*>(incumbent->begin(), incumbent->end());
    using Cost = std::pair<double, double>;  // price, then time
    const auto cost_of = [&](const Priced* priced) {
        const double time = priced->milliseconds * (own.contains(priced) ? own_share : 1);
        const auto accesses = static_cast<double>(priced->accesses.value());
        return std::isinf(wish.milliseconds_per_access)
                   ? Cost{accesses, time}
                   : Cost{time + wish.milliseconds_per_access * accesses, time};
    };
    struct Reached {
        Cost cost;
        const Reached* before = nullptr;
        const Priced* group = nullptr;  ///< the last one; none if a layer was left
    };
    // A step moves the first uncovered place, by which states are ordered, so each state is final
    // when its turn comes.
    std::map<Covered, Reached> reached;
    reached.emplace(Covered{0}, Reached{});
    const auto reach = [&](Covered covered, const Reached& next) {
        const auto [known, is_new] = reached.try_emplace(std::move(covered), next);
        if (!is_new && next.cost < known->second.cost) known->second = next;
    };
    const auto end = static_cast<int>(choices_.size());
    for (auto state = reached.begin(); state != reached.end(); ++state) {
        const auto& [covered, at] = *state;
        const int first = covered.front();
        if (first == end) break;
        for (const Choice& choice : choices_[static_cast<size_t>(first)]) {
            if (choice.group->live > wish.memory || !is_free(covered, choice.places)) continue;
            const Cost more = cost_of(choice.group);
            reach(with(covered, choice.places),
                  {{at.cost.first + more.first, at.cost.second + more.second}, &at, choice.group});
        }
        if (may_be_left_[static_cast<size_t>(first)] != 0)
            reach(with(covered, {first}), {at.cost, &at, nullptr});
    }
    Groups groups;
    const auto found = reached.find(Covered{end});
    if (found == reached.end()) return groups;
    for (const Reached* at = &found->second; at->before != nullptr; at = at->before) {
        if (at->group != nullptr) groups.push_back(at->group);
    }
    return groups;
}

std::pair<double, double> Cover::first_way() const {
    std::pair<double, double> sum{0, 0};
    if (ways_.empty()) return sum;
    for (const Priced* priced : ways_.front()) {
        sum.first += priced->milliseconds;
        sum.second += static_cast<double>(priced->accesses.value());
    }
    return sum;
}

}  // namespace laminate::timed
