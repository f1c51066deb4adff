// Finds the size of a buffer by watching the needs of its bodies: the fold rule of docs/counting.md
// section 5.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "instrumentation/boxes.h"

namespace laminate::walking {

/// Watches one buffer. For each loop between its store level (exclusive) and its compute level
/// (inclusive) it records what each body needs, how many trips need anything, whether a trip needs
/// a coordinate that an earlier one needed, and how much is held at once. At the end of each
/// lifetime it applies the fold rule to these records.
class FoldWatch {
public:
    struct Loop {
        const int64_t* body;              ///< number of bodies of the loop begun so far
        std::optional<size_t> dimension;  ///< dimension of the box that the loop indexes
    };
    /// Loops come outermost first; the last one is the loop of the compute level. There are none if
    /// that is the store level.
    explicit FoldWatch(std::vector<Loop> loops = {});

    /// The present body of the compute level needs `box`. Called once for each body that needs
    /// anything.
    void see(const Box& box);
    void end_lifetime();

    /// The largest extents of all lifetimes that have ended.
    [[nodiscard]] const Extents& extents() const { return largest_; }

private:
    struct Seen {
        Loop loop;
        int64_t body = 0;       ///< the body that `needed` belongs to
        BoundingBox needed;     ///< needed by that body so far
        int64_t trips = 0;      ///< trips of the present execution that needed anything
        bool several = false;   ///< whether some execution in this lifetime had several such trips
        size_t runs_begin = 0;  ///< first of the runs that end at this loop
        size_t runs_end = 0;
    };
    /// Loops `first` to `last` that index the same dimension. If all loops between them have single
    /// trips, they act as one loop with the bodies of `last`.
    struct Run {
        size_t first = 0;
        std::vector<Range> needed;  ///< by earlier trips of the present execution of `first`
        int64_t end = 0;            ///< of all of them
        bool shares = false;        ///< whether a trip needed what an earlier one had needed
        int64_t held = 0;  ///< the longest stretch from the begin of a trip's need to `end`
        void see(const Range& trip);
    };

    /// Ends the bodies of loop `first` and of the loops inside it.
    void end_bodies(size_t first);
    [[nodiscard]] std::array<int64_t, 3> folded() const;

    std::vector<Seen> loops_;
    std::vector<Run> runs_;
    BoundingBox lifetime_;
    Extents largest_{0, 0, 0};
};

}  // namespace laminate::walking
