// Exit codes and messages of the command line (cli/README.md), on the built program.
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "nets/onnx/onnx.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

TEST(Program, NoVerbIsAUsageErrorOfOneLine) {
    const ProgramResult result = run_program("");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("laminate: error: found none, expected a verb: info, zoo, ", 0), 0U)
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(Program, AVerbOfAVerbIsNamedTheSameWay) {
    const auto refusal = [](const std::string& arguments) {
        const ProgramResult result = run_program(arguments);
        EXPECT_EQ(result.exit_code, 2) << arguments;
        return result.err;
    };
    EXPECT_EQ(refusal("zoo"),
              "laminate: error: found none, expected a verb after \"zoo\": list, export\n");
    EXPECT_EQ(refusal("zoo lsit"),
              "laminate: error: found \"lsit\", expected a verb after \"zoo\": list, export\n");
    EXPECT_EQ(refusal("machine"),
              "laminate: error: found none, expected a verb after \"machine\": list, show, check, "
              "measure\n");
    // An option that is missing is no missing verb.
    EXPECT_EQ(refusal("zoo export l2net"),
              "laminate: error: --output is required (see laminate --help)\n");
}

TEST(Program, AnUnknownVerbIsNamedWithThoseThatThereAre) {
    const ProgramResult result = run_program("exlpore zoo:l2net");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(
        result.err.rfind("laminate: error: found \"exlpore\", expected a verb: info, zoo, ", 0), 0U)
        << result.err;
    EXPECT_EQ(result.err.find("reference"), std::string::npos) << "a hidden verb: " << result.err;
}

TEST(Program, ValuesAreNamedWithWhatIsExpected) {
    EXPECT_EQ(run_program("info zoo:l2net --height 0").err,
              "laminate: error: --height: found \"0\", expected a whole number from 1 (see "
              "laminate --help)\n");
    EXPECT_EQ(run_program("explore zoo:l2net --seconds -1").err,
              "laminate: error: --seconds: found \"-1\", expected a number above 0 (see laminate "
              "--help)\n");
    for (const std::string option :
         {"bench zoo:l2net --reference-macs", "validate zoo:l2net --walker-calls",
          "validate zoo:l2net --execute-macs"}) {
        EXPECT_EQ(run_program(option + " -1").err,
                  "laminate: error: " + option.substr(option.find("--")) +
                      ": found \"-1\", expected a number, 0 or more (see laminate "
                      "--help)\n");
    }
    EXPECT_EQ(run_program("explore zoo:l2net --tiles none").err,
              "laminate: error: --tiles: found \"none\", expected one of all,divisors,pow2 (see "
              "laminate --help)\n");
}

TEST(Program, VeryLongWordsAreCutInTheirMiddle) {
    const std::string name(5000, 'x');
    EXPECT_EQ(run_program("info " + name).err, "laminate: error: " + name.substr(0, 200) + "..." +
                                                   name.substr(0, 78) + ": no such file\n");
    for (const auto& [arguments, exit_code] : {std::pair{"report ", 3},
                                               {"validate zoo:l2net --front ", 3},
                                               {"explore zoo:l2net --tiles ", 2},
                                               {"", 2}}) {
        const ProgramResult result = run_program(arguments + name);
        EXPECT_EQ(result.exit_code, exit_code) << arguments << result.err;
        EXPECT_LT(result.err.size(), 600U) << arguments;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
    // Letters stay whole.
    std::string letters;
    for (int k = 0; k < 1000; ++k) letters += "\u00e9";
    const std::string message = run_program("info " + letters + "x").err;
    EXPECT_NE(message.find("\u00e9...\u00e9"), std::string::npos) << message;
}

TEST(Program, AFileWithoutANameIsAUsageError) {
    const ProgramResult result = run_program("info zoo:l2net --json ''");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err,
              "laminate: error: --json: found \"\", expected a file (see laminate --help)\n");
}

TEST(Program, AnUnknownOptionIsAUsageError) {
    const ProgramResult result = run_program("info zoo:l2net --no-such-option");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("--no-such-option"), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
}

TEST(Program, HelpNamesTheExitCodesAndAVerbsHelpShowsExamples) {
    const ProgramResult help = run_program("--help");
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find("4 infeasible"), std::string::npos);
    const ProgramResult info = run_program("info --help");
    EXPECT_EQ(info.exit_code, 0);
    EXPECT_NE(info.out.find("laminate info zoo:resnet50"), std::string::npos);
}

// Issue 31, 4.
TEST(Program, AModelsOptionsStandBehindTheModel) {
    const auto has = [](const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    };
    const std::string first = run_program("explore --help").out;
    EXPECT_TRUE(has(first, "--space")) << first;
    EXPECT_FALSE(has(first, "--columns")) << first;
    EXPECT_LT(first.find("--output"), first.find("--json")) << "its own options come first";
    const std::string other = run_program("explore --model depth-first --help").out;
    EXPECT_FALSE(has(other, "--max-depth INT")) << other;
    EXPECT_TRUE(has(other, "--columns")) << other;
    EXPECT_TRUE(has(other, "--output")) << other;
}

TEST(Program, VersionNamesHalideAndTheHostTarget) {
    const ProgramResult result = run_program("--version");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_NE(result.out.find("laminate 0."), std::string::npos);
    EXPECT_NE(result.out.find("Halide 21.0.0"), std::string::npos);
    EXPECT_NE(result.out.find("host target "), std::string::npos);
}

TEST(Program, AMissingFileIsBadInput) {
    const ProgramResult result = run_program("info no_such_net.onnx");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("laminate: error: no_such_net.onnx: ", 0), 0U) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
}

TEST(Program, AnUnknownZooNameIsBadInputAndListsTheKnownOnes) {
    const ProgramResult result = run_program("info zoo:nothing");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("l2net"), std::string::npos) << result.err;
}

TEST(Program, ADimensionWithoutAValueIsAUsageError) {
    const ProgramResult result = run_program("info zoo:l2net --dim H");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err,
              "laminate: error: --dim: found \"H\", expected SYMBOL=VALUE with a positive value\n");
}

TEST(Info, LayersThatNoGroupCanHoldAreNamed) {
    EXPECT_EQ(run_program("info zoo:l2net").out.find("no group"), std::string::npos);
    const auto answer = nlohmann::json::parse(run_program("info zoo:resnet18 --json -").out);
    int outside = 0;
    for (const auto& layer : answer.at("layers"))
        outside += layer.at("can_be_grouped").get<bool>() ? 0 : 1;
    EXPECT_EQ(outside, 2);
    EXPECT_NE(run_program("info zoo:resnet18")
                  .out.find("layers can be in no group: flatten (flatten), softmax (softmax)"),
              std::string::npos);
}

TEST(Info, JsonOnStdoutIsNothingButJsonAndItsSumsAreTheLayersSums) {
    const ProgramResult result = run_program("info zoo:l2net --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer.at("schema"), "laminate.info");
    EXPECT_EQ(answer.at("version"), 1);
    int64_t macs = 0;
    int64_t peak = 0;
    for (const auto& layer : answer.at("layers")) {
        macs += layer.at("macs").get<int64_t>();
        peak = std::max(peak, layer.at("live_bytes").get<int64_t>());
    }
    // ConvFusion Table 6: conv1 18x18x4 from 3 channels, conv2 16x16x4 from 4, kernels 3x3.
    EXPECT_EQ(macs, 18 * 18 * 4 * 3 * 9 + 16 * 16 * 4 * 4 * 9);
    EXPECT_EQ(answer.at("macs"), macs);
    // Input 20x20x3 and conv1's output together are more than conv1's and conv2's outputs: 1200 +
    // 1296 > 1296 + 1024.
    EXPECT_EQ(peak, 4 * (20 * 20 * 3 + 18 * 18 * 4));
    EXPECT_EQ(answer.at("layer_by_layer_peak_bytes"), peak);
}

/// CPU seconds of `info` on a chain of this many layers.
double seconds_for_chain(int layers) {
    Network chain;
    chain.name = "chain";
    chain.inputs = {0};
    chain.outputs = {layers};
    for (int id = 0; id <= layers; ++id)
        chain.tensors.push_back({"t" + std::to_string(id), {1, 2, 3, 4}});
    for (int id = 0; id < layers; ++id) {
        chain.layers.push_back({.name = "layer" + std::to_string(id),
                                .kind = LayerKind::activation,
                                .inputs = {id},
                                .output = id + 1,
                                .activation = {.kind = ActivationKind::relu}});
    }
    const ScratchDirectory scratch;
    save_onnx(chain, scratch / "chain.onnx");
    const auto seconds = [] {
        rusage used{};
        ::getrusage(RUSAGE_CHILDREN, &used);
        return static_cast<double>(used.ru_utime.tv_sec) +
               1e-6 * static_cast<double>(used.ru_utime.tv_usec);
    };
    const double before = seconds();
    const ProgramResult result = run_program("info " + (scratch / "chain.onnx") + " --json -");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_EQ(answer.at("layers").size(), static_cast<size_t>(layers));
    EXPECT_EQ(answer.at("layer_by_layer_peak_bytes"),
              4 * 2 * (2 * 3 * 4));  // a layer's input and its output
    return seconds() - before;
}

TEST(Info, OfALongChainTakesTimeByItsLength) {
    const int layers = test::samples(10'000);
    const double once = seconds_for_chain(layers);
    const double tenfold = seconds_for_chain(10 * layers);
    EXPECT_LT(tenfold, 30 * once) << "of " << once << " s; by the square it would be 100";
}

TEST(Zoo, AnExportedNetworkReadsBackWithTheSameHash) {
    const ScratchDirectory scratch;
    const std::string file = scratch / "l2net.onnx";
    ASSERT_EQ(run_program("zoo export l2net -o " + file).exit_code, 0);
    const auto from_zoo = nlohmann::json::parse(run_program("info zoo:l2net --json -").out);
    const auto from_file = nlohmann::json::parse(run_program("info " + file + " --json -").out);
    EXPECT_EQ(from_file.at("network_hash"), from_zoo.at("network_hash"));
}

TEST(Zoo, ARefusedExportLeavesNoFile) {
    const ScratchDirectory scratch;
    EXPECT_EQ(run_program("zoo export nothing -o " + (scratch / "x.onnx")).exit_code, 3);
    EXPECT_TRUE(scratch.is_empty());
}

TEST(Zoo, TheSeedChangesTheWeights) {
    const auto hash = [](const std::string& spec) {
        return nlohmann::json::parse(run_program("info '" + spec + "' --json -").out)
            .at("network_hash")
            .get<std::string>();
    };
    EXPECT_NE(hash("zoo:l2net?seed=1"), hash("zoo:l2net?seed=2"));
    EXPECT_EQ(hash("zoo:l2net?seed=1"), hash("zoo:l2net"));
}

}  // namespace
}  // namespace laminate::cli
