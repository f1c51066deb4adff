// The verb `validate`: agreement, its JSON, and its refusal without anything to validate.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

TEST(Validate, TenRandomSchedulesOfL2NetAgreeAndAreReported) {
    const ProgramResult result = run_program("validate zoo:l2net --random 10 --seed 3 --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer.at("total"), 10);
    EXPECT_EQ(answer.at("equal"), 10);
    ASSERT_EQ(answer.at("schedules").size(), 10U);
    for (const auto& entry : answer.at("schedules")) {
        EXPECT_EQ(entry.at("model"), entry.at("walker")) << entry.at("schedule");
        EXPECT_EQ(entry.at("model"), entry.at("measured")) << entry.at("schedule");
        EXPECT_GE(entry.at("model").at("macs").get<int64_t>(), 71856)
            << "less work than the network has";
    }
}

TEST(Validate, HalidesOwnInferenceIsEqualInsideItsClass) {
    const ProgramResult result =
        run_program("validate zoo:l2net --random 10 --seed 3 --halide --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
    const auto halide = nlohmann::json::parse(result.out).at("halide");
    EXPECT_GE(halide.at("inside"), 5);
    EXPECT_EQ(halide.at("inside"), halide.at("equal"));
    EXPECT_GE(halide.at("outside"), 1);
    EXPECT_FALSE(halide.at("reasons").empty());
}

TEST(Validate, ASeedGivesTheSameSchedulesHoweverManyAreAskedFor) {
    const auto schedules = [](int count) {
        const auto answer = nlohmann::json::parse(
            run_program("validate zoo:l2net --seed 5 --json - --random " + std::to_string(count))
                .out);
        return answer.at("schedules");
    };
    const auto two = schedules(2);
    const auto three = schedules(3);
    EXPECT_EQ(two[0], three[0]);
    EXPECT_EQ(two[1], three[1]);
    EXPECT_NE(three[1].at("schedule"), three[2].at("schedule"));
}

TEST(Validate, NothingToValidateIsAUsageError) {
    const ProgramResult result = run_program("validate zoo:l2net");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err,
              "laminate: error: validate: expected --schedule F, --front DIR or --random N\n");
}

/// Schedules and code have the images of a batch as pixels of dense layers, the models of papers have
/// the layers as they are. Fronts of either can be shown and counted.
TEST(Validate, DenseLayersOfABatch) {
    const ScratchDirectory scratch;
    const std::string net = "'zoo:alexnet?height=67&width=67&batch=2'";
    for (const std::string model : {"", " --model layer-optimum --machine cnnflow_eyeriss"}) {
        SCOPED_TRACE(model);
        const std::string front = scratch / (model.empty() ? "run" : "as-given");
        const ProgramResult explored = run_program("explore " + net + model + " -o " + front);
        ASSERT_EQ(explored.exit_code, 0) << explored.err;
        const ProgramResult cost = run_program("cost " + net + " --json - --schedule '" + front + "#0'");
        ASSERT_EQ(cost.exit_code, 0) << cost.err;
        EXPECT_EQ(run_program("report " + front).exit_code, 0);
        EXPECT_EQ(run_program("show '" + front + "#0'").exit_code, 0);
    }
    const auto info = nlohmann::json::parse(run_program("info " + net + " --json -").out);
    int dense = 0;
    for (const auto& layer : info.at("layers")) {
        EXPECT_NE(layer.at("kind"), "gemm");
        if (layer.at("name") != "fc8") continue;
        EXPECT_EQ(layer.at("output").at("dims"), (nlohmann::json{1, 1000, 1, 2}));
        ++dense;
    }
    EXPECT_EQ(dense, 1);
}

TEST(Validate, AFrontAgreesAndPointsTakesSomeOfIt) {
    const ScratchDirectory scratch;
    const std::string front = scratch / "front";
    const ProgramResult explored =
        run_program("explore zoo:l2net --tiles pow2 --json - -o " + front);
    ASSERT_EQ(explored.exit_code, 0) << explored.err;
    const auto found = nlohmann::json::parse(explored.out);
    const auto& points = found.at("points");
    const auto text = [&](const nlohmann::json& point) {
        std::string all;
        for (const auto& group : point.at("schedule"))
            all += (all.empty() ? "" : " ") +
                   found["group_schedules"].at(group.get<size_t>()).get<std::string>();
        return all;
    };
    ASSERT_GE(points.size(), 3U);
    const ProgramResult result =
        run_program("validate zoo:l2net --json - --points 2 --front " + front);
    ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer.at("equal"), 2);
    ASSERT_EQ(answer.at("schedules").size(), 2U);
    EXPECT_EQ(answer.at("schedules")[0].at("schedule"), text(points.front()));
    EXPECT_EQ(answer.at("schedules")[1].at("schedule"), text(points.back()));
    EXPECT_EQ(answer.at("schedules")[1].at("measured").at("macs"), points.back().at("macs"));
    EXPECT_EQ(answer.at("points"), (nlohmann::json{0, points.size() - 1}));
}

TEST(Validate, SaysWhichGroupsWereExecuted) {
    // Layer by layer on l2net: conv1 has 18 * 18 * 4 * 27 = 34992 MACs, conv2 16 * 16 * 4 * 36 =
    // 36864.
    const std::string schedule =
        "'{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y6 x6 i3; X io/io; W io/io; Y "
        "xi/xi}{conv2: zo yo xo io | zi "
        "yi xi ii n m; tile z4 y4 x4 i4; X io/io; W io/io; Y xi/xi}'";
    const ProgramResult some =
        run_program("validate zoo:l2net --execute-macs 36000 --schedule " + schedule);
    ASSERT_EQ(some.exit_code, 0) << some.err << some.out;
    EXPECT_NE(some.out.find("1 of 2 different groups executed and their results compared; the "
                            "others have more than "
                            "--execute-macs 36000 MACs"),
              std::string::npos)
        << some.out;
    const ProgramResult all = run_program("validate zoo:l2net --json - --schedule " + schedule);
    ASSERT_EQ(all.exit_code, 0) << all.err << all.out;
    const auto answer = nlohmann::json::parse(all.out);
    EXPECT_EQ(answer.at("groups"), 2);
    EXPECT_EQ(answer.at("executed_groups"), 2);
}

TEST(Validate, AFrontOfAnotherNetworkIsRefused) {
    const ScratchDirectory scratch;
    std::ofstream(scratch / "front.json")
        << R"({"schema":"laminate.front","version":3,"network":"other","structure_hash":"0",
               "group_schedules":[],"points":[]})";
    const ProgramResult result =
        run_program("validate zoo:l2net --front " + (scratch / "front.json"));
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("is for network other (0), found l2net"), std::string::npos)
        << result.err;
}

TEST(Validate, AFrontWhosePointsAreSomethingElseIsRefusedByPlace) {
    const ScratchDirectory scratch;
    for (const auto& [points, message] :
         {std::pair{"7", "points: found number, expected a list"},
          {"[7]", "points[0]: found number, expected an object"},
          {R"([{"macs":5}])",
           "points[0].schedule: found null, expected a list of places in group_schedules"},
          {R"([{"schedule":[1]}])",
           "points[0].schedule: found array, expected a list of places in group_schedules"}}) {
        std::ofstream(scratch / "front.json")
            << R"({"schema":"laminate.front","version":3,"group_schedules":["{}"],"points":)"
            << points << "}";
        const ProgramResult result =
            run_program("validate zoo:l2net --front " + (scratch / "front.json"));
        EXPECT_EQ(result.exit_code, 3);
        EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    }
}

}  // namespace
}  // namespace laminate::cli
