#include "answers/measurements.h"

#include "answers/front_file.h"
#include "answers/front_report.h"
#include "base/error.h"
#include "base/files.h"
#include "nets/open.h"
#include "nets/zoo/zoo.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> front_schedules(const std::string& directory) {
    const Json front = Json::parse(read_file(directory + "/front.json"));
    std::vector<std::string> texts;
    for (size_t n = 0; n < front.at("points").size(); ++n) texts.push_back(schedule_text(front, n));
    return texts;
}

TEST(Measurements, OfValidateAndBenchAreFoundBesideTheFrontAndShown) {
    const ScratchDirectory scratch;
    const std::string front = scratch / "front";
    ASSERT_EQ(run_program("explore zoo:l2net --max-depth 1 -o " + front).exit_code, 0);
    ASSERT_EQ(run_program("validate zoo:l2net --front " + front + " --points 2 --json " + front +
                          "/counted.json")
                  .exit_code,
              0);
    ASSERT_EQ(run_program("bench zoo:l2net --schedule " + front + "#0 --seconds 0 --json " + front +
                          "/timed.json")
                  .exit_code,
              0);
    ASSERT_EQ(
        run_program("validate zoo:l3net --random 1 --json " + front + "/other.json").exit_code,
        0);  // of another network: left out

    const Network network = zoo_network("l2net");
    const std::vector<Measurement> beside = measurements_beside(front + "/front.json", network);
    ASSERT_EQ(beside.size(), 2U);
    EXPECT_EQ(beside[0].file, front + "/counted.json");

    const std::vector<std::string> schedules = front_schedules(front);
    const Json measured = measured_json(schedules, beside);
    EXPECT_EQ(measured["sources"][0]["schedules"], 2);
    EXPECT_EQ(measured["sources"][1]["verb"], "bench");
    EXPECT_FALSE(measured["sources"][1]["made_by"]["cpu"].get<std::string>().empty());
    const Json& counted = measured["points"][0]["counted"];
    EXPECT_TRUE(counted["equal"].get<bool>());
    EXPECT_EQ(counted["witnesses"], Json({"model", "walker", "measured"}));
    // conv1: 18 x 18 x 4 outputs of 3 x 9 products, conv2: 16 x 16 x 4 of 4 x 9.
    EXPECT_EQ(counted["rows"][0],
              Json({"MACs", 18 * 18 * 4 * 27 + 16 * 16 * 4 * 36,
                    18 * 18 * 4 * 27 + 16 * 16 * 4 * 36, 18 * 18 * 4 * 27 + 16 * 16 * 4 * 36}));
    EXPECT_GT(measured["points"][0]["timed"]["fused"]["median_ms"].get<double>(), 0);
    EXPECT_TRUE(measured["points"].back().contains("counted"));  // --points: the first and the last
    EXPECT_FALSE(measured["points"].back().contains("timed"));

    const ProgramResult report = run_program("report " + front);
    ASSERT_EQ(report.exit_code, 0) << report.err;
    EXPECT_NE(report.err.find("measured: " + front + "/timed.json"), std::string::npos)
        << report.err;
    EXPECT_NE(read_file(front + "/report.html").find("\"timed\":{\"fused\":{\"median_ms\":"),
              std::string::npos);
}

TEST(Measurements, OfBenchOnAFrontAreShownByPoint) {
    const ScratchDirectory scratch;
    const std::string front = scratch / "front", file = front + "/timed.json";
    const std::string net = "zoo:fsrcnn?height=16&width=24";
    ASSERT_EQ(run_program("explore \"" + net + "\" --axes memory,time -o " + front).exit_code, 0);
    ASSERT_EQ(run_program("bench \"" + net + "\" --front " + front +
                          " --points 2 --seconds 0 --json " + file)
                  .exit_code,
              0);
    const Json measured =
        measured_json(front_schedules(front), {read_measurement(file, open_network(net))});
    EXPECT_EQ(measured["sources"][0]["schedules"], 2);
    EXPECT_GT(measured["points"].front()["timed"]["fused"]["median_ms"].get<double>(), 0);
    EXPECT_GT(measured["points"].back()["timed"]["layer_by_layer"]["median_ms"].get<double>(), 0);
}

// The answer of bench when the network layer by layer does not fit in this machine's memory.
TEST(Measurements, ABenchThatLeftOutLayerByLayerIsShownWithItsReason) {
    const ScratchDirectory scratch;
    const std::string front = scratch / "front", file = front + "/timed.json";
    ASSERT_EQ(run_program("explore zoo:l2net --max-depth 1 -o " + front).exit_code, 0);
    ASSERT_EQ(run_program("bench zoo:l2net --schedule " + front + "#0 --seconds 0 --json " + file)
                  .exit_code,
              0);
    Json answer = Json::parse(read_file(file));
    answer.erase("layer_by_layer");
    answer.erase("speedup");
    answer["left_out"] = "layer by layer is left out: no room";
    write_file_atomically(file, answer.dump());

    const Json measured =
        measured_json(front_schedules(front), {read_measurement(file, zoo_network("l2net"))});
    const Json& timed = measured["points"][0]["timed"];
    EXPECT_GT(timed["fused"]["median_ms"].get<double>(), 0);
    EXPECT_EQ(timed["left_out"], "layer by layer is left out: no room");
    EXPECT_FALSE(timed.contains("layer_by_layer"));
    const ProgramResult report = run_program("report " + front);
    EXPECT_EQ(report.exit_code, 0) << report.err;

    answer.erase("left_out");  // an answer with neither is not of bench
    write_file_atomically(file, answer.dump());
    EXPECT_EQ(run_program("report " + front).exit_code, 3);
}

TEST(Measurements, WhatIsNoneIsRefusedByFile) {
    const ScratchDirectory scratch;
    const std::string front = scratch / "front", file = scratch / "given.json";
    ASSERT_EQ(run_program("explore zoo:l2net --max-depth 1 -o " + front).exit_code, 0);
    const auto refusal = [&](const std::string& text) {
        write_file_atomically(file, text);
        const ProgramResult report = run_program("report " + front + " --measured " + file);
        EXPECT_EQ(report.exit_code, 3) << text;
        return report.err;
    };
    const std::string hash = structure_hash(zoo_network("l2net"));
    EXPECT_NE(refusal("{}").find("given.json: is no measurement; expected what --json of laminate "
                                 "validate or bench wrote"),
              std::string::npos);
    EXPECT_NE(refusal("[1").find("given.json: is no measurement"), std::string::npos);
    EXPECT_NE(refusal(R"({"schema": "laminate.validate", "structure_hash": "0"})")
                  .find("given.json: is not about network l2net"),
              std::string::npos);
    EXPECT_NE(refusal(R"({"schema": "laminate.validate", "structure_hash": ")" + hash + "\"}")
                  .find("given.json: "),
              std::string::npos);
    EXPECT_NE(refusal(R"({"schema": "laminate.validate", "structure_hash": ")" + hash +
                      R"(", "schedules": [{"schedule": 7}]})")
                  .find("given.json: "),
              std::string::npos);
}

}  // namespace
}  // namespace laminate::cli
