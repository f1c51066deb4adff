#include "runtime/media/raster.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "runtime/media/codecs.h"
#include "runtime/media/colour.h"
#include "runtime/media/npy.h"

namespace laminate {
namespace {

static_assert(std::endian::native == std::endian::little,
              "floats are copied as they lie in little-endian files");

constexpr int64_t most_extent = std::numeric_limits<int32_t>::max();

int64_t sample_bytes(SampleType type) {
    return type == SampleType::uint8 ? 1 : type == SampleType::uint16 ? 2 : 4;
}

int64_t data_bytes(const RasterShape& shape) {
    return checked_multiply(
        checked_multiply(checked_multiply(shape.channels, shape.height), shape.width),
        sample_bytes(shape.type));
}

std::string shape_text(const RasterShape& shape) {
    return std::to_string(shape.channels) + " x " + std::to_string(shape.height) + " x " +
           std::to_string(shape.width);
}

/// Words of a PNM header, separated by white space; # begins a comment up to the end of the line.
class PnmWords {
public:
    PnmWords(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

    std::string next() {
        while (at_ < bytes_.size() && (is_space() || bytes_[at_] == '#')) {
            if (bytes_[at_] == '#') {
                while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
            } else {
                ++at_;
            }
        }
        const size_t begin = at_;
        while (at_ < bytes_.size() && !is_space()) ++at_;
        // A single character of white space ends the last word, whatever follows it.
        if (at_ == begin || at_ == bytes_.size())
            throw InputError(where_ + ": ends within the header, or its header is no PNM header");
        return std::string(bytes_.substr(begin, at_ - begin));
    }
    int64_t number(const std::string& name, int64_t most) {
        const std::string word = next();
        int64_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc{} || end != word.data() + word.size() || value < 1 || value > most) {
            throw InputError(where_ + ": found " + name + " \"" + word.substr(0, 24) +
                             "\", expected 1 to " + std::to_string(most));
        }
        return value;
    }
    /// Offset of the first element.
    [[nodiscard]] int64_t end() const { return static_cast<int64_t>(at_) + 1; }

private:
    [[nodiscard]] bool is_space() const {
        return std::isspace(static_cast<unsigned char>(bytes_[at_])) != 0;
    }

    std::string_view bytes_;
    const std::string& where_;
    size_t at_ = 0;
};

std::string pnm_header(const RasterLayout& layout) {
    const RasterShape& s = layout.shape;
    const std::string size = std::to_string(s.width) + " " + std::to_string(s.height) + "\n";
    if (s.type == SampleType::float32)
        return (s.channels == 1 ? "Pf\n" : "PF\n") + size + "-1.0\n";  // negative: little endian
    return (s.channels == 1 ? "P5\n" : "P6\n") + size +
           (s.type == SampleType::uint8 ? "255\n" : "65535\n");
}

RasterLayout npy_layout(const std::string& bytes, int64_t file_bytes, const std::string& where) {
    const NpyHeader header = parse_npy_header(bytes, where);
    std::vector<int64_t> dims = header.dims;
    if (dims.size() == 4 && dims[0] == 1) dims.erase(dims.begin());
    if (dims.size() != 3)
        throw InputError(where + ": is " + dims_text(header.dims) +
                         ", expected channels x rows x columns of one picture");
    if (header.descr != "<f4" && header.descr != "|u1")
        throw InputError(where + ": has elements of type " + header.descr +
                         ", expected <f4 or |u1");
    RasterLayout layout{.shape = {dims[0], dims[1], dims[2],
                                  header.descr == "<f4" ? SampleType::float32 : SampleType::uint8}};
    layout.offset_bytes = header.data_offset_bytes;
    layout.planar = true;
    if (const int64_t expected = data_bytes(layout.shape);
        file_bytes - layout.offset_bytes != expected) {
        throw InputError(where + ": holds " + std::to_string(file_bytes - layout.offset_bytes) +
                         " bytes of elements, expected " + std::to_string(expected));
    }
    return layout;
}

/// Calls work(file offset, channel or 0, row of the box) for each run of elements of `box` that lie
/// together in the file.
template <class Work>
void for_each_run(const RasterLayout& layout, const PictureBox& box, const Work& work) {
    const RasterShape& s = layout.shape;
    const int64_t bytes = sample_bytes(s.type);
    for (int64_t c = 0; c < (layout.planar ? s.channels : 1); ++c) {
        for (int64_t y = 0; y < box.height; ++y) {
            const int64_t row = layout.bottom_up ? s.height - 1 - (box.y + y) : box.y + y;
            const int64_t element = layout.planar ? (c * s.height + row) * s.width + box.x
                                                  : (row * s.width + box.x) * s.channels;
            work(layout.offset_bytes + element * bytes, c, y);
        }
    }
}

/// Bytes of one run.
size_t run_bytes(const RasterLayout& layout, const PictureBox& box) {
    return static_cast<size_t>(box.width * (layout.planar ? 1 : layout.shape.channels) *
                               sample_bytes(layout.shape.type));
}

void read_at(int file, void* to, size_t bytes, int64_t offset, const std::string& where) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = ::pread(file, static_cast<char*>(to) + done, bytes - done,
                                    offset + static_cast<int64_t>(done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            throw InputError(
                where + ": cannot be read: " +
                (got == 0 ? "it has become shorter" : std::generic_category().message(errno)));
        done += static_cast<size_t>(got);
    }
}

void write_at(int file, const void* from, size_t bytes, int64_t offset, const std::string& where) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t put = ::pwrite(file, static_cast<const char*>(from) + done, bytes - done,
                                     offset + static_cast<int64_t>(done));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0)
            throw InputError(where + ": cannot be written: " +
                             std::generic_category().message(put == 0 ? ENOSPC : errno));
        done += static_cast<size_t>(put);
    }
}

/// Converts one channel of a run to floats; elements lie `step` samples apart.
void decode(const RasterLayout& layout, const unsigned char* run, int64_t count, int64_t step,
            float* values) {
    const auto largest = static_cast<float>(layout.largest);
    switch (layout.shape.type) {
        case SampleType::uint8:
            for (int64_t k = 0; k < count; ++k)
                values[k] = static_cast<float>(run[k * step]) / largest;
            return;
        case SampleType::uint16:
            for (int64_t k = 0; k < count; ++k) {
                const unsigned char* at = run + 2 * k * step;
                values[k] = static_cast<float>(at[0] << 8 | at[1]) / largest;
            }
            return;
        case SampleType::float32:
            for (int64_t k = 0; k < count; ++k) {
                std::array<unsigned char, 4> bytes;
                std::memcpy(bytes.data(), run + 4 * k * step, 4);
                if (layout.big_endian) std::reverse(bytes.begin(), bytes.end());
                std::memcpy(values + k, bytes.data(), 4);
            }
            return;
    }
}

void encode(const RasterLayout& layout, const float* values, int64_t count, int64_t step,
            unsigned char* run) {
    switch (layout.shape.type) {
        case SampleType::uint8:
            for (int64_t k = 0; k < count; ++k)
                run[k * step] =
                    static_cast<uint8_t>(to_sample(static_cast<double>(values[k]), 255));
            return;
        case SampleType::uint16:
            for (int64_t k = 0; k < count; ++k) {
                const uint16_t sample = to_sample(static_cast<double>(values[k]), 65535);
                run[2 * k * step] = static_cast<unsigned char>(sample >> 8);
                run[2 * k * step + 1] = static_cast<unsigned char>(sample & 0xff);
            }
            return;
        case SampleType::float32:
            for (int64_t k = 0; k < count; ++k) std::memcpy(run + 4 * k * step, values + k, 4);
            return;
    }
}

int open_file(const std::filesystem::path& path, int flags, const std::string& verb) {
    const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (file < 0)
        throw InputError(path.string() + ": cannot be " + verb + ": " +
                         std::generic_category().message(errno));
    return file;
}

/// The layout of a new file, by its extension.
RasterLayout layout_for(const std::filesystem::path& path, const RasterShape& shape) {
    const std::string extension = lower_extension(path);
    RasterLayout layout{.shape = shape};
    if (extension == ".npy") {
        layout.planar = true;
        return layout;
    }
    const int64_t expected = extension == ".pgm"   ? 1
                             : extension == ".ppm" ? 3
                             : shape.channels == 3 ? 3
                                                   : 1;
    if (shape.channels != expected) {
        throw InputError(path.string() + ": found " + shape_text(shape) +
                         " elements to write, expected " + std::to_string(expected) +
                         (expected == 1 ? " channel" : " channels"));
    }
    layout.bottom_up = extension == ".pfm";
    layout.largest = shape.type == SampleType::uint8    ? 255
                     : shape.type == SampleType::uint16 ? 65535
                                                        : 1;
    return layout;
}

}  // namespace

bool is_raster_file(const std::filesystem::path& path) {
    const std::string extension = lower_extension(path);
    return extension == ".pgm" || extension == ".ppm" || extension == ".pnm" ||
           extension == ".pfm" || extension == ".npy";
}

RasterLayout parse_pnm_header(std::string_view bytes, int64_t file_bytes,
                              const std::string& where) {
    const std::string kind(bytes.substr(0, 2));
    const bool floats = kind == "Pf" || kind == "PF";
    if (!floats && kind != "P5" && kind != "P6")
        throw InputError(where + ": is no PNM file of kind P5, P6, Pf or PF");
    PnmWords words(bytes, where);
    if (words.next() != kind) throw InputError(where + ": is no PNM file of kind P5, P6, Pf or PF");
    RasterLayout layout;
    RasterShape& shape = layout.shape;
    shape.channels = kind == "P5" || kind == "Pf" ? 1 : 3;
    shape.width = words.number("width", most_extent);
    shape.height = words.number("height", most_extent);
    if (floats) {
        const std::string word = words.next();
        double scale = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), scale);
        if (error != std::errc{} || end != word.data() + word.size() || scale == 0 ||
            !std::isfinite(scale))
            throw InputError(where + ": found scale \"" + word.substr(0, 24) +
                             "\", expected a number other than 0");
        shape.type = SampleType::float32;
        layout.bottom_up = true;
        layout.big_endian = scale > 0;
    } else {
        const int64_t largest = words.number("largest value", 65535);
        shape.type = largest < 256 ? SampleType::uint8 : SampleType::uint16;
        layout.largest = static_cast<double>(largest);
        layout.big_endian = true;
    }
    layout.offset_bytes = words.end();
    if (const int64_t expected = data_bytes(shape); file_bytes - layout.offset_bytes < expected) {
        throw InputError(where + ": holds " + std::to_string(file_bytes - layout.offset_bytes) +
                         " bytes of samples, expected " + std::to_string(expected) + " for " +
                         shape_text(shape));
    }
    return layout;
}

Picture decode_pnm(std::string_view bytes, const std::string& where) {
    const RasterLayout layout = parse_pnm_header(bytes, std::ssize(bytes), where);
    const auto [channels, height, width, type] = layout.shape;
    const int bits = type == SampleType::uint8 ? 8 : 16;
    (void)blank_picture(height, width, channels, bits, where);  // refuses what is too large
    std::vector<float> values(static_cast<size_t>(channels * height * width));
    for_each_run(layout, {0, 0, height, width}, [&](int64_t offset, int64_t, int64_t y) {
        const auto* run = reinterpret_cast<const unsigned char*>(bytes.data()) + offset;
        for (int64_t c = 0; c < channels; ++c)
            decode(layout, run + c * sample_bytes(type), width, channels,
                   values.data() + (c * height + y) * width);
    });
    return from_planar(values.data(), channels, height, width, bits);
}

RasterDescriptor::~RasterDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

RasterReader::RasterReader(const std::filesystem::path& path)
    : where_(path.string()),
      // Opening a pipe without O_NONBLOCK waits for a writer; here it is refused at once.
      file_(open_file(path, O_RDONLY | O_NONBLOCK, "read")) {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode))
        throw InputError(where_ + ": is no regular file, expected one in which parts can be read");
    constexpr int64_t most_header = 64 << 10;
    std::string head(static_cast<size_t>(std::min<int64_t>(most_header, status.st_size)), '\0');
    read_at(file_.get(), head.data(), head.size(), 0, where_);
    layout_ = is_npy(head) ? npy_layout(head, status.st_size, where_)
                           : parse_pnm_header(head, status.st_size, where_);
}

void RasterReader::read(const PictureBox& box, float* values, int64_t plane, int64_t row) const {
    std::vector<unsigned char> run(run_bytes(layout_, box));
    const int64_t channels = layout_.planar ? 1 : layout_.shape.channels;
    for_each_run(layout_, box, [&](int64_t offset, int64_t channel, int64_t y) {
        read_at(file_.get(), run.data(), run.size(), offset, where_);
        for (int64_t c = 0; c < channels; ++c)
            decode(layout_, run.data() + c * sample_bytes(layout_.shape.type), box.width, channels,
                   values + (channel + c) * plane + y * row);
    });
}

Picture RasterReader::read_picture(const PictureBox& box) const {
    const auto [channels, height, width, type] = layout_.shape;
    if (layout_.planar || type == SampleType::float32)
        throw InputError(where_ + ": is no picture of samples, expected P5 or P6");
    std::vector<float> values(static_cast<size_t>(channels * box.height * box.width));
    read(box, values.data(), box.height * box.width, box.width);
    return from_planar(values.data(), channels, box.height, box.width,
                       type == SampleType::uint8 ? 8 : 16);
}

SampleType RasterWriter::type_for(const std::filesystem::path& path, SampleType wanted) {
    const std::string extension = lower_extension(path);
    if (extension == ".npy" || extension == ".pfm") return SampleType::float32;
    return wanted == SampleType::uint16 ? SampleType::uint16 : SampleType::uint8;
}

RasterWriter::RasterWriter(const std::filesystem::path& path, const RasterShape& shape)
    : where_(path.string()), new_file_(path), file_(-1) {
    if (!is_raster_file(path))
        throw InputError(path.string() +
                         ": expected a name that ends in .pgm, .ppm, .pnm, .pfm or .npy");
    layout_ = layout_for(path, shape);
    const std::string header = layout_.planar
                                   ? npy_header({1, shape.channels, shape.height, shape.width})
                                   : pnm_header(layout_);
    layout_.offset_bytes = std::ssize(header);
    const int64_t bytes = checked_add(layout_.offset_bytes, data_bytes(shape));
    file_.reset(open_file(new_file_.aside(), O_RDWR | O_CREAT | O_TRUNC, "written"));
    if (::ftruncate(file_.get(), bytes) != 0)
        throw InputError(where_ + ": cannot be written: " + std::generic_category().message(errno));
    write_at(file_.get(), header.data(), header.size(), 0, where_);
}

void RasterWriter::write(const PictureBox& box, const float* values, int64_t plane, int64_t row) {
    std::vector<unsigned char> run(run_bytes(layout_, box));
    const int64_t channels = layout_.planar ? 1 : layout_.shape.channels;
    for_each_run(layout_, box, [&](int64_t offset, int64_t channel, int64_t y) {
        for (int64_t c = 0; c < channels; ++c)
            encode(layout_, values + (channel + c) * plane + y * row, box.width, channels,
                   run.data() + c * sample_bytes(layout_.shape.type));
        write_at(file_.get(), run.data(), run.size(), offset, where_);
    });
}

void RasterWriter::write_picture(const PictureBox& box, const Picture& picture) {
    if (layout_.planar || layout_.shape.type == SampleType::float32 ||
        picture.channels != layout_.shape.channels || picture.height != box.height ||
        picture.width != box.width) {
        throw InputError(where_ + ": expected a part of a picture of samples");
    }
    write(box, to_planar(picture).data(), box.height * box.width, box.width);
}

void RasterWriter::publish() { new_file_.publish(); }

}  // namespace laminate
