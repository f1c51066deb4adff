#include "answers/report_page.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "answers/version.h"
#include "base/files.h"
#include "nets/zoo/zoo.h"
#include "scheduler/schedule/schedule.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

// As in tests/scheduler/counts/memory_timeline_test.cpp: conv1 in rows for strips of 4 of conv2's
// 16 rows, 2 rows kept between them.
constexpr const char* fused_rows =
    "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.yo/conv2.yo; W root/root; "
    "Y root/conv2.yo & "
    "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y yo/yo}";

nlohmann::ordered_json front_of(const Network& network, const std::vector<std::string>& schedules) {
    auto points = nlohmann::ordered_json::array();
    for (size_t n = 0; n < schedules.size(); ++n) {
        points.push_back({{"accesses_elements", 2476 + 10 * n},
                          {"live_total_elements", 1420 - n},
                          {"live_bytes", 4 * (1420 - n)},
                          {"macs", 71856},
                          {"groups", 1},
                          {"schedule", {n}}});
    }
    return {{"schema", "laminate.front"},
            {"version", 3},
            {"model", "two-level"},
            {"network", network.name},
            {"structure_hash", structure_hash(network)},
            {"complete", true},
            {"macs_is_axis", true},
            {"points", points},
            {"group_schedules", schedules}};
}

/// The data that the page's script reads.
nlohmann::json data_of(const std::string& page) {
    const std::string begin = "<script type=\"application/json\" id=\"data\">";
    const size_t at = page.find(begin) + begin.size();
    return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(ReportPage, HoldsEveryPointAndIsDeterministic) {
    const Network network = zoo_network("l2net");
    const nlohmann::ordered_json front = front_of(network, {fused_rows, fused_rows, fused_rows});
    const std::string page = report_page(network, front);
    EXPECT_EQ(page, report_page(network, front));
    const nlohmann::json data = data_of(page);
    ASSERT_EQ(data["points"].size(), 3u);
    EXPECT_EQ(data["points"][1]["accesses"], 2486);
    EXPECT_EQ(data["points"][1]["bytes"], 4 * 1419);
    EXPECT_EQ(data["groups"].size(), 1u);  // the same in all three
    EXPECT_EQ(
        data["details"],
        nlohmann::json::parse(
            R"([{"groups":[0],"graph":0},{"groups":[0],"graph":0},{"groups":[0],"graph":0}])"));
    // input, conv1, conv2: one below the other.
    EXPECT_EQ(data["graphs"], nlohmann::json::parse(R"([{"rows":[-1,0,1],"lanes":[0,0,0]}])"));
    EXPECT_EQ(data["network"]["layers"][1]["reads"], nlohmann::json::parse("[0]"));
    EXPECT_EQ(data["version"], program_version());
    EXPECT_FALSE(data.contains("sources"));
}

TEST(ReportPage, NeedsNothingElse) {
    const Network network = zoo_network("l2net");
    const std::string page = report_page(network, front_of(network, {fused_rows}));
    EXPECT_EQ(
        page.find("http://"),
        page.find("http://www.w3.org/2000/svg"));  // the name of SVG, not an address that is loaded
    EXPECT_EQ(page.find("https://"), std::string::npos);
    EXPECT_FALSE(
        std::regex_search(page, std::regex("<(link|script|img)[^>]*(src|href)=\"(?!data:)")));
    EXPECT_EQ(page.find("@TITLE@"), std::string::npos);
}

TEST(ReportPage, NothingInTheDataEndsItsScript) {
    Network network = zoo_network("l2net");
    network.name = "</script><b>&";
    const std::string page = report_page(network, front_of(network, {fused_rows}));
    EXPECT_NE(data_of(page)["about"].get<std::string>().find("</script><b>&"), std::string::npos);
    EXPECT_NE(page.find("<title>&lt;/script&gt;&lt;b&gt;&amp;: schedules</title>"),
              std::string::npos);
}

TEST(ReportPage, ALargeFrontIsShownWholeAndDetailedInPart) {
    const Network network = zoo_network("l2net");
    const nlohmann::json data =
        data_of(report_page(network, front_of(network, std::vector<std::string>(500, fused_rows))));
    ASSERT_EQ(data["points"].size(), 500u);
    EXPECT_EQ(data["details"].size(), static_cast<size_t>(report_details));
    EXPECT_TRUE(data["points"].front().contains("detail"));
    EXPECT_TRUE(data["points"].back().contains("detail"));
    EXPECT_FALSE(data["points"][1].contains("detail"));
}

TEST(ReportPage, FootprintSumAndBoundsWhereTheFrontHasThem) {
    const Network network = zoo_network("l2net");
    nlohmann::ordered_json front = front_of(network, {fused_rows});
    front["footprint"] = "sum";
    front["points"][0]["sum_total_elements"] = 1500;
    front["points"][0]["bound_accesses_elements"] = 2000;
    const nlohmann::json data = data_of(report_page(network, front));
    EXPECT_EQ(data["memory_name"], "sum of all buffers");
    EXPECT_EQ(data["points"][0]["bytes"], 6000);
    EXPECT_EQ(data["points"][0]["bound"], 2000);
}

TEST(ReportPage, SaysWhatAFrontIsOf) {
    const Network network = zoo_network("l2net");
    nlohmann::ordered_json front = front_of(network, {fused_rows});
    const auto about = [&] {
        return data_of(report_page(network, front))["about"].get<std::string>();
    };
    EXPECT_NE(about().find("in accesses, memory and MACs together; two-level model."),
              std::string::npos);
    front["axes"] = {"memory", "time"};
    front["speed"] = "fast.json";
    front["threads"] = 2;
    front["points"][0]["time_ms"] = 0.25;
    EXPECT_NE(about().find("in memory and time together; two-level model, time as predicted for 2 "
                           "threads by fast.json."),
              std::string::npos)
        << about();
    EXPECT_EQ(data_of(report_page(network, front))["points"][0]["time_ms"], 0.25);
    front["objective"] = "time";
    EXPECT_NE(about().find("one schedule, the least time in the memory that was allowed"),
              std::string::npos);
}

TEST(ReportPage, WhatIsNotCompleteSaysHowFarItMayBeOff) {
    const Network network = zoo_network("l2net");
    nlohmann::ordered_json front = front_of(network, {fused_rows});
    const auto about = [&] {
        return data_of(report_page(network, front))["about"].get<std::string>();
    };
    EXPECT_EQ(about().find("not complete"), std::string::npos);
    front["complete"] = false;
    front["gap"] = 0.25;
    front["bounds"] = {{{"memory_elements", 100}, {"accesses_elements", 2400}}};
    EXPECT_NE(about().find(
                  "but at equal memory at most 1.25 times less."),
              std::string::npos)
        << about();
    EXPECT_EQ(data_of(report_page(network, front))["bounds"][0],
              nlohmann::json({{"bytes", 400}, {"accesses", 2400}}));
    front["gap"] = nullptr;
    EXPECT_NE(about().find("not complete: part of the space was not looked at"), std::string::npos)
        << about();
}

TEST(Report, RewritesThePageOfAFront) {
    const ScratchDirectory scratch;
    const std::string directory = scratch / "front";
    ASSERT_EQ(run_program("explore 'zoo:l2net?seed=3' --max-depth 1 -o " + directory).exit_code, 0);
    const std::string page = scratch / "front/report.html";
    const std::string written = read_file(page);
    std::filesystem::remove(page);
    const ProgramResult report =
        run_program("report " + directory);  // front.json says which network
    EXPECT_EQ(report.exit_code, 0) << report.err;
    EXPECT_EQ(read_file(page), written);
    EXPECT_EQ(run_program("report " + directory + " --net 'zoo:l2net?seed=3'").exit_code, 0);

    const ProgramResult other = run_program("report " + directory + " --net zoo:l3net");
    EXPECT_EQ(other.exit_code, 3);
    EXPECT_NE(other.err.find("front.json: is for network l2net"), std::string::npos) << other.err;
    const ProgramResult nothing = run_program("report " + (scratch / "nowhere"));
    EXPECT_EQ(nothing.exit_code, 3);
    EXPECT_NE(nothing.err.find("nowhere"), std::string::npos) << nothing.err;
}

}  // namespace
}  // namespace laminate::cli
