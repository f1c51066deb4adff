#include "nets/ncnn/file.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/half.h"
#include "nets/onnx/model.h"

namespace laminate::ncnn {

namespace {

using onnx::in_quotes;

static_assert(std::endian::native == std::endian::little, "weights are copied as they are");

/// The next word, and the rest of `text` behind it. Empty at the end.
std::string_view next_word(std::string_view& text) {
    constexpr std::string_view blank = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(blank));
    text.remove_prefix(word.size());
    return word;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

constexpr int first_array_key = -23300;  ///< -23300 - k is an array with its length in front
constexpr int most_keys = 64;
/// What a converter notes for ncnn's optimiser: shapes of blobs, and features not to use.
constexpr int shapes_key = 30, features_key = 31;

}  // namespace

FileLayer::FileLayer(std::string_view line, size_t number) : line_(number) {
    kind_ = next_word(line);
    name_ = next_word(line);
    const std::string_view counts[] = {next_word(line), next_word(line)};
    for (const bool writes : {false, true}) {
        const auto count = number_in<uint32_t>(counts[writes ? 1 : 0]);
        if (!count)
            fail("number of " + std::string(writes ? "outputs" : "inputs") + " is " +
                 in_quotes(std::string(counts[writes ? 1 : 0])) + ", expected a whole number");
        for (uint32_t k = 0; k < *count; ++k) {
            const std::string_view blob = next_word(line);
            if (blob.empty())
                fail("ends before its " + std::string(writes ? "output " : "input ") +
                     std::to_string(k + 1) + " of " + std::to_string(*count));
            (writes ? outputs_ : inputs_).emplace_back(blob);
        }
    }
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line))
        read_parameter(word);
    parameters_.erase(shapes_key);
    parameters_.erase(features_key);
}

void FileLayer::read_parameter(std::string_view text) {
    const auto refuse = [&](const char* expected) {
        fail("parameter " + in_quotes(std::string(text)) + ", expected " + expected);
    };
    const size_t equals = text.find('=');
    const auto written = number_in<int>(text.substr(0, equals));
    if (equals == std::string_view::npos || !written) refuse("NUMBER=VALUE");
    const bool has_length = *written <= first_array_key;
    const int64_t key = has_length ? first_array_key - int64_t{*written} : *written;
    if (key < 0 || key >= most_keys) refuse("a number from 0 to 63");
    Values values;
    std::string_view rest = text.substr(equals + 1);
    while (true) {
        const size_t comma = std::min(rest.find(','), rest.size());
        const auto value = number_in<double>(rest.substr(0, comma));
        if (!value) refuse("numbers");
        values.push_back(*value);
        if (comma == rest.size()) break;
        rest.remove_prefix(comma + 1);
    }
    if (has_length) {
        if (values[0] != static_cast<double>(values.size() - 1)) refuse("as many values as it says");
        values.erase(values.begin());
    }
    if (!parameters_.emplace(static_cast<int>(key), std::move(values)).second)
        refuse("each once");
}

void FileLayer::fail(const std::string& message) const {
    const std::string kind = in_quotes(kind_);
    throw InputError("line " + std::to_string(line_) + ": layer " + in_quotes(name_) + " (" +
                     kind.substr(1, kind.size() - 2) + "): " + message);
}

void FileLayer::expect_blobs(size_t inputs, size_t outputs) const {
    if (inputs_.size() == inputs && outputs_.size() == outputs) return;
    fail("has " + std::to_string(inputs_.size()) + " inputs and " +
         std::to_string(outputs_.size()) + " outputs, expected " + std::to_string(inputs) +
         " and " + std::to_string(outputs));
}

FileLayer::Values FileLayer::take(int key) {
    auto found = parameters_.extract(key);
    return found.empty() ? Values{} : std::move(found.mapped());
}

int64_t FileLayer::whole(int key, double value) const {
    if (value != std::floor(value) || std::abs(value) >= 0x1p31)
        fail("parameter " + std::to_string(key) + " is " + std::to_string(value) +
             ", expected a whole number of 32 bits");
    return static_cast<int64_t>(value);
}

int64_t FileLayer::integer(int key, int64_t otherwise) {
    const std::vector<int64_t> values = integers(key);
    if (values.size() > 1) fail("parameter " + std::to_string(key) + " is a list");
    return values.empty() ? otherwise : values[0];
}

int64_t FileLayer::size(int key, int64_t otherwise, int64_t least) {
    const int64_t value = integer(key, otherwise);
    if (value < least)
        fail("parameter " + std::to_string(key) + " is " + std::to_string(value) +
             ", expected at least " + std::to_string(least));
    return value;
}

float FileLayer::real(int key, float otherwise) {
    const std::vector<float> values = reals(key);
    if (values.size() > 1) fail("parameter " + std::to_string(key) + " is a list");
    return values.empty() ? otherwise : values[0];
}

std::vector<int64_t> FileLayer::integers(int key) {
    std::vector<int64_t> list;
    for (const double value : take(key)) list.push_back(whole(key, value));
    return list;
}

std::vector<float> FileLayer::reals(int key) {
    std::vector<float> list;
    for (const double value : take(key)) list.push_back(static_cast<float>(value));
    return list;
}

void FileLayer::expect(int key, int64_t only, const char* meaning) {
    const int64_t value = integer(key, only);
    if (value != only)
        fail(std::string(meaning) + " is " + std::to_string(value) + " (parameter " +
             std::to_string(key) + "), expected " + std::to_string(only));
}

void FileLayer::refuse_other_parameters() const {
    if (!parameters_.empty())
        fail("parameter " + std::to_string(parameters_.begin()->first) + " is not supported");
}

std::vector<FileLayer> parse_layers(std::string_view text) {
    constexpr std::string_view magic = "7767517";
    size_t number = 0;
    const auto next_line = [&] {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        ++number;
        return line;
    };
    std::string_view first = next_line();
    if (next_word(first) != magic || !next_word(first).empty())
        throw InputError("is no text of ncnn's layers, whose first line is 7767517");
    std::string_view second = next_line();
    const auto count = number_in<uint32_t>(next_word(second));
    if (!count || !number_in<uint32_t>(next_word(second)))
        throw InputError("line 2: expected the numbers of layers and blobs");
    std::vector<FileLayer> layers;
    while (!text.empty()) {
        std::string_view line = next_line(), rest = line;
        if (next_word(rest).empty()) continue;
        layers.emplace_back(line, number);
    }
    if (layers.size() != *count)
        throw InputError("has " + std::to_string(layers.size()) + " layers, expected " +
                         std::to_string(*count) + " as line 2 says");
    return layers;
}

std::string_view WeightFile::take(const FileLayer& layer, int64_t count, int64_t size) {
    const int64_t bytes = (count * size + 3) / 4 * 4;
    if (bytes > static_cast<int64_t>(bytes_left()))
        layer.fail("the file of weights ends after " + std::to_string(bytes_.size()) +
                   " bytes, expected " + std::to_string(bytes) + " from byte " +
                   std::to_string(at_));
    const std::string_view taken = bytes_.substr(at_, static_cast<size_t>(bytes));
    at_ += taken.size();
    return taken;
}

std::vector<float> WeightFile::plain(const FileLayer& layer, int64_t count) {
    const std::string_view bytes = take(layer, count, sizeof(float));
    std::vector<float> values(static_cast<size_t>(count));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

std::vector<float> WeightFile::tagged(const FileLayer& layer, int64_t count) {
    constexpr uint32_t floats = 0, scaled_floats = 0x0002C056, halves = 0x01306B47,
                       integers = 0x000D4B38;
    uint32_t tag = 0;
    std::memcpy(&tag, take(layer, 1, sizeof tag).data(), sizeof tag);
    if (tag == floats || tag == scaled_floats) return plain(layer, count);
    if (tag == integers) layer.fail("has weights of 8-bit integers, expected floats");
    std::vector<float> values;
    if (tag == halves) {
        const std::string_view bytes = take(layer, count, sizeof(uint16_t));
        values.resize(static_cast<size_t>(count));
        for (size_t k = 0; k < values.size(); ++k) {
            uint16_t half = 0;
            std::memcpy(&half, bytes.data() + k * sizeof half, sizeof half);
            values[k] = from_half(half);
        }
        return values;
    }
    const std::vector<float> table = plain(layer, 256);
    for (const char place : take(layer, count, 1).substr(0, static_cast<size_t>(count)))
        values.push_back(table[static_cast<unsigned char>(place)]);
    return values;
}

}  // namespace laminate::ncnn
