// Tensors on the command line: .npy, ONNX .pb tensors, pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "answers/output.h"
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
/// Sets sizes that are still open to those of the file: a picture, or an array, of which the first
/// dimension is the batch and the last two of four are rows and columns.
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
/// Writes the format of the extension. A picture takes its bits, alpha and colour tags from `source`,
/// if there is one, and a picture of one channel its chroma, if `source` has three. Returns what of
/// these the format does not hold, as save_picture().
[[nodiscard]] std::vector<std::string> save_tensor_file(const std::string& file,
                                                        const Tensor& tensor,
                                                        const std::vector<float>& values,
                                                        const Picture* source);

/// What pictures lose on their way through a network. Nothing is lost without a remark.
class DroppedParts {
public:
    /// `parts` as those of Picture::dropped and save_picture().
    void add(const std::string& file, const std::vector<std::string>& parts);
    /// What of an input file does not reach the outputs. `is_source`: a picture takes its alpha.
    void add_input(const TensorFile& file, const Tensor& tensor, bool is_source);
    /// Prints one remark for all files that lose the same.
    void note(const Output& output) const;

private:
    struct Files {
        std::string first;
        size_t count = 0;
    };
    std::map<std::string, Files> files_;  ///< by the parts
};

}  // namespace laminate::cli
