// Uncompressed video, frame by frame: YUV4MPEG2, which ffmpeg and mpv read and write as .y4m and
// through pipes. Samples of 8 to 16 bits, progressive or interlaced alike; grey, 4:2:0, 4:2:2,
// 4:1:1 and 4:4:4, the last with or without alpha.
#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace laminate {

/// How the samples of a frame lie, by the tag behind "C".
struct Y4mSampling {
    int bits = 8;  ///< of a sample; above 8, two bytes, the lower one first
    bool has_chroma = true;
    bool has_alpha = false;
    int64_t chroma_step_x = 2;  ///< columns of luma per column of chroma
    int64_t chroma_step_y = 2;

    [[nodiscard]] int64_t sample_bytes() const { return bits > 8 ? 2 : 1; }
};

struct Y4mHeader {
    int64_t width = 0;
    int64_t height = 0;
    /// The tag behind "C": "420jpeg", "mono", "411", "422p10", ... Without one, the tag behind
    /// "XYSCSS=", else "420jpeg".
    std::string chroma = "420jpeg";
    Y4mSampling sampling;  ///< of `chroma`
    /// All other tags unchanged, "F25:1 Ip A1:1".
    std::string parameters;

    /// Size of one chroma plane; 0 for mono.
    [[nodiscard]] int64_t chroma_width() const;
    [[nodiscard]] int64_t chroma_height() const;
};

/// Planes as bytes of the stream; those that the sampling lacks are empty.
struct Y4mFrame {
    std::string parameters;  ///< of its FRAME line
    std::vector<uint8_t> y, cb, cr, alpha;
};

class Y4mReader {
public:
    /// Reads the header; `where` begins messages. Throws InputError when the stream is no
    /// YUV4MPEG2, has samples that are not listed above, or is too large.
    Y4mReader(std::istream& stream, std::string where);
    [[nodiscard]] const Y4mHeader& header() const { return header_; }
    /// Reads the next frame; false at the end. Throws InputError when it is cut off.
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

/// The sampling of a tag; throws InputError "WHERE: ..." for an unknown one.
[[nodiscard]] Y4mSampling y4m_sampling(std::string_view chroma, const std::string& where);

/// Elements of a plane: samples divided by 255 * 2^(bits - 8), so that a level is the same element
/// in any number of bits.
[[nodiscard]] std::vector<float> elements_of_plane(const std::vector<uint8_t>& plane, int bits);
/// The inverse, rounded to the nearest sample and clamped.
[[nodiscard]] std::vector<uint8_t> plane_of_elements(const std::vector<float>& elements, int bits);

}  // namespace laminate
