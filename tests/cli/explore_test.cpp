// The verb `explore`: the files it writes, and that their schedules are what they say.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "run_program.h"

namespace laminate::cli {
namespace {

nlohmann::json json_file(const std::string& path) { return nlohmann::json::parse(read_file(path)); }

TEST(Explore, AFrontHasNoPointThatAnotherBeatsAndItsSchedulesCostWhatItSays) {
    const ScratchDirectory scratch;
    const ProgramResult result = run_program("explore zoo:l2net --tiles pow2 -o " + (scratch / "front"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto front = json_file(scratch / "front/front.json");
    const auto& points = front.at("points");
    ASSERT_GE(points.size(), 2U);
    for (size_t a = 0; a < points.size(); ++a) {
        for (size_t b = 0; b < points.size(); ++b) {
            const auto no_worse = [&](const char* key) {
                return points[b].at(key).get<int64_t>() <= points[a].at(key).get<int64_t>();
            };
            EXPECT_FALSE(a != b && no_worse("accesses_elements") && no_worse("live_bytes") && no_worse("macs"))
                << b << " beats " << a;
        }
    }
    // The least traffic there can be: every input, weight and output once.
    EXPECT_EQ(points[0].at("accesses_elements"), 20 * 20 * 3 + 108 + 144 + 16 * 16 * 4);
    const std::string last = points.back().at("file").get<std::string>();
    const ProgramResult cost = run_program("cost zoo:l2net --json - --schedule " + (scratch / ("front/" + last)));
    EXPECT_EQ(nlohmann::json::parse(cost.out).at("accesses_elements"), points.back().at("accesses_elements"));
    const std::string csv = read_file(scratch / "front/front.csv");
    EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')), points.size() + 1);
    EXPECT_NE(read_file(scratch / "front/report.html").find(last), std::string::npos);
}

TEST(Explore, EveryPointTellsItsBoundAndOnAMachineItsEnergy) {
    const ScratchDirectory scratch;
    const ProgramResult result = run_program("explore zoo:l2net --tiles pow2 -o " + (scratch / "front") + " --machine " +
                                             LAMINATE_MACHINES + "/convfusion-40nm-banked-rf.json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto front = json_file(scratch / "front/front.json");
    double least = HUGE_VAL;
    std::string best;
    for (const auto& point : front.at("points")) {
        EXPECT_GE(point.at("accesses_elements"), point.at("bound_accesses_elements"));
        EXPECT_DOUBLE_EQ(point.at("achieved_over_bound"),
                         point.at("accesses_elements").get<double>() / point.at("bound_accesses_elements").get<double>());
        EXPECT_EQ(point.at("energy").at("external_pj"), 1120 * point.at("accesses_elements").get<double>());
        if (point.at("energy").at("total_pj") >= least) continue;
        least = point.at("energy").at("total_pj");
        best = point.at("file");
    }
    EXPECT_EQ(front.at("points")[0].at("achieved_over_bound"), 1);
    EXPECT_EQ(front.at("least_energy_file"), best);
    EXPECT_NE(result.out.find("least energy on convfusion-40nm-banked-rf: " + best), std::string::npos) << result.out;
    EXPECT_NE(read_file(scratch / "front/front.csv").find("achieved_over_bound,live_bytes,macs,groups,total_pj,schedule\n"),
              std::string::npos);
}

TEST(Explore, NothingWithinTheBudgetNamesTheSmallestThatWorks) {
    const ScratchDirectory scratch;
    const std::string command = "explore zoo:l2net --tiles pow2 -o " + (scratch / "front") + " --memory ";
    const ProgramResult result = run_program(command + "16");
    EXPECT_EQ(result.exit_code, 4);
    ASSERT_NE(result.err.find("no schedule fits in 16 B; the smallest budget that works is "), std::string::npos)
        << result.err;
    EXPECT_TRUE(scratch.is_empty());
    const int64_t bytes = std::stoll(result.err.substr(result.err.find("works is ") + 9));
    EXPECT_EQ(run_program(command + std::to_string(bytes)).exit_code, 0);
}

}  // namespace
}  // namespace laminate::cli
