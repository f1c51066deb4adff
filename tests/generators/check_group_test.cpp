// The check that every compiled group passes: it must accept right code and name what is wrong with wrong code.
#include "generators/check_group.h"

#include <gtest/gtest.h>

#include "generators/executable.h"
#include "generators/optimised.h"
#include "nets/zoo.h"
#include "runtime/reference_operators.h"
#include "scheduler/line_buffers.h"
#include "scheduler/random_schedule.h"

namespace laminate {
namespace {

/// L3Net as one fused group, and its code.
class CheckGroup : public ::testing::Test {
protected:
    CheckGroup()
        : network_(zoo_network("l3net")),
          group_(line_buffer_group(network_, schedulable_chains(network_).front(), {4, 8, 0})),
          code_(optimised_code(network_, group_, vector_unit(Halide::get_host_target()))) {}

    Network network_;
    GroupSchedule group_;
    GroupCode code_;
};

TEST_F(CheckGroup, RightCodePasses) {
    const JitGroup jit(code_.body, false);
    EXPECT_EQ(wrong_result(network_, group_, code_, jit.function()), "");
}

TEST_F(CheckGroup, BandsOfRowsAloneFindAWeightThatIsOff) {
    const JitGroup jit(code_.body, false);
    CheckOptions bands;
    bands.reference_macs = Macs(1);  // one row at the top, in the middle and at the bottom
    EXPECT_EQ(wrong_result(network_, group_, code_, jit.function(), bands), "");
    GroupCode off = code_;
    off.constants[0] += 0.01F;
    EXPECT_NE(wrong_result(network_, group_, off, jit.function(), bands).find("channel 0, row 0, column 0 is "),
              std::string::npos)
        << wrong_result(network_, group_, off, jit.function(), bands);
}

// Impostors with the interface of generated code. L3Net's output is 16 channels or fewer of a small map; they only touch its first elements.
int writes_nothing(const float* const*, float* const*, const float*, void*, int32_t, int32_t) { return 0; }
int writes_before_the_output(const float* const*, float* const* outputs, const float*, void*, int32_t, int32_t) {
    outputs[0][-1] = 1;
    return 0;
}
int writes_before_the_scratch(const float* const*, float* const*, const float*, void* scratch, int32_t, int32_t) {
    static_cast<float*>(scratch)[-1] = 1;
    return 0;
}
int fails(const float* const*, float* const*, const float*, void*, int32_t, int32_t) { return 7; }

TEST_F(CheckGroup, ImpostorsAreNamed) {
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_nothing),
              "channel 0, row 0, column 0 was not written, or is not finite");
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_before_the_output), "the code wrote outside its output");
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_before_the_scratch),
              "the code wrote outside its scratch memory");
    EXPECT_EQ(wrong_result(network_, group_, code_, fails), "the code returned 7");
}

/// Strides, dilations, paddings, transposed convolutions: rows cut out of a whole result are the rows computed alone.
TEST(ReferenceRows, AreTheRowsOfTheWholeResult) {
    int bands = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        const Network network = random_chain(seed);
        const std::vector<LayerId> chain = schedulable_chains(network).front();
        const Tensor& in = network.tensor(network.layer(chain.front()).inputs[0]);
        const Tensor& out = network.tensor(network.layer(chain.back()).output);
        if (out.dims.size() != 4) continue;
        Rng rng(seed);
        std::vector<float> input(static_cast<size_t>(element_count(in.dims) / in.dims[0]));
        for (float& value : input) value = static_cast<float>(rng.between(-3, 3));
        std::vector<float> batch;
        for (int64_t image = 0; image < in.dims[0]; ++image) batch.insert(batch.end(), input.begin(), input.end());
        const std::vector<float> whole =
            run_reference_network(network, {batch}, {network.layer(chain.back()).output})[0];
        const int64_t height = out.dims[2], width = out.dims[3];
        for (int64_t first = 0; first < height; ++first) {
            for (const int64_t last : {first + 1, std::min(first + 3, height), height}) {
                const std::vector<float> rows = reference_rows(network, chain, input, first, last);
                ASSERT_EQ(std::ssize(rows), out.dims[1] * (last - first) * width) << "seed " << seed;
                for (int64_t n = 0; n < std::ssize(rows); ++n) {
                    const int64_t c = n / width / (last - first), y = first + n / width % (last - first);
                    ASSERT_EQ(rows[static_cast<size_t>(n)],
                              whole[static_cast<size_t>((c * height + y) * width + n % width)])
                        << "seed " << seed << ", rows " << first << " to " << last << ", element " << n;
                }
                ++bands;
            }
        }
    }
    EXPECT_GT(bands, 200);
}

}  // namespace
}  // namespace laminate
