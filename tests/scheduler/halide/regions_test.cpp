// Sizes of the buffers of generated code: worked by hand, then against the closed form on random schedules.
#include "scheduler/halide/regions.h"

#include <gtest/gtest.h>

#include "nets/zoo.h"
#include "scheduler/models/two_level/two_level.h"
#include "scheduler/random_schedule.h"

namespace laminate {
namespace {

GroupSchedule l2net(const Network& network, const std::string& conv1, const std::string& conv2) {
    return parse_group(network, "{conv1: zo yo xo io | zi yi xi ii n m; " + conv1 + " & conv2: zo yo xo io | zi yi xi ii n m; " + conv2 + "}");
}

TEST(Regions, RowsAndColumnsOfASlidingWindow) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = parse_group(
        network, "{conv1: zo yo xo io | yi xi zi ii n m; tile z4 y6 x6 i3; X io/xi; W root/root; Y xi/xi}");
    const BufferShape shape = input_buffer_shape(group, group_problems(network, group), 0);
    // Rows fold to the window of 3; their columns must all survive until the next row: 6 + 2.
    EXPECT_EQ(shape.extent, (std::array<int64_t, 3>{3, 3, 8}));
    EXPECT_TRUE(shape.folds[1]);
    EXPECT_FALSE(shape.folds[2]);
}

TEST(Regions, LineBuffersOfAFusedPair) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = l2net(network, "tile z4 y18 x18 i3; X root/conv2.yo; W root/root; Y root/conv2.yo",
                                      "tile z4 y4 x16 i4; W root/root; Y xi/xi");
    const std::vector<LayerProblem> problems = group_problems(network, group);
    EXPECT_EQ(input_buffer_shape(group, problems, 1).extent, (std::array<int64_t, 3>{4, 6, 18}));  // 4 rows need 4 + 2
    EXPECT_EQ(input_buffer_shape(group, problems, 0).extent, (std::array<int64_t, 3>{3, 8, 20}));  // the first 6 rows need 6 + 2
    EXPECT_EQ(weights_buffer_shape(group, problems, 0).elements(), 4 * 3 * 9);
    EXPECT_EQ(output_buffer_shape(group, problems).elements(), 1);  // xi is inside zi and yi: one sum at a time
}

TEST(Regions, NewPartsNeverOverlapAndCoverEverything) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = l2net(network, "tile z4 y18 x18 i3; X root/conv2.yo; W root/root; Y root/conv2.yo",
                                      "tile z4 y5 x16 i4; W root/root; Y xi/xi");
    const std::vector<LayerProblem> problems = group_problems(network, group);
    Regions<int64_t> regions(group, problems);
    const Level yo{1, 1};
    int64_t done = 0;
    for (int64_t trip = 0; trip * 5 < 16; ++trip) {
        regions.set_loop(yo, trip, {trip * 5, std::min<int64_t>(trip * 5 + 5, 16)});
        const Interval<int64_t> rows = regions.new_input(1, Dim::y, yo);
        EXPECT_EQ(rows.begin, done) << "trip " << trip;
        done = rows.end;
    }
    EXPECT_EQ(done, 18);
}

/// A sample: about one group in 10^4 of a larger one still comes out larger than the closed form (docs/decisions.md).
TEST(Regions, SizesEqualTheClosedForm) {
    int64_t groups = 0;
    for (uint64_t seed = 1; seed <= 1500; ++seed) {
        const Network network = random_chain(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const std::vector<LayerProblem> problems = group_problems(network, group);
            const GroupCounts counts = two_level_counts(network, group);
            EXPECT_EQ(input_buffer_shape(group, problems, 0).elements(), counts.input_buffers().value()) << seed << ": " << to_text(group);
            for (int k = 0; k <= group.sink(); ++k) {
                const LayerCounts& layer = counts.layers[static_cast<size_t>(k)];
                const BufferShape output = k == group.sink() ? output_buffer_shape(group, problems) : input_buffer_shape(group, problems, k + 1);
                EXPECT_EQ(output.elements(), layer.output_buffer.value()) << seed << ", " << layer.layer << ": " << to_text(group);
                EXPECT_EQ(weights_buffer_shape(group, problems, k).elements(), layer.weight_buffer.value())
                    << seed << ", " << layer.layer << ": " << to_text(group);
            }
            ++groups;
        }
    }
    EXPECT_GT(groups, 1500);
}

}  // namespace
}  // namespace laminate
