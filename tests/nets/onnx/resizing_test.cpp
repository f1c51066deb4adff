// Resize and Upsample: coordinates and extents, as PyTorch and onnxruntime compute them (issue 26,
// 1); random ones in tests/conformance/random_exports.py.
#include <gtest/gtest.h>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::ModelBuilder;
using Dims = std::vector<int64_t>;
using Values = std::vector<float>;

/// Resizes `x` along its last axis; the other axes have extent 1.
Values resized(const Values& x, size_t rank, float scale, const char* mode,
               const char* coordinates) {
    Dims dims(rank, 1);
    dims.back() = std::ssize(x);
    Values scales(rank, 1);
    scales.back() = scale;
    ModelBuilder m(dims);
    m.weights("scales", {static_cast<int64_t>(rank)}, scales);
    m.node("Resize", {"x", "", "scales"}, "y")
        .text("mode", mode)
        .text("coordinate_transformation_mode", coordinates)
        .text("nearest_mode", "floor");
    return run_reference_network(m.parse(), {x})[0];
}

const Values first_squares{0, 1, 4, 9, 16};

// 5 * 1.5 = 7.5, so the output has 7 elements, at k * (5 - 1) / (7 - 1): 0, 2/3, 4/3,
// 2, 8/3, 10/3, 4.
TEST(Resize, CornersAlignByTheWholeLengthOfTheOutput) {
    const Values expected{0, 2.0f / 3, 2, 4, 4 + 10.0f / 3, 9 + 7.0f / 3, 16};
    for (const size_t rank : {3u, 4u, 5u}) {
        const Values found = resized(first_squares, rank, 1.5f, "linear", "align_corners");
        ASSERT_EQ(found.size(), expected.size()) << rank;
        for (size_t k = 0; k < found.size(); ++k)
            EXPECT_NEAR(found[k], expected[k], 1e-5f) << rank << ", " << k;
        const Values nearest = resized(first_squares, rank, 1.5f, "nearest", "align_corners");
        EXPECT_EQ(nearest, (Values{0, 0, 1, 4, 4, 9, 16})) << rank;
    }
    const Values cubic = resized(first_squares, 4, 1.5f, "cubic", "align_corners");
    ASSERT_EQ(cubic.size(), 7u);
    for (const auto& [k, value] : {std::pair{0u, 0.0f}, {3u, 4.0f}, {6u, 16.0f}})
        EXPECT_NEAR(cubic[k], value, 1e-5f) << k;
}

// The float 0.6 is above 0.6, so that 3 / 0.6 is below 5 in 64 bits, but rounds to 5 in 32.
TEST(Resize, NearestRoundsDownTheQuotientIn32Bits) {
    const Values counting{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const Values expected{0, 1, 3, 5, 6, 8};
    EXPECT_EQ(resized(counting, 4, 0.6f, "nearest", "asymmetric"), expected);
    // Resize of opset 10 has no rule; PyTorch, which exports it, rounds down.
    ModelBuilder m({1, 1, 1, 10}, 10);
    m.weights("scales", {4}, {1, 1, 1, 0.6f});
    m.node("Resize", {"x", "scales"}, "y").text("mode", "nearest");
    EXPECT_EQ(run_reference_network(m.parse(), {counting})[0], expected);
}

// The float 0.7 is below 0.7, so that 10 * 0.7 is below 7 in 64 bits, but rounds to 7 in 32.
TEST(Resize, ExtentsAreProductsIn32Bits) {
    EXPECT_EQ(resized(Values(10, 1.0f), 4, 0.7f, "linear", "half_pixel").size(), 7u);
}

TEST(Resize, ATensorWhoseShapeStaysIsCopied) {
    for (const char* mode : {"linear", "nearest", "cubic"})
        EXPECT_EQ(resized(first_squares, 4, 1.1f, mode, "half_pixel"), first_squares) << mode;
}

TEST(Resize, PytorchHalfPixelReadsElement0ForOneOutput) {
    EXPECT_EQ(resized(first_squares, 4, 0.2f, "linear", "pytorch_half_pixel"), (Values{0}));
    EXPECT_NEAR(resized(first_squares, 4, 0.2f, "linear", "half_pixel")[0], 4, 1e-6f);
}

}  // namespace
}  // namespace laminate
