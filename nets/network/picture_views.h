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
/// How often it repeats rows and columns, if the operator is repeated() of a map of these dims.
[[nodiscard]] std::optional<std::array<int64_t, 2>> repetitions_of(const GeneralOperator& op,
                                                                   const std::vector<int64_t>& map);

/// SpaceToDepth by blocks of `block` rows and columns in the order of CRD, whose channels are then
/// shuffled: read as a table of so many rows as `shuffle` says, column by column. With blocks of one
/// it is ShuffleNet's channel shuffle; DCR is the shuffle by the channels of the map.
[[nodiscard]] GeneralOperator blocks_of(int64_t block, int64_t shuffle);
/// The place before the shuffle of channel z of so many.
template <class Index>
[[nodiscard]] Index place_before_shuffle(const Index& z, const Index& channels,
                                         const Index& shuffle) {
    return z % shuffle * (channels / shuffle) + z / shuffle;
}

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
/// Sources that repeat themselves, as those of Pad and of most Resizes do: tap t of output o reads
/// bases[o mod period][t] + (o / period) * advance, which is moved into the map as its `border` says.
struct PeriodicAxis {
    int64_t period = 1;
    int64_t advance = 1;
    Padding::Mode border = Padding::Mode::edge;  ///< constant: those outside read nothing
    std::vector<std::vector<int64_t>> bases;     ///< [phase][tap]
    std::vector<std::vector<float>> factors;     ///< likewise; all 1 if the operator has none
    int64_t more = 0;  ///< outputs beyond period / advance of each input, rounded down
};
/// nullopt where no period of at most 8 outputs explains what each of them reads. `in`: the
/// coordinates of the map. Factors are those of one period; others differ in rounding alone.
[[nodiscard]] std::optional<PeriodicAxis> periodic_axis(const SampledAxis& axis, int64_t in);
/// What it reads of any number of coordinates: [output][tap].
[[nodiscard]] std::vector<int64_t> sources_of(const PeriodicAxis& axis, int64_t in);

/// What stays the same of an operator between maps of any size: how many rows and columns it makes
/// of some, in out = in * times / per + more, rounded down.
struct OpenAxis {
    int64_t times = 1;
    int64_t per = 1;
    int64_t more = 0;
};
/// Of rows and columns, if the operator is a part of the map up to a fixed distance from its border,
/// or repeats or resamples it with a period. `map`: the dims of its input.
[[nodiscard]] std::optional<std::array<OpenAxis, 2>> open_axes(const GeneralOperator& op,
                                                               const std::vector<int64_t>& map);
/// The operator of a map of `other` dims that is what `op` is of one of `map`, if it has open_axes()
/// and leaves something of that map. Any other operator stays as it is.
[[nodiscard]] GeneralOperator of_another_size(const GeneralOperator& op,
                                              const std::vector<int64_t>& map,
                                              const std::vector<int64_t>& other);

/// The operator that makes rows `out` of one image of a resampling from rows of its map from
/// `first_row` on.
[[nodiscard]] GeneralOperator sampled_rows(const GeneralOperator& op, int64_t first_row,
                                           const std::array<int64_t, 2>& out);

/// The function of a layer that normalises the channels of each pixel: softmax, log_softmax,
/// standardise or root_mean_square. nullopt for all other layers.
[[nodiscard]] std::optional<GeneralFunction> normalisation_of(const Layer& layer);

/// Whether the layer reads nothing and makes a tensor of constants, which it holds as its weights.
[[nodiscard]] bool is_constant(const Layer& layer);

/// The function of a layer that leaves one channel, the largest or the smallest of each pixel, as
/// attention to places has it (CBAM). nullopt for all other layers.
[[nodiscard]] std::optional<GeneralFunction> extreme_of_channels(const Layer& layer);

}  // namespace laminate
