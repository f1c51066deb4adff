#include "tests/scheduler/explore/every_schedule/lifetimes.h"

#include <algorithm>
#include <optional>

namespace laminate::every {

Axis axis_of(Dim d) {
    return d == Dim::y ? rows : d == Dim::x ? columns : d == Dim::i ? inputs : outputs;
}

Bodies bodies_of(const Lifetime& needs) {
    Bodies bodies;
    for (size_t depth = 0; depth <= needs.front().path.size(); ++depth) {
        const auto is_same = [&](const Piece& a, const Piece& b, size_t length) {
            return std::equal(a.path.begin(), a.path.begin() + static_cast<std::ptrdiff_t>(length),
                              b.path.begin());
        };
        Body body;
        int64_t frontier = INT64_MIN;
        for (size_t first = 0, last = 0; first < needs.size(); first = last) {
            Range hull;
            for (last = first; last < needs.size() && is_same(needs[first], needs[last], depth);
                 ++last)
                hull.extend(needs[last].part);
            body.overlaps |= hull.begin < frontier;
            frontier = std::max(frontier, hull.end);
            body.held = std::max(body.held, frontier - hull.begin);
            if (first > 0 && depth > 0)
                body.has_trips |= is_same(needs[first - 1], needs[first], depth - 1);
        }
        bodies.push_back(body);
    }
    return bodies;
}

Bodies plain_bodies(int64_t length) { return {{false, length, false}, {length > 1, 1, false}}; }

int64_t fold(const std::vector<Axis>& walk,
             const std::array<const BodiesOfLifetimes*, axis_count>& lifetimes,
             const std::array<bool, axis_count>& indexing) {
    std::array<int64_t, axis_count> extent{1, 1, 1, 1};
    std::array<size_t, axis_count> at{};
    for (;;) {
        const auto bodies = [&](Axis a) -> const Bodies& { return (*lifetimes[a])[at[a]]; };
        std::array<int64_t, axis_count> found{1, 1, 1, 1};
        for (const Axis a : {rows, columns, inputs, outputs}) {
            if (indexing[a]) found[a] = bodies(a).front().held;
        }
        std::array<size_t, axis_count> depth{};
        std::optional<Axis> run;
        bool goes_on = true;
        const auto end_run = [&] {
            if (!run) return;
            const Body& body = bodies(*run)[depth[*run]];
            found[*run] = body.held;
            goes_on = !body.overlaps;
        };
        std::array<size_t, axis_count> next{};
        for (const Axis a : walk) {
            if (!bodies(a)[++next[a]].has_trips) continue;
            if (run && run != a) {
                end_run();
                run.reset();
            }
            goes_on = goes_on && indexing[a];
            if (!goes_on) break;
            run = a;
            depth[a] = next[a];
        }
        if (goes_on) end_run();
        for (size_t a = 0; a < axis_count; ++a) extent[a] = std::max(extent[a], found[a]);
        size_t a = 0;
        while (a < axis_count && (lifetimes[a] == nullptr || ++at[a] == lifetimes[a]->size()))
            at[a++] = 0;
        if (a == axis_count) break;
    }
    return extent[0] * extent[1] * extent[2] * extent[3];
}

}  // namespace laminate::every
