// Pictures of 8 bits per sample, in PNG, JPEG and PNM files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace laminate {

/// Samples row major, channels interleaved (H W C); channels 1 is grey, 3 is RGB.
struct Picture {
    int64_t height = 0;
    int64_t width = 0;
    int64_t channels = 0;
    std::vector<uint8_t> samples;
    friend bool operator==(const Picture&, const Picture&) = default;
};

/// Larger pictures are refused before memory is allocated for them.
inline constexpr int64_t most_pixels = int64_t{1} << 28;

/// Decodes PNG, JPEG, or PNM of kind P5 or P6, as the first bytes say. Palettes are expanded, alpha
/// is dropped, 16 bits are scaled to 8, CMYK becomes RGB, and no colour profile or gamma is
/// applied. Throws InputError "WHERE: ..." for anything else, and for damaged, cut off or too large
/// pictures.
[[nodiscard]] Picture decode_picture(std::string_view bytes, const std::string& where);
/// The same for a file. Reads it once and to its end, so it may be a pipe.
[[nodiscard]] Picture load_picture(const std::filesystem::path& path);

/// Writes the format of the path's extension (.png, .jpg, .jpeg, .pgm, .ppm, .pnm). Throws
/// InputError for another extension, or when the file cannot be written.
void save_picture(const Picture& picture, const std::filesystem::path& path, int jpeg_quality = 95);

/// True for the extensions above, in upper or lower case.
[[nodiscard]] bool is_picture_file(const std::filesystem::path& path);

}  // namespace laminate
