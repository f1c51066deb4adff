// Reads ONNX files (any IR version, opset 6 and later) into the canonical form of network.h, and
// writes them.
#pragma once

#include <string>

#include "nets/network/network.h"
#include "nets/open.h"

namespace laminate {

/// Throws InputError: "FILE: node "NAME" (OP): found ..., expected ...".
[[nodiscard]] Network load_onnx(const std::string& path, const InputSizes& sizes = {});
[[nodiscard]] Network parse_onnx(const std::string& bytes, const std::string& where,
                                 const InputSizes& sizes = {});

/// Writes opset 17 and IR version 8, or the lowest later opset that has every operator. The file is
/// written aside and renamed. load_onnx(save_onnx(n)) has the same network_hash.
void save_onnx(const Network& network, const std::string& path);

/// ONNX TensorProto files (.pb) of FLOAT. UINT8 and INT8 can be read too.
[[nodiscard]] Constant load_tensor_proto(const std::string& path);
void save_tensor_proto(const Constant& tensor, const std::string& name, const std::string& path);

}  // namespace laminate
