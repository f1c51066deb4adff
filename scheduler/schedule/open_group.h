// The schedule of a group for any size: what changes with the size, and what must not.
//
// A group of any size goes by whole rows: tiles of columns are of all columns (or of a strip of
// them, with the kernel `columns`), tiles of rows of a fixed number. Its strips are as long as the
// caller says. Its text is that of the size at which it was planned.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// Whether any tensor of the group has rows or columns that the size decides.
[[nodiscard]] bool depends_on_size(const std::vector<LayerProblem>& problems,
                                   const TensorSizes& sizes);

/// Throws InputError that names the layer unless the group can be of any size.
void require_any_size(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                      const TensorSizes& sizes);

/// The same schedule of a network of another size; `strips`: its strip_rows and strip_columns are
/// those of the group's strip loops.
[[nodiscard]] GroupSchedule group_at(const GroupSchedule& group,
                                     const std::vector<LayerProblem>& problems,
                                     const std::vector<LayerProblem>& problems_at,
                                     const SizeValues& strips);

/// Rows of a tensor that a buffer keeps, whatever the size and the strips.
struct KeptRows {
    int64_t rows = 1;
    bool all = false;  ///< those of the whole tensor instead
};
/// By tensor, as group_tensors(). Seen in the loops at several sizes; throws InputError where they
/// are neither as many at all of them nor all.
[[nodiscard]] std::vector<KeptRows> kept_rows(const GroupSchedule& group,
                                              const std::vector<LayerProblem>& problems,
                                              const TensorSizes& sizes);

/// Strips begin at multiples of as many rows or columns of the group's output.
[[nodiscard]] int64_t strip_unit(const GroupSchedule& group,
                                 const std::vector<LayerProblem>& problems, Dim d);

}  // namespace laminate
