// Tiles of map_depthwise: some rows x a vector of columns of one channel.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapDepthwiseLayout {
    int64_t channels = 1;
    AxisWindow y;
    AxisWindow x;

    /// Of a row. The code of runs loop_begin .. loop_end - 1, which read no padding, is a loop; the
    /// other runs are written out.
    std::vector<VectorRun> runs{};
    int64_t loop_begin = 0, loop_end = 0;
    /// Weights of more taps do not stay in registers.
    static constexpr int64_t taps_in_registers = 9;
    [[nodiscard]] bool keeps_weights() const { return y.kernel * x.kernel <= taps_in_registers; }
    /// Neighbouring runs that are summed at once, so that a weight is loaded once for both: two if weights do
    /// not stay in registers and the sums of both do. The loop has whole pairs.
    int64_t runs_together = 1;

    /// Rows of a whole tile, and the number of tiles. Tiles inner_begin .. inner_end - 1 are whole,
    /// read no padding and share their code; the other tiles are written out.
    int64_t tile_rows = 1;
    int64_t tiles = 1;
    int64_t inner_begin = 0, inner_end = 0;

    // Parts for threads: runs of channels, or of tiles of all channels.
    int64_t parts = 1;
    bool divides_rows = false;

    /// A tile of output rows. Of the input rows that their windows reach, counted from the first,
    /// rows input_begin .. input_end - 1 exist; the others are padding and left out.
    struct Rows {
        int64_t count = 1;
        int64_t input_begin = 0, input_end = 1;
    };
    [[nodiscard]] Rows rows_of(int64_t tile) const;

    /// Elements of the output that are stored, those that two runs or two
    /// halves of a run share twice.
    [[nodiscard]] int64_t stored_elements() const;
    [[nodiscard]] int64_t scratch_elements() const { return 0; }
    /// Products of the whole layer, for each lane. Counts lanes behind the end of a row, columns
    /// that two runs share, and padding columns. Does not count padding rows, nor a tap that finds
    /// nothing but padding for a whole vector.
    [[nodiscard]] int64_t multiplications() const;
};

/// `band`: rows of which each tile is a part, 0 for the whole map.
[[nodiscard]] MapDepthwiseLayout map_depthwise_layout(const LayerProblem& problem,
                                                      const VectorUnit& unit, int64_t band = 0);

}  // namespace laminate
