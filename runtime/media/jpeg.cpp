// libjpeg reports failure by a callback that must not return, so ours jumps. The functions that
// call the library hold no object with a destructor, which the jump would skip; their callers
// throw.
#include <csetjmp>
#include <cstdio>

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

bool write_all(Writer& writer, std::FILE* file, const Picture& picture, int quality) {
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
    while (writer.info.next_scanline < writer.info.image_height) {
        // The library takes a pointer to mutable samples but only reads them.
        JSAMPROW row = const_cast<JSAMPROW>(picture.samples.data()) +
                       static_cast<size_t>(writer.info.next_scanline) *
                           static_cast<size_t>(picture.width * picture.channels);
        jpeg_write_scanlines(&writer.info, &row, 1);
    }
    jpeg_finish_compress(&writer.info);
    return true;
}

/// Red, green and blue of cyan, magenta, yellow and black. Adobe's files, the usual ones, hold the
/// complements of the inks.
void to_rgb(const uint8_t* cmyk, bool is_complement, uint8_t* rgb) {
    const int flip = is_complement ? 0 : 255;
    const int light = cmyk[3] ^ flip;  // what black leaves
    for (int c = 0; c < 3; ++c)
        rgb[c] = static_cast<uint8_t>(((cmyk[c] ^ flip) * light + 127) / 255);
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
                                    space == JCS_GRAYSCALE ? 1 : 3, where);
    if (space != JCS_CMYK) {
        const auto row_bytes = static_cast<size_t>(picture.width * picture.channels);
        if (!read_rows(reader, picture.samples.data(), row_bytes)) fail();
        return picture;
    }
    const auto pixels = static_cast<size_t>(picture.height * picture.width);
    std::vector<uint8_t> cmyk(4 * pixels);
    if (!read_rows(reader, cmyk.data(), 4 * static_cast<size_t>(picture.width))) fail();
    for (size_t k = 0; k < pixels; ++k) {
        to_rgb(cmyk.data() + 4 * k, reader.info.saw_Adobe_marker != 0,
               picture.samples.data() + 3 * k);
    }
    return picture;
}

void write_jpeg(const Picture& picture, int quality, const std::filesystem::path& file,
                const std::string& where) {
    OutputFile out(file, where);
    Writer writer;
    if (!write_all(writer, out.get(), picture, quality)) out.fail(writer.failure.message);
    out.close();
}

}  // namespace laminate
