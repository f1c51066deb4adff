// What the picture formats share, each in a file of its own. Private to runtime/media.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/media/picture.h"

namespace laminate {

/// Both throw InputError that begins with `where`.
[[nodiscard]] Picture decode_png(std::string_view bytes, const std::string& where);
[[nodiscard]] Picture decode_jpeg(std::string_view bytes, const std::string& where);

/// Write to `file`; messages name `where`.
void write_png(const Picture& picture, const std::filesystem::path& file, const std::string& where);
void write_jpeg(const Picture& picture, int quality, const std::filesystem::path& file,
                const std::string& where);

/// A picture of these dims with black samples; refuses what is empty or too large.
[[nodiscard]] Picture blank_picture(int64_t height, int64_t width, int64_t channels,
                                    const std::string& where);

/// The nearest sample of 8 bits for an element in [0, 1], clamped; 0 for what is not a number.
[[nodiscard]] inline uint8_t to_sample(double value) {
    // Halves go up, as std::lround of values that are not negative.
    return static_cast<uint8_t>(value > 0 ? std::min(value, 1.0) * 255.0 + 0.5 : 0.0);
}

}  // namespace laminate
