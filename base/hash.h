// XXH64 with seed 0 (xxHash, Yann Collet) finds damage to a file at the speed of memory and spreads
// the keys of hash tables. It does not protect against somebody who forges a file with an equal
// hash. The values are those that `xxhsum -H1` prints. Files hold them, so they never change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace laminate {

/// The hash of bytes that arrive in pieces.
class XxHash64 {
public:
    XxHash64();
    ~XxHash64();
    XxHash64(const XxHash64&) = delete;
    XxHash64& operator=(const XxHash64&) = delete;

    void add(std::string_view bytes);
    /// The hash of all bytes so far.
    [[nodiscard]] uint64_t value() const;
    /// value() as 16 hexadecimal digits.
    [[nodiscard]] std::string text() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// XXH64 of `size` bytes.
[[nodiscard]] uint64_t xxhash64(const void* bytes, size_t size);

/// Hashes a sequence of integers in contiguous memory, for std::unordered_map.
struct SequenceHash {
    template <class Sequence>
    size_t operator()(const Sequence& key) const {
        return xxhash64(key.data(), key.size() * sizeof(*key.data()));
    }
};

}  // namespace laminate
