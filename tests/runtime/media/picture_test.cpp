#include "runtime/media/picture.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <jpeglib.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/temporary_directory.h"

namespace laminate {
namespace {

// One row of pixels each, made with Pillow.
constexpr unsigned char palette_png[] = {
    137, 80, 78, 71,  13,  10, 26, 10,  0,   0,   0,  13,  73,  72,  68,  82,  0,
    0,   0,  2,  0,   0,   0,  1,  1,   3,   0,   0,  0,   206, 236, 237, 201, 0,
    0,   0,  6,  80,  76,  84, 69, 255, 0,   0,   0,  0,   255, 108, 161, 253, 142,
    0,   0,  0,  10,  73,  68, 65, 84,  120, 156, 99, 112, 0,   0,   0,   66,  0,
    65,  41, 55, 244, 239, 0,  0,  0,   0,   73,  69, 78,  68,  174, 66,  96,  130,
};
constexpr unsigned char one_bit_png[] = {
    137, 80,  78,  71,  13, 10, 26, 10,  0,   0,  0,  13, 73,  72,  68, 82,  0,
    0,   0,   3,   0,   0,  0,  1,  1,   0,   0,  0,  0,  51,  155, 41, 25,  0,
    0,   0,   10,  73,  68, 65, 84, 120, 156, 99, 72, 0,  0,   0,   98, 0,   97,
    177, 152, 121, 242, 0,  0,  0,  0,   73,  69, 78, 68, 174, 66,  96, 130,
};
constexpr unsigned char rgba_png[] = {
    137, 80,  78, 71,  13,  10, 26,  10, 0,   0,  0,   13,  73,  72,  68, 82, 0,   0,  0,
    2,   0,   0,  0,   1,   8,  6,   0,  0,   0,  244, 34,  127, 138, 0,  0,  0,   17, 73,
    68,  65,  84, 120, 156, 99, 228, 18, 145, 99, 144, 147, 147, 107, 0,  0,  3,   48, 1,
    24,  103, 26, 12,  123, 0,  0,   0,  0,   73, 69,  78,  68,  174, 66, 96, 130,
};
constexpr unsigned char sixteen_bit_png[] = {
    137, 80,  78, 71, 13,  10,  26,  10, 0,  0,  0,  13,  73,  72,  68,  82, 0,  0,
    0,   3,   0,  0,  0,   1,   16,  0,  0,  0,  0,  110, 27,  151, 43,  0,  0,  0,
    15,  73,  68, 65, 84,  120, 156, 99, 96, 96, 72, 73,  249, 255, 31,  0,  5,  192,
    2,   199, 29, 57, 121, 116, 0,   0,  0,  0,  73, 69,  78,  68,  174, 66, 96, 130,
};
constexpr unsigned char grey_alpha_png[] = {
    137, 80,  78, 71,  13, 10,  26,  10, 0,   0,   0,  13,  73,  72,  68, 82,  0, 0,
    0,   2,   0,  0,   0,  1,   8,   4,  0,   0,   0,  94,  43,  183, 1,  0,   0, 0,
    13,  73,  68, 65,  84, 120, 156, 99, 100, 103, 96, 250, 15,  0,   1,  41,  1, 10,
    117, 176, 35, 124, 0,  0,   0,   0,  73,  69,  78, 68,  174, 66,  96, 130,
};

template <size_t count>
std::string text(const unsigned char (&bytes)[count]) {
    return {reinterpret_cast<const char*>(bytes), count};
}

class Pictures : public TemporaryDirectory {
protected:
    [[nodiscard]] Picture load(const std::string& bytes) {
        write_file_atomically(directory_ / "p", bytes);
        return load_picture(directory_ / "p");
    }
    [[nodiscard]] std::string error(const std::string& bytes) {
        try {
            (void)load(bytes);
        } catch (const InputError& e) {
            return e.what();
        }
        return "no error";
    }
    [[nodiscard]] std::string path() const { return (directory_ / "p").string(); }
};

/// Smooth, so that JPEG changes little, and different in every channel, row and column.
Picture gradient(int64_t height, int64_t width, int64_t channels) {
    Picture picture{height, width, channels, {}};
    for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
            for (int64_t c = 0; c < channels; ++c)
                picture.samples.push_back(static_cast<uint8_t>(40 + 3 * y + 2 * x + 30 * c));
        }
    }
    return picture;
}

TEST_F(Pictures, PngKeepsEverySample) {
    for (const int64_t channels : {1, 3}) {
        const Picture picture = gradient(9, 13, channels);
        save_picture(picture, directory_ / "a.png");
        EXPECT_EQ(load_picture(directory_ / "a.png"), picture) << channels << " channels";
    }
    EXPECT_EQ(files(), 1);
}

TEST_F(Pictures, JpegKeepsSizeAndNearlyEverySample) {
    for (const int64_t channels : {1, 3}) {
        const Picture picture = gradient(17, 23, channels);
        for (const char* name : {"a.jpg", "b.JPEG"}) {
            save_picture(picture, directory_ / name, 98);
            const Picture read = load_picture(directory_ / name);
            EXPECT_EQ(read.height, 17);
            EXPECT_EQ(read.width, 23);
            ASSERT_EQ(read.channels, channels);
            int worst = 0;
            for (size_t k = 0; k < picture.samples.size(); ++k)
                worst = std::max(worst, std::abs(read.samples[k] - picture.samples[k]));
            EXPECT_LE(worst, 8) << name << ", " << channels << " channels";
        }
    }
}

TEST_F(Pictures, PalettesAreExpanded) {
    EXPECT_EQ(load(text(palette_png)), (Picture{1, 2, 3, {255, 0, 0, 0, 0, 255}}));
}

TEST_F(Pictures, BlackAndWhiteBecomesGrey) {
    EXPECT_EQ(load(text(one_bit_png)), (Picture{1, 3, 1, {0, 255, 255}}));
}

/// The checksum of a chunk's type and data.
uint32_t png_checksum(std::string_view bytes) {
    uint32_t crc = 0xffffffff;
    for (const char byte : bytes) {
        crc ^= static_cast<unsigned char>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

std::string big_endian(uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    return bytes;
}

/// The file with a chunk more, before its first IDAT.
std::string with_chunk(std::string png, const std::string& type, const std::string& data) {
    const std::string chunk = big_endian(static_cast<uint32_t>(data.size())) + type + data +
                              big_endian(png_checksum(type + data));
    return png.insert(png.find("IDAT") - 4, chunk);
}

using Parts = std::vector<std::string>;

TEST_F(Pictures, AlphaIsKeptBesideTheColoursAndNotBlended) {
    EXPECT_EQ(load(text(rgba_png)),
              (Picture{.height = 1, .width = 2, .channels = 3, .samples = {10, 20, 30, 40, 50, 60},
                       .alpha = {0, 128}}));
    EXPECT_EQ(load(text(grey_alpha_png)),
              (Picture{.height = 1, .width = 2, .channels = 1, .samples = {7, 9},
                       .alpha = {0, 255}}));
    // The first colour of the palette is half transparent.
    EXPECT_EQ(load(with_chunk(text(palette_png), "tRNS", "\x80")).alpha,
              (std::vector<uint16_t>{128, 255}));
}

TEST_F(Pictures, SixteenBitsStaySixteen) {
    EXPECT_EQ(load(text(sixteen_bit_png)),
              (Picture{.height = 1, .width = 3, .channels = 1, .samples = {0, 25700, 65535},
                       .bits = 16}));
    Picture picture = gradient(9, 13, 3);
    picture.bits = 16;
    for (size_t k = 0; k < picture.samples.size(); ++k)
        picture.samples[k] = static_cast<uint16_t>(k * 40503 % 65536);
    for (const char* name : {"a.png", "a.ppm"}) {
        EXPECT_EQ(save_picture(picture, directory_ / name), Parts{});
        EXPECT_EQ(load_picture(directory_ / name), picture) << name;
    }
    picture.alpha.assign(9 * 13, 4711);
    EXPECT_EQ(save_picture(picture, directory_ / "b.png"), Parts{});
    EXPECT_EQ(load_picture(directory_ / "b.png"), picture);
    EXPECT_EQ(save_picture(picture, directory_ / "b.ppm"), Parts{"alpha"});
    EXPECT_EQ(save_picture(picture, directory_ / "b.jpg"),
              (Parts{"bits below the upper 8", "alpha"}));
    EXPECT_EQ(load_picture(directory_ / "b.jpg").bits, 8);
}

TEST_F(Pictures, SamplesOfOtherLargestValuesBecomeTheNearestBits) {
    // 1023 stands for 1: 16 bits hold 10, and 341 / 1023 is a third.
    EXPECT_EQ(load(std::string("P5 2 1 1023\n\x01\x55\x03\xff", 16)),
              (Picture{.height = 1, .width = 2, .channels = 1, .samples = {21845, 65535},
                       .bits = 16}));
    EXPECT_EQ(load("P5 2 1 3\n\x01\x03"), (Picture{1, 2, 1, {85, 255}}));
}

/// A profile of this many bytes without a tag, as far as libpng looks.
std::string icc_profile(const std::string& space, size_t bytes) {
    std::string profile(bytes, '\0');
    profile.replace(0, 4, big_endian(static_cast<uint32_t>(bytes)));
    profile.replace(8, 4, std::string("\x02\x10\0\0", 4));
    profile.replace(12, 12, "mntr" + space + "XYZ ");
    profile.replace(36, 4, "acsp");
    profile.replace(68, 12, std::string("\0\0\xf6\xd6\0\1\0\0\0\0\xd3\x2d", 12));  // D50
    for (size_t k = 132; k < bytes; ++k) profile[k] = static_cast<char>(k * k % 251);
    return profile;
}

TEST_F(Pictures, ColourProfilesGoFromFileToFile) {
    for (const int64_t channels : {1, 3}) {
        Picture picture = gradient(8, 6, channels);
        // 140,000 bytes take three markers of a JPEG.
        for (const size_t bytes : {512, 140'000}) {
            picture.tags.icc_profile = icc_profile(channels == 1 ? "GRAY" : "RGB ", bytes);
            for (const char* name : {"a.png", "a.jpg"}) {
                EXPECT_EQ(save_picture(picture, directory_ / name), Parts{}) << name;
                EXPECT_EQ(load_picture(directory_ / name).tags, picture.tags) << name;
                EXPECT_EQ(load_picture(directory_ / name).dropped, Parts{}) << name;
            }
        }
        EXPECT_EQ(save_picture(picture, directory_ / "a.pnm"), Parts{"the colour profile"});
        // A profile of other colours would make the file wrong.
        picture.tags.icc_profile = icc_profile(channels == 1 ? "RGB " : "GRAY", 512);
        for (const char* name : {"b.png", "b.jpg"}) {
            EXPECT_EQ(save_picture(picture, directory_ / name), Parts{"the colour profile"});
            EXPECT_EQ(load_picture(directory_ / name).tags, ColourTags{}) << name;
        }
    }
}

TEST_F(Pictures, GammaAndChromaticitiesOfAPngAreKept) {
    Picture picture = gradient(4, 5, 3);
    picture.tags.gamma = 100'000;  // linear
    picture.tags.chromaticities = {31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000};
    EXPECT_EQ(save_picture(picture, directory_ / "a.png"), Parts{});
    EXPECT_EQ(load_picture(directory_ / "a.png"), picture);
    EXPECT_EQ(save_picture(picture, directory_ / "a.jpg"), Parts{"gamma and chromaticities"});
    EXPECT_EQ(save_picture(picture, directory_ / "a.ppm"), Parts{"gamma and chromaticities"});
    picture.tags = {.srgb_intent = 1};
    EXPECT_EQ(save_picture(picture, directory_ / "a.png"), Parts{});
    EXPECT_EQ(load_picture(directory_ / "a.png"), picture);
}

TEST_F(Pictures, WhatIsDroppedIsNamed) {
    EXPECT_EQ(load(with_chunk(with_chunk(text(rgba_png), "tEXt", std::string("Title\0x", 7)), "pHYs",
                              std::string("\0\0\x0b\x13\0\0\x0b\x13\1", 9)))
                  .dropped,
              (Parts{"the size of a pixel", "text"}));
    EXPECT_EQ(load(with_chunk(text(rgba_png), "iCCP", std::string("p\0\0nonsense", 11))).dropped,
              Parts{"a damaged colour profile"});

    save_picture(gradient(8, 8, 3), directory_ / "a.jpg");
    std::string jpeg = read_file(directory_ / "a.jpg");
    jpeg.insert(2, std::string("\xff\xe1\0\x0a"
                               "Exif\0\0II\xff\xfe\0\4hi",
                               18));
    EXPECT_EQ(load(jpeg).dropped, (Parts{"EXIF", "a comment"}));
}

/// Eight by eight equal pixels of cyan, magenta, yellow and black, as libjpeg stores them.
std::string four_ink_jpeg(const std::array<uint8_t, 4>& pixel, J_COLOR_SPACE stored, bool adobe,
                          const std::string& profile = "") {
    jpeg_error_mgr errors;
    jpeg_compress_struct info{};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* buffer = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &buffer, &size);
    info.image_width = info.image_height = 8;
    info.input_components = 4;
    info.in_color_space = JCS_CMYK;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, stored);
    jpeg_set_quality(&info, 100, TRUE);
    info.write_Adobe_marker = adobe ? TRUE : FALSE;
    jpeg_start_compress(&info, TRUE);
    if (!profile.empty()) {
        jpeg_write_icc_profile(&info, reinterpret_cast<const JOCTET*>(profile.data()),
                               static_cast<unsigned>(profile.size()));
    }
    std::vector<uint8_t> row;
    for (int k = 0; k < 8; ++k) row.insert(row.end(), pixel.begin(), pixel.end());
    for (JSAMPROW rows = row.data(); info.next_scanline < 8;) jpeg_write_scanlines(&info, &rows, 1);
    jpeg_finish_compress(&info);
    std::string bytes(reinterpret_cast<const char*>(buffer), size);
    jpeg_destroy_compress(&info);
    std::free(buffer);
    return bytes;
}

// What Photoshop and scanners for print write. Adobe's files hold the complements of the inks:
// red = (255 - C) (255 - K) / 255 = 200 * 204 / 255 = 160.
// Issue 26, 9: CMYK.
TEST_F(Pictures, InksBecomeColours) {
    const auto colour = [&](const std::string& bytes) {
        const Picture picture = load(bytes);
        EXPECT_EQ(picture.channels, 3);
        EXPECT_EQ(picture.samples.size(), 8u * 8 * 3);
        return std::array<int, 3>{picture.samples[0], picture.samples[1], picture.samples[2]};
    };
    const std::array<int, 3> expected{160, 80, 40};
    EXPECT_EQ(colour(four_ink_jpeg({200, 100, 50, 204}, JCS_CMYK, true)), expected);
    EXPECT_EQ(colour(four_ink_jpeg({55, 155, 205, 51}, JCS_CMYK, false)), expected);
    const auto converted = colour(four_ink_jpeg({200, 100, 50, 204}, JCS_YCCK, true));
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(converted[c], expected[c], 1) << c;
    // Red, green and blue are not what a profile of inks is about.
    const Picture picture =
        load(four_ink_jpeg({200, 100, 50, 204}, JCS_CMYK, true, icc_profile("CMYK", 512)));
    EXPECT_EQ(picture.tags, ColourTags{});
    EXPECT_EQ(picture.dropped, Parts{"the colour profile of CMYK"});
}

TEST_F(Pictures, AJpegOfAnUnsupportedKindIsNotCalledDamaged) {
    std::string bytes = four_ink_jpeg({1, 2, 3, 4}, JCS_CMYK, true);
    const size_t frame = bytes.find("\xff\xc0");
    ASSERT_NE(frame, std::string::npos);
    bytes[frame + 4] = 12;  // bits per sample
    EXPECT_EQ(error(bytes), path() + ": unsupported JPEG: Unsupported JPEG data precision 12");
}

// A pipe can be read once: its contents decide what it is.
// Issue 26, 9.
TEST_F(Pictures, APipeIsReadOnce) {
    const std::string pipe = (directory_ / "pipe").string();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (const char* name : {"a.png", "a.ppm"}) {
        save_picture(gradient(8, 6, 3), directory_ / name);
        const std::string bytes = read_file(directory_ / name);
        std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << bytes; });
        EXPECT_EQ(load_picture(pipe), gradient(8, 6, 3)) << name;
        writer.join();
    }
}

TEST_F(Pictures, WhatIsNoPictureSaysSo) {
    EXPECT_EQ(error("not a picture"),
              path() + ": is no picture; expected PNG, JPEG or PNM (P5, P6)");
    EXPECT_EQ(error(""), path() + ": is no picture; expected PNG, JPEG or PNM (P5, P6)");
    EXPECT_EQ(error("\x89PNG\r\n\x1a\n").find(path() + ": damaged PNG: "), 0u);
    EXPECT_EQ(error("\xff\xd8\xff").find(path() + ": damaged JPEG: "), 0u);
    EXPECT_THROW((void)load_picture(directory_ / "none.png"), InputError);
}

TEST_F(Pictures, EveryTruncationOfAFileIsAnError) {
    for (const char* name : {"a.png", "a.jpg"}) {
        save_picture(gradient(20, 20, 3), directory_ / name);
        const std::string good = read_file(directory_ / name);
        for (size_t length = 0; length + 2 < good.size(); length += length < 40 ? 1 : 17) {
            EXPECT_NE(error(good.substr(0, length)), "no error")
                << name << " cut after " << length << " bytes";
        }
    }
}

TEST_F(Pictures, ChangedBytesAreReadOrRefusedWithoutHarm) {
    std::mt19937 random(11);
    int refused = 0;
    for (const char* name : {"a.png", "a.jpg"}) {
        save_picture(gradient(20, 20, 3), directory_ / name);
        const std::string good = read_file(directory_ / name);
        for (int trial = 0; trial < 400; ++trial) {
            std::string bad = good;
            for (int k = 0; k < 3; ++k)
                bad[random() % bad.size()] = static_cast<char>(random() % 256);
            refused += error(bad) != "no error";
        }
    }
    EXPECT_GT(refused, 300);
}

TEST_F(Pictures, APngThatPromisesMoreThanItCanHoldIsRefusedAtOnce) {
    // Width and height of the header set to 40000; the checksum made right, so that only the size
    // is wrong.
    std::string bytes = text(rgba_png);
    const unsigned char size[] = {0, 0, 0x9c, 0x40};
    for (size_t k = 0; k < 8; ++k) bytes[16 + k] = static_cast<char>(size[k % 4]);
    bytes.replace(29, 4, big_endian(png_checksum(std::string_view(bytes).substr(12, 17))));
    EXPECT_EQ(error(bytes), path() + ": damaged PNG: 74 bytes cannot hold 40000 x 40000 pixels");
}

TEST_F(Pictures, OnlyWhatAFileCanHoldIsWritten) {
    const auto save_error = [](const Picture& picture, const std::filesystem::path& path) {
        try {
            save_picture(picture, path);
        } catch (const InputError& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    const std::string gif = (directory_ / "a.gif").string(), png = (directory_ / "a.png").string();
    EXPECT_EQ(save_error(gradient(1, 1, 1), gif),
              gif + ": expected a name that ends in .png, .jpg, .jpeg, .pgm, .ppm or .pnm");
    EXPECT_EQ(save_error({2, 2, 3, {1, 2, 3}}, png),
              png +
                  ": picture of 2 x 2 x 3 with 3 samples, expected 1 or 3 channels and a sample "
                  "for each");
    EXPECT_EQ(save_error({1, 1, 2, {1, 2}}, png),
              png +
                  ": picture of 1 x 1 x 2 with 2 samples, expected 1 or 3 channels and a sample "
                  "for each");
    for (const char* name : {"a.png", "a.jpg"}) {
        const std::string nowhere = (directory_ / "none" / name).string();
        EXPECT_EQ(save_error(gradient(1, 1, 1), nowhere),
                  nowhere + ": cannot be written: No such file or directory");
    }
    EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace laminate
