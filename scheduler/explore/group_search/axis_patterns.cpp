#include "scheduler/explore/group_search/axis_patterns.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/window.h"

namespace laminate::search {

namespace {

/// Extent that consecutive coordinates' windows span beyond one another's begin: more than the
/// stride means that they share.

int64_t pixel(const AxisWindow& w, int64_t at) { return window_of(w, {at, at + 1}).size(); }

/// Everything that outputs in `parts` (disjoint, rising) read, as disjoint rising parts.
std::vector<Range> read_by(const AxisWindow& w, const std::vector<Range>& parts) {
    std::vector<Range> result;
    const auto add = [&](Range in) {
        if (in.empty()) return;
        if (!result.empty() && in.begin <= result.back().end)
            result.back().end = std::max(result.back().end, in.end);
        else
            result.push_back(in);
    };
    for (const Range& part : parts) {
        if (w.transposed || w.span() >= w.stride) {
            add(window_of(w, part));
            continue;
        }
        for (int64_t at = part.begin; at < part.end; ++at)
            add(window_of(w, {at, at + 1}));  // gaps are read by nobody
    }
    return result;
}

}  // namespace

AxisPatterns::AxisPatterns(std::vector<AxisWindow> windows) : windows_(std::move(windows)) {
    const size_t layers = windows_.size();
    entries_.resize(layers + 1);
    ids_.resize(layers + 1);
    inner_.emplace_back(0, windows_.front().in);
    for (const AxisWindow& w : windows_) {
        int64_t least = w.in;
        for (int64_t at = 0; at < w.out; ++at) least = std::min(least, pixel(w, at));
        least_windows_.push_back(least);
        // Transposed windows are not alike under translation; they have no inner part.
        const auto [low, high] = inner_.back();
        inner_.emplace_back(0, 0);
        if (w.transposed || high <= low) continue;
        inner_.back().first = std::max<int64_t>(0, ceil_div(low + w.pad_begin, w.stride));
        if (high + w.pad_begin >= w.span())
            inner_.back().second = (high + w.pad_begin - w.span()) / w.stride + 1;
    }
    whole_ = intern(static_cast<int>(layers), {{{Call{0, windows_.back().out, 0}}, 1}}, 0);
}

AxisPatterns::Id AxisPatterns::intern(int layer, const Scopes& scopes, int levels) {
    const auto [low, high] = inner_[static_cast<size_t>(layer)];
    Scopes moved;
    for (const auto& [scope, count] : scopes) {
        Scope s = scope;
        if (s.front().begin >= low && s.back().end <= high) {
            const int64_t shift = s.front().begin - low;
            for (Call& call : s) {
                call.begin -= shift;
                call.end -= shift;
            }
        }
        moved[std::move(s)] += count;
    }
    std::vector<int64_t> key{levels};
    for (const auto& [scope, count] : moved) {
        key.push_back(count);
        key.push_back(static_cast<int64_t>(scope.size()));
        for (const Call& call : scope) key.insert(key.end(), {call.begin, call.end, call.level});
    }
    auto& ids = ids_[static_cast<size_t>(layer)];
    const auto known = ids.find(key);
    if (known != ids.end()) return known->second;
    auto& entries = entries_[static_cast<size_t>(layer)];
    const Id id = static_cast<Id>(entries.size());
    Entry entry;
    entry.scopes.assign(moved.begin(), moved.end());
    find_facts(layer, levels, entry);
    bytes_ += sizeof(Entry) + key.size() * sizeof(int64_t) +
              static_cast<size_t>(entry.facts.size) * sizeof(Call) +
              entry.scopes.size() * sizeof(entry.scopes.front()) +
              entry.calls.size() * sizeof(entry.calls.front());
    entries.push_back(std::move(entry));
    ids.emplace(std::move(key), id);
    return id;
}

void AxisPatterns::find_facts(int layer, int levels, Entry& entry) const {
    Facts& facts = entry.facts;
    facts.levels = levels;
    facts.least_taps.assign(static_cast<size_t>(layer), 0);
    std::map<int64_t, int64_t> extents;
    std::map<Range, int64_t> calls;
    for (const auto& [scope, count] : entry.scopes) {
        facts.scopes = checked_add(facts.scopes, count);
        facts.size += static_cast<int64_t>(scope.size());
        facts.most_calls = std::max(facts.most_calls, static_cast<int64_t>(scope.size()));
        std::vector<Range> parts;
        parts.reserve(scope.size());
        // Most calls are like the one before.
        auto last_extent = extents.end();
        auto last_call = calls.end();
        for (const Call& call : scope) {
            parts.push_back({call.begin, call.end});
            const int64_t extent = call.end - call.begin;
            if (last_extent == extents.end() || last_extent->first != extent)
                last_extent = extents.try_emplace(extent, 0).first;
            last_extent->second = checked_add(last_extent->second, count);
            // Equal calls are equal work wherever no border is near.
            const int64_t shift = is_inner(layer, parts.back())
                                      ? call.begin - inner_[static_cast<size_t>(layer)].first
                                      : 0;
            const Range place{call.begin - shift, call.end - shift};
            if (last_call == calls.end() || last_call->first != place)
                last_call = calls.try_emplace(place, 0).first;
            last_call->second += count;
            facts.brought = checked_add(facts.brought, checked_multiply(extent, count));
            facts.largest = std::max(facts.largest, extent);
            if (layer > 0)
                facts.taps = checked_add(
                    facts.taps, checked_multiply(count, taps_of(window(layer), parts.back())));
        }
        for (int k = layer; k > 0; --k) {
            int64_t& taps = facts.least_taps[static_cast<size_t>(k - 1)];
            for (const Range& part : parts)
                taps = checked_add(taps, checked_multiply(count, taps_of(window(k), part)));
            parts = read_by(window(k), parts);
        }
        for (const Range& part : parts)
            facts.least_input =
                checked_add(facts.least_input, checked_multiply(count, part.size()));
    }
    entry.extents.assign(extents.begin(), extents.end());
    entry.calls.assign(calls.begin(), calls.end());
}

int64_t AxisPatterns::tiles(int layer, Id id, int64_t tile) const {
    int64_t sum = 0;
    for (const auto& [extent, count] : entry(layer, id).extents)
        sum = checked_add(sum, checked_multiply(count, ceil_div(extent, tile)));
    return sum;
}

AxisPatterns::Step AxisPatterns::own_step(int layer, const Entry& entry, Kind kind, int64_t tile,
                                          Scopes& scopes) const {
    const AxisWindow& w = window(layer);
    Step step;
    step.held.assign(kind == Kind::between ? 2 : 1, 0);
    for (const auto& [call, calls] : entry.calls) {
        for (int64_t begin = call.begin; begin < call.end; begin += tile) {
            const Range part{begin, std::min(begin + tile, call.end)};
            int64_t count = calls;
            if (is_inner(layer, part) && part.size() == tile) {
                // The tiles up to the border, or to the ragged one, are alike.
                const int64_t high = std::min(call.end, inner_[static_cast<size_t>(layer)].second);
                const int64_t alike = (high - begin) / tile;
                count = checked_multiply(count, alike);
                begin += (alike - 1) * tile;
            }
            if (kind != Kind::between) {
                const Range need = window_of(w, part);
                scopes[{Call{need.begin, need.end, 0}}] += count;
                step.held[0] = std::max(step.held[0], need.size());
                continue;
            }
            Scope scope;
            int64_t frontier = 0;
            for (int64_t at = part.begin; at < part.end; ++at) {
                const Range need = window_of(w, {at, at + 1});
                if (need.begin < frontier) step.overlaps = true;
                step.held[1] = std::max(step.held[1], std::max(frontier, need.end) - need.begin);
                const Range fresh{std::max(need.begin, frontier), need.end};
                frontier = std::max(frontier, need.end);
                if (!fresh.empty())
                    scope.push_back({fresh.begin, fresh.end, scope.empty() ? 0 : 1});
            }
            step.held[0] = std::max(step.held[0], scope.back().end - scope.front().begin);
            scopes[std::move(scope)] += count;
        }
    }
    return step;
}

AxisPatterns::Step AxisPatterns::kept_step(int layer, const Entry& entry, Kind kind,
                                           Scopes& scopes) const {
    const AxisWindow& w = window(layer);
    const int levels = entry.facts.levels + (kind == Kind::kept_between ? 1 : 0);
    Step step;
    step.held.assign(static_cast<size_t>(levels) + 1, 0);
    for (const auto& [calls, count] : entry.scopes) {
        Scope scope;
        struct Body {
            Range need;
            int64_t frontier = 0;  ///< at its begin
        };
        std::vector<Body> bodies(static_cast<size_t>(levels) + 1);  // in progress, by level
        int64_t frontier = 0;
        int fresh_level = 0;
        const auto read = [&](Range need, int level) {
            // Bodies from `level` inwards begin anew.
            for (int l = level; l <= levels; ++l) bodies[static_cast<size_t>(l)] = {need, frontier};
            for (int l = 0; l <= levels; ++l) {
                Body& body = bodies[static_cast<size_t>(l)];
                body.need = {std::min(body.need.begin, need.begin),
                             std::max(body.need.end, need.end)};
                int64_t& held = step.held[static_cast<size_t>(l)];
                held = std::max(held, std::max(body.frontier, body.need.end) - body.need.begin);
            }
            if (need.begin < frontier) step.overlaps = true;
            fresh_level = std::min(fresh_level, level);
            const Range fresh{std::max(need.begin, frontier), need.end};
            frontier = std::max(frontier, need.end);
            if (fresh.empty()) return;
            scope.push_back({fresh.begin, fresh.end, fresh_level});
            fresh_level = levels + 1;
        };
        for (const Call& call : calls) {
            if (kind == Kind::kept_below) {
                read(window_of(w, {call.begin, call.end}), call.level);
                continue;
            }
            for (int64_t at = call.begin; at < call.end; ++at)
                read(window_of(w, {at, at + 1}), at == call.begin ? call.level : levels);
        }
        scopes[std::move(scope)] += count;
    }
    return step;
}

AxisPatterns::InputStep AxisPatterns::input_step(Id id, Kind kind, int64_t tile) const {
    if (kind == Kind::above) tile = 1;  // every coordinate by itself
    const AxisWindow& w = window(1);
    const bool has_gaps = !w.transposed && w.span() < w.stride;
    InputStep step;
    for (const auto& [call, calls] : entry(1, id).calls) {
        for (int64_t begin = call.begin; begin < call.end; begin += tile) {
            const Range part{begin, std::min(begin + tile, call.end)};
            int64_t count = calls;
            if (is_inner(1, part) && part.size() == tile) {
                const int64_t high = std::min(call.end, inner_[1].second);
                const int64_t alike = (high - begin) / tile;
                count = checked_multiply(count, alike);
                begin += (alike - 1) * tile;
            }
            const int64_t hull = window_of(w, part).size();
            int64_t brought = hull;
            step.whole = std::max(step.whole, hull);
            const bool touches_inner =
                std::max(part.begin, inner_[1].first) < std::min(part.end, inner_[1].second);
            if (kind == Kind::between && !w.transposed && !has_gaps && touches_inner) {
                // Windows that follow without gaps: together the hull; one that no border clips is
                // the largest.
                step.folded = w.span();
                step.overlaps = step.overlaps || (part.size() > 1 && w.span() > w.stride);
            } else if (kind == Kind::between) {
                brought = 0;
                int64_t frontier = 0;
                for (int64_t at = part.begin; at < part.end; ++at) {
                    const Range need = window_of(w, {at, at + 1});
                    step.overlaps = step.overlaps || need.begin < frontier;
                    step.folded = std::max(step.folded, std::max(frontier, need.end) - need.begin);
                    brought += std::max<int64_t>(0, need.end - std::max(need.begin, frontier));
                    frontier = std::max(frontier, need.end);
                }
            }
            step.brought = checked_add(step.brought, checked_multiply(count, brought));
        }
    }
    return step;
}

const AxisPatterns::Step& AxisPatterns::step(int layer, Id id, Kind kind, int64_t tile) {
    auto& entries = entries_[static_cast<size_t>(layer)];
    const bool tiled = kind == Kind::between || kind == Kind::below;
    const std::pair<Kind, int64_t> key{kind, tiled ? tile : 0};
    const auto known = entries[static_cast<size_t>(id)].steps.find(key);
    if (known != entries[static_cast<size_t>(id)].steps.end()) return known->second;
    const Entry& entry = entries[static_cast<size_t>(id)];
    Scopes scopes;
    Step step = kind == Kind::kept_between || kind == Kind::kept_below
                    ? kept_step(layer, entry, kind, scopes)
                    : own_step(layer, entry, kind, tiled ? tile : 1,
                               scopes);  // above: every coordinate by itself
    const int levels = static_cast<int>(step.held.size()) - 1;
    step.pattern = intern(layer - 1, scopes, levels);
    // Only tensors below were interned, so `entry` is where it was.
    return entries[static_cast<size_t>(id)].steps.emplace(key, std::move(step)).first->second;
}

}  // namespace laminate::search
