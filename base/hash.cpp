#include "base/hash.h"

#define XXH_INLINE_ALL  // nothing to link, so no package that uses ours needs libxxhash
#include <xxhash.h>

namespace laminate {

struct XxHash64::State {
    XXH64_state_t hash{};
};

XxHash64::XxHash64() : state_(std::make_unique<State>()) { XXH64_reset(&state_->hash, 0); }
XxHash64::~XxHash64() = default;

void XxHash64::add(std::string_view bytes) {
    XXH64_update(&state_->hash, bytes.data(), bytes.size());
}

uint64_t XxHash64::value() const { return XXH64_digest(&state_->hash); }

std::string XxHash64::text() const {
    const uint64_t hash = value();
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[hash >> shift & 15U];
    return digits;
}

uint64_t xxhash64(const void* bytes, size_t size) { return XXH64(bytes, size, 0); }

}  // namespace laminate
