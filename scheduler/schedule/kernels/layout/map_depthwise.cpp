#include "scheduler/schedule/kernels/layout/map_depthwise.h"

#include <algorithm>

#include "base/units.h"

namespace laminate {

namespace {

/// Rows of a tile: no more than the registers hold sums for, four if rows are long, and no smaller
/// tile at the end if possible; none at the end of a band.
int64_t rows_of_tile(int64_t extent, int64_t band, int64_t runs, const VectorUnit& unit) {
    constexpr int64_t most_vectors = 16, fewest_rows = 4;
    int64_t rows =
        std::min({unit.accumulators * 2 / 3, std::max(fewest_rows, most_vectors / runs), extent});
    if (band == 0) return ceil_div(extent, ceil_div(extent, rows));
    while (band % rows != 0) --rows;
    return rows;
}

/// Sets the runs that share their code: neighbours of full vectors that read no padding.
void choose_loop(MapDepthwiseLayout& at, int64_t lanes) {
    constexpr int64_t worth_a_loop = 3;
    const AxisWindow& w = at.x;
    const auto reads_inside = [&](const VectorRun& run) {
        const int64_t column = run.first * w.stride - w.pad_begin;
        return column >= 0 && column + w.span() - 1 + run.lanes * w.stride <= w.in;
    };
    const auto run = [&](int64_t n) { return at.runs[static_cast<size_t>(n)]; };
    const auto count = std::ssize(at.runs);
    int64_t begin = 0;
    while (begin < count && !reads_inside(run(begin))) ++begin;
    int64_t end = begin;
    const auto is_next = [&](const VectorRun& next) {  // a last run of half the lanes is not
        return next.first == run(begin).first + (end - begin) * lanes && next.lanes == lanes &&
               next.is_whole();
    };
    while (end < count && reads_inside(run(end)) && is_next(run(end))) ++end;
    end -= (end - begin) % at.runs_together;
    at.loop_begin = begin;
    at.loop_end = end - begin < worth_a_loop * at.runs_together ? begin : end;
}

/// Taps of a row that find an element for some lane of a run.
int64_t taps_there(const AxisWindow& w, const VectorRun& run) {
    int64_t taps = 0;
    for (int64_t m = 0; m < w.kernel; ++m) {
        const int64_t column = run.first * w.stride + m * w.dilation - w.pad_begin;
        const int64_t begin = std::max<int64_t>(0, -column);
        taps += begin < std::min(run.lanes * w.stride, w.in - column) ? 1 : 0;
    }
    return taps;
}

}  // namespace

MapDepthwiseLayout::Rows MapDepthwiseLayout::rows_of(int64_t tile) const {
    const int64_t first = tile * tile_rows;
    const int64_t count = std::min(tile_rows, y.out - first);
    const int64_t top = first * y.stride - y.pad_begin;
    return {count, std::max<int64_t>(0, -top),
            std::min((count - 1) * y.stride + y.span(), y.in - top)};
}

int64_t MapDepthwiseLayout::stored_elements() const {
    int64_t of_row = 0;
    for (const VectorRun& run : runs)
        of_row += run.is_stored_as_halves() ? run.lanes : run.end - run.begin;
    return channels * y.out * of_row;
}

int64_t MapDepthwiseLayout::multiplications() const {
    int64_t rows = 0;  // of the input, once for each output row that reads one
    for (int64_t out = 0; out < y.out; ++out) {
        for (int64_t n = 0; n < y.kernel; ++n) rows += y.input(out, n) ? 1 : 0;
    }
    int64_t of_row = 0;
    for (const VectorRun& run : runs) of_row += run.lanes * taps_there(x, run);
    return channels * rows * of_row;
}

MapDepthwiseLayout map_depthwise_layout(const LayerProblem& p, const VectorUnit& unit,
                                        int64_t band) {
    MapDepthwiseLayout at;
    at.channels = p[Dim::z];
    at.y = p.y();
    at.x = p.x();
    at.runs = overlapping_runs(p[Dim::x], unit);
    at.tile_rows = rows_of_tile(p[Dim::y], band, std::ssize(at.runs), unit);
    constexpr int64_t pair = 2;
    if (!at.keeps_weights() && pair * at.tile_rows <= unit.accumulators)
        at.runs_together = std::min<int64_t>(std::ssize(at.runs), pair);
    choose_loop(at, unit.lanes);
    at.tiles = ceil_div(p[Dim::y], at.tile_rows);
    const auto is_inner = [&](int64_t tile) {
        const int64_t first = tile * at.tile_rows, end = first + at.tile_rows;
        const int64_t last = (end - 1) * at.y.stride - at.y.pad_begin + at.y.span() - 1;
        return first * at.y.stride >= at.y.pad_begin && last < at.y.in && end <= p[Dim::y];
    };
    while (at.inner_begin < at.tiles && !is_inner(at.inner_begin)) ++at.inner_begin;
    at.inner_end = at.inner_begin;
    while (at.inner_end < at.tiles && is_inner(at.inner_end)) ++at.inner_end;
    // What a channel of a small map is read from is one run of memory, and no line of it is another
    // thread's.
    at.divides_rows =
        threads_divide_pixels(at.y.in * at.x.in) && at.tiles >= map_parts_wanted / 2;
    at.parts = std::min(at.divides_rows ? at.tiles : p[Dim::z], map_parts_wanted);
    return at;
}

}  // namespace laminate
