// libpng reports failure by longjmp. The functions that call it hold no object with a destructor,
// which the jump would skip; their callers throw.
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "runtime/media/codecs.h"

namespace laminate {
namespace {

struct Failure {
    char message[200] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
    auto* failure = static_cast<Failure*>(png_get_error_ptr(png));
    std::snprintf(failure->message, sizeof failure->message, "%s", message);
    png_longjmp(png, 1);
}

/// Warnings concern chunks that are not used here.
void on_warning(png_structp, png_const_charp) {}

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

struct Reader {
    Failure failure;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : nullptr;

    Reader() = default;
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Reads up to the first row and requests 8-bit grey or RGB.
bool read_header(Reader& reader, Source& source) {
    if (setjmp(png_jmpbuf(reader.png))) return false;
    png_set_user_limits(reader.png, 0x7fffffff, 0x7fffffff);  // blank_picture() decides
    png_set_read_fn(reader.png, &source, read_bytes);
    png_read_info(reader.png, reader.info);
    png_set_palette_to_rgb(reader.png);
    png_set_expand_gray_1_2_4_to_8(reader.png);
    png_set_scale_16(reader.png);
    png_set_strip_alpha(reader.png);
    png_set_interlace_handling(reader.png);
    return true;
}

bool read_rows(Reader& reader, png_bytepp rows) {
    if (setjmp(png_jmpbuf(reader.png))) return false;
    png_read_image(reader.png, rows);
    png_read_end(reader.png, nullptr);
    return true;
}

bool finish_header(Reader& reader) {
    if (setjmp(png_jmpbuf(reader.png))) return false;
    png_read_update_info(reader.png, reader.info);
    return true;
}

struct Writer {
    Failure failure;
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : nullptr;

    Writer() = default;
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { png_destroy_write_struct(&png, &info); }
};

bool write_all(Writer& writer, std::FILE* file, const Picture& picture) {
    if (setjmp(png_jmpbuf(writer.png))) return false;
    png_init_io(writer.png, file);
    png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(picture.width),
                 static_cast<png_uint_32>(picture.height), 8,
                 picture.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(writer.png, writer.info);
    for (int64_t y = 0; y < picture.height; ++y) {
        png_write_row(writer.png, picture.samples.data() + y * picture.width * picture.channels);
    }
    png_write_end(writer.png, nullptr);
    return true;
}

}  // namespace

Picture decode_png(std::string_view bytes, const std::string& where) {
    Reader reader;
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
    Picture picture = blank_picture(height, width, grey ? 1 : 3, where);
    if (!finish_header(reader)) fail();
    if (png_get_rowbytes(reader.png, reader.info) !=
        static_cast<size_t>(width * picture.channels)) {
        throw InputError(where + ": PNG: unexpected pixel format");
    }
    std::vector<png_bytep> rows;
    for (int64_t y = 0; y < height; ++y)
        rows.push_back(picture.samples.data() + y * width * picture.channels);
    if (!read_rows(reader, rows.data())) fail();
    return picture;
}

void write_png(const Picture& picture, const std::filesystem::path& file,
               const std::string& where) {
    OutputFile out(file, where);
    Writer writer;
    if (!writer.info) throw InputError(where + ": PNG: out of memory");
    if (!write_all(writer, out.get(), picture)) out.fail(writer.failure.message);
    out.close();
}

}  // namespace laminate
