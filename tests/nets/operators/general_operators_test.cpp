#include "nets/operators/general_operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nets/operators/reference_operators.h"

namespace laminate {
namespace {

using Dims = std::vector<int64_t>;
using Values = std::vector<float>;
using Function = GeneralFunction;

ConstantPtr constant(Dims dims, Values values) {
    return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
}

Layer general(GeneralOperator op) {
    Layer layer{.name = "layer", .kind = LayerKind::general};
    layer.general = std::move(op);
    return layer;
}

/// Runs the layer in an array with a guard element at each end, with one thread and with three.
Values run(const Layer& layer, const std::vector<Dims>& dims, const std::vector<Values>& inputs) {
    std::vector<const float*> arrays;
    for (const Values& values : inputs) arrays.push_back(values.data());
    const Dims out = infer_output_dims(layer, dims);
    Values results[2];
    for (const int threads : {1, 3}) {
        Values guarded(static_cast<size_t>(element_count(out)) + 2, -12345.0f);
        run_reference_layer(layer, dims, arrays, out, guarded.data() + 1, threads);
        EXPECT_EQ(guarded.front(), -12345.0f);
        EXPECT_EQ(guarded.back(), -12345.0f);
        results[threads / 3] = {guarded.begin() + 1, guarded.end() - 1};
    }
    EXPECT_TRUE(std::ranges::equal(results[0], results[1], [](float a, float b) {
        return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
    }));
    return results[0];
}

Values counting(int64_t count) {
    Values values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
}

TEST(View, TransposeReverseAndRepeat) {
    // Element (o0, o1) of the transpose of a 2x3 matrix is input element o1 * 3 + o0.
    EXPECT_EQ(run(general({.kind = GeneralKind::view, .dims = {3, 2}, .steps = {1, 3}}), {{2, 3}},
                  {counting(6)}),
              (Values{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(run(general({.kind = GeneralKind::view, .dims = {3}, .first = 5, .steps = {-2}}),
                  {{2, 3}}, {counting(6)}),
              (Values{6, 4, 2}));
    EXPECT_EQ(run(general({.kind = GeneralKind::view, .dims = {2, 3}, .steps = {0, 1}}), {{3}},
                  {counting(3)}),
              (Values{1, 2, 3, 1, 2, 3}));
}

// Tiles of 64 and squares of 4 by 4, with rests, between other axes, forwards and backwards.
TEST(View, TransposesOfAnySizeMoveEachElement) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{3, 5}, {66, 131}, {4, 64}}) {
        for (const bool backwards : {false, true}) {
            const int64_t area = rows * columns, step = backwards ? -rows : rows;
            const int64_t first = backwards ? (columns - 1) * rows : 0;
            const Values found = run(general({.kind = GeneralKind::view,
                                              .dims = {2, rows, columns},
                                              .first = first,
                                              .steps = {area, 1, step}}),
                                     {{2, columns, rows}}, {counting(2 * area)});
            for (int64_t k = 0; k < 2 * area; ++k) {
                const int64_t at = first + k / area * area + k % area / columns +
                                   k % columns * step;
                ASSERT_EQ(found[static_cast<size_t>(k)], static_cast<float>(at + 1)) << k;
            }
        }
    }
}

TEST(Resample, WeightedSumsPerAxisAndOutside) {
    // Rows: the second, then the mean of both; columns unchanged.
    const GeneralOperator rows{.kind = GeneralKind::resample,
                               .dims = {2, 2},
                               .tap_counts = {2, 1},
                               .sources = {1, 1, 0, 1, 0, 1},
                               .factors = {0.5, 0.5, 0.5, 0.5, 1, 1}};
    EXPECT_EQ(run(general(rows), {{2, 2}}, {{1, 2, 3, 4}}), (Values{3, 4, 2, 3}));
    const GeneralOperator padded{.kind = GeneralKind::resample,
                                 .dims = {2, 3},
                                 .tap_counts = {1, 1},
                                 .sources = {0, -1, -1, 0, 1},
                                 .alpha = 9};
    EXPECT_EQ(run(general(padded), {{1, 2}}, {{1, 2}}), (Values{9, 1, 2, 9, 9, 9}));
}

TEST(Binary, BroadcastsAndKeepsTheOrder) {
    const GeneralOperator minus{.kind = GeneralKind::binary, .function = Function::subtract};
    EXPECT_EQ(run(general(minus), {{2, 1}, {3}}, {{10, 20}, {1, 2, 3}}),
              (Values{9, 8, 7, 19, 18, 17}));
    Layer first = general(
        {.kind = GeneralKind::binary, .function = Function::subtract, .constant_first = true});
    first.weights = constant({3}, {1, 2, 3});
    EXPECT_EQ(run(first, {{1, 3}}, {{10, 20, 30}}), (Values{-9, -18, -27}));
    first.general.constant_first = false;
    EXPECT_EQ(run(first, {{1, 3}}, {{10, 20, 30}}), (Values{9, 18, 27}));
}

TEST(Binary, ThePowerOfTwoIsTheSquare) {
    Layer squares = general({.kind = GeneralKind::binary, .function = Function::power});
    squares.weights = constant({1}, {2});
    EXPECT_EQ(run(squares, {{2, 2}}, {{3, -0.5F, 0, 7}}), (Values{9, 0.25F, 0, 49}));
}

TEST(Binary, PowersThatFilesHaveAreThoseOfTheLibrary) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const Values x{0.0F, -0.0F, 2.25F, -infinity, infinity};
    for (const float exponent : {0.5F, 3.0F}) {
        Layer power = general({.kind = GeneralKind::binary, .function = Function::power});
        power.weights = constant({1}, {exponent});
        const Values found = run(power, {{5}}, {x});
        for (size_t n = 0; n < x.size(); ++n) {
            const float expected = std::pow(x[n], exponent);
            EXPECT_EQ(found[n], expected);
            EXPECT_EQ(std::signbit(found[n]), std::signbit(expected));
        }
    }
}

TEST(Select, OperandsOfOneValueBroadcast) {
    const Layer select = general({.kind = GeneralKind::select});
    EXPECT_EQ(run(select, {{4}, {1}, {4}}, {{1, 0, 0, 1}, {7}, counting(4)}), (Values{7, 2, 3, 7}));
    EXPECT_EQ(run(select, {{4}, {4}, {1}}, {{1, 0, 0, 1}, counting(4), {7}}), (Values{1, 7, 7, 4}));
    EXPECT_EQ(run(select, {{1}, {1}, {3}}, {{0}, {7}, counting(3)}), counting(3));
}

TEST(Select, ChoosesElementByElement) {
    EXPECT_EQ(
        run(general({.kind = GeneralKind::select}), {{2, 1}, {2}, {1}}, {{1, 0}, {5, 6}, {7}}),
        (Values{5, 6, 7, 7}));
}

TEST(Reduce, OverAxesThatAreNoNeighbours) {
    // [2][2][2] of 1 .. 8 over axes 0 and 2: 1 + 2 + 5 + 6 and 3 + 4 + 7 + 8.
    const auto reduced = [](Function function) {
        return run(general({.kind = GeneralKind::reduce, .function = function, .axes = {0, 2}}),
                   {{2, 2, 2}}, {counting(8)});
    };
    EXPECT_EQ(reduced(Function::sum), (Values{14, 22}));
    EXPECT_EQ(reduced(Function::mean), (Values{3.5, 5.5}));
    EXPECT_EQ(reduced(Function::product), (Values{60, 672}));
    EXPECT_EQ(reduced(Function::largest), (Values{6, 8}));
    EXPECT_EQ(reduced(Function::smallest), (Values{1, 3}));
    EXPECT_EQ(reduced(Function::sum_of_squares), (Values{66, 138}));
    EXPECT_NEAR(reduced(Function::log_sum_exp)[0],
                std::log(std::exp(1) + std::exp(2) + std::exp(5) + std::exp(6)), 1e-5);
}

/// Small whole numbers with ties, and a NaN here and there.
Values tied(int64_t count) {
    std::mt19937 random(5);
    Values values(static_cast<size_t>(count));
    for (float& value : values) {
        const auto drawn = static_cast<float>(random() % 40);
        value = drawn == 39 ? std::numeric_limits<float>::quiet_NaN() : drawn;
    }
    return values;
}

TEST(Reduce, ExtremesKeepNaN) {
    // Along rows, columns and planes of 3 x 70 x 130.
    const Values x = tied(int64_t{3} * 70 * 130);
    for (const auto& [axis, step, extent] :
         {std::tuple{0, 70 * 130, 3}, std::tuple{1, 130, 70}, std::tuple{2, 1, 130}}) {
        for (const Function function : {Function::largest, Function::smallest}) {
            const Values found = run(
                general({.kind = GeneralKind::reduce, .function = function, .axes = {axis}}),
                {{3, 70, 130}}, {x});
            for (int n = 0; n < std::ssize(found); ++n) {
                const int first = n / step * step * extent + n % step;
                float expected = x[static_cast<size_t>(first)];
                for (int k = 1; k < extent; ++k) {
                    const float value = x[static_cast<size_t>(first + k * step)];
                    const bool is_better =
                        function == Function::largest ? value > expected : value < expected;
                    if (is_better || value != value) expected = value;
                    if (expected != expected) break;
                }
                const float result = found[static_cast<size_t>(n)];
                EXPECT_TRUE(result == expected || (result != result && expected != expected));
            }
        }
    }
}

/// The first of all, and the first three, nine and forty, which are found in other ways.
TEST(Order, TheFirstAreThoseOfASort) {
    constexpr int64_t extent = 50, inner = 70;
    const Values x = tied(2 * extent * inner);
    for (const Function function : {Function::largest_places, Function::smallest_places}) {
        for (const bool last_of_equals : {false, true}) {
            for (const float nan_is_first : {0.0F, 1.0F}) {
                for (const int64_t count : {1, 3, 9, 40}) {
                    const GeneralOperator op{.kind = GeneralKind::order,
                                             .function = function,
                                             .dims = {2, count, inner},
                                             .axes = {1},
                                             .constant_first = last_of_equals,
                                             .alpha = nan_is_first};
                    const Values found = run(general(op), {{2, extent, inner}}, {x});
                    for (int64_t column = 0; column < 2 * inner; ++column) {
                        const int64_t outer = column / inner, at = column % inner;
                        const auto value = [&](int64_t place) {
                            return x[static_cast<size_t>((outer * extent + place) * inner + at)];
                        };
                        const bool is_largest = function == Function::largest_places;
                        const bool nan_first = is_largest || nan_is_first != 0;
                        Dims places(extent);
                        std::iota(places.begin(), places.end(), 0);
                        if (last_of_equals) std::reverse(places.begin(), places.end());
                        std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
                            const float u = value(a), v = value(b);
                            if (u != u || v != v) return nan_first ? u != u && v == v : v != v && u == u;
                            return is_largest ? u > v : u < v;
                        });
                        for (int64_t k = 0; k < count; ++k)
                            ASSERT_EQ(found[static_cast<size_t>((outer * count + k) * inner + at)],
                                      static_cast<float>(places[static_cast<size_t>(k)]));
                    }
                }
            }
        }
    }
}

TEST(Resample, CopiesOfChannelsAndRowsOutside) {
    // Two channels of 1 x 3: one more before and behind, each row from its second element on, one
    // more at its end.
    const GeneralOperator op{.kind = GeneralKind::resample,
                             .dims = {1, 4, 1, 3},
                             .tap_counts = {1, 1, 1, 1},
                             .sources = {0, -1, 1, 0, -1, 0, 1, 2, -1},
                             .alpha = 9};
    EXPECT_EQ(run(general(op), {{1, 2, 1, 3}}, {counting(6)}),
              (Values{9, 9, 9, 5, 6, 9, 2, 3, 9, 9, 9, 9}));
}

TEST(Normalise, StandardisesOverItsAxesOnly) {
    // Per row: mean 2, variance 1; mean 6, variance 4.
    const GeneralOperator op{
        .kind = GeneralKind::normalise, .function = Function::standardise, .axes = {1}};
    EXPECT_EQ(run(general(op), {{2, 2}}, {{1, 3, 4, 8}}), (Values{-1, 1, -1, 1}));
    const GeneralOperator hard{
        .kind = GeneralKind::normalise, .function = Function::hardmax, .axes = {1}};
    EXPECT_EQ(run(general(hard), {{2, 3}}, {{1, 5, 5, 2, 0, 1}}),
              (Values{0, 1, 0, 1, 0, 0}));  // the first of equals
}

TEST(MatMul, BatchesBroadcastAndVectorsLoseTheirAxis) {
    const Layer product = general({.kind = GeneralKind::matmul});
    // Two 1x2 rows by one 2x2 matrix.
    EXPECT_EQ(run(product, {{2, 1, 2}, {2, 2}}, {{1, 2, 3, 4}, {1, 10, 100, 1000}}),
              (Values{201, 2010, 403, 4030}));
    EXPECT_EQ(infer_output_dims(product, {{2}, {3, 2, 5}}), (Dims{3, 5}));
    EXPECT_EQ(infer_output_dims(product, {{4}, {4}}), (Dims{1}));
}

TEST(MatMul, AddsOneBiasPerColumn) {
    Layer product = general({.kind = GeneralKind::matmul});
    product.weights = constant({2, 3}, {1, 0, 2, 0, 1, 3});
    product.bias = constant({3}, {10, 20, 30});
    EXPECT_EQ(run(product, {{2, 1, 2}}, {{1, 2, 3, 4}}), (Values{11, 22, 38, 13, 24, 48}));
    product.bias = constant({2}, {10, 20});
    EXPECT_THROW((void)infer_output_dims(product, {{2, 1, 2}}), InputError);
}

TEST(LocalResponse, SumsSquaresOfNeighbourChannels) {
    // size 3: channels c - 1 .. c + 1; 1 + 3 / 3 * (1 + 4) = 6 below the first, to the power 1.
    const GeneralOperator op{
        .kind = GeneralKind::local_response, .kernel = {3}, .alpha = 3, .beta = 1, .gamma = 1};
    EXPECT_EQ(run(general(op), {{1, 3, 1, 1}}, {{1, 2, 3}}),
              (Values{1.0f / 6, 2.0f / 15, 3.0f / 14}));
    // size 2: channels c .. c + 1 (floor((2 - 1) / 2) = 0 before, ceil((2 - 1) / 2) = 1 after).
    const GeneralOperator even{
        .kind = GeneralKind::local_response, .kernel = {2}, .alpha = 2, .beta = 1, .gamma = 1};
    EXPECT_EQ(run(general(even), {{1, 2, 1, 1}}, {{1, 2}}), (Values{1.0f / 6, 2.0f / 5}));
}

/// Sums along each axis of odd extents, on one thread and three, which give the same bits.
TEST(RunningSum, OfEveryAxisAndDirection) {
    const Dims dims{3, 17, 70};
    Values x = tied(3 * 17 * 70);
    for (float& value : x) value = value != value ? 7 : std::clamp(value, -100.0F, 100.0F) / 3;
    for (const int64_t axis : {0, 1, 2}) {
        for (const bool from_end : {false, true}) {
            for (const bool leaves_out_itself : {false, true}) {
                const GeneralOperator op{.kind = GeneralKind::running_sum,
                                         .axes = {axis},
                                         .alpha = from_end ? 1.0F : 0.0F,
                                         .beta = leaves_out_itself ? 1.0F : 0.0F};
                const Values found = run(general(op), {dims}, {x});
                Values of_three(found.size());
                run_reference_layer(general(op), {dims}, {x.data()}, dims, of_three.data(), 3);
                EXPECT_EQ(of_three, found);
                const int64_t step = axis == 0 ? 17 * 70 : axis == 1 ? 70 : 1;
                const int64_t extent = dims[static_cast<size_t>(axis)];
                for (int64_t k = 0; k < std::ssize(x); ++k) {
                    double sum = 0;
                    const int64_t place = k / step % extent;
                    for (int64_t other = 0; other < extent; ++other) {
                        const bool counts = (from_end ? other > place : other < place) ||
                                            (other == place && !leaves_out_itself);
                        if (counts)
                            sum += static_cast<double>(
                                x[static_cast<size_t>(k + (other - place) * step)]);
                    }
                    ASSERT_NEAR(static_cast<double>(found[static_cast<size_t>(k)]), sum,
                                1e-6 * std::abs(sum) + 1e-9);
                }
            }
        }
    }
}

// The product with a triangle of ones, which would do the same, makes NaN of all sums of a row with an
// infinity.
TEST(RunningSum, AnInfinityIsInTheSumsFromItOn) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const GeneralOperator op{.kind = GeneralKind::running_sum, .axes = {1}};
    EXPECT_EQ(run(general(op), {{1, 4}}, {{1, 2, infinity, 3}}), (Values{1, 3, infinity, infinity}));
    EXPECT_THROW((void)infer_output_dims(general({.kind = GeneralKind::running_sum, .axes = {2}}),
                                         {{1, 4}}),
                 InputError);
}

/// The picture layer that equals a general layer with two spatial axes.
Layer as_picture(const Layer& from) {
    Layer layer = from;
    const GeneralOperator& op = from.general;
    layer.kind = op.kind == GeneralKind::convolution              ? LayerKind::conv
                 : op.kind == GeneralKind::transposed_convolution ? LayerKind::conv_transpose
                 : op.kind == GeneralKind::max_pool               ? LayerKind::max_pool
                                                                  : LayerKind::average_pool;
    for (size_t axis = 0; axis < 2; ++axis) {
        layer.window.kernel[axis] = op.kernel[axis];
        layer.window.stride[axis] = op.stride[axis];
        layer.window.dilation[axis] = op.dilation[axis];
        layer.window.pad_begin[axis] = op.pad_begin[axis];
        layer.window.pad_end[axis] = op.pad_end[axis];
    }
    layer.count_include_pad = op.count_include_pad;
    return layer;
}

TEST(Windows, OfTwoAxesEqualThePictureLayers) {
    std::mt19937 random(5);
    const auto number = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    for (int round = 0; round < 60; ++round) {
        const auto kind = std::vector{GeneralKind::convolution, GeneralKind::transposed_convolution,
                                      GeneralKind::max_pool,
                                      GeneralKind::average_pool}[static_cast<size_t>(round) % 4];
        GeneralOperator op{.kind = kind,
                           .count_include_pad = kind == GeneralKind::average_pool && round % 8 < 4};
        for (int axis = 0; axis < 2; ++axis) {
            op.kernel.push_back(number(1, 3));
            op.stride.push_back(number(1, 3));
            op.dilation.push_back(number(1, 2));
            op.pad_begin.push_back(number(0, op.kernel.back() - 1));
            op.pad_end.push_back(number(0, op.kernel.back() - 1));
        }
        const Dims in{2, 4, number(7, 9), number(7, 9)};
        Layer layer = general(op);
        layer.groups = number(1, 2);
        if (kind == GeneralKind::convolution || kind == GeneralKind::transposed_convolution) {
            const Dims w = kind == GeneralKind::convolution
                               ? Dims{6, 4 / layer.groups, op.kernel[0], op.kernel[1]}
                               : Dims{4, 3, op.kernel[0], op.kernel[1]};
            Values values(static_cast<size_t>(element_count(w)));
            for (float& v : values) v = static_cast<float>(number(-4, 4));
            layer.weights = constant(w, values);
            layer.bias =
                constant({kind == GeneralKind::convolution ? 6 : 3 * layer.groups},
                         counting(kind == GeneralKind::convolution ? 6 : 3 * layer.groups));
        } else {
            layer.groups = 1;
        }
        const Layer picture = as_picture(layer);
        const Dims out = infer_output_dims(picture, {in});
        if (kind == GeneralKind::transposed_convolution) layer.general.dims = {out[2], out[3]};
        ASSERT_EQ(infer_output_dims(layer, {in}), out);
        Values x(static_cast<size_t>(element_count(in)));
        for (float& v : x) v = static_cast<float>(number(-8, 8));
        const Values found = run(layer, {in}, {x}), expected = run(picture, {in}, {x});
        for (size_t k = 0; k < expected.size(); ++k)
            ASSERT_NEAR(found[k], expected[k], 1e-5) << "round " << round << ", element " << k;
    }
}

/// Kernels of up to five taps per axis, so that windows have up to 125 elements of 25 rows.
TEST(Windows, OfPoolingAreJoinsOfTheirElements) {
    std::mt19937 random(7);
    const auto number = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    for (int round = 0; round < 80; ++round) {
        const bool is_max = round % 2 == 0;
        GeneralOperator op{.kind = is_max ? GeneralKind::max_pool : GeneralKind::average_pool};
        for (int axis = 0; axis < 3; ++axis) {
            op.kernel.push_back(number(1, 5));
            op.stride.push_back(number(1, 3));
            op.dilation.push_back(number(1, 2));
            op.pad_begin.push_back(number(0, op.kernel.back() - 1));
            op.pad_end.push_back(number(0, op.kernel.back() - 1));
        }
        const Dims in{1, 2, number(9, 11), number(9, 11), number(9, 40)};
        Values x(static_cast<size_t>(element_count(in)));
        for (float& v : x) v = static_cast<float>(number(-99, 99));
        if (is_max && round % 4 == 0) x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
        const Layer layer = general(op);
        const Dims out = infer_output_dims(layer, {in});
        const Values found = run(layer, {in}, {x});
        const auto taps_of = [&](size_t axis, int64_t at) {
            std::vector<int64_t> inside;
            for (int64_t tap = 0; tap < op.kernel[axis]; ++tap) {
                const int64_t place =
                    at * op.stride[axis] + tap * op.dilation[axis] - op.pad_begin[axis];
                if (place >= 0 && place < in[axis + 2]) inside.push_back(place);
            }
            return inside;
        };
        for (int64_t k = 0; k < element_count(out); ++k) {
            const int64_t channel = k / (out[2] * out[3] * out[4]);
            double sum = 0, count = 0;
            float most = -std::numeric_limits<float>::infinity();
            for (const int64_t d : taps_of(0, k / (out[3] * out[4]) % out[2])) {
                for (const int64_t y : taps_of(1, k / out[4] % out[3])) {
                    for (const int64_t column : taps_of(2, k % out[4])) {
                        const float v = x[static_cast<size_t>(
                            ((channel * in[2] + d) * in[3] + y) * in[4] + column)];
                        if (!(v <= most) && most == most) most = v;  // NaN stays
                        sum += static_cast<double>(v);
                        ++count;
                    }
                }
            }
            const float result = found[static_cast<size_t>(k)];
            if (is_max) {
                if (std::isnan(most))
                    ASSERT_TRUE(std::isnan(result));
                else
                    ASSERT_EQ(result, most);
            } else {
                ASSERT_NEAR(static_cast<double>(result), sum / count, 1e-5 * 99);
            }
        }
    }
}

TEST(Windows, OfThreeAxes) {
    // One channel of 2x2x2, kernel 2x2x2 of ones, padding 1 before each axis: the corner output
    // sees one element.
    Layer conv = general({.kind = GeneralKind::convolution,
                          .kernel = {2, 2, 2},
                          .stride = {1, 1, 1},
                          .dilation = {1, 1, 1},
                          .pad_begin = {1, 1, 1},
                          .pad_end = {0, 0, 0}});
    conv.weights = constant({1, 1, 2, 2, 2}, Values(8, 1.0f));
    EXPECT_EQ(run(conv, {{1, 1, 2, 2, 2}}, {counting(8)}), (Values{1, 3, 4, 10, 6, 14, 16, 36}));
    // Its transpose: every output of a 1x1x1 input times the kernel.
    Layer transposed = general({.kind = GeneralKind::transposed_convolution,
                                .dims = {2, 2, 2},
                                .kernel = {2, 2, 2},
                                .stride = {1, 1, 1},
                                .dilation = {1, 1, 1},
                                .pad_begin = {0, 0, 0},
                                .pad_end = {0, 0, 0}});
    transposed.weights = constant({1, 1, 2, 2, 2}, counting(8));
    EXPECT_EQ(run(transposed, {{1, 1, 1, 1, 1}}, {{3}}), (Values{3, 6, 9, 12, 15, 18, 21, 24}));
}

TEST(Layers, ThatDoNotFitAreRefused) {
    const auto error = [](const Layer& layer, const std::vector<Dims>& in) {
        try {
            (void)infer_output_dims(layer, in);
        } catch (const std::exception& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    EXPECT_EQ(
        error(general({.kind = GeneralKind::view, .dims = {3}, .first = 1, .steps = {2}}), {{5}}),
        "layer (view): views elements 1 to 5 of an input of 5");
    EXPECT_EQ(error(general({.kind = GeneralKind::view,
                             .dims = {int64_t{1} << 30},
                             .steps = {int64_t{1} << 60}}),
                    {{5}}),
              "layer (view): its size overflows 64 bits");
    EXPECT_EQ(
        error(general(
                  {.kind = GeneralKind::resample, .dims = {1}, .tap_counts = {1}, .sources = {5}}),
              {{5}}),
        "layer (resample): axis 0 reads coordinate 5 of 5");
    EXPECT_EQ(error(general({.kind = GeneralKind::binary, .function = Function::sum}), {{5}, {5}}),
              "layer (sum): binary cannot be of function sum");
    EXPECT_EQ(
        error(general({.kind = GeneralKind::reduce, .function = Function::sum, .axes = {1, 1}}),
              {{5, 5}}),
        "layer (sum): axis 1 of an input of 5x5");
    EXPECT_EQ(error(general({.kind = GeneralKind::matmul}), {{2, 3}, {2, 3}}),
              "layer (matmul): multiplies matrices of 2x3 and 2x3");
}

}  // namespace
}  // namespace laminate
