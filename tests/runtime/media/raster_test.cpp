// Picture files in parts: round trips of every format, the layout of elements, and refusals.
#include "runtime/media/raster.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "runtime/media/npy.h"
#include "tests/support/temporary_directory.h"

namespace laminate {
namespace {

std::string message(const std::function<void()>& action) {
    try {
        action();
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

std::vector<float> read_all(const std::filesystem::path& file) {
    const RasterReader reader(file);
    const auto [channels, height, width, type] = reader.shape();
    std::vector<float> values(static_cast<size_t>(channels * height * width));
    reader.read({0, 0, height, width}, values.data(), height * width, width);
    return values;
}

class Raster : public TemporaryDirectory {
protected:
    std::filesystem::path file(const std::string& name) const { return directory_ / name; }
    std::filesystem::path file(const std::string& name, const std::string& bytes) const {
        std::ofstream(file(name), std::ios::binary) << bytes;
        return file(name);
    }
};

TEST_F(Raster, GreySamplesAreFractionsOfTheLargest) {
    // Two rows of three; a comment in the header.
    const auto path =
        file("a.pgm", std::string("P5 # grey\n3 2\n200\n") + '\0' + "\x64\xc8\x01\x02\x03");
    EXPECT_EQ(RasterReader(path).shape(), (RasterShape{1, 2, 3, SampleType::uint8}));
    EXPECT_EQ(read_all(path),
              (std::vector<float>{0.0F, 0.5F, 1.0F, 1 / 200.0F, 2 / 200.0F, 3 / 200.0F}));
    float values[2 * 5] = {};  // rows of 5, the middle and right columns of both rows
    RasterReader(path).read({0, 1, 2, 2}, values, 10, 5);
    EXPECT_EQ(values[0], 0.5F);
    EXPECT_EQ(values[1], 1.0F);
    EXPECT_EQ(values[5], 2 / 200.0F);
    EXPECT_EQ(values[2], 0.0F);
}

TEST_F(Raster, ColourIsInterleavedAndSixteenBitsAreBigEndian) {
    EXPECT_EQ(
        read_all(
            file("a.ppm", std::string("P6\n2 1\n255\n") + "\xff" + std::string(4, '\0') + "\xff")),
        (std::vector<float>{1, 0, 0, 0, 0, 1}));  // red, then blue; planes of red, green, blue
    EXPECT_EQ(read_all(file("b.pgm", std::string("P5\n2 1\n65535\n") + "\xff\xff" +
                                         std::string("\x01") + '\0')),
              (std::vector<float>{1, 256 / 65535.0F}));
}

TEST_F(Raster, FloatMapsStandOnTheirHeads) {
    std::string bytes = "Pf\n1 2\n-1.0\n";
    for (const float value : {0.25F, -7.0F}) bytes.append(reinterpret_cast<const char*>(&value), 4);
    EXPECT_EQ(read_all(file("a.pfm", bytes)), (std::vector<float>{-7.0F, 0.25F}));
    std::string swapped = "Pf\n1 1\n1.0\n";  // positive scale: big endian
    swapped += std::string("\x3e\x80") + '\0' + '\0';
    EXPECT_EQ(read_all(file("b.pfm", swapped)), (std::vector<float>{0.25F}));
}

TEST_F(Raster, NumpyArraysAreReadByParts) {
    std::vector<float> values(2 * 3 * 4);
    for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k) - 5.5F;
    save_npy({{1, 2, 3, 4}, values}, file("a.npy"));
    const RasterReader reader(file("a.npy"));
    EXPECT_EQ(reader.shape(), (RasterShape{2, 3, 4, SampleType::float32}));
    float part[2] = {};
    reader.read({1, 2, 1, 1}, part, 1, 1);
    EXPECT_EQ(part[0], values[1 * 4 + 2]);
    EXPECT_EQ(part[1], values[12 + 1 * 4 + 2]);
}

TEST_F(Raster, PartsWrittenInAnyOrderMakeTheFile) {
    struct Case {
        std::string name;
        RasterShape shape;
    };
    for (const auto& [name, shape] :
         {Case{"a.pgm", {1, 5, 7, SampleType::uint8}}, Case{"b.ppm", {3, 5, 7, SampleType::uint8}},
          Case{"c.pgm", {1, 5, 7, SampleType::uint16}},
          Case{"d.pfm", {3, 5, 7, SampleType::float32}},
          Case{"e.npy", {4, 5, 7, SampleType::float32}}}) {
        const int64_t plane = shape.height * shape.width;
        const int64_t largest = shape.type == SampleType::uint8 ? 255 : 65535;
        std::vector<float> values(static_cast<size_t>(shape.channels * plane));
        for (size_t k = 0; k < values.size(); ++k)
            values[k] = static_cast<float>(static_cast<int64_t>(k * 37) % (largest + 1)) /
                        static_cast<float>(largest);
        RasterWriter writer(file(name), shape);
        for (const PictureBox box :
             {PictureBox{3, 0, 2, 7}, PictureBox{0, 4, 3, 3}, PictureBox{0, 0, 3, 4}})
            writer.write(box, values.data() + box.y * shape.width + box.x, plane, shape.width);
        EXPECT_FALSE(std::filesystem::exists(file(name)));
        writer.publish();
        EXPECT_EQ(RasterReader(file(name)).shape(), shape) << name;
        EXPECT_EQ(read_all(file(name)), values) << name;
    }
}

TEST_F(Raster, SamplesAreRoundedAndClamped) {
    const std::vector<float> values{-1, 0.5F / 255 - 1e-4F, 0.5F / 255 + 1e-4F, 2,
                                    std::numeric_limits<float>::quiet_NaN()};
    RasterWriter writer(file("a.pgm"), {1, 1, 5, SampleType::uint8});
    writer.write({0, 0, 1, 5}, values.data(), 5, 5);
    writer.publish();
    const std::string bytes = read_file(file("a.pgm"));
    EXPECT_EQ(bytes.substr(bytes.size() - 5), std::string("\0\0\1\377\0", 5));
}

TEST_F(Raster, WithoutPublishNothingIsLeft) {
    { RasterWriter writer(file("a.pgm"), {1, 4, 4, SampleType::uint8}); }
    EXPECT_EQ(files(), 0);
}

// Opening a pipe to which nobody writes would wait forever.
TEST_F(Raster, APipeIsRefusedAtOnce) {
    const std::string pipe = file("pipe.pgm").string();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(message([&] { const RasterReader reader(pipe); }),
              pipe + ": is no regular file, expected one in which parts can be read");
}

TEST_F(Raster, WhatIsNoPictureIsRefusedInOneLine) {
    const auto refusal = [&](const std::string& bytes) {
        const std::string path = file("bad.pgm", bytes).string();
        const std::string text = message([&] { const RasterReader reader(path); });
        EXPECT_EQ(text.substr(0, path.size() + 2), path + ": ") << text;
        return text.substr(std::min(text.size(), path.size() + 2));
    };
    EXPECT_EQ(refusal("P5\n3 2\n255\n12345"), "holds 5 bytes of samples, expected 6 for 1 x 2 x 3");
    EXPECT_EQ(refusal("P5\n3 0\n255\n"), "found height \"0\", expected 1 to 2147483647");
    EXPECT_EQ(refusal("P5\n99999999999 2\n255\n"),
              "found width \"99999999999\", expected 1 to 2147483647");
    EXPECT_EQ(
        refusal("P5\n2147483647 2147483647\n255\n1"),
        "holds 1 bytes of samples, expected 4611686014132420609 for 1 x 2147483647 x 2147483647");
    EXPECT_EQ(refusal("P5\n3 2\n70000\n"), "found largest value \"70000\", expected 1 to 65535");
    EXPECT_EQ(refusal("P5\n3"), "ends within the header, or its header is no PNM header");
    EXPECT_EQ(refusal("Pf\n1 1\n0\n1234"), "found scale \"0\", expected a number other than 0");
    EXPECT_EQ(refusal("P4\n8 1\n1"), "is no PNM file of kind P5, P6, Pf or PF");
    EXPECT_EQ(refusal(""), "is no PNM file of kind P5, P6, Pf or PF");
    EXPECT_NE(message([&] {
                  const RasterReader reader(file("missing.pgm"));
              }).find("missing.pgm: cannot be read"),
              std::string::npos);
    EXPECT_NE(message([&] {
                  RasterWriter writer(file("a.pgm"), {3, 4, 4, SampleType::uint8});
              }).find("expected 1 channel"),
              std::string::npos);
}

}  // namespace
}  // namespace laminate
