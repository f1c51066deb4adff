// Results that a program keeps on disk between its runs, by the text of all that they depend on.
// Losing one costs time only: every failure is a miss, and an entry is made anew.
//
// An entry is one file, named by a hash of its key, with the key itself and a checksum inside. Files
// are written under another name and renamed, so any number of processes may share a directory. A
// hit makes its entry the latest used one; when the entries take more than `most_bytes`, those used
// longest ago go first, down to three quarters of it.
//
// Entries may be code that is run, so a directory that others can write is not used.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace laminate {

class DiskCache {
public:
    struct Options {
        std::filesystem::path directory;  ///< made when the first entry is kept
        uint64_t most_bytes = uint64_t{256} << 20;
        /// Told once why nothing can be kept, by one thread at a time.
        std::function<void(const std::string&)> note = [](const std::string&) {};
    };
    struct Use {
        uint64_t entries = 0;
        uint64_t bytes = 0;
    };

    explicit DiskCache(Options options);
    DiskCache(const DiskCache&) = delete;
    DiskCache& operator=(const DiskCache&) = delete;

    /// What was kept under this key; nullopt if nothing was, and for a damaged entry, which is
    /// removed. Any thread may call it, as keep().
    [[nodiscard]] std::optional<std::string> find(std::string_view key);
    void keep(std::string_view key, std::string_view value);

    /// What the directory holds now.
    [[nodiscard]] Use use() const;
    /// Removes all entries, and says what they were. Other files stay.
    Use clear();
    [[nodiscard]] const Options& options() const { return options_; }
    /// Damaged entries that find() has met.
    [[nodiscard]] uint64_t damaged() const { return damaged_; }

private:
    struct Entry;
    [[nodiscard]] std::filesystem::path place_of(std::string_view key) const;
    [[nodiscard]] std::vector<Entry> entries() const;
    [[nodiscard]] bool is_usable();
    void write(const std::filesystem::path& place, std::string_view bytes);
    void make_room(uint64_t added);  ///< within the mutex
    void give_up(const std::string& reason);

    Options options_;
    std::mutex mutex_;
    std::optional<bool> is_usable_;  ///< unknown while there is no directory
    bool is_writable_ = true;
    std::optional<uint64_t> bytes_;  ///< in the directory, as far as this process knows
    std::atomic<uint64_t> damaged_{0};
};

}  // namespace laminate
