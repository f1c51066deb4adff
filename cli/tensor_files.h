// Tensors on the command line: .npy, ONNX .pb tensors, pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "nets/network/network.h"
#include "nets/open.h"
#include "runtime/media/picture.h"

namespace laminate::cli {

/// "[NAME=]FILE" of --input, --output and --expected.
struct NamedFile {
    std::string name;  ///< empty: the next tensor without a file
    std::string file;
};
/// The part before the first "=" is a name, unless it begins with an existing folder or the whole
/// text is an existing file.
[[nodiscard]] NamedFile parse_named_file(const std::string& text);

/// The file of each tensor, or nullopt. Throws UsageError for a name that no tensor has, a name
/// given twice, or too many files.
[[nodiscard]] std::vector<std::optional<std::string>> assigned(const std::string& option,
                                                               const std::vector<NamedFile>& files,
                                                               const std::vector<Tensor>& tensors);

/// Whether a tensor of these dims is one planar picture: grey, or red, green and blue.
[[nodiscard]] bool is_picture_of(const std::vector<int64_t>& dims);

/// Contents of an input file: an array or a picture.
struct TensorFile {
    std::string file;
    Constant values;
    std::optional<Picture> picture;
};
/// Reads .npy and .pb by extension, anything else by its first bytes. Reads the file once, so it
/// may be a pipe. Throws InputError when the file is missing or damaged.
[[nodiscard]] TensorFile load_tensor_file(const std::string& file);
/// Sets sizes that are still open to those of the file, a picture or a 4-D array.
void add_sizes(const TensorFile& file, InputSizes& sizes);
/// The elements for an input. A picture becomes luma for one channel; for three channels red, green
/// and blue, planar, or interleaved for 1 x rows x columns x 3. They are in [0, 1], or samples for
/// an input of bytes. Throws InputError for other dims, and for elements that are no integers of
/// the input's type.
[[nodiscard]] std::vector<float> elements_for(const TensorFile& file, const Tensor& tensor);
/// Random elements: multiples of 2^-24 in [0, 1), or any integers of the tensor's type.
[[nodiscard]] std::vector<float> random_elements(const Tensor& tensor, Rng& rng);

/// Converts a picture's elements in [0, 1] to those of an input: for uint8 the nearest samples, 0
/// to 255. Throws InputError for int8, which holds no samples.
void from_unit(const Tensor& input, float* elements, int64_t count);
/// The inverse: converts elements of an output to a picture's elements.
void to_unit(const Tensor& output, float* elements, int64_t count);

/// Throws UsageError for an extension that save_tensor_file() cannot write, InputError for a
/// picture file of a tensor that is no picture.
void check_output_file(const std::string& file, const Tensor& tensor);
/// Writes the format of the extension. A picture of one channel takes its chroma from `colour`, if
/// that has three.
void save_tensor_file(const std::string& file, const Tensor& tensor,
                      const std::vector<float>& values, const Picture* colour);

}  // namespace laminate::cli
