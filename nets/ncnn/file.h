// Private to nets: ncnn's two files as they are on disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace laminate::ncnn {

/// One line of a .param file, with checked access to its parameters. Parameters that its handler
/// did not ask for are refused.
class FileLayer {
public:
    /// Reads "KIND NAME INPUTS OUTPUTS blob... key=value...".
    FileLayer(std::string_view line, size_t number);

    [[nodiscard]] const std::string& kind() const { return kind_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const std::vector<std::string>& inputs() const { return inputs_; }
    [[nodiscard]] const std::vector<std::string>& outputs() const { return outputs_; }
    void expect_blobs(size_t inputs, size_t outputs) const;

    [[noreturn]] void fail(const std::string& message) const;

    int64_t integer(int key, int64_t otherwise);
    /// An integer of at least `least`.
    int64_t size(int key, int64_t otherwise, int64_t least = 0);
    float real(int key, float otherwise);
    std::vector<int64_t> integers(int key);
    std::vector<float> reals(int key);
    /// Refuses any other value than the one given.
    void expect(int key, int64_t only, const char* meaning);
    void refuse_other_parameters() const;

private:
    /// Whole numbers are exact.
    using Values = std::vector<double>;
    void read_parameter(std::string_view text);
    [[nodiscard]] int64_t whole(int key, double value) const;
    Values take(int key);

    size_t line_;
    std::string kind_;
    std::string name_;
    std::vector<std::string> inputs_;
    std::vector<std::string> outputs_;
    std::map<int, Values> parameters_;
};

/// The layers of a .param file. Throws InputError.
[[nodiscard]] std::vector<FileLayer> parse_layers(std::string_view text);

/// The .bin file, read from its begin to its end as the layers ask for their weights. No memory is
/// taken before the bytes are known to be there.
class WeightFile {
public:
    explicit WeightFile(std::string_view bytes) : bytes_(bytes) {}

    /// Floats of 32 bits.
    [[nodiscard]] std::vector<float> plain(const FileLayer& layer, int64_t count);
    /// Preceded by a word that tells floats of 32 bits, floats of 16 bits, or places in a table of
    /// 256 floats. Refuses integers of 8 bits.
    [[nodiscard]] std::vector<float> tagged(const FileLayer& layer, int64_t count);
    [[nodiscard]] size_t bytes_left() const { return bytes_.size() - at_; }

private:
    /// The next `count` elements of `size` bytes, after which the next word begins.
    std::string_view take(const FileLayer& layer, int64_t count, int64_t size);

    std::string_view bytes_;
    size_t at_ = 0;
};

}  // namespace laminate::ncnn
