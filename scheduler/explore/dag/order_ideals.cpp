#include "scheduler/explore/dag/order_ideals.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/hash.h"
#include "base/units.h"

namespace laminate::search {

namespace {

/// By vertex: the vertices that need it, ascending, in one array.
class Readers {
public:
    explicit Readers(const std::vector<std::vector<int>>& needs) : begin_(needs.size() + 1, 0) {
        for (const std::vector<int>& all : needs) {
            for (const int below : all) ++begin_[static_cast<size_t>(below) + 1];
        }
        for (size_t v = 0; v < needs.size(); ++v) begin_[v + 1] += begin_[v];
        readers_.resize(begin_.back());
        std::vector<size_t> end(begin_.begin(), begin_.end() - 1);
        for (size_t v = 0; v < needs.size(); ++v) {
            for (const int below : needs[v])
                readers_[end[static_cast<size_t>(below)]++] = static_cast<int>(v);
        }
    }
    [[nodiscard]] std::span<const int> operator[](size_t v) const {
        return {readers_.data() + begin_[v], begin_[v + 1] - begin_[v]};
    }

private:
    std::vector<size_t> begin_;
    std::vector<int> readers_;
};

/// The ideal of all vertices below `base`, and `base + i` for every bit i of `above`. It does not
/// contain `base`.
struct Ideal {
    int base = 0;
    std::array<uint64_t, 2> above{0, 0};

    [[nodiscard]] bool has(int v) const {
        if (v < base) return true;
        const int bit = v - base;
        return bit < 128 && (above[static_cast<size_t>(bit / 64)] >> (bit % 64) & 1) != 0;
    }
    /// Returns false if the result cannot be represented.
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
        return SequenceHash{}(std::array<uint64_t, 3>{static_cast<uint64_t>(ideal.base),
                                                      ideal.above[0], ideal.above[1]});
    }
};

/// The ideals of one size, and for each the vertices that can be added, ascending. Flat arrays,
/// because small vectors would take longer than the few hundred states of an on-line search.
struct Level {
    std::vector<Ideal> ideals;
    std::vector<int> next;
    std::vector<size_t> begin{0};  ///< by ideal: its first entry of `next`; one more than ideals

    void clear() {
        ideals.clear();
        next.clear();
        begin.assign(1, 0);
    }
};

/// A hash table of the ideals of the level in progress. Entries of earlier levels count as empty,
/// so nothing needs clearing.
class NumbersOfLevel {
public:
    /// The place of an equal ideal in the level, or `level.ideals.size()`, where the caller then
    /// puts it.
    size_t find_or_add(const Level& level, const Ideal& ideal, size_t first_of_level) {
        if (2 * (level.ideals.size() + 1) > slots_.size()) enlarge(level, first_of_level);
        const size_t at = slot_of(level, ideal, first_of_level);
        if (slots_[at] < first_of_level) slots_[at] = first_of_level + level.ideals.size();
        return slots_[at] - first_of_level;
    }

private:
    [[nodiscard]] size_t slot_of(const Level& level, const Ideal& ideal,
                                 size_t first_of_level) const {
        size_t at = IdealHash{}(ideal) & (slots_.size() - 1);
        while (slots_[at] >= first_of_level &&
               !(level.ideals[slots_[at] - first_of_level] == ideal))
            at = (at + 1) & (slots_.size() - 1);
        return at;
    }
    void enlarge(const Level& level, size_t first_of_level) {
        slots_.assign(std::max<size_t>(16, 2 * slots_.size()), 0);
        for (size_t n = 0; n < level.ideals.size(); ++n)
            slots_[slot_of(level, level.ideals[n], first_of_level)] = first_of_level + n;
    }
    std::vector<size_t> slots_;  ///< numbers of ideals; nobody looks for the empty ideal, 0
};

}  // namespace

std::optional<OrderIdeals> OrderIdeals::of(const std::vector<std::vector<int>>& needs,
                                           size_t limit) {
    const Readers readers(needs);
    OrderIdeals result;
    Level level, larger;
    for (size_t v = 0; v < needs.size(); ++v) {
        if (needs[v].empty()) level.next.push_back(static_cast<int>(v));
    }
    level.ideals.emplace_back();
    level.begin.push_back(level.next.size());
    struct Reached {
        size_t ideal;  ///< in the larger level
        Step step;
    };
    std::vector<Reached> reached;
    NumbersOfLevel numbers;
    result.begin_ = {0, 0};
    size_t first_of_level = 0;
    for (size_t size = 0; size < needs.size(); ++size) {
        const size_t first_of_larger = first_of_level + level.ideals.size();
        larger.clear();
        reached.clear();
        for (size_t n = 0; n < level.ideals.size(); ++n) {
            for (size_t i = level.begin[n]; i < level.begin[n + 1]; ++i) {
                const int v = level.next[i];
                Ideal ideal = level.ideals[n];
                if (!ideal.add(v)) return std::nullopt;
                const size_t found = numbers.find_or_add(larger, ideal, first_of_larger);
                reached.push_back({found, {v, static_cast<int>(first_of_level + n)}});
                if (found < larger.ideals.size()) continue;
                if (first_of_larger + found >= limit) return std::nullopt;
                larger.ideals.push_back(ideal);
                for (size_t other = level.begin[n]; other < level.begin[n + 1]; ++other) {
                    if (other != i) larger.next.push_back(level.next[other]);
                }
                const auto begin = static_cast<std::ptrdiff_t>(larger.begin.back());
                for (const int reader : readers[static_cast<size_t>(v)]) {
                    const std::vector<int>& all = needs[static_cast<size_t>(reader)];
                    if (!std::all_of(all.begin(), all.end(),
                                     [&](int below) { return ideal.has(below); }))
                        continue;
                    larger.next.insert(
                        std::upper_bound(larger.next.begin() + begin, larger.next.end(), reader),
                        reader);
                }
                larger.begin.push_back(larger.next.size());
            }
        }
        std::sort(reached.begin(), reached.end(), [](const Reached& a, const Reached& b) {
            return a.ideal != b.ideal ? a.ideal < b.ideal : a.step.vertex > b.step.vertex;
        });
        size_t at = 0;
        for (size_t ideal = 0; ideal < larger.ideals.size(); ++ideal) {
            for (; at < reached.size() && reached[at].ideal == ideal; ++at)
                result.steps_.push_back(reached[at].step);
            result.begin_.push_back(result.steps_.size());
        }
        first_of_level = first_of_larger;
        std::swap(level, larger);
    }
    return result;
}

std::optional<int64_t> convex_set_count(const std::vector<std::vector<int>>& needs, size_t limit) {
    const Readers readers(needs);
    // A state has two bits per slot, one slot for each vertex with readers to come. A vertex that
    // is above the set but not in it must have nothing of the set above itself.
    enum : uint64_t { apart = 0, inside = 1, above = 2 };
    using State = std::array<uint64_t, 2>;
    const auto get = [](const State& state, int slot) {
        return state[static_cast<size_t>(slot / 32)] >> (slot % 32 * 2) & 3;
    };
    const auto set = [](State& state, int slot, uint64_t what) {
        uint64_t& word = state[static_cast<size_t>(slot / 32)];
        word = (word & ~(uint64_t{3} << (slot % 32 * 2))) | what << (slot % 32 * 2);
    };
    std::unordered_map<State, int64_t, SequenceHash> counts{{State{0, 0}, 1}};
    std::vector<int> slot(needs.size(), -1);
    std::vector<size_t> to_come(needs.size());
    std::vector<int> free_slots;
    for (int s = 63; s >= 0; --s) free_slots.push_back(s);
    for (size_t v = 0; v < needs.size(); ++v) {
        std::vector<int> below;
        for (const int b : needs[v]) below.push_back(slot[static_cast<size_t>(b)]);
        std::vector<int> ended;
        for (const int b : needs[v]) {
            if (--to_come[static_cast<size_t>(b)] == 0)
                ended.push_back(slot[static_cast<size_t>(b)]);
        }
        to_come[v] = readers[v].size();
        const bool stays = to_come[v] > 0;
        for (const int s : ended) free_slots.push_back(s);
        if (stays) {
            if (free_slots.empty()) return std::nullopt;
            slot[v] = free_slots.back();
            free_slots.pop_back();
        }
        std::unordered_map<State, int64_t, SequenceHash> next;
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
