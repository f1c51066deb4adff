// What goes wrong outside the program: full disks, directories that cannot be written, kills,
// damaged files (docs/reliability.md).
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

/// Runs a shell command with $laminate; exit code and stderr.
ProgramResult run_shell(const ScratchDirectory& scratch, const std::string& command) {
    const std::string file = scratch / "said";
    const int status = std::system(("laminate=" + std::string(LAMINATE_PROGRAM) + "; { " + command +
                                    "; } > /dev/null 2> " + file)
                                       .c_str());
    ProgramResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", read_file(file)};
    if (test::is_sanitized) result.err = without_remark_on_stacks(result.err);
    std::filesystem::remove(file);
    return result;
}

size_t lines_of(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(FullDisk, OnStandardOutputIsSaid) {
    const ScratchDirectory scratch;
    for (const char* arguments : {"info zoo:l2net", "info zoo:vgg16 --json -", "reference man"}) {
        const ProgramResult result =
            run_shell(scratch, std::string("$laminate ") + arguments + " > /dev/full");
        EXPECT_EQ(result.exit_code, 3) << arguments;
        EXPECT_EQ(result.err,
                  "laminate: error: standard output: cannot be written: No space left on device\n")
            << arguments;
    }
}

// A file system of a few pages: every verb that writes either succeeds or says one line and leaves
// nothing.
TEST(FullDisk, LeavesNothingAndIsSaid) {
    const ScratchDirectory scratch;
    std::filesystem::create_directory(scratch / "disk");
    const std::string on_disk = "unshare -m sh -c 'mount -t tmpfs -o size=$0 laminate " +
                                (scratch / "disk") + " && cd " + (scratch / "disk") + " && ";
    if (run_shell(scratch, on_disk + "true' 4k").exit_code != 0)
        GTEST_SKIP() << "no right to mount a file system of its own";
    for (const char* verb :
         {"compile zoo:l3net -o net", "explore zoo:l2net -o front", "zoo export mc-cnn -o net.onnx",
          "run 'zoo:mc-cnn?height=64&width=64' --output y.npy"}) {
        for (const char* size : {"16k", "64k"}) {
            const ProgramResult result =
                run_shell(scratch, on_disk + LAMINATE_PROGRAM +
                                       " \"$@\" --quiet; code=$?; test $code = 0 || test -z \"$(ls "
                                       "-A)\" || code=99; exit $code' " +
                                       size + " " + verb);
            EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 3)
                << verb << " on " << size << ": " << result.exit_code << " " << result.err;
            if (result.exit_code == 3) {
                EXPECT_EQ(lines_of(result.err), 1U) << verb << " on " << size << ": " << result.err;
                EXPECT_NE(result.err.find("No space left on device"), std::string::npos)
                    << verb << " on " << size << ": " << result.err;
            }
        }
    }
}

// The same without any right: files may not grow beyond a limit, so that a write fails wherever the
// limit falls.
TEST(FullDisk, InTheMiddleOfAFileLeavesNothingAndIsSaid) {
    if (test::is_thread_sanitized)
        GTEST_SKIP() << "the sanitizer begins with a file of its own, which may not grow either";
    const ScratchDirectory scratch;
    const std::string place = scratch / "disk";
    std::filesystem::create_directory(place);
    int refused = 0;
    // Limits in blocks of 512 bytes. The object that LLVM makes in memory is a file to the limit,
    // too: it must fit, what is made of it need not.
    std::vector<std::pair<std::string, std::vector<std::string>>> tries{
        {"compile zoo:l3net -o net", {"64"}},
        {"explore zoo:l2net -o front", {"1", "64"}},
        {"zoo export mc-cnn -o net.onnx", {"1", "64"}},
        {"run 'zoo:mc-cnn?height=64&width=64' --output y.npy", {"1"}}};
    // LLVM's OpenMP, which the sanitizers' builds have, shares memory by a file and ends the
    // program where it may not grow.
    if (test::is_sanitized) tries.pop_back();
    for (const auto& [verb, limits] : tries) {
        for (const std::string& blocks : limits) {
            const ProgramResult result =
                run_shell(scratch, "cd " + place + "; trap '' XFSZ; ulimit -f " + blocks +
                                       "; $laminate " + verb + " --quiet");
            EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 3)
                << verb << " within " << blocks << ": " << result.exit_code << " " << result.err;
            if (result.exit_code == 3) {
                ++refused;
                EXPECT_EQ(lines_of(result.err), 1U)
                    << verb << " within " << blocks << ": " << result.err;
                EXPECT_NE(result.err.find("File too large"), std::string::npos)
                    << verb << " within " << blocks << ": " << result.err;
                EXPECT_TRUE(std::filesystem::is_empty(place))
                    << verb << " within " << blocks << ": "
                    << std::filesystem::directory_iterator(place)->path();
            }
            std::filesystem::remove_all(place);
            std::filesystem::create_directory(place);
        }
    }
    EXPECT_GE(refused, 4);
}

TEST(FullDisk, OnADeviceIsSaid) {
    const ScratchDirectory scratch;
    for (const char* arguments :
         {"info zoo:l2net --json /dev/full", "zoo export l2net -o /dev/full"}) {
        const ProgramResult result = run_shell(scratch, std::string("$laminate ") + arguments);
        EXPECT_EQ(result.exit_code, 3) << arguments;
        EXPECT_EQ(result.err,
                  "laminate: error: /dev/full: cannot be written: No space left on device\n")
            << arguments;
    }
}

TEST(ReadOnlyDirectory, IsRefusedInOneLine) {
    const ScratchDirectory scratch;
    const std::string directory = scratch / "locked";
    std::filesystem::create_directory(directory);
    std::filesystem::permissions(
        directory, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    // Root may write everywhere unless it gives that up.
    const std::string unprivileged =
        ::geteuid() == 0 ? "setpriv --bounding-set -dac_override " : "";
    for (const char* verb : {"compile zoo:l2net -o ", "explore zoo:l2net -o ",
                             "zoo export l2net -o ", "run zoo:l2net --output "}) {
        const ProgramResult result =
            run_shell(scratch, unprivileged + "$laminate " + verb + directory + "/x.npy --quiet");
        EXPECT_EQ(result.exit_code, 3) << verb << result.err;
        EXPECT_EQ(lines_of(result.err), 1U) << result.err;
        EXPECT_NE(result.err.find("cannot be written"), std::string::npos) << result.err;
    }
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
    EXPECT_TRUE(std::filesystem::is_empty(directory));
}

/// Kills the program after some time, at other times in turn; afterwards `place` holds the whole
/// answer of an earlier run or is not there.
void kill_again_and_again(const ScratchDirectory& scratch, const std::string& verb,
                          const std::string& network, const std::string& proof) {
    const std::string place = scratch / "out";
    for (const int milliseconds : {20, 60, 120, 250, 450}) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::execl(LAMINATE_PROGRAM, "laminate", verb.c_str(), network.c_str(), "-o",
                    place.c_str(), "--quiet", "--json", "/dev/null", static_cast<char*>(nullptr));
            ::_exit(127);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        if (std::filesystem::exists(place)) {
            EXPECT_EQ(run_program(proof + place).exit_code, 0)
                << "half a directory after " << milliseconds << " ms";
        }
    }
    const ProgramResult next = run_program(verb + " " + network + " --quiet -o " + place);
    EXPECT_EQ(next.exit_code, 0) << next.err;
    EXPECT_EQ(run_program(proof + place).exit_code, 0);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch / "."),
                            std::filesystem::directory_iterator()),
              1)
        << "something was left beside the directory";
}

TEST(Killed, CompileLeavesTheWholeOrNothingAndTheNextOneWorks) {
    const ScratchDirectory scratch;
    kill_again_and_again(scratch, "compile", "zoo:l3net", "run ");
}

TEST(Killed, ExploreLeavesTheWholeOrNothingAndTheNextOneWorks) {
    const ScratchDirectory scratch;
    kill_again_and_again(scratch, "explore", "zoo:l3net", "report ");
}

// The first remark on progress says that the search is in its midst.
TEST(Interrupted, ExploreHandsOverWhatItFoundAndSaysThatItIsNotAll) {
    const ScratchDirectory scratch;
    const std::string place = scratch / "out", remarks = scratch / "remarks";
    const pid_t child = ::fork();
    if (child == 0) {
        if (std::freopen(remarks.c_str(), "w", stderr) == nullptr ||
            std::freopen("/dev/null", "w", stdout) == nullptr)
            ::_exit(127);
        ::execl(LAMINATE_PROGRAM, "laminate", "explore", "zoo:fsrcnn", "--tiles", "all", "-o",
                place.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    }
    for (int tries = 0; tries < 6000; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        if (std::filesystem::exists(remarks) &&
            read_file(remarks).find(" groups") != std::string::npos)
            break;
    }
    ::kill(child, SIGINT);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << status << ": " << read_file(remarks);
    EXPECT_NE(read_file(remarks).find("interrupted: the front of what was looked at so far"),
              std::string::npos);
    EXPECT_NE(read_file(place + "/front.json").find("\"complete\": false"), std::string::npos);
}

TEST(Interrupted, CompileAndExploreLeaveNothingBehind) {
    for (const auto& [verb, number] : {std::pair{"compile", SIGINT},
                                       {"compile", SIGTERM},
                                       {"explore", SIGTERM},
                                       {"explore", SIGHUP}}) {
        const ScratchDirectory scratch;
        const std::string place = scratch / "out";
        const pid_t child = ::fork();
        if (child == 0) {
            ::signal(number, SIG_DFL);
            if (std::freopen("/dev/null", "w", stderr) == nullptr ||
                std::freopen("/dev/null", "w", stdout) == nullptr)
                ::_exit(127);
            ::execl(LAMINATE_PROGRAM, "laminate", verb, "zoo:dmcnn-vd", "-o", place.c_str(),
                    static_cast<char*>(nullptr));
            ::_exit(127);
        }
        const std::string aside = place + ".partial-" + std::to_string(child);
        for (int tries = 0; tries < 6000 && !std::filesystem::exists(aside); ++tries)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::ofstream(aside + "/half_a_file") << "half";
        ::kill(child, number);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << verb << ": " << status;
        EXPECT_FALSE(std::filesystem::exists(aside)) << verb;
        EXPECT_FALSE(std::filesystem::exists(place)) << verb;
    }
}

TEST(Interrupted, AStreamedPictureLeavesNothingBehind) {
    const ScratchDirectory scratch;
    const std::string in = scratch / "in.pgm", out = scratch / "out.pgm";
    constexpr int64_t side = 5000;
    std::ofstream(in) << "P5\n"
                      << side << " " << side << "\n255\n"
                      << std::string(static_cast<size_t>(side * side), 'x');
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGTERM, SIG_DFL);
        if (std::freopen("/dev/null", "w", stderr) == nullptr ||
            std::freopen("/dev/null", "w", stdout) == nullptr)
            ::_exit(127);
        ::execl(LAMINATE_PROGRAM, "laminate", "run", "zoo:fsrcnn-x2", "--stream", "--input",
                in.c_str(), "--output", out.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    }
    const std::string aside = out + ".partial-" + std::to_string(child);
    for (int tries = 0; tries < 6000 && !std::filesystem::exists(aside); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(std::filesystem::exists(aside));
    ::kill(child, SIGTERM);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    EXPECT_FALSE(std::filesystem::exists(aside));
    EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(NobodyListens, ExitCodesSpeak) {
    const ScratchDirectory scratch;
    EXPECT_EQ(run_shell(scratch, "$laminate info nosuch.onnx 2>&-").exit_code, 3);
    EXPECT_EQ(run_shell(scratch, "$laminate zoo list 2>&-").exit_code, 0);
}

TEST(AnyBytes, InNamesOfFiles) {
    const ScratchDirectory scratch;
    const std::string file = scratch / "caf\xe9 \xe6\xa8\xa1.onnx", place = scratch / "d\xe9";
    ASSERT_EQ(run_program("zoo export l2net -o '" + file + "'").exit_code, 0);
    const ProgramResult result =
        run_program("explore '" + file + "' --tiles pow2 -o '" + place + "'");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(read_file(place + "/front.json").find("caf\xef\xbf\xbd \xe6\xa8\xa1.onnx"),
              std::string::npos);
}

TEST(NoName, OfADirectoryIsRefused) {
    const ProgramResult result = run_program("compile zoo:l2net -o ''");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.err, "laminate: error: \"\": expected a directory to write\n");
}

TEST(DamagedNetwork, IsRefusedBeforeItRuns) {
    const ScratchDirectory scratch;
    ASSERT_EQ(run_program("compile zoo:l2net --quiet -o " + (scratch / "net")).exit_code, 0);
    const std::string library = scratch / "net/libl2net.so", whole = read_file(library);
    for (const size_t length : {whole.size() - 1, whole.size() / 2, size_t{100}, size_t{0}}) {
        write_file_atomically(library, whole.substr(0, length));
        const ProgramResult result = run_program("run " + (scratch / "net"));
        EXPECT_EQ(result.exit_code, 3) << length;
        EXPECT_NE(
            result.err.find("is damaged or of another compilation: " + std::to_string(length) +
                            " bytes, expected " + std::to_string(whole.size())),
            std::string::npos)
            << result.err;
    }
    // One bit anywhere.
    for (const size_t at : {whole.size() / 5, whole.size() / 2, whole.size() - 1}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 4);
        write_file_atomically(library, changed);
        EXPECT_NE(run_program("run " + (scratch / "net")).err.find("its XXH64 is "),
                  std::string::npos)
            << at;
    }
    write_file_atomically(library, whole);
    EXPECT_EQ(run_program("run " + (scratch / "net") + " --quiet").exit_code, 0);
}

}  // namespace
}  // namespace laminate::cli
