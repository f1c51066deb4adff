// The verb `explore`: the files it writes, and that their schedules cost what they claim.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

nlohmann::json json_file(const std::string& path) { return nlohmann::json::parse(read_file(path)); }

TEST(Explore, AFrontHasNoPointThatAnotherBeatsAndItsSchedulesCostWhatItSays) {
    const ScratchDirectory scratch;
    const ProgramResult result =
        run_program("explore zoo:l2net --tiles pow2 -o " + (scratch / "front"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto front = json_file(scratch / "front/front.json");
    const auto& points = front.at("points");
    ASSERT_GE(points.size(), 2U);
    for (size_t a = 0; a < points.size(); ++a) {
        for (size_t b = 0; b < points.size(); ++b) {
            const auto no_worse = [&](const char* key) {
                return points[b].at(key).get<int64_t>() <= points[a].at(key).get<int64_t>();
            };
            EXPECT_FALSE(a != b && no_worse("accesses_elements") && no_worse("live_bytes") &&
                         no_worse("macs"))
                << b << " beats " << a;
        }
    }
    // The least traffic there can be: every input, weight and output once.
    EXPECT_EQ(points[0].at("accesses_elements"), 20 * 20 * 3 + 108 + 144 + 16 * 16 * 4);
    // Layer by layer the 18 x 18 x 4 elements between the layers are written and read.
    const auto& alone = front.at("layer_by_layer");
    EXPECT_EQ(alone.at("accesses_elements"),
              points[0].at("accesses_elements").get<int64_t>() + 2 * 18 * 18 * 4);
    EXPECT_EQ(alone.at("macs"), (18 * 18 * 4 * 3 + 16 * 16 * 4 * 4) * 9);
    EXPECT_EQ(alone.at("groups"), 2);
    const std::string last = "#" + std::to_string(points.size() - 1);
    const ProgramResult cost =
        run_program("cost zoo:l2net --json - --schedule " + (scratch / ("front" + last)));
    EXPECT_EQ(nlohmann::json::parse(cost.out).at("accesses_elements"),
              points.back().at("accesses_elements"));
    const std::string csv = read_file(scratch / "front/front.csv");
    EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')), points.size() + 1);
    EXPECT_NE(read_file(scratch / "front/report.html").find(last), std::string::npos);
}

TEST(Explore, EveryPointTellsItsBoundAndOnAMachineItsEnergy) {
    const ScratchDirectory scratch;
    const ProgramResult result =
        run_program("explore zoo:l2net --tiles pow2 -o " + (scratch / "front") + " --machine " +
                    LAMINATE_MACHINES + "/convfusion-40nm-banked-rf.json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto front = json_file(scratch / "front/front.json");
    double least = HUGE_VAL;
    size_t best = 0;
    for (size_t n = 0; n < front.at("points").size(); ++n) {
        const auto& point = front["points"][n];
        EXPECT_GE(point.at("accesses_elements"), point.at("bound_accesses_elements"));
        EXPECT_DOUBLE_EQ(point.at("achieved_over_bound"),
                         point.at("accesses_elements").get<double>() /
                             point.at("bound_accesses_elements").get<double>());
        EXPECT_EQ(point.at("energy").at("external_pj"),
                  1120 * point.at("accesses_elements").get<double>());
        if (point.at("energy").at("total_pj") >= least) continue;
        least = point.at("energy").at("total_pj");
        best = n;
    }
    EXPECT_EQ(front.at("points")[0].at("achieved_over_bound"), 1);
    EXPECT_EQ(front["points"][best].at("names"), nlohmann::json({"least-energy"}));
    EXPECT_EQ(run_program("show " + (scratch / "front#least-energy")).out,
              run_program("show " + (scratch / "front#") + std::to_string(best)).out);
    EXPECT_NE(result.out.find("least energy on convfusion-40nm-banked-rf: #" +
                              std::to_string(best) + ","),
              std::string::npos)
        << result.out;
    EXPECT_NE(read_file(scratch / "front/front.csv")
                  .find("achieved_over_bound,live_bytes,macs,groups,total_pj\n"),
              std::string::npos);
}

TEST(Explore, NothingWithinTheBudgetNamesTheSmallestThatWorks) {
    const ScratchDirectory scratch;
    const std::string command =
        "explore zoo:l2net --tiles pow2 -o " + (scratch / "front") + " --memory ";
    const ProgramResult result = run_program(command + "16");
    EXPECT_EQ(result.exit_code, 4);
    ASSERT_NE(result.err.find("no schedule fits in 16 B; the smallest budget that works is "),
              std::string::npos)
        << result.err;
    EXPECT_TRUE(scratch.is_empty());
    const int64_t bytes = std::stoll(result.err.substr(result.err.find("works is ") + 9));
    EXPECT_EQ(run_program(command + std::to_string(bytes)).exit_code, 0);
}

TEST(Explore, OneAxisIsTheScheduleWithTheFewestAccesses) {
    const ScratchDirectory scratch;
    const std::string command =
        "explore zoo:l3net --tiles pow2 -o " + (scratch / "front") + " --json - -q ";
    const auto front = nlohmann::json::parse(run_program(command + "--axes accesses,memory").out);
    EXPECT_EQ(front.at("axes"), (nlohmann::json{"accesses", "memory"}));
    const auto& points = front.at("points");
    for (const size_t n : {size_t{0}, points.size() / 2, points.size() - 1}) {
        const auto bytes = points[n].at("live_bytes").get<int64_t>();
        const ProgramResult result =
            run_program(command + "--objective accesses --memory " + std::to_string(bytes));
        ASSERT_EQ(result.exit_code, 0) << result.err;
        const auto one = nlohmann::json::parse(result.out);
        EXPECT_EQ(one.at("objective"), "accesses");
        EXPECT_EQ(one.at("complete"), true);
        ASSERT_EQ(one.at("points").size(), 1U);
        EXPECT_LE(one["points"][0].at("accesses_elements"), points[n].at("accesses_elements"));
        EXPECT_LE(one["points"][0].at("live_bytes"), bytes);
    }
    const ProgramResult told = run_program(
        "explore zoo:l3net --tiles pow2 --objective accesses -o " + (scratch / "front"));
    EXPECT_NE(
        told.out.find("complete: no schedule of this space that fits moves less\n1 schedule in "),
        std::string::npos)
        << told.out;
    EXPECT_NE(read_file(scratch / "front/report.html")
                  .find("one schedule, the fewest accesses in the memory"),
              std::string::npos);
    EXPECT_EQ(run_program(command + "--objective accesses --memory 16").exit_code, 4);
}

TEST(Explore, AScheduleOfAFrontIsTakenByNumberAndWhatIsNoneIsRefused) {
    const ScratchDirectory scratch;
    const std::string front = scratch / "front";
    ASSERT_EQ(
        run_program("explore 'zoo:l2net?height=12&width=12' --tiles pow2 -o " + front).exit_code,
        0);
    // The front names its network. Leading zeros of the number, and the file in place of the
    // directory, change nothing.
    const ProgramResult shown = run_program("show " + front + "#1 --json -");
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_EQ(run_program("show " + front + "/#0001 --json -").out, shown.out);
    EXPECT_EQ(run_program("show " + front + "/front.json#1 --json -").out, shown.out);
    EXPECT_NE(run_program("show " + front + "#0 --json -").out, shown.out);
    const auto answer = json_file(front + "/front.json");
    std::string text;
    for (const auto& group : answer["points"][1]["schedule"])
        text += (text.empty() ? "" : " ") +
                answer["group_schedules"].at(group.get<size_t>()).get<std::string>();
    // Both halves; the front has the dataflow.
    const auto both = nlohmann::json::parse(shown.out)["schedule"].get<std::string>();
    EXPECT_NE(both.find("; kernel "), std::string::npos);
    EXPECT_EQ(std::regex_replace(both, std::regex("; kernel [a-z_]+( [a-z][0-9]+)*"), ""), text);

    const auto refusal = [&](const std::string& schedule,
                             const std::string& network = "'zoo:l2net?height=12&width=12'") {
        const ProgramResult result = run_program("cost " + network + " --schedule " + schedule);
        EXPECT_EQ(result.exit_code, 3) << schedule;
        EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
        return result.err;
    };
    const std::string count = std::to_string(answer["points"].size()),
                      last = std::to_string(answer["points"].size() - 1);
    EXPECT_NE(refusal(front + "#" + count)
                  .find("front.json: has " + count + " schedules, found #" + count +
                        ", expected #0 to #" + last),
              std::string::npos);
    EXPECT_NE(refusal(front + "#best").find("found #best, expected #0 to #" + last),
              std::string::npos);
    EXPECT_NE(refusal(front).find("has " + count +
                                  " schedules, found none chosen, expected #0 to #" + last),
              std::string::npos);
    EXPECT_NE(refusal(front + "#-1").find("found #-1"), std::string::npos);
    EXPECT_NE(refusal((scratch / "nowhere") + "#1").find("nowhere#1: no such file"),
              std::string::npos);
    EXPECT_NE(refusal(front + "#0", "zoo:l3net").find("is for network l2net"), std::string::npos);
    auto damaged = answer;
    damaged["points"][0]["schedule"] = {answer["group_schedules"].size()};
    write_file_atomically(front + "/front.json", damaged.dump());
    EXPECT_NE(refusal(front + "#0")
                  .find("front.json: points[0].schedule: found array, expected a list of places in "
                        "group_schedules"),
              std::string::npos);
}

TEST(Explore, SecondsEndASearchWithWhatWasFoundAndItsGap) {
    const ScratchDirectory scratch;
    // The whole search takes minutes.
    const std::string command =
        "explore 'zoo:fsrcnn?height=480&width=270' --tiles divisors --threads 1 -o " +
        (scratch / "front");
    const ProgramResult result = run_program(command + " --seconds 1");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("stopped after 1 s, as --seconds asked"), std::string::npos)
        << result.err;
    EXPECT_NE(result.out.find(
                  "not complete: at no memory does a schedule of this space move less than 1/"),
              std::string::npos)
        << result.out;
    const auto front = json_file(scratch / "front/front.json");
    EXPECT_FALSE(front.at("complete").get<bool>());
    EXPECT_FALSE(front.at("points").empty());

    const ProgramResult early =
        run_program("explore zoo:l2net --tiles pow2 --seconds 1000 -o " + (scratch / "whole"));
    EXPECT_EQ(early.exit_code, 0) << early.err;
    EXPECT_EQ(early.err.find("stopped"), std::string::npos) << early.err;
    EXPECT_TRUE(json_file(scratch / "whole/front.json").at("complete").get<bool>());
    EXPECT_EQ(run_program("explore zoo:l2net --seconds 0 -o " + (scratch / "none")).exit_code, 2);
}

TEST(Explore, ANetworkWithoutLayersToScheduleIsRefusedAlikeForEveryAxisAndObjective) {
    const ScratchDirectory scratch;
    for (const char* options :
         {"", "--axes memory,time", "--axes time --memory 1KiB", "--objective time",
          "--objective time --memory 1KiB", "--objective accesses"}) {
        const ProgramResult refused =
            run_program("explore random:2039 -q -o " + (scratch / "front") + " " + options);
        EXPECT_EQ(refused.exit_code, 3) << options << refused.err;
        EXPECT_NE(refused.err.find("nothing to explore"), std::string::npos) << refused.err;
    }
    EXPECT_TRUE(scratch.is_empty());
}

TEST(Explore, WithTimePointsHaveTimesAndWhatANamedSpaceHoldsJoins) {
    const ScratchDirectory scratch;
    const std::string command = "explore zoo:l3net -q -o " + (scratch / "front") + " ";
    EXPECT_EQ(run_program(command + "--speed avx2").exit_code, 2);
    EXPECT_EQ(run_program(command + "--axes accesses,speed").exit_code, 2);
    EXPECT_TRUE(scratch.is_empty());

    const ProgramResult found = run_program(command + "--axes memory,time --json -");
    ASSERT_EQ(found.exit_code, 0) << found.err;
    const auto front = nlohmann::json::parse(found.out);
    EXPECT_EQ(front.at("axes"), (nlohmann::json{"memory", "time"}));
    for (const auto& point : front.at("points")) EXPECT_GT(point.at("time_ms").get<double>(), 0);
    const ProgramResult counted = run_program("validate zoo:l3net --front " + (scratch / "front"));
    EXPECT_EQ(counted.exit_code, 0) << counted.out;

    const auto fewest_accesses = [&](const std::string& options) {
        const ProgramResult result = run_program("explore zoo:l3net -q -o " + (scratch / "more") +
                                                 " --axes accesses,memory,time --json - " + options);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        const auto points = nlohmann::json::parse(result.out).at("points");
        std::map<int64_t, int64_t> least;
        for (const auto& point : points) {
            const auto memory = point.at("live_bytes").get<int64_t>();
            const auto accesses = point.at("accesses_elements").get<int64_t>();
            const auto [known, is_new] = least.try_emplace(memory, accesses);
            known->second = std::min(known->second, accesses);
        }
        std::filesystem::remove_all(scratch / "more");
        return least;
    };
    const auto planned = fewest_accesses("");
    const auto searched = fewest_accesses("--space fusion-recompute");
    EXPECT_LT(searched.begin()->first, planned.begin()->first) << "tiles smaller than kernels";
    for (const auto& [memory, accesses] : planned) {
        int64_t least = accesses;
        for (const auto& [other, moved] : searched) {
            // Memories of a front are 2 % apart.
            if (other * 100 <= memory * 102) least = std::min(least, moved);
        }
        EXPECT_LE(least, accesses) << memory;
    }
    const ProgramResult more = run_program("validate zoo:l3net --front " + (scratch / "front"));
    EXPECT_EQ(more.exit_code, 0) << more.out;
}

}  // namespace
}  // namespace laminate::cli
