#include "runtime/media/picture.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "runtime/media/codecs.h"
#include "runtime/media/colour.h"
#include "runtime/media/raster.h"

namespace laminate {

Picture blank_picture(int64_t height, int64_t width, int64_t channels, int bits,
                      const std::string& where) {
    if (height < 1 || width < 1 || height > most_pixels / width) {
        throw InputError(where + ": is " + std::to_string(width) + " x " + std::to_string(height) +
                         " pixels, expected 1 to " + std::to_string(most_pixels) + " in all");
    }
    return {height, width, channels,
            std::vector<uint16_t>(static_cast<size_t>(height * width * channels)), bits};
}

bool is_profile_for(const std::string& icc_profile, int64_t channels) {
    // ICC.1:2022, 7.2: the colour space of the data lies at byte 16, the signature at byte 36.
    return icc_profile.size() >= 128 && icc_profile.substr(36, 4) == "acsp" &&
           icc_profile.substr(16, 4) == (channels == 1 ? "GRAY" : "RGB ");
}

OutputFile::OutputFile(const std::filesystem::path& file, std::string where)
    : where_(std::move(where)), file_(std::fopen(file.c_str(), "wb")) {
    if (file_ == nullptr) fail(std::strerror(errno));
}

OutputFile::~OutputFile() {
    if (file_ != nullptr) std::fclose(file_);
}

void OutputFile::close() {
    if (std::fclose(std::exchange(file_, nullptr)) != 0) fail(std::strerror(errno));
}

void OutputFile::fail(const std::string& reason) const {
    throw InputError(where_ + ": cannot be written: " + reason);
}

namespace {

bool is_pnm(const std::string& extension) {
    return extension == ".pgm" || extension == ".ppm" || extension == ".pnm";
}

/// PNM holds samples alone.
std::vector<std::string> write_pnm(const Picture& picture, const std::filesystem::path& path) {
    RasterWriter file(path, {picture.channels, picture.height, picture.width,
                             picture.bits == 8 ? SampleType::uint8 : SampleType::uint16});
    file.write_picture({0, 0, picture.height, picture.width}, picture);
    file.publish();
    std::vector<std::string> dropped;
    if (!picture.alpha.empty()) dropped.emplace_back("alpha");
    if (!picture.tags.icc_profile.empty()) dropped.emplace_back("the colour profile");
    if (picture.tags.gamma || picture.tags.chromaticities)
        dropped.emplace_back("gamma and chromaticities");
    return dropped;
}

}  // namespace

Picture decode_picture(std::string_view bytes, const std::string& where) {
    if (bytes.substr(0, 4) == "\x89PNG") return decode_png(bytes, where);
    if (bytes.substr(0, 3) == "\xff\xd8\xff") return decode_jpeg(bytes, where);
    if (bytes.substr(0, 2) == "P5" || bytes.substr(0, 2) == "P6") return decode_pnm(bytes, where);
    throw InputError(where + ": is no picture; expected PNG, JPEG or PNM (P5, P6)");
}

Picture load_picture(const std::filesystem::path& path) {
    return decode_picture(read_file(path), path.string());
}

bool is_picture_file(const std::filesystem::path& path) {
    const std::string extension = lower_extension(path);
    return extension == ".png" || extension == ".jpg" || extension == ".jpeg" || is_pnm(extension);
}

std::vector<std::string> save_picture(const Picture& picture, const std::filesystem::path& path,
                                      int jpeg_quality) {
    if (!is_picture_file(path))
        throw InputError(path.string() +
                         ": expected a name that ends in .png, .jpg, .jpeg, .pgm, .ppm or .pnm");
    if (picture.height < 1 || picture.width < 1 ||
        (picture.channels != 1 && picture.channels != 3) ||
        std::ssize(picture.samples) != picture.height * picture.width * picture.channels ||
        (!picture.alpha.empty() &&
         std::ssize(picture.alpha) != picture.height * picture.width)) {
        throw InputError(path.string() + ": picture of " + std::to_string(picture.height) + " x " +
                         std::to_string(picture.width) + " x " + std::to_string(picture.channels) +
                         " with " + std::to_string(picture.samples.size()) +
                         " samples, expected 1 or 3 channels and a sample for each");
    }
    if (is_pnm(lower_extension(path))) return write_pnm(picture, path);
    std::vector<std::string> dropped;
    write_file_atomically(path, [&](const std::filesystem::path& aside) {
        dropped = lower_extension(path) == ".png"
                      ? write_png(picture, aside, path.string())
                      : write_jpeg(picture, jpeg_quality, aside, path.string());
    });
    return dropped;
}

}  // namespace laminate
