// Which elements a buffer holds in its current lifetime (docs/counting.md section 4, rules 1, 2 and
// 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "instrumentation/boxes.h"

namespace laminate::walking {

/// A set of elements of one tensor, which starts empty and grows by boxes. Loops run forward, so a
/// new box closes the gaps that the loops have passed: in each of its channels, everything before
/// its last row and last column (from the first row of the lifetime on) is present from then on and
/// will not be brought in again. So one number per channel and row suffices: the column before
/// which everything is present. It does not grow from a row to the next.
class Presence {
public:
    explicit Presence(const Extents& extents);

    [[nodiscard]] const Extents& extents() const { return extents_; }

    /// Makes the buffer empty.
    void begin_lifetime();

    /// The bounding box of everything brought in during this lifetime.
    [[nodiscard]] const BoundingBox& reached() const { return state_.reached; }

    struct Missing {
        int64_t count = 0;
        Box box;  ///< bounding box
    };
    /// The elements of `needed` that are not present.
    [[nodiscard]] Missing missing(const Box& needed) const;

    /// Makes `needed` present, with the gaps before it. Throws std::logic_error if it begins before
    /// the first need of the lifetime: then loops do not run forward, on which this class relies.
    void bring_in(const Box& needed);

    /// Rehearsals may be nested. rewind() restores the state at the last begin_rehearsal().
    void begin_rehearsal();
    void rewind();

private:
    struct Row {
        int64_t lifetime = 0;  ///< lifetime in which `end` was set, numbered from 1
        int64_t end = 0;       ///< everything before this column is present
    };
    struct State {
        int64_t lifetime = 0;
        BoundingBox reached;
        Box last;  ///< brought in last: loops inside often need the same again and again
    };
    struct Undo {
        size_t row;
        Row before;
    };
    struct Rehearsal {
        size_t undo;
        State before;
    };

    Extents extents_;
    std::vector<Row> rows_;  ///< by channel, row
    State state_;
    int64_t lifetimes_ = 0;  ///< numbers handed out
    std::vector<Undo> undo_;
    std::vector<Rehearsal> rehearsals_;
};

}  // namespace laminate::walking
