#include "tests/scheduler/explore/every_schedule/patterns.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "base/units.h"

namespace laminate::every {

namespace {

/// Input coordinate of an output and a tap, which may lie on padding; nullopt if a transposed
/// convolution has no such tap.
std::optional<int64_t> tap_at(const AxisWindow& w, int64_t out, int64_t tap) {
    if (!w.transposed) return out * w.stride + tap * w.dilation - w.pad_begin;
    const int64_t scaled = out + w.pad_begin - tap * w.dilation;
    if (scaled % w.stride != 0) return std::nullopt;
    return scaled / w.stride;
}

}  // namespace

int64_t taps_of(const AxisWindow& w, int64_t out) {
    int64_t taps = 0;
    for (int64_t n = 0; n < w.kernel; ++n) taps += tap_at(w, out, n) ? 1 : 0;
    return taps;
}

State Patterns::whole_output() {
    const LayerProblem& p = problems_.back();
    return {{patterns_.number({{{{{}, {0, p[Dim::y]}}}, 1}}),
             patterns_.number({{{{{}, {0, p[Dim::x]}}}, 1}})},
            channel_patterns_.number({{{p[Dim::z]}, 1}}),
            {}};
}

Range Patterns::window(size_t k, size_t axis, Range out) const {
    const AxisWindow& w = problem(k).window[axis];
    Range hull;
    for (int64_t at = out.begin; at < out.end; ++at) {
        for (int64_t tap = 0; tap < w.kernel; ++tap) {
            if (const std::optional<int64_t> in = tap_at(w, at, tap)) hull.extend({*in, *in + 1});
        }
    }
    return hull.clipped_to(w.in);
}

std::vector<Lifetime> Patterns::needs_of(size_t k, size_t axis, const Lifetime& calls, Place place,
                                         int64_t tile) const {
    std::vector<Lifetime> lifetimes;
    Lifetime kept;
    for (const Piece& call : calls) {
        if (place == Place::kept_below) {
            kept.push_back({call.path, window(k, axis, call.part)});
            continue;
        }
        if (place == Place::kept_between) {
            for (int64_t out = call.part.begin; out < call.part.end; ++out) {
                kept.push_back({call.path, window(k, axis, {out, out + 1})});
                kept.back().path.push_back(static_cast<int>(out - call.part.begin));
            }
            continue;
        }
        for (int64_t begin = call.part.begin; begin < call.part.end; begin += tile) {
            const int64_t end = std::min(begin + tile, call.part.end);
            if (place == Place::below_compute)
                lifetimes.push_back({{{}, window(k, axis, {begin, end})}});
            Lifetime between;
            for (int64_t out = begin; out < end; ++out) {
                const Range need = window(k, axis, {out, out + 1});
                if (place == Place::above_store) lifetimes.push_back({{{}, need}});
                between.push_back({{static_cast<int>(out - begin)}, need});
            }
            if (place == Place::between) lifetimes.push_back(between);
        }
    }
    if (!kept.empty()) lifetimes.push_back(kept);
    return lifetimes;
}

const Patterns::Spatial& Patterns::spatial(size_t k, size_t axis, size_t pattern, Place place,
                                           int64_t tile) {
    const auto key = std::make_tuple(k, axis, pattern, place, tile);
    const auto known = spatial_.find(key);
    if (known != spatial_.end()) return known->second;
    Spatial result;
    Pattern asked;
    std::set<Bodies> lifetimes;
    for (const auto& [scope, times] : patterns_[pattern]) {
        for (const Lifetime& needs : needs_of(k, axis, scope, place, tile)) {
            lifetimes.insert(bodies_of(needs));
            Lifetime fresh;
            int64_t frontier = INT64_MIN;
            for (const Piece& piece : needs) {
                const Range part{std::max(piece.part.begin, frontier), piece.part.end};
                frontier = std::max(frontier, part.end);
                if (part.empty()) continue;
                fresh.push_back({piece.path, part});
                result.brought += part.size() * times;
            }
            asked[fresh] += times;
        }
    }
    result.pattern = patterns_.number(asked);
    result.lifetimes.assign(lifetimes.begin(), lifetimes.end());
    return spatial_.emplace(key, std::move(result)).first->second;
}

const Patterns::Tiling& Patterns::tiling(size_t pattern, int64_t tile) {
    const auto key = std::make_pair(pattern, tile);
    const auto known = tilings_.find(key);
    if (known != tilings_.end()) return known->second;
    Tiling result;
    std::set<Bodies> lifetimes;
    for (const auto& [scope, times] : patterns_[pattern]) {
        for (const Piece& call : scope) {
            const int64_t extent = call.part.size();
            result.tiles += ceil_div(extent, tile) * times;
            result.coordinates += extent * times;
            for (int64_t at = 0; at < extent; at += tile)
                lifetimes.insert(plain_bodies(std::min(tile, extent - at)));
        }
    }
    result.lifetimes.assign(lifetimes.begin(), lifetimes.end());
    return tilings_.emplace(key, std::move(result)).first->second;
}

const Patterns::Channels& Patterns::channels(size_t k, size_t pattern, const Shape& s,
                                             int64_t tile_z, int64_t tile_i) {
    const auto key = std::make_tuple(k, pattern, s.place[outputs], s.place[inputs], tile_z, tile_i);
    const auto known = channels_.find(key);
    if (known != channels_.end()) return known->second;
    const LayerProblem& p = problem(k);
    Channels result;
    std::set<Bodies> z_lifetimes;
    for (const auto& [scope, times] : channel_patterns_[pattern]) {
        if (s.is_kept) result.runs += times;
        for (const int64_t call : scope) {
            if (!s.is_kept)
                result.runs +=
                    times *
                    (s.place[outputs] == Place::above_store ? call : ceil_div(call, tile_z));
            for (int64_t at = 0; at < call; at += tile_z)
                z_lifetimes.insert(plain_bodies(std::min(tile_z, call - at)));
        }
    }
    ChannelPattern asked;
    std::set<Bodies> i_lifetimes;
    std::set<Bodies> weights_i_lifetimes;
    for (int64_t at = 0; at < p[Dim::i]; at += tile_i) {
        const int64_t length = std::min(tile_i, p[Dim::i] - at);
        weights_i_lifetimes.insert(plain_bodies(length));
        switch (s.place[inputs]) {
            case Place::above_store:
                asked[{1}] += length * result.runs;
                i_lifetimes.insert(Bodies{{false, 1, false}});
                break;
            case Place::between:
            case Place::kept_between:
                asked[std::vector<int64_t>(static_cast<size_t>(length), 1)] += result.runs;
                i_lifetimes.insert(plain_bodies(length));
                break;
            case Place::below_compute:
            case Place::kept_below:
                asked[{length}] += result.runs;
                i_lifetimes.insert(Bodies{{false, length, false}});
                break;
        }
    }
    result.asked = channel_patterns_.number(asked);
    result.of_z.assign(z_lifetimes.begin(), z_lifetimes.end());
    result.of_i.assign(i_lifetimes.begin(), i_lifetimes.end());
    result.of_weights_i.assign(weights_i_lifetimes.begin(), weights_i_lifetimes.end());
    return channels_.emplace(key, std::move(result)).first->second;
}

int64_t Patterns::taps(size_t k, size_t axis, size_t pattern) const {
    const AxisWindow& w = problem(k).window[axis];
    int64_t sum = 0;
    for (const auto& [scope, times] : patterns_[pattern]) {
        for (const Piece& call : scope) {
            for (int64_t out = call.part.begin; out < call.part.end; ++out)
                sum += times * taps_of(w, out);
        }
    }
    return sum;
}

int64_t Patterns::macs(size_t k, const State& state) {
    const auto key =
        std::make_pair(k, std::make_tuple(state.pattern[0], state.pattern[1], state.channels));
    const auto known = macs_.find(key);
    if (known != macs_.end()) return known->second;
    int64_t channels = 0;
    for (const auto& [scope, times] : channel_patterns_[state.channels])
        channels += times * std::accumulate(scope.begin(), scope.end(), int64_t{0});
    const int64_t macs =
        taps(k, 0, state.pattern[0]) * taps(k, 1, state.pattern[1]) * channels * problem(k)[Dim::i];
    macs_.emplace(key, macs);
    return macs;
}

Patterns::Tables Patterns::tables(const State& state) const {
    Tables t;
    t.state = &state;
    for (size_t axis = 0; axis < 2; ++axis) {
        for (const auto& [scope, times] : patterns_[state.pattern[axis]]) {
            t.scopes[axis] += times;
            for (const Piece& call : scope)
                t.largest[axis] = std::max(t.largest[axis], call.part.size());
        }
    }
    for (const auto& [scope, times] : channel_patterns_[state.channels]) {
        const int64_t all = std::accumulate(scope.begin(), scope.end(), int64_t{0});
        t.channels += times * all;
        t.most_in_a_scope = std::max(t.most_in_a_scope, all);
        for (const int64_t call : scope) t.largest_channels = std::max(t.largest_channels, call);
    }
    return t;
}

}  // namespace laminate::every
