#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/cli/run_program.h"

namespace laminate::cli {
namespace {

TEST(DepthFirstModel, CostOfOnePointEqualsTheArtifact) {
    const ProgramResult result = run_program(
        "cost zoo:fsrcnn-defines --model depth-first --machine meta_proto_df --tile 16x18 --overlap fully-cached --as-published --lpf-limit 6 --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto cost = nlohmann::json::parse(result.out);
    EXPECT_EQ(cost["schema"], "laminate.cost");
    EXPECT_NEAR(cost["energy_pj"].get<double>() / 1822760872.09, 1, 1e-9);
    EXPECT_EQ(cost["latency_cycles"], 20523395);
    EXPECT_EQ(cost["macs"], 8'362'594'208);
    // The parts make the sum.
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
    const ProgramResult result = run_program("explore zoo:fsrcnn-defines --model depth-first --machine meta_proto_df --columns 4,60 --rows 72 -o " +
                                             (scratch / "tiles") + " --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer["points"].size(), 6u);
    EXPECT_EQ(answer["best"]["tile_columns"], 4);
    EXPECT_EQ(answer["best"]["overlap"], "fully-cached");
    const std::string csv = read_file(scratch / "tiles/sweep.csv");
    EXPECT_EQ(std::ranges::count(csv, '\n'), 7);
    EXPECT_NE(read_file(scratch / "tiles/report.html").find("latency, million cycles"), std::string::npos);
}

TEST(DepthFirstModel, RefusesByName) {
    EXPECT_EQ(run_program("cost zoo:fsrcnn-defines --model depth-first --machine meta_proto_df --tile 16").exit_code, 2);
    EXPECT_EQ(run_program("cost zoo:fsrcnn-defines --model depth-first --tile 16x18").exit_code, 2);
    EXPECT_EQ(run_program("cost zoo:fsrcnn-x2 --model depth-first --machine tpu --tile 16x18 --as-published").exit_code, 3);
    EXPECT_EQ(run_program("cost zoo:fsrcnn-defines --model depth-first --machine nothing --tile 16x18").exit_code, 3);
}

}  // namespace
}  // namespace laminate::cli
