// Tiles, panels, parts and scratch of the kernels that take whole arrays or a whole chain, from the
// schedule alone.
#pragma once

#include <cstdint>
#include <vector>

#include "base/size_formula.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/kernels/layout/columns.h"
#include "scheduler/schedule/kernels/layout/map_elementwise.h"
#include "scheduler/schedule/kernels/layout/map_bands.h"
#include "scheduler/schedule/kernels/layout/map_blocks.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"
#include "scheduler/schedule/kernels/layout/map_depthwise.h"
#include "scheduler/schedule/kernels/layout/map_panels.h"
#include "scheduler/schedule/kernels/layout/map_phases.h"
#include "scheduler/schedule/kernels/layout/map_pixels.h"
#include "scheduler/schedule/kernels/layout/map_pooling.h"
#include "scheduler/schedule/kernels/layout/map_windows.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// With a panel if the kernel has one.
[[nodiscard]] MapPixelsLayout map_pixels_layout(const LayerProblem& problem, const Kernel& kernel);
/// The layout has the kernel's tiles and chunks.
[[nodiscard]] WinogradMapLayout winograd_map_layout(const LayerProblem& problem,
                                                    const Kernel& kernel);

/// Of a group with map kernels of a depthwise pair (is_depthwise_pair, kernel_legality.h).
[[nodiscard]] MapBandsLayout map_bands_layout(const GroupSchedule& group,
                                              const std::vector<LayerProblem>& problems);

/// The same of a pointwise pair (is_pointwise_pair).
[[nodiscard]] MapBlocksLayout map_blocks_layout(const GroupSchedule& group,
                                                const std::vector<LayerProblem>& problems);

/// Every nest of the group has the kernel `columns`. `loops`: the group's, if known.
[[nodiscard]] ColumnsLayout columns_layout(const GroupSchedule& group,
                                           const std::vector<LayerProblem>& problems,
                                           GroupLoops* loops = nullptr);

/// What of a layout depends on the size of the picture, in formulas.
struct ColumnsSizes {
    struct Line {
        bool rotates = true;  ///< else it has every row of the tensor
        SizeFormula rows;
        SizeFormula pitch;
        SizeFormula row_elements;
        SizeFormula offset;
    };
    std::vector<Line> lines;                 ///< by tensor but Y
    std::vector<SizeFormula> row_pitch;      ///< by tensor but Y
    std::vector<SizeFormula> picture_tiles;  ///< by tensor but Y
    bool sums_rotate = true;
    SizeFormula sums_pitch, sums_row_elements;
    SizeFormula row_offset, products_offset, sums_offset;
    SizeFormula elements;  ///< of the scratch block
};
/// The layout's own numbers.
[[nodiscard]] ColumnsSizes columns_sizes(const ColumnsLayout& at,
                                         const std::vector<LayerProblem>& chain);
/// The same of any size. `at`: at the size of the chain; its rows of sums become those of a tall
/// picture. Throws InputError as kept_rows().
[[nodiscard]] ColumnsSizes open_columns_sizes(ColumnsLayout& at, const GroupSchedule& group,
                                              const std::vector<LayerProblem>& chain,
                                              const TensorSizes& sizes);

/// Elements of the scratch block of a group with map kernels.
[[nodiscard]] int64_t map_scratch_elements(const GroupSchedule& group,
                                           const std::vector<LayerProblem>& problems);
/// What map_channels_together(), map_stored_elements() and map_multiplications() say of nest k of such
/// a group; of a map_sum nothing.
struct MapNestDone {
    int64_t channels_together = 1;
    int64_t stored_elements = 0;
    int64_t multiplications = 0;
};
[[nodiscard]] MapNestDone map_nest_done(const GroupSchedule& group,
                                        const std::vector<LayerProblem>& problems, size_t k);

/// Elements of the scratch block of a layer by itself with a map kernel.
[[nodiscard]] int64_t map_scratch_elements(const LayerProblem& problem, const Kernel& kernel);
/// Output channels whose weights it reads together; zero weights fill the last ones up.
[[nodiscard]] int64_t map_channels_together(const LayerProblem& problem, const Kernel& kernel);
/// Elements of the output that its code stores.
[[nodiscard]] int64_t map_stored_elements(const LayerProblem& problem, const Kernel& kernel);
/// Multiplications executed for the whole layer.
[[nodiscard]] int64_t map_multiplications(const LayerProblem& problem, const Kernel& kernel);

}  // namespace laminate
