// Chains of convolutions by minimal filtering along columns (minimal_filter.h), row by row: for
// kernels and channels whose products are too few to pay for Winograd's filtering along both axes
// (winograd.h), and for large kernels and transposed convolutions of few outputs.
//
// A tile is four columns, whose first is a multiple of four of the whole picture; a vector is a run
// of tiles. A row of a tensor lies in planes, plane q with columns q, q + 4, q + 8, ...: what tile
// t's patch reads of column 4 t + c is then element t (or a neighbour) of one plane, and nothing is
// ever shuffled between the first and the last layer of a group. A finished row goes to its reader
// as the reader wants it:
//   1x1             the planes as they are
//   gathered        transformed, V[row][frequency][channel][tile]: a row is transformed once; an
//   output row sums over its window of them,
//                   M[channel][frequency][tile], and is transformed back
//   scattered       the same V of a block of tiles, added to the sums of all output rows that read
//   it, M[output row][channel and phase][frequency][tile]: for last layers of one or
//                   a few output channels, whose lines need not be kept at all. Rows come in order,
//                   so the sums are always taken in the same one.
// Wider kernels than five columns are filters of four and a last one of up to five, whose patches
// are neighbouring tiles'; a transposed convolution is one filter for each phase of its columns.
//
// Tiles, and the columns that each layer computes for them, do not depend on how strips cut the
// picture, and every sum is taken in the order of rows and channels: any strips give the same bits.
// Strips of columns compute up to four columns more of each layer on either side than the
// schedule's halos.
//
// Error: less than 4e-6 of the largest output in the tests.
#pragma once

#include <optional>

#include "generators/group_code.h"
#include "generators/kernels/optimised.h"

namespace laminate {

/// None unless the chain suits (suits_column_tiles, scheduler/explore/planner/column_chain.h) and
/// the schedule goes over it in whole rows of all channels, kept for the innermost strip.
[[nodiscard]] std::optional<GroupCode> column_tiles_code(const Network& network,
                                                         const GroupSchedule& group,
                                                         const VectorUnit& unit);

}  // namespace laminate
