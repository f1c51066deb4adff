// Reads networks of ncnn: a text of layers (.param) and a file of their weights (.bin). Each layer
// becomes nodes of an ONNX graph in memory, so that there is one road to the canonical form.
#pragma once

#include <string>
#include <string_view>

#include "nets/network/network.h"
#include "nets/open.h"

namespace laminate {

/// `path` ends in ".param"; the weights lie beside it in the file that ends in ".bin" instead.
/// ncnn's blobs are C x H x W, or vectors of C; here they are N x C x H x W, with N symbolic and H
/// and W as in the Input layer unless `sizes` has others. Throws InputError.
[[nodiscard]] Network load_ncnn(const std::string& path, const InputSizes& sizes = {});
[[nodiscard]] Network parse_ncnn(std::string_view param, std::string_view weights,
                                 const std::string& where, const InputSizes& sizes = {});

/// Whether the name is that of a text of layers.
[[nodiscard]] bool is_ncnn_file(const std::string& path);

}  // namespace laminate
