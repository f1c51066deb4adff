// How every verb answers people and programs: exit codes, common options, tables, JSON. Tables go
// to stdout, progress and remarks to stderr. With `--json -` stdout carries the JSON and nothing
// else.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace laminate::cli {

/// Exit codes of the program; cli/README.md.
enum class Exit {
    ok = 0,
    comparison_failed = 1,
    usage = 2,
    bad_input = 3,
    infeasible = 4,
    internal = 5,
};

struct CommonOptions {
    std::string json;   ///< file for the machine-readable answer, "-" for stdout, empty for none
    int threads = 0;    ///< 0: one per core
    uint64_t seed = 1;  ///< of random inputs and random schedules
    int verbosity = 0;  ///< -1 with -q, 1 with -v

    /// The number of threads to use, at least 1.
    [[nodiscard]] int thread_count() const;
};

/// Where a verb writes. One per run of the program.
class Output {
public:
    explicit Output(const CommonOptions& options) : options_(options) {}

    /// Prints a line, or a table that ends in a newline, to stdout, unless stdout carries JSON.
    void print(const std::string& text) const;
    /// Prints a remark to stderr, unless -q is given.
    void note(const std::string& line) const;
    /// Prints a remark to stderr with -v only.
    void detail(const std::string& line) const;
    /// Writes the answer to --json, if given, unchanged.
    void json(const nlohmann::ordered_json& answer) const;
    [[nodiscard]] bool wants_json() const { return !options_.json.empty(); }

private:
    const CommonOptions& options_;
};

/// Progress remarks, at most one in two seconds. Calls must not overlap.
class OccasionalNotes {
public:
    explicit OccasionalNotes(const Output& output) : output_(output) {}
    void note(const std::function<std::string()>& line);

private:
    const Output& output_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Occasional remarks on work of many steps: "compiling group 3 of 40, about 12 s left", by the time
/// that the steps before took. Calls must not overlap.
class StepNotes {
public:
    explicit StepNotes(const Output& output) : notes_(output) {}
    /// `what` begins the remark; another one than before begins other work, whose time is counted
    /// anew. `done`: steps of all that have ended; the remark counts the one after, if there is one.
    /// `last`: the name of the one that ended last.
    void note(const std::string& what, int64_t done, int64_t total, const std::string& last = "");

private:
    OccasionalNotes notes_;
    std::string what_;
    std::chrono::steady_clock::time_point start_{};
};

enum class Align { left, right };

/// A table in plain text: columns as wide as their widest cell, two spaces between them, a rule
/// under the header.
class Table {
public:
    struct Column {
        std::string title;
        Align align = Align::left;
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// One cell per column.
    void add(std::vector<std::string> cells);
    /// A rule before the next row (for a row of totals).
    void add_rule();
    [[nodiscard]] std::string text() const;
    /// {"columns":[{"title","is_number"}], "rows":[[CELL...]]}, without rules.
    [[nodiscard]] nlohmann::ordered_json json() const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;  ///< an empty row is a rule
};

/// 1234567 -> "1,234,567".
[[nodiscard]] std::string grouped(int64_t value);
/// 65536 -> "64.0 KiB"; below 1 KiB exact bytes.
[[nodiscard]] std::string bytes_text(int64_t bytes);
/// Width of a UTF-8 text in characters; cells of a table may hold "×".
[[nodiscard]] size_t display_width(const std::string& text);

/// "64KiB", "1.5MiB", "4096" or "4096B", "2GiB" -> bytes; throws UsageError naming the option.
[[nodiscard]] int64_t parse_bytes(const std::string& option, const std::string& text);

}  // namespace laminate::cli
