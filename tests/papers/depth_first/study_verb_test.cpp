#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "papers/depth_first/report.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

TEST(Study, OfMachinesHasMeansAndFiles) {
    const ScratchDirectory scratch;
    const std::string directory = scratch / "study";
    const ProgramResult result = run_program(
        "study defines-3 --machines meta_proto,meta_proto_df --networks "
        "fsrcnn-defines,mccnn-defines -o " +
        directory + " --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    ASSERT_EQ(answer["cells"].size(), 4u);
    EXPECT_EQ(answer["cells"][1]["network"], "mccnn-defines");
    EXPECT_EQ(answer["cells"][2]["machine"], "meta_proto_df");
    // The mean over two networks is the root of the product.
    const auto gain = [&](size_t n) {
        return answer["cells"][n]["layer_by_layer"]["energy_pj"].get<double>() /
               answer["cells"][n]["best"]["energy_pj"].get<double>();
    };
    const auto& means = answer["geometric_means"];
    ASSERT_EQ(means.size(), 2u);
    EXPECT_NEAR(means[0]["layer_by_layer_over_best"].get<double>(), std::sqrt(gain(0) * gain(1)),
                1e-9);
    EXPECT_FALSE(means[0].contains("best_of_default_over_best"));
    EXPECT_GT(means[1]["best_of_default_over_best"].get<double>(), 1);  // the variant is better
    // 108 points for FSRCNN, 108 for MC-CNN, on each of two machines, and a heading.
    const std::string csv = read_file(directory + "/study.csv");
    EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 4 * 108);
    EXPECT_TRUE(csv.substr(0, csv.find('\n')).ends_with(",mapping_gap"))
        << csv.substr(0, csv.find('\n'));
    for (const auto& cell : answer["cells"])
        EXPECT_EQ(cell["worst_mapping_gap"], 0);  // energy is always proven
    EXPECT_EQ(nlohmann::json::parse(read_file(directory + "/study.json"))["cells"],
              answer["cells"]);
}

TEST(Study, WorstGapIsOfAllThatTheTablesShow) {
    const auto with_gap = [](double gap) {
        depth_first::SweepPoint point;
        point.fits = true;
        point.mapping_gap = gap;
        return point;
    };
    depth_first::Sweep sweep;
    sweep.points = {with_gap(0), with_gap(0)};
    EXPECT_EQ(worst_gap(sweep), 0);
    EXPECT_EQ(gap_text(worst_gap(sweep)), "");
    sweep.points[1].mapping_gap = 0.01;
    EXPECT_EQ(worst_gap(sweep), 0.01);
    sweep.single_layer = with_gap(0.02);
    EXPECT_EQ(worst_gap(sweep), 0.02);
    sweep.layer_by_layer = with_gap(0.034);
    EXPECT_EQ(worst_gap(sweep), 0.034);
    EXPECT_NE(gap_text(worst_gap(sweep)).find("up to 3.4 % above"), std::string::npos);
}

TEST(Study, RefusesByName) {
    EXPECT_EQ(run_program("study defines-4").exit_code, 2);
    const ProgramResult result = run_program("study defines-2 --machines tpu");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("meta_proto_df"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace laminate::cli
