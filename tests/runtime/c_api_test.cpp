// The C API; runtime/c_api.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "runtime/laminate.h"
#include "tests/runtime/hand_network.h"

extern "C" int32_t run_from_c(const laminate_compiled_network* network, const float* input,
                              float* output);  // c_caller.c

namespace laminate {
namespace {

int negate(const float* const* inputs, float* const* outputs, const float*, void*, int32_t,
           int32_t) {
    if (inputs[0][0] == 13) return 5;
    for (int k = 0; k < 6; ++k) outputs[0][k] = -inputs[0][k];
    return 0;
}

HandNetwork negation() {
    HandNetwork network;
    network.manifest.inputs = {network.tensor("x", {1, 1, 2, 3})};
    network.manifest.outputs = {network.tensor("y", {1, 1, 2, 3})};
    network.manifest.tensors[0].type = ElementType::uint8;
    network.group(negate, {0}, {1}, 1, 100);
    return network;
}

TEST(CApi, OpensListsRunsAndCloses) {
    HandNetwork network = negation();
    laminate_session* session = laminate_open_linked(network.compiled(), 1);
    ASSERT_NE(session, nullptr) << laminate_last_error();
    EXPECT_EQ(laminate_input_count(session), 1);
    EXPECT_EQ(laminate_output_count(session), 1);
    EXPECT_STREQ(laminate_input_name(session, 0), "x");
    EXPECT_STREQ(laminate_output_name(session, 0), "y");
    EXPECT_STREQ(laminate_input_type(session, 0), "uint8");
    EXPECT_STREQ(laminate_output_type(session, 0), "float32");
    EXPECT_EQ(laminate_input_type(session, 1), nullptr);
    ASSERT_EQ(laminate_input_rank(session, 0), 4);
    ASSERT_EQ(laminate_output_rank(session, 0), 4);
    EXPECT_EQ(
        std::vector<int64_t>(laminate_input_dims(session, 0), laminate_input_dims(session, 0) + 4),
        (std::vector<int64_t>{1, 1, 2, 3}));
    EXPECT_EQ(laminate_output_dims(session, 0)[3], 3);
    EXPECT_EQ(laminate_arena_bytes(session), 128);  // 100 bytes of scratch in whole cache lines
    const std::vector<float> x{1, 2, 3, 4, 5, 6};
    std::vector<float> y(6);
    const float* inputs[] = {x.data()};
    float* outputs[] = {y.data()};
    EXPECT_EQ(laminate_run(session, inputs, outputs), 0);
    EXPECT_EQ(y, (std::vector<float>{-1, -2, -3, -4, -5, -6}));
    laminate_close(session);
}

TEST(CApi, IsC) {
    HandNetwork network = negation();
    const std::vector<float> x{1, 2, 3, 4, 5, 6};
    std::vector<float> y(6);
    EXPECT_EQ(run_from_c(network.compiled(), x.data(), y.data()), 0);
    EXPECT_EQ(y, (std::vector<float>{-1, -2, -3, -4, -5, -6}));
}

TEST(CApi, FailuresAreNoted) {
    EXPECT_EQ(laminate_open("no/such/directory", 0), nullptr);
    EXPECT_STREQ(laminate_last_error(), "no/such/directory/manifest.json: no such file");
    EXPECT_EQ(laminate_open(nullptr, 0), nullptr);
    EXPECT_STREQ(laminate_last_error(), "directory: found null");
    EXPECT_EQ(laminate_open_linked(nullptr, 0), nullptr);
    EXPECT_STREQ(laminate_last_error(), "compiled network: found none");

    HandNetwork network = negation();
    EXPECT_EQ(laminate_open_linked(network.compiled(), -2), nullptr);
    EXPECT_STREQ(laminate_last_error(), "threads: found -2, expected 0 to 1024");
    EXPECT_EQ(laminate_open_linked(network.compiled(), 1'000'000), nullptr);
    EXPECT_STREQ(laminate_last_error(), "threads: found 1000000, expected 0 to 1024");
    laminate_session* session = laminate_open_linked(network.compiled(), 1);
    ASSERT_NE(session, nullptr);
    std::vector<float> x(6, 13), y(6);
    const float* inputs[] = {x.data()};
    float* outputs[] = {y.data()};
    EXPECT_EQ(laminate_run(session, inputs, outputs), -1);
    EXPECT_STREQ(laminate_last_error(), "group group0: the compiled code returned 5");
    EXPECT_EQ(laminate_run(session, nullptr, outputs), -1);
    EXPECT_STREQ(laminate_last_error(), "inputs: found null");
    inputs[0] = nullptr;
    EXPECT_EQ(laminate_run(session, inputs, outputs), -1);
    EXPECT_STREQ(laminate_last_error(), "input x: no array");
    EXPECT_EQ(laminate_input_name(session, 1), nullptr);
    EXPECT_STREQ(laminate_last_error(), "input 1: expected 0 to 0");
    EXPECT_EQ(laminate_output_dims(session, -1), nullptr);
    EXPECT_EQ(laminate_output_rank(session, 9), -1);
    laminate_close(session);
}

std::atomic<bool> has_begun, may_end;

int wait_for_the_test(const float* const*, float* const* outputs, const float*, void*, int32_t,
                      int32_t) {
    has_begun = true;
    while (!may_end) std::this_thread::yield();
    outputs[0][0] = 7;
    return 0;
}

// Issue 26, 3. Two runs at once would share the session's arena.
TEST(CApi, ASecondRunOfABusySessionIsRefused) {
    HandNetwork network;
    network.manifest.inputs = {network.tensor("x", {1})};
    network.manifest.outputs = {network.tensor("y", {1})};
    network.group(wait_for_the_test, {0}, {1});
    for (const int threads : {1, 2}) {
        has_begun = may_end = false;
        laminate_session* session = laminate_open_linked(network.compiled(), threads);
        ASSERT_NE(session, nullptr) << laminate_last_error();
        const float x = 0;
        float first = 0, second = 0;
        const float* inputs[] = {&x};
        int32_t code = -1;
        std::thread running([&] {
            float* outputs[] = {&first};
            code = laminate_run(session, inputs, outputs);
        });
        while (!has_begun) std::this_thread::yield();
        float* outputs[] = {&second};
        EXPECT_EQ(laminate_run(session, inputs, outputs), -1);
        EXPECT_STREQ(laminate_last_error(),
                     "session: is busy with another run; expected one run at a time, or a session "
                     "per thread");
        EXPECT_EQ(second, 0);
        may_end = true;
        running.join();
        EXPECT_EQ(code, 0);
        EXPECT_EQ(first, 7);
        EXPECT_EQ(laminate_run(session, inputs, outputs), 0);  // free again
        EXPECT_EQ(second, 7);
        laminate_close(session);
    }
}

TEST(CApi, NullSessionsAreHarmless) {
    laminate_close(nullptr);
    EXPECT_EQ(laminate_input_count(nullptr), -1);
    EXPECT_EQ(laminate_output_count(nullptr), -1);
    EXPECT_EQ(laminate_input_name(nullptr, 0), nullptr);
    EXPECT_EQ(laminate_arena_bytes(nullptr), -1);
    EXPECT_EQ(laminate_run(nullptr, nullptr, nullptr), -1);
    EXPECT_STREQ(laminate_last_error(), "session: found null");
}

TEST(CApi, EachThreadHasItsOwnLastError) {
    EXPECT_EQ(laminate_open("here", 0), nullptr);
    std::string there;
    std::thread([&] { there = laminate_last_error(); }).join();
    EXPECT_EQ(there, "");
    EXPECT_STREQ(laminate_last_error(), "here/manifest.json: no such file");
}

}  // namespace
}  // namespace laminate
