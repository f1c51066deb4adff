#include "instrumentation/fold_watch.h"

#include <algorithm>
#include <utility>

namespace laminate::walking {

FoldWatch::FoldWatch(std::vector<Loop> loops) {
    for (size_t last = 0; last < loops.size(); ++last) {
        Seen seen;
        seen.loop = loops[last];
        seen.runs_begin = runs_.size();
        for (size_t first = 0; seen.loop.dimension && first <= last; ++first) {
            if (loops[first].dimension != seen.loop.dimension) continue;
            runs_.emplace_back();
            runs_.back().first = first;
        }
        seen.runs_end = runs_.size();
        loops_.push_back(std::move(seen));
    }
}

void FoldWatch::Run::see(const Range& trip) {
    end = needed.empty() ? trip.end : std::max(end, trip.end);
    held = std::max(held, end - trip.begin);
    if (shares && !needed.empty()) return;
    shares = shares || std::any_of(needed.begin(), needed.end(),
                                   [&](const Range& earlier) { return earlier.meets(trip); });
    if (!needed.empty() && needed.back().end == trip.begin)
        needed.back().end = trip.end;
    else
        needed.push_back(trip);
}

void FoldWatch::see(const Box& box) {
    size_t first = 0;
    while (first < loops_.size() && loops_[first].body == *loops_[first].loop.body) ++first;
    end_bodies(first);
    for (size_t l = first; l < loops_.size(); ++l) loops_[l].body = *loops_[l].loop.body;
    (loops_.empty() ? lifetime_ : loops_.back().needed).add(box);
}

void FoldWatch::end_bodies(size_t first) {
    for (size_t l = loops_.size(); l-- > first;) {
        Seen& seen = loops_[l];
        if (!seen.needed.empty()) {
            const Box& box = seen.needed.box();
            ++seen.trips;
            for (size_t r = seen.runs_begin; r < seen.runs_end; ++r)
                runs_[r].see(box[*seen.loop.dimension]);
            (l == 0 ? lifetime_ : loops_[l - 1].needed).add(box);
            seen.needed = {};
        }
        if (l == first) break;
        seen.several = seen.several || seen.trips > 1;
        seen.trips = 0;
    }
    if (first + 1 >= loops_.size()) return;
    // The loops inside the ended body have been executed.
    for (Run& run : runs_) {
        if (run.first > first) run.needed.clear();
    }
}

void FoldWatch::end_lifetime() {
    if (!loops_.empty()) {
        end_bodies(0);
        loops_[0].several = loops_[0].several || loops_[0].trips > 1;
        loops_[0].trips = 0;
    }
    if (lifetime_.empty()) return;
    const Extents extents = folded();
    for (size_t d = 0; d < 3; ++d) largest_[d] = std::max(largest_[d], extents[d]);
    lifetime_ = {};
    for (Seen& seen : loops_) seen.several = false;
    for (Run& run : runs_) {
        run.needed.clear();
        run.shares = false;
        run.held = 0;
    }
}

Extents FoldWatch::folded() const {
    Extents extents{};
    for (size_t d = 0; d < 3; ++d) extents[d] = lifetime_.box()[d].size();
    for (size_t l = 0; l < loops_.size();) {
        const size_t first = l;
        if (!loops_[first].several) {
            ++l;
            continue;
        }
        const std::optional<size_t> dimension = loops_[first].loop.dimension;
        if (!dimension) break;
        size_t last = first;
        for (++l;
             l < loops_.size() && (!loops_[l].several || loops_[l].loop.dimension == dimension);
             ++l) {
            if (loops_[l].several) last = l;
        }
        const auto begin = runs_.begin() + static_cast<std::ptrdiff_t>(loops_[last].runs_begin);
        const auto end = runs_.begin() + static_cast<std::ptrdiff_t>(loops_[last].runs_end);
        const Run& run = *std::find_if(begin, end, [&](const Run& r) { return r.first == first; });
        extents[*dimension] = run.held;
        if (run.shares) break;
    }
    return extents;
}

}  // namespace laminate::walking
