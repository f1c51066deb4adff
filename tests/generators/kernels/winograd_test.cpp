// Minimal filtering against the reference operators, and against itself however threads cut the
// rows.
#include "generators/kernels/winograd.h"
#include "tests/generators/kernels/code_by_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "generators/compile/group_reference.h"
#include "generators/kernels/winograd_map.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_schedule.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/line_plan.h"
#include "tests/generators/kernels/added.h"
#include "tests/generators/kernels/last_elements.h"
#include "tests/generators/kernels/poisoned_run.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

/// A chain of 3x3 convolutions with seeded weights between -1 and 1, biases and PRelu.
Network chain_of(int64_t rows, int64_t columns, const std::vector<int64_t>& channels,
                 const Window& window, int64_t groups = 1) {
    std::mt19937 random(7);
    const auto values = [&](int64_t count) {
        std::vector<float> all(static_cast<size_t>(count));
        for (float& v : all) v = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
        return all;
    };
    Network network = empty_network(channels.front(), rows, columns);
    TensorId last = 0;
    for (size_t k = 1; k < channels.size(); ++k) {
        last = append(network, "conv" + std::to_string(k), last,
                      {.channels = channels[k], .window = window, .groups = groups});
        Layer& layer = network.layers.back();
        const std::vector<int64_t> dims = layer.weights->dims;
        layer.weights =
            std::make_shared<const Constant>(Constant{dims, values(element_count(dims))});
        layer.bias = std::make_shared<const Constant>(Constant{{channels[k]}, values(channels[k])});
        layer.activation = {.kind = ActivationKind::prelu,
                            .slope = std::make_shared<const Constant>(
                                Constant{{channels[k]}, values(channels[k])})};
    }
    check(network);
    return network;
}

bool uses_winograd(const Network& network, const GroupSchedule& group, const VectorUnit& unit) {
    if (winograd_map_code(network, group, unit)) return true;
    return default_code(network, group, unit).constants !=
           default_code(network, group, unit, {.winograd = false}).constants;
}

/// A group of one layer with the kernel winograd_map.
GroupSchedule on_whole_map(const Network& network, const VectorUnit& unit, int64_t form,
                           int64_t bands) {
    GroupSchedule group = line_buffer_group(network, {0});
    Kernel& kernel = group.nests.front().kernel;
    kernel.kind = KernelKind::winograd_map;
    kernel.size[KernelSize::form] = form;
    kernel.size[KernelSize::pairs] = bands;
    kernel.size[KernelSize::sums] = unit.accumulators;
    kernel.size[KernelSize::lanes] = unit.lanes;
    return group;
}

/// The largest difference from the reference operators, relative to the largest output. Tiles of more
/// than two rows, which round worse, only where the group or `tile_rows` says so.
double error_of(const Network& network, const GroupSchedule& group, const VectorUnit& unit,
                int64_t tile_rows = 2) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 3);
    const std::vector<float> expected = reference_output(network, problems, inputs);
    const GroupCode code = default_code(network, group, unit, {.tile_rows = tile_rows});
    const Outcome whole = run_poisoned(code, expected.size(), inputs, false);
    const Outcome strips = run_poisoned(code, expected.size(), inputs, true);
    EXPECT_TRUE(whole.guards_intact);
    EXPECT_EQ(whole.output, strips.output) << to_text(group);
    double range = 0;
    double worst = 0;
    for (size_t e = 0; e < expected.size(); ++e) {
        range = std::max(range, std::fabs(static_cast<double>(expected[e])));
        const double difference = std::fabs(static_cast<double>(whole.output[e]) - expected[e]);
        worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
    }
    return worst / range;
}

/// The same of line buffers, which must use it.
double error_of(const Network& network, const LineBufferSizes& sizes, const VectorUnit& unit) {
    const GroupSchedule group =
        line_buffer_group(network, schedulable_chains(network).front(), sizes);
    EXPECT_TRUE(uses_winograd(network, group, unit)) << "computed directly: " << to_text(group);
    return error_of(network, group, unit);
}

constexpr double allowed = 2e-6;  ///< of the largest output

Window same() { return square_window(3, 1, 1); }

TEST(Winograd, WidePicturesUseLanesOfTiles) {
    for (const VectorUnit unit : {VectorUnit{16, 24}, VectorUnit{8, 12}, VectorUnit{4, 24}}) {
        for (const int64_t columns : {61, 64, 130}) {
            EXPECT_LE(error_of(chain_of(9, columns, {24, 24}, same()), {4, 0, 0}, unit), allowed)
                << columns;
            EXPECT_LE(error_of(chain_of(10, columns, {24, 20}, square_window(3)), {2, 4, 0}, unit),
                      allowed)
                << columns;
        }
    }
}

TEST(Winograd, NarrowPicturesUseLanesOfChannels) {
    for (const VectorUnit unit : {VectorUnit{16, 24}, VectorUnit{8, 12}}) {
        for (const int64_t size : {13, 14, 28}) {
            EXPECT_LE(error_of(chain_of(size, size, {32, 48}, same()), {size, 0, 0}, unit), allowed)
                << size;
            EXPECT_LE(
                error_of(chain_of(size, size, {40, 44}, same()), {size, size / 4 * 2, 0}, unit),
                allowed)
                << size;
        }
    }
}

/// Maps of all widths that fill a vector of patches differently, odd heights, one chunk of rows and
/// several, input channels in one part and several, blocks of channels that are not full; threads
/// divide chunks and channels.
TEST(WinogradMap, WholeLayers) {
    struct Case {
        int64_t inputs, rows, columns, outputs, pad;
    };
    int64_t most_strips = 0;
    for (const VectorUnit unit : {VectorUnit{16, 24}, VectorUnit{8, 12}, VectorUnit{4, 24}}) {
        for (const Case& c :
             {Case{70, 7, 7, 80, 1}, Case{33, 9, 35, 33, 2}, Case{96, 31, 56, 64, 0},
              Case{32, 14, 14, 32, 1}, Case{32, 28, 28, 48, 1}, Case{40, 20, 64, 130, 1},
              Case{132, 13, 101, 40, 1}}) {
            if (unit.lanes < 16 && c.rows % 2 == 0) continue;  // the odd ones again with few lanes
            const Network plain =
                chain_of(c.rows, c.columns, {c.inputs, c.outputs}, square_window(3, 1, c.pad));
            for (const auto& [form, bands] :
                 {std::pair<int64_t, int64_t>{0, 2}, {1, 1}, {1, 2}, {2, 1}, {2, 2}}) {
                Network network = plain;
                // Strips go through long functions, tiles through short ones.
                if (bands == 1 && c.columns % 2 == 1)
                    network.layers.back().activation = {
                        .kind = ActivationKind::unary, .function = GeneralFunction::swish, .alpha = 1};
                const GroupSchedule group = on_whole_map(network, unit, form, bands);
                if (bands == 2 && c.rows < 9) continue;
                if (form == 2 && !fills_wide_tiles(layer_problem(network, 0), unit.lanes)) continue;
                most_strips = std::max(most_strips, group_code(network, group).strips);
                EXPECT_LE(error_of(network, group, unit), std::ldexp(allowed, 2 * static_cast<int>(form)))
                    << c.inputs << " -> " << c.outputs << " at " << c.rows << " x " << c.columns
                    << ", " << to_text(group.nests.front().kernel);
            }
        }
    }
    EXPECT_GT(most_strips, 3);
}

/// Patches of all rows lie far away, so blocks keep their products from part to part of the inputs.
TEST(WinogradMap, KeptProductsHaveTheBitsOfOthers) {
    for (const auto& [unit, form, groups] : {std::tuple{VectorUnit{16, 24}, 1, 1},
                                             {VectorUnit{16, 24}, 2, 1},
                                             {VectorUnit{8, 12}, 1, 1},
                                             {VectorUnit{8, 12}, 2, 1},
                                             {VectorUnit{16, 24}, 1, 2}}) {
        const int64_t channels = groups == 1 ? 40 : 64;
        const Network network = chain_of(64, 64, {384 * groups, channels}, same(), groups);
        const LayerProblem p = layer_problem(network, 0);
        const std::vector<std::vector<float>> inputs = random_group_inputs(network, {p}, 3);
        std::vector<std::vector<float>> outputs;
        for (const int64_t bands : {1, 7}) {
            const GroupSchedule group = on_whole_map(network, unit, form, bands);
            EXPECT_EQ(winograd_map_layout(p, group.nests.front().kernel).parts_outermost,
                      bands == 7);
            const GroupCode code = default_code(network, group, unit);
            for (const bool by_strips : {false, true}) {
                const Outcome made = run_poisoned(
                    code, static_cast<size_t>(p.output_elements().value()), inputs, by_strips);
                EXPECT_TRUE(made.guards_intact);
                outputs.push_back(made.output);
            }
        }
        for (const std::vector<float>& other : outputs) EXPECT_EQ(outputs[0], other);
    }
}

Window window_of(int64_t rows, int64_t columns, int64_t pad_rows, int64_t pad_columns) {
    Window window;
    window.kernel = {rows, columns};
    window.pad_begin = window.pad_end = {pad_rows, pad_columns};
    return window;
}

/// Windows of 5x5 and along one axis, on rows that fill vectors of patches and do not, with tiles of one
/// column and of one row, and with padding of either side alone.
TEST(WinogradMap, OtherWindowsThanThreeByThree) {
    int64_t most_strips = 0;
    const auto expect_near = [&](int64_t rows, int64_t columns, const Window& window) {
        const Network network = chain_of(rows, columns, {35, 40}, window);
        for (const auto& [unit, bands] :
             {std::pair{VectorUnit{16, 24}, 1}, std::pair{VectorUnit{8, 12}, 2}}) {
            const GroupSchedule group = on_whole_map(network, unit, 1, bands);
            ASSERT_EQ(kernel_refusal(layer_problem(network, 0), group.nests.front().kernel),
                      std::nullopt);
            most_strips = std::max(most_strips, group_code(network, group).strips);
            EXPECT_LE(error_of(network, group, unit), 8 * allowed)
                << rows << " x " << columns << ", " << to_text(group.nests.front().kernel);
        }
    };
    expect_near(13, 17, window_of(5, 5, 2, 2));
    expect_near(9, 35, window_of(5, 5, 0, 1));
    expect_near(9, 17, window_of(1, 7, 0, 3));
    expect_near(17, 18, window_of(7, 1, 3, 0));
    expect_near(12, 37, window_of(7, 1, 2, 0));
    expect_near(7, 13, window_of(1, 5, 0, 2));
    expect_near(11, 9, window_of(5, 1, 2, 0));
    EXPECT_GT(most_strips, 3);
    const Network network = chain_of(9, 17, {35, 40}, window_of(1, 7, 0, 3));
    Kernel kernel = on_whole_map(network, {16, 24}, 0, 1).nests.front().kernel;
    EXPECT_EQ(kernel_refusal(layer_problem(network, 0), kernel),
              "f0, expected f1 where windows are not 3x3");
    kernel.size[KernelSize::form] = 1;
    kernel.size[KernelSize::pairs] = 10;
    EXPECT_EQ(kernel_refusal(layer_problem(network, 0), kernel),
              "p10, expected at most 9, the rows of tiles of the map");
    const VectorUnit unit{16, 24};
    EXPECT_TRUE(winograd_map_code(network, line_buffer_group(network, {0}), unit));
    EXPECT_FALSE(winograd_map_code(network, line_buffer_group(network, {0}), unit, {.tile_rows = 2}));
    EXPECT_FALSE(winograd_map_code(network, line_buffer_group(network, {0}), unit, {.winograd = false}));
}

/// Groups of channels, of which a part of a thread's has one, a piece of one or pieces of two;
/// input channels of a group in one part and in several.
TEST(WinogradMap, GroupsOfChannels) {
    struct Case {
        int64_t inputs, outputs, groups, rows, columns, bands;
    };
    for (const VectorUnit unit : {VectorUnit{16, 24}, VectorUnit{8, 12}, VectorUnit{4, 24}}) {
        for (const Case& c : {Case{64, 64, 2, 13, 13, 2},
                              {270, 96, 2, 9, 14, 1},
                              {105, 240, 3, 9, 11, 3},
                              {160, 160, 5, 14, 14, 4}}) {
            for (const Window& window : {same(), square_window(5, 1, 2)}) {
                const Network network =
                    chain_of(c.rows, c.columns, {c.inputs, c.outputs}, window, c.groups);
                const GroupSchedule group = on_whole_map(network, unit, 1, c.bands);
                const LayerProblem p = layer_problem(network, 0);
                ASSERT_EQ(kernel_refusal(p, group.nests.front().kernel), std::nullopt);
                EXPECT_LE(error_of(network, group, unit), 8 * allowed)
                    << c.groups << " groups, " << c.inputs << " -> " << c.outputs << ", "
                    << to_text(group.nests.front().kernel);
            }
        }
    }
    // Blocks of output channels do not reach from one group into the next.
    const LayerProblem ragged = layer_problem(chain_of(9, 9, {64, 72}, same(), 2), 0);
    EXPECT_FALSE(kernel_row(KernelKind::winograd_map).accepts(ragged));
}

/// The largest differences of a layer without activation from sums in double precision, as a part of
/// its largest input times an output's sum of weights.
double bounded_error(const Network& network, const GroupSchedule& group,
                     const std::vector<float>& x) {
    const LayerProblem p = layer_problem(network, 0);
    const GroupCode code = group_code(network, group);
    const Outcome made =
        run_poisoned(code, static_cast<size_t>(p.output_elements().value()), {x}, false);
    const ConstantValues& w = network.layers.front().weights->values;
    const int64_t of_row = p.x().kernel, of_window = p.y().kernel * of_row, taps = p[Dim::i] * of_window;
    double worst = 0;
    for (int64_t n = 0; n < p.output_elements().value(); ++n) {
        const int64_t z = n / (p[Dim::y] * p[Dim::x]);
        const int64_t row = n / p[Dim::x] % p[Dim::y], column = n % p[Dim::x];
        double sum = network.layers.front().bias->values[static_cast<size_t>(z)], magnitude = 0;
        for (int64_t t = 0; t < taps; ++t) {
            const double weight = w[static_cast<size_t>(z * taps + t)];
            const int64_t from =
                (t / of_window * p.y().in + row + t % of_window / of_row) * p.x().in + column + t % of_row;
            sum += weight * x[static_cast<size_t>(from)];
            magnitude += std::abs(weight);
        }
        worst = std::max(worst,
                         std::abs(made.output[static_cast<size_t>(n)] - sum) / magnitude);
    }
    const auto [least, most] = std::minmax_element(x.begin(), x.end());
    return worst / std::max(std::abs(*least), std::abs(*most));
}

/// Tiles of four rows lose two bits more than those of two, tiles of six another one, and other windows
/// no more than those; all stay within half of what docs/reliability.md promises.
TEST(WinogradMap, StaysWithinItsBound) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    std::mt19937 random(5);
    double two = 0, four = 0, six = 0;
    for (const int64_t inputs : {32, 128}) {
        Network network = chain_of(22, 14, {inputs, 32}, square_window(3));
        network.layers.front().activation = {};
        std::vector<float> x(static_cast<size_t>(inputs * 22 * 14));
        for (float& v : x) v = static_cast<float>(random() % 20001) / 10000.0F - 1.0F;
        two = std::max(two, bounded_error(network, on_whole_map(network, unit, 0, 10), x));
        four = std::max(four, bounded_error(network, on_whole_map(network, unit, 1, 5), x));
        Network wide = chain_of(22, 70, {inputs, 32}, square_window(3));
        wide.layers.front().activation = {};
        while (x.size() < static_cast<size_t>(inputs * 22 * 70)) x.push_back(-x[x.size() / 2]);
        six = std::max(six, bounded_error(wide, on_whole_map(wide, unit, 2, 4), x));
        for (const auto& [rows, columns] : {std::pair{5, 5}, {1, 7}, {7, 1}}) {
            Network other = chain_of(22, 70, {inputs, 32}, window_of(rows, columns, 0, 0));
            other.layers.front().activation = {};
            four = std::max(four, bounded_error(other, on_whole_map(other, unit, 1, 3), x));
        }
        for (const int64_t rows : {2, 4, 6}) {
            const GroupSchedule lines = with_default_kernels(
                layer_problems(wide, {0}), line_buffer_group(wide, {0}, {rows, 2 * rows, 0}), unit,
                {.tile_rows = rows});
            EXPECT_EQ(rows_of_tile(lines.nests.front().kernel), rows);
            double& worst = rows == 2 ? two : rows == 4 ? four : six;
            worst = std::max(worst, bounded_error(wide, lines, x));
        }
    }
    EXPECT_LE(two, std::ldexp(1.0, -22));
    EXPECT_LE(four, std::ldexp(1.0, -19));
    EXPECT_LE(six, std::ldexp(1.0, -18));
}

/// Neither reads nor writes lie outside the caller's arrays: the input ends where no page follows.
TEST(WinogradMap, ReadsNothingBehindItsInput) {
    const Network network = chain_of(15, 15, {32, 32}, same());
    const GroupSchedule group = line_buffer_group(network, {0});
    const GroupCode code =
        *winograd_map_code(network, group, vector_unit(Halide::get_host_target()));
    const std::vector<std::vector<float>> inputs =
        random_group_inputs(network, group_problems(network, group), 3);
    const Outcome expected = run_poisoned(code, size_t{32} * 15 * 15, inputs, false);
    const LastElements input(inputs.front());
    const AlignedFloats constants(code.constants);
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float));
    std::vector<float> output(expected.output.size());
    const float* in = input.data();
    float* out = output.data();
    EXPECT_EQ(JitGroup(code.body, false)
                  .function()(&in, &out, constants.data(), scratch.data(), 0,
                              static_cast<int32_t>(code.strips)),
              0);
    EXPECT_EQ(output, expected.output);
}

TEST(WinogradMap, AddsWhileItStores) {
    for (const VectorUnit unit : {VectorUnit{16, 24}, VectorUnit{8, 12}}) {
        const MakeCode make = [&](const Network& network, const GroupSchedule& group) {
            return winograd_map_code(network, group, unit);
        };
        Network network = chain_of(9, 15, {33, 35}, same());
        const Activation slopes = network.layers.back().activation;
        expect_added_near(network, slopes, make, "PRelu twice");
        network.layers.back().activation = {};
        expect_added(network, make, "15 columns");
    }
}

TEST(WinogradMap, OtherGroupsAndLittleScratchAreNotForIt) {
    const VectorUnit unit{16, 24};
    const Network network = chain_of(16, 16, {32, 32, 32}, same());
    const GroupSchedule one = line_buffer_group(network, {0});
    const GroupCode code = *winograd_map_code(network, one, unit);
    EXPECT_FALSE(winograd_map_code(network, one, unit, {.winograd = false}));
    // Less scratch: fewer rows of tiles at a time, and at last another kernel.
    const GroupCode tight = *winograd_map_code(
        network, one, unit, {.winograd = true, .scratch = Bytes(code.scratch_bytes - 1)});
    EXPECT_LT(tight.scratch_bytes, code.scratch_bytes);
    EXPECT_FALSE(winograd_map_code(network, one, unit, {.winograd = true, .scratch = Bytes(1)}));
    EXPECT_EQ(winograd_map_code(network, one, unit,
                                {.winograd = true, .scratch = Bytes(code.scratch_bytes)})
                  ->scratch_bytes,
              code.scratch_bytes);
    EXPECT_FALSE(winograd_map_code(network, line_buffer_group(network, {0, 1}), unit));
    EXPECT_FALSE(winograd_map_code(network, line_buffer_group(network, {0}, {4, 8, 0}), unit));
    const Network square = chain_of(56, 56, {32, 32}, same());
    const GroupSchedule alone = line_buffer_group(square, {0});
    for (const int64_t rows : {2, 4, 6}) {
        const auto rows_of = [&](const KernelOptions& options) {
            const GroupSchedule group =
                with_default_kernels(group_problems(square, alone), alone, unit, options);
            return rows_of_tile(group.nests.front().kernel);
        };
        EXPECT_LE(rows_of({.tile_rows = rows}), std::min<int64_t>(rows, 4));
        EXPECT_EQ(rows_of({.tile_rows = rows, .fewest_tile_rows = rows}), rows);
    }
    // Wide maps are for tiles of 6 x 6 alone.
    const Network wide = chain_of(16, 130, {32, 32}, same());
    const KernelOptions sixes{.fewest_tile_rows = 6};
    EXPECT_TRUE(winograd_map_code(wide, line_buffer_group(wide, {0}), unit, sixes));
    EXPECT_FALSE(winograd_map_code(wide, line_buffer_group(wide, {0}), unit));
    const Network wider = chain_of(16, 257, {32, 32}, same());
    EXPECT_FALSE(winograd_map_code(wider, line_buffer_group(wider, {0}), unit, sixes));
    // Weights by the definition: nine of a pair of channels, and a bias and a slope of each output.
    EXPECT_EQ(code.constants.size(), size_t{32 * 32 * 9 + 32 + 32});
}

TEST(Winograd, ChainsOfLineBuffers) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    for (const LineBufferSizes& sizes : {LineBufferSizes{4, 0, 0}, LineBufferSizes{2, 8, 0},
                                         LineBufferSizes{3, 9, 0}, LineBufferSizes{1, 0, 0}}) {
        EXPECT_LE(error_of(chain_of(23, 131, {24, 32, 32, 24}, same()), sizes, unit), allowed);
        EXPECT_LE(error_of(chain_of(23, 130, {24, 32, 24}, square_window(3, 1, 2)), sizes, unit),
                  allowed);
    }
    EXPECT_LE(error_of(chain_of(30, 30, {24, 44, 32}, same()), {30, 0, 0}, unit), allowed);
}

/// Steps of whole bands, of bands and a part, and of less than one; lanes of tiles and of channels.
TEST(Winograd, TilesOfFourAndSixRowsOverLineBuffers) {
    int used = 0;
    for (const VectorUnit unit : {VectorUnit{16, 24}, VectorUnit{8, 12}, VectorUnit{4, 24}}) {
        for (const LineBufferSizes& sizes :
             {LineBufferSizes{4, 0, 0, 4}, LineBufferSizes{8, 16, 0, 4}, LineBufferSizes{4, 11, 0, 4},
              LineBufferSizes{6, 9, 0, 4}, LineBufferSizes{12, 15, 0, 6}, LineBufferSizes{5, 11, 0, 6}}) {
            for (const int64_t columns : {20, 70}) {
                const Network network = chain_of(23, columns, {24, 20, 24}, same());
                const GroupSchedule group = line_buffer_group(network, {0, 1}, sizes);
                GroupSchedule with_kernels =
                    with_default_kernels(group_problems(network, group), group, unit);
                for (Nest& nest : with_kernels.nests) {
                    if (!kernel_row(nest.kernel.kind).filters) continue;
                    nest.kernel.size[KernelSize::form] = form_of_tile(sizes.tile_rows);
                    ++used;
                }
                EXPECT_LE(error_of(network, with_kernels, unit), 4 * allowed)
                    << to_text(with_kernels);
            }
        }
    }
    const Network padded = chain_of(23, 130, {24, 32, 24}, square_window(3, 1, 2));
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    for (const int64_t rows : {4, 6}) {
        const GroupSchedule group = line_buffer_group(padded, {0, 1}, {rows, 2 * rows, 0, rows});
        EXPECT_LE(error_of(padded, group, unit, rows), 4 * allowed) << to_text(group);
    }
    EXPECT_GT(used, 35);
}

/// The number of the group's layers that are filtered.
int64_t filtered_layers(const Network& network, const GroupSchedule& group, const VectorUnit& unit,
                        const KernelOptions& options = {}) {
    const GroupSchedule chosen =
        with_default_kernels(group_problems(network, group), group, unit, options);
    return std::ranges::count_if(chosen.nests, [](const Nest& nest) {
        return kernel_row(nest.kernel.kind).filters;
    });
}

/// Strips that begin and end inside tiles, the last of one column or a whole vector; with and without
/// strips of rows around them, and with a window that reaches further over the edges.
TEST(Winograd, StripsOfColumns) {
    for (const VectorUnit unit : {VectorUnit{16, 24}, VectorUnit{8, 12}}) {
        const int64_t strip = unit.lanes * 5;
        for (const auto& [strip_rows, columns] :
             {std::pair<int64_t, int64_t>{0, 2 * strip + 1}, {8, 2 * strip + 32}, {11, 3 * strip}}) {
            for (const Window& window : {same(), square_window(3, 1, 2)}) {
                const int64_t rows = strip_rows == 8 ? 4 : 6;
                const Network network = chain_of(19, columns, {24, 20, 24, 20}, window);
                const GroupSchedule group =
                    line_buffer_group(network, {0, 1, 2}, {rows, strip_rows, strip, rows});
                EXPECT_EQ(filtered_layers(network, group, unit), 3) << to_text(group);
                EXPECT_LE(error_of(network, group, unit, rows), 4 * allowed) << to_text(group);
                // Bits of pairs do not depend on strips.
                EXPECT_EQ(filtered_layers(network, group, unit, {.tile_rows = 2}), 0);
            }
        }
    }
}

/// A last layer of four outputs, which pairs of rows would not pay for: steps of whole tiles of four,
/// and of a part at the end of the picture; not steps that would compute rows for nothing.
TEST(Winograd, FewOutputsByTilesOfFourRows) {
    const Network network = chain_of(39, 70, {24, 20, 4}, same());
    ASSERT_FALSE(kernel_pays(layer_problem(network, 1), KernelKind::winograd_rows));
    for (const VectorUnit unit : {VectorUnit{16, 24}, VectorUnit{8, 12}, VectorUnit{4, 24}}) {
        const auto steps_of = [&](int64_t rows, int64_t strip_rows) {
            return line_buffer_group(network, {0, 1}, {rows, strip_rows, 0, true});
        };
        for (const GroupSchedule& group : {steps_of(4, 0), steps_of(8, 16), steps_of(4, 20)}) {
            EXPECT_EQ(filtered_layers(network, group, unit), 2) << to_text(group);
            EXPECT_LE(error_of(network, group, unit, true), 4 * allowed) << to_text(group);
            EXPECT_EQ(filtered_layers(network, group, unit, {.tile_rows = 2}), 1);
        }
        EXPECT_EQ(filtered_layers(network, steps_of(1, 0), unit), 1);
        EXPECT_EQ(filtered_layers(network, steps_of(5, 0), unit), 1);
    }
}

LinePlan default_plan(const Network& network, const GroupSchedule& group, const VectorUnit& unit) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    return line_plan(with_default_kernels(problems, group, unit), problems);
}

/// Two rows of each tensor stay from step to step, and what comes in lies where other tensors' rows lie
/// at other times: in strips of columns, of which the last is short.
TEST(Winograd, LongChainsKeepTwoRowsFromStepToStep) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    const Network network = chain_of(23, 5 * unit.lanes, {16, 16, 16, 16, 16, 16, 16, 16}, same());
    const GroupSchedule group = line_buffer_group(network, schedulable_chains(network).front(),
                                                  {4, 0, 4 * unit.lanes, 4});
    const LinePlan plan = default_plan(network, group, unit);
    EXPECT_EQ(std::ranges::count_if(plan.rings,
                                    [](const RingLayout& ring) {
                                        return ring.parts && ring.parts->kept == 2;
                                    }),
              6)
        << to_text(group);
    EXPECT_LE(error_of(network, group, unit, 4), 8 * allowed) << to_text(group);
}

/// Five layers of 80 channels: 4.4 MiB of transformed weights. A row has more tiles than V has room for.
TEST(Winograd, ManyWeightsAreTransformedAgainAndAgain) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    constexpr int64_t columns = 320;
    const Network network = chain_of(32, columns, {80, 80, 80, 80, 80, 80}, same());
    const GroupSchedule group =
        line_buffer_group(network, schedulable_chains(network).front(), {4, 0, 0, 4});
    const LinePlan plan = default_plan(network, group, unit);
    for (const std::optional<WinogradTile>& tile : plan.winograd) {
        ASSERT_TRUE(tile.has_value());
        EXPECT_EQ(tile->weights, 2);
        EXPECT_EQ(tile->blocks, 2);
        EXPECT_GT(tile->parts, 1);
        EXPECT_LT(tile->parts * tile->tiles * WinogradTile::columns, columns);
    }
    const GroupCode code = default_code(network, group, unit, {.tile_rows = 4});
    // Nine weights for each pair of channels, biases, slopes and what fills them up.
    EXPECT_LT(std::ssize(code.constants), 5 * (9 * 80 * 96 + 2 * 96 + 64));
    EXPECT_LE(error_of(network, group, unit, 4), 8 * allowed);
    // Of 76 channels, blocks of four or six are an odd number.
    const Network odd = chain_of(17, columns, {76, 76, 76, 76, 76, 76, 76}, same());
    EXPECT_LE(error_of(odd,
                       line_buffer_group(odd, schedulable_chains(odd).front(), {4, 0, 0, 4}),
                       unit, 4),
              8 * allowed);
    const Network shorter = chain_of(32, columns, {80, 80, 80, 80, 80}, same());
    const GroupSchedule four_layers =
        line_buffer_group(shorter, schedulable_chains(shorter).front(), {4, 0, 0, 4});
    EXPECT_EQ(default_plan(shorter, four_layers, unit).winograd.front()->weights, 0);
}

/// A cache that holds all transformed weights of a layer: they are transformed once for a step, also one of
/// several bands and a part of one.
TEST(Winograd, AllWeightsOfALayerAreTransformedOnceForAStep) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    constexpr int64_t columns = 320;
    const Network network = chain_of(37, columns, {80, 80, 80, 80, 80, 76}, same());
    const KernelOptions roomy{.tile_rows = 4, .second_level_cache = Bytes(8 << 20)};
    for (const LineBufferSizes& sizes : {LineBufferSizes{4, 0, 0, 4}, LineBufferSizes{10, 0, 0, 4}}) {
        const GroupSchedule group =
            line_buffer_group(network, schedulable_chains(network).front(), sizes);
        const std::vector<LayerProblem> problems = group_problems(network, group);
        const GroupSchedule all = with_default_kernels(problems, group, unit, roomy);
        const LinePlan plan = line_plan(all, problems);
        for (size_t k = 0; k < problems.size(); ++k) {
            const std::optional<WinogradTile>& tile = plan.winograd[k];
            ASSERT_TRUE(tile.has_value());
            EXPECT_EQ(tile->weights, ceil_div(problems[k][Dim::z], tile->channels));
            EXPECT_EQ(tile->blocks, 1);
            EXPECT_EQ(tile->parts, 1);
        }
        EXPECT_LE(error_of(network, all, unit), 8 * allowed) << to_text(all);
        // The same bits as with constants.
        GroupSchedule constants = all;
        for (Nest& nest : constants.nests) nest.kernel.size[KernelSize::weights] = 0;
        const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 3);
        const size_t size = reference_output(network, problems, inputs).size();
        const auto output = [&](const GroupSchedule& chosen) {
            return run_poisoned(default_code(network, chosen, unit), size, inputs, false).output;
        };
        EXPECT_EQ(output(all), output(constants)) << to_text(all);
    }
}

TEST(Winograd, WeightsAreTransformedInWholeVectorsForTilesOfFourAndSixRows) {
    const Network network = chain_of(12, 160, {20, 44}, same());
    const LayerProblem p = layer_problem(network, 0);
    const auto refusal = [&](int64_t channels, int64_t form, int64_t together) {
        Kernel kernel = kernel_for(KernelKind::winograd_rows, {16, 24});
        kernel.size[KernelSize::channels] = channels;
        kernel.size[KernelSize::columns] = 1;
        kernel.size[KernelSize::form] = form;
        kernel.size[KernelSize::weights] = together;
        return kernel_refusal(p, kernel);
    };
    EXPECT_EQ(refusal(8, 1, 6), std::nullopt);
    EXPECT_EQ(refusal(8, 2, 1), std::nullopt);
    EXPECT_EQ(refusal(7, 1, 0), std::nullopt);
    EXPECT_EQ(refusal(8, 1, 7), "w7, expected at most 6, the blocks of output channels");
    const std::string vectors =
        ", expected w0: code transforms weights in whole vectors of v16, for f1 and f2";
    EXPECT_EQ(refusal(8, 0, 2), "w2" + vectors);
    EXPECT_EQ(refusal(7, 1, 2), "w2" + vectors);
}

/// Any loop order, tiles of rows, levels, strips: the rows that steps ask for are different every
/// time.
TEST(Winograd, RandomSchedules) {
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    std::mt19937 random(3);
    int used = 0, transforming = 0;
    /// The group with some or all blocks of weights transformed together, where a layer allows it.
    const auto with_weights = [&](const Network& network, GroupSchedule group, uint64_t seed) {
        for (Nest& nest : group.nests) {
            if (nest.kernel.kind != KernelKind::winograd_rows) continue;
            const LayerProblem p = layer_problem(network, network.find_layer(nest.layer));
            const int64_t blocks = ceil_div(p[Dim::z], nest.kernel[KernelSize::channels]);
            Kernel kernel = nest.kernel;
            kernel.size[KernelSize::weights] = 1 + static_cast<int64_t>(seed) % blocks;
            if (kernel_refusal(p, kernel)) continue;
            nest.kernel = kernel;
            ++transforming;
        }
        return group;
    };
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(120); ++seed) {
        const auto size = [&](unsigned least, unsigned span) {
            return static_cast<int64_t>(least + random() % span);
        };
        std::vector<int64_t> channels;
        for (int64_t n = size(2, 2); n >= 0; --n) channels.push_back(size(16, 12));
        const int64_t pad = size(0, 3);
        const int64_t columns =
            size(9, 60);  // one draw a statement: a call's arguments have no order
        const int64_t rows = size(7, 12);
        const Network network = chain_of(rows, columns, channels, square_window(3, 1, pad));
        const Schedule schedule = random_schedule(network, seed);
        for (GroupSchedule group : schedule.groups()) {
            // Winograd wants whole rows of all channels; rows, levels and strips stay as drawn.
            for (Nest& nest : group.nests) {
                const LayerProblem p = layer_problem(network, network.find_layer(nest.layer));
                for (const Dim d : {Dim::z, Dim::x, Dim::i}) nest.tile[d] = p[d];
            }
            if (!uses_winograd(network, group, unit)) continue;
            ++used;
            EXPECT_LE(error_of(network, group, unit), allowed)
                << "seed " << seed << ": " << to_text(group);
            const int64_t tile_rows = seed % 2 == 0 ? 4 : 6;
            EXPECT_LE(error_of(network, group, unit, tile_rows), 4 * allowed)
                << "seed " << seed << ", tiles of up to " << tile_rows << " rows: " << to_text(group);
            const GroupSchedule chosen = with_default_kernels(group_problems(network, group), group,
                                                              unit, {.tile_rows = tile_rows});
            const GroupSchedule transformed = with_weights(network, chosen, seed);
            if (transformed == chosen) continue;
            EXPECT_LE(error_of(network, transformed, unit), 4 * allowed)
                << "seed " << seed << ": " << to_text(transformed);
        }
        if (HasFailure()) return;
    }
    EXPECT_GT(used, test::is_sanitized ? 0 : 30);
    EXPECT_GT(transforming, test::is_sanitized ? 0 : 5);
}

/// Rows of conv1 kept from strip to strip: going on, a thread computes rows 7 to 9 as (7 8) 9,
/// beginning at row 6 it computes 5 to 7 as (5 6) 7 and then (8 9). The rows are the same,
/// roundings would not be; so conv1 is computed directly there.
TEST(Winograd, RowsKeptFromStripToStripAreNotPaired) {
    const Network network = chain_of(18, 64, {24, 24, 24}, same());
    GroupSchedule group = line_buffer_group(network, {0, 1}, {3, 6, 0});
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    group.nests[0].tile[Dim::y] = 3;
    EXPECT_LE(error_of(network, group, unit), allowed);  // pairs begin anew in each strip
    group.nests[0].y.store = Level{};
    EXPECT_LE(error_of(network, group, unit), allowed);
}

TEST(Winograd, StaysWithinTheScratchThatIsAllowed) {
    const Network network = chain_of(16, 64, {24, 24}, same());
    const GroupSchedule group = line_buffer_group(network, {0}, {});
    const VectorUnit unit{16, 24};
    const GroupCode free = default_code(network, group, unit);
    const GroupCode tight = default_code(
        network, group, unit, {.winograd = true, .scratch = Bytes(free.scratch_bytes - 1)});
    EXPECT_LT(tight.scratch_bytes, free.scratch_bytes);
    EXPECT_EQ(tight.constants, default_code(network, group, unit, {.winograd = false}).constants);
    EXPECT_EQ(
        default_code(network, group, unit, {.winograd = true, .scratch = Bytes(free.scratch_bytes)})
            .constants,
        free.constants);
}

TEST(Winograd, WeightsOfOneFrequencyAreSumsOfTheKernel) {
    const Network network = chain_of(8, 64, {1, 1}, same());
    const LayerProblem p = layer_problem(network, 0);
    const std::vector<float> kernel{1, 2, 3, 4, 5, 6, 7, 8, 9};
    const std::vector<float> two = winograd_weights(kernel, p, 2, 1);
    ASSERT_EQ(two.size(), 24U);
    EXPECT_FLOAT_EQ(two[0], 1.0F / 4);  // G row 0, column row 0: 1/4 of the first tap
    EXPECT_FLOAT_EQ(two[6 + 1],
                    0.5F * (12 + 15 + 18) * (-1.0F / 6));  // sums of columns, halved, times -1/6
    EXPECT_FLOAT_EQ(two[23], 9);
    const std::vector<float> one = winograd_weights(kernel, p, 1, 1);
    ASSERT_EQ(one.size(), 18U);
    EXPECT_FLOAT_EQ(one[6 + 5], 6);  // the middle row alone, its last tap
}

TEST(Winograd, IsForWideEnoughKernelsOfThreeByThree) {
    const VectorUnit unit{16, 24};
    const auto tile = [&](const LayerSpec& spec, int64_t channels, int64_t columns) {
        Network network = empty_network(channels, 16, columns);
        append(network, "layer", 0, spec);
        return winograd_tile(layer_problem(network, 0), {{0, 16}}, columns, unit);
    };
    EXPECT_TRUE(tile({.channels = 64, .window = same()}, 64, 64));
    EXPECT_EQ(tile({.channels = 64, .window = same()}, 64, 64)->axis, VectorAxis::x);
    EXPECT_EQ(tile({.channels = 64, .window = same()}, 64, 14)->axis, VectorAxis::z);
    EXPECT_FALSE(tile({.channels = 64, .window = square_window(3, 2, 1)}, 64, 64));
    EXPECT_FALSE(tile({.channels = 64, .window = square_window(5, 1, 2)}, 64, 64));
    EXPECT_FALSE(tile({.channels = 64, .window = same(), .groups = 64}, 64, 64));
    EXPECT_FALSE(tile({.channels = 64, .window = same()}, 3,
                      64));  // transforms of 64 outputs for three inputs
}

/// 480 columns are 15 vectors of eight tiles and 512 are 16. Vectors of 16 tiles are two at most.
TEST(Winograd, TilesAreOfThreeVectorsWhereRowsFillThem) {
    const auto tiles = [](const VectorUnit& unit, int64_t columns) {
        Network network = empty_network(16, 16, columns);
        append(network, "layer", 0, LayerSpec{.channels = 16, .window = same()});
        const auto tile = winograd_tile(layer_problem(network, 0), {{0, 16}}, columns, unit);
        return std::pair{tile->channels, tile->tiles / unit.lanes};
    };
    using Tile = std::pair<int64_t, int64_t>;
    EXPECT_EQ(tiles({8, 12}, 480), (Tile{4, 3}));
    EXPECT_EQ(tiles({8, 12}, 512), (Tile{4, 2}));
    EXPECT_EQ(tiles({16, 24}, 960).second, 2);
}

}  // namespace
}  // namespace laminate
