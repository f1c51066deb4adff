// The verb `run` on pictures in windows, videos and folders: pixels equal those of whole pictures,
// memory stays as announced, and bad input is refused.
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/files.h"
#include "runtime/media/colour.h"
#include "runtime/media/picture.h"
#include "tests/support/run_program.h"
#include "tests/support/sanitized.h"

namespace laminate::cli {
namespace {

const std::string data = LAMINATE_EXAMPLE_DATA;
const std::string upscaler = data + "/fsrcnn_x2.onnx";

/// The left top part of an example picture of 300 x 451, odd in both directions.
Picture part_of_chelsea(int64_t height, int64_t width) {
    const Picture whole = load_picture(data + "/chelsea.png");
    if (height > whole.height || width > whole.width)
        throw std::out_of_range("the picture is smaller");
    Picture part{height, width, whole.channels, {}};
    for (int64_t y = 0; y < height; ++y) {
        const auto row = whole.samples.begin() + y * whole.width * whole.channels;
        part.samples.insert(part.samples.end(), row, row + width * whole.channels);
    }
    return part;
}

Picture grey(const Picture& picture) {
    const Plane luma = to_luma_chroma(picture).y;
    return from_planar(luma.values.data(), 1, picture.height, picture.width);
}

void expect_windows_make_the_whole(const Picture& picture, const std::string& options,
                                   const std::string& budget) {
    const ScratchDirectory scratch;
    save_picture(picture, scratch / "small.ppm");
    const std::string input = "run " + upscaler + options + " --input " + (scratch / "small.ppm");
    const ProgramResult whole = run_program(input + " --output " + (scratch / "whole.ppm"));
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    const ProgramResult windows = run_program(input + " --output " + (scratch / "windows.ppm") +
                                              " --stream --threads 2 --json - --memory " + budget);
    ASSERT_EQ(windows.exit_code, 0) << windows.err;
    EXPECT_GT(nlohmann::json::parse(windows.out).at("windows").at("count").get<int64_t>(), 1);
    EXPECT_TRUE(load_picture(scratch / "windows.ppm").samples ==
                load_picture(scratch / "whole.ppm").samples);
}

TEST(RunStream, ColourInWindowsIsTheWholePictureToTheLastBit) {
    // No window for filtering by tiles of columns, which rounds differently, fits in 700 KiB.
    expect_windows_make_the_whole(part_of_chelsea(149, 223), " --no-winograd", "700KiB");
}

TEST(RunStream, ColourOfSixteenBitsInWindowsIsTheWholePicture) {
    Picture picture = part_of_chelsea(149, 223);
    picture.bits = 16;
    for (uint16_t& sample : picture.samples) sample = static_cast<uint16_t>(sample * 257 ^ 0x2b);
    expect_windows_make_the_whole(picture, " --no-winograd", "700KiB");
}

TEST(RunStream, FilteredWindowsAreTheWholePictureToTheLastBit) {
    expect_windows_make_the_whole(part_of_chelsea(299, 451), "", "3MiB");
}

TEST(RunStream, MemoryIsAnnouncedKeptAndSeen) {
    const ScratchDirectory scratch;
    // 1500 rows and 1500 columns of noise.
    Picture noise{1500, 1500, 1, {}};
    for (int64_t k = 0; k < 1500 * 1500; ++k)
        noise.samples.push_back(static_cast<uint16_t>(k * k % 251));
    save_picture(noise, scratch / "a.pgm");
    const ProgramResult result =
        run_program("run " + upscaler + " --stream --memory 12MiB --threads 1 --input " +
                    (scratch / "a.pgm") + " --output " + (scratch / "b.pgm") + " --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    const auto announced = answer.at("memory_bytes").get<int64_t>();
    EXPECT_EQ(announced,
              answer.at("arena_bytes").get<int64_t>() + answer.at("window_bytes").get<int64_t>());
    EXPECT_LE(announced, 12 << 20);
    const auto window = answer.at("windows");
    // One channel in, one of twice the height and width out, four bytes each.
    EXPECT_EQ(answer.at("window_bytes").get<int64_t>(),
              5 * 4 * window.at("height").get<int64_t>() * window.at("width").get<int64_t>());
    // Linux also counts pages of file buffers and stacks, and the shadow of a sanitizer.
    if (!test::is_sanitized && answer.contains("resident_growth_bytes")) {
        EXPECT_LE(answer.at("resident_growth_bytes").get<int64_t>(), announced + (4 << 20));
        EXPECT_GE(answer.at("resident_growth_bytes").get<int64_t>(), announced / 2);
    }
    EXPECT_EQ(load_picture(scratch / "b.pgm").width, 3000);
}

TEST(RunStream, WhatCannotBeStreamedIsRefusedAndLeavesNothing) {
    const ScratchDirectory scratch;
    save_picture(grey(part_of_chelsea(40, 50)), scratch / "a.pgm");
    const std::string files = " --stream --input " + (scratch / "a.pgm") + " --output ";
    const auto refused = [&](const std::string& command, int exit_code,
                             const std::string& message) {
        const ProgramResult result = run_program(command);
        EXPECT_EQ(result.exit_code, exit_code) << result.err;
        EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
        EXPECT_FALSE(std::filesystem::exists(scratch / "b.pgm"));
    };
    refused("run zoo:mobilenetv2" + files + (scratch / "b.pgm"), 3,
            "cannot run in windows: layer ");
    refused("run zoo:fsrcnn?height=30" + files + (scratch / "b.pgm"), 3,
            "expected rows and columns that are left open");
    refused("run " + upscaler + files + (scratch / "b.png"), 2,
            "expected .pgm, .ppm, .pnm, .pfm or .npy with --stream");
    refused("run " + upscaler + files + (scratch / "b.ppm"), 3, "expected 3 channels");
    refused("run " + upscaler + files + (scratch / "b.pgm") + " --memory 2KiB", 4,
            "no window fits in 2.0 KiB");
    refused("run " + upscaler + files + (scratch / "b.pgm") + " --expected x.npy", 2,
            "--expected: not with --stream");
    refused("run " + upscaler + files + (scratch / "no/where/b.pgm"), 3, "cannot be written");
}

/// Two frames of grey gradients, chroma 4:2:0.
std::string small_video(int64_t width, int64_t height) {
    std::string bytes = "YUV4MPEG2 W" + std::to_string(width) + " H" + std::to_string(height) +
                        " F25:1 Ip A1:1 C420jpeg\n";
    for (int frame = 0; frame < 2; ++frame) {
        bytes += "FRAME\n";
        for (int64_t k = 0; k < width * height; ++k)
            bytes += static_cast<char>(40 + (k * 7 + frame * 50) % 170);
        bytes += std::string(static_cast<size_t>(2 * ((width + 1) / 2) * ((height + 1) / 2)),
                             static_cast<char>(frame == 0 ? 128 : 90));
    }
    return bytes;
}

// The program chose windows itself, and says so.
TEST(RunStream, APictureThatIsTooLargeToBeRunWholeSaysWhyItIsStreamed) {
    const ScratchDirectory scratch;
    const std::string head = "P5\n16384 8193\n255\n";  // 2^27 samples and a row
    write_file_atomically(scratch / "huge.pgm", head);
    std::filesystem::resize_file(scratch / "huge.pgm",
                                 head.size() + 16384 * 8193);  // takes no disk
    const std::string run = "run " + upscaler + " --input " + (scratch / "huge.pgm") + " --output ";
    const ProgramResult picture = run_program(run + (scratch / "large.png"));
    EXPECT_EQ(picture.exit_code, 2);
    EXPECT_EQ(
        picture.err,
        "laminate: error: --output: found \"" + (scratch / "large.png") +
            "\", expected .pgm, .ppm, .pnm, .pfm or .npy with a picture of more than 134,217,728 "
            "samples, which is streamed\n");
    const ProgramResult counts = run_program(run + (scratch / "large.pgm") + " --counts");
    EXPECT_EQ(counts.exit_code, 2);
    EXPECT_EQ(counts.err,
              "laminate: error: --counts: not with a picture of more than 134,217,728 samples, "
              "which is streamed\n");
}

TEST(RunVideo, AFrameIsThePictureOfItsLumaAndChromaKeepsItsLevel) {
    const ScratchDirectory scratch;
    const int64_t width = 33, height = 22;
    const std::string video = small_video(width, height);
    write_file_atomically(scratch / "SMALL.Y4M", video);
    // From a file and through a pipe, the same.
    ASSERT_EQ(run_program("run " + upscaler + " --input " + (scratch / "SMALL.Y4M") + " --output " +
                          (scratch / "large.y4m"))
                  .exit_code,
              0);
    const ProgramResult pipe =
        run_program("run " + upscaler + " --input - --output - <" + (scratch / "SMALL.Y4M"));
    ASSERT_EQ(pipe.exit_code, 0) << pipe.err;
    const std::string large = read_file(scratch / "large.y4m");
    EXPECT_EQ(pipe.out, large);
    const std::string header = "YUV4MPEG2 W66 H44 F25:1 Ip A1:1 C420jpeg\n";
    ASSERT_EQ(large.substr(0, header.size()), header);
    const size_t luma = 66 * 44, chroma = 2 * 33 * 22, frame = 6 + luma + chroma;
    ASSERT_EQ(large.size(), header.size() + 2 * frame);

    const size_t first = video.find("FRAME\n") + 6;
    Picture picture{height, width, 1, {}};
    const auto* luma_of_first = reinterpret_cast<const uint8_t*>(video.data()) + first;
    picture.samples.assign(luma_of_first, luma_of_first + width * height);
    save_picture(picture, scratch / "frame.pgm");
    ASSERT_EQ(run_program("run " + upscaler + " --input " + (scratch / "frame.pgm") + " --output " +
                          (scratch / "frame_x2.pgm"))
                  .exit_code,
              0);
    const std::vector<uint16_t> expected = load_picture(scratch / "frame_x2.pgm").samples;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           reinterpret_cast<const uint8_t*>(large.data()) + header.size() + 6));
    const size_t second_chroma = header.size() + frame + 6 + luma;
    EXPECT_EQ(large.substr(second_chroma, chroma), std::string(chroma, static_cast<char>(90)));
}

// Luma of ten bits in two bytes each, with four times the value, is the same film.
TEST(RunVideo, MoreBitsAndAlphaAreTheSameFilm) {
    const ScratchDirectory scratch;
    const int64_t width = 12, height = 10;
    const size_t pixels = 12 * 10, large_pixels = 4 * pixels;
    std::string bytes, words;
    for (size_t k = 0; k < pixels; ++k) {
        const auto sample = static_cast<unsigned>(40 + k * 7 % 170);
        bytes += static_cast<char>(sample);
        words += {static_cast<char>(4 * sample & 0xff), static_cast<char>(4 * sample >> 8)};
    }
    const std::string size = "YUV4MPEG2 W" + std::to_string(width) + " H" + std::to_string(height);
    const auto upscaled = [&](const std::string& video) {
        write_file_atomically(scratch / "small.y4m", video);
        const ProgramResult result = run_program(
            "run " + upscaler + " --no-winograd --output - --input " + (scratch / "small.y4m"));
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return result.out.substr(result.out.find("FRAME\n") + 6);
    };
    const std::string grey = upscaled(size + " Cmono\nFRAME\n" + bytes);
    ASSERT_EQ(grey.size(), large_pixels);
    const std::string ten = upscaled(size + " Cmono10\nFRAME\n" + words);
    ASSERT_EQ(ten.size(), 2 * large_pixels);
    for (size_t k = 0; k < large_pixels; ++k) {
        const int word = static_cast<unsigned char>(ten[2 * k]) |
                         static_cast<unsigned char>(ten[2 * k + 1]) << 8;
        ASSERT_NEAR(word / 4.0, static_cast<unsigned char>(grey[k]), 0.75) << k;
    }
    const std::string flat(pixels, static_cast<char>(77));
    const std::string alpha = upscaled(size + " C444alpha\nFRAME\n" + bytes + flat + flat + flat);
    ASSERT_EQ(alpha.size(), 4 * large_pixels);
    EXPECT_EQ(alpha.substr(0, large_pixels), grey);
    EXPECT_EQ(alpha.substr(3 * large_pixels), std::string(large_pixels, static_cast<char>(77)));
}

// Issue 26, 9. Shells make pipes of `<(...)`; each is read once, and its contents say what it is.
TEST(RunFiles, PipesOfPicturesArraysAndNetworks) {
    const ScratchDirectory scratch;
    save_picture(grey(part_of_chelsea(20, 16)), scratch / "a.pgm");
    const std::string convert = "run " + upscaler + " --no-winograd --output ";
    ASSERT_EQ(
        run_program(convert + (scratch / "a.npy") + " --input " + (scratch / "a.pgm")).exit_code,
        0);
    const auto from_pipe = [&](const std::string& file, const std::string& words) {
        const std::string pipe = scratch / "pipe";
        EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
        const std::string command =
            "cat " + file + " > " + pipe + " & timeout 100 " + LAMINATE_PROGRAM + " " + words;
        EXPECT_EQ(std::system(("sh -c '" + command + "' > /dev/null 2>&1").c_str()), 0) << words;
        std::filesystem::remove(pipe);
    };
    from_pipe(scratch / "a.pgm", convert + (scratch / "b.npy") + " --input " + (scratch / "pipe"));
    EXPECT_EQ(read_file(scratch / "b.npy"), read_file(scratch / "a.npy"));
    from_pipe(upscaler, "run " + (scratch / "pipe") + " --no-winograd --output " +
                            (scratch / "c.npy") + " --input " + (scratch / "a.pgm"));
    EXPECT_EQ(read_file(scratch / "c.npy"), read_file(scratch / "a.npy"));
    from_pipe(scratch / "a.npy",
              "run " + upscaler + " -q --height 40 --width 32 --input " + (scratch / "pipe"));
}

TEST(RunVideo, ADamagedStreamLeavesNoFile) {
    const ScratchDirectory scratch;
    const std::string video = small_video(24, 16);
    write_file_atomically(scratch / "cut.y4m", video.substr(0, video.size() - 5));
    const ProgramResult result =
        run_program("run " + upscaler + " --input " + (scratch / "cut.y4m") + " --output " +
                    (scratch / "large.y4m"));
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("cut.y4m: frame 2: ends too early"), std::string::npos) << result.err;
    std::filesystem::remove(scratch / "cut.y4m");
    EXPECT_TRUE(scratch.is_empty());
}

TEST(RunFolder, EveryPictureOfEverySizeInColourOrGrey) {
    const ScratchDirectory scratch;
    std::filesystem::create_directory(scratch / "in");
    save_picture(part_of_chelsea(24, 30), scratch / "in/a.png");
    save_picture(grey(part_of_chelsea(24, 30)), scratch / "in/b.pgm");
    save_picture(part_of_chelsea(16, 21), scratch / "in/c.png");
    write_file_atomically(scratch / "in/notes.txt", "no picture");
    const ProgramResult result = run_program("run " + upscaler + " --input " + (scratch / "in") +
                                             " --output " + (scratch / "out"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(load_picture(scratch / "out/a.png").channels, 3);
    EXPECT_EQ(load_picture(scratch / "out/b.pgm").channels, 1);
    EXPECT_EQ(load_picture(scratch / "out/c.png").width, 42);
    EXPECT_FALSE(std::filesystem::exists(scratch / "out/notes.txt"));
    ASSERT_EQ(run_program("run " + upscaler + " --input " + (scratch / "in/c.png") + " --output " +
                          (scratch / "c.png"))
                  .exit_code,
              0);
    EXPECT_EQ(load_picture(scratch / "c.png"), load_picture(scratch / "out/c.png"));
    // An existing folder is never overwritten.
    EXPECT_EQ(run_program("run " + upscaler + " --input " + (scratch / "in") + " --output " +
                          (scratch / "out"))
                  .exit_code,
              3);
}

/// One directory for all sizes; pictures as from code that is made for each.
TEST(RunFolder, ADirectoryOfAnySizeTakesPicturesOfEverySize) {
    const ScratchDirectory scratch;
    std::filesystem::create_directory(scratch / "in");
    save_picture(part_of_chelsea(70, 80), scratch / "in/a.png");
    save_picture(grey(part_of_chelsea(40, 101)), scratch / "in/b.pgm");
    const ProgramResult compiled =
        run_program("compile " + upscaler + " --any-size --height 90 --width 120 --no-winograd -o " +
                    (scratch / "net"));
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
    const auto run = [&](const std::string& network, const std::string& to) {
        const ProgramResult result = run_program("run " + network + " --input " + (scratch / "in") +
                                                 " --output " + (scratch / to));
        EXPECT_EQ(result.exit_code, 0) << result.err;
    };
    run(scratch / "net", "out");
    run(upscaler + " --no-winograd", "expected");
    for (const char* file : {"a.png", "b.pgm"})
        EXPECT_EQ(load_picture((scratch / "out/") + file),
                  load_picture((scratch / "expected/") + file));
    // A video and an array of another size, and the size of random elements.
    write_file_atomically(scratch / "small.y4m", small_video(24, 36));
    EXPECT_EQ(run_program("run " + (scratch / "net") + " --input " + (scratch / "small.y4m") +
                          " --output " + (scratch / "large.y4m"))
                  .exit_code,
              0);
    EXPECT_EQ(
        run_program("run " + (scratch / "net") + " -q --height 33 --width 65 --output " +
                    (scratch / "y.npy"))
            .exit_code,
        0);
    // A file that leaves rows and columns open implies it, unless the options ask for one size.
    const ProgramResult implied =
        run_program("compile " + upscaler + " --no-winograd -o " + (scratch / "implied"));
    EXPECT_NE(implied.out.find("any size from"), std::string::npos) << implied.out << implied.err;
    const ProgramResult within =
        run_program("compile " + upscaler + " --memory 1MiB -o " + (scratch / "within"));
    EXPECT_EQ(within.exit_code, 3);
    EXPECT_NE(within.err.find("expected --height"), std::string::npos) << within.err;
    EXPECT_EQ(run_program("compile " + upscaler + " --any-size --instrumented -o " +
                          (scratch / "hooks"))
                  .exit_code,
              2);
}

}  // namespace
}  // namespace laminate::cli
