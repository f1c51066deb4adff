#include "base/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/hash.h"

namespace laminate {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view magic = "laminate cache 1\n";
constexpr std::string_view ending = ".entry", partial = ".partial-";

std::string hexadecimal(uint64_t value) {
    std::string text(16, '0');
    for (size_t n = 16; n-- > 0; value >>= 4) text[n] = "0123456789abcdef"[value & 15];
    return text;
}

void append(std::string& bytes, uint64_t value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Takes eight bytes off the front.
std::optional<uint64_t> next_number(std::string_view& bytes) {
    uint64_t value = 0;
    if (bytes.size() < sizeof value) return std::nullopt;
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return value;
}

std::string entry_of(std::string_view key, std::string_view value) {
    std::string bytes(magic);
    append(bytes, key.size());
    append(bytes, value.size());
    bytes.append(key).append(value);
    append(bytes, xxhash64(bytes.data(), bytes.size()));
    return bytes;
}

struct KeyAndValue {
    std::string_view key, value;
};

/// nullopt for bytes that entry_of() did not make.
std::optional<KeyAndValue> read_entry(std::string_view bytes) {
    if (!bytes.starts_with(magic) || bytes.size() < magic.size() + 3 * sizeof(uint64_t))
        return std::nullopt;
    std::string_view rest = bytes.substr(magic.size());
    const uint64_t key = *next_number(rest), value = *next_number(rest);
    if (key > rest.size() || value > rest.size() || rest.size() != key + value + sizeof(uint64_t))
        return std::nullopt;
    std::string_view sum = rest.substr(key + value);
    if (*next_number(sum) != xxhash64(bytes.data(), bytes.size() - sizeof(uint64_t)))
        return std::nullopt;
    return KeyAndValue{rest.substr(0, key), rest.substr(key, value)};
}

class File {
public:
    File(const fs::path& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
    ~File() {
        if (number_ >= 0) ::close(number_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] bool is_open() const { return number_ >= 0; }
    /// Everything; nullopt if there is less than the file's size says, or if it is another user's.
    [[nodiscard]] std::optional<std::string> contents() const {
        struct stat state {};
        if (::fstat(number_, &state) != 0 || !S_ISREG(state.st_mode) ||
            state.st_uid != ::geteuid())
            return std::nullopt;
        std::string bytes(static_cast<size_t>(state.st_size), '\0');
        for (size_t at = 0; at < bytes.size();) {
            const ssize_t count = ::read(number_, bytes.data() + at, bytes.size() - at);
            if (count <= 0) return std::nullopt;
            at += static_cast<size_t>(count);
        }
        return bytes;
    }
    [[nodiscard]] bool write(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t count = ::write(number_, bytes.data(), bytes.size());
            if (count <= 0) return false;
            bytes.remove_prefix(static_cast<size_t>(count));
        }
        return ::close(std::exchange(number_, -1)) == 0;
    }
    /// The time of its last use is now.
    void touch() const { ::futimens(number_, nullptr); }

private:
    int number_;
};

}  // namespace

struct DiskCache::Entry {
    fs::path path;
    uint64_t bytes = 0;
    std::pair<int64_t, int64_t> used;  ///< seconds, nanoseconds
};

DiskCache::DiskCache(Options options) : options_(std::move(options)) {}

fs::path DiskCache::place_of(std::string_view key) const {
    const uint64_t first = xxhash64(key.data(), key.size());
    std::string salted = hexadecimal(first);
    salted.append(key);
    return options_.directory /
           (hexadecimal(first) + hexadecimal(xxhash64(salted.data(), salted.size())) +
            std::string(ending));
}

std::optional<std::string> DiskCache::find(std::string_view key) {
    if (!is_usable()) return std::nullopt;
    const fs::path place = place_of(key);
    const File file(place, O_RDONLY);
    if (!file.is_open()) return std::nullopt;
    const std::optional<std::string> bytes = file.contents();
    const std::optional<KeyAndValue> entry = bytes ? read_entry(*bytes) : std::nullopt;
    if (!entry) {
        ++damaged_;
        ::unlink(place.c_str());
        return std::nullopt;
    }
    if (entry->key != key) return std::nullopt;
    file.touch();
    return std::string(entry->value);
}

void DiskCache::keep(std::string_view key, std::string_view value) {
    const std::string bytes = entry_of(key, value);
    if (!is_usable() || bytes.size() > options_.most_bytes / 4) return;
    {
        const std::lock_guard lock(mutex_);
        if (!is_writable_) return;
        std::error_code error;
        if (fs::create_directories(options_.directory, error))
            fs::permissions(options_.directory, fs::perms::owner_all, error);
        make_room(bytes.size());
    }
    if (is_usable()) write(place_of(key), bytes);
}

void DiskCache::write(const fs::path& place, std::string_view bytes) {
    static std::atomic<uint64_t> number{0};
    fs::path aside = place;
    aside += std::string(partial) + std::to_string(::getpid()) + "-" + std::to_string(number++);
    File file(aside, O_WRONLY | O_CREAT | O_EXCL);
    if (file.is_open() && file.write(bytes) && ::rename(aside.c_str(), place.c_str()) == 0) return;
    const std::string reason = std::strerror(errno);
    ::unlink(aside.c_str());
    give_up("cannot be written: " + reason);
}

/// Whether the directory is this user's alone. One that is not there yet may still be made, by
/// anybody, so it is looked at again.
bool DiskCache::is_usable() {
    const std::lock_guard lock(mutex_);
    if (is_usable_) return *is_usable_;
    struct stat state {};
    if (::stat(options_.directory.c_str(), &state) != 0) return true;
    const bool is_ours = state.st_uid == ::geteuid() && (state.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    is_usable_ = S_ISDIR(state.st_mode) && is_ours;
    if (!*is_usable_) {
        options_.note("cache " + options_.directory.string() +
                      (S_ISDIR(state.st_mode) ? ": others can write it" : ": is a file") +
                      ", expected a directory of this user's alone; nothing is kept");
    }
    return *is_usable_;
}

void DiskCache::give_up(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(is_writable_, false)) return;
    options_.note("cache " + options_.directory.string() + ": " + reason + "; nothing is kept");
}

std::vector<DiskCache::Entry> DiskCache::entries() const {
    std::vector<Entry> found;
    std::error_code error;
    const std::string unfinished = std::string(ending) + std::string(partial);
    constexpr time_t longest_write = 3600;  // seconds; what is older, a killed process has left
    for (fs::directory_iterator at(options_.directory, error), end; !error && at != end;
         at.increment(error)) {
        const std::string name = at->path().filename();
        const bool is_unfinished = name.find(unfinished) != std::string::npos;
        struct stat state {};
        if ((!name.ends_with(ending) && !is_unfinished) ||
            ::lstat(at->path().c_str(), &state) != 0 || !S_ISREG(state.st_mode) ||
            (is_unfinished && ::time(nullptr) - state.st_mtim.tv_sec < longest_write))
            continue;
        found.push_back({at->path(), static_cast<uint64_t>(state.st_size),
                         {state.st_mtim.tv_sec, state.st_mtim.tv_nsec}});
    }
    return found;
}

void DiskCache::make_room(uint64_t added) {
    const auto sum = [](const std::vector<Entry>& all) {
        uint64_t bytes = 0;
        for (const Entry& entry : all) bytes += entry.bytes;
        return bytes;
    };
    if (!bytes_) bytes_ = sum(entries());
    *bytes_ += added;
    if (*bytes_ <= options_.most_bytes) return;
    std::vector<Entry> all = entries();  // other processes add and remove, too
    std::ranges::sort(all, {}, &Entry::used);
    *bytes_ = sum(all) + added;
    for (const Entry& entry : all) {
        if (*bytes_ <= options_.most_bytes / 4 * 3) break;
        if (::unlink(entry.path.c_str()) == 0) *bytes_ -= entry.bytes;
    }
}

DiskCache::Use DiskCache::use() const {
    Use use;
    for (const Entry& entry : entries()) {
        ++use.entries;
        use.bytes += entry.bytes;
    }
    return use;
}

DiskCache::Use DiskCache::clear() {
    Use removed;
    for (const Entry& entry : entries()) {
        if (::unlink(entry.path.c_str()) != 0) continue;
        ++removed.entries;
        removed.bytes += entry.bytes;
    }
    return removed;
}

}  // namespace laminate
