// Runs the windows of a network written by hand.
#include "runtime/windows.h"

#include <gtest/gtest.h>

#include "tests/runtime/hand_network.h"

namespace laminate {
namespace {

/// Two rows of 6: each output is the sum of its left and right neighbours, zeros outside.
int sum_of_neighbours(const float* const* inputs, float* const* outputs, const float*, void*,
                      int32_t, int32_t) {
    for (int y = 0; y < 2; ++y) {
        for (int x = 0; x < 6; ++x) {
            const float* row = inputs[0] + y * 6;
            outputs[0][y * 6 + x] = (x > 0 ? row[x - 1] : 0) + (x < 5 ? row[x + 1] : 0);
        }
    }
    return 0;
}

struct SumOfNeighbours : HandNetwork {
    SumOfNeighbours() {
        manifest.inputs = {tensor("x", {1, 1, 2, 6})};
        manifest.outputs = {tensor("y", {1, 1, 2, 6})};
        group(sum_of_neighbours, manifest.inputs, manifest.outputs);
    }
};

TEST(WindowRun, PutsThePictureTogether) {
    SumOfNeighbours network;
    Session session = Session::open(network.compiled(), {1});
    WindowRun windows(session, {{1, 1, 0, 0}, {1, 1, 1, 1}}, 4, 16);
    EXPECT_EQ(windows.output_width(), 16);
    // Two rows of windows. Columns 0-4, 5-8, 9-12, 13-15 of windows that begin at 0, 4, 8, 10: four
    // of them.
    EXPECT_EQ(windows.count(), 2 * 4);
    EXPECT_EQ(windows.buffer_bytes(), 2 * 2 * 6 * 4);
    std::vector<float> picture(4 * 16), found(4 * 16, -1);
    for (size_t k = 0; k < picture.size(); ++k) picture[k] = static_cast<float>(k * k % 37);
    int64_t calls = 0;
    const bool finished = windows.run(
        [&](const PictureBox& box, float* values, const BoxStrides& strides) {
            for (int64_t y = 0; y < box.height; ++y)
                for (int64_t x = 0; x < box.width; ++x)
                    values[y * strides.row + x] =
                        picture[static_cast<size_t>((box.y + y) * 16 + box.x + x)];
        },
        [&](const PictureBox& box, const float* values, const BoxStrides& strides) {
            for (int64_t y = 0; y < box.height; ++y)
                for (int64_t x = 0; x < box.width; ++x)
                    found[static_cast<size_t>((box.y + y) * 16 + box.x + x)] =
                        values[y * strides.row + x];
        },
        [&](int64_t done) { EXPECT_EQ(done, ++calls); });
    EXPECT_TRUE(finished);
    EXPECT_EQ(calls, windows.count());
    for (int64_t y = 0; y < 4; ++y) {
        for (int64_t x = 0; x < 16; ++x) {
            const auto at = [&](int64_t column) {
                return column < 0 || column > 15 ? 0.0F
                                                 : picture[static_cast<size_t>(y * 16 + column)];
            };
            EXPECT_EQ(found[static_cast<size_t>(y * 16 + x)], at(x - 1) + at(x + 1))
                << y << ", " << x;
        }
    }
}

TEST(WindowRun, StopsWhenToldTo) {
    SumOfNeighbours network;
    Session session = Session::open(network.compiled(), {1});
    WindowRun windows(session, {{1, 1, 0, 0}, {1, 1, 1, 1}}, 4, 16);
    std::atomic<bool> stop{false};
    int64_t written = 0;
    EXPECT_FALSE(windows.run([](const PictureBox&, float*, const BoxStrides&) {},
                             [&](const PictureBox&, const float*, const BoxStrides&) { ++written; },
                             [&](int64_t done) { stop = done == 3; }, &stop));
    EXPECT_EQ(written, 3);
}

}  // namespace
}  // namespace laminate
