// Code of any size against code made for each size: equal bits, in poisoned memory of the size that
// the formulas promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/error.h"
#include "base/rng.h"
#include "generators/compile/executable.h"
#include "generators/compile/group_reference.h"
#include "generators/kernels/group_kernels.h"
#include "nets/network/picture_views.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/open_group.h"
#include "scheduler/schedule/tensor_sizes.h"
#include "tests/support/chain.h"
#include "tests/generators/kernels/poisoned_run.h"

namespace laminate {
namespace {

/// One group for any size, planned at the size that the network has.
class OpenGroup {
public:
    OpenGroup(const Network& network, const std::vector<LayerId>& layers,
              const LineBufferSizes& sizes, const KernelOptions& options = {})
        : sizes_(network),
          layers_(layers),
          problems_(layer_problems(network, layers)),
          group_(planned(network, sizes, options)),
          code_(open_group_code(network, group_, sizes_)),
          jit_(code_.body) {}

    [[nodiscard]] const GroupSchedule& group() const { return group_; }
    [[nodiscard]] const TensorSizes& sizes() const { return sizes_; }

    /// Runs both kinds of code at a size, every strip in a call of its own.
    void expect_equal_bits(const SizeValues& size) const {
        const Network network = sizes_.network_at(size);
        const std::vector<LayerProblem> problems = layer_problems(network, layers_);
        const GroupSchedule group = group_at(group_, problems_, problems, size);
        const std::string at = std::to_string(size.rows) + " x " + std::to_string(size.columns) +
                               ", strips of " + std::to_string(size.strip_rows) + " x " +
                               std::to_string(size.strip_columns) + ": " + to_text(group);
        const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 1);
        const auto elements = static_cast<size_t>(problems.back().output_elements().value());
        const GroupCode closed = group_code(network, group);
        const Outcome expected = run_poisoned(closed, elements, inputs, true);
        const Outcome found = run(size, inputs, elements, static_cast<int32_t>(closed.strips));
        EXPECT_TRUE(found.guards_intact) << at;
        size_t different = 0;
        for (size_t n = 0; n < elements; ++n) {
            if (std::isnan(found.output[n]) || found.output[n] != expected.output[n]) ++different;
        }
        EXPECT_EQ(different, 0) << at;
    }

private:
    [[nodiscard]] GroupSchedule planned(const Network& network, const LineBufferSizes& sizes,
                                        KernelOptions options) const {
        options.any_size = true;
        return with_default_kernels(problems_, line_buffer_group(network, layers_, sizes), unit,
                                    options);
    }
    [[nodiscard]] Outcome run(const SizeValues& size,
                              const std::vector<std::vector<float>>& inputs, size_t outputs,
                              int32_t strips) const {
        const std::array<int32_t, size_variables> sizes{
            static_cast<int32_t>(size.images), static_cast<int32_t>(size.rows),
            static_cast<int32_t>(size.columns), static_cast<int32_t>(size.strip_rows),
            static_cast<int32_t>(size.strip_columns)};
        const AlignedFloats constants(code_.constants);
        const auto scratch_elements =
            static_cast<size_t>(code_.open_scratch_bytes->at(size)) / sizeof(float);
        AlignedFloats scratch(scratch_elements + guard, nan);
        std::vector<float> memory(outputs + 2 * guard, nan);
        std::vector<const float*> in;
        for (const std::vector<float>& input : inputs) in.push_back(input.data());
        in.push_back(reinterpret_cast<const float*>(sizes.data()));
        float* out = memory.data() + guard;
        for (int32_t s = 0; s < strips; ++s)
            EXPECT_EQ(jit_.function()(in.data(), &out, constants.data(), scratch.data(), s, s + 1),
                      0);
        Outcome result;
        for (size_t g = 0; g < guard; ++g) {
            if (!std::isnan(memory[g]) || !std::isnan(memory[outputs + guard + g]) ||
                !std::isnan(scratch.data()[scratch_elements + g]))
                result.guards_intact = false;
        }
        result.output.assign(out, out + outputs);
        return result;
    }

    static inline const VectorUnit unit = vector_unit(Halide::get_host_target());
    TensorSizes sizes_;
    std::vector<LayerId> layers_;
    std::vector<LayerProblem> problems_;
    GroupSchedule group_;
    GroupCode code_;
    JitGroup jit_;
};

std::vector<LayerId> first_chain(const Network& network) {
    return schedulable_chains(network).front();
}

int64_t whole_units(int64_t strip, int64_t unit) { return std::max(unit, strip / unit * unit); }

/// A size with strips as the runtime chooses them: multiples of the group's units.
SizeValues size_of(const OpenGroup& open, int64_t rows, int64_t columns, int64_t strip_rows,
                   int64_t strip_columns, const std::vector<LayerProblem>& problems) {
    return {.rows = rows,
            .columns = columns,
            .strip_rows = whole_units(strip_rows, strip_unit(open.group(), problems, Dim::y)),
            .strip_columns =
                whole_units(strip_columns, strip_unit(open.group(), problems, Dim::x))};
}

/// A last layer that is transposed; any_size_test has one that is not.
TEST(OpenSizes, ChainsByTilesOfColumns) {
    const Network network = zoo_network("fsrcnn-x2", {.height = 96, .width = 192});
    const std::vector<LayerId> chain = first_chain(network);
    const OpenGroup open(network, chain, {4, 48, 64});
    ASSERT_EQ(open.group().nests.front().kernel.kind, KernelKind::columns);
    const auto problems = layer_problems(network, chain);
    open.expect_equal_bits(size_of(open, 41, 333, 20, 128, problems));
    open.expect_equal_bits(size_of(open, 7, 65, 7, 65, problems));
}

TEST(OpenSizes, WinogradOverLineBuffers) {
    const Network network = zoo_network("mc-cnn", {.height = 64, .width = 128});
    const std::vector<LayerId> chain = first_chain(network);
    const OpenGroup open(network, chain, {4, 32, 0});
    ASSERT_EQ(open.group().nests.back().kernel.kind, KernelKind::winograd_rows);
    const auto problems = layer_problems(network, chain);
    open.expect_equal_bits(size_of(open, 64, 128, 32, 0, problems));
    open.expect_equal_bits(size_of(open, 51, 203, 20, 0, problems));
    open.expect_equal_bits(size_of(open, 9, 65, 9, 0, problems));
}

/// Strides, dilation, padding, groups, transposed convolutions: whatever the chain, its code for any
/// size either computes what code for each size does, or is refused with the name of a layer.
void expect_random_chains(uint64_t first, uint64_t last, int least_computed) {
    Rng rng(first);
    int computed = 0, refused = 0;
    for (uint64_t seed = first; seed <= last; ++seed) {
        const Network network = random_chain(seed);
        const std::vector<LayerId> chain = first_chain(network);
        const auto problems = layer_problems(network, chain);
        SCOPED_TRACE("random_chain(" + std::to_string(seed) + ")");
        try {
            const int64_t rows = static_cast<int64_t>(1 + rng.below(4));
            const OpenGroup open(network, chain, {rows, (problems.back()[Dim::y] + 1) / 2, 0},
                                 {.winograd = rng.below(2) == 0});
            for (int n = 0; n < 3; ++n) {
                const SizeValues least = open.sizes().least();
                open.expect_equal_bits(
                    size_of(open, least.rows + static_cast<int64_t>(rng.below(n == 0 ? 3 : 40)),
                            least.columns + static_cast<int64_t>(rng.below(n == 0 ? 3 : 90)),
                            static_cast<int64_t>(1 + rng.below(20)), 0, problems));
            }
            ++computed;
        } catch (const InputError& error) {
            EXPECT_NE(std::string(error.what()).find("cannot be of any size: "), std::string::npos)
                << error.what();
            ++refused;
        }
    }
    EXPECT_GE(computed, least_computed) << refused << " refused";
}

TEST(OpenSizes, RandomChains) { expect_random_chains(1, 15, 8); }
TEST(OpenSizesLong, RandomChains) { expect_random_chains(16, 200, 90); }

/// A residual block with pooling around it: tensors that two layers read, averages and maxima over
/// padding, strides.
void draw_weights(Network& network) {
    Rng rng(9);
    for (Layer& layer : network.layers) {
        if (layer.kind != LayerKind::conv) continue;
        std::vector<float> weights(layer.weights->values.size());
        for (float& weight : weights) weight = static_cast<float>(rng.below(7)) - 3.0F;
        layer.weights = std::make_shared<const Constant>(Constant{layer.weights->dims, weights});
    }
    check(network);
}

/// At the size that the code is made for and at another, by the same strips.
void expect_equal_bits_at_two_sizes(const Network& network, const std::vector<LayerId>& layers) {
    const OpenGroup open(network, layers, {2, 8, 0});
    const auto problems = layer_problems(network, layers);
    open.expect_equal_bits(size_of(open, 40, 50, 8, 0, problems));
    open.expect_equal_bits(size_of(open, 23, 101, 4, 0, problems));
}

TEST(OpenSizes, BranchesAndPooling) {
    Network network = empty_network(3, 40, 50);
    const Window three = square_window(3, 1, 1), two = square_window(3, 2, 1);
    const TensorId first = append(network, "first", 0, {.channels = 5, .window = two});
    const TensorId pooled = append(
        network, "pool", {.kind = LayerKind::max_pool, .inputs = {first}, .window = three});
    const TensorId conv = append(network, "conv", pooled, {.channels = 5, .window = three});
    const TensorId sum = append(network, "sum", {.kind = LayerKind::add, .inputs = {conv, pooled}});
    (void)append(network, "mean",
                 {.kind = LayerKind::average_pool, .inputs = {sum}, .window = two});
    draw_weights(network);
    for (const std::vector<LayerId>& layers :
         {std::vector<LayerId>{0}, std::vector<LayerId>{1}, std::vector<LayerId>{2, 3},
          std::vector<LayerId>{4}})
        expect_equal_bits_at_two_sizes(network, layers);
}

/// conv -> one half of its channels times the other -> conv -> every row and column repeated ->
/// a factor per channel, from a tensor of its own.
TEST(OpenSizes, PartsRepetitionsAndFactors) {
    Network network = empty_network(3, 40, 50);
    const Window three = square_window(3, 1, 1);
    const TensorId first = append(network, "first", 0, {.channels = 6, .window = three});
    const auto general = [&](const char* name, std::vector<TensorId> inputs, GeneralOperator op) {
        return append(network, name,
                      {.kind = LayerKind::general,
                       .inputs = std::move(inputs),
                       .general = std::move(op)});
    };
    const std::vector<int64_t> map{1, 6, 40, 50}, half{1, 3, 40, 50};
    const TensorId low = general("low", {first}, part_of(map, {0, 0, 0}, {3, 40, 50})),
                   high = general("high", {first}, part_of(map, {3, 0, 0}, {3, 40, 50}));
    const GeneralOperator times{.kind = GeneralKind::binary, .function = GeneralFunction::multiply};
    const TensorId gated = general("gated", {low, high}, times);
    const TensorId twice = general("twice", {gated}, repeated(half, {2, 2}));
    const TensorId last = append(network, "last", twice, {.channels = 4, .window = three});
    const TensorId mean =
        append(network, "mean", {.kind = LayerKind::global_average_pool, .inputs = {last}});
    (void)general("scaled", {last, mean}, times);
    draw_weights(network);
    for (const std::vector<LayerId>& layers :
         {std::vector<LayerId>{0, 1, 2, 3}, std::vector<LayerId>{4, 5}, std::vector<LayerId>{7}})
        expect_equal_bits_at_two_sizes(network, layers);
}

/// Pad, Resize and Crop, each between convolutions and by itself.
TEST(OpenSizes, SampledWindowsAndCrops) {
    const std::vector<int64_t> map{1, 5, 40, 50};
    for (const GeneralOperator& op :
         {padded(map, {Padding::Mode::constant, {2, 1}, {0, 3}, 0.5F}),
          padded(map, {Padding::Mode::edge, {1, 17}, {4, 2}}),
          padded(map, {Padding::Mode::reflect, {3, 4}, {2, 6}}), interpolated(map, {80, 100}),
          interpolated(map, {160, 50}), interpolated(map, {20, 25}),
          interpolated(map, {60, 75}),
          part_of(map, {1, 2, 3}, {3, 37, 43})}) {
        Network network = empty_network(3, 40, 50);
        const Window three = square_window(3, 1, 1);
        const TensorId first = append(network, "first", 0, {.channels = 5, .window = three});
        const TensorId moved = append(
            network, "moved",
            {.kind = LayerKind::general, .inputs = {first}, .general = op});
        (void)append(network, "last", moved, {.channels = 4, .window = three});
        draw_weights(network);
        SCOPED_TRACE(dims_text(op.dims));
        // The layer stands in the middle of a group, and is its first and last layer.
        for (const std::vector<LayerId>& layers :
             {std::vector<LayerId>{0, 1, 2}, std::vector<LayerId>{1}})
            expect_equal_bits_at_two_sizes(network, layers);
    }
}

std::string refusal_of(const Network& network) {
    try {
        (void)TensorSizes(network);
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(TensorSizes, FollowTheLayers) {
    const Network network = zoo_network("resnet18", {.height = 224, .width = 224});
    const TensorSizes sizes(network);
    const auto output_of = [&](const char* layer) {
        std::string text;
        for (const SizeFormula& dim :
             sizes.dims()[network.layer(network.find_layer(layer)).output])
            text += (text.empty() ? "" : " x ") + to_text(dim);
        return text;
    };
    EXPECT_EQ(output_of("conv1"), "n x 64 x (h + 1)/2 x (w + 1)/2");
    EXPECT_EQ(output_of("fc"), "n x 1000");
    EXPECT_EQ(dims_text(sizes.network_at({.images = 2, .rows = 65, .columns = 97})
                            .tensor(network.layer(network.find_layer("conv1")).output)
                            .dims),
              "2x64x33x49");
}

TEST(TensorSizes, RefusesWhatFollowsTheSizeOtherwise) {
    // A dense layer of a whole map wants one size.
    const Network vgg = zoo_network("vgg16", {.height = 64, .width = 64});
    EXPECT_TRUE(refusal_of(vgg).starts_with("vgg16: cannot be of any size: layer fc"))
        << refusal_of(vgg);
    // Padding that is as long as the size asks for.
    EXPECT_THROW(require_same_layers(zoo_network("squeezenet", {.height = 224, .width = 224}),
                                     zoo_network("squeezenet", {.height = 225, .width = 225})),
                 InputError);
}

}  // namespace
}  // namespace laminate
