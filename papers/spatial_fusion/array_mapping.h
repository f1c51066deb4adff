// Layers on an array of PEs: row-stationary mapping, the array divided in time or in space among
// the layers of a stack, cycles and energy. HW-Flow-Fusion Table 2, sections 4.3 and 5. The paper
// does not define cycles; docs/hw-flow-fusion.md has our reading.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "papers/spatial_fusion/array_machine.h"
#include "papers/spatial_fusion/volume.h"

namespace laminate::spatial_fusion {

/// Kernel rows lie along the columns of the array, with Pif input channels beside each other. Poy
/// output rows and Pof output channels share the rows of the array. Each PE convolves along a row.
struct RowStationary {
    int64_t in_channels = 1;   ///< Pif, divides Nif; K Pif <= columns
    int64_t out_channels = 1;  ///< Pof, divides Nof
    int64_t out_rows = 1;      ///< Poy, divides Noy; at most the rows of a tile; Pof Poy <= rows
    int64_t cycles = 0;        ///< of the whole layer: (Nof / Pof) (Nif / Pif) (Noy / Poy) Nox K
};
/// The mapping of fewest cycles on columns x rows PEs. nullopt if the kernel has more rows than the
/// array has columns. A channelwise layer has Nif = 1.
[[nodiscard]] std::optional<RowStationary> row_stationary(const LayerProblem& layer,
                                                          int64_t columns, int64_t rows,
                                                          int64_t tile_rows);

/// Rows of each layer's output tile by Eq. 4, at most those of the map. They bound Poy.
[[nodiscard]] std::vector<int64_t> output_tile_rows(const Stack& stack, int64_t bottom_tile_rows);

/// Temporal fusion: layers take turns on the whole array and share the registers evenly, which
/// changes no count.
struct TemporalPartition {
    std::vector<RowStationary> layers;
    int64_t register_bytes = 0;                         ///< of a PE, for each layer
    std::optional<RegisterSections> register_sections;  ///< the same by operand
    int64_t cycles = 0;
};
/// nullopt if a kernel is too tall.
[[nodiscard]] std::optional<TemporalPartition> temporal_partition(const Stack& stack,
                                                                  int64_t bottom_tile_rows,
                                                                  const ArrayMachine& machine);

/// How sub-arrays work together.
enum class Together {
    serial,    ///< one layer after the other, each on its own sub-array; the published latencies
               ///< imply this
    parallel,  ///< all at once, as a pipeline of tiles; the slowest layer decides
};
[[nodiscard]] const char* to_string(Together together);

/// Spatial fusion: each layer has a rectangle of PEs. Widths divide PEx, heights divide PEy, and
/// rectangles do not overlap.
struct SubArray {
    int64_t columns = 1;
    int64_t rows = 1;
    int64_t first_column = 0;
    int64_t first_row = 0;
    RowStationary mapping;
};
struct SpatialPartition {
    std::vector<SubArray> layers;
    int64_t cycles = 0;
    int64_t least_cycles = 0;  ///< a lower bound; equals `cycles` unless the search gave up
    [[nodiscard]] bool is_proven() const { return cycles == least_cycles; }
};
/// The partition of fewest cycles, by branch and bound over all sizes and places. The search gives
/// up after `max_steps` places, which happens mostly for stacks of seven layers and more. nullopt
/// if there is no partition, or none was found by then.
[[nodiscard]] std::optional<SpatialPartition> spatial_partition(const Stack& stack,
                                                                int64_t bottom_tile_rows,
                                                                const ArrayMachine& machine,
                                                                Together together,
                                                                int64_t max_steps = 2'000'000);

/// The paper adds the two parts; nothing overlaps.
struct Latency {
    int64_t compute_cycles = 0;
    double communication_cycles = 0;
    [[nodiscard]] double total_cycles() const {
        return static_cast<double>(compute_cycles) + communication_cycles;
    }
};
[[nodiscard]] double communication_cycles(int64_t volume, const ArrayMachine& machine);

/// operations (e_mac + accesses per MAC x e_chip) + V (e_dram + e_chip): each element moved is read
/// at its source and written at its destination. nullopt if the machine does not price the MACs.
[[nodiscard]] std::optional<double> energy_pj(int64_t operations, int64_t volume,
                                              const ArrayMachine& machine);

/// Computation to communication: operations / (ctc_divisor V).
[[nodiscard]] double ctc_ratio(int64_t operations, int64_t volume, const ArrayMachine& machine);

}  // namespace laminate::spatial_fusion
