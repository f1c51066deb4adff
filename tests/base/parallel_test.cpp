#include "base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <vector>

#include "tests/support/sanitized.h"

namespace laminate {
namespace {

TEST(InParallel, DoesAllWorkOnce) {
    for (const int threads : {1, 2, 7}) {
        std::mutex mutex;
        std::multiset<size_t> done;
        in_parallel(20, threads, [&](size_t n) {
            const std::lock_guard lock(mutex);
            done.insert(n);
        });
        EXPECT_EQ(done.size(), 20U);
        EXPECT_EQ(std::set<size_t>(done.begin(), done.end()).size(), 20U);
    }
}

TEST(InParallel, EachThreadHasAStateOfItsOwn) {
    struct Counter {
        int pieces = 0;
    };
    std::vector<int> known(1000, 0);  // pieces that the same state has seen before, plus one
    in_parallel_with<Counter>(known.size(), 3,
                              [&](size_t n, Counter& counter) { known[n] = ++counter.pieces; });
    const auto states = std::ranges::count(known, 1);
    EXPECT_GE(states, 1);
    EXPECT_LE(states, 3);
    // Each state counts 1, 2, .. without gaps.
    EXPECT_TRUE(std::ranges::none_of(known, [](int n) { return n == 0; }));
    for (int n = 2; n <= *std::ranges::max_element(known); ++n)
        EXPECT_LE(std::ranges::count(known, n), std::ranges::count(known, n - 1)) << n;
}

TEST(InParallel, TheFirstExceptionGoesOnAndNothingIsBegunAfterIt) {
    std::atomic<int> begun = 0;
    EXPECT_THROW(in_parallel(1000, 1,
                             [&](size_t n) {
                                 ++begun;
                                 if (n == 3) throw std::runtime_error("four are enough");
                             }),
                 std::runtime_error);
    EXPECT_EQ(begun, 4);
}

// Limits the address space to a few stacks.
TEST(InParallel, AThreadThatTheSystemDoesNotStartIsAnExceptionAndNoAbort) {
    if (test::is_sanitized) GTEST_SKIP() << "a sanitizer wants the address space";
    const pid_t child = ::fork();
    if (child == 0) {
        long pages = 0;
        if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
            if (std::fscanf(file, "%ld", &pages) != 1) ::_exit(2);
            std::fclose(file);
        }
        const rlim_t bytes =
            static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (64U << 20);
        const rlimit limit{bytes, bytes};
        if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
        try {
            in_parallel(1000, 1000, [](size_t) { ::usleep(1000); });
        } catch (const std::system_error& error) {
            ::_exit(std::string(error.what()).find(" of 1000 cannot be started: ") !=
                            std::string::npos
                        ? 0
                        : 4);
        }
        ::_exit(5);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace laminate
