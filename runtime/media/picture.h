// Pictures of 8 or 16 bits per sample, in PNG, JPEG and PNM files.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace laminate {

/// What a file says about the colours that its samples stand for. It goes from file to file
/// unchanged and is not applied to samples.
struct ColourTags {
    std::string icc_profile = {};  ///< as in PNG's iCCP and JPEG's APP2, decompressed
    // PNG's sRGB, gAMA and cHRM, as libpng counts them; files with a profile do not need them.
    std::optional<int> srgb_intent = {};
    std::optional<int32_t> gamma = {};
    std::optional<std::array<int32_t, 8>> chromaticities = {};
    friend bool operator==(const ColourTags&, const ColourTags&) = default;
};

/// Samples row major, channels interleaved (H W C); channels 1 is grey, 3 is RGB.
struct Picture {
    int64_t height = 0;
    int64_t width = 0;
    int64_t channels = 0;
    std::vector<uint16_t> samples = {};
    int bits = 8;                      ///< of a sample and of alpha: 8 or 16
    std::vector<uint16_t> alpha = {};  ///< opacity of each pixel; empty: all are opaque
    ColourTags tags = {};
    /// What the file had and the picture has not, each in a few words: "EXIF".
    std::vector<std::string> dropped = {};
    friend bool operator==(const Picture&, const Picture&) = default;

    /// The sample that stands for 1.0.
    [[nodiscard]] double largest() const { return bits == 8 ? 255 : 65535; }
};

/// Larger pictures are refused before memory is allocated for them.
inline constexpr int64_t most_pixels = int64_t{1} << 28;

/// Decodes PNG, JPEG, or PNM of kind P5 or P6, as the first bytes say. Palettes are expanded, samples
/// of fewer bits are scaled to 8 and those of 9 to 15 to 16, CMYK becomes RGB, and no colour profile
/// or gamma is applied. Throws InputError "WHERE: ..." for anything else, and for damaged, cut off or
/// too large pictures.
[[nodiscard]] Picture decode_picture(std::string_view bytes, const std::string& where);
/// The same for a file. Reads it once and to its end, so it may be a pipe.
[[nodiscard]] Picture load_picture(const std::filesystem::path& path);

/// Writes the format of the path's extension (.png, .jpg, .jpeg, .pgm, .ppm, .pnm). Returns what of
/// the picture this format does not hold, each in a few words: "alpha". Throws InputError for another
/// extension, or when the file cannot be written.
std::vector<std::string> save_picture(const Picture& picture, const std::filesystem::path& path,
                                      int jpeg_quality = 95);

/// True for the extensions above, in upper or lower case.
[[nodiscard]] bool is_picture_file(const std::filesystem::path& path);

}  // namespace laminate
