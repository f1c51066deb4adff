#include "scheduler/models/depth_first/mapping_space.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace laminate::depth_first {

MappingSpace::MappingSpace(const MappedLayer& layer) : layer_(layer) {
    find_factors();
    tabulate_products();
    for (size_t r = 0; r < roles(); ++r) {
        placed_step_[r] = placed_count_;
        placed_count_ *= levels(r);
    }
    watch();
    tabulate_energy();
}

void MappingSpace::find_factors() {
    for (const auto& [dim, primes] : layer_.temporal_factors()) {
        for (const int64_t prime : primes) {
            total_ *= static_cast<double>(prime);
            if (!factors_.empty() && factors_.back().dim == dim && factors_.back().prime == prime) {
                ++factors_.back().count;
            } else {
                factors_.push_back({dim, prime, 1, 0});
            }
        }
    }
    for (Factor& factor : factors_) {
        factor.step = multisets_;
        multisets_ *= factor.count + 1;
    }
}

void MappingSpace::tabulate_products() {
    products_.resize(multisets_);
    reduction_left_.resize(multisets_);
    for (size_t s = 0; s < multisets_; ++s) {
        products_[s].fill(1);
        for (const Factor& factor : factors_) {
            const size_t count = count_of(s, factor);
            for (size_t i = 0; i < count; ++i)
                products_[s][static_cast<size_t>(factor.dim)] *= static_cast<double>(factor.prime);
            if (count < factor.count && layer_.irrelevant(0, factor.dim)) reduction_left_[s] = true;
        }
    }
}

void MappingSpace::watch() {
    std::vector<double> whole(layer_.machine().memories.size(), 0);
    for (size_t r = 0; r < roles(); ++r) {
        for (size_t level = 0; level < levels(r); ++level)
            whole[layer_.hierarchy(r)[level]] += layer_.level_bits(r, level, products_[all()], true);
    }
    for (size_t at = 0; at < layer_.memories().size(); ++at) {
        const size_t memory = layer_.memories()[at];
        if (layer_.served()[at].size() < 2 ||
            whole[memory] <= static_cast<double>(layer_.machine().memories[memory].capacity_bits))
            continue;
        Watched watched{memory, {}, {}};
        for (const size_t r : layer_.served()[at]) {
            const std::vector<size_t>& hierarchy = layer_.hierarchy(r);
            const auto level = static_cast<size_t>(std::ranges::find(hierarchy, memory) - hierarchy.begin());
            watched.sharers.emplace_back(r, level);
            std::vector<double>& bits = watched.bits.emplace_back();
            for (size_t s = level + 1 == levels(r) ? all() : 0; s < multisets_; ++s)
                bits.push_back(layer_.level_bits(r, level, products_[s], r == 0 && reduction_left_[s]));
        }
        watched_.push_back(std::move(watched));
    }
    if (watched_.size() > most_watched) {
        throw InputError("machine " + layer_.machine().name + ": found " + std::to_string(watched_.size()) +
                         " memories that operands compete for, expected at most " + std::to_string(most_watched));
    }
}

void MappingSpace::tabulate_energy() {
    std::vector<double> tops(layer_.machine().memories.size(), 0);
    for (size_t r = 0; r < roles(); ++r)
        tops[layer_.hierarchy(r).back()] += layer_.level_bits(r, levels(r) - 1, products_[all()], false);
    energy_.resize(roles());
    for (size_t r = 0; r < roles(); ++r) {
        energy_[r].resize(levels(r) - 1);
        for (size_t level = 1; level < levels(r); ++level) {
            std::vector<double>& energy = energy_[r][level - 1];
            energy.assign(multisets_, infinity);
            const size_t memory = layer_.hierarchy(r)[level - 1];
            const double room = static_cast<double>(layer_.machine().memories[memory].capacity_bits) - tops[memory];
            for (size_t s = 0; s < multisets_; ++s) {
                if (layer_.level_bits(r, level - 1, products_[s], false) > room) continue;
                energy[s] = layer_.boundary_energy(r, level, products_[s], total_, r == 0 && reduction_left_[s]);
            }
        }
    }
}

size_t MappingSpace::placed_index(const Placed& levels) const {
    size_t index = 0;
    for (size_t r = 0; r < roles(); ++r) index += levels[r] * placed_step_[r];
    return index;
}

MappingSpace::State MappingSpace::start() const {
    State state;
    state.reduction = reduction_left_[0];
    return state;
}

bool MappingSpace::finished(const State& state) const {
    return state.multiset == all() && placed_index(state.levels) + 1 == placed_count_;
}

bool MappingSpace::all_placed(size_t w, const State& state) const {
    return std::ranges::all_of(watched_[w].sharers,
                               [&](const auto& sharer) { return state.levels[sharer.first] > sharer.second; });
}

bool MappingSpace::fits(size_t r, size_t level, size_t multiset, bool reduction, State& state) const {
    const size_t memory = layer_.hierarchy(r)[level];
    const double bits = layer_.level_bits(r, level, products_[multiset], r == 0 && reduction);
    const auto capacity = static_cast<double>(layer_.machine().memories[memory].capacity_bits);
    const auto found = std::ranges::find(watched_, memory, &Watched::memory);
    if (found == watched_.end()) return bits <= capacity;
    const auto w = static_cast<size_t>(found - watched_.begin());
    double& used = state.used[w];
    if (used + bits > capacity) return false;
    used += bits;
    // Once all have their place it no longer matters how much is left.
    if (all_placed(w, state)) used = 0;
    return true;
}

bool MappingSpace::place(size_t r, State& state) const {
    const size_t level = state.levels[r];
    ++state.levels[r];
    if (!fits(r, level, state.multiset, state.reduction, state)) return false;
    if (r == 0) state.reduction = reduction_left_[state.multiset];
    state.role = static_cast<uint8_t>(r);
    return true;
}

bool MappingSpace::highest_fit(State state) const {
    for (size_t r = 0; r < roles(); ++r) {
        if (!fits(r, levels(r) - 1, state.multiset, state.reduction, state)) return false;
    }
    return true;
}

/// From all boundaries placed and all loops below backwards.
MappingSpace::Rest MappingSpace::rest(const BoundaryCosts& costs, double at_end) const {
    Rest rest(placed_count_ * multisets_, infinity);
    for (size_t placed = placed_count_; placed-- > 0;) {
        double* here = rest.data() + placed * multisets_;
        if (placed + 1 == placed_count_) here[all()] = at_end;
        for (size_t r = 0; r < roles(); ++r) {
            const size_t level = placed_of(placed, r);
            if (level + 1 == levels(r)) continue;
            const double* cost = costs[r][level].data();
            const double* next = here + placed_step_[r] * multisets_;
            for (size_t s = 0; s < multisets_; ++s) here[s] = std::min(here[s], cost[s] + next[s]);
        }
        for (const Factor& factor : factors_) {
            const size_t block = factor.step * (factor.count + 1);
            for (size_t begin = 0; begin < multisets_; begin += block) {
                for (size_t at = begin + factor.step * factor.count; at-- > begin;)
                    here[at] = std::min(here[at], here[at + factor.step]);
            }
        }
    }
    return rest;
}

MappingSpace::Path MappingSpace::follow(const BoundaryCosts& costs, const Rest& rest) const {
    Path path{{start()}, true};
    State state = path.states.front();
    while (!finished(state)) {
        const double* of_placed = rest.data() + placed_index(state.levels) * multisets_;
        const double here = of_placed[state.multiset];
        bool moved = false;
        for (size_t f = 0; f < factors_.size() && !moved; ++f) {
            if (count_of(state.multiset, factors_[f]) == factors_[f].count) continue;
            if (of_placed[state.multiset + factors_[f].step] != here) continue;
            state.multiset += static_cast<uint32_t>(factors_[f].step);
            state.role = 0;
            moved = true;
        }
        for (size_t r = 0; r < roles() && !moved; ++r) {
            const size_t level = state.levels[r];
            if (level + 1 == levels(r)) continue;
            if (costs[r][level][state.multiset] + of_placed[placed_step_[r] * multisets_ + state.multiset] != here)
                continue;
            path.fits = place(r, state) && path.fits;
            moved = true;
        }
        path.states.push_back(state);
    }
    path.fits = path.fits && highest_fit(state);
    return path;
}

LayerMapping MappingSpace::mapping(const std::vector<State>& path) const {
    LayerMapping result;
    result.allocation.resize(roles());
    for (size_t i = 1; i < path.size(); ++i) {
        for (const Factor& factor : factors_) {
            if (path[i].multiset == path[i - 1].multiset + factor.step)
                result.order.push_back({factor.dim, static_cast<double>(factor.prime)});
        }
        for (size_t r = 0; r < roles(); ++r) {
            if (path[i].levels[r] != path[i - 1].levels[r]) result.allocation[r].push_back(result.order.size());
        }
    }
    for (std::vector<size_t>& bounds : result.allocation) bounds.push_back(result.order.size());
    return result;
}

}  // namespace laminate::depth_first
