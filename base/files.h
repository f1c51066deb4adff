// Reading and writing whole files. Output is written beside its target and renamed, so no reader
// ever meets half a file.
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

/// ".PNG" of "a.PNG" as ".png": a file's kind is in its name, in either case.
[[nodiscard]] inline std::string lower_extension(const std::filesystem::path& path) {
    std::string extension = path.extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return extension;
}

/// The bytes of a file; throws InputError when it cannot be read or is larger than `most_bytes`,
/// what a model of protobuf can be.
[[nodiscard]] inline std::string read_file(const std::filesystem::path& path,
                                           size_t most_bytes = size_t{2} << 30) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) throw InputError(path.string() + ": no such file");
    if (std::filesystem::is_directory(path, error))
        throw InputError(path.string() + ": is a directory, expected a file");
    std::ifstream in(path, std::ios::binary);
    std::string bytes;
    constexpr size_t piece = size_t{1} << 20;
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

/// A file made aside, in the directory of the file that publish() puts it in the place of; without
/// publish() it is removed, and so it is when a signal ends the program (unfinished.h). A symbolic
/// link stays one, and what it names is replaced; a file that is replaced passes its permissions
/// on.
class NewFile {
public:
    /// Throws InputError for links that go in a circle.
    explicit NewFile(const std::filesystem::path& path)
        : path_(path), place_(without_links(path)), aside_(beside(place_)), unfinished_(aside_) {}
    ~NewFile() {
        std::error_code ignored;
        if (!is_published_) std::filesystem::remove(aside_, ignored);
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    /// To be written by the caller before publish().
    [[nodiscard]] const std::filesystem::path& aside() const { return aside_; }

    /// Throws InputError, and leaves what was there, when the directory cannot be written.
    void publish() {
        std::error_code error;
        const std::filesystem::file_status present = std::filesystem::status(place_, error);
        // As well as may be: on some file systems permissions cannot be changed.
        if (std::filesystem::is_regular_file(present))
            std::filesystem::permissions(aside_, present.permissions(), error);
        std::filesystem::rename(aside_, place_, error);
        if (error) throw InputError(path_.string() + ": cannot be written: " + error.message());
        is_published_ = true;
    }

private:
    /// What the name stands for in the end, whether there is a file yet or not.
    static std::filesystem::path without_links(const std::filesystem::path& path) {
        constexpr int most_links = 40;  // as many as the kernel follows
        std::error_code error;
        std::filesystem::path place = path;
        for (int n = 0; std::filesystem::is_symlink(place, error); ++n) {
            if (n == most_links)
                throw InputError(path.string() + ": cannot be written: " + std::strerror(ELOOP));
            place = place.parent_path() /
                    std::filesystem::read_symlink(place);  // an absolute target is itself
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

/// Calls `write` with the path of a new file beside the target, which then takes the target's place
/// (NewFile). When `write` throws, the target is left as it was. A device or pipe is written as it
/// is. Throws InputError when the directory cannot be written.
inline void write_file_atomically(
    const std::filesystem::path& path,
    const std::function<void(const std::filesystem::path& aside)>& write) {
    std::error_code error;
    // /dev/null, /dev/stdout, a pipe: nothing to replace, and nothing that may be replaced.
    if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error) &&
        !std::filesystem::is_directory(path, error)) {
        write(path);
        return;
    }
    NewFile file(path);
    write(file.aside());
    file.publish();
}

/// Replaces the contents of `path` by `bytes`.
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
