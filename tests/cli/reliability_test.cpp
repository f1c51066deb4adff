// Trouble outside the program: full disks, read-only directories, kills, damaged files, limits
// (docs/reliability.md).
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/files.h"
#include "nets/onnx/onnx.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

/// Runs a shell command that calls $laminate; returns its exit code and stderr.
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

// On a file system of a few pages every verb that writes succeeds, or prints one line and leaves
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

// The same without the right to mount: a limit on file sizes makes a write fail at any point.
TEST(FullDisk, InTheMiddleOfAFileLeavesNothingAndIsSaid) {
    if (test::is_thread_sanitized)
        GTEST_SKIP() << "the sanitizer begins with a file of its own, which may not grow either";
    const ScratchDirectory scratch;
    const std::string place = scratch / "disk";
    std::filesystem::create_directory(place);
    int refused = 0;
    // Limits in blocks of 512 bytes. The object file that LLVM makes in memory counts as a file and
    // must fit; the files made from it need not.
    std::vector<std::pair<std::string, std::vector<std::string>>> tries{
        {"compile zoo:l3net -o net", {"64"}},
        {"explore zoo:l2net -o front", {"1", "64"}},
        {"zoo export mc-cnn -o net.onnx", {"1", "64"}},
        {"run 'zoo:mc-cnn?height=64&width=64' --output y.npy", {"1"}}};
    // LLVM's OpenMP, which builds with sanitizers use, shares memory through a file and ends the
    // program when the file may not grow.
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
    // Root may write everywhere unless it drops that capability.
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

/// Kills the program after different times. Afterwards `place` holds the whole answer of an earlier
/// run or does not exist.
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

// Issue 26, 6. A person interrupts; `timeout` and batch systems send SIGTERM.
TEST(Interrupted, ExploreHandsOverWhatItFoundAndSaysThatItIsNotAll) {
    for (const int number : {SIGINT, SIGTERM}) {
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
        // The first remark on progress shows that the search is under way.
        for (int tries = 0; tries < 6000; ++tries) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            if (std::filesystem::exists(remarks) &&
                read_file(remarks).find(" group ") != std::string::npos)
                break;
        }
        ::kill(child, number);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
            << status << ": " << read_file(remarks);
        EXPECT_NE(read_file(remarks).find("interrupted: the front of what was looked at so far"),
                  std::string::npos);
        EXPECT_NE(read_file(place + "/front.json").find("\"complete\": false"), std::string::npos);
    }
}

TEST(Interrupted, CompileAndExploreLeaveNothingBehind) {
    for (const auto& [verb, number] :
         {std::pair{"compile", SIGINT}, {"compile", SIGTERM}, {"explore", SIGHUP}}) {
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

// Issue 26, 7. Each publishes over what the others have published since it began.
TEST(SameDirectory, SeveralCompilationsLeaveTheFilesOfOne) {
    const ScratchDirectory scratch;
    const std::string place = scratch / "net";
    std::filesystem::create_directory(place);
    const ProgramResult result = run_shell(
        scratch, "for name in a b c d; do $laminate compile zoo:l2net --quiet --name $name -o " +
                     place + " & done; wait");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const auto manifest = nlohmann::json::parse(read_file(place + "/manifest.json"));
    const std::string winner = manifest.at("library").get<std::string>();
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(place))
        found.insert(entry.path().filename().string());
    EXPECT_EQ(found, (std::set<std::string>{"lib" + winner + ".a", "lib" + winner + ".so",
                                            winner + ".h", "manifest.json", "schedule.json"}));
    EXPECT_EQ(run_program("run " + place + " --quiet").exit_code, 0);
}

// Issue 26, 10. JSON of a million brackets: values as deep as that overflow the stack when they are
// copied, compared or printed.
TEST(DeepJson, IsRefusedInOneLine) {
    const ScratchDirectory scratch;
    const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
    ASSERT_EQ(run_program("explore zoo:l2net --tiles pow2 -q -o " + (scratch / "front")).exit_code,
              0);
    std::filesystem::create_directory(scratch / "compiled");
    const std::string file = scratch / "deep.json";
    for (const std::string& json :
         {deep, std::string(2'000'000, '['),
          R"({"schema": "laminate.machine", "version": )" + deep + "}",
          R"({"schema": "laminate.front", "points": [], "version": )" + deep + "}",
          R"({"schema": "laminate.validate", "structure_hash": )" + deep + "}"}) {
        write_file_atomically(file, json);
        write_file_atomically(scratch / "compiled/manifest.json", json);
        for (const std::string& command :
             {"machine check " + file, "machine show " + file, "explore " + file + " -o out",
              "show --net zoo:l2net " + file, "cost zoo:l2net --schedule " + file,
              "validate zoo:l2net --front " + file, "report " + file,
              "report " + (scratch / "front") + " --measured " + file,
              "info " + (scratch / "compiled")}) {
            const ProgramResult result = run_program(command);
            EXPECT_EQ(result.exit_code, 3) << command << ": " << json.substr(0, 40);
            EXPECT_EQ(lines_of(result.err), 1U) << command << ": " << result.err.substr(0, 200);
        }
    }
}

// Issue 26, 10. Halide walks expressions by recursion.
TEST(SmallStack, IsEnough) {
    const ScratchDirectory scratch;
    for (const std::string& command :
         {"compile zoo:l3net --quiet -o " + (scratch / "net"), "run " + (scratch / "net -q"),
          std::string("validate zoo:l2net --random 2 -q --threads 2")}) {
        const ProgramResult result = run_shell(scratch, "ulimit -s 64; $laminate " + command);
        EXPECT_EQ(result.exit_code, 0) << command << ": " << result.err;
    }
}

// Issue 26, 10. Outputs of more than 2^31 elements, 8 GiB, do not fit in 3 GiB of addresses.
TEST(AddressSpace, ALimitIsMemoryThatIsNotThere) {
    if (test::is_sanitized) GTEST_SKIP() << "the sanitizer's shadow takes more";
    const ScratchDirectory scratch;
    const ProgramResult result = run_shell(
        scratch,
        "ulimit -v 3000000; $laminate run 'zoo:fsrcnn?height=24000&width=24000' --threads 1");
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_EQ(lines_of(result.err), 1U) << result.err;
    EXPECT_NE(result.err.find(" of memory that are available"), std::string::npos) << result.err;
}

// Issue 26, 10. CPU seconds, which other programs do not use up; work that grows with the square of
// the layers would take them.
TEST(ManyLayers, AreReadAndListedSoon) {
    if (test::is_sanitized) GTEST_SKIP() << "the sanitizer takes more";
    const ScratchDirectory scratch;
    Network network;
    network.name = "relus";
    network.tensors = {{"x", {1, 4, 8, 8}}};
    network.inputs = {0};
    for (int k = 0; k < 50'000; ++k) {
        Layer relu{.kind = LayerKind::activation, .inputs = {k}, .output = k + 1};
        relu.name = relu.onnx_name = "relu" + std::to_string(k);
        relu.activation.kind = ActivationKind::relu;
        network.tensors.push_back({"t" + std::to_string(k), {1, 4, 8, 8}});
        network.layers.push_back(std::move(relu));
    }
    network.outputs = {50'000};
    save_onnx(network, scratch / "relus.onnx");
    for (const std::string verb : {"info ", "run --quiet "}) {
        const ProgramResult result =
            run_shell(scratch, "ulimit -t 20; $laminate " + verb + (scratch / "relus.onnx"));
        EXPECT_EQ(result.exit_code, 0) << verb << result.err;
    }
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
    // One bit at different places.
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
