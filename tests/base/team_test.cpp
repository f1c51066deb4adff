#include "base/team.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/shared_loop.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

TEST(Team, AllMembersShareWorkAfterWork) {
    for (const int threads : {1, 2, 5}) {
        Team team(threads);
        for (int round = 0; round < 500; ++round) {
            std::vector<int> done(20, 0);
            std::atomic<size_t> next{0}, parts{0};
            team.run([&](Team::Member& member) {
                EXPECT_TRUE(member.number() >= 0 && member.number() < threads);
                for (size_t k = next++; k < done.size(); k = next++) {
                    ++done[k];
                    ++parts;
                }
                wait_until([&] { return parts == done.size(); }, [] { return false; },
                           [&](int rounds) { return member.rest(rounds); });
            });
            ASSERT_EQ(done, std::vector<int>(20, 1)) << threads << " threads, round " << round;
        }
    }
}

TEST(Team, AMemberThatRestsIsLeftBehind) {
    Team team(3);
    for (int round = 0; round < 200; ++round) {
        std::atomic<int> inside{0};
        team.run([&](Team::Member& member) {
            if (member.number() == 0) return;
            ++inside;
            for (int rounds = 0; member.rest(rounds); ++rounds) {
            }
        });
        EXPECT_LE(inside, 2);
    }
}

TEST(Team, AMemberThatWorksIsWaitedFor) {
    Team team(2);
    int written = 0;
    std::atomic<bool> has_begun{false};
    team.run([&](Team::Member& member) {
        if (member.number() == 0) {
            wait_until([&] { return has_begun.load(); }, [] { return false; }, rest_a_moment);
            return;
        }
        has_begun = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        written = 7;
    });
    EXPECT_EQ(written, 7);
}

TEST(Team, AMemberThatSleptComesAgain) {
    Team team(2);
    for (int round = 0; round < 3; ++round) {
        std::atomic<bool> came{false};
        team.run([&](Team::Member& member) {
            if (member.number() == 1) came = true;
            wait_until([&] { return came.load(); }, [] { return false; },
                       [&](int rounds) { return member.rest(rounds); });
        });
        EXPECT_TRUE(came);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

TEST(Team, LoopsInsideRunAlone) {
    EXPECT_FALSE(is_in_team());
    Team team(2);
    std::atomic<int> most{0};
    team.run([&](Team::Member&) {
        EXPECT_TRUE(is_in_team());
        parallel_for(8, 2, [&](int64_t) { most = std::max(most.load(), omp_get_num_threads()); });
    });
    EXPECT_EQ(most, 1);
    EXPECT_FALSE(is_in_team());
}

TEST(Team, AForkedChildEndsItWithoutItsThreads) {
    if (test::is_thread_sanitized)
        GTEST_SKIP() << "the sanitizer does not let a child of several threads go on";
    auto team = std::make_unique<Team>(2);
    team->run([](Team::Member&) {});
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(20);
        team.reset();
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace laminate
