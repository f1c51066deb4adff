// XXH64 with seed 0, a hash that finds damage at the speed of memory; no protection against
// somebody who wants two files to look alike. After Yann Collet's specification (xxHash,
// doc/xxhash_spec.md).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace laminate {

class XxHash64 {
public:
    void add(std::string_view bytes) {
        total_ += bytes.size();
        if (held_ > 0 || bytes.size() < stripe) {
            const size_t taken = std::min(stripe - held_, bytes.size());
            std::memcpy(hold_.data() + held_, bytes.data(), taken);
            held_ += taken;
            bytes.remove_prefix(taken);
            if (held_ < stripe) return;
            add_stripe(hold_.data());
            held_ = 0;
        }
        while (bytes.size() >= stripe) {
            add_stripe(bytes.data());
            bytes.remove_prefix(stripe);
        }
        std::memcpy(hold_.data(), bytes.data(), bytes.size());
        held_ = bytes.size();
    }

    [[nodiscard]] uint64_t value() const {
        uint64_t h = prime5;
        if (total_ >= stripe) {
            h = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
                std::rotl(lanes_[3], 18);
            for (const uint64_t lane : lanes_) h = (h ^ round(0, lane)) * prime1 + prime4;
        }
        h += total_;
        size_t at = 0;
        for (; at + 8 <= held_; at += 8)
            h = std::rotl(h ^ round(0, read<uint64_t>(hold_.data() + at)), 27) * prime1 + prime4;
        for (; at + 4 <= held_; at += 4)
            h = std::rotl(h ^ (read<uint32_t>(hold_.data() + at) * prime1), 23) * prime2 + prime3;
        for (; at < held_; ++at)
            h = std::rotl(h ^ (static_cast<unsigned char>(hold_[at]) * prime5), 11) * prime1;
        h = (h ^ (h >> 33)) * prime2;
        h = (h ^ (h >> 29)) * prime3;
        return h ^ (h >> 32);
    }

    /// 16 hexadecimal digits.
    [[nodiscard]] std::string text() const {
        std::string digits;
        for (int shift = 60; shift >= 0; shift -= 4)
            digits += "0123456789abcdef"[value() >> shift & 15];
        return digits;
    }

private:
    static constexpr size_t stripe = 32;
    static constexpr uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F,
                              prime3 = 0x165667B19E3779F9, prime4 = 0x85EBCA77C2B2AE63,
                              prime5 = 0x27D4EB2F165667C5;

    /// Little-endian, as the specification and every machine we compile for.
    template <class Word>
    static uint64_t read(const char* at) {
        static_assert(std::endian::native == std::endian::little);
        Word word = 0;
        std::memcpy(&word, at, sizeof word);
        return word;
    }
    static uint64_t round(uint64_t lane, uint64_t input) {
        return std::rotl(lane + input * prime2, 31) * prime1;
    }
    void add_stripe(const char* at) {
        for (size_t k = 0; k < lanes_.size(); ++k)
            lanes_[k] = round(lanes_[k], read<uint64_t>(at + 8 * k));
    }

    std::array<uint64_t, 4> lanes_{prime1 + prime2, prime2, 0, uint64_t{0} - prime1};
    std::array<char, stripe> hold_{};
    size_t held_ = 0;
    uint64_t total_ = 0;
};

}  // namespace laminate
