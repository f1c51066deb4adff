#include "runtime/arena_plan.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace laminate {

ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes) {
    std::vector<size_t> order(lifetimes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

    ArenaPlan plan{std::vector<int64_t>(lifetimes.size(), 0), 0};
    std::vector<size_t> placed;  // by offset
    for (const size_t k : order) {
        const Lifetime& life = lifetimes[k];
        const int64_t size = aligned(life.bytes);
        int64_t offset = 0;
        for (const size_t other : placed) {
            const Lifetime& there = lifetimes[other];
            if (there.last_step < life.first_step || life.last_step < there.first_step) continue;
            if (offset + size <= plan.offsets[other]) break;
            offset = std::max(offset, checked_add(plan.offsets[other], aligned(there.bytes)));
        }
        plan.offsets[k] = offset;
        plan.bytes = std::max(plan.bytes, checked_add(offset, size));
        placed.insert(
            std::upper_bound(placed.begin(), placed.end(), k,
                             [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
            k);
    }
    return plan;
}

int64_t arena_lower_bound(const std::vector<Lifetime>& lifetimes) {
    int64_t largest = 0;
    for (const Lifetime& at : lifetimes) {
        // The sum grows only where a block begins.
        int64_t sum = 0;
        for (const Lifetime& life : lifetimes) {
            if (life.first_step <= at.first_step && at.first_step <= life.last_step)
                sum += aligned(life.bytes);
        }
        largest = std::max(largest, sum);
    }
    return largest;
}

}  // namespace laminate
