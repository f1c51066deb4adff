// Intervals of generated code, worked by hand with constants in place of run-time values.
#include "generators/lowering/regions.h"

#include <gtest/gtest.h>

#include "nets/zoo/zoo.h"

namespace laminate {
namespace {

int64_t value(const Expr& e) {
    const auto constant = Halide::Internal::as_const_int(Halide::Internal::simplify(e));
    EXPECT_TRUE(constant) << e;
    return constant ? *constant : INT64_MIN;
}

TEST(Regions, NewPartsNeverOverlapAndCoverEverything) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = parse_group(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W root/root; "
        "Y root/conv2.yo & "
        "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y5 x16 i4; W root/root; Y xi/xi}");
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    const GroupExtents extents(group, problems, nullptr);
    Regions regions(group, problems, tensors, extents);
    const Level yo{1, 1};
    int64_t outputs = 0;
    int64_t inputs = 0;
    for (int trip = 0; trip * 5 < 16; ++trip) {
        regions.set_loop(yo, trip, {trip * 5, std::min(trip * 5 + 5, 16)});
        // Rows of conv1's output, tensor 1, for five rows of conv2; then the rows of X that these
        // rows read anew.
        const Interval rows = regions.missing(1, Dim::y, yo);
        EXPECT_EQ(value(rows.begin), outputs) << "trip " << trip;
        outputs = value(rows.end);
        EXPECT_EQ(outputs, std::min(trip * 5 + 7, 18));
        const Interval read = regions.missing(0, Dim::y, yo);
        EXPECT_EQ(value(read.begin), inputs) << "trip " << trip;
        inputs = value(read.end);
        EXPECT_EQ(inputs, outputs + 2);
    }
    EXPECT_EQ(inputs, 20);
}

}  // namespace
}  // namespace laminate
