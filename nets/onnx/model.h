// Private to nets: the ONNX file as it is on disk, before import.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nets/network/network.h"
#include "onnx.pb.h"

namespace laminate::onnx {

namespace proto = laminate::onnx_file;

/// INT64, INT32 or BOOL constants: shapes, axes, flags. Dims {} mean a scalar.
struct IntegerConstant {
    std::vector<int64_t> dims;
    std::vector<int64_t> values;
};
/// UINT8, INT8, UINT16 or INT16 constants, held exactly as floats: quantised weights that Cast or
/// DequantizeLinear makes FLOAT. Other operators refuse them, because their arithmetic would wrap
/// around.
struct SmallIntegers {
    ConstantPtr values;
};
using FileConstant = std::variant<ConstantPtr, IntegerConstant, SmallIntegers>;

/// A name for a message: in double quotes, with control characters replaced and long names cut, so
/// that a message stays one line.
[[nodiscard]] std::string in_quotes(const std::string& name);

/// "FLOAT", "UINT8", ... as TensorProto::DataType calls it.
[[nodiscard]] const char* type_name(int type);
/// FLOAT, FLOAT16, BFLOAT16 or DOUBLE: floats hold it, and all arithmetic on it is in float.
[[nodiscard]] bool is_real(int64_t type);
/// INT64, INT32 or BOOL, of which shapes and flags are.
[[nodiscard]] bool is_wide_integer(int64_t type);

/// Throws InputError when the bytes are no ONNX model with a graph.
[[nodiscard]] proto::ModelProto parse_model(const std::string& bytes, const std::string& where);

/// The values of a TensorProto. External data must lie below `directory`; without a directory it is
/// refused. Nothing is allocated before the data is known to exist. Throws InputError.
[[nodiscard]] FileConstant decode(const proto::TensorProto& tensor, const std::string& where,
                                  const std::optional<std::filesystem::path>& directory);

/// FLOAT with raw data.
[[nodiscard]] proto::TensorProto encode(const std::vector<int64_t>& dims,
                                        const std::vector<float>& values, const std::string& name);

}  // namespace laminate::onnx
