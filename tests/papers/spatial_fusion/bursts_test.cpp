#include "papers/spatial_fusion/bursts.h"

#include <gtest/gtest.h>

#include <set>

#include "nets/random/random_network.h"
#include "papers/spatial_fusion/fusion_cost.h"
#include "tests/papers/spatial_fusion/pixel_walker.h"

namespace laminate::spatial_fusion {
namespace {

/// Elements moved, in whole bursts for each run of addresses. A map lies by channel, row, column.
class MovedWords {
public:
    explicit MovedWords(int64_t burst) : burst_(burst) {}
    void move(const std::set<int64_t>& addresses) {
        int64_t length = 0;
        int64_t last = -2;
        for (const int64_t address : addresses) {
            if (address != last + 1) flush(length);
            ++length;
            last = address;
        }
        flush(length);
    }
    [[nodiscard]] int64_t moved() const { return moved_; }

private:
    void flush(int64_t& length) {
        moved_ += (length + burst_ - 1) / burst_ * burst_;
        length = 0;
    }
    int64_t burst_;
    int64_t moved_ = 0;
};

std::set<int64_t> box(Range rows, Range columns, Range channels, int64_t height, int64_t width) {
    std::set<int64_t> addresses;
    for (int64_t c = channels.begin; c < channels.end; ++c)
        for (int64_t y = rows.begin; y < rows.end; ++y)
            for (int64_t x = columns.begin; x < columns.end; ++x)
                addresses.insert((c * height + y) * width + x);
    return addresses;
}

TEST(Bursts, OfOneElementAreTheVolume) {
    int64_t compared = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        const Network network = tiny_chain(seed, 4);
        Rng rng(seed);
        for (const Reading reading : {Reading::exact, Reading::paper}) {
            FusionOptions options;
            options.capacity = rng.between(12, 300);
            options.reading = reading;
            const auto found = plan_fusion(network, options);
            const auto* plan = std::get_if<FusionPlan>(&found);
            if (plan == nullptr) continue;
            for (const std::vector<PlannedStack>* stacks : {&plan->stacks, &plan->singles}) {
                for (const PlannedStack& stack : *stacks) {
                    const Stack problems = layer_problems(network, stack.layers);
                    EXPECT_EQ(volume_in_bursts(problems, stack, reading, 1), stack.volume)
                        << seed << " " << to_string(reading) << " " << problems.front().name;
                    EXPECT_GE(volume_in_bursts(problems, stack, reading, 8), stack.volume);
                    ++compared;
                }
            }
        }
    }
    EXPECT_GT(compared, 200);
}

/// The same for a stack with all channels in each tile, whose tiles read addresses that no earlier
/// one did.
TEST(Bursts, AreThoseOfTheRunsOfAddresses) {
    Rng rng(3);
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        const Network network = tiny_chain(seed, 3);
        PlannedStack stack;
        for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id)
            stack.layers.push_back(id);
        const Stack problems = layer_problems(network, stack.layers);
        const LayerProblem& top = problems.front();
        const LayerProblem& bottom = problems.back();
        stack.keeps_halos = true;
        stack.tile = {rng.between(1, bottom[Dim::x]), rng.between(1, bottom[Dim::y]),
                      bottom[Dim::z], 1};
        const int64_t burst = rng.between(1, 9);
        const auto rows = new_inputs(problems, 0, stack.tile.y).front();
        const auto columns = new_inputs(problems, 1, stack.tile.x).front();
        MovedWords words(burst);
        for (size_t y = 0; y < rows.size(); ++y) {
            for (size_t x = 0; x < columns.size(); ++x) {
                words.move(box(rows[y], columns[x], {0, top.inputs.front().channels}, top.y().in,
                               top.x().in));
                const auto part = [](size_t tile, int64_t size, int64_t extent) {
                    const int64_t begin = static_cast<int64_t>(tile) * size;
                    return Range{begin, std::min(begin + size, extent)};
                };
                words.move(box(part(y, stack.tile.y, bottom[Dim::y]),
                               part(x, stack.tile.x, bottom[Dim::x]), {0, bottom[Dim::z]},
                               bottom[Dim::y], bottom[Dim::x]));
            }
        }
        int64_t expected = words.moved();
        for (const LayerProblem& layer : problems)
            expected += (layer.weight_elements().value() + burst - 1) / burst * burst;
        EXPECT_EQ(volume_in_bursts(problems, stack, Reading::exact, burst), expected)
            << seed << ", burst " << burst;
    }
}

TEST(Bursts, NarrowTilesWasteMost) {
    // 16 x 16 x 2 in, 3x3 to 4 channels, 14 x 14 out, one byte an element. Tiles of one column: the
    // first fetches 3 columns of 16 rows, the others one.
    const Network network = chain(2, 16, 16, {{4, square_window(3)}});
    PlannedStack stack;
    stack.layers = {0};
    stack.keeps_halos = true;
    stack.tile = {1, 14, 4, 2};
    stack.volume = stack_volume(layer_problems(network, {0}), stack.tile, Reading::exact);
    EXPECT_EQ(stack.volume, 2 * 256 + 72 + 4 * 196);
    stack.operations = 14 * 14 * 4 * 2 * 9;
    const ArrayMachine machine = array_machine(open_machine("hwff_1"));
    const StackCost plain = stack_cost(network, stack, machine);
    const StackCost bursts = stack_cost(network, stack, machine, {Reading::exact, 8});
    EXPECT_EQ(bursts.burst_volume_bytes, 14 * 2 * 16 * 8 + 72 + 14 * 4 * 14 * 8);
    EXPECT_FALSE(plain.burst_volume_bytes);
    EXPECT_DOUBLE_EQ(
        bursts.communication_cycles / plain.communication_cycles,
        static_cast<double>(*bursts.burst_volume_bytes) / static_cast<double>(stack.volume));
    EXPECT_DOUBLE_EQ(plain.ctc / bursts.ctc,
                     bursts.communication_cycles / plain.communication_cycles);
    // Whole rows lie side by side: two runs of the input for each tile.
    stack.tile = {14, 7, 4, 2};
    EXPECT_EQ(volume_in_bursts(layer_problems(network, {0}), stack, Reading::exact, 8),
              2 * (9 * 16) + 2 * (7 * 16) + 72 + 2 * 4 * 104);
}

}  // namespace
}  // namespace laminate::spatial_fusion
