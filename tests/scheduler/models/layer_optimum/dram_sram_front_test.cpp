#include "scheduler/models/layer_optimum/dram_sram_front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "scheduler/models/layer_optimum/optimum.h"

namespace laminate {
namespace {

constexpr BankedBuffer eyeriss{27, 2048};
const RegisterArray eyeriss_registers{{12, 14}, 260};

/// Least DRAM by SRAM words of all orders of all loops with all blocks, without the points that others beat.
std::map<int64_t, int64_t> exhaustive_front(const ConvolutionProblem& p, const BankedBuffer& buffer,
                                            const std::optional<RegisterArray>& registers) {
    std::map<int64_t, int64_t> least;
    std::vector<size_t> loops;
    for (size_t l = 0; l < convolution_loops; ++l)
        if (p.extent[l] > 1) loops.push_back(l);
    std::optional<RegisterMapper> mapper;
    if (registers) mapper.emplace(p, *registers);
    do {
        BlockOrder order;
        const auto choose = [&](auto&& self, size_t depth) -> void {
            if (depth == loops.size()) {
                const auto division = divide_banks(p, order, buffer, SpillEvaluator::eq7);
                if (!division || (mapper && !mapper->without_extra_accesses(block_extents(p, order)))) return;
                const auto [entry, is_new] = least.try_emplace(sram_words(p, order), INT64_MAX);
                entry->second = std::min(entry->second, compulsory_words(p) + division->extra_words());
                return;
            }
            self(self, depth + 1);
            for (int64_t block = 1; block < p.extent[loops[depth]]; ++block) {
                order.push_back({static_cast<ConvolutionLoop>(loops[depth]), block});
                self(self, depth + 1);
                order.pop_back();
            }
        };
        choose(choose, 0);
    } while (std::next_permutation(loops.begin(), loops.end()));
    int64_t best = INT64_MAX;
    for (auto point = least.begin(); point != least.end();) {
        if (point->second >= best) {
            point = least.erase(point);
        } else {
            best = point->second;
            ++point;
        }
    }
    return least;
}

TEST(DramSramFront, EqualsExhaustiveSearch) {
    struct Case {
        const char* problem;
        BankedBuffer buffer;
        std::optional<RegisterArray> registers;
    };
    size_t longest = 0;
    for (const Case& c : {Case{"k4 c3 x4 m2", {6, 4}, {}}, Case{"k3 c2 x5 m3", {5, 5}, RegisterArray{{2}, 8}},
                          Case{"f2 k4 c4 x2", {5, 4}, RegisterArray{{2, 3}, 5}},
                          Case{"k6 c6", {5, 3}, RegisterArray{{2}, 4}}, Case{"k3 c3 x3 y2", {6, 3}, {}}}) {
        const ConvolutionProblem p = parse_convolution(c.problem);
        const DramSramFront front = dram_sram_front(p, c.buffer, c.registers, INT64_MAX);
        std::map<int64_t, int64_t> found;
        for (const DramSramPoint& point : front.points) {
            EXPECT_TRUE(found.emplace(point.sram_words, point.dram_words).second);
            EXPECT_EQ(point.sram_words, sram_words(p, point.order));
        }
        EXPECT_EQ(found, exhaustive_front(p, c.buffer, c.registers)) << c.problem;
        longest = std::max(longest, found.size());
    }
    EXPECT_GE(longest, 3U);
}

TEST(DramSramFront, BeatsOrMeetsCellsOfCnnFlowInBothCounts) {
    // Paper, MiB: conv1 of AlexNet 3.58 / 16.48; conv5_x of VGG16 11.81 / 50.30. Ours 3.5847 / 15.187 and 11.8011 / 47.712.
    struct Case {
        const char* loops;
        double dram;
        double sram;
    };
    for (const Case& c :
         {Case{"f4 k96 c3 x56 y56 m11 n11 stride 4", 3.59, 16.48}, Case{"f3 k512 c512 x14 y14 m3 n3", 11.81, 50.30}}) {
        const ConvolutionProblem p = parse_convolution(c.loops);
        const auto words = [](double mebibytes) { return static_cast<int64_t>(mebibytes * (1 << 19)); };
        const DramSramFront front = dram_sram_front(p, eyeriss, eyeriss_registers, words(c.sram));
        ASSERT_FALSE(front.points.empty());
        EXPECT_LT(front.points.back().dram_words, words(c.dram)) << c.loops;
        EXPECT_LT(front.points.back().sram_words, words(c.sram)) << c.loops;
        // Every weight picks a point of the front; none the one with the fewest DRAM accesses, a large one the fewest SRAM accesses.
        EXPECT_EQ(choose(front, 0).dram_words, front.points.back().dram_words);
        EXPECT_EQ(choose(front, 1e6).sram_words, front.points.front().sram_words);
    }
}

TEST(RegisterMapping, SpreadsOverTwelveByFourteenLanes) {
    // CNNFlow section 6: 2772 distinct vectors.
    EXPECT_EQ(lane_batches({12, 14}).size(), 2772U);
}

TEST(RegisterMapping, BlocksOfConv3NeedTwoOfTheFourPictures) {
    // f2 k64 c8, 13 x 13 of 3 x 3: a PE of 12 x 14 holds its outputs, one weight per output channel and one input window; with f4 it would take 353
    // of 260 words.
    const ConvolutionProblem p = parse_convolution("f4 k384 c256 x13 y13 m3 n3");
    const RegisterMapper mapper(p, eyeriss_registers);
    const auto two = mapper.without_extra_accesses({2, 64, 8, 13, 13, 3, 3});
    ASSERT_TRUE(two);
    EXPECT_EQ(two->order, "cmnfxyk");
    EXPECT_LE(two->words[0] + two->words[1] + two->words[2], 260);
    EXPECT_FALSE(RegisterMapper(p, {{12, 14}, 20}).without_extra_accesses({2, 64, 8, 13, 13, 3, 3}));
}

}  // namespace
}  // namespace laminate
