#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

const std::string explore_patches = "explore zoo:mcunet-5fps-vww --model patch-fusion ";

TEST(ExplorePatchFusion, WritesItsFront) {
    const ScratchDirectory scratch;
    const ProgramResult result =
        run_program(explore_patches + "--json - -o " + (scratch / "patches"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer["schema"], "laminate.patch_fusion");
    EXPECT_EQ(answer, nlohmann::json::parse(read_file(scratch / "patches/patches.json")));
    EXPECT_EQ(answer["complete"], true);
    ASSERT_EQ(answer["points"].size(), answer["front_points"]);
    for (const auto& point : answer["points"]) {
        int layers = 0;
        for (const auto& block : point["blocks"]) {
            EXPECT_LE(block["peak_bytes"], point["peak_bytes"]);
            for (const auto& segment : block["segments"]) layers += segment["layers"].get<int>();
        }
        EXPECT_EQ(layers, 45 + 8 + 2);  // convolutions, additions, the head
    }
    EXPECT_EQ(answer["points"].back()["overhead"], 1.0);
    // The directory is its own and may be written again.
    EXPECT_EQ(run_program(explore_patches + "-o " + (scratch / "patches")).exit_code, 0);
}

TEST(ExplorePatchFusion, BestWithinALimit) {
    const auto best = [](const std::string& limit) {
        const ProgramResult result = run_program(explore_patches + limit + " --json -");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        const auto points = nlohmann::json::parse(result.out)["points"];
        EXPECT_EQ(points.size(), 1u);
        return points.front();
    };
    EXPECT_LE(best("--peak 12000")["peak_bytes"], 12000);
    EXPECT_LE(best("--overhead 1.05")["overhead"], 1.05);
    EXPECT_EQ(best("--overhead 1")["macs"], 11'578'496 + 160 * 2);
    const ProgramResult result = run_program(explore_patches + "--peak 1000");
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_NE(result.err.find("the smallest budget that works is "), std::string::npos)
        << result.err;
    EXPECT_EQ(run_program(explore_patches + "--machine optimus_base").exit_code, 2);
    EXPECT_EQ(run_program("explore 'zoo:l2net?batch=2' --model patch-fusion").exit_code, 3);
}

}  // namespace
}  // namespace laminate::cli
