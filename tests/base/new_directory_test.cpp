#include "base/new_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/files.h"

namespace laminate {
namespace {

namespace fs = std::filesystem;

class NewDirectoryTest : public ::testing::Test {
protected:
    NewDirectoryTest()
        : root_(fs::path(::testing::TempDir()) /
                ("laminate_new_directory_" + std::to_string(::getpid()))) {
        fs::remove_all(root_);
        fs::create_directories(root_);
    }
    ~NewDirectoryTest() override { fs::remove_all(root_); }
    static void put(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
    static std::optional<std::vector<std::string>> is_ours(const fs::path& directory) {
        if (!fs::exists(directory / "mark")) return {};
        return std::vector<std::string>{"mark", "more"};
    }
    [[nodiscard]] size_t entries() const {
        return static_cast<size_t>(
            std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
    }

    fs::path root_;
};

TEST_F(NewDirectoryTest, AppearsWholeWhenPublished) {
    NewDirectory made(root_ / "out/", is_ours, "this test");  // a final slash is not an empty name
    put(made.aside() / "mark", "1");
    EXPECT_FALSE(fs::exists(root_ / "out"));
    made.publish();
    EXPECT_EQ(read_file(root_ / "out/mark"), "1");
    EXPECT_EQ(entries(), 1U);
}

TEST_F(NewDirectoryTest, RemovesWhatAKilledProcessLeftAndNothingElse) {
    // The first process has ended and was waited for, so no process has its number.
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    // The second has ended and is still a zombie.
    const pid_t unreaped = ::fork();
    if (unreaped == 0) ::_exit(0);
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(unreaped), &ended, WEXITED | WNOWAIT), 0);
    const fs::path dead = root_ / ("out.partial-" + std::to_string(child)),
                   zombie = root_ / ("out.partial-" + std::to_string(unreaped)),
                   living = root_ / ("out.partial-" + std::to_string(::getppid())),
                   other = root_ / "out.partial-notes";
    for (const fs::path& directory : {dead, zombie, living, other}) {
        fs::create_directory(directory);
        put(directory / "half", "1");
    }
    NewDirectory made(root_ / "out", is_ours, "this test");
    EXPECT_FALSE(fs::exists(dead));
    EXPECT_FALSE(fs::exists(zombie));
    EXPECT_EQ(::waitpid(unreaped, nullptr, 0), unreaped);
    EXPECT_TRUE(fs::exists(living / "half"));
    EXPECT_TRUE(fs::exists(other / "half"));
}

TEST_F(NewDirectoryTest, LeavesNothingUnpublished) {
    {
        const NewDirectory made(root_ / "out", is_ours, "this test");
        put(made.aside() / "mark", "1");
    }
    EXPECT_EQ(entries(), 0U);
}

TEST_F(NewDirectoryTest, ReplacesItsOwnKindAndNothingElse) {
    fs::create_directory(root_ / "out");
    put(root_ / "out/mark", "old");
    put(root_ / "out/more", "old");
    {
        NewDirectory made(root_ / "out", is_ours, "this test");
        put(made.aside() / "mark", "new");
        made.publish();
    }
    EXPECT_EQ(read_file(root_ / "out/mark"), "new");
    EXPECT_FALSE(fs::exists(root_ / "out/more"));
    EXPECT_EQ(entries(), 1U);

    fs::remove(root_ / "out/mark");
    put(root_ / "out/precious", "mine");
    try {
        const NewDirectory made(root_ / "out", is_ours, "this test");
        FAIL() << "a directory of somebody else was accepted";
    } catch (const InputError& error) {
        EXPECT_EQ(error.what(),
                  (root_ / "out").string() +
                      ": is not empty and was not made by this test; expected a new directory");
    }
    EXPECT_EQ(read_file(root_ / "out/precious"), "mine");
    EXPECT_EQ(entries(), 1U);
}

TEST_F(NewDirectoryTest, WhatOthersPutThereIsKept) {
    fs::create_directories(root_ / "out/src/deep");
    put(root_ / "out/mark", "old");
    put(root_ / "out/more", "old");
    put(root_ / "out/notes", "mine");
    put(root_ / "out/both", "mine");
    put(root_ / "out/src/deep/main.c", "mine too");
    fs::create_symlink("../elsewhere", root_ / "out/link");
    for (const std::string round : {"new", "newer"}) {
        NewDirectory made(root_ / "out", is_ours, "this test");
        put(made.aside() / "mark", round);
        put(made.aside() / "both", round);
        EXPECT_EQ(read_file(root_ / "out/notes"), "mine");
        made.publish();
        EXPECT_EQ(read_file(root_ / "out/mark"), round);
    }
    EXPECT_FALSE(fs::exists(root_ / "out/more"));
    EXPECT_EQ(read_file(root_ / "out/both"), "newer");
    EXPECT_EQ(read_file(root_ / "out/notes"), "mine");
    EXPECT_EQ(read_file(root_ / "out/src/deep/main.c"), "mine too");
    EXPECT_EQ(fs::read_symlink(root_ / "out/link"), "../elsewhere");
    EXPECT_EQ(entries(), 1U);
}

TEST_F(NewDirectoryTest, AFileInTheWayIsRefused) {
    put(root_ / "out", "a file");
    EXPECT_THROW(NewDirectory(root_ / "out", is_ours, "this test"), InputError);
    EXPECT_EQ(read_file(root_ / "out"), "a file");
}

}  // namespace
}  // namespace laminate
