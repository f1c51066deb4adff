// Private to nets: the ONNX file as it is on disk, before anything is made of it.
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

/// INT64, INT32 or BOOL of the file: shapes, axes, flags. dims {} is a scalar.
struct IntegerConstant {
    std::vector<int64_t> dims;
    std::vector<int64_t> values;
};
/// UINT8, INT8, UINT16, INT16 of the file, held as FLOAT, which is exact: quantised weights, which
/// Cast or DequantizeLinear makes FLOAT. Nothing computes with them before, since sums of theirs
/// would wrap around.
struct SmallIntegers {
    ConstantPtr values;
};
using FileConstant = std::variant<ConstantPtr, IntegerConstant, SmallIntegers>;

/// A name for a message: in double quotes, control characters replaced, cut when very long, so that
/// a message stays one line.
[[nodiscard]] std::string in_quotes(const std::string& name);

/// "FLOAT", "UINT8", ... as TensorProto::DataType calls it.
[[nodiscard]] const char* type_name(int type);

/// Throws InputError when the bytes are no ONNX model with a graph.
[[nodiscard]] proto::ModelProto parse_model(const std::string& bytes, const std::string& where);

/// The values of a TensorProto. External data is looked for below `directory` only; without a
/// directory it is refused. Nothing is allocated before the data is known to be there. Throws
/// InputError.
[[nodiscard]] FileConstant decode(const proto::TensorProto& tensor, const std::string& where,
                                  const std::optional<std::filesystem::path>& directory);

/// FLOAT with raw data.
[[nodiscard]] proto::TensorProto encode(const std::vector<int64_t>& dims,
                                        const std::vector<float>& values, const std::string& name);

}  // namespace laminate::onnx
