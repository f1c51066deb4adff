// Video streams: round trips, sizes of chroma, and refusals.
#include "runtime/media/y4m.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"

namespace laminate {
namespace {

TEST(Y4m, OddSizesHaveChromaRoundedUp) {
    const auto chroma = [](const std::string& kind) {
        Y4mHeader header{.width = 5, .height = 3, .chroma = kind, .sampling = {}, .parameters = {}};
        header.sampling = y4m_sampling(kind, "film");
        return std::pair{header.chroma_width(), header.chroma_height()};
    };
    EXPECT_EQ(chroma("420jpeg"), (std::pair<int64_t, int64_t>{3, 2}));
    EXPECT_EQ(chroma("411"), (std::pair<int64_t, int64_t>{2, 3}));
    EXPECT_EQ(chroma("420p12"), (std::pair<int64_t, int64_t>{3, 2}));
    EXPECT_EQ(chroma("422"), (std::pair<int64_t, int64_t>{3, 3}));
    EXPECT_EQ(chroma("444"), (std::pair<int64_t, int64_t>{5, 3}));
    EXPECT_EQ(chroma("mono"), (std::pair<int64_t, int64_t>{0, 0}));
}

TEST(Y4m, AStreamComesBackAsItWas) {
    // 3 x 2 luma, 2 x 1 of each chroma: ten bytes a frame.
    const std::string stream =
        "YUV4MPEG2 W3 H2 F25:1 Ip A1:1 C420mpeg2\nFRAME\nabcdefuUvVFRAME Ixyz\n0123456789";
    std::istringstream in(stream);
    std::ostringstream out;
    Y4mReader reader(in, "film");
    EXPECT_EQ(reader.header().width, 3);
    EXPECT_EQ(reader.header().height, 2);
    Y4mWriter writer(out, reader.header(), "out");
    Y4mFrame frame;
    ASSERT_TRUE(reader.read(frame));
    EXPECT_EQ(frame.cb, (std::vector<uint8_t>{'u', 'U'}));
    EXPECT_EQ(frame.cr, (std::vector<uint8_t>{'v', 'V'}));
    writer.write(frame);
    ASSERT_TRUE(reader.read(frame));
    EXPECT_EQ(frame.parameters, "Ixyz");
    writer.write(frame);
    EXPECT_FALSE(reader.read(frame));
    EXPECT_EQ(out.str(), stream);
}

// Two bytes a sample, the lower one first; four planes with alpha; ffmpeg's tag where C is absent.
// Issue 26, 9.
TEST(Y4m, LessCommonSamplingsComeBackAsTheyWere) {
    for (const std::string stream :
         {"YUV4MPEG2 W2 H1 C422p10\nFRAME\nYyYyBbRr", "YUV4MPEG2 W2 H1 Cmono12\nFRAME\nYyYy",
          "YUV4MPEG2 W2 H1 C444alpha\nFRAME\nYYbbrraa", "YUV4MPEG2 W5 H1 C411\nFRAME\nYYYYYbbrr",
          "YUV4MPEG2 W2 H1 XYSCSS=420P16 C420p16\nFRAME\nYyYyBbRr"}) {
        std::istringstream in(stream);
        std::ostringstream out;
        Y4mReader reader(in, "film");
        Y4mWriter writer(out, reader.header(), "out");
        Y4mFrame frame;
        ASSERT_TRUE(reader.read(frame)) << stream;
        writer.write(frame);
        EXPECT_FALSE(reader.read(frame)) << stream;
        EXPECT_EQ(out.str(), stream);
    }
    std::istringstream in("YUV4MPEG2 W2 H1 XYSCSS=422P10\n");
    EXPECT_EQ(Y4mReader(in, "film").header().sampling.bits, 10);
    std::istringstream both("YUV4MPEG2 W2 H1 Cmono XYSCSS=422P10\n");
    EXPECT_FALSE(Y4mReader(both, "film").header().sampling.has_chroma);
}

// White in studio range is 235 in 8 bits and 940 = 4 * 235 in 10.
TEST(Y4m, ALevelIsTheSameElementInAnyNumberOfBits) {
    const float white = 235 / 255.0f;
    EXPECT_EQ(elements_of_plane({235}, 8), (std::vector<float>{white}));
    EXPECT_EQ(elements_of_plane({940 & 0xff, 940 >> 8}, 10), (std::vector<float>{white}));
    EXPECT_EQ(plane_of_elements({white, -1, 2}, 8), (std::vector<uint8_t>{235, 0, 255}));
    EXPECT_EQ(plane_of_elements({white, -1, 2}, 10),
              (std::vector<uint8_t>{940 & 0xff, 940 >> 8, 0, 0, 0xff, 0x03}));
}

std::string refusal(const std::string& stream) {
    std::istringstream in(stream);
    try {
        Y4mReader reader(in, "film");
        Y4mFrame frame;
        while (reader.read(frame)) continue;
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(Y4m, DamagedStreamsAreRefused) {
    EXPECT_EQ(refusal(""), "film: is no YUV4MPEG2 stream");
    EXPECT_EQ(refusal("RIFF\n"), "film: is no YUV4MPEG2 stream");
    EXPECT_EQ(refusal("YUV4MPEG2 W3\n"), "film: its header has no width or no height");
    EXPECT_EQ(refusal("YUV4MPEG2 W-3 H2\n"),
              "film: found \"W-3\", expected W and a number of pixels");
    EXPECT_EQ(refusal("YUV4MPEG2 W99999999 H99999999\n"),
              "film: frames of 99999999 x 99999999, expected at most 268435456 pixels");
    for (const std::string samples :
         {"rgb", "420p8", "420p17", "420p", "422q10", "monop10", "4440"})
        EXPECT_EQ(refusal("YUV4MPEG2 W2 H2 C" + samples + "\n"),
                  "film: found samples \"" + samples +
                      "\", expected mono, 411, 420, 420jpeg, 420mpeg2, 420paldv, 422, 444 or "
                      "444alpha, or more than 8 bits as in mono10 and 420p10");
    EXPECT_EQ(refusal("YUV4MPEG2 W2 H1 C422p10\nFRAME\nYyYyBbR"), "film: frame 1: ends too early");
    EXPECT_EQ(refusal("YUV4MPEG2 W2 H2 Cmono\nFRAME\n1234FRAME\n12"),
              "film: frame 2: ends too early");
    EXPECT_EQ(refusal("YUV4MPEG2 W2 H2 Cmono\nFRAME\n1234FR"), "film: ends within the line \"FR\"");
    EXPECT_EQ(refusal("YUV4MPEG2 W2 H2 Cmono\nIMAGE\n1234"),
              "film: frame 1: found \"IMAGE\", expected FRAME");
    EXPECT_EQ(refusal(std::string(5000, 'x')),
              "film: is no YUV4MPEG2 stream: a line of its headers is longer than 1024 bytes");
}

}  // namespace
}  // namespace laminate
