#include "papers/spatial_fusion/array_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "scheduler/explore/explore.h"
#include "tests/support/chain.h"

namespace laminate::spatial_fusion {
namespace {

Stack layers(int64_t channels, int64_t size, const std::vector<LayerSpec>& specs) {
    const Network network = chain(channels, size, size, specs);
    return layer_problems(network, all_layers(network));
}

ArrayMachine array_of(int64_t columns, int64_t rows) {
    ArrayMachine machine = array_machine(open_machine("hwff_1"));
    machine.columns = columns;
    machine.rows = rows;
    return machine;
}

TEST(RowStationary, UnrollsDivisorsWithinTheArray) {
    const LayerProblem layer = layers(64, 56, {{64, square_window(3, 1, 1)}}).front();
    // 3 Pif <= 32: 8 input channels; Pof Poy <= 16: 16. (64 / 8) (64 / 16 or rows for it) x 56 x 56
    // x 3.
    const auto mapping = row_stationary(layer, 32, 16, 56);
    ASSERT_TRUE(mapping);
    EXPECT_EQ(mapping->in_channels, 8);
    EXPECT_EQ(mapping->out_channels * mapping->out_rows, 16);
    EXPECT_EQ(mapping->cycles, 8 * 4 * 56 * 56 * 3);
    // 2 of 14 output channels beside 8 rows fill all 16 rows of PEs. In tiles of one row all 14 lie
    // there, and two rows of PEs are idle.
    const LayerProblem odd = layers(64, 56, {{14, square_window(3, 1, 1)}}).front();
    EXPECT_EQ(row_stationary(odd, 32, 16, 56)->cycles, 8 * (14 / 2) * (56 / 8) * 56 * 3);
    EXPECT_EQ(row_stationary(odd, 32, 16, 1)->cycles, 8 * 1 * 56 * 56 * 3);
    EXPECT_FALSE(row_stationary(layer, 2, 16, 56));  // three kernel rows on two columns
}

TEST(TemporalPartition, SumsCyclesAndDividesRegisters) {
    const Stack stack = layers(8, 16, {{8, square_window(3, 1, 1)}, {16, square_window(3, 1, 1)}});
    const auto partition = temporal_partition(stack, 4, array_of(32, 16));
    ASSERT_TRUE(partition);
    EXPECT_EQ(partition->register_bytes, 256);
    EXPECT_EQ(partition->cycles, partition->layers[0].cycles + partition->layers[1].cycles);
    // The first layer's tiles have 4 + 2 rows, but Poy divides 16: 4 with 4 of 8 channels, or 8
    // channels with 2 rows.
    EXPECT_EQ(partition->layers[0].cycles, 1 * (8 * 16 / 16) * 16 * 3);
}

/// The least cycles over every choice of sizes and every place on the grid.
int64_t exhaustive_cycles(const Stack& stack, const std::vector<int64_t>& tile_rows,
                          const ArrayMachine& machine, Together together) {
    std::vector<std::vector<bool>> used(static_cast<size_t>(machine.rows),
                                        std::vector<bool>(static_cast<size_t>(machine.columns)));
    int64_t best = -1;
    const std::function<void(size_t, int64_t)> put = [&](size_t l, int64_t cycles) {
        if (l == stack.size()) {
            if (best < 0 || cycles < best) best = cycles;
            return;
        }
        for (const int64_t columns : tile_sizes(machine.columns, TileSizes::divisors)) {
            for (const int64_t rows : tile_sizes(machine.rows, TileSizes::divisors)) {
                const auto mapping = row_stationary(stack[l], columns, rows, tile_rows[l]);
                if (!mapping) continue;
                for (int64_t y = 0; y + rows <= machine.rows; ++y) {
                    for (int64_t x = 0; x + columns <= machine.columns; ++x) {
                        const auto fill = [&](bool value) {
                            for (int64_t r = y; r < y + rows; ++r)
                                for (int64_t c = x; c < x + columns; ++c)
                                    used[static_cast<size_t>(r)][static_cast<size_t>(c)] = value;
                        };
                        bool is_free = true;
                        for (int64_t r = y; r < y + rows; ++r)
                            for (int64_t c = x; c < x + columns; ++c)
                                is_free = is_free &&
                                          !used[static_cast<size_t>(r)][static_cast<size_t>(c)];
                        if (!is_free) continue;
                        fill(true);
                        put(l + 1, together == Together::serial
                                       ? cycles + mapping->cycles
                                       : std::max(cycles, mapping->cycles));
                        fill(false);
                    }
                }
            }
        }
    };
    put(0, 0);
    return best;
}

TEST(SpatialPartition, EqualsEveryPlacementOnSmallArrays) {
    const std::vector<Stack> stacks{
        layers(4, 8, {{8, square_window(3, 1, 1)}, {4, square_window(1)}}),
        layers(2, 12, {{6, square_window(3)}, {6, square_window(3)}}),
        layers(3, 9, {{4, square_window(1)}, {6, square_window(3)}, {2, square_window(1)}})};
    for (const Stack& stack : stacks) {
        for (const auto& [columns, rows] : {std::pair<int64_t, int64_t>{6, 4}, {8, 2}, {4, 4}}) {
            for (const Together together : {Together::serial, Together::parallel}) {
                const ArrayMachine machine = array_of(columns, rows);
                const auto found = spatial_partition(stack, 2, machine, together);
                const int64_t expected =
                    exhaustive_cycles(stack, output_tile_rows(stack, 2), machine, together);
                ASSERT_EQ(found.has_value(), expected >= 0);
                if (!found) continue;
                EXPECT_EQ(found->cycles, expected)
                    << columns << " x " << rows << ' ' << to_string(together);
                EXPECT_TRUE(found->is_proven());
                // The rectangles lie on the array and do not overlap.
                for (size_t a = 0; a < found->layers.size(); ++a) {
                    const SubArray& one = found->layers[a];
                    EXPECT_LE(one.first_column + one.columns, columns);
                    EXPECT_LE(one.first_row + one.rows, rows);
                    for (size_t b = 0; b < a; ++b) {
                        const SubArray& other = found->layers[b];
                        EXPECT_TRUE(one.first_column >= other.first_column + other.columns ||
                                    other.first_column >= one.first_column + one.columns ||
                                    one.first_row >= other.first_row + other.rows ||
                                    other.first_row >= one.first_row + one.rows);
                    }
                }
            }
        }
    }
}

TEST(SpatialPartition, TableSixIsOneOfManyTies) {
    // Two equal 3x3 layers on 32 x 16: [32,8] + [32,8] needs as many cycles as [16,16] + [16,16].
    const Stack stack =
        layers(64, 56, {{64, square_window(3, 1, 1)}, {64, square_window(3, 1, 1)}});
    const int64_t wide = row_stationary(stack[0], 32, 8, 56)->cycles;
    EXPECT_EQ(wide, row_stationary(stack[0], 16, 16, 56)->cycles);
    EXPECT_EQ(spatial_partition(stack, 56, array_of(32, 16), Together::serial)->cycles, 2 * wide);
    EXPECT_EQ(spatial_partition(stack, 56, array_of(32, 16), Together::parallel)->cycles, wide);
    EXPECT_FALSE(spatial_partition(
        stack, 56, array_of(3, 1),
        Together::serial));  // one row of three columns for two kernels of three rows
}

TEST(SpatialPartition, AnEndedSearchGivesABound) {
    const Stack stack = layers(8, 16, std::vector<LayerSpec>(4, {8, square_window(3, 1, 1)}));
    const auto complete = spatial_partition(stack, 4, array_of(32, 16), Together::serial);
    ASSERT_TRUE(complete && complete->is_proven());
    for (const int64_t steps : {20, 100, 1000}) {
        const auto ended = spatial_partition(stack, 4, array_of(32, 16), Together::serial, steps);
        ASSERT_TRUE(ended) << steps;
        EXPECT_LE(ended->least_cycles, complete->cycles);
        EXPECT_GE(ended->cycles, complete->cycles);
    }
}

TEST(SpatialPartition, LongStacksHaveOneToo) {
    const Stack stack = layers(8, 16, std::vector<LayerSpec>(9, {8, square_window(3, 1, 1)}));
    for (const Together together : {Together::serial, Together::parallel}) {
        const auto found = spatial_partition(stack, 4, array_of(32, 16), together);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->layers.size(), 9u);
        EXPECT_LE(found->least_cycles, found->cycles);
    }
}

TEST(EnergyAndLatency, FromCountsAndTheMachine) {
    const ArrayMachine machine = array_machine(open_machine("hwff_1"));
    EXPECT_DOUBLE_EQ(*energy_pj(1000, 10, machine),
                     1000 * (1.75 + 0.21 * 26.7) + 10 * (200 + 26.7));
    EXPECT_DOUBLE_EQ(communication_cycles(127, machine), 100);
    EXPECT_DOUBLE_EQ(communication_cycles(127, array_machine(open_machine("hwff_1"), 16)), 200);
    EXPECT_DOUBLE_EQ(ctc_ratio(6400, 10, machine), 20);
}

}  // namespace
}  // namespace laminate::spatial_fusion
