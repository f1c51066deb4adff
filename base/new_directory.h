// Writes a whole directory. It is made under another name and then renamed, so no reader ever sees
// half of it, and an error leaves nothing behind. Neither does a signal that ends the program
// (unfinished.h). What a killed process left behind is removed when the same directory is written
// again. Files that others put into a replaced directory are kept in the new one.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
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
        : written_(written),
          place_(place.empty() ? throw InputError("\"\": expected a directory to write")
                               : std::filesystem::absolute(place).lexically_normal()) {
        if (!place_.has_filename()) place_ = place_.parent_path();  // "net/"
        std::error_code error;
        if (std::filesystem::exists(place_, error)) {
            if (!std::filesystem::is_directory(place_, error))
                throw InputError(place.string() + ": is a file, expected a directory to write");
            if (!std::filesystem::is_empty(place_, error) && !written_(place_)) {
                throw InputError(place.string() + ": is not empty and was not made by " + maker +
                                 "; expected a new directory");
            }
        }
        remove_abandoned(place_);
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

    /// Throws InputError, and leaves what was there, when it cannot take its place. Other processes
    /// that publish to the same place wait, so what they have written there is known and replaced.
    void publish() {
        const ParentLock lock(place_.parent_path());
        std::error_code error;
        if (!std::filesystem::exists(place_, error)) {
            rename(aside_, place_);
            return;
        }
        keep_what_others_wrote(written_(place_).value_or(std::vector<std::string>{}));
        // Where the file system can, one step swaps both, and `place` is there at every moment.
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

    /// Removes directories made aside for this place by processes that are no more.
    static void remove_abandoned(const std::filesystem::path& place) {
        const std::string prefix = place.filename().string() + partial;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(place.parent_path(), error)) {
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

private:
    static constexpr const char* partial = ".partial-";

    /// Held by one process at a time. Without effect on a file system that has no locks.
    class ParentLock {
    public:
        explicit ParentLock(const std::filesystem::path& parent)
            : directory_(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
            if (directory_ >= 0) (void)::flock(directory_, LOCK_EX);
        }
        ~ParentLock() {
            if (directory_ >= 0) ::close(directory_);
        }
        ParentLock(const ParentLock&) = delete;
        ParentLock& operator=(const ParentLock&) = delete;

    private:
        int directory_;
    };

    /// One that has ended but was not waited for is not: a killed program's children end so until
    /// init comes to them.
    static bool is_running(pid_t process) {
        if (::kill(process, 0) != 0 && errno == ESRCH) return false;
        std::ifstream file("/proc/" + std::to_string(process) + "/stat");
        const std::string stat{std::istreambuf_iterator<char>(file), {}};
        const size_t name_end = stat.rfind(')');  // PID (NAME) STATE ...
        return name_end == std::string::npos || name_end + 2 >= stat.size() ||
               stat[name_end + 2] != 'Z';
    }

    /// As links to the same files where that can be: they are in one place or the other at every
    /// moment.
    void keep_what_others_wrote(const std::vector<std::string>& written) const {
        namespace fs = std::filesystem;
        std::error_code error;
        const fs::directory_iterator entries(place_, error);
        if (error)
            throw InputError(
                place_.string() +
                ": cannot be read, nor what others put there be kept: " + error.message());
        for (const fs::directory_entry& entry : entries) {
            const fs::path name = entry.path().filename();
            if (std::find(written.begin(), written.end(), name.string()) != written.end()) continue;
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

    Written written_;
    std::filesystem::path place_;
    std::filesystem::path aside_;
    std::optional<UnfinishedPath> unfinished_;  ///< ends before the others: what is aside after
                                                ///< publish() is removed by us alone
};

}  // namespace laminate
