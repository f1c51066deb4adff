#include "nets/operators/row_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "nets/operators/general_operators.h"
#include "nets/operators/reference_operators.h"

namespace laminate {
namespace {

using Row = std::vector<float>;
using Function = GeneralFunction;

/// Values of all magnitudes that functions tell apart, and what is special.
Row arguments() {
    Row values{0, -0.0F, 87.5F, 88.9F, -87, -104, 1e30F, -1e30F, 3e34F, -3e34F, 3e38F, -3e38F};
    for (float x = 1e-6F; x < 90; x *= 1.0173F) values.insert(values.end(), {x, -x});
    for (const float x : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
        values.insert(values.end(), {x, -x});
    return values;
}

/// `allowed`: of the expected value.
void expect_close(const Row& found, const Row& x, const Row& expected, float allowed,
                  const char* what) {
    for (size_t k = 0; k < x.size(); ++k) {
        if (std::isnan(expected[k]) || std::isinf(expected[k])) {
            EXPECT_TRUE(std::isnan(expected[k]) ? std::isnan(found[k]) : found[k] == expected[k])
                << what << "(" << x[k] << ") is " << found[k];
            continue;
        }
        EXPECT_NEAR(found[k], expected[k],
                    allowed * std::abs(expected[k]) + std::numeric_limits<float>::min())
            << what << "(" << x[k] << ")";
    }
}

// Gelu of negative numbers is a small difference, which the library's formula by the tangent loses.
TEST(RowFunctions, AreThoseOfTheLibraryToAFewUnits) {
    const Row x = arguments();
    for (const auto& [function, allowed] :
         {std::pair{Function::exponential, 3e-7F}, {Function::swish, 5e-7F},
          {Function::square_root, 0.0F}, {Function::softplus, 5e-7F}, {Function::sign, 0.0F},
          {Function::thresholded_relu, 0.0F}, {Function::shrink, 0.0F},
          {Function::error_function, 3e-7F}, {Function::logarithm, 3e-7F},
          {Function::hard_sigmoid, 0.0F}, {Function::hard_swish, 3e-7F},
          {Function::softsign, 2e-7F}, {Function::mish, 1e-6F}, {Function::is_zero, 0.0F}}) {
        Row found(x.size()), expected(x.size());
        apply_unary_row(function, 1, 0, x.data(), found.data(), std::ssize(x));
        for (size_t k = 0; k < x.size(); ++k) expected[k] = apply_unary(function, x[k], 1, 0);
        expect_close(found, x, expected, allowed, to_string(function));
    }
    for (const auto function : {Function::elu, Function::selu, Function::celu}) {
        constexpr float alpha = 0.75F, beta = 1.25F;
        Row found(x.size()), expected(x.size());
        apply_unary_row(function, alpha, beta, x.data(), found.data(), std::ssize(x));
        for (size_t k = 0; k < x.size(); ++k)
            expected[k] = apply_unary(function, x[k], alpha, beta);
        expect_close(found, x, expected, 6e-7F, to_string(function));
    }
    for (const auto kind : {ActivationKind::sigmoid, ActivationKind::tanh, ActivationKind::relu,
                            ActivationKind::clip, ActivationKind::leaky_relu}) {
        Row found(x.size()), expected(x.size());
        const Activation activation{.kind = kind, .alpha = 0.25F, .low = -2, .high = 3};
        apply_activation_row(activation, 0, x.data(), found.data(), std::ssize(x));
        for (size_t k = 0; k < x.size(); ++k)
            expected[k] = apply_activation(activation, x[k], 0);
        expect_close(found, x, expected, 5e-7F, to_string(kind));
    }
    for (const float value : x) {
        if (!std::isfinite(value)) continue;
        for (const auto function : {Function::gelu, Function::gelu_tanh}) {
            float found = 0;
            apply_unary_row(function, 0, 0, &value, &found, 1);
            EXPECT_NEAR(found, apply_unary(function, value, 0, 0), 3e-7F * std::abs(value))
                << to_string(function) << "(" << value << ")";
        }
    }
}

// Rows that fill vectors and do not, beside sums in double precision.
TEST(RowFunctions, NormaliseAsInDoublePrecision) {
    Rng rng(5);
    for (const int64_t count : {1, 15, 40, 255, 256, 20001}) {
        Row x(static_cast<size_t>(count)), found(x.size());
        double largest = -1e9, sum = 0, mean = 0, variance = 0;
        for (float& value : x) {
            value = static_cast<float>(rng.below(20001) - 10000) / 1000.0F + 100;
            largest = std::max(largest, static_cast<double>(value));
            mean += static_cast<double>(value) / static_cast<double>(count);
        }
        for (const float value : x) {
            sum += std::exp(static_cast<double>(value) - largest);
            variance += std::pow(static_cast<double>(value) - mean, 2) / static_cast<double>(count);
        }
        normalise_rows(Function::softmax, 0, x.data(), found.data(), 1, count, 1);
        for (size_t k = 0; k < x.size(); ++k) {
            const double expected = std::exp(static_cast<double>(x[k]) - largest) / sum;
            ASSERT_NEAR(static_cast<double>(found[k]), expected, 1e-6 * expected) << count;
        }
        normalise_rows(Function::log_softmax, 0, x.data(), found.data(), 1, count, 1);
        for (size_t k = 0; k < x.size(); ++k)
            ASSERT_NEAR(static_cast<double>(found[k]),
                        static_cast<double>(x[k]) - largest - std::log(sum), 3e-6);
        normalise_rows(Function::standardise, 1e-5F, x.data(), found.data(), 1, count, 1);
        for (size_t k = 0; k < x.size(); ++k)
            ASSERT_NEAR(static_cast<double>(found[k]),
                        (static_cast<double>(x[k]) - mean) / std::sqrt(variance + 1e-5), 1e-6);
    }
}

// A row's last elements, which fill no vector, are computed with those before them.
TEST(RowFunctions, SoftmaxOfRowsOfEveryLength) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (int64_t count = 1; count <= 70; ++count) {
        Row x(static_cast<size_t>(count)), found(x.size());
        for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k * 37 % 101) / 25;
        normalise_rows(Function::softmax, 0, x.data(), found.data(), 1, count, 1);
        Row in_place = x;
        normalise_rows(Function::softmax, 0, in_place.data(), in_place.data(), 1, count, 1);
        EXPECT_EQ(in_place, found) << count;
        for (size_t place = 0; place < x.size(); ++place) {
            Row with_infinity = x;
            with_infinity[place] = -infinity;
            if (count > 1) {
                normalise_rows(Function::softmax, 0, with_infinity.data(), found.data(), 1, count, 1);
                double sum = 0;
                for (const float part : found) sum += static_cast<double>(part);
                EXPECT_EQ(found[place], 0.0F) << count;
                EXPECT_NEAR(sum, 1, 1e-5) << count << " at " << place;
            }
            with_infinity[place] = std::numeric_limits<float>::quiet_NaN();
            normalise_rows(Function::softmax, 0, with_infinity.data(), found.data(), 1, count, 1);
            for (const float part : found) EXPECT_TRUE(std::isnan(part)) << count << " at " << place;
        }
    }
}

// Rows are normalised in passes over some of them, in parts of 4096 elements.
TEST(RowFunctions, SoftmaxOfManyRowsIsThatOfEachRow) {
    Rng rng(9);
    for (const auto& [rows, count] :
         {std::pair<int64_t, int64_t>{150, 49}, {65, 33}, {3, 5000}, {200, 3}}) {
        Row x(static_cast<size_t>(rows * count)), found(x.size()), expected(x.size());
        for (float& value : x) value = static_cast<float>(rng.below(2001) - 1000) / 100.0F;
        for (const Function function : {Function::softmax, Function::log_softmax}) {
            normalise_rows(function, 0, x.data(), found.data(), rows, count, 1);
            for (int64_t row = 0; row < rows; ++row)
                normalise_rows(function, 0, x.data() + row * count, expected.data() + row * count,
                               1, count, 1);
            EXPECT_EQ(found, expected) << rows << " x " << count;
        }
    }
}

// Differences of single precision are as exact as the result has digits, near 0 too.
TEST(RowFunctions, LogarithmsOfSoftmaxKeepTheirDigits) {
    Row x{900, -300, 903, 7, 902.5F, 1e-3F, 880, 870, 899, 1, 2};
    Row found(x.size());
    double sum = 0;
    for (const float value : x) sum += std::exp(static_cast<double>(value) - 903);
    normalise_rows(Function::log_softmax, 0, x.data(), found.data(), 1, std::ssize(x), 1);
    for (size_t k = 0; k < x.size(); ++k) {
        const double expected = static_cast<double>(x[k]) - 903 - std::log(sum);
        EXPECT_NEAR(static_cast<double>(found[k]), expected, 2e-7 * std::abs(expected)) << k;
    }
}

TEST(RowFunctions, SoftmaxAlongOuterAxesIsThatOfEachColumn) {
    constexpr int64_t extent = 9, inner = 70;  // more than a part of columns
    Rng rng(6);
    Row x(2 * extent * inner), found(x.size());
    for (float& value : x) value = static_cast<float>(rng.below(2001) - 1000) / 100.0F;
    for (const int threads : {1, 3}) {
        run_softmax_along(false, 2, extent, inner, x.data(), found.data(), threads);
        for (int64_t column = 0; column < 2 * inner; ++column) {
            Row along, expected(extent);
            const int64_t first = column / inner * extent * inner + column % inner;
            for (int64_t a = 0; a < extent; ++a)
                along.push_back(x[static_cast<size_t>(first + a * inner)]);
            normalise_rows(Function::softmax, 0, along.data(), expected.data(), 1, extent, 1);
            for (int64_t a = 0; a < extent; ++a)
                ASSERT_NEAR(found[static_cast<size_t>(first + a * inner)],
                            expected[static_cast<size_t>(a)], 1e-6F);
        }
    }
    // A NaN makes NaN of its own column alone.
    x[0] = std::numeric_limits<float>::quiet_NaN();
    run_softmax_along(false, 2, extent, inner, x.data(), found.data(), 1);
    for (int64_t a = 0; a < extent; ++a) {
        EXPECT_TRUE(std::isnan(found[static_cast<size_t>(a * inner)]));
        EXPECT_FALSE(std::isnan(found[static_cast<size_t>(a * inner + 1)]));
    }
}

}  // namespace
}  // namespace laminate
