// Chains of convolutions by minimal filtering along columns (minimal_filter.h), row by row: for
// kernels and channels whose products are too few to pay for Winograd's filtering along both axes
// (winograd.h), and for large kernels and transposed convolutions of few outputs.
//
// Along a row, four outputs of a filter g of 3 or 5 taps come from a patch d of 6 or 8 inputs by
// y = A^T ((G g) * (B^T d)); sums over kernel rows n, input channels i and pieces of the filter are
// taken in the frequency domain q, for all output channels z and tiles t of four columns:
//
//     M[z][q][t] = sum over n, i, piece of (G g)[z][n][i][piece][q] * (B^T d)[n][i][q][t + piece]
//     Y[z][4 t + c] = f(b[z] + (A^T M[z][.][t])[c])
//
// A vector is a run of tiles, whose first column is a multiple of four of the whole picture. A row
// of a tensor lies in planes, plane q with columns q, q + 4, q + 8, ...: what tile t's patch reads
// of column 4 t + c is then element t (or a neighbour) of one plane, and nothing is shuffled
// between the first and the last layer of a group. A finished row goes to its reader as the reader
// wants it:
//
// - plain, for 1x1 filters: the planes as they are.
// - gathered: V[row][frequency][channel][tile]. Each row is transformed once; an output row sums
//   over its window of rows, M[channel][frequency][tile], and is transformed back.
// - scattered: the same V of a block of tiles, added to the sums of all output rows that read it,
//   M[output row][channel and phase][frequency][tile]. This is for last layers of one or a few
//   output channels, whose input lines need not be kept at all. Rows come in order, so the sums are
//   always taken in the same one.
//
// Filters wider than five columns are divided into pieces of four and a last one of up to five,
// whose patches are those of neighbouring tiles; a transposed convolution is one filter for each
// phase of its columns.
//
// Tiles, and the columns that each layer computes for them, do not depend on how strips cut the
// picture, and every sum is taken in the order of rows and channels: any strips give the same bits.
// Strips of columns compute up to four columns more of each layer on either side than the
// schedule's halos.
//
// Error: less than 4e-6 of the largest output in the tests.
//
// Files: layout/columns.h (lines, tiles, scratch), columns_code.h (names and constants),
// columns_rows.h (rows for their readers), columns_gathered.h and columns_scattered.h (sums).
#pragma once

#include "generators/group_code.h"
#include "generators/lowering/events.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// Every nest of the group has the kernel `columns`.
/// `open`: for code of any size.
[[nodiscard]] GroupCode columns_code(const Network& network, const GroupSchedule& group,
                                     Events events, const TensorSizes* open = nullptr);

}  // namespace laminate
