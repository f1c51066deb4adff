#include "scheduler/search/order_ideals.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "base/units.h"

namespace laminate::search {

namespace {

std::vector<std::vector<int>> readers_of(const std::vector<std::vector<int>>& needs) {
    std::vector<std::vector<int>> readers(needs.size());
    for (size_t v = 0; v < needs.size(); ++v) {
        for (const int below : needs[v]) readers[static_cast<size_t>(below)].push_back(static_cast<int>(v));
    }
    return readers;
}

/// All vertices below `base`, and `base + i` for every bit i of `above`; `base` itself is not in it.
struct Ideal {
    int base = 0;
    std::array<uint64_t, 2> above{0, 0};

    [[nodiscard]] bool has(int v) const {
        if (v < base) return true;
        const int bit = v - base;
        return bit < 128 && (above[static_cast<size_t>(bit / 64)] >> (bit % 64) & 1) != 0;
    }
    /// False where it cannot be written.
    bool add(int v) {
        const int bit = v - base;
        if (bit >= 128) return false;
        above[static_cast<size_t>(bit / 64)] |= uint64_t{1} << (bit % 64);
        while ((above[0] & 1) != 0) {
            above[0] = above[0] >> 1 | above[1] << 63;
            above[1] >>= 1;
            ++base;
        }
        return true;
    }
    friend bool operator==(const Ideal&, const Ideal&) = default;
};

struct IdealHash {
    size_t operator()(const Ideal& ideal) const {
        uint64_t hash = static_cast<uint64_t>(ideal.base) * 0x9e3779b97f4a7c15u;
        for (const uint64_t word : ideal.above) hash = (hash ^ word ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
        return static_cast<size_t>(hash ^ hash >> 32);
    }
};

}  // namespace

std::optional<OrderIdeals> OrderIdeals::of(const std::vector<std::vector<int>>& needs, size_t limit) {
    const std::vector<std::vector<int>> readers = readers_of(needs);
    OrderIdeals result;
    struct Open {
        Ideal ideal;
        std::vector<int> next;  ///< vertices whose needs it holds, ascending
    };
    std::vector<Open> level(1);
    for (size_t v = 0; v < needs.size(); ++v) {
        if (needs[v].empty()) level.front().next.push_back(static_cast<int>(v));
    }
    result.steps_.emplace_back();
    int first_of_level = 0;
    for (size_t size = 0; size < needs.size(); ++size) {
        std::vector<Open> larger;
        std::unordered_map<Ideal, int, IdealHash> numbers;
        for (size_t n = 0; n < level.size(); ++n) {
            const Open& from = level[n];
            for (const int v : from.next) {
                Ideal ideal = from.ideal;
                if (!ideal.add(v)) return std::nullopt;
                const auto [found, is_new] = numbers.emplace(ideal, result.size());
                if (is_new) {
                    if (result.steps_.size() >= limit) return std::nullopt;
                    result.steps_.emplace_back();
                    Open& open = larger.emplace_back(Open{ideal, from.next});
                    std::erase(open.next, v);
                    for (const int reader : readers[static_cast<size_t>(v)]) {
                        const std::vector<int>& all = needs[static_cast<size_t>(reader)];
                        if (!std::all_of(all.begin(), all.end(), [&](int below) { return ideal.has(below); })) continue;
                        open.next.insert(std::upper_bound(open.next.begin(), open.next.end(), reader), reader);
                    }
                }
                result.steps_[static_cast<size_t>(found->second)].push_back({v, first_of_level + static_cast<int>(n)});
            }
        }
        first_of_level += static_cast<int>(level.size());
        level = std::move(larger);
    }
    for (std::vector<Step>& steps : result.steps_)
        std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.vertex > b.vertex; });
    return result;
}

std::optional<int64_t> convex_set_count(const std::vector<std::vector<int>>& needs, size_t limit) {
    const std::vector<std::vector<int>> readers = readers_of(needs);
    // What a vertex with readers to come is, two bits each, by slot. A vertex above the set, but not in it, may have nothing of
    // the set above itself.
    enum : uint64_t { apart = 0, inside = 1, above = 2 };
    using State = std::array<uint64_t, 2>;
    struct StateHash {
        size_t operator()(const State& s) const {
            return static_cast<size_t>((s[0] * 0x9e3779b97f4a7c15u ^ s[1]) * 0xbf58476d1ce4e5b9u >> 7);
        }
    };
    const auto get = [](const State& state, int slot) {
        return state[static_cast<size_t>(slot / 32)] >> (slot % 32 * 2) & 3;
    };
    const auto set = [](State& state, int slot, uint64_t what) {
        uint64_t& word = state[static_cast<size_t>(slot / 32)];
        word = (word & ~(uint64_t{3} << (slot % 32 * 2))) | what << (slot % 32 * 2);
    };
    std::unordered_map<State, int64_t, StateHash> counts{{State{0, 0}, 1}};
    std::vector<int> slot(needs.size(), -1);
    std::vector<size_t> to_come(needs.size());
    std::vector<int> free_slots;
    for (int s = 63; s >= 0; --s) free_slots.push_back(s);
    for (size_t v = 0; v < needs.size(); ++v) {
        std::vector<int> below;
        for (const int b : needs[v]) below.push_back(slot[static_cast<size_t>(b)]);
        std::vector<int> ended;
        for (const int b : needs[v]) {
            if (--to_come[static_cast<size_t>(b)] == 0) ended.push_back(slot[static_cast<size_t>(b)]);
        }
        to_come[v] = readers[v].size();
        const bool stays = to_come[v] > 0;
        for (const int s : ended) free_slots.push_back(s);
        if (stays) {
            if (free_slots.empty()) return std::nullopt;
            slot[v] = free_slots.back();
            free_slots.pop_back();
        }
        std::unordered_map<State, int64_t, StateHash> next;
        const auto offer = [&](State state, uint64_t what, int64_t count) {
            for (const int s : ended) set(state, s, apart);
            if (stays) set(state, slot[v], what);
            int64_t& sum = next[state];
            sum = checked_add(sum, count);
        };
        for (const auto& [state, count] : counts) {
            bool any_above = false;
            bool any = false;
            for (const int s : below) {
                any_above = any_above || get(state, s) == above;
                any = any || get(state, s) != apart;
            }
            if (!any_above) offer(state, inside, count);
            offer(state, any ? above : apart, count);
        }
        if (next.size() > limit) return std::nullopt;
        counts = std::move(next);
    }
    int64_t sum = -1;  // the empty set
    for (const auto& [state, count] : counts) sum = checked_add(sum, count);
    return sum;
}

}  // namespace laminate::search
