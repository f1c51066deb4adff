#include "scheduler/schedule/kernels/layout/map_phases.h"

#include <algorithm>
#include <iterator>

#include "base/units.h"
#include "scheduler/schedule/kernels/register_tile.h"

namespace laminate {

int64_t MapPhasesLayout::whole_panels() const { return ceil_div(tiles.whole, tiles_of_panel); }

int64_t MapPhasesLayout::scratch_elements() const {
    int64_t most = std::min(tiles_of_panel, tiles.whole) * tile_elements(vectors);
    for (const int64_t rest : tiles.rest) most = std::max(most, tile_elements(rest));
    return most;
}

int64_t MapPhasesLayout::multiplications() const {
    return all_vectors * lanes * phases * inputs * blocks * block;
}

namespace {

/// The register tile that keeps the multipliers busiest. A block of one channel may have more sums
/// than registers hold.
void choose_tile(MapPhasesLayout& at, const LayerProblem& p, const VectorUnit& unit) {
    double best = 0;
    for (const int64_t vectors : {3, 4, 2, 1}) {
        const int64_t most = std::max<int64_t>(1, unit.sums_per_vector(vectors) / at.phases);
        for (int64_t block = std::min(most, p[Dim::z]); block >= 1; --block) {
            const bool fits = block * at.phases <= unit.sums_per_vector(vectors);
            const double score = (fits ? 1.0 : 0.5) *
                                 product_efficiency(vectors, block * at.phases) *
                                 used_part(p[Dim::z], block);
            if (score <= best + 1e-9) continue;
            best = score;
            at.block = block;
            at.vectors = vectors;
        }
    }
    at.blocks = ceil_div(p[Dim::z], at.block);
    at.tiles = divide_into_tiles(at.all_vectors, at.vectors);
}

/// Weights that stay in the second-level cache are read once for each tile, whose inputs then stay
/// in the first level. Others are read once for a panel that leaves them half of the second level.
int64_t tiles_of_panel(const MapPhasesLayout& at, const LayerProblem& p) {
    constexpr int64_t near_weights = (int64_t{256} << 10) / bytes_per_element;
    constexpr int64_t most_of_panel = (int64_t{256} << 10) / bytes_per_element;
    if (p.weight_elements().value() <= near_weights) return 1;
    return std::max<int64_t>(1, most_of_panel / at.tile_elements(at.vectors));
}

}  // namespace

MapPhasesLayout map_phases_layout(const LayerProblem& p, const VectorUnit& unit) {
    MapPhasesLayout at;
    at.lanes = unit.lanes;
    at.inputs = p[Dim::i];
    at.phases = p.y().stride * p.x().stride;
    at.row_vectors = ceil_div(p.x().in, at.lanes);
    at.all_vectors = p.y().in * at.row_vectors;
    choose_tile(at, p, unit);
    at.tiles_of_panel = tiles_of_panel(at, p);
    // Threads divide positions before channels, because every part fills its panels itself.
    at.chunks = std::min(at.panels(), map_parts_wanted);
    at.channel_parts = std::min(std::max<int64_t>(1, at.blocks / fewest_reads_of_copy),
                                ceil_div(map_parts_wanted, at.chunks));
    return at;
}

}  // namespace laminate
