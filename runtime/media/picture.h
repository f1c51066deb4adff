// Pictures of 8 bits per sample, in PNG, JPEG and PNM files.
#pragma once

#include <cstdint>
#include <filesystem>
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

/// A larger picture is refused before memory is taken for it.
inline constexpr int64_t most_pixels = int64_t{1} << 28;

/// Reads PNG, JPEG, or PNM of kind P5 or P6, whichever the file's first bytes say. Palettes are
/// expanded, alpha is dropped, 16 bits are scaled to 8, no colour profile or gamma is applied.
/// Throws InputError "FILE: ..." when it is neither, damaged, cut off or too large.
[[nodiscard]] Picture load_picture(const std::filesystem::path& path);

/// Writes by the path's extension (.png, .jpg, .jpeg, .pgm, .ppm, .pnm); throws InputError for
/// another, or when it cannot be written.
void save_picture(const Picture& picture, const std::filesystem::path& path, int jpeg_quality = 95);

/// True for the extensions above, in either case.
[[nodiscard]] bool is_picture_file(const std::filesystem::path& path);

}  // namespace laminate
