// General operators (general_operator.h) that schedules cover: what networks for pictures do to
// feature maps without weights. All are of [N, C, H, W].
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/range.h"
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

/// The operator of a map of `other` dims that is what `op` is of one of `map`: the same channels of
/// all rows and columns, or as many repetitions. Any other operator stays as it is.
[[nodiscard]] GeneralOperator of_another_size(const GeneralOperator& op,
                                              const std::vector<int64_t>& map,
                                              const std::vector<int64_t>& other);

/// A map with rows and columns around it.
struct Padding {
    enum class Mode { constant, edge, reflect } mode = Mode::constant;
    std::array<int64_t, 2> begin{};  ///< rows above, columns left; fewer than the map has if reflected
    std::array<int64_t, 2> end{};
    float value = 0;
    friend bool operator==(const Padding&, const Padding&) = default;
};
[[nodiscard]] GeneralOperator padded(const std::vector<int64_t>& map, const Padding& padding);
/// The padding, if the operator is a map of these dims padded().
[[nodiscard]] std::optional<Padding> padding_of(const GeneralOperator& op,
                                                const std::vector<int64_t>& map);

/// A map with as many rows and columns as asked, between whose elements values are interpolated
/// linearly: Resize with the coordinates half_pixel.
[[nodiscard]] GeneralOperator interpolated(const std::vector<int64_t>& map,
                                           const std::array<int64_t, 2>& extent);

/// Whether the operator resamples rows and columns of its map alone, as Pad and Resize do. Those
/// that read nothing lie before and behind the others.
[[nodiscard]] bool samples_pixels(const GeneralOperator& op, const std::vector<int64_t>& map);
/// One axis of a resampling: `taps` sources for each output, and factors as many, none if all are 1.
struct SampledAxis {
    int64_t taps = 1;
    std::span<const int64_t> sources;
    std::span<const float> factors;
};
[[nodiscard]] SampledAxis sampled_axis(const GeneralOperator& op, size_t axis);
/// The outputs that read the input. The others are the operator's alpha.
[[nodiscard]] Range inside_of(const SampledAxis& axis);
/// The operator that makes rows `out` of one image of a resampling from rows of its map from
/// `first_row` on.
[[nodiscard]] GeneralOperator sampled_rows(const GeneralOperator& op, int64_t first_row,
                                           const std::array<int64_t, 2>& out);

/// The function of a layer that normalises the channels of each pixel: softmax, standardise or
/// root_mean_square. nullopt for all other layers.
[[nodiscard]] std::optional<GeneralFunction> normalisation_of(const Layer& layer);

}  // namespace laminate
