// A segment: neighbouring layers that make one map in strips of rows, each strip column by column.
//
// Only the last layer's map, the segment's output, is read outside. The others exist in windows: of
// each, the columns that are still to be read, and the rows that the strip needs. Rows that the
// next strip needs too are computed again; columns never are.
//
//   strip u of t rows    rows [u t, u t + t) of the output
//   rows of a map        hull of what its readers need for theirs, clipped at the border
//   columns of a map     with one reader, the reader's window; with several, from the first column
//                        that one of them still needs to the last that another one needs already
//
// A segment whose last layer has Intake::sums cuts that layer's input into strips instead, and
// holds one column of it.
#pragma once

#include <cstdint>
#include <vector>

#include "papers/patch_fusion/patch_graph.h"

namespace laminate::patch_fusion {

struct Segment {
    int first = 0;     ///< layer
    int last = 0;      ///< layer, included
    int64_t rows = 1;  ///< of a strip; the last strip may have fewer
    friend bool operator==(const Segment&, const Segment&) = default;
};

struct SegmentCost {
    int64_t window_bytes = 0;
    int64_t macs = 0;
    /// By strip, the rows of the map before the segment, first - 1, that it reads. Empty where that
    /// map is not read.
    std::vector<Range> rows_before;
};

/// Whether these layers can be one segment.
[[nodiscard]] bool is_segment(const PatchGraph& graph, int first, int last);
/// Rows that strips of the segment are cut from: those of its output, or of what is summed up.
[[nodiscard]] int64_t strip_extent(const PatchGraph& graph, int last);
/// Columns of a map that a strip holds at once, and that it makes in all.
struct Columns {
    int64_t held = 0;
    int64_t made = 0;
};
/// Of each map of a segment of these layers; the last's is held elsewhere.
[[nodiscard]] std::vector<Columns> segment_columns(const PatchGraph& graph, int first, int last);
/// `columns`: segment_columns() of the same layers.
[[nodiscard]] SegmentCost segment_cost(const PatchGraph& graph, const Segment& segment,
                                       const std::vector<Columns>& columns);

}  // namespace laminate::patch_fusion
