// Writing a whole directory: it is made aside and renamed, so that no reader ever meets half of it, and an error leaves nothing.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>

#include "base/error.h"

namespace laminate {

/// A directory made aside, and put in its place by publish(). Without publish() it is removed.
class NewDirectory {
public:
    /// `is_ours`: whether an existing directory with contents is one that may be replaced; `maker` is named when it is not.
    /// Throws InputError then, when `place` is a file, and when its parent cannot be written.
    NewDirectory(const std::filesystem::path& place, const std::function<bool(const std::filesystem::path&)>& is_ours,
                 const std::string& maker)
        : place_(std::filesystem::absolute(place).lexically_normal()) {
        if (!place_.has_filename()) place_ = place_.parent_path();  // "net/"
        std::error_code error;
        if (std::filesystem::exists(place_, error)) {
            if (!std::filesystem::is_directory(place_, error))
                throw InputError(place.string() + ": is a file, expected a directory to write");
            if (!std::filesystem::is_empty(place_, error) && !is_ours(place_)) {
                throw InputError(place.string() + ": is not empty and was not made by " + maker +
                                 "; expected a new directory");
            }
        }
        aside_ = place_;
        aside_ += ".partial-" + std::to_string(::getpid());
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

    void publish() {
        if (!std::filesystem::exists(place_)) {
            rename(aside_, place_);
            return;
        }
        std::filesystem::path old = place_;
        old += ".old-" + std::to_string(::getpid());
        rename(place_, old);
        try {
            rename(aside_, place_);
        } catch (...) {
            rename(old, place_);
            throw;
        }
        std::filesystem::remove_all(old);
    }

private:
    void rename(const std::filesystem::path& from, const std::filesystem::path& to) const {
        std::error_code error;
        std::filesystem::rename(from, to, error);
        if (error) throw InputError(place_.string() + ": cannot be written: " + error.message());
    }

    std::filesystem::path place_;
    std::filesystem::path aside_;
};

}  // namespace laminate
