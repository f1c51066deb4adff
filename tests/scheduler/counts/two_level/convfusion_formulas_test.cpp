// The paper's formulas compared with execution: the examples of docs/convfusion.md.
#include "scheduler/counts/two_level/convfusion_formulas.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "instrumentation/walker.h"
#include "scheduler/counts/two_level/two_level.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

struct Both {
    convfusion::LayerFormulas paper;
    GroupCounts ours;  ///< closed form, checked against the walker
};

/// `layer` is the network's first, alone in its group. `schedule` is the text after its name, up to
/// the brace.
Both both(const Network& network, const std::string& schedule) {
    const GroupSchedule group = parse_group(network, "{conv1: " + schedule + "}");
    Both b{convfusion::formulas(layer_problem(network, 0), group),
           two_level_counts(network, group)};
    EXPECT_EQ(difference(b.ours, "model", walk(network, group), "walker"), "") << schedule;
    return b;
}

Network conv1() { return chain(3, 20, 20, {{4, square_window(3)}}); }

// If tiles divide the extents and none of the cases below occurs, the paper's accesses and buffers
// equal execution.
TEST(ConvFusionFormulas, AgreeOnPlainSchedules) {
    for (const char* schedule :
         {"zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X io/io; W io/io; Y io/io",
          "zo yo xo io | yi zi xi ii n m; tile z2 y6 x9 i3; X yi/yi; W yi/zi; Y xi/xi",
          "yo xo zo io | xi zi yi ii n m; tile z4 y3 x6 i1; X xi/xi; W io/io; Y io/io",
          "zo yo xo io | zi yi xi ii n m; tile z1 y18 x6 i3; X io/yi; W zi/zi; Y xi/xi"}) {
        const auto [paper, ours] = both(conv1(), schedule);
        EXPECT_EQ(paper.buf_w, ours.layers[0].weight_buffer) << schedule;
        EXPECT_EQ(paper.buf_x, ours.input_buffers()) << schedule;
        EXPECT_EQ(paper.buf_y, ours.layers[0].output_buffer) << schedule;
        EXPECT_EQ(paper.acc_w, ours.weight_reads()) << schedule;
        EXPECT_EQ(paper.acc_x, ours.input_reads()) << schedule;
        EXPECT_EQ(paper.acc_y, ours.output_reads + ours.output_writes) << schedule;
    }
}

// Rows must survive while the columns of a row pass: 3 rows of 6 + 2 columns, 3 maps. The print
// folds both: 3 x 3 x 3.
TEST(ConvFusionFormulas, RowsAndColumnsCannotBothFold) {
    const auto [paper, ours] =
        both(conv1(), "zo yo xo io | zi yi xi ii n m; tile z4 y6 x6 i3; X zi/xi; W io/zi; Y xi/xi");
    EXPECT_EQ(paper.buf_x, Elements(27));
    EXPECT_EQ(ours.input_buffers(), Elements(3 * 8 * 3));
    EXPECT_EQ(paper.acc_x, ours.input_reads());
}

// Every output map reads the whole tile again, so nothing may go while zi runs: 8 x 8 x 3. The
// print folds y to 3 rows: 3 x 8 x 3.
TEST(ConvFusionFormulas, NoFoldInsideALoopThatReadsAgain) {
    const auto [paper, ours] =
        both(conv1(), "zo yo xo io | zi yi xi ii n m; tile z4 y6 x6 i3; X io/yi; W io/zi; Y xi/xi");
    EXPECT_EQ(paper.buf_x, Elements(72));
    EXPECT_EQ(ours.input_buffers(), Elements(192));
}

// The same for weights, which every row reads again: 4 maps x 3 x 9. The print folds z: one
// map, 27.
TEST(ConvFusionFormulas, WeightsThatEveryRowReadsAgainDoNotFold) {
    const auto [paper, ours] =
        both(conv1(), "zo yo xo io | yi zi xi ii n m; tile z4 y6 x6 i3; X yi/yi; W io/zi; Y xi/xi");
    EXPECT_EQ(paper.buf_w, Elements(27));
    EXPECT_EQ(ours.layers[0].weight_buffer, Elements(108));
    EXPECT_EQ(paper.acc_w, ours.weight_reads());
}

// 18 columns in tiles of 5 are 5 + 5 + 5 + 3. The print moves four whole tiles of 7 input columns;
// the last one needs 5.
TEST(ConvFusionFormulas, LastTileIsNoWholeTile) {
    const auto [paper, ours] = both(
        conv1(), "zo yo xo io | zi yi xi ii n m; tile z3 y18 x5 i3; X io/io; W io/io; Y io/io");
    // Two tiles of maps: X twice.
    EXPECT_EQ(paper.acc_x, Elements(2 * 3 * 20 * (4 * 7)));
    EXPECT_EQ(ours.input_reads(), Elements(2 * 3 * 20 * (3 * 7 + 5)));
    // Maps 3 + 1; the print moves weights of 3 + 3, for each of the four tiles of columns.
    EXPECT_EQ(paper.acc_w, Elements(4 * 27 * (3 + 3)));
    EXPECT_EQ(ours.weight_reads(), Elements(4 * 27 * (3 + 1)));
}

// A stride of 2 under a kernel of 1 with X fetched column by column: the 8 columns in between are
// not moved.
TEST(ConvFusionFormulas, ColumnsBetweenStridesNeedNotMove) {
    const Network network = chain(2, 17, 17, {{3, square_window(1, 2)}});
    const auto [paper, ours] =
        both(network, "zo yo xo io | yi xi zi ii n m; tile z3 y9 x9 i2; X io/xi; W io/io; Y xi/xi");
    EXPECT_EQ(paper.acc_x, Elements(2 * 17 * 17));
    EXPECT_EQ(ours.input_reads(), Elements(2 * 9 * 9));
}

// Padding multiplies but is never moved. The print's tiles are (T - 1) S + K wide wherever they
// lie: 20 x 20 for 18 x 18.
TEST(ConvFusionFormulas, PaddingIsNotMoved) {
    const Network network = chain(3, 18, 18, {{4, square_window(3, 1, 1)}});
    const auto [paper, ours] = both(
        network, "zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X io/io; W io/io; Y io/io");
    EXPECT_EQ(paper.acc_x, Elements(3 * 20 * 20));
    EXPECT_EQ(ours.input_reads(), Elements(3 * 18 * 18));
}

// Y inside ii is one accumulator, but then every input map is a visit: 2 * 3 - 1 transfers per
// output. The print counts those of io alone and offers the small buffer at the price of the large
// one.
TEST(ConvFusionFormulas, AnAccumulatorInsideIiPaysForEachInputMap) {
    const auto [paper, ours] = both(
        conv1(), "zo yo xo io | ii zi yi xi n m; tile z4 y18 x18 i3; X ii/ii; W ii/ii; Y xi/xi");
    EXPECT_EQ(paper.buf_y, Elements(1));
    EXPECT_EQ(ours.layers[0].output_buffer, Elements(1));
    EXPECT_EQ(paper.acc_y, Elements(1296));
    EXPECT_EQ(ours.output_reads + ours.output_writes, Elements(5 * 1296));
}

// The print of MACS multiplies by the tiles *above* the store level (the text says below) and by
// the tiles of i: for SL_X = io with T_i = 1, 27 MACs times 3 tiles of i. What is executed: 18 * 18
// * 4 * 3 * 9.
TEST(ConvFusionFormulas, MacsAsPrintedAreNotTheWork) {
    const auto [paper, ours] = both(
        conv1(), "zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i1; X io/io; W io/io; Y io/io");
    EXPECT_EQ(paper.macs, Macs(27 * 3));
    EXPECT_EQ(ours.macs(), Macs(34'992));
}

TEST(ConvFusionFormulas, OtherSchedulesAreRefused) {
    const Network network = conv1();
    const auto refused = [&](const std::string& schedule) {
        return convfusion::formulas(layer_problem(network, 0),
                                    parse_group(network, "{conv1: " + schedule + "}"));
    };
    EXPECT_THROW(
        (void)refused(
            "zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/io; W io/io; Y io/io"),
        InputError);
    EXPECT_THROW((void)refused("ys || zo yo xo io | zi yi xi ii n m; strip y9; tile z4 y9 x18 i3; "
                               "X io/io; W io/io; Y io/io"),
                 InputError);
}

}  // namespace
}  // namespace laminate
