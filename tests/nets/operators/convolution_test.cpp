#include "nets/operators/convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "nets/operators/pooling.h"

namespace laminate {
namespace {

using Extents = std::vector<int64_t>;

int64_t product_of(const Extents& extents) {
    int64_t product = 1;
    for (const int64_t extent : extents) product *= extent;
    return product;
}

/// Calls body(coordinates) for all of a tensor in row-major order.
template <class Body>
void for_all(const Extents& extents, const Body& body) {
    Extents at(extents.size(), 0);
    for (int64_t k = 0; k < product_of(extents); ++k) {
        body(at);
        for (size_t d = extents.size(); d-- > 0;) {
            if (++at[d] < extents[d]) break;
            at[d] = 0;
        }
    }
}

size_t place_of(const Extents& extents, const Extents& at) {
    int64_t place = 0;
    for (size_t d = 0; d < extents.size(); ++d) place = place * extents[d] + at[d];
    return static_cast<size_t>(place);
}

Extents random_extents(Rng& rng, size_t count, int64_t low, int64_t high) {
    Extents extents(count);
    for (int64_t& extent : extents) extent = rng.between(low, high);
    return extents;
}

std::vector<float> random_numbers(Rng& rng, int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(rng.between(-4, 4));
    return values;
}

/// Each input element times each weight, added to the output that the definition names.
std::vector<float> convolved_by_definition(const ConvolutionProblem& p,
                                           const std::vector<float>& input) {
    const size_t axes = p.kernel.size();
    const int64_t group_in = p.in[1] / p.groups, group_out = p.out[1] / p.groups;
    std::vector<float> output(static_cast<size_t>(product_of(p.out)));
    for_all(p.out, [&](const Extents& at) {
        output[place_of(p.out, at)] = p.bias == nullptr ? 0 : p.bias[at[1]];
    });
    for_all(p.in, [&](const Extents& from) {
        for_all(p.kernel, [&](const Extents& tap) {
            for (int64_t z = 0; z < group_out; ++z) {
                const int64_t group = from[1] / group_in;
                Extents to{from[0], group * group_out + z};
                bool is_read = true;
                for (size_t d = 0; d < axes; ++d) {
                    const int64_t reach = tap[d] * p.dilation[d] - p.pad_begin[d];
                    const int64_t scaled = p.transposed ? from[d + 2] * p.stride[d] + reach
                                                        : from[d + 2] - reach;
                    is_read = is_read && (p.transposed || scaled % p.stride[d] == 0);
                    to.push_back(p.transposed ? scaled : scaled / p.stride[d]);
                    is_read = is_read && scaled >= 0 && to.back() < p.out[d + 2];
                }
                if (!is_read) continue;
                Extents weights = p.transposed ? Extents{p.in[1], group_out} : Extents{p.out[1], group_in};
                Extents weight = p.transposed ? Extents{from[1], z} : Extents{to[1], from[1] % group_in};
                weights.insert(weights.end(), p.kernel.begin(), p.kernel.end());
                weight.insert(weight.end(), tap.begin(), tap.end());
                output[place_of(p.out, to)] +=
                    input[place_of(p.in, from)] * p.weights[place_of(weights, weight)];
            }
        });
    });
    return output;
}

void expect_by_definition(ConvolutionProblem p, Rng& rng) {
    const auto weights = random_numbers(rng, p.in[1] * p.out[1] / p.groups * product_of(p.kernel)),
               bias = random_numbers(rng, p.out[1]), input = random_numbers(rng, product_of(p.in));
    p.weights = weights.data();
    if (rng.chance(1, 2)) p.bias = bias.data();
    std::vector<float> expected = convolved_by_definition(p, input);
    const int64_t plane = std::ssize(expected) / p.out[0] / p.out[1];
    for (int64_t k = 0; p.finish && k < p.out[0] * p.out[1]; ++k)
        p.finish(k % p.out[1], expected.data() + k * plane, plane);
    for (const int threads : {1, 3}) {
        std::vector<float> found(expected.size(), -1.5F);
        convolve(p, input.data(), found.data(), threads);
        ASSERT_EQ(found, expected) << threads << " threads, " << p.kernel.size() << " axes";
    }
}

// Whole numbers, whose sums are exact. Strides above the kernel leave holes in transposed ones,
// whose rows may end before the last phases do.
TEST(Convolutions, OfAnyRankAreSumsByDefinition) {
    Rng rng(28);
    for (int n = 0; n < 150; ++n) {
        SCOPED_TRACE(n);
        const auto axes = static_cast<size_t>(rng.between(1, 4));
        const int64_t longest = axes == 1 ? 90 : axes == 2 ? 20 : 6;
        ConvolutionProblem p{.transposed = rng.chance(1, 2),
                             .groups = rng.between(1, 3),
                             .kernel = random_extents(rng, axes, 1, 3),
                             .stride = random_extents(rng, axes, 1, 4),
                             .dilation = random_extents(rng, axes, 1, 2),
                             .pad_begin = random_extents(rng, axes, 0, 2)};
        p.in = {rng.between(1, 2), p.groups * rng.between(1, 5)};
        p.out = {p.in[0], p.groups * rng.between(1, 15)};
        for (size_t d = 0; d < axes; ++d) {
            p.in.push_back(rng.between(2, longest));
            p.out.push_back(p.transposed
                                ? p.in.back() * p.stride[d] - rng.between(0, p.stride[d] - 1)
                                : (p.in.back() - 1) / p.stride[d] + 1);
        }
        expect_by_definition(p, rng);
    }
}

// Groups of one or two output channels, and windows of one element, have ways of their own.
TEST(Convolutions, OfFewChannelsOrOneElement) {
    Rng rng(30);
    for (int n = 0; n < 80; ++n) {
        SCOPED_TRACE(n);
        const auto axes = static_cast<size_t>(rng.between(1, 3));
        const bool is_one_element = n % 2 == 0;
        const std::vector<int64_t> ones(axes, 1);
        ConvolutionProblem p{.groups = rng.between(1, 5),
                             .kernel = is_one_element ? ones : random_extents(rng, axes, 1, 4),
                             .stride = is_one_element ? ones : random_extents(rng, axes, 1, 3),
                             .dilation = random_extents(rng, axes, 1, 2),
                             .pad_begin = is_one_element ? std::vector<int64_t>(axes, 0)
                                                         : random_extents(rng, axes, 0, 3)};
        p.in = {rng.between(1, 2), p.groups * rng.between(1, 5)};
        p.out = {p.in[0], p.groups * rng.between(1, is_one_element ? 20 : 2)};
        for (size_t d = 0; d < axes; ++d) {
            p.in.push_back(rng.between(2, axes == 1 ? 300 : 12));
            p.out.push_back((p.in.back() - 1) / p.stride[d] + 1);
        }
        if (rng.chance(1, 2)) {
            p.finish = [](int64_t channel, float* values, int64_t count) {
                for (int64_t k = 0; k < count; ++k)
                    values[k] = 2 * values[k] + static_cast<float>(channel);
            };
        }
        expect_by_definition(p, rng);
    }
}

// More input channels, and more kernel elements, than a panel holds at a time.
TEST(Convolutions, DeeperThanAPanelAreAddedInParts) {
    Rng rng(29);
    for (const bool transposed : {false, true}) {
        expect_by_definition({.transposed = transposed,
                              .in = {1, 150, 3, 5},
                              .out = {1, 3, 3, 5},
                              .kernel = {3, 3},
                              .stride = {1, 1},
                              .dilation = {1, 1},
                              .pad_begin = {1, 1}},
                             rng);
        for (const int64_t channels : {2, 3})
            expect_by_definition({.transposed = transposed,
                              .in = {1, channels, 1200},
                              .out = {1, channels, 40},
                              .kernel = {1100},
                              .stride = {1},
                              .dilation = {1},
                              .pad_begin = {3}},
                             rng);
    }
}

// The largest, the mean and the root of squares of what each window holds.
TEST(Pools, OfAnyRankAreThoseOfTheirWindows) {
    Rng rng(30);
    for (int n = 0; n < 150; ++n) {
        SCOPED_TRACE(n);
        const auto axes = static_cast<size_t>(rng.between(1, 4));
        PoolingProblem p{.kernel = random_extents(rng, axes, 1, 3),
                         .stride = random_extents(rng, axes, 1, 3),
                         .dilation = random_extents(rng, axes, 1, 2),
                         .pad_begin = {},
                         .pad_end = {},
                         .count_include_pad = rng.chance(1, 2)};
        p.kind = std::array{GeneralKind::max_pool, GeneralKind::average_pool,
                            GeneralKind::power_pool}[static_cast<size_t>(rng.between(0, 2))];
        p.in = p.out = {2, 3};
        for (size_t d = 0; d < axes; ++d) {
            const int64_t pad = rng.between(0, p.kernel[d] - 1);
            p.in.push_back(rng.between(3, 9));
            p.pad_begin.push_back(pad);
            p.pad_end.push_back(pad);
            const int64_t reach = p.in.back() + 2 * pad - (p.kernel[d] - 1) * p.dilation[d] - 1;
            p.out.push_back(std::max<int64_t>(0, reach) / p.stride[d] + 1);
        }
        const std::vector<float> input = random_numbers(rng, product_of(p.in));
        std::vector<float> found(static_cast<size_t>(product_of(p.out)));
        pool_windows(p, input.data(), found.data(), 2);
        for_all(p.out, [&](const Extents& at) {
            double largest = -1e9, sum = 0, squares = 0, inside = 0, padded = 0;
            for_all(p.kernel, [&](const Extents& tap) {
                Extents from{at[0], at[1]};
                bool reads = true, counts = true;
                for (size_t d = 0; d < axes; ++d) {
                    from.push_back(at[d + 2] * p.stride[d] + tap[d] * p.dilation[d] - p.pad_begin[d]);
                    reads = reads && from.back() >= 0 && from.back() < p.in[d + 2];
                    counts = counts && from.back() < p.in[d + 2] + p.pad_end[d];
                }
                padded += counts;
                if (!reads) return;
                const auto value = static_cast<double>(input[place_of(p.in, from)]);
                largest = std::max(largest, value);
                sum += value;
                squares += value * value;
                ++inside;
            });
            const double expected = p.kind == GeneralKind::max_pool ? largest
                                    : p.kind == GeneralKind::power_pool
                                        ? std::sqrt(squares)
                                        : sum / (p.count_include_pad ? padded : inside);
            if (inside == 0) return;  // no layer has such a window
            EXPECT_NEAR(static_cast<double>(found[place_of(p.out, at)]), expected, 1e-5);
        });
    }
}

}  // namespace
}  // namespace laminate
