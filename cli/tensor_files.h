// Tensors on the command line: .npy, ONNX .pb tensors, pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nets/network.h"
#include "nets/open.h"
#include "runtime/media/picture.h"

namespace laminate::cli {

/// "[NAME=]FILE" of --input, --output and --expected.
struct NamedFile {
    std::string name;  ///< empty: the next tensor without a file
    std::string file;
};
/// What stands before the first "=" is a name unless it begins with an existing folder, or the whole text is an existing file.
[[nodiscard]] NamedFile parse_named_file(const std::string& text);

/// files[k] becomes the file of tensors[k], or none. Throws UsageError for a name that no tensor has, one given twice, or too many.
[[nodiscard]] std::vector<std::optional<std::string>> assigned(const std::string& option,
                                                               const std::vector<NamedFile>& files,
                                                               const std::vector<Tensor>& tensors);

/// Contents of an input file.
struct TensorFile {
    std::string file;
    Constant values;                 ///< of .npy and .pb
    std::optional<Picture> picture;  ///< of anything else
};
/// Throws InputError when the file is missing or damaged.
[[nodiscard]] TensorFile load_tensor_file(const std::string& file);
/// What the file says about symbolic sizes: picture or 4-D array; those given already win.
void add_sizes(const TensorFile& file, InputSizes& sizes);
/// The elements for a tensor of these dims: a picture becomes luma for one channel, red, green and blue for three. Throws InputError when
/// the file has other dims.
[[nodiscard]] std::vector<float> elements_for(const TensorFile& file, const Tensor& tensor);

/// Refuses by UsageError an extension that save_tensor_file cannot write, by InputError a tensor that is no picture.
void check_output_file(const std::string& file, const Tensor& tensor);
/// By extension. A picture of one channel takes its colour from `colour`, when that is a picture in colour.
void save_tensor_file(const std::string& file, const Tensor& tensor, const std::vector<float>& values,
                      const Picture* colour);

}  // namespace laminate::cli
