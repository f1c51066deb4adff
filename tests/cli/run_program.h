// Runs the built program as a user would and keeps what it said.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace laminate::cli {

struct ProgramResult {
    int exit_code = -1;
    std::string out;
    std::string err;
};

/// `arguments` go through the shell, so quote what needs it.
inline ProgramResult run_program(const std::string& arguments) {
    const std::string base = ::testing::TempDir() + "laminate_program_" + std::to_string(::getpid());
    const std::string command =
        std::string(LAMINATE_PROGRAM) + " " + arguments + " >" + base + ".out 2>" + base + ".err";
    const int status = std::system(command.c_str());
    const auto read = [](const std::string& path) {
        std::ifstream in(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    };
    ProgramResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(base + ".out"), read(base + ".err")};
    std::filesystem::remove(base + ".out");
    std::filesystem::remove(base + ".err");
    return result;
}

/// A directory that lives as long as the object.
class ScratchDirectory {
public:
    ScratchDirectory() : path_(::testing::TempDir() + "laminate_scratch_" + std::to_string(::getpid())) {
        std::filesystem::create_directories(path_);
    }
    ~ScratchDirectory() { std::filesystem::remove_all(path_); }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    [[nodiscard]] bool is_empty() const { return std::filesystem::is_empty(path_); }

private:
    std::filesystem::path path_;
};

}  // namespace laminate::cli
