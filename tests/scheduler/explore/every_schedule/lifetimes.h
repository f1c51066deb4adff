// Lifetimes of buffers along one axis, what they show of the loops, and the fold rule
// (docs/counting.md section 5).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "base/range.h"
#include "scheduler/schedule/problem.h"

namespace laminate::every {

/// Axes of loops: y, x, i, z.
enum Axis : uint8_t { rows = 0, columns = 1, inputs = 2, outputs = 3 };
constexpr size_t axis_count = 4;
[[nodiscard]] Axis axis_of(Dim d);

/// A piece of a tensor along one axis, asked for in the iteration of the loops between its levels
/// that `path` numbers.
struct Piece {
    std::vector<int> path;
    Range part;
    friend auto operator<=>(const Piece&, const Piece&) = default;
};
/// The new pieces in one lifetime of a buffer, in order.
using Lifetime = std::vector<Piece>;
/// How often each lifetime occurs. Along one axis, a nest knows nothing else of the nests after it.
using Pattern = std::map<Lifetime, int64_t>;
/// The same for channels, whose pieces are disjoint: the sizes of the pieces.
using ChannelPattern = std::map<std::vector<int64_t>, int64_t>;

/// What a lifetime shows of one body of one axis (docs/counting.md section 5).
struct Body {
    bool has_trips = false;  ///< more than one
    int64_t held = 0;
    bool overlaps = false;
    friend auto operator<=>(const Body&, const Body&) = default;
};
/// Bodies of one axis, the store level's first.
using Bodies = std::vector<Body>;
using BodiesOfLifetimes = std::vector<Bodies>;  // all different

[[nodiscard]] Bodies bodies_of(const Lifetime& needs);

/// The bodies of a loop over `length` different coordinates, inside the store level.
[[nodiscard]] Bodies plain_bodies(int64_t length);

/// Elements of a buffer over its `indexing` axes, by the fold rule. `walk`: the loops between its
/// levels, outermost first.
[[nodiscard]] int64_t fold(const std::vector<Axis>& walk,
                           const std::array<const BodiesOfLifetimes*, axis_count>& lifetimes,
                           const std::array<bool, axis_count>& indexing);

}  // namespace laminate::every
