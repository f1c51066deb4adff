// General operators (general_operator.h) that schedules cover: what networks for pictures do to
// feature maps without computing. All are of [N, C, H, W].
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "nets/network/general_operator.h"

namespace laminate {

/// Channels, rows and columns from `first` on, as many as `extent` says: a half of Split, a Slice,
/// a Crop.
[[nodiscard]] GeneralOperator part_of(const std::vector<int64_t>& map,
                                      const std::array<int64_t, 3>& first,
                                      const std::array<int64_t, 3>& extent);
/// First channel, row and column, if the operator is a part_of() a map of these dims.
[[nodiscard]] std::optional<std::array<int64_t, 3>> first_of_part(const GeneralOperator& op,
                                                                  const std::vector<int64_t>& map);

/// A map with every row and column repeated: Resize to the nearest element.
[[nodiscard]] GeneralOperator repeated(const std::vector<int64_t>& map,
                                       const std::array<int64_t, 2>& times);
/// How often it repeats rows and columns, if the operator is repeated() of some map.
[[nodiscard]] std::optional<std::array<int64_t, 2>> repetitions_of(const GeneralOperator& op);

}  // namespace laminate
