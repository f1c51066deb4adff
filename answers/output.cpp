#include "answers/output.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "answers/json_text.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"
#include "runtime/session.h"

namespace laminate::cli {

int CommonOptions::thread_count() const {
    if (threads > 0) return threads;
    return std::min(available_cores(), most_threads);
}

namespace {

/// Errors of bytes that stay in the buffer show when the program ends.
void write_to_stdout(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
        throw InputError(std::string("standard output: cannot be written: ") +
                         std::strerror(errno));
}

}  // namespace

void Output::print(const std::string& text) const {
    if (options_.json == "-") return;
    write_to_stdout(text.empty() || text.back() != '\n' ? text + "\n" : text);
}

void Output::note(const std::string& line) const {
    if (options_.verbosity < 0) return;
    std::fflush(stdout);
    std::fputs((line + "\n").c_str(), stderr);
}

void Output::detail(const std::string& line) const {
    if (options_.verbosity > 0) note(line);
}

void Output::json(const nlohmann::ordered_json& answer) const {
    if (options_.json.empty()) return;
    const std::string text = json_text(answer);
    if (options_.json == "-") {
        write_to_stdout(text);
    } else {
        write_file_atomically(options_.json, text);
    }
}

void Table::add(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

nlohmann::ordered_json Table::json() const {
    auto columns = nlohmann::ordered_json::array(), rows = nlohmann::ordered_json::array();
    for (const Column& column : columns_)
        columns.push_back({{"title", column.title}, {"is_number", column.align == Align::right}});
    for (const std::vector<std::string>& row : rows_)
        if (!row.empty()) rows.push_back(row);
    return {{"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

std::string Table::text() const {
    std::vector<size_t> widths;
    for (const Column& column : columns_) widths.push_back(display_width(column.title));
    for (const auto& row : rows_) {
        for (size_t c = 0; c < row.size(); ++c)
            widths[c] = std::max(widths[c], display_width(row[c]));
    }
    std::string text;
    const auto add_line = [&](const auto& cell_of) {
        std::string line;
        for (size_t c = 0; c < columns_.size(); ++c) {
            const std::string& cell = cell_of(c);
            const std::string blanks(widths[c] - display_width(cell), ' ');
            if (c > 0) line += "  ";
            line += columns_[c].align == Align::right ? blanks + cell : cell + blanks;
        }
        while (!line.empty() && line.back() == ' ') line.pop_back();
        text += line + "\n";
    };
    size_t total = 0;
    for (size_t c = 0; c < widths.size(); ++c) total += widths[c] + (c > 0 ? 2 : 0);
    const std::string rule = std::string(total, '-') + "\n";
    add_line([&](size_t c) -> const std::string& { return columns_[c].title; });
    text += rule;
    for (const auto& row : rows_) {
        if (row.empty()) {
            text += rule;
        } else {
            add_line([&](size_t c) -> const std::string& { return row[c]; });
        }
    }
    return text;
}

std::string grouped(int64_t value) {
    std::string digits = std::to_string(value);
    const size_t first = value < 0 ? 1 : 0;
    for (size_t at = digits.size(); at > first + 3;) {
        at -= 3;
        digits.insert(at, ",");
    }
    return digits;
}

std::string bytes_text(int64_t bytes) {
    constexpr int64_t kibi = 1024;
    if (bytes < kibi) return fmt::format("{} B", bytes);
    const auto value = static_cast<double>(bytes);
    if (bytes < kibi * kibi) return fmt::format("{:.1f} KiB", value / static_cast<double>(kibi));
    if (bytes < kibi * kibi * kibi)
        return fmt::format("{:.1f} MiB", value / static_cast<double>(kibi * kibi));
    return fmt::format("{:.2f} GiB", value / static_cast<double>(kibi * kibi * kibi));
}

size_t display_width(const std::string& text) {
    // Every byte but the continuation bytes 10xxxxxx starts a character.
    return static_cast<size_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

int64_t parse_bytes(const std::string& option, const std::string& text) {
    const auto refuse = [&] {
        return UsageError(option + ": found \"" + text +
                          "\", expected a size such as 65536, 64KiB, 1.5MiB or 2GiB");
    };
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !std::isfinite(value) || value < 0) throw refuse();
    const std::string unit(end, text.data() + text.size());
    constexpr std::pair<const char*, int> units[] = {
        {"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    const auto known =
        std::ranges::find_if(units, [&](const auto& entry) { return unit == entry.first; });
    if (known == std::end(units)) throw refuse();
    const double bytes = std::ldexp(value, known->second);
    if (bytes >= 0x1p62) throw refuse();
    return static_cast<int64_t>(bytes);
}

void OccasionalNotes::note(const std::function<std::string()>& line) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(2)) return;
    last_ = now;
    output_.note(line());
}

void StepNotes::note(const std::string& what, int64_t done, int64_t total,
                     const std::string& last) {
    const auto now = std::chrono::steady_clock::now();
    if (what != what_) {
        what_ = what;
        start_ = now;
    }
    notes_.note([&] {
        const double seconds = std::chrono::duration<double>(now - start_).count();
        const std::string left =
            done > 0 ? fmt::format(", about {:.0f} s left", seconds / static_cast<double>(done) *
                                                                static_cast<double>(total - done))
                     : "";
        return fmt::format("laminate: {} {} of {}{}{}", what, std::min(done + 1, total), total,
                           last.empty() ? "" : " after " + last, left);
    });
}

}  // namespace laminate::cli
