// Reading and writing whole files. Output is written beside its target and renamed, so no reader ever meets half a file.
#pragma once

#include <unistd.h>

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

/// The bytes of a file; throws InputError when it cannot be read.
[[nodiscard]] inline std::string read_file(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) throw InputError(path.string() + ": no such file");
    if (std::filesystem::is_directory(path, error))
        throw InputError(path.string() + ": is a directory, expected a file");
    std::ifstream in(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in) throw InputError(path.string() + ": cannot be read");
    return bytes;
}

/// Calls `write` with the path of a new file in the target's directory, then renames that file to `path`. When `write`
/// throws, the file is removed and the target left as it was, and so it is when a signal ends the program
/// (base/unfinished.h). A device or pipe is written as it is. Throws InputError when the directory cannot be written.
inline void write_file_atomically(const std::filesystem::path& path,
                                  const std::function<void(const std::filesystem::path& aside)>& write) {
    std::error_code error;
    // /dev/null, /dev/stdout, a pipe: nothing to replace, and nothing that may be replaced.
    if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error) &&
        !std::filesystem::is_directory(path, error)) {
        write(path);
        return;
    }
    std::filesystem::path aside = path;
    aside += ".partial-" + std::to_string(::getpid());
    const UnfinishedPath unfinished(aside);
    try {
        write(aside);
        std::filesystem::rename(aside, path, error);
        if (error) throw InputError(path.string() + ": cannot be written: " + error.message());
    } catch (...) {
        std::error_code ignored;
        std::filesystem::remove(aside, ignored);
        throw;
    }
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
