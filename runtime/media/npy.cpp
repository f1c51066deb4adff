#include "runtime/media/npy.h"

#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/half.h"

namespace laminate {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are copied as they lie in the file");

constexpr std::string_view magic("\x93NUMPY", 6);
/// NumPy itself refuses more dimensions.
constexpr size_t most_dimensions = 64;

/// Reads the header, a Python dictionary literal with three known keys:
///   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
public:
    HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    NpyHeader parse() {
        NpyHeader header;
        bool descr = false, order = false, shape = false;
        expect('{');
        while (!take('}')) {
            const std::string key = quoted();
            expect(':');
            if (key == "descr") {
                if (peek() != '\'' && peek() != '"')
                    fail("element type is a record, expected <f4, <f8, <f2, <i8, <i4, |u1 or |i1");
                header.descr = quoted();
                descr = true;
            } else if (key == "fortran_order") {
                header.fortran_order = boolean();
                order = true;
            } else if (key == "shape") {
                header.dims = shape_tuple();
                shape = true;
            } else {
                fail("header has the key '" + key + "', expected descr, fortran_order and shape");
            }
            if (!take(',')) {
                expect('}');
                break;
            }
        }
        if (!descr || !order || !shape) fail("header lacks one of descr, fortran_order and shape");
        return header;
    }

private:
    [[noreturn]] void fail(const std::string& message) const {
        throw InputError(where_ + ": " + message);
    }

    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }
    char peek() {
        skip_space();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char c) {
        if (peek() != c || at_ >= text_.size()) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!take(c))
            fail("header is malformed at byte " + std::to_string(at_) + ", expected '" +
                 std::string(1, c) + "'");
    }
    std::string quoted() {
        const char quote = peek();
        if (quote != '\'' && quote != '"')
            fail("header is malformed at byte " + std::to_string(at_) + ", expected a quoted name");
        const size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) fail("header has a name without end");
        std::string name;
        for (const char c : text_.substr(at_ + 1, end - at_ - 1))
            name += std::isprint(static_cast<unsigned char>(c)) ? c : '?';
        at_ = end + 1;
        return name;
    }
    bool boolean() {
        skip_space();
        for (const bool value : {false, true}) {
            const std::string_view word = value ? "True" : "False";
            if (text_.substr(at_, word.size()) == word) {
                at_ += word.size();
                return value;
            }
        }
        fail("fortran_order is neither True nor False");
    }
    int64_t integer() {
        skip_space();
        int64_t value = 0;
        const size_t begin = at_;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            if (value > (std::numeric_limits<int64_t>::max() - 9) / 10)
                fail("shape has a number beyond 64 bits");
            value = value * 10 + (text_[at_] - '0');
        }
        if (at_ == begin)
            fail("header is malformed at byte " + std::to_string(at_) + ", expected a number");
        return value;
    }
    std::vector<int64_t> shape_tuple() {
        std::vector<int64_t> dims;
        expect('(');
        while (!take(')')) {
            if (dims.size() == most_dimensions)
                fail("shape has more than " + std::to_string(most_dimensions) + " dimensions");
            dims.push_back(integer());
            if (!take(',')) {
                expect(')');
                break;
            }
        }
        return dims;
    }

    std::string_view text_;
    std::string where_;
    size_t at_ = 0;
};

uint32_t little_endian(std::string_view bytes) {
    uint32_t value = 0;
    for (size_t k = bytes.size(); k-- > 0;)
        value = value << 8 | static_cast<unsigned char>(bytes[k]);
    return value;
}

struct Half {
    uint16_t bits;
    explicit operator float() const { return from_half(bits); }
};

template <class Element>
void convert(std::string_view data, std::vector<float>& values) {
    for (size_t k = 0; k < values.size(); ++k) {
        Element element;
        std::memcpy(&element, data.data() + k * sizeof(Element), sizeof(Element));
        values[k] = static_cast<float>(element);
    }
}

}  // namespace

bool is_npy(std::string_view bytes) { return bytes.substr(0, magic.size()) == magic; }

NpyHeader parse_npy_header(std::string_view bytes, const std::string& where) {
    const auto fail = [&](const std::string& message) { throw InputError(where + ": " + message); };
    if (!is_npy(bytes)) fail("is no .npy file");
    if (bytes.size() < 12) fail("ends within the header");
    const int version = static_cast<unsigned char>(bytes[6]);
    if (version < 1 || version > 3)
        fail("is of format version " + std::to_string(version) + ", expected 1 to 3");
    const size_t length_bytes = version == 1 ? 2 : 4;
    const size_t begin = 8 + length_bytes;
    const size_t length = little_endian(bytes.substr(8, length_bytes));
    if (length > bytes.size() - begin) fail("ends within the header");
    NpyHeader header = HeaderParser(bytes.substr(begin, length), where).parse();
    if (header.fortran_order) fail("is in Fortran order, expected C order");
    header.data_offset_bytes = static_cast<int64_t>(begin + length);
    return header;
}

Constant parse_npy(std::string_view bytes, const std::string& where) {
    const auto fail = [&](const std::string& message) { throw InputError(where + ": " + message); };
    NpyHeader header = parse_npy_header(bytes, where);
    const auto is = [&](const char* descr) { return header.descr == descr; };
    const size_t element_bytes = is("<f8") || is("<i8")   ? 8
                                 : is("<f4") || is("<i4") ? 4
                                 : is("<f2")              ? 2
                                 : is("|u1") || is("|i1") ? 1
                                                          : 0;
    if (element_bytes == 0)
        fail("has elements of type " + header.descr + ", expected <f4, <f8, <f2, <i8, <i4, |u1 or |i1");
    const std::string_view data = bytes.substr(static_cast<size_t>(header.data_offset_bytes));
    uint64_t count = 1;
    for (const int64_t d : header.dims) {
        if (d < 1)
            fail("has a dimension of " + std::to_string(d) + " elements, expected 1 or more");
        if (__builtin_mul_overflow(count, static_cast<uint64_t>(d), &count))
            fail("has more elements than 64 bits count");
    }
    if (data.size() % element_bytes != 0 || data.size() / element_bytes != count) {
        fail("holds " + std::to_string(data.size()) + " bytes of elements, expected " +
             std::to_string(count) + " elements of " + std::to_string(element_bytes) + " bytes");
    }
    std::vector<float> values(count);
    if (is("<f4")) convert<float>(data, values);
    if (is("<f8")) convert<double>(data, values);
    if (is("<f2")) convert<Half>(data, values);
    if (is("|u1")) convert<uint8_t>(data, values);
    if (is("|i1")) convert<int8_t>(data, values);
    if (is("<i4")) convert<int32_t>(data, values);
    if (is("<i8")) convert<int64_t>(data, values);
    if (is("<i4") || is("<i8")) {
        constexpr float bound = 1 << 24;  // integers from here on may have been rounded to floats
        for (const float value : values) {
            if (std::abs(value) >= bound)
                fail("has integers of 2^24 or more, which floats do not hold");
        }
    }
    return {std::move(header.dims), std::move(values)};
}

Constant load_npy(const std::filesystem::path& path) {
    // Arrays of whole pictures may be larger than any model.
    constexpr size_t most_bytes = size_t{1} << 40;
    return parse_npy(read_file(path, most_bytes), path.string());
}

std::string npy_header(const std::vector<int64_t>& dims) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (const int64_t d : dims) header += std::to_string(d) + ", ";
    header += "), }";
    constexpr size_t prefix = 10, boundary = 64;
    header.resize((prefix + header.size() + 1 + boundary - 1) / boundary * boundary - prefix - 1,
                  ' ');
    header += '\n';
    std::string bytes(magic);
    bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
              static_cast<char>(header.size() >> 8)};
    return bytes + header;
}

void save_npy(const Constant& array, const std::filesystem::path& path) {
    std::string bytes = npy_header(array.dims);
    bytes.append(reinterpret_cast<const char*>(array.values.data()),
                 array.values.size() * sizeof(float));
    write_file_atomically(path, bytes);
}

}  // namespace laminate
