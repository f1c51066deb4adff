#include "runtime/media/y4m.h"

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

/// Up to the end of the line; none at the end of the stream.
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

bool is_known(const std::string& chroma) {
    for (const char* known : {"mono", "420jpeg", "420mpeg2", "420paldv", "420", "422", "444"}) {
        if (chroma == known) return true;
    }
    return false;
}

}  // namespace

int64_t Y4mHeader::chroma_width() const {
    return chroma == "mono" ? 0 : chroma == "444" ? width : ceil_div(width, 2);
}
int64_t Y4mHeader::chroma_height() const {
    return chroma == "mono" ? 0 : chroma == "444" || chroma == "422" ? height : ceil_div(height, 2);
}

Y4mReader::Y4mReader(std::istream& stream, std::string where)
    : stream_(stream), where_(std::move(where)) {
    std::istringstream words(line_of(stream_, where_).value_or(""));
    std::string word;
    words >> word;
    if (word != magic) throw InputError(where_ + ": is no YUV4MPEG2 stream");
    while (words >> word) {
        switch (word[0]) {
            case 'W':
                header_.width = size_of(word, where_);
                break;
            case 'H':
                header_.height = size_of(word, where_);
                break;
            case 'C':
                header_.chroma = word.substr(1);
                if (!is_known(header_.chroma))
                    throw InputError(
                        where_ + ": found samples " + word +
                        ", expected 8 bits: mono, 420, 420jpeg, 420mpeg2, 420paldv, 422 or 444");
                break;
            default:
                header_.parameters += (header_.parameters.empty() ? "" : " ") + word;
        }
    }
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
    const auto fill = [&](std::vector<uint8_t>& plane, int64_t elements) {
        plane.resize(static_cast<size_t>(elements));
        stream_.read(reinterpret_cast<char*>(plane.data()), elements);
        if (stream_.gcount() != elements) throw InputError(name + ": ends too early");
    };
    fill(frame.y, header_.width * header_.height);
    fill(frame.cb, header_.chroma_width() * header_.chroma_height());
    fill(frame.cr, header_.chroma_width() * header_.chroma_height());
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
    for (const std::vector<uint8_t>* plane : {&frame.y, &frame.cb, &frame.cr})
        stream_.write(reinterpret_cast<const char*>(plane->data()), std::ssize(*plane));
    stream_.flush();
    if (!stream_) throw InputError(where_ + ": cannot be written");
}

}  // namespace laminate
