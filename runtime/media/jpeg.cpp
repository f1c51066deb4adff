// libjpeg reports failure by a callback that must not return, so ours jumps. The functions that
// call the library hold no object with a destructor, which the jump would skip; their callers
// throw.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <jerror.h>
#include <jpeglib.h>

#include "base/error.h"
#include "runtime/media/codecs.h"

namespace laminate {
namespace {

struct Failure {
    jpeg_error_mgr manager;  // first: libjpeg passes its address, which on_error() casts back
    std::jmp_buf jump;
    char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void on_error(j_common_ptr info) {
    auto* failure = reinterpret_cast<Failure*>(info->err);
    info->err->format_message(info, failure->message);
    std::longjmp(failure->jump, 1);
}

/// Negative levels are warnings. libjpeg only warns of a file that is cut off and paints the rest
/// grey; here it is an error.
void on_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    const int code = info->err->msg_code;
    if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER) on_error(info);
}

void print_nothing(j_common_ptr) {}

jpeg_error_mgr* prepare(Failure& failure) {
    jpeg_std_error(&failure.manager);
    failure.manager.error_exit = on_error;
    failure.manager.emit_message = on_message;
    failure.manager.output_message = print_nothing;
    return &failure.manager;
}

struct Reader {
    Failure failure;
    jpeg_decompress_struct info{};

    Reader() { info.err = prepare(failure); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { jpeg_destroy_decompress(&info); }
};

bool read_header(Reader& reader, std::string_view bytes) {
    if (setjmp(reader.failure.jump)) return false;
    jpeg_create_decompress(&reader.info);
    jpeg_save_markers(&reader.info, JPEG_COM, 0xffff);
    for (int k = 1; k < 16; ++k) jpeg_save_markers(&reader.info, JPEG_APP0 + k, 0xffff);
    jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(bytes.data()),
                 static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&reader.info, TRUE);
    switch (reader.info.jpeg_color_space) {
        case JCS_GRAYSCALE:
            reader.info.out_color_space = JCS_GRAYSCALE;
            break;
        case JCS_CMYK:
        case JCS_YCCK:  // libjpeg converts it to CMYK, and neither to RGB
            reader.info.out_color_space = JCS_CMYK;
            break;
        default:
            reader.info.out_color_space = JCS_RGB;
    }
    return true;
}

/// What libjpeg does not decode, as against what is damaged.
bool is_unsupported(const Failure& failure) {
    switch (failure.manager.msg_code) {
        case JERR_ARITH_NOTIMPL:
        case JERR_BAD_PRECISION:
        case JERR_CONVERSION_NOTIMPL:
        case JERR_SOF_UNSUPPORTED:
            return true;
        default:
            return false;
    }
}

bool read_rows(Reader& reader, uint8_t* samples, size_t row_bytes) {
    if (setjmp(reader.failure.jump)) return false;
    jpeg_start_decompress(&reader.info);
    while (reader.info.output_scanline < reader.info.output_height) {
        JSAMPROW row = samples + reader.info.output_scanline * row_bytes;
        jpeg_read_scanlines(&reader.info, &row, 1);
    }
    jpeg_finish_decompress(&reader.info);
    return true;
}

struct Writer {
    Failure failure;
    jpeg_compress_struct info{};

    Writer() { info.err = prepare(failure); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { jpeg_destroy_compress(&info); }
};

/// `profile`: a colour profile, or empty.
bool write_all(Writer& writer, std::FILE* file, const Picture& picture,
               const std::vector<uint8_t>& samples, const std::string& profile, int quality) {
    if (setjmp(writer.failure.jump)) return false;
    jpeg_create_compress(&writer.info);
    jpeg_stdio_dest(&writer.info, file);
    writer.info.image_width = static_cast<JDIMENSION>(picture.width);
    writer.info.image_height = static_cast<JDIMENSION>(picture.height);
    writer.info.input_components = static_cast<int>(picture.channels);
    writer.info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&writer.info);
    jpeg_set_quality(&writer.info, quality, TRUE);
    jpeg_start_compress(&writer.info, TRUE);
    if (!profile.empty()) {
        jpeg_write_icc_profile(&writer.info, reinterpret_cast<const JOCTET*>(profile.data()),
                               static_cast<unsigned>(profile.size()));
    }
    while (writer.info.next_scanline < writer.info.image_height) {
        // The library takes a pointer to mutable samples but only reads them.
        JSAMPROW row = const_cast<JSAMPROW>(samples.data()) +
                       static_cast<size_t>(writer.info.next_scanline) *
                           static_cast<size_t>(picture.width * picture.channels);
        jpeg_write_scanlines(&writer.info, &row, 1);
    }
    jpeg_finish_compress(&writer.info);
    return true;
}

/// Red, green and blue of cyan, magenta, yellow and black. Adobe's files, the usual ones, hold the
/// complements of the inks.
void to_rgb(const uint8_t* cmyk, bool is_complement, uint16_t* rgb) {
    const int flip = is_complement ? 0 : 255;
    const int light = cmyk[3] ^ flip;  // what black leaves
    for (int c = 0; c < 3; ++c)
        rgb[c] = static_cast<uint16_t>(((cmyk[c] ^ flip) * light + 127) / 255);
}

bool read_profile(Reader& reader, JOCTET** profile, unsigned* bytes) {
    if (setjmp(reader.failure.jump)) return false;
    return jpeg_read_icc_profile(&reader.info, profile, bytes) == TRUE;
}

std::string profile_of(Reader& reader) {
    JOCTET* bytes = nullptr;
    unsigned count = 0;
    std::string profile;
    if (read_profile(reader, &bytes, &count))
        profile.assign(reinterpret_cast<const char*>(bytes), count);
    std::free(bytes);
    return profile;
}

/// A marker of the file in a word, or an empty text for one that a picture keeps or is read by.
std::string name_of(const jpeg_saved_marker_ptr marker) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == JPEG_COM) return "a comment";
    if (data.starts_with("ICC_PROFILE") || data.starts_with("Adobe")) return "";
    if (data.starts_with("Exif")) return "EXIF";
    if (data.starts_with("http://ns.adobe.com/")) return "XMP";
    return "APP" + std::to_string(marker->marker - JPEG_APP0);
}

std::vector<std::string> dropped_markers(const Reader& reader) {
    std::vector<std::string> dropped;
    for (auto marker = reader.info.marker_list; marker != nullptr; marker = marker->next) {
        const std::string name = name_of(marker);
        if (!name.empty() && std::find(dropped.begin(), dropped.end(), name) == dropped.end())
            dropped.push_back(name);
    }
    return dropped;
}

}  // namespace

Picture decode_jpeg(std::string_view bytes, const std::string& where) {
    Reader reader;
    const auto fail = [&] {
        throw InputError(where + (is_unsupported(reader.failure) ? ": unsupported" : ": damaged") +
                         " JPEG: " + reader.failure.message);
    };
    if (!read_header(reader, bytes)) fail();
    const J_COLOR_SPACE space = reader.info.out_color_space;
    Picture picture = blank_picture(reader.info.image_height, reader.info.image_width,
                                    space == JCS_GRAYSCALE ? 1 : 3, 8, where);
    const size_t stored = space == JCS_CMYK ? 4 : static_cast<size_t>(picture.channels);
    const auto pixels = static_cast<size_t>(picture.height * picture.width);
    std::vector<uint8_t> samples(stored * pixels);
    // The list of markers is gone when the last row has been read.
    picture.tags.icc_profile = profile_of(reader);
    picture.dropped = dropped_markers(reader);
    if (!read_rows(reader, samples.data(), stored * static_cast<size_t>(picture.width))) fail();
    if (space != JCS_CMYK) {
        std::copy(samples.begin(), samples.end(), picture.samples.begin());
        return picture;
    }
    for (size_t k = 0; k < pixels; ++k) {
        to_rgb(samples.data() + 4 * k, reader.info.saw_Adobe_marker != 0,
               picture.samples.data() + 3 * k);
    }
    if (!picture.tags.icc_profile.empty()) {  // of inks, which are now colours
        picture.dropped.emplace_back("the colour profile of CMYK");
        picture.tags = {};
    }
    return picture;
}

std::vector<std::string> write_jpeg(const Picture& picture, int quality,
                                    const std::filesystem::path& file, const std::string& where) {
    std::vector<std::string> dropped;
    if (picture.bits > 8) dropped.emplace_back("bits below the upper 8");
    if (!picture.alpha.empty()) dropped.emplace_back("alpha");
    if (picture.tags.gamma || picture.tags.chromaticities)
        dropped.emplace_back("gamma and chromaticities");
    std::string profile = picture.tags.icc_profile;
    if (!profile.empty() && !is_profile_for(profile, picture.channels)) {
        dropped.emplace_back("the colour profile");
        profile.clear();
    }
    std::vector<uint8_t> samples;
    samples.reserve(picture.samples.size());
    for (const uint16_t sample : picture.samples) samples.push_back(to_byte(sample, picture.bits));
    OutputFile out(file, where);
    Writer writer;
    if (!write_all(writer, out.get(), picture, samples, profile, quality))
        out.fail(writer.failure.message);
    out.close();
    return dropped;
}

}  // namespace laminate
