// Lists of jobs, and their outcomes for every way to run them: cli/sweep.h.
#include "cli/sweep.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

std::string list(const std::string& sweeps) {
    return R"({"schema": "laminate.jobs", "version": 1, "name": "test", "sweeps": [)" + sweeps +
           "]}";
}

std::string refusal(const std::string& text) {
    try {
        (void)sweep_jobs(text, "jobs.json");
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(SweepJobs, AreAllNetworksTimesMachinesTimesBudgets) {
    const auto jobs =
        sweep_jobs(list(R"({"networks": ["zoo:l2net", "a/b.onnx"], "machines": ["m.json"],
                 "memory": ["1KiB", "2KiB"], "arguments": ["--max-depth=2"]})"),
                   "jobs.json");
    ASSERT_EQ(jobs.size(), 4U);  // 2 x 1 x 2
    EXPECT_EQ(jobs[3].arguments, (std::vector<std::string>{"a/b.onnx", "--machine=m.json",
                                                           "--memory=2KiB", "--max-depth=2"}));
    EXPECT_EQ(jobs[0].id.substr(0, 6), "l2net-");
    EXPECT_EQ(jobs[3].id.substr(0, 2), "b-");
}

TEST(SweepJobs, KeepTheirNamesWhenTheListGrowsAndOccurOnce) {
    const auto one = sweep_jobs(list(R"({"networks": ["zoo:l3net"]})"), "jobs.json");
    const auto more =
        sweep_jobs(list(R"({"networks": ["zoo:l2net", "zoo:l3net"]}, {"networks": ["zoo:l3net"]})"),
                   "jobs.json");
    ASSERT_EQ(more.size(), 2U);
    EXPECT_EQ(more[1].id, one[0].id);
}

TEST(SweepJobs, AWrongListIsRefusedByName) {
    EXPECT_EQ(refusal("{"), "jobs.json: found no JSON, expected a JSON object");
    EXPECT_NE(refusal(list("")).find("sweeps"), std::string::npos);
    EXPECT_EQ(refusal(list(R"({"networks": []})")),
              "jobs.json: sweeps[0]: networks: found none, expected at least one");
    EXPECT_EQ(refusal(list(R"({"networks": ["zoo:l2net"], "budget": ["1KiB"]})"))
                  .find("jobs.json: sweeps[0]: unknown key \"budget\""),
              0U);
    EXPECT_NE(refusal(list(R"({"networks": ["zoo:l2net"], "arguments": ["-o", "x"]})"))
                  .find("options of explore without -o"),
              std::string::npos);
}

class SweepTest : public ::testing::Test {
protected:
    // l3net within 1 KiB has schedules, within 16 bytes none: 3 jobs, one of them infeasible.
    SweepTest() {
        write_file_atomically(
            scratch_ / "jobs.json",
            list(
                R"({"networks": ["zoo:l2net"]}, {"networks": ["zoo:l3net"], "memory": ["16B", "1KiB"]})"));
    }
    [[nodiscard]] std::string command(const std::string& directory) const {
        return "sweep " + (scratch_ / "jobs.json") + " -o " + (scratch_ / directory);
    }
    [[nodiscard]] std::string merged(const std::string& directory) const {
        return read_file(scratch_ / (directory + "/sweep.json")) +
               read_file(scratch_ / (directory + "/sweep.csv"));
    }
    ScratchDirectory scratch_;
};

TEST_F(SweepTest, GivesEveryJobAnOutcomeAndInfeasibleIsOne) {
    const ProgramResult result = run_program(command("out") + " --processes 2");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(read_file(scratch_ / "out/sweep.json"));
    ASSERT_EQ(answer.at("jobs").size(), 3U);
    EXPECT_EQ(answer["jobs"][0]["exit_code"], 0);
    EXPECT_EQ(answer["jobs"][1]["exit_code"], 4);
    EXPECT_NE(answer["jobs"][1]["message"].get<std::string>().find("no schedule fits in 16 B"),
              std::string::npos);
    // The job's own answer is that of explore alone.
    const std::string id = answer["jobs"][0]["id"];
    ASSERT_EQ(run_program("explore zoo:l2net -o " + (scratch_ / "alone")).exit_code, 0);
    EXPECT_EQ(read_file(scratch_ / ("out/" + id + "/front.json")),
              read_file(scratch_ / "alone/front.json"));
    // One line of CSV per schedule of the two that have some, and the head.
    const std::string csv = read_file(scratch_ / "out/sweep.csv");
    EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')),
              1 + answer["jobs"][0]["schedules"].get<size_t>() +
                  answer["jobs"][2]["schedules"].get<size_t>());
}

TEST_F(SweepTest, ItsDirectoryIsNoFrontButThoseOfItsJobsAre) {
    ASSERT_EQ(run_program(command("d")).exit_code, 0);
    const auto answer = nlohmann::json::parse(read_file(scratch_ / "d/sweep.json"));
    std::vector<std::string> fronts;  // one job of the three has none
    for (const auto& job : answer.at("jobs")) {
        if (job.contains("schedules"))
            fronts.push_back(scratch_ / ("d/" + job.at("id").get<std::string>()));
    }
    ASSERT_EQ(fronts.size(), 2U);
    const std::string whole = scratch_ / "d";
    for (const std::string& arguments :
         {"report " + whole, "validate zoo:l2net --front " + whole}) {
        const ProgramResult result = run_program(arguments);
        EXPECT_EQ(result.exit_code, 3);
        EXPECT_EQ(result.err,
                  "laminate: error: " + whole +
                      ": has no front.json, expected the directory of one front, such as " +
                      std::min(fronts[0], fronts[1]) + "\n");
    }
    for (const std::string& front : fronts) {
        std::filesystem::remove(front + "/report.html");
        const ProgramResult result = run_program("report " + front);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_TRUE(std::filesystem::exists(front + "/report.html"));
    }
}

TEST_F(SweepTest, ADirectoryOfSomethingElseIsLeftAlone) {
    std::filesystem::create_directories(scratch_ / "other");
    write_file_atomically(scratch_ / "other/photograph.txt", "holiday");
    const ProgramResult result = run_program(command("other"));
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("other: is not empty and was not made by laminate sweep"),
              std::string::npos)
        << result.err;
    std::filesystem::remove(scratch_ / "other/photograph.txt");
    EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "other"));
}

TEST_F(SweepTest, TwoProcessesOnOneDirectoryGiveTheSame) {
    ASSERT_EQ(run_program(command("one") + " --processes 1").exit_code, 0);
    // As mpirun starts them: the second one merges nothing.
    const std::string program =
        std::string(LAMINATE_PROGRAM) + " " + command("two") + " --processes 1 --quiet";
    const std::string both = "OMPI_COMM_WORLD_RANK=1 " + program + " > " + (scratch_ / "second") +
                             " & OMPI_COMM_WORLD_RANK=0 " + program + " > " + (scratch_ / "first") +
                             "; first=$?; wait $!; exit $((first + $?))";
    ASSERT_EQ(std::system(both.c_str()), 0);
    EXPECT_EQ(merged("two"), merged("one"));
    EXPECT_EQ(read_file(scratch_ / "second"), "");
    EXPECT_NE(read_file(scratch_ / "first").find("3 jobs; all in "), std::string::npos);
}

TEST_F(SweepTest, ExploreOfAListIsTheSame) {
    ASSERT_EQ(run_program(command("swept")).exit_code, 0);
    const std::string explore =
        "explore " + (scratch_ / "jobs.json") + " -o " + (scratch_ / "explored");
    const ProgramResult result = run_program(explore);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(merged("explored"), merged("swept"));

    const ProgramResult options = run_program(explore + " --tiles all");
    EXPECT_EQ(options.exit_code, 2);
    EXPECT_NE(options.err.find("--tiles: "), std::string::npos) << options.err;
    EXPECT_NE(options.err.find("is a list of jobs, which brings its own options"),
              std::string::npos)
        << options.err;
    EXPECT_EQ(run_program("explore " + (scratch_ / "jobs.json")).exit_code, 2);
}

/// Open MPI as root, in a container, with more processes than cores.
std::string mpirun(int processes) {
    return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np " +
           std::to_string(processes) + " ";
}
bool has_mpirun() { return std::system("mpirun --version > /dev/null 2> /dev/null") == 0; }

TEST_F(SweepTest, UnderMpirunIsTheSame) {
    if (!has_mpirun()) GTEST_SKIP() << "no mpirun";
    ASSERT_EQ(run_program(command("one")).exit_code, 0);
    const std::string explore = std::string(LAMINATE_PROGRAM) + " explore " +
                                (scratch_ / "jobs.json") + " -o " + (scratch_ / "two");
    ASSERT_EQ(
        std::system((mpirun(2) + explore + " > " + (scratch_ / "said") + " 2> /dev/null").c_str()),
        0);
    EXPECT_EQ(merged("two"), merged("one"));
    // Only one of them prints.
    const std::string said = read_file(scratch_ / "said");
    EXPECT_NE(said.find("3 jobs; all in "), std::string::npos) << said;
    EXPECT_EQ(said.find("3 jobs; all in "), said.rfind("3 jobs; all in ")) << said;
}

TEST(ExploreOfOneNetwork, UnderMpirunIsTheSame) {
    if (!has_mpirun()) GTEST_SKIP() << "no mpirun";
    const ScratchDirectory scratch;
    const std::string explore = "explore zoo:l3net --max-depth 2 -o ";
    const ProgramResult alone = run_program(explore + (scratch / "front"));
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    const std::string front = read_file(scratch / "front/front.json");
    std::filesystem::remove_all(scratch / "front");
    ASSERT_EQ(std::system((mpirun(2) + LAMINATE_PROGRAM + " " + explore + (scratch / "front") +
                           " > " + (scratch / "said") + " 2> /dev/null")
                              .c_str()),
              0);
    EXPECT_EQ(read_file(scratch / "front/front.json"), front);
    EXPECT_EQ(read_file(scratch / "said"), alone.out);
}

// The same by hand, as launchers other than Open MPI start processes: only the first process of
// each command explores.
TEST(ExploreOfOneNetwork, IsDoneByTheFirstProcessOfACommand) {
    const ScratchDirectory scratch;
    const std::string explore = std::string(LAMINATE_PROGRAM) +
                                " explore zoo:l2net --max-depth 1 -o " + (scratch / "front") +
                                " > " + (scratch / "said") + " 2> " + (scratch / "remarks");
    for (const char* second :
         {"OMPI_COMM_WORLD_RANK=1 OMPI_FIRST_RANKS=0 ", "PMI_RANK=3 ", "SLURM_PROCID=1 "}) {
        ASSERT_EQ(std::system((second + explore).c_str()), 0) << second;
        EXPECT_FALSE(std::filesystem::exists(scratch / "front")) << second;
        EXPECT_EQ(read_file(scratch / "said"), "") << second;
        EXPECT_NE(read_file(scratch / "remarks")
                      .find("one network is explored by the first process alone"),
                  std::string::npos)
            << second;
    }
    for (const char* first : {"PMI_RANK=0 ", "OMPI_COMM_WORLD_RANK=2 OMPI_FIRST_RANKS='0 2' "}) {
        ASSERT_EQ(std::system((first + explore).c_str()), 0) << first;
        EXPECT_TRUE(std::filesystem::exists(scratch / "front/front.json")) << first;
        std::filesystem::remove_all(scratch / "front");
    }
}

TEST_F(SweepTest, GoesOnAfterAKill) {
    // The last job takes seconds: the kill comes before its end.
    write_file_atomically(scratch_ / "jobs.json", list(R"({"networks": ["zoo:l2net"]},
                {"networks": ["zoo:fsrcnn"], "arguments": ["--max-depth=2", "--tiles=pow2"]})"));
    ASSERT_EQ(run_program(command("whole") + " --processes 1").exit_code, 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const std::string jobs = scratch_ / "jobs.json", out = scratch_ / "killed";
        ::execl(LAMINATE_PROGRAM, "laminate", "sweep", jobs.c_str(), "-o", out.c_str(),
                "--processes", "1", "--quiet", static_cast<char*>(nullptr));
        ::_exit(127);
    }
    // Midway: the first job has its outcome, and the last has begun.
    const auto outcomes = [&] {
        size_t count = 0;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "killed", error))
            count += entry.path().extension() == ".json";
        return count;
    };
    for (int tries = 0; outcomes() == 0 && tries < 6000; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "killed/sweep.json"));
    const ProgramResult result = run_program(command("killed") + " --processes 1");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(merged("killed"), merged("whole"));
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "killed"))
        EXPECT_EQ(entry.path().string().find(".partial-"), std::string::npos) << entry.path();
}

/// Starts the program in its own process group, as a shell does.
pid_t started(const std::vector<std::string>& words, const std::string& said) {
    const pid_t child = ::fork();
    if (child != 0) {
        ::setpgid(child, child);
        return child;
    }
    ::setpgid(0, 0);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    if (std::freopen(said.c_str(), "w", stderr) == nullptr) ::_exit(126);
    ::execv(LAMINATE_PROGRAM, arguments.data());
    ::_exit(127);
}

bool appears(const std::string& file, const std::string& text) {
    for (int tries = 0; tries < 6000; ++tries) {
        std::error_code error;
        if (std::filesystem::exists(file, error) && read_file(file).find(text) != std::string::npos)
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

// Issue 26, 6: a job under way hands over its front, but has no outcome.
TEST_F(SweepTest, AnInterruptEndsItsJobsAndItAndSaysHowToGoOn) {
    for (const int number : {SIGINT, SIGTERM}) {
        write_file_atomically(scratch_ / "jobs.json", list(R"({"networks": ["zoo:l2net"]},
                    {"networks": ["zoo:fsrcnn"], "arguments": ["--max-depth=5", "--tiles=pow2"]})"));
        const std::string second = sweep_jobs(read_file(scratch_ / "jobs.json"), "jobs.json")[1].id;
        const pid_t child = started({"laminate", "sweep", scratch_ / "jobs.json", "-o",
                                     scratch_ / "out", "--processes", "1"},
                                    scratch_ / "said");
        ASSERT_TRUE(appears(scratch_ / ("out/" + second + ".log"), " group "));
        ::kill(-child, number);  // as terminals and batch systems do: all of the group
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
        const std::string said = read_file(scratch_ / "said");
        EXPECT_NE(said.find("\nlaminate: interrupted; 1 of 2 jobs are done, 1 wrote what they had "
                            "found; the same command goes on from here\n"),
                  std::string::npos)
            << said;
        EXPECT_EQ(said.find("error"), std::string::npos) << said;
        const auto front =
            nlohmann::json::parse(read_file(scratch_ / ("out/" + second + "/front.json")));
        EXPECT_EQ(front["complete"], false);
        EXPECT_FALSE(front["points"].empty());
        for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "out")) {
            const std::string name = entry.path().filename().string();
            EXPECT_EQ(name.find(".partial-"), std::string::npos) << name;
            EXPECT_NE(name, second + ".json");
        }
        std::filesystem::remove_all(scratch_ / "out");
        std::filesystem::remove(scratch_ / "said");
    }
}

// A front that a job handed over gives way to the whole one.
TEST_F(SweepTest, GoesOnAfterAnInterrupt) {
    const std::string sweeps = R"({"networks": ["zoo:l3net"], "arguments": ["--tiles=pow2"]})";
    write_file_atomically(scratch_ / "jobs.json", list(sweeps));
    const std::string id = sweep_jobs(list(sweeps), "jobs.json")[0].id;
    ASSERT_EQ(run_program(command("whole")).exit_code, 0);
    std::filesystem::copy(scratch_ / "whole", scratch_ / "out",
                          std::filesystem::copy_options::recursive);
    const std::string file = scratch_ / ("out/" + id + "/front.json");
    auto front = nlohmann::json::parse(read_file(file));
    front["complete"] = false;
    front["points"].erase(0);
    write_file_atomically(file, front.dump());
    std::filesystem::remove(scratch_ / ("out/" + id + ".json"));
    const ProgramResult result = run_program(command("out"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(merged("out"), merged("whole"));
}

TEST_F(SweepTest, AFailureIsNotMetAgainByTheOtherProcessesOfTheSweep) {
    // The first process is busy for seconds, the second fails meanwhile.
    write_file_atomically(
        scratch_ / "jobs.json",
        list(
            R"({"networks": ["zoo:fsrcnn"], "arguments": ["--max-depth=3", "--tiles=pow2"]}, {"networks": [")" +
            (scratch_ / "none.onnx") + R"("]})"));
    const std::string program =
        std::string(LAMINATE_PROGRAM) + " " + command("out") + " --processes 1";
    const std::string both = "OMPI_COMM_WORLD_RANK=0 " + program + " > /dev/null 2> " +
                             (scratch_ / "first") + " & until test -e " +
                             (scratch_ / "out/claims") +
                             "; do sleep 0.01; done; sleep 0.2; OMPI_COMM_WORLD_RANK=1 " + program +
                             " > /dev/null 2> " + (scratch_ / "second") + "; wait $!";
    const int status = std::system(both.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 3);
    const std::string failure = "none.onnx: no such file (";
    EXPECT_NE(read_file(scratch_ / "second").find(failure), std::string::npos)
        << read_file(scratch_ / "second");
    EXPECT_EQ(read_file(scratch_ / "first").find(failure), std::string::npos)
        << read_file(scratch_ / "first");
}

TEST_F(SweepTest, AJobThatFailsIsSaidAtTheEndAndTriedAgain) {
    const std::string network = scratch_ / "late.onnx";
    write_file_atomically(scratch_ / "jobs.json",
                          list(R"({"networks": [")" + network + R"(", "zoo:l2net"]})"));
    const ProgramResult result = run_program(command("out"));
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("jobs.json: 1 of 2 jobs failed; sweep.json says why"),
              std::string::npos)
        << result.err;
    const auto answer = nlohmann::json::parse(read_file(scratch_ / "out/sweep.json"));
    EXPECT_NE(answer["jobs"][0]["message"].get<std::string>().find("late.onnx: no such file"),
              std::string::npos)
        << answer;
    EXPECT_EQ(answer["jobs"][1]["exit_code"], 0);

    ASSERT_EQ(run_program("zoo export l3net -o " + network).exit_code, 0);
    EXPECT_EQ(run_program(command("out")).exit_code, 0);
    EXPECT_EQ(nlohmann::json::parse(read_file(scratch_ / "out/sweep.json"))["jobs"][0]["exit_code"],
              0);
}

}  // namespace
}  // namespace laminate::cli
