// The verb `bench`: its JSON, and the consistency of its figures. Speed is not tested, because
// machines may be busy.
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

TEST(Bench, FiguresOfBothVariantsAreConsistent) {
    const ProgramResult result =
        run_program("bench 'zoo:fsrcnn?height=64&width=64' --threads 1 --seconds 0.05 --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer.at("schema"), "laminate.bench");
    EXPECT_TRUE(answer.at("correct").get<bool>());
    EXPECT_TRUE(answer.at("counts_equal").get<bool>());
    const double gflop = 2e-9 * answer.at("macs").get<double>();
    for (const char* name : {"fused", "layer_by_layer"}) {
        const auto& variant = answer.at(name);
        EXPECT_GE(variant.at("times_ms").size(), 3U);
        EXPECT_LE(variant.at("min_ms").get<double>(), variant.at("median_ms").get<double>());
        EXPECT_NEAR(variant.at("gflops").get<double>(),
                    gflop / (1e-3 * variant.at("median_ms").get<double>()),
                    1e-6 * variant.at("gflops").get<double>());
        EXPECT_NEAR(variant.at("of_peak").get<double>(),
                    variant.at("gflops").get<double>() / answer.at("peak_gflops").get<double>(),
                    1e-6);
        EXPECT_EQ(variant.at("predicted"), variant.at("measured"));
        EXPECT_GT(variant.at("cpu_seconds").at("planning").get<double>(), 0);
    }
    EXPECT_LT(answer.at("fused").at("arena_bytes").get<int64_t>(),
              answer.at("layer_by_layer").at("arena_bytes").get<int64_t>());
    EXPECT_LT(answer.at("fused").at("predicted").at("accesses_elements").get<int64_t>(),
              answer.at("layer_by_layer").at("predicted").at("accesses_elements").get<int64_t>());
}

TEST(Bench, StepsAddUpToTheNetwork) {
    const ProgramResult result =
        run_program("bench zoo:mobilenetv2-w0.35 --steps --threads 2 --seconds 0 --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    for (const char* name : {"fused", "layer_by_layer"}) {
        const auto& variant = answer.at(name);
        int64_t macs = 0;
        double predicted = 0;
        size_t outside = 0;
        for (const auto& step : variant.at("steps")) {
            EXPECT_GT(step.at("median_ms").get<double>(), 0) << step;
            EXPECT_FALSE(step.at("layers").empty()) << step;
            outside += step.contains("macs") ? 0 : 1;
            if (!step.contains("macs")) continue;
            EXPECT_GT(step.at("bytes").get<int64_t>(), 0) << step;
            EXPECT_FALSE(step.at("kernels").get<std::string>().empty()) << step;
            macs += step.at("macs").get<int64_t>();
            predicted += step.at("predicted_ms").get<double>();
        }
        EXPECT_EQ(macs, answer.at("macs").get<int64_t>());
        EXPECT_NEAR(predicted, variant.at("predicted_ms").get<double>(), 1e-9);
        EXPECT_GE(outside, 1U);  // the softmax
    }
}

// Issue 31, 2.
TEST(Bench, ItSaysWhyFusingMovesMoreWhereItDoes) {
    const ScratchDirectory scratch;
    ASSERT_EQ(run_program("explore zoo:l2net -o " + (scratch / "front")).exit_code, 0);
    const auto front = nlohmann::json::parse(read_file(scratch / "front/front.json"));
    const auto bench = [&](size_t point) {
        const ProgramResult result =
            run_program("bench zoo:l2net --seconds 0 --threads 1 --schedule " +
                        (scratch / "front#") + std::to_string(point));
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return result.out;
    };
    EXPECT_EQ(bench(0).find("fused moves"), std::string::npos);
    // The point of least memory: tiles of a pixel, which share what they read.
    const std::string least = bench(front.at("points").size() - 1);
    EXPECT_NE(least.find("fused moves "), std::string::npos) << least;
    EXPECT_NE(least.find(", are reads of X: tiles share rows"), std::string::npos) << least;
}

TEST(Bench, WhatNeedsMoreMemoryThanThereIsIsRefusedBeforeItRuns) {
    const ProgramResult result =
        run_program("bench 'zoo:fsrcnn?height=100000&width=100000' --seconds 0");
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_NE(result.err.find("fsrcnn: checking the code of the group of"), std::string::npos)
        << result.err;
    EXPECT_NE(result.err.find("of memory that are available"), std::string::npos) << result.err;
}

TEST(Bench, EveryScheduleOfAFrontIsTimed) {
    const ScratchDirectory scratch;
    const std::string front = scratch / "front";
    const std::string net = "\"zoo:l3net?height=64&width=64\"";
    // With accesses as an axis there are three points whatever the processor's speeds say.
    ASSERT_EQ(run_program("explore " + net +
                          " --axes accesses,memory,time --tiles pow2 --threads 1 -o " + front)
                  .exit_code,
              0);
    const ProgramResult result = run_program("bench " + net + " --front " + front +
                                             " --points 3 --threads 1 --seconds 0 --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    const auto points = nlohmann::json::parse(read_file(front + "/front.json")).at("points");
    EXPECT_EQ(answer.at("points"), nlohmann::json({0, (points.size() - 1) / 2, points.size() - 1}));
    ASSERT_EQ(answer.at("schedules").size(), 3U);
    for (size_t n = 0; n < 3; ++n) {
        const auto& entry = answer.at("schedules").at(n);
        EXPECT_TRUE(entry.at("correct").get<bool>());
        EXPECT_TRUE(entry.at("counts_equal").get<bool>());
        // The front's prediction is of the same schedule, threads and processor.
        const size_t point = answer.at("points").at(n).get<size_t>();
        EXPECT_NEAR(entry.at("fused").at("predicted_ms").get<double>(),
                    points.at(point).at("time_ms").get<double>(), 1e-9);
        EXPECT_EQ(entry.at("fused").at("predicted").at("live_bytes"),
                  points.at(point).at("live_bytes"));
        EXPECT_GE(entry.at("layer_by_layer").at("times_ms").size(), 3U);
    }
    EXPECT_EQ(run_program("bench zoo:l2net --front " + front).exit_code, 3);
    EXPECT_EQ(run_program("bench " + net + " --front " + front + " --memory 1MiB").exit_code, 2);
}

TEST(Bench, ACompiledDirectoryIsTimed) {
    const ScratchDirectory scratch;
    ASSERT_EQ(run_program("compile zoo:l3net -o " + (scratch / "net")).exit_code, 0);
    const ProgramResult result =
        run_program("bench " + (scratch / "net") + " --seconds 0.01 --steps --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer.at("network"), "l3net");
    EXPECT_GE(answer.at("compiled").at("times_ms").size(), 3U);
    EXPECT_GT(answer.at("compiled").at("arena_bytes").get<int64_t>(), 0);
    ASSERT_FALSE(answer.at("compiled").at("steps").empty());
    for (const auto& step : answer.at("compiled").at("steps"))
        EXPECT_GT(step.at("median_ms").get<double>(), 0) << step;
}

}  // namespace
}  // namespace laminate::cli
