// Removes unfinished output when a signal ends the program: Ctrl-C, a batch system's SIGTERM, a
// terminal that closes. Only SIGKILL leaves it behind.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

namespace laminate {

namespace unfinished {

/// Kept in static memory, because a signal handler may neither allocate nor wait.
struct Entry {
    std::atomic<bool> is_taken{false};
    std::atomic<bool> is_set{false};
    std::array<char, 4096> path{};
};
inline std::array<Entry, 8> entries;

/// Removes a file, or a directory with its files but not its subdirectories. Makes system calls
/// only.
inline void remove(const char* path) {
    if (::unlink(path) == 0) return;
    const int directory = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) return;
    alignas(8) std::array<char, 4096> buffer;
    // struct linux_dirent64: 64-bit inode, 64-bit offset, 16-bit length, 8-bit type, name.
    constexpr long length_at = 16, name_at = 19;
    for (long bytes = 0;
         (bytes = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size())) > 0;) {
        for (long at = 0; at < bytes;) {
            uint16_t length = 0;
            std::memcpy(&length, buffer.data() + at + length_at, sizeof length);
            ::unlinkat(directory, buffer.data() + at + name_at, 0);
            at += length;
        }
    }
    ::close(directory);
    ::rmdir(path);
}

extern "C" inline void laminate_end_by_signal(int number) {
    for (const Entry& entry : entries) {
        if (entry.is_set) unfinished::remove(entry.path.data());
    }
    ::signal(number, SIG_DFL);
    ::raise(number);
}

}  // namespace unfinished

/// While it lives, a signal removes the file or directory, unless there are more of them than
/// `entries` holds.
class UnfinishedPath {
public:
    explicit UnfinishedPath(const std::filesystem::path& path) {
        const std::string text = path.string();
        for (unfinished::Entry& entry : unfinished::entries) {
            if (text.size() >= entry.path.size() || entry.is_taken.exchange(true)) continue;
            std::memcpy(entry.path.data(), text.c_str(), text.size() + 1);
            entry.is_set = true;
            entry_ = &entry;
            return;
        }
    }
    ~UnfinishedPath() {
        if (entry_ == nullptr) return;
        entry_->is_set = false;
        entry_->is_taken = false;
    }
    UnfinishedPath(const UnfinishedPath&) = delete;
    UnfinishedPath& operator=(const UnfinishedPath&) = delete;

private:
    unfinished::Entry* entry_ = nullptr;
};

/// Called by main(). An ignored signal (nohup) stays ignored.
inline void remove_unfinished_at_signals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction present {};
        if (::sigaction(number, nullptr, &present) == 0 && present.sa_handler == SIG_DFL)
            ::signal(number, unfinished::laminate_end_by_signal);
    }
}

}  // namespace laminate
