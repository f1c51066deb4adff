// Results on disk: kept, found again, damaged, too many, shared by processes, and places where
// nothing can be kept.
#include "base/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "tests/support/scratch_directory.h"

namespace laminate {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public testing::Test {
protected:
    [[nodiscard]] DiskCache::Options options(uint64_t most_bytes = 1 << 20) {
        return {.directory = root_ / "cache",
                .most_bytes = most_bytes,
                .note = [this](const std::string& line) { notes_.push_back(line); }};
    }
    [[nodiscard]] std::vector<fs::path> files() const {
        std::vector<fs::path> all;
        for (const auto& entry : fs::directory_iterator(root_ / "cache"))
            all.push_back(entry.path());
        return all;
    }

    const ScratchDirectory scratch_;
    const fs::path root_ = scratch_ / "root";
    std::vector<std::string> notes_;
};

TEST_F(DiskCacheTest, WhatIsKeptIsFoundByItsKeyByAnotherProcessToo) {
    const std::string value("a\0b\n", 4);
    {
        DiskCache cache(options());
        EXPECT_EQ(cache.find("key"), std::nullopt);
        cache.keep("key", value);
        cache.keep("other", "");
        EXPECT_EQ(cache.find("key"), value);
    }
    DiskCache later(options());
    EXPECT_EQ(later.find("key"), value);
    EXPECT_EQ(later.find("other"), "");
    EXPECT_EQ(later.find("key "), std::nullopt);
    EXPECT_EQ(later.use().entries, 2U);
    later.keep("key", "new");
    EXPECT_EQ(later.find("key"), "new");
    EXPECT_EQ(later.clear().entries, 2U);
    EXPECT_EQ(later.find("key"), std::nullopt);
    EXPECT_TRUE(notes_.empty());
}

/// Every byte that is changed, and every length that a file is cut to.
TEST_F(DiskCacheTest, ADamagedEntryIsAMissAndIsMadeAnew) {
    DiskCache cache(options());
    cache.keep("key", "value");
    const std::string whole = read_file(files().front());
    uint64_t damaged = 0;
    for (size_t n = 0; n < whole.size(); ++n) {
        std::string changed = whole;
        changed[n] = static_cast<char>(changed[n] ^ 1);
        for (const std::string& bytes : {changed, whole.substr(0, n)}) {
            cache.keep("key", "value");
            std::ofstream(files().front(), std::ios::binary) << bytes;
            EXPECT_EQ(cache.find("key"), std::nullopt) << "byte " << n;
            EXPECT_EQ(cache.damaged(), ++damaged);
            EXPECT_TRUE(files().empty()) << "byte " << n;
        }
    }
    cache.keep("key", "value");
    EXPECT_EQ(cache.find("key"), "value");
}

/// 40 entries of 100 bytes in a room for 2,000: what was used last stays.
TEST_F(DiskCacheTest, EntriesUsedLongestAgoGoFirst) {
    DiskCache cache(options(2000));
    const std::string value(60, 'x');
    for (int n = 0; n < 40; ++n) {
        cache.keep("entry " + std::to_string(n), value);
        EXPECT_EQ(cache.find("entry 0"), value) << n;
        EXPECT_LE(cache.use().bytes, 2000U);
        ::usleep(2000);  // so that files have different times
    }
    EXPECT_EQ(cache.find("entry 39"), value);
    EXPECT_EQ(cache.find("entry 1"), std::nullopt);
    EXPECT_GE(cache.use().entries, 10U);
}

TEST_F(DiskCacheTest, AnEntryThatWouldTakeMoreThanAQuarterIsNotKept) {
    DiskCache cache(options(4000));
    cache.keep("large", std::string(1000, 'x'));
    EXPECT_EQ(cache.find("large"), std::nullopt);
    EXPECT_TRUE(notes_.empty());
}

/// Four processes keep and find the same 50 entries in a room too small for them.
TEST_F(DiskCacheTest, ProcessesShareADirectory) {
    std::vector<pid_t> children;
    for (int child = 0; child < 4; ++child) {
        children.push_back(::fork());
        if (children.back() != 0) continue;
        DiskCache cache(options(8000));
        for (int round = 0; round < 20; ++round) {
            for (int n = 0; n < 50; ++n) {
                const std::string key = "entry " + std::to_string(n);
                const std::string value(static_cast<size_t>(100 + n), static_cast<char>('a' + n % 26));
                const std::optional<std::string> found = cache.find(key);
                if (found && *found != value) ::_exit(1);
                cache.keep(key, value);
            }
        }
        ::_exit(cache.damaged() != 0 || !notes_.empty() ? 2 : 0);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status));
        EXPECT_EQ(WEXITSTATUS(status), 0);
    }
    for (const fs::path& file : files()) EXPECT_EQ(file.extension(), ".entry") << file;
}

TEST_F(DiskCacheTest, WhereNothingCanBeKeptOneLineSaysSo) {
    fs::create_directories(root_ / "cache");
    std::ofstream(root_ / "file") << "";
    DiskCache::Options below_a_file = options();
    below_a_file.directory = root_ / "file" / "cache";
    DiskCache cache(below_a_file);
    cache.keep("a", "1");
    cache.keep("b", "2");
    EXPECT_EQ(cache.find("a"), std::nullopt);
    ASSERT_EQ(notes_.size(), 1U);
    EXPECT_NE(notes_[0].find("cannot be written: Not a directory; nothing is kept"),
              std::string::npos)
        << notes_[0];
}

TEST_F(DiskCacheTest, ADirectoryThatOthersCanWriteIsNotUsed) {
    DiskCache(options()).keep("key", "value");
    ASSERT_EQ(::chmod((root_ / "cache").c_str(), 0777), 0);
    DiskCache cache(options());
    EXPECT_EQ(cache.find("key"), std::nullopt);
    cache.keep("key", "other");
    ASSERT_EQ(notes_.size(), 1U);
    EXPECT_NE(notes_[0].find("others can write it"), std::string::npos) << notes_[0];
    ASSERT_EQ(::chmod((root_ / "cache").c_str(), 0700), 0);
    EXPECT_EQ(DiskCache(options()).find("key"), "value");
}

TEST_F(DiskCacheTest, ADirectoryThatAppearsLaterIsLookedAtToo) {
    DiskCache cache(options());
    EXPECT_EQ(cache.find("key"), std::nullopt);
    fs::create_directories(root_ / "cache");
    ASSERT_EQ(::chmod((root_ / "cache").c_str(), 0777), 0);
    cache.keep("key", "value");
    EXPECT_EQ(notes_.size(), 1U);
    EXPECT_TRUE(files().empty());
}

/// A file that a killed process has left half written goes when room is made, an hour later.
TEST_F(DiskCacheTest, OtherFilesStay) {
    DiskCache cache(options());
    cache.keep("key", "value");
    const fs::path notes = root_ / "cache" / "notes.txt";
    std::ofstream(notes) << "mine";
    fs::path unfinished = files().front();
    unfinished += unfinished.extension() == ".entry" ? ".partial-1-1" : "";
    std::ofstream(unfinished) << "half";
    EXPECT_EQ(cache.use().entries, 1U);
    EXPECT_EQ(cache.clear().entries, 1U);
    EXPECT_TRUE(fs::exists(notes));
}

}  // namespace
}  // namespace laminate
