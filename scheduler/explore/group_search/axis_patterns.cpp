#include "scheduler/explore/group_search/axis_patterns.h"

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "scheduler/schedule/window.h"

namespace laminate::search {

namespace {

/// A node of a tree and an allocation, besides the numbers held.
constexpr size_t bytes_of_a_step = 144;
/// What a call takes that is stored by itself.
constexpr size_t bytes_of_a_call = 24;

int64_t pixel(const AxisWindow& w, int64_t at) { return window_of(w, {at, at + 1}).size(); }

/// What the outputs in `parts` (disjoint, rising) read, as disjoint rising parts.
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
            add(window_of(w, {at, at + 1}));  // nobody reads the gaps
    }
    return result;
}

/// Of `count` neighbours, `first` and as many parts of its size after it, the number that come
/// before the border of the input clips a window. None if it clips the first one.
int64_t unclipped(const AxisWindow& w, Range first, int64_t count) {
    const int64_t begin = first.begin * w.stride - w.pad_begin;
    const int64_t end = (first.end - 1) * w.stride + w.span() - w.pad_begin;
    if (begin < 0 || end > w.in) return 0;
    return std::min(count, (w.in - end) / (first.size() * w.stride) + 1);
}

/// The same neighbours without the first and the last of these, if each of them brings its size
/// times the stride: so many equal calls, which need not be looked at one by one.
int64_t alike_between(const AxisWindow& w, Range first, int64_t count) {
    if (w.is_sampled() || w.transposed || w.span() < w.stride || first.empty()) return 0;
    return std::max<int64_t>(0, unclipped(w, first, count) - 2);
}

}  // namespace

AxisPatterns::AxisPatterns(std::vector<AxisWindow> windows) : windows_(std::move(windows)) {
    const size_t layers = windows_.size();
    entries_.resize(layers + 1);
    ids_.resize(layers + 1);
    inner_.push_back({0, windows_.front().in});
    for (const AxisWindow& w : windows_) {
        int64_t least = w.in;
        for (int64_t at = 0; at < w.out; ++at) least = std::min(least, pixel(w, at));
        least_windows_.push_back(least);
        // Transposed windows change under translation, so they have no inner part.
        const Range before = inner_.back();
        inner_.push_back({});
        if (w.transposed || before.empty()) continue;
        inner_.back().begin = std::max<int64_t>(0, ceil_div(before.begin + w.pad_begin, w.stride));
        if (before.end + w.pad_begin >= w.span())
            inner_.back().end = (before.end + w.pad_begin - w.span()) / w.stride + 1;
    }
    whole_ = intern(static_cast<int>(layers), {{{Call{{0, windows_.back().out}, 0}}, 1}}, 0);
}

void AxisPatterns::add(Scope& scope, Range part, int level, int64_t count) {
    if (!scope.empty()) {
        Call& last = scope.back();
        if (last.level == level && last.part.size() == part.size() &&
            last.all().end == part.begin) {
            last.count += count;
            return;
        }
    }
    scope.push_back({part, level, count});
}

AxisPatterns::Id AxisPatterns::intern(int layer, const Scopes& scopes, int levels) {
    Scopes moved;
    for (const auto& [scope, count] : scopes) {
        Scope s = scope;
        s.shrink_to_fit();
        if (is_inner(layer, {s.front().part.begin, s.back().all().end})) {
            const int64_t shift = s.front().part.begin - inner_[layer].begin;
            for (Call& call : s) call.part = {call.part.begin - shift, call.part.end - shift};
        }
        moved[std::move(s)] += count;
    }
    std::vector<std::pair<Scope, int64_t>> counted(moved.begin(), moved.end());
    std::vector<int64_t> key{levels};
    for (const auto& [scope, count] : counted) {
        key.push_back(count);
        for (const Call& call : scope)
            key.insert(key.end(), {call.part.begin, call.part.end, call.level, call.count});
    }
    const size_t hash = SequenceHash()(key);
    const auto [first, last] = ids_[layer].equal_range(hash);
    for (auto known = first; known != last; ++known) {
        const Entry& other = entry(layer, known->second);
        if (other.facts.levels == levels && other.scopes == counted) return known->second;
    }
    auto& entries = entries_[layer];
    const Id id = static_cast<Id>(entries.size());
    Entry entry;
    entry.scopes = std::move(counted);
    find_facts(layer, levels, entry);
    const size_t besides_calls = sizeof(Entry) +
                                 entry.scopes.size() * sizeof(entry.scopes.front()) +
                                 entry.extents.size() * sizeof(entry.extents.front()) +
                                 entry.calls.size() * sizeof(entry.calls.front());
    bytes_ += besides_calls;
    for (const auto& [scope, count] : entry.scopes) bytes_ += scope.size() * sizeof(Call);
    bytes_of_all_calls_ += besides_calls + static_cast<size_t>(entry.facts.size) * bytes_of_a_call;
    entries.push_back(std::move(entry));
    ids_[layer].emplace(hash, id);
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
        int64_t calls_of_scope = 0;
        std::vector<Range> parts;
        parts.reserve(scope.size());
        // Most calls are like the one before, so remember where it was counted.
        auto last_extent = extents.end();
        auto last_call = calls.end();
        for (const Call& call : scope) {
            parts.push_back(call.all());
            calls_of_scope += call.count;
            const int64_t times = checked_multiply(count, call.count);
            const int64_t extent = call.part.size();
            if (last_extent == extents.end() || last_extent->first != extent)
                last_extent = extents.try_emplace(extent, 0).first;
            last_extent->second = checked_add(last_extent->second, times);
            for (int64_t n = 0; n < call.count;) {
                Range place = call.at(n);
                int64_t alike = 1;
                // Away from borders, equal calls are equal work.
                if (is_inner(layer, place)) {
                    alike = call.count - n;
                    if (extent > 0)
                        alike = std::min(alike, (inner_[layer].end - place.end) / extent + 1);
                    const int64_t shift = place.begin - inner_[layer].begin;
                    place = {place.begin - shift, place.end - shift};
                }
                if (last_call == calls.end() || last_call->first != place)
                    last_call = calls.try_emplace(place, 0).first;
                last_call->second += count * alike;
                n += alike;
            }
            facts.brought = checked_add(facts.brought, checked_multiply(extent, times));
            facts.largest = std::max(facts.largest, extent);
            if (layer > 0)
                facts.taps = checked_add(
                    facts.taps, checked_multiply(count, taps_of(window(layer), call.all())));
        }
        facts.size += calls_of_scope;
        facts.most_calls = std::max(facts.most_calls, calls_of_scope);
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
            const int64_t repeats = alike(layer, call, part, tile);
            const int64_t count = checked_multiply(calls, repeats);
            begin += (repeats - 1) * tile;
            if (kind != Kind::between) {
                const Range need = window_of(w, part);
                scopes[{Call{need, 0}}] += count;
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
                if (!fresh.empty()) add(scope, fresh, scope.empty() ? 0 : 1);
                const int64_t alike = alike_between(w, {at, at + 1}, part.end - at);
                if (alike == 0) continue;
                add(scope, {frontier, frontier + w.stride}, 1, alike);
                frontier += alike * w.stride;
                at += alike;
            }
            step.held[0] =
                std::max(step.held[0], scope.back().all().end - scope.front().part.begin);
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
    IndexVector<int64_t, int> held(levels + 1);
    for (const auto& [calls, count] : entry.scopes) {
        Scope scope;
        struct Body {
            Range need;
            int64_t frontier = 0;  ///< when the body began
        };
        IndexVector<Body, int> bodies(levels + 1);  // in progress, by level
        int64_t frontier = 0;
        int fresh_level = 0;
        const auto read = [&](Range need, int level) {
            // Bodies from `level` inwards restart.
            for (int l = level; l <= levels; ++l) bodies[l] = {need, frontier};
            for (int l = 0; l <= levels; ++l) {
                Body& body = bodies[l];
                body.need = {std::min(body.need.begin, need.begin),
                             std::max(body.need.end, need.end)};
                held[l] =
                    std::max(held[l], std::max(body.frontier, body.need.end) - body.need.begin);
            }
            if (need.begin < frontier) step.overlaps = true;
            fresh_level = std::min(fresh_level, level);
            const Range fresh{std::max(need.begin, frontier), need.end};
            frontier = std::max(frontier, need.end);
            if (fresh.empty()) return;
            add(scope, fresh, fresh_level);
            fresh_level = levels + 1;
        };
        // After read() of `first`: passes over the neighbours that bring as much as the next one,
        // and returns their number. The last one that brings as much says what bodies hold.
        const auto pass = [&](Range first, int64_t neighbours, int level) -> int64_t {
            const int64_t alike = alike_between(w, first, neighbours);
            const bool is_new = fresh_level > levels && frontier == window_of(w, first).end;
            if (alike == 0 || !is_new) return 0;
            const int64_t brought = first.size() * w.stride;
            add(scope, {frontier, frontier + brought}, level, alike);
            frontier += alike * brought;
            return alike;
        };
        for (const Call& call : calls) {
            for (int64_t n = 0; n < call.count; ++n) {
                const Range part = call.at(n);
                if (kind == Kind::kept_below) {
                    read(window_of(w, part), call.level);
                    n += pass(part, call.count - n, call.level);
                    continue;
                }
                for (int64_t at = part.begin; at < part.end; ++at) {
                    read(window_of(w, {at, at + 1}), at == part.begin ? call.level : levels);
                    at += pass({at, at + 1}, part.end - at, levels);
                }
            }
        }
        scopes[std::move(scope)] += count;
    }
    step.held = held.values();
    return step;
}

AxisPatterns::InputStep AxisPatterns::input_step(Id id, Kind kind, int64_t tile) const {
    if (kind == Kind::above) tile = 1;  // one lifetime per coordinate
    const AxisWindow& w = window(1);
    const bool has_gaps = !w.transposed && w.span() < w.stride;
    InputStep step;
    for (const auto& [call, calls] : entry(1, id).calls) {
        for (int64_t begin = call.begin; begin < call.end; begin += tile) {
            const Range part{begin, std::min(begin + tile, call.end)};
            const int64_t repeats = alike(1, call, part, tile);
            const int64_t count = checked_multiply(calls, repeats);
            begin += (repeats - 1) * tile;
            const int64_t hull = window_of(w, part).size();
            int64_t brought = hull;
            step.whole = std::max(step.whole, hull);
            const bool touches_inner = !inner_[1].empty() && part.meets(inner_[1]);
            if (kind == Kind::between && !w.transposed && !has_gaps && touches_inner) {
                // Windows without gaps add up to the hull. The largest is one that no border clips.
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

int64_t AxisPatterns::next_input_tile(Id id, int64_t tile) const {
    const AxisWindow& w = window(1);
    const Range inner = inner_[1];
    // Transposed windows have no inner part.
    if (inner.empty() || w.is_sampled() || w.span() < w.stride) return tile + 1;
    int64_t next = std::numeric_limits<int64_t>::max();
    for (const auto& [call, calls] : entry(1, id).calls) {
        if (!call.meets(inner)) return tile + 1;
        const int64_t trips = ceil_div(call.size(), tile);
        if (trips == 1) continue;
        next = std::min(next, ceil_div(call.size(), trips - 1));
        // All tiles but the last one end inside.
        if (call.end > inner.end) next = std::min(next, (inner.end - call.begin) / (trips - 1) + 1);
        // The second tile of several is full and begins inside, or the first of two is as large as
        // the second one for `tile`, though the border clips it.
        const int64_t clipped = inner.begin - call.begin;
        const bool holds_most =
            trips > 2 ? tile + 1 >= clipped : tile + 1 - (call.size() - tile) >= clipped;
        if (clipped > 0 && !holds_most) return tile + 1;
    }
    return std::max(next, tile + 1);
}

const AxisPatterns::Step& AxisPatterns::step(int layer, Id id, Kind kind, int64_t tile) {
    Entry& entry = entries_[layer][static_cast<size_t>(id)];
    const bool tiled = kind == Kind::between || kind == Kind::below;
    const std::pair<Kind, int64_t> key{kind, tiled ? tile : 0};
    const auto known = entry.steps.find(key);
    if (known != entry.steps.end()) return known->second;
    Scopes scopes;
    const int64_t own_tile = tiled ? tile : 1;  // Kind::above has one lifetime per coordinate
    Step step = kind == Kind::kept_between || kind == Kind::kept_below
                    ? kept_step(layer, entry, kind, scopes)
                    : own_step(layer, entry, kind, own_tile, scopes);
    const int levels = static_cast<int>(step.held.size()) - 1;
    step.pattern = intern(layer - 1, scopes, levels);
    const size_t bytes = bytes_of_a_step + step.held.size() * sizeof(int64_t);
    bytes_ += bytes;
    bytes_of_all_calls_ += bytes;
    // intern() added patterns of other tensors only, so `entry` is still valid.
    return entry.steps.emplace(key, std::move(step)).first->second;
}

}  // namespace laminate::search
