#include "instrumentation/presence.h"

#include <algorithm>
#include <stdexcept>

namespace laminate::walking {

Presence::Presence(const Extents& extents)
    : extents_(extents), rows_(static_cast<size_t>(extents[0] * extents[1])) {}

void Presence::begin_lifetime() {
    state_ = {};
    state_.lifetime = ++lifetimes_;
}

Presence::Missing Presence::missing(const Box& needed) const {
    Missing result;
    if (contains(state_.last, needed)) return result;
    BoundingBox hull;
    for (int64_t c = needed[0].begin; c < needed[0].end; ++c) {
        const Row* row = &rows_[static_cast<size_t>(c * extents_[1] + needed[1].begin)];
        for (int64_t y = needed[1].begin; y < needed[1].end; ++y, ++row) {
            Range columns = needed[2];
            if (row->lifetime == state_.lifetime) columns.begin = std::max(columns.begin, row->end);
            if (columns.empty()) continue;
            result.count += columns.size();
            hull.add({Range{c, c + 1}, Range{y, y + 1}, columns});
        }
    }
    result.box = hull.box();
    return result;
}

void Presence::bring_in(const Box& needed) {
    if (is_empty(needed) || contains(state_.last, needed)) return;
    const Box& reached = state_.reached.box();
    if (!state_.reached.empty() &&
        (needed[1].begin < reached[1].begin || needed[2].begin < reached[2].begin)) {
        throw std::logic_error(
            "walker: a need begins before the first one of its lifetime, expected loops that run "
            "forward");
    }
    state_.reached.add(needed);
    state_.last = needed;
    for (int64_t c = needed[0].begin; c < needed[0].end; ++c) {
        for (int64_t y = needed[1].end - 1; y >= reached[1].begin; --y) {
            const auto index = static_cast<size_t>(c * extents_[1] + y);
            Row& row = rows_[index];
            // Earlier rows reach at least as far.
            if (row.lifetime == state_.lifetime && row.end >= needed[2].end) break;
            if (!rehearsals_.empty()) undo_.push_back({index, row});
            row = {state_.lifetime, needed[2].end};
        }
    }
}

void Presence::begin_rehearsal() { rehearsals_.push_back({undo_.size(), state_}); }

void Presence::rewind() {
    for (; undo_.size() > rehearsals_.back().undo; undo_.pop_back())
        rows_[undo_.back().row] = undo_.back().before;
    state_ = rehearsals_.back().before;
    rehearsals_.pop_back();
}

}  // namespace laminate::walking
