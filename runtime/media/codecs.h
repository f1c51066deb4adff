// Picture formats, each in a source of its own, and what they share. Private to runtime/media.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/media/picture.h"

namespace laminate {

/// A whole file in memory as a picture. Throws InputError "WHERE: ...".
[[nodiscard]] Picture decode_png(std::string_view bytes, const std::string& where);
[[nodiscard]] Picture decode_jpeg(std::string_view bytes, const std::string& where);
/// P5 and P6, of 8 or 16 bits.
[[nodiscard]] Picture decode_pnm(std::string_view bytes, const std::string& where);

/// Write to `file`; messages name `where`. Return what the file does not hold, as save_picture().
[[nodiscard]] std::vector<std::string> write_png(const Picture& picture,
                                                 const std::filesystem::path& file,
                                                 const std::string& where);
[[nodiscard]] std::vector<std::string> write_jpeg(const Picture& picture, int quality,
                                                  const std::filesystem::path& file,
                                                  const std::string& where);

/// Whether a profile is for pictures of this many channels, as far as its header says.
[[nodiscard]] bool is_profile_for(const std::string& icc_profile, int64_t channels);

/// A file that a C library writes to. Closing it shows whether everything was written.
class OutputFile {
public:
    /// Throws InputError "WHERE: cannot be written: ...".
    OutputFile(const std::filesystem::path& file, std::string where);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    [[nodiscard]] std::FILE* get() const { return file_; }
    void close();
    /// Throws InputError "WHERE: cannot be written: REASON".
    [[noreturn]] void fail(const std::string& reason) const;

private:
    std::string where_;
    std::FILE* file_;
};

/// A picture of this size with black samples. Throws InputError for an empty or too large one.
[[nodiscard]] Picture blank_picture(int64_t height, int64_t width, int64_t channels, int bits,
                                    const std::string& where);

/// The nearest sample for an element in [0, 1], clamped; 0 for a NaN. `largest` stands for 1.0.
[[nodiscard]] inline uint16_t to_sample(double value, double largest) {
    // Halves round up, as std::lround rounds positive values.
    return static_cast<uint16_t>(value > 0 ? std::min(value, 1.0) * largest + 0.5 : 0.0);
}

/// A sample of either picture's bits, in 8 bits.
[[nodiscard]] inline uint8_t to_byte(uint16_t sample, int bits) {
    return static_cast<uint8_t>(bits == 8 ? sample : (sample + 128) / 257);
}

}  // namespace laminate
