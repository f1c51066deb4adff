// The two picture formats, each in a file of its own. Private to runtime/media.
#pragma once

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
void write_jpeg(const Picture& picture, int quality, const std::filesystem::path& file, const std::string& where);

/// A picture of these dims with black samples; refuses what is empty or too large.
[[nodiscard]] Picture blank_picture(int64_t height, int64_t width, int64_t channels, const std::string& where);

}  // namespace laminate
