#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include <string>

namespace laminate {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
protected:
    void SetUp() override {
        directory_ =
            fs::path(::testing::TempDir()) / ("laminate_files_" + std::to_string(::getpid()));
        fs::create_directories(directory_);
    }
    void TearDown() override { fs::remove_all(directory_); }

    [[nodiscard]] int files_in_directory() const {
        int count = 0;
        for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory_)) ++count;
        return count;
    }

    fs::path directory_;
};

TEST_F(Files, WhatIsWrittenIsReadBackWithZeroBytesAndNewlines) {
    const std::string bytes("a\0b\r\nc", 6);
    write_file_atomically(directory_ / "f", bytes);
    EXPECT_EQ(read_file(directory_ / "f"), bytes);
    EXPECT_EQ(files_in_directory(), 1);
}

TEST_F(Files, AWriterThatThrowsLeavesTheOldContentsAndNothingBeside) {
    write_file_atomically(directory_ / "f", "old");
    EXPECT_THROW(write_file_atomically(directory_ / "f",
                                       [](const fs::path& aside) {
                                           std::ofstream(aside) << "half";
                                           throw InputError("disk: full");
                                       }),
                 InputError);
    EXPECT_EQ(read_file(directory_ / "f"), "old");
    EXPECT_EQ(files_in_directory(), 1);
}

TEST_F(Files, APipeIsWrittenAndStaysAPipe) {
    const fs::path pipe = directory_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::string read;
    std::thread reader([&] { std::getline(std::ifstream(pipe), read); });
    write_file_atomically(pipe, "through\n");
    reader.join();
    EXPECT_EQ(read, "through");
    EXPECT_TRUE(fs::is_fifo(pipe));
    EXPECT_EQ(files_in_directory(), 1);
}

TEST_F(Files, ALinkStaysOneAndWhatItNamesIsWritten) {
    fs::create_directory(directory_ / "elsewhere");
    write_file_atomically(directory_ / "elsewhere/f", "old");
    fs::create_symlink("elsewhere/f", directory_ / "link");           // relative to the link
    fs::create_symlink(directory_ / "link", directory_ / "further");  // through another link
    // to a file that does not exist yet
    fs::create_symlink("elsewhere/new", directory_ / "dangling");
    write_file_atomically(directory_ / "further", "one");
    EXPECT_EQ(read_file(directory_ / "elsewhere/f"), "one");
    write_file_atomically(directory_ / "dangling", "two");
    EXPECT_EQ(read_file(directory_ / "elsewhere/new"), "two");
    for (const char* link : {"link", "further", "dangling"})
        EXPECT_TRUE(fs::is_symlink(directory_ / link)) << link;
    EXPECT_EQ(files_in_directory(), 4);

    fs::create_symlink("circle", directory_ / "circle");
    EXPECT_THROW(write_file_atomically(directory_ / "circle", "x"), InputError);
}

TEST_F(Files, AFileThatIsReplacedPassesItsPermissionsOn) {
    write_file_atomically(directory_ / "f", "old");
    for (const fs::perms mode : {fs::perms(0640), fs::perms(0755)}) {
        fs::permissions(directory_ / "f", mode);
        write_file_atomically(directory_ / "f", "new");
        EXPECT_EQ(fs::status(directory_ / "f").permissions(), mode);
    }
}

// A limit on the size of files looks like a full disk.
TEST_F(Files, WhatDoesNotFitIsSaidAndTheOldFileStays) {
    write_file_atomically(directory_ / "f", "old");
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1000, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    std::string message;
    try {
        write_file_atomically(directory_ / "f", std::string(100'000, 'x'));
    } catch (const InputError& error) {
        message = error.what();
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(message, (directory_ / "f").string() + ": cannot be written: File too large");
    EXPECT_EQ(read_file(directory_ / "f"), "old");
    EXPECT_EQ(files_in_directory(), 1);
}

TEST_F(Files, AMissingDirectoryIsNamed) {
    try {
        write_file_atomically(directory_ / "none" / "f", "x");
        FAIL() << "expected InputError";
    } catch (const InputError& error) {
        EXPECT_EQ(error.what(), (directory_ / "none" / "f").string() +
                                    ": cannot be written: No such file or directory");
    }
}

TEST_F(Files, ReadingWhatIsNoFileSaysSo) {
    const auto message = [](const fs::path& path) {
        try {
            (void)read_file(path);
        } catch (const InputError& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    EXPECT_EQ(message(directory_ / "none"), (directory_ / "none").string() + ": no such file");
    EXPECT_EQ(message(directory_), directory_.string() + ": is a directory, expected a file");
}

TEST_F(Files, ASignalInTheMiddleLeavesNothingBehind) {
    write_file_atomically(directory_ / "f", "old");
    const pid_t child = ::fork();
    if (child == 0) {
        remove_unfinished_at_signals();
        write_file_atomically(directory_ / "f", [](const fs::path& aside) {
            std::ofstream(aside) << "half";
            ::raise(SIGTERM);
        });
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    EXPECT_EQ(files_in_directory(), 1);
    EXPECT_EQ(read_file(directory_ / "f"), "old");
}

TEST_F(Files, AFileWithoutAnEndIsRefused) {
    try {
        (void)read_file("/dev/zero", 5'000'000);
        FAIL() << "expected InputError";
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     "/dev/zero: is larger than 5000000 bytes, the most that is read");
    }
}

}  // namespace
}  // namespace laminate
