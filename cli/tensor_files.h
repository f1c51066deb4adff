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
/// What stands before the first "=" is a name unless it begins with an existing folder, or the
/// whole text is an existing file.
[[nodiscard]] NamedFile parse_named_file(const std::string& text);

/// files[k] becomes the file of tensors[k], or none. Throws UsageError for a name that no tensor
/// has, one given twice, or too many.
[[nodiscard]] std::vector<std::optional<std::string>> assigned(const std::string& option,
                                                               const std::vector<NamedFile>& files,
                                                               const std::vector<Tensor>& tensors);

/// Whether a tensor of these dims is one picture, planar: grey, or red, green and blue.
[[nodiscard]] bool is_picture_of(const std::vector<int64_t>& dims);

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
/// The elements for an input: a picture becomes luma for one channel, red, green and blue for
/// three, planar, or side by side for 1 x rows x columns x 3; in [0, 1], or samples where the input
/// is of bytes. Throws InputError when the file has other dims, or what is no integer of the
/// input's type.
[[nodiscard]] std::vector<float> elements_for(const TensorFile& file, const Tensor& tensor);
/// Random ones: multiples of 2^-24 in [0, 1), or any integers of the tensor's type.
[[nodiscard]] std::vector<float> random_elements(const Tensor& tensor, Rng& rng);

/// A picture's elements, in [0, 1], become what an input of this type takes: for uint8 the nearest
/// samples, 0 to 255. Throws InputError for int8, which holds no samples.
void from_unit(const Tensor& input, float* elements, int64_t count);
/// The other way: what an output of this type holds, as a picture's elements.
void to_unit(const Tensor& output, float* elements, int64_t count);

/// Refuses by UsageError an extension that save_tensor_file cannot write, by InputError a tensor
/// that is no picture.
void check_output_file(const std::string& file, const Tensor& tensor);
/// By extension. A picture of one channel takes its colour from `colour`, when that is a picture in
/// colour.
void save_tensor_file(const std::string& file, const Tensor& tensor,
                      const std::vector<float>& values, const Picture* colour);

}  // namespace laminate::cli
