// NumPy's .npy files: format versions 1 to 3, C order. Reads float32, float64, uint8 and int8
// (little endian) as 32-bit floats of the same value; writes float32, version 1.0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "nets/network/network.h"

namespace laminate {

struct NpyHeader {
    std::string descr;  ///< element type, "<f4"
    bool fortran_order = false;
    std::vector<int64_t> dims;
    int64_t data_offset_bytes = 0;
};
/// True when these are the first bytes of a .npy file.
[[nodiscard]] bool is_npy(std::string_view bytes);
/// Parses the beginning of a file, which holds the header. Throws InputError when it is no such
/// header or its order is Fortran's.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view bytes, const std::string& where);
/// The header of a file of 32-bit floats, up to the first element.
[[nodiscard]] std::string npy_header(const std::vector<int64_t>& dims);

/// Throw InputError "FILE: ..." for anything else. They never read beyond the bytes or allocate
/// more than these hold.
[[nodiscard]] Constant load_npy(const std::filesystem::path& path);
[[nodiscard]] Constant parse_npy(std::string_view bytes, const std::string& where);

void save_npy(const Constant& array, const std::filesystem::path& path);

}  // namespace laminate
