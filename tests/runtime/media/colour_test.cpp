#include "runtime/media/colour.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"

namespace laminate {
namespace {

Plane plane(int64_t height, int64_t width, std::vector<float> values) {
    return {height, width, std::move(values)};
}

TEST(Colour, LumaAndChromaOfThePrimariesAreThoseOfBt601) {
    const LumaChroma planes =
        to_luma_chroma({1, 5, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255}});
    // Offsets 16, 128, 128 plus one column of the matrix; black: the offsets; white: 16 + 219 and
    // no chroma.
    const float y[] = {81.481f, 144.553f, 40.966f, 16, 235},
                cb[] = {90.203f, 53.797f, 240, 128, 128}, cr[] = {240, 34.214f, 109.786f, 128, 128};
    for (size_t k = 0; k < 5; ++k) {
        EXPECT_NEAR(planes.y.values[k] * 255, y[k], 1e-4f) << k;
        EXPECT_NEAR(planes.cb.values[k] * 255, cb[k], 1e-4f) << k;
        EXPECT_NEAR(planes.cr.values[k] * 255, cr[k], 1e-4f) << k;
    }
}

TEST(Colour, ThereAndBackKeepsEverySample) {
    Picture picture{64, 64, 3, {}};
    for (int k = 0; k < 64 * 64; ++k) {
        for (const int sample : {k % 16 * 17, k / 16 % 16 * 17, k / 256 * 17})
            picture.samples.push_back(static_cast<uint8_t>(sample));
    }
    EXPECT_EQ(to_picture(to_luma_chroma(picture)), picture);
}

TEST(Colour, AGreyPictureIsItsOwnLumaInFullRange) {
    const Picture picture{1, 3, 1, {0, 51, 255}};
    const LumaChroma planes = to_luma_chroma(picture);
    EXPECT_EQ(planes.y.values, (std::vector<float>{0, 0.2f, 1}));
    EXPECT_TRUE(planes.cb.values.empty());
    EXPECT_EQ(to_picture(planes), picture);
}

TEST(Colour, PlanarKeepsChannelsApart) {
    const Picture picture{1, 2, 3, {0, 51, 102, 153, 204, 255}};
    const std::vector<float> values = to_planar(picture);
    EXPECT_EQ(values,
              (std::vector<float>{0, 153 / 255.0f, 51 / 255.0f, 204 / 255.0f, 102 / 255.0f, 1}));
    EXPECT_EQ(from_planar(values.data(), 3, 1, 2), picture);
}

TEST(Colour, SamplesAreRoundedAndClamped) {
    const float values[] = {
        -1, 0.4f / 255, 0.6f / 255, 2, std::numeric_limits<float>::quiet_NaN(), 254.6f / 255};
    EXPECT_EQ(from_planar(values, 1, 1, 6).samples, (std::vector<uint16_t>{0, 0, 1, 255, 0, 255}));
}

TEST(Bicubic, DoublingAnImpulseShowsTheKernel) {
    // Output 2k lies at input k - 1/4, output 2k + 1 at k + 1/4. With a = -3/4 the kernel is
    //   w(1/4) = 0.87890625, w(3/4) = 0.26171875, w(5/4) = -0.10546875, w(7/4) = -0.03515625, which
    //   add up to 1.
    const Plane wide = resize_bicubic(plane(1, 8, {0, 0, 0, 1, 0, 0, 0, 0}), 1, 16);
    // The impulse is at input 3: outputs 3 .. 10 are at distances 7/4, 5/4, 3/4, 1/4, 1/4, 3/4,
    // 5/4, 7/4.
    const float w[] = {-0.03515625f, -0.10546875f, 0.26171875f,  0.87890625f,
                       0.87890625f,  0.26171875f,  -0.10546875f, -0.03515625f};
    for (size_t k = 0; k < 16; ++k)
        EXPECT_EQ(wide.values[k], k >= 3 && k < 11 ? w[k - 3] : 0.0f) << "output " << k;
}

TEST(Bicubic, EdgesAreRepeatedAndBothAxesAreResized) {
    // A constant stays constant only when the weights add up to 1 and edges are repeated.
    const Plane result = resize_bicubic(plane(2, 3, std::vector<float>(6, 0.5f)), 4, 6);
    EXPECT_EQ(result.height, 4);
    EXPECT_EQ(result.width, 6);
    for (const float value : result.values) EXPECT_NEAR(value, 0.5f, 1e-7f);
    // Rows are treated like columns: the transposed picture gives the transposed result.
    const Plane wide = resize_bicubic(plane(1, 3, {1, 2, 4}), 1, 6),
                tall = resize_bicubic(plane(3, 1, {1, 2, 4}), 6, 1);
    EXPECT_EQ(wide.values, tall.values);
    EXPECT_NE(wide.values[2], wide.values[3]);
}

TEST(Bicubic, TheSameSizeIsTheSamePicture) {
    EXPECT_EQ(resize_bicubic(plane(2, 2, {1, 2, 3, 4}), 2, 2).values,
              (std::vector<float>{1, 2, 3, 4}));
}

TEST(Bicubic, PartsAreThoseOfTheWhole) {
    Plane plane{7, 9, {}};
    for (int k = 0; k < 63; ++k) plane.values.push_back(static_cast<float>(k * k % 41) / 41);
    const int64_t height = 17, width = 18;
    const Plane whole = resize_bicubic(plane, height, width);
    for (const PictureBox box : {PictureBox{0, 0, 5, 6}, PictureBox{5, 6, 9, 7},
                                 PictureBox{14, 13, 3, 5}, PictureBox{8, 0, 1, 18}}) {
        const PictureBox source = bicubic_source(box, plane.height, plane.width, height, width);
        PlanePart part{
            {source.height, source.width, {}}, source.y, source.x, plane.height, plane.width};
        for (int64_t y = 0; y < source.height; ++y)
            for (int64_t x = 0; x < source.width; ++x)
                part.plane.values.push_back(
                    plane.values[static_cast<size_t>((source.y + y) * plane.width + source.x + x)]);
        const Plane found = resize_bicubic(part, box, height, width);
        for (int64_t y = 0; y < box.height; ++y)
            for (int64_t x = 0; x < box.width; ++x)
                ASSERT_EQ(found.values[static_cast<size_t>(y * box.width + x)],
                          whole.values[static_cast<size_t>((box.y + y) * width + box.x + x)]);
    }
}

TEST(Colour, TheTopLeftPart) {
    EXPECT_EQ(cropped(plane(2, 3, {1, 2, 3, 4, 5, 6}), 2, 2).values,
              (std::vector<float>{1, 2, 4, 5}));
    try {
        (void)cropped(plane(2, 3, std::vector<float>(6)), 3, 3);
        FAIL() << "expected InputError";
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(), "crop: found 3 x 2 pixels, expected at least 3 x 3");
    }
}

TEST(Colour, NewLumaKeepsTheOldChroma) {
    // A flat orange picture keeps its colour with its own luma at twice the size.
    const Picture small{2, 2, 3, {200, 100, 50, 200, 100, 50, 200, 100, 50, 200, 100, 50}};
    const Plane luma = resize_bicubic(to_luma_chroma(small).y, 4, 4);
    const Picture large = with_luma(small, luma);
    EXPECT_EQ(large.height, 4);
    for (size_t k = 0; k < 16; ++k) {
        EXPECT_EQ(large.samples[3 * k], 200);
        EXPECT_EQ(large.samples[3 * k + 1], 100);
        EXPECT_EQ(large.samples[3 * k + 2], 50);
    }
}

TEST(Colour, SixteenBitsKeepEverySampleThereAndBack) {
    Picture picture{.height = 64, .width = 64, .channels = 3, .bits = 16};
    for (int k = 0; k < 3 * 64 * 64; ++k)
        picture.samples.push_back(static_cast<uint16_t>(k * 40503 % 65536));
    EXPECT_EQ(from_planar(to_planar(picture).data(), 3, 64, 64, 16), picture);
    const Picture back = to_picture(to_luma_chroma(picture), 16);
    for (size_t k = 0; k < picture.samples.size(); ++k)
        ASSERT_NEAR(back.samples[k], picture.samples[k], 1) << k;
}

TEST(Colour, AlphaIsResizedBesideTheColoursAndTagsAreKept) {
    Picture small{.height = 1, .width = 2, .channels = 1, .samples = {9, 9}, .bits = 16,
                  .alpha = {0, 65535}};
    small.tags.icc_profile = "a profile";
    const Picture large = with_luma(small, Plane{1, 4, {0.1f, 0.2f, 0.3f, 0.4f}});
    EXPECT_EQ(large.tags, small.tags);
    EXPECT_EQ(large.bits, 16);
    ASSERT_EQ(large.alpha.size(), 4u);
    // Bicubic weights overshoot, and what does is clamped.
    EXPECT_EQ(large.alpha[0], 0);
    EXPECT_EQ(large.alpha[3], 65535);
    EXPECT_EQ(large.alpha[1] + large.alpha[2], 65535);
    Picture same = small;
    take_alpha_and_tags(same, small);
    EXPECT_EQ(same, small);
}

TEST(Psnr, ATenthOfTheRangeIsTwentyDecibels) {
    // Mean squared error 0.1^2 = 0.01; 10 log10(1 / 0.01) = 20.
    EXPECT_NEAR(psnr_db(plane(1, 2, {0.5f, 0.3f}), plane(1, 2, {0.6f, 0.2f}), 0), 20.0, 1e-5);
}

TEST(Psnr, TheBorderIsLeftOutAndTheFirstIsClamped) {
    // Only the centre counts: 1.5 clamped to 1 against 0.9.
    const Plane a = plane(3, 3, {0, 0, 0, 0, 1.5f, 0, 0, 0, 0}),
                b = plane(3, 3, {1, 1, 1, 1, 0.9f, 1, 1, 1, 1});
    EXPECT_NEAR(psnr_db(a, b, 1), 20.0, 1e-5);
    EXPECT_EQ(psnr_db(b, b, 1), std::numeric_limits<double>::infinity());
}

TEST(Psnr, SizesMustAgreeAndLeaveSomething) {
    const auto error = [](const Plane& a, const Plane& b, int64_t border) {
        try {
            (void)psnr_db(a, b, border);
        } catch (const InputError& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    const Plane a = plane(2, 3, std::vector<float>(6));
    EXPECT_EQ(error(a, plane(3, 2, std::vector<float>(6)), 0),
              "psnr: found 3 x 2 and 2 x 3 pixels, expected equal sizes");
    EXPECT_EQ(error(a, a, 1), "psnr: nothing is left of 3 x 2 pixels without a border of 1");
}

}  // namespace
}  // namespace laminate
