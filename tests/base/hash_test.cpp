#include "base/hash.h"

#include <array>

#include <gtest/gtest.h>

namespace laminate {
namespace {

std::string hash(std::string_view text) {
    XxHash64 h;
    h.add(text);
    return h.text();
}

// Values that the reference implementation prints for these texts.
TEST(XxHash64, GivesThePublishedValues) {
    EXPECT_EQ(hash(""), "ef46db3751d8e999");
    EXPECT_EQ(hash("a"), "d24ec4f1a98c6e5b");
    EXPECT_EQ(hash("abc"), "44bc2cf5ad770999");
    EXPECT_EQ(hash("Nobody inspects the spammish repetition"),
              "fbcea83c8a378bf1");  // 39 bytes: one stripe, one word, bytes
}

TEST(XxHash64, DoesNotDependOnHowTheBytesArrive) {
    std::string bytes;
    for (int n = 0; n < 200; ++n) bytes += static_cast<char>(n * 37);
    for (size_t first = 0; first <= bytes.size(); ++first) {
        XxHash64 h;
        h.add(std::string_view(bytes).substr(0, first));
        h.add(std::string_view(bytes).substr(first));
        ASSERT_EQ(h.text(), hash(bytes)) << "cut at " << first;
    }
}

TEST(XxHash64, SeesEveryBit) {
    const std::string bytes(100, 'x');
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        std::string other = bytes;
        other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
        ASSERT_NE(hash(other), hash(bytes)) << "bit " << bit;
    }
}

TEST(XxHash64, OfOnePieceIsTheSame) {
    EXPECT_EQ(xxhash64("abc", 3), 0x44bc2cf5ad770999U);
    // A key is hashed as its bytes: 1 and 2 as 64-bit little-endian words.
    const std::array<uint64_t, 2> key{1, 2};
    EXPECT_EQ(SequenceHash()(key), xxhash64("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16));
}

}  // namespace
}  // namespace laminate
