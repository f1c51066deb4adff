// The rows that a chain with the kernel `columns` goes through. Private to the closed forms.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct ChainRow {
    size_t nest = 0;
    bool is_incoming = false;  ///< a row that comes to the nest, else one that it computes
    int64_t y = 0;             ///< of the nest's input or output
    int64_t times = 1;
    int64_t tiles = 0;  ///< of the nest's output along the row
};

/// Calls `visit` with every row that comes to a nest and every row that a nest computes, those of
/// like strips of columns together.
void for_each_chain_row(const ColumnsLayout& layout, const GroupSchedule& group,
                        const std::vector<LayerProblem>& problems, const AskedBoxes& boxes,
                        const std::function<void(const ChainRow&)>& visit);

}  // namespace laminate
