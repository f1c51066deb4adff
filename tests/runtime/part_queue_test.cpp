#include "runtime/part_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace laminate {
namespace {

TEST(PartQueue, EveryPartIsDoneOnceWhoeverComes) {
    for (const int threads : {1, 2, 3, 7}) {
        PartQueue queue(threads);
        for (const int64_t parts : {0, 1, 2, 5, 64, 1000}) {
            for (int coming = 1; coming <= threads; ++coming) {
                queue.fill(parts);
                std::vector<std::atomic<int>> done(static_cast<size_t>(parts));
                std::vector<std::thread> team;
                for (int t = 0; t < coming; ++t)
                    team.emplace_back(
                        [&, t] { queue.work(t, [&](int64_t part) { ++done[static_cast<size_t>(part)]; }); });
                for (std::thread& thread : team) thread.join();
                for (const std::atomic<int>& times : done) ASSERT_EQ(times, 1) << threads << " threads, " << parts;
            }
        }
    }
}

TEST(PartQueue, AThreadBeginsWithNeighboursOfItsOwn) {
    PartQueue queue(3);
    queue.fill(8);
    std::vector<int64_t> order;
    queue.work(1, [&](int64_t part) { order.push_back(part); });
    EXPECT_EQ(order, (std::vector<int64_t>{2, 3, 4, 5, 6, 7, 0, 1}));
}

}  // namespace
}  // namespace laminate
