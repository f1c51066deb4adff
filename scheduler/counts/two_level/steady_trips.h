// Trips of a loop that do what the trip before did, further on. Along rows and columns loops soon run
// steadily: away from the borders a trip needs, brings and holds the same as the one before, moved by
// as much as the loop advances. Repeating it at once makes the time of counting a matter of layers, not
// of the size of maps.
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
        struct Place {
            int64_t* at;
            int64_t shift;  ///< from one trip to the next
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
    };

public:
    /// One execution of a loop of a nest.
    class Execution {
    public:
        /// `node`: the loop's body; each trip covers `step` of `part`.
        Execution(SteadyTrips& trips, int64_t nest, size_t node, Range part, int64_t step);

        /// The trip that began at `begin` has ended. If the next ones do the same, makes their changes
        /// of the state, and returns how many they are.
        int64_t repeat(int64_t begin);

    private:
        [[nodiscard]] std::vector<int64_t> numbers() const;
        [[nodiscard]] bool is_steady(const std::vector<int64_t>& now) const;
        void advance(int64_t trips, const std::vector<int64_t>& now);

        const AxisState& state_;
        const Body* body_ = nullptr;  ///< none: trips are not repeated
        int64_t step_;
        Range within_;                  ///< where trips touch no border
        int attempts_ = 16;             ///< most loops are steady after a few trips, or never
        std::vector<int64_t> before_;   ///< numbers() after the trip before; empty at first
        int64_t lifetimes_before_ = 0;  ///< AxisState::lifetime_changes then
    };

private:
    const Body& body_of(int64_t nest, size_t node, int64_t step);
    [[nodiscard]] bool runs_inside(size_t node, size_t body) const;
    /// Sets how far a trip moves the calls of each nest and what it needs of each array, for those that
    /// run inside it. Returns false if something may do more than move.
    bool find_shifts(int64_t nest, size_t node, int64_t step,
                     IndexVector<int64_t, int64_t>& shifts,
                     std::vector<int64_t>& of_arrays) const;

    const AxisProblem& problem_;
    AxisState& state_;
    IndexVector<Range, int64_t> inner_;  ///< by nest: coordinates of its output below which no layer
                                         ///< meets a border
    std::vector<Body> bodies_;           ///< by node
};

}  // namespace laminate::two_level
