#include "nets/operators/reductions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "base/rng.h"

namespace laminate {
namespace {

using Function = GeneralFunction;

double reduced_by_definition(Function function, const std::vector<float>& elements) {
    double sum = 0, largest = -1e30, smallest = 1e30, product = 1, norm = 0, squares = 0, powers = 0;
    for (const float element : elements) {
        const auto x = static_cast<double>(element);
        sum += x;
        largest = std::max(largest, x);
        smallest = std::min(smallest, x);
        product *= x;
        norm += std::abs(x);
        squares += x * x;
        powers += std::exp(x);
    }
    switch (function) {
        case Function::mean:
            return sum / static_cast<double>(elements.size());
        case Function::product:
            return product;
        case Function::largest:
            return largest;
        case Function::smallest:
            return smallest;
        case Function::norm_1:
            return norm;
        case Function::norm_2:
            return std::sqrt(squares);
        case Function::log_sum:
            return std::log(sum);
        case Function::log_sum_exp:
            return std::log(powers);
        case Function::sum_of_squares:
            return squares;
        default:
            return sum;
    }
}

// Every function over random axes of random shapes: rows and columns that fill vectors and do not, and
// axes that are no neighbours.
TEST(Reductions, OverAnyAxesAreThoseOfTheirElements) {
    Rng rng(31);
    for (int n = 0; n < 60; ++n) {
        std::vector<int64_t> dims(static_cast<size_t>(rng.between(1, 5))), axes;
        for (int64_t& extent : dims) extent = rng.chance(1, 4) ? 1 : rng.between(2, 9);
        if (rng.chance(1, 2)) dims.back() = rng.between(10, 140);
        for (size_t d = 0; d < dims.size(); ++d) {
            if (rng.chance(1, 2)) axes.push_back(static_cast<int64_t>(d));
        }
        size_t count = 1;
        for (const int64_t extent : dims) count *= static_cast<size_t>(extent);
        std::vector<float> input(count);
        for (float& value : input) value = static_cast<float>(rng.between(1, 1000)) / 500;
        std::map<int64_t, std::vector<float>> elements;  // by place in the output
        for (size_t k = 0; k < count; ++k) {
            int64_t rest = static_cast<int64_t>(k), to = 0, step = 1;
            for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
                if (std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end()) continue;
                to += rest % dims[d] * step;
                step *= dims[d];
            }
            elements[to].push_back(input[k]);
        }
        for (const Function function :
             {Function::sum, Function::mean, Function::product, Function::largest, Function::smallest,
              Function::norm_1, Function::norm_2, Function::log_sum, Function::log_sum_exp,
              Function::sum_of_squares}) {
            std::vector<float> output(elements.size());
            reduce_axes(function, dims, axes, input.data(), output.data(), n % 8 == 0 ? 2 : 1);
            for (const auto& [to, values] : elements) {
                const double expected = reduced_by_definition(function, values);
                ASSERT_NEAR(static_cast<double>(output[static_cast<size_t>(to)]), expected,
                            1e-6 * std::abs(expected) + 1e-6)
                    << n << ", " << to_string(function);
            }
        }
    }
}

TEST(Reductions, ANotANumberIsLargestAndSmallest) {
    for (const int64_t place : {0, 17, 99}) {
        std::vector<float> input(100, 1);
        input[static_cast<size_t>(place)] = std::numeric_limits<float>::quiet_NaN();
        for (const Function function : {Function::largest, Function::smallest, Function::log_sum_exp}) {
            for (const int64_t axis : {0, 1}) {
                std::vector<float> output(100, 5);
                const std::vector<int64_t> dims = axis == 0 ? std::vector<int64_t>{100, 1}
                                                            : std::vector<int64_t>{1, 100};
                reduce_axes(function, dims, {axis}, input.data(), output.data(), 1);
                EXPECT_TRUE(std::isnan(output[0])) << to_string(function) << " " << place;
            }
        }
    }
}

}  // namespace
}  // namespace laminate
