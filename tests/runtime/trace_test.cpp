// Networks with hooks: what a session tells, and an emulated memory of two levels.
#include "runtime/trace.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/group_trace.h"
#include "runtime/laminate.h"
#include "runtime/session.h"
#include "runtime/two_level_memory.h"
#include "tests/runtime/hand_network.h"

namespace laminate {
namespace {

constexpr int watched_rows = 4, watched_columns = 3;

int copy(const float* const* inputs, float* const* outputs, const float*, void*, int32_t, int32_t) {
    for (int k = 0; k < watched_rows * watched_columns; ++k) outputs[0][k] = inputs[0][k];
    return 0;
}

/// A 3x3 convolution that is told of row by row; its buffer of X has two rows, one too few.
int hooked_copy(const float* const* inputs, float* const* outputs, const float* constants,
                void* scratch, int32_t begin, int32_t end, const laminate_hook* hook) {
    enum { x, y };
    const auto tell = [&](laminate_trace_kind kind, int32_t buffer, int32_t first, int32_t last) {
        const int32_t box[8] = {0, 1, first, last, 0, watched_columns, 0, 1};
        if (hook != nullptr) hook->function(hook->context, kind, buffer, box);
    };
    tell(LAMINATE_BEGINS, x, 0, watched_rows);
    tell(LAMINATE_FETCHES, x, 0, 2);  // 6 elements
    tell(LAMINATE_FETCHES, x, 1, 3);  // row 1 is there, row 2 takes the place of row 0: 3 elements
    tell(LAMINATE_FETCHES, x, 0, 1);  // row 0 again: 3 elements
    tell(LAMINATE_BEGINS, y, 0, watched_rows);
    tell(LAMINATE_READS_BACK, y, 0, 1);
    tell(LAMINATE_COMPUTES, y, 0, watched_rows);
    tell(LAMINATE_WRITES, y, 0, 1);
    tell(LAMINATE_ENDS, y, 0, watched_rows);
    tell(LAMINATE_ENDS, x, 0, watched_rows);
    tell(LAMINATE_BEGINS, x, 0, watched_rows);
    tell(LAMINATE_FETCHES, x, 1, 2);  // nothing is left of the lifetime before: 3 elements
    tell(LAMINATE_ENDS, x, 0, watched_rows);
    return copy(inputs, outputs, constants, scratch, begin, end);
}

HandNetwork watched(int64_t images = 1) {
    HandNetwork network;
    network.manifest.inputs = {
        network.tensor("picture", {images, 1, watched_rows, watched_columns})};
    network.manifest.outputs = {
        network.tensor("result", {images, 1, watched_rows, watched_columns})};
    network.manifest.instrumented = true;
    network.group(copy, {0}, {1});
    network.hooked_groups = {hooked_copy};
    PromisedNest nest{.layer = "conv1", .macs = 108};
    nest.kernel = {3, 3};
    std::get<GroupStep>(network.manifest.steps[0]).trace = {{{LAMINATE_INPUT,
                                                              "conv1",
                                                              "picture",
                                                              {1, watched_rows, watched_columns},
                                                              {1, 2, watched_columns},
                                                              12,
                                                              0},
                                                             {LAMINATE_OUTPUT,
                                                              "conv1",
                                                              "result",
                                                              {1, watched_rows, watched_columns},
                                                              {1, 1, watched_columns},
                                                              3,
                                                              3}},
                                                            {nest},
                                                            9};
    return network;
}

void run(Session& session) {
    std::vector<float> in(static_cast<size_t>(element_count(session.inputs()[0].dims)), 2.0F);
    std::vector<float> out(in.size());
    session.run({in.data()}, {out.data()});
    EXPECT_EQ(in, out);
}

TEST(Trace, AMemoryCountsWhatIsNotInItsPlace) {
    HandNetwork network = watched();
    Session session = Session::open(network.compiled());
    ASSERT_EQ(session.buffers().size(), 2U);
    const laminate_buffer *x = session.buffers()[0], *y = session.buffers()[1];
    EXPECT_STREQ(x->tensor, "picture");
    EXPECT_STREQ(x->layer, "conv1");
    EXPECT_STREQ(x->group, "group0");
    TwoLevelMemory memory(4 * (2 * 3 + 3));
    session.set_trace(TwoLevelMemory::observe, &memory);
    run(session);
    EXPECT_EQ(memory.failure(), "");
    EXPECT_EQ(memory.traffic(x).reads, 6 + 3 + 3 + 3);
    EXPECT_EQ(memory.traffic(x).size, 2 * 3);
    EXPECT_EQ(memory.traffic(y).reads, 3);
    EXPECT_EQ(memory.traffic(y).writes, 3);
    EXPECT_EQ(memory.traffic(y).macs, 4 * 3 * 9);
    EXPECT_EQ(memory.accesses(), 15 + 3 + 3);
    EXPECT_EQ(memory.peak(), 9);
    EXPECT_EQ(memory.peak(0), 9);
    // Nothing is told any more.
    session.set_trace(nullptr, nullptr);
    run(session);
    EXPECT_EQ(memory.accesses(), 21);
}

TEST(Trace, ABufferThatDoesNotFitIsNamed) {
    HandNetwork network = watched();
    Session session = Session::open(network.compiled());
    TwoLevelMemory memory(4 * (2 * 3 + 3) - 1);
    session.set_trace(TwoLevelMemory::observe, &memory);
    run(session);
    EXPECT_EQ(memory.failure(),
              "group group0: its buffers take 36 bytes at once (X picture 24, Y result 12), the "
              "memory has 35");
}

TEST(Trace, ABoxThatIsLargerThanItsBufferIsNamed) {
    HandNetwork network = watched();
    std::get<GroupStep>(network.manifest.steps[0]).trace->buffers[0].extent[1] = 1;
    Session session = Session::open(network.compiled());
    TwoLevelMemory memory(1000);
    session.set_trace(TwoLevelMemory::observe, &memory);
    run(session);
    EXPECT_EQ(memory.failure(), "group group0: X picture: a box of 1x2x3, its buffer has 1x1x3");
}

TEST(Trace, AnImageOfABatchIsCounted) {
    HandNetwork network = watched(3);
    Session session = Session::open(network.compiled());
    TwoLevelMemory memory(1000);
    session.set_trace(TwoLevelMemory::observe, &memory);
    run(session);
    EXPECT_EQ(memory.accesses(), 21);
}

TEST(Trace, SessionsDoNotHearOfEachOther) {
    HandNetwork network = watched();
    const laminate_compiled_network* compiled = network.compiled();
    constexpr int sessions = 4, runs = 50;
    std::vector<int64_t> accesses(sessions);
    std::vector<std::thread> threads;
    for (int s = 0; s < sessions; ++s) {
        threads.emplace_back([&, s] {
            Session session = Session::open(compiled, {1});
            TwoLevelMemory memory(1000);
            session.set_trace(TwoLevelMemory::observe, &memory);
            for (int n = 0; n <= s * runs; ++n) run(session);
            accesses[static_cast<size_t>(s)] = memory.accesses();
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (int s = 0; s < sessions; ++s)
        EXPECT_EQ(accesses[static_cast<size_t>(s)], 21 * (s * runs + 1));
}

TEST(Trace, WithoutHooksThereIsNothingToTell) {
    HandNetwork network = watched();
    network.manifest.instrumented = false;
    std::get<GroupStep>(network.manifest.steps[0]).trace.reset();
    laminate_session* session = laminate_open_linked(network.compiled(), 1);
    ASSERT_NE(session, nullptr) << laminate_last_error();
    EXPECT_EQ(laminate_buffer_count(session), 0);
    TwoLevelMemory memory(1000);
    EXPECT_EQ(laminate_set_trace(session, TwoLevelMemory::observe, &memory), -1);
    EXPECT_STREQ(laminate_last_error(),
                 "by hand: was compiled without hooks, expected laminate compile --instrumented");
    laminate_close(session);
    EXPECT_EQ(laminate_set_trace(nullptr, TwoLevelMemory::observe, &memory), -1);
    EXPECT_STREQ(laminate_last_error(), "session: found null");
    EXPECT_EQ(laminate_buffer_count(nullptr), -1);
    EXPECT_EQ(laminate_buffer_at(nullptr, 0), nullptr);
}

TEST(Trace, CodeOfAnotherScheduleIsNotCounted) {
    HandNetwork network = watched();
    network.manifest.replaced_groups = {"conv1"};
    Session session = Session::open(network.compiled());
    TwoLevelMemory memory(1000);
    try {
        session.set_trace(TwoLevelMemory::observe, &memory);
        FAIL();
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     "by hand: its code is not that of its schedule, because group conv1 was "
                     "replaced");
    }
}

TEST(Trace, BuffersAreListedByTheCApi) {
    HandNetwork network = watched();
    laminate_session* session = laminate_open_linked(network.compiled(), 1);
    ASSERT_NE(session, nullptr) << laminate_last_error();
    ASSERT_EQ(laminate_buffer_count(session), 2);
    EXPECT_EQ(laminate_buffer_at(session, 1)->role, LAMINATE_OUTPUT);
    EXPECT_EQ(laminate_buffer_at(session, 1)->extent[2], watched_columns);
    EXPECT_EQ(laminate_buffer_at(session, 2), nullptr);
    EXPECT_STREQ(laminate_last_error(), "buffer 2: expected 0 to 1");
    laminate_close(session);
}

TEST(Trace, APromiseWithoutHooksIsRefused) {
    HandNetwork network = watched();
    network.hooked_groups = {nullptr};
    try {
        (void)Session::open(network.compiled());
        FAIL();
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(), "compiled network: step group0: group 0 has no hooks");
    }
}

/// Taps of a transposed convolution of 3x3, stride 2, padding 1 (docs/counting.md section 1): rows
/// 0 to 6 have 1 2 1 2 1 2 1 of them.
TEST(Trace, MacsOfABoxCountTaps) {
    PromisedNest nest{.layer = "deconv1", .macs = 600, .transposed = true};
    nest.kernel = {3, 3};
    nest.stride = {2, 2};
    nest.pad_begin = {1, 1};
    const int32_t whole[8] = {0, 3, 0, 7, 0, 7, 0, 2};
    EXPECT_EQ(box_macs(nest, whole), 3 * 2 * 10 * 10);
    const int32_t part[8] = {1, 2, 1, 3, 3, 4, 1, 2};
    EXPECT_EQ(box_macs(nest, part), (2 + 1) * 2);
    nest.macs = 0;  // a layer without weights
    EXPECT_EQ(box_macs(nest, whole), 0);
}

TEST(Trace, PromisesComeBackFromTheManifest) {
    const HandNetwork network = watched();
    const Manifest& manifest = network.manifest;
    const Manifest again = parse_manifest(to_json(manifest), "manifest");
    EXPECT_TRUE(again.instrumented);
    EXPECT_EQ(std::get<GroupStep>(again.steps[0]), std::get<GroupStep>(manifest.steps[0]));
}

TEST(Trace, WrongPromisesAreRefusedWithTheirPlace) {
    const auto error_of = [](const auto& change) -> std::string {
        Manifest manifest = watched().manifest;
        change(manifest, *std::get<GroupStep>(manifest.steps[0]).trace);
        try {
            (void)parse_manifest(to_json(manifest), "manifest");
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(error_of([](Manifest& m, GroupPromise&) { m.instrumented = false; }),
              "manifest: step group0 has a trace, expected \"instrumented\"");
    EXPECT_EQ(error_of([](Manifest&, GroupPromise& p) { p.buffers[0].layer = "conv9"; }),
              "manifest: step group0: buffer of picture is of conv9, which is no nest");
    EXPECT_EQ(error_of([](Manifest&, GroupPromise& p) { p.buffers[1].extent[1] = 5; }),
              "manifest: step group0: buffer of result has an extent of 5, expected at most 4");
    EXPECT_EQ(error_of([](Manifest&, GroupPromise& p) { p.buffers[1].reads = -1; }),
              "manifest.steps[0].trace.buffers[1].reads: is -1, expected an integer from 0");
}

}  // namespace
}  // namespace laminate
