// Reads and writes whole files. Output is written beside its target and renamed, so no reader ever
// sees half a file.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/unfinished.h"

namespace laminate {

/// The extension of a path in lower case: ".png" for "a.PNG".
[[nodiscard]] inline std::string lower_extension(const std::filesystem::path& path) {
    std::string extension = path.extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return extension;
}

/// The bytes of a file. Throws InputError if it cannot be read or is larger than `most_bytes`, by
/// default the limit of protobuf.
[[nodiscard]] inline std::string read_file(const std::filesystem::path& path,
                                           size_t most_bytes = size_t{2} << 30) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) throw InputError(path.string() + ": no such file");
    if (std::filesystem::is_directory(path, error))
        throw InputError(path.string() + ": is a directory, expected a file");
    std::ifstream in(path, std::ios::binary);
    std::string bytes;
    constexpr size_t piece = size_t{64} << 10;
    while (in) {
        const size_t before = bytes.size();
        bytes.resize(before + std::max(piece, before / 2));
        in.read(bytes.data() + before, static_cast<std::streamsize>(bytes.size() - before));
        bytes.resize(before + static_cast<size_t>(in.gcount()));
        if (bytes.size() > most_bytes) {
            throw InputError(path.string() + ": is larger than " + std::to_string(most_bytes) +
                             " bytes, the most that is read");
        }
    }
    if (!in.eof()) throw InputError(path.string() + ": cannot be read");
    return bytes;
}

/// A file under a temporary name, in the directory of its target, which publish() replaces by it.
/// Without publish() it is removed, as when a signal ends the program (unfinished.h). If the target
/// is a symbolic link, the file that it names is replaced. A replaced file passes its permissions
/// on.
class NewFile {
public:
    /// Throws InputError for a circle of links.
    explicit NewFile(const std::filesystem::path& path)
        : path_(path), place_(without_links(path)), aside_(beside(place_)), unfinished_(aside_) {}
    ~NewFile() {
        std::error_code ignored;
        if (!is_published_) std::filesystem::remove(aside_, ignored);
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    /// The caller writes this file before publish().
    [[nodiscard]] const std::filesystem::path& aside() const { return aside_; }

    /// Throws InputError, and leaves the target as it was, if the directory cannot be written.
    void publish() {
        std::error_code error;
        const std::filesystem::file_status present = std::filesystem::status(place_, error);
        // Errors are ignored: some file systems cannot change permissions.
        if (std::filesystem::is_regular_file(present))
            std::filesystem::permissions(aside_, present.permissions(), error);
        std::filesystem::rename(aside_, place_, error);
        if (error) throw InputError(path_.string() + ": cannot be written: " + error.message());
        is_published_ = true;
    }

private:
    /// The path behind all links, whether there is a file yet or not.
    static std::filesystem::path without_links(const std::filesystem::path& path) {
        constexpr int most_links = 40;  // as many as the kernel follows
        std::error_code error;
        std::filesystem::path place = path;
        for (int n = 0; std::filesystem::is_symlink(place, error); ++n) {
            if (n == most_links)
                throw InputError(path.string() + ": cannot be written: " + std::strerror(ELOOP));
            place = place.parent_path() /
                    std::filesystem::read_symlink(place);  // an absolute target replaces the parent
        }
        return place;
    }
    static std::filesystem::path beside(std::filesystem::path path) {
        path += ".partial-" + std::to_string(::getpid());
        return path;
    }

    std::filesystem::path path_;  ///< as given, for messages
    std::filesystem::path place_;
    std::filesystem::path aside_;
    bool is_published_ = false;
    UnfinishedPath unfinished_;
};

/// Calls `write` with the path of a new file beside the target, then replaces the target by it
/// (NewFile). If `write` throws, the target stays as it was. A device or pipe is written directly.
/// Throws InputError if the directory cannot be written.
inline void write_file_atomically(
    const std::filesystem::path& path,
    const std::function<void(const std::filesystem::path& aside)>& write) {
    std::error_code error;
    // /dev/null, /dev/stdout and pipes must not be replaced.
    if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error) &&
        !std::filesystem::is_directory(path, error)) {
        write(path);
        return;
    }
    NewFile file(path);
    write(file.aside());
    file.publish();
}

/// Replaces the contents of `path` with `bytes`.
inline void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
    write_file_atomically(path, [&](const std::filesystem::path& aside) {
        errno = 0;
        std::ofstream out(aside, std::ios::binary | std::ios::trunc);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        out.close();
        if (!out)
            throw InputError(path.string() + ": cannot be written" +
                             (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
    });
}

}  // namespace laminate
