// Sizes of the buffers of generated code: worked by hand, then against the closed form on random
// schedules.
#include "scheduler/schedule/buffer_shapes.h"

#include <gtest/gtest.h>

#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"

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

/// One to four layers and an Add of two maps, one or two of them transposed, on a map with up to 90
/// rows and columns.
Network long_network(uint64_t seed) {
    for (Rng rng(seed);;) {
        try {
            Network network = empty_network(2, rng.between(20, 90), rng.between(20, 90));
            TensorId last = 0;
            const int64_t layers = rng.between(1, 4);
            for (int64_t k = 1; k <= layers; ++k) {
                LayerSpec spec;
                spec.channels = rng.between(1, 3);
                const bool grows = rng.chance(1, 5);
                const int64_t stride = grows ? 2 : rng.chance(1, 5) ? rng.between(2, 3) : 1;
                spec.window = square_window(rng.between(grows ? 2 : 1, 5), stride,
                                            rng.between(0, 2), grows ? 1 : rng.between(1, 2));
                if (grows) spec.kind = LayerKind::conv_transpose;
                const std::string number = std::to_string(k);
                const TensorId before = last;
                last = append(network, "conv" + number, before, spec);
                if (network.tensor(before).dims == network.tensor(last).dims && rng.chance(1, 2))
                    last = append(network, "add" + number,
                                  {.kind = LayerKind::add, .inputs = {last, before}});
            }
            check(network);
            return network;
        } catch (const InputError&) {  // an output without extent: draw again
        }
    }
}

void expect_trips_alike(const Network& network, const GroupSchedule& group) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    for (const StripRange strips : {StripRange::all, StripRange::any}) {
        EXPECT_EQ(buffer_shapes(group, problems, strips),
                  buffer_shapes(group, problems, strips, Trips::one_by_one))
            << to_text(group);
    }
    EXPECT_EQ(asked_boxes(group, problems), asked_boxes(group, problems, {}, Trips::one_by_one))
        << to_text(group);
    EXPECT_EQ(row_traffic(group, problems), row_traffic(group, problems, Trips::one_by_one))
        << to_text(group);
    EXPECT_EQ(row_steps(group, problems), row_steps(group, problems, Trips::one_by_one))
        << to_text(group);
}

TEST(BufferShapes, TripsThatRepeatThemselvesChangeNothing) {
    RandomOptions options;
    options.max_macs = Macs(20'000'000);
    options.max_calls = 20'000;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        SCOPED_TRACE(seed);
        const Network network = long_network(seed);
        const Schedule schedule = random_schedule(network, seed, options);
        for (const GroupSchedule& group : schedule.groups()) expect_trips_alike(network, group);
    }
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(seed);
        const Network network = random_network(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) expect_trips_alike(network, group);
    }
}

/// Lines of a schedule as the search finds it: coordinate by coordinate, whichever strip is first.
TEST(BufferShapes, LinesOfSingleColumnsAreAsTripByTrip) {
    const Network network = chain(
        2, 12, 240,
        {{3, square_window(3, 1, 1)}, {3, square_window(3, 1, 1)}, {2, square_window(3, 1, 1)}});
    for (const std::string strips : {"", "; strip x1", "; strip x7", "; strip x60"}) {
        const std::string band = strips.empty() ? "" : "xs || ";
        const GroupSchedule group =
            parse_group(network,
                        "{conv1: zo yo xo io | xi yi zi ii n m; tile z3 y12 x240 i2; X "
                        "root/conv3.xi; W root/root; "
                        "Y root/conv2.xi & conv2: zo yo xo io | xi yi zi ii n m; tile z3 y12 x240 "
                        "i3; W root/root; "
                        "Y root/conv3.xi & conv3: " +
                            band + "zo yo xo io | xi yi zi ii n m" + strips +
                            "; tile z2 y12 x240 i3; W root/root; Y zi/zi}");
        expect_trips_alike(network, group);
        // conv3 reads three columns of conv2, and conv2's column three of conv1.
        const std::vector<LayerProblem> problems = group_problems(network, group);
        EXPECT_EQ(buffer_shapes(group, problems).tensors.at(2).extent[2], 3);
        const AskedBoxes asked = asked_boxes(group, problems);
        EXPECT_EQ(asked.nests.at(2).at(1).times.size(), 240);
    }
}

}  // namespace
}  // namespace laminate
