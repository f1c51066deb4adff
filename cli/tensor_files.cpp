#include "cli/tensor_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "nets/onnx/onnx.h"
#include "runtime/media/colour.h"
#include "runtime/media/npy.h"

namespace laminate::cli {

namespace {

struct Range {
    float low, high;
};
Range range_of(ElementType type) {
    return type == ElementType::uint8 ? Range{0, 255} : Range{-128, 127};
}

/// Throws InputError for elements that are no integers of the tensor's type: most networks take
/// values in [0, 1], with which one of bytes computes nonsense.
void check_integers(const TensorFile& file, const Tensor& tensor) {
    if (tensor.type == ElementType::float32) return;
    const Range range = range_of(tensor.type);
    const auto& values = file.values.values;
    const float *first = values.data(), *last = first + values.size();
    const float* at = std::find_if(first, last, [&](float v) {
        return !(v >= range.low && v <= range.high && v == std::floor(v));
    });
    if (at == last) return;
    throw InputError(fmt::format(
        "{}: element {} is {}, expected integers from {} to {} for input {}, which is {}",
        file.file, at - first, *at, range.low, range.high, tensor.name, to_string(tensor.type)));
}

}  // namespace

bool is_picture_of(const std::vector<int64_t>& dims) {
    return dims.size() == 4 && dims[0] == 1 && (dims[1] == 1 || dims[1] == 3);
}

NamedFile parse_named_file(const std::string& text) {
    const size_t equals = text.find('=');
    std::error_code error;
    if (equals == std::string::npos || std::filesystem::exists(text, error)) return {"", text};
    // Exporters name tensors like "gpu_0/data_0", and a file's name may contain "=" too. If what
    // precedes is an existing folder, the text is a file.
    const size_t slash = text.rfind('/', equals);
    if (slash != std::string::npos &&
        std::filesystem::is_directory(text.substr(0, slash + 1), error))
        return {"", text};
    return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<std::optional<std::string>> assigned(const std::string& option,
                                                 const std::vector<NamedFile>& files,
                                                 const std::vector<Tensor>& tensors) {
    std::vector<std::optional<std::string>> result(tensors.size());
    for (const NamedFile& file : files) {
        if (file.name.empty()) continue;
        const auto at = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const Tensor& t) { return t.name == file.name; });
        if (at == tensors.end()) {
            std::string names;
            for (const Tensor& t : tensors) names += (names.empty() ? "" : ", ") + t.name;
            throw UsageError(option + ": no tensor is called \"" + file.name + "\"; expected " +
                             names);
        }
        auto& place = result[static_cast<size_t>(at - tensors.begin())];
        if (place) throw UsageError(option + ": " + file.name + " is given twice");
        place = file.file;
    }
    for (const NamedFile& file : files) {
        if (!file.name.empty()) continue;
        const auto free = std::find(result.begin(), result.end(), std::nullopt);
        if (free == result.end()) {
            throw UsageError(option + ": found " + std::to_string(files.size()) +
                             " files, expected at most " + std::to_string(tensors.size()));
        }
        *free = file.file;
    }
    return result;
}

TensorFile load_tensor_file(const std::string& file) {
    const std::string extension = lower_extension(file);
    if (extension == ".npy") return {file, load_npy(file), std::nullopt};
    if (extension == ".pb") return {file, load_tensor_proto(file), std::nullopt};
    // A pipe has a name without extension and can be read once.
    const std::string bytes = read_file(file);
    if (is_npy(bytes)) return {file, parse_npy(bytes, file), std::nullopt};
    return {file, {}, decode_picture(bytes, file)};
}

void add_sizes(const TensorFile& file, InputSizes& sizes) {
    const auto add = [](std::optional<int64_t>& size, int64_t value) {
        if (!size && value > 0) size = value;
    };
    if (file.picture) {
        add(sizes.height, file.picture->height);
        add(sizes.width, file.picture->width);
    } else if (const auto& dims = file.values.dims; !dims.empty()) {
        add(sizes.batch, dims[0]);
        if (dims.size() != 4) return;
        add(sizes.height, dims[2]);
        add(sizes.width, dims[3]);
    }
}

std::vector<float> elements_for(const TensorFile& file, const Tensor& tensor) {
    const auto refuse = [&](const std::string& found) {
        return InputError(file.file + ": " + found + ", expected " + dims_text(tensor.dims) +
                          " for input " + tensor.name);
    };
    if (!file.picture) {
        if (file.values.dims != tensor.dims) throw refuse("is " + dims_text(file.values.dims));
        check_integers(file, tensor);
        return file.values.values;
    }
    const Picture& picture = *file.picture;
    const auto& dims = tensor.dims;
    const bool planar = is_picture_of(dims) && picture.height == dims[2] &&
                        picture.width == dims[3] && (dims[1] == 1 || picture.channels == 3);
    const bool interleaved =
        dims == std::vector<int64_t>{1, picture.height, picture.width, picture.channels} &&
        picture.channels == 3;
    if (!planar && !interleaved) {
        throw refuse("is a picture of " + std::to_string(picture.channels) + " channels, " +
                     std::to_string(picture.height) + "x" + std::to_string(picture.width));
    }
    std::vector<float> elements =
        planar && dims[1] == 1 ? to_luma_chroma(picture).y.values : to_planar(picture);
    if (!planar) {
        const std::vector<float> planes = elements;
        const auto pixels = static_cast<size_t>(picture.height * picture.width);
        for (size_t k = 0; k < elements.size(); ++k) elements[k] = planes[k % 3 * pixels + k / 3];
    }
    from_unit(tensor, elements.data(), std::ssize(elements));
    return elements;
}

std::vector<float> random_elements(const Tensor& tensor, Rng& rng) {
    std::vector<float> elements(static_cast<size_t>(element_count(tensor.dims)));
    for (float& value : elements) {
        value = tensor.type == ElementType::float32
                    ? static_cast<float>(rng.below(1 << 24)) / static_cast<float>(1 << 24)
                    : range_of(tensor.type).low + static_cast<float>(rng.below(256));
    }
    return elements;
}

void from_unit(const Tensor& input, float* elements, int64_t count) {
    if (input.type == ElementType::float32) return;
    if (input.type == ElementType::int8) {
        throw InputError(
            "input " + input.name +
            " is int8, which does not hold a picture's samples, 0 to 255; expected .npy or .pb");
    }
    for (int64_t k = 0; k < count; ++k) elements[k] = std::round(elements[k] * 255.0F);
}

void to_unit(const Tensor& output, float* elements, int64_t count) {
    if (output.type == ElementType::float32) return;
    for (int64_t k = 0; k < count; ++k) elements[k] /= 255.0F;
}

void check_output_file(const std::string& file, const Tensor& tensor) {
    const std::string extension = lower_extension(file);
    if (extension == ".npy" || extension == ".pb") return;
    if (!is_picture_file(file))
        throw UsageError("--output: found \"" + file +
                         "\", expected .npy, .pb, .png, .jpg, .pgm or .ppm");
    if (!is_picture_of(tensor.dims)) {
        throw InputError(file + ": output " + tensor.name + " is " + dims_text(tensor.dims) +
                         ", expected 1x1 or 1x3 planes for a picture");
    }
}

std::vector<std::string> save_tensor_file(const std::string& file, const Tensor& tensor,
                                          const std::vector<float>& values,
                                          const Picture* source) {
    const std::string extension = lower_extension(file);
    if (extension == ".npy") {
        save_npy({tensor.dims, values}, file);
        return {};
    }
    if (extension == ".pb") {
        save_tensor_proto({tensor.dims, values}, tensor.name, file);
        return {};
    }
    const int64_t channels = tensor.dims[1], height = tensor.dims[2], width = tensor.dims[3];
    std::vector<float> elements = values;
    to_unit(tensor, elements.data(), std::ssize(elements));
    if (channels == 1 && source != nullptr && source->channels == 3)
        return save_picture(with_luma(*source, {height, width, std::move(elements)}), file);
    Picture picture = from_planar(elements.data(), channels, height, width,
                                  source != nullptr ? source->bits : 8);
    if (source != nullptr) take_alpha_and_tags(picture, *source);
    return save_picture(picture, file);
}

void DroppedParts::add(const std::string& file, const std::vector<std::string>& parts) {
    if (parts.empty()) return;
    Files& files = files_[fmt::format("{}", fmt::join(parts, ", "))];
    if (files.count++ == 0) files.first = file;
}

void DroppedParts::add_input(const TensorFile& file, const Tensor& tensor, bool is_source) {
    if (!file.picture) return;
    std::vector<std::string> parts = file.picture->dropped;
    if (file.picture->bits > 8 && tensor.type != ElementType::float32)
        parts.emplace_back("bits below the upper 8");
    if (!file.picture->alpha.empty() && !is_source) parts.emplace_back("alpha");
    add(file.file, parts);
}

void DroppedParts::note(const Output& output) const {
    for (const auto& [parts, files] : files_) {
        const std::string others =
            files.count > 1 ? fmt::format(" and {} more", files.count - 1) : "";
        output.note(fmt::format("laminate: {}{}: dropped: {}", files.first, others, parts));
    }
}

}  // namespace laminate::cli
