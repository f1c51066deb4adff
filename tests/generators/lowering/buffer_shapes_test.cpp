// Sizes of the buffers of generated code: worked by hand, then against the closed form on random
// schedules.
#include "scheduler/schedule/buffer_shapes.h"

#include <gtest/gtest.h>

#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"

namespace laminate {
namespace {

TEST(BufferShapes, RowsAndColumnsOfASlidingWindow) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = parse_group(
        network,
        "{conv1: zo yo xo io | yi xi zi ii n m; tile z4 y6 x6 i3; X io/xi; W root/root; Y xi/xi}");
    const BufferShape shape = buffer_shapes(group, group_problems(network, group)).tensors.at(0);
    // Rows fold to the window of 3; their columns must all survive until the next row: 6 + 2.
    EXPECT_EQ(shape.extent, (std::array<int64_t, 3>{3, 3, 8}));
    EXPECT_TRUE(shape.folds[1]);
    EXPECT_FALSE(shape.folds[2]);
}

TEST(BufferShapes, LineBuffersOfAFusedPair) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = parse_group(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W root/root; "
        "Y root/conv2.yo & "
        "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y xi/xi}");
    const BufferShapes shapes = buffer_shapes(group, group_problems(network, group));
    EXPECT_EQ(shapes.tensors.at(1).extent,
              (std::array<int64_t, 3>{4, 6, 18}));  // 4 rows need 4 + 2
    EXPECT_EQ(shapes.tensors.at(0).extent,
              (std::array<int64_t, 3>{3, 8, 20}));  // the first 6 rows need 6 + 2
    EXPECT_EQ(shapes.weights.at(0).elements(), 4 * 3 * 9);
    EXPECT_EQ(shapes.output.elements(), 1);  // xi is inside zi and yi: one sum at a time
}

/// Threads begin at any strip, where nothing is present yet.
TEST(BufferShapes, ARangeOfStripsMayNeedMoreThanAllOfThem) {
    const Network network = random_network(5064);
    const GroupSchedule group = parse_group(network,
                                            "{conv1: xo zo io yo | zi ii yi xi n m; tile z5 y8 x2 "
                                            "i3; X zo/xi; W conv2.yo/conv2.xo; Y root/conv2.xo & "
                                            "conv2: ys || yo zo xo io | ii zi yi xi n m; strip y1; "
                                            "tile z5 y5 x1 i1; W xi/xi; Y io/io}");
    const std::vector<LayerProblem> problems = group_problems(network, group);
    // A row of conv2 needs 4 of conv1, whose row y needs X's rows y - 1 and y + 2. From strip 0:
    // rows 0 to 3, so X's -1 (padding) to 5, then one row at a time.
    EXPECT_EQ(buffer_shapes(group, problems).tensors.at(0).extent[1], 6);
    // From strip 1: rows 1 to 4 at once, so X's 0 to 6.
    EXPECT_EQ(buffer_shapes(group, problems, StripRange::any).tensors.at(0).extent[1], 7);
}

void expect_closed_form(const Network& network, const GroupSchedule& group, uint64_t seed) {
    const GroupCounts counts = two_level_counts(network, group);
    const BufferShapes shapes = buffer_shapes(group, group_problems(network, group));
    const std::vector<GroupTensor> tensors = group_tensors(group_problems(network, group));
    for (size_t t = 0; t < tensors.size(); ++t) {
        const Elements expected =
            tensors[t].is_external()
                ? counts.inputs.at(t).buffer
                : counts.layers[static_cast<size_t>(tensors[t].producer)].output_buffer;
        EXPECT_EQ(shapes.tensors[t].elements(), expected.value())
            << seed << ", tensor " << tensors[t].name << ": " << to_text(group);
    }
    for (size_t k = 0; k < counts.layers.size(); ++k) {
        EXPECT_EQ(shapes.weights[k].elements(), counts.layers[k].weight_buffer.value())
            << seed << ", " << counts.layers[k].layer << ": " << to_text(group);
    }
    EXPECT_EQ(shapes.output.elements(), counts.layers.back().output_buffer.value())
        << seed << ": " << to_text(group);
}

TEST(BufferShapes, EqualTheClosedForm) {
    int64_t groups = 0;
    const auto check = [&](const Network& network, uint64_t seed) {
        const Schedule schedule = random_schedule(network, 3 * seed + 1);
        for (const GroupSchedule& group : schedule.groups()) {
            expect_closed_form(network, group, seed);
            ++groups;
        }
    };
    for (uint64_t seed = 1; seed <= 1000; ++seed) check(random_chain(seed), seed);
    for (uint64_t seed = 1; seed <= 500; ++seed) check(random_network(seed), seed);
    // Lifetimes in which an older tensor is still present from before.
    for (const uint64_t seed : {3989U, 11282U, 20820U, 25230U}) check(random_chain(seed), seed);
    // Strides that skip what a recomputed consumer returns to.
    for (const uint64_t seed : {56264U, 91471U}) check(random_chain(seed), seed);
    for (const uint64_t seed : {26034U, 93832U, 145174U}) check(random_network(seed), seed);
    EXPECT_GT(groups, 1500);
}

}  // namespace
}  // namespace laminate
