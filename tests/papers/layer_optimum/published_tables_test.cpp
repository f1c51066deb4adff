// Tables 1 and 2 of CNNFlow (TODAES 28(3), 2023): AlexNet with a batch of 4, VGG16 with 3, 27 banks
// of 2048 words. Cells are MiB of 16-bit words, decimals cut. docs/cnnflow.md says where they
// differ from what the formula gives.
#include <gtest/gtest.h>

#include <cmath>

#include "papers/layer_optimum/optimum.h"

namespace laminate {
namespace {

constexpr BankedBuffer eyeriss{27, 2048};

double mebibytes(int64_t words) { return static_cast<double>(words) * 2 / (1 << 20); }
/// Two decimals, cut.
double cut(double value) { return std::floor(value * 100 + 1e-9) / 100; }

struct Row {
    const char* layer;
    const char* loops;
    double tensor_size;
    double dram;
    double sram;
    const char* order;    ///< that gives the SRAM cell; none is known where empty
    double formula_dram;  ///< of that order, four decimals
};
// conv1 with 56 outputs; grouped layers as one convolution with the input channels of one group.
const std::vector<Row> alexnet{
    {"conv1", "f4 k96 c3 x56 y56 m11 n11 stride 4", 3.58, 3.58, 16.48, "f1 x19 y8 k24", 3.5847},
    {"conv2", "f4 k256 c48 x27 y27 m5 n5", 2.36, 4.13, 29.35, "f1 k5 c16", 4.1310},
    {"conv3", "f4 k384 c256 x13 y13 m3 n3", 2.62, 4.78, 37.69, "k64 c8 f2", 4.8137},
    {"conv4", "f4 k384 c192 x13 y13 m3 n3", 2.09, 3.69, 28.27, "k64 c8 f2", 3.7326},
    {"conv5", "f4 k256 c192 x13 y13 m3 n3", 1.50, 2.48, 18.84, "k64 c8 f2",
     2.4884},  // printed 18.85: rounded, not cut
};
const std::vector<Row> vgg16{
    {"conv1_1", "f3 k64 c3 x224 y224 m3 n3", 19.25, 19.25, 38.54, "", 0},
    {"conv1_2", "f3 k64 c64 x224 y224 m3 n3", 37.14, 37.99, 135.35, "", 0},
    {"conv2_1", "f3 k128 c64 x112 y112 m3 n3", 14.08, 19.19, 85.87, "k64 f1 x14 y7", 19.9219},
    {"conv2_2", "f3 k128 c128 x112 y112 m3 n3", 18.98, 47.55, 171.75, "k64 c64 f1 x14 y7", 49.0020},
    {"conv3_1", "f3 k256 c128 x56 y56 m3 n3", 7.62, 24.17, 78.75, "k64 c64 f1 x14 y8", 25.1875},
    {"conv3_2", "f3 k256 c256 x56 y56 m3 n3", 10.64, 45.47, 209.50, "",
     0},  // and 45.57 for conv3_3, the same layer
    {"conv4_1", "f3 k512 c256 x28 y28 m3 n3", 5.86, 24.52, 91.14, "k43 f1 c20 x14", 25.0135},
    {"conv4_2", "f3 k512 c512 x28 y28 m3 n3", 9.43, 46.91, 186.08, "k43 f1 c19 x14", 47.3583},
    {"conv5_1", "f3 k512 c512 x14 y14 m3 n3", 5.82, 11.81, 50.30, "k57 c18 x7", 11.8991},
};

void check_cells(const Row& row) {
    SCOPED_TRACE(row.layer);
    const ConvolutionProblem p = parse_convolution(row.loops);
    EXPECT_DOUBLE_EQ(cut(mebibytes(compulsory_words(p))), row.tensor_size);
    if (row.order[0] == '\0') return;
    const BlockOrder order = parse_block_order(p, row.order);
    EXPECT_DOUBLE_EQ(cut(mebibytes(sram_words(p, order))), row.sram);
    const auto formula = divide_banks(p, order, eyeriss, SpillEvaluator::eq7);
    ASSERT_TRUE(formula);
    EXPECT_NEAR(mebibytes(compulsory_words(p) + formula->extra_words()), row.formula_dram, 0.00005);
    // A memory needs no more than the formula; the printed cells of conv3, conv4 and VGG16 lie
    // below both.
    const auto belady = divide_banks(p, order, eyeriss, SpillEvaluator::belady);
    ASSERT_TRUE(belady);
    EXPECT_LE(belady->extra_words(), formula->extra_words());
}

TEST(CnnFlowTables, AlexNetCells) {
    for (const Row& row : alexnet) check_cells(row);
}
TEST(CnnFlowTables, Vgg16Cells) {
    for (const Row& row : vgg16) check_cells(row);
}

TEST(CnnFlowTables, PrintedCellsOfConv3AndConv4AreBelowWhatAnyReplacementNeedsForTheirBlock) {
    for (const Row* row : {&alexnet[2], &alexnet[3]}) {
        const ConvolutionProblem p = parse_convolution(row->loops);
        const auto belady =
            divide_banks(p, parse_block_order(p, row->order), eyeriss, SpillEvaluator::belady);
        EXPECT_GT(cut(mebibytes(compulsory_words(p) + belady->extra_words())), row->dram)
            << row->layer;
    }
}

TEST(CnnFlowTables, ProvenOptimaOfProblem1AreNotAboveAnyCell) {
    double total = 0;
    for (const Row& row : alexnet) {
        const ConvolutionProblem p = parse_convolution(row.loops);
        const auto optimum = std::get<LayerOptimum>(layer_optimum(p, eyeriss, SpillEvaluator::eq7));
        EXPECT_LE(cut(mebibytes(optimum.dram_words)), row.dram) << row.layer;
        EXPECT_GE(optimum.dram_words, io_lower_bound_words(p, 27 * 2048)) << row.layer;
        EXPECT_LT(optimum.nodes, 21000)
            << row.layer << ": CNNFlow's prunings leave 2.1e4 for conv1";
        total += mebibytes(optimum.dram_words);
    }
    EXPECT_LT(total, 18.66);                       // 18.5157
    for (const size_t n : {0UL, 6UL, 7UL, 8UL}) {  // the others take a second each
        const ConvolutionProblem p = parse_convolution(vgg16[n].loops);
        const auto optimum = std::get<LayerOptimum>(layer_optimum(p, eyeriss, SpillEvaluator::eq7));
        EXPECT_LE(cut(mebibytes(optimum.dram_words)), vgg16[n].dram) << vgg16[n].layer;
    }
}

TEST(CnnFlowTablesLong, Vgg16IsBelow392_96InTotal) {
    double total = 0;
    for (const Row& row : vgg16) {
        const ConvolutionProblem p = parse_convolution(row.loops);
        const auto optimum = std::get<LayerOptimum>(layer_optimum(p, eyeriss, SpillEvaluator::eq7));
        EXPECT_LE(cut(mebibytes(optimum.dram_words)), row.dram) << row.layer;
        const std::string layer = row.layer;
        const int times = layer == "conv3_2" || layer == "conv4_2" ? 2 : layer == "conv5_1" ? 3 : 1;
        total += times * mebibytes(optimum.dram_words);
    }
    EXPECT_LT(total, 392.96);  // 340.1368
}

}  // namespace
}  // namespace laminate
