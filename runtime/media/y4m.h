// Uncompressed video, frame by frame: YUV4MPEG2, what ffmpeg and mpv read and write as .y4m and
// through pipes. 8 bits per sample, progressive or interlaced alike; grey, 4:2:0, 4:2:2 and 4:4:4.
#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

namespace laminate {

struct Y4mHeader {
    int64_t width = 0;
    int64_t height = 0;
    /// The tag behind "C": "mono", "420jpeg", "420mpeg2", "420paldv", "420", "422" or "444";
    /// 420jpeg when the stream has none.
    std::string chroma = "420jpeg";
    /// All other tags as they stand, "F25:1 Ip A1:1".
    std::string parameters;

    /// Of one chroma plane; 0 for mono.
    [[nodiscard]] int64_t chroma_width() const;
    [[nodiscard]] int64_t chroma_height() const;
};

struct Y4mFrame {
    std::string parameters;  ///< of its FRAME line
    std::vector<uint8_t> y, cb, cr;
};

class Y4mReader {
public:
    /// Reads the header; `where` begins messages. Throws InputError when it is no such stream, of
    /// other samples or too large.
    Y4mReader(std::istream& stream, std::string where);
    [[nodiscard]] const Y4mHeader& header() const { return header_; }
    /// The next frame; false at the end. Throws InputError when it is cut off.
    bool read(Y4mFrame& frame);

private:
    std::istream& stream_;
    std::string where_;
    Y4mHeader header_;
    int64_t frames_ = 0;
};

class Y4mWriter {
public:
    /// Throws InputError, here and in write(), when the stream takes no more.
    Y4mWriter(std::ostream& stream, const Y4mHeader& header, std::string where);
    void write(const Y4mFrame& frame);

private:
    std::ostream& stream_;
    std::string where_;
};

}  // namespace laminate
