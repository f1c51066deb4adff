#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "nets/onnx/onnx.h"
#include "nets/zoo/builder.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

nlohmann::json answer_of(const std::string& arguments) {
    const ProgramResult result =
        run_program("explore " + arguments + " --model dag-groups --json -");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
}

TEST(ExploreDagGroups, SqueezeNetAsInThePaper) {
    const auto answer = answer_of("zoo:squeezenet --machine optimus_base");
    EXPECT_EQ(answer["schema"], "laminate.dag_groups");
    EXPECT_EQ(answer["groups_examined"], 1057);  // Optimus, Table 5
    EXPECT_EQ(answer["group_count"], 8);         // Optimus: 8
    EXPECT_EQ(answer["operators"], 38);
    EXPECT_EQ(answer["batch"], 4);
    EXPECT_EQ(answer["buffer_entries"], 131072);
    EXPECT_EQ(answer["is_exact"], true);
    EXPECT_EQ(answer["dram_lower_bound_bytes"], answer["dram_bytes"]);
    int64_t bytes = 0;
    size_t operators = 0;
    for (const auto& group : answer["groups"]) {
        bytes += group["dram_bytes"].get<int64_t>();
        operators += group["operators"].size();
        EXPECT_EQ(group["dram_bytes"],
                  group["input_bytes"].get<int64_t>() + group["output_bytes"].get<int64_t>() +
                      group["weight_bytes"].get<int64_t>() * group["weight_passes"].get<int64_t>());
    }
    EXPECT_EQ(answer["dram_bytes"], bytes);
    EXPECT_EQ(operators, 38u);
    EXPECT_NEAR(answer["saved"].get<double>(), 0.879, 0.0005);
}

TEST(ExploreDagGroups, ReadingBatchAndMachine) {
    const auto literal = answer_of("zoo:squeezenet-1.1 --reading L");
    EXPECT_EQ(literal["buffer_entries"], 65536);
    EXPECT_EQ(literal["group_count"], 10);
    const auto one = answer_of("zoo:squeezenet-1.1 --reading L --images 1");
    EXPECT_LT(one["baseline_bytes"], literal["baseline_bytes"]);
    const auto own = answer_of("'zoo:squeezenet-1.1?batch=2'");
    EXPECT_EQ(own["batch"], 2);
    const auto larger = answer_of("zoo:squeezenet-1.1 --machine optimus_5");
    EXPECT_LE(larger["dram_bytes"],
              answer_of("zoo:squeezenet-1.1 --machine optimus_1")["dram_bytes"]);
    const auto online = answer_of("zoo:squeezenet-1.1 --online");
    EXPECT_EQ(online["online"], true);
    EXPECT_EQ(online["online_size_limit"], 10);  // the most that is tabulated: docs/optimus.md
}

TEST(ExploreDagGroups, TheGroupsCompileAndRun) {
    // GoogLeNet: branches that join inside a group.
    const ScratchDirectory scratch;
    const std::string net = "'zoo:googlenet?height=32&width=32'";
    const ProgramResult explored =
        run_program("explore " + net + " --model dag-groups --buffer-entries 12000 --json - -o " +
                    (scratch / "groups"));
    ASSERT_EQ(explored.exit_code, 0) << explored.err;
    const auto answer = nlohmann::json::parse(explored.out);
    EXPECT_EQ(nlohmann::json::parse(read_file(scratch / "groups/groups.json")), answer);
    size_t largest = 0;
    for (const auto& group : answer["schedule"]["groups"])
        largest = std::max(largest, group["operators"].size());
    EXPECT_GE(largest, 3u);
    const ProgramResult validated =
        run_program("validate " + net + " --schedule " + (scratch / "groups") + " --json -");
    EXPECT_EQ(validated.exit_code, 0) << validated.err;
    const auto difference = nlohmann::json::parse(validated.out);
    EXPECT_EQ(difference["equal"], difference["total"]);
    EXPECT_NE(
        read_file(scratch / "groups/report.html").find("1 schedule found by the dag-groups model"),
        std::string::npos);
    EXPECT_EQ(run_program("report " + (scratch / "groups")).exit_code, 0);
    // It writes again into the same directory, which is ours, but not into another one.
    EXPECT_EQ(
        run_program("explore " + net + " --model dag-groups --online -o " + (scratch / "groups"))
            .exit_code,
        0);
}

TEST(ExploreDagGroups, OurSchedulesAsTheCostOfAGroup) {
    const std::string net = "'zoo:resnet18?height=64&width=64' --buffer-entries 20000";
    const auto optimus = answer_of(net);
    const auto either = answer_of(net + " --group-cost either");
    const auto ours = answer_of(net + " --group-cost ours");
    EXPECT_LE(either["dram_bytes"], optimus["dram_bytes"]);  // never worse than the paper's cost
    EXPECT_LE(ours["dram_bytes"], ours["baseline_bytes"]);
    EXPECT_EQ(ours["groups"][0]["our_dram_bytes"], ours["groups"][0]["dram_bytes"]);
}

TEST(ExploreDagGroups, AnOperatorThatFitsInAGroupButNotAlone) {
    // A map that is enlarged afterwards needs four columns at a time in the group and sixteen
    // alone, because the lanes are the sink's.
    const ScratchDirectory scratch;
    zoo::Builder builder("enlarged", {});
    const TensorId wide =
        builder.conv("wide", builder.input(8, 64, 64), {.out = 64, .kernel = 9, .pad = 4});
    save_onnx(builder.finish(
                  builder.conv_transpose("enlarge", wide, {.out = 1, .kernel = 4, .stride = 4})),
              scratch / "net.onnx");
    const std::string net =
        (scratch / "net.onnx") + " --model dag-groups --json - --buffer-entries ";
    const ProgramResult small = run_program("explore " + net + "1");
    EXPECT_EQ(small.exit_code, 4);
    const std::string before = "the smallest budget that works is ";
    const size_t at = small.err.find(before);
    ASSERT_NE(at, std::string::npos) << small.err;
    const int64_t least = std::stoll(small.err.substr(at + before.size()));
    EXPECT_EQ(run_program("explore " + net + std::to_string(least - 1)).exit_code, 4);
    const ProgramResult found = run_program("explore " + net + std::to_string(least));
    ASSERT_EQ(found.exit_code, 0) << found.err;
    const auto answer = nlohmann::json::parse(found.out);
    EXPECT_EQ(answer["group_count"], 1);
    EXPECT_TRUE(answer["baseline_bytes"].is_null());
    EXPECT_TRUE(answer["saved"].is_null());
}

TEST(ExploreDagGroups, Refusals) {
    EXPECT_EQ(run_program("explore zoo:squeezenet --model dag-groups --reading X").exit_code, 2);
    EXPECT_EQ(run_program("explore zoo:squeezenet --model dag-groups --evaluator eq7").exit_code,
              2);  // of another model
    EXPECT_EQ(run_program("explore zoo:squeezenet --model dag-groups --machine nowhere").exit_code,
              3);
    const ProgramResult small =
        run_program("explore zoo:squeezenet --model dag-groups --buffer-entries 100");
    EXPECT_EQ(small.exit_code, 4);
    EXPECT_NE(small.err.find("the smallest budget that works is"), std::string::npos) << small.err;
}

}  // namespace
}  // namespace laminate::cli
