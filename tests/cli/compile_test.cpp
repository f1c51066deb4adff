// The verb `compile`: its directory runs, appears whole or not at all, and replaces only a
// directory of the same kind.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "nets/operators/reference_operators.h"
#include "nets/zoo/zoo.h"
#include "runtime/session.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

const std::string data = LAMINATE_EXAMPLE_DATA;

/// Names in a directory; a compiled one has exactly five.
std::vector<std::string> names_in(const std::string& directory) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

TEST(Compile, TheDirectoryHoldsFiveFilesAndRunsInASession) {
    const ScratchDirectory scratch;
    const ProgramResult result =
        run_program("compile zoo:l3net --name small -o " + (scratch / "net"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(names_in(scratch / "net"),
              (std::vector<std::string>{"libsmall.a", "libsmall.so", "manifest.json",
                                        "schedule.json", "small.h"}));
    EXPECT_EQ(names_in(scratch / ".").size(), 1U) << "something was left beside the directory";

    const Network network = zoo_network("l3net");
    Session session = Session::open(std::filesystem::path(scratch / "net"));
    std::vector<float> x(static_cast<size_t>(element_count(session.inputs()[0].dims)));
    for (size_t n = 0; n < x.size(); ++n)
        x[n] = static_cast<float>(static_cast<int>(n * 5 % 17) - 8);
    std::vector<float> y(static_cast<size_t>(element_count(session.outputs()[0].dims)));
    session.run({x.data()}, {y.data()});
    const std::vector<float> expected = run_reference_network(network, {x})[0];
    for (size_t n = 0; n < y.size(); ++n)
        ASSERT_NEAR(y[n], expected[n], 1e-4F * (1 + std::abs(expected[n]))) << "element " << n;
}

TEST(Compile, ADirectoryRunsByTheVerbRunLikeTheNetworkItself) {
    const ScratchDirectory scratch;
    const std::string size = " --height 150 --width 225";
    ASSERT_EQ(run_program("compile " + data + "/fsrcnn_x2.onnx" + size + " -o " + (scratch / "net"))
                  .exit_code,
              0);
    const std::string input = " --input " + data + "/chelsea_half.png --output ";
    ASSERT_EQ(run_program("run " + (scratch / "net") + input + (scratch / "a.png")).exit_code, 0);
    ASSERT_EQ(
        run_program("run " + data + "/fsrcnn_x2.onnx" + input + (scratch / "b.png")).exit_code, 0);
    EXPECT_EQ(read_file(scratch / "a.png"), read_file(scratch / "b.png"));
}

TEST(Compile, WhatMemoryDoesNotHoldIsRefused) {
    const ScratchDirectory scratch;
    const ProgramResult result =
        run_program("compile 'zoo:fsrcnn?height=131072&width=131072' -o " + (scratch / "net"));
    EXPECT_EQ(result.exit_code, 4) << result.err;
    EXPECT_NE(result.err.find("fsrcnn: checking the code of the group of"), std::string::npos)
        << result.err;
    EXPECT_FALSE(std::filesystem::exists(scratch / "net"));
}

TEST(Compile, InfoSaysWhatADirectoryIsAndWhetherItIsWhole) {
    const ScratchDirectory scratch;
    const std::string place = scratch / "net";
    const ProgramResult made = run_program("compile zoo:l3net -q --json - -o " + place);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(nlohmann::json::parse(made.out).at("replaced_groups"), nlohmann::json::array());
    const auto answer = [&] {
        return nlohmann::json::parse(run_program("info " + place + " --json -").out);
    };
    const nlohmann::json whole = answer();
    EXPECT_EQ(whole["network"], "l3net");
    EXPECT_EQ(whole["network_hash"], network_hash(zoo_network("l3net")));
    EXPECT_EQ(whole["inputs"][0]["dims"], zoo_network("l3net").tensors[0].dims);
    EXPECT_EQ(whole["library_state"], "whole");
    EXPECT_TRUE(whole["cpu_features_missing"].empty());
    EXPECT_EQ(whole.at("replaced_groups"), nlohmann::json::array());
    std::vector<std::string> layers;
    for (const auto& step : whole["steps"])
        for (const auto& layer : step["layers"]) layers.push_back(layer);
    EXPECT_EQ(layers, (std::vector<std::string>{"conv1", "conv2", "conv3"}));

    const std::string library = read_file(place + "/libl3net.so");
    write_file_atomically(place + "/libl3net.so", library.substr(0, library.size() - 1));
    EXPECT_EQ(answer()["library_state"], "damaged or of another compilation");
    std::filesystem::remove(place + "/libl3net.so");
    const ProgramResult text = run_program("info " + place);
    EXPECT_NE(text.out.find("libl3net.so: missing\n"), std::string::npos) << text.out;

    // Code for another machine is described too.
    std::string manifest = read_file(place + "/manifest.json");
    const size_t list = manifest.find('[', manifest.find("\"cpu_features\""));
    write_file_atomically(place + "/manifest.json", manifest.insert(list + 1, "\"sve9\", "));
    EXPECT_EQ(answer()["cpu_features_missing"], nlohmann::json{"sve9"});
    const ProgramResult run = run_program("info " + (scratch / "."));
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_NE(run.err.find("is a directory without manifest.json, expected a network or what "
                           "laminate compile wrote"),
              std::string::npos)
        << run.err;
}

TEST(Compile, WhereANetworkIsWantedACompiledDirectoryIsCalledByItsName) {
    const ScratchDirectory scratch;
    ASSERT_EQ(run_program("compile zoo:l2net -q -o " + (scratch / "net")).exit_code, 0);
    for (const std::string& verb :
         std::vector<std::string>{"validate ", "explore -o " + (scratch / "front "),
                                  "compile -o " + (scratch / "again ")}) {
        const ProgramResult result = run_program(verb + (scratch / "net"));
        EXPECT_EQ(result.exit_code, 3) << verb;
        EXPECT_NE(
            result.err.find(
                "is a compiled directory, expected the network that it was compiled from, an .onnx or "
                ".param file or a zoo name"),
            std::string::npos)
            << verb << result.err;
    }
}

TEST(Compile, ATargetThatCodeCannotBeMadeForIsRefused) {
    const ScratchDirectory scratch;
    const auto refused = [&](const std::string& target) {
        const ProgramResult result =
            run_program("compile zoo:l2net -q --target " + target + " -o " + (scratch / "net"));
        EXPECT_EQ(result.exit_code, 3) << target;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        EXPECT_TRUE(scratch.is_empty()) << target;
        return result.err;
    };
    EXPECT_EQ(refused("x86-32-linux"),
              "laminate: error: target \"x86-32-linux\" has addresses of 32 bits, expected 64\n");
    EXPECT_NE(refused("arm-64-linux-sve2").find("has vectors of no fixed width"),
              std::string::npos);
    EXPECT_NE(refused("arm-64-linux-vector_bits_256").find("has vectors of no fixed width"),
              std::string::npos);
    EXPECT_NE(refused("riscv-64-linux").find("is of an architecture without kernels"),
              std::string::npos);
}

TEST(Compile, ToolsOfAnotherProcessorAreRefusedBeforeTheWork) {
    const ScratchDirectory scratch;
    // Compiling this network would take far longer than the test may.
    const auto start = std::chrono::steady_clock::now();
    const ProgramResult result =
        run_program("compile zoo:resnet18 --target arm-64-linux -o " + (scratch / "net"));
    if (result.exit_code == 0) GTEST_SKIP() << "cc is for arm-64";
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.err.find("laminate: error: cc -shared: failed: "), 0U) << result.err;
    EXPECT_NE(result.err.find("trial.o"), std::string::npos)
        << "not the linker's reason: " << result.err;
    EXPECT_NE(result.err.find("; expected tools for target arm-64-linux: --cc, --ar\n"),
              std::string::npos)
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(scratch.is_empty());
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(test::is_sanitized ? 600 : 20));
}

TEST(Compile, TheHeaderStandsAloneInC) {
    const ScratchDirectory scratch;
    ASSERT_EQ(run_program("compile zoo:l2net -o " + (scratch / "net")).exit_code, 0);
    std::ofstream(scratch / "main.c")
        << "#include \"net/l2net.h\"\n"
           "int main(void) {\n"
           "    const int64_t dims[L2NET_INPUT0_RANK] = L2NET_INPUT0_DIMS;\n"
           "    return !(l2net_network.abi_version == LAMINATE_ABI_VERSION && "
           "l2net_network.group_count >= 1 &&\n"
           "             dims[1] == 3 && L2NET_INPUT0_ELEMENTS == 3 * 20 * 20 && "
           "L2NET_OUTPUT0_ELEMENTS == 4 * 16 * 16 "
           "&&\n"
           "             (uintptr_t)l2net_network.constants % 64 == 0);\n"
           "}\n";
    const std::string command =
        "cd " + (scratch / ".") +
        " && cc -std=c99 -Wall -Wextra -Werror main.c net/libl2net.a -lm -o main && ./main";
    EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Compile, ADirectoryThatLaminateMadeIsReplacedAndAnyOtherIsRefused) {
    const ScratchDirectory scratch;
    ASSERT_EQ(run_program("compile zoo:l2net -o " + (scratch / "net")).exit_code, 0);
    ASSERT_EQ(run_program("compile zoo:l3net -o " + (scratch / "net")).exit_code, 0);
    EXPECT_EQ(nlohmann::json::parse(read_file(scratch / "net/manifest.json")).at("library"),
              "l3net");
    EXPECT_FALSE(std::filesystem::exists(scratch / "net/libl2net.a"));

    std::filesystem::create_directory(scratch / "other");
    std::ofstream(scratch / "other/mine.txt") << "precious";
    const ProgramResult refused = run_program("compile zoo:l2net -o " + (scratch / "other"));
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_NE(refused.err.find("other: is not empty and was not made by laminate compile"),
              std::string::npos)
        << refused.err;
    EXPECT_EQ(names_in(scratch / "other"), (std::vector<std::string>{"mine.txt"}));
    EXPECT_EQ(names_in(scratch / "."), (std::vector<std::string>{"net", "other"}));
}

TEST(Compile, AFailureLeavesNothingAndOneLine) {
    const ScratchDirectory scratch;
    const auto expect_refused = [&](const std::string& options, int exit_code,
                                    const std::string& message) {
        const ProgramResult result =
            run_program("compile zoo:l2net -o " + (scratch / "net") + " " + options);
        EXPECT_EQ(result.exit_code, exit_code) << result.err;
        EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        EXPECT_TRUE(scratch.is_empty()) << options;
    };
    expect_refused("--memory 256", 4,
                   "no schedule fits in 256 B; the smallest budget that works is ");
    expect_refused("--cc no-such-compiler", 3, "no-such-compiler: cannot be run: ");
    expect_refused(
        "--ar false", 3,
        "false rcsD: failed: no reason given; expected tools for target host: --cc, --ar");
    expect_refused("--target z80", 3, "target \"z80\" is not known");
    expect_refused("--name 2fast", 3, "name \"2fast\" is no identifier");
}

}  // namespace
}  // namespace laminate::cli
