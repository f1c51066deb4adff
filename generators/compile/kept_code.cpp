#include "generators/compile/kept_code.h"

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace laminate {

namespace {

constexpr const char* where = "kept code";

/// The text up to the end of the line, which is taken off the front of `rest`.
std::string next_line(std::string_view& rest) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos)
        throw InputError(std::string(where) + ": ends early, expected a line");
    std::string line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    return line;
}

int64_t next_number(std::string_view& rest) {
    const std::string line = next_line(rest);
    int64_t number = -1;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc() || end != line.data() + line.size() || number < 0)
        throw InputError(std::string(where) + ": \"" + line + "\", expected a number");
    return number;
}

}  // namespace

std::string to_bytes(const GroupCode& code, const std::vector<std::string>& objects) {
    std::string text;
    for (const int64_t number : {code.scratch_bytes, code.strips, code.strips_together})
        text += std::to_string(number) + "\n";
    text += (code.open_scratch_bytes ? to_text(*code.open_scratch_bytes) : "") + "\n";
    text += std::to_string(code.packings.size()) + "\n";
    for (const Packing& packing : code.packings) text += to_text(packing) + "\n";
    text += std::to_string(objects.size()) + "\n";
    for (const std::string& object : objects) text += std::to_string(object.size()) + "\n";
    for (const std::string& object : objects) text += object;
    return text;
}

std::optional<KeptCode> parse_kept_code(const std::string& bytes) {
    std::string_view rest = bytes;
    KeptCode kept;
    try {
        kept.code.scratch_bytes = next_number(rest);
        kept.code.strips = next_number(rest);
        kept.code.strips_together = next_number(rest);
        const std::string open = next_line(rest);
        if (!open.empty()) kept.code.open_scratch_bytes = parse_size_formula(open, where);
        for (int64_t left = next_number(rest); left > 0; --left)
            kept.code.packings.push_back(parse_packing(next_line(rest), where));
        std::vector<int64_t> sizes;
        for (int64_t left = next_number(rest); left > 0; --left) sizes.push_back(next_number(rest));
        for (const int64_t size : sizes) {
            if (std::cmp_greater(size, rest.size())) return std::nullopt;
            kept.objects.emplace_back(rest.substr(0, static_cast<size_t>(size)));
            rest.remove_prefix(static_cast<size_t>(size));
        }
    } catch (const InputError&) {
        return std::nullopt;
    }
    if (kept.objects.empty() || !rest.empty()) return std::nullopt;
    return kept;
}

}  // namespace laminate
