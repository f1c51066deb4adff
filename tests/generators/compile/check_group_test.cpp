// The check that every compiled group passes: it must accept right code and name what is wrong with
// wrong code.
#include "generators/compile/check_group.h"

#include <gtest/gtest.h>

#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"

namespace laminate {
namespace {

/// L3Net as one fused group, and its code.
class CheckGroup : public ::testing::Test {
protected:
    CheckGroup()
        : network_(zoo_network("l3net")),
          group_(line_buffer_group(network_, schedulable_chains(network_).front(), {4, 8, 0})),
          code_(default_code(network_, group_, vector_unit(Halide::get_host_target()))) {}

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
    EXPECT_NE(wrong_result(network_, group_, off, jit.function(), bands)
                  .find("channel 0, row 0, column 0 is "),
              std::string::npos)
        << wrong_result(network_, group_, off, jit.function(), bands);
}

// Impostors with the interface of generated code. L3Net's output is 16 channels or fewer of a small
// map; they only touch its first elements.
int writes_nothing(const float* const*, float* const*, const float*, void*, int32_t, int32_t) {
    return 0;
}
int writes_before_the_output(const float* const*, float* const* outputs, const float*, void*,
                             int32_t, int32_t) {
    outputs[0][-1] = 1;
    return 0;
}
int writes_before_the_scratch(const float* const*, float* const*, const float*, void* scratch,
                              int32_t, int32_t) {
    static_cast<float*>(scratch)[-1] = 1;
    return 0;
}
int fails(const float* const*, float* const*, const float*, void*, int32_t, int32_t) { return 7; }

TEST_F(CheckGroup, ImpostorsAreNamed) {
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_nothing),
              "channel 0, row 0, column 0 was not written, or is not finite");
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_before_the_output),
              "the code wrote outside its output");
    EXPECT_EQ(wrong_result(network_, group_, code_, writes_before_the_scratch),
              "the code wrote outside its scratch memory");
    EXPECT_EQ(wrong_result(network_, group_, code_, fails), "the code returned 7");
}

}  // namespace
}  // namespace laminate
