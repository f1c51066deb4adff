// Compiled code that is kept between runs of the program, and what -v and --json say that each
// stage took.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

using Json = nlohmann::json;

/// The program with a cache of its own, which its tests otherwise have none of.
class Cache : public testing::Test {
protected:
    [[nodiscard]] ProgramResult run(const std::string& arguments) const {
        ::setenv("LAMINATE_CACHE", (scratch_ / "cache").c_str(), 1);
        const ProgramResult result = run_program(arguments);
        ::setenv("LAMINATE_CACHE", "off", 1);
        return result;
    }
    [[nodiscard]] Json seconds(const std::string& arguments) const {
        const ProgramResult result = run(arguments + " --json -");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return Json::parse(result.out).at("cpu_seconds");
    }

    ScratchDirectory scratch_;
};

TEST_F(Cache, TheSecondRunIsWarmAndWritesTheSameFile) {
    const auto file = [&](const std::string& options, const std::string& name) {
        const Json times =
            seconds("run zoo:l3net -q --output " + (scratch_ / name) + " " + options);
        for (const auto& group : times.at("groups")) {
            const bool is_warm = name == "warm.npy";
            EXPECT_EQ(group.at("cached"), is_warm && !group.at("equal")) << name << group;
            EXPECT_EQ(group.at("check").get<double>() == 0, is_warm) << name << group;
        }
        return read_file(scratch_ / name);
    };
    const std::string without = file("--no-cache", "without.npy");
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "cache"));
    EXPECT_EQ(file("", "cold.npy"), without);
    EXPECT_EQ(file("", "warm.npy"), without);
    EXPECT_EQ(file("--no-cache", "again.npy"), without);
}

TEST_F(Cache, CompileSharesItAndItsDirectoriesAreEqual) {
    const std::string several_groups = "compile zoo:l3net --layer-by-layer -q -o ";
    const Json cold = seconds(several_groups + (scratch_ / "cold"));
    const Json warm = seconds(several_groups + (scratch_ / "warm"));
    EXPECT_FALSE(cold.at("groups").at(0).at("cached"));
    EXPECT_TRUE(warm.at("groups").at(0).at("cached"));
    for (const char* name : {"libl3net.so", "libl3net.a", "l3net.h", "schedule.json"})
        EXPECT_EQ(read_file(scratch_ / ("cold/" + std::string(name))),
                  read_file(scratch_ / ("warm/" + std::string(name))))
            << name;
    EXPECT_TRUE(
        seconds("run zoo:l3net --layer-by-layer -q").at("groups").at(0).at("cached"));
}

TEST_F(Cache, EveryStageHasItsSeconds) {
    const Json times = seconds("compile zoo:l3net -q -o " + (scratch_ / "net"));
    for (const char* stage : {"import", "planning", "halide", "llvm", "check", "libraries", "session"})
        EXPECT_GE(times.at(stage).get<double>(), 0) << stage;
    EXPECT_GT(times.at("llvm"), 0);
    EXPECT_GT(times.at("libraries"), 0);
    double llvm = 0;
    for (const auto& group : times.at("groups")) llvm += group.at("llvm").get<double>();
    EXPECT_NEAR(llvm, times.at("llvm").get<double>(), 1e-9);
    const ProgramResult told = run("run zoo:l3net -v --no-cache");
    EXPECT_NE(told.err.find("CPU seconds: import "), std::string::npos) << told.err;
    EXPECT_NE(told.err.find("conv1 .. conv3: Halide "), std::string::npos) << told.err;
}

TEST_F(Cache, ShowAndClear) {
    const auto entries = [&](const std::string& verb) {
        const ProgramResult result = run("cache " + verb + " --json -");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        const Json answer = Json::parse(result.out);
        EXPECT_EQ(answer.at("directory"), scratch_ / "cache");
        return answer.at("entries").get<int>();
    };
    EXPECT_EQ(entries("show"), 0);
    ASSERT_EQ(run("run zoo:l3net -q").exit_code, 0);
    const int kept = entries("show");
    EXPECT_GE(kept, 2);
    EXPECT_NE(run("cache show").out.find("cache: holds " + std::to_string(kept) + " entries, "),
              std::string::npos);
    EXPECT_EQ(entries("clear"), kept);
    EXPECT_EQ(entries("show"), 0);
    EXPECT_FALSE(seconds("run zoo:l3net -q").at("groups").at(0).at("cached"));
}

TEST_F(Cache, WhereNothingCanBeKeptOneLineSaysSoAndTheRunGoesOn) {
    std::ofstream(scratch_ / "cache") << "a file";
    const ProgramResult result = run("run zoo:l3net --output " + (scratch_ / "y.npy"));
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(std::filesystem::exists(scratch_ / "y.npy"));
    EXPECT_NE(result.err.find("laminate: cache " + (scratch_ / "cache") +
                              ": is a file, expected a directory of this user's alone; nothing is "
                              "kept\n"),
              std::string::npos)
        << result.err;
}

TEST_F(Cache, WithoutAPlaceForItThereIsNone) {
    ::setenv("LAMINATE_CACHE", "off", 1);
    const ProgramResult show = run_program("cache show");
    EXPECT_EQ(run_program("run zoo:l3net -q").exit_code, 0);
    EXPECT_EQ(show.exit_code, 3);
    EXPECT_NE(show.err.find("no cache: LAMINATE_CACHE is off"), std::string::npos) << show.err;
}

}  // namespace
}  // namespace laminate::cli
