// The verbs `cost` and `show` on one schedule worked by hand.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

// L2Net fused: rows of conv1 stay on chip between tiles of four rows of conv2.
constexpr const char* fused =
    "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W root/root; Y "
    "root/conv2.yo & "
    "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y xi/xi}";

TEST(Cost, AFusedPairMovesItsInputItsWeightsAndItsOutputOnce) {
    const ProgramResult result =
        run_program("cost zoo:l2net --schedule '" + std::string(fused) + "' --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    const auto& counts = answer.at("counts");
    EXPECT_EQ(counts.at("reads").at("X"), 20 * 20 * 3);
    EXPECT_EQ(counts.at("reads").at("W"), 3 * 3 * 3 * 4 + 3 * 3 * 4 * 4);
    EXPECT_EQ(counts.at("reads").at("Y"), 0);
    EXPECT_EQ(counts.at("writes").at("Y"), 16 * 16 * 4);
    EXPECT_EQ(answer.at("macs"),
              18 * 18 * 4 * 3 * 9 + 16 * 16 * 4 * 4 * 9);  // every row of conv1 once
    // The first tile of conv2 needs 6 rows of conv1, which need 8 rows of X. Later tiles need 4 new
    // rows, which need 6 of X.
    EXPECT_EQ(counts.at("buffer_elements").at("X"), 8 * 20 * 3);
    EXPECT_EQ(counts.at("buffer_elements").at("intermediates"), 6 * 18 * 4);
    EXPECT_EQ(counts.at("buffer_elements").at("Y"), 1);  // zi yi xi are outside: one sum at a time
    EXPECT_EQ(answer.at("live_total_elements"), 8 * 20 * 3 + 6 * 18 * 4 + (108 + 144) + 1);
}

TEST(Cost, TellsHowFarFromTheBoundItIs) {
    const ProgramResult result =
        run_program("cost zoo:l2net --schedule '" + std::string(fused) + "' --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer.at("bound_accesses_elements"),
              2476);  // input, weights and output once; reached
    EXPECT_EQ(answer.at("achieved_over_bound"), 1);
}

TEST(Cost, EnergyByPartOnAMachine) {
    const std::string machines = std::string(LAMINATE_MACHINES) + "/convfusion-40nm";
    const std::string command =
        "cost zoo:l2net --schedule '" + std::string(fused) + "' --machine " + machines;
    const ProgramResult result = run_program(command + ".json --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto energy = nlohmann::json::parse(result.out).at("energy");
    EXPECT_EQ(energy.at("machine"), "convfusion-40nm");
    EXPECT_DOUBLE_EQ(energy.at("macs_pj"), 10.2 * 71'856);
    EXPECT_DOUBLE_EQ(energy.at("external_pj"), 1120.0 * 2476);
    // 1165 elements live; four accesses per MAC, one more for each of 1452 external reads.
    EXPECT_DOUBLE_EQ(energy.at("internal_pj"),
                     (0.012 * std::sqrt(16.0 * 1165) + 4.61) * (4 * 71'856 + 1452));
    EXPECT_EQ(energy.at("register_file_pj"), 0);

    const ProgramResult levels = run_program(command + "-banked-rf.json");
    ASSERT_EQ(levels.exit_code, 0) << levels.err;
    EXPECT_NE(levels.out.find("register file"), std::string::npos) << levels.out;

    const ProgramResult missing = run_program(command + "-nowhere.json");
    EXPECT_EQ(missing.exit_code, 3);
    EXPECT_EQ(
        missing.err,
        "laminate: error: energy table " + machines +
            "-nowhere.json: no such name or file; names: convfusion-40nm, convfusion-40nm-banked, "
            "convfusion-40nm-banked-rf\n");
}

TEST(Cost, AnIllegalScheduleIsBadInputAndNamesTheLayer) {
    std::string illegal = fused;
    illegal.replace(illegal.find("Y xi/xi"), 7, "Y xi/yi");
    const ProgramResult result = run_program("cost zoo:l2net --schedule '" + illegal + "'");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("conv2"), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
}

TEST(Show, TheLoopNestNamesEveryLayer) {
    const ProgramResult result = run_program("show '" + std::string(fused) + "' --net zoo:l2net");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("conv1"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("conv2"), std::string::npos) << result.out;
}

/// Tiles of 4 x 4 whose halo is kept along rows and columns.
constexpr const char* kept_both_ways =
    "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.xo/conv2.xo; W root/root; "
    "Y root/conv2.xo & conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x4 i4; W root/root; Y "
    "xo/xo}";

TEST(Show, AGeneratorForHalide) {
    const std::string lines =
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W root/root; "
        "Y root/conv2.yo & conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; "
        "Y yo/yo}";
    const ProgramResult result =
        run_program("show '" + lines + "' --net zoo:l2net --halide --name two_layers");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("HALIDE_REGISTER_GENERATOR(Two_layersGenerator, two_layers)"),
              std::string::npos)
        << result.out;
    EXPECT_NE(result.out.find("conv1.store_root().compute_at(conv2_out, yo)"), std::string::npos)
        << result.out;
}

TEST(Show, WhereHalideDoesOtherwiseItSaysWhyAndClosestCountsIt) {
    const std::string command =
        "show '" + std::string(kept_both_ways) + "' --net zoo:l2net --halide";
    const ProgramResult refused = run_program(command);
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_NE(refused.err.find("conv1_out is kept along two loops, yo and xo"), std::string::npos)
        << refused.err;
    const ProgramResult closest = run_program(command + " --closest");
    ASSERT_EQ(closest.exit_code, 0) << closest.err;
    EXPECT_NE(closest.out.find("//   conv1_out is kept along two loops, yo and xo"),
              std::string::npos);
    // Kept along columns alone: every strip of four rows makes six rows of conv1, 4 x 6 x 18 x 4.
    EXPECT_NE(closest.out.find("// MACs                        71,856  83,520  DIFFERENT"),
              std::string::npos)
        << closest.out;
    EXPECT_NE(
        closest.out.find("// Its output on random values is that of the reference operators.\n"),
        std::string::npos)
        << closest.out;
}

TEST(Show, AFileThatNamesNoNetworkSaysWhatToGive) {
    const ScratchDirectory scratch;
    std::ofstream(scratch / "s.json") << R"({"schema":"laminate.schedule"})";
    const ProgramResult result = run_program("show " + (scratch / "s.json"));
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.err, "laminate: error: " + (scratch / "s.json") +
                              ": names no network; give the network with --net\n");
}

}  // namespace
}  // namespace laminate::cli
