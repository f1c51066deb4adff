// libpng reports failure by longjmp. The functions that call it hold no object with a destructor,
// which the jump would skip; their callers throw.
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "runtime/media/codecs.h"

namespace laminate {
namespace {

struct PngFailure {
    char message[200] = "";
    bool warns_of_profile = false;  ///< also of profiles that it keeps
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
    auto* failure = static_cast<PngFailure*>(png_get_error_ptr(png));
    std::snprintf(failure->message, sizeof failure->message, "%s", message);
    png_longjmp(png, 1);
}

/// libpng warns of a damaged profile and goes on without it. Other warnings concern chunks that are
/// not used here.
void on_warning(png_structp png, png_const_charp message) {
    if (std::strstr(message, "iCCP") != nullptr)
        static_cast<PngFailure*>(png_get_error_ptr(png))->warns_of_profile = true;
}

struct Source {
    const char* bytes;
    size_t size;
    size_t at;
};

void read_bytes(png_structp png, png_bytep target, size_t count) {
    auto* source = static_cast<Source*>(png_get_io_ptr(png));
    if (count > source->size - source->at) png_error(png, "the file ends too early");
    std::memcpy(target, source->bytes + source->at, count);
    source->at += count;
}

struct PngReader {
    PngFailure failure;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : nullptr;

    PngReader() = default;
    PngReader(const PngReader&) = delete;
    PngReader& operator=(const PngReader&) = delete;
    ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Reads up to the first row and requests grey or RGB of 8 or 16 bits, with alpha where the file has
/// some.
bool read_header(PngReader& reader, Source& source) {
    if (setjmp(png_jmpbuf(reader.png))) return false;
    png_set_user_limits(reader.png, 0x7fffffff, 0x7fffffff);  // blank_picture() decides
    png_set_read_fn(reader.png, &source, read_bytes);
    png_read_info(reader.png, reader.info);
    png_set_palette_to_rgb(reader.png);
    png_set_expand_gray_1_2_4_to_8(reader.png);
    png_set_tRNS_to_alpha(reader.png);
    png_set_interlace_handling(reader.png);
    return true;
}

bool read_rows(PngReader& reader, png_bytepp rows) {
    if (setjmp(png_jmpbuf(reader.png))) return false;
    png_read_image(reader.png, rows);
    png_read_end(reader.png, reader.info);
    return true;
}

bool finish_header(PngReader& reader) {
    if (setjmp(png_jmpbuf(reader.png))) return false;
    png_read_update_info(reader.png, reader.info);
    return true;
}

struct PngWriter {
    PngFailure failure;
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : nullptr;

    PngWriter() = default;
    PngWriter(const PngWriter&) = delete;
    PngWriter& operator=(const PngWriter&) = delete;
    ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

void set_tags(PngWriter& writer, const ColourTags& tags, bool with_profile) {
    if (with_profile) {
        const std::string& profile = tags.icc_profile;
        png_set_iCCP(writer.png, writer.info, "profile", PNG_COMPRESSION_TYPE_BASE,
                     reinterpret_cast<png_const_bytep>(profile.data()),
                     static_cast<png_uint_32>(profile.size()));
    }
    if (tags.srgb_intent) png_set_sRGB(writer.png, writer.info, *tags.srgb_intent);
    if (tags.gamma) png_set_gAMA_fixed(writer.png, writer.info, *tags.gamma);
    if (tags.chromaticities) {
        const auto& c = *tags.chromaticities;
        png_set_cHRM_fixed(writer.png, writer.info, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]);
    }
}

/// `rows`: the bytes of the picture as they are compressed.
bool write_all(PngWriter& writer, std::FILE* file, const Picture& picture,
               const std::vector<uint8_t>& rows, bool with_profile) {
    if (setjmp(png_jmpbuf(writer.png))) return false;
    png_init_io(writer.png, file);
    png_set_benign_errors(writer.png, 1);  // a profile that libpng refuses is only left out
    const int colour = picture.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
    png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(picture.width),
                 static_cast<png_uint_32>(picture.height), picture.bits,
                 colour | (picture.alpha.empty() ? 0 : PNG_COLOR_MASK_ALPHA), PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    set_tags(writer, picture.tags, with_profile);
    png_write_info(writer.png, writer.info);
    const size_t row_bytes = rows.size() / static_cast<size_t>(picture.height);
    for (size_t y = 0; y < static_cast<size_t>(picture.height); ++y)
        png_write_row(writer.png, rows.data() + y * row_bytes);
    png_write_end(writer.png, nullptr);
    return true;
}

/// Calls work(sample, its place in the file) for each sample and alpha, in the order of the file.
template <class PictureType, class Work>
void for_each_sample(PictureType& picture, const Work& work) {
    const auto channels = static_cast<size_t>(picture.channels);
    const auto pixels = static_cast<size_t>(picture.height * picture.width);
    size_t at = 0;
    for (size_t k = 0; k < pixels; ++k) {
        for (size_t c = 0; c < channels; ++c) work(picture.samples[k * channels + c], at++);
        if (!picture.alpha.empty()) work(picture.alpha[k], at++);
    }
}

void unpack(const std::vector<uint8_t>& bytes, Picture& picture) {
    for_each_sample(picture, [&](uint16_t& sample, size_t at) {
        sample = picture.bits == 8
                     ? bytes[at]
                     : static_cast<uint16_t>(bytes[2 * at] << 8 | bytes[2 * at + 1]);
    });
}

std::vector<uint8_t> packed(const Picture& picture) {
    std::vector<uint8_t> bytes;
    bytes.reserve((picture.samples.size() + picture.alpha.size()) *
                  static_cast<size_t>(picture.bits / 8));
    for_each_sample(picture, [&](uint16_t sample, size_t) {
        if (picture.bits == 16) bytes.push_back(static_cast<uint8_t>(sample >> 8));
        bytes.push_back(static_cast<uint8_t>(sample & 0xff));
    });
    return bytes;
}

ColourTags tags_of(PngReader& reader) {
    ColourTags tags;
    png_charp name = nullptr;
    png_bytep profile = nullptr;
    png_uint_32 bytes = 0;
    int compression = 0, intent = 0;
    if (png_get_iCCP(reader.png, reader.info, &name, &compression, &profile, &bytes) != 0) {
        tags.icc_profile.assign(reinterpret_cast<const char*>(profile), bytes);
        return tags;
    }
    if (png_get_sRGB(reader.png, reader.info, &intent) != 0) {
        tags.srgb_intent = intent;
        return tags;
    }
    png_fixed_point gamma = 0;
    if (png_get_gAMA_fixed(reader.png, reader.info, &gamma) != 0) tags.gamma = gamma;
    std::array<png_fixed_point, 8> c{};
    if (png_get_cHRM_fixed(reader.png, reader.info, &c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &c[6],
                           &c[7]) != 0)
        tags.chromaticities = c;
    return tags;
}

/// Chunks of the file that a picture does not keep.
std::vector<std::string> dropped_chunks(PngReader& reader) {
    std::vector<std::string> dropped;
    if (reader.failure.warns_of_profile &&
        png_get_valid(reader.png, reader.info, PNG_INFO_iCCP) == 0)
        dropped.emplace_back("a damaged colour profile");
    constexpr std::array<std::pair<png_uint_32, const char*>, 8> chunks{{
        {PNG_INFO_eXIf, "EXIF"},
        {PNG_INFO_pHYs, "the size of a pixel"},
        {PNG_INFO_bKGD, "the background"},
        {PNG_INFO_tIME, "the time"},
        {PNG_INFO_oFFs, "the offset"},
        {PNG_INFO_sCAL, "the scale"},
        {PNG_INFO_pCAL, "the calibration"},
        {PNG_INFO_sPLT, "the suggested palette"},
    }};
    for (const auto& [flag, name] : chunks) {
        if (png_get_valid(reader.png, reader.info, flag) != 0) dropped.emplace_back(name);
    }
    if (png_get_text(reader.png, reader.info, nullptr, nullptr) > 0) dropped.emplace_back("text");
    return dropped;
}

}  // namespace

Picture decode_png(std::string_view bytes, const std::string& where) {
    PngReader reader;
    if (!reader.info) throw InputError(where + ": PNG: out of memory");
    const auto fail = [&] { throw InputError(where + ": damaged PNG: " + reader.failure.message); };
    Source source{bytes.data(), bytes.size(), 0};
    if (!read_header(reader, source)) fail();
    const int64_t height = png_get_image_height(reader.png, reader.info),
                  width = png_get_image_width(reader.png, reader.info);
    // Deflate gains at most a factor of 1032: a file that promises more is cut off or forged.
    const int64_t packed_bytes = static_cast<int64_t>(png_get_rowbytes(reader.png, reader.info));
    if (packed_bytes > 0 && height / 1100 > static_cast<int64_t>(bytes.size()) / packed_bytes + 1) {
        throw InputError(where + ": damaged PNG: " + std::to_string(bytes.size()) +
                         " bytes cannot hold " + std::to_string(width) + " x " +
                         std::to_string(height) + " pixels");
    }
    const bool grey = !(png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_COLOR);
    const int bits = png_get_bit_depth(reader.png, reader.info) == 16 ? 16 : 8;
    Picture picture = blank_picture(height, width, grey ? 1 : 3, bits, where);
    if (!finish_header(reader)) fail();
    const int64_t channels = png_get_channels(reader.png, reader.info);
    const size_t row_bytes = png_get_rowbytes(reader.png, reader.info);
    if (row_bytes != static_cast<size_t>(width * channels * (bits / 8)) ||
        (channels != picture.channels && channels != picture.channels + 1)) {
        throw InputError(where + ": PNG: unexpected pixel format");
    }
    if (channels > picture.channels) picture.alpha.resize(static_cast<size_t>(height * width));
    std::vector<uint8_t> bytes_of_rows(static_cast<size_t>(height) * row_bytes);
    std::vector<png_bytep> rows;
    for (size_t y = 0; y < static_cast<size_t>(height); ++y)
        rows.push_back(bytes_of_rows.data() + y * row_bytes);
    if (!read_rows(reader, rows.data())) fail();
    unpack(bytes_of_rows, picture);
    picture.tags = tags_of(reader);
    picture.dropped = dropped_chunks(reader);
    return picture;
}

std::vector<std::string> write_png(const Picture& picture, const std::filesystem::path& file,
                                   const std::string& where) {
    OutputFile out(file, where);
    PngWriter writer;
    if (!writer.info) throw InputError(where + ": PNG: out of memory");
    const bool has_profile = !picture.tags.icc_profile.empty();
    const bool with_profile =
        has_profile && is_profile_for(picture.tags.icc_profile, picture.channels);
    if (!write_all(writer, out.get(), picture, packed(picture), with_profile))
        out.fail(writer.failure.message);
    out.close();
    const bool is_kept =
        with_profile && png_get_valid(writer.png, writer.info, PNG_INFO_iCCP) != 0;
    if (has_profile && !is_kept) return {"the colour profile"};
    return {};
}

}  // namespace laminate
