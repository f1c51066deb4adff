// A file in memory, for libraries that write only to files. Its contents can be read even when
// every disk is full.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/files.h"

namespace laminate {

class MemoryFile {
public:
    MemoryFile() : file_(::memfd_create("laminate", MFD_CLOEXEC)) {
        if (file_ < 0)
            throw std::runtime_error(std::string("no memory for a file: ") + std::strerror(errno));
    }
    ~MemoryFile() { ::close(file_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    /// Closed when another program is executed; duplicates are not.
    [[nodiscard]] int descriptor() const { return file_; }
    /// A path by which this process can open it.
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }
    [[nodiscard]] std::string contents() const { return read_file(path()); }

private:
    int file_ = -1;
};

}  // namespace laminate
