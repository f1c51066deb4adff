#include "runtime/media/picture.h"

#include <string>

#include "base/error.h"
#include "base/files.h"
#include "runtime/media/codecs.h"
#include "runtime/media/colour.h"
#include "runtime/media/raster.h"

namespace laminate {

Picture blank_picture(int64_t height, int64_t width, int64_t channels, const std::string& where) {
    if (height < 1 || width < 1 || height > most_pixels / width) {
        throw InputError(where + ": is " + std::to_string(width) + " x " + std::to_string(height) +
                         " pixels, expected 1 to " + std::to_string(most_pixels) + " in all");
    }
    return {height, width, channels,
            std::vector<uint8_t>(static_cast<size_t>(height * width * channels))};
}

namespace {

Picture load_pnm(const std::filesystem::path& path) {
    const RasterReader file(path);
    const auto [channels, height, width, type] = file.shape();
    (void)blank_picture(height, width, channels, path.string());  // refuses what is too large
    std::vector<float> values(static_cast<size_t>(channels * height * width));
    file.read({0, 0, height, width}, values.data(), height * width, width);
    return from_planar(values.data(), channels, height, width);
}

bool is_pnm(const std::string& extension) {
    return extension == ".pgm" || extension == ".ppm" || extension == ".pnm";
}

}  // namespace

Picture load_picture(const std::filesystem::path& path) {
    const std::string bytes = read_file(path);
    const std::string_view head = bytes;
    if (head.substr(0, 4) == "\x89PNG") return decode_png(bytes, path.string());
    if (head.substr(0, 3) == "\xff\xd8\xff") return decode_jpeg(bytes, path.string());
    if (head.substr(0, 2) == "P5" || head.substr(0, 2) == "P6") return load_pnm(path);
    throw InputError(path.string() + ": is no picture; expected PNG, JPEG or PNM (P5, P6)");
}

bool is_picture_file(const std::filesystem::path& path) {
    const std::string extension = lower_extension(path);
    return extension == ".png" || extension == ".jpg" || extension == ".jpeg" || is_pnm(extension);
}

void save_picture(const Picture& picture, const std::filesystem::path& path, int jpeg_quality) {
    if (!is_picture_file(path))
        throw InputError(path.string() +
                         ": expected a name that ends in .png, .jpg, .jpeg, .pgm, .ppm or .pnm");
    if (picture.height < 1 || picture.width < 1 ||
        (picture.channels != 1 && picture.channels != 3) ||
        std::ssize(picture.samples) != picture.height * picture.width * picture.channels) {
        throw InputError(path.string() + ": picture of " + std::to_string(picture.height) + " x " +
                         std::to_string(picture.width) + " x " + std::to_string(picture.channels) +
                         " with " + std::to_string(picture.samples.size()) +
                         " samples, expected 1 or 3 channels and a sample for each");
    }
    if (is_pnm(lower_extension(path))) {
        RasterWriter file(path,
                          {picture.channels, picture.height, picture.width, SampleType::uint8});
        file.write_picture({0, 0, picture.height, picture.width}, picture);
        return file.publish();
    }
    write_file_atomically(path, [&](const std::filesystem::path& aside) {
        if (lower_extension(path) == ".png") {
            write_png(picture, aside, path.string());
        } else {
            write_jpeg(picture, jpeg_quality, aside, path.string());
        }
    });
}

}  // namespace laminate
