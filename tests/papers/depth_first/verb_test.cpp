#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

TEST(DepthFirstModel, CostOfOnePointEqualsTheArtifact) {
    const ProgramResult result = run_program(
        "cost zoo:fsrcnn-defines --model depth-first --machine meta_proto_df --tile 16x18 "
        "--overlap fully-cached "
        "--as-published --lpf-limit 6 --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto cost = nlohmann::json::parse(result.out);
    EXPECT_EQ(cost["schema"], "laminate.cost");
    EXPECT_NEAR(cost["energy_pj"].get<double>() / 1822760872.09, 1, 1e-9);
    EXPECT_EQ(cost["latency_cycles"], 20523395);
    EXPECT_EQ(cost["macs"], 8'362'594'208);
    // The parts add up to the total.
    double sum = cost["mac_energy_pj"].get<double>();
    for (const auto& memory : cost["memories"]) {
        for (const char* part : {"I", "W", "O", "copies"}) {
            if (memory.contains(part)) sum += memory[part]["energy_pj"].get<double>();
        }
    }
    EXPECT_NEAR(sum / cost["energy_pj"].get<double>(), 1, 1e-9);
}

TEST(DepthFirstModel, ExploreWritesItsPoints) {
    const ScratchDirectory scratch;
    const ProgramResult result = run_program(
        "explore zoo:fsrcnn-defines --model depth-first --machine meta_proto_df --columns 4,60 "
        "--rows 72 -o " +
        (scratch / "tiles") + " --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer["points"].size(), 6u);
    EXPECT_EQ(answer["best"]["tile_columns"], 4);
    EXPECT_EQ(answer["best"]["overlap"], "fully-cached");
    const std::string csv = read_file(scratch / "tiles/sweep.csv");
    EXPECT_EQ(std::ranges::count(csv, '\n'), 7);
    const std::string page = read_file(scratch / "tiles/report.html");
    EXPECT_NE(page.find("Latency, million cycles"), std::string::npos);
    // Every point of the front links to its loop nest.
    for (size_t n = 0; n < answer["front"].size(); ++n) {
        EXPECT_NE(page.find("href=\"#point-" + std::to_string(n) + "\""), std::string::npos);
        EXPECT_NE(page.find("id=\"point-" + std::to_string(n) + "\""), std::string::npos);
    }
    EXPECT_NE(page.find("</pre>"), std::string::npos);
    EXPECT_NE(
        read_file(scratch / "tiles/schedules.html").find(answer["network"].get<std::string>()),
        std::string::npos);
}

TEST(DepthFirstModel, SchedulesThatAreFoundExecuteAndCountAsTheySay) {
    const ScratchDirectory scratch;
    const std::string directory = scratch / "tiles";
    const ProgramResult found = run_program(
        "explore zoo:l3net --model depth-first --machine meta_proto_df --stacks all --columns 3,8 "
        "--rows 5 --overlap "
        "recompute,h-cached,v-cached,fully-cached "
        "--search-stacks -o " +
        directory + " --json -");
    ASSERT_EQ(found.exit_code, 0) << found.err;
    const auto answer = nlohmann::json::parse(found.out);
    EXPECT_EQ(answer["points"].size(), 8u);
    EXPECT_LE(answer["best_cut"]["energy_pj"].get<double>(),
              answer["best"]["energy_pj"].get<double>() * (1 + 1e-12));
    std::vector<std::string> names{"best", "best-cut"};
    for (const auto& entry : answer["schedules"]["front"]) names.push_back(entry["name"]);
    ASSERT_GE(names.size(), 3u);
    // The closed form, the walker and instrumented code agree, and the pictures equal the
    // reference's.
    for (const std::string& name : names) {
        const ProgramResult validated =
            run_program("validate zoo:l3net --schedule " + directory + "#" + name);
        EXPECT_EQ(validated.exit_code, 0) << name << ": " << validated.out << validated.err;
    }
}

TEST(DepthFirstModel, OverlapsOfSingleMapsAreNamedOrSearched) {
    const std::string point =
        "cost zoo:l3net --model depth-first --machine edge_tpu_df --tile 7x5 --stacks all --json - "
        "--overlap ";
    const auto cost = [&](const std::string& overlap) {
        const ProgramResult result = run_program(point + overlap);
        EXPECT_EQ(result.exit_code, 0) << overlap << ": " << result.err;
        return nlohmann::json::parse(result.out);
    };
    const auto uniform = cost("fully-cached"), named = cost("fully-cached,conv1=recompute"),
               found = cost("search");
    EXPECT_EQ(named["overlap_of_maps"]["conv1"], "recompute");
    EXPECT_GT(named["macs"], uniform["macs"]);  // conv1 recomputes what its neighbours had
    EXPECT_EQ(found["overlap_search"]["compared"], 2 * 27);
    EXPECT_TRUE(found["overlap_search"]["complete"]);
    EXPECT_LE(found["energy_pj"].get<double>(), uniform["energy_pj"].get<double>() * (1 + 1e-12));
    for (const auto& answer : {uniform, named, found}) {
        EXPECT_GT(answer["latency_cycles"], 0);
        EXPECT_EQ(answer["stacks"].size(), answer["stack_costs"].size());
        for (const char* operand : {"I", "W", "O", "copies"})
            EXPECT_TRUE(answer["memories"].back()[operand].contains("reads_words")) << operand;
    }
    EXPECT_EQ(run_program(point + "conv1=h-cached,conv2=v-cached").exit_code, 3);
    const ProgramResult unknown = run_program(point + "conv9=h-cached");
    EXPECT_EQ(unknown.exit_code, 3);
    EXPECT_NE(unknown.err.find("found \"conv9\", expected one of "), std::string::npos)
        << unknown.err;
    EXPECT_EQ(run_program(point + "conv1=recompute,h-cached").exit_code, 2);
}

TEST(DepthFirstModel, LayersAreMappedForTheObjective) {
    const auto latency = [](const std::string& objective) {
        const ProgramResult result = run_program(
            "cost zoo:l3net --model depth-first --machine meta_proto_df --tile 8x8 --json - "
            "--objective " +
            objective);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return nlohmann::json::parse(result.out)["latency_cycles"].get<int64_t>();
    };
    EXPECT_LT(latency("latency"), latency("energy"));
    EXPECT_EQ(run_program("cost zoo:l3net --model depth-first --machine meta_proto_df --tile 8x8 "
                          "--objective power")
                  .exit_code,
              3);
}

TEST(DepthFirstModel, RefusesByName) {
    EXPECT_EQ(
        run_program("cost zoo:fsrcnn-defines --model depth-first --machine meta_proto_df --tile 16")
            .exit_code,
        2);
    EXPECT_EQ(run_program("cost zoo:fsrcnn-defines --model depth-first --tile 16x18").exit_code, 2);
    EXPECT_EQ(
        run_program(
            "cost zoo:fsrcnn-x2 --model depth-first --machine tpu --tile 16x18 --as-published")
            .exit_code,
        3);
    EXPECT_EQ(
        run_program("cost zoo:fsrcnn-defines --model depth-first --machine nothing --tile 16x18")
            .exit_code,
        3);
}

}  // namespace
}  // namespace laminate::cli
