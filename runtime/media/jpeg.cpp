// libjpeg reports failure by a callback that must not return; ours jumps. The functions that call
// the library hold no object with a destructor, so that a jump skips none; whoever calls them
// throws.
#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>

#include "base/error.h"
#include "runtime/media/codecs.h"

namespace laminate {
namespace {

struct Failure {
    jpeg_error_mgr manager;  // first: libjpeg hands out its address, which is ours
    std::jmp_buf jump;
    char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void on_error(j_common_ptr info) {
    auto* failure = reinterpret_cast<Failure*>(info->err);
    info->err->format_message(info, failure->message);
    std::longjmp(failure->jump, 1);
}

/// Negative levels are warnings. A file that is cut off is one to libjpeg, which paints the rest
/// grey; to us it is an error.
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
    reader.info.out_color_space =
        reader.info.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    return true;
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
    std::FILE* file = nullptr;

    Writer() { info.err = prepare(failure); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() {
        jpeg_destroy_compress(&info);
        if (file) std::fclose(file);
    }
};

bool write_all(Writer& writer, const Picture& picture, int quality) {
    if (setjmp(writer.failure.jump)) return false;
    jpeg_create_compress(&writer.info);
    jpeg_stdio_dest(&writer.info, writer.file);
    writer.info.image_width = static_cast<JDIMENSION>(picture.width);
    writer.info.image_height = static_cast<JDIMENSION>(picture.height);
    writer.info.input_components = static_cast<int>(picture.channels);
    writer.info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&writer.info);
    jpeg_set_quality(&writer.info, quality, TRUE);
    jpeg_start_compress(&writer.info, TRUE);
    while (writer.info.next_scanline < writer.info.image_height) {
        // The library takes a pointer to mutable samples and does not write there.
        JSAMPROW row = const_cast<JSAMPROW>(picture.samples.data()) +
                       static_cast<size_t>(writer.info.next_scanline) *
                           static_cast<size_t>(picture.width * picture.channels);
        jpeg_write_scanlines(&writer.info, &row, 1);
    }
    jpeg_finish_compress(&writer.info);
    return true;
}

}  // namespace

Picture decode_jpeg(std::string_view bytes, const std::string& where) {
    Reader reader;
    const auto fail = [&] {
        throw InputError(where + ": damaged JPEG: " + reader.failure.message);
    };
    if (!read_header(reader, bytes)) fail();
    const int64_t channels = reader.info.out_color_space == JCS_GRAYSCALE ? 1 : 3;
    Picture picture =
        blank_picture(reader.info.image_height, reader.info.image_width, channels, where);
    if (!read_rows(reader, picture.samples.data(), static_cast<size_t>(picture.width * channels)))
        fail();
    return picture;
}

void write_jpeg(const Picture& picture, int quality, const std::filesystem::path& file,
                const std::string& where) {
    Writer writer;
    writer.file = std::fopen(file.c_str(), "wb");
    if (!writer.file) throw InputError(where + ": cannot be written: " + std::strerror(errno));
    if (!write_all(writer, picture, quality))
        throw InputError(where + ": cannot be written: " + writer.failure.message);
    std::FILE* done = writer.file;
    writer.file = nullptr;
    if (std::fclose(done) != 0)
        throw InputError(where + ": cannot be written: " + std::strerror(errno));
}

}  // namespace laminate
