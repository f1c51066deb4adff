// Deployed code asks for lines of its arrays, not for what lies behind them.
#include "instrumentation/asked_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "generators/kernels/group_kernels.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/explore/planner/depthwise_pairs.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

struct Layers {
    std::string kernels;  ///< that the default schedule has
    int64_t channels = 1, rows = 1, columns = 1;
    std::vector<LayerSpec> specs;
    VectorUnit unit{8, 12};
};

LayerSpec depthwise(int64_t channels, int64_t size, int64_t stride = 1) {
    return {.channels = channels, .window = square_window(size, stride, size / 2), .groups = channels};
}

LayerSpec dense(int64_t channels, int64_t size = 1, int64_t stride = 1) {
    return {.channels = channels, .window = square_window(size, stride, size / 2)};
}

/// Most maps are no whole number of tiles, and most layers have no whole number of blocks of channels.
std::vector<Layers> all_layers() {
    constexpr VectorUnit by_sixteen{16, 24};
    return {
        {"map_channels", 40, 7, 7, {dense(70)}},
        {"map_channels", 40, 7, 7, {dense(40)}, by_sixteen},
        {"map_channels", 96, 13, 13, {dense(300)}},
        {"map_channels", 33, 14, 14, {dense(70, 3, 2)}},
        {"map_channels", 2048, 7, 7, {dense(64)}},
        {"map_channels map_depthwise", 80, 7, 7, {dense(200), depthwise(200, 3)}},
        {"map_pixels", 24, 29, 29, {dense(44)}},
        {"map_pixels", 24, 29, 29, {dense(44)}, by_sixteen},
        {"map_depthwise", 30, 15, 15, {depthwise(30, 5)}},
        {"map_depthwise", 30, 30, 30, {depthwise(30, 3, 2)}, by_sixteen},
        {"map_depthwise map_pixels", 30, 57, 57, {depthwise(30, 3), dense(40)}},
        {"map_phases", 40, 20, 20, {enlarged(36, 2, 2)}},
        {"winograd_map", 40, 15, 15, {dense(50, 3)}},
        {"winograd_map", 40, 15, 15, {dense(50, 3)}, by_sixteen},
        {"winograd_rows", 32, 24, 150, {dense(32, 3)}},
        {"winograd_channels", 32, 24, 150, {dense(32, 3)}, by_sixteen},
    };
}

TEST(AskedLines, LieInTheArrays) {
    for (const Layers& layers : all_layers()) {
        SCOPED_TRACE(layers.kernels + " of " + std::to_string(layers.unit.lanes) + " lanes, " +
                     std::to_string(layers.channels) + " x " + std::to_string(layers.rows) + " x " +
                     std::to_string(layers.columns));
        const Network network = chain(layers.channels, layers.rows, layers.columns, layers.specs);
        const GroupSchedule plain =
            layers.specs.size() == 1
                ? line_buffer_group(network, {0})
                : depthwise_pair_group(network, {0, 1}, {layers.unit, 1, Bytes(512 * 1024)}).value();
        const GroupSchedule group =
            with_default_kernels(group_problems(network, plain), plain, layers.unit);
        std::string kernels;
        for (const Nest& nest : group.nests)
            kernels += std::string(kernels.empty() ? "" : " ") + kernel_row(nest.kernel.kind).name;
        EXPECT_EQ(kernels, layers.kernels);
        const GroupCode code = group_code(network, group);
        const int64_t inputs = layers.channels * layers.rows * layers.columns;
        const int64_t outputs = group_problems(network, group).back().output_elements().value();
        const auto lines = asked_lines(code, {inputs}, outputs);
        int64_t all = 0;
        for (const auto& [array, asked] : lines) {
            all += asked.all;
            // The last tile of the last map may ask for a line behind it, and for the rest of a wide one.
            EXPECT_LE(asked.outside, asked.all / 50) << array << " of " << asked.all;
        }
        EXPECT_GE(all, 100);
    }
}

}  // namespace
}  // namespace laminate
