// Writes a whole directory. It is made under another name and then renamed, so no reader ever sees
// half of it, and an error leaves nothing behind. Neither does a signal that ends the program
// (unfinished.h). What a killed process left behind is removed when the same directory is written
// again. Files that others put into a replaced directory are kept in the new one.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/unfinished.h"

namespace laminate {

/// A directory under a temporary name, which publish() moves to its place. Without publish() it is
/// removed.
class NewDirectory {
public:
    /// For an existing directory with contents: the names that `maker` may have written there, or
    /// nullopt if the directory must not be replaced.
    using Written =
        std::function<std::optional<std::vector<std::string>>(const std::filesystem::path&)>;

    /// Throws InputError if `place` is a file or a directory that was not made by `maker`, or if
    /// its parent cannot be written.
    NewDirectory(const std::filesystem::path& place, const Written& written,
                 const std::string& maker)
        : place_(place.empty() ? throw InputError("\"\": expected a directory to write")
                               : std::filesystem::absolute(place).lexically_normal()) {
        if (!place_.has_filename()) place_ = place_.parent_path();  // "net/"
        std::error_code error;
        if (std::filesystem::exists(place_, error)) {
            if (!std::filesystem::is_directory(place_, error))
                throw InputError(place.string() + ": is a file, expected a directory to write");
            if (!std::filesystem::is_empty(place_, error)) {
                const auto names = written(place_);
                if (!names) {
                    throw InputError(place.string() + ": is not empty and was not made by " +
                                     maker + "; expected a new directory");
                }
                written_ = *names;
            }
        }
        remove_abandoned();
        aside_ = place_;
        aside_ += partial + std::to_string(::getpid());
        unfinished_.emplace(aside_);
        std::filesystem::create_directories(aside_, error);
        if (error) throw InputError(place.string() + ": cannot be written: " + error.message());
    }
    ~NewDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(aside_, ignored);
    }
    NewDirectory(const NewDirectory&) = delete;
    NewDirectory& operator=(const NewDirectory&) = delete;

    [[nodiscard]] const std::filesystem::path& aside() const { return aside_; }

    /// Throws InputError, and leaves the old directory in place, if the new one cannot replace it.
    void publish() {
        std::error_code error;
        if (!std::filesystem::exists(place_, error)) {
            rename(aside_, place_);
            return;
        }
        keep_what_others_wrote();
        // Exchange both in one step if the file system can, so `place` exists at every moment.
        if (::renameat2(AT_FDCWD, aside_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) == 0)
            return;  // the old directory has the temporary name now, and is removed
        std::filesystem::path old = place_;
        old += ".old-" + std::to_string(::getpid());
        rename(place_, old);
        try {
            rename(aside_, place_);
        } catch (...) {
            rename(old, place_);
            throw;
        }
        // The new directory is in place, so failing to remove parts of the old one is no error.
        std::filesystem::remove_all(old, error);
    }

private:
    static constexpr const char* partial = ".partial-";

    /// Whether a process is running. A zombie is not: children of a killed program stay zombies
    /// until init waits for them.
    static bool is_running(pid_t process) {
        if (::kill(process, 0) != 0 && errno == ESRCH) return false;
        std::ifstream file("/proc/" + std::to_string(process) + "/stat");
        const std::string stat{std::istreambuf_iterator<char>(file), {}};
        const size_t name_end = stat.rfind(')');  // PID (NAME) STATE ...
        return name_end == std::string::npos || name_end + 2 >= stat.size() ||
               stat[name_end + 2] != 'Z';
    }

    /// Removes directories that processes which no longer run made for this place.
    void remove_abandoned() const {
        const std::string prefix = place_.filename().string() + partial;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(place_.parent_path(), error)) {
            const std::string name = entry.path().filename().string();
            if (name.size() <= prefix.size() || name.size() > prefix.size() + 9 ||
                name.rfind(prefix, 0) != 0)
                continue;
            const std::string digits = name.substr(prefix.size());
            if (!std::all_of(digits.begin(), digits.end(),
                             [](unsigned char c) { return std::isdigit(c) != 0; }))
                continue;
            if (is_running(static_cast<pid_t>(std::stol(digits)))) continue;
            std::filesystem::remove_all(entry.path(), error);
        }
    }

    /// Copies files of others as hard links where possible, so they exist at every moment.
    void keep_what_others_wrote() const {
        namespace fs = std::filesystem;
        std::error_code error;
        const fs::directory_iterator entries(place_, error);
        if (error)
            throw InputError(
                place_.string() +
                ": cannot be read, nor what others put there be kept: " + error.message());
        for (const fs::directory_entry& entry : entries) {
            const fs::path name = entry.path().filename();
            if (std::find(written_.begin(), written_.end(), name.string()) != written_.end())
                continue;
            const fs::path kept = aside_ / name;
            if (fs::exists(fs::symlink_status(kept, error))) continue;
            constexpr auto all = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
            fs::copy(entry.path(), kept, all | fs::copy_options::create_hard_links, error);
            if (!error) continue;
            fs::remove_all(kept, error);
            fs::copy(entry.path(), kept, all, error);
            if (error) {
                throw InputError(
                    entry.path().string() +
                    ": is in a directory to be replaced and cannot be kept: " + error.message());
            }
        }
    }

    void rename(const std::filesystem::path& from, const std::filesystem::path& to) const {
        std::error_code error;
        std::filesystem::rename(from, to, error);
        if (error) throw InputError(place_.string() + ": cannot be written: " + error.message());
    }

    std::filesystem::path place_;
    std::filesystem::path aside_;
    std::vector<std::string> written_;  ///< by the maker, in the directory that is replaced
    /// Destroyed before the other members: after publish(), only the destructor removes `aside_`.
    std::optional<UnfinishedPath> unfinished_;
};

}  // namespace laminate
