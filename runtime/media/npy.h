// NumPy's .npy files: format versions 1 to 3, C order. Reads float32, float64 and uint8 (little endian) as 32-bit
// floats of the same value; writes float32, version 1.0.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "nets/network.h"

namespace laminate {

/// Throws InputError "FILE: ..." for anything else; never reads beyond the bytes or allocates more than they hold.
[[nodiscard]] Constant load_npy(const std::filesystem::path& path);
[[nodiscard]] Constant parse_npy(std::string_view bytes, const std::string& where);

void save_npy(const Constant& array, const std::filesystem::path& path);

}  // namespace laminate
