#include "nets/onnx/model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/half.h"
#include "nets/onnx/onnx.h"

namespace laminate::onnx {

namespace {

static_assert(std::endian::native == std::endian::little,
              "raw_data is little endian and is copied as it is");

using proto::TensorProto;

/// Number of values. Unlike element_count(), it allows an extent of 0, such as an empty list of
/// axes.
int64_t value_count(const std::vector<int64_t>& dims, const std::string& where) {
    for (const int64_t d : dims) {
        if (d < 0)
            throw InputError(where + ": dimension " + std::to_string(d) + ", expected 0 or more");
        if (d == 0) return 0;
    }
    try {
        return element_count(dims);
    } catch (const InputError& error) {
        throw InputError(where + ": " + error.what());
    }
}

int64_t parse_number(const std::string& text, const std::string& where, const char* key) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
        throw InputError(where + ": external data: " + key + " is " + in_quotes(text) +
                         ", expected a number of bytes");
    }
    return value;
}

/// The file inside `directory` that `location` names. Refuses every path that leaves it, symbolic
/// links included.
std::filesystem::path external_file(const std::string& location, const std::string& where,
                                    const std::filesystem::path& directory) {
    const std::filesystem::path relative(location);
    bool leaves =
        location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos;
    for (const auto& part : relative) leaves = leaves || part == "..";
    std::error_code error;
    const std::filesystem::path base =
        std::filesystem::canonical(directory.empty() ? "." : directory, error);
    if (error) throw InputError(where + ": external data: the model's directory cannot be read");
    std::filesystem::path file;
    if (!leaves) {
        file = std::filesystem::canonical(base / relative, error);
        if (error)
            throw InputError(where + ": external data file " + in_quotes(location) +
                             " does not exist beside the model");
        const auto inside = file.lexically_relative(base);
        leaves = inside.empty() || *inside.begin() == "..";
    }
    if (leaves)
        throw InputError(where + ": external data file " + in_quotes(location) +
                         ", expected a file in the model's directory");
    if (!std::filesystem::is_regular_file(file, error)) {
        throw InputError(where + ": external data " + in_quotes(location) +
                         " is not a regular file");
    }
    return file;
}

std::string read_external(const TensorProto& tensor, const std::string& where,
                          const std::optional<std::filesystem::path>& directory, int64_t bytes) {
    if (!directory)
        throw InputError(where + ": has external data, which a model in memory cannot have");
    std::map<std::string, std::string> entries;
    for (const auto& entry : tensor.external_data()) entries[entry.key()] = entry.value();
    const std::filesystem::path file = external_file(entries["location"], where, *directory);
    const int64_t offset =
        entries.contains("offset") ? parse_number(entries["offset"], where, "offset") : 0;
    const int64_t length =
        entries.contains("length") ? parse_number(entries["length"], where, "length") : bytes;
    if (length != bytes) {
        throw InputError(where + ": external data has " + std::to_string(length) +
                         " bytes, expected " + std::to_string(bytes));
    }
    std::error_code error;
    const auto size = static_cast<int64_t>(std::filesystem::file_size(file, error));
    if (error || offset > size || bytes > size - offset) {
        throw InputError(where + ": external data file " + in_quotes(entries["location"]) +
                         " has " + std::to_string(size) + " bytes, expected " +
                         std::to_string(bytes) + " from byte " + std::to_string(offset));
    }
    std::string data(static_cast<size_t>(bytes), '\0');
    std::ifstream in(file, std::ios::binary);
    in.seekg(offset);
    in.read(data.data(), bytes);
    if (!in)
        throw InputError(where + ": external data file " + in_quotes(entries["location"]) +
                         " cannot be read");
    return data;
}

/// The bytes of values that are stored raw, in the file or beside it; `external` then owns them.
/// Nullopt if the values are in a typed field.
std::optional<std::string_view> raw_bytes(const TensorProto& tensor, const std::string& where,
                                          const std::optional<std::filesystem::path>& directory,
                                          int64_t bytes, std::string& external) {
    if (tensor.data_location() == TensorProto::EXTERNAL)
        return external = read_external(tensor, where, directory, bytes);
    if (!tensor.has_raw_data()) return std::nullopt;
    if (static_cast<int64_t>(tensor.raw_data().size()) != bytes) {
        throw InputError(where + ": has " + std::to_string(tensor.raw_data().size()) +
                         " bytes, expected " + std::to_string(bytes));
    }
    return tensor.raw_data();
}

/// `typed` is the repeated field that holds the values if they are not raw. `Stored` is the type of
/// a value in raw data.
template <class Stored, class Value, class Field>
std::vector<Value> values_of(const TensorProto& tensor, const std::string& where,
                             const std::optional<std::filesystem::path>& directory, int64_t count,
                             const Field& typed) {
    std::string external;
    if (const auto raw = raw_bytes(tensor, where, directory,
                                   count * static_cast<int64_t>(sizeof(Stored)), external)) {
        std::vector<Value> values(static_cast<size_t>(count));
        if constexpr (std::is_same_v<Stored, Value>) {
            if (count > 0) std::memcpy(values.data(), raw->data(), raw->size());
        } else {
            for (size_t i = 0; i < values.size(); ++i) {
                Stored stored;
                std::memcpy(&stored, raw->data() + i * sizeof(Stored), sizeof(Stored));
                values[i] = static_cast<Value>(stored);
            }
        }
        return values;
    }
    if (typed.size() != count) {
        throw InputError(where + ": has " + std::to_string(typed.size()) + " values, expected " +
                         std::to_string(count));
    }
    std::vector<Value> values;
    values.reserve(static_cast<size_t>(count));
    for (const auto value : typed) values.push_back(static_cast<Value>(static_cast<Stored>(value)));
    return values;
}

template <class Stored>
SmallIntegers small_integers(const TensorProto& tensor, std::vector<int64_t> dims,
                             const std::string& where,
                             const std::optional<std::filesystem::path>& directory, int64_t count) {
    return {std::make_shared<const Constant>(
        Constant{std::move(dims),
                 values_of<Stored, float>(tensor, where, directory, count, tensor.int32_data())})};
}

}  // namespace

const char* type_name(int type) {
    switch (type) {
        case TensorProto::FLOAT:
            return "FLOAT";
        case TensorProto::UINT8:
            return "UINT8";
        case TensorProto::INT8:
            return "INT8";
        case TensorProto::UINT16:
            return "UINT16";
        case TensorProto::INT16:
            return "INT16";
        case TensorProto::INT32:
            return "INT32";
        case TensorProto::INT64:
            return "INT64";
        case TensorProto::STRING:
            return "STRING";
        case TensorProto::BOOL:
            return "BOOL";
        case TensorProto::FLOAT16:
            return "FLOAT16";
        case TensorProto::DOUBLE:
            return "DOUBLE";
        case TensorProto::BFLOAT16:
            return "BFLOAT16";
        default:
            return "of another kind";
    }
}

bool is_real(int64_t type) {
    return type == TensorProto::FLOAT || type == TensorProto::FLOAT16 ||
           type == TensorProto::BFLOAT16 || type == TensorProto::DOUBLE;
}

bool is_wide_integer(int64_t type) {
    return type == TensorProto::INT64 || type == TensorProto::INT32 || type == TensorProto::BOOL;
}

std::string in_quotes(const std::string& name) {
    constexpr size_t longest = 120;
    std::string text = "\"";
    for (const char c : name.substr(0, longest))
        text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    return text + (name.size() > longest ? "...\"" : "\"");
}

proto::ModelProto parse_model(const std::string& bytes, const std::string& where) {
    proto::ModelProto model;
    if (bytes.size() > INT32_MAX)
        throw InputError(where + ": larger than 2 GiB; expected weights in external data files");
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    google::protobuf::io::CodedInputStream coded(&stream);
    if (bytes.empty() || !model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
        throw InputError(where + ": is not an ONNX model, or is truncated (" +
                         std::to_string(bytes.size()) + " bytes)");
    }
    if (!model.has_graph() || !model.has_ir_version())
        throw InputError(where + ": is not an ONNX model: has no graph or no IR version");
    return model;
}

FileConstant decode(const TensorProto& tensor, const std::string& where,
                    const std::optional<std::filesystem::path>& directory) {
    const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    const int64_t count = value_count(dims, where);
    switch (tensor.data_type()) {
        case TensorProto::FLOAT:
            return std::make_shared<const Constant>(Constant{
                dims,
                values_of<float, float>(tensor, where, directory, count, tensor.float_data())});
        // All arithmetic is in float, whatever the width in the file.
        case TensorProto::DOUBLE:
            return std::make_shared<const Constant>(Constant{
                dims,
                values_of<double, float>(tensor, where, directory, count, tensor.double_data())});
        case TensorProto::FLOAT16:
        case TensorProto::BFLOAT16: {
            const std::vector<uint16_t> stored =
                values_of<uint16_t, uint16_t>(tensor, where, directory, count, tensor.int32_data());
            std::vector<float> values(stored.size());
            std::transform(stored.begin(), stored.end(), values.begin(),
                           tensor.data_type() == TensorProto::FLOAT16 ? from_half : from_bfloat16);
            return std::make_shared<const Constant>(Constant{dims, std::move(values)});
        }
        case TensorProto::INT64:
            return IntegerConstant{dims, values_of<int64_t, int64_t>(tensor, where, directory,
                                                                     count, tensor.int64_data())};
        case TensorProto::INT32:
            return IntegerConstant{dims, values_of<int32_t, int64_t>(tensor, where, directory,
                                                                     count, tensor.int32_data())};
        case TensorProto::BOOL:
            return IntegerConstant{dims, values_of<uint8_t, int64_t>(tensor, where, directory,
                                                                     count, tensor.int32_data())};
        case TensorProto::UINT8:
            return small_integers<uint8_t>(tensor, dims, where, directory, count);
        case TensorProto::INT8:
            return small_integers<int8_t>(tensor, dims, where, directory, count);
        case TensorProto::UINT16:
            return small_integers<uint16_t>(tensor, dims, where, directory, count);
        case TensorProto::INT16:
            return small_integers<int16_t>(tensor, dims, where, directory, count);
        default:
            throw InputError(where + ": values are " + type_name(tensor.data_type()) + " (type " +
                             std::to_string(tensor.data_type()) +
                             "), expected FLOAT (FLOAT16, BFLOAT16, DOUBLE, integers of 8 and 16 "
                             "bits become it), or "
                             "INT64, INT32, BOOL for shapes");
    }
}

TensorProto encode(const std::vector<int64_t>& dims, const std::vector<float>& values,
                   const std::string& name) {
    TensorProto tensor;
    for (const int64_t d : dims) tensor.add_dims(d);
    tensor.set_data_type(TensorProto::FLOAT);
    tensor.set_name(name);
    tensor.mutable_raw_data()->assign(reinterpret_cast<const char*>(values.data()),
                                      values.size() * sizeof(float));
    return tensor;
}

}  // namespace laminate::onnx

namespace laminate {

Constant load_tensor_proto(const std::string& path) {
    const std::string bytes = read_file(path);
    onnx::proto::TensorProto tensor;
    if (bytes.empty() || !tensor.ParseFromString(bytes) || !tensor.has_data_type()) {
        throw InputError(path + ": is not an ONNX tensor, or is truncated (" +
                         std::to_string(bytes.size()) + " bytes)");
    }
    using Type = onnx::proto::TensorProto;
    if (const auto type = tensor.data_type();
        !onnx::is_real(type) && type != Type::UINT8 && type != Type::INT8)
        throw InputError(path + ": values are " + onnx::type_name(type) +
                         ", expected FLOAT, FLOAT16, BFLOAT16, DOUBLE, UINT8 or INT8");
    const onnx::FileConstant values =
        onnx::decode(tensor, path, std::filesystem::path(path).parent_path());
    if (const auto* small = std::get_if<onnx::SmallIntegers>(&values)) return *small->values;
    return *std::get<ConstantPtr>(values);
}

void save_tensor_proto(const Constant& tensor, const std::string& name, const std::string& path) {
    if (element_count(tensor.dims) != static_cast<int64_t>(tensor.values.size())) {
        throw InputError(path + ": tensor of shape " + dims_text(tensor.dims) + " has " +
                         std::to_string(tensor.values.size()) + " values");
    }
    std::string bytes;
    if (!onnx::encode(tensor.dims, tensor.values, name).SerializeToString(&bytes))
        throw InputError(path + ": tensor is larger than 2 GiB");
    write_file_atomically(path, bytes);
}

}  // namespace laminate
