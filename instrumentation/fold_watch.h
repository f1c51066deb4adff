// The size of a buffer, from watching what its bodies need: the fold rule of docs/counting.md
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
/// (inclusive) it notes what each body was seen to need, how many trips needed anything, whether a
/// trip needed a coordinate that an earlier one had needed, and what was held at once; at the end
/// of each lifetime it applies the fold rule to that.
class FoldWatch {
public:
    struct Loop {
        const int64_t* body;              ///< counts the bodies of the loop that were begun
        std::optional<size_t> dimension;  ///< of the box that the loop indexes
    };
    /// Loops outermost first; the last one is the loop of the compute level. None when that is the
    /// store level.
    explicit FoldWatch(std::vector<Loop> loops = {});

    /// The present body of the compute level needs `box`; once for each body that needs anything.
    void see(const Box& box);
    void end_lifetime();

    /// The largest extents of all lifetimes that have ended.
    [[nodiscard]] const Extents& extents() const { return largest_; }

private:
    struct Seen {
        Loop loop;
        int64_t body = 0;      ///< the one that `needed` is of
        BoundingBox needed;    ///< by that body, so far
        int64_t trips = 0;     ///< of the present execution of the loop: those that needed anything
        bool several = false;  ///< some execution in this lifetime had more than one such trip
        size_t runs_begin = 0;  ///< the runs that end at this loop
        size_t runs_end = 0;
    };
    /// Loops `first` to `last` index the same dimension; where all between them have single trips
    /// they act as one loop, whose bodies are those of `last`.
    struct Run {
        size_t first = 0;
        std::vector<Interval> needed;  ///< by earlier trips of the present execution of `first`
        int64_t end = 0;               ///< of all of them
        bool shares = false;           ///< a trip needed what an earlier one had needed
        int64_t held = 0;  ///< the longest stretch from the begin of a trip's need to `end`
        void see(const Interval& trip);
    };

    /// The bodies of loops `first` and inside it are over.
    void end_bodies(size_t first);
    [[nodiscard]] std::array<int64_t, 3> folded() const;

    std::vector<Seen> loops_;
    std::vector<Run> runs_;
    BoundingBox lifetime_;
    Extents largest_{0, 0, 0};
};

}  // namespace laminate::walking
