#include "runtime/media/y4m.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "runtime/media/picture.h"

namespace laminate {
namespace {

constexpr std::string_view magic = "YUV4MPEG2";
constexpr size_t longest_line = 1024;

/// The next line, or nullopt at the end of the stream.
std::optional<std::string> line_of(std::istream& stream, const std::string& where) {
    std::string line;
    for (int c = stream.get(); c != std::istream::traits_type::eof(); c = stream.get()) {
        if (c == '\n') return line;
        if (line.size() == longest_line)
            throw InputError(where +
                             ": is no YUV4MPEG2 stream: a line of its headers is longer than " +
                             std::to_string(longest_line) + " bytes");
        line.push_back(static_cast<char>(c));
    }
    if (line.empty()) return {};
    throw InputError(where + ": ends within the line \"" + line.substr(0, 24) + "\"");
}

int64_t size_of(const std::string& tag, const std::string& where) {
    int64_t value = 0;
    const char* end = tag.data() + tag.size();
    const auto [stopped, error] = std::from_chars(tag.data() + 1, end, value);
    if (error != std::errc{} || stopped != end || value < 1 || value > most_pixels)
        throw InputError(where + ": found \"" + tag + "\", expected " + tag[0] +
                         " and a number of pixels");
    return value;
}

/// "10" of "420p10" and of "mono10"; 8 where the tag ends with its format. Nullopt for anything
/// else.
std::optional<int> bits_behind(std::string_view text, bool is_mono) {
    if (text.empty()) return 8;
    if (!is_mono) {
        if (text[0] != 'p') return {};
        text.remove_prefix(1);
    }
    int bits = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
    if (error != std::errc{} || end != text.data() + text.size() || bits < 9 || bits > 16)
        return {};
    return bits;
}

}  // namespace

Y4mSampling y4m_sampling(std::string_view chroma, const std::string& where) {
    // What a tag may begin with; where samples of chroma lie between those of luma does not matter.
    struct Format {
        std::string_view name;
        Y4mSampling sampling;
    };
    constexpr Format formats[] = {
        {"420jpeg", {}},
        {"420mpeg2", {}},
        {"420paldv", {}},
        {"444alpha", {.has_alpha = true, .chroma_step_x = 1, .chroma_step_y = 1}},
        {"420", {}},
        {"411", {.chroma_step_x = 4, .chroma_step_y = 1}},
        {"422", {.chroma_step_x = 2, .chroma_step_y = 1}},
        {"444", {.chroma_step_x = 1, .chroma_step_y = 1}},
        {"mono", {.has_chroma = false}}};
    for (const Format& format : formats) {
        if (!chroma.starts_with(format.name)) continue;
        Y4mSampling sampling = format.sampling;
        const auto bits = bits_behind(chroma.substr(format.name.size()), !sampling.has_chroma);
        if (!bits) continue;
        sampling.bits = *bits;
        return sampling;
    }
    throw InputError(where + ": found samples \"" + std::string(chroma.substr(0, 24)) +
                     "\", expected mono, 411, 420, 420jpeg, 420mpeg2, 420paldv, 422, 444 or "
                     "444alpha, or more than 8 bits as in mono10 and 420p10");
}

std::vector<float> elements_of_plane(const std::vector<uint8_t>& plane, int bits) {
    const auto largest = static_cast<float>(255 << (bits - 8));
    if (bits == 8) {
        std::vector<float> elements(plane.size());
        std::transform(plane.begin(), plane.end(), elements.begin(),
                       [&](uint8_t sample) { return static_cast<float>(sample) / largest; });
        return elements;
    }
    std::vector<float> elements(plane.size() / 2);
    for (size_t k = 0; k < elements.size(); ++k)
        elements[k] = static_cast<float>(plane[2 * k] | plane[2 * k + 1] << 8) / largest;
    return elements;
}

std::vector<uint8_t> plane_of_elements(const std::vector<float>& elements, int bits) {
    const double scale = 255 << (bits - 8), most = (1 << bits) - 1;
    std::vector<uint8_t> plane;
    plane.reserve(elements.size() * (bits > 8 ? 2 : 1));
    for (const float element : elements) {
        // A NaN becomes 0.
        const auto sample = static_cast<uint32_t>(
            element > 0 ? std::min(static_cast<double>(element) * scale + 0.5, most) : 0.0);
        plane.push_back(static_cast<uint8_t>(sample & 0xff));
        if (bits > 8) plane.push_back(static_cast<uint8_t>(sample >> 8));
    }
    return plane;
}

int64_t Y4mHeader::chroma_width() const {
    return sampling.has_chroma ? ceil_div(width, sampling.chroma_step_x) : 0;
}
int64_t Y4mHeader::chroma_height() const {
    return sampling.has_chroma ? ceil_div(height, sampling.chroma_step_y) : 0;
}

Y4mReader::Y4mReader(std::istream& stream, std::string where)
    : stream_(stream), where_(std::move(where)) {
    std::istringstream words(line_of(stream_, where_).value_or(""));
    std::string word;
    words >> word;
    if (word != magic) throw InputError(where_ + ": is no YUV4MPEG2 stream");
    constexpr std::string_view chroma_of_ffmpeg = "XYSCSS=";
    std::optional<std::string> chroma, other_chroma;
    while (words >> word) {
        if (word.starts_with(chroma_of_ffmpeg)) {
            other_chroma = word.substr(chroma_of_ffmpeg.size());
            for (char& c : *other_chroma)
                c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        switch (word[0]) {
            case 'W':
                header_.width = size_of(word, where_);
                break;
            case 'H':
                header_.height = size_of(word, where_);
                break;
            case 'C':
                chroma = word.substr(1);
                break;
            default:
                header_.parameters += (header_.parameters.empty() ? "" : " ") + word;
        }
    }
    header_.chroma = chroma.value_or(other_chroma.value_or(header_.chroma));
    header_.sampling = y4m_sampling(header_.chroma, where_);
    if (header_.width == 0 || header_.height == 0)
        throw InputError(where_ + ": its header has no width or no height");
    if (header_.height > most_pixels / header_.width)
        throw InputError(where_ + ": frames of " + std::to_string(header_.width) + " x " +
                         std::to_string(header_.height) + ", expected at most " +
                         std::to_string(most_pixels) + " pixels");
}

bool Y4mReader::read(Y4mFrame& frame) {
    const std::optional<std::string> line = line_of(stream_, where_);
    if (!line) return false;
    const std::string name = where_ + ": frame " + std::to_string(++frames_);
    if (line->substr(0, 5) != "FRAME")
        throw InputError(name + ": found \"" + line->substr(0, 24) + "\", expected FRAME");
    frame.parameters = line->size() > 6 ? line->substr(6) : "";
    const Y4mSampling& sampling = header_.sampling;
    const auto fill = [&](std::vector<uint8_t>& plane, int64_t samples) {
        const int64_t bytes = samples * sampling.sample_bytes();
        plane.resize(static_cast<size_t>(bytes));
        stream_.read(reinterpret_cast<char*>(plane.data()), bytes);
        if (stream_.gcount() != bytes) throw InputError(name + ": ends too early");
    };
    fill(frame.y, header_.width * header_.height);
    fill(frame.cb, header_.chroma_width() * header_.chroma_height());
    fill(frame.cr, header_.chroma_width() * header_.chroma_height());
    fill(frame.alpha, sampling.has_alpha ? header_.width * header_.height : 0);
    return true;
}

Y4mWriter::Y4mWriter(std::ostream& stream, const Y4mHeader& header, std::string where)
    : stream_(stream), where_(std::move(where)) {
    stream_ << magic << " W" << header.width << " H" << header.height
            << (header.parameters.empty() ? "" : " ") << header.parameters << " C" << header.chroma
            << '\n';
    if (!stream_) throw InputError(where_ + ": cannot be written");
}

void Y4mWriter::write(const Y4mFrame& frame) {
    stream_ << "FRAME" << (frame.parameters.empty() ? "" : " ") << frame.parameters << '\n';
    for (const std::vector<uint8_t>* plane : {&frame.y, &frame.cb, &frame.cr, &frame.alpha})
        stream_.write(reinterpret_cast<const char*>(plane->data()), std::ssize(*plane));
    stream_.flush();
    if (!stream_) throw InputError(where_ + ": cannot be written");
}

}  // namespace laminate
