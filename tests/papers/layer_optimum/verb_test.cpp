#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "nets/onnx/onnx.h"
#include "nets/zoo/builder.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

TEST(ExploreLayerOptimum, JsonOfEveryLayer) {
    const ScratchDirectory scratch;
    const ProgramResult result = run_program(
        "explore 'zoo:mc-cnn?height=60&width=80' --model layer-optimum --machine cnnflow_eyeriss "
        "--buffer 8KiB --json "
        "- -o " +
        (scratch / "layers"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer["schema"], "laminate.layer_optimum");
    ASSERT_EQ(answer["layers"].size(), 4);
    const auto& layer = answer["layers"][1];
    EXPECT_EQ(layer["name"], "conv2");
    EXPECT_EQ(layer["loops"], "f1 k32 c32 x80 y60 m3 n3");
    EXPECT_EQ(layer["evaluator"], "eq7");
    EXPECT_EQ(layer["proven_under"], "eq7");
    // Every tensor once: input 82 x 62 x 32 with its padding, 32 x 32 x 9 weights, output 80 x 60 x
    // 32, 2 bytes a word.
    EXPECT_EQ(layer["compulsory_bytes"], 2 * (82 * 62 * 32 + 32 * 32 * 9 + 80 * 60 * 32));
    EXPECT_GE(layer["dram_bytes"], layer["io_lower_bound_bytes"]);
    EXPECT_EQ(layer["banks"]["input"].get<int>() + layer["banks"]["weights"].get<int>() +
                  layer["banks"]["output"].get<int>(),
              27);
    EXPECT_GT(answer["totals"]["conv"]["dram_bytes"], answer["totals"]["conv"]["compulsory_bytes"]);
    EXPECT_EQ(nlohmann::json::parse(read_file(scratch / "layers/layers.json")), answer);
}

TEST(ExploreLayerOptimum, BeladyIsNoMoreThanTheFormulaWhereBlocksHaveNoGaps) {
    const std::string layers =
        "explore 'zoo:mc-cnn?height=30&width=40' --model layer-optimum --buffer 4KiB --json - "
        "--evaluator ";
    const auto eq7 = nlohmann::json::parse(run_program(layers + "eq7").out);
    const auto belady = nlohmann::json::parse(run_program(layers + "belady").out);
    for (size_t l = 0; l < 4; ++l) {
        EXPECT_LE(belady["layers"][l]["dram_lower_bound_bytes"], eq7["layers"][l]["dram_bytes"]);
        EXPECT_LE(belady["layers"][l]["dram_lower_bound_bytes"], belady["layers"][l]["dram_bytes"]);
    }
}

TEST(ExploreLayerOptimum, AProofSaysUnderWhichEvaluatorItHolds) {
    // 3x3 of stride 2 on 5 x 5 in 4 banks of 2 words: 38 words by the formula, 46 in a memory.
    const ScratchDirectory scratch;
    zoo::Builder builder("gaps", {});
    save_onnx(builder.finish(builder.conv("conv", builder.input(1, 5, 5),
                                          {.out = 1, .kernel = 3, .stride = 2})),
              scratch / "net.onnx");
    const std::string explore = "explore " + (scratch / "net.onnx") +
                                " --model layer-optimum --buffer 16B --banks 4 --evaluator ";
    const auto layer_under = [&](const std::string& evaluator) {
        const ProgramResult result = run_program(explore + evaluator + " --json -");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return nlohmann::json::parse(result.out)["layers"][0];
    };
    const auto eq7 = layer_under("eq7");
    EXPECT_EQ(eq7["dram_bytes"], 2 * 38);
    EXPECT_EQ(eq7["proven_under"], "eq7");
    EXPECT_GE(eq7["dram_by_belady_bytes"], 2 * 46);
    const auto belady = layer_under("belady");
    EXPECT_EQ(belady["dram_bytes"], 2 * 46);
    EXPECT_EQ(belady["proven_under"], "belady");
    const std::string table = run_program(explore + "eq7").out;
    EXPECT_NE(table.find("eq7 counts less than Belady's replacement moves"), std::string::npos)
        << table;
}

TEST(ExploreLayerOptimum, TheAnswerDoesNotDependOnThreads) {
    const auto answer = [](const std::string& threads) {
        const std::string layers =
            "explore 'zoo:fsrcnn?height=30&width=40' --model layer-optimum --buffer 4KiB --json - "
            "--threads ";
        auto json = nlohmann::json::parse(run_program(layers + threads).out);
        for (auto& layer : json["layers"])
            for (const char* time : {"seconds", "cpu_seconds"}) layer.erase(time);
        return json;
    };
    EXPECT_EQ(answer("1"), answer("2"));
}

/// Interrupted once a layer is there. The curve keeps the other layers busy for long enough.
TEST(ExploreLayerOptimum, AnInterruptLeavesTheLayersSolvedSoFar) {
    const ScratchDirectory scratch;
    const std::string notes = scratch / "notes";
    const std::string json = scratch / "answer.json";
    const std::string command =
        "sh -c '" LAMINATE_PROGRAM
        " explore \"zoo:vgg16?batch=3\" --model layer-optimum --curve --threads 1 --json " +
        json + " 2>" + notes + " >/dev/null & program=$!; until grep -q \"1 of\" " + notes +
        "; do sleep 0.02; done; kill -INT $program; wait $program'";
    ASSERT_EQ(std::system(command.c_str()), 0) << read_file(notes);
    const auto answer = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(answer["complete"], false);
    EXPECT_FALSE(answer["layers"].empty());
    EXPECT_FALSE(answer["unsolved_layers"].empty());
    EXPECT_EQ(answer["layers"].size() + answer["unsolved_layers"].size(),
              16u);  // 13 convolutions, 3 fully connected
    for (const auto& layer : answer["layers"]) {
        EXPECT_EQ(layer["curve"].size(), 13u) << layer["name"];  // 1 KiB .. 4 MiB
        EXPECT_GE(layer["dram_bytes"], layer["io_lower_bound_bytes"]) << layer["name"];
    }
    EXPECT_NE(read_file(notes).find("interrupted: the layers solved so far; not "),
              std::string::npos)
        << read_file(notes);
}

/// Interrupted within the front of its only layer, which takes long where PEs have few registers.
TEST(ExploreLayerOptimum, AnInterruptLeavesThePointsOfAFrontFoundSoFar) {
    const ScratchDirectory scratch;
    const std::string notes = scratch / "notes";
    const std::string json = scratch / "answer.json";
    const std::string machine = scratch / "few.json";
    auto few = nlohmann::json::parse(read_file(LAMINATE_MACHINES "/cnnflow_eyeriss.json"));
    few["name"] = "few_registers";
    few["memories"][0]["capacity_bits"] = 12 * 16;
    write_file_atomically(machine, few.dump());
    const std::string command =
        "sh -c '" LAMINATE_PROGRAM
        " explore \"zoo:vgg16?batch=3\" --model layer-optimum --dram-sram-front --machine " +
        machine + " --threads 1 --json " + json + " 2>" + notes +
        " >/dev/null & program=$!; sleep 3; kill -INT $program; wait $program'";
    ASSERT_EQ(std::system(command.c_str()), 0) << read_file(notes);
    const auto answer = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(answer["complete"], false);
    ASSERT_FALSE(answer["layers"].empty());
    const auto& last = answer["layers"].back();
    EXPECT_EQ(last["front_complete"], false) << last["name"];
    EXPECT_EQ(last["proven_under"], "eq7");  // the fewest DRAM accesses were there before
    EXPECT_NE(read_file(notes).find("interrupted: the points found so far of the front of "),
              std::string::npos)
        << read_file(notes);
}

TEST(ExploreLayerOptimum, NamesLayersThatNoScheduleCovers) {
    // A 1x1 with padding: the outermost outputs read padding alone.
    const ScratchDirectory scratch;
    zoo::Builder builder("border", {});
    const TensorId wide =
        builder.conv("wide", builder.input(2, 6, 6), {.out = 3, .kernel = 3, .pad = 1});
    save_onnx(builder.finish(builder.conv("padded", wide, {.out = 2, .kernel = 1, .pad = 1})),
              scratch / "net.onnx");
    const ProgramResult result =
        run_program("explore " + (scratch / "net.onnx") + " --model layer-optimum --json " +
                    (scratch / "answer.json"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(read_file(scratch / "answer.json"));
    EXPECT_EQ(answer["left_out_layers"], nlohmann::json({"padded"}));
    ASSERT_EQ(answer["layers"].size(), 1u);
    EXPECT_EQ(answer["layers"][0]["name"], "wide");
    EXPECT_NE(
        result.out.find("left out, no schedule covers their windows (docs/cnnflow.md): padded"),
        std::string::npos)
        << result.out;
}

TEST(ExploreLayerOptimum, FrontAndCurve) {
    const ScratchDirectory scratch;
    const ProgramResult result = run_program(
        "explore 'zoo:fsrcnn?height=12&width=16' --model layer-optimum --buffer 2KiB --weight 0.01 "
        "--curve --json - "
        "-o " +
        (scratch / "layers"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    for (const auto& layer : answer["layers"]) {
        const auto& front = layer["front"];
        for (size_t n = 1; n < front.size(); ++n) {
            EXPECT_LT(front[n]["dram_bytes"], front[n - 1]["dram_bytes"]);
            EXPECT_GT(front[n]["sram_bytes"], front[n - 1]["sram_bytes"]);
        }
        EXPECT_GE(layer["chosen"]["dram_bytes"], layer["dram_bytes"]);
        // A larger buffer needs no more; 4 MiB hold every tensor of these layers.
        const auto& curve = layer["curve"];
        ASSERT_EQ(curve.size(), 13);
        for (size_t n = 1; n < curve.size(); ++n)
            EXPECT_LE(curve[n]["dram_bytes"], curve[n - 1]["dram_bytes"]);
        EXPECT_EQ(curve[12]["dram_bytes"], layer["compulsory_bytes"]);
    }
    const std::string page = read_file(scratch / "layers/curves.html");
    size_t charts = 0;
    for (size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1))
        ++charts;
    EXPECT_EQ(charts, answer["layers"].size());
    EXPECT_EQ(page.find("http"), std::string::npos);
    const std::string csv = read_file(scratch / "layers/curves.csv");
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'),
              1 + 13 * static_cast<int64_t>(answer["layers"].size()));
}

/// With a weight, the schedule that is written is that of the chosen point. A PE array's share of
/// it is no part of a schedule.
TEST(ExploreLayerOptimum, AWeightChoosesTheScheduleThatIsWritten) {
    const ScratchDirectory scratch;
    const auto written = [&](const std::string& options) {
        const ProgramResult result = run_program(
            "explore 'zoo:fsrcnn?height=12&width=16' --model layer-optimum "
            "--buffer 2KiB --json - -o " +
            (scratch / "layers") + " " + options);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(run_program("validate 'zoo:fsrcnn?height=12&width=16' --schedule " +
                              (scratch / "layers"))
                      .exit_code,
                  0);
        return nlohmann::json::parse(result.out);
    };
    const auto fewest = written("");
    EXPECT_EQ(fewest["schedule"]["orders"], "fewest DRAM accesses");
    const auto chosen = written("--weight 10");  // SRAM accesses above all
    EXPECT_EQ(chosen["schedule"]["orders"], "chosen");
    EXPECT_GT(chosen["schedule"]["accesses_elements_per_image"],
              fewest["schedule"]["accesses_elements_per_image"]);
    int64_t with_registers = 0;
    for (const auto& layer : chosen["layers"]) {
        EXPECT_EQ(layer["chosen"]["sram_bytes"], layer["front"][0]["sram_bytes"]) << layer["name"];
        with_registers += layer["chosen"].contains("pe_order") ? 1 : 0;
        EXPECT_GE(layer["chosen"]["sram_extra_bytes"], 0);
    }
    EXPECT_EQ(with_registers, static_cast<int64_t>(chosen["layers"].size()));
}

/// Three convolutions on small maps: the maps between them stay on chip.
TEST(ExploreLayerOptimum, FusedGroupsAreNeverWorse) {
    const ProgramResult result = run_program(
        "explore zoo:l3net --model layer-optimum --buffer 4KiB --fuse --group-layers 3 --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    const auto& fused = answer["fused"];
    EXPECT_EQ(fused["complete"], true);
    EXPECT_EQ(fused["groups_looked_at"], 6);  // of a chain of three
    int64_t alone = 0;
    for (const auto& layer : answer["layers"]) alone += layer["dram_bytes"].get<int64_t>();
    EXPECT_EQ(fused["layer_by_layer_bytes"], alone);
    ASSERT_EQ(fused["groups"].size(), 1u);
    EXPECT_EQ(fused["groups"][0]["means"], "schedule");
    EXPECT_EQ(fused["groups"][0]["layers"].size(), 3u);
    EXPECT_LT(fused["dram_bytes"], alone);
    EXPECT_GE(fused["dram_bytes"], fused["dram_lower_bound_bytes"]);
    const auto single =
        nlohmann::json::parse(run_program("explore zoo:l3net --model layer-optimum --buffer 4KiB "
                                          "--fuse --group-layers 1 --json -")
                                  .out);
    EXPECT_EQ(single["fused"]["dram_bytes"], alone);
}

/// With -o the answer is a schedule that validate takes, fused or layer by layer.
TEST(ExploreLayerOptimum, WritesASchedule) {
    const ScratchDirectory scratch;
    for (const std::string fuse : {"", " --fuse --group-layers 3"}) {
        const std::string directory = scratch / (fuse.empty() ? "alone" : "fused");
        const ProgramResult result = run_program(
            "explore random:5 --model layer-optimum --buffer 2KiB --json - -o " + directory + fuse);
        ASSERT_EQ(result.exit_code, 0) << result.err;
        const auto written = nlohmann::json::parse(result.out)["schedule"];
        EXPECT_EQ(written["file"], "front.json");
        int64_t accesses = 0;
        for (const auto& group : written["groups"])
            accesses += group["accesses_elements_per_image"].get<int64_t>();
        EXPECT_EQ(written["accesses_elements_per_image"], accesses);
        const ProgramResult valid = run_program("validate random:5 --schedule " + directory);
        EXPECT_EQ(valid.exit_code, 0) << valid.out << valid.err;
        EXPECT_NE(valid.out.find("1 of 1 schedules equal"), std::string::npos) << valid.out;
        EXPECT_NE(read_file(directory + "/report.html")
                      .find("1 schedule found by the layer-optimum model"),
                  std::string::npos);
        EXPECT_EQ(run_program("report " + directory).exit_code, 0);
    }
    // Orders of other layers than the network's are none of its schedule's.
    const ProgramResult published = run_program(
        "explore zoo:l2net --model layer-optimum --grouped-as-one -o " + (scratch / "published"));
    EXPECT_EQ(published.exit_code, 0) << published.err;
    EXPECT_NE(published.err.find("no schedule: --grouped-as-one"), std::string::npos)
        << published.err;
    EXPECT_FALSE(std::filesystem::exists(scratch / "published/front.json"));
}

TEST(ExploreLayerOptimum, Refusals) {
    const ProgramResult published =
        run_program("explore zoo:mc-cnn --model layer-optimum --fuse --grouped-as-one");
    EXPECT_EQ(published.exit_code, 2);
    EXPECT_NE(published.err.find("--fuse: not with --grouped-as-one"), std::string::npos)
        << published.err;
    for (const auto& [given, wanted] :
         {std::pair{"--group-layers 2", "--fuse"},
          std::pair{"--sram-factor 3", "--dram-sram-front or --weight"},
          std::pair{"--effort 2", "--evaluator belady"}}) {
        const ProgramResult alone =
            run_program(std::string("explore zoo:l2net --model layer-optimum ") + given);
        EXPECT_EQ(alone.exit_code, 2) << given;
        EXPECT_NE(alone.err.find(std::string("expected with ") + wanted), std::string::npos)
            << alone.err;
    }
    const ProgramResult pools = run_program("explore random:11 --model layer-optimum");
    EXPECT_EQ(pools.exit_code, 3);
    EXPECT_NE(pools.err.find("found average_pool"), std::string::npos) << pools.err;
    EXPECT_EQ(
        run_program("explore zoo:mc-cnn --model layer-optimum --machine meta_proto").exit_code, 3);
    EXPECT_EQ(run_program("explore zoo:mc-cnn --model layer-optimum --evaluator lru").exit_code, 2);
    const ProgramResult small = run_program("explore zoo:mc-cnn --model layer-optimum --buffer 20");
    EXPECT_EQ(small.exit_code, 4);
    EXPECT_NE(small.err.find("the smallest budget that works is 54 bytes"), std::string::npos)
        << small.err;
    EXPECT_EQ(run_program("explore zoo:l2net -o nowhere --evaluator belady").exit_code,
              2);  // an option of another model
}

}  // namespace
}  // namespace laminate::cli
