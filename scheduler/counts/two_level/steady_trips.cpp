#include "scheduler/counts/two_level/steady_trips.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace laminate::two_level {

namespace {

using Reader = AxisState::Reader;

constexpr int64_t unknown = INT64_MIN;
/// Fewer periods are not worth a look.
constexpr int64_t fewest_periods = 4;
/// Trips of longer periods are not repeated. Strides are 2 to 4.
constexpr int64_t longest_period = 16;

/// How many times an output of the nest must move by `shift` until it reads the same, further on.
int64_t times_of(const AxisNest& nest, int64_t shift) {
    const AxisWindow& w = nest.window;
    return w.transposed ? w.stride / std::gcd(shift, w.stride) : 1;
}

/// How far what the nest reads moves with its output, which times_of() allows.
int64_t shift_of_input(const AxisNest& nest, int64_t shift) {
    const AxisWindow& w = nest.window;
    return w.transposed ? shift / w.stride : shift * w.stride;
}

}  // namespace

SteadyTrips::SteadyTrips(const AxisProblem& problem, AxisState& state)
    : problem_(problem), state_(state), inner_(problem.nests.size()),
      bodies_(state.nodes.size()) {
    for (int64_t k = 0; k < std::ssize(problem.nests); ++k) {
        const AxisNest& nest = problem.nests[static_cast<size_t>(k)];
        const AxisWindow& w = nest.window;
        if (nest.role != Role::spatial || w.is_sampled()) continue;
        Range read{0, w.in};
        for (const AxisArray& array : problem.arrays) {
            if (array.producer < 0) continue;
            for (const AxisReader& reader : array.readers) {
                if (reader.nest != k) continue;
                const Range& own = inner_[array.producer];
                read = {std::max(read.begin, own.begin), std::min(read.end, own.end)};
            }
        }
        if (w.transposed) {
            if (read.empty()) continue;
            inner_[k] = {
                std::max<int64_t>(0, read.begin * w.stride - w.pad_begin + w.span() - w.stride),
                std::min(nest.extent, read.end * w.stride - w.pad_begin)};
            continue;
        }
        if (read.size() < w.span()) continue;
        inner_[k] = {std::max<int64_t>(0, ceil_div(read.begin + w.pad_begin, w.stride)),
                     std::min(nest.extent, (read.end + w.pad_begin - w.span()) / w.stride + 1)};
    }
}

bool SteadyTrips::runs_inside(size_t node, size_t body) const {
    while (node != body) {
        const size_t parent = state_.nodes[node].parent;
        if (parent == node) return false;
        node = parent;
    }
    return true;
}

int64_t SteadyTrips::find_shifts(int64_t nest, size_t node, int64_t advance,
                                 IndexVector<int64_t, int64_t>& shifts,
                                 std::vector<int64_t>& of_arrays) const {
    const auto nest_at = [&](int64_t k) -> const AxisNest& {
        return problem_.nests[static_cast<size_t>(k)];
    };
    shifts[nest] = advance;
    int64_t times = times_of(nest_at(nest), advance);
    // Consumers first: arrays come by producer, weights last.
    for (size_t b = problem_.arrays.size(); b-- > 0 && times == 1;) {
        const AxisArray& array = problem_.arrays[b];
        if (!runs_inside(state_.node_of(array.placement.compute), node)) continue;
        if (array.whole > 0) return 0;
        for (const AxisReader& reader : array.readers) {
            if (inner_[reader.nest].empty() || reader.is_repeated) return 0;
            // Every row and column reads the same weights, so they stay where they are.
            if (array.is_weights) {
                of_arrays[b] = 0;
                continue;
            }
            if (shifts[reader.nest] == unknown) return 0;
            const int64_t shift = shift_of_input(nest_at(reader.nest), shifts[reader.nest]);
            if (of_arrays[b] != unknown && of_arrays[b] != shift) return 0;
            of_arrays[b] = shift;
        }
        if (array.producer < 0) continue;
        shifts[array.producer] = of_arrays[b];
        times = times_of(nest_at(array.producer), of_arrays[b]);
    }
    return times;
}

SteadyTrips::Body& SteadyTrips::body_of(int64_t nest, size_t node, int64_t step) {
    Body& body = bodies_[node];
    if (body.is_known) return body;
    body.is_known = true;
    if (inner_[nest].empty()) return body;
    IndexVector<int64_t, int64_t> shifts(problem_.nests.size());
    std::vector<int64_t> of_arrays(problem_.arrays.size());
    int64_t times = 1;
    do {
        body.period *= times;
        if (body.period > longest_period) return body;
        std::ranges::fill(shifts, unknown);
        std::ranges::fill(of_arrays, unknown);
        times = find_shifts(nest, node, step * body.period, shifts, of_arrays);
    } while (times > 1);
    body.may_repeat = times == 1;
    if (!body.may_repeat) return body;
    for (size_t b = 0; b < state_.buffers.size(); ++b) {
        AxisState::Buffer& buffer = state_.buffers[b];
        const bool is_computed_inside = of_arrays[b] != unknown;
        for (Reader& reader : state_.readers_of(buffer)) {
            if (!reader.inside && shifts[reader.reader.nest] != unknown &&
                reader.reader.nest != nest)
                body.hulls.push_back(
                    {&reader.calls, shifts[reader.reader.nest], is_computed_inside});
        }
        if (!is_computed_inside) continue;
        body.frontiers.push_back({&buffer.frontier, of_arrays[b]});
        body.sums.insert(body.sums.end(), {&buffer.brought, &buffer.taps});
        for (Track& track : buffer.tracks) {
            const bool is_inside = runs_inside(track.node, node);
            body.hulls.push_back({&track.need, of_arrays[b], is_inside});
            if (!is_inside) continue;
            body.frontiers.push_back({&track.frontier, of_arrays[b]});
            body.tracks.push_back(&track);
        }
    }
    return body;
}

void SteadyTrips::Body::take_numbers() {
    now.resize(frontiers.size() + 2 * hulls.size() + 4 * tracks.size() + sums.size());
    int64_t* next = now.data();
    for (const Place& place : frontiers) *next++ = *place.at;
    for (const Hull& hull : hulls) {
        *next++ = hull.range->begin;
        *next++ = hull.range->end;
    }
    for (const Track* track : tracks) {
        const AxisBody& seen = track->seen;
        *next++ = seen.held;
        *next++ = seen.overlaps ? 1 : 0;
        *next++ = seen.trips;
        *next++ = track->trips;
    }
    for (const int64_t* sum : sums) *next++ = *sum;
}

SteadyTrips::Execution::Execution(SteadyTrips& trips, int64_t nest, size_t node, Range part,
                                  int64_t step)
    : state_(trips.state_), step_(step) {
    const Range& inner = trips.inner_[nest];
    within_ = {std::max(part.begin, inner.begin), std::min(part.end, inner.end)};
    if (within_.size() < (fewest_periods + 2) * step) return;
    Body& body = trips.body_of(nest, node, step);
    if (body.may_repeat) body_ = &body;
}

int64_t SteadyTrips::Execution::repeat(int64_t begin) {
    if (body_ == nullptr || attempts_ == 0 || begin < within_.begin) return 0;
    if (--trips_to_look_ > 0) return 0;
    trips_to_look_ = body_->period;
    const int64_t periods = ((within_.end - begin) / step_ - 1) / body_->period;
    if (periods < fewest_periods) return 0;
    body_->take_numbers();
    if (has_before_ && lifetimes_before_ == state_.lifetime_changes && is_steady()) {
        attempts_ = 0;
        advance(periods);
        return periods * body_->period;
    }
    --attempts_;
    std::swap(body_->before, body_->now);
    has_before_ = true;
    lifetimes_before_ = state_.lifetime_changes;
    return 0;
}

bool SteadyTrips::Execution::is_steady() const {
    auto a = body_->before.cbegin();
    auto b = body_->now.cbegin();
    for (const Body::Place& place : body_->frontiers) {
        if (*a++ + place.shift != *b++) return false;
    }
    for (const Body::Hull& hull : body_->hulls) {
        const Range then{a[0], a[1]}, here{b[0], b[1]};
        a += 2;
        b += 2;
        if (then.empty() != here.empty()) return false;
        if (then.empty()) continue;
        const bool has_moved = then.begin + hull.shift == here.begin;
        const bool may_stay = !hull.is_of_a_trip && then.begin == here.begin;
        if ((!has_moved && !may_stay) || then.end + hull.shift != here.end) return false;
    }
    for (size_t n = 0; n < body_->tracks.size(); ++n, a += 4, b += 4) {
        if (!std::equal(a, a + 2, b)) return false;
        // Bodies of the loop are numbered, and so are those of calls within a lifetime.
        const int64_t seen = b[2] - a[2], trips = b[3] - a[3];
        if (seen != 0 && seen != trips) return false;
    }
    return true;
}

void SteadyTrips::Execution::advance(int64_t periods) {
    auto a = body_->before.cbegin();
    auto b = body_->now.cbegin();
    const auto moved = [&] {
        const int64_t change = *b++ - *a++;
        return checked_multiply(periods, change);
    };
    for (const Body::Place& place : body_->frontiers) *place.at += moved();
    for (const Body::Hull& hull : body_->hulls) {
        // What is empty stays so.
        const int64_t begin = moved(), end = moved();
        if (hull.range->empty()) continue;
        hull.range->begin += begin;
        hull.range->end += end;
    }
    for (Track* track : body_->tracks) {
        a += 3;
        b += 3;
        if (const int64_t more = moved(); more > 0) {
            track->trips += more;
            track->seen.trips = std::max(track->seen.trips, track->trips);
        }
    }
    for (int64_t* sum : body_->sums) *sum = checked_add(*sum, moved());
}

}  // namespace laminate::two_level
