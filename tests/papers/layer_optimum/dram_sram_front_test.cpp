#include "papers/layer_optimum/dram_sram_front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "base/units.h"
#include "papers/layer_optimum/optimum.h"
#include "tests/papers/layer_optimum/all_orders.h"

namespace laminate {
namespace {

constexpr BankedBuffer eyeriss{27, 2048};
const RegisterArray eyeriss_registers{{12, 14}, 260};

/// Least DRAM by SRAM words of all orders of all loops with all blocks and all mappings, without
/// the points that others beat.
std::map<int64_t, int64_t> exhaustive_front(const ConvolutionProblem& p, const BankedBuffer& buffer,
                                            const std::optional<RegisterArray>& registers) {
    std::map<int64_t, int64_t> least;
    std::map<LoopExtents, std::optional<int64_t>> extra;
    for_all_orders(p, [&](const BlockOrder& order) {
        const auto division = divide_banks(p, order, buffer, SpillEvaluator::eq7);
        if (!division) return;
        int64_t sram = sram_words(p, order);
        if (registers) {
            const LoopExtents blocks = block_extents(p, order);
            const auto [entry, is_new] = extra.try_emplace(blocks);
            if (is_new) entry->second = least_extra_of_all_mappings(p, blocks, *registers);
            if (!entry->second) return;
            int64_t computations = p.groups;
            for (const ConvolutionLoop l : convolution_loops)
                computations *= ceil_div(p.extent[l], blocks[l]);
            sram += computations * *entry->second;
        }
        const auto [entry, is_new] = least.try_emplace(sram, INT64_MAX);
        entry->second = std::min(entry->second, compulsory_words(p) + division->extra_words());
    });
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
    int64_t with_extra = 0;
    for (const Case& c :
         {Case{"k4 c3 x4 m2", {6, 4}, {}}, Case{"k3 c2 x5 m3", {5, 5}, RegisterArray{{2}, 8}},
          Case{"f2 k4 c4 x2", {5, 4}, RegisterArray{{2, 3}, 5}},
          Case{"k6 c6", {5, 3}, RegisterArray{{2}, 4}}, Case{"k3 c3 x3 y2", {6, 3}, {}},
          Case{"k3 c3 x3 m2 groups 2", {6, 4}, RegisterArray{{2}, 4}},
          Case{"k5 c4", {9, 3}, RegisterArray{{1}, 3}},
          Case{"x4 y3 m2 n2", {8, 4}, RegisterArray{{2}, 5}},
          Case{"k3 x4 m3 stride 2", {7, 4}, RegisterArray{{2}, 4}},
          Case{"f3 k3 c4", {6, 2}, RegisterArray{{2}, 3}},
          Case{"k6 c6", {6, 4}, RegisterArray{{2}, 3}}}) {
        const ConvolutionProblem p = parse_convolution(c.problem);
        const DramSramFront front = dram_sram_front(p, c.buffer, c.registers, INT64_MAX);
        std::map<int64_t, int64_t> found;
        for (const DramSramPoint& point : front.points) {
            EXPECT_TRUE(found.emplace(point.sram_words, point.dram_words).second);
            EXPECT_EQ(point.sram_words,
                      sram_words(p, point.order) +
                          block_computations(p, block_extents(p, point.order)) *
                              (point.registers ? point.registers->extra_words() : 0));
            with_extra += point.registers && point.registers->extra_words() > 0 ? 1 : 0;
        }
        EXPECT_EQ(found, exhaustive_front(p, c.buffer, c.registers)) << c.problem;
        longest = std::max(longest, found.size());
    }
    EXPECT_GE(longest, 3U);
    EXPECT_GE(with_extra, 3);
}

TEST(DramSramFront, EyerissRegistersCostNothingAndNoMappingReachesTheCellOfConv1_2) {
    for (const char* loops : {"f4 k256 c48 x27 y27 m5 n5", "f4 k384 c256 x13 y13 m3 n3",
                              "f3 k64 c3 x224 y224 m3 n3", "f3 k64 c64 x224 y224 m3 n3"}) {
        const ConvolutionProblem p = parse_convolution(loops);
        const int64_t most = 10 * sram_words(p, {});
        const DramSramFront with = dram_sram_front(p, eyeriss, eyeriss_registers, most);
        const DramSramFront without = dram_sram_front(p, eyeriss, {}, most);
        ASSERT_EQ(with.points.size(), without.points.size()) << loops;
        for (size_t n = 0; n < with.points.size(); ++n) {
            EXPECT_EQ(with.points[n].dram_words, without.points[n].dram_words) << loops;
            EXPECT_EQ(with.points[n].sram_words, without.points[n].sram_words) << loops;
            const std::optional<RegisterMapping>& mapping = with.points[n].registers;
            ASSERT_TRUE(mapping);
            EXPECT_EQ(extra_accesses(p, block_extents(p, with.points[n].order), *mapping),
                      (PerOperand{0, 0, 0}));
        }
        // Paper, MiB: 37.99 / 135.35. Without registers SRAM accesses are as few as any mapping
        // could have them.
        if (p.extent[ConvolutionLoop::c] == 64) {
            for (const DramSramPoint& point : without.points)
                EXPECT_FALSE(point.dram_words < 38 * (1 << 19) &&
                             point.sram_words < 178 * (1 << 19));
        }
    }
}

/// Extra accesses are worth their price where registers are few, and never better than none at all.
TEST(DramSramFront, FewRegistersPayInSramAccesses) {
    const ConvolutionProblem p = parse_convolution("k12 c8 x7 m3");
    const BankedBuffer buffer{6, 32};
    const int64_t most = 20 * sram_words(p, {});
    const DramSramFront few = dram_sram_front(p, buffer, RegisterArray{{2, 2}, 6}, most);
    const DramSramFront none = dram_sram_front(p, buffer, {}, most);
    ASSERT_FALSE(few.points.empty());
    int64_t with_extra = 0;
    for (const DramSramPoint& point : few.points) {
        with_extra += point.registers->extra_words() > 0 ? 1 : 0;
        EXPECT_TRUE(
            std::any_of(none.points.begin(), none.points.end(), [&](const DramSramPoint& other) {
                return other.dram_words <= point.dram_words && other.sram_words <= point.sram_words;
            }));
    }
    EXPECT_GT(with_extra, 0);
}

/// Few registers, half a minute: whoever stops it gets points that are what they say.
TEST(DramSramFront, StoppedWithinALayerItHandsOverWhatItFound) {
    const ConvolutionProblem p = parse_convolution("k24 c16 x13 y13 m3 n3");
    const RegisterArray registers{{4, 3}, 12};
    const BankedBuffer buffer{12, 128};
    std::atomic<bool> stop = true;
    const DramSramFront nothing =
        dram_sram_front(p, buffer, registers, 20 * sram_words(p, {}), &stop);
    EXPECT_FALSE(nothing.is_complete);
    EXPECT_TRUE(nothing.points.empty());

    stop = false;
    const auto begin = std::chrono::steady_clock::now();
    std::thread person([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        stop = true;
    });
    const DramSramFront part = dram_sram_front(p, buffer, registers, 20 * sram_words(p, {}), &stop);
    person.join();
    EXPECT_FALSE(part.is_complete);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    for (const DramSramPoint& point : part.points) {
        const LoopExtents blocks = block_extents(p, point.order);
        EXPECT_EQ(extra_accesses(p, blocks, point.registers.value()), point.registers->extra);
        EXPECT_EQ(point.sram_words,
                  sram_words(p, point.order) +
                      block_computations(p, blocks) * point.registers->extra_words());
        const auto division = divide_banks(p, point.order, buffer, SpillEvaluator::eq7);
        EXPECT_EQ(point.dram_words, compulsory_words(p) + division.value().extra_words());
    }
}

TEST(DramSramFront, BeatsOrMeetsCellsOfCnnFlowInBothCounts) {
    // Paper, MiB: conv1 of AlexNet 3.58 / 16.48; conv5_x of VGG16 11.81 / 50.30. Ours 3.5847
    // / 15.187 and 11.8011 / 47.712.
    struct Case {
        const char* loops;
        double dram;
        double sram;
    };
    for (const Case& c : {Case{"f4 k96 c3 x56 y56 m11 n11 stride 4", 3.59, 16.48},
                          Case{"f3 k512 c512 x14 y14 m3 n3", 11.81, 50.30}}) {
        const ConvolutionProblem p = parse_convolution(c.loops);
        const auto words = [](double mebibytes) {
            return static_cast<int64_t>(mebibytes * (1 << 19));
        };
        const DramSramFront front = dram_sram_front(p, eyeriss, eyeriss_registers, words(c.sram));
        ASSERT_FALSE(front.points.empty());
        EXPECT_LT(front.points.back().dram_words, words(c.dram)) << c.loops;
        EXPECT_LT(front.points.back().sram_words, words(c.sram)) << c.loops;
        // Every weight picks a point of the front; none the one with the fewest DRAM accesses, a
        // large one the fewest SRAM accesses.
        EXPECT_EQ(choose(front, 0).dram_words, front.points.back().dram_words);
        EXPECT_EQ(choose(front, 1e6).sram_words, front.points.front().sram_words);
    }
}

}  // namespace
}  // namespace laminate
