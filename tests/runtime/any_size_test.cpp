#include "runtime/any_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/laminate.h"
#include "tests/runtime/hand_network.h"

namespace laminate {
namespace {

const SizeFormula all_rows = SizeVariable::rows, all_columns = SizeVariable::columns;

/// y = -x, strip by strip of rows, as the sizes behind the input say.
int negate_rows(const float* const* inputs, float* const* outputs, const float*, void*,
                int32_t begin, int32_t end) {
    const auto* sizes = reinterpret_cast<const int32_t*>(inputs[1]);
    const int32_t rows = sizes[1], columns = sizes[2], strip = sizes[3];
    for (int32_t y = begin * strip; y < std::min(end * strip, rows); ++y) {
        for (int32_t x = 0; x < columns; ++x)
            outputs[0][y * columns + x] = -inputs[0][y * columns + x];
    }
    return 0;
}

HandNetwork open_negation() {
    HandNetwork network;
    network.manifest.inputs = {network.tensor("x", {1, 1, 8, 4})};
    network.manifest.outputs = {network.tensor("y", {1, 1, 8, 4})};
    network.group(negate_rows, {0}, {1}, 1, 1000);
    network.manifest.open =
        OpenSizes{{.rows = 8, .columns = 4},
                  3,
                  2,
                  {{SizeVariable::images, 1, all_rows, all_columns}, {SizeVariable::images, 1, all_rows, all_columns}}};
    auto& step = std::get<GroupStep>(network.manifest.steps.front());
    step.open = OpenStep{all_columns * 100 + SizeVariable::strip_rows, StripRule{all_rows, 4, 1, 0}, {}};
    return network;
}

TEST(StripLength, IsAsThreadsNeedIt) {
    // Each seam repeats three rows: of 100, three seams (four strips) repeat 9 %, one repeats 3 %.
    const StripRule rows{all_rows, 4, 3, 0};
    EXPECT_EQ(strip_length(rows, 100, 1), 100);
    EXPECT_EQ(strip_length(rows, 100, 2), 52);   // two strips of whole units: 50 rounded up
    EXPECT_EQ(strip_length(rows, 400, 2), 100);  // four: 9 of 400 rows are less than 3 %
    EXPECT_EQ(strip_length(rows, 8, 4), 8);      // one seam repeats 3 of 8 rows, more than 25 %
    EXPECT_EQ(strip_length({all_rows, 4, 0, 0}, 7, 2), 4);
}

TEST(StripLength, StaysWithinTheMostThatTheCacheHolds) {
    const StripRule columns{all_columns, 64, 0, 512};
    EXPECT_EQ(strip_length(columns, 500, 2), 512);
    EXPECT_EQ(strip_length(columns, 960, 2), 512);   // two strips of 480
    EXPECT_EQ(strip_length(columns, 1100, 2), 384);  // three of 367
}

TEST(AnySize, ManifestHasTheNumbersOfASize) {
    const Manifest at = manifest_at(open_negation().manifest, {.rows = 30, .columns = 5}, 1);
    EXPECT_EQ(at.tensors[1].dims, (std::vector<int64_t>{1, 1, 30, 5}));
    const auto& step = std::get<GroupStep>(at.steps.front());
    EXPECT_EQ(step.scratch_bytes, 5 * 100 + 32);  // one strip, of 30 rows in units of 4
    EXPECT_EQ(step.strips, 1);
    const std::string text = to_json(open_negation().manifest);
    EXPECT_EQ(to_json(parse_manifest(text, "m")), text);
}

std::string refusal(const std::function<void()>& action) {
    try {
        action();
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(AnySize, WrongManifestsAreRefused) {
    Manifest manifest = open_negation().manifest;
    manifest.open->dims[1][2] = all_rows + 1;
    EXPECT_EQ(refusal([&] { (void)parse_manifest(to_json(manifest), "m"); }),
              "m: any_size: tensor y is 1x1x8x4, its formulas give 1x1x9x4");
    manifest.open.reset();
    EXPECT_EQ(refusal([&] { (void)parse_manifest(to_json(manifest), "m"); }),
              "m: step group0 is of any size, expected \"any_size\"");
}

TEST(AnySize, IsSetThroughTheCApi) {
    HandNetwork network = open_negation();
    laminate_session* session = laminate_open_linked(network.compiled(), 2);
    ASSERT_NE(session, nullptr) << laminate_last_error();
    for (const auto& [rows, columns] : {std::pair{8, 4}, std::pair{50, 3}, std::pair{3, 2}}) {
        ASSERT_EQ(laminate_session_resize(session, 2, rows, columns), 0) << laminate_last_error();
        EXPECT_EQ(laminate_output_dims(session, 0)[2], rows);
        std::vector<float> x(static_cast<size_t>(2 * rows * columns)), y(x.size());
        for (size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n + 1);
        const float* inputs[] = {x.data()};
        float* outputs[] = {y.data()};
        ASSERT_EQ(laminate_run(session, inputs, outputs), 0) << laminate_last_error();
        for (size_t n = 0; n < x.size(); ++n) ASSERT_EQ(y[n], -x[n]) << n;
    }
    EXPECT_EQ(laminate_session_resize(session, 1, 2, 9), -1);
    EXPECT_STREQ(laminate_last_error(),
                 "size 1 x 2 x 9: expected 3 rows and 2 columns or more");
    EXPECT_EQ(laminate_output_dims(session, 0)[2], 3);
    laminate_close(session);

    network.manifest.open.reset();
    std::get<GroupStep>(network.manifest.steps.front()).open.reset();
    session = laminate_open_linked(network.compiled(), 1);
    ASSERT_NE(session, nullptr) << laminate_last_error();
    EXPECT_EQ(laminate_session_resize(session, 1, 20, 20), -1);
    EXPECT_STREQ(laminate_last_error(),
                 "network by hand: was compiled for one size; expected laminate compile "
                 "--any-size");
    laminate_close(session);
}

}  // namespace
}  // namespace laminate
