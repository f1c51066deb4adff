#include "base/shared_loop.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "tests/support/sanitized.h"

namespace laminate {
namespace {

TEST(SharedLoop, EveryIterationIsDoneOnceWhoeverHelps) {
    SharedLoop loop(4);
    std::atomic<bool> over{false};
    std::atomic<int64_t> helped{0};
    std::vector<std::thread> helpers;
    for (int t = 0; t < 3; ++t) {
        helpers.emplace_back([&, t] {
            while (!over) {
                if (loop.help(t + 1)) {
                    ++helped;
                } else {
                    std::this_thread::yield();
                }
            }
        });
    }
    // The counters are plain integers: their values must be visible when parallel_for returns, and
    // nobody may touch them afterwards.
    const auto led = [&] {
        const SharedLoop::Leader leader(&loop, 0);
        for (int round = 0; round < 2000; ++round) {
            const int64_t count = round % 7 == 0 ? 1000 : round % 13;
            std::vector<int> done(static_cast<size_t>(count), 0);
            parallel_for(count, 4, [&](int64_t k) { ++done[static_cast<size_t>(k)]; });
            for (const int times : done) ASSERT_EQ(times, 1) << "round " << round;
        }
    };
    led();
    // Other threads do help: a loop that waits for one of them ends.
    std::atomic<int> met{0};
    {
        const SharedLoop::Leader leader(&loop, 0);
        parallel_for(2, 4, [&](int64_t) {
            ++met;
            while (met < 2) std::this_thread::yield();
        });
    }
    over = true;
    for (std::thread& thread : helpers) thread.join();
    EXPECT_GT(helped, 0);
}

/// What a thread wrote in one loop it finds in its own cache in the next.
TEST(SharedLoop, ThreadsBeginWithIterationsOfTheirOwn) {
    SharedLoop loop(2);
    std::vector<std::thread::id> by(8);
    std::thread helper;
    std::atomic<int> ends{0};  // of the threads' iterations
    {
        const SharedLoop::Leader leader(&loop, 1);
        parallel_for(8, 2, [&](int64_t k) {
            by[static_cast<size_t>(k)] = std::this_thread::get_id();
            if (k == 4) helper = std::thread([&] { loop.help(0); });
            if (k % 4 < 3) return;
            ++ends;
            while (ends < 2) std::this_thread::yield();
        });
    }
    helper.join();
    EXPECT_EQ(std::set(by.begin(), by.begin() + 4).size(), 1U);
    EXPECT_EQ(std::set(by.begin() + 4, by.end()), std::set{std::this_thread::get_id()});
    EXPECT_NE(by.front(), by.back());
}

TEST(SharedLoop, ALoopWithinALoopIsItsThreadsOwn) {
    SharedLoop loop(1);
    const SharedLoop::Leader leader(&loop, 0);
    std::vector<int> done(12, 0);
    for (int round = 0; round < 2; ++round) {
        parallel_for(3, 1, [&](int64_t outer) {
            parallel_for(4, 1,
                         [&](int64_t inner) { ++done[static_cast<size_t>(4 * outer + inner)]; });
        });
    }
    EXPECT_EQ(done, std::vector<int>(12, 2));
}

TEST(SharedLoop, WithoutALeaderOpenMpsThreadsShareALoop) {
    for (const int threads : {1, 2, 3}) {
        std::vector<int> done(501, 0);
        parallel_for(501, threads,
                     [&](int64_t k) { done[static_cast<size_t>(k)] += omp_get_num_threads(); });
        EXPECT_EQ(done, std::vector<int>(501, threads));
    }
    parallel_for(0, 2, [](int64_t) { ADD_FAILURE(); });
}

/// A forked child lacks OpenMP's threads, and OpenMP would wait for them.
TEST(SharedLoop, AForkedChildGoesOnAlone) {
    if (test::is_thread_sanitized)
        GTEST_SKIP() << "the sanitizer does not let a child of several threads start any";
    parallel_for(2, 2, [](int64_t) {});
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(20);
        int sum = 0;
        parallel_for(4, 2, [&](int64_t k) { sum += static_cast<int>(k); });
        _exit(sum == 6 && team_size(2) == 1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(team_size(2), 2);
}

}  // namespace
}  // namespace laminate
