// Vectors of elements along one axis of a map: where each begins, how many lanes it has, and which
// of them are wanted.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/kernels/vector_unit.h"

namespace laminate {

/// Elements first .. first + lanes - 1 of an axis. The kernel computes all of them and keeps those
/// of lanes begin .. end - 1.
struct VectorRun {
    int64_t first = 0;
    int64_t lanes = 1;
    int64_t begin = 0;
    int64_t end = 1;
    [[nodiscard]] bool is_whole() const { return begin == 0 && end == lanes; }
    /// Whether its wanted lanes are stored as two halves that may share elements: stores that leave
    /// lanes out are slow.
    [[nodiscard]] bool is_stored_as_halves() const {
        const int64_t half = lanes / 2, wanted = end - begin;
        return begin == 0 && wanted < lanes && wanted >= half && half >= 2;
    }
    friend bool operator==(const VectorRun&, const VectorRun&) = default;
};

/// [0, extent) in vectors. The last one has half the lanes if those are enough, because processors
/// with vector units in two halves compute two such vectors at a time.
[[nodiscard]] std::vector<VectorRun> runs_of(int64_t extent, const VectorUnit& unit);

/// runs_of(), with the last run moved back until it is full: it computes and stores again what the
/// run before it has stored.
[[nodiscard]] std::vector<VectorRun> overlapping_runs(int64_t extent, const VectorUnit& unit);

/// `vectors` full vectors from element `first` on, of which elements below `end` are wanted.
[[nodiscard]] std::vector<VectorRun> full_runs(int64_t first, int64_t vectors, int64_t end,
                                               int64_t lanes);

/// The run moved back until it ends inside [0, extent), or as far as it can be. The same elements
/// are wanted.
[[nodiscard]] VectorRun moved_inside(VectorRun run, int64_t extent);

/// Lanes of all runs together.
[[nodiscard]] int64_t lanes_of(const std::vector<VectorRun>& runs);

/// `vectors` vectors as tiles of equal size and smaller ones behind them.
struct TileDivision {
    int64_t whole = 0;            ///< number of whole tiles
    std::vector<int64_t> rest{};  ///< vectors of each smaller tile
};
/// Divides `all` vectors into tiles of `vectors`. A single vector left over has too few sums to
/// keep the multipliers busy, so it shares the vectors of the last whole tile between two tiles.
[[nodiscard]] TileDivision divide_into_tiles(int64_t all, int64_t vectors);
/// Divides vectors that hold `elements` elements in the same way, but whole tiles have full vectors
/// only: what a whole tile stores are elements.
[[nodiscard]] TileDivision divide_into_full_tiles(int64_t elements, int64_t lanes, int64_t vectors);

/// Pixels side by side in tiles: first whole ones, of full vectors, then smaller ones, each with its
/// runs.
struct PixelTiles {
    int64_t whole = 0;
    std::vector<std::vector<VectorRun>> rest{};
    [[nodiscard]] int64_t count() const { return whole + std::ssize(rest); }
    /// Lanes of all tiles together, `step` of each whole one.
    [[nodiscard]] int64_t lanes(int64_t step) const;
    friend bool operator==(const PixelTiles&, const PixelTiles&) = default;
};
/// Tiles of `vectors` vectors. Runs that would end behind the last pixel begin early.
[[nodiscard]] PixelTiles tiles_of_pixels(int64_t pixels, int64_t lanes, int64_t vectors);

/// Parts that a kernel over a whole map offers to threads, if the layer is large enough.
inline constexpr int64_t map_parts_wanted = 8;
/// Whether threads divide the pixels of a map of so many, or its rows, and not its channels. What
/// a core then reads of a layer's input lies in its own cache, where it wrote it itself; only
/// halos move. Small maps have too few pixels for each set of weights, which every thread reads.
[[nodiscard]] constexpr bool threads_divide_pixels(int64_t pixels) { return pixels >= 784; }
/// Blocks of output channels that must read a copy of pixels to make up for filling it.
inline constexpr int64_t fewest_reads_of_copy = 4;

}  // namespace laminate
