// Trips of a loop that do what the trip before did, further on. Along rows and columns loops soon run
// steadily: away from the borders a trip needs, brings and holds the same as the one before, moved by
// as much as the loop advances. Where transposed layers give each output in turn other taps, this holds
// of as many trips as their strides need together, a *period*. Repeating it at once makes the time of
// counting a matter of layers, not of the size of maps.
#pragma once

#include <cstdint>
#include <vector>

#include "base/indexed.h"
#include "base/range.h"
#include "scheduler/counts/two_level/axis.h"
#include "scheduler/counts/two_level/axis_state.h"

namespace laminate::two_level {

class SteadyTrips {
public:
    /// `state` before anything has run. Both outlive this and stay where they are.
    SteadyTrips(const AxisProblem& problem, AxisState& state);

private:
    using Track = AxisState::Track;

    /// What the body of a loop changes outside itself.
    struct Body {
        bool is_known = false;
        bool may_repeat = false;
        int64_t period = 1;  ///< trips after which the same is done, further on
        struct Place {
            int64_t* at;
            int64_t shift;  ///< from one period to the next
        };
        struct Hull {
            Range* range;
            int64_t shift;
            bool is_of_a_trip;  ///< otherwise it began before the loop, so its begin may stay
        };
        std::vector<Place> frontiers;
        std::vector<Hull> hulls;
        std::vector<int64_t*> sums;
        std::vector<Track*> tracks;  ///< of the trip and of the bodies inside it
        /// What all of these were a period ago and are now, in the execution in progress.
        std::vector<int64_t> before, now;
        void take_numbers();
    };

public:
    /// One execution of a loop of a nest.
    class Execution {
    public:
        /// `node`: the loop's body; each trip covers `step` of `part`.
        Execution(SteadyTrips& trips, int64_t nest, size_t node, Range part, int64_t step);

        /// The trip that began at `begin` has ended. If the next ones do the same as those of the last
        /// period, makes their changes of the state, and returns how many they are.
        int64_t repeat(int64_t begin);

    private:
        [[nodiscard]] bool is_steady() const;
        void advance(int64_t periods);

        const AxisState& state_;
        Body* body_ = nullptr;  ///< none: trips are not repeated
        int64_t step_;
        Range within_;                  ///< where trips touch no border
        int attempts_ = 16;             ///< most loops are steady after a few periods, or never
        int64_t trips_to_look_ = 1;     ///< until the end of a period
        bool has_before_ = false;       ///< whether Body::before is of this execution
        int64_t lifetimes_before_ = 0;  ///< AxisState::lifetime_changes then
    };

private:
    Body& body_of(int64_t nest, size_t node, int64_t step);
    [[nodiscard]] bool runs_inside(size_t node, size_t body) const;
    /// Sets how far trips that advance by `advance` move the calls of each nest and what they need of
    /// each array, for those that run inside it. Returns 1; 0 if something may do more than move; or
    /// by what `advance` must be multiplied, because a transposed layer reads the same only so often.
    int64_t find_shifts(int64_t nest, size_t node, int64_t advance,
                        IndexVector<int64_t, int64_t>& shifts,
                        std::vector<int64_t>& of_arrays) const;

    const AxisProblem& problem_;
    AxisState& state_;
    IndexVector<Range, int64_t> inner_;  ///< by nest: coordinates of its output below which no layer
                                         ///< meets a border
    std::vector<Body> bodies_;           ///< by node
};

}  // namespace laminate::two_level
