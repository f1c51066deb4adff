// Runs the built program as a user would and keeps its output.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"

namespace laminate::cli {

struct ProgramResult {
    int exit_code = -1;
    std::string out;
    std::string err;
};

/// Removes the address sanitizer's warning about Halide's compiler, which switches stacks. No
/// option turns the warning off.
inline std::string without_remark_on_stacks(const std::string& err) {
    constexpr const char* remark = "WARNING: ASan doesn't fully support makecontext/swapcontext";
    const size_t at = err.find(remark);
    if (at == std::string::npos) return err;
    const size_t begin = err.rfind('\n', at) + 1;  // npos + 1 is 0
    const size_t end = err.find('\n', at);
    return err.substr(0, begin) + (end == std::string::npos ? "" : err.substr(end + 1));
}

/// The shell parses `arguments`, so quote what needs it.
inline ProgramResult run_program(const std::string& arguments) {
    const std::string base =
        ::testing::TempDir() + "laminate_program_" + std::to_string(::getpid());
    const std::string command =
        std::string(LAMINATE_PROGRAM) + " " + arguments + " >" + base + ".out 2>" + base + ".err";
    const int status = std::system(command.c_str());
    const auto read = [](const std::string& path) {
        std::ifstream in(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    };
    ProgramResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(base + ".out"),
                         read(base + ".err")};
    if (test::is_sanitized) result.err = without_remark_on_stacks(result.err);
    std::filesystem::remove(base + ".out");
    std::filesystem::remove(base + ".err");
    return result;
}

}  // namespace laminate::cli
