#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

nlohmann::json json_of(const std::string& arguments) {
    const ProgramResult result = run_program(arguments + " --json -");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
}

TEST(ExploreSpatialFusion, StacksOfAChainMoveEveryTensorOnce) {
    const auto answer =
        json_of("explore 'zoo:mc-cnn?height=60&width=80' --model spatial-fusion --machine hwff_1");
    EXPECT_EQ(answer["schema"], "laminate.spatial_fusion");
    EXPECT_EQ(answer["count"], "exact");
    // All four layers, 1 -> 32 -> 32 -> 32 -> 32 maps of 80 x 60, and their weights fit in 512 KiB:
    // input, weights and output once, one byte each.
    ASSERT_EQ(answer["stacks"].size(), 1);
    const auto& stack = answer["stacks"][0];
    EXPECT_EQ(stack["layers"], (std::vector<std::string>{"conv1", "conv2", "conv3", "conv4"}));
    EXPECT_EQ(stack["volume_bytes"], 80 * 60 + 9 * (32 + 3 * 32 * 32) + 80 * 60 * 32);
    EXPECT_EQ(stack["operations"], 80LL * 60 * 9 * (32 + 3 * 32 * 32));
    EXPECT_LE(stack["exact_footprint_bytes"], stack["footprint_bytes"]);
    EXPECT_LE(stack["footprint_bytes"], answer["on_chip_bytes"]);
    EXPECT_EQ(stack["tile_classes"],
              nullptr);  // one-pixel tiles under four layers: the last tiles fetch nothing, so
                         // an axis has more than three sizes
    EXPECT_EQ(stack["temporal"]["register_bytes_per_layer"], 512 / 4);
    EXPECT_GE(stack["spatial_serial"]["compute_cycles"],
              stack["spatial_parallel"]["compute_cycles"]);
    EXPECT_LT(answer["totals"]["all_layers"]["stacks"]["volume_bytes"],
              answer["totals"]["all_layers"]["apart"]["volume_bytes"]);
    EXPECT_LT(answer["totals"]["all_layers"]["stacks"]["energy_pj"],
              answer["totals"]["all_layers"]["apart"]["energy_pj"]);
    EXPECT_GE(answer["search_ms"], 0);
}

TEST(ExploreSpatialFusion, SixteenBitsAndLessMemoryFuseNoMore) {
    const std::string base =
        "explore 'zoo:mc-cnn?height=60&width=80' --model spatial-fusion --machine hwff_1";
    const auto wide = json_of(base + " --element-bits 16 --on-chip 32KiB");
    EXPECT_EQ(wide["element_bits"], 16);
    EXPECT_EQ(wide["on_chip_bytes"], 32 * 1024);
    EXPECT_GT(wide["stacks"].size(), 1);
    EXPECT_EQ(wide["stacks"][0]["energy_pj"], nullptr);  // the machine prices MACs of 8 bits
    for (const auto& stack : wide["stacks"]) EXPECT_LE(stack["footprint_bytes"], 32 * 1024);
    const auto pairs = json_of(base +
                               " --max-layers 2 --count paper --search paper --stack-tiles "
                               "divisors --full-rows --baseline-rows "
                               "conv1=30,conv2=30,conv3=30,conv4=30");
    for (const auto& stack : pairs["stacks"]) EXPECT_LE(stack["layers"].size(), 2);
    EXPECT_GT(pairs["totals"]["fused_layers"]["baseline_bytes"],
              pairs["totals"]["fused_layers"]["stacks"]["volume_bytes"]);
}

TEST(ExploreSpatialFusion, BurstsCountMore) {
    const std::string base =
        "explore 'zoo:mc-cnn?height=60&width=80' --model spatial-fusion --machine hwff_1 "
        "--full-rows";
    const auto plain = json_of(base);
    const auto bursts = json_of(base + " --burst-bytes 64");
    EXPECT_EQ(plain["burst_bytes"], nullptr);
    EXPECT_EQ(bursts["burst_bytes"], 64);
    ASSERT_EQ(plain["stacks"].size(), bursts["stacks"].size());
    for (size_t n = 0; n < plain["stacks"].size(); ++n) {
        const auto& a = plain["stacks"][n];
        const auto& b = bursts["stacks"][n];
        EXPECT_FALSE(a.contains("burst_volume_bytes"));
        EXPECT_EQ(a["volume_bytes"], b["volume_bytes"]);
        EXPECT_GT(b["burst_volume_bytes"], b["volume_bytes"]);
        EXPECT_EQ(b["burst_volume_bytes"].get<int64_t>() % 64, 0);
        EXPECT_LT(b["ctc"], a["ctc"]);
        EXPECT_GT(b["temporal"]["communication_cycles"], a["temporal"]["communication_cycles"]);
    }
    EXPECT_EQ(run_program(base + " --burst-bytes 0").exit_code, 2);
}

TEST(ExploreSpatialFusion, ItsScheduleIsCountedAsPredicted) {
    const ScratchDirectory scratch;
    const std::string directory = scratch / "stacks";
    const auto answer = json_of(
        "explore zoo:l3net --model spatial-fusion --on-chip 600 --full-rows -o " + directory);
    EXPECT_EQ(nlohmann::json::parse(read_file(directory + "/stacks.json")), answer);
    int64_t volume = 0;
    for (const auto& stack : answer["stacks"]) {
        EXPECT_EQ(stack["counted"]["accesses_elements"], stack["volume_elements"]);
        EXPECT_EQ(stack["counted"]["macs"], stack["operations"]);
        volume += stack["volume_elements"].get<int64_t>();
    }
    for (const std::string& which :
         {"--front " + directory, "--execute-macs 1 --schedule " + directory}) {
        const auto validated = json_of("validate zoo:l3net " + which);
        EXPECT_EQ(validated["total"], 1);
        EXPECT_EQ(validated["equal"], 1);
    }
    const auto front = nlohmann::json::parse(read_file(directory + "/front.json"));
    EXPECT_EQ(front["points"][0]["accesses_elements"], volume);
}

TEST(ExploreSpatialFusion, ThreadsChangeNothing) {
    const auto answer = [](const std::string& threads) {
        auto json = json_of(
            "explore 'zoo:mobilenetv2?height=32&width=32' --model spatial-fusion --threads " +
            threads);
        json.erase("search_ms");
        return json;
    };
    EXPECT_EQ(answer("1"), answer("2"));
}

TEST(ExploreSpatialFusion, Refusals) {
    const std::string base = "explore zoo:l2net --model spatial-fusion ";
    EXPECT_EQ(run_program(base + "--machine meta_proto").exit_code, 3);
    EXPECT_EQ(run_program(base + "--count fitted").exit_code, 2);
    EXPECT_EQ(run_program(base + "--baseline-rows conv9=3").exit_code, 2);
    EXPECT_EQ(run_program(base + "--tiles all").exit_code, 2);  // an option of another model
    const ProgramResult transposed = run_program("explore zoo:fsrcnn-x2 --model spatial-fusion");
    EXPECT_EQ(transposed.exit_code, 3);
    EXPECT_NE(transposed.err.find("a transposed convolution"), std::string::npos) << transposed.err;
    const ProgramResult small = run_program(base + "--on-chip 18");
    EXPECT_EQ(small.exit_code, 4);
    EXPECT_NE(small.err.find("the smallest budget that works is 19 bytes"), std::string::npos)
        << small.err;
}

}  // namespace
}  // namespace laminate::cli
