#include "runtime/part_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace laminate {
namespace {

TEST(PartQueue, EveryPartIsDoneOnceWhoeverComes) {
    for (const int threads : {1, 2, 3, 7}) {
        PartQueue queue(threads);
        for (const auto& [parts, together] :
             {std::pair{0, 1}, {1, 1}, {2, 1}, {5, 1}, {64, 1}, {64, 4}, {1000, 1}, {1000, 8}}) {
            for (int coming = 1; coming <= threads; ++coming) {
                queue.fill(parts, together);
                std::vector<std::atomic<int>> done(static_cast<size_t>(parts));
                std::vector<std::thread> team;
                for (int t = 0; t < coming; ++t)
                    team.emplace_back([&, t] {
                        queue.work(t, [&](int64_t begin, int64_t end) {
                            for (int64_t part = begin; part < end; ++part)
                                ++done[static_cast<size_t>(part)];
                        });
                    });
                for (std::thread& thread : team) thread.join();
                for (const std::atomic<int>& times : done)
                    ASSERT_EQ(times, 1) << threads << " threads, " << parts;
            }
        }
    }
}

TEST(PartQueue, AThreadBeginsWithNeighboursOfItsOwn) {
    PartQueue queue(3);
    queue.fill(8);
    std::vector<int64_t> order;
    queue.work(1, [&](int64_t part, int64_t) { order.push_back(part); });
    EXPECT_EQ(order, (std::vector<int64_t>{2, 3, 4, 5, 6, 7, 0, 1}));
}

TEST(PartQueue, PartsThatBelongTogetherAreTakenTogether) {
    PartQueue queue(2);
    queue.fill(12, 4);  // shares [0, 6) and [6, 12)
    std::vector<std::pair<int64_t, int64_t>> taken;
    queue.work(1, [&](int64_t begin, int64_t end) { taken.emplace_back(begin, end); });
    EXPECT_EQ(taken, (std::vector<std::pair<int64_t, int64_t>>{{6, 8}, {8, 12}, {0, 4}, {4, 6}}));
}

TEST(PartQueue, WorkIsOverWhenItsPartsAreDone) {
    constexpr int threads = 5;
    constexpr int64_t parts = 7;
    std::vector<PartQueue> row;
    for (int n = 0; n < 200; ++n) {
        row.emplace_back(threads);
        row.back().fill(parts);
    }
    // Plain integers: every thread that has finished the queue must see what its parts wrote.
    std::vector<std::vector<int64_t>> done(row.size(), std::vector<int64_t>(parts, 0));
    std::atomic<int> too_early{0};
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t) {
        team.emplace_back([&, t] {
            for (size_t n = 0; n < row.size(); ++n) {
                row[n].finish(t, [&](int64_t part, int64_t) {
                    for (int64_t before = 0; n > 0 && before < parts; ++before) {
                        if (done[n - 1][static_cast<size_t>(before)] != static_cast<int64_t>(n))
                            ++too_early;
                    }
                    done[n][static_cast<size_t>(part)] += static_cast<int64_t>(n) + 1;
                }, [] { return false; }, rest_a_moment);
            }
        });
    }
    for (std::thread& thread : team) thread.join();
    EXPECT_EQ(too_early, 0);
    for (size_t n = 0; n < row.size(); ++n)
        EXPECT_EQ(done[n], std::vector<int64_t>(parts, static_cast<int64_t>(n) + 1))
            << "queue " << n;
}

TEST(PartQueue, AThreadThatComesLateFindsAllDone) {
    std::vector<PartQueue> row;
    for (int n = 0; n < 3; ++n) {
        row.emplace_back(2);
        row.back().fill(4);
    }
    int parts = 0;
    const auto finish = [&](PartQueue& queue, int thread) {
        queue.finish(thread, [&](int64_t, int64_t) { ++parts; }, [] { return false; }, rest_a_moment);
    };
    for (PartQueue& queue : row) finish(queue, 0);  // waits for nobody
    EXPECT_EQ(parts, 12);
    for (PartQueue& queue : row) finish(queue, 1);
    EXPECT_EQ(parts, 12);
}

}  // namespace
}  // namespace laminate
