// Hands out the parts of a piece of work to threads. Each thread begins with a range of
// neighbouring parts of its own and then takes what others have left. A thread's ranges lie alike
// from one piece of work to the next, so it finds most of what it reads in the cache of its own
// core, where it wrote it. A thread that loses its core to another program delays the others by one
// part at most.
//
// Threads that pass through a row of queues, finish() after finish(), need no barrier between them:
// a piece of work is over when its parts are done, not when every thread has come. A thread that
// got no core meanwhile finds the work done and catches up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/team.h"

namespace laminate {

class PartQueue {
public:
    /// The only member that allocates.
    explicit PartQueue(int threads)
        : shares_(static_cast<size_t>(threads)), done_(std::make_unique<Done>()) {}

    /// Sets the parts to do, [0, parts). Call it while no thread is in work() or finish().
    void fill(int64_t parts) {
        const auto threads = static_cast<int64_t>(shares_.size());
        for (int64_t t = 0; t < threads; ++t) {
            Share& share = shares_[static_cast<size_t>(t)];
            share.next.store(parts * t / threads, std::memory_order_relaxed);
            share.end = parts * (t + 1) / threads;
        }
        done_->parts.store(0, std::memory_order_relaxed);
        parts_ = parts;
    }

    /// Calls what(part) for parts that no other thread has taken, until none is left. `thread` is 0
    /// to threads - 1. Any number of threads may come; one alone does everything.
    template <class What>
    void work(int thread, const What& what) {
        for (size_t n = 0; n < shares_.size(); ++n) {
            Share& share = shares_[(static_cast<size_t>(thread) + n) % shares_.size()];
            for (;;) {
                const int64_t part = share.next.fetch_add(1, std::memory_order_relaxed);
                if (part >= share.end) break;
                what(part);
            }
        }
    }

    /// The same, but returns only when all parts are done, including those of other threads, whose
    /// writes are then visible. Every thread that takes parts must take them by finish(). While
    /// waiting it calls help() and rest() as wait_until() does, whose result it returns.
    template <class What, class Help, class Rest>
    bool finish(int thread, const What& what, const Help& help, const Rest& rest) {
        int64_t mine = 0;
        work(thread, [&](int64_t part) {
            what(part);
            ++mine;
        });
        if (mine > 0) done_->parts.fetch_add(mine, std::memory_order_release);
        return wait_until([&] { return done_->parts.load(std::memory_order_acquire) >= parts_; },
                          help, rest);
    }

private:
    /// On its own cache line.
    struct alignas(64) Share {
        std::atomic<int64_t> next{0};
        int64_t end = 0;
    };
    struct alignas(64) Done {
        std::atomic<int64_t> parts{0};
    };
    std::vector<Share> shares_;
    std::unique_ptr<Done> done_;
    int64_t parts_ = 0;
};

}  // namespace laminate
