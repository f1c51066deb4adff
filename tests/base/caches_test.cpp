#include "base/caches.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

namespace laminate {
namespace {

class Caches : public ::testing::Test {
protected:
    void add(int index, const std::string& level, const std::string& kind,
             const std::string& size) {
        const std::filesystem::path place = directory_ / ("index" + std::to_string(index));
        std::filesystem::create_directories(place);
        std::ofstream(place / "level") << level << "\n";
        std::ofstream(place / "type") << kind << "\n";
        std::ofstream(place / "size") << size << "\n";
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }
    std::filesystem::path directory_ = std::filesystem::path(::testing::TempDir()) /
                                       ("laminate_caches_" + std::to_string(::getpid()));
};

TEST_F(Caches, AreDataAndUnifiedOnesNearestFirst) {
    add(0, "1", "Data", "48K");
    add(1, "1", "Instruction", "32K");
    add(2, "2", "Unified", "1280K");
    add(3, "3", "Unified", "24M");
    const std::vector<Cache> found = data_caches(directory_);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].level, 1);
    EXPECT_EQ(found[0].size, Bytes(48 << 10));
    EXPECT_EQ(found[1].level, 2);
    EXPECT_EQ(found[1].size, Bytes(1280 << 10));
    EXPECT_EQ(found[2].size, Bytes(24 << 20));
}

TEST_F(Caches, NothingIsMadeUp) {
    EXPECT_TRUE(data_caches(directory_).empty());
    add(0, "1", "Data", "none");
    EXPECT_TRUE(data_caches(directory_).empty());
    EXPECT_GE(second_level_cache(), Bytes(64 << 10));
}

}  // namespace
}  // namespace laminate
